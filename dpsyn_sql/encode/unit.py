"""Whose row it is, for the counting statements: the bound on rows of a unit, and its value as bytes."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment, ident


@dataclass(frozen=True, slots=True)
class Bound:
    """How many rows of one unit are kept, and the 64-bit key of the draw among them.

    ``column`` is the unit column's name in the source. The privacy claim holds for every key; a
    fresh one keeps any fixed rows from being favoured.
    """

    column: str
    max_rows: int
    key: int


def unit_bytes(column: str, dialect: Dialect) -> Fragment:
    """The unit of a row as bytes; NULL if there is none.

    Bytes know no collation: under a default collation of NOCASE, 'ann' and 'Ann' as text would
    be one partition.
    """
    return dialect.text_bytes(f"CAST({ident(column)} AS VARCHAR)")
