"""Fresh values for keys and unit ids: a number 0..count-1 becomes a value of the column's exact type."""

from __future__ import annotations

import re

from dpsyn_sql.domain.types import SqlType, tick_literal
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, string_literal

_DIGITS = 6  # the fewest digits of numbers in text
_EXACT = {"FLOAT": 2**24, "DOUBLE": 2**53}  # whole numbers up to here are exact
_YEAR_2000 = 10_957  # days since 1970-01-01


def capacity(kind: SqlType | None) -> int | None:
    """The number of different values of the type; None for more than any table has rows.

    ``kind`` is that of a key or unit id: None for a unit's BLOB.
    """
    if kind is None or kind.family in ("text", "uuid"):
        return None
    if kind.family == "enum":
        return len(_labels(kind))
    if kind.family == "boolean":
        return 2
    return _EXACT[kind.text] if kind.family == "float" else kind.high - kind.low + 1


def surrogate(kind: SqlType | None, number: Fragment, count: int, prefix: str, seed: int) -> Fragment:
    """The value of a number as a SQL expression of exactly the type; each number has its own value.

    Args:
        kind: the column's type, None for BLOB; it holds ``count`` values (see ``capacity``).
        number: a BIGINT expression, 0..count-1; plain, because it is repeated.
        count: how many values are made.
        prefix: of text values, such as ``"key"``; also tells the columns of one table apart.
        seed: of the bits in a UUID.
    """
    if kind is None or kind.family == "text":
        width = max(_DIGITS, len(str(count)))
        stem = string_literal(prefix.split("|", maxsplit=1)[0] + "-")
        text = f"{stem} || lpad(CAST({number} + 1 AS VARCHAR), {width}, '0')"
        return DUCKDB.text_bytes(text) if kind is None else Fragment(f"({text})")
    if kind.family == "uuid":
        return _uuid(number, prefix, seed)
    if kind.family in ("enum", "boolean"):
        values = _labels(kind) if kind.family == "enum" else ("FALSE", "TRUE")
        listed = ", ".join(string_literal(value) for value in values)
        return Fragment(f"CAST(([{listed}])[{number} + 1] AS {kind.sql})")
    if kind.family == "float":
        return Fragment(f"CAST({number} + 1 AS {kind.sql})")
    start, step = _spacing(kind, count)
    return _value(kind, start, step, number)


def _spacing(kind: SqlType, count: int) -> tuple[int, int]:
    """First tick and step: plain ones (1, 2, 3; whole days from 2000 on) if the type has room."""
    second = 1_000_000 // kind.unit
    plain = {
        "integer": (1, 1),
        "decimal": (10**kind.scale, 10**kind.scale),
        "date": (_YEAR_2000, 1),
        "time": (0, second),
        "timestamp": (_YEAR_2000 * kind.day, second),
    }[kind.family]
    return plain if plain[0] + plain[1] * (count - 1) <= kind.high else (kind.low, 1)


def _value(kind: SqlType, start: int, step: int, number: Fragment) -> Fragment:
    tick = f"{number} * {step} + {start}" if step > 1 else f"{number} + {start}"
    if kind.family == "integer":
        wide = "HUGEINT" if kind.low < 0 else "UHUGEINT"
        first = f"CAST('{start}' AS {wide})"
        return Fragment(f"CAST({first} + CAST({number} AS {wide}) AS {kind.sql})")
    if kind.family == "decimal":
        if step > 1 or kind.scale == 0:
            return Fragment(f"CAST({number} + {1 if kind.low < start else start} AS {kind.sql})")
        first = tick_literal(kind, start)
        unit = tick_literal(kind, 1)
        return Fragment(f"CAST({first} + CAST({number} AS DECIMAL(38,0)) * {unit} AS {kind.sql})")
    if kind.family == "date":
        return Fragment(f"CAST(DATE '1970-01-01' + CAST({tick} AS INTEGER) AS DATE)")
    made = "make_timestamptz" if kind.zoned else "make_timestamp"
    return Fragment(f"CAST({made}(({tick}) * {kind.unit}) AS {kind.sql})")


def _uuid(number: Fragment, prefix: str, seed: int) -> Fragment:
    """122 random bits in the form of version 4 (RFC 9562): 4 bits say the version, 2 the variant."""
    halves = []
    for half, kept, fixed in (("high", 2**64 - 1 - 0xF000, 0x4000), ("low", 2**62 - 1, 2**63)):
        purpose = string_literal(f"{prefix}|{half}|{seed}")
        bits = f"hash(xor(CAST({number} AS UBIGINT), hash({purpose})))"
        whole = f"(({bits}) & CAST('{kept}' AS UBIGINT)) | CAST('{fixed}' AS UBIGINT)"
        halves.append(f"lpad(to_hex({whole}), 16, '0')")
    return Fragment(f"CAST({' || '.join(halves)} AS UUID)")


def _labels(kind: SqlType) -> tuple[str, ...]:
    found = re.findall(r"'((?:[^']|'')*)'", kind.text)
    return tuple(label.replace("''", "'") for label in found)
