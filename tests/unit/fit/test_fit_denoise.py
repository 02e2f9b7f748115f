"""Denoising of one-way tables, working bins, and numbers on a grid."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter1d
from support.domains import attribute

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.arrays import snapped
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.denoise import (
    _estimates,
    _freedom,
    denoised,
    haar_shrinkage,
    merged_neighbours,
    merged_rare,
    shrink_small_counts,
    smoothed,
    within_bins,
    working_bins,
)
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.methods.models.networks import GraphicalModel


@pytest.mark.parametrize("size", [1, 2, 3, 5, 31, 100])
def test_haar_shrinkage_without_a_threshold_changes_nothing(size):
    values = np.random.default_rng(size).normal(0, 9, size)
    np.testing.assert_allclose(haar_shrinkage(values, 1e-12)[0], values, atol=1e-9)


def test_haar_shrinkage_takes_noise_out_and_keeps_steps_and_spikes():
    rng = np.random.default_rng(1)
    truth = np.repeat([100.0, 400.0, 50.0], 30)
    truth[45] = 5_000
    raw = truth + rng.normal(0, 20, truth.size)
    smooth, _ = haar_shrinkage(raw, 20.0)
    assert np.abs(smooth - truth).sum() < 0.6 * np.abs(raw - truth).sum()
    assert abs(smooth[45] - 5_000) < 100


def steps(values, sigma):
    return haar_shrinkage(values, sigma)[0]


def errors(estimate, truth, sigma, times=40):
    """Mean L1 errors of an estimate and of the raw counts."""
    rng = np.random.default_rng(3)
    raws = truth + rng.normal(0, sigma, (times, truth.size))
    return (
        np.mean([np.abs(estimate(raw, sigma) - truth).sum() for raw in raws]),
        np.abs(raws - truth).sum(axis=1).mean(),
    )


def test_smoothing_helps_where_neighbours_are_alike():
    better, raw = errors(smoothed, np.repeat([100.0, 400.0, 50.0], 30), 20.0)
    assert better < 0.5 * raw


@pytest.mark.parametrize("height", [2.0, 3.0, 3.5])
@pytest.mark.parametrize("size", [5, 12, 60, 300])
def test_smoothing_hardly_hurts_where_every_second_code_is_a_spike(size, height):
    """The details of 2 and 3 sigmas are below the threshold or just at it."""
    truth = np.where(np.arange(size) % 2, 0.0, 30.0 * height)
    smooth, raw = errors(smoothed, truth, 30.0)
    haar, _ = errors(steps, truth, 30.0)
    assert smooth <= haar * 1.02 and smooth < (1.05 if size >= 60 else 1.15) * raw


@pytest.mark.parametrize("size", [12, 100, 300])
def test_smoothing_hardly_hurts_where_codes_have_no_order_at_all(size):
    truth = np.random.default_rng(size).uniform(0, 180, size)
    smooth, raw = errors(smoothed, truth, 30.0)
    assert smooth < 1.05 * raw


@pytest.mark.parametrize("truth", ["spikes", "steps", "nothing"])
def test_the_risk_of_haar_shrinkage_is_its_squared_error_on_average(truth):
    """Stein's estimate against the truth, which only a test knows; noise near the threshold counts."""
    rng = np.random.default_rng(8)
    exact = {
        "spikes": np.where(np.arange(100) % 2, 0.0, 90.0),
        "steps": np.repeat([0.0, 200.0, 50.0, 80.0], 25),
        "nothing": np.zeros(100),
    }[truth]
    estimated, real = [], []
    for _ in range(300):
        raw = exact + rng.normal(0, 30, exact.size)
        smooth, freedom = haar_shrinkage(raw, 30.0)
        estimated.append(np.sum((smooth - raw) ** 2) + 30**2 * (2 * freedom - exact.size))
        real.append(np.sum((smooth - exact) ** 2))
    assert np.mean(estimated) == pytest.approx(np.mean(real), abs=0.05 * 30**2 * exact.size)


def test_a_gentle_slope_is_smoothed_further_than_steps_would_be():
    truth = 1_000 * np.exp(-0.5 * ((np.arange(100) - 40) / 15) ** 2)
    smooth, raw = errors(smoothed, truth, 200.0)
    haar, _ = errors(steps, truth, 200.0)
    assert smooth < 0.92 * haar and smooth < 0.4 * raw


