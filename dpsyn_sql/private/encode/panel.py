"""Rows of a panel as SQL: of each unit one row, with its codes in a period and in the period before.

This runs on the private side of the door. A row of the join is a function of the rows of its unit alone, and
a unit has at most one (docs/privacy.md, "Panels").
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.panel import JOINS, LEAVES, STAYS, families_of_period, presence_domain
from dpsyn_sql.private.encode.codes import Bound, encode_query
from dpsyn_sql.source.relation import Source
from dpsyn_sql.sqltext.dialect import DUCKDB, Dialect
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

UNIT = "unit"
"""The column of the join that holds the unit, as bytes."""


def joined_rows(
    now: Source,
    before: Source,
    domain: Domain,
    key: int,
    *,
    everybody: bool,
    dialect: Dialect = DUCKDB,
) -> tuple[Fragment, Domain]:
    """The joined rows, as the text after FROM, and how their columns are read.

    Args:
        now: the rows of a period; its unit is a column, and one row of each unit is kept.
        before: those of the period before.
        domain: the attributes of a row in either of them.
        key: of the draw among the rows that a unit has in a period.
        everybody: rows of all units that have a row in one of the periods, with their presence and the period
            before; else of those with a row in the period, with both periods.
        dialect: of the engine that runs the statement.

    Returns:
        The second value has the attributes of ``families_of_period`` (with ``everybody`` those of the period
        before, then ``presence``), each read from the column that holds its code.

    Raises:
        InternalError: units are no column, or several of their rows count.
    """
    unit = now.unit.column
    if unit is None or now.unit.max_rows != 1:
        raise InternalError("a panel is of units with one row in each period")
    singles = [(place,) for place in range(len(domain.attributes))]

    def kept(source: Source) -> Fragment:
        csv, bound = source.relation.read_as_text, Bound(unit, 1, key)
        return encode_query(source.relation.sql, domain, singles, csv, bound, dialect, families=True)

    families = families_of_period(domain)
    own = [] if everybody else list(domain.attributes)
    *earlier, size = families.domain.attributes[families.written :]
    columns = [f"present.p{place} AS n{place}" for place in range(len(own))]
    columns += [
        f"coalesce(past.p{place}, {attribute.size - 1}) AS b{place}"
        for place, attribute in enumerate(earlier)
    ]
    sql = render(
        "encode/panel",
        dialect=dialect,
        now=kept(now),
        before=kept(before),
        everybody=everybody,
        stays=STAYS,
        leaves=LEAVES,
        joins=JOINS,
        columns=[Fragment(column) for column in columns],
    )
    last = _coded(presence_domain(families).attributes[-1], "presence") if everybody else _coded(size, "0")
    return sql, Domain((*_all_coded(own, "n"), *_all_coded(earlier, "b"), last))


def _all_coded(attributes: Iterable[Attribute], stem: str) -> list[Attribute]:
    return [_coded(attribute, f"{stem}{place}") for place, attribute in enumerate(attributes)]


def _coded(attribute: Attribute, value: str) -> Attribute:
    """An attribute of as many codes, read from what already is its code."""
    codes = tuple(range(attribute.size))
    return Attribute(attribute.name, "INTEGER", "categorical", labels=codes, source=Fragment(value))
