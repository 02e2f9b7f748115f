"""A graphical model of the strongest views: what rows start from, and what SQL draws rows of.

All views together are no model that can be calculated with: their graph is complete. Pairs of attributes
enter the graph in the order of how far their two-way table is from independence, as long as its junction
tree stays small. The model then meets all that the views say within its cliques: it has the largest entropy
of all that do, but for a little of their noise.

Post-processing of noisy tables only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.belief import Beliefs, calibrate
from dpsyn_sql.fit.estimate import Likelihood, Observation, fit_potentials
from dpsyn_sql.fit.graph import JunctionTree, Scope, Triangulation, cells_of, junction_tree
from dpsyn_sql.fit.model_tables import largest
from dpsyn_sql.fit.views import margins_of, product_of, summed_to
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline

FloatArray = NDArray[np.float64]

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

_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
# Of a standard normal variable.


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
            larger = graph.grown(pair)
            if larger.cells > most_cells:
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
    found = dict[Scope, float]()
    for scope, table in views.items():
        shape = dict(zip(scope, table.shape, strict=True))
        for pair in combinations(scope, 2):
            cells = math.prod(shape[variable] for variable in pair)
            owners[pair] = min(owners.get(pair, scope), scope, key=lambda held: views[held].size)
            precision[pair] = precision.get(pair, 0.0) + cells / (table.size * sigmas[scope] ** 2)
    for scope, owner in owners.items():
        table = summed_to(views[owner], owner, scope)
        if min(table.shape) > 1:
            distance = float(np.abs(table - product_of(scope, margins, float(table.sum()))).sum())
            if distance > STANDS_OUT * _MEAN_ABSOLUTE * table.size * precision[scope] ** -0.5:
                found[scope] = distance
    return found


def _observed(
    tree: JunctionTree, views: Mapping[Scope, FloatArray], sigmas: Mapping[Scope, float]
) -> dict[Scope, Observation]:
    """What views say within cliques: the largest marginals of views that a clique holds."""
    found = dict[Scope, Observation]()
    around = [set[int]() for _ in tree.sizes]  # the cliques of each variable
    for number, clique in enumerate(tree.cliques):
        for variable in clique:
            around[variable].add(number)
    for scope, table in views.items():
        met = set[int]().union(*(around[variable] for variable in scope))
        held = {tuple(v for v in scope if number in around[v]) for number in met}
        for part in largest(held):
            own = summed_to(table, scope, part)
            sigma = sigmas[scope] * math.sqrt(table.size / own.size)
            if part not in found or sigma < found[part].sigma:
                found[part] = Observation(own, np.asarray(sigma))
    return {part: Observation(found[part].values, NOISE_KEPT * found[part].sigma) for part in largest(found)}
