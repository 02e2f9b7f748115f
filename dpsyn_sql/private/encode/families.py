"""Codes of the rows of units with what the rows of one unit decide together, as SQL.

This runs on the private side of the door. Each hidden attribute of a row is a function of the kept rows of
its unit alone (docs/privacy.md, "Weights"). A row of a unit of n rows has the weight
WEIGHT // n, so that a unit adds at most WEIGHT to any table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.planning.families import Families
from dpsyn_sql.private.encode.codes import Bound, encode_expression, encode_query, mixed_radix
from dpsyn_sql.private.encode.family_classes import class_expression
from dpsyn_sql.private.encode.row_before import RowBefore, moment
from dpsyn_sql.source.relation import WEIGHT
from dpsyn_sql.sqltext.dialect import DUCKDB, Dialect
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render


def encode_families(
    relation_sql: Fragment,
    families: Families,
    packs: Sequence[Sequence[int]],
    bound: Bound,
    csv: bool = False,
    dialect: Dialect = DUCKDB,
    *,
    numbered: bool = False,
) -> Fragment:
    """The query that gives the codes and the weight of all kept rows.

    Column ``p<i>`` is as in ``encode_query``, over the attributes of ``families.domain``. ``w`` is the weight
    of a row, BIGINT. ``numbered``: there are also ``u``, a number that all rows of a unit share, and ``n``,
    how many they are.

    A class of the unit is drawn by ``bound.key`` too.

    The rows that are kept are those of ``encode_query``; with an order, rows are equal only if their moments
    are equal too.
    """
    rows = range(families.written)
    order = moment(families, dialect)
    singles = [(place,) for place in rows]
    kept = encode_query(
        relation_sql, families.domain, singles, csv, bound, dialect, families=True, order=order
    )
    used = {place for pack in packs for place in pack}
    for group in families.groups:
        group.check(Domain(families.domain.attributes[: families.written]), bound.max_rows)
    columns = _Columns(families, dialect, bound.key, bound.max_rows)
    codes = {place: columns.code(place) for place in sorted(used)}
    repeated = list(columns.repeated(used))
    return render(
        "encode/families",
        kept=kept,
        codes=[Fragment(f"p{place}") for place in rows],
        ordered=order is not None,
        repeated=repeated,
        shared=list(columns.shared(used)),
        classes=list(columns.drawn(used)),
        before=list(RowBefore(families, dialect).columns(used)),
        packed=[
            Fragment(f"{mixed_radix(families.domain, pack, codes, dialect)} AS p{i}")
            for i, pack in enumerate(packs)
        ],
        weight=WEIGHT,
        numbered=numbered,
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """The expressions of the attributes of a family."""

    families: Families
    dialect: Dialect
    key: int
    most: int

    def code(self, place: int) -> Fragment:
        """The code of an attribute, from the columns of the template."""
        families, attribute = self.families, self.families.domain.attributes[place]
        name = attribute.name
        if place < families.written:
            return self._most_frequent(place) if name in families.persons else Fragment(f"p{place}")
        if name == families.size:
            return encode_expression(attribute, Fragment("n"), dialect=self.dialect)
        if name == families.differing:
            return self._differing()
        if name in self._groups:
            return Fragment(f"z{self._groups[name]}")
        return RowBefore(families, self.dialect).code(place)

    def _most_frequent(self, place: int) -> Fragment:
        """The code of the largest ``m``: of the most rows, and of these the least."""
        size = self.families.domain.attributes[place].size
        return Fragment(f"({size - 1} - m{place} % {size})")

    def _differing(self) -> Fragment:
        places = self._shared_places
        several = " + ".join(f"d{place}" for place in places)
        if len(places) == 1:
            return Fragment(several)
        which = " + ".join(f"{code} * d{place}" for code, place in enumerate(places, start=1))
        return Fragment(f"(CASE WHEN {several} > 1 THEN {len(places) + 1} ELSE {which} END)")

    @property
    def _shared_places(self) -> list[int]:
        """The table's attributes that all rows of a unit share."""
        return [self.families.domain.index(name) for name in self.families.shared]

    def _shared(self, used: set[int]) -> Iterator[int]:
        return (place for place in self._shared_places if place in used)

    def repeated(self, used: set[int]) -> Iterator[Fragment]:
        """How many rows of the unit have a row's code, of attributes that all rows share."""
        for place in self._shared(used):
            yield Fragment(f"count(*) OVER (PARTITION BY unit, p{place}) AS f{place}")

    def shared(self, used: set[int]) -> Iterator[Fragment]:
        """Aggregates over all rows of a unit: its most frequent code, and whether it has several."""
        for place in self._shared(used):
            size = self.families.domain.attributes[place].size
            code = f"CAST(p{place} AS BIGINT)"
            yield Fragment(f"max(f{place} * {size} + {size - 1} - {code}) OVER unit_rows AS m{place}")
        differing = self.families.differing
        if differing and self.families.domain.index(differing) in used:
            for place in self._shared_places:
                ends = f"min(p{place}) OVER unit_rows < max(p{place}) OVER unit_rows"
                yield Fragment(f"CASE WHEN {ends} THEN 1 ELSE 0 END AS d{place}")

    @property
    def _groups(self) -> dict[str, int]:
        return {group.attribute.name: number for number, group in enumerate(self.families.groups)}

    def drawn(self, used: set[int]) -> Iterator[Fragment]:
        """The classes of a unit that are wanted."""
        index = self.families.domain.index
        for number, group in enumerate(self.families.groups):
            if index(group.attribute.name) in used:
                codes = {name: Fragment(f"CAST(p{index(name)} AS BIGINT)") for name in group.costs.attributes}
                drawn = class_expression(
                    group, codes, Fragment("unit"), self.key, self.dialect, rows=self.most, number=number
                )
                yield Fragment(f"{drawn} AS z{number}")
