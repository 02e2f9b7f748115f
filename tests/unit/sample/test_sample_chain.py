"""Moments of a unit as a chain: against the product of its factors, fitted to planted tables, and where it is not."""

from itertools import product

import numpy as np
import pytest

from dpsyn_sql.rows.sample import moments as chains
from dpsyn_sql.rows.sample.moments import Chain, Succession, Units, fitted, succession

BINS = 4
FOLLOW = np.triu(np.random.default_rng(3).uniform(0.2, 3, (BINS, BINS)))
WEIGHTS = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.5, 0.0, 0.4]])


def law(weights, left, start):
    """Probability of every sequence of ``left`` bins after ``start`` (-1: none), by its product of factors."""
    found = {}
    for bins in product(range(BINS), repeat=left):
        weight, before = 1.0, start
        for one in bins:
            weight *= weights[one] * (FOLLOW[before, one] if before >= 0 else 1.0)
            before = one
        found[bins] = weight
    whole = sum(found.values())
    return {bins: weight / whole for bins, weight in found.items() if weight > 0}


def units_of(number, rows=3, left=None, start=-1):
    ones = np.ones(number, np.int64)
    left = rows if left is None else left
    return Units(rows * ones, left * ones, np.arange(number) % 2, start * ones, np.arange(number))


@pytest.mark.parametrize(("left", "start"), [(3, -1), (2, 1), (1, 0)])
@pytest.mark.parametrize("cells", [2**22, 2**12])  # one block, and many
def test_moments_have_the_product_of_their_factors(left, start, cells, monkeypatch):
    monkeypatch.setattr(chains, "_MOST_REFINED", 0)
    monkeypatch.setattr(chains, "_MOST_CELLS", cells)
    number = 40_000
    chain = Chain(FOLLOW, np.array([3]), np.ones((1, BINS)))
    units = units_of(number, left=left, start=start)  # all apart: independent
    drawn = chain.draw(WEIGHTS, units, np.random.default_rng(1)).reshape(number, left)
    for configuration in range(2):
        wanted = law(WEIGHTS[configuration], left, start)
        own = drawn[units.configuration == configuration]
        numbers = np.ravel_multi_index(tuple(own.T), (BINS,) * left)
        counts = np.bincount(numbers, minlength=BINS**left)
        places = [int(np.ravel_multi_index(bins, (BINS,) * left)) for bins in wanted]
        assert counts[places].sum() == len(own)
        expected = np.array(list(wanted.values())) * len(own)
        often = expected > 20
        assert (np.abs(counts[places] - expected)[often] < 6 * np.sqrt(expected[often])).all()


def test_units_of_one_kind_that_are_not_apart_are_even():
    number = 999
    chain = Chain(FOLLOW, np.array([3]), np.ones((1, BINS)))
    together = Units(*(np.full(number, value) for value in (3, 3, 0, -1, 0)))
    first = chain.draw(WEIGHTS, together, np.random.default_rng(1)).reshape(number, 3)[:, 0]
    factors = chain.factors(WEIGHTS[:1], np.array([3]))[0]
    wanted = np.zeros(BINS)
    for bins in product(range(BINS), repeat=3):
        steps = FOLLOW[bins[0], bins[1]] * FOLLOW[bins[1], bins[2]]
        wanted[bins[0]] += steps * factors[list(bins)].prod()
    assert (np.abs(np.bincount(first, minlength=BINS) - number * wanted / wanted.sum()) <= 1 + 1e-6).all()


def walks(units=3000, bins=12):
    """Units of 1 to 7 rows in two configurations, whose moments go on by one, seldom by two."""
    rng = np.random.default_rng(2)
    rows, configuration = rng.integers(1, 8, units), rng.integers(0, 2, units)
    table, weights = np.zeros((bins, bins)), np.zeros((2, 7, bins))
    for number, own in zip(rows, configuration, strict=True):
        first = rng.integers(0, 3 + 2 * own)
        moments = np.minimum(first + np.cumsum([0, *(1 + (rng.random(number - 1) < 0.1))]), bins - 1)
        np.add.at(table, (moments[:-1], moments[1:]), 1 / number)
        np.add.at(weights, (own, number - 1, moments), 1 / number)
    weights = weights.reshape(14, bins)
    asked = configuration * 7 + rows - 1
    return (
        Succession(table / table.sum(), np.arange(bins)),
        weights / weights.sum(axis=1)[:, None],
        rows,
        asked,
    )


