"""Quotas: right sums, running counts on course, fewest losses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.sample.quotas import Quotas, batch_sizes, code_type, listed, meet_quotas, rounded_counts

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=12).filter(lambda p: sum(p) > 0.01)


@given(probabilities, st.integers(0, 10**7))
def test_rounding(p, rows):
    p = np.array(p) / sum(p)
    counts = rounded_counts(p, rows)
    assert counts.sum() == rows and counts.min() >= 0
    assert np.abs(counts - p * rows).max() < 1 + 1e-6


@given(probabilities, st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_running_counts_stay_within_rounding(p, sizes):
    p = np.array(p) / sum(p)
    quotas, given_ = Quotas(p), np.zeros(p.size)
    for size in sizes:
        quota = quotas.next(size)
        assert quota.sum() == size and quota.min() >= 0
        given_ += quota
    assert np.abs(given_ - p * sum(sizes)).max() < p.size + 1


@given(st.integers(1, 9), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_quotas_are_met_whatever_the_scores(size, rows, seed):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((rows, size)).astype(np.float32)
    winners = scores.argmax(axis=1) if rows else np.zeros(0, dtype=np.int64)
    quota = rng.multinomial(rows, rng.dirichlet(np.full(size, 0.3)))
    meet_quotas(listed(scores), winners, quota)
    np.testing.assert_array_equal(np.bincount(winners, minlength=size), quota)


def test_only_as_many_rows_move_as_must():
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((10_000, 5))
    before = scores.argmax(axis=1)
    counts = np.bincount(before, minlength=5)
    quota = counts + np.array([-30, 10, 20, 0, 0])
    after = before.copy()
    meet_quotas(listed(scores), after, quota)
    moved = np.flatnonzero(before != after)
    assert moved.size == 30 and set(before[moved]) == {0}
    # They lose little: they were close calls.
    loss = scores[moved, before[moved]] - scores[moved, after[moved]]
    assert loss.mean() < 0.5


@given(st.integers(-5, 5000), st.integers(1, 600))
def test_batches(rows, largest):
    sizes = batch_sizes(rows, largest)
    assert sum(sizes) == max(0, rows)
    assert all(0 < size <= largest for size in sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("size", "expected"), [(1, np.uint8), (256, np.uint8), (257, np.uint16), (70_000, np.uint32)]
)
def test_code_type(size, expected):
    assert code_type(size) is expected
