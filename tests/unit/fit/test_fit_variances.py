"""Errors of a model's estimates: closed forms of each component, and simulated tables."""

import math

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.variances import (
    NO_VARIANCES,
    Components,
    Distance,
    Variances,
    dispersions,
    followed_pairs,
    one_way_components,
    one_way_counts,
    pair_variance,
    sampling_distances,
    shrunk,
    within_twin,
)
from dpsyn_sql.planning.queries import Map, NoisyMarginal

FIRST, SECOND = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.6, 0.3, 0.1])
SHARES = np.multiply.outer(FIRST, SECOND)
ROWS = 10_000
ONES = np.ones(SHARES.shape)


@pytest.fixture
def rng():
    """Numbers of their own for each test, whichever ran before it."""
    return np.random.default_rng(5)


def variance(dispersion=0.0, precision=0.0, noise=1e-9, within=ONES, estimate=ROWS * SHARES):
    return pair_variance(Components(dispersion, precision), estimate, within, noise, noise)


def test_sampling_given_the_margins_is_that_of_independent_attributes():
    free = np.multiply.outer(1 - FIRST, 1 - SECOND)
    np.testing.assert_allclose(variance(), ROWS * SHARES * free, rtol=1e-6)
    np.testing.assert_allclose(variance(3.0), ROWS * SHARES * (free + 3), rtol=1e-6)


def test_a_noisy_table_leaves_the_variance_of_a_posterior():
    own = variance(3.0)
    np.testing.assert_allclose(variance(3.0, 1 / 50.0**2), 1 / (1 / own + 1 / 50.0**2), rtol=1e-6)
    np.testing.assert_allclose(variance(3.0, 1e12), 0, atol=1e-6)


def test_noise_of_one_way_tables_moves_a_cell_by_its_part_of_them():
    found = variance(precision=1e12, noise=40.0)
    parts = (40 * SHARES / SHARES.sum(axis=1, keepdims=True)) ** 2
    parts = parts + (40 * SHARES / SHARES.sum(axis=0, keepdims=True)) ** 2
    np.testing.assert_allclose(found, parts, rtol=1e-6)  # each row of this table has the mean distribution


def test_codes_within_a_bin_have_a_sampling_error_of_their_own():
    within = np.full(SHARES.shape, 0.25)
    free = np.multiply.outer(1 - FIRST, 1 - SECOND)
    np.testing.assert_allclose(
        variance(precision=1e12, within=within), 0.75 * ROWS * SHARES * free, rtol=1e-6
    )
    dependent = variance(
        8.0, precision=1e12, within=within
    )  # a table of the cells does not tell how codes differ
    np.testing.assert_allclose(dependent, 0.75 * ROWS * SHARES * (free + 8.0 * 0.25), rtol=1e-6)
    assert np.isfinite(variance(3.0, 1.0, within=np.zeros(SHARES.shape))).all()


def test_a_code_estimated_at_no_rows_may_have_some():
    estimate = ROWS * SHARES
    estimate[3] = 0
    found = variance(noise=30.0, estimate=estimate)
    assert (found[3] > 1).all() and (np.diff(found[3]) < 0).all()
    assert np.isfinite(variance(estimate=np.zeros(SHARES.shape), noise=30.0)).all()


def test_estimates_of_independent_attributes_are_off_by_what_is_told(rng):
    """Counts of independent attributes, noisy one-way tables, and the model of independence made from these."""
    noise, errors = 60.0, []
    for counts in rng.multinomial(ROWS, SHARES.ravel(), 4000).reshape(-1, *SHARES.shape):
        first = counts.sum(axis=1) + rng.normal(0, noise, 4)
        second = counts.sum(axis=0) + rng.normal(0, noise, 3)
        first, second = (table / table.sum() for table in (first, second))
        errors.append(ROWS * np.multiply.outer(first, second) - counts)
    found = np.sqrt(np.mean(np.square(errors), axis=0))
    told = np.sqrt(variance(noise=noise))
    # A total that is known takes noise from the larger codes.
    assert (found < 1.05 * told).all() and (found > 0.6 * told).all()
    assert found[2:, 1:] == pytest.approx(told[2:, 1:], rel=0.1)


def test_estimates_that_weigh_a_table_against_the_model_are_off_by_what_is_told(rng):
    """Counts that scatter around the model, and their posterior mean given a noisy table."""
    expected, sigma = ROWS * SHARES, 40.0
    own = variance(4.0)
    counts = expected + rng.normal(0, np.sqrt(own), (4000, *SHARES.shape))
    noisy = counts + rng.normal(0, sigma, counts.shape)
    estimates = expected + own / (own + sigma**2) * (noisy - expected)
    found = ((estimates - counts) ** 2).mean(axis=0)
    assert found == pytest.approx(variance(4.0, sigma**-2), rel=0.1)


