"""Shares of adaptive marginals: what they grow with, and those of more than a hundred attributes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.domains import SOURCE, domain_of
from support.doors import FakeCounter, FakeCurator, OneRelease, opened, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.adaptive.budget import Settings, score_share_of_many, tree_cap, triple_share
from dpsyn_sql.planning.plan import equivalent_rho
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.measure.noise import counts_event, standard_deviation
from dpsyn_sql.rows.sample.sql_rows import MOST_LOW_VARIANCE_ROWS
from dpsyn_sql.source.relation import PrivacyUnit, Relation, Source

SETTINGS = Settings()


def test_the_share_of_triples_grows_by_powers_of_ten():
    assert triple_share(1e-9, SETTINGS) == triple_share(0.015, SETTINGS) == 15
    shares = [triple_share(0.015 * 10**power, SETTINGS) for power in range(8)]
    assert shares == [15, 20, 26, 30, 30, 30, 30, 30]


def test_a_tree_has_a_million_cells_up_to_adult_at_epsilon_1():
    assert tree_cap(1e-12, 0.0, SETTINGS) == tree_cap(0.0149, 48_842, SETTINGS) == 10**6


@pytest.mark.parametrize(("rho", "total"), [(0.24, 1000), (0.015, 48_990 * 4)])
def test_sixteen_times_the_budget_is_twice_the_cells(rho, total):
    """Of the budget alone, or of budget and rows."""
    assert tree_cap(rho, total, SETTINGS) == pytest.approx(2e6, rel=1e-3)


def test_a_tree_stops_growing():
    assert tree_cap(10.0, 1e12, SETTINGS) == 4 * 10**6
    assert tree_cap(0.015, 1e7, replace(SETTINGS, cap_most=1.5e6)) == 1_500_000


def test_rows_that_sql_draws_one_by_one_get_a_small_tree():
    assert SETTINGS.cap_rows == MOST_LOW_VARIANCE_ROWS
    assert tree_cap(0.015, 2e7, SETTINGS) == 4 * 10**6
    assert tree_cap(0.015, 2e7 + 1, SETTINGS) == 10**6


def test_the_noise_of_a_unit_of_several_rows_counts_as_theirs():
    domain = Domain((Attribute("a", "INTEGER", "categorical", labels=(0, 1)),))
    one, ten = PrivacyUnit(), PrivacyUnit("person", 10)
    budget = Budget("gdp", 10**13)
    assert equivalent_rho(one, domain, budget) == pytest.approx(float(budget.rho))
    assert equivalent_rho(ten, domain, budget) == pytest.approx(float(budget.rho) / 100)
    pure = Budget("pure", 2 * 10**12)
    assert equivalent_rho(one, domain, pure) == pytest.approx(float(pure.fraction**2 / 4))


def test_counts_that_share_a_budget_have_the_noise_that_the_door_adds_to_each():
    for kind in ("gdp", "pure"):
        budget = Budget(kind, 10**13)
        (share, *_) = budget.split([1] * 9)
        event = counts_event(3, 9, share)
        assert budget.law(3).shared(9) == pytest.approx(standard_deviation(event), rel=1e-3)


def test_one_ways_get_more_of_a_small_budget():
    source = Source(Relation("people", "table", "people", ()))
    shape = domain_of((2, 7, 300, 3))
    shares = []
    for epsilon in (0.001, 0.1, 0.3, 1, 10):
        plan = Adaptive().plan(source, shape, Budget.from_epsilon(epsilon, 1e-9).without_thresholds())
        shares.append(round(100 * sum(step.budget.amount for step in plan.asked) / plan.budget.amount))
    assert shares[0] == 60 and 55 < shares[1] <= 60 and 45 < shares[2] < 55 and shares[3:] == [40, 40]


ROWS, ATTRIBUTES = 20_000, 120
AS_FEW = {"preselect_between": (10**6, 10**6)}


class RoundedNoise:
    """Noise of the right scale with a seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def gaussian(self, values, sigma):
        return values + np.rint(self.random.normal(0, sigma, values.shape)).astype(np.int64)


def codes_in_pairs(follows):
    """Attribute 2i + 1 is attribute 2i in a part of the rows; all else is independent."""
    rng = np.random.default_rng(5)
    codes = [rng.integers(0, 2, ROWS) for _ in range(ATTRIBUTES)]
    for i in range(1, ATTRIBUTES, 2):
        codes[i] = np.where(rng.random(ROWS) < follows, codes[i - 1], codes[i])
    return codes