def test_a_slope_with_a_spike_keeps_both():
    truth = 1_000 * np.exp(-0.5 * ((np.arange(100) - 40) / 15) ** 2)
    truth[40] += 20_000
    better, raw = errors(smoothed, truth, 200.0)
    assert better < 0.4 * raw


@pytest.mark.parametrize(("bandwidth", "size"), [(1, 4), (1, 5), (2, 9), (4, 20), (16, 85), (64, 300)])
def test_a_kernel_has_the_degrees_of_freedom_of_its_matrix(bandwidth, size):
    matrix = gaussian_filter1d(np.eye(size), bandwidth, axis=0)
    assert _freedom(bandwidth, size) == pytest.approx(np.trace(matrix), rel=1e-12)


@pytest.mark.parametrize("size", [6, 13, 40, 100])
def test_the_risk_of_a_kernel_is_its_squared_error_on_average(size):
    """Stein's estimate against the truth, which only a test knows."""
    rng = np.random.default_rng(size)
    truth = 400 * np.sin(np.arange(size) / 6) ** 2
    estimated, real = [], []
    for _ in range(400):
        raw = truth + rng.normal(0, 50, size)
        smooth = gaussian_filter1d(raw, 1)
        estimated.append(np.sum((smooth - raw) ** 2) + 50**2 * (2 * _freedom(1, size) - size))
        real.append(np.sum((smooth - truth) ** 2))
    apart = np.array(estimated) - real
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(apart.size)


COUNTS = st.lists(st.integers(-1000, 10**5), min_size=5, max_size=50).map(lambda x: np.array(x, np.float64))


@given(COUNTS, st.floats(0.1, 1e4), st.floats(0.1, 100), st.floats(-1e4, 1e4))
def test_smoothing_knows_no_unit_and_no_zero(values, sigma, unit, zero):
    found = smoothed(values * unit + zero, sigma * unit)
    np.testing.assert_allclose(found, smoothed(values, sigma) * unit + zero, rtol=1e-6, atol=1e-5 * unit)


@given(COUNTS, st.floats(0.1, 1e4))
def test_smoothing_is_a_mean_of_its_estimates(values, sigma):
    estimates = np.array([estimate for estimate, _ in _estimates(values, sigma)])
    found = smoothed(values, sigma)
    assert np.all(found >= estimates.min(axis=0) - 1e-6) and np.all(found <= estimates.max(axis=0) + 1e-6)


def test_counts_without_noise_are_not_smoothed():
    values = np.random.default_rng(5).normal(0, 100, 30)
    np.testing.assert_array_equal(smoothed(values, 0.0), values)
    np.testing.assert_allclose(smoothed(values, 1e-3), values, atol=1e-2)


def test_rare_codes_learn_from_each_other_and_heavy_ones_stand_alone():
    truth = np.concatenate([[40_000.0, 900.0, 850.0], np.full(40, 70.0)])
    better, raw = errors(shrink_small_counts, truth, 280.0)
    assert better < 0.4 * raw
    noisy = truth + np.random.default_rng(4).normal(0, 280, truth.size)
    assert shrink_small_counts(noisy, 280.0)[0] == noisy[0]


@given(
    st.lists(st.integers(-1000, 10**5), min_size=1, max_size=50),
    st.one_of(st.just(0.0), st.floats(1e-3, 1e4)),
)
def test_shared_counts_keep_their_order_and_are_not_negative(counts, sigma):
    values = np.array(counts, dtype=np.float64)
    found = shrink_small_counts(values, sigma)
    changed = found != values
    assert np.all(found[changed] >= 0) and np.all(values[changed] <= 4 * sigma)
    small = np.sort(values[changed])
    again = found[changed][np.argsort(values[changed], kind="stable")]
    assert small.size == 0 or np.all(np.diff(again) >= -1e-6 * sigma)


