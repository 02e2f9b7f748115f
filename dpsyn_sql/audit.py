"""An attack on our own noise: can a table without rows be told from one with a single unit?

The empty table is where one unit shows most plainly. The real door (curator, calibration, in-memory
ledger, OpenDP's noise) answers the questions of the real method many times for no rows at all and for k
identical rows; the likelihood ratio of the whole transcript, the most powerful test there is, guesses
which it was; the counted errors give a lower bound of the privacy parameter, to be held against the
claim. No row of a user is touched: both tables are made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpsyn_sql.accounting.budget import Budget, Kind, Number
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent
from dpsyn_sql.accounting.tradeoff import lower_bound, power, runs_for_power
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.domain.file import DomainSpec, domain_of, read_domain
from dpsyn_sql.errors import InputError, InternalError, said
from dpsyn_sql.interfaces import LedgerEntry, Method
from dpsyn_sql.ledger.memory import MemoryLedger
from dpsyn_sql.measure.curator import LocalCurator
from dpsyn_sql.measure.noise import OpenDPNoise
from dpsyn_sql.methods import method_named
from dpsyn_sql.plan.key import ReleaseKey
from dpsyn_sql.plan.plan import Plan
from dpsyn_sql.plan.queries import MarginalQuery, NoisyMarginal
from dpsyn_sql.progress import phase
from dpsyn_sql.report.progress_bar import progress_bar
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation, Source
from dpsyn_sql.sqltext.fragments import ident

ERROR = 1e-3
"""Probability that the lower bound is above the true parameter."""

POWER = 0.99
"""Probability that noise of half the scale is caught, at the number of runs that is chosen."""

CANNOT_SEE = (
    "It bounds the scale of the noise, for one pair of neighbours. Smaller faults than its power allows, "
    "and those that show on other tables only, are not seen.",
    "It has no power for events of probability delta.",
    "It says nothing about the counting of real rows: encoding, SQL, the bound on a unit's rows.",
)

_HALF = 0.5
_SIGMA_PER_ROW = 2
"""Rounding the Gaussian to integers raises its mu by one part in 24 m sigma^2: from here on far less than
the bound's own width."""
_MOST_RUNS = 100_000
_MOST_ROWS = 2**31
_RUNS_PER_LEDGER = 50
_MOST_CELLS = 20_000_000
_SIMULATIONS = 200_000
_SIMULATED_CELLS = 20_000_000
_THRESHOLDS = np.linspace(0.02, 0.98, 25)

Noised = GaussianEvent | LaplaceEvent


@dataclass(frozen=True, slots=True)
class Audit:
    """What was claimed and what was measured.

    ``claim`` and ``lower_bound`` are of mu = sqrt(2 rho) (``kind`` "zcdp") or of epsilon ("pure"), for
    the events charged in one run. ``power``: the probability that ``runs`` a side catch noise of half
    the scale. ``shape``: codes of each attribute. ``marginals``, ``cells``: asked in one run.
    """

    method: str
    kind: Kind
    rows_per_unit: int
    shape: tuple[int, ...]
    marginals: int
    cells: int
    events: tuple[PrivacyEvent, ...]
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


def audit(
    *,
    epsilon: Number = 1.0,
    delta: Number = 1e-9,
    method: str = "copula",
    domain: DomainSpec = None,
    rows_per_unit: int = 1,
    runs: int | None = None,
) -> Audit:
    """Measure a lower bound of the privacy loss of a configuration, on toy data.

    Statistic, threshold and number of runs are fixed by theory before a noisy answer is looked at.
    The bound is above the true parameter with probability at most 0.001.

    Args:
        epsilon: as for a release.
        delta: as for a release.
        method: as for a release; one that asks for marginals alone, as its plan says.
        domain: file or mapping that declares every column; default: three attributes of three codes.
        rows_per_unit: identical rows of the added unit.
        runs: on each side; default: what catches noise of half the scale with probability 0.99.

    Raises:
        InputError: an argument is out of range, or the audit would take too long.
    """
    _check_integer("rows_per_unit", rows_per_unit, _MOST_ROWS)
    if runs is not None:
        _check_integer("runs", runs, _MOST_RUNS)
    plan, recipe = _planned(epsilon, delta, method, domain, rows_per_unit)
    with closing(_Door(plan)) as door:
        test = _Test(plan, door.rehearsed(recipe))
        design = test.designed(runs)
        _check_time(plan, design.runs, chosen=runs is not None)
        with progress_bar(), phase("audit", 2 * design.runs) as advance:
            without, with_it = (
                test.ratios(door.released(rows, design.runs, test.events, advance)) >= design.threshold
                for rows in (0, rows_per_unit)
            )
    return _result(plan, test, design, int(without.sum()), int((~with_it).sum()))


