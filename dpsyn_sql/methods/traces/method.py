"""Traces: a person's rows in order, each at a place that follows from the place before.

    one-way tables -> cells of places, strata of persons, working bins        fit/denoise.py
    flows: (stratum, only / first / middle / last, cell)
    steps: (cell before, cell) -> walks that agree with both                  fit/walks.py
    times: (number of rows, time since the row before), (stratum, first moment)
    others: (cell, column) -> what else is true of a row; classes of alike cells
    persons first, then their rows one after another                          rows/sample/families.py

After Syn-Loc (Bindschaedler, Shokri, IEEE S&P 2016): classes of places by what happens there, a chain of
classes, and a place of the class by how many people come and go. What differs from it, and why, is in
docs/decisions/0056-traces.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.methods.independent import one_way_steps, one_way_tables
from dpsyn_sql.methods.models.networks import FamilyNetworkModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.methods.traces.nodes import network_of
from dpsyn_sql.methods.traces.tables import MOST_BINS, MOST_CELLS, STRATA, Task
from dpsyn_sql.planning.families import UNIT, Families
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.plan import LaterMarginals, MeasureStep, Plan, ReservedStep
from dpsyn_sql.planning.queries import Curator, MarginalQuery
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import Source

ONE_WAY_SHARE = 15
"""Percent for the one-way tables."""

MOST_CLASSES = 64
"""Classes of places at most."""


@dataclass(frozen=True, slots=True)
class Traces(Recipe):
    """Walks among places, for rows of persons in order: each place follows from the one before.

    Needs rows of units with an ``order=``. ``place``: the column of places, a point of the domain file or any
    other column of codes. ``classes``: of places where like things happen, at most.
    """

    place: str = "place"
    classes: int = 6

    name = "traces"
    model = FamilyNetworkModel
    takes_families = True
    takes_classes = False

    def __post_init__(self) -> None:
        if not 1 <= self.classes <= MOST_CLASSES:
            raise InputError(
                f"method={self.name!r} has the setting classes={self.classes!r}; "
                f"it can be 1 to {MOST_CLASSES}"
            )

    def plan(self, source: Source, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> Plan:
        """One-way tables; the rest is reserved for tables of flows, steps, times and other columns.

        Raises:
            InputError: rows have no order, or there is no such column of places.
        """
        families = self._families(terms.families)
        column = self._place(families)
        first, for_walks = budget.split((ONE_WAY_SHARE, 100 - ONE_WAY_SHARE))
        further = _further(families, column)
        terms.limits.check_measured(further.together)
        steps: list[MeasureStep | ReservedStep] = [
            *one_way_steps(_asked_alone(families), first),
            ReservedStep("flows, steps and times", _of_the_row_before(families, column), for_walks, further),
        ]
        return self.planned(source, domain, budget, terms, steps)

    def run(self, plan: Plan, curator: Curator, terms: Terms = NO_TERMS) -> FamilyNetworkModel:
        """Measure, and fit walks."""
        families = self._families(terms.families)
        alone = _asked_alone(families)
        observed = dict(zip(alone.names, one_way_tables(alone, curator, plan.known), strict=True))
        task = Task.of(families, self._place(families), observed, plan.source.unit, self.classes)
        fitted = task.measured(curator, plan.reserved[0].budget)
        return FamilyNetworkModel(plan.domain, task.total, network_of(task, fitted), families)

    def _families(self, families: Families | None) -> Families:
        if families is None or not families.order:
            raise InputError(
                f"method={self.name!r} makes traces, rows of a person in order: give unit= and "
                "order=, the column that orders them, such as order='visited_at'"
            )
        return families

    def _place(self, families: Families) -> str:
        """The attribute of places: one of rows, other than the one that orders them."""
        names = [followed for _, followed in families.previous if followed != families.order]
        columns = [name for name in names if fold(name) == fold(self.place)]
        if not columns:
            raise InputError(
                f"method={self.name!r} walks among places, and no column of rows is called "
                f"{said(self.place)}: declare a point of that name in the domain file, place: {{type: point, "
                "columns: {lat: [40, 41], lon: [-75, -73]}}, or name the column of places, "
                f"method={{'name': {self.name!r}, 'place': 'station'}}"
            )
        return columns[0]


def _asked_alone(families: Families) -> Domain:
    """The attributes whose one-way tables are asked for; the row before is like any row."""
    hidden = {families.place, *(name for name, _ in families.previous)}
    return Domain(
        tuple(attribute for attribute in families.domain.attributes if attribute.name not in hidden)
    )


def _of_the_row_before(families: Families, column: str) -> tuple[MarginalQuery, ...]:
    """Attributes that later tables are over, and that have no one-way table of their own."""
    before = next(name for name, followed in families.previous if followed == column)
    return MarginalQuery((families.place,)), MarginalQuery((before,))


def _further(families: Families, column: str) -> LaterMarginals:
    """What may be asked for beyond the one-way tables, by the most cells and bins."""
    domain, levels = families.domain, families.levels
    cells = min(domain[column].size, MOST_CELLS)
    walks = [STRATA * 4 * cells, (cells + 1) * cells]
    times = [
        domain[families.size].size * domain[families.since].size,
        domain[families.size].size * 2 * MOST_BINS,
    ]
    cells_of_columns = [
        min(attribute.size, MOST_BINS) * (STRATA if level == UNIT else cells)
        for attribute, level in zip(domain.attributes, levels, strict=True)
        if attribute.name in families.domain.names[: families.written]
    ]
    cells_of_tables = [*walks, *times, *cells_of_columns]
    return LaterMarginals(3, max(cells_of_tables), sum(cells_of_tables))
