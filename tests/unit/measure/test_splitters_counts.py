"""Splitters that store noisy counts: basic and direct."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_trees import distribution, level_sums, loss, outcomes, walk

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.splitters import Basic, Direct, Level


class Told:
    """Gives told answers instead of noisy ones, and keeps the exact counts that it was given."""

    def __init__(self, answers):
        self.answers, self.seen = iter(answers), []

    def laplace(self, values, scale):
        self.seen.append(values.copy())
        return np.array(list(itertools.islice(self.answers, len(values))), dtype=np.int64)


@settings(max_examples=80)
@given(
    st.sampled_from([Basic, Direct]),
    st.lists(st.integers(0, 9), min_size=16, max_size=16),
    st.lists(st.integers(0, 15), max_size=3),
    st.lists(st.integers(-3, 12), min_size=31, max_size=31),
)
def test_k_rows_more_change_k_counts_of_every_level_that_is_charged(kind, counts, cells, answers):
    """With the same noisy answers the same nodes are counted, and a row is in one node of a level."""
    depth = 4
    splitter = kind(LaplaceEvent(depth * 3 / 0.5, depth * 3), 3)
    more = [count + cells.count(cell) for cell, count in enumerate(counts)]
    doors = Told(answers), Told(answers)
    stored = [walk(splitter, depth, 2, rows, door) for rows, door in zip((counts, more), doors, strict=True)]
    assert stored[0] == stored[1]
    seen = [door.seen for door in doors]
    assert len(seen[0]) == len(seen[1]) <= depth + splitter.leaves
    for one, other in zip(*seen, strict=True):
        assert one.shape == other.shape and np.abs(other - one).sum() <= len(cells)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=8, max_size=8), st.integers(0, 7), st.sampled_from([0.7, 2.0]))
def test_decisions_of_basic_cost_less_than_its_noise(counts, cell, scale):
    """Every output of a tree of three levels, by exact probabilities."""
    splitter = Basic(LaplaceEvent(scale, 3), 4)
    before = distribution(splitter, 3, 2, counts, 4)
    counts[cell] += 1
    assert loss(before, distribution(splitter, 3, 2, counts, 4)) <= float(splitter.event.cost("pure")) + 1e-9


def test_fewer_levels_than_are_asked_for_would_break_the_claim():
    """A full node on every level: each test loses nearly its whole 1 / scale."""
    scale = 2.0
    splitter = Basic(LaplaceEvent(scale, 3), 9)
    empty, full = ([rows, 0, 0, 0, 0, 0, 0, 0] for rows in (4, 5))
    worst = loss(distribution(splitter, 3, 2, empty, 9), distribution(splitter, 3, 2, full, 9))
    assert 2 / scale < worst <= 3 / scale + 1e-9


def laplace_within(choose, reach):
    """Discrete Laplace noise cut at +-reach, every value with its probability before the cut."""

    class Noise:
        def laplace(self, values, scale):
            ratio = math.exp(-1 / scale)
            noise = range(-reach, reach + 1)
            options = [(z, (1 - ratio) / (1 + ratio) * ratio ** abs(z)) for z in noise]
            return values + np.array([choose(options) for _ in values], dtype=np.int64)

    return Noise()


def test_the_noisy_counts_of_direct_cost_what_is_charged():
    """Every noisy answer of a small tree with noise of a few values: log-ratios of all that both can give."""
    scale, reach, found = 1.5, 1, []
    splitter = Direct(LaplaceEvent(scale, 3), 3)
    for counts in ([2, 1, 0, 0], [3, 1, 0, 0]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(math, "isclose", lambda *a, **k: True)  # what is cut off is missing
            found.append(
                outcomes(lambda choose, c=counts: walk(splitter, 2, 2, c, laplace_within(choose, reach)))
            )
    ratios = [abs(math.log(found[0][answer] / found[1][answer])) for answer in found[0] if answer in found[1]]
    assert max(ratios) == pytest.approx(3 / scale)


# -- what is read ---------------------------------------------------------------------------------------------


def test_basic_splits_noisy_counts_from_the_threshold():
    read = Basic(GaussianEvent(2.0, 3), 4).reading().level(np.array([3, 4, -1]), np.zeros(3, dtype=np.int64))
    assert read.split.tolist() == [False, True, False] and read.counts.tolist() == [3, 4, -1]


def levels_of(splitter, stored, branching):
    """What is read of every level, and where the parents are."""
    reading, parents, found = splitter.reading(), np.zeros(1, dtype=np.int64), []
    for array in stored:
        level = reading.level(np.array(array), parents)
        found.append((level, parents))
        parents = np.repeat(np.flatnonzero(level.split), branching)
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=27, max_size=27),
    st.floats(0.3, 30),
    st.integers(1, 9),
    st.sampled_from([2**20, 9]),
)
def test_direct_commits_children_to_the_count_of_their_parent(counts, scale, threshold, most):
    splitter = Direct(LaplaceEvent(scale, 4), threshold)
    levels = levels_of(splitter, walk(splitter, 3, 3, counts, ExactNoise(), most=most), 3)
    committed, leaves = levels[0][0].counts, 0
    for (above, _), (level, parents) in itertools.pairwise(levels):
        assert level.counts.min() >= 0
        sums = np.bincount(parents, weights=level.counts, minlength=len(above.counts))
        assert sums[above.split].tolist() == above.counts[above.split].tolist()
        assert above.split.tolist() == (above.counts >= threshold).tolist()
        leaves += above.counts[~above.split].sum()
    assert leaves + levels[-1][0].counts.sum() == committed.sum()


class Exactly:
    def laplace(self, values, scale):
        return values


@given(st.lists(st.integers(0, 5), min_size=16, max_size=16))
def test_without_noise_direct_commits_to_the_exact_counts(counts):
    splitter = Direct(LaplaceEvent(1.0, 5), 1)
    levels = levels_of(splitter, walk(splitter, 4, 2, counts, Exactly()), 2)
    for (level, _), exact in zip(levels, level_sums(counts, 2), strict=False):
        assert sorted(level.counts[level.counts > 0]) == sorted(count for count in exact if count)


def test_a_negative_root_commits_to_nothing():
    level: Level = Direct(LaplaceEvent(1.0, 2), 1).reading().level(np.array([-4]), np.array([0]))
    assert level.counts.tolist() == [0] and level.split.tolist() == [False]


def test_lattice_noise_comes_back_in_whole_rows():
    event = GaussianEvent(3.0, 2, 16)
    tests = Basic(event, 5).tests(ExactNoise())
    noisy = tests.level(np.full(20_000, 100), np.zeros(20_000, dtype=np.int64))
    assert noisy.dtype == np.int64
    assert np.mean(noisy) == pytest.approx(100, abs=0.2) and np.std(noisy) == pytest.approx(3.02, abs=0.15)
