"""Rows of one family that agree: how much, why, and the classes that explain it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.arrays import FloatArray, IntArray, fit_joint, simplex_projection
from dpsyn_sql.fit.mixture import Point, em_step, proper_profiles

_CLEAR = 10.0
# Deviations of noise that the number of families must have: shares of a total that may be none say nothing.

_LEAST_SHARE = 1e-3
# Of a bin: the noise of rarer ones would drown all others.

_SMALL = 3.0
# Groups of fewer deviations of the noise of their sum are taken together.


@dataclass(frozen=True, slots=True)
class Excess:
    """A difference of probabilities of agreement, without bias, and its standard deviation where there is no
    such difference: that of the noise, and that of the families, which are a sample too."""

    share: float
    deviation: float


def excess(table: NDArray[np.float64], sigma: float) -> Excess | None:
    """P(two rows of a family agree) less that of rows of different families; None if the noise hides how many
    families there are.

    To first order in the noise; what the squared noise adds to the squares of shares is taken off. The
    deviation of families is that of two rows each: more rows make it smaller.

    Args:
        table: (bins, bins), noisy numbers of families.
        sigma: of the noise in a cell, in families.
    """
    bins, total = len(table), float(table.sum())
    if total < _CLEAR * sigma * bins:
        return None
    margin = (table.sum(axis=0) + table.sum(axis=1)) / 2
    # The diagonal counts twice in a margin: its variance is (bins + 1) / 2 times that of a cell.
    extra = bins * (bins + 1) / 2 * sigma**2
    agree, strangers = float(np.trace(table)) / total, (float((margin**2).sum()) - extra) / total**2
    slopes = np.eye(bins) - agree - (margin[:, None] + margin[None, :]) / total + 2 * strangers
    noise = sigma**2 / total**2 * float((slopes**2).sum())
    squared = bins * (bins + 1) ** 2 / 2 * sigma**4 / total**4  # of the squares of the noise of margins
    shares = np.maximum(margin / total, 0)
    drawn = float((shares**2).sum() - 2 * (shares**3).sum() + (shares**2).sum() ** 2) / total
    return Excess(agree - strangers, math.sqrt(noise + squared + max(drawn, 0.0)))


def explained(table: NDArray[np.float64], sigma: float) -> Excess | None:
    """The part of the excess that a code which all rows of a family share explains; None as for ``excess``.

    Rows that are independent given the code s agree with probability sum over s of P(s) P(a | s)^2, summed
    over a. Codes that the noise nearly hides are taken together, so that they explain less.

    Args:
        table: (codes, bins), noisy numbers of families by their code, and by the bin of a row.
        sigma: of the noise in a cell, in families.
    """
    bins, total = table.shape[1], float(table.sum())
    if total < _CLEAR * sigma * math.sqrt(table.size):
        return None
    sums = table.sum(axis=1)
    clear = sums >= _SMALL * sigma * bins
    hidden = table[~clear].sum(axis=0, keepdims=True)
    joined, merged = table[clear], int((~clear).sum())
    variances = np.full(len(joined), sigma**2)
    if merged and float(hidden.sum()) >= _SMALL * sigma * bins * math.sqrt(merged):
        joined, variances = np.vstack([joined, hidden]), np.append(variances, merged * sigma**2)
    sums = joined.sum(axis=1)
    if not len(joined):
        return Excess(0.0, 0.0)
    laws = joined / sums[:, None]
    squares = (laws**2).sum(axis=1)
    bias = variances / sums * (bins - 2 + bins * squares)
    families = float(sums.sum())
    margin = joined.sum(axis=0)
    strangers = (float((margin**2).sum()) - float(variances.sum()) * bins) / families**2
    share = float((sums * squares - bias).sum()) / families - strangers
    slopes = 2 * laws - squares[:, None] - 2 * margin[None, :] / families + strangers
    noise = float((variances[:, None] * slopes**2).sum()) / families**2
    squared = 2 * bins * float(((variances / sums) ** 2).sum()) / families**2
    return Excess(share, math.sqrt(noise + squared))


def carried(table: NDArray[np.float64], within: NDArray[np.float64]) -> float:
    """The excess that an attribute has because it follows from another one of the same row, whose rows agree.

    Args:
        table: (bins, bins), noisy numbers of families by the other attribute of two rows.
        within: (bins, own bins), noisy numbers of families by both attributes of one row.
    """
    total, rows = float(table.sum()), np.maximum(within, 0.0)
    if total <= 0 or float(rows.sum()) <= 0:
        return 0.0
    margin = (table.sum(axis=0) + table.sum(axis=1)) / 2 / total
    follows = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
    covariance = table / total - margin[:, None] * margin[None, :]
    return float(np.sum(covariance * (follows @ follows.T)))


LEAST_RV = 0.1
"""Attributes hang together from this RV coefficient on (Robert and Escoufier 1976): 1 if one class of the
family is all that their rows share, 0 if they share nothing."""


def hanging_together(
    tables: Mapping[tuple[int, int], NDArray[np.float64]], number: int, sigma: float
) -> list[list[int]]:
    """The attributes in sets, ascending: those of different sets tell nothing of each other across the rows
    of a family.

    With R_ab the noisy table of pairs of rows beyond independence, over the roots of its margins, one class
    of the family makes R_ab = X_a X_b'. The RV coefficient |R_ab|^2 / (|R_aa| |R_bb|) says how alike X_a and
    X_b are. What noise adds to |R|^2 is taken off.

    Args:
        tables: for positions a <= b the noisy numbers of families.
        number: of attributes.
        sigma: of the noise in a cell, in families.
    """
    squares = {pair: _beyond_independence(table, sigma) for pair, table in tables.items()}
    leader = list(range(number))
    for (a, b), (square, deviation) in squares.items():
        scale = math.sqrt(max(squares[a, a][0], 0.0) * max(squares[b, b][0], 0.0))
        if a < b and square > max(LEAST_RV * scale, _SMALL * deviation):
            old, new = max(leader[a], leader[b]), min(leader[a], leader[b])
            leader = [new if head == old else head for head in leader]
    return [
        [attribute for attribute in range(number) if leader[attribute] == first]
        for first in sorted(set(leader))
    ]


def _beyond_independence(table: NDArray[np.float64], sigma: float) -> tuple[float, float]:
    """|R|^2 without what noise adds to it, and the deviation of that."""
    total = max(float(table.sum()), 1.0)
    rows, columns = (np.maximum(table.sum(axis=axis) / total, _LEAST_SHARE) for axis in (1, 0))
    expected = rows[:, None] * columns[None, :]
    noise = (sigma / total) ** 2 / expected
    square = float(((table / total - expected) ** 2 / expected).sum() - noise.sum())
    return square, math.sqrt(2 * float((noise**2).sum()))


# -- reasons -----------------------------------------------------------------------------------------

# What an attribute above a family explains of its rows: the class of the family stands for the rest alone.
#
# Rows of a family agree because of what stands above them, and because of what nothing shows: a class. If the
# classes explained both, a row that follows from its class and from what is above would agree with its
# siblings twice. So the explained part is taken off the tables that classes are learnt from, and the class of
# a family is drawn given what stands above it. With r_z(x) = P(x | z) / P(x), and a the code above,
#
#     P(x | z, a) = P(x | a) r_z(x) / Z_z(a),    Z_z(a) = sum over x of P(x | a) r_z(x),
#
# each row x of the family says log r_z(x) - log Z_z(a) for class z.

_LEAST = 1e-6
# No probability of a bin is smaller.


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """What explains most of an attribute: ``name`` is of the attribute above; ``shares`` (codes,) of its
    codes, ``laws`` (codes, bins) of the attribute given each, both with sum 1."""

    name: str
    shares: FloatArray
    laws: FloatArray


def reason_of(name: str, table: FloatArray, sigma: float) -> Reason:
    """From the noisy table (codes, bins) of families, with noise of deviation ``sigma``: codes that the noise
    nearly hides have the law of all."""
    counts = np.maximum(table, 0.0)
    overall = np.maximum(counts.sum(axis=0), _LEAST)
    overall = overall / overall.sum()
    prior = sigma * table.shape[1]
    laws = (counts + prior * overall) / (counts.sum(axis=1, keepdims=True) + prior)
    sums = np.maximum(counts.sum(axis=1), _LEAST)
    return Reason(name, sums / sums.sum(), laws / laws.sum(axis=1, keepdims=True))


def unexplained(table: FloatArray, first: str, second: str, reasons: Mapping[str, Reason]) -> FloatArray:
    """The noisy table of pairs over two attributes without what one attribute above explains of both."""
    left, right = reasons.get(first), reasons.get(second)
    if left is None or right is None or left.name != right.name:
        return table
    rows = left.laws - left.shares @ left.laws
    columns = right.laws - right.shares @ right.laws
    covariance = np.einsum("a,ax,ay->xy", (left.shares + right.shares) / 2, rows, columns)
    return np.asarray(table - max(float(table.sum()), 0.0) * covariance)


def given_reasons(
    classes: Classes, names: Sequence[str], reasons: Mapping[str, Reason]
) -> list[tuple[str, FloatArray]]:
    """For each attribute above that explains some of ``names``: 1 / Z_z(a) as float64[K, codes], above 0 and
    at most 1 (a factor that all classes have in common says nothing)."""
    inverses = dict[str, FloatArray]()
    for name, law in zip(names, classes.laws, strict=True):
        reason = reasons.get(name)
        if reason is not None:
            ratio = law / np.maximum(classes.shares @ law, _LEAST)
            inverse = 1 / np.maximum(ratio @ reason.laws.T, _LEAST)
            inverses[reason.name] = inverses.get(reason.name, 1.0) * inverse
    return [(name, inverse / inverse.max()) for name, inverse in inverses.items()]


# -- classes -----------------------------------------------------------------------------------------

# Classes of a family, by EM on noisy tables of pairs of its rows.
#
# A family has a class z that its rows share, and given z its rows, and a row's attributes, are independent.
# So the table of ordered pairs of distinct rows over attributes a and b is
#
#     T_ab = sum over z of pi_z P_a(. | z) P_b(. | z)',
#
# for a = b too (a latent class model, Lazarsfeld and Henry 1968; EM by Dempster, Laird and Rubin 1977). All
# tables together are one symmetric matrix over the bins of all attributes. Tables of pairs alone may leave
# several sets of classes possible, with the same tables. Everything here follows from noisy answers.

MOST_CLASSES = 12

_PENALTY = 1.0
# Of strangers a second class gains about as much once in thirty times. The test comes before.
_STARTS = 4
_ROUNDS = 400
_LEAST_OF_CLASSES = 1e-6
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

    @property
    def begins(self) -> IntArray:
        """Where the bins of each attribute begin."""
        return np.array([block.start for block in self.blocks], np.int64)


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
        for matrix, part in ((noisy, shares), (variance, spread), (cells, fitted)):
            matrix[blocks[b], blocks[a]] = part.T
            matrix[blocks[a], blocks[b]] = part
    return _Matrix(cells, noisy, variance, blocks, families)


def _margins(tables: Pairs, sizes: Sequence[int]) -> list[NDArray[np.float64]]:
    """The law of each attribute, from all its tables together."""
    sums = [np.zeros(size) for size in sizes]
    for (a, b), table in tables.items():
        sums[a] += table.sum(axis=1)
        sums[b] += table.sum(axis=0)
    return [simplex_projection(counts / max(float(counts.sum()), 1.0), 1.0) for counts in sums]


def _one_class(matrix: _Matrix) -> Point:
    laws = matrix.cells.sum(axis=1, keepdims=True) + _LEAST_OF_CLASSES
    return np.ones(1), proper_profiles(laws, matrix.begins)


def _several_classes(matrix: _Matrix, classes: int) -> Point:
    """The best of some starts."""
    starts = [_climbed(matrix, classes, np.random.default_rng((classes, start))) for start in range(_STARTS)]
    return min(starts, key=lambda fitted: _misfit(matrix, fitted))


def _climbed(matrix: _Matrix, classes: int, random: np.random.Generator) -> Point:
    """EM from laws near the mean."""
    _, mean = _one_class(matrix)
    laws = proper_profiles(mean * np.exp(random.normal(0, 0.7, (len(mean), classes))), matrix.begins)
    point = np.full(classes, 1 / classes), laws
    for _ in range(_ROUNDS):
        point = em_step(matrix.cells, matrix.begins, point, _LEAST_OF_CLASSES)
    return point


def _misfit(matrix: _Matrix, fitted: Point) -> float:
    """Chi-squared of the noisy tables: noise, and families drawn from the classes."""
    shares, laws = fitted
    model = (laws * shares) @ laws.T
    spread = matrix.variance + model / matrix.families
    upper = np.triu_indices(len(model))
    return float(((matrix.noisy - model) ** 2 / np.maximum(spread, 1e-300))[upper].sum())
