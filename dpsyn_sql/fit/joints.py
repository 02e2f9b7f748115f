"""Joint distributions of more than two variables across components of a graphical model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, all_pairs, marginals
from dpsyn_sql.fit.graph import Scope


def joint_of(beliefs: Beliefs, scope: Scope) -> FloatArray:
    """Probabilities of a set: a table of the model if a clique holds it, else as ``joints``."""
    if beliefs.tree.home(scope) is not None:
        return marginals(beliefs, [scope])[scope]
    return joints(beliefs, [scope])[scope]


def joints(
    beliefs: Beliefs, sets: Sequence[Scope], bins: Mapping[int, IntArray] = MappingProxyType({})
) -> dict[Scope, FloatArray]:
    """Probabilities of sets of variables of which at most two are in one component of the model; variables of
    different components are independent.

    ``bins``: of some variables two bins (0 and 1) of their values; tables are over these.
    """
    components = _components(beliefs.tree.cliques)
    pairs, apart = dict[Scope, list[Scope]](), set[Scope]()
    for scope in sets:
        groups = dict[int, list[int]]()
        for place in scope:
            groups.setdefault(components[place], []).append(place)
        pairs[scope] = [tuple(group) for group in groups.values()]
        apart.update(pairs[scope])
    single = {own: marginals(beliefs, [own])[own] for own in apart if len(own) == 1}
    tables = single | all_pairs(beliefs, sorted(own for own in apart if len(own) == 2))
    for own, table in tables.items():
        for axis, place in enumerate(own):
            if place in bins:
                sums = [table.compress(bins[place] == side, axis).sum(axis) for side in range(2)]
                table = np.stack(sums, axis)
        tables[own] = table
    found = dict[Scope, FloatArray]()
    for scope, groups_of in pairs.items():
        joint, order = np.ones(()), list[int]()
        for own in groups_of:
            joint = np.multiply.outer(joint, tables[own])
            order += own
        found[scope] = joint.transpose([order.index(place) for place in scope])
    return found


def _components(cliques: Sequence[Scope]) -> dict[int, int]:
    """Of each variable the number of its component of the graph."""
    found = dict[int, int]()
    for number, clique in enumerate(cliques):
        joined = {found[v] for v in clique if v in found}
        for variable, own in found.items():
            if own in joined:
                found[variable] = number
        found.update(dict.fromkeys(clique, number))
    return found
