"""Quoted SQL fragments: the only strings that may enter a template."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from dpsyn_sql.errors import InternalError


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
