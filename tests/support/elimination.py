"""Random graphs, networks and products of tables, and what of them differs from brute force.

Every number makes one case: a graph with fill-in over variables of 1 to 65 values, tables of some of its scopes
(logarithms of counts from 5e-324 to 2^53), variables given or with levels, a network with hidden variables and
impossible values. What the package says of them (marginals within cliques and across, both ways to calibrate,
networks and their marginals, products) is compared with sums over all cells in long doubles.
"""

import math
from itertools import combinations, permutations

import numpy as np
from support.networks import marginal_of

from dpsyn_sql.fit.belief import _in_logarithms, _in_products, _times, calibrate, marginals, room
from dpsyn_sql.fit.elimination import fits, joint, levelled_network, tree_network, work_of
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.network import Network, joined, node_of
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.planning.families import MOMENT, ROW, UNIT

MOST_CELLS = 2**14
SIZES = (1, 1, 2, 2, 2, 3, 4, 5, 8, 31, 33, 64, 65)
MAGNITUDES = (1.0, 30.0, 200.0, 320.0, 745.0, 1000.0)


def shape_of(rng, number, most=MOST_CELLS):
    """Sizes of so many variables, in all at most so many cells."""
    sizes = []
    for _ in range(number):
        left = most // math.prod(sizes)
        sizes.append(int(rng.choice([size for size in SIZES if size <= left])))
    return tuple(int(size) for size in rng.permutation(sizes))


def scopes_of(rng, number):
    """Some sets of 1 to 4 variables: cycles among them need fill edges."""
    return sorted(
        {
            tuple(sorted(rng.choice(number, rng.integers(1, min(4, number) + 1), replace=False).tolist()))
            for _ in range(int(rng.integers(1, 2 + number)))
        }
    )


def potentials_of(rng, sizes, scopes):
    """Log-factors of some of the scopes; some as counts between denormals and 2^53."""
    magnitude, potentials = float(rng.choice(MAGNITUDES)), {}
    for scope in scopes:
        shape = [sizes[variable] for variable in scope]
        if rng.random() < 0.8:
            apart = rng.choice([0, 0, 0.3, 0.5, 0.7, 1], shape)
            potentials[scope] = rng.normal(0, 1, shape) - magnitude * apart
        if rng.random() < 0.2:
            counts = rng.choice([5e-324, 1e-310, 1e-300, 1.0, 12.0, 2.0**31, 2.0**53], shape)
            potentials[scope] = np.log(counts)
    return potentials


def wide(table, scope, number):
    """A table that broadcasts over all variables."""
    order = sorted(range(len(scope)), key=scope.__getitem__)
    shape = [1] * number
    for axis in order:
        shape[scope[axis]] = table.shape[axis]
    return table.transpose(order).reshape(shape)


def logs_of(sizes, potentials):
    """Logarithms of the product of all factors, of every cell."""
    logs = np.zeros(sizes, np.longdouble)
    for scope, table in potentials.items():
        logs = logs + wide(table.astype(np.longdouble), scope, len(sizes))
    return logs


def shares_of(logs, axes=None):
    """Exponentials that sum to one over these axes, and the logarithms of their sums."""
    highest = logs.max(axis=axes, keepdims=True)
    weights = np.exp(logs - highest)
    sums = weights.sum(axis=axes, keepdims=True)
    return weights / sums, highest + np.log(sums)


def dense_of(network):
    """The joint distribution of all variables of a network."""
    table = np.ones([size if v in _drawn(network) else 1 for v, size in enumerate(network.sizes)])
    table = table.astype(np.longdouble)
    for node in network.nodes:
        scope = (*node.parents, *node.variables)
        law = np.zeros([network.sizes[v] for v in scope])
        np.add.at(law, (*node.given.T, *node.values.T), node.weights)
        table = table * wide(law, scope, len(network.sizes))
    return table


def _drawn(network):
    return {variable for node in network.nodes for variable in node.variables}


