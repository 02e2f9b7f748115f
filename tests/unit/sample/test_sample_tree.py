"""Rows of the tables of a tree: given rows above them, never evened out within a unit, deterministic."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare
from support.domains import attribute
from support.families import model_of, plain
from support.shop import drawn, numeric, shop

from dpsyn_sql.attributes.attribute import Domain, edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import families_of_table
from dpsyn_sql.planning.limits import Deadline
from dpsyn_sql.rows.sample import walk as sampled_families
from dpsyn_sql.rows.sample.tables import TableRows, table_seed


def two_tables(order="", most=3, own=2):
    """Families of persons (age) and their visits (kind), perhaps in the order of a day."""
    visits = (attribute("kind", own), *([numeric("day", 6)] if order else []))
    persons = families_of_table(
        "persons", Domain((attribute("age", 3),)), None, [("visits", most)], groups={}
    )
    return persons, families_of_table("visits", Domain(visits), persons, [], groups={}, order=order)


def visits_model(families, seed=1, flat=False):
    """Kind depends on the age above and on the number of visits."""
    rng, domain = np.random.default_rng(seed), families.domain
    sizes = {one.name: one.size for one in domain.attributes}
    above = [("persons.age", "kind"), ("persons.number of visits", "kind")]
    pairs = {pair: 0 * rng.normal(0, 1, (sizes[pair[0]], sizes[pair[1]])) for pair in above}
    if not flat:
        pairs = {pair: rng.normal(0, 1, table.shape) for pair, table in pairs.items()}
    if families.order:
        pairs |= {("kind", "day"): rng.normal(0, 1, (sizes["kind"], sizes["day"]))}
        pairs |= {("persons.age", "day"): rng.normal(0, 1, (3, sizes["day"]))}
        pairs |= {("kind before", "kind"): rng.normal(0, 1, (sizes["kind before"], sizes["kind"]))}
    return model_of(families, pairs)


def parents(families, ages, numbers):
    codes = np.column_stack([ages, numbers]).astype(np.uint8)
    return TableRows(families, codes, np.zeros(len(codes), np.int64), np.arange(len(codes)))


def some_visits(units=20_000, seed=1, **options):
    persons, visits = two_tables(**options)
    rng = np.random.default_rng(seed)
    above = parents(persons, rng.integers(0, 3, units), rng.integers(0, 4, units))
    model, given = visits_model(visits), above.given(visits, seed)
    return model, above, given, drawn(model, 0, above, given, seed)


def test_rows_lie_together_by_parent_in_the_order_of_parents():
    _, above, given, rows = some_visits()
    np.testing.assert_array_equal(given.rows, above.codes[:, 1])  # each number is a code of its own
    np.testing.assert_array_equal(rows.parent, np.repeat(np.arange(above.total), given.rows))
    np.testing.assert_array_equal(rows.unit, rows.parent)
    np.testing.assert_array_equal(rows.column("persons.age"), above.codes[rows.parent, 0])
    assert rows.codes.shape == (given.rows.sum(), 1) and rows.codes.dtype == np.uint8


def test_rows_follow_the_model_given_the_attributes_above():
    model, _, _, rows = some_visits(60_000)
    names = ["persons.age", "persons.number of visits", "kind"]
    wanted = model.project(names)
    wanted = wanted / wanted.sum(axis=2, keepdims=True)
    found = np.zeros(wanted.shape)
    np.add.at(found, tuple(rows.column(name) for name in names), 1)
    numbers = np.arange(wanted.shape[1])[None, :, None]
    expected = found.sum(axis=2, keepdims=True) * wanted
    assert found[:, 1:].min() > 100
    assert (np.abs(found - expected) <= numbers + 1e-6).all()  # of each rank within one


def test_evidence_goes_through_the_bins_of_the_model():
    persons, visits = two_tables()
    pair = {("persons.age", "kind"): np.array([[-9.0, 9.0], [9.0, -9.0]])}
    model = model_of(visits, pair, bins={"persons.age": [0, 1, 0]})
    above = parents(persons, [0, 1, 2] * 100, np.full(300, 2))
    rows = drawn(model, 0, above, above.given(visits, 1), 1)
    np.testing.assert_array_equal(rows.column("kind"), np.array([1, 0, 1])[rows.column("persons.age")])


def coins_of(orders, seed):
    """Of units with one order of ``orders`` items each, or as many orders of one item, how often two rows of
    a unit agree in a coin."""
    persons = families_of_table("persons", Domain(()), None, [("orders", 2)], groups={})
    made = families_of_table("orders", Domain(()), persons, [("items", 2)], groups={})
    items = families_of_table("items", Domain((attribute("coin", 2),)), made, [], groups={})
    units, per_order = 8, 2 // orders
    top = TableRows(persons, np.full((units, 1), orders, np.uint8), np.zeros(units, int), np.arange(units))
    of = np.repeat(np.arange(units), orders)
    middle = TableRows(made, np.full((of.size, 1), per_order, np.uint8), of, of, top)
    model = model_of(items, {("coin", "orders.number of items"): np.zeros((2, 3))})
    rows = drawn(model, 0, middle, middle.given(items, seed), seed)
    return np.equal(*rows.column("coin").reshape(units, 2).T).mean()


@pytest.mark.parametrize("orders", [1, 2])
def test_rows_of_one_unit_are_independent_also_across_its_families(orders):
    agree = [coins_of(orders, seed) for seed in range(3000)]
    assert abs(np.mean(agree) - 0.5) < 4 * np.std(agree) / np.sqrt(len(agree))


def test_low_variance_across_the_families_of_a_unit_would_pull_them_apart(monkeypatch):
    monkeypatch.setattr(sampled_families.People, "in_unit", lambda self, units, ranks: ranks)
    agree = [coins_of(2, seed) for seed in range(3000)]
    assert np.mean(agree) < 0.5 - 8 * np.std(agree) / np.sqrt(len(agree))


def agreement_in_order(seed):
    """As ``coins_of`` for two orders of one item, where items have an order."""
    persons = families_of_table("persons", Domain(()), None, [("orders", 2)], groups={})
    made = families_of_table("orders", Domain(()), persons, [("items", 2)], groups={})
    domain = Domain((attribute("coin", 2), numeric("day", 1)))
    items = families_of_table("items", domain, made, [], groups={}, order="day")
    top = TableRows(persons, np.full((8, 1), 2, np.uint8), np.zeros(8, int), np.arange(8))
    of = np.repeat(np.arange(8), 2)
    middle = TableRows(made, np.ones((16, 1), np.uint8), of, of, top)
    model = model_of(items, {("coin", "coin before"): np.zeros((2, 3))})
    rows = drawn(model, 0, middle, middle.given(items, seed), seed)
    return np.equal(*rows.column("coin").reshape(8, 2).T).mean()


def test_first_rows_of_two_families_of_a_unit_are_independent_where_rows_have_an_order():
    agree = [agreement_in_order(seed) for seed in range(2000)]
    assert abs(np.mean(agree) - 0.5) < 4 * np.std(agree) / np.sqrt(len(agree))


def test_a_table_with_an_order_under_a_parent():
    _, _, _, rows = some_visits(20_000, order="day")
    days = rows.column("day").astype(int)
    same = rows.parent[1:] == rows.parent[:-1]
    assert same.sum() > 10_000 and (np.diff(days)[same] >= 0).all() and np.unique(days).size == 6


def test_all_parents_childless_no_parents_and_no_attributes():
    persons, visits = two_tables()
    model = visits_model(visits)
    for units in (0, 50):
        above = parents(persons, np.zeros(units), np.zeros(units))
        rows = drawn(model, 0, above, above.given(visits, 1), 1)
        assert rows.total == 0 and rows.codes.shape == (0, 1) and rows.column("persons.age").size == 0
    bare = families_of_table("visits", Domain(()), persons, [], groups={})
    above = parents(persons, [0, 1], [2, 3])
    model = model_of(bare, {("persons.age", "persons.number of visits"): np.zeros((3, 4))})
    assert drawn(model, 0, above, above.given(bare, 1), 1).codes.shape == (5, 0)


def test_a_million_children_of_one_parent():
    persons, visits = two_tables(most=10**6)
    last = visits.domain["persons.number of visits"].size - 1
    above = TableRows(persons, np.array([[2, 0], [1, last]]), np.zeros(2, int), np.arange(2))
    given = above.given(visits, 1)
    edges = edge_ticks(visits.domain["persons.number of visits"])
    assert given.rows[0] == 0 and edges[-2] <= given.rows[1] <= 10**6
    model = visits_model(visits)
    rows = drawn(model, 0, above, given, 1)
    assert rows.total == given.rows[1] > 900_000 and set(rows.parent.tolist()) == {1}
    wanted = model.project(["persons.age", "persons.number of visits", "kind"])[1, last]
    found = np.bincount(rows.column("kind"), minlength=2)
    assert chisquare(found, wanted / wanted.sum() * found.sum()).pvalue > 1e-4


def test_numbers_of_rows_are_even_within_their_bin():
    persons, visits = two_tables(most=100)
    edges = edge_ticks(visits.domain["persons.number of visits"])
    code = len(edges) - 2
    above = parents(persons, np.zeros(40_000), np.full(40_000, code))
    rows = above.given(visits, 3).rows
    assert rows.min() == edges[-2] and rows.max() == edges[-1] - 1 == 100 and edges[-1] - edges[-2] > 1
    assert chisquare(np.bincount(rows)[edges[-2] :]).pvalue > 1e-4


def test_weights_and_ranks_go_along_the_path():
    real = shop(500)
    items = real["items"]
    given = real["orders"].given(items.families, 1)
    held = given.rows > 0
    of_unit = np.bincount(real["orders"].unit[held], given.weights[held], 500)
    assert (of_unit <= 1 + 1e-12).all() and given.total == pytest.approx(of_unit.sum())
    assert items.weights.sum() == pytest.approx(given.total)
    unit = np.repeat(real["orders"].unit, given.rows)
    ranks = np.repeat(given.ranks, given.rows) + np.arange(unit.size)
    ranks -= np.repeat(np.cumsum(given.rows) - given.rows, given.rows)
    for one in np.unique(unit)[::37]:
        np.testing.assert_array_equal(ranks[unit == one], np.arange((unit == one).sum()))
    assert given.columns.keys() == {one.name for one in items.families.above}
    np.testing.assert_array_equal(given.columns["customers.age"], items.above.column("customers.age"))


def test_rows_are_the_same_for_a_seed_and_others_for_another():
    one, again, other = (some_visits(2000, seed, order="day")[3] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.codes, again.codes)
    assert one.total != other.total or (one.codes != other.codes).any()
    assert len({table_seed(seed, table) for seed in (1, 2) for table in ("a", "b")}) == 4


def test_the_root_is_rows_of_one_family_each():
    persons, _ = two_tables()
    model = model_of(persons, {("age", "number of visits"): np.random.default_rng(1).normal(0, 1, (3, 4))})
    rows = drawn(model, 5000)
    found = np.zeros((3, 4))
    np.add.at(found, tuple(rows.codes.T), 1)
    wanted = model.project(["age", "number of visits"])
    assert np.abs(found - 5000 * wanted / wanted.sum()).max() <= 1
    assert rows.codes.shape == (5000, 2) and rows.weights.sum() == 5000


def test_rows_above_are_there_or_are_not():
    persons, visits = two_tables()
    above = parents(persons, [0], [1])
    with pytest.raises(InternalError, match="given rows above"):
        visits_model(visits).sampler().people(5, 1)
    with pytest.raises(InternalError, match="given rows above"):
        plain().sampler().people(5, 1, above.given(visits, 1))
    with pytest.raises(InternalError, match="row before"):
        drawn(visits_model(two_tables("day")[1]), 0, above, above.given(two_tables("day")[1], 1)).column(
            "kind before"
        )
    with pytest.raises(InternalError, match="no table above"):
        above.named("orders", "x")
    with pytest.raises(InternalError, match="how many rows"):
        above.given(persons, 1)


def test_batches_hold_whole_families(monkeypatch):
    monkeypatch.setattr(sampled_families, "BATCH_ROWS", 4)
    model, _, given, _ = some_visits(300)
    sampler = model.sampler()
    people = sampler.people(0, 1, given)
    lengths = [len(batch.codes) for batch in sampler.rows(people, 1)]
    assert sum(lengths) == given.rows.sum() and max(lengths) <= 4
    assert set(np.cumsum([0, *lengths])) <= set(people.starts.tolist())


def test_rows_of_the_root_are_moved_towards_pairs_that_its_junction_tree_does_not_hold():
    """The number of rows below, too: the rows that are evidence for them are those that are written."""
    persons, _ = two_tables()
    model = model_of(persons, {("age",): np.zeros(3), ("number of visits",): np.zeros(4)})
    table = np.full((3, 4), 1 / 12) + 0.06 * np.array([[1, -1, 1, -1], [-1, 1, -1, 1], [0, 0, 0, 0]])
    model = replace(model, beside={(0, 1): table})
    rows = drawn(model, 5000)
    found = np.zeros((3, 4))
    np.add.at(found, tuple(rows.codes.T), 1)
    assert np.abs(found - 5000 * table).sum() / 2 < 0.02 * 5000
    np.testing.assert_array_equal(rows.codes, drawn(model, 5000).codes)
    late = np.concatenate(list(model.sampler(Deadline(-1.0)).batches(5000, 1)))
    np.testing.assert_array_equal(late, np.concatenate(list(model.sampler().batches(5000, 1))))
