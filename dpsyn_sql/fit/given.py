"""What is known of rows before they are drawn: rows above them, and of a panel who stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.planning.panel import JOINS, LEAVES, STAYS
from dpsyn_sql.planning.queries import NoisyMarginal

_TRACE = 1e-9


@dataclass(frozen=True, eq=False)
class Given:
    """Rows of the parent.

    Args:
        columns: of each attribute above (``Above.name``) its codes (parents,).
        rows: int64 (parents,), how many rows each has in the table.
        weights: float64 (parents,), what the rows of each weigh together, in units: that of the parent's row,
            of a row of the root 1. A row weighs ``weights / rows``.
        ranks: int64 (parents,), how many rows of the table the same unit has in families before.
    """

    columns: Mapping[str, Codes]
    rows: IntArray
    weights: FloatArray
    ranks: IntArray

    @cached_property
    def total(self) -> float:
        """What all rows of the table weigh, in units."""
        return float(self._held.weights.sum())

    @cached_property
    def grain(self) -> float:
        """What one independent row counts, in units: the mean weight of rows, weighted by itself."""
        squares = float((self._held.weights**2 / self._held.rows).sum())
        return squares / self.total if self.total > 0 else 1.0

    @cached_property
    def _held(self) -> Given:
        """The rows of the parent that have rows in the table."""
        present = self.rows > 0
        columns = {name: codes[present] for name, codes in self.columns.items()}
        return Given(columns, self.rows[present], self.weights[present], self.ranks[present])

    def shares(self, names: Sequence[str], bins: Sequence[IntArray]) -> FloatArray:
        """``table`` as probabilities above 0: a trace is even, so that what follows from rows that are not
        given stays known. Those of more attributes sum to those of fewer, but for rounding."""
        table = self.table(names, bins)
        even = np.full(table.shape, 1 / table.size)
        return (1 - _TRACE) * table / self.total + _TRACE * even if self.total > 0 else even

    def table(self, names: Sequence[str], bins: Sequence[IntArray]) -> FloatArray:
        """The joint distribution of attributes above in the rows of the table, in units: float64, an axis for
        each name, over the ``bins`` of their codes."""
        sizes = [int(bin_of.max()) + 1 for bin_of in bins]
        present = self._held
        cells = np.zeros(present.rows.size, np.int64)
        for name, bin_of, size in zip(names, bins, sizes, strict=True):
            cells *= size
            cells += bin_of[present.columns[name]]
        counts = np.bincount(cells, present.weights, minlength=int(np.prod(sizes)))
        return np.asarray(counts.reshape(sizes), dtype=np.float64)


# -- presence ----------------------------------------------------------------------------------------

# Who of known persons stays, from noisy tables of those who stay, leave and join; all of it is public.
#
# The chance that a person stays is logistic, with an effect of each code of the period before. Effects are
# those that noisy numbers of those who stay make most likely, with a normal prior: what noise hides stays
# near the chance of all (a ridge in the sense of Hoerl and Kennard 1970).

_SPREAD = 1.5
# Deviation of the prior of an effect, in logarithms of odds.

_NOISY = 2.0
# Deviations of noise that count as seen persons of the mean chance: cells of little but noise have it.

_LEAST = 1e-4

_FAR = 1e4
# Logarithms of odds beyond all others.


@dataclass(frozen=True, slots=True)
class Presence:
    """``stays`` (float64, persons): the chance of each. ``joins``: how many join; may be negative. ``error``:
    the standard error of ``joins``."""

    stays: FloatArray
    joins: float
    error: float


def presence_of(tables: Sequence[NoisyMarginal], codes: Codes) -> Presence:
    """The chances of persons, and how many join.

    Args:
        tables: over presence alone, then over each attribute of the period before and presence.
        codes: (persons, attributes), in the order of the tables.
    """
    alone, *by_code = (np.asarray(table.values, dtype=np.float64) for table in tables)
    precision = np.array([float(table.sigma) for table in tables]) ** -2.0
    joined = np.array([alone[JOINS], *(table[-1, JOINS] for table in by_code)])
    joins = float(joined @ precision / precision.sum())
    error = float(precision.sum() ** -0.5)
    # Each table tells how many stay and leave in all, the better the fewer cells it has.
    sums = np.array([alone, *(table.sum(axis=0) for table in by_code)])
    cells = np.array([1, *(len(table) for table in by_code)])
    stay, leave = (precision / cells) @ sums[:, [STAYS, LEAVES]]
    mean = float(np.clip(stay / max(stay + leave, 1e-9), _LEAST, 1 - _LEAST))
    if not len(codes):
        return Presence(np.zeros(0), joins, error)
    effects = _Effects.of(codes, [len(table) for table in by_code])
    counts = effects.sums(np.ones(len(codes)))
    sigma = np.concatenate(
        [
            [float(tables[0].sigma)],
            *(
                np.full(len(rows), float(answer.sigma))
                for rows, answer in zip(by_code, tables[1:], strict=True)
            ),
        ]
    )
    numbers = np.concatenate([alone[None], *by_code])
    likely = _NOISY * sigma
    # Numbers below zero stay: without them those who leave would seem to be more than they are.
    rates = (numbers[:, STAYS] + likely * mean) / (
        np.maximum(numbers[:, STAYS] + numbers[:, LEAVES], 0.0) + likely
    )
    spread = sigma**2 + counts * np.clip(rates * (1 - rates), 0.0, 0.25)
    return Presence(effects.fitted(counts * rates, spread, mean), joins, error)


def rows_measured(alone: NoisyMarginal) -> NoisyMarginal:
    """The noisy number of rows of the period: who stays, and who joins."""
    rows = alone.values[STAYS] + alone.values[JOINS]
    return NoisyMarginal((), np.asarray(rows), alone.sigma * 2**0.5)


@dataclass(frozen=True, slots=True)
class _Effects:
    """One effect for all persons, then one for each code. ``numbers`` (persons, 1 + attributes): theirs."""

    numbers: IntArray
    number: int

    @classmethod
    def of(cls, codes: Codes, sizes: Sequence[int]) -> _Effects:
        starts = 1 + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        numbers = np.concatenate([np.zeros((len(codes), 1), np.int64), codes + starts[:-1]], axis=1)
        return cls(numbers, int(starts[-1]))

    def sums(self, values: FloatArray) -> FloatArray:
        """For each effect the sum of a value over the persons that have it."""
        sums = np.zeros(self.number)
        for column in self.numbers.T:
            sums += np.bincount(column, values, minlength=self.number)
        return sums

    def fitted(self, wanted: FloatArray, spread: FloatArray, mean: float) -> FloatArray:
        """The chances (persons,) whose sums are near ``wanted``, of variance ``spread``."""
        start = np.zeros(self.number)
        start[0] = logit(mean)
        penalty = np.full(self.number, _SPREAD**-2.0)
        penalty[0] = 0.0

        def misfit(effects: FloatArray) -> tuple[float, FloatArray]:
            chances = self.chances(effects)
            off = self.sums(chances) - wanted
            weighted = (off / spread)[self.numbers].sum(axis=1)
            slope = self.sums(chances * (1 - chances) * weighted) + penalty * effects
            return float((off**2 / spread).sum() + (penalty * effects**2).sum()) / 2, slope

        best = minimize(misfit, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
        return self._with_mean(best, mean)

    def _with_mean(self, effects: FloatArray, mean: float) -> FloatArray:
        """The chances with another effect of all persons, such that ``mean`` is theirs: noise can ask for
        more persons than there are in a cell, and never gets them."""
        odds = effects[self.numbers].sum(axis=1)

        def off(shift: float) -> float:
            return float(expit(odds + shift).mean()) - mean

        return np.asarray(expit(odds + brentq(off, -_FAR, _FAR)))

    def chances(self, effects: FloatArray) -> FloatArray:
        """Of each person."""
        return np.asarray(expit(effects[self.numbers].sum(axis=1)))


def drawn(chances: FloatArray, generator: np.random.Generator) -> IntArray:
    """Which persons (places, ascending) are drawn, each with its chance, the number of them within one of its
    expectation (systematic sampling in random order)."""
    order = generator.permutation(chances.size)
    passed = np.floor(np.cumsum(chances[order]) + generator.random())
    return np.sort(order[np.flatnonzero(np.diff(passed, prepend=0.0) > 0)])
