"""Classes of a family, by EM on noisy tables of pairs of its rows.

A family has a class z that its rows share, and given z its rows, and a row's attributes, are independent. So
the table of ordered pairs of distinct rows over attributes a and b is

    T_ab = sum over z of pi_z P_a(. | z) P_b(. | z)',

for a = b too (a latent class model, Lazarsfeld and Henry 1968; EM by Dempster, Laird and Rubin 1977). All
tables together are one symmetric matrix over the bins of all attributes. Tables of pairs alone may leave
several sets of classes possible, with the same tables. Everything here follows from noisy answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.projections import fit_joint, simplex_projection

MOST_CLASSES = 12

_PENALTY = 1.0
# Of strangers a second class gains about as much once in thirty times. The test comes before.
_STARTS = 4
_ROUNDS = 400
_LEAST = 1e-6
# No probability of a bin is smaller: a class never rules a value out.

Pairs = Mapping[tuple[int, int], NDArray[np.float64]]
"""For positions a <= b of attributes the noisy table of their pairs, in families."""


@dataclass(frozen=True, slots=True)
class Classes:
    """``shares``: float64[K], of the classes, sum 1. ``laws``: for each attribute float64[K, bins], the law
    of its bin in each class; rows sum to 1, no entry is 0."""

    shares: NDArray[np.float64]
    laws: tuple[NDArray[np.float64], ...]


@dataclass(frozen=True, slots=True)
class _Matrix:
    """All tables as shares of pairs; ``blocks``: the bins of each attribute. ``variance``: of the noise of a
    cell; ``families``: how many there are."""

    cells: NDArray[np.float64]
    noisy: NDArray[np.float64]
    variance: NDArray[np.float64]
    blocks: tuple[slice, ...]
    families: float


def found_classes(tables: Pairs, sizes: Sequence[int], sigma: float, most: int = MOST_CLASSES) -> Classes:
    """The classes that explain tables of pairs, at most ``most`` of them.

    Their number K has the least chi-squared misfit plus ``_PENALTY`` for each parameter. EM is given tables
    that were denoised (``fit_joint``), so that a parameter follows less noise than Akaike's 2 assumes.

    Args:
        tables: of all pairs of attributes, each with itself too, shape (sizes[a], sizes[b]).
        sizes: bins of each attribute.
        sigma: standard deviation of the noise in a cell, in families.
        most: of the classes.
    """
    matrix = _matrix(tables, sizes, sigma)
    best, least = _one_class(matrix), np.inf
    worse = 0
    for classes in range(1, most + 1):
        fitted = _one_class(matrix) if classes == 1 else _several_classes(matrix, classes)
        parameters = classes - 1 + classes * sum(size - 1 for size in sizes)
        score = _misfit(matrix, fitted) + _PENALTY * parameters
        if score < least:
            best, least, worse = fitted, score, 0
        else:
            worse += 1
        if worse == 2:
            break
    shares, laws = best
    order = np.argsort(-shares, kind="stable")
    return Classes(shares[order], tuple(laws[block, order].T.copy() for block in matrix.blocks))


def _matrix(tables: Pairs, sizes: Sequence[int], sigma: float) -> _Matrix:
    ends = np.cumsum([0, *sizes]).tolist()
    blocks = tuple(slice(low, high) for low, high in pairwise(ends))
    noisy, cells, variance = (np.zeros((ends[-1], ends[-1])) for _ in range(3))
    families = max(float(np.mean([table.sum() for table in tables.values()])), 1.0)
    margins = _margins(tables, sizes)
    for (a, b), table in tables.items():
        shares, spread = table / families, np.full(table.shape, (sigma / families) ** 2)
        if a == b:
            shares = (shares + shares.T) / 2
            spread = np.where(np.eye(len(table)) > 0, spread, spread / 2)
        fitted = fit_joint(shares, sigma / families, margins[a], margins[b], 1.0)
        for whole, part in ((noisy, shares), (variance, spread), (cells, fitted)):
            whole[blocks[b], blocks[a]] = part.T
            whole[blocks[a], blocks[b]] = part
    return _Matrix(cells, noisy, variance, blocks, families)


def _margins(tables: Pairs, sizes: Sequence[int]) -> list[NDArray[np.float64]]:
    """The law of each attribute, from all its tables together."""
    sums = [np.zeros(size) for size in sizes]
    for (a, b), table in tables.items():
        sums[a] += table.sum(axis=1)
        sums[b] += table.sum(axis=0)
    return [simplex_projection(one / max(float(one.sum()), 1.0), 1.0) for one in sums]


_Fitted = tuple[NDArray[np.float64], NDArray[np.float64]]
# Shares [K], and the laws of all attributes, one below the other [bins, K].


def _one_class(matrix: _Matrix) -> _Fitted:
    laws = matrix.cells.sum(axis=1, keepdims=True) + _LEAST
    return np.ones(1), _normalised(laws, matrix.blocks)


def _several_classes(matrix: _Matrix, classes: int) -> _Fitted:
    """The best of some starts."""
    starts = [_climbed(matrix, classes, np.random.default_rng((classes, start))) for start in range(_STARTS)]
    return min(starts, key=lambda fitted: _misfit(matrix, fitted))


def _climbed(matrix: _Matrix, classes: int, random: np.random.Generator) -> _Fitted:
    """EM from laws near the mean."""
    _, mean = _one_class(matrix)
    laws = _normalised(mean * np.exp(random.normal(0, 0.7, (len(mean), classes))), matrix.blocks)
    shares = np.full(classes, 1 / classes)
    for _ in range(_ROUNDS):
        ratio = matrix.cells / np.maximum((laws * shares) @ laws.T, 1e-300)
        pulled = ratio @ laws
        weight = shares * np.einsum("ik,ik->k", laws, pulled)
        laws = _normalised(laws * pulled + _LEAST, matrix.blocks)
        shares = weight / weight.sum()
    return shares, laws


def _normalised(laws: NDArray[np.float64], blocks: Sequence[slice]) -> NDArray[np.float64]:
    found = laws.copy()
    for block in blocks:
        found[block] /= found[block].sum(axis=0)
    return found


def _misfit(matrix: _Matrix, fitted: _Fitted) -> float:
    """Chi-squared of the noisy tables: noise, and families drawn from the classes."""
    shares, laws = fitted
    model = (laws * shares) @ laws.T
    spread = matrix.variance + model / matrix.families
    upper = np.triu_indices(len(model))
    return float(((matrix.noisy - model) ** 2 / np.maximum(spread, 1e-300))[upper].sum())