def _planned(
    epsilon: Number, delta: Number, method: str, domain: DomainSpec, rows: int
) -> tuple[Plan, Method]:
    """The real method's plan for a table that does not exist."""
    recipe = method_named(method)
    budget = Budget.from_epsilon(epsilon, delta).without_thresholds()
    columns = () if domain is None else tuple(Column(name, "VARCHAR") for name in read_domain(domain).columns)
    relation = Relation("toy", "csv", ident("toy"), columns)
    unit = PrivacyUnit() if rows == 1 else PrivacyUnit("unit", rows)
    shape = _toy_domain() if domain is None else domain_of(domain, relation)
    plan = recipe.plan(Source(relation, unit), shape, budget)
    if plan.known != plan.steps:
        raise _not_static()
    return plan, recipe


def _toy_domain() -> Domain:
    """Three attributes of three codes: 9 cells for one-way marginals, 27 for pairs."""
    return Domain(tuple(Attribute(name, "VARCHAR", "categorical", labels=("x", "y", "z")) for name in "abc"))


def _result(plan: Plan, test: _Test, design: _Design, false_alarms: int, misses: int) -> Audit:
    return Audit(
        method=plan.method,
        kind=plan.budget.kind,
        rows_per_unit=plan.source.unit.max_rows,
        shape=plan.domain.shape(),
        marginals=len(plan.queries),
        cells=_cells(plan),
        events=test.events,
        claim=test.claim,
        lower_bound=lower_bound(plan.budget.kind, false_alarms, misses, design.runs, ERROR),
        runs=design.runs,
        false_alarms=false_alarms,
        misses=misses,
        power=design.power,
    )


