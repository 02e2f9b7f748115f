"""The fill of bins from noisy counts: masses stay, values stay inside, and closed forms come back."""

import math
from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import FILL_PIECES, Attribute, Domain, edge_ticks, fill_ticks
from dpsyn_sql.discovery.filling import Histogram, filled, mirrored, pareto, power, shapes_of, shares
from dpsyn_sql.fit.variances import OneWayCounts

QUANTILES = np.linspace(0.01, 0.99, 99)


def fill_of(attribute, counts, sigma=1.0):
    counts = np.asarray(counts, float)
    known = {attribute.name: OneWayCounts(counts, np.full(len(counts), sigma))}
    return filled(Domain((attribute,)), known)[attribute.name].fill


def integers(*edges, **more):
    return Attribute("v", "BIGINT", "numeric", edges=edges, **more)


def doubles(*edges):
    return Attribute("v", "DOUBLE", "numeric", edges=tuple(map(float, edges)))


def mean_of(cuts):
    """The mean of what is written of a bin of a continuous column."""
    return np.mean([(low + high) / 2 for low, high in pairwise(cuts)])


def bins(widths, mass, sigma=1.0, atoms=None):
    mass = np.asarray(mass, float)
    atoms = np.zeros(len(mass), bool) if atoms is None else np.asarray(atoms, bool)
    return Histogram(np.asarray(widths, float), mass, np.full(len(mass), sigma), atoms)


# -- densities ------------------------------------------------------------------------------------


def test_a_linear_density_is_exact():
    # f(x) = 1.5 - x has F(x) = 1.5 x - x^2 / 2.
    found = power(1.5, 0.5)(QUANTILES)
    assert np.allclose(1.5 * found - found**2 / 2, QUANTILES, atol=1e-5)
    assert np.allclose(power(0.5, 1.5)(QUANTILES), 1 - found[::-1], atol=1e-5)


def test_an_exponential_tail_is_exact():
    found = pareto(0.2, 0.0)(QUANTILES)
    assert np.allclose((1 - np.exp(-found / 0.2)) / (1 - np.exp(-5)), QUANTILES, atol=1e-12)
    assert np.allclose(pareto(0.2, 1e-9)(QUANTILES), found, atol=1e-6)


def test_a_pareto_tail_is_exact():
    found = pareto(0.1, 0.5)(QUANTILES)
    assert np.allclose((1 - (1 + 5 * found) ** -2) / (1 - 6.0**-2), QUANTILES, atol=1e-12)


def test_a_mirror_image_is_one():
    assert np.allclose(mirrored(pareto(0.1, 0.5))(QUANTILES), 1 - pareto(0.1, 0.5)(1 - QUANTILES))
    assert mirrored(None) is None


@settings(deadline=None)
@given(st.floats(0, 50), st.floats(0, 0.99), st.booleans())
def test_powers_are_monotone_densities_with_the_mean_they_claim(more, less, flip):
    thick, thin = 1 + more + 1e-3, less
    shape = power(thin, thick) if flip else power(thick, thin)
    found = shape(np.linspace(0, 1, 2001))
    assert found[0] == 0 and found[-1] == 1
    steps = np.diff(found)  # of equal probability: the inverse of the density
    assert (np.diff(-steps if flip else steps) > -1e-5).all()


# -- shapes of the bins of a histogram --------------------------------------------------------------


def test_constant_counts_are_even():
    assert fill_of(integers(*range(0, 110, 10)), [1000] * 10) == ()
    assert fill_of(doubles(0, 1, 4, 10), [100, 300, 600]) == ()


def test_counts_within_their_noise_are_even():
    noisy = np.random.default_rng(1).normal(1000, 20, 10)
    assert shapes_of(bins([1] * 10, noisy, sigma=60)) == [None] * 10


def test_peaks_and_valleys_are_even_and_slopes_are_monotone():
    shapes = shapes_of(bins([1] * 7, [100, 300, 500, 200, 50, 300, 400]))
    assert [shape is None for shape in shapes] == [False, False, True, False, True, False, False]
    for shape, rising in zip(shapes, [True, True, None, False, None, True, True], strict=True):
        if shape is not None:
            steps = np.diff(shape(np.linspace(0, 1, 201)))
            assert (np.diff(-steps if rising else steps) > -1e-4).all()


