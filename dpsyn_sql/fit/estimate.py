"""Parameters of a graphical model from noisy tables: penalised maximum likelihood.

The noisy tables y_c (rows) stand in for sufficient statistics. With N rows in all, the potentials
theta minimise

    N log Z(theta) - sum_c <theta_c, y_c> + sum_c (sigma_c / 2) |theta_c|^2

whose gradient is N mu_c - y_c + sigma_c theta_c, mu_c the model's marginal: expected against observed counts
(Koller and Friedman 2009, 20.3), with a Gaussian prior on the potentials (20.4.1). The prior is the
denoiser: a table is followed as far as it stands out of its own noise. One calibration a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dpsyn_sql.fit.belief import Beliefs, calibrate, marginals, room
from dpsyn_sql.fit.graph import JunctionTree, Scope
from dpsyn_sql.fit.precondition import Coordinates

FloatArray = NDArray[np.float64]
Potentials = dict[Scope, FloatArray]

_MEMORY = 12
# Pairs of steps L-BFGS remembers: 8 to 20 take about the same time.


@dataclass(frozen=True, slots=True)
class Observation:
    """A noisy table: ``values`` (rows) and the standard deviation of its cells, one or one a cell.

    ``filled``: only its residual was measured, and its margins are those of a model: they tell nothing new.
    ``sigma`` is then that of the noise before its projection: every direction of the residual keeps it.
    """

    values: FloatArray
    sigma: FloatArray
    filled: bool = False

    @property
    def variance_of_total(self) -> float:
        """Variance of the sum of the cells."""
        return float(np.sum(np.broadcast_to(self.sigma, self.values.shape) ** 2))

    @property
    def sum_of_sigma(self) -> float:
        """Sum of the standard deviations of the cells (rows)."""
        return math.fsum(np.broadcast_to(self.sigma, self.values.shape).ravel())


def pooled(first: Observation, second: Observation) -> Observation:
    """Inverse-variance mean of two measurements of one table."""
    a, b = first.sigma**-2, second.sigma**-2
    values = (a * first.values + b * second.values) / (a + b)
    return Observation(values, (a + b) ** -0.5, first.filled and second.filled)


def total_of(observations: Sequence[Observation]) -> float:
    """Inverse-variance mean of the totals of independent tables (rows, may be negative); filled ones know
    none."""
    observations = [table for table in observations if not table.filled]
    weights = [1.0 / max(table.variance_of_total, 1e-12) for table in observations]
    totals = [math.fsum(table.values.ravel()) for table in observations]
    return math.fsum(w * x for w, x in zip(weights, totals, strict=True)) / math.fsum(weights)


class Likelihood:
    """The penalised objective over the flat vector of all potentials, in units of one row.

    Args:
        tree: holds every scope of ``observed`` and ``base``.
        observed: noisy tables by scope.
        total: N.
        base: fixed potentials that are added, such as one-way logarithms and structural zeros.
    """

    def __init__(
        self,
        tree: JunctionTree,
        observed: Mapping[Scope, Observation],
        total: float,
        base: Mapping[Scope, FloatArray],
        centres: Mapping[Scope, FloatArray] = MappingProxyType({}),
    ) -> None:
        self._tree, self._total, self._base = tree, total, base
        self._scopes = list(observed)
        self._shapes = [observed[scope].values.shape for scope in self._scopes]
        self._ends = np.cumsum([observed[scope].values.size for scope in self._scopes])[:-1]
        self._values = np.concatenate([observed[scope].values.ravel() for scope in self._scopes])
        self._sigma = np.concatenate(
            [np.broadcast_to(observed[s].sigma, observed[s].values.shape).ravel() for s in self._scopes]
        )
        self._starts = np.array([0, *self._ends])
        self._noise = np.add.reduceat(self._sigma, self._starts)
        self._room = room(tree)
        self._centre = self.flat(centres)

    def coordinates(self) -> Coordinates:
        """In which to look for the optimum."""
        return Coordinates(self._scopes, self._shapes, self._values, self._sigma, self._total)

    def misfit(self, gradient: FloatArray) -> float:
        """The L1 norm of the gradient of a table in rows (0 at the optimum), relative to that of its noise,
        for the table where it is largest."""
        missed = np.add.reduceat(np.abs(gradient), self._starts) * self._total
        return float((missed / self._noise).max())

    def flat(self, potentials: Mapping[Scope, FloatArray]) -> FloatArray:
        """The vector of ``potentials``; zeros for those that are not there yet."""
        parts = [
            potentials[scope].ravel() if scope in potentials else np.zeros(int(np.prod(shape)))
            for scope, shape in zip(self._scopes, self._shapes, strict=True)
        ]
        return np.concatenate(parts)

    def potentials(self, flat: FloatArray) -> Potentials:
        """The inverse of ``flat``."""
        parts = np.split(flat, self._ends)
        return {s: x.reshape(shape) for s, x, shape in zip(self._scopes, parts, self._shapes, strict=True)}

    def beliefs(self, flat: FloatArray, tables: Sequence[FloatArray] = ()) -> Beliefs:
        """The model of a vector of potentials; ``tables``: as for ``calibrate``."""
        own = self.potentials(flat)
        fixed = {scope: table for scope, table in self._base.items() if scope not in own}
        return calibrate(
            self._tree,
            fixed | {scope: x + self._base.get(scope, 0.0) for scope, x in own.items()},
            tables,
        )

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Objective and gradient, both divided by N."""
        beliefs = self.beliefs(flat, self._room)
        expected = marginals(beliefs, self._scopes)
        counts = self._total * np.concatenate([expected[scope].ravel() for scope in self._scopes])
        apart = flat - self._centre
        penalty = self._sigma * apart
        value = self._total * beliefs.log_partition - flat @ self._values + penalty @ apart / 2
        return float(value) / self._total, (counts - self._values + penalty) / self._total


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted potentials, their model, and the misfit that is left (infinite if nothing could be fitted)."""

    potentials: Potentials
    beliefs: Beliefs
    misfit: float


def fit_potentials(
    likelihood: Likelihood,
    start: Mapping[Scope, FloatArray],
    iterations: int,
    tolerance: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
    advance: Callable[[int], None] = lambda steps: None,
) -> Fit:
    """L-BFGS from ``start`` (empty, or an earlier fit).

    It ends after ``iterations`` steps, or as soon as the misfit is at most ``tolerance``: a misfit far below
    the noise of every table cannot be improved meaningfully. After each step ``advance`` is called, and
    ``stop`` can end the fit.

    Tables so contradictory that no model in float64 fits them leave the start as it was.
    """
    coordinates, misfit = likelihood.coordinates(), np.inf

    def at(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal misfit
        value, gradient = likelihood(coordinates.flat(point))
        misfit = likelihood.misfit(gradient)
        return value, coordinates.gradient(gradient)

    def after_a_step(intermediate_result: object) -> None:
        advance(1)
        if misfit <= tolerance or stop():  # a line search ends with the point that is the next step
            raise StopIteration

    found = minimize(
        at,
        coordinates.point(likelihood.flat(start)),
        jac=True,
        method="L-BFGS-B",
        callback=after_a_step,
        options={
            "maxiter": iterations,
            "maxfun": 2 * iterations,
            "maxcor": _MEMORY,
            "ftol": 1e-12,  # the misfit decides
            "gtol": 1e-12,
        },
    )
    flat = coordinates.flat(found.x)
    beliefs = likelihood.beliefs(flat)
    if beliefs.proper:
        return Fit(likelihood.potentials(flat), beliefs, likelihood.misfit(coordinates.of_cells(found.jac)))
    flat = likelihood.flat(start)
    return Fit(likelihood.potentials(flat), likelihood.beliefs(flat), np.inf)
