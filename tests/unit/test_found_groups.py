"""The stage of classes: what it asks, what stands out, what it spends, and that strangers stay strangers."""

from fractions import Fraction

import duckdb
import numpy as np
import pytest
from support.doors import FakeDoor, OneRelease, opened

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.discovery.families import MOST_BINS, found_groups
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.queries import MarginalQuery, Marginals, NoisyMarginal, Siblings
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

SIZES = {"region": 3, "kind": 5, "shop": 40, "coin": 2}
UNIT = PrivacyUnit("who", 6, together=True)
STAGE = Budget.from_epsilon(1, "1e-9").split([12, 88])[0]


def domain():
    attributes = [
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size))) for name, size in SIZES.items()
    ]
    edges = tuple(range(31))
    return Domain((*attributes, Attribute("hour", "INTEGER", "numeric", edges=edges, ordered=True)))


FAMILIES = families_of(domain(), UNIT, ("region",))


class Door(FakeDoor):
    """A curator of rows in memory, of ``budget`` noise; ``asked``: kinds, queries and budgets."""

    def __init__(self, columns, who, random):
        self.who, self.random, self.asked = who, random, []
        self.n = np.bincount(who)
        size = np.minimum(self.n, UNIT.max_rows) - 1
        self.columns = {**columns, FAMILIES.size: size[who]}

    def codes(self, name, bins):
        return self.columns[name] if bins is None else np.array(bins)[self.columns[name]]

    def answer(self, question, budget):
        queries = list(question.queries)
        self.asked.append((type(question), queries, budget))
        sigma = float(np.sqrt(len(queries) / (2 * float(budget.rho))))
        return [self.noisy(type(question), query, sigma) for query in queries]

    def noisy(self, kind, query, sigma):
        codes = [
            self.codes(name, bins)
            for name, bins in zip(query.attrs, query.maps or (None,) * len(query.attrs), strict=True)
        ]
        shape = query.shape(FAMILIES.domain)
        exact = np.zeros(shape)
        if kind is Marginals:
            np.add.at(exact, tuple(codes), 1 / self.n[self.who])
        else:
            weights = np.where(self.n > 1, 1 / np.maximum(1, self.n * (self.n - 1)), 0)
            first, second = (np.zeros((len(self.n), size)) for size in shape)
            np.add.at(first, (self.who, codes[0]), 1)
            np.add.at(second, (self.who, codes[1]), 1)
            exact = (first * weights[:, None]).T @ second
            np.subtract.at(exact, tuple(codes), weights[self.who])
        values = WEIGHT * (exact + self.random.normal(0, sigma, shape))
        return NoisyMarginal(query.attrs, np.rint(values).astype(np.int64), WEIGHT * sigma, query.maps)


def rows(random, families, strength, explained=False):
    """Families with a hidden taste (or their region, if that explains it) for kinds and shops."""
    n = random.integers(1, UNIT.max_rows + 1, families)
    who = np.repeat(np.arange(families), n)
    region = random.integers(0, 3, families)
    taste = (region if explained else random.integers(0, 3, families))[who]
    laws = {name: np.exp(strength * random.normal(size=(3, SIZES[name]))) for name in ("kind", "shop")}
    columns = {"region": region[who]}
    for name, law in laws.items():
        ends = np.cumsum(law / law.sum(axis=1, keepdims=True), axis=1)
        columns[name] = np.minimum(
            (random.random(len(who))[:, None] > ends[taste]).sum(axis=1), SIZES[name] - 1
        )
    columns["coin"] = random.integers(0, 2, len(who))
    columns["hour"] = random.integers(0, 30, len(who))
    return Door(columns, who, random)


def test_what_stands_out_becomes_a_class():
    door = rows(np.random.default_rng(1), 30_000, 1.5)
    (found,), left = found_groups(door, FAMILIES, STAGE)
    assert set(found.costs.attributes) == {"kind", "shop"}
    assert found.attribute.size >= 3
    found.check(domain(), 10**6)
    assert left.amount == 0
    assert [kind for kind, _, _ in door.asked] == [Marginals, Siblings, Siblings, Siblings]
    assert sum(budget.amount for _, _, budget in door.asked) == STAGE.amount
    assert left.delta == STAGE.delta
    assert [query.attrs for query in door.asked[-1][1]] == [
        ("kind", "kind"),
        ("kind", "shop"),
        ("shop", "shop"),
    ]
    for _, queries, _ in door.asked[1:]:
        for query in queries:
            assert max(query.shape(FAMILIES.domain)) <= MOST_BINS