DOMAIN = Domain(
    (
        Attribute("a", "INTEGER", "categorical", tuple(range(4))),
        Attribute("b", "INTEGER", "categorical", tuple(range(3))),
        Attribute("c", "INTEGER", "categorical", tuple(range(2))),
    )
)


def test_no_error_reaches_beyond_what_the_margins_leave():
    """Of 20,086 rows with 600 and 520 of a code a pair has at most 520 and twice their error, whatever the fit says."""
    estimate = np.array([[500.0, 100.0], [20.0, 19_466.0]])
    whole = np.ones((2, 2))
    found = np.sqrt(pair_variance(Components(6e5, 0.0), estimate, whole, 30.0, 10.0))
    most = np.array([[540.0, 600 + 60.0], [540.0, 19_486 + 20.0]])
    np.testing.assert_allclose(1.96 * found, np.maximum(estimate, most - estimate))
    one = Variances((np.ones(2),), {(0,): Components(0.0, 17_809.0**-2)})
    np.testing.assert_allclose(1.96 * np.sqrt(one.of([0], np.array([86.0, 20_000.0]))), 20_000)
    assert one.of([0], np.zeros(2))[0] == 17_809.0**2  # nothing is known of no rows


def test_axes_may_be_asked_in_any_order_and_what_is_not_known_is_none():
    ones = {(0,): Components(0, 1 / 25), (1,): Components(0, 1 / 100)}
    within = [np.ones(size) for size in DOMAIN.shape()]
    known = Variances(within, {**ones, (0, 1): Components(2.0, 0.01), (1, 2): Components(2.0, 0.01)})
    estimate = ROWS * SHARES
    np.testing.assert_allclose(known.of([0, 1], estimate), known.of([1, 0], estimate.T).T)
    np.testing.assert_allclose(known.of([1], estimate.sum(axis=0)), 100)
    assert known.of([1, 2], np.ones((3, 2))) is None  # nothing is known of the attribute c
    assert known.of([0, 2], np.ones((4, 2))) is None
    assert known.of([0, 1, 2], np.ones((4, 3, 2))) is None
    assert NO_VARIANCES.of([0], np.ones(4)) is None


def test_one_way_tables_of_several_measurements_have_their_joint_precision():
    tables = [NoisyMarginal(("a",), np.zeros(4, np.int64), sigma) for sigma in (3.0, 4.0)]
    found = one_way_components(DOMAIN, tables)
    assert found.keys() == {(0,)} and found[0,].precision == pytest.approx(1 / 9 + 1 / 16)


def test_pairs_of_views_know_their_noise_and_how_dependent_they_are(rng):
    counts = rng.multinomial(ROWS, np.multiply.outer(SHARES, [0.9, 0.1]).ravel()).reshape(4, 3, 2)
    counts[0, 0, 1], counts[3, 2, 1] = counts[0, 0, 1] + 3000, counts[3, 2, 1] + 3000
    noisy = counts + np.rint(rng.normal(0, 2.0, counts.shape)).astype(np.int64)
    found = followed_pairs(DOMAIN, [NoisyMarginal(("c", "b", "a"), noisy.T, 2.0)])
    precisions = {
        pair: 1 / (4 * counts.size / DOMAIN.shape()[pair[0]] / DOMAIN.shape()[pair[1]]) for pair in found
    }
    assert {pair: one.precision for pair, one in found.items()} == pytest.approx(precisions)
    assert found.keys() == {(0, 1), (0, 2), (1, 2)}
    table = counts.sum(axis=2)
    expected = np.multiply.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    around = ((table - expected) ** 2).sum() / expected.sum() - 1
    assert found[0, 1].dispersion == pytest.approx(around, rel=0.1)
    alike = NoisyMarginal(("a", "b"), np.rint(ROWS * SHARES).astype(np.int64), 5.0)
    assert followed_pairs(DOMAIN, [alike])[0, 1].dispersion == 0


