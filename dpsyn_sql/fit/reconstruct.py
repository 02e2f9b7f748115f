"""From noisy residuals to whole tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack, vstack

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.fit.arrays import FloatArray, quotient, widened
from dpsyn_sql.fit.belief import Beliefs, calibrate
from dpsyn_sql.fit.estimate import Likelihood, Observation, fit_potentials
from dpsyn_sql.fit.graph import JunctionTree, Scope, Triangulation, cells_of, junction_tree, largest
from dpsyn_sql.fit.views import Views, consistent, margins_of, product_of, summed_to
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.planning.queries import Map, NoisyMarginal, NoisyResidual


def cost_factor(shape: Sequence[int]) -> float:
    """prod (1 - 1/k_i): the cost of a residual relative to a whole table of the same noise, and the variance
    of a cell of the projected noise relative to that of the noise."""
    return math.prod(1 - 1 / size for size in shape)


def projected(table: FloatArray) -> FloatArray:
    """P of a table: its sums along each axis are 0."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def interaction(residual: NoisyResidual) -> FloatArray:
    """The noisy residual in rows, of the shape of its marginal."""
    return projected(residual.values / residual.values.size)


def noise(residual: NoisyResidual) -> float:
    """Standard deviation (rows) of the noise z in ``interaction`` = P x + P z, in all directions P keeps."""
    return residual.scale / residual.values.size


def deviation(residual: NoisyResidual) -> float:
    """Standard deviation (rows) of a cell of ``interaction``; cells share noise."""
    return noise(residual) * math.sqrt(cost_factor(residual.values.shape))


def filled(table: FloatArray, residual: FloatArray) -> FloatArray:
    """A table (rows) with this residual in place of its own: its margins stay."""
    return table - projected(table) + residual


_Key = tuple[tuple[str, Map | None], ...]

_OF_ROUNDING = 1 / 12
# Variance of rounding to whole rows.


@dataclass(frozen=True, slots=True)
class _Part:
    """A residual in rows, with the variance of its cells; ``share``: how much of the noise of the total is in
    it. All of them are arrays of the residual's shape, or one number."""

    values: FloatArray
    variance: FloatArray
    share: FloatArray

    def pooled(self, answer: _Part) -> _Part:
        """Inverse-variance mean of two answers to one question."""
        weight = answer.variance / (self.variance + answer.variance)
        values = weight * self.values + (1 - weight) * answer.values
        return _Part(values, weight * self.variance, self.share)


def shown_tables(
    domain: Domain, answers: Iterable[NoisyMarginal | NoisyResidual], earlier: Sequence[NoisyMarginal] = ()
) -> tuple[NoisyMarginal, ...]:
    """The tables that a release shows: measured marginals as they are, then one composed of each residual
    whose margins have residuals too, and of the total for each attribute of one code.

    ``earlier``: the total and one-way tables from before these answers, which margins are taken from too.
    """
    answers = list(answers)
    marginals = tuple(table for table in answers if isinstance(table, NoisyMarginal))
    residuals = [table for table in answers if isinstance(table, NoisyResidual)]
    totals = [table for table in (*earlier, *marginals) if not table.attrs]
    if not residuals or not totals:
        return marginals
    weights = [table.sigma**-2 for table in totals]
    total = sum(float(t.values) * w for t, w in zip(totals, weights, strict=True)) / sum(weights)
    effects: dict[_Key, _Part] = {
        ((table.attrs[0], None),): _one_way(table) for table in earlier if len(table.attrs) == 1
    }
    for residual in residuals:
        key = _key(residual)
        effect = _Part(interaction(residual), np.asarray(deviation(residual) ** 2), np.asarray(0.0))
        effects[key] = effects[key].pooled(effect) if key in effects else effect
    sizes = dict(zip(domain.names, domain.shape(), strict=True))
    effects |= _over_bins(effects, sizes, total)
    variance = 1 / sum(weights)
    single = NoisyMarginal(
        (), np.rint([total]).astype(np.int64), math.sqrt(variance + _OF_ROUNDING), (), True
    )
    single_codes = (replace(single, attrs=(name,)) for name, size in sizes.items() if size == 1)
    composed = (_composed(key, effects, total, variance) for key in dict.fromkeys(map(_key, residuals)))
    return (*marginals, *single_codes, *(table for table in composed if table is not None))


