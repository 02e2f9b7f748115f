"""DPCopula: one latent normal per attribute, its codes cut by the noisy margin (Li, Xiong, Jiang 2014).

    noisy one-way tables -> margins over codes, working bins           consistency.py, denoise.py
    noisy pair tables over bins -> concordance, shrunk for its noise   gaussian.py
                 -> latent correlation                                  gaussian.py
                 -> correlation matrix                                  gaussian.py

DPHybrid: some attributes of few values split the table into parts, and each part has margins and a matrix
of its own. Without a split there is one part. Post-processing of noisy answers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.arrays import FloatArray, IntArray, fit_joint, raked_to, simplex_projection, snapped
from dpsyn_sql.fit.denoise import merged_neighbours, within_bins
from dpsyn_sql.fit.gaussian import (
    concordance,
    concordance_variance,
    correlation_matrix,
    correlation_of,
    discretised,
    untied,
)
from dpsyn_sql.fit.views import Margins

Pair = tuple[int, int]

_GRID = 2.0**-10
# Rows.

_TRACE = 1e-9
# Weight of independence among the attributes that split the table, so that raking can reach their margins.

_FEWEST_ROWS = 0.5
# Rows of a part below which its correlations are not used.

_CELLS = 2**20
# Cells of pair tables that are worked on together.


@dataclass(frozen=True, slots=True)
class Ordered:
    """Attributes in working bins: neighbouring codes together, in code order.

    ``bins[i]`` (int64, one per code) is the bin of each code, ``within[i]`` (float64, one per code) its
    probability given the bin, ``shares[i]`` (float64, one per bin) the probabilities of bins.
    """

    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    shares: tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class FittedLatent:
    """A fitted copula in each part.

    ``split``: positions of the attributes that split the table, ``parts`` (one axis each) their joint
    probabilities; no axis if there are none. ``latent``: positions of the other attributes, and for each
    ``margins`` (parts, bins), the probabilities of its bins in every part. ``correlations``
    (parts, latent, latent). ``ordered``: of all attributes.
    """

    total: float
    ordered: Ordered
    split: tuple[int, ...]
    parts: FloatArray
    latent: tuple[int, ...]
    margins: tuple[FloatArray, ...]
    correlations: FloatArray

    def joint(self, positions: Sequence[int]) -> FloatArray:
        """Probabilities over the working bins of one or two attributes."""
        shares = self.parts.ravel()
        if len(positions) == 1:
            return np.asarray(shares @ self._given_part(positions[0]))
        first, second = positions
        if first in self.latent and second in self.latent:
            i, j = self.latent.index(first), self.latent.index(second)
            joint = discretised(self.margins[i], self.margins[j], self.correlations[:, i, j])
            return np.asarray(np.tensordot(shares, joint, axes=1))
        # Given the part, an attribute that splits has one value: whatever goes with it is independent.
        return np.asarray((self._given_part(first) * shares[:, None]).T @ self._given_part(second))

    def _given_part(self, position: int) -> FloatArray:
        """Probabilities (parts, bins) of an attribute in each part."""
        if position in self.latent:
            return self.margins[self.latent.index(position)]
        axis = self.split.index(position)
        codes = np.unravel_index(np.arange(self.parts.size), self.parts.shape)[axis]
        return np.eye(self.parts.shape[axis])[codes]


@dataclass(frozen=True, slots=True)
class PartTable:
    """Noisy counts by part: (parts, bins) or (parts, bins, bins), and the noise of a cell (rows)."""

    values: FloatArray
    sigma: float


def in_order(domain: Domain, margins: Margins, least: Sequence[float], most: float) -> Ordered:
    """Bins of neighbouring codes, for attributes with an order and without: DPCopula knows no other.

    Args:
        domain: the public domain.
        margins: of all attributes.
        least: for each attribute the rows below which a code does not stand alone.
        most: about how many bins an attribute gets at most.
    """
    bins, within, shares = [], [], []
    for name, rows in zip(domain.names, least, strict=True):
        probabilities = margins.probabilities[name]
        counts = snapped(max(margins.total, 0.0) * probabilities, _GRID)
        bin_of = merged_neighbours(counts, rows, most)
        bins.append(bin_of)
        within.append(within_bins(probabilities, bin_of))
        shares.append(np.bincount(bin_of, probabilities).astype(np.float64))
    return Ordered(tuple(bins), tuple(within), tuple(shares))


def whole(ordered: Ordered, positions: Sequence[int], probabilities: Sequence[FloatArray]) -> Ordered:
    """The same, but every code of the attributes at ``positions`` is a bin; with their probabilities."""
    bins, within, shares = list(ordered.bins), list(ordered.within), list(ordered.shares)
    for position, probability in zip(positions, probabilities, strict=True):
        bins[position], within[position], shares[position] = (
            np.arange(probability.size),
            np.ones(probability.size),
            probability,
        )
    return Ordered(tuple(bins), tuple(within), tuple(shares))


def fit_parts(
    split: Sequence[FloatArray], sizes: PartTable | None, tables: Sequence[PartTable], total: float
) -> FloatArray:
    """Probabilities (a, b, ...) of the parts, with the margins ``split`` of the attributes that split.

    ``sizes``: counts (parts,) and their noise; ``tables``: of parts and bins, whose sums say the same.
    """
    if sizes is None:
        return np.ones(())
    estimates = [sizes.values, *(table.values.sum(axis=1) for table in tables)]
    variances = [sizes.sigma**2, *(table.values.shape[1] * table.sigma**2 for table in tables)]
    weights = 1.0 / np.maximum(variances, 1e-6)
    mean = np.average(estimates, axis=0, weights=weights)
    part_shares = simplex_projection(mean, total) / total
    shape = tuple(margin.size for margin in split)
    even = np.full(part_shares.size, 1.0 / part_shares.size)
    joint = ((1 - _TRACE) * part_shares + _TRACE * even).reshape(shape)
    joint = raked_to(joint, list(zip(np.indices(shape), split, strict=True)))
    return np.asarray(joint / joint.sum())


def fit_part_margins(
    part_shares: FloatArray, table: PartTable | None, share: FloatArray, total: float
) -> FloatArray:
    """Probabilities of bins in each part (parts, bins); over all parts they are ``share``."""
    shares = part_shares.ravel()
    everywhere = np.broadcast_to(share, (shares.size, share.size))
    if table is None:
        return np.array(everywhere)
    joint = fit_joint(table.values, table.sigma, shares, share, total)
    mass = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.where(mass > 0, joint / np.where(mass > 0, mass, 1.0), everywhere))


def fit_correlations(
    part_shares: FloatArray, margins: Sequence[FloatArray], tables: Mapping[Pair, PartTable], total: float
) -> FloatArray:
    """Correlation matrices (parts, k, k) of k latent normals; 0 for pairs without a table.

    Args:
        part_shares: probabilities of the parts.
        margins: of each latent attribute (parts, bins).
        tables: counts (parts, bins, bins) of pairs of latent attributes.
        total: rows, above 0.
    """
    shares, number = part_shares.ravel(), len(margins)
    result = np.broadcast_to(np.eye(number), (shares.size, number, number)).copy()
    if not tables:
        return result
    for group in _stacks(margins, tables, shares.size):
        first, second = (np.stack([margins[pair[side]] for pair in group]) for side in (0, 1))
        values = np.stack([tables[pair].values for pair in group])
        sigma = np.array([tables[pair].sigma for pair in group])
        tau = _shrunk_tau(shares * total, first, second, values, sigma)
        flat = (first.reshape(-1, first.shape[2]), second.reshape(-1, second.shape[2]))
        solved = correlation_of(*flat, (tau * untied(first, second)).ravel()).reshape(tau.shape)
        for (i, j), correlation in zip(group, solved, strict=True):
            result[:, i, j] = result[:, j, i] = correlation
    # A part without rows is hardly drawn: its matrix must be one, no more.
    occupied = shares * total >= _FEWEST_ROWS
    return np.array(
        [
            correlation_matrix(matrix) if rows else np.eye(number)
            for matrix, rows in zip(result, occupied, strict=True)
        ]
    )


def _stacks(margins: Sequence[FloatArray], tables: Iterable[Pair], number: int) -> Iterator[list[Pair]]:
    """Pairs whose tables have one shape, as many as are worked on together."""
    alike: dict[Pair, list[Pair]] = {}
    for i, j in tables:
        alike.setdefault((margins[i].shape[1], margins[j].shape[1]), []).append((i, j))
    for (a, b), pairs in alike.items():
        step = max(1, _CELLS // (number * a * b))
        yield from (pairs[start : start + step] for start in range(0, len(pairs), step))


def _shrunk_tau(
    rows: FloatArray, first: FloatArray, second: FloatArray, values: FloatArray, sigma: FloatArray
) -> FloatArray:
    """Kendall's tau-b (pairs, parts), shrunk for its known noise.

    The table of a pair in a part is shifted to its margins by least squares; its concordance is then
    unbiased, because noise in different cells is independent. Positive-part shrinkage of James and Stein
    (1961), twice: the mean of the parts towards 0, and every part towards that mean.

    Args:
        rows: (parts,).
        first: (pairs, parts, a), margins.
        second: (pairs, parts, b), margins.
        values: (pairs, parts, a, b), noisy counts.
        sigma: (pairs,), deviation of a cell (rows).
    """
    rows = np.maximum(rows, 1.0)
    independent = first[..., :, None] * second[..., None, :]
    residual = values / rows[:, None, None] - independent
    residual = residual - residual.mean(axis=-2, keepdims=True)
    joint = independent + residual - residual.mean(axis=-1, keepdims=True)
    divisor = np.maximum(untied(first, second), 1e-12)
    tau = np.clip(concordance(joint) / divisor, -1.0, 1.0)
    noise = concordance_variance(joint, sigma[:, None] / rows)
    variance = np.maximum(noise / divisor**2, 1e-12)
    precision = (1.0 / variance).sum(axis=1, keepdims=True)
    mean = (tau / variance).sum(axis=1, keepdims=True) / precision
    mean = mean * _kept(mean, 1.0 / precision)
    if rows.size == 1:
        return np.asarray(mean)
    return np.asarray(np.clip(mean + (tau - mean) * _kept(tau - mean, variance), -1.0, 1.0))


def _kept(value: FloatArray, variance: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(0.0, 1.0 - variance / np.maximum(value**2, 1e-30)))