def apart(got, wanted):
    """Whether two tables differ by more than rounding."""
    wanted = np.asarray(wanted, np.float64)
    return got.shape != wanted.shape or not np.allclose(got, wanted, rtol=1e-8, atol=1e-12)


def calibrated(rng):
    """Beliefs in products and in logarithms, pairs across cliques."""
    sizes = shape_of(rng, int(rng.integers(1, 7)))
    scopes = scopes_of(rng, len(sizes))
    potentials = potentials_of(rng, sizes, scopes)
    table, logarithm = shares_of(logs_of(sizes, potentials))
    tree, faults = junction_tree(sizes, scopes), []
    faults += [f"no clique holds {scope}" for scope in scopes if tree.home(scope) is None]
    ways = {"products": _in_products, "logarithms": _in_logarithms}
    for name, way in ways.items():
        beliefs = way(tree, potentials, room(tree), {})
        if beliefs is None:
            faults += ["no way"] if name == "logarithms" else []
            continue
        faults += _of_cliques(beliefs, table, name)
        if not math.isclose(beliefs.log_partition, float(logarithm.item()), rel_tol=1e-9, abs_tol=1e-9):
            faults.append(f"{name}: the sum of all is off")
    beliefs = calibrate(tree, potentials)
    pairs = list(combinations(range(len(sizes)), 2))
    faults += [
        f"pair {pair}" for pair, t in all_pairs(beliefs, pairs).items() if apart(t, marginal_of(table, pair))
    ]
    singles = [(v,) for v in range(len(sizes))]
    for scope, margin in marginals(beliefs, [*scopes, *singles]).items():
        faults += [f"marginal {scope}"] if apart(margin, marginal_of(table, scope)) else []
    return faults


def _of_cliques(beliefs, table, name):
    return [
        f"{name}: clique {clique}"
        for clique, belief in zip(beliefs.tree.cliques, beliefs.tables, strict=True)
        if apart(belief, marginal_of(table, clique))
    ]


def given_others(rng):
    """Beliefs of variables given others, whose distribution is known."""
    sizes = shape_of(rng, int(rng.integers(2, 7)), 2**12)
    number = len(sizes)
    known = sorted(rng.choice(number, rng.integers(1, number), replace=False).tolist())
    levels = tuple(UNIT if v in known else ROW for v in range(number))
    scopes = scopes_of(rng, number)
    potentials = potentials_of(rng, sizes, scopes)
    law, logarithms = shares_of(logs_of(sizes, potentials), tuple(v for v in range(number) if v not in known))
    cells = [sizes[v] for v in known]
    shares = (1 - 1e-9) * rng.dirichlet(np.full(math.prod(cells), 0.3)) + 1e-9 / math.prod(cells)
    shares = wide(shares.reshape(cells), known, number)
    tree = junction_tree(sizes, scopes, levels, known)
    tables = {
        i: np.asarray(marginal_of(shares * law, tree.cliques[i]), np.float64) for i in tree.given_cliques
    }
    faults = []
    for name, way in (("products", _in_products), ("logarithms", _in_logarithms)):
        beliefs = way(tree, potentials, room(tree), tables)
        if beliefs is None:
            continue
        faults += _of_cliques(beliefs, shares * law, f"given, {name}")
        if not math.isclose(
            beliefs.log_partition, float((shares * logarithms).sum()), rel_tol=1e-8, abs_tol=1e-8
        ):
            faults.append(f"given, {name}: the mean sum is off")
    return faults


