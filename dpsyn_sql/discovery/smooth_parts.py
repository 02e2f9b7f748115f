"""The smooth parts of a mixture: log-normal and normal distributions that end; public."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from dpsyn_sql.fit.arrays import FloatArray

REACH = 2.8
"""Widths from its centre at which a smooth part ends, if nothing else is said: no value is drawn from where
a noisy count says nothing."""

NEGATIVE_PART, BOTH_SIGNS = 8.0, 5.0
"""More, in squared deviations, for a part below zero, and for one on both sides."""

HUGE = 0.5
"""More for each octave beyond ``_EVERYDAY``."""

_EVERYDAY, _USUAL_WIDTH = 16.0, 0.5
_ASYMMETRY = 0.5  # prior precision of the logarithm of the ratio of widths


@dataclass(frozen=True, slots=True)
class Hump:
    """A log-normal part on the side of ``sign`` (1, -1): in log2, centre ``centre`` with deviation ``below``
    towards zero and ``above`` away from it, cut off at ``limit`` deviations."""

    sign: int
    centre: float
    below: float
    above: float
    limit: float = REACH

    def cdf(self, values: FloatArray) -> FloatArray:
        """Share of the part below each value."""
        positive = np.maximum(values * self.sign, 0.0)
        with np.errstate(divide="ignore"):
            away = np.log2(positive) - self.centre
        deviations = np.clip(
            np.where(away < 0, away / self.below, away / self.above), -self.limit, self.limit
        )
        lower = 2 * self.below / (self.below + self.above)
        ends = ndtr(-self.limit)
        normal = (ndtr(deviations) - ends) / (1 - 2 * ends)
        share = np.where(deviations < 0, lower * normal, lower / 2 + (2 - lower) * (normal - 0.5))
        return np.asarray(share if self.sign > 0 else 1 - share)

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of the part lie, ascending with them."""
        own = shares if self.sign > 0 else 1 - shares
        lower = 2 * self.below / (self.below + self.above)
        below = own < lower / 2
        normal = np.where(below, own / lower, 0.5 + (own - lower / 2) / (2 - lower))
        ends = ndtr(-self.limit)
        deviations = ndtri(ends + np.clip(normal, 0, 1) * (1 - 2 * ends))
        return np.asarray(
            self.sign * 2.0 ** (self.centre + np.where(below, self.below, self.above) * deviations)
        )

    @property
    def reach(self) -> tuple[float, float]:
        """Least and largest value."""
        near = self.sign * 2.0 ** (self.centre - self.limit * self.below)
        far = self.sign * 2.0 ** (self.centre + self.limit * self.above)
        return min(near, far), max(near, far)

    @property
    def cost(self) -> float:
        """Beyond that of any part: there are more places for a narrow one, and huge values are rare."""
        narrow = 2 * math.log(max(1.0, _USUAL_WIDTH / self.below))
        return narrow + HUGE * max(0.0, self.centre - _EVERYDAY) + (0.0 if self.sign > 0 else NEGATIVE_PART)

    @property
    def start(self) -> FloatArray:
        """The parameters that are refined."""
        return np.array([self.centre, math.log(self.below), math.log(self.above)])

    def moved(self, to: FloatArray) -> Hump:
        """The same with other parameters."""
        centre = float(np.clip(to[0], -12.0, 44.0))
        below, above = np.exp(np.clip(to[1:], -7.0, 1.3)).tolist()
        return replace(self, centre=centre, below=below, above=above)

    @staticmethod
    def prior(to: FloatArray, start: FloatArray) -> float:
        """Minus the logarithm of the prior of parameters: both widths are alike."""
        return float(_ASYMMETRY * (to[1] - to[2]) ** 2)


@dataclass(frozen=True, slots=True)
class Bell:
    """A normal part of values on both sides of zero, cut off at ``limit`` deviations."""

    mean: float
    deviation: float
    limit: float = REACH

    def cdf(self, values: FloatArray) -> FloatArray:
        """Share of the part below each value."""
        standard = np.clip((values - self.mean) / self.deviation, -self.limit, self.limit)
        ends = ndtr(-self.limit)
        return np.asarray((ndtr(standard) - ends) / (1 - 2 * ends))

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of the part lie."""
        ends = ndtr(-self.limit)
        return np.asarray(self.mean + self.deviation * ndtri(ends + shares * (1 - 2 * ends)))

    @property
    def reach(self) -> tuple[float, float]:
        """Least and largest value."""
        return self.mean - self.limit * self.deviation, self.mean + self.limit * self.deviation

    @property
    def cost(self) -> float:
        """Beyond that of any part."""
        return BOTH_SIGNS

    @property
    def start(self) -> FloatArray:
        """The parameters that are refined."""
        return np.array([self.mean, math.log(self.deviation)])

    def moved(self, to: FloatArray) -> Bell:
        """The same with other parameters; the mean stays within a deviation of the start."""
        deviation = float(np.exp(np.clip(to[1], -3.0, 14.0)))
        return Bell(float(to[0]), deviation)

    def prior(self, to: FloatArray, start: FloatArray) -> float:
        """Minus the logarithm of the prior of parameters: near where they started."""
        return float(0.02 * (((to[0] - start[0]) / self.deviation) ** 2 + (to[1] - start[1]) ** 2))


Part = Hump | Bell
