"""Shares and sizes that grow with what stands out of the noise, and stop growing."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.adaptive.budget import Settings, tree_cap, triple_share
from dpsyn_sql.planning.plan import equivalent_rho
from dpsyn_sql.sample.sql_sampler import MOST_LOW_VARIANCE_ROWS
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
    relation = Relation("source", "table", "source", ())
    one, ten = Source(relation), Source(relation, PrivacyUnit("person", 10))
    budget = Budget("gdp", 10**13)
    assert equivalent_rho(one, domain, budget) == pytest.approx(float(budget.rho))
    assert equivalent_rho(ten, domain, budget) == pytest.approx(float(budget.rho) / 100)
    pure = Budget("pure", 2 * 10**12)
    assert equivalent_rho(one, domain, pure) == pytest.approx(
        float(pure.fraction * Fraction(1, 4) * pure.fraction)
    )


def test_one_ways_get_more_of_a_small_budget():
    source = Source(Relation("people", "table", "people", ()))
    shape = Domain(
        tuple(
            Attribute(f"x{i}", "INTEGER", "categorical", tuple(range(k)))
            for i, k in enumerate((2, 7, 300, 3))
        )
    )
    shares = []
    for epsilon in (0.001, 0.1, 0.3, 1, 10):
        plan = Adaptive().plan(source, shape, Budget.from_epsilon(epsilon, 1e-9).without_thresholds())
        shares.append(round(100 * sum(step.budget.amount for step in plan.known) / plan.budget.amount))
    assert shares[0] == 60 and 55 < shares[1] <= 60 and 45 < shares[2] < 55 and shares[3:] == [40, 40]
