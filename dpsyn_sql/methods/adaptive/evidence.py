"""Evidence of rows above a table of a tree: what is not asked for, because the rows that carry it are drawn.

Post-processing of synthetic rows only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.graph import JunctionTree, Scope
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.plan import Plan


def tables_above(plan: Plan, terms: Terms) -> dict[str, Observation]:
    """The one-way tables of the attributes above, without noise: the rows that carry them are drawn."""
    if terms.given is None:
        return {}
    found = dict[str, Observation]()
    for name in sorted(terms.above):
        table = terms.given.table([name], [np.arange(plan.domain[name].size)])
        found[name] = Observation(plan.source.unit.weight * table, np.zeros(()), settled=True)
    return found


def rows_given(plan: Plan, terms: Terms) -> Observation | None:
    """What all rows of the table count, where the rows above it say so: to one step of the weights, since a
    table of one cell without any noise could not be weighed against another."""
    if terms.given is None:
        return None
    return Observation(np.asarray(plan.source.unit.weight * terms.given.total), np.ones(()))


def distributions(
    given: Given | None, tree: JunctionTree, variables: Sequence[tuple[str, IntArray]]
) -> dict[int, FloatArray]:
    """Of each clique of given variables of a tree their distribution in the rows above, above 0.

    ``variables``: of each variable of the tree its attribute and the bins of its codes.
    """
    if given is None:
        return {}
    found = dict[int, FloatArray]()
    for index in tree.known:
        names, bins = zip(*(variables[v] for v in tree.cliques[index]), strict=True)
        found[index] = given.shares(names, bins)
    return found


_MOST_TIED = 2**14
# Cells of a pair of given variables that the tree holds.

_GRID = 2.0**-20
# Of information: the tree decides on questions.


def tied(given: Given, domain: Domain, above: Sequence[int], bins: Sequence[IntArray]) -> tuple[Scope, ...]:
    """The pairs of a forest of the most mutual information (Chow and Liu 1968) among given variables."""
    sizes = [int(own.max()) + 1 for own in bins]
    told = dict[tuple[int, int], float]()
    for pair in combinations([place for place in above if sizes[place] > 1], 2):
        if math.prod(sizes[place] for place in pair) <= _MOST_TIED:
            joint = given.shares([domain.names[place] for place in pair], [bins[place] for place in pair])
            product = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
            information = (joint * np.log(joint / product)).sum()
            told[pair] = float(snapped(np.asarray(information), _GRID))
    tree, group = list[Scope](), {place: place for place in above}
    for pair in sorted(told, key=lambda pair: (-told[pair], pair)):
        first, second = (group[place] for place in pair)
        if first != second:
            tree.append(pair)
            group = {place: first if own == second else own for place, own in group.items()}
    return tuple(tree)
