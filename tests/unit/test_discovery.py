"""Discovery asks what was planned, spends no more than planned, and completes every column."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from support.doors import FakeDoor

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain, Recoding, edge_ticks, fill_ticks
from dpsyn_sql.attributes.roles import UnitId
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.types import BOOLEAN, CLASSES, DATE, DECIMALS, INTEGER, TEXT, parse_type
from dpsyn_sql.discovery.designs import (
    AGAIN_SHARE,
    COLUMN_SHARE,
    CONTRIBUTIONS_SHARE,
    DISCOVERY_SHARE,
    ROWS_SHARE,
    design,
    left_of,
    looks_at,
)
from dpsyn_sql.discovery.learn import Chooser, discovered
from dpsyn_sql.discovery.octaves import spread_along_tails
from dpsyn_sql.errors import BudgetError
from dpsyn_sql.fit.variances import OneWayCounts
from dpsyn_sql.planning.queries import (
    ContributionQuery,
    GridQuery,
    KeyQuery,
    NoisyContributions,
    NoisyKeys,
    NoisyMarginal,
    NoisySteps,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.source.relation import PrivacyUnit

DECLARED = Attribute("sex", "VARCHAR", "categorical", ("f", "m"))
CITY = Undiscovered("city", "VARCHAR", "categorical")
AGE = Undiscovered("age", "INTEGER", "numeric")
BORN = Undiscovered("born", "DATE", "temporal", nullable=False)
SHAPE = Shape((DECLARED, CITY, AGE, BORN), (UnitId("who", "BIGINT"),))
ROW, FIVE = PrivacyUnit(), PrivacyUnit("who", 5)


MANY = 10**9
"""Units of a table that is looked at closer and closer."""


def learnt_of(shape, budget, door, unit=ROW):
    """What a door says about a table, with the looks that were planned."""
    return discovered(shape, design(shape, unit, budget), door, Chooser(budget, unit, lambda _: Fraction(1)))


class Door(FakeDoor):
    """Answers every question with something simple, and remembers it."""

    def __init__(self, holds=TEXT):
        self.asked, self.holds = [], holds

    def answer(self, query, budget):
        self.asked.append((query, budget))
        if isinstance(query, KeyQuery):
            keys = ("Bonn", "Köln") if query.type.family == "text" else (17, 40)
            return NoisyKeys(query.attr, keys, np.array([70, 60]), 5.0, 50)
        if isinstance(query, GridQuery):
            grid = np.zeros(query.grid.size, dtype=np.int64)
            units = MANY if query.grid.name == "rows" else 1_000
            grid[min(query.grid.regular // 2 + 6, query.grid.regular - 1)] = units
            return NoisyMarginal((query.grid.name,), grid, 5.0)
        if isinstance(query, ContributionQuery):
            return NoisyContributions(np.arange(query.most), 2.0)
        if isinstance(query, TypesQuery):
            counts = [900 if name == self.holds else 1 for name in CLASSES]
            return NoisyMarginal((query.attr,), np.array(counts), 5.0)
        assert isinstance(query, StepQuery)
        return NoisySteps(query.steps, np.ones(len(query.steps) + 1, dtype=np.int64), 5.0)


@pytest.mark.parametrize("unit", [ROW, FIVE])
def test_the_shares_add_up(unit):
    budget = Budget("gdp", 10**13, 10**8)
    steps = design(SHAPE, unit, budget)
    rest = left_of(budget, steps)
    assert sum(step.budget.amount for step in steps) + rest.amount == budget.amount
    assert sum(step.budget.delta for step in steps) == budget.delta and rest.delta == 0
    wanted = COLUMN_SHARE * len(SHAPE.undiscovered)
    part = (
        min(wanted, DISCOVERY_SHARE) + (CONTRIBUTIONS_SHARE if unit is FIVE else 0) + AGAIN_SHARE + ROWS_SHARE
    )
    assert float(Fraction(rest.amount, budget.amount)) == pytest.approx(float(1 - part))
    assert [step.ask for step in steps if step.budget.delta] == ["keys", "again", "values", "values"]


def test_a_declared_domain_costs_nothing():
    budget = Budget("gdp", 10**13, 10**8)
    assert design(Shape((DECLARED,)), ROW, budget) == ()
    assert left_of(budget, ()) == budget.without_thresholds()


def test_without_delta_no_categories_can_be_learnt():
    with pytest.raises(BudgetError, match="delta=0.*'city'"):
        design(SHAPE, ROW, Budget("pure", 10**15))
    steps = design(Shape((DECLARED, AGE)), ROW, Budget("pure", 10**15))
    assert [step.ask for step in steps] == ["rows", "grid", "steps", "parts", "cells"]
    assert {step.budget.kind for step in steps} == {"pure"}


@pytest.mark.parametrize("unit", [ROW, FIVE])
def test_every_planned_question_is_asked_once_at_its_budget(unit):
    budget, door = Budget("gdp", 10**13, 10**8), Door()
    steps = design(SHAPE, unit, budget)
    found = learnt_of(SHAPE, budget, door, unit)
    shape, contributions, asked = found.shape, found.contributions, found.asked
    assert [budget for _, budget in door.asked] == [step.budget for step in asked]
    # A second look would find nothing: values of so few of the units are not looked for.
    assert sorted(asked, key=repr) == sorted((s for s in steps if s.ask != "again"), key=repr)
    assert shape.domain.names == ("sex", "city", "age", "born")
    assert all(a.origin == "discovered" for a in shape.domain.attributes[1:])
    largest = SHAPE.planned().shape()
    assert all(size <= most for size, most in zip(shape.domain.shape(), largest, strict=True))
    assert (contributions is None) == (unit is ROW)
    if contributions is not None:
        assert contributions.values.tolist() == [0, 1, 2, 3, 4]


def test_many_columns_share_a_tenth_and_one_column_does_not_take_it():
    budget = Budget("gdp", 10**13, 10**8)
    for number in (1, 4, 40):
        shape = Shape(tuple(Undiscovered(f"c{place}", "INTEGER", "numeric") for place in range(number)))
        steps = design(shape, ROW, budget)
        spent = Fraction(sum(step.budget.amount for step in steps), budget.amount)
        assert float(spent) == pytest.approx(min(0.1, number / 20) + 0.02)


def test_the_share_of_a_column_is_divided_by_what_has_to_be_learnt():
    share = Budget("gdp", 10**12, 10**6)
    asks = {
        Undiscovered("x", "DOUBLE", "numeric"): ["values", "grid", "steps", "parts", "cells"],
        Undiscovered("x", "DOUBLE", "numeric", granularity=Decimal("0.1")): [
            "values",
            "grid",
            "parts",
            "cells",
        ],
        Undiscovered("x", "VARCHAR", "categorical"): ["keys"],
    }
    for column, asked in asks.items():
        steps = looks_at(column, share)
        assert [step.ask for step in steps] == asked
        assert sum(step.budget.amount for step in steps) == share.amount
        assert {step.ask: step.budget.delta for step in steps if step.budget.delta} == {asked[0]: share.delta}
    assert [step.ask for step in looks_at(AGE, share.without_thresholds())] == [
        "grid",
        "steps",
        "parts",
        "cells",
    ]


class Counting(FakeDoor):
    """A door that counts given values, with noise of a generator; values are ticks, or doubles."""

    def __init__(self, values, sigma=5.0, seed=0, most=10**9):
        self.values, self.sigma, self.most = np.array(values), sigma, most
        self.random = np.random.default_rng(seed)

    def noisy(self, counts):
        return np.round(counts + self.random.normal(0, self.sigma, len(counts))).astype(np.int64)

    def answer(self, query, budget):
        if isinstance(query, KeyQuery):
            keys, counts = np.unique(self.values, return_counts=True)
            noisy = self.noisy(counts)
            shown = np.flatnonzero((counts > 3) & (noisy >= 10 * self.sigma))
            return NoisyKeys("x", tuple(keys[shown].tolist()), noisy[shown], self.sigma, 10 * self.sigma)
        if isinstance(query, GridQuery) and query.grid.name == "rows":
            return NoisyMarginal(("rows",), np.array([MANY, 0]), self.sigma)
        if isinstance(query, GridQuery):
            edges = query.grid.edges if query.grid.type.family == "float" else edge_ticks(query.grid)
            codes = np.searchsorted(np.array(edges[1:-1]), self.values, side="right")
            counts = np.bincount(codes.astype(int), minlength=query.grid.size)
            return NoisyMarginal(("x",), self.noisy(counts), self.sigma)
        steps = [step for step in query.steps if isinstance(step, int)]
        counts = np.zeros(len(query.steps) + 1)
        for value in self.values.tolist():
            if value:
                counts[sum(value % step == 0 for step in steps)] += 1
        return NoisySteps(query.steps, self.noisy(counts), self.sigma)


def learnt(values, sql_type="INTEGER", *, pure=False, **kinds):
    kind = "temporal" if parse_type(sql_type).temporal else "numeric"
    noise = {name: kinds.pop(name) for name in ("sigma", "seed") if name in kinds}
    column = Undiscovered("x", sql_type, kind, **{"nullable": False, **kinds})
    shape = Shape((column,))
    budget = Budget("pure", 10**15) if pure else Budget("gdp", 10**13, 10**8)
    (found,) = learnt_of(shape, budget, Counting(values, **noise)).shape.domain.attributes
    assert found.size <= column.max_codes and found.ordered and found.origin == "discovered"
    return found


def shares(attribute, values):
    """What is written: the share of each value or piece, as (low, high, share); high is low for a value."""
    edges = attribute.edges if attribute.type.family == "float" else edge_ticks(attribute)
    codes = np.searchsorted(np.array(edges[1:-1]), values, side="right")
    counts = np.bincount(codes, minlength=attribute.regular)
    known = {"x": OneWayCounts(counts.astype(np.float64), np.ones(counts.size))}
    (attribute,) = spread_along_tails(Domain((attribute,)), known).attributes
    counts = counts / len(values)
    cuts = attribute.fill if attribute.type.family == "float" else fill_ticks(attribute)
    found = []
    for own, share in zip(cuts, counts.tolist(), strict=True):
        if len(own) == 1:
            found.append((own[0], own[0], share))
        else:
            found += [(*pair, share / (len(own) - 1)) for pair in pairwise(own)]
    return found


def mean(attribute, values):
    """The mean of what is written."""
    low = 0 if attribute.type.family == "float" else 1
    pieces = shares(attribute, values)
    return sum(share * (a if a == b else (a + b - low) / 2) for a, b, share in pieces)


@pytest.mark.parametrize("pure", [False, True])
def test_zeros_and_a_long_tail_keep_the_mean(pure):
    random = np.random.default_rng(3)
    values = np.round(np.exp(random.normal(7.6, 1.3, 30_000))).astype(int)
    values[:5_000] = 0
    found = learnt(values, "BIGINT", pure=pure, sigma=20.0)
    assert mean(found, values) == pytest.approx(values.mean(), rel=0.05)
    assert (0, 0) in [(low, high) for low, high, _ in shares(found, values)]
    bounded = learnt(values, "BIGINT", sigma=20.0, least=Fraction(0), most=Fraction(2_000_000))
    assert mean(bounded, values) == pytest.approx(values.mean(), rel=0.05)
    assert max(high for _, high, _ in shares(bounded, values)) <= 2_000_001


@pytest.mark.parametrize(
    ("sql_type", "low", "high"),
    [
        ("INTEGER", 98_001, 98_200),
        ("DOUBLE", 40.5, 41.0),
        ("DOUBLE", -74.3, -73.7),
        ("TIMESTAMP", 14.9, 15.0),
    ],
)
def test_values_far_from_zero_that_lie_close_together_stay_there(sql_type, low, high):
    """Postal codes, a city's latitude and longitude, times (in 10^14 microseconds) of 115 days."""
    values = np.random.default_rng(8).uniform(low, high, 20_000)
    if sql_type == "TIMESTAMP":
        values, low, high = values * 1e14, low * 1e14, high * 1e14
    if sql_type != "DOUBLE":
        values = np.floor(values).astype(np.int64)
    found = learnt(values, sql_type, sigma=150.0)
    inside = 0.0
    for start, end, share in shares(found, values):
        covered = max(0.0, min(float(end), high) - max(float(start), low))
        inside += share * (low <= start < high if start == end else covered / float(end - start))
    assert inside > 0.9
    assert mean(found, values) == pytest.approx(values.mean(), abs=0.02 * (high - low))


