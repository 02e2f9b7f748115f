"""Totals, margins and pair tables: least squares by brute force, projections by their conditions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.arrays import raked, shrink_singular_values, simplex_projection
from dpsyn_sql.fit.copula import fit_copula
from dpsyn_sql.fit.views import Measurements, fit_margins
from dpsyn_sql.planning.queries import NoisyMarginal


def domain(**sizes):
    return Domain(
        tuple(Attribute(n, "INTEGER", "categorical", labels=tuple(range(k))) for n, k in sizes.items())
    )


def noisy(attrs, values, sigma):
    return NoisyMarginal(tuple(attrs), np.asarray(values, dtype=np.int64), sigma)


TABLES = [
    noisy("a", [10, 20], 2.0),
    noisy("b", [5, 5, 25], 3.0),
    noisy("ab", [[1, 2, 3], [4, 5, 16]], 1.5),
    noisy("cb", [[2, 2, 2], [4, 4, 4], [1, 1, 9], [0, 0, 0]], 1.0),
]


def test_total_is_weighted_by_the_variance_of_each_sum():
    sums, variances = np.array([30, 35, 31, 29]), np.array([2 * 4, 3 * 9, 6 * 2.25, 12 * 1.0])
    expected = (sums / variances).sum() / (1 / variances).sum()
    estimate = Measurements(TABLES).estimate(())
    assert float(estimate.values) == pytest.approx(expected)
    assert estimate.variance == pytest.approx(1 / (1 / variances).sum())


def test_estimates_are_least_squares():
    """Weighted least squares of b's margin, unconstrained, by solving the normal equations."""
    measurements = Measurements(TABLES)
    rows, values, weights = [], [], []
    for table, cells in ((TABLES[1], 1), (TABLES[2], 2), (TABLES[3], 4)):
        part = table.values if table.values.ndim == 1 else table.values.sum(axis=0)
        for code in range(3):
            rows.append(np.eye(3)[code])
            values.append(part[code])
            weights.append(1 / np.sqrt(cells * table.sigma**2))
    solution, *_ = np.linalg.lstsq(
        np.array(rows) * np.array(weights)[:, None], np.array(values) * weights, rcond=None
    )
    np.testing.assert_allclose(measurements.estimate(["b"]).values, solution)


@given(
    values=arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6)), total=st.floats(0.5, 1e6)
)
def test_simplex_projection_meets_its_conditions(values, total):
    """Nearest point: x >= 0, sums to the total, and values - x is constant where x > 0, less elsewhere."""
    x = simplex_projection(values, total)
    assert x.min() >= 0 and x.sum() == pytest.approx(total, rel=1e-9)
    gap = values - x
    at = gap[x > 1e-9 * total]
    assert np.ptp(at) <= 1e-6 * (1 + np.abs(values).max())
    assert np.all(gap[x == 0] <= at.max() + 1e-6 * (1 + np.abs(values).max()))


def test_simplex_projection_of_extremes():
    np.testing.assert_array_equal(simplex_projection(np.array([1e12, -1e12, 1e12]), 10.0), [5, 0, 5])
    np.testing.assert_array_equal(simplex_projection(np.array([[3.0, 1.0]]), 0.0), [[0, 0]])
    np.testing.assert_array_equal(simplex_projection(np.array([3.0, 1.0]), -4.0), [0, 0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0, -7, -(10**12)])
def test_a_total_that_is_not_positive_gives_uniform_margins(value):
    shape = domain(a=2, b=3)
    tables = [noisy("a", [value] * 2, 5.0), noisy("ab", np.full((2, 3), value), 5.0)]
    fitted = fit_copula(shape, tables)
    assert fitted.margins.total <= 0
    np.testing.assert_allclose(fitted.margins.probabilities["b"], 1 / 3)
    np.testing.assert_allclose(fitted.pair("a", "b"), 1 / 6)


