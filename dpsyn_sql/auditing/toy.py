"""The two tables that an audit compares: made here, without a row of a user."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.planning.plan import Plan, equivalent_rho
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import RowLabel, labelled
from dpsyn_sql.source.relation import WEIGHT

_STRENGTH = 120.0
"""Rows times sqrt(rho): with it which pairs stand out of the noise differs from run to run."""
_MOST_ROWS = 100_000
_TOGETHER = 0.6
"""Part of the rows in which the second attribute follows the first; the third follows it in half as many."""


def toy_domain() -> Domain:
    """Three attributes of three codes: 9 cells for one-way marginals, 27 for pairs."""
    return Domain(tuple(Attribute(name, "VARCHAR", "categorical", labels=("x", "y", "z")) for name in "abc"))


def toy(plan: Plan) -> Toy:
    """No rows where the plan says all questions; else rows whose noisy answers change the questions."""
    if plan.static:
        return Toy(plan, 0)
    rho = equivalent_rho(plan.source, plan.domain, plan.budget)
    rows = _STRENGTH / math.sqrt(rho) / plan.source.unit.weight
    return Toy(plan, min(_MOST_ROWS, math.ceil(rows)))


class Toy:
    """``rows`` rows, and a unit of identical rows, all of code 0, that may be added. Where rows have weights,
    each of the rows is a unit."""

    def __init__(self, plan: Plan, rows: int) -> None:
        self.domain, self.rows, self.unit_rows = plan.domain, rows, plan.source.unit.sensitivity
        self._weight = plan.source.unit.weight
        self._codes = _codes(plan.domain, rows)
        self._of_unit = [0] * len(self._codes)
        self._known: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def with_labels(self, labels: Sequence[RowLabel]) -> Toy:
        """The same rows with labels as further attributes."""
        if not labels:
            return self
        wider = copy(self)
        columns = dict(zip(self.domain.names, self._codes, strict=True))
        unit = {name: np.zeros(1, dtype=np.int64) for name in self.domain.names}
        wider.domain, wider._known = labelled(self.domain, labels), {}
        wider._codes = [*self._codes, *(label.codes(columns) for label in labels)]
        wider._of_unit = [*self._of_unit, *(int(label.codes(unit)[0]) for label in labels)]
        return wider

    def table(self, query: MarginalQuery) -> NDArray[np.int64]:
        """Exact counts without the unit, int64 over the query's bins; the bins are summed here once more."""
        original = self._original(query.attrs)
        if not query.maps:
            return original
        binned = np.zeros(query.shape(self.domain), dtype=np.int64)
        maps = zip(query.maps, original.shape, strict=True)
        bins = [range(size) if codes is None else codes for codes, size in maps]
        np.add.at(binned, np.ix_(*bins), original)
        return binned

    def place(self, query: MarginalQuery) -> tuple[int, ...]:
        """The cell of a table that the unit's rows fall into."""
        codes = [self._of_unit[self.domain.index(name)] for name in query.attrs]
        maps = query.maps or (None,) * len(codes)
        return tuple(code if bins is None else bins[code] for code, bins in zip(codes, maps, strict=True))

    def siblings(self, query: MarginalQuery, *, within: bool) -> NDArray[np.int64]:
        """Weights of pairs of rows of one unit: each of the rows is a unit of its own."""
        table = np.zeros(query.shape(self.domain), dtype=np.int64)
        if within and self.unit_rows > 1:
            table[self.place(query)] = WEIGHT
        return table

    def distances(self, query: MarginalQuery, reference: NDArray[np.int64]) -> tuple[int, int]:
        """|counts - reference|_1 without the unit and within it."""
        missed = self.table(query) - reference
        without, at = int(np.abs(missed).sum()), int(missed[self.place(query)])
        return without, without - abs(at) + abs(at + self.unit_rows)

    def counter(self, *, within: bool) -> ToyCounter:
        """What counts the one table or the other."""
        return ToyCounter(self, self.unit_rows if within else 0)

    def _original(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        if attrs not in self._known:
            table = np.zeros(self.domain.shape(attrs), dtype=np.int64)
            if attrs:
                np.add.at(table, tuple(self._codes[self.domain.index(name)] for name in attrs), self._weight)
            else:
                table[()] = self.rows * self._weight
            table.flags.writeable = False
            self._known[attrs] = table
        return self._known[attrs]


class ToyCounter:
    """Exact counts of the toy rows and so many of the unit's."""

    def __init__(self, rows: Toy, added: int) -> None:
        self._rows, self._added = rows, added
        self._known: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def counted_as(self, query: MarginalQuery) -> MarginalQuery:
        """Over original codes: there are few."""
        return query.original

    def count(
        self, queries: Sequence[MarginalQuery], labels: Sequence[RowLabel] = ()
    ) -> list[NDArray[np.int64]]:
        """Full int64 tables; those without labels are made once each."""
        if labels:
            rows = self._rows.with_labels(labels)
            return [self._table(rows, query) for query in queries]
        for query in queries:
            if query.attrs not in self._known:
                self._known[query.attrs] = self._table(self._rows, query)
        return [self._known[query.attrs] for query in queries]

    def siblings(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """Full int64 tables."""
        return [self._rows.siblings(query, within=self._added > 0) for query in queries]

    def _table(self, rows: Toy, query: MarginalQuery) -> NDArray[np.int64]:
        table = rows.table(query.original).copy()
        table[rows.place(query.original)] += self._added
        table.flags.writeable = False
        return table


def _codes(domain: Domain, rows: int) -> list[NDArray[np.int64]]:
    """Of each attribute the codes of all rows; each follows the one before it less than that did."""
    rng = np.random.default_rng(1)  # the same audit has the same table
    found: list[NDArray[np.int64]] = []
    for number, size in enumerate(domain.shape()):
        codes = rng.integers(0, size, rows)
        if number:
            followed = found[-1] * size // domain.shape()[number - 1]
            codes = np.where(rng.random(rows) < _TOGETHER / number, followed, codes)
        found.append(codes)
    return found
