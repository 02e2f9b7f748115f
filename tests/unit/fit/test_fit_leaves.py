"""Counts along a tree, and the codes that are made of its nodes."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.trees import Even, partition

from dpsyn_sql.attributes.attribute import MAX_SIZE, OTHER
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.discovery.branches import Branches, branches_of, estimated, nearest, settled
from dpsyn_sql.discovery.leaves import (
    _siblings,
    attribute_of_tree,
    coarsened,
    codes_of_leaves,
    committed_key,
    key_of_tree,
    leaves_of_runs,
    unique,
)
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import NoisyLeaves, NoisyTree

TREES = st.builds(Even, st.integers(2, 4), st.integers(1, 5), st.booleans())
SEEDS = st.integers(0, 2**32)


def grown(tree: Even, seed: int, opened: float = 0.6) -> tuple[Branches, np.random.Generator]:
    generator = np.random.default_rng(seed)
    return branches_of(tree, *partition(tree, generator, opened)), generator


def column(tree: Even, most: int = 100, nullable: bool = False) -> Undiscovered:
    return Undiscovered("key", "VARCHAR", "categorical", nullable, most, hierarchy=tree)


def interval(tree: Even, level: int, node: int) -> range:
    width = tree.branching ** (tree.depth - level)
    return range(node * width, (node + 1) * width)


@given(TREES, SEEDS)
def test_nodes_know_their_leaves(tree: Even, seed: int) -> None:
    generator = np.random.default_rng(seed)
    levels, nodes = partition(tree, generator)
    branches = branches_of(tree, levels, nodes)
    own = [interval(tree, *leaf) for leaf in zip(levels.tolist(), nodes.tolist(), strict=True)]
    places = range(branches.parents.size)
    for place, level, node in zip(places, branches.levels.tolist(), branches.ids.tolist(), strict=True):
        whole = interval(tree, level, node)
        below = [i for i, leaf in enumerate(own) if leaf.start >= whole.start and leaf.stop <= whole.stop]
        assert list(range(branches.starts[place], branches.ends[place])) == below
    leaves = set(zip(levels.tolist(), nodes.tolist(), strict=True))
    shown = zip(branches.levels.tolist(), branches.ids.tolist(), strict=True)
    assert [node in leaves for node in shown] == (~branches.split).tolist()
    rows = generator.integers(-5, 50, len(own)).astype(float)
    sums = [rows[a:b].sum() for a, b in zip(branches.starts, branches.ends, strict=True)]
    found = estimated(branches, rows, 3.0)
    assert np.allclose(found.values, sums)
    assert np.allclose(found.variances, 3.0 * (branches.ends - branches.starts))


def test_what_is_no_partition_is_refused() -> None:
    tree = Even(2, 2)
    with pytest.raises(InternalError):
        branches_of(tree, np.array([1]), np.array([0]))  # half of it
    with pytest.raises(InternalError):
        branches_of(tree, np.array([1, 1, 2]), np.array([0, 1, 0]))  # a leaf below a leaf


def brute_nearest(values: np.ndarray, weights: np.ndarray, total: float) -> np.ndarray:
    """Over all sets of counts above 0."""
    best, found = np.inf, np.zeros(values.size)
    for kept in product((False, True), repeat=values.size):
        own = np.array(kept)
        if not own.any():
            continue
        shift = (total - values[own].sum()) / weights[own].sum()
        counts = np.where(own, values + weights * shift, 0.0)
        far = float(((counts - values) ** 2 / weights).sum())
        if (counts >= -1e-12).all() and far < best:
            best, found = far, counts
    return found


@given(
    st.lists(st.tuples(st.integers(-30, 60), st.integers(1, 9)), min_size=1, max_size=6), st.integers(0, 90)
)
def test_the_nearest_counts_are_those_of_brute_force(pairs: list[tuple[int, int]], total: int) -> None:
    values, weights = (np.array(own, float) for own in zip(*pairs, strict=True))
    found = nearest(values, weights, total)
    assert found.sum() == pytest.approx(total)
    assert (found >= 0).all()
    assert np.allclose(found, brute_nearest(values, weights, total), atol=1e-6)


@given(TREES, SEEDS, st.floats(-50, 500))
def test_counts_agree_along_the_tree(tree: Even, seed: int, total: float) -> None:
    branches, generator = grown(tree, seed)
    leaves = generator.normal(2, 10, int(branches.ends[0]))
    levels = [
        generator.normal(20, 5, high - low).astype(np.int64) for low, high in pairwise(branches.offsets[:-1])
    ]
    counts = settled(branches, estimated(branches, leaves, 100.0, levels, 25.0), total)
    assert (counts >= 0).all()
    assert counts[0] == pytest.approx(max(0.0, total))
    own = counts[leaf_order(branches)]
    sums = [own[a:b].sum() for a, b in zip(branches.starts, branches.ends, strict=True)]
    assert np.allclose(counts, sums, atol=1e-6)


@given(TREES, SEEDS, st.floats(0.1, 10), st.integers(0, 5))
def test_estimates_are_least_squares(tree: Even, seed: int, of_levels: float, asked: int) -> None:
    """Against the normal equations, and the best split of a known total."""
    branches, generator = grown(tree, seed)
    number = int(branches.ends[0])
    leaves = generator.normal(20, 10, number)
    sizes = np.diff(branches.offsets)[:asked]
    levels = [generator.integers(0, 90, size) for size in sizes.tolist()]
    members = np.array(
        [
            [a <= leaf < b for leaf in range(number)]
            for a, b in zip(branches.starts, branches.ends, strict=True)
        ],
        float,
    )
    design = np.concatenate([np.eye(number), members[: int(sizes.sum())]])
    answers = np.concatenate([leaves, *levels])
    weights = np.concatenate([np.full(number, 1 / 2.0), np.full(int(sizes.sum()), 1 / of_levels)])
    normal = design.T @ (weights[:, None] * design)
    best = np.linalg.solve(normal, design.T @ (weights * answers))
    found = estimated(branches, leaves, 2.0, levels, of_levels)
    assert found.values[0] == pytest.approx(best.sum())
    assert found.variances[0] == pytest.approx(np.linalg.inv(normal).sum())
    if (best >= 0).all() and (members @ best >= 0).all():
        assert np.allclose(settled(branches, found), members @ best, atol=1e-6)


@given(TREES, SEEDS, st.floats(0.5, 3))
def test_what_is_below_its_noise_goes_to_siblings(tree: Even, seed: int, clear: float) -> None:
    """Counts agree; a node of few deviations has no rows unless its siblings have none either, and the others
    keep their proportions."""
    branches, generator = grown(tree, seed)
    leaves = generator.normal(8, 10, int(branches.ends[0]))
    estimates = estimated(branches, leaves, 100.0)
    counts = settled(branches, estimates, 300.0, clear)
    assert counts[0] == 300.0 and (counts >= 0).all()
    for parent in np.flatnonzero(branches.split):
        below = np.flatnonzero(branches.parents == parent)
        assert counts[below].sum() == pytest.approx(counts[parent])
        variances = estimates.variances[below]
        alone = nearest(estimates.values[below], variances, float(counts[parent]))
        kept = alone >= clear * np.sqrt(variances)
        if not kept.any():
            assert np.allclose(counts[below], alone)
        else:
            assert (counts[below][~kept] == 0).all()
            shares = alone[kept] / alone[kept].sum()
            assert np.allclose(counts[below][kept], shares * counts[parent])


def test_empty_leaves_beside_full_ones_get_few_rows() -> None:
    """Half of the leaves are empty: the noise that is left in them is a fraction of what it is without."""
    tree = Even(4, 5)
    branches = branches_of(tree, np.full(4**5, 5), np.arange(4**5))
    generator = np.random.default_rng(2)
    rows = np.where(np.arange(4**5) % 2, 0, 60)
    estimates = estimated(branches, rows + generator.normal(0, 10, rows.size), 100.0)
    inside = [settled(branches, estimates, None, clear)[leaf_order(branches)] for clear in (0.0, 1.5)]
    wrong = [own[rows == 0].sum() / own.sum() for own in inside]
    assert wrong[1] < 0.6 * wrong[0] and wrong[0] > 0.04
    assert np.abs(inside[1] - rows).sum() <= np.abs(inside[0] - rows).sum()


def node_of(branches: Branches, place: int) -> tuple[int, int]:
    return int(branches.levels[place]), int(branches.ids[place])


def leaf_order(branches: Branches) -> np.ndarray:
    own = np.flatnonzero(~branches.split)
    return own[np.argsort(branches.starts[own])]


def test_many_empty_leaves_do_not_take_rows_from_the_node_beside_them() -> None:
    tree = Even(2, 11)
    levels = np.array([1] + [11] * 2**10)
    branches = branches_of(tree, levels, np.array([0, *range(2**10, 2**11)]))
    leaves = np.random.default_rng(1).normal(0, 10, levels.size)
    leaves[0] += 1000
    kept = settled(branches, estimated(branches, leaves, 100.0), 1000)[1]
    clipped = np.maximum(leaves, 0)
    assert abs(kept - 1000) < 40
    assert clipped[0] / clipped.sum() < 0.3  # what the noise above 0 would leave of it


@given(TREES, SEEDS, st.integers(1, 40), st.sampled_from([1.0, 30.0]))
def test_codes_are_few_and_cover_the_tree_in_order(tree: Even, seed: int, most: int, least: float) -> None:
    branches, generator = grown(tree, seed, 0.8)
    leaves = generator.pareto(0.7, int(branches.ends[0])) * generator.integers(0, 2, int(branches.ends[0]))
    counts = settled(branches, estimated(branches, leaves, 1.0))
    runs = coarsened(branches, counts, most, least)
    assert 1 <= len(runs) <= most
    ends = [(branches.starts[run.nodes[0]], branches.ends[run.nodes[-1]]) for run in runs]
    assert ends[0][0] == 0
    assert ends[-1][1] == branches.ends[0]
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    assert all(branches.ends[a] == branches.starts[b] for run in runs for a, b in pairwise(run.nodes))
    assert np.allclose([run.rows for run in runs], [counts[list(run.nodes)].sum() for run in runs])
    found = leaves_of_runs(tree, branches, counts, runs)
    assert list(found.codes) == sorted(found.codes)
    assert set(found.codes) == set(range(len(runs)))
    assert np.allclose(np.bincount(found.codes, found.rows), [run.rows for run in runs])
    spans = [interval(tree, *leaf) for leaf in zip(found.levels[0], found.nodes[0], strict=True)]
    places = [place for span in spans for place in span]
    assert places == sorted(set(places))
    codes = codes_of_leaves(branches, runs)
    rows = np.array(found.rows)
    for code, run in enumerate(runs):
        own = np.array(found.codes) == code
        assert spans[own.argmax()][0] == interval(tree, *node_of(branches, run.nodes[0]))[0]
        if run.rows > 0:
            assert (rows[own][1:] > 0).all()
        else:
            held = sum(branches.ends[node] - branches.starts[node] for node in run.nodes)
            assert 0 < own.sum() <= held
    full = {node_of(branches, node) for node in leaf_order(branches) if counts[node] > 0}
    assert full <= set(zip(found.levels[0], found.nodes[0], strict=True))
    for code, (start, end) in enumerate(ends):
        assert (codes[start:end] == code).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.0, 0.0, 1.0, 4.0, 9.0])), min_size=1))
def test_runs_of_siblings_are_those_of_a_loop(nodes: list[tuple[int, float]]) -> None:
    parents, rows = (np.array(own) for own in zip(*sorted(nodes, key=lambda one: one[0]), strict=True))
    runs = list[list[int]]()
    for place, parent in enumerate(parents.tolist()):
        beside = runs and parents[runs[-1][0]] == parent
        if beside and rows[runs[-1]].sum() + rows[place] < 5:
            runs[-1].append(place)
        else:
            runs.append([place])
    begins, sums = _siblings(parents, rows, 5.0)
    assert begins == [run[0] for run in runs]
    assert sums == [rows[run].sum() for run in runs]


def test_a_leaf_of_many_rows_has_its_own_code() -> None:
    tree = Even(4, 6)
    generator = np.random.default_rng(3)
    levels, nodes = partition(tree, generator, 0.95)
    branches = branches_of(tree, levels, nodes)
    leaves = generator.integers(0, 3, levels.size).astype(float)
    heavy = generator.choice(levels.size, 10, replace=False)
    leaves[heavy] = 10 * leaves.sum()
    runs = coarsened(branches, settled(branches, estimated(branches, leaves, 1.0)), 60)
    for place in heavy.tolist():
        run = next(r for r in runs if branches.starts[r.nodes[0]] <= place < branches.ends[r.nodes[-1]])
        assert run.rows < leaves[place] + 0.5 * leaves[heavy].min()


def test_a_chain_of_single_nodes_takes_few_codes() -> None:
    tree = Even(4, 9)
    levels = [level for level in range(1, 10) for _ in range(3)] + [9]
    node, nodes = 1, list[int]()
    for level in range(1, 10):
        siblings = [node // 4 * 4 + digit for digit in range(4)]
        nodes += [one for one in siblings if one != node]
        node = node * 4 + 1 if level < 9 else node
    pairs = sorted(zip(levels, [*nodes, node], strict=True), key=lambda leaf: leaf[1] * 4 ** (9 - leaf[0]))
    branches = branches_of(tree, *(np.array(own) for own in zip(*pairs, strict=True)))
    leaves = np.zeros(len(pairs))
    leaves[[place for place, pair in enumerate(pairs) if pair == (9, node)]] = 1000.0
    assert len(coarsened(branches, settled(branches, estimated(branches, leaves, 1.0)), 50)) == 1


def test_labels_differ() -> None:
    assert unique(["a", "b", "a", OTHER, "a "]) == ("a", "b", "a ", f"{OTHER} ", "a  ")


@given(TREES, SEEDS, st.integers(3, 30), st.booleans())
def test_an_attribute_of_noisy_leaves(tree: Even, seed: int, most: int, nullable: bool) -> None:
    generator = np.random.default_rng(seed)
    levels, nodes = partition(tree, generator)
    noisy = NoisyLeaves(generator.integers(-20, 200, levels.size + 2), 10.0)
    found = attribute_of_tree(column(tree, most, nullable), NoisyTree((levels,), (nodes,)), noisy)
    assert found.size <= most
    assert found.other and found.nullable == nullable
    assert found.leaves is not None
    assert found.regular == max(found.leaves.codes) + 1 == len(set(found.labels))


@given(TREES, SEEDS, st.booleans())
def test_a_key_has_a_code_for_each_leaf_and_the_rows_of_the_total(
    tree: Even, seed: int, nullable: bool
) -> None:
    generator = np.random.default_rng(seed)
    levels, nodes = partition(tree, generator)
    noisy = NoisyLeaves(generator.integers(-20, 200, levels.size + 2), 10.0)
    whole = NoisyLeaves(np.array([noisy.values[:-2].sum() + 7, 5, -3]), 2.0)
    own = [column(tree, nullable=nullable)]
    attribute, counted = key_of_tree(own, NoisyTree((levels,), (nodes,)), noisy, whole)
    assert attribute.regular == levels.size
    assert counted.rows.size == attribute.size == counted.tables[1].values.size
    assert counted.rows.sum() == pytest.approx(max(0, counted.total), abs=0.51)
    assert not counted.committed


@given(TREES, SEEDS)
def test_committed_counts_stay_as_they_are(tree: Even, seed: int) -> None:
    generator = np.random.default_rng(seed)
    levels, nodes = partition(tree, generator)
    rows = generator.integers(0, 200, levels.size)
    tree_ = NoisyTree((levels,), (nodes,), rows, 10.0)
    attribute, counted = committed_key([column(tree)], tree_, NoisyLeaves(np.array([999, 7, -3]), 2.0))
    assert attribute.regular == levels.size
    assert counted.rows.tolist() == [*rows.tolist(), 7]
    assert counted.total == rows.sum() + 7
    assert counted.committed


@pytest.mark.slow
def test_more_leaves_than_codes_are_coarsened() -> None:
    tree = Even(4, 9)
    levels, nodes = np.full(4**9, 9), np.arange(4**9)
    rows = np.random.default_rng(5).poisson(2, 4**9)
    whole = NoisyLeaves(np.array([rows.sum(), 0, 0]), 1.0)
    attribute, counted = committed_key([column(tree)], NoisyTree((levels,), (nodes,), rows, 1.0), whole)
    assert MAX_SIZE // 4 < attribute.size <= MAX_SIZE
    assert counted.rows.sum() == rows.sum()
    assert attribute.leaves is not None
    assert len(attribute.leaves.rows) > attribute.size


def test_a_key_of_two_hierarchies() -> None:
    one, two = Even(2, 2, name="a"), Even(3, 1, name="b")
    columns = [Undiscovered(h.name, "VARCHAR", "categorical", False, 100, hierarchy=h) for h in (one, two)]
    levels = (np.array([1, 1, 1, 1]), np.array([0, 1, 1, 1]))
    nodes = (np.array([0, 1, 1, 1]), np.array([0, 0, 1, 2]))
    counted = NoisyLeaves(np.array([50, 10, -4, 20, 3, 0]), 2.0)
    whole = NoisyLeaves(np.array([76, 3, 0]), 2.0)
    attribute, found = key_of_tree(columns, NoisyTree(levels, nodes), counted, whole)
    assert attribute.labels == ("1:0, 0:0", "1:1, 1:0", "1:1, 1:1", "1:1, 1:2")
    assert attribute.leaves is not None
    assert attribute.leaves.hierarchies == (one, two)
    assert found.rows[2] == 0
    assert found.rows.sum() == pytest.approx(found.total, abs=0.51)
