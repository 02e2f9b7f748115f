"""Adaptive marginals of a table below others: what it asks, and what it makes of rows above as evidence."""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from support.domains import attribute
from support.doors import ran
from support.shop import (
    SOURCE,
    Door,
    distance,
    drawn,
    fitted,
    mean_distance,
    shop,
    shop_families,
    synthetic,
)

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.network import families_in
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.adaptive.model import Task
from dpsyn_sql.planning.asking import Asked
from dpsyn_sql.planning.families import families_of_table
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.rows.sample.tables import TableRows
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit

BUDGETS = [Budget.from_epsilon("0.5", "1e-9"), Budget.from_epsilon("3", "0")]


@pytest.mark.parametrize("budget", BUDGETS, ids=["gaussian", "pure"])
def test_no_question_is_planned_about_attributes_above_alone(budget):
    families = shop_families()["items"]
    above = {one.name for one in families.above}
    plan = Adaptive().plan(SOURCE, families.domain, budget, Terms(families=families))
    own = [name for name in families.domain.names if name not in above]
    *one_ways, scored = plan.steps
    first = [name for step in one_ways for query in step.queries for name in query.attrs]
    assert sorted(first) == sorted(own)
    pairs = [query.attrs for query in scored.queries]
    names = families.domain.names
    assert pairs == [pair for pair in combinations(names, 2) if not above.issuperset(pair)]
    assert sum(step.budget.amount for step in plan.steps) == budget.amount


def test_one_ways_get_less_where_those_above_cost_nothing():
    families = shop_families()["items"]
    plan = Adaptive().plan(SOURCE, families.domain, BUDGETS[0], Terms(families=families))
    whole = Adaptive().plan(replace(SOURCE, unit=PrivacyUnit()), families.domain, BUDGETS[0])

    def share(plan):
        asked = [step for step in plan.steps if isinstance(step, Asked)]
        return sum(step.budget.amount for step in asked) / plan.budget.amount

    number, own = len(families.domain.names), families.drawn
    part = share(whole) * own / number
    assert share(plan) == pytest.approx(part / (1 - share(whole) + part), rel=1e-6)


@pytest.mark.parametrize("budget", BUDGETS, ids=["gaussian", "pure"])
def test_no_question_is_asked_about_attributes_above_alone(budget):
    real = shop(4000)
    for name in ("orders", "items"):
        rows = real[name]
        above = {one.name for one in rows.families.above}
        _, door = fitted(rows, budget, rows.above.given(rows.families, 1))
        assert door.asked and not any(above.issuperset(attrs) for attrs in door.asked if attrs)
        assert () not in door.asked  # rows above tell how many there are


def test_triples_are_never_of_attributes_above_alone():
    rows = shop(20_000)["items"]
    above = {one.name for one in rows.families.above}
    budget = Budget.from_epsilon("10", "1e-9")
    _, door = fitted(rows, budget, rows.above.given(rows.families, 1))
    triples = [attrs for attrs in door.asked if len(attrs) == 3]
    assert triples and not any(above.issuperset(attrs) for attrs in triples)
    assert any(len(above.intersection(attrs)) == 2 for attrs in triples)


def test_a_model_is_of_the_rows_above_it_exactly():
    rows = shop(4000)["orders"]
    given = rows.above.given(rows.families, 1)
    model, _ = fitted(rows, BUDGETS[0], given)
    assert model.total == pytest.approx(given.total) and families_in(model) == rows.families
    sizes = rows.families.domain
    for clique in model.beliefs.tree.given_cliques:
        places = model.beliefs.tree.cliques[clique]
        names = [sizes.names[place] for place in places]
        wanted = given.table(names, [model.bins[place] for place in places]) / given.total
        np.testing.assert_allclose(model.beliefs.tables[clique], wanted, atol=1e-8)
    one = given.table(["customers.age"], [np.arange(12)])
    np.testing.assert_allclose(model.project(["customers.age"]), one, atol=0.01)


def small(units, seed):
    """Parents with two attributes that nearly say the same, and rows whose kind follows both."""
    rng = np.random.default_rng(seed)
    persons = families_of_table(
        "persons", Domain((attribute("a", 3), attribute("b", 3))), None, [("visits", 3)], groups={}
    )
    domain = Domain((attribute("kind", 4), attribute("way", 3)))
    visits = families_of_table("visits", domain, persons, [], groups={})
    a = rng.integers(0, 3, units)
    b = np.where(rng.random(units) < 0.8, a, rng.integers(0, 3, units))
    top = TableRows(
        persons, np.column_stack([a, b, rng.integers(0, 4, units)]), np.zeros(units, int), np.arange(units)
    )
    of = np.repeat(np.arange(units), top.codes[:, 2])
    law = rng.dirichlet(np.ones(4), (3, 3))
    kind = (law[a[of], b[of]].cumsum(axis=1) > rng.random((of.size, 1))).argmax(axis=1)
    way = (rng.dirichlet(np.ones(3), 4)[kind].cumsum(axis=1) > rng.random((of.size, 1))).argmax(axis=1)
    return TableRows(visits, np.column_stack([kind, way]), of, of.copy(), top)


