"""The Gaussian copula over the binary expansion of the attributes.

Differentially Private Release of High-Dimensional Datasets using the Gaussian Copula, section 3.3, on
histograms of original attributes and pairs (its binary 2x2 tables are cells of these). Each code that has a
positive probability becomes one binary attribute with one latent normal:

    noisy tables -> margins, pair tables     consistency.py: least squares, known noise removed
                 -> P(both codes)            one cell of a pair table, small deviations set aside
                 -> latent correlation       gaussian.py: equation 8, solved for all pairs at once
                 -> correlation matrix       gaussian.py: Higham's nearest one, floored
                 -> Cholesky factor, offsets: what turns a latent vector into codes

Pairs of codes of the SAME attribute start at 0: one code wins whatever their correlation, so there is no
target to meet, and the nearest correlation matrix may use these entries as it needs
(docs/decisions/0002-value-rule.md).

An attribute of two codes has one latent column, for its second code: the first has the same correlations with
the opposite sign, so only the difference of both would decide which of them wins
(docs/decisions/0035-a-thousand-columns.md). Pairs of equal shape are fitted together.

*The value rule*: a sampled latent vector becomes the code with the largest z + offset. Offsets are set so
that each code wins with its own probability; the decision and its measured alternatives are in
docs/decisions/0002-value-rule.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.arrays import FloatArray, IntArray, fit_joints
from dpsyn_sql.fit.gaussian import LARGEST_CORRELATION, correlation_matrix, latent_correlation
from dpsyn_sql.fit.views import Margins, Measurements, fit_margins
from dpsyn_sql.planning.queries import NoisyMarginal

THRESHOLD_SIGMAS, THRESHOLD_ROWS = 0.5, 2.0
"""A cell's deviation from independence is reduced by this many sigmas, at least by these rows.
Without it two rare codes that never meet ask for a correlation of -1, on no evidence, and such
demands are what spoils the nearest correlation matrix."""

STRENGTHENING = (1.4, 1.4, 1.0)
"""Latent correlations are multiplied by this, if none, one or both attributes have two codes: an argmax over
rivals passes on less of a correlation than the threshold of equation 6 does, which two codes have."""


_CELLS = 2**20
# Cells of pairs that are fitted together: some dozens of MB.


@dataclass(frozen=True, slots=True)
class Block:
    """The latent columns ``start:stop`` of one attribute and the code each stands for.

    ``probabilities`` (float64) belong to ``codes``, those of positive probability. One code has no latent
    column, two have one together: the second wins where it plus its offset is above 0. Of more the largest
    wins.
    """

    codes: IntArray
    probabilities: FloatArray
    start: int
    stop: int

    @property
    def of_two(self) -> bool:
        """Whether two codes share a column."""
        return self.codes.size == 2


@dataclass(frozen=True, slots=True)
class FixedCopula:
    """A copula whose correlation matrix is not fitted: the identity, or all ones (``all_ones``).

    A matrix of all ones is singular: every latent column is the same normal. Under the value rule it
    cancels (the largest of z + offset is the largest offset), and under the paper's equation 6 all bits of
    codes more probable than some level are set at once. One value of each attribute remains if the codes,
    from the most to the least probable, take consecutive parts of that one normal. Two codes then come
    together as often as the parts overlap: the commonest ones with min(p, q), which is cop-1's answer.
    """

    margins: Margins
    all_ones: bool

    @property
    def total(self) -> float:
        """Estimated number of rows; may be negative."""
        return self.margins.total

    def pair(self, first: str, second: str) -> FloatArray:
        """Joint probabilities of two attributes."""
        p, q = self.margins.probabilities[first], self.margins.probabilities[second]
        if not self.all_ones:
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


def commonest_first(probabilities: FloatArray) -> IntArray:
    """Codes in falling order of probability, equal ones in their own order."""
    return np.argsort(-probabilities, kind="stable")


@dataclass(frozen=True, slots=True)
class FittedPairs:
    """All pairs of attributes of one shape.

    ``attrs`` (pairs, 2) are positions in the domain, ascending within a pair and from pair to pair;
    ``probabilities`` (pairs, l1, l2) float64, ``sigmas`` (pairs,) the noise (rows per cell) of what they
    rest on.
    """

    attrs: IntArray
    probabilities: FloatArray
    sigmas: FloatArray


@dataclass(frozen=True, slots=True)
class FittedCopula:
    """A fitted copula.

    ``pairs`` by their shapes, ``positions`` of names in the domain; ``factor`` (k, k) float32
    is the lower Cholesky factor of the latent covariance, ``offsets`` (k,) float32 are added to
    the latent vector before the largest of each block is taken. There is a block an attribute.
    """

    margins: Margins
    positions: Mapping[str, int]
    pairs: Mapping[tuple[int, int], FittedPairs]
    blocks: tuple[Block, ...]
    factor: NDArray[np.float32]
    offsets: NDArray[np.float32]

    @property
    def total(self) -> float:
        """Estimated number of rows; may be negative."""
        return self.margins.total

    def pair(self, first: str, second: str) -> FloatArray:
        """Joint probabilities of two attributes."""
        if self.positions[first] > self.positions[second]:
            return self.pair(second, first).T
        sizes = (self.margins.probabilities[first].size, self.margins.probabilities[second].size)
        fitted = self.pairs[sizes]
        low, high = np.searchsorted(fitted.attrs[:, 0], self.positions[first] + np.arange(2))
        row = low + int(np.searchsorted(fitted.attrs[low:high, 1], self.positions[second]))
        return np.asarray(fitted.probabilities[row])


def fit_copula(domain: Domain, tables: Iterable[NoisyMarginal]) -> FittedCopula:
    """Fit a Gaussian copula to noisy one-way and pair tables (any of which may be missing)."""
    measurements = Measurements(tables)
    margins = fit_margins(domain, measurements)
    pairs = {shape: _fitted(domain, measurements, margins, attrs) for shape, attrs in _by_shape(domain)}
    blocks = _blocks(domain, margins)
    wanted = _latent_correlations(domain, margins, pairs, blocks)
    correlation = correlation_matrix(wanted)
    return FittedCopula(
        margins=margins,
        positions={name: position for position, name in enumerate(domain.names)},
        pairs=pairs,
        blocks=blocks,
        factor=np.linalg.cholesky(correlation).astype(np.float32),
        offsets=_offsets(correlation, blocks),
    )


def _by_shape(domain: Domain) -> Iterator[tuple[tuple[int, int], IntArray]]:
    """All pairs of positions, ascending, by the sizes of their attributes."""
    first, second = np.triu_indices(len(domain.names), 1)
    sizes = np.array(domain.shape(), dtype=np.int64)
    shapes = np.stack([sizes[first], sizes[second]], axis=1) if sizes.size else np.zeros((0, 2), np.int64)
    kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
    for number, (left, right) in enumerate(kinds.tolist()):
        at = np.flatnonzero(kind.ravel() == number)
        yield (left, right), np.stack([first[at], second[at]], axis=1)


def _fitted(domain: Domain, measurements: Measurements, margins: Margins, attrs: IntArray) -> FittedPairs:
    """Pairs of one shape, some of them at a time; those that no table contains are independent."""
    shares = [margins.probabilities[name] for name in domain.names]
    shape = (shares[attrs[0, 0]].size, shares[attrs[0, 1]].size)
    probabilities, sigmas = np.empty((len(attrs), *shape)), np.zeros(len(attrs))
    step = max(1, _CELLS // (shape[0] * shape[1]))
    for start in range(0, len(attrs), step):
        part = slice(start, start + step)
        first, second = (np.array([shares[attribute] for attribute in column]) for column in attrs[part].T)
        joint = first[:, :, None] * second[:, None, :]
        if margins.total > 0:
            measured, values, variances = measurements.pairs(attrs[part], domain.names, shape)
            sigmas[part][measured] = np.sqrt(variances)
            joint[measured] = fit_joints(
                values, np.sqrt(variances), first[measured], second[measured], margins.total
            )
        probabilities[part] = joint
    return FittedPairs(attrs, probabilities, sigmas)


def _blocks(domain: Domain, margins: Margins) -> tuple[Block, ...]:
    blocks, start = [], 0
    for name in domain.names:
        probabilities = margins.probabilities[name]
        codes = np.flatnonzero(probabilities > 0)
        stop = start + (codes.size if codes.size > 2 else codes.size - 1)
        blocks.append(Block(codes, probabilities[codes] / probabilities[codes].sum(), start, stop))
        start = stop
    return tuple(blocks)


def _latent_correlations(
    domain: Domain,
    margins: Margins,
    pairs: Mapping[tuple[int, int], FittedPairs],
    blocks: tuple[Block, ...],
) -> FloatArray:
    """Target correlations of all latent columns (k, k); 0 between codes of one attribute.

    A threshold passes on all of a correlation, an argmax less of it: see ``STRENGTHENING``.
    """
    result = np.eye(blocks[-1].stop if blocks else 0)
    shares, columns = zip(*map(_by_code, blocks, domain.shape()), strict=True) if blocks else ((), ())
    two = np.zeros(len(result), dtype=np.int64)
    for block in blocks:
        two[block.start : block.stop] = block.of_two
    for shape, fitted in pairs.items():
        step = max(1, _CELLS // (shape[0] * shape[1]))
        for start in range(0, len(fitted.attrs), step):
            attrs = fitted.attrs[start : start + step]
            p, q = (np.array([shares[attribute] for attribute in column]) for column in attrs.T)
            row, column = (np.array([columns[attribute] for attribute in side]) for side in attrs.T)
            target = _set_aside_small(
                fitted.probabilities[start : start + step],
                p,
                q,
                fitted.sigmas[start : start + step],
                margins.total,
            )
            row, column = np.broadcast_arrays(row[:, :, None], column[:, None, :])
            used = (row >= 0) & (column >= 0)
            at = row[used], column[used]
            first, second = np.broadcast_arrays(p[:, :, None], q[:, None, :])
            solved = latent_correlation(first[used], second[used], target[used])
            strong = solved * np.array(STRENGTHENING)[two[at[0]] + two[at[1]]]
            result[at] = np.clip(strong, -LARGEST_CORRELATION, LARGEST_CORRELATION)
            result[at[::-1]] = result[at]
    return result


def _by_code(block: Block, size: int) -> tuple[FloatArray, IntArray]:
    """For every code of an attribute its probability, and its latent column or -1."""
    shares, columns = np.zeros(size), np.full(size, -1, dtype=np.int64)
    shares[block.codes] = block.probabilities
    used = block.codes[block.codes.size - (block.stop - block.start) :]
    columns[used] = np.arange(block.start, block.stop)
    return shares, columns


def _set_aside_small(
    joint: FloatArray, first: FloatArray, second: FloatArray, sigmas: FloatArray, total: float
) -> FloatArray:
    """Soft threshold of what joint tables (tables, l1, l2) say beyond independence."""
    independent = first[:, :, None] * second[:, None, :]
    deviation = joint - independent
    threshold = np.maximum(THRESHOLD_SIGMAS * sigmas, THRESHOLD_ROWS)[:, None, None] / max(total, 1.0)
    return np.asarray(independent + np.sign(deviation) * np.maximum(np.abs(deviation) - threshold, 0.0))


def _offsets(correlation: FloatArray, blocks: Iterable[Block]) -> NDArray[np.float32]:
    offsets = [
        ndtri(b.probabilities[1:])
        if b.of_two
        else calibrated_offsets(correlation[b.start : b.stop, b.start : b.stop], b.probabilities)
        for b in blocks
        if b.stop > b.start
    ]
    return np.concatenate([np.zeros(0), *offsets]).astype(np.float32)


_DRAWS = 4096
_ROUNDS = 30
_CLOSE_ENOUGH = 2e-4
_SEED = 20171003
# A constant: the same model always gets the same offsets. What the draws leave inexact
# (about 1/sqrt(_DRAWS), relatively), the sampler's quotas make exact.


def calibrated_offsets(correlation: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Offsets m such that P(argmax_j (z_j + m_j) = j) is ``probabilities[j]``.

    z is normal with the (l, l) positive definite ``correlation``; all probabilities are positive.
    Winning probabilities are means over fixed draws of the exact conditional probability of
    z_j given all other z (Rao-Blackwell), so that codes rarer than one draw have one too. Each
    round moves an offset by the probit difference times the spread of z_j about its rivals.
    """
    size = probabilities.size
    if size == 1:
        return np.zeros(1)
    factor = np.linalg.cholesky(correlation)
    draws = np.random.Generator(np.random.PCG64(_SEED)).standard_normal((_DRAWS, size)) @ factor.T
    precision = np.linalg.inv(correlation)
    spread = 1.0 / np.sqrt(np.diag(precision))
    conditional_mean = draws - (draws @ precision) * spread**2

    towards_mean = correlation @ probabilities
    contrast = np.diag(correlation) - 2.0 * towards_mean + probabilities @ towards_mean
    scale = np.sqrt(np.maximum(contrast, 1e-6))

    wanted = ndtri(probabilities)
    offsets = scale * wanted
    for _ in range(_ROUNDS):
        winning = _winning_probabilities(draws, conditional_mean, spread, offsets)
        if np.max(np.abs(winning - probabilities)) < _CLOSE_ENOUGH:
            break
        present = ndtri(np.clip(winning, 1e-12, 1.0 - 1e-12))
        offsets = offsets + 0.7 * scale * np.clip(wanted - present, -1.0, 1.0)
    return np.asarray(offsets)


def _winning_probabilities(
    draws: FloatArray, conditional_mean: FloatArray, spread: FloatArray, offsets: FloatArray
) -> FloatArray:
    """Probability of each code, exact in its own z, averaged over the draws of the others."""
    scores = draws + offsets
    rows = np.arange(len(scores))
    winner = scores.argmax(axis=1)
    best = scores[rows, winner]
    scores[rows, winner] = -np.inf
    second = scores.max(axis=1)
    ahead = conditional_mean + offsets - best[:, None]
    ahead[rows, winner] = conditional_mean[rows, winner] + offsets[winner] - second
    return np.asarray(ndtr(ahead / spread).mean(axis=0))