def test_a_linear_histogram_gives_linear_bins():
    centres = np.arange(5) + 0.5
    shapes = shapes_of(bins([1] * 5, 10_000 * (10 + 0.5 * centres)))
    for left, shape in enumerate(shapes):
        x = shape(QUANTILES)
        own = 10 + 0.5 * (left + 0.5)
        assert np.allclose(((10 + 0.5 * left) * x + 0.25 * x**2) / own, QUANTILES, atol=1e-3)


def test_an_exponential_histogram_gives_an_exponential_last_bin():
    edges = np.array([0, 1, 2, 3, 4, 40.0])
    beyond = np.exp(-edges / 1.5)
    shape = shapes_of(bins(np.diff(edges), -1e7 * np.diff(beyond)))[-1]
    assert np.allclose(shape(QUANTILES), pareto(1.5 / 36, 0.0)(QUANTILES), atol=0.003)


def test_a_pareto_histogram_gives_a_pareto_last_bin_and_an_exponential_one_does_not():
    edges = np.array([1, 1.5, 2.2, 3.3, 5, 500.0])
    heavy = shapes_of(bins(np.diff(edges), -1e7 * np.diff(edges**-2.0)))[-1]
    light = shapes_of(bins(np.diff(edges), -1e7 * np.diff(np.exp(-edges))))[-1]
    exact = (5 * (1 - QUANTILES * (1 - 1e-4)) ** -0.5 - 5) / 495
    assert np.allclose(np.log(heavy(QUANTILES)), np.log(exact), atol=0.15)
    exponential = -np.log(1 - QUANTILES) / 495
    assert np.allclose(np.log(light(QUANTILES)), np.log(exponential), atol=0.2)


def test_a_steep_first_bin_has_the_distribution_beyond_it():
    edges = np.array([0, 50, 100, 2e7])
    beyond = (1 + 0.7 * edges / 3) ** (-1 / 0.7)
    shape = shapes_of(bins(np.diff(edges), -1e7 * np.diff(beyond)))[0]
    assert np.allclose(shape(QUANTILES), pareto(3 / 50, 0.7)(QUANTILES), atol=1e-3)


def test_the_mirror_image_of_a_histogram_has_mirrored_shapes():
    one = bins([1, 2, 1, 5, 30], [900, 700, 200, 300, 40])
    other = shapes_of(one.flipped)[::-1]
    for shape, mirror in zip(shapes_of(one), other, strict=True):
        assert (shape is None) == (mirror is None)
        if shape is not None:
            assert np.allclose(shape(QUANTILES), 1 - mirror(1 - QUANTILES))


def test_data_end_inside_a_bin_near_the_side_with_mass():
    shape = shapes_of(bins([1] * 5, [1000, 1000, 300, 0, 0]))[2]
    assert shape(np.array([0.5]))[0] < 0.35


def test_bins_of_one_value_say_nothing_about_a_density():
    fill = fill_of(integers(0, 1, 5000, 10000, 15000), [90_000, 1000, 1000, 1000])
    assert fill == ()


# -- the fill of an attribute --------------------------------------------------------------------


EDGES = st.lists(st.integers(-(2**63), 2**63), min_size=3, max_size=12, unique=True).map(sorted)
SMALL = st.lists(st.integers(-40, 200), min_size=3, max_size=12, unique=True).map(sorted)


@settings(max_examples=120, deadline=None)
@given(st.one_of(EDGES, SMALL), st.data(), st.sampled_from([None, 5, 1000]), st.floats(0.1, 1e4))
def test_cuts_stay_inside_their_bins_whatever_the_counts(edges, data, granularity, sigma):
    attribute = integers(*edges, granularity=granularity)
    count = st.floats(-1e4, 1e9)
    counts = data.draw(st.lists(count, min_size=attribute.regular, max_size=attribute.regular))
    fill = fill_of(attribute, counts, sigma)  # an attribute refuses cuts outside its bins
    for cuts, (low, high) in zip(fill, pairwise(edges), strict=bool(fill)):
        assert len(cuts) == FILL_PIECES + 1 or cuts == (low, high)
        first = -(-low // (granularity or 1)) * (granularity or 1)
        if len(cuts) > 2 and first < high:
            assert all((cut - first) % (granularity or 1) == 0 for cut in cuts[:-1])


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(["DOUBLE", "FLOAT"]),
    st.lists(st.floats(-(2.0**127), 2.0**127, width=32), min_size=3, max_size=12, unique=True).map(sorted),
    st.data(),
    st.floats(0.1, 1e4),
)
def test_float_cuts_stay_inside_their_bins(sql_type, edges, data, sigma):
    attribute = Attribute("v", sql_type, "numeric", edges=tuple(edges))
    counts = data.draw(st.lists(st.floats(-1e4, 1e9), min_size=len(edges) - 1, max_size=len(edges) - 1))
    for cuts, (low, high) in zip(fill_of(attribute, counts, sigma), pairwise(edges), strict=False):
        assert low <= cuts[0] and cuts[-1] <= high


