"""An audit: its design, a toy source, and its tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent, SelectionEvent
from dpsyn_sql.accounting.pld import AnsweredQuestion, log_ratio
from dpsyn_sql.accounting.tradeoff import power, runs_for_power
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.questions import StoredQuestion
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.plan import Plan, ReleaseKey, equivalent_rho
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import NearestLabel, labelled
from dpsyn_sql.private.measure.noise import NoiseSource
from dpsyn_sql.source.relation import WEIGHT

# -- design ------------------------------------------------------------------------------------------

# What is fixed before looking: the curve, the threshold of the test, the runs, and their power.

ERROR = 1e-3
"""Probability that the lower bound is above the true parameter."""

POWER = 0.99
"""Probability that noise of half the scale is caught, at the number of runs that is chosen."""

MOST_RUNS = 100_000

HALF = 0.5
_SIMULATIONS = 200_000
_SIMULATED = 20_000_000
_CHOICES = 400_000
_MOST_DRAWN = 4_000
_THRESHOLDS = np.linspace(0.02, 0.98, 25)

Option = tuple[float, float, float]
"""Threshold, and the rates of false alarms and misses with noise of half the scale."""

Ratios = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Log-likelihood ratios without the unit and with it, float64[draws] each."""


@dataclass(frozen=True, slots=True)
class Design:
    """``claim``: mu or epsilon; ``runs`` a side; ``power``: the probability that these runs catch noise of
    half the scale."""

    claim: float
    runs: int
    threshold: float
    power: float


def designed(budget: Budget, rehearsed: Sequence[AnsweredQuestion], runs: int | None) -> Design:
    """The threshold that catches noise of half the scale with fewest runs, or best with ``runs``.

    It rests on theory and on which questions a rehearsal asked; its answers are not part of the test.

    Args:
        budget: of the plan; the claim is that of all of it, whatever a run spends.
        rehearsed: one run.
        runs: on each side; None for what has the power ``POWER``.

    Raises:
        InputError: more runs would be needed than are allowed.
    """
    kind = budget.kind
    claim = float(budget.fraction) if kind == "pure" else math.sqrt(2 * budget.fraction)
    if all(isinstance(answered.event, GaussianEvent) for answered in rehearsed) and budget.gaussian:
        options = [_middle(claim)]
    else:
        options = simulated(kind, rehearsed)
    if runs is None:
        runs = _fewest(kind, claim, options)
    chances = [power(kind, claim, *option[1:], runs, ERROR) for option in options]
    best = int(np.argmax(chances))
    return Design(claim, runs, options[best][0], chances[best])


def _fewest(kind: Kind, claim: float, options: Sequence[Option]) -> int:
    needed = [runs_for_power(kind, claim, *option[1:], POWER, ERROR, MOST_RUNS) for option in options]
    sizes = [size for size in needed if size is not None]
    if not sizes:
        raise InputError(
            f"no audit of at most {MOST_RUNS} runs per side has power {POWER} at this epsilon: "
            "audit another epsilon (the same code scales its noise), or give runs="
        )
    return min(sizes)


def _middle(claim: float) -> Option:
    """The ratio is normal with mean -mu^2/2 or mu^2/2 and, at half the scale, standard deviation mu/2."""
    rate = float(ndtr(-claim / 2 / HALF))
    return 0.0, rate, rate


