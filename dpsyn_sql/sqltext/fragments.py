"""Quoted SQL fragments, the only strings that may enter a template, and what statements have in common.

Expressions and types of DuckDB are here; templates may use ``lot``. Text of files is cast here alone. Its
decimal mark is "." or ","; it is empty where columns have types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from uuid import uuid4

from dpsyn_sql.errors import InternalError

Label = bool | int | str

_CODE_TYPES = (("UTINYINT", 8), ("USMALLINT", 16), ("UINTEGER", 32), ("UBIGINT", 64))
# With their bits, narrowest first.


class Fragment(str):
    """SQL text that is safe in a statement without change."""

    __slots__ = ()


def ident(name: str) -> Fragment:
    """Quote one identifier; any text is a valid name except one with a NUL."""
    if "\x00" in name:
        raise InternalError("an identifier holds a NUL character")
    return Fragment('"' + name.replace('"', '""') + '"')


def qualified(*parts: str) -> Fragment:
    """Quote a dotted name, for example catalog, schema and table."""
    return Fragment(".".join(ident(part) for part in parts))


def literal(value: bool | int | float | Decimal | str | date | datetime | None) -> Fragment:
    """A typed SQL literal; floats keep every bit, dates and times are typed."""
    if value is None:
        return Fragment("NULL")
    if isinstance(value, bool):
        return Fragment("TRUE" if value else "FALSE")
    if isinstance(value, int):
        return Fragment(str(value))
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else repr(value)
        return Fragment(f"CAST('{text}' AS DOUBLE)")
    if isinstance(value, Decimal):
        return Fragment(format(value, "f"))
    if isinstance(value, datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        return Fragment(f"{kind} '{value.isoformat(sep=' ')}'")
    if isinstance(value, date):
        return Fragment(f"DATE '{value.isoformat()}'")
    return string_literal(value)


def string_literal(text: str) -> Fragment:
    """A VARCHAR literal; NUL characters are spliced in with chr(0)."""
    pieces = ["'" + piece.replace("'", "''") + "'" for piece in text.split("\x00")]
    return Fragment(pieces[0] if len(pieces) == 1 else "(" + " || chr(0) || ".join(pieces) + ")")


def comma(fragments: Iterable[str]) -> Fragment:
    """Join fragments with commas, one per line."""
    return Fragment(",\n    ".join(fragments))


def by_cuts(column: str, cuts: Sequence[int | str], leaves: Sequence[str]) -> str:
    """Leaf i for cuts[i-1] <= column < cuts[i], by comparisons: log2 of the leaves deep."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    below = by_cuts(column, cuts[: middle - 1], leaves[:middle])
    above = by_cuts(column, cuts[middle:], leaves[middle:])
    return f"CASE WHEN {column} < {cuts[middle - 1]} THEN {below} ELSE {above} END"


def temporary_table(stem: str) -> Fragment:
    """A new name for a temporary table."""
    return qualified("temp", "main", f"{stem}_{uuid4().hex}")


# -- codes -------------------------------------------------------------------------------------------


def code_type(size: int) -> Fragment:
    """The smallest type that holds the codes 0..size-1.

    Raises:
        InternalError: no type holds so many codes.
    """
    for name, bits in _CODE_TYPES:
        if size <= 2**bits:
            return Fragment(name)
    raise InternalError(f"no unsigned type holds {size} codes")


def code_bytes(size: int) -> int:
    """What a code of so many takes."""
    return next(bits for _, bits in _CODE_TYPES if size <= 2**bits) // 8


def code_of_label(pairs: Sequence[tuple[Label, int]], text: str) -> Fragment:
    """The code of a text that is one of the labels, NULL for others."""
    listed = ", ".join(f"{literal(label)}: {code}" for label, code in pairs)
    return Fragment(f"(MAP {{{listed}}})[{text}]")


def value_at(values: Sequence[int], place: str) -> Fragment:
    """One of the values, the first at place 0."""
    return Fragment(f"([{', '.join(map(str, values))}])[{place} + 1]")


def last_start(starts: str, number: int, name: str, key: str) -> Fragment:
    """A join whose ``<name>.code`` is the place of the last start that is not above the key, NULL if there is
    none; each row stays one. ``starts``: a list of so many, ascending."""
    numbered = f"SELECT unnest({starts}), unnest(range({number}))"
    return Fragment(f"ASOF LEFT JOIN ({numbered}) AS {name}(start, code) ON {key} >= {name}.start")


def lot(drawn: Sequence[str], unit: str, key: int) -> Fragment:
    """A hash whose order draws among what a unit has; the unit passes through the key.

    One more hash outside, because hash() only xors its last argument in. Indented as an expression of a CTE.
    """
    inner = f"hash({drawn[0]})"
    if len(drawn) > 1:
        inner = "hash(\n                " + ",\n                ".join(drawn) + "\n            )"
    keyed = f"hash(xor(hash({unit}), CAST({key} AS UBIGINT)))"
    return Fragment(f"hash(xor(\n            {inner},\n            {keyed}\n        ))")


# -- values ------------------------------------------------------------------------------------------


def text_bytes(text: str) -> Fragment:
    """Text as bytes, which have no collation."""
    return Fragment(f"encode({text})")


def text_of_bytes(content: str) -> Fragment:
    """The text of such bytes."""
    return Fragment(f"decode({content})")


def fits_pattern(text: str, pattern: str) -> Fragment:
    """Whether all of the text fits a pattern of RE2."""
    return Fragment(f"regexp_full_match({text}, {literal(pattern)})")


def epoch(moment: str, *, nanoseconds: bool = False) -> Fragment:
    """Whole microseconds, or nanoseconds, since 1970-01-01."""
    return Fragment(f"epoch_{'ns' if nanoseconds else 'us'}({moment})")


def guarded_cast(text: str, kind: str) -> Fragment:
    """Text as a value of a type, NULL if it is not one.

    A bare TRY_CAST of a column is pushed into DuckDB's CSV reader, which then drops the whole line
    as an error of the file. This casts the result of trim, line by line.
    """
    return Fragment(f"TRY_CAST(trim({text}) AS {kind})")


def number_text(text: str, decimal: str) -> Fragment:
    """Text of a file, with a point where its numbers have a comma, and the other way round: a number with
    points between its thousands is then none."""
    if decimal != ",":
        return Fragment(text)
    number = fits_pattern(text, "[-+ 0-9.,eE]*")
    return Fragment(f"CASE WHEN {number} THEN translate({text}, '.,', ',.') ELSE {text} END")


def text_as(text: str, kind: str, decimal: str) -> Fragment:
    """Text of a file as a value of a type; NULL if it is not one."""
    return guarded_cast(number_text(text, decimal), kind)
