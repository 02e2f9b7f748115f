"""Quotas, counted rows and units: right sums, running counts on course, fewest losses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.rows.sample import systematic
from dpsyn_sql.rows.sample.sql_rows import independent_rows
from dpsyn_sql.rows.sample.systematic import (
    BATCH_ROWS,
    Quotas,
    batch_sizes,
    code_type,
    counted_rows,
    listed,
    meet_quotas,
    rounded_counts,
    unit_sizes,
)

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


def drawn(rows: list[float], number: int, seed: int = 7) -> np.ndarray:
    return np.concatenate([np.zeros((0, 1), np.int64), *counted_rows(np.array(rows)).batches(number, seed)])


def test_whole_counts_are_met_over_many_batches() -> None:
    rows = [BATCH_ROWS, 0, 17, 3 * BATCH_ROWS + 5, 1]
    codes = drawn(rows, int(sum(rows)))
    assert np.bincount(codes[:, 0], minlength=5).tolist() == rows
    batches = list(counted_rows(np.array(rows, float)).batches(int(sum(rows)), 7))
    assert len(batches) > 4
    assert max(map(len, batches)) <= BATCH_ROWS
    share = [np.mean(batch == 3) for batch in batches]
    assert np.ptp(share) < 0.02  # every batch is a shuffled part of the whole


@pytest.mark.parametrize("number", [0, 1, 99, 1000])
def test_other_numbers_of_rows_are_in_proportion(number: int) -> None:
    counts = np.bincount(drawn([10.0, 30.0, 60.0], number)[:, 0], minlength=3)
    assert counts.sum() == number
    assert np.abs(counts - number * np.array([0.1, 0.3, 0.6])).max() < 1


def test_no_rows_known_is_even() -> None:
    assert np.bincount(drawn([0, 0, 0], 30)[:, 0]).tolist() == [10, 10, 10]


def test_a_model_of_committed_counts_is_never_drawn_independently() -> None:
    domain = Domain((Attribute("a", "VARCHAR", "categorical", ("x", "y"), other=True),))
    rows = np.array([3.0, 5.0, 0.0])
    for exact in (False, True):
        model = ProductModel.of_rows(domain, 8.0, rows, exact)
        assert model.project(["a"]).tolist() == pytest.approx(rows.tolist())
        assert model.supports(["a"]) and not model.supports(["b"])
        assert (independent_rows(model, 30_000_000) is None) == exact
    empty = ProductModel.of_rows(domain, -4.0, np.zeros(3), False)
    assert empty.project(["a"]).tolist() == [0, 0, 0]


def rows_of(sizes):
    return int(sizes @ np.arange(1, len(sizes) + 1))


@pytest.mark.parametrize("seed", range(8))
def test_the_first_rows_of_a_code_are_found_wherever_they_stand(seed):
    """Common codes are found at the beginning, a rare one only at the end of all rows."""
    rng = np.random.default_rng(seed)
    winners = rng.choice(4, 100_000, p=[0.7, 0.2, 0.0999, 0.0001])
    winners[-1] = 4
    counts = np.bincount(winners)
    wanted = np.minimum(counts, rng.integers(0, 30, 5) * np.array([1, 40, 0, 1, seed % 2]))
    found = systematic._first_rows(winners, wanted)
    expected = [np.flatnonzero(winners == code)[: wanted[code]] for code in range(5)]
    assert np.array_equal(found, np.sort(np.concatenate(expected)))


@given(
    noisy=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=300),
    rows=st.integers(0, 10**7),
)
def test_sizes_are_whole_and_sum_to_the_rows(noisy, rows):
    sizes = unit_sizes(np.array(noisy, dtype=np.int64), rows)
    assert sizes.dtype == np.int64 and sizes.shape == (len(noisy),)
    assert sizes.min() >= 0 and rows_of(sizes) == rows


def test_a_clean_histogram_comes_back():
    sizes = np.array([500, 200, 0, 25])
    assert unit_sizes(sizes, rows_of(sizes)).tolist() == sizes.tolist()
    assert unit_sizes(sizes, 2 * rows_of(sizes)).tolist() == (2 * sizes).tolist()


@pytest.mark.parametrize("noisy", [[0, 0, 0], [-5, -3, -1], [-50, 3, 4]])
def test_a_histogram_that_says_nothing_gives_units_of_one_row(noisy):
    assert unit_sizes(np.array(noisy), 7).tolist() == [7, 0, 0]


def test_noise_in_a_long_tail_adds_no_large_units():
    """Clipping at zero alone would give half of the empty sizes units, of hundreds of rows each."""
    truth = np.zeros(1000, dtype=np.int64)
    truth[:5] = [3000, 1500, 800, 300, 100]
    noisy = truth + np.round(np.random.default_rng(1).normal(0, 10, 1000)).astype(np.int64)
    sizes = unit_sizes(noisy, rows_of(truth))
    assert abs(sizes[:5] - truth[:5]).max() < 0.15 * 3000
    beyond = np.arange(1, 1001)[50:] @ sizes[50:]
    clipped = np.arange(1, 1001)[50:] @ np.maximum(noisy[50:], 0)
    assert beyond < 0.05 * clipped


def test_no_rows_and_fewer_rows_than_a_unit_has():
    assert unit_sizes(np.array([0, 0, 9]), 0).tolist() == [0, 0, 0]
    assert unit_sizes(np.array([0, 0, 9]), 2).tolist() == [0, 1, 0]
    assert unit_sizes(np.array([9]), 5).tolist() == [5]