def simulated(kind: Kind, rehearsed: Sequence[AnsweredQuestion]) -> list[Option]:
    """Thresholds on a grid of quantiles, by simulation of the theory at half the scale."""
    rng = np.random.default_rng(1)  # of a design, not of noise: the same audit has the same design
    differ = sum(int(np.count_nonzero(answered.within - answered.without)) for answered in rehearsed)
    size = max(1_000, min(_SIMULATIONS, _SIMULATED // max(1, differ)))
    without, within = np.zeros(size), np.zeros(size)
    for answered in rehearsed:
        ratios = _ratios(kind, answered, size, rng)
        without, within = without + ratios[0], within + ratios[1]
    # Ratios take few values; a hair below one of them, rounding cannot decide.
    thresholds = np.unique(np.quantile(within, _THRESHOLDS, method="lower").round(6)) - 1e-5
    return [(float(t), float((without >= t).mean()), float((within < t).mean())) for t in thresholds]


def _ratios(kind: Kind, answered: AnsweredQuestion, size: int, rng: np.random.Generator) -> Ratios:
    event, shift = answered.event, answered.within - answered.without
    shift = shift[shift != 0]
    if isinstance(event, SelectionEvent):
        return _ratios_of_choices(kind, answered, event, size, rng)
    if isinstance(event, LaplaceEvent):
        noise = discrete_laplace(rng, event.scale * HALF, (size, len(shift)))
        return (
            (np.abs(noise) - np.abs(noise - shift)).sum(axis=1) / event.scale,
            (np.abs(noise + shift) - np.abs(noise)).sum(axis=1) / event.scale,
        )
    mu = math.sqrt(int((shift**2).sum())) / event.sigma
    draws = mu * HALF * rng.standard_normal((2, size))
    return draws[0] - mu**2 / 2, draws[1] + mu**2 / 2


def _ratios_of_choices(
    kind: Kind, answered: AnsweredQuestion, event: SelectionEvent, size: int, rng: np.random.Generator
) -> Ratios:
    """Fewer choices are drawn, since each takes long, and used again."""
    few = max(100, min(_MOST_DRAWN, _CHOICES // (event.number * len(answered.without))))
    sides = []
    for scores in (answered.without, answered.within):
        drawn = (chosen(rng, scores, event.scale * HALF, kind, event.number) for _ in range(few))
        ratios = [
            log_ratio(kind, AnsweredQuestion(event, answered.without, answered.within, order))
            for order in drawn
        ]
        sides.append(rng.choice(np.array(ratios), size))
    return sides[0], sides[1]


def chosen(
    rng: np.random.Generator, scores: NDArray[np.int64], scale: float, kind: Kind, number: int
) -> NDArray[np.int64]:
    """A private choice: Gumbel noise (Durfee, Rogers 2019), or permute-and-flip peeled, by exponential
    noise (Ding and others 2021)."""
    exact = scores / scale
    if kind != "pure":
        return np.asarray(np.argsort(-(exact + rng.gumbel(size=len(exact))))[:number], dtype=np.int64)
    order = []
    for _ in range(number):
        order.append(int(np.argmax(exact + rng.exponential(size=len(exact)))))
        exact[order[-1]] = -np.inf
    return np.array(order, dtype=np.int64)


def discrete_laplace(rng: np.random.Generator, scale: float, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Probabilities proportional to exp(-|z| / scale): a difference of two geometric variables."""
    stop = -math.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


# -- a toy source ------------------------------------------------------------------------------------

# The two tables that an audit compares: made here, without a row of a user.

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
    rho = equivalent_rho(plan.source.unit, plan.domain, plan.budget)
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

    def with_labels(self, labels: Sequence[NearestLabel]) -> Toy:
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

    def count(
        self, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel] = ()
    ) -> Iterator[NDArray[np.int64]]:
        """Full int64 tables; those without labels and bins are made once each."""
        rows = self._rows.with_labels(labels)
        for query in queries:
            if labels or query.maps:
                yield self._table(rows, query)
            else:
                if query.attrs not in self._known:
                    self._known[query.attrs] = self._table(rows, query)
                yield self._known[query.attrs]

    def siblings(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """Full int64 tables."""
        return [self._rows.siblings(query, within=self._added > 0) for query in queries]

    def _table(self, rows: Toy, query: MarginalQuery) -> NDArray[np.int64]:
        table = rows.table(query).copy()
        table[rows.place(query)] += self._added
        table.flags.writeable = False
        return table


def _codes(domain: Domain, rows: int) -> list[NDArray[np.int64]]:
    """Of each attribute the codes of all rows; each follows the one before it less than that did."""
    rng = np.random.default_rng(1)  # the same audit has the same table
    columns: list[NDArray[np.int64]] = []
    for number, size in enumerate(domain.shape()):
        codes = rng.integers(0, size, rows)
        if number:
            followed = columns[-1] * size // domain.shape()[number - 1]
            codes = np.where(rng.random(rows) < _TOGETHER / number, followed, codes)
        columns.append(codes)
    return columns


# -- tests -------------------------------------------------------------------------------------------

# Stand-ins that show a test what stands behind the door, and replay what came out of it.
#
# PRIVATE: a recording noise source holds exact counts. It is for tests on toy tables only.


@dataclass(frozen=True, slots=True)
class NoiseCall:
    """One call of a noise source.

    ``exact``: int64 counts of all tables of a question one after the other, or the scores of the
    candidates. ``answer``: int64, as long as ``exact``; for a choice, the indices. ``mechanism`` is
    ``"gaussian"``, ``"laplace"`` or ``"select"``; ``scale`` is the sigma or the scale asked for.
    """

    mechanism: str
    exact: NDArray[np.int64] = field(repr=False)
    scale: float
    answer: NDArray[np.int64]


class RecordingNoise:
    """Passes every question to another noise source and remembers both sides of it."""

    def __init__(self, inner: NoiseSource) -> None:
        self._inner = inner
        self.calls: list[NoiseCall] = []

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """As the inner source."""
        return self._noted("gaussian", values, sigma, self._inner.gaussian(values, sigma))

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """As the inner source."""
        return self._noted("laplace", values, scale, self._inner.laplace(values, scale))

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """As the inner source."""
        return self._noted("select", scores, scale, self._inner.select(scores, scale, kind, number))

    def _noted(
        self, mechanism: str, exact: NDArray[np.int64], scale: float, answer: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        self.calls.append(NoiseCall(mechanism, exact.copy(), scale, answer.copy()))
        return answer


class ReplayedNoise:
    """Gives the answers of another run in order, whatever the counts are now."""

    def __init__(self, calls: Iterable[NoiseCall]) -> None:
        self._answers = iter([call.answer for call in calls])

    def gaussian(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """The next answer.

        Raises:
            InternalError: there is none of this length.
        """
        return self._next(len(values))

    laplace = gaussian

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """The next answer.

        Raises:
            InternalError: the next answer is not ``number`` indices.
        """
        return self._next(number)

    def _next(self, length: int) -> NDArray[np.int64]:
        answer = next(self._answers, None)
        if answer is None or len(answer) != length:
            raise InternalError("the replayed run asked another question")
        return answer.copy()


class RecordingLedger(MemoryLedger):
    """A ledger in memory that remembers keys, debits and questions (a ``Ledger``).

    Its releases have the identifier and the day that it is given, so that two runs can be equal
    byte for byte. ``entry``: the last one opened; its ``events`` are those that were charged.
    """

    def __init__(self, release_id: str = "0" * 16, debited_on: str = "2026-01-01") -> None:
        super().__init__()
        self.release_id, self.debited_on = release_id, debited_on
        self.keys: list[ReleaseKey] = []
        self.budgets: list[Budget] = []
        self.questions: list[dict[str, Any]] = []
        self.entry: SqliteEntry | None = None

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """What the last release was charged for, in order."""
        return () if self.entry is None else self.entry.events

    @contextmanager
    def open_release(self, key: ReleaseKey, budget: Budget, *, new_debit: bool = False) -> Iterator[Any]:
        """As the ledger in memory."""
        with super().open_release(key, budget, new_debit=new_debit) as entry:
            self.keys.append(key)
            self.budgets.append(budget)
            self.entry = cast(SqliteEntry, _Noted(entry, self))
            yield self.entry


class _Noted:
    """An entry that notes every question it is shown; all else is the entry's own."""

    def __init__(self, entry: SqliteEntry, ledger: RecordingLedger) -> None:
        self._entry, self._ledger = entry, ledger
        self.release_id, self.debited_on = ledger.release_id, ledger.debited_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def ask(self, question: Mapping[str, Any]) -> StoredQuestion:
        """Note the question, then pass it on."""
        self._ledger.questions.append(dict(question))
        return self._entry.ask(question)
