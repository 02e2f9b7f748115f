"""The noise of the door: how much, and where it is drawn."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_top_k
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import enable_features
from opendp.typing import i64

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent, cost_units
from dpsyn_sql.accounting.gdp import LATTICE, SMOOTHING
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.private.measure.drawing import drawn
from dpsyn_sql.private.measure.laws import gaussian_law, laplace_law

# -- how much ----------------------------------------------------------------------------------------

# From a share of the budget to the scale of the noise, never on the unsafe side.
#
# Two accountants must agree before a scale is used: our exact fractions and OpenDP's own privacy map, which
# rounds up. The scale grows by single steps of a float until both say that the share is enough.

_MOST_STEPS = 64
ROUNDING = 1 / 12
"""Variance of rounding to whole rows."""


def counts_event(l1: int, l2_squared: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """Noise within ``share`` for whole numbers of these sensitivities: Laplace for pure budgets, Gaussian for
    all others."""
    if share.gaussian:
        return gaussian_event(l2_squared, share)
    return laplace_event(l1, share)


def gaussian_event(l2_squared: int, share: Budget, lattice: int = LATTICE) -> GaussianEvent:
    """The least discrete Gaussian noise within ``share`` that both accountants accept.

    OpenDP's is rho, which mu^2 / 2 is at least.
    """
    l2 = math.sqrt(l2_squared)
    while Fraction(l2) ** 2 < l2_squared:
        l2 = math.nextafter(l2, math.inf)

    def fits(sigma: float) -> bool:
        cost = cost_units(GaussianEvent(sigma, l2_squared, lattice), share.kind)
        rho = Fraction(gaussian_mechanism(lattice * sigma).map(lattice * l2))
        return cost <= share.amount and rho <= share.fraction

    sigma = math.sqrt(l2_squared / (2 * float(share.fraction)) + SMOOTHING / lattice**2)
    return GaussianEvent(grown_until(fits, sigma), l2_squared, lattice)


def laplace_event(l1: int, share: Budget) -> LaplaceEvent:
    """The least discrete Laplace noise within ``share`` that both accountants accept."""

    def fits(scale: float) -> bool:
        cost = cost_units(LaplaceEvent(scale, l1), share.kind)
        return cost <= share.amount and Fraction(laplace_mechanism(scale).map(l1)) <= share.fraction

    return LaplaceEvent(grown_until(fits, l1 / float(share.fraction)), l1)


def refuse_no_discovery(share: Budget) -> None:
    """A question of discovery has to be paid for.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("discovery has no budget: raise epsilon, or declare the domain")


def grown_until(fits: Callable[[float], bool], scale: float) -> float:
    """The first scale from ``scale`` upwards that fits.

    Raises:
        InternalError: none does within a few steps.
    """
    step = 1.0
    for _ in range(_MOST_STEPS):
        if fits(scale):
            return scale
        scale, step = scale + step * math.ulp(scale), step * 2
    raise InternalError("no noise scale was found that both accountants accept")


_LEAST_DEVIATION = 2.0**-20
# Rows: of noise that is 0 but once in 2^40 cells. Nobody needs to know it better, and its square divides.


def standard_deviation(event: GaussianEvent | LaplaceEvent | ThresholdEvent) -> float:
    """Standard deviation of the noise in one cell, in rows; told as no less than ``_LEAST_DEVIATION``.

    The discrete Gaussian's is below its scale sigma, and equal to many digits for sigma >= 2 steps of its
    lattice; rounding steps to whole rows adds a variance of 1/12. The discrete Laplace's is
    sqrt(2 q) / (1 - q) with q = exp(-1/scale).
    """
    if isinstance(event, GaussianEvent | ThresholdEvent):
        return math.sqrt(event.sigma**2 + ROUNDING) if event.lattice > 1 else event.sigma
    decay = math.exp(-1 / event.scale)
    return max(math.sqrt(2 * decay) / -math.expm1(-1 / event.scale), _LEAST_DEVIATION)


