"""Pairs beside the tree: worth measuring, but the cap on the junction tree keeps them out of the model.

Their tables are measured in the last round like the others. They are not fitted: the sample meets them by
exchanges of values (``sample/balance.py``), and the model answers them with what the sample aims at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from dpsyn_sql.fit.belief import FloatArray, all_pairs
from dpsyn_sql.fit.beside import target
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import Scope, cells_of, junction_tree
from dpsyn_sql.methods.adaptive.known import Known, fitted
from dpsyn_sql.methods.adaptive.task import Task


def beside_the_tree(task: Task, measured: Sequence[Scope], refused: Set[Scope]) -> frozenset[Scope]:
    """The ``refused`` pairs that no clique of the tree of the others ``measured`` holds."""
    working = task.working
    if not refused:
        return frozenset()
    inside = [scope for scope in measured if scope not in refused]
    tree = junction_tree(working.sizes, [*working.observed, *inside, *working.links])
    return frozenset(pair for pair in refused if tree.home(pair) is None)


def fitted_with_beside(
    task: Task, known: Known, tables: Mapping[Scope, Observation], beside: Collection[Scope], *, last: bool
) -> Known:
    """The model of all ``tables`` but those of ``beside``, which are kept."""
    inside = {scope: table for scope, table in tables.items() if scope not in beside}
    outside = {scope: table for scope, table in tables.items() if scope in beside}
    return replace(fitted(task, known, inside, last=last), beside=outside)


def targets(task: Task, known: Known) -> dict[Scope, FloatArray]:
    """Of each pair of attributes beside the tree its joint probabilities over working bins.

    A pair that was measured both with a coarse twin and without follows the larger table. What a coarse
    table says of a coarse cell holds for the finer cells in it.
    """
    working, sizes = task.working, task.working.sizes
    found = dict[Scope, FloatArray]()
    scopes = sorted(known.beside, key=lambda scope: (cells_of([scope], sizes), scope))
    tables = all_pairs(known.beliefs, scopes)
    for scope in scopes:
        ordered = [task.plan.domain.attributes[working.variables[v].attribute].ordered for v in scope]
        expected = known.total * tables[scope]
        ratio = target(known.beside[scope], expected, ordered) / np.maximum(expected, np.finfo(float).tiny)
        chosen = [working.variables[v] for v in scope]
        if chosen[0].attribute > chosen[1].attribute:
            chosen, ratio = chosen[::-1], ratio.T
        pair = chosen[0].attribute, chosen[1].attribute
        places = []
        for variable in chosen:  # the bin of this variable for each working bin of its attribute
            own = working.variables[variable.attribute].bins
            places.append(variable.bins[np.unique(own, return_index=True)[1]])
        joint = all_pairs(known.beliefs, [pair])[pair] * ratio[np.ix_(*places)]
        found[pair] = joint / joint.sum()
    return found
