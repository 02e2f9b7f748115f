"""Kendall's tau from tables, and the latent correlation of discretised normals that has it.

DPCopula (Li, Xiong, Jiang 2014) turns tau into sin(pi/2 tau), which holds for continuous columns. A table of
codes has ties: two binary columns of latent correlation r have less concordance than two continuous ones.
So the correlation is the one at which two normals, cut into the codes by their margins, have the
concordance of the table. Concordance rises with the correlation, whatever the margins are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpsyn_sql.fit.gaussian import LARGEST_CORRELATION, bivariate_normal_cdf, bivariate_normal_density

FloatArray = NDArray[np.float64]

_FARTHEST = 9.0
# A normal lies beyond it with a probability of 1e-19.

_STEPS, _TOLERANCE = 60, 1e-7

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
    found = np.zeros(len(wanted))
    open_ = np.flatnonzero((untied(first, second) > 1e-12) & (wanted != 0.0))
    step = max(1, _CELLS // max(1, first.shape[1] * second.shape[1]))
    for start in range(0, open_.size, step):
        part = open_[start : start + step]
        found[part] = _solved(first[part], second[part], wanted[part])
    return found


def _solved(first: FloatArray, second: FloatArray, wanted: FloatArray) -> FloatArray:
    """Newton's method inside a shrinking bracket: a step that leaves it is replaced by bisection."""
    low, high = (np.full(wanted.shape, sign * LARGEST_CORRELATION) for sign in (-1.0, 1.0))
    tau = np.clip(wanted / untied(first, second), -1.0, 1.0)
    r = np.clip(np.sin(0.5 * np.pi * tau), 0.9 * low, 0.9 * high)  # the paper's formula as the start
    open_ = np.arange(wanted.size)
    for _ in range(_STEPS):
        p, q, now = first[open_], second[open_], r[open_]
        joint = discretised(p, q, now)
        balance = _balance(joint)
        miss = (joint * balance).sum(axis=(1, 2)) - wanted[open_]
        slope = np.maximum(2.0 * (_slopes(p, q, now) * balance).sum(axis=(1, 2)), 1e-300)
        low[open_] = np.where(miss < 0, now, low[open_])
        high[open_] = np.where(miss > 0, now, high[open_])
        with np.errstate(over="ignore"):
            step = now - miss / slope
        inside = (step > low[open_]) & (step < high[open_])
        moved = np.where(inside, step, 0.5 * (low[open_] + high[open_]))
        r[open_] = moved
        open_ = open_[(np.abs(moved - now) >= _TOLERANCE) & (miss != 0.0)]
        if open_.size == 0:
            break
    return r