@pytest.mark.parametrize("sql_type", ["INTEGER", "DOUBLE", "TIMESTAMP", "TIME", "DECIMAL(38,10)"])
@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_is_found_every_row_is_null(sql_type, seed):
    """Or the value nearest to zero, where NULL is not allowed: no number is invented."""
    found = learnt(np.zeros(0, dtype=int), sql_type, sigma=100.0, seed=seed, nullable=True)
    assert found.size == 2 and found.recoding == Recoding((0,), (1,))
    found = learnt(np.zeros(0, dtype=int), sql_type, sigma=100.0, seed=seed)
    assert found.size == 1 and found.recoding is None and found.fill == ((found.edges[0],),)


def test_values_that_are_multiples_stay_multiples():
    random = np.random.default_rng(5)
    values = random.integers(1, 2_000, 20_000) * 50
    assert learnt(values).granularity == 50
    values[:2_000] += 1
    assert learnt(values).granularity is None
    assert learnt(values, granularity=7).granularity == 7


def test_a_granularity_is_found_through_noise_and_zeros_say_nothing_of_it():
    """Exceptions of less than noise refute no step; of 20,000 rows half are zero."""
    values = np.random.default_rng(5).integers(1, 2_000, 20_000) * 50
    values[:10_000] = 0
    assert [learnt(values, sigma=300.0, seed=seed).granularity for seed in range(5)] == [50] * 5


