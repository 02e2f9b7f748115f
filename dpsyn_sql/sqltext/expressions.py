"""Expressions and types of DuckDB that statements have in common; templates may use ``lot``.

Text of files is cast here alone. Its decimal mark is "." or ","; it is empty where columns have types.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, literal, qualified

Label = bool | int | str

_CODE_TYPES = (("UTINYINT", 8), ("USMALLINT", 16), ("UINTEGER", 32), ("UBIGINT", 64))
# With their bits, narrowest first.


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