def model_of(monkeypatch, codes, **changes):
    monkeypatch.setattr(Adaptive, "constants", replace(SETTINGS, **changes))
    domain, budget = domain_of((2,) * ATTRIBUTES), Budget.from_epsilon(1, 1e-9).without_thresholds()
    counter = FakeCounter(lambda query: table_of(domain, codes, query))
    door = opened(counter, domain, 1, OneRelease(budget).open(), RoundedNoise(1))
    return ran(Adaptive(), Adaptive().plan(SOURCE, domain, budget), door)


def mean_distance(model, codes):
    """Mean total variation distance of the pairs that depend."""
    pairs = [(f"x{i}", f"x{i + 1}") for i in range(0, ATTRIBUTES, 2)]
    apart = [
        np.abs(model.project(pair) - table_of(model.domain, codes, MarginalQuery(pair))).sum()
        for pair in pairs
    ]
    return float(np.mean(apart)) / ROWS / 2


def test_dependence_that_the_small_share_of_few_attributes_does_not_show_is_found(monkeypatch):
    codes = codes_in_pairs(0.3)
    few, many = (mean_distance(model_of(monkeypatch, codes, **c), codes) for c in (AS_FEW, {}))
    assert few > 0.06  # of 0.075 with independent columns
    assert many < 0.02


@pytest.mark.parametrize(("attributes", "rounds"), [(9, 1), (8, 2)])
def test_one_round_has_the_share(monkeypatch, attributes, rounds):
    changes = {"preselect_between": (2, 8), "preselected": 100, "triple_attributes": 2}
    monkeypatch.setattr(Adaptive, "constants", replace(SETTINGS, **changes))
    domain, codes = domain_of((2,) * attributes), [np.arange(ROWS) // 5 % 2] * attributes
    door, budget = FakeCurator(domain, partial(table_of, domain, codes)), Budget("gdp", 10**13)
    plan = Adaptive().plan(SOURCE, domain, budget)
    ran(Adaptive(), plan, door)
    scored = [spent.amount for question, _, spent in door.asked if question == "distance"]
    assert len(scored) == rounds
    share = score_share_of_many((2,) * attributes, 0.5, SETTINGS) if rounds == 1 else 5
    rest = plan.reserves[0].budget.amount
    assert sum(scored) / rest == pytest.approx(share / 100, abs=0.01)
    assert sum(spent.amount for _, _, spent in door.asked) <= 10**13


@given(st.lists(st.integers(1, 40), min_size=111, max_size=300), st.sampled_from([0.5, 1.0]))
def test_the_share_makes_the_noise_of_scores_and_tables_least(sizes, power):
    own = [size for size in sizes if size > 1]
    if len(own) < 2:
        return
    number, size = len(own), np.mean(own)
    scores, tables = (
        number * (number - 1) / 2,
        SETTINGS.many_tables * number * (1 - 1 / size) ** 2,
    )

    def noise(share):
        return (scores / share) ** power + SETTINGS.charge * size**2 * (tables / (1 - share)) ** power

    found = score_share_of_many(sizes, power, SETTINGS) / 100
    assert noise(found) <= 1.01 * min(noise(share) for share in np.linspace(0.01, 0.99, 99))


def test_the_share_grows_with_the_number_of_attributes_and_falls_with_their_codes():
    shares = [
        score_share_of_many((size,) * number, 0.5, SETTINGS)
        for number, size in ((120, 2), (1000, 2), (120, 5), (1000, 5), (1000, 20))
    ]
    assert shares == [76, 86, 40, 58, 16]


@pytest.mark.parametrize(("pairs", "taken"), [(0, False), (20, True)])
def test_few_dependent_pairs_among_thousands_are_taken_and_pure_luck_is_not(monkeypatch, pairs, taken):
    codes = [np.random.default_rng(place).integers(0, 2, ROWS) for place in range(ATTRIBUTES)]
    codes = [*codes_in_pairs(0.3)[: 2 * pairs], *codes[2 * pairs :]]
    scopes = {scope for scope in model_of(monkeypatch, codes).beliefs.tree.cliques if len(scope) > 1}
    assert bool(scopes) == taken
    assert sum({2 * pair, 2 * pair + 1} <= set(scope) for pair in range(pairs) for scope in scopes) >= pairs