def _one_way(table: NoisyMarginal) -> _Part:
    """The residual of a one-way table."""
    values = table.values.astype(np.float64)
    variance = np.asarray(table.sigma**2 * cost_factor(values.shape))
    return _Part(projected(values), variance, np.asarray(0.0))


def _key(residual: NoisyResidual) -> _Key:
    return tuple(zip(residual.attrs, residual.maps or (None,) * len(residual.attrs), strict=True))


def _over_bins(effects: Mapping[_Key, _Part], sizes: Mapping[str, int], total: float) -> dict[_Key, _Part]:
    """The residuals of single attributes over the bins of larger tables: sums over codes."""
    coarse = dict[_Key, _Part]()
    for name, bins in {axis for key in effects for axis in key if len(key) > 1}:
        effect = effects.get(((name, None),))
        if effect is None or bins is None or ((name, bins),) in effects:
            continue
        codes = np.bincount(bins).astype(np.float64)
        even = codes / sizes[name] - 1 / codes.size  # of the total, beyond an even share of each bin
        single = effect.variance / (1 - 1 / sizes[name])  # of the noise before its projection
        coarse[((name, bins),)] = _Part(
            np.bincount(bins, effect.values) + total * even, single * (codes - codes**2 / sizes[name]), even
        )
    return coarse


def _composed(
    key: _Key, effects: Mapping[_Key, _Part], total: float, of_total: float
) -> NoisyMarginal | None:
    """The table of a residual; None if a margin has none. ``of_total``: variance of the total."""
    shape = effects[key].values.shape
    values = np.full(shape, total / math.prod(shape))
    variance, share = np.zeros(shape), np.full(shape, 1 / math.prod(shape))
    for number in range(1, len(key) + 1):
        for axes in combinations(range(len(key)), number):
            effect = effects.get(tuple(key[axis] for axis in axes))
            if effect is None:
                return None
            repeats = math.prod(shape) / math.prod(effect.values.shape)
            values += _spread(effect.values, axes, shape) / repeats
            variance += _spread(effect.variance, axes, shape) / repeats**2
            share += _spread(effect.share, axes, shape) / repeats
    most = float(np.max(variance + share**2 * of_total))
    attrs, maps = tuple(name for name, _ in key), tuple(bins for _, bins in key)
    return NoisyMarginal(
        attrs,
        np.rint(values).astype(np.int64),
        math.sqrt(most + _OF_ROUNDING),
        maps if any(bins is not None for bins in maps) else (),
        composed=True,
    )


def _spread(values: FloatArray, axes: Sequence[int], shape: Sequence[int]) -> FloatArray:
    """An array over some axes of ``shape``, or a number, to be added to one over all."""
    if values.ndim == 0:
        return values
    return values.reshape([shape[axis] if axis in axes else 1 for axis in range(len(shape))])


# -- one table of several residuals ------------------------------------------------------------------

# What consistent views lead to: any marginal, and a graphical model.
#
# *Any marginal* (PriView, section 4.3): three ways to fill in what no view holds. The views that share
# attributes with the wanted set fix some of its marginals. Many tables have these:
#
# - **maximum entropy**: the table that says nothing beyond them, by iterative scaling; - **least norm**: the
# table of the smallest sum of squares, without negative cells; - **linear programming**: a table whose
# largest departure from any of them is least.
#
# Views that agree can still contradict each other (a = b, b = c, a != c): no table has all their marginals.
# The first two ways then come close to all of them, and the third has the smallest departure that there is.
#
# *A graphical model* of the strongest views: what rows start from, and what SQL draws rows of. All views
# together are no model that can be calculated with: their graph is complete. Pairs of attributes enter the
# graph in the order of how far their two-way table is from independence, as long as its junction tree stays
# small. The model then meets all that the views say within its cliques: it has the largest entropy of all
# that do, but for a little of their noise.
#
# Post-processing of noisy tables only.