def test_doubles_at_their_ends():
    most = math.nextafter(math.inf, 0)
    fill = fill_of(doubles(-most, 0, 5e-324, 1, most), [10, 50, 1000, 400])
    assert all(all(map(math.isfinite, cuts)) for cuts in fill)


def test_evenly_filled_pieces_keep_the_mean_of_the_shape():
    for shape in (pareto(0.01, 0.0), pareto(0.02, 0.4), power(3.0, 0.2), mirrored(pareto(0.05, 0.2))):
        cuts = shares(shape)
        exact = shape((np.arange(20_000) + 0.5) / 20_000).mean()
        assert (np.diff(cuts) >= 0).all()
        assert mean_of(cuts) == pytest.approx(exact, rel=0.02)


def test_whole_numbers_keep_the_mean_of_the_shape():
    for width in (5, 12, 40, 1000):
        attribute = integers(0, width, 2 * width, 3 * width)
        shape = shapes_of(bins([1, 1, 1], [9000, 5000, 3000]))[1]
        ticks = fill_ticks(attribute_with(attribute, [9000, 5000, 3000]))[1]
        written = np.mean([(low + max(high - 1, low)) / 2 for low, high in pairwise(ticks)])
        exact = width + width * shape((np.arange(4096) + 0.5) / 4096).mean() - 0.5
        assert written == pytest.approx(exact, abs=0.03 * width + 0.15)


def attribute_with(attribute, counts):
    known = {attribute.name: OneWayCounts(np.asarray(counts, float), np.full(len(counts), 1.0))}
    return filled(Domain((attribute,)), known)[attribute.name]


def test_dates_and_decimals_get_cuts_of_their_type():
    days = tuple(date(2020, 1, 1 + 5 * place) for place in range(5))
    dated = Attribute("v", "DATE", "temporal", edges=(*days, date.max))
    money = tuple(Decimal(cents) / 100 for cents in (0, 100, 200, 300, 400, 900_000))
    paid = Attribute("v", "DECIMAL(9,2)", "numeric", edges=money)
    for attribute in (dated, paid):
        made = attribute_with(attribute, [5000, 4000, 2500, 1200, 600])
        assert made.fill and all(type(cut) is type(made.edges[0]) for cuts in made.fill for cut in cuts)
        last = fill_ticks(made)[-1]
        assert last[FILL_PIECES // 2] - last[0] < (edge_ticks(made)[-1] - last[0]) / 100


def test_a_fill_that_is_there_and_categories_stay():
    own = integers(0, 10, 20, 40, fill=((0, 10), (12,), (20, 30)))
    text = Attribute("t", "VARCHAR", "categorical", ("a", "b"))
    unknown = Attribute("u", "BIGINT", "numeric", edges=(0, 10, 20))
    counts = OneWayCounts(np.array([900.0, 500, 50]), np.ones(3))
    domain = Domain((own, text, unknown))
    assert filled(domain, {"v": counts, "t": counts}) == domain


def test_null_is_no_bin():
    plain, nullable = integers(0, 10, 20, 40), integers(0, 10, 20, 40, nullable=True)
    assert fill_of(plain, [900, 500, 50]) == fill_of(nullable, [900, 500, 50, 10**6]) != ()


def test_a_wide_last_bin_ends_where_the_data_do():
    rng = np.random.default_rng(7)
    pay = np.minimum(np.exp(rng.normal(math.log(2100), 1.4, 50_000)), 1.7e6).astype(int)
    edges = (0, 1000, 5000, 10_000, 50_000, 100_000, 2_000_000)
    counts = np.histogram(pay, edges)[0]
    errors = []
    for _ in range(9):
        noisy = counts + rng.normal(0, 30, len(counts)).round()
        fill = fill_of(integers(*edges), noisy, 30)
        means = [mean_of(cuts) for cuts in fill]
        errors.append(abs(np.maximum(noisy, 0) @ means / np.maximum(noisy, 0).sum() / pay.mean() - 1))
    even = counts @ [(low + high) / 2 for low, high in pairwise(edges)] / counts.sum() / pay.mean() - 1
    assert even > 0.5 and np.median(errors) < 0.1
