"""Joint distributions of more than two variables across components of a graphical model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, marginals
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.pairs import all_pairs


def joints_of(beliefs: Beliefs, scopes: Sequence[Scope]) -> dict[Scope, FloatArray]:
    """As ``joint_of``, of many sets of variables."""
    inside = [scope for scope in scopes if beliefs.tree.home(scope) is not None]
    across = [scope for scope in scopes if len(scope) == 2 and beliefs.tree.home(scope) is None]
    joints = {**marginals(beliefs, inside), **all_pairs(beliefs, across)}
    return {scope: joints[scope] if scope in joints else joint_of(beliefs, scope) for scope in scopes}


def joint_of(beliefs: Beliefs, scope: Scope) -> FloatArray:
    """Probabilities of a set of variables: a table of the model if a clique holds it; else of two variables
    their joint table, of more that of the two that depend most, times the one-way tables of the others."""
    if beliefs.tree.home(scope) is not None:
        return marginals(beliefs, [scope])[scope]
    pairs = all_pairs(beliefs, list(combinations(scope, 2)))
    if len(scope) == 2:
        return pairs[scope]
    tied = {
        pair: float(np.abs(table - np.multiply.outer(table.sum(axis=1), table.sum(axis=0))).sum())
        for pair, table in pairs.items()
    }
    return products(beliefs, [(scope, max(tied, key=tied.__getitem__))])[scope]


def products(
    beliefs: Beliefs,
    sets: Sequence[tuple[Scope, Scope]],
    bins: Mapping[int, IntArray] = MappingProxyType({}),
) -> dict[Scope, FloatArray]:
    """Of each set of variables the joint table of a pair in it, or of none, times the one-way tables of all
    others: probabilities by set.

    ``sets``: each with its pair, both ascending. ``bins``: of some variables two bins (0 and 1) of their
    values; tables are over these.
    """
    pairs = sorted({pair for _, pair in sets if pair})
    alone = sorted({(variable,) for scope, pair in sets for variable in scope if variable not in pair})
    tables = {**marginals(beliefs, alone), **all_pairs(beliefs, pairs)}
    for key, table in tables.items():
        for axis, variable in enumerate(key):
            if variable in bins:
                halves = [table.compress(bins[variable] == side, axis).sum(axis) for side in range(2)]
                table = np.stack(halves, axis)
        tables[key] = table
    joints = dict[Scope, FloatArray]()
    for scope, pair in sets:
        independent = tuple(variable for variable in scope if variable not in pair)
        joint = tables[pair] if pair else np.ones(())
        for variable in independent:
            joint = np.multiply.outer(joint, tables[variable,])
        order = (*pair, *independent)
        joints[scope] = joint.transpose([order.index(variable) for variable in scope])
    return joints
