"""An attack on our own noise: can a table be told from the same table with one unit more?

The real method asks the real door (curator, calibration, in-memory ledger, noise) many times, on
toy rows and on the same rows plus k identical ones. A test guesses which table it was. It uses the
likelihood ratio of the whole transcript, given the references of its own run; no test is more powerful.
The counted errors give a lower bound of the privacy parameter, to compare with the claim. No row of a
user is touched: both tables are made here. If the plan says all questions, the table has no rows, because
one unit then shows most plainly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from dpsyn_sql.accounting.budget import Budget, Kind, Number
from dpsyn_sql.accounting.events import SelectionEvent
from dpsyn_sql.accounting.pld import log_ratio
from dpsyn_sql.accounting.tradeoff import lower_bound
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.file import DomainSpec, read_domain, shape_of
from dpsyn_sql.auditing.door import Ask, ToyDoor, Witness
from dpsyn_sql.auditing.testing import ERROR, MOST_RUNS, Design, designed, toy, toy_domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InputError, hides_own_frames, said
from dpsyn_sql.methods import method_of, method_of_fewest_cells, static_default
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.limits import Deadline, Terms
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.report.progress_bar import progress_bar
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation, Source
from dpsyn_sql.sqltext.fragments import ident

__all__ = ["CANNOT_SEE", "ERROR", "Audit", "Prepared", "audit", "prepared"]

CANNOT_SEE = (
    "It bounds the scale of the noise for one pair of neighbours. It cannot detect faults too small for its "
    "power, or faults that show on other tables only.",
    "It has no power for events of probability delta.",
    "It says nothing about the counting of real rows (encoding, SQL, the bound on a unit's rows) or about "
    "discovery.",
)

_MOST_ROWS = 2**31
_MOST_CELLS = 20_000_000
_MOST_SECONDS = 3600.0
_REHEARSALS = 5


@dataclass(frozen=True, slots=True)
class Audit:
    """What was claimed and what was measured.

    ``claim`` and ``lower_bound`` are of mu (``kind`` "gdp") or of epsilon ("pure"), the claim for the whole
    budget, whatever a run spends. ``power``: the probability that ``runs`` a side catch noise of half the
    scale. ``base_rows``: rows of the table without the unit. ``shape``: codes of each attribute.
    ``marginals``, ``cells``, ``distances``, ``choices``: asked in a rehearsed run; ``adaptive``: other runs
    may ask others.
    """

    method: str
    kind: Kind
    rows_per_unit: int
    base_rows: int
    shape: tuple[int, ...]
    marginals: int
    cells: int
    distances: int
    choices: int
    adaptive: bool
    claim: float
    lower_bound: float
    runs: int
    false_alarms: int
    misses: int
    power: float

    @property
    def violated(self) -> bool:
        """The measured lower bound exceeds the claim."""
        return self.lower_bound > self.claim


@hides_own_frames
def audit(
    *,
    epsilon: Number = 1.0,
    delta: Number = 1e-9,
    method: str | Recipe | Mapping[str, Any] | None = None,
    domain: DomainSpec = None,
    most: int = 1,
    weights: bool = True,
    runs: int | None = None,
) -> Audit:
    """Measure a lower bound of the privacy loss of a configuration, on toy data.

    Theory fixes the statistic, the threshold and the number of runs before the first noisy answer of the
    test. The bound is above the true parameter with probability at most 0.001.

    Args:
        epsilon: as in ``release``.
        delta: as in ``release``.
        method: as in ``release``; default: the most accurate method whose questions are all known beforehand.
        domain: file or mapping that declares every column; default: three attributes of three codes.
        most: identical rows of the added unit.
        weights: as in ``release``: each unit counts the same, or each row counts.
        runs: on each side; default: enough to detect noise of half the scale with probability 0.99.

    Raises:
        InputError: an argument is out of range, or the audit would take too long.
    """
    return prepared(
        epsilon=epsilon,
        delta=delta,
        method=method,
        domain=domain,
        most=most,
        weights=weights,
        runs=runs,
    ).run()


def prepared(
    *,
    epsilon: Number = 1.0,
    delta: Number = 1e-9,
    method: str | Recipe | Mapping[str, Any] | None = None,
    domain: DomainSpec = None,
    most: int = 1,
    weights: bool = True,
    runs: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Prepared:
    """All of ``audit`` but its runs; ``clock`` times the rehearsals.

    Raises:
        InputError: as for ``audit``.
    """
    _check_integer("most", most, _MOST_ROWS)
    if runs is not None:
        _check_integer("runs", runs, MOST_RUNS)
    plan, run = _planned(epsilon, delta, method, domain, _unit(most, weights=weights))
    with closing(ToyDoor(plan, toy(plan))) as door:
        rehearsal = door.run(run, within=False)
        static = rehearsal.questions == _known(plan) and len(rehearsal.answered) == len(plan.steps)
        ask: Ask = _ask_what_is_known if static else run
        times = []
        for _ in range(_REHEARSALS):
            began = clock()
            rehearsal = door.run(ask, within=False)
            times.append(clock() - began)
    design = designed(plan.budget, rehearsal.answered, runs)
    ready = Prepared(plan, ask, rehearsal, design, 2 * design.runs * min(times))  # the first ones warm up
    if runs is None:
        ready.check_time()
    return ready


def _known(plan: Plan) -> list[tuple[object, Budget]]:
    return [(asked.queries, asked.budget) for asked in plan.asked]


def _ask_what_is_known(plan: Plan, curator: Door) -> None:
    """Without the fit, which no question depends on."""
    for handle in [curator.ask(*asked) for asked in plan.asked]:
        handle.read()


def _planned(
    epsilon: Number,
    delta: Number,
    method: str | Recipe | Mapping[str, Any] | None,
    domain: DomainSpec,
    unit: PrivacyUnit,
) -> tuple[Plan, Ask]:
    """The real method's plan for a table that does not exist, and its run; the fit after the last question
    may stop."""
    terms = Terms(deadline=Deadline(0.0))
    budget = Budget.from_epsilon(epsilon, delta).without_thresholds()
    columns = () if domain is None else tuple(Column(name, "VARCHAR") for name in read_domain(domain).columns)
    relation = Relation("toy", "csv", ident("toy"), columns)
    audited = static_default() if method is None else method_of(method)
    shape = toy_domain() if domain is None else _declared(domain, relation)
    recipe = audited.chosen(shape, terms)
    if recipe.growth is not None:
        raise InputError(
            f"method={recipe.name!r} asks questions of discovery only, which an audit does not attack: audit "
            f"one that asks for marginals, such as method={static_default().name!r}"
        )
    families = families_of(shape, unit, ())
    if families is not None:
        if not recipe.takes_families:
            raise InputError(
                f"method={recipe.name!r} does not keep the rows of a unit together: add weights=False, or "
                "use another method"
            )
        shape, terms = families.domain, replace(terms, families=families)
    plan = recipe.plan(Source(relation, unit), shape, budget, terms)
    terms = replace(terms, unit=unit)
    return plan, lambda plan, door: recipe.run(door, plan.domain, plan.budget, terms)


def _unit(most: int, *, weights: bool) -> PrivacyUnit:
    if not isinstance(weights, bool):
        raise InputError(f"weights={said(weights)}: give True or False")
    return PrivacyUnit() if most == 1 else PrivacyUnit("unit", most, weights)


def _declared(spec: DomainSpec, relation: Relation) -> Domain:
    """The domain, if nothing of it has to be discovered."""
    shape = shape_of(spec, relation, discover=False)
    if shape.undiscovered:
        names = ", ".join(repr(column.name) for column in shape.undiscovered)
        raise InputError(
            f"an audit attacks no discovery, but the domain leaves {names} to it: declare bins or categories "
            "there, or leave the columns out of the domain"
        )
    return shape.domain


@dataclass(frozen=True, slots=True)
class Prepared:
    """An audit whose design is fixed; ``seconds`` is about how long its runs take."""

    plan: Plan
    ask: Ask
    rehearsal: Witness
    design: Design
    seconds: float

    @property
    def cells(self) -> int:
        """Of all marginals of a run."""
        shapes = [query.shape(self.plan.domain) for query in self._queries]
        return sum(math.prod(shape) for shape in shapes)

    @property
    def _queries(self) -> list[MarginalQuery]:
        return [query for queries, _ in self.rehearsal.questions for query in queries]

    def check_time(self) -> None:
        """Every cell gets noise in every run; the user may choose the number of runs.

        Raises:
            InputError: the runs would take too long.
        """
        runs, draws = self.design.runs, 2 * self.design.runs * self.cells
        if draws > _MOST_CELLS or self.seconds > _MOST_SECONDS:
            least = method_of_fewest_cells(self.plan.source, self.plan.domain, self.plan.budget)
            raise InputError(
                f"{runs} runs per side of {self.cells} cells need {draws} draws of noise, about "
                f"{self.seconds // 60 + 1:.0f} minutes: audit a smaller domain or method={least.name!r}, "
                "or give runs="
            )

    def run(self) -> Audit:
        """Ask, guess and count."""
        rows = toy(self.plan)
        total = 2 * self.design.runs
        with closing(ToyDoor(self.plan, rows)) as door, progress_bar(), phase("audit", total) as advance:
            alarms, hits = (self._guesses(door, within, advance) for within in (False, True))
        return self._result(rows.rows, alarms, self.design.runs - hits)

    def _guesses(self, door: ToyDoor, within: bool, advance: Callable[[int], None]) -> int:
        """In how many runs the test says that the unit is there."""
        kind, guesses = self.plan.budget.kind, 0
        for _ in range(self.design.runs):
            answered = door.run(self.ask, within=within).answered
            guesses += sum(log_ratio(kind, question) for question in answered) >= self.design.threshold
            advance(1)
        return guesses

    def _result(self, base_rows: int, false_alarms: int, misses: int) -> Audit:
        plan, design = self.plan, self.design
        events = [question.event for question in self.rehearsal.answered]
        return Audit(
            method=plan.method,
            kind=plan.budget.kind,
            rows_per_unit=plan.source.unit.max_rows,
            base_rows=base_rows,
            shape=plan.domain.shape(),
            marginals=len(self._queries),
            cells=self.cells,
            distances=self.rehearsal.compared,
            choices=sum(event.number for event in events if isinstance(event, SelectionEvent)),
            adaptive=self.ask is not _ask_what_is_known,
            claim=design.claim,
            lower_bound=lower_bound(plan.budget.kind, false_alarms, misses, design.runs, ERROR),
            runs=design.runs,
            false_alarms=false_alarms,
            misses=misses,
            power=design.power,
        )


def _check_integer(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InputError(f"{name}={said(value)} is out of range: give a whole number from 1 to {most}")
