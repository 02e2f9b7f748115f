"""Running totals: which windows a total adds up, what one unit can cost, and the noise of both ways."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.planning.running import WAYS, Running, Total, both_ways

KINDS = ("gdp", "pure")


def windows_of(running, period):
    span = running.span(period)
    return range(period - span, period)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("periods", [1, 2, 3, 7, 8, 12, 31])
def test_the_nodes_of_a_total_hold_every_window_so_far_once(way, periods):
    running = Running(way, periods, periods, 1, "gdp")
    for period in range(1, periods + 1):
        held = [window for node in running.nodes(period) for window in windows_of(running, node)]
        assert sorted(held) == list(range(period))
        assert running.nodes(period)[-1] == period and list(running.nodes(period)) == sorted(
            running.nodes(period)
        )
        assert len(running.nodes(period)) == (period if way == "sum" else period.bit_count())
        assert windows_of(running, period)[0] % running.span(period) == 0  # slices of a span are disjoint


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("periods", [1, 2, 5, 8, 12, 100])
def test_levels_count_their_nodes_and_how_often_totals_use_them(way, periods):
    running = Running(way, periods, periods, 1, "gdp")
    everywhere = range(1, periods + 1)
    for level in running.levels:
        assert level.nodes == sum(running.span(period) == level.span for period in everywhere)
        assert level.uses == sum(
            running.span(node) == level.span for period in everywhere for node in running.nodes(period)
        )


def cost_of_a_unit(running, rows, budgets):
    """What one unit's rows in each window cost: its first windows with rows count, and of each node as many
    rows as are allowed. Gaussian noise costs the square of the part of the bound that is used, Laplace noise
    the part."""
    active = [window for window, number in enumerate(rows) if number][: running.windows]
    power = 2 if running.kind == "gdp" else 1
    cost = Fraction(0)
    for period in range(1, running.periods + 1):
        bound = running.level(period).rows
        counted = min(bound, sum(rows[window] for window in windows_of(running, period) if window in active))
        cost += Fraction(counted, bound) ** power * budgets[period].amount
    return cost


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("periods", "windows", "rows"), [(1, 1, 1), (5, 2, 2), (6, 6, 1), (7, 1, 1), (8, 3, 1)]
)
def test_no_unit_costs_more_than_the_budget_and_some_unit_costs_all_that_is_charged(
    way, kind, periods, windows, rows
):
    running = Running(way, periods, windows, rows, kind)
    whole = Budget(kind, 10**15 + 7)
    budgets = {period: running.node_budget(whole, period) for period in range(1, periods + 1)}
    charged = sum(
        level.charged * budgets[period].amount
        for level in running.levels
        for period in budgets
        if period == next(each for each in budgets if running.span(each) == level.span)
    )
    assert whole.amount - sum(level.charged for level in running.levels) < charged <= whole.amount
    many = rows * periods  # as many rows as fit into any node
    costs = [
        cost_of_a_unit(running, unit, budgets)
        for unit in product((0, rows, many), repeat=periods)
        if any(unit)
    ]
    assert max(costs) == charged


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("periods", "windows", "rows"), [(12, 12, 1), (13, 2, 3), (64, 1, 1)])
def test_the_stated_noise_is_that_of_the_nodes_own_budgets(way, kind, periods, windows, rows):
    running = Running(way, periods, windows, rows, kind)
    whole = Budget(kind, 10**15)

    def node(period):
        """Of one node by its own budget, over that of one row for the whole budget."""
        part = running.node_budget(whole, period).amount / whole.amount
        return running.level(period).rows ** 2 / (part if kind == "gdp" else part**2)

    variances = [sum(node(each) for each in running.nodes(period)) for period in range(1, periods + 1)]
    assert [running.variance(period) for period in range(1, periods + 1)] == pytest.approx(variances)
    assert running.mean_variance == pytest.approx(np.mean(variances))
    assert running.largest_variance == pytest.approx(max(variances))


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_shares_of_the_levels_give_less_noise_on_average(kind):
    running = Running("tree", 365, 2, 3, kind)
    chance = np.random.default_rng(5)
    best = running.mean_variance
    weights = np.array([float(level.weight(kind)) for level in running.levels])
    for spread in (0.01, 0.1, 1.0):
        for _ in range(50):
            shares = weights * chance.lognormal(0, spread, weights.size)
            shares /= shares.sum()
            noise = [
                level.uses * level.noise(Fraction(share), kind)
                for level, share in zip(running.levels, shares, strict=True)
            ]
            assert float(sum(noise)) / running.periods >= best * (1 - 1e-9)


def test_the_key_of_every_period_holds_the_budgets_of_all_nodes():
    running, other = both_ways(20, 1, 2, "gdp")
    keys = [
        Total(running, other, tuple(map(str, range(20))), period, Budget("gdp", whole)).identity
        for period, whole in ((1, 10**12), (8, 10**12), (8, 10**12 - 1))
    ]
    assert keys[0] == keys[1] != keys[2]
    told = keys[0]["running_total"]["units_of_1e-15_for_a_node"]
    assert told == {str(s): running.node_budget(Budget("gdp", 10**12), s).amount for s in (1, 2, 4, 8, 16)}


def test_the_way_with_less_noise_is_chosen_and_both_are_known():
    """The same people in every month: the sum. Many days and people of one day each: the tree."""
    chosen, other = both_ways(12, 12, 1, "gdp")
    assert (chosen.way, other.way) == ("sum", "tree")
    assert math.sqrt(chosen.largest_variance) == pytest.approx(12)  # 12 tables, each with a twelfth
    assert 12 < math.sqrt(other.largest_variance) < 21
    chosen, other = both_ways(365, 1, 1, "gdp")
    assert (chosen.way, other.way) == ("tree", "sum")
    assert math.sqrt(other.largest_variance) == pytest.approx(math.sqrt(365))
    assert math.sqrt(chosen.largest_variance) < 9
    rows, people = Running("tree", 8, 8, 1, "gdp", True), Running("tree", 8, 8, 1, "gdp")
    assert {level.rows for level in rows.levels} == {1} and max(level.rows for level in people.levels) == 8
    assert both_ways(1, 1, 1, "gdp")[0].way == "sum"  # no difference
    assert both_ways(12, 400, 1, "gdp") == both_ways(12, 12, 1, "gdp")