def test_a_class_agrees_with_the_taste_that_made_the_rows():
    random = np.random.default_rng(2)
    door = rows(random, 30_000, 1.5)
    (found,), _ = found_groups(door, FAMILIES, STAGE)
    draws = random.integers(0, 4096, (len(door.n), found.attribute.size))
    classes = found.codes(door.columns, door.who, draws)
    weights, joint = 1 / door.n[door.who], np.zeros((found.attribute.size, 5))
    np.add.at(joint, (classes[door.who], door.columns["kind"]), weights)
    joint /= joint.sum()
    implied = (joint**2 / joint.sum(axis=1, keepdims=True)).sum()
    exact = door.noisy(Siblings, MarginalQuery(("kind", "kind")), 0).values
    strangers = (joint.sum(axis=0) ** 2).sum()
    assert implied - strangers == pytest.approx(np.trace(exact) / exact.sum() - strangers, rel=0.2)


def test_nothing_more_is_asked_where_nothing_stands_out():
    door = rows(np.random.default_rng(3), 30_000, 0)
    found, left = found_groups(door, FAMILIES, STAGE)
    assert found == []
    assert [kind for kind, _, _ in door.asked] == [Marginals, Siblings]
    spent = sum(budget.amount for _, _, budget in door.asked)
    assert spent + left.amount == STAGE.amount
    assert Fraction(spent, STAGE.amount) < Fraction(1, 5)


def test_what_persons_explain_needs_no_class():
    door = rows(np.random.default_rng(4), 30_000, 1.5, explained=True)
    found, left = found_groups(door, FAMILIES, STAGE)
    assert found == []
    assert [kind for kind, _, _ in door.asked] == [Marginals, Siblings, Siblings]
    assert Fraction(left.amount, STAGE.amount) == pytest.approx(Fraction(2, 3), abs=1e-9)


@pytest.mark.slow
def test_strangers_stand_out_once_in_a_thousand_times():
    random = np.random.default_rng(5)
    door, found = rows(random, 1_500, 0), 0
    large = Budget.from_epsilon(10, "1e-9")
    for _ in range(2_000):
        door = rows(random, 1_500, 0)
        found_groups(door, FAMILIES, large)
        found += len(door.asked) > 2
    assert found <= 8  # P < 1e-3 if it is 1e-3 each time


@pytest.mark.parametrize("amount", [0, 1])
def test_little_budget_finds_nothing(amount):
    door = rows(np.random.default_rng(6), 500, 1.5)
    found, left = found_groups(door, FAMILIES, Budget("gdp", amount * 10**9))
    assert found == []
    assert left.amount <= amount * 10**9


def test_persons_alone_and_units_of_one_row_have_no_class():
    alone = families_of(Domain(domain().attributes[:1]), UNIT, ("region",))
    single = families_of(domain(), PrivacyUnit("who", 1, together=True), ("region",))
    assert [found_groups(FakeDoor(), families, STAGE) for families in (alone, single)] == [([], STAGE)] * 2


def test_the_real_door_gives_the_class_and_the_codes():
    random = np.random.default_rng(7)
    memory = rows(random, 4_000, 2.5)
    budget = Budget.from_epsilon(10, "1e-9")
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE visits (who INTEGER, region INTEGER, kind INTEGER, shop INTEGER, "
            "coin INTEGER, hour INTEGER)"
        )
        columns = [memory.who, *(memory.columns[name] for name in ("region", "kind", "shop", "coin", "hour"))]
        lists = [column.tolist() for column in columns]
        con.execute(f"INSERT INTO visits SELECT {', '.join(['unnest(?::INTEGER[])'] * 6)}", lists)
        engine, one_ways = DuckDBEngine(con), [MarginalQuery((name,)) for name in FAMILIES.domain.names]
        counter = SqlCounter(
            engine, Fragment("visits"), FAMILIES.domain, one_ways, unit=UNIT, families=FAMILIES, siblings=True
        )
        door = opened(counter, FAMILIES.domain, WEIGHT, OneRelease(budget).open(), ExactNoise())
        groups, _ = found_groups(door, FAMILIES, budget)
        (found,) = (one for one in groups if "kind" in one.costs.attributes)
        counter.close()
        grouped = FAMILIES.grouped(groups)
        assert grouped.levels[-1] == 0
        name = found.attribute.name
        queries = [MarginalQuery((name,)), MarginalQuery((name, "kind")), MarginalQuery((FAMILIES.size,))]
        counter = SqlCounter(
            engine, Fragment("visits"), grouped.domain, queries, unit=UNIT, key=3, families=grouped
        )
        classes, with_kind, sizes = [*counter.count(queries)]
    assert classes.sum() == sizes.sum() == sum(WEIGHT // n * n for n in memory.n.tolist())
    joint = with_kind / with_kind.sum()
    implied = (joint**2 / joint.sum(axis=1, keepdims=True)).sum() - (joint.sum(axis=0) ** 2).sum()
    exact = memory.noisy(Siblings, MarginalQuery(("kind", "kind")), 0).values
    assert implied == pytest.approx(np.trace(exact) / exact.sum() - (joint.sum(axis=0) ** 2).sum(), rel=0.25)