MOST_CELLS = 2**20
"""Cells of a marginal that is reconstructed: 8 MB, summed in a few dozen rounds."""

MOST_PROGRAM_CELLS = 2**13
"""Cells of a marginal by linear programming: each is a variable, which takes a second or two."""

RECONSTRUCTIONS = ("maximum_entropy", "least_norm", "linear_programming")
"""Names of the ways, the default first."""

_PROJECTIONS = 400
# Of least norm. About a thousand random tables met their parts to 3e-9 by then; with 100 some missed by 6e-6.

_ROUNDS = 100
_CLOSE = 1e-9
# Rounds, and the largest departure (of a total of 1) at which nothing is left to do.


def most_cells(how: str) -> int:
    """The most cells of a marginal that is reconstructed in one of ``RECONSTRUCTIONS``."""
    return MOST_PROGRAM_CELLS if how == RECONSTRUCTIONS[2] else MOST_CELLS


def reconstructed(
    views: Mapping[Scope, FloatArray], scope: Scope, sizes: Sequence[int], how: str
) -> FloatArray:
    """The marginal over ``scope`` (ascending), probabilities.

    Args:
        views: consistent and not negative, by ascending scope, each of sum 1.
        scope: attributes.
        sizes: of all attributes.
        how: one of ``RECONSTRUCTIONS``.

    Raises:
        InputError: the marginal has too many cells.
    """
    shape = [sizes[index] for index in scope]
    most = most_cells(how)
    if math.prod(shape) > most:
        raise InputError(
            f"a marginal of {math.prod(shape):,} cells is too large to be reconstructed from views: allowed "
            f"are {most:,} with reconstruction={how!r}; ask for fewer attributes, or count it in the "
            "synthetic table"
        )
    margins = known_parts(views, scope)
    if scope in margins:
        return margins[scope]
    if how == RECONSTRUCTIONS[0]:
        return maximum_entropy(margins, scope, shape)
    if how == RECONSTRUCTIONS[1]:
        return least_norm(margins, scope, shape)
    return linear_programming(margins, scope, shape)


def known_parts(views: Mapping[Scope, FloatArray], scope: Scope) -> Views:
    """What views say of ``scope``: their marginals over the attributes they share with it, the largest."""
    wanted, sources = set(scope), dict[Scope, Scope]()
    for view in sorted(views, key=lambda view: views[view].size):
        shared = tuple(index for index in view if index in wanted)
        if shared:
            sources.setdefault(shared, view)
    return {
        part: np.asarray(summed_to(views[sources[part]], sources[part], part))
        for part in sorted(largest(sources))
    }


def maximum_entropy(margins: Mapping[Scope, FloatArray], scope: Scope, shape: Sequence[int]) -> FloatArray:
    """Iterative proportional scaling from the uniform table. Parts that contradict each other make it go
    round in a circle, so the scaling of each is damped more and more then."""
    table = np.full(shape, 1 / math.prod(shape))
    for number in range(_ROUNDS):
        power = min(1.0, 2 * _ROUNDS / 5 / (number + 1))
        worst = 0.0
        for margin_scope, margin in margins.items():
            current = summed_to(table, scope, margin_scope)
            worst = max(worst, float(np.abs(current - margin).max()))
            table = table * widened(quotient(margin, current) ** power, margin_scope, scope)
        table /= max(float(table.sum()), np.finfo(float).tiny)
        if worst <= _CLOSE:
            break
    return table if table.sum() > 0.5 else np.full(shape, 1 / math.prod(shape))


