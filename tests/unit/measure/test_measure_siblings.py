"""Pairs of rows at the door: what they cost, what is refused before the charge, and that they are not shown."""

import numpy as np
import pytest
from support.doors import FakeCounter, NoNoise, OneRelease, ReadAtOnce

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.planning.queries import MarginalQuery, Siblings
from dpsyn_sql.source.relation import WEIGHT

DOMAIN = Domain(
    tuple(
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size)))
        for name, size in (("a", 3), ("b", 3), ("many", 65))
    )
)
AA, AB = MarginalQuery(("a", "a")), MarginalQuery(("a", "b"))
BUDGET, PURE = Budget("gdp", 10**13), Budget("pure", 10**13)


class Paired(FakeCounter):
    def __init__(self):
        super().__init__(None)

    def siblings(self, queries):
        self.asked.append(list(queries))
        return [np.arange(9, dtype=np.int64).reshape(3, 3)[: query.shape(DOMAIN)[0]] for query in queries]


def door(budget):
    counter, entry = Paired(), OneRelease(Budget(budget.kind, 10**15)).open()
    return ReadAtOnce(counter, DOMAIN, 3, entry, NoNoise()), entry, counter


@pytest.mark.parametrize("queries", [[AA], [AA, AB], [AB, AB]])
def test_a_unit_is_charged_for_its_weight_in_each_table(queries):
    curator, entry, _ = door(BUDGET)
    tables = curator.ask(Siblings(queries), BUDGET)
    (event,) = entry.events
    assert event.l2_squared == len(queries) * WEIGHT**2
    assert event.sigma >= WEIGHT * np.sqrt(len(queries) / (2 * float(BUDGET.rho)))
    assert [table.attrs for table in tables] == [query.attrs for query in queries]
    assert tables[0].sigma == pytest.approx(event.sigma)
    assert curator.measurements == ()


def test_pure_budgets_pay_for_the_sum_of_all_tables():
    curator, entry, _ = door(PURE)
    curator.ask(Siblings([AA, AB]), PURE)
    (event,) = entry.events
    assert event.l1 == 2 * WEIGHT


@pytest.mark.parametrize(
    "queries",
    [
        [],
        [MarginalQuery(("a",))],
        [MarginalQuery(("a", "b", "a"))],
        [AA, MarginalQuery(("a", "c"))],
        [MarginalQuery(("a", "many"))],
        [MarginalQuery(("a", "a"), ((0, 1, 1), (0, 2, 2)))],
        [MarginalQuery(("a", "a"), ((0, 1), None))],
    ],
    ids=["none", "one", "three", "unknown", "many bins", "empty bin", "short map"],
)
def test_what_breaks_the_claim_is_refused_before_the_charge(queries):
    curator, entry, counter = door(BUDGET)
    with pytest.raises(InternalError):
        curator.ask(Siblings(queries), BUDGET)
    assert not entry.events
    assert not counter.asked


def test_nothing_is_asked_for_nothing():
    curator, _, counter = door(BUDGET)
    with pytest.raises(BudgetError):
        curator.ask(Siblings([AA]), Budget("gdp", 0))
    assert not counter.asked
