"""The unit of a row, for the counting statements: the bound on its rows, and its value as bytes."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment, ident


@dataclass(frozen=True, slots=True)
class Bound:
    """The number of rows that are kept of one unit, and the 64-bit key of the draw among them.

    ``column`` is the unit column's name in the source. The privacy claim holds for every key; a
    fresh key favours no fixed rows.
    """

    column: str
    max_rows: int
    key: int


def unit_bytes(column: str, dialect: Dialect) -> Fragment:
    """The unit of a row as bytes; NULL if there is none.

    Bytes have no collation: under a default collation of NOCASE, 'ann' and 'Ann' as text would
    be one partition.
    """
    return dialect.text_bytes(f"CAST({ident(column)} AS VARCHAR)")
