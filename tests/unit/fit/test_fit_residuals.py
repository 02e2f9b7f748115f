"""Residuals and what is composed of them, beside projections written out and simulated noise."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.doors import centred, table_of

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.reconstruct import cost_factor, deviation, filled, interaction, projected, shown_tables
from dpsyn_sql.planning.queries import MarginalQuery, NoisyMarginal, NoisyResidual

SIZES = {"a": 6, "b": 3, "c": 2, "one": 1}
DOMAIN = Domain(
    tuple(
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size))) for name, size in SIZES.items()
    )
)
BINS = (0, 0, 0, 1, 2, 2)
SHAPES = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple)
RNG = np.random.default_rng(7)
CODES = np.array([RNG.integers(0, size, 500) for size in SIZES.values()])
CODES[1] = (CODES[0] + CODES[2]) % 3


def answered(query, scale=0.0, rng=RNG):
    values = centred(table_of(DOMAIN, CODES, query))
    noise = np.rint(rng.normal(0, scale, values.shape)).astype(np.int64)
    return NoisyResidual(query.attrs, values + noise, scale, query.maps)


def total(sigma=0.1, noise=0):
    return NoisyMarginal((), np.array(500 + noise), sigma)


@given(SHAPES, st.integers(0, 2**32 - 1))
def test_a_residual_is_the_projection_of_its_table(shape, seed):
    table = np.random.default_rng(seed).normal(0, 10, shape)
    found = projected(table)
    for axis in range(len(shape)):
        np.testing.assert_allclose(found.sum(axis=axis), 0, atol=1e-9)
    np.testing.assert_allclose(found, centred(table) / table.size, atol=1e-9)
    np.testing.assert_allclose(projected(found), found, atol=1e-9)


@given(SHAPES, st.integers(0, 2**32 - 1))
def test_a_filled_table_has_the_residual_and_the_margins_that_it_was_filled_with(shape, seed):
    rng = np.random.default_rng(seed)
    table, residual = rng.normal(0, 10, shape), projected(rng.normal(0, 10, shape))
    found = filled(table, residual)
    np.testing.assert_allclose(projected(found), residual, atol=1e-9)
    for axes in combinations(range(len(shape)), 1):
        np.testing.assert_allclose(found.sum(axis=axes), table.sum(axis=axes), atol=1e-9)


def test_the_projected_noise_has_the_deviation_that_is_told():
    shape = (4, 3)
    draws = [
        interaction(NoisyResidual(("a", "b"), np.rint(RNG.normal(0, 240, shape)).astype(np.int64), 240.0))
        for _ in range(20_000)
    ]
    told = deviation(NoisyResidual(("a", "b"), np.zeros(shape, dtype=np.int64), 240.0))
    assert told == pytest.approx(240 / 12 * math.sqrt(cost_factor(shape)))
    np.testing.assert_allclose(np.std(draws, axis=0), told, rtol=0.03)


QUERIES = [MarginalQuery((name,)) for name in "abc"] + [
    MarginalQuery(("a", "b"), (BINS, None)),
    MarginalQuery(("a", "c"), (BINS, None)),
    MarginalQuery(("b", "c")),
    MarginalQuery(("a", "b", "c"), (BINS, None, None)),
]


def test_without_noise_the_tables_of_the_source_are_composed():
    shown = shown_tables(DOMAIN, [total(), *map(answered, QUERIES)])
    assert [table.attrs for table in shown] == [(), ("one",), *(query.attrs for query in QUERIES)]
    for table, query in zip(shown[2:], QUERIES, strict=True):
        np.testing.assert_array_equal(table.values, table_of(DOMAIN, CODES, query))
        assert table.composed and table.maps == query.maps
    assert shown[1].values == [500] and not shown[0].composed


@pytest.mark.slow
def test_noise_of_composed_tables_is_what_they_say():
    """The largest deviation of a cell, over many answers; repeated questions are pooled."""
    scales = [60, 30, 8, 100, 50, 40, 300]
    found = [list[np.ndarray]() for _ in QUERIES]
    for _ in range(4000):
        answers = [answered(query, scale) for query, scale in zip(QUERIES, scales, strict=True)]
        again = [answered(QUERIES[0], 90), answered(QUERIES[5], 80)]
        noise = [round(RNG.normal(0, 9)), round(RNG.normal(0, 12))]
        shown = shown_tables(DOMAIN, [total(9.0, noise[0]), *answers, total(12.0, noise[1]), *again])
        for tables, table in zip(found, shown[3:], strict=True):
            tables.append(table.values)
    for tables, table, query in zip(found, shown[3:], QUERIES, strict=True):
        np.testing.assert_allclose(
            np.mean(tables, axis=0), table_of(DOMAIN, CODES, query), atol=5 * table.sigma / math.sqrt(4000)
        )
        assert np.std(tables, axis=0).max() == pytest.approx(table.sigma, rel=0.05)


def test_a_table_with_a_margin_that_nobody_asked_for_is_not_shown():
    shown = shown_tables(DOMAIN, [total(), answered(QUERIES[0]), answered(QUERIES[3])])
    assert [table.attrs for table in shown] == [(), ("one",), ("a",)]


def test_margins_can_be_known_from_before():
    known = [
        total(),
        *(NoisyMarginal((n,), table_of(DOMAIN, CODES, MarginalQuery((n,))), 1.0) for n in "abc"),
    ]
    one, *shown = shown_tables(DOMAIN, [answered(query) for query in QUERIES[3:6]], known)
    assert one.attrs == ("one",)
    for table, query in zip(shown, QUERIES[3:6], strict=True):
        np.testing.assert_array_equal(table.values, table_of(DOMAIN, CODES, query))
    assert shown_tables(DOMAIN, [answered(QUERIES[5])], known[:3]) == (one,)


def test_whole_tables_are_shown_as_they_are():
    tables = (NoisyMarginal(("a",), np.arange(6), 3.0), NoisyMarginal(("a", "b"), np.ones((6, 3)), 2.0))
    assert shown_tables(DOMAIN, tables) == tables
