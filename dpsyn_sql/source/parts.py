"""What is asked of the rows of a source, wherever they lie: in one database, or in parts on many machines.

A ``Tally`` gives counts that add up over parts of the rows, an ``Encoding`` rows of codes, part by part.
Both are statements of DuckDB: an engine in parts runs them in a DuckDB beside every part.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.sqltext.fragments import Fragment


@dataclass(frozen=True, slots=True)
class Tally:
    """A query whose counts add up over parts of the rows.

    Args:
        query: with the columns ``keys`` and an integer column ``n``, never NULL; one row per group of keys.
        keys: names of the columns that tell groups apart: integers within BIGINT, or bytes (BLOB), and any
            other numbers where all rows are one part. A NULL is a value of its own: groups that have it in
            the same places, and else the same keys, are one.
        least: groups with a smaller sum over all parts are left out.
    """

    query: Fragment
    keys: tuple[str, ...]
    least: int = 1


@dataclass(frozen=True, slots=True)
class Encoding:
    """Rows of codes that are made of other rows, each part by itself.

    Args:
        table: quoted name under which statements read the codes.
        query: over the relation of the source, or over ``of``; its columns are integers within BIGINT, never
            NULL.
        unit: a column of the source; all rows of one of its values are in one part when ``query`` runs. None:
            parts may be any rows.
        of: the encoding that ``query`` reads; None: the source itself.
        part: the name that ``query`` reads one part of the source by (``SourceEngine.part_of``).
        width: bytes of a row.
    """

    table: Fragment
    query: Fragment
    unit: str | None = None
    of: Encoding | None = None
    part: Fragment | None = None
    width: int = 16