@pytest.mark.parametrize("most", [2, 3, 9, 40])
def test_never_more_codes_than_allowed_and_the_heaviest_value_keeps_its_own(most):
    random = np.random.default_rng(6)
    values = np.where(random.random(20_000) < 0.4, 77, random.integers(0, 400, 20_000))
    found = learnt(values, max_codes=most)
    assert found.size <= most
    if most > 3:
        assert (77,) in fill_ticks(found)
    assert mean(found, values) == pytest.approx(values.mean(), rel=0.15)


@pytest.mark.parametrize(
    ("holds", "sql_type", "then"),
    [
        (TEXT, "VARCHAR", ["keys"]),
        (INTEGER, "BIGINT", ["values", "grid", "steps", "parts", "cells"]),
        (DECIMALS[1], "DECIMAL(18,2)", ["values", "grid", "steps", "parts", "cells"]),
        (DATE, "DATE", ["values", "grid", "steps", "parts", "cells"]),
        (BOOLEAN, "BOOLEAN", []),
    ],
)
def test_the_share_of_a_column_without_a_type_pays_for_the_type_and_what_follows(holds, sql_type, then):
    shape = Shape((DECLARED, Undiscovered("x", "VARCHAR", "categorical", typed=False), CITY))
    budget = Budget("gdp", 10**13, 10**8)
    steps = design(shape, ROW, budget)
    planned = [
        ("rows", None),
        ("types", "x"),
        ("keys", "x"),
        ("again", "x"),
        ("keys", "city"),
        ("again", "city"),
    ]
    assert [(step.ask, step.attr) for step in steps] == planned
    reserved = [step.budget for step in steps if step.attr == "x"][:2]
    assert {step.budget.delta for step in steps[2:]} == {10**8 // 4}
    assert sum(budget.amount for budget in reserved) == steps[4].budget.amount
    door = Door(holds)
    found = learnt_of(shape, budget, door)
    own = [step for step in found.asked if step.attr == "x"]
    assert [step.ask for step in own] == ["types", *then]
    assert [budget for _, budget in door.asked] == [step.budget for step in found.asked]
    assert sum(step.budget.amount for step in own) <= sum(budget.amount for budget in reserved)
    assert then == [] or sum(s.budget.amount for s in own) == sum(budget.amount for budget in reserved)
    assert sum(step.budget.delta for step in own) == (reserved[1].delta if then else 0)
    attribute = found.shape.domain["x"]
    assert (attribute.sql_type, attribute.origin) == (sql_type, "discovered")
    assert attribute.size <= shape.planned()["x"].size
    assert found.types["x"].sql_type == sql_type and found.types["x"].sure
    assert found.shape.domain["city"].labels == ("Bonn", "Köln")


def test_a_share_too_small_for_what_any_type_asks_is_refused_before_the_debit():
    shape = Shape((Undiscovered("x", "VARCHAR", "categorical", typed=False),))
    with pytest.raises(BudgetError, match="discovery has no budget"):
        design(shape, ROW, Budget("gdp", 400, 10**8))
    steps = design(shape, ROW, Budget("gdp", 600, 10**8))
    typed = Undiscovered("x", "BIGINT", "numeric")
    assert all(step.budget.amount for step in looks_at(typed, steps[2].budget))


def test_each_length_of_prefixes_is_asked_with_its_part_of_the_share():
    column = Undiscovered("icd", "VARCHAR", "categorical", prefixes=(3, 1))
    shape, budget = Shape((DECLARED, column, CITY)), Budget("gdp", 10**13, 10**8)
    steps = design(shape, ROW, budget)
    own, city = ([step for step in steps if step.attr == name] for name in ("icd", "city"))
    assert [(step.ask, step.length) for step in own] == [("keys", 0), ("prefixes", 3), ("prefixes", 1)]
    assert sum(step.budget.amount for step in own) == city[0].budget.amount
    assert sum(step.budget.delta for step in own) == sum(step.budget.delta for step in city)
    assert all(step.budget.delta for step in own) and own[0].budget.amount > own[1].budget.amount
    door = Door()
    found = learnt_of(shape, budget, door)
    assert [budget for _, budget in door.asked] == [step.budget for step in found.asked]
    asked = [(query, step) for (query, _), step in zip(door.asked, found.asked, strict=True)]
    assert [step for _, step in asked if step.attr == "icd"] == own
    whole, three, one = (query.beginning for query, step in asked if step.attr == "icd")
    assert whole is None and (three.length, one.length) == (3, 1)
    assert three.known.labels == ("Bonn", "Köln") and three.known.prefixes == ()
    assert one.known.labels == ("Bonn", "Bonn*", "Köln", "Köln*") and one.known.prefixes == ()
    assert found.shape.domain["icd"].labels == one.known.labels


def test_without_delta_a_column_that_may_be_text_is_refused():
    shape = Shape((Undiscovered("x", "VARCHAR", "categorical", typed=False),))
    with pytest.raises(BudgetError, match="delta=0.*'x'.*sql_type"):
        design(shape, ROW, Budget("pure", 10**15))
