"""Decisions do not hang on the last bits of a float."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.fit.arrays import snapped
from dpsyn_sql.fit.denoise import denoised

EXACT = st.builds(
    lambda m, k, d: m / 2**k / d, st.integers(-(10**9), 10**9), st.integers(0, 12), st.integers(1, 40)
)


@given(EXACT, st.sampled_from([1.0, 2.0**-10]), st.integers(-20, 20))
def test_neighbouring_floats_of_a_mean_of_integers_give_the_same_number(value, step, ulps):
    near = np.array([value, value + ulps * np.spacing(value)])
    first, second = snapped(near, step)
    assert first == second and abs(first - value) < step and first / step == round(first / step)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("size", [5, 20, 64, 100])
def test_denoised_one_ways_are_on_the_grid(size, ordered):
    values = np.random.default_rng(size).integers(0, 900, size).astype(np.float64)
    attribute = Attribute("x", "INTEGER", "categorical", tuple(range(size)), ordered=ordered)
    smooth = denoised(attribute, values, 30.0)
    np.testing.assert_array_equal(smooth * 1024, np.rint(smooth * 1024))
    np.testing.assert_array_equal(smooth, denoised(attribute, values, 30.0 * (1 + 1e-15)))