def least_norm(margins: Mapping[Scope, FloatArray], scope: Scope, shape: Sequence[int]) -> FloatArray:
    """The nearest table to zero that has the parts and no negative cell, by Dykstra's (1986) projections in
    turns: to the parts, which is one pass of ``consistent``, and to tables without negative cells."""
    table, correction = np.zeros(shape), np.zeros(shape)
    for _ in range(_PROJECTIONS):
        exact = _with_parts(table, margins, scope)
        lifted = exact + correction
        table = np.maximum(lifted, 0.0)
        correction = lifted - table
        if float(np.abs(table - exact).max()) <= _CLOSE:
            break
    return np.asarray(table / table.sum())


def _with_parts(table: FloatArray, margins: Mapping[Scope, FloatArray], scope: Scope) -> FloatArray:
    """The nearest table with these parts: views of almost no noise against one of much."""
    sigmas = dict.fromkeys(margins, 1e-8) | {scope: 1.0}
    return consistent({**margins, scope: table}, sigmas)[scope]


def linear_programming(margins: Mapping[Scope, FloatArray], scope: Scope, shape: Sequence[int]) -> FloatArray:
    """A table without negative cells that sums to 1 and whose largest departure from a part is least.

    Raises:
        InternalError: the solver ended without a solution, which every such program has.
    """
    size = math.prod(shape)
    cells = np.indices(shape).reshape(len(shape), -1)
    rows = list[coo_array]()
    for margin_scope, margin in margins.items():
        axes = tuple(scope.index(index) for index in margin_scope)
        numbers = np.ravel_multi_index(tuple(cells[axis] for axis in axes), margin.shape)
        rows.append(coo_array((np.ones(size), (numbers, np.arange(size))), (margin.size, size)))
    sums = vstack(rows)
    wanted = np.concatenate([margin.ravel() for margin in margins.values()])
    slack = coo_array(-np.ones((sums.shape[0], 1)))
    limits: Any = vstack([hstack([sums, slack]), hstack([-sums, slack])]).tocsr()  # its stubs know dense ones
    solution = linprog(
        np.r_[np.zeros(size), 1.0],
        A_ub=limits,
        b_ub=np.r_[wanted, -wanted],
        A_eq=np.r_[np.ones(size), 0.0][None],
        b_eq=[1.0],
        method="highs",
    )
    if solution.x is None:
        raise InternalError("the linear program of a marginal has no solution")
    table = np.maximum(solution.x[:-1], 0.0).reshape(shape)
    return np.asarray(table / table.sum())


GREED = 0.3
"""Pairs are taken in the order of distance / cells^0.3, as adaptive marginals do."""

STANDS_OUT = 0.3
"""A pair enters if its distance from independence is at least this part of the noise of its table: views
have had their noise reduced before."""

NOISE_KEPT = 0.5
"""The prior of the fit takes the cells of views for as noisy as this part of what was added to them."""

ITERATIONS = 100
TOLERANCE = 0.5
"""The most steps of the fit, and the misfit (in units of the noise that it assumes) that ends it."""

PATIENCE = 60
"""Pairs that would make the tree too large, after which it is full: each costs a triangulation."""