@pytest.mark.parametrize("dispersion", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("deviation", [5.0, 200.0])
def test_dispersion_is_told_by_noisy_distances(rng, dispersion, deviation):
    expected = rng.dirichlet(np.ones(60), 300) * 50_000
    scatter = rng.normal(0, np.sqrt((1 + dispersion) * expected))
    distances = np.abs(scatter).sum(axis=1) + rng.normal(0, deviation, 300)
    found = dispersions(
        {
            (0, place + 1): Distance(rows, float(sampling_distances(table[None])[0]), 0.0)
            for place, (rows, table) in enumerate(zip(distances, expected, strict=True))
        },
        deviation,
    )
    assert 1 + np.mean(list(found.pairs.values())) == pytest.approx(1 + dispersion, rel=0.2)
    assert 1 + found.typical == pytest.approx(1 + dispersion, rel=0.2)


def test_noise_of_the_margins_is_no_dispersion():
    sampling, margins = 400.0, 1000.0
    rows = math.hypot(2 * sampling, margins)
    found = dispersions(
        {(0, 1): Distance(rows, sampling, margins), (0, 2): Distance(rows, sampling, margins)}, 1e-6
    )
    assert found.pairs[0, 1] == pytest.approx(3.0) and found.typical == pytest.approx(3.0)


def test_the_sampling_error_of_counts_is_that_of_poisson_counts(rng):
    for rows in (0.01, 0.3, 1.0, 5.0, 300.0):
        counts = rng.poisson(rows, 200_000)
        assert sampling_distances(np.array([[rows]])) == pytest.approx(np.abs(counts - rows).mean(), rel=0.25)


def test_values_without_noise_stay_and_values_of_noise_get_their_mean(rng):
    values = rng.normal(10, 3, 500)
    _, kept, uncertain = shrunk(values, np.full(500, 1e-3))
    np.testing.assert_allclose(kept, values, atol=1e-2)
    assert uncertain.max() < 1e-5
    mean, drawn, uncertain = shrunk(np.array([9.0, 11.0, 10.0]), np.full(3, 50.0))
    np.testing.assert_allclose(drawn, mean)
    assert uncertain == pytest.approx(2500 / 3)


def test_what_a_coarse_twin_does_not_tell():
    """Parts of a distance add as deviations do: a pair 10 rows off, of which its twin tells 6, is 8 rows off."""
    assert within_twin(10.0**2 / 2.0**2, 6.0**2 / 1.5**2, 2.0, 1.5) == pytest.approx(8.0**2 / 2.0**2)
    assert within_twin(1.0, 9.0, 2.0, 2.0) == 0.0


TWO_ATTRIBUTES = Domain(
    (
        Attribute("a", "VARCHAR", "categorical", ("x", "y", "z")),
        Attribute("b", "VARCHAR", "categorical", ("u", "v")),
    )
)


def table(attrs: str, values: object, sigma: float, maps: tuple[Map | None, ...] = ()) -> NoisyMarginal:
    return NoisyMarginal(tuple(attrs), np.asarray(values, dtype=np.int64), sigma, maps)


def test_one_table_is_itself() -> None:
    found = one_way_counts(TWO_ATTRIBUTES, [table("a", [5, -2, 9], 3.0)])
    assert list(found) == ["a"]
    assert found["a"].counts == pytest.approx([5, -2, 9])
    assert found["a"].sigma == pytest.approx([3.0] * 3)


def test_tables_alone_are_averaged_by_inverse_variance() -> None:
    found = one_way_counts(TWO_ATTRIBUTES, [table("b", [10, 20], 1.0), table("b", [20, 40], 2.0)])["b"]
    assert found.counts == pytest.approx([(4 * 10 + 20) / 5, (4 * 20 + 40) / 5])
    assert found.sigma == pytest.approx([np.sqrt(4 / 5)] * 2)


def test_where_none_was_asked_alone_larger_tables_are_summed() -> None:
    pair = table("ba", [[1, 2, 3], [10, 20, 30]], 2.0)
    found = one_way_counts(TWO_ATTRIBUTES, [pair, table("b", [7, 8], 9.0)])
    assert found["a"].counts == pytest.approx([11, 22, 33])
    assert found["a"].sigma == pytest.approx([2 * np.sqrt(2)] * 3)
    assert found["b"].counts == pytest.approx([7, 8])


def test_sums_of_several_tables_weigh_by_their_cells() -> None:
    bins = table("ab", [[9], [9], [9]], 2.0, (None, (0, 0)))
    pair = table("ab", [[1, 2], [3, 4], [5, 6]], 2.0)
    found = one_way_counts(TWO_ATTRIBUTES, [bins, pair])["a"]
    assert found.counts == pytest.approx([(2 * 9 + 3) / 3, (2 * 9 + 7) / 3, (2 * 9 + 11) / 3])
    assert found.sigma == pytest.approx([2 * np.sqrt(2 / 3)] * 3)


def test_bins_wider_than_codes_tell_no_code() -> None:
    assert one_way_counts(TWO_ATTRIBUTES, [table("a", [4, 5], 1.0, ((0, 1, 1),))]) == {}
    same = one_way_counts(TWO_ATTRIBUTES, [table("a", [4, 5, 6], 1.0, ((0, 1, 2),))])
    assert same["a"].counts == pytest.approx([4, 5, 6])


def test_exact_tables_have_weight() -> None:
    found = one_way_counts(TWO_ATTRIBUTES, [table("b", [10, 20], 0.0), table("b", [500, 500], 50.0)])["b"]
    assert found.counts == pytest.approx([10, 20], abs=1e-3)
