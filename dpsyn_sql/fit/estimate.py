"""Parameters of a graphical model from noisy tables: penalised maximum likelihood.

The noisy tables y_c (rows) stand in for sufficient statistics. With N rows in all, the potentials theta
minimise

    N log Z(theta) - sum_c <theta_c, y_c> + sum_c (sigma_c / 2) |theta_c|^2

whose gradient is N mu_c - y_c + sigma_c theta_c, mu_c the model's marginal: expected against observed counts
(Koller and Friedman 2009, 20.3), with a Gaussian prior on the potentials (20.4.1). The prior is the denoiser:
a table is followed as far as it stands out of its own noise. One calibration a step.

``Coordinates``, in which L-BFGS fits potentials in few steps, are an additive Schwarz preconditioner. The
Hessian of the objective is that of the model's counts plus the ridge, N Cov(cells) + diag(sigma). Its
diagonal alone is a poor guide: relative to it, raising the potential of one value of an attribute in all
tables that hold it is as steep as their number, and in one against another only as steep as the ridge. The
same goes for a pair in several three-way tables.

Within one group these directions are known. A group is a configuration x of a scope that several tables t
hold; w_t shifts all cells of t with x. All of them move the same statistic, whether a row shows x, of
variance p (1 - p) with p its probability; without variables, all cells of a table, none. So the Hessian of w
is

    R + N p (1 - p) 1 1^T,    R diagonal, R_tt = sum of sigma over the cells of t with x,

and the identity that of z where w = R^(-1/2) (I + c v v^T) z, v = R^(-1/2) 1, and c |v|^2 = (1 + N p (1 - p)
|v|^2)^(-1/2) - 1. The noisy tables stand in for p. Potentials are the sum of all such shifts and of one
coordinate for every cell, scaled by about the diagonal, as if none touched another: the additive method of
subspaces that overlap (Toselli and Widlund 2005, chapter 2). More coordinates than potentials are no harm: a
step moves along all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from types import MappingProxyType

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray, sound
from dpsyn_sql.fit.belief import Beliefs, calibrate, marginals, room
from dpsyn_sql.fit.graph import JunctionTree, Scope

Potentials = dict[Scope, FloatArray]

_LEAST_SIGMA = 0.01
# Rows: the smaller sigma, the further a step of length one moves potentials, until line searches fail
# (discrete Laplace noise of epsilon 10 and more).

_FAR, _WALL = 60.0, 0.1
# Where tables contradict each other, potentials are as large as the rows in conflict per deviation. On their
# way there a line search moves all others too. So beyond ``_FAR``, which no table of 2^53 rows needs, they
# pay as if the deviation were this part of all rows.

_MEMORY = 12
# Pairs of steps L-BFGS remembers: 8 to 20 take about the same time.


@dataclass(frozen=True, slots=True)
class Observation:
    """A noisy table: ``values`` (rows) and the standard deviation of its cells, one or one a cell.

    ``filled``: only its residual was measured, and its margins are those of a model: they tell nothing new.
    ``sigma`` is then that of the noise before its projection: every direction of the residual keeps it.
    ``settled``: the noise is already out of ``values``; ``sigma`` is what it was.
    """

    values: FloatArray
    sigma: FloatArray
    filled: bool = False
    settled: bool = False

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


def with_seen(table: Observation, counts: FloatArray, sigma: float) -> Observation:
    """A one-way table pooled with other noisy counts of its first codes (rows, each of deviation ``sigma``),
    with the same sum: the codes take up the difference in proportion to their variance. ``sigma`` of the
    result is the root mean square of its cells."""
    precision, added = float(table.sigma) ** -2, np.zeros(table.values.size)
    added[: counts.size] = sigma**-2
    values, variances = precision * table.values, 1 / (precision + added)
    values[: counts.size] += sigma**-2 * counts
    values *= variances
    values += (table.values.sum() - values.sum()) * variances / variances.sum()
    return Observation(values, np.asarray(math.sqrt(float(variances.mean()))))


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
        centres: what potentials are drawn to, where it is not 0.
        given: as of ``calibrate``; no table of ``observed`` is of given variables alone.

    Raises:
        InternalError: a count or a deviation is not finite, or the total is not above 0.
    """

    def __init__(
        self,
        tree: JunctionTree,
        observed: Mapping[Scope, Observation],
        total: float,
        base: Mapping[Scope, FloatArray],
        centres: Mapping[Scope, FloatArray] = MappingProxyType({}),
        given_tables: Mapping[int, FloatArray] = MappingProxyType({}),
    ) -> None:
        self._tree, self._total, self._base, self._given = tree, total, base, given_tables
        self._scopes = list(observed)
        self._shapes = [observed[scope].values.shape for scope in self._scopes]
        self._ends = np.cumsum([observed[scope].values.size for scope in self._scopes])[:-1]
        self._values = np.concatenate([observed[scope].values.ravel() for scope in self._scopes])
        sigma = np.concatenate(
            [np.broadcast_to(observed[s].sigma, observed[s].values.shape).ravel() for s in self._scopes]
        )
        if not (np.isfinite(self._values).all() and np.isfinite(sigma).all() and total > 0):
            raise InternalError("a noisy table of a fit is not of finite numbers, or there are no rows")
        self._sigma = np.maximum(sigma, _LEAST_SIGMA)
        self._starts = np.array([0, *self._ends])
        self._noise = np.add.reduceat(self._sigma, self._starts)
        self._room = room(tree)
        self._centre = self.flat(centres)

    def coordinates(self) -> Coordinates:
        """In which to look for the optimum."""
        given_variables = {variable for index in self._given for variable in self._tree.cliques[index]}
        return Coordinates(
            self._scopes, self._shapes, self._values, self._sigma, self._total, given_variables
        )

    def misfit(self, gradient: FloatArray) -> float:
        """The L1 norm of the gradient of a table in rows (0 at the optimum), relative to that of its noise,
        for the table where it is largest."""
        missed = np.add.reduceat(np.abs(gradient), self._starts) * self._total
        return float((missed / self._noise).max())

    def flat(self, potentials: Mapping[Scope, FloatArray]) -> FloatArray:
        """The vector of ``potentials``; zeros for those that are not there yet."""
        vectors = [
            potentials[scope].ravel() if scope in potentials else np.zeros(int(np.prod(shape)))
            for scope, shape in zip(self._scopes, self._shapes, strict=True)
        ]
        return np.concatenate(vectors)

    def potentials(self, flat: FloatArray) -> Potentials:
        """The inverse of ``flat``."""
        return {
            scope: flat[start : start + math.prod(shape)].reshape(shape)
            for scope, start, shape in zip(self._scopes, self._starts.tolist(), self._shapes, strict=True)
        }

    def beliefs(self, flat: FloatArray, tables: Sequence[FloatArray] = ()) -> Beliefs:
        """The model of a vector of potentials; ``tables``: as for ``calibrate``."""
        potentials = self.potentials(flat)
        fixed = {scope: table for scope, table in self._base.items() if scope not in potentials}
        return calibrate(
            self._tree,
            fixed | {scope: x + self._base.get(scope, 0.0) for scope, x in potentials.items()},
            tables,
            self._given,
        )

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Objective and gradient, both divided by N."""
        beliefs = self.beliefs(flat, self._room)
        expected = marginals(beliefs, self._scopes)
        with sound("a step of a fit"):
            counts = self._total * np.concatenate([expected[scope].ravel() for scope in self._scopes])
            apart = flat - self._centre
            penalty = self._sigma * apart
            value = self._total * beliefs.log_partition - flat @ self._values + penalty @ apart / 2
            beyond = apart - np.clip(apart, -_FAR, _FAR)
            value, penalty = (
                float(value) / self._total + _WALL * float(beyond @ beyond) / 2,
                penalty / self._total,
            )
            return value, (counts - self._values) / self._total + penalty + _WALL * beyond


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted potentials, their model, and the misfit that is left."""

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

    Raises:
        InternalError: the fit has left the numbers of float64.
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

    solution = minimize(
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
    flat = coordinates.flat(solution.x)
    beliefs = likelihood.beliefs(flat).checked()
    return Fit(likelihood.potentials(flat), beliefs, likelihood.misfit(coordinates.of_cells(solution.jac)))


class Coordinates:
    """Points (one coordinate for every cell, then one for every shift) for flat vectors of potentials.

    Args:
        scopes: of the tables, in the order of the vector.
        shapes: of each.
        values: (n,) noisy counts of all cells (rows).
        sigma: (n,) their standard deviations (rows), above zero.
        total: N.
        given: variables whose distribution no potential changes.
    """

    def __init__(
        self,
        scopes: Sequence[Scope],
        shapes: Sequence[tuple[int, ...]],
        values: FloatArray,
        sigma: FloatArray,
        total: float,
        given_variables: Collection[int] = (),
    ) -> None:
        self._cells = values.size
        self._diagonal = np.asarray((np.maximum(values, 0) + 2 * sigma) ** -0.5)
        cells, shifts, self._group, settled = _shifts(scopes, shapes, given_variables)
        entries = (np.ones(cells.size), (cells, shifts))
        self._spread = csr_array(entries, shape=(self._cells, self._group.size))
        self._root = self._sums(sigma) ** -0.5  # v
        tables = self._by_group(np.ones(self._group.size))
        probability = np.clip(self._by_group(self._sums(values)) / (tables * total), 0, 1)
        norm = self._by_group(self._root**2)  # |v|^2
        steepness = total * probability * (1 - probability)
        steepness[settled] = 0.0
        self._factor = ((1 + steepness * norm) ** -0.5 - 1) / norm  # c

    def _sums(self, cells: FloatArray) -> FloatArray:
        """Over the cells that each shift moves."""
        return np.asarray(self._spread.T @ cells)

    def _by_group(self, shifts: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self._group, shifts), dtype=np.float64)

    def _turned(self, shifts: FloatArray) -> FloatArray:
        """I + c v v^T of every group."""
        along = self._factor * self._by_group(self._root * shifts)
        return np.asarray(shifts + self._root * along[self._group])

    def flat(self, point: FloatArray) -> FloatArray:
        """(n,) vector of the potentials of a point."""
        shifts = self._root * self._turned(point[self._cells :])
        return np.asarray(self._diagonal * point[: self._cells] + self._spread @ shifts)

    def gradient(self, gradient: FloatArray) -> FloatArray:
        """The gradient in these coordinates, from that in the potentials (n,)."""
        shifts = self._turned(self._root * self._sums(gradient))
        return np.concatenate([self._diagonal * gradient, shifts])

    def of_cells(self, gradient: FloatArray) -> FloatArray:
        """The gradient in the potentials (n,), from that in these coordinates."""
        return np.asarray(gradient[: self._cells] / self._diagonal)

    def point(self, flat: FloatArray) -> FloatArray:
        """A point of these potentials (n,): the one without shifts."""
        return np.concatenate([flat / self._diagonal, np.zeros(self._group.size)])


