"""Gaussian copulas from noisy moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri, owens_t

from dpsyn_sql.fit.arrays import FloatArray, IntArray

# -- moments -----------------------------------------------------------------------------------------

# Moments of rows in order: where the first lies so that all lie where rows do. Post-processing.
#
# A row's moment is that of the row before and the time since. Rows of a unit of n rows are then spread like A
# s, with s the moments of first rows and A the mean of the first n powers of one step. s is found by
# expectation maximisation (Richardson 1972, Lucy 1974), which keeps shares above zero.

_POINTS = 8
# Moments of a bin, and times of a bin, whose sums say which bin comes next.

_ROUNDS = 30
# Of expectation maximisation: few, so that noise is not followed.


@dataclass(frozen=True, slots=True)
class Ahead:
    """Lines of which bin comes next: ``before`` (the bin of the row before), ``since`` (the bin of the time),
    ``after``, all int64 (n,), and ``shares`` (n,); sorted."""

    before: IntArray
    since: IntArray
    after: IntArray
    shares: FloatArray


def ahead(edges: FloatArray, spans: FloatArray) -> Ahead:
    """A moment anywhere in its bin (``edges``, bins + 1) and a time anywhere in its own (``spans``).

    What would lie after the last bin is left out; if nothing else is left, the last bin comes next.
    """
    fractions = (np.arange(_POINTS) + 0.5) / _POINTS
    moments = edges[:-1, None] + np.diff(edges)[:, None] * fractions
    times = (spans[:-1, None] + np.diff(spans)[:, None] * fractions)[:, None, :]
    bins, triples = edges.size - 1, list[tuple[IntArray, ...]]()
    shares = list[FloatArray]()
    for before in range(bins):
        sums = (moments[before][None, :, None] + times).reshape(len(times), -1)
        after = np.searchsorted(edges, sums, side="right") - 1
        counts = np.stack(
            [np.bincount(bins_after, minlength=bins + 1)[:bins] for bins_after in after]
        ).astype(np.float64)
        counts[counts.sum(axis=1) == 0, bins - 1] = 1.0
        counts /= counts.sum(axis=1, keepdims=True)
        since, next_ = np.nonzero(counts)
        triples.append((np.full(since.size, before), since, next_))
        shares.append(counts[since, next_])
    earlier, gaps, later = (np.concatenate(column) for column in zip(*triples, strict=True))
    return Ahead(earlier, gaps, later, np.concatenate(shares))


def first_moments(lines: Ahead, times: FloatArray, rows: int, all_rows: FloatArray) -> FloatArray:
    """Shares of the bins of first rows so that rows of units of ``rows`` rows are spread like ``all_rows``.

    ``times``: shares of the bins of the time since the row before.
    """
    wanted = all_rows / all_rows.sum()
    if rows < 2:
        return np.asarray(wanted)
    weights = lines.shares * times[lines.since]
    step = csr_array((weights, (lines.before, lines.after)), shape=(wanted.size, wanted.size))
    forward, shares = step.T.tocsr(), wanted + 1e-12
    for _ in range(_ROUNDS):
        ratio = wanted / np.maximum(_mean(forward, shares, rows), 1e-300)
        shares = shares * _mean(step, ratio, rows)
        shares /= shares.sum()
    return np.asarray(shares)


def _mean(step: csr_array, start: FloatArray, rows: int) -> FloatArray:
    """The mean of a vector after 0 to ``rows`` - 1 steps."""
    now, summed = start, start.copy()
    for _ in range(rows - 1):
        now = step @ now
        summed += now
    return np.asarray(summed / rows)


# -- copulas -----------------------------------------------------------------------------------------

# Correlated normals: bivariate probabilities and their inverse in the correlation, for whole arrays at once;
# the nearest correlation matrix, and a floor under its eigenvalues.
#
# *Kendall's tau* from tables, and the latent correlation of discretised normals that has it. DPCopula (Li,
# Xiong, Jiang 2014) turns tau into sin(pi/2 tau), which holds for continuous columns. A table of codes has
# ties: two binary columns of latent correlation r have less concordance than two continuous ones. So the
# correlation is the one at which two normals, cut into the codes by their margins, have the concordance of
# the table. Concordance rises with the correlation, whatever the margins are.

LARGEST_CORRELATION = 0.9999
"""Latent correlations are kept inside this bound: at 1 the density has no derivative, and no
margin of a real table is known well enough to tell the two apart."""

SMALLEST_EIGENVALUE = 1e-4
_MATRIX_TOLERANCE, _MATRIX_ROUNDS = 1e-3, 20
# Of correlation matrices that are fitted.

_NEWTON_STEPS = 60
_NEWTON_TOLERANCE = 1e-9


def bivariate_normal_cdf(h: FloatArray, k: FloatArray, r: FloatArray) -> FloatArray:
    """P(X <= h, Y <= k) for standard normals of correlation r; the arrays broadcast.

    Owen 1956, equation 2.1: (Phi(h) + Phi(k))/2 - T(h, a) - T(k, b) - (1/2 if h and k differ in
    sign), with a = (k - r h)/(h s), b = (h - r k)/(k s), s = sqrt(1 - r^2).
    """
    h, k, r = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (h, k, r)))
    # Owen's formula divides by h and k; the smallest positive number is the same probability.
    tiny = np.finfo(np.float64).tiny
    h, k = np.where(h == 0.0, tiny, h), np.where(k == 0.0, tiny, k)
    s = np.sqrt((1.0 - r) * (1.0 + r))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inner = owens_t(h, (k / h - r) / s) + owens_t(k, (h / k - r) / s)
    value = 0.5 * (ndtr(h) + ndtr(k)) - inner - np.where((h < 0.0) != (k < 0.0), 0.5, 0.0)
    value = np.where(r >= 1.0, ndtr(np.minimum(h, k)), value)
    value = np.where(r <= -1.0, np.maximum(ndtr(h) - ndtr(-k), 0.0), value)
    # Infinite thresholds: an event that is certain or impossible whatever the correlation.
    value = np.where(h == np.inf, ndtr(k), np.where(k == np.inf, ndtr(h), value))
    return np.clip(np.where((h == -np.inf) | (k == -np.inf), 0.0, value), 0.0, 1.0)


def bivariate_normal_density(h: FloatArray, k: FloatArray, r: FloatArray) -> FloatArray:
    """Density at (h, k), which is also d P(X <= h, Y <= k) / d r (Plackett 1954). |r| < 1."""
    complement = (1.0 - r) * (1.0 + r)
    exponent = -(h * h - 2.0 * r * h * k + k * k) / (2.0 * complement)
    return np.asarray(np.exp(exponent) / (2.0 * np.pi * np.sqrt(complement)))


def latent_correlation(first: FloatArray, second: FloatArray, joint: FloatArray) -> FloatArray:
    """The correlation r at which two normals exceed their thresholds together as often as wanted.

    ``first`` and ``second`` are P(A), P(B); ``joint`` is P(A and B); arrays of one shape. Solves
    equation 8 of the Gaussian-copula release by Newton's method inside a shrinking bracket: a step
    that leaves the bracket is replaced by bisection. A joint probability at or beyond its bounds
    gives -/+ ``LARGEST_CORRELATION``; a margin of 0 or 1 tells nothing and gives 0.
    """
    first, second, joint = np.broadcast_arrays(first, second, joint)
    result = np.zeros(joint.shape)
    informative = (first > 0) & (first < 1) & (second > 0) & (second < 1)
    # Equal probabilities to rounding: nothing to solve (most pairs, once noise is taken away).
    informative &= np.abs(joint - first * second) > 1e-15
    result[informative] = _solve(ndtri(first[informative]), ndtri(second[informative]), joint[informative])
    return result


def _solve(h: FloatArray, k: FloatArray, joint: FloatArray) -> FloatArray:
    def miss_and_slope(index: IntArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        miss = bivariate_normal_cdf(h[index], k[index], r) - joint[index]
        return miss, bivariate_normal_density(h[index], k[index], r)

    return _root(miss_and_slope, np.zeros(h.shape), _NEWTON_TOLERANCE)


def _root(
    miss_and_slope: Callable[[IntArray, FloatArray], tuple[FloatArray, FloatArray]],
    start: FloatArray,
    tolerance: float,
) -> FloatArray:
    """Correlations (n,) at which rising functions are 0, by Newton's method inside a shrinking bracket.

    A step that leaves the bracket is replaced by bisection.

    ``miss_and_slope`` of places and correlations there: values and derivatives.
    """
    low, high = (np.full(start.shape, sign * LARGEST_CORRELATION) for sign in (-1.0, 1.0))
    r, open_ = start, np.arange(start.size)
    for _ in range(_NEWTON_STEPS):
        now = r[open_]
        miss, slope = miss_and_slope(open_, now)
        low[open_] = np.where(miss < 0, now, low[open_])
        high[open_] = np.where(miss > 0, now, high[open_])
        with np.errstate(over="ignore"):
            step = now - miss / np.maximum(slope, 1e-300)
        inside = (step > low[open_]) & (step < high[open_])
        moved = np.where(inside, step, 0.5 * (low[open_] + high[open_]))
        r[open_] = np.where(miss == 0.0, now, moved)
        open_ = open_[(np.abs(moved - now) >= tolerance) & (miss != 0.0)]
        if open_.size == 0:
            break
    return r


_FARTHEST = 9.0
# A normal lies beyond it with a probability of 1e-19.

_TOLERANCE = 1e-7

_CELLS = 2**20
# Cells of tables that are solved for at a time.


def concordance(joint: FloatArray) -> FloatArray:
    """P(concordant) - P(discordant) of two independent draws: Kendall's tau-a without its n/(n - 1).

    ``joint`` (..., a, b) sums to 1; cells may be negative.
    """
    return np.asarray((joint * _balance(joint)).sum(axis=(-2, -1)))


def _balance(joint: FloatArray) -> FloatArray:
    """Of each cell the probability of being concordant with a draw, less that of being discordant."""
    rows, columns = joint.shape[-2:]
    return np.asarray(_signs(rows) @ joint @ _signs(columns).T)


def _signs(size: int) -> FloatArray:
    codes = np.arange(size)
    return np.asarray(np.sign(codes[:, None] - codes), dtype=np.float64)


def untied(first: FloatArray, second: FloatArray) -> FloatArray:
    """What divides a concordance to give tau-b: the root of the probabilities that two draws differ."""
    differ = [1.0 - (margin**2).sum(axis=-1) for margin in (first, second)]
    return np.asarray(np.sqrt(np.maximum(differ[0] * differ[1], 0.0)))


def concordance_variance(joint: FloatArray, sigma: FloatArray) -> FloatArray:
    """Variance of ``concordance`` from independent noise in every cell, if margins are known without it.

    Args:
        joint: (..., a, b), doubly centred around its margins.
        sigma: (...), deviation of a cell as a probability.

    The concordance is a quadratic form: 2 <balance, noise> plus the concordance of the noise itself, whose
    mean is 0 (a cell is neither concordant nor discordant with itself, and centring keeps that).
    """
    balance = _centred(_balance(joint))
    squares = [(_centred(_signs(size)) ** 2).sum() for size in joint.shape[-2:]]
    linear = 4.0 * sigma**2 * (balance**2).sum(axis=(-2, -1))
    return np.asarray(linear + 2.0 * sigma**4 * squares[0] * squares[1])


def _centred(table: FloatArray) -> FloatArray:
    rows, columns = table.mean(axis=-1, keepdims=True), table.mean(axis=-2, keepdims=True)
    return np.asarray(table - rows - columns + rows.mean(axis=-2, keepdims=True))


def discretised(first: FloatArray, second: FloatArray, correlation: FloatArray) -> FloatArray:
    """Joint probabilities (n, a, b) of two normals cut into codes by margins (n, a) and (n, b)."""
    h, k = _thresholds(first)[:, :, None], _thresholds(second)[:, None, :]
    upper = np.zeros((len(first), first.shape[1] + 1, second.shape[1] + 1))
    upper[:, 1:-1, 1:-1] = bivariate_normal_cdf(h, k, correlation[:, None, None])
    upper[:, 1:, -1] = np.cumsum(first, axis=1)
    upper[:, -1, 1:] = np.cumsum(second, axis=1)
    return np.asarray(np.maximum(np.diff(np.diff(upper, axis=1), axis=2), 0.0))


def _slopes(first: FloatArray, second: FloatArray, correlation: FloatArray) -> FloatArray:
    """Derivative of ``discretised`` in the correlation."""
    h, k = _thresholds(first)[:, :, None], _thresholds(second)[:, None, :]
    upper = np.zeros((len(first), first.shape[1] + 1, second.shape[1] + 1))
    upper[:, 1:-1, 1:-1] = bivariate_normal_density(h, k, correlation[:, None, None])
    return np.asarray(np.diff(np.diff(upper, axis=1), axis=2))


def _thresholds(margin: FloatArray) -> FloatArray:
    below = np.cumsum(margin, axis=1)[:, :-1]
    return np.asarray(np.clip(ndtri(np.clip(below, 0.0, 1.0)), -_FARTHEST, _FARTHEST))


def correlation_of(first: FloatArray, second: FloatArray, wanted: FloatArray) -> FloatArray:
    """The latent correlation (n,) at which ``discretised`` has the concordance ``wanted`` (n,).

    Margins (n, a) and (n, b). What no correlation reaches gives -/+ ``LARGEST_CORRELATION``; a margin with
    one code of probability 1 gives 0.
    """
    correlations = np.zeros(len(wanted))
    open_ = np.flatnonzero((untied(first, second) > 1e-12) & (wanted != 0.0))
    step = max(1, _CELLS // max(1, first.shape[1] * second.shape[1]))
    for start in range(0, open_.size, step):
        part = open_[start : start + step]
        correlations[part] = _solved(first[part], second[part], wanted[part])
    return correlations


def _solved(first: FloatArray, second: FloatArray, wanted: FloatArray) -> FloatArray:
    def miss_and_slope(index: IntArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        p, q = first[index], second[index]
        joint = discretised(p, q, r)
        balance = _balance(joint)
        miss = (joint * balance).sum(axis=(1, 2)) - wanted[index]
        return miss, 2.0 * (_slopes(p, q, r) * balance).sum(axis=(1, 2))

    tau = np.clip(wanted / untied(first, second), -1.0, 1.0)
    most = 0.9 * LARGEST_CORRELATION
    start = np.clip(np.sin(0.5 * np.pi * tau), -most, most)  # the paper's formula
    return _root(miss_and_slope, start, _TOLERANCE)


def nearest_correlation(
    matrix: FloatArray,
    *,
    tolerance: float = 1e-8,
    rounds: int = 200,
) -> FloatArray:
    """Nearest correlation matrix in the Frobenius norm: alternating projections.

    Higham 2002, algorithm 3.3 with Dykstra's correction: onto the positive semidefinite matrices,
    then onto those of unit diagonal. The iterate of unit diagonal is returned; its smallest
    eigenvalue may be negative by about ``tolerance``.

    Args:
        matrix: (k, k), symmetric.
        tolerance: relative change of the iterate at which to stop.
        rounds: at most this many.
    """
    current = np.array(matrix, dtype=np.float64)
    np.fill_diagonal(current, 1.0)
    correction = np.zeros_like(current)
    for _ in range(rounds):
        corrected = current - correction
        definite = _positive_part(corrected)
        correction = definite - corrected
        previous, current = current, definite
        np.fill_diagonal(current, 1.0)
        if np.linalg.norm(current - previous) <= tolerance * np.linalg.norm(current):
            break
    return current


def _positive_part(matrix: FloatArray) -> FloatArray:
    """Projection onto the positive semidefinite matrices, from the smaller half of the spectrum."""
    values, vectors = np.linalg.eigh(matrix)
    negative = values < 0
    if not negative.any():
        return matrix.copy()
    if 2 * negative.sum() <= values.size:
        part = vectors[:, negative]
        result = matrix - (part * values[negative]) @ part.T
    else:
        part = vectors[:, ~negative]
        result = (part * values[~negative]) @ part.T
    return np.asarray(0.5 * (result + result.T))


def correlation_matrix(wanted: FloatArray) -> FloatArray:
    """A matrix near the wanted correlations (k, k) that has a Cholesky factor: the nearest one, floored."""
    nearest = nearest_correlation(wanted, tolerance=_MATRIX_TOLERANCE, rounds=_MATRIX_ROUNDS)
    return floored(nearest, SMALLEST_EIGENVALUE)


def floored(matrix: FloatArray, smallest: float) -> FloatArray:
    """Raise eigenvalues to at least ``smallest`` and scale back to a unit diagonal."""
    values, vectors = np.linalg.eigh(matrix)
    lifted = (vectors * np.maximum(values, smallest)) @ vectors.T
    scale = np.sqrt(np.diag(lifted))
    result = lifted / np.outer(scale, scale)
    np.fill_diagonal(result, 1.0)
    return np.asarray(0.5 * (result + result.T))
