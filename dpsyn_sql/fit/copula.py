"""The Gaussian copula over the binary expansion of the attributes.

Differentially Private Release of High-Dimensional Datasets using the Gaussian Copula, section
3.3, on histograms of original attributes and pairs (its binary 2x2 tables are cells of these).
Each code that has a positive probability becomes one binary attribute with one latent normal:

    noisy tables -> margins, pair tables     consistency.py: least squares, known noise removed
                 -> P(both codes)            one cell of a pair table, small deviations set aside
                 -> latent correlation       gaussian.py: equation 8, solved for all pairs at once
                 -> correlation matrix       correlation.py: Higham's nearest one, floored
                 -> Cholesky factor, offsets offsets.py: what turns a latent vector into codes

Pairs of codes of the SAME attribute start at 0: one code wins whatever their correlation, so there
is no target to meet, and the nearest correlation matrix may use these entries as it needs
(docs/decisions/0002-value-rule.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.consistency import Margins, Measurements, PairTable, fit_margins, fit_pair
from dpsyn_sql.fit.correlation import floored, nearest_correlation
from dpsyn_sql.fit.gaussian import LARGEST_CORRELATION, latent_correlation
from dpsyn_sql.fit.offsets import calibrated_offsets
from dpsyn_sql.planning.queries import NoisyMarginal

FloatArray = NDArray[np.float64]

THRESHOLD_SIGMAS, THRESHOLD_ROWS = 0.5, 2.0
"""A cell's deviation from independence is reduced by this many sigmas, at least by these rows.
Without it two rare codes that never meet ask for a correlation of -1, on no evidence, and such
demands are what spoils the nearest correlation matrix."""

STRENGTHENING = 1.4
"""Latent correlations are multiplied by this: an argmax over rivals passes on less of a
correlation than the threshold of equation 6 does."""

SMALLEST_EIGENVALUE = 1e-4
_MATRIX_TOLERANCE, _MATRIX_ROUNDS = 1e-3, 20


@dataclass(frozen=True, slots=True)
class Block:
    """The latent columns ``start:stop`` of one attribute and the code each stands for.

    ``probabilities`` (float64) belong to ``codes``. An attribute with one code of positive
    probability has no latent column.
    """

    codes: NDArray[np.int64]
    probabilities: FloatArray
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class FixedCopula:
    """A copula whose correlation matrix is not fitted: the identity, or all ones (``one``).

    A matrix of all ones is singular: every latent column is the same normal. Under the value rule it
    cancels (the largest of z + offset is the largest offset), and under the paper's equation 6 all bits of
    codes more probable than some level are set at once. One value of each attribute remains if the codes,
    from the most to the least probable, take consecutive parts of that one normal. Two codes then come
    together as often as the parts overlap: the commonest ones with min(p, q), which is cop-1's answer.
    """

    margins: Margins
    one: bool

    def pair(self, first: str, second: str) -> FloatArray:
        """Joint probabilities of two attributes."""
        p, q = self.margins.probabilities[first], self.margins.probabilities[second]
        if not self.one:
            return np.outer(p, q)
        lower, upper = np.array(parts_of(p)), np.array(parts_of(q))
        overlap = np.minimum.outer(lower[1], upper[1]) - np.maximum.outer(lower[0], upper[0])
        return np.asarray(np.maximum(overlap, 0.0))


def parts_of(probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where the part of each code begins and ends in [0, 1], the most probable code first."""
    order = commonest_first(probabilities)
    ends = np.empty(probabilities.size)
    ends[order] = np.minimum(np.cumsum(probabilities[order]), 1.0)
    ends[order[-1]] = 1.0
    begins = np.empty(probabilities.size)
    begins[order] = np.concatenate([[0.0], ends[order[:-1]]])
    return begins, ends


def commonest_first(probabilities: FloatArray) -> NDArray[np.int64]:
    """Codes in falling order of probability, equal ones in their own order."""
    return np.argsort(-probabilities, kind="stable")