def mean_error(event: GaussianEvent | LaplaceEvent) -> float:
    """Mean absolute noise in one cell, in rows.

    Gaussian: sqrt(2 / pi) standard deviations, for sigma < 2 the sum over the integers; the discrete
    Laplace's is 2 q / (1 - q^2) with q = exp(-1/scale).
    """
    if isinstance(event, LaplaceEvent):
        return 1 / math.sinh(1 / event.scale) if event.scale > 0.002 else 0.0
    if event.sigma >= 2:
        return standard_deviation(event) * math.sqrt(2 / math.pi)
    if event.lattice > 1:
        return sum(math.erfc((k - 0.5) / (math.sqrt(2) * event.sigma)) for k in range(1, 41))
    weights = [(k, math.exp(-(k**2) / (2 * event.sigma**2))) for k in range(1, 41)]
    return sum(2 * k * weight for k, weight in weights) / (1 + sum(2 * weight for _, weight in weights))


# -- drawing -----------------------------------------------------------------------------------------

# Integer noise, private choices by OpenDP, and rows drawn at random. No seed can be given: the randomness is
# the operating system's, or that of OpenDP's generator, which the operating system seeds.
#
# Of OpenDP the modules are imported that are used: its prelude loads scikit-learn and Polars wherever they
# are installed, which takes longer than a small release.

MOST_ROWS = 2**58
"""A count above it is taken for this one, so that neither steps of a lattice nor their noise overflow. That
moves no two counts further apart, and no table has so many rows."""

enable_features("contrib")

_KEPT = 100
"""Mechanisms that are kept. A mechanism has no state: each call draws fresh noise. Making one is slow."""

_MOST_SCALE = 2.0**36
"""Of noise in steps. From it on OpenDP draws: 31 bits do not hold a place in a block of a Laplace."""

_AT_ONCE = 20_000
"""Cells that OpenDP is handed in one call, as Python's integers."""

_RANDOM = random.SystemRandom()

_COUNTS = vector_domain(atom_domain(T=i64))


class NoiseSource(Protocol):
    """Integer noise; there is no seed."""

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """Add independent discrete Gaussian noise of scale ``sigma`` to a flat vector.

        Values and scale are in steps of an event's lattice.
        """

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Add independent discrete Laplace noise of ``scale`` to a flat vector."""

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """Indices of ``number`` candidates with high scores, best first: exponential mechanism or
        permute-and-flip, peeled."""


@lru_cache(maxsize=_KEPT)
def gaussian_mechanism(sigma: float) -> Any:
    """OpenDP's discrete Gaussian on integer vectors; ``.map(l2)`` is its rho."""
    return make_gaussian(_COUNTS, l2_distance(T=float), sigma)


@lru_cache(maxsize=_KEPT)
def laplace_mechanism(scale: float) -> Any:
    """OpenDP's discrete Laplace on integer vectors; ``.map(l1)`` is its epsilon."""
    return make_laplace(_COUNTS, l1_distance(T=i64), scale)


@lru_cache(maxsize=_KEPT)
def selection_mechanism(scale: float, kind: Kind, number: int) -> Any:
    """OpenDP's noisy top-k on integer scores; ``.map(sensitivity)`` is its rho or epsilon.

    Under zero-concentrated divergence it is the exponential mechanism (probabilities
    proportional to exp(score / scale)) peeled ``number`` times, under max divergence permute-and-flip.
    """
    measure = max_divergence() if kind == "pure" else zero_concentrated_divergence()
    return make_noisy_top_k(_COUNTS, linf_distance(T=i64), measure, number, scale)