def networks_of_trees(rng):
    """Networks of calibrated trees, with levels and without, and codes below working bins."""
    sizes = shape_of(rng, int(rng.integers(1, 5)), 2**7)
    number, scopes = len(sizes), scopes_of(rng, len(sizes))
    potentials = potentials_of(rng, sizes, scopes)
    levels = tuple(int(v) for v in rng.choice([UNIT, MOMENT, ROW], number)) if rng.random() < 0.5 else ()
    beliefs = calibrate(junction_tree(sizes, scopes, levels), potentials)
    attributes = int(rng.integers(1, number + 1))
    bins, within = [], []
    for size in sizes[:attributes]:
        bin_of = np.concatenate([np.arange(size), rng.integers(size, size=int(rng.integers(0, 3)))])
        weights = rng.choice([5e-324, 1e-300, 0.3, 1.0], bin_of.size)
        bins.append(bin_of)
        within.append(weights / np.bincount(bin_of, weights)[bin_of])
    names = [f"x{v}" for v in range(attributes)]
    network = (levelled_network if levels else tree_network)(beliefs, bins, within, names)
    table = shares_of(logs_of(sizes, potentials))[0]
    wanted = marginal_of(table, range(attributes))
    for axis in range(attributes):
        wanted = wanted.take(bins[axis], axis) * wide(within[axis], [axis], attributes)
    dense = dense_of(network)
    got = marginal_of(dense, network.codes).astype(np.float64)
    faults = ["network of a tree"] if apart(got, wanted) else []
    if apart(joint(network, network.codes), wanted):
        faults.append("marginal of the network of a tree")
    return faults


def random_network(rng):
    """Variables with up to three earlier ones as parents, zeros, and weights far apart."""
    sizes, nodes = shape_of(rng, int(rng.integers(1, 8))), []
    for variable, size in enumerate(sizes):
        parents = [int(p) for p in rng.permutation(variable)[: rng.integers(0, 4)]]
        shape = [*(sizes[p] for p in parents), size]
        table = rng.random(shape) * (rng.random(shape) < 0.7)
        table *= rng.choice(
            [5e-324, 1e-308, 1e-160, 1.0, 2.0**53], [*shape[:-1], 1] if rng.random() < 0.5 else shape
        )
        table[..., rng.integers(size)] += 5e-324
        if size > 1:
            nodes.append(node_of(f"x{variable}", parents, (variable,), table))
    codes = tuple(int(v) for v in rng.permutation(len(sizes))[: max(1, len(sizes) - int(rng.integers(0, 3)))])
    return Network(sizes, tuple(nodes), codes)


def eliminated(rng):
    """Marginals of a network and of the same with neighbours drawn together; no step beyond its bound."""
    network, faults = random_network(rng), []
    table = dense_of(network)
    together = Network(network.sizes, joined(network.nodes, network.sizes), network.codes)
    if apart(dense_of(together).astype(np.float64), table):
        faults.append("joined nodes")
    scopes = list(permutations(network.codes, int(rng.integers(1, min(4, len(network.codes)) + 1))))
    for index in rng.choice(len(scopes), min(3, len(scopes)), replace=False):
        scope = scopes[index]
        work = work_of(network, scope)
        if not fits(network, scope) or work is None or work < math.prod(network.sizes[v] for v in scope):
            faults.append(f"work of {scope}")
        for kind in (network, together):
            faults += (
                [f"marginal of a network {scope}"]
                if apart(joint(kind, scope), marginal_of(table, scope))
                else []
            )
    return faults


def multiplied(rng):
    """Products of two tables with any of the axes, near the limits of the ways to multiply."""
    sizes = tuple(int(n) for n in rng.choice([1, 2, 3, 31, 32, 33, 63, 64, 65], int(rng.integers(1, 5))))
    if math.prod(sizes) > 2**17:
        return []
    first, second = (rng.random([n if rng.random() < 0.6 else 1 for n in sizes]) for _ in range(2))
    faults = [] if np.array_equal(_times(first, second), first * second) else [f"product over {sizes}"]
    if not np.array_equal(_times(first, second, np.empty(sizes)), np.broadcast_to(first * second, sizes)):
        faults.append(f"product into {sizes}")
    return faults


CHECKS = (
    calibrated,
    given_others,
    networks_of_trees,
    eliminated,
    multiplied,
)


def differences(case):
    """What differs from brute force in the case of this number."""
    rng, faults = np.random.default_rng(case), []
    with np.errstate(under="ignore"):
        for check in CHECKS:
            faults += check(rng)
    return faults
