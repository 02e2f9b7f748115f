"""How far a released column can be believed: a parametric bootstrap of its one-way counts; public.

The estimated distribution of the column is taken for the truth. Its counts get the noise that its questions
had, again and again, and each time the column is made from them: no count is below zero, and all of them are
the rows in all (the nearest such table, as in ``nonnegativity="simplex"``). How often the result would be
believed is the chance that this release is (Efron and Tibshirani 1993, "An Introduction to the Bootstrap",
chapter 6). A column of numbers is believed if its mean and median are within a tenth and the 95th percentile
within 15 % (of themselves, or of a fifth of the standard deviation if that is more), and the standard
deviation within 25 %; any other column if at most 15 % of its rows have another value. NULL is within .03.

The bootstrap knows nothing of what discovery did not see. Where the range is learnt, ``stretch`` says what
rows beyond it would do: as many rows as noise hides in one cell, twice as far from the median as the last
value. They change the variance by ``2 x stretch`` of itself, and so the standard deviation by about
``stretch``. Where a tail is fitted beyond the found range, ``stretch`` is the part of the variance that
comes from codes whose rows noise hides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.denoise import shares_of
from dpsyn_sql.fit.tails import with_tails
from dpsyn_sql.report.losses import even_pieces

Shape = Literal["values", "indicator", "numbers", "smooth"]

DRAWS, _TAILS_DRAWN, _MOST_DRAWN = 100, 16, 400_000

MEAN, TAIL, SPREAD, MOVED, MISSING = 0.1, 0.15, 0.25, 0.15, 0.03
"""How far off the mean and the median, the 95th percentile, the standard deviation, the values of other
columns, and NULL may be."""

_MONTH = 365.25 / 12
_SEEN = 4.5  # deviations of noise


@dataclass(frozen=True, slots=True)
class Trust:
    """Of a column.

    ``shape``: numbers that are two values (``indicator``), single values (``numbers``) or ranges
    (``smooth``); all other columns are ``values``. ``chance``: that it is believed. ``worst``: the figure
    that fails most often, ``off`` how far off it may be in 9 of 10 releases: in parts of itself, or of the
    rows. ``times``: how many times what is allowed it may be off. ``shares``: the same of the largest error
    of a share. ``stretch``: what hidden rows would do.
    """

    shape: Shape
    chance: float
    worst: str
    off: float
    shares: float
    stretch: float = 0.0
    times: float = 0.0


def trust_of(
    attribute: Attribute, counts: FloatArray, sigma: float, total: float, hidden: float = 0.0
) -> Trust:
    """Judge a column by its noisy counts.

    Args:
        attribute: with its values, as rows are written.
        counts: float64[codes], noisy rows.
        sigma: standard error of a count (rows).
        total: noisy number of rows; below 1 counts as 1.
        hidden: rows that noise hides in one cell beyond the range; 0 if the range is stated.
    """
    rows, total = np.maximum(counts, 0.0), max(total, 1.0)
    truth = rows / max(float(rows.sum()), 1e-9) if rows.any() else np.full(rows.size, 1 / rows.size)
    if any(attribute.beyond):
        (truth,) = _made(attribute, counts[None, :] / total, sigma, total)
    draws = int(np.clip(_MOST_DRAWN // truth.size, 8, DRAWS if not any(attribute.beyond) else _TAILS_DRAWN))
    noise = np.random.default_rng(0).normal(0.0, max(sigma, 0.0) / total, (draws, truth.size))
    drawn = _made(attribute, truth + noise, sigma, total)
    error = np.abs(drawn - truth)
    null = np.zeros(draws) if attribute.null_code is None else error[:, attribute.null_code]
    believed, figures = null <= MISSING, [("share of NULL", null / MISSING, null)]
    if attribute.kind == "numeric":
        figures += _figures(attribute, truth, drawn)
    else:
        moved = error.sum(axis=1) / 2 + _lost(attribute, truth, total)
        figures.append(("values", moved / MOVED, moved))
    for _, relative, _ in figures:
        believed = believed & (relative <= 1)
    worst, relative, off = max(
        figures, key=lambda figure: (float(np.mean(figure[1] > 1)), float(np.mean(figure[1])))
    )
    shape, stretch = _shape(attribute, truth), 0.0
    if any(attribute.beyond):
        stretch = _unseen(attribute, truth, _SEEN * sigma / total)
    elif attribute.kind == "numeric" and shape != "indicator" and hidden > 0:
        stretch = _stretch(attribute, truth, hidden / total)
    largest, times = float(np.quantile(error.max(axis=1), 0.9)), float(np.quantile(relative, 0.9))
    return Trust(shape, float(believed.mean()), worst, float(np.quantile(off, 0.9)), largest, stretch, times)


def _made(attribute: Attribute, noisy: FloatArray, sigma: float, total: float) -> FloatArray:
    """Shares (draws, codes) as a release makes them of noisy ones; tails are fitted anew."""
    if not any(attribute.beyond):
        return _nearest_shares(noisy)
    errors = np.full(noisy.shape[1], sigma)
    tails = (with_tails(attribute, total * row, errors) for row in noisy)
    return np.array([shares_of(attribute, row, total) for row in tails])


def _nearest_shares(noisy: FloatArray) -> FloatArray:
    """Of each row the nearest numbers of 0 and more whose sum is 1."""
    falling = -np.sort(-noisy, axis=1)
    beyond = np.cumsum(falling, axis=1) - 1
    ranks = np.arange(1, noisy.shape[1] + 1)
    last = np.maximum((falling - beyond / ranks > 0).sum(axis=1), 1) - 1
    level = beyond[np.arange(len(noisy)), last] / (last + 1)
    return np.asarray(np.maximum(noisy - level[:, None], 0.0))


def _lost(attribute: Attribute, truth: FloatArray, total: float) -> float:
    """Part of the rows whose value is not written; of dates what sampling moves between months."""
    if attribute.other_code is not None:
        return float(truth[attribute.other_code])
    if attribute.kind != "temporal" or attribute.type.family == "time":
        return 0.0
    code, low, high, part = (np.array(values) for values in zip(*even_pieces(attribute), strict=True))
    months = (high - low) / (attribute.type.day * _MONTH)
    return float(np.sqrt(truth[code] * part * months).sum() / math.sqrt(2 * math.pi * total))


def _shape(attribute: Attribute, truth: FloatArray) -> Shape:
    if attribute.kind != "numeric":
        return "values"
    if not attribute.fill or any(cuts[0] != cuts[-1] for cuts in attribute.fill):
        return "smooth"
    return "indicator" if np.count_nonzero(truth[: attribute.regular]) <= 2 else "numbers"


@dataclass(frozen=True, slots=True)
class _Moments:
    """Float64[distributions] each: mean, standard deviation, median, 95th percentile."""

    mean: FloatArray
    deviation: FloatArray
    median: FloatArray
    far: FloatArray


def _figures(
    attribute: Attribute, truth: FloatArray, draws: FloatArray
) -> list[tuple[str, FloatArray, FloatArray]]:
    """Of each figure its name, its errors in what is allowed, and in parts of itself."""
    right, drawn = _moments(attribute, truth[None, :]), _moments(attribute, draws)
    deviation = float(right.deviation[0])
    least = max(deviation / 5, 1e-12)
    errors = [
        ("mean", right.mean, drawn.mean, least, MEAN),
        ("median", right.median, drawn.median, least, MEAN),
        ("95th percentile", right.far, drawn.far, least, TAIL),
        ("standard deviation", right.deviation, drawn.deviation, 1e-12, SPREAD),
    ]
    figures = []
    for name, exact, several, smallest, most in errors:
        off = np.abs(several - exact[0]) / max(abs(float(exact[0])), smallest)
        figures.append((name, off / most, off))
    return figures


def _moments(attribute: Attribute, shares: FloatArray) -> _Moments:
    code, low, last, mass = _spread(attribute, shares)
    mass = mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
    middle = (low + last) / 2
    mean = mass @ middle
    variance = mass @ (middle**2 + (last - low) ** 2 / 12) - mean**2
    reached = np.cumsum(mass, axis=1)

    def quantile(wanted: float) -> FloatArray:
        piece = np.minimum((reached < wanted - 1e-9).sum(axis=1), code.size - 1)
        row = np.arange(len(mass))
        share = np.maximum(mass[row, piece], 1e-12)
        inside = np.clip(1 - (reached[row, piece] - wanted) / share, 0.0, 1.0)
        return np.asarray(low[piece] + inside * (last - low)[piece])

    return _Moments(mean, np.sqrt(np.maximum(variance, 0.0)), quantile(0.5), quantile(0.95))


def _spread(
    attribute: Attribute, shares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Of each piece its code, first and last value (in parts of the largest), and of each distribution its
    share."""
    code, low, high, part = (np.array(values) for values in zip(*even_pieces(attribute), strict=True))
    step = float(attribute.type.discrete)
    if isinstance(attribute.granularity, int | float) or hasattr(attribute.granularity, "quantize"):
        step = float(attribute.granularity)  # type: ignore[arg-type]
    last = np.maximum(low, high - step)
    scale = max(float(np.abs(low).max()), float(np.abs(last).max())) or 1.0  # squares of doubles overflow
    return code, low / scale, last / scale, shares[:, code] * part


def _stretch(attribute: Attribute, truth: FloatArray, hidden: float) -> float:
    moments = _moments(attribute, truth[None, :])
    _, low, last, mass = _spread(attribute, truth[None, :])
    occupied = mass[0] > 0
    deviation, median = float(moments.deviation[0]), float(moments.median[0])
    if not occupied.any() or deviation <= 0:
        return 0.0
    reach = max(float(last[occupied].max()) - median, median - float(low[occupied].min())) / deviation
    return 2 * hidden * reach**2


def _unseen(attribute: Attribute, truth: FloatArray, least: float) -> float:
    """The part of the variance that comes from codes with fewer rows (a share) than are seen: there the
    tail is an estimate."""
    mean = float(_moments(attribute, truth[None, :]).mean[0])
    code, low, last, mass = _spread(attribute, truth[None, :])
    squares = mass[0] * (((low + last) / 2 - mean) ** 2 + (last - low) ** 2 / 12)
    unseen = (truth < least)[code]
    return float(squares[unseen].sum() / max(float(squares.sum()), 1e-300))
