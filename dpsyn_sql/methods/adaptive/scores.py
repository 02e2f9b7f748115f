"""Noisy distances of tables as evidence: which are luck, and what the tables can be expected to hold.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.fit.dispersion import Distance
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.reproducible import snapped

FloatArray = NDArray[np.float64]

_SURE = 2.0
"""Standard errors that mean and spread are lowered by, so that pairs of pure luck are not measured
(docs/results_details.md)."""

_STEP = 0.25
_GRID = np.arange(-6.0, 12.0 + _STEP, _STEP)
_EM_STEPS = 200
# Standard deviations of noise around the median score. A larger score stands for itself.


@dataclass(frozen=True, slots=True)
class Scores:
    """Rows by which the model is off for each table, less what sampling explains.

    ``rows`` may be negative. The noise of all has the same ``deviation`` (rows), Laplace
    under pure differential privacy, else Gaussian. ``distances``: those of pairs, of which the scores are
    made.
    """

    rows: Mapping[Scope, float]
    deviation: float
    kind: Kind
    distances: Mapping[Scope, Distance] = field(default_factory=dict)

    def beyond_luck(self, tolerated: float) -> dict[Scope, float]:
        """Scores less the expected luck of the largest of so many noises beyond ``tolerated`` deviations."""
        number = math.log(len(self.rows))
        highest = number / math.sqrt(2) if self.kind == "pure" else math.sqrt(2 * number)
        curse = self.deviation * max(0.0, highest - tolerated)
        return _whole({pair: score - curse for pair, score in self.rows.items()})

    def expected(self, pairs: Collection[Scope]) -> dict[Scope, float]:
        """A low estimate of what the chosen tables hold (rows, none negative).

        The largest of many noisy scores are too large on average. The James-Stein estimate (Efron and Morris
        1973) draws each score to the mean of all; it draws more if they differ little beyond their noise.
        Mean and spread are lowered by two standard errors: doubtful dependence does not count.
        """
        number = len(self.rows)
        mean = math.fsum(self.rows.values()) / number
        squares = math.fsum((score - mean) ** 2 for score in self.rows.values())
        noise = max(0, number - 3) * self.deviation**2 * (1 + _SURE * math.sqrt(2 / number))
        kept = 1.0 - noise / max(squares, noise) if noise else 1.0
        sure = mean - _SURE * self.deviation / math.sqrt(number)
        return {pair: max(0.0, sure + kept * (self.rows[pair] - mean)) for pair in pairs}

    def likely(self) -> dict[Scope, float]:
        """Of very many tables what each is likely to hold (whole rows; may be negative).

        Of 100,000 pairs perhaps one in a hundred depends, which the mean and the spread of all scores hide.
        The distribution of true distances is learnt from all scores without a form (Kiefer and Wolfowitz
        1956), and each score has its posterior mean. Few scores tell too little of the distribution.
        """
        rows = np.array(list(self.rows.values()))
        middle, unit = float(np.median(rows)), max(self.deviation, 1e-6)
        apart = (rows - middle) / unit
        cells = np.rint((np.clip(apart, _GRID[0], _GRID[-1]) - _GRID[0]) / _STEP).astype(np.int64)
        means = _posterior_means(np.bincount(cells, minlength=len(_GRID)), self.kind)
        found = np.where(apart < _GRID[-1], middle + unit * means[cells], rows)
        return _whole(dict(zip(self.rows, found.tolist(), strict=True)))

    def pooled(self, later: Scores) -> Scores:
        """Inverse-variance means of two measurements of the same pairs; for other pairs the later one."""
        if self.rows.keys() != later.rows.keys():
            return later
        first, second = self.deviation**-2, later.deviation**-2
        weight = first / (first + second)
        rows = {pair: weight * self.rows[pair] + (1 - weight) * score for pair, score in later.rows.items()}
        distances = {
            pair: replace(one, rows=weight * self.distances[pair].rows + (1 - weight) * one.rows)
            for pair, one in later.distances.items()
        }
        return Scores(_whole(rows), (first + second) ** -0.5, later.kind, distances)


def _posterior_means(counts: NDArray[np.int64], kind: Kind) -> FloatArray:
    """Posterior means (g,) at the points of the grid, where ``counts`` (g,) noisy values lie."""
    apart = np.abs(_GRID[:, None] - _GRID)
    likelihood = np.exp(-math.sqrt(2) * apart if kind == "pure" else -0.5 * apart**2)
    prior = np.full(len(_GRID), 1 / len(_GRID))
    for _ in range(_EM_STEPS):
        posterior = likelihood * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = counts @ posterior / counts.sum()
    posterior = likelihood * prior
    return np.asarray((posterior @ _GRID) / posterior.sum(axis=1))


def _whole(rows: Mapping[Scope, float]) -> dict[Scope, float]:
    """Whole rows, as the order of the scores is the order of the next questions (``reproducible.py``)."""
    return dict(zip(rows, snapped(np.array(list(rows.values())), 1.0).tolist(), strict=True))
