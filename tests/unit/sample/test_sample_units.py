"""Units by rows per unit: whole, not negative, and exactly as many rows as are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.sample.quotas import unit_sizes


def rows_of(sizes):
    return int(sizes @ np.arange(1, len(sizes) + 1))


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
