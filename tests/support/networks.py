"""Small networks and graphical models, and their joint distributions by brute force."""

from itertools import product

import numpy as np
from support.domains import domain_of

from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.methods.models.networks import GraphicalModel


def joint_of(network):
    """The joint distribution of all variables, value by value."""
    table = np.zeros(network.sizes)
    for values in product(*(range(size) for size in network.sizes)):
        probability = 1.0
        for node in network.nodes:
            line = (node.given == [values[v] for v in node.parents]).all(axis=1)
            line &= (node.values == [values[v] for v in node.variables]).all(axis=1)
            probability *= node.weights[line].sum()
        table[values] = probability
    return table


def marginal_of(table, variables):
    """The sums of a joint distribution over all other variables, axes in the order of ``variables``."""
    kept = sorted(variables)
    found = table.sum(axis=tuple(v for v in range(table.ndim) if v not in kept))
    return found.transpose([kept.index(v) for v in variables])


SCOPES = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "clique": [(0, 1, 2), (2, 3, 4)],
    "independent": [(0,), (1,), (2,), (3,), (4,)],
}


def graphical_model(scopes, seed=3, twin=False):
    """Five attributes of 6 codes in 4 bins; with a twin of x0 (two bins) that x4 depends on."""
    rng = np.random.default_rng(seed)
    sizes = (4,) * 5 + ((2,) if twin else ())
    potentials = {scope: rng.normal(0, 1.5, [sizes[v] for v in scope]) for scope in scopes}
    if twin:
        link = np.where(np.array([0, 0, 1, 1])[:, None] == np.arange(2), 0.0, -1000.0)
        potentials |= {(0, 5): link, (4, 5): rng.normal(0, 1, (4, 2))}
    bins, within = np.array([0, 1, 1, 2, 3, 3]), np.array([1, 0.3, 0.7, 1, 0.0, 1])
    beliefs = calibrate(junction_tree(sizes, potentials), potentials)
    return GraphicalModel(domain_of((6,) * 5), 1000.0, beliefs, (bins,) * 5, (within,) * 5)