@pytest.mark.parametrize("work", [2**25, 1])  # all kinds of units, and a sample of them
def test_a_fitted_chain_has_the_planted_steps_and_the_moments_of_every_kind_of_unit(work, monkeypatch):
    monkeypatch.setattr(chains, "_MOST_WORK", work)
    monkeypatch.setattr(chains, "_FEWEST", 10)
    wanted, weights, rows, asked = walks()
    chain = fitted(wanted, weights, rows, asked, np.ones(rows.size))
    times = 10
    rows, asked = np.tile(rows, times), np.tile(asked, times)
    units = Units(rows, rows, asked, np.full(rows.size, -1), np.zeros(rows.size, np.int64))
    drawn = chain.draw(weights, units, np.random.default_rng(1))
    starts = np.cumsum(rows) - rows
    after = np.setdiff1d(np.arange(drawn.size), starts)
    weight = np.repeat(1 / rows, rows)
    pair, table = np.zeros_like(wanted.table), np.zeros_like(weights)
    np.add.at(pair, (drawn[after - 1], drawn[after]), weight[after])
    np.add.at(table, (np.repeat(asked, rows), drawn), weight)
    assert np.abs(pair / pair.sum() - wanted.table).sum() / 2 < 0.04
    table /= table.sum(axis=1, keepdims=True)
    assert (np.abs(table - weights).sum(axis=1) / 2 < 0.04).all()


def test_a_few_large_units_of_a_nearly_constant_moment_have_it_as_often_as_the_others():
    table = np.array([[0.002, 0.001, 0.01], [0, 0.001, 0.005], [0, 0, 0.98]])
    weights, ones = np.array([[0.056, 0.016, 0.928]]), np.ones(900)
    rows = np.where(np.arange(900) % 50 == 0, 16, 3)
    chain = fitted(Succession(table / table.sum(), np.arange(3)), weights, rows, 0 * rows, ones)
    many = np.full(20_000, 16)
    units = Units(many, many, 0 * many, 0 * many - 1, np.arange(many.size))
    drawn = np.bincount(chain.draw(weights, units, np.random.default_rng(1))) / many.sum()
    np.testing.assert_allclose(drawn, weights[0], atol=0.005)


def test_a_chain_is_judged_by_the_moments_that_are_drawn(monkeypatch):
    """Of two kinds of units: factors that are fitted to all of them together are right for neither."""
    rows = np.full(400, 12)
    kinds, weights = np.arange(400) % 2, np.array([[0.7, 0.3], [0.3, 0.7]])
    table = Succession(np.array([[0.46, 0.08], [0, 0.46]]), np.arange(2))
    assert fitted(table, weights, rows, kinds, np.ones(400)) is not None
    monkeypatch.setattr(chains, "_MOST_REFINED", 0)
    assert fitted(table, weights, rows, kinds, np.ones(400)) is None


def test_nothing_is_fitted_to_units_of_one_row_or_too_many_or_where_no_chain_comes_close():
    wanted, weights, rows, asked = walks()
    ones = np.ones(rows.size)
    assert fitted(wanted, weights, np.minimum(rows, 1), asked, ones) is None
    assert fitted(wanted, weights, np.where(rows == 7, chains.MOST_ROWS + 1, rows), asked, ones) is None
    assert fitted(wanted, weights, rows, asked, ones) is not None
    back = Succession(np.triu(wanted.table[::-1, ::-1] * np.arange(1, 13)[::-1] ** 6), wanted.bins)
    back = Succession(back.table / back.table.sum(), back.bins)
    assert fitted(back, weights[::-1], rows, asked, ones) is None  # steps where no moments are


@pytest.mark.parametrize(("back", "follows"), [(0.05, True), (0.15, False)])
def test_a_model_whose_rows_go_backwards_has_no_succession(back, follows):
    pair = np.zeros((4, 3))  # last: before a first row
    pair[3], pair[0, 1], pair[1, 2], pair[2, 0] = 0.1, 0.35 * (1 - back), 0.35 * (1 - back), 0.7 * back
    found = succession(pair, np.arange(3), np.arange(4), np.ones(4))
    assert (found is not None) == follows
    if found is not None:
        np.testing.assert_allclose(found.table, [[0, 0.5, 0], [0, 0, 0.5], [0, 0, 0]])


def test_a_bin_of_the_row_before_that_reaches_beyond_a_moment_counts_up_to_it():
    pair = np.array([[0.0, 0.2, 0.2], [0.0, 0.0, 0.2], [0.1, 0.1, 0.2]])  # bins of codes 0 and 1, 2, and none
    found = succession(pair, np.arange(3), np.array([0, 0, 1, 2]), np.array([0.25, 0.75, 1.0, 1.0]))
    wanted = np.array([[0, 0.05, 0.05], [0, 0.15, 0.15], [0, 0, 0.2]])
    np.testing.assert_allclose(found.table, wanted / wanted.sum())


def test_after_a_row_without_a_moment_no_row_has_one():
    pair = np.array([[0.0, 0.3, 0.1], [0.0, 0.0, 0.2], [0.2, 0.1, 0.1]])  # two moments and NULL
    found = succession(pair, np.arange(3), np.arange(3), np.ones(3))
    wanted = np.array([[0, 0.3, 0.1], [0, 0, 0.2], [0, 0, 0.1]])
    np.testing.assert_allclose(found.table, wanted / wanted.sum())


def test_a_unit_that_has_no_moment_after_its_row_before_gets_its_last_one():
    chain = Chain(FOLLOW, np.array([2]), np.ones((1, BINS)))
    units = Units(*(np.array([value]) for value in (2, 1, 0, 3, 0)))
    assert chain.draw(np.array([[0.5, 0.5, 0.0, 0.0]]), units, np.random.default_rng(1)).tolist() == [1]
