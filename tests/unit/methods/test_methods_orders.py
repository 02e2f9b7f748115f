"""The table over all attributes, and sets that no pair shows: what is asked about, found and kept."""

import math
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain, Recoding
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.elimination import joint_of, products
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.adaptive.orders import candidate_sets
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.workload import Workload

SETTINGS = Adaptive.constants
ROWS = 20_000


def run(sizes, codes, kind="gdp", units=2 * 10**13, ordered=False, **changes):
    """A release of exact answers whose scales are those of the budget."""
    domain = domain_of(sizes, ordered)
    door = FakeCurator(domain, partial(table_of, domain, codes), sigma=3.0)
    method = type("Changed", (Adaptive,), {"constants": replace(SETTINGS, **changes)})()
    plan = method.plan(SOURCE, domain, Budget(kind, units))
    model = ran(method, plan, door)
    assert sum(budget.amount for _, _, budget in door.asked) <= plan.budget.amount
    for _, queries, _ in door.asked:
        assert all(len(query.attrs) < 3 or plan.reserves[-1].holds(query, domain) for query in queries)
    return model, door.asked


def parity(columns, rng, flipped=0.1):
    return (sum(columns) + (rng.random(len(columns[0])) < flipped)) % 2


def with_parity(sizes, places, target, seed=1):
    """Independent attributes, and one that is the parity of some."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, ROWS) for size in sizes]
    codes[target] = parity([codes[place] * 2 // sizes[place] for place in places], rng)
    return codes


def agreement(model, places, target, seed=3):
    """How often rows of the model follow the parity."""
    rows = np.concatenate(list(model.sampler().batches(ROWS, seed))).astype(np.int64).T
    sizes = model.domain.shape()
    return float((sum(rows[p] * 2 // sizes[p] for p in places) % 2 == rows[target]).mean())


BITS = (2,) * 13


@pytest.mark.parametrize(
    ("kind", "places"),
    [("gdp", (0, 1)), ("gdp", (2, 4, 5)), ("gdp", (1, 3, 5, 7, 9)), ("pure", (0, 1)), ("pure", (2, 4, 5))],
)
def test_a_parity_that_no_pair_shows_is_found_and_kept_in_rows(kind, places):
    codes = with_parity(BITS, places, 12)
    model, asked = run(BITS, codes, kind, units=10**17 if kind == "pure" else 2 * 10**13)
    assert model.sets == ((*places, 12),)
    assert agreement(model, places, 12) == pytest.approx(0.9, abs=0.02)
    measured = {
        query.attrs for ask, queries, _ in asked if ask in ("measure", "residuals") for query in queries
    }
    assert tuple(f"x{place}" for place in (*places, 12)) in measured
    others = model.project(["x10", "x11"])
    assert others.max() < 1.1 * others.min()


def test_numbers_are_screened_by_halves_and_measured_in_their_bins():
    sizes = (8, 8, 6, 2, 2, 3, 2, 2)
    model, asked = run(sizes, with_parity(sizes, (0, 1), 7), ordered=True)
    assert model.sets == ((0, 1, 7),)
    (screen,) = (queries for ask, queries, _ in asked if ask == "distance" and len(queries[0].attrs) > 2)
    assert all(query.shape(model.domain) == (2,) * len(query.attrs) for query in screen)
    assert agreement(model, (0, 1), 7) == pytest.approx(0.9, abs=0.03)


def test_a_set_may_hold_two_columns_that_a_pair_ties():
    """The target is alone; the two that make it depend on each other."""
    rng = np.random.default_rng(4)
    codes = [rng.integers(0, 2, ROWS) for _ in range(8)]
    codes[1] = np.where(rng.random(ROWS) < 0.6, codes[0], codes[1])
    model, _ = run((2,) * 8, codes, full_noise=0.0)
    assert model.sets == ()
    codes[7] = parity([codes[0], codes[1]], rng)
    model, _ = run((2,) * 8, codes, full_noise=0.0)
    assert model.sets == ((0, 1, 7),)
    assert agreement(model, (0, 1), 7) == pytest.approx(0.9, abs=0.02)
    tied = table_of(model.domain, codes, MarginalQuery(("x0", "x1")))
    np.testing.assert_allclose(model.project(["x0", "x1"]), tied, atol=0.01 * ROWS)


def test_nothing_is_asked_where_every_column_has_a_pair():
    rng = np.random.default_rng(5)
    base = rng.integers(0, 4, ROWS)
    codes = [np.where(rng.random(ROWS) < 0.5, base, rng.integers(0, 4, ROWS)) for _ in range(6)]
    _, asked = run((4,) * 6, codes, fewest_triples=10**6)
    assert {len(query.attrs) for _, queries, _ in asked for query in queries} <= {0, 1, 2}


@pytest.mark.parametrize(("units", "there"), [(2 * 10**13, True), (2 * 10**9, False)])
def test_a_screen_that_noise_would_drown_is_not_paid_for(units, there):
    codes = with_parity(BITS, (0, 1), 12)
    _, asked = run(BITS, codes, units=units)
    screens = [queries for ask, queries, _ in asked if ask == "distance" and len(queries[0].attrs) > 2]
    assert bool(screens) is there


@pytest.mark.parametrize(("alone", "others"), [(6, 0), (1, 9), (0, 9), (20, 0), (3, 12)])
def test_candidates_have_at_most_two_columns_that_pairs_tie(alone, others):
    own, tied = range(alone), range(alone, alone + others)
    found = candidate_sets(own, tied, 2**14)
    assert len(found) == len(set(found)) <= 2**14
    for number in (3, 4):
        expected = {
            scope
            for scope in combinations(range(alone + others), number)
            if sum(p >= alone for p in scope) < 3
        }
        assert {scope for scope in found if len(scope) == number} == expected
    assert all(max(scope) < alone for scope in found if len(scope) > 4)
    if alone == 20:  # of five and six there is room for those of fifteen
        assert sum(len(scope) > 4 for scope in found) == math.comb(15, 5) + math.comb(15, 6)


def test_products_of_a_pair_and_of_one_way_tables():
    potentials = {
        (0, 1): np.random.default_rng(6).normal(size=(2, 3)),
        (2,): np.ones(4),
        (3,): np.arange(2.0),
    }
    beliefs = calibrate(junction_tree((2, 3, 4, 2), potentials), potentials)
    pair, one, other = (joint_of(beliefs, scope) for scope in ((0, 1), (2,), (3,)))
    sets = [((0, 1, 2, 3), (0, 1)), ((0, 2, 3), ())]
    found = products(beliefs, sets)
    np.testing.assert_allclose(found[0, 1, 2, 3], np.einsum("ab,c,d->abcd", pair, one, other))
    np.testing.assert_allclose(found[0, 2, 3], np.einsum("a,c,d->acd", pair.sum(axis=1), one, other))
    np.testing.assert_allclose(joint_of(beliefs, (0, 2, 3)), found[0, 2, 3])
    np.testing.assert_allclose(joint_of(beliefs, (0, 1, 2, 3)), found[0, 1, 2, 3])
    halves = {1: np.array([0, 1, 1]), 2: np.array([0, 0, 1, 1])}
    coarse = products(beliefs, sets, halves)[0, 1, 2, 3]
    np.testing.assert_allclose(coarse[:, 1, 0], found[0, 1, 2, 3][:, 1:, :2].sum(axis=(1, 2)))


def test_the_full_table_holds_what_no_pair_and_no_triple_does():
    rng = np.random.default_rng(7)
    codes = [rng.integers(0, 2, ROWS) for _ in range(3)]
    codes.append(parity(codes, rng))
    model, asked = run((2,) * 4, codes)
    ask, (query,), _ = asked[-1]
    assert ask == "measure" and len(query.attrs) == 4 and model.sets == ((0, 1, 2, 3),)
    truth = table_of(model.domain, codes, query)
    np.testing.assert_allclose(model.project(query.attrs), truth, atol=60)
    assert agreement(model, (0, 1, 2), 3) == pytest.approx(0.9, abs=0.01)


def test_the_full_table_of_many_cells_is_not_measured():
    rng = np.random.default_rng(8)
    codes = [rng.integers(0, 12, ROWS) for _ in range(4)]
    _, asked = run((12,) * 4, codes)
    assert all(len(query.attrs) < 4 or ask == "distance" for ask, queries, _ in asked for query in queries)


@pytest.mark.parametrize(("hidden", "target"), [(3, ""), (3, "x0"), (0, "x0")])
@pytest.mark.parametrize("number", [4, 9], ids=["full table", "sets"])
def test_a_column_without_a_found_value_is_in_no_table_of_several_columns(number, hidden, target):
    """Where discovery has its one-way table, nothing else counts it."""
    rng = np.random.default_rng(9)
    codes = [rng.integers(0, 2, ROWS) for _ in range(number)]
    codes[1] = parity([codes[2]], rng, flipped=0.3)
    attributes = list(domain_of((2,) * number).attributes)
    nothing = attributes[hidden] = replace(attributes[hidden], recoding=Recoding((0,), (1,)))
    domain, terms = Domain(tuple(attributes)), Terms(workload=Workload((), target))
    door = FakeCurator(domain, partial(table_of, domain, codes), sigma=3.0)
    plan = Adaptive().plan(SOURCE, domain, Budget("gdp", 2 * 10**13), terms)
    ran(Adaptive(), plan, door, terms)
    asked = [query.attrs for _, queries, _ in door.asked for query in queries if len(query.attrs) > 1]
    assert any(len(attrs) > 2 for attrs in asked)
    assert not any(nothing.name in attrs for attrs in asked)