def test_codes_without_an_order_are_not_smoothed():
    values = np.array([900.0, 20.0, 910.0, 15.0, 870.0, 30.0]) * 10
    np.testing.assert_allclose(denoised(attribute("x", 6, ordered=False), values, 1.0), values, atol=1e-3)
    values = np.random.default_rng(2).normal(0, 1, 12)
    smooth = denoised(attribute("x", 10, other=True, nullable=True), values, 1.0)
    np.testing.assert_array_equal(smooth[10:], values[10:])
    assert np.any(smooth[:10] != values[:10])


def test_light_tails_get_finer_bins_and_even_columns_the_same():
    tail = np.concatenate([[9_600.0], np.full(99, 400 / 99)])
    plain = merged_neighbours(tail, 3.0, 30.0)
    finer = merged_neighbours(tail, 3.0, 30.0, finer_tails=True)
    assert plain.max() == 1 and 4 <= finer.max() <= 8  # 400 rows in bins of 333, and of 333 x sqrt(0.04)
    for own in np.unique(finer)[:-1]:
        assert tail[finer == own].sum() >= 0.5 * 0.2 * 10_000 / 30
    even = np.full(100, 100.0)
    np.testing.assert_array_equal(
        merged_neighbours(even, 3.0, 30.0), merged_neighbours(even, 3.0, 30.0, finer_tails=True)
    )
    few = merged_neighbours(tail, 500.0, 30.0, finer_tails=True)  # ``least`` binds in any case
    assert few.max() <= 1


VALUES = st.lists(st.floats(-100, 1e4), min_size=1, max_size=60).map(np.array)


@given(VALUES, st.floats(0, 500), st.integers(1, 40), st.booleans(), st.booleans())
def test_working_bins_are_numbered_without_gaps_and_neighbours_stay_together(
    values, least, most, order, null
):
    null = null and values.size > 1
    bins = working_bins(attribute("x", values.size - null, order, nullable=null), values, least, most)
    assert bins.shape == values.shape and set(bins) == set(range(bins.max() + 1))
    if order:
        assert np.all(np.diff(bins[: values.size - null]) >= 0)


def test_heavy_codes_stay_alone_and_light_ones_are_merged():
    bins = merged_neighbours(np.array([1.0, 1, 1, 50, 1, 1, 1, 1]), 3.0, 100)
    assert np.bincount(bins).tolist() == [3, 1, 4] and np.all(np.diff(bins) >= 0)
    assert merged_rare(np.array([9.0, 1, 8, 1, 1]), 3.0).tolist() == [0, 2, 1, 2, 2]
    assert merged_rare(np.array([9.0, 1, 8]), 3.0).tolist() == [0, 1, 2]
    with_null = working_bins(
        attribute("x", 3, nullable=True, other=True), np.array([9.0, 9, 9, 0, 9]), 3.0, 9
    )
    assert with_null.tolist() == [0, 1, 2, 2, 3]


def test_probabilities_within_bins():
    given_bin = within_bins(np.array([0.1, 0.3, 0.0, 0.0, 0.6]), np.array([0, 0, 1, 1, 2]))
    np.testing.assert_allclose(given_bin, [0.25, 0.75, 0.5, 0.5, 1.0])


def model():
    domain = Domain(tuple(attribute(n, 3) for n in "abcd"))
    bins = (np.array([0, 0, 1]),) + (np.arange(3),) * 3
    rng = np.random.default_rng(5)
    potentials = {p: rng.normal(0, 1, (2 if p[0] == 0 else 3, 3)) for p in ((0, 1), (1, 2), (2, 3))}
    beliefs = calibrate(junction_tree((2, 3, 3, 3), potentials), potentials)
    return GraphicalModel(domain, 100.0, beliefs, bins, (np.array([0.2, 0.8, 1.0]),) + (np.ones(3),) * 3)


def test_marginals_of_a_model_agree_with_each_other():
    fitted = model()
    for pair in combinations("abcd", 2):
        table = fitted.project(pair)
        np.testing.assert_allclose(table.sum(axis=1), fitted.project(pair[:1]))
        np.testing.assert_allclose(fitted.project(pair[::-1]), table.T)
    assert fitted.project("a")[0] == pytest.approx(fitted.project("a")[1] / 4)
    assert all_pairs(fitted.beliefs, [(0, 3), (1, 2)]).keys() == {(0, 3), (1, 2)}
    with pytest.raises(InputError, match="fitted together"):
        fitted.project(["a", "b", "d"])


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
