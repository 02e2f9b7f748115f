"""Rows that meet views: exchanges, gradual update, min-cost flow, topologically sorted views."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from dpsyn_sql.fit.reconstruct import graphical_views
from dpsyn_sql.planning.limits import Deadline
from dpsyn_sql.rows.sample import views as sampling
from dpsyn_sql.rows.sample.moves import balanced, moved_least
from dpsyn_sql.rows.sample.systematic import cells
from dpsyn_sql.rows.sample.views import (
    SYNTHESES,
    ViewRows,
    largest_first,
    sorted_rows,
    topologically_sorted,
)


def tables(joint, scopes):
    """Consistent views of a joint table."""
    return {
        scope: joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in scope)).astype(float)
        for scope in scopes
    }


def sampler(views, sizes, synthesis, total=None, deadline=None, most=1e5):
    total = next(iter(views.values())).sum() if total is None else total
    beliefs = graphical_views(sizes, views, dict.fromkeys(views, 1.0), total, most)
    return ViewRows(
        beliefs,
        views,
        tuple(np.arange(size) for size in sizes),
        tuple(np.ones(size) for size in sizes),
        synthesis,
        *([] if deadline is None else [deadline]),
    )


def drawn(*arguments, rows, seed=1, **named):
    return np.concatenate(list(sampler(*arguments, **named).sampler().batches(rows, seed))).astype(np.int64)


def far(rows, views, sizes):
    """Mean total variation distance of the counts of rows to the views."""
    found = []
    for scope, table in views.items():
        counts = np.bincount(cells(rows.T, scope, sizes), minlength=table.size) / len(rows)
        found.append(np.abs(counts - table.ravel() / table.sum()).sum() / 2)
    return np.mean(found)


SIZES = (3, 4, 2, 5)


def dependent(shape=SIZES, seed=3):
    joint = np.random.default_rng(seed).gamma(0.3, size=shape)
    return joint * (10_000 / joint.sum())


@pytest.mark.parametrize("scopes", [list(combinations(range(4), 2)), [(0, 1, 2), (0, 3), (1, 2, 3)]])
@pytest.mark.parametrize(("synthesis", "most"), [("exchange", 0.005), ("gum", 0.01), ("mcf", 0.02)])
def test_rows_meet_consistent_views(synthesis, most, scopes):
    views = tables(dependent(), scopes)
    assert far(drawn(views, SIZES, synthesis, rows=10_000), views, SIZES) < most


@pytest.mark.parametrize("synthesis", ["gum", "mcf", "sts"])
def test_a_single_view_is_met_within_one_row_a_cell(synthesis):
    views = tables(dependent((4, 6)), [(0, 1)])
    rows = drawn(views, (4, 6), synthesis, rows=1_000)
    counts = np.bincount(cells(rows.T, (0, 1), (4, 6)), minlength=24)
    off = 8 if synthesis == "sts" else 1  # eight parts, each within one row
    assert np.abs(counts - views[0, 1].ravel() / 10).max() <= off


def test_exchanges_for_views_of_three_attributes_keep_one_way_counts():
    rng = np.random.default_rng(0)
    sizes, views = SIZES, tables(dependent(), [(0, 1, 2), (1, 2, 3), (0,)])
    columns = [rng.choice(k, 10_000, p=tables(dependent(), [(v,)])[v,] / 1e4) for v, k in enumerate(sizes)]
    after = balanced(columns, sizes, views, rng, passes=6)
    for old, new in zip(columns, after, strict=True):
        np.testing.assert_array_equal(np.bincount(old), np.bincount(new))
    assert far(np.transpose(after), views, sizes) < 0.4 * far(np.transpose(columns), views, sizes)


def test_no_plan_moves_fewer_rows_than_the_closed_form():
    rng = np.random.default_rng(5)
    for _ in range(20):
        columns = [rng.integers(2, size=40), rng.integers(3, size=40)]
        counts = np.bincount(cells(columns, (0, 1), (2, 3)), minlength=6)
        wanted = rng.multinomial(40, rng.dirichlet(np.ones(6)))
        after = moved_least(columns, (2, 3), {(0, 1): wanted}, rng, rounds=1)
        same = (columns[0] == after[0]) & (columns[1] == after[1])
        moved = int((~same).sum())
        flows = np.vstack([np.kron(np.eye(6), np.ones(6)), np.kron(np.ones(6), np.eye(6))])
        plan = linprog(1 - np.eye(6).ravel(), A_eq=flows, b_eq=np.append(counts, wanted), method="highs")
        assert moved == round(plan.fun)
        np.testing.assert_array_equal(np.bincount(cells(after, (0, 1), (2, 3)), minlength=6), wanted)


EXAMPLE = {
    (0, 1): np.array([[3.0, 2], [4, 1]]),
    (1, 2): np.array([[2.0, 3], [3, 2]]),
    (2, 3): np.array([[4.0, 3], [1, 2]]),
}
"""The worked example of DPSyn, section 3.3, Figure 3a."""

AFTER_ONE = {
    (0, 1): np.array([[3.0, 2], [3, 1]]),
    (1, 2): np.array([[2.0, 2], [3, 2]]),
    (2, 3): np.array([[4.0, 3], [1, 1]]),
}
"""Figure 3b."""


def replay(rows, order, views):
    """Record by record: each took a largest count among the cells that agree; returns what is left."""
    left = {scope: table.copy() for scope, table in views.items()}
    for row in rows:
        known = set()
        for scope in order:
            agreeing = left[scope][tuple(row[v] if v in known else slice(None) for v in scope)]
            assert left[scope][tuple(row[list(scope)])] == np.max(agreeing)
            known |= set(scope)
        for scope in order:
            left[scope][tuple(row[list(scope)])] -= 1
    return left


def test_the_worked_example_of_the_proposal():
    order = list(EXAMPLE)
    for seed in range(5):
        columns = sorted_rows((2,) * 4, EXAMPLE, 10, order, np.random.default_rng(seed))
        first = np.array([columns[v][0] for v in range(4)])
        np.testing.assert_array_equal(first, [1, 0, 1, 1])
        left = replay(first[None], order, EXAMPLE)
        for scope, table in AFTER_ONE.items():
            np.testing.assert_array_equal(left[scope], table)


@pytest.mark.parametrize("seed", range(5))
def test_all_records_at_once_are_those_of_one_by_one(seed):
    rng = np.random.default_rng(seed)
    sizes = (3, 2, 4, 3, 2)
    joint = np.bincount(rng.integers(144, size=300) ** 2 // 144, minlength=144).reshape(sizes)
    views = tables(joint, [(0, 1, 2), (1, 2, 3), (3, 4)])
    order = topologically_sorted(list(views), rng)
    columns = sorted_rows(sizes, views, 300, order, rng)
    left = replay(np.stack([columns[v] for v in range(5)], axis=1), order, views)
    assert not left[order[0]].any()


def test_views_are_sorted_by_the_fewest_new_attributes():
    scopes = [(0, 1, 2, 3), (0, 1, 2, 4), (0, 1, 4, 5)]
    orders = {tuple(topologically_sorted(scopes, np.random.default_rng(seed))) for seed in range(30)}
    assert {order[0] for order in orders} == set(scopes)
    assert all(order == tuple(scopes) for order in orders if order[0] == scopes[0])
    held = [topologically_sorted([(0, 1), (0,), (1,)], np.random.default_rng(seed)) for seed in range(30)]
    assert [(0, 1)] in held
    assert all(len(order) == 1 for order in held if order[0] == (0, 1))


def test_ties_between_counts_are_random():
    seen = {
        int(largest_first(np.zeros(1, int), np.ones((1, 4)), np.random.default_rng(s))[0]) for s in range(40)
    }
    assert seen == {0, 1, 2, 3}


ODD = {
    "one attribute": ((4,), {(0,): np.array([5.0, 0, 3, 2])}),
    "one value": ((1, 3), {(0, 1): np.array([[5.0, 1, 4]])}),
    "only one value": ((1,), {(0,): np.array([10.0])}),
    "identical attributes": ((3, 3), {(0, 1): np.diag([5000.0, 4000, 1000])}),
    "no rows in the views": ((2, 3, 2), {(0, 1): np.zeros((2, 3)), (1, 2): np.zeros((3, 2))}),
    "an attribute of no view": ((2, 3, 2), {(0, 1): np.ones((2, 3))}),
    "more cells than rows": ((30, 40), {(0, 1): np.random.default_rng(0).random((30, 40))}),
}


@pytest.mark.parametrize("synthesis", SYNTHESES)
@pytest.mark.parametrize("case", ODD)
def test_odd_views_give_rows_and_a_seed_fixes_them(case, synthesis):
    sizes, views = ODD[case]
    own = sampler(views, sizes, synthesis).sampler()
    assert list(own.batches(0, 1)) == []
    for rows in (1, 2, 100):
        first, again = (np.concatenate(list(own.batches(rows, 5))) for _ in range(2))
        assert first.shape == (rows, len(sizes))
        assert (first < sizes).all()
        np.testing.assert_array_equal(first, again)
    if case == "identical attributes":
        assert (first[:, 0] == first[:, 1]).mean() >= (0.97 if synthesis == "exchange" else 1)
    if case == "no rows in the views":
        assert abs(first[:, 0].mean() - 0.5) < 0.1


@pytest.mark.parametrize("synthesis", ["exchange", "gum", "mcf"])
def test_a_deadline_leaves_fewer_passes_and_says_so(synthesis):
    deadline = Deadline(0.001, clock=lambda: 0.0)
    views = tables(dependent(), [(0, 1), (1, 2), (2, 3), (0, 3)])
    rows = drawn(views, SIZES, synthesis, rows=10_000, deadline=deadline)
    assert len(rows) == 10_000
    assert deadline.cuts == ["the rows were moved towards the views in fewer passes"]


def test_rows_of_several_batches_meet_the_views_too(monkeypatch):
    monkeypatch.setattr("dpsyn_sql.rows.sample.systematic.BATCH_ROWS", 3_000)
    views = tables(dependent(), list(combinations(range(4), 2)))
    for synthesis in ("exchange", "gum", "mcf"):
        assert far(drawn(views, SIZES, synthesis, rows=10_000), views, SIZES) < 0.03


def test_beyond_the_limit_exchanges_visit_a_part_of_the_rows(monkeypatch):
    views = tables(dependent(), list(combinations(range(4), 2)))
    found = []
    for passes in (0, 0.25, 6):
        monkeypatch.setattr(sampling, "MOST_WORK", 10_000 * 12 * passes)
        rows = drawn(views, SIZES, "exchange", rows=10_000, most=20)  # a model of single attributes
        found.append(far(rows, views, SIZES))
    assert found[0] > 1.05 * found[1] > 5 * found[2]


def groups_and_their_columns(rows=4_000, columns=14, groups=12):
    """All pairs of columns that nearly follow a hidden group: many values change together or not at all."""
    rng = np.random.default_rng(7)
    group = rng.integers(0, groups, rows)
    codes = np.stack([rng.integers(0, 4, groups)[group] for _ in range(columns)])
    codes = np.where(rng.random(codes.shape) < 0.05, rng.integers(0, 4, codes.shape), codes)
    sizes = (4,) * columns
    scopes = combinations(range(columns), 2)
    return {s: np.bincount(cells(codes, s, sizes), minlength=16).reshape(4, 4) * 1.0 for s in scopes}, sizes


def test_exchanges_go_on_while_they_pay(monkeypatch):
    views, sizes = groups_and_their_columns()
    far_off = []
    for further in (0, sampling.FURTHER):
        monkeypatch.setattr(sampling, "FURTHER", further)
        far_off.append(far(drawn(views, sizes, "exchange", rows=4_000, most=300), views, sizes))
    assert far_off[1] < 0.5 * far_off[0]


def test_exchanges_end_where_they_no_longer_pay(monkeypatch):
    passes = []

    def counted(columns, sizes, expected, generator, times, share):
        passes.append(times)
        return balanced(columns, sizes, expected, generator, times, share)

    monkeypatch.setattr(sampling, "balanced", counted)
    views = tables(dependent(), list(combinations(range(4), 2)))
    drawn(views, SIZES, "exchange", rows=10_000)
    assert sum(passes) == sampling.PASSES["exchange"]


@pytest.mark.parametrize("limit", ["deadline", "work"])
def test_further_exchanges_keep_to_the_limits(monkeypatch, limit):
    views, sizes = groups_and_their_columns()
    work = 4_000 * 14 * 13
    if limit == "work":
        monkeypatch.setattr(sampling, "MOST_WORK", 8.5 * work)
        own = sampler(views, sizes, "exchange")
    else:
        own = sampler(views, sizes, "exchange", deadline=Deadline(8.5 * work / 2e7, clock=lambda: 0.0))
    assert own._further(4_000, own._passes(4_000)) == 2
