"""Discovery asks what was planned, spends no more than planned, and completes every column."""

from fractions import Fraction

import numpy as np
import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.discovery import discovered
from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.shape import Shape, Undiscovered, UnitId
from dpsyn_sql.errors import BudgetError
from dpsyn_sql.planning.discovery import CONTRIBUTIONS_SHARE, DISCOVERY_SHARE, planned_discovery
from dpsyn_sql.planning.queries import (
    ContributionQuery,
    GridQuery,
    KeyQuery,
    NoisyContributions,
    NoisyKeys,
    NoisyMarginal,
    NoisyTree,
)
from dpsyn_sql.source.relation import PrivacyUnit

DECLARED = Attribute("sex", "VARCHAR", "categorical", ("f", "m"))
CITY = Undiscovered("city", "VARCHAR", "categorical")
AGE = Undiscovered("age", "INTEGER", "numeric")
BORN = Undiscovered("born", "DATE", "temporal", nullable=False)
SHAPE = Shape((DECLARED, CITY, AGE, BORN), (UnitId("who", "BIGINT"),))
ROW, FIVE = PrivacyUnit(), PrivacyUnit("who", 5)


class Door:
    """Answers every question with something simple, and remembers it."""

    def __init__(self):
        self.asked = []

    def ask(self, query, budget):
        self.asked.append((query, budget))
        if isinstance(query, KeyQuery):
            return NoisyKeys(query.attr, ("Bonn", "Köln"), np.array([70, 60]), 5.0, 50)
        if isinstance(query, GridQuery):
            grid = np.zeros(query.grid.size, dtype=np.int64)
            grid[query.grid.regular // 2 + 6] = 1_000
            return NoisyMarginal((query.grid.name,), grid, 5.0)
        if isinstance(query, ContributionQuery):
            return NoisyContributions(np.arange(query.most), 2.0)
        return NoisyTree(query, ((0, 0, 0),))


@pytest.mark.parametrize("unit", [ROW, FIVE])
def test_the_shares_add_up(unit):
    budget = Budget("zcdp", 10**13, 10**8)
    steps, rest = planned_discovery(SHAPE, unit, budget)
    assert sum(step.budget.amount for step in steps) + rest.amount == budget.amount
    assert sum(step.budget.delta for step in steps) == budget.delta and rest.delta == 0
    part = DISCOVERY_SHARE + (CONTRIBUTIONS_SHARE if unit is FIVE else 0)
    assert float(Fraction(rest.amount, budget.amount)) == pytest.approx(float(1 - part))
    assert [step.ask for step in steps if step.budget.delta] == ["keys"]


def test_a_declared_domain_costs_nothing():
    budget = Budget("zcdp", 10**13, 10**8)
    steps, rest = planned_discovery(Shape((DECLARED,)), ROW, budget)
    assert steps == () and rest == budget.without_thresholds()


def test_without_delta_no_categories_can_be_learnt():
    with pytest.raises(BudgetError, match="delta=0.*'city'"):
        planned_discovery(SHAPE, ROW, Budget("pure", 10**15))
    steps, rest = planned_discovery(Shape((DECLARED, AGE)), ROW, Budget("pure", 10**15))
    assert [step.ask for step in steps] == ["grid", "tree"] and rest.kind == "pure"


@pytest.mark.parametrize("unit", [ROW, FIVE])
def test_every_planned_question_is_asked_once_at_its_budget(unit):
    steps, _ = planned_discovery(SHAPE, unit, Budget("zcdp", 10**13, 10**8))
    door = Door()
    shape, contributions, asked = discovered(SHAPE, steps, door, unit.max_rows)
    assert [budget for _, budget in door.asked] == [step.budget for step in asked]
    assert asked == steps
    assert shape.domain.names == ("sex", "city", "age", "born")
    assert all(a.origin == "discovered" for a in shape.domain.attributes[1:])
    largest = SHAPE.planned().shape()
    assert all(size <= most for size, most in zip(shape.domain.shape(), largest, strict=True))
    assert (contributions is None) == (unit is ROW)
    if contributions is not None:
        assert contributions.values.tolist() == [0, 1, 2, 3, 4]


def test_a_column_of_single_values_needs_no_tree():
    class Flat(Door):
        def ask(self, query, budget):
            answer = super().ask(query, budget)
            if isinstance(query, GridQuery):
                answer.values[:] = 0
                answer.values[[edge in (0, 1) for edge in query.grid.edges[:-1]] + [False]] = 500
            return answer

    shape = Shape((AGE,))
    steps, _ = planned_discovery(shape, ROW, Budget("zcdp", 10**13))
    completed, _, asked = discovered(shape, steps, Flat(), 1)
    assert [step.ask for step in asked] == ["grid"]
    assert completed.domain.attributes[0].edges == (0, 1, 2)