def graphical_views(
    sizes: Sequence[int],
    views: Mapping[Scope, FloatArray],
    sigmas: Mapping[Scope, float],
    total: float,
    most_cells: float,
    deadline: Deadline = NO_DEADLINE,
) -> Beliefs:
    """The junction tree of the strongest pairs of attributes, fitted to the views.

    All variables 0..len(sizes)-1 are in it. Without rows (``total`` <= 0), and for variables that no view
    holds, it is uniform.

    Args:
        sizes: working bins of each variable.
        views: consistent tables (rows), not negative, by ascending scope.
        sigmas: standard deviation of the noise that was added to a cell of each view, in rows.
        total: rows.
        most_cells: of the junction tree.
        deadline: ends the choice and the fit early.
    """
    views = {scope: table for scope, table in views.items() if scope and table.size and table.sum() > 0}
    if total <= 0 or not views:
        return calibrate(junction_tree(sizes, []), {})
    tree = junction_tree(sizes, _chosen(sizes, views, sigmas, total, most_cells, deadline))
    base: dict[Scope, FloatArray] = {
        (variable,): np.log(shares) for variable, shares in margins_of(views).items()
    }
    observed = _observed(tree, views, sigmas)
    return fit_potentials(
        Likelihood(tree, observed, total, base),
        {},
        ITERATIONS,
        TOLERANCE,
        stop=lambda: deadline.over(0.5, "the model of the strongest views was not fitted to the end"),
    ).beliefs


def _chosen(
    sizes: Sequence[int],
    views: Mapping[Scope, FloatArray],
    sigmas: Mapping[Scope, float],
    total: float,
    most_cells: float,
    deadline: Deadline,
) -> list[Scope]:
    """Pairs for the graph, greedily by ``GREED``."""
    distances = _distances(views, sigmas, total)
    ranked = sorted(distances, key=lambda pair: -distances[pair] / cells_of([pair], sizes) ** GREED)
    graph, chosen, misses = Triangulation(sizes, []), list[Scope](), 0
    for pair in ranked:
        if misses > PATIENCE or deadline.over(0.3, "fewer pairs of views entered the graphical model"):
            break  # the tree is full
        if not graph.holds(pair):
            larger = graph.grown(pair, most_cells)
            if larger is None:
                misses += 1
                continue
            graph = larger
        chosen.append(pair)
    return chosen


def _distances(
    views: Mapping[Scope, FloatArray], sigmas: Mapping[Scope, float], total: float
) -> dict[Scope, float]:
    """L1 distance from independence (rows) of the pairs within views that stand out of their noise."""
    margins, owners, precision = margins_of(views), dict[Scope, Scope](), dict[Scope, float]()
    distances = dict[Scope, float]()
    for scope, table in views.items():
        shape = dict(zip(scope, table.shape, strict=True))
        for pair in combinations(scope, 2):
            cells = math.prod(shape[variable] for variable in pair)
            owners[pair] = min(owners.get(pair, scope), scope, key=lambda view: views[view].size)
            precision[pair] = precision.get(pair, 0.0) + cells / (table.size * sigmas[scope] ** 2)
    for scope, owner in owners.items():
        table = summed_to(views[owner], owner, scope)
        if min(table.shape) > 1:
            distance = float(np.abs(table - product_of(scope, margins, float(table.sum()))).sum())
            if distance > STANDS_OUT * MEAN_ABSOLUTE * table.size * precision[scope] ** -0.5:
                distances[scope] = distance
    return distances


def _observed(
    tree: JunctionTree, views: Mapping[Scope, FloatArray], sigmas: Mapping[Scope, float]
) -> dict[Scope, Observation]:
    """What views say within cliques: the largest marginals of views that a clique holds."""
    observations = dict[Scope, Observation]()
    around = [set[int]() for _ in tree.sizes]  # the cliques of each variable
    for number, clique in enumerate(tree.cliques):
        for variable in clique:
            around[variable].add(number)
    for scope, table in views.items():
        met = set[int]().union(*(around[variable] for variable in scope))
        inside = {tuple(v for v in scope if number in around[v]) for number in met}
        for part in largest(inside):
            margin = summed_to(table, scope, part)
            sigma = sigmas[scope] * math.sqrt(table.size / margin.size)
            if part not in observations or sigma < observations[part].sigma:
                observations[part] = Observation(margin, np.asarray(sigma))
    return {
        part: Observation(observations[part].values, NOISE_KEPT * observations[part].sigma)
        for part in largest(observations)
    }
