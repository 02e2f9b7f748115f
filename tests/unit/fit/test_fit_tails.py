"""Rows beyond a found range: tails against closed forms, ends, spikes, and what must hold for any counts."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.discovery.filling import pareto
from dpsyn_sql.discovery.labels import recoded
from dpsyn_sql.discovery.octaves import power_law, spread_along_tails
from dpsyn_sql.fit.denoise import binned, denoised, shares_of
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.tails import alone, beyond, outside, with_estimates, with_tails
from dpsyn_sql.fit.variances import OneWayCounts
from dpsyn_sql.fit.views import Measurements, fit_margins
from dpsyn_sql.planning.queries import NoisyMarginal

BODY = np.arange(-6, 0.01, 0.25)
CUTS = np.concatenate([BODY, np.log2([1.25, 1.5, 2, 3]), np.arange(2, 11)])
FOUND = len(BODY) - 1
SIGMA = np.full(len(CUTS) - 1, 40.0)
MIDDLES = 2 ** ((CUTS[1:] + CUTS[:-1]) / 2)


def normal(centre, width, rows=30_000.0):
    """Expected rows of a log-normal column, in octaves from the end of its found range."""
    return rows * np.diff(ndtr((CUTS - centre) / width))


def falling(index, rows=30_000.0, start=-4.0):
    """Of a Pareto column that begins at ``start``."""
    return rows * -np.diff(np.minimum(2.0 ** (-index * (CUTS - start)), 1.0))


def noisy(expected, random, kind="normal"):
    noise = (
        random.normal(0, 1, expected.size) if kind == "normal" else random.laplace(0, 0.5**0.5, expected.size)
    )
    return random.poisson(expected) + np.rint(SIGMA * noise)


@pytest.mark.parametrize(
    "expected", [normal(-3.0, 1.4), normal(-4.0, 2.0), falling(1.6), falling(2.5, start=-3.0)]
)
def test_counts_that_are_hardly_noisy_stay(expected):
    found = beyond(CUTS, expected, np.full(expected.size, 0.01), FOUND)
    told = expected[FOUND:][::-1].cumsum()[::-1] >= 0.5
    np.testing.assert_allclose(found[told], expected[FOUND:][told], rtol=0.02)
    assert not found[~told].any()


@pytest.mark.parametrize("kind", ["normal", "laplace"])
@pytest.mark.parametrize("expected", [normal(-3.0, 1.3), normal(-4.0, 1.8), falling(1.8)])
def test_a_tail_in_the_noise_keeps_its_rows_and_its_squares(expected, kind):
    random = np.random.default_rng(1)
    rows, squares = [], []
    for _ in range(200):
        found = beyond(CUTS, noisy(expected, random, kind), SIGMA, FOUND)
        rows.append(found.sum())
        squares.append(found @ MIDDLES[FOUND:] ** 2 + expected[:FOUND] @ MIDDLES[:FOUND] ** 2)
    told = np.where(np.arange(expected.size) < FOUND + 7, expected, 0.0)  # further out is less than a row
    assert np.mean(rows) == pytest.approx(expected[FOUND:].sum(), rel=0.25)
    assert np.mean(np.sqrt(squares)) == pytest.approx(math.sqrt(told @ MIDDLES**2), rel=0.15)


@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_beyond_the_end_of_even_values_there_is_nothing(kind):
    random = np.random.default_rng(2)
    expected = np.where(np.arange(len(CUTS) - 1) < FOUND, 30_000 * np.diff(2.0**CUTS), 0.0)
    found = np.array([beyond(CUTS, noisy(expected, random, kind), SIGMA, FOUND) for _ in range(200)])
    assert (found.sum(axis=1) == 0).mean() > 0.9
    assert found[:, 3:].sum(axis=1).mean() < 1


def test_a_far_count_is_kept_if_no_noise_explains_it():
    expected = normal(-3.0, 1.0)
    for far, kept in ((0.0, False), (3 * 40.0, False), (15 * 40.0, True)):
        counts = expected.copy()
        counts[-3] += far
        found = beyond(CUTS, counts, SIGMA, FOUND)
        assert found[-3] == pytest.approx(far if kept else 0.0, abs=1)


def test_a_few_rows_beside_zero_are_found_together():
    """4 % of the rows, spread over 69 values."""
    cuts = np.log2([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096])
    held = np.histogram(np.log2(np.arange(1, 70)), cuts)[0] * 1_200 / 69
    random, none = np.random.default_rng(3), np.zeros(held.size)
    found = np.array([alone(cuts, held + random.normal(0, 60, held.size), none + 60) for _ in range(100)])
    assert found.sum(axis=1).mean() == pytest.approx(1_200, rel=0.1)
    assert found[:, 8:].sum(axis=1).mean() < 3
    found = np.array([alone(cuts, random.normal(0, 60, held.size), none + 60) for _ in range(100)])
    assert (found.sum(axis=1) == 0).mean() > 0.95


COUNTS = st.lists(st.integers(-5_000, 10**6), min_size=FOUND + 13, max_size=FOUND + 13)


@settings(max_examples=60, deadline=None)
@given(COUNTS, st.floats(0.5, 1e5), st.integers(1, FOUND))
def test_estimates_are_counts_whatever_the_counts_are(counts, sigma, body):
    values = np.array(counts, dtype=float)[: len(CUTS) - 1]
    found = beyond(CUTS, values, np.full(values.size, sigma), body)
    assert found.shape == (values.size - body,)
    assert np.isfinite(found).all() and (found >= 0).all()
    found = alone(CUTS, values, np.full(values.size, sigma))
    assert np.isfinite(found).all() and (found >= 0).all()


# -- attributes -----------------------------------------------------------------------------------------


def column(*, sign=1, unit=1, nullable=True):
    """Sixteen bins of a log-normal column, and cells beyond its range on the side of ``sign``."""
    inner = [0, 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
    outer = [320, 384, 512, 768, *(256 * 2**power for power in range(2, 11))]
    edges = tuple(sorted(sign * unit * edge for edge in (*inner, *outer)))
    number = len(edges) - 1
    fill = tuple((edges[place], edges[place + 1]) for place in range(number))
    side = (0, len(outer)) if sign > 0 else (len(outer), 0)
    return Attribute(
        "x", "BIGINT", "numeric", edges=edges, nullable=nullable, ordered=True, fill=fill, beyond=side
    )


def counted(attribute, random, sigma=40.0, rows=30_000):
    """Noisy counts of exp(N(3.3, 1.2)), and NULL of none."""
    values = np.exp(random.normal(3.3, 1.2, rows))
    edges = np.abs(np.array(attribute.edges, dtype=float))
    unit = edges.max() / (256 * 1024)
    counts = np.histogram(values * unit, np.sort(edges))[0].astype(float)
    counts = counts if attribute.beyond[1] else counts[::-1]
    counts = np.append(counts, [0.0] * (attribute.size - counts.size))
    return np.rint(counts + random.normal(0, sigma, counts.size))


@pytest.mark.parametrize("unit", [1, 1_000])
def test_neither_unit_nor_sign_matters(unit):
    plain, other = column(), column(sign=-1, unit=unit)
    counts, number = counted(plain, np.random.default_rng(5)), plain.regular
    sigma = np.full(plain.size, 40.0)
    found = with_tails(plain, counts, sigma)
    turned = with_tails(other, np.append(counts[:number][::-1], counts[number:]), sigma)
    np.testing.assert_allclose(turned[:number][::-1], found[:number])
    assert found[plain.found].tolist() == counts[plain.found].tolist()
    assert found[number - plain.beyond[1] : number].sum() > 100


def test_without_cells_beyond_nothing_changes():
    attribute = replace(column(), beyond=(0, 0))
    counts = counted(attribute if attribute.beyond[1] else column(), np.random.default_rng(6))
    assert with_tails(attribute, counts, np.full(attribute.size, 40.0)).tolist() == counts.tolist()
    assert not outside(attribute).any()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 50.0, 3_000.0]), st.floats(1.0, 1e5))
def test_probabilities_sum_to_one_and_keep_the_tail(seed, sigma, total):
    attribute = column()
    smooth = denoised(attribute, counted(attribute, np.random.default_rng(seed), sigma), sigma)
    found, tail = shares_of(attribute, smooth, total), outside(attribute)
    assert found.sum() == pytest.approx(1) and (found >= 0).all()
    if smooth[tail].sum() < total:
        np.testing.assert_allclose(found[tail] * total, smooth[tail])


@pytest.mark.parametrize("where", ["margins", "bins", "instead of NULL"])
def test_far_cells_of_noise_get_no_rows_anywhere(where):
    attribute, sigma, far = column(), 40.0, slice(-6, -1)
    domain, random = Domain((attribute,)), np.random.default_rng(7)
    for _ in range(20):
        counts = counted(attribute, random)
        counts[far] = 50.0  # noise, by luck on one side
        table = NoisyMarginal(("x",), counts.astype(np.int64), sigma)
        if where == "margins":
            got = fit_margins(domain, Measurements([table])).probabilities["x"][far]
        elif where == "bins":
            made = binned(domain, [Observation(counts, np.asarray(sigma))], [3 * sigma], 12)
            got = (made.within[0] * made.shares[0][made.bins[0]])[far]
        else:
            known = with_estimates(domain, {"x": OneWayCounts(counts, np.full(counts.size, sigma))})
            (item,) = recoded(Shape((attribute,)), known, 30_000.0).measured
            assert isinstance(item, Attribute) and item.recoding is not None
            places = np.bincount(item.recoding.instead, minlength=attribute.size)
            got = places[far] / places.sum()
        assert got.sum() * 30_000 < 10


def test_the_noise_of_a_working_bin_is_that_of_its_found_bins():
    attribute, counts = column(), counted(column(), np.random.default_rng(8))
    made = binned(Domain((attribute,)), [Observation(counts, np.asarray(40.0))], [120.0], 12)
    held = np.bincount(made.bins[0], weights=~outside(attribute))
    np.testing.assert_allclose(made.observed[0].sigma, 40.0 * np.sqrt(np.maximum(held, 1)))


# -- values inside cells --------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [-1.0, -0.5, 0.0, 1.0, 2.5])
def test_a_power_law_has_its_distribution_function(index):
    places = np.linspace(0, 1, 11)
    at = 1 + 2 * power_law(3.0, index)(places)  # the cell [1, 3)
    whole = math.log(3) if index == 0 else (1 - 3.0**-index) / index
    below = np.log(at) if index == 0 else (1 - at**-index) / index
    np.testing.assert_allclose(below / whole, places, atol=1e-12)


@pytest.mark.parametrize(("scale", "index"), [(0.5, -0.5), (2.0, -0.9), (0.3, -0.3)])
def test_a_tail_of_negative_index_ends(scale, index):
    at = pareto(scale, index)(np.linspace(0, 1, 11))
    assert at[-1] == pytest.approx(min(1.0, -scale / index))
    inside = 1 - np.maximum(1 + index * at / scale, 0.0) ** (-1 / index)
    np.testing.assert_allclose(inside / inside[-1], np.linspace(0, 1, 11), atol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_cells_are_filled_along_the_tail(sign):
    attribute, random = column(sign=sign), np.random.default_rng(9)
    known = {"x": OneWayCounts(counted(attribute, random), np.full(attribute.size, 40.0))}
    (filled,) = spread_along_tails(
        Domain((attribute,)), with_estimates(Domain((attribute,)), known)
    ).attributes
    place = attribute.found.stop if sign > 0 else attribute.found.start - 1
    cuts, (low, high) = filled.fill[place], sorted(attribute.edges[place : place + 2])
    assert len(cuts) == 9 and low <= cuts[0] and cuts[-1] <= high
    first, last = cuts[1] - cuts[0], cuts[-2] - cuts[-3]
    assert (first < last) if sign > 0 else (first > last)
    assert filled.fill[attribute.found][1:-1] == attribute.fill[attribute.found][1:-1]
    assert filled.edges == attribute.edges and filled.beyond == attribute.beyond


def test_a_light_tail_does_not_fill_its_cell():
    """Ages end soon after the found range; an even cell would reach twice as far."""
    edges = (*range(20, 91), 112, 135, 180, 270, 360)
    fill = tuple((low, high) for low, high in pairwise(edges))
    attribute = Attribute("x", "BIGINT", "numeric", edges=edges, ordered=True, fill=fill, beyond=(0, 5))
    values = np.random.default_rng(10).normal(50, 14, 100_000)
    counts = np.histogram(values, edges)[0].astype(float)
    known = {"x": OneWayCounts(counts, np.full(counts.size, 30.0))}
    (filled,) = spread_along_tails(
        Domain((attribute,)), with_estimates(Domain((attribute,)), known)
    ).attributes
    assert filled.fill[70][-1] <= 108 and filled.fill[70][4] < 96
    assert isinstance(Fraction(filled.fill[70][0]), Fraction)


def test_a_cell_without_a_multiple_of_the_granularity_stays_even():
    edges = (-128, -127, -20, -10, 0, 10)
    fill = tuple((low, high) for low, high in pairwise(edges))
    attribute = Attribute("x", "TINYINT", "numeric", edges=edges, granularity=5, fill=fill, beyond=(1, 0))
    known = {"x": OneWayCounts(np.full(5, 1000.0), np.ones(5))}
    (filled,) = spread_along_tails(Domain((attribute,)), known).attributes
    assert filled.fill[0] == fill[0]