class ExactNoise:
    """The noise source of every release."""

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """Discrete Gaussian of scale ``sigma`` on a flat int64 vector."""
        if sigma >= _MOST_SCALE:
            return _by_opendp(gaussian_mechanism(sigma), values)
        return _sums(values, drawn(gaussian_law(sigma), len(values)))

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Discrete Laplace of ``scale`` on a flat int64 vector."""
        if scale >= _MOST_SCALE:
            return _by_opendp(laplace_mechanism(scale), values)
        return _sums(values, drawn(laplace_law(scale), len(values)))

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """Indices of ``number`` candidates with high scores, best first."""
        return _invoke(selection_mechanism(scale, kind, number), scores)


def add_noise(
    noise: NoiseSource, tables: Sequence[NDArray[np.int64]], event: GaussianEvent | LaplaceEvent
) -> list[NDArray[np.int64]]:
    """The tables with independent noise of the event in every cell, in whole rows. PRIVATE tables go in."""
    flat = np.concatenate([table.ravel() for table in tables])
    if isinstance(event, GaussianEvent):
        noisy = whole_rows(steps_with_noise(noise, flat, event), event.lattice)
    else:
        noisy = noise.laplace(flat, event.scale)
    ends = np.cumsum([table.size for table in tables])[:-1]
    parts = np.split(noisy, ends)
    return [part.reshape(table.shape) for part, table in zip(parts, tables, strict=True)]


def steps_with_noise(
    noise: NoiseSource, counts: NDArray[np.int64], event: GaussianEvent | ThresholdEvent
) -> NDArray[np.int64]:
    """A flat vector with noise of the event in every place, in steps of its lattice. PRIVATE counts go in.

    Raises:
        InternalError: the steps of a row are no power of two, so that the scale in steps would be rounded.
    """
    if event.lattice & (event.lattice - 1):
        raise InternalError("the steps of a row are no power of two")
    steps = counts if event.lattice == 1 else np.clip(counts, -MOST_ROWS, MOST_ROWS) * event.lattice
    return noise.gaussian(steps, event.sigma * event.lattice)


def whole_rows(steps: NDArray[np.int64], lattice: int) -> NDArray[np.int64]:
    """The nearest whole rows; of two equally near the even number, so that rounding has no bias."""
    if lattice == 1:
        return steps
    rows, rest = np.divmod(steps, lattice)
    rest *= 2
    rest += rows & 1
    rows += rest > lattice
    return rows


def drawn_rows(
    counts: NDArray[np.int64], groups: NDArray[np.int64], number: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many of ``number`` rows of each group, drawn at random without replacement, fall into each count:
    exactly a multivariate hypergeometric law. PRIVATE counts go in.

    Args:
        counts: int64[n], 0 or more.
        groups: int64[n], the group of each count: 0, 0, 1, ..., never descending, none left out.
        number: int64[groups], from 0 to the sum of the group.
    """
    ends = np.cumsum(counts)
    last = ends[np.flatnonzero(np.diff(groups, append=len(number)))].tolist()
    most, kept, drawn = [0, *last], np.zeros(len(number), dtype=np.bool_), list[int]()
    for group, wanted in enumerate(number.tolist()):
        low, high = most[group : group + 2]
        kept[group] = 2 * wanted > high - low  # draw the rows that stay: they are fewer
        drawn += _RANDOM.sample(range(low, high), high - low - wanted if kept[group] else wanted)
    places = np.searchsorted(ends, np.array(drawn, dtype=np.int64), side="right")
    found = np.bincount(places, minlength=len(counts))
    return np.asarray(np.where(kept[groups], counts - found, found), dtype=np.int64)


def _sums(values: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Their exact sums, cut at the ends of int64 as OpenDP cuts them. The noise is used up."""
    sums = values + noise
    wrapped = (noise < 0) != (sums < values)
    noise >>= 63  # -1 below zero, else 0
    noise ^= np.iinfo(np.int64).max  # the end that the sum ran over
    np.copyto(sums, noise, where=wrapped)
    return sums


def _by_opendp(mechanism: Any, values: NDArray[np.int64]) -> NDArray[np.int64]:
    parts = [
        _invoke(mechanism, values[start : start + _AT_ONCE]) for start in range(0, len(values), _AT_ONCE)
    ]
    return np.concatenate([values[:0], *parts])


def _invoke(mechanism: Any, values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(mechanism(values.tolist()), dtype=np.int64)