@pytest.mark.parametrize("seed", range(3))
def test_the_law_of_rows_given_those_above_is_exact_for_exact_counts(seed):
    rows = small(30_000, seed)
    given = rows.above.given(rows.families, 1)
    model, _ = fitted(rows, Budget.from_epsilon("1000", "1e-9"), given, exact=True)
    names = ["persons.a", "persons.b", "persons.number of visits", "kind", "way"]
    counts = np.zeros([rows.families.domain[name].size for name in names])
    np.add.at(counts, tuple(rows.column(name) for name in names), rows.weights)
    found = model.project(names)
    for last in (1, 2):  # kind, then kind and way, given all that is above
        true, made = (table if last == 2 else table.sum(axis=4) for table in (counts, found))
        axes = tuple(range(3, 3 + last))
        true, made = (table / np.maximum(table.sum(axis=axes, keepdims=True), 1e-9) for table in (true, made))
        held = counts.sum(axis=(3, 4)) > 0
        np.testing.assert_allclose(made[held], true[held], atol=0.01)


def test_rows_above_are_needed():
    rows = shop(50)["orders"]
    with pytest.raises(InternalError, match="given the rows of its parent"):
        fitted(rows, BUDGETS[0])


@pytest.mark.parametrize("budget", BUDGETS, ids=["gaussian", "pure"])
def test_no_parents_childless_parents_and_tables_without_attributes(budget):
    real = shop(300)
    orders = real["orders"].families
    none = replace(real["customers"], codes=real["customers"].codes * 0)
    for above in (none, TableRows(none.families, none.codes[:0], none.parent[:0], none.unit[:0])):
        empty = np.zeros(0, int)
        rows = TableRows(orders, np.zeros((0, 4), int), empty, empty, above)
        given = above.given(orders, 1)
        model, _ = fitted(rows, budget, given)
        assert abs(model.total) < 1e-9 and drawn(model, 0, above, given).total == 0
    customers = real["customers"]
    bare = families_of_table("orders", Domain(()), customers.families, [], groups={})
    rows = replace(real["orders"], families=bare, codes=np.zeros((real["orders"].total, 0), int))
    given = customers.given(bare, 1)
    model, door = fitted(rows, budget, given)
    assert door.asked == [] and drawn(model, 0, customers, given).total == rows.total


def test_weak_budgets_ask_for_one_ways_alone_under_pure_accounts():
    rows = shop(300)["orders"]
    _, door = fitted(rows, Budget.from_epsilon("0.5", "0"), rows.above.given(rows.families, 1))
    assert {len(attrs) for attrs in door.asked} == {1}


def test_a_shop_at_epsilon_1_keeps_what_ties_its_tables():
    real = shop(50_000)
    runs = [synthetic(real, 1, seed) for seed in range(2)]

    def mean(measure):
        return float(np.mean([measure(made) for made in runs]))

    customer = [f"customers.{name}" for name in ("region", "segment", "age")]
    order, item = ["channel", "month", "priority"], ["category", "price", "quantity"]
    of_orders = [f"orders.{name}" for name in order]
    items, orders = real["items"], real["orders"]
    assert mean(lambda made: mean_distance(orders, made["orders"], customer, order)) < 0.025
    assert mean(lambda made: mean_distance(items, made["items"], of_orders, item)) < 0.028
    assert mean(lambda made: mean_distance(items, made["items"], customer, item)) < 0.028
    assert mean(lambda made: distance(orders, made["orders"], ("number of items",))) < 0.012
    assert mean(lambda made: abs(made["items"].total / items.total - 1)) < 0.02
    one, again = runs[0], synthetic(real, 1, 0)
    np.testing.assert_array_equal(one["items"].codes, again["items"].codes)


def _constant(value, *_):
    return value


def test_without_evidence_more_is_lost(monkeypatch):
    """The same table, whose attributes above are measured and fitted as all others."""
    real, apart = shop(50_000), dict()
    item = ["category", "price", "quantity"]
    rows = real["items"]
    given = rows.above.given(rows.families, 1)
    for evidence in (True, False):
        if evidence:
            model, _ = fitted(rows, BUDGETS[0], given)
        else:
            grain = WEIGHT * given.grain
            monkeypatch.setattr(Task, "grain", partial(_constant, grain))
            plain = replace(rows.families, table="", above=(), below=())
            terms, door = Terms(families=plain), Door(rows)
            method = Adaptive()
            plan = method.plan(SOURCE, plain.domain, BUDGETS[0], terms)
            model = replace(ran(method, plan, door, terms), families=rows.families)
        made = drawn(model, 0, rows.above, given)
        apart[evidence] = mean_distance(rows, made, item, item)
    assert apart[True] < 0.8 * apart[False]