@dataclass(frozen=True, slots=True)
class FittedCopula:
    """A fitted copula.

    ``pairs`` holds joint probabilities by pair of names in domain order; ``factor`` (k, k) float32
    is the lower Cholesky factor of the latent correlation, ``offsets`` (k,) float32 are added to
    the latent vector before the largest of each block is taken. There is a block an attribute.
    """

    margins: Margins
    pairs: Mapping[tuple[str, str], FloatArray]
    blocks: tuple[Block, ...]
    factor: NDArray[np.float32]
    offsets: NDArray[np.float32]

    def pair(self, first: str, second: str) -> FloatArray:
        """Joint probabilities of two attributes."""
        if (first, second) in self.pairs:
            return self.pairs[first, second]
        return self.pairs[second, first].T


def fit_copula(domain: Domain, tables: Iterable[NoisyMarginal]) -> FittedCopula:
    """Fit a Gaussian copula to noisy one-way and pair tables (any of which may be missing)."""
    measurements = Measurements(tables)
    margins = fit_margins(domain, measurements)
    pairs = {pair: fit_pair(measurements, margins, pair) for pair in combinations(domain.names, 2)}
    blocks = _blocks(domain, margins)
    wanted = _latent_correlations(domain, margins, pairs, blocks)
    nearest = nearest_correlation(wanted, tolerance=_MATRIX_TOLERANCE, rounds=_MATRIX_ROUNDS)
    correlation = floored(nearest, SMALLEST_EIGENVALUE)
    return FittedCopula(
        margins=margins,
        pairs={pair: table.probabilities for pair, table in pairs.items()},
        blocks=blocks,
        factor=np.linalg.cholesky(correlation).astype(np.float32),
        offsets=_offsets(correlation, blocks),
    )


def _blocks(domain: Domain, margins: Margins) -> tuple[Block, ...]:
    blocks, start = [], 0
    for name in domain.names:
        probabilities = margins.probabilities[name]
        codes = np.flatnonzero(probabilities > 0)
        stop = start + (codes.size if codes.size > 1 else 0)
        blocks.append(Block(codes, probabilities[codes] / probabilities[codes].sum(), start, stop))
        start = stop
    return tuple(blocks)


def _latent_correlations(
    domain: Domain,
    margins: Margins,
    pairs: Mapping[tuple[str, str], PairTable],
    blocks: tuple[Block, ...],
) -> FloatArray:
    """Target correlations of all latent columns (k, k); 0 between codes of one attribute."""
    columns = blocks[-1].stop if blocks else 0
    result = np.eye(columns)
    places, probabilities = [], []
    for (i, first), (j, second) in combinations(enumerate(blocks), 2):
        if first.start == first.stop or second.start == second.stop:
            continue
        table = pairs[domain.names[i], domain.names[j]]
        joint = table.probabilities[np.ix_(first.codes, second.codes)]
        target = _set_aside_small(
            joint, first.probabilities, second.probabilities, table.sigma, margins.total
        )
        rows, cols = np.indices(joint.shape)
        places.append((first.start + rows.ravel(), second.start + cols.ravel()))
        p = np.broadcast_to(first.probabilities[:, None], joint.shape).ravel()
        q = np.broadcast_to(second.probabilities, joint.shape).ravel()
        probabilities.append((p, q, target.ravel()))
    if places:
        at = tuple(np.concatenate(part) for part in zip(*places, strict=True))
        solved = latent_correlation(*(np.concatenate(part) for part in zip(*probabilities, strict=True)))
        strong = np.clip(STRENGTHENING * solved, -LARGEST_CORRELATION, LARGEST_CORRELATION)
        result[at] = strong
        result[at[::-1]] = strong
    return result


def _set_aside_small(
    joint: FloatArray, first: FloatArray, second: FloatArray, sigma: float, total: float
) -> FloatArray:
    """Soft threshold of what a joint table says beyond independence."""
    independent = np.outer(first, second)
    deviation = joint - independent
    threshold = max(THRESHOLD_SIGMAS * sigma, THRESHOLD_ROWS) / max(total, 1.0)
    return np.asarray(independent + np.sign(deviation) * np.maximum(np.abs(deviation) - threshold, 0.0))


def _offsets(correlation: FloatArray, blocks: Iterable[Block]) -> NDArray[np.float32]:
    parts = [
        calibrated_offsets(correlation[b.start : b.stop, b.start : b.stop], b.probabilities)
        for b in blocks
        if b.stop > b.start
    ]
    return np.concatenate([np.zeros(0), *parts]).astype(np.float32)