class _ToyCounter:
    """Counts of k identical rows, all of code 0: each table holds k in its first cell, else zeros."""

    def __init__(self, domain: Domain, rows: int) -> None:
        self._domain, self._rows = domain, rows
        self._tables: dict[tuple[str, ...], NDArray[np.int64]] = {}

    def count(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """Full int64 tables, made once each."""
        return [self._table(query.attrs) for query in queries]

    def _table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        if attrs not in self._tables:
            table = np.zeros(self._domain.shape(attrs), dtype=np.int64)
            table.flat[0] = self._rows
            table.flags.writeable = False
            self._tables[attrs] = table
        return self._tables[attrs]


class _Door:
    """The real curator in front of toy counts; each run is a release with a debit of its own."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._ledger = plan, MemoryLedger()
        self._counters: dict[int, _ToyCounter] = {}
        self._opened = 0

    def close(self) -> None:
        """Forget the ledger."""
        self._ledger.close()

    def rehearsed(self, recipe: Method) -> tuple[PrivacyEvent, ...]:
        """The events that the whole method charges; its questions must be those of its plan."""
        with self._open(0) as (curator, entry):
            asked = _Asked(curator)
            recipe.run(self._plan, asked)
            if asked.questions != [(step.queries, step.budget) for step in self._plan.known]:
                raise InputError(
                    f"method {recipe.name!r} asks other questions than its plan says: it cannot be audited"
                )
            return entry.events

    def released(
        self, rows: int, runs: int, events: tuple[PrivacyEvent, ...], advance: Callable[[int], None]
    ) -> list[NDArray[np.int64]]:
        """Noisy first cells of all tables, int64 of shape (runs, tables), one array per step."""
        answers = []
        for _ in range(runs):
            with self._open(rows) as (curator, entry):
                tables = [curator.measure(step.queries, step.budget) for step in self._plan.known]
                if entry.events != events:
                    raise InternalError("two runs of one plan charged different events")
            answers.append([[int(table.values.flat[0]) for table in step] for step in tables])
            advance(1)
        return [np.array(step, dtype=np.int64) for step in zip(*answers, strict=True)]

    @contextmanager
    def _open(self, rows: int) -> Iterator[tuple[LocalCurator, LedgerEntry]]:
        """An account for each run, since thousands of debits may be more than one can hold; and a new
        ledger now and then, since a debit looks at all accounts."""
        self._opened += 1
        if self._opened % _RUNS_PER_LEDGER == 0:
            self._ledger.close()
            self._ledger = MemoryLedger()
        counter = self._counters.setdefault(rows, _ToyCounter(self._plan.domain, rows))
        key = ReleaseKey(f"audit {self._opened}", "audit", None, {})
        with self._ledger.open_release(key, self._plan.budget) as entry:
            yield LocalCurator(counter, self._plan.domain, self._limit, entry, OpenDPNoise()), entry

    @property
    def _limit(self) -> int:
        return self._plan.source.unit.max_rows


class _Asked:
    """A curator that remembers its questions."""

    def __init__(self, curator: LocalCurator) -> None:
        self._curator = curator
        self.questions: list[tuple[tuple[MarginalQuery, ...], Budget]] = []

    def measure(self, queries: Sequence[MarginalQuery], budget: Budget) -> list[NoisyMarginal]:
        """Ask the real one."""
        self.questions.append((tuple(queries), budget))
        return self._curator.measure(queries, budget)

    def select(
        self,
        candidates: Sequence[MarginalQuery],
        references: Sequence[NDArray[np.int64]],
        budget: Budget,
        number: int = 1,
        allowances: Sequence[int] | None = None,
    ) -> list[int]:
        """Refused: the likelihood ratio here is that of marginals."""
        raise _not_static()

    def distance(
        self, queries: Sequence[MarginalQuery], references: Sequence[NDArray[np.int64]], budget: Budget
    ) -> list[int]:
        """Refused likewise."""
        raise _not_static()


def _not_static() -> InputError:
    return InputError(
        "the questions of this method depend on noisy answers: only methods that measure the marginals of "
        "their plan can be audited, such as method='copula' or 'independent'"
    )


@dataclass(frozen=True, slots=True)
class _Design:
    """What is fixed before looking: runs a side, the threshold of the test, its power."""

    runs: int
    threshold: float
    power: float


class _Test:
    """The likelihood ratio test of k identical rows against none.

    Only the first cell of each table differs, by k, so only it enters log P(transcript | k rows)
    - log P(transcript | no rows): (2 z k - k^2) / (2 sigma^2) for a discrete Gaussian (its norming
    constant does not depend on an integer shift), (|z| - |z - k|) / scale for a discrete Laplace.
    """

    def __init__(self, plan: Plan, events: tuple[PrivacyEvent, ...]) -> None:
        self._kind, self._rows = plan.budget.kind, plan.source.unit.max_rows
        self._tables = [len(step.queries) for step in plan.known]
        self.events = tuple(event for event in events if isinstance(event, Noised))
        if len(self.events) != len(events) or len(events) != len(self._tables):
            raise InternalError("a plan of marginals charged other events than one of noise a step")
        sigmas = [event.sigma for event in self.events if isinstance(event, GaussianEvent)]
        if sigmas and min(sigmas) < _SIGMA_PER_ROW * self._rows:
            raise InputError(
                f"the noise has a scale of {min(sigmas):.3g} rows, below {_SIGMA_PER_ROW} for each row of a "
                "unit: there the curve of mu is not accurate for integer noise; audit a smaller epsilon"
            )

    @property
    def claim(self) -> float:
        """mu = sqrt(2 rho), or epsilon, of the charged events."""
        cost = float(sum(event.cost(self._kind) for event in self.events))
        return math.sqrt(2 * cost) if self._kind == "zcdp" else cost

    def ratios(self, released: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Log-likelihood ratios, float64[runs]; ``released``: int64[runs, tables] for each step."""
        parts = [self._ratio(event, z) for event, z in zip(self.events, released, strict=True)]
        return np.asarray(sum(parts), dtype=np.float64)

    def _ratio(self, event: Noised, z: NDArray[np.int64]) -> NDArray[np.float64]:
        k = self._rows
        if isinstance(event, GaussianEvent):
            return np.asarray((2.0 * k * z - float(k) ** 2).sum(axis=1) / (2 * event.sigma**2))
        return np.asarray((np.abs(z) - np.abs(z - k)).sum(axis=1) / event.scale)

    def designed(self, runs: int | None) -> _Design:
        """The threshold that catches noise of half the scale with fewest runs, or best with ``runs``.

        Raises:
            InputError: more runs would be needed than are allowed.
        """
        options = self._gaussian_options() if self._kind == "zcdp" else self._laplace_options()
        if runs is None:
            needed = [
                runs_for_power(self._kind, self.claim, *o[1:], POWER, ERROR, _MOST_RUNS) for o in options
            ]
            found = [size for size in needed if size is not None]
            if not found:
                raise InputError(
                    f"no audit of at most {_MOST_RUNS} runs a side has power {POWER} at this epsilon: "
                    "audit another one (the noise is scaled by the same code), or give runs="
                )
            runs = min(found)
        chances = [power(self._kind, self.claim, *option[1:], runs, ERROR) for option in options]
        best = int(np.argmax(chances))
        return _Design(runs, options[best][0], chances[best])

    def _gaussian_options(self) -> list[tuple[float, float, float]]:
        """Threshold, rates of false alarms and misses at half the scale: the ratio is normal with
        mean -mu^2/2 or mu^2/2 and, at half the scale, standard deviation mu/2."""
        rate = float(ndtr(-self.claim / 2 / _HALF))
        return [(0.0, rate, rate)]

    def _laplace_options(self) -> list[tuple[float, float, float]]:
        """The same for thresholds on a grid of quantiles, by simulation of the theory at half the scale."""
        rng = np.random.default_rng(1)  # of a design, not of noise: the same audit has the same design
        size = max(1_000, min(_SIMULATIONS, _SIMULATED_CELLS // sum(self._tables)))
        noise = [
            _discrete_laplace(rng, event.scale * _HALF, (size, tables))
            for event, tables in zip(self.events, self._tables, strict=True)
            if isinstance(event, LaplaceEvent)
        ]
        without, with_it = self.ratios(noise), self.ratios([z + self._rows for z in noise])
        # Ratios take few values; a hair below one of them, rounding cannot decide.
        thresholds = np.unique(np.quantile(with_it, _THRESHOLDS, method="lower").round(6)) - 1e-5
        return [(float(t), float((without >= t).mean()), float((with_it < t).mean())) for t in thresholds]


def _discrete_laplace(rng: np.random.Generator, scale: float, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Probabilities proportional to exp(-|z| / scale): a difference of two geometric variables."""
    stop = -math.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


def _cells(plan: Plan) -> int:
    return sum(plan.domain.cells(query.attrs) for query in plan.queries)


def _check_time(plan: Plan, runs: int, *, chosen: bool) -> None:
    """Every cell gets its noise in every run; a stated number of runs is the user's own choice."""
    draws = 2 * runs * _cells(plan)
    if draws > _MOST_CELLS and not chosen:
        raise InputError(
            f"{runs} runs a side of {_cells(plan)} cells need {draws} draws of noise, about "
            f"{draws // 90_000 // 60 + 1} minutes: audit a smaller domain or method='independent', "
            "or give runs="
        )


def _check_integer(name: str, value: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InputError(f"{name}={said(value)} is out of range: give a whole number from 1 to {most}")
