"""Scattering and summing out against brute force, in exact integers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.errors import InternalError
from dpsyn_sql.private.count.sums import marginals, scatter


@st.composite
def packings(draw):
    packs = draw(
        st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3).filter(
            lambda packs: np.prod([size for pack in packs for size in pack]) <= 4096
        )
    )
    places = [st.lists(st.integers(0, len(pack) - 1), unique=True).map(sorted).map(tuple) for pack in packs]
    wanted = draw(st.lists(st.tuples(*places), min_size=1, max_size=8))
    return packs, wanted, draw(st.integers(0, 2**32 - 1))


@given(packings())
def test_marginals_equal_sums_over_the_full_table(case):
    packs, wanted, seed = case
    sizes = [size for pack in packs for size in pack]
    full = np.random.default_rng(seed).integers(0, 2**53 + 1, sizes, dtype=np.int64)
    dense = full.reshape([int(np.prod(pack)) for pack in packs])
    starts = np.cumsum([0, *(len(pack) for pack in packs)])
    found = dict(marginals(dense, packs, wanted))
    assert set(found) == set(wanted)
    for kept, array in found.items():
        axes = {start + place for start, places in zip(starts, kept, strict=False) for place in places}
        dropped = tuple(axis for axis in range(len(sizes)) if axis not in axes)
        np.testing.assert_array_equal(array, full.sum(axis=dropped))
        assert array.dtype == np.int64


def test_scatter_fills_absent_cells_with_zero():
    codes = [np.array([2, 0], dtype=np.uint8), np.array([1, 3], dtype=np.uint16)]
    dense = scatter(codes, np.array([5, 2**53 + 1]), (3, 4))
    assert dense.dtype == np.int64
    assert dense[2, 1] == 5
    assert dense[0, 3] == 2**53 + 1
    assert np.count_nonzero(dense) == 2


def test_scatter_does_not_wrap_small_types():
    cells = list(product(range(200), range(250)))
    codes = [np.array(axis, dtype=np.uint8) for axis in zip(*cells, strict=True)]
    dense = scatter(codes, np.arange(len(cells)), (200, 250))
    np.testing.assert_array_equal(dense.ravel(), np.arange(len(cells)))


def test_scatter_of_nothing():
    assert not scatter([np.array([], dtype=object)], np.array([]), (3,)).any()


@pytest.mark.parametrize(
    "codes",
    [
        np.array([3], dtype=np.uint8),
        np.array([-1]),
        np.array([1.5]),
        np.array([np.nan]),
        np.ma.masked_array([1], mask=[True]),
    ],
)
def test_broken_codes_are_refused_without_showing_them(codes):
    with pytest.raises(InternalError) as caught:
        scatter([codes], np.array([987654]), (3,))
    assert "987654" not in str(caught.value)
    assert caught.value.__context__ is None