def _shifts(
    scopes: Sequence[Scope], shapes: Sequence[tuple[int, ...]], given_variables: Collection[int]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cells and the shifts that move them, side by side; the group of every shift; and the groups that move
    no statistic: of no variable, and of ``given_variables`` alone.

    There is a group for every configuration of every scope that at least two tables hold, with a shift
    for each of these tables; and first one for all rows, with a shift for each table.
    """
    holders = Counter(chain.from_iterable(_within(scope) for scope in scopes))
    shared = {scope for scope, number in holders.items() if number > 1 or not scope}
    cells, shifts, groups = ([np.zeros(0, dtype=np.int64)] for _ in range(3))
    group_of: dict[Scope, int] = {}  # the first of a scope's groups, one for each configuration
    settled = [np.zeros(0, dtype=np.int64)]
    cell = shift = group = 0  # the next
    for scope, shape in zip(scopes, shapes, strict=True):
        grid = np.indices(shape).reshape(len(shape), -1)
        for part in _within(scope):
            if part not in shared:
                continue
            axes = [scope.index(variable) for variable in part]
            sizes = tuple(shape[axis] for axis in axes)
            number = math.prod(sizes)
            if part not in group_of:
                group_of[part], group = group, group + number
                if set(part) <= set(given_variables):
                    settled.append(np.arange(group - number, group))
            configuration = np.zeros(grid.shape[1], dtype=np.int64)
            for axis, size in zip(axes, sizes, strict=True):
                configuration = configuration * size + grid[axis]
            cells.append(cell + np.arange(configuration.size))
            shifts.append(shift + configuration)
            groups.append(group_of[part] + np.arange(number))
            shift += number
        cell += grid.shape[1]
    joined = np.concatenate
    return joined(cells), joined(shifts), joined(groups), joined(settled)


def _within(scope: Scope) -> list[Scope]:
    """All scopes inside ``scope``, none and all of its variables included, the smallest first."""
    return list(chain.from_iterable(combinations(scope, number) for number in range(len(scope) + 1)))
