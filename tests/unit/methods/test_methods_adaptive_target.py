"""The question about a target and every two other columns: when it is asked, and what comes of it."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.models.networks import GraphicalModel, TargetModel
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload

ROWS = 20_000
SIZES = (2, 4, 4, 4, 4, 4, 3)


def hidden(sizes, rng, rows=ROWS):
    """x0 tells whether x1 and x2 are in the same half, nine times in ten; all others are independent."""
    codes = [rng.integers(0, size, rows) for size in sizes]
    if len(sizes) > 2:
        alike = (codes[1] < sizes[1] // 2) == (codes[2] < sizes[2] // 2)
        codes[0] = np.where(rng.random(rows) < 0.9, alike, ~alike).astype(np.int64) % sizes[0]
    return codes


def made(sizes=SIZES, target="x0", units=10**14, kind="gdp", rows=ROWS, ordered=True, codes=None):
    domain = domain_of(sizes, ordered)
    codes = hidden(sizes, np.random.default_rng(1), rows) if codes is None else codes
    door = FakeCurator(domain, partial(table_of, domain, codes))
    terms = Terms(workload=Workload(target=target) if target else UNWEIGHTED)
    plan = Adaptive().plan(SOURCE, domain, Budget(kind, units), terms)
    model = ran(Adaptive(), plan, door, terms)
    assert sum(budget.amount for _, _, budget in door.asked) <= plan.budget.amount
    return model, door.asked, plan


def about_target(asked):
    """The question of all pairs with the target: many three-way marginals at once."""
    return [q for kind, q, _ in asked if kind == "measure" and len(q) > 1 and len(q[0].attrs) == 3]


def test_all_pairs_of_other_columns_are_asked_about_together_last():
    model, asked, plan = made()
    (queries,) = about_target(asked)
    assert {frozenset(q.attrs) for q in queries} == {
        frozenset(("x0", *pair)) for pair in combinations([f"x{i}" for i in range(1, 7)], 2)
    }
    assert asked[-1][1] == queries
    assert asked[-1][2].amount < 0.15 * plan.budget.amount
    assert all(plan.reserves[-1].holds(query, plan.domain) for query in queries)
    assert isinstance(model, TargetModel)


def test_rows_keep_what_no_pair_shows():
    model, _, _ = made()
    rows = np.concatenate([*model.sampler().batches(ROWS, 1)]).astype(np.int64)
    alike = (rows[:, 1] < 2) == (rows[:, 2] < 2)
    assert (rows[:, 0] == alike).mean() == pytest.approx(0.9, abs=0.03)
    assert np.bincount(rows[:, 3], minlength=4) / ROWS == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    "changes",
    [
        {"target": ""},
        {"kind": "pure"},
        {"rows": 300},
        {"units": 10**7},
        {"sizes": (1, *SIZES[1:])},
        {"sizes": SIZES[:2]},
    ],
    ids=["no target", "delta 0", "few rows", "a small budget", "one code", "two columns"],
)
def test_it_is_not_asked_where_it_cannot_pay(changes):
    model, asked, _ = made(**changes)
    assert not about_target(asked) and isinstance(model, GraphicalModel)


def test_a_target_of_many_codes_has_a_law_over_few_bins():
    sizes = (10_000, 4, 4, 4, 4, 4)
    codes = [np.random.default_rng(2).integers(0, size, ROWS) for size in sizes]
    codes[0] = np.where(codes[1] > 1, codes[0] // 2, codes[0])
    model, asked, _ = made(sizes, codes=codes, ordered=True)
    rows = np.concatenate([*model.sampler().batches(2_000, 1)])
    assert rows.shape == (2_000, 6) and rows[:, 0].max() < 10_000
    for queries in about_target(asked):
        assert max(np.prod(query.shape(model.domain)) for query in queries) < 200


def test_a_replay_asks_the_same():
    first, second = (made()[1] for _ in range(2))
    assert [(kind, queries) for kind, queries, _ in first] == [(kind, queries) for kind, queries, _ in second]


def test_the_model_answers_as_its_rows_are():
    model, _, _ = made()
    rows = np.concatenate([*model.sampler().batches(ROWS, 3)]).astype(np.int64)
    for attrs in [("x0",), ("x3", "x0"), ("x0", "x1"), ("x1", "x2"), ("x1", "x0", "x2")]:
        assert model.supports(attrs)
        places, table = [int(name[1:]) for name in attrs], model.project(attrs)
        counted = np.zeros(table.shape)
        np.add.at(counted, tuple(rows[:, place] for place in places), 1)
        assert table.sum() == pytest.approx(model.total)
        assert np.abs(table / model.total - counted / ROWS).sum() / 2 < 0.03
    assert model.project(["x0", "x4"]).sum(axis=1) == pytest.approx(model.project(["x0"]))
    assert model.project(["x0", "x4"]).sum(axis=0) == pytest.approx(model.project(["x4"]))


def test_its_stored_tables_agree_with_its_answers():
    model, _, _ = made()
    tables = model.tables()
    held = {scope for scope, _ in tables.tables}
    assert set(combinations(range(7), 2)) <= {pair for scope in held for pair in combinations(scope, 2)}
    for scope, table in tables.tables:
        assert table.sum() == pytest.approx(1.0)
        if len(scope) == 2:
            names = [model.domain.names[place] for place in scope]
            over = over_bins_of(model.project(names) / model.total, tables.bins, scope)
            assert over == pytest.approx(table, abs=1e-6)


def over_bins_of(table, bins, scope):
    found = np.zeros([int(bins[place].max()) + 1 for place in scope])
    np.add.at(found, np.ix_(*(bins[place] for place in scope)), table)
    return found
