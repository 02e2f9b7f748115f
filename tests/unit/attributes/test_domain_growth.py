"""Trees grow level by level to partitions, and nodes that share values are noticed; against a brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hierarchies import Halves, Letters

from dpsyn_sql.attributes.growth import Growth, Nodes, disjoint

NUMBER, TEXT = Halves("n", 3), Letters("s", 3)
TREES = {"numbers": (NUMBER,), "letters": (TEXT,), "both": (NUMBER, TEXT), "twice": (NUMBER, NUMBER, TEXT)}
VALUES = {
    "n": list(range(8)),
    "s": [TEXT.key_of("".join(text)) for length in range(4) for text in product("Aa", repeat=length)],
}


def keys_of(trees):
    return list(product(*(VALUES[tree.name] for tree in trees)))


def grown(trees, rng, most=10_000, share=0.6):
    """A random tree; of each level its verdicts' numbers, so that one can follow them to the leaves."""
    growth, numbers = Growth(trees, sum(tree.depth for tree in trees), most), []
    while True:
        numbers.append(rng.integers(0, 10**9, len(growth.nodes)))
        refined = growth.split(rng.random(len(growth.nodes)) < share)
        parts = [rng.choice(np.flatnonzero(may)) if may.any() else -1 for may in refined]
        if not growth.by(np.array(parts, dtype=np.int64)):
            return growth, numbers


def inside(trees, nodes, keys):
    """Of each node the keys that it holds."""
    return [
        {
            key
            for key in keys
            if all(
                tree.node_of(one, int(level[place])) == ids[place]
                for tree, one, level, ids in zip(trees, key, nodes.levels, nodes.ids, strict=True)
            )
        }
        for place in range(len(nodes))
    ]


@pytest.mark.parametrize("name", TREES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_leaves_hold_every_key_once_and_ascend(name, seed):
    trees, keys = TREES[name], keys_of(TREES[name])
    growth, _ = grown(trees, np.random.default_rng(seed))
    leaves = growth.leaves()
    held = inside(trees, leaves, keys)
    assert all(held) and sum(map(len, held)) == len(keys) and set().union(*held) == set(keys)
    assert disjoint(trees, leaves)
    if len(trees) == 1:
        assert [key for one in held for key in sorted(one)] == sorted(keys)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_numbers_of_nodes_go_with_their_leaves(seed):
    growth, numbers = grown((TEXT,), np.random.default_rng(seed))
    found = growth.of_leaves(numbers)
    assert len(found) == len(growth.leaves()) and set(found) <= set(np.concatenate(numbers).tolist())
    assert len(set(found.tolist())) == len(found)
    assert growth.of_leaves(numbers[:-1]) is None
    own = Growth((TEXT,), 3, 100)
    levels = [own.nodes]
    for _ in range(2):
        own.by(np.where(own.split(np.ones(len(own.nodes), dtype=bool))[:, 0], 0, -1))
        levels.append(own.nodes)
    first = [np.array([ord(id_[0]) if id_ else 0 for id_ in level.ids[0]]) for level in levels]
    assert own.of_leaves(first).tolist() == [ord(id_[0]) for id_ in own.leaves().ids[0]]


@pytest.mark.parametrize("name", TREES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), number=st.integers(0, 5))
def test_nodes_are_disjoint_if_no_key_is_in_two(name, seed, number):
    """Any nodes, leaves of a tree or not. Boxes that no sequence of splits tells apart may be refused."""
    trees, keys, rng = TREES[name], keys_of(TREES[name]), np.random.default_rng(seed)
    places = rng.integers(0, len(keys), number)
    levels = [rng.integers(0, tree.depth + 1, number) for tree in trees]
    ids = [
        np.array(
            [tree.node_of(keys[key][part], int(levels[part][place])) for place, key in enumerate(places)]
        )
        for part, tree in enumerate(trees)
    ]
    ids = [own.astype(object if tree.text else np.int64) for own, tree in zip(ids, trees, strict=True)]
    nodes = Nodes(tuple(levels), tuple(ids), np.zeros(number, dtype=np.int64))
    held = inside(trees, nodes, keys)
    apart = sum(map(len, held)) == len(set().union(*held))
    found = disjoint(trees, nodes)
    assert not found or apart
    if len(trees) == 1:
        assert found == apart


def test_text_that_has_ended_is_one_value_at_every_level():
    texts = TREES["letters"]
    twice = np.array(["\x03", "\x03"], dtype=object)
    assert not disjoint(texts, Nodes((np.array([3, 3]),), (twice,), np.zeros(2, dtype=np.int64)))


@pytest.mark.parametrize("name", ["numbers", "both"])
def test_a_level_that_is_too_large_is_not_made(name):
    trees = TREES[name]
    growth = Growth(trees, 3, 3)
    everything = np.ones(1, dtype=bool)
    refined = growth.split(everything)
    assert refined.shape == (1, len(trees)) and refined[0, 0]
    assert growth.by(np.zeros(1, dtype=np.int64)) and len(growth.nodes) == 2
    assert not growth.split(np.ones(2, dtype=bool)).any()  # four children, or more
    assert not growth.by(np.full(2, -1, dtype=np.int64))
    assert growth.leaves().levels[0].tolist() == [1, 1]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 14))
@pytest.mark.parametrize("name", ["numbers", "letters", "both"])
def test_of_a_level_that_is_too_large_the_nodes_of_most_rows_are_split(name, seed, most):
    """Against a loop over the nodes by their counts. Text that has ended takes no room."""
    trees, rng = TREES[name], np.random.default_rng(seed)
    growth = Growth(trees, 9, most)
    for _ in range(6):
        nodes = growth.nodes
        counts, verdict = rng.integers(-3, 4, len(nodes)), rng.random(len(nodes)) < 0.8
        refined = growth.split(verdict, counts)
        for part, tree in enumerate(trees):
            room, wanted = most, np.zeros(len(nodes), dtype=bool)
            order = sorted(np.flatnonzero(verdict).tolist(), key=lambda place: (-counts[place], place))
            if len(trees) > 1:  # level by level of the part
                order.sort(key=lambda place: nodes.levels[part][place])
            for place in order:
                level = int(nodes.levels[part][place])
                below = tree.children(nodes.ids[part][[place]], level)[0] if level < tree.depth else []
                if len(below) > room:
                    break
                room -= len(below)
                wanted[place] = len(below) > 0
            assert refined[:, part].tolist() == wanted.tolist()
        parts = np.where(refined.any(axis=1), refined.argmax(axis=1), -1)
        if not growth.by(parts):
            break
        assert 0 < len(growth.nodes) <= most and (np.diff(growth.nodes.parents) >= 0).all()
    keys = keys_of(trees)
    held = inside(trees, growth.leaves(), keys)
    assert all(held) and sum(map(len, held)) == len(keys)


def test_a_tree_ends_at_its_depth():
    growth = Growth((NUMBER,), 1, 100)
    growth.split(np.ones(1, dtype=bool))
    assert growth.by(np.zeros(1, dtype=np.int64))
    assert growth.level == 1 and not growth.split(np.ones(2, dtype=bool)).any()
    assert growth.leaves().ids[0].tolist() == [0, 1]
