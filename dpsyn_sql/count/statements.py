"""The text of every counting statement; pure, runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsyn_sql.count.planner import SCAN_ATTRIBUTES
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.domain.encoding import encode_expression, encode_statement
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render


@dataclass(frozen=True, slots=True)
class _ScanColumn:
    """One attribute of a scan: its position in the domain, its code and the column's alias."""

    attribute: int
    name: Fragment
    expression: Fragment


def pack_column(pack: int) -> Fragment:
    """The column of the encoded table that holds pack number ``pack``."""
    return Fragment(f"p{pack}")


def encode(
    relation_sql: Fragment, domain: Domain, packs: Sequence[tuple[int, ...]], table: Fragment, *, csv: bool
) -> Fragment:
    """Make the temporary table of codes, one column ``p<i>`` per pack; one row per source row.

    A bound on the rows of one privacy unit is applied here and nowhere else: every later
    statement reads this table only.
    """
    return encode_statement(relation_sql, domain, packs, table, csv)


def marginal(table: Fragment, packs: Sequence[int]) -> Fragment:
    """Count the cells of one GROUP BY over ``packs`` of the encoded table."""
    return render("count/marginal", table=table, columns=[pack_column(pack) for pack in packs])


def scans(
    relation_sql: Fragment, domain: Domain, attributes: Sequence[int], *, csv: bool
) -> Iterator[tuple[Sequence[int], Fragment]]:
    """One-way counts straight from the source: attributes, at most ``SCAN_ATTRIBUTES``, and statement."""
    for start in range(0, len(attributes), SCAN_ATTRIBUTES):
        part = attributes[start : start + SCAN_ATTRIBUTES]
        columns = [
            _ScanColumn(index, Fragment(f"a{index}"), _expression(domain, index, csv=csv)) for index in part
        ]
        yield part, render("count/scan", relation=relation_sql, columns=columns)


def drop(table: Fragment) -> Fragment:
    """Drop the encoded table."""
    return render("count/drop", table=table)


def _expression(domain: Domain, index: int, *, csv: bool) -> Fragment:
    attribute = domain.attributes[index]
    return encode_expression(attribute, ident(attribute.name), from_text=csv)