def test_pairs_agree_with_margins_and_with_each_other():
    rng = np.random.default_rng(5)
    shape = domain(a=3, b=8, c=5)
    codes = rng.integers(0, 2**31, (4000, 1)) % np.array([3, 8, 5])
    tables = []
    for pair in combinations("abc", 2):
        columns = ["abc".index(name) for name in pair]
        counts = np.zeros(shape.shape(pair))
        np.add.at(counts, tuple(codes[:, columns].T), 1)
        tables.append(noisy(pair, counts + np.rint(rng.normal(0, 20, counts.shape)), 20.0))
    fitted = fit_copula(shape, tables)
    for first, second in combinations("abc", 2):
        joint, margins = fitted.pair(first, second), fitted.margins.probabilities
        assert joint.min() >= 0
        np.testing.assert_allclose(joint.sum(axis=1), margins[first], atol=1e-4)
        np.testing.assert_allclose(joint.sum(axis=0), margins[second], atol=1e-4)
        np.testing.assert_array_equal(fitted.pair(second, first), joint.T)


def test_margins_of_ordered_attributes_are_smoothed_and_others_are_not():
    """A bell curve over 60 codes, NULL beside it: neighbours reduce its error."""
    rng = np.random.default_rng(7)
    truth = np.rint(np.append(4_000 * np.exp(-(((np.arange(60) - 20) / 12) ** 2)), 900.0))
    errors = {}
    for ordered in (True, False):
        attribute = Attribute("x", "INTEGER", "categorical", tuple(range(60)), nullable=True, ordered=ordered)
        noise = rng.normal(0, 150, (20, 61))
        errors[ordered] = 0.0
        for row in noise:
            measured = noisy("x", truth + np.rint(row), 150.0)
            margins = fit_margins(Domain((attribute,)), Measurements([measured]))
            found = margins.probabilities["x"]
            assert found.min() >= 0 and found.sum() == pytest.approx(1)
            assert margins.total == pytest.approx(float(measured.values.sum()))
            errors[ordered] += np.abs(found - truth / truth.sum()).sum()
            if not ordered:  # heavy codes move by the common shift of a projection alone
                heavy = measured.values > 4 * 150.0
                shift = found[heavy] * margins.total - measured.values[heavy]
                np.testing.assert_allclose(shift, shift[0], atol=0.01)
    assert errors[True] < 0.8 * errors[False]


def test_exact_tables_come_back_unchanged():
    exact = np.array([[30, 10, 5], [0, 20, 35]])
    fitted = fit_copula(domain(a=2, b=3), [noisy("ab", exact, 0.0)])
    assert fitted.margins.total == pytest.approx(100)
    np.testing.assert_allclose(fitted.pair("a", "b"), exact / 100, atol=1e-9)


def test_a_pair_nobody_measured_is_independent():
    fitted = fit_copula(domain(a=2, b=2), [noisy("a", [2, 8], 0.0)])
    np.testing.assert_allclose(fitted.pair("a", "b"), [[0.1, 0.1], [0.4, 0.4]])


def test_raking_carries_margins_that_the_positive_cells_cannot():
    joint = raked(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([0.4, 0.6]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(joint.sum(axis=1), [0.4, 0.6], atol=1e-3)
    np.testing.assert_allclose(joint.sum(axis=0), [0.5, 0.5], atol=1e-3)
    apart = raked(np.diag([0.0, 1.0]), np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(apart, np.diag([1.0, 0.0]))


def centred(table):
    return table - table.mean(0) - table.mean(1)[:, None] + table.mean()


def test_pure_noise_is_shrunk_to_nothing_and_strong_signal_is_kept():
    rng = np.random.default_rng(6)
    noise = centred(rng.normal(0, 10, (60, 40)))
    assert np.linalg.norm(shrink_singular_values(noise[None], np.array([10.0]))[0]) < 0.3 * np.linalg.norm(
        noise
    )
    signal = centred(np.outer(rng.normal(size=60), rng.normal(size=40))) * 60
    error = shrink_singular_values((signal + noise)[None], np.array([10.0]))[0] - signal
    assert np.linalg.norm(error) < 0.35 * np.linalg.norm(noise)
    np.testing.assert_array_equal(shrink_singular_values(signal[None], np.array([0.0]))[0], signal)


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
def test_tables_with_one_row_say_nothing(shape):
    np.testing.assert_array_equal(
        shrink_singular_values(np.zeros((1, *shape)), np.array([3.0]))[0], np.zeros(shape)
    )
