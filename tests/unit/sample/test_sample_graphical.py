"""Rows of a graphical model: near to its marginals, and brought closer by exchanges."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from support.domains import domain_of
from support.networks import SCOPES, graphical_model

from dpsyn_sql.fit.belief import calibrate, marginals
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.rows.sample import graphical, systematic
from dpsyn_sql.rows.sample.graphical import drawn_bins
from dpsyn_sql.rows.sample.moves import balanced
from dpsyn_sql.rows.sample.systematic import stratified

ROWS = 20_000


@pytest.mark.parametrize("scopes", SCOPES.values(), ids=SCOPES)
def test_rows_are_nearer_to_the_model_than_independent_draws(scopes):
    fitted = graphical_model(scopes, 7)
    (codes,) = fitted.sampler().batches(ROWS, 1)
    rng = np.random.default_rng(2)
    for i, j in combinations(range(5), 2):
        wanted = fitted.project([f"x{i}", f"x{j}"]).ravel() / 1000
        drawn = np.bincount(codes[:, i].astype(int) * 6 + codes[:, j], minlength=36) / ROWS
        chance = np.mean([np.abs(rng.multinomial(ROWS, wanted) / ROWS - wanted).sum() for _ in range(40)])
        assert np.abs(drawn - wanted).sum() < 1.6 * chance
    assert not np.any(codes == 4)  # a code of probability 0 in its bin
    ones = [
        np.abs(np.bincount(codes[:, i], minlength=6) - ROWS * fitted.project([f"x{i}"]) / 1000).max()
        for i in range(5)
    ]
    assert np.mean(ones) < 15  # independent draws are off by about 60


@pytest.mark.parametrize("wide", [1, 60], ids=["as often as its stretch has places", "place by place"])
def test_the_first_lines_of_a_group_together_get_their_rows_within_one(wide):
    """Of tables with fewer lines than rows, and with more: each line of ``weights`` is ``wide`` lines."""
    groups = np.random.default_rng(1).permutation(np.repeat([0, 2, 3, 4], [700, 1, 2, 300]))
    weights = np.array([[1.0, 0, 7, 2], [1, 1, 1, 1], [0, 3, 0, 1], [0, 0, 2, 0], [4, 0, 0, 0]])
    counts, means = np.bincount(groups)[:, None], np.zeros((5, 4))
    expected = counts * weights / weights.sum(axis=1, keepdims=True)
    for seed in range(400):
        lines = stratified(groups, np.repeat(weights / wide, wide, axis=1), np.random.default_rng(seed))
        drawn = np.zeros((5, 4 * wide))
        np.add.at(drawn, (groups, lines), 1)
        drawn = drawn.reshape(5, 4, wide).sum(axis=2)
        assert np.abs(np.cumsum(drawn - expected, axis=1)).max() < 1
        assert not drawn[weights == 0].any() and np.array_equal(drawn.sum(axis=1), counts[:, 0])
        means += drawn / 400
    np.testing.assert_allclose(means, expected, atol=0.15)


@pytest.mark.parametrize("wide", [1, 3000], ids=["as often as its stretch has places", "place by place"])
def test_what_two_columns_follow_from_is_all_that_they_have_in_common(wide):
    """Rows of one group take their places in a new order for each column."""
    generator, groups, coin = np.random.default_rng(3), np.zeros(4000, np.int64), np.full((1, 2 * wide), 1.0)
    first, second = (stratified(groups, coin, generator) // wide for _ in range(2))
    assert first.sum() == second.sum() == 2000
    assert abs((first == second).mean() - 0.5) < 4 * 0.5 / 4000**0.5


@pytest.mark.slow
def test_many_rows_are_nearer_to_the_model_than_independent_draws_could_be():
    """Errors of batches do not add up: two million rows of eight batches."""
    fitted, rows = graphical_model(SCOPES["clique"], 7), 2_000_000
    codes = np.concatenate(list(fitted.sampler().batches(rows, 1))).astype(np.int64)
    rng, shares = np.random.default_rng(2), []
    for i, j in combinations(range(5), 2):
        wanted = fitted.project([f"x{i}", f"x{j}"]).ravel() / 1000
        drawn = np.bincount(codes[:, i] * 6 + codes[:, j], minlength=36) / rows
        chance = np.mean([np.abs(rng.multinomial(rows, wanted) / rows - wanted).sum() for _ in range(40)])
        assert not drawn[wanted < 1e-12].any()
        shares.append(np.abs(drawn - wanted).sum() / chance)
        assert shares[-1] < 1.6
    assert np.mean(shares) < 0.7


def test_rows_meet_the_one_way_counts_of_the_model_within_one_row():
    """Also where a clique has many more configurations than rows, and a twin is a function of its attribute."""
    rng, sizes = np.random.default_rng(5), (30, 25, 20, 6)
    twin = np.where(np.arange(30)[:, None] // 5 == np.arange(6), 0.0, -1e3)
    factors = {(0, 1): rng.normal(0, 1, (30, 25)), (1, 2): rng.normal(0, 1, (25, 20)), (0, 3): twin}
    factors |= {(0, 1, 2): rng.normal(0, 0.3, (30, 25, 20))}
    beliefs = calibrate(junction_tree(sizes, factors), factors)
    rows = 3_000
    drawn = drawn_bins(beliefs, rows, np.random.default_rng(6))
    for scope, table in marginals(beliefs, [(v,) for v in range(4)]).items():
        counts = np.bincount(drawn[scope[0]], minlength=sizes[scope[0]])
        assert np.abs(counts - rows * table).max() <= 1
    np.testing.assert_array_equal(drawn[3], drawn[0] // 5)


def counts(columns, sizes, pair):
    u, v = pair
    return np.bincount(columns[u] * sizes[v] + columns[v], minlength=sizes[u] * sizes[v]).reshape(
        sizes[u], sizes[v]
    )


def far(columns, sizes, expected):
    return sum(np.abs(counts(columns, sizes, pair) - table).sum() for pair, table in expected.items())


@pytest.mark.parametrize(("rows", "sizes"), [(6_000, (4, 3, 5, 2)), (500, (9, 7, 2)), (3, (4, 4))])
def test_two_way_counts_come_closer_and_one_way_counts_stay(rows, sizes):
    rng = np.random.default_rng(rows)
    columns = [rng.permutation(rows) % size for size in sizes]
    before = [column.copy() for column in columns]
    expected = {
        (u, v): np.full((sizes[u], sizes[v]), rows / sizes[u] / sizes[v])
        for u, v in combinations(range(len(sizes)), 2)
    }
    after = balanced(columns, sizes, expected, np.random.default_rng(1))
    for old, kept, new in zip(before, columns, after, strict=True):
        np.testing.assert_array_equal(old, kept)
        np.testing.assert_array_equal(np.bincount(old), np.bincount(new))
    assert far(after, sizes, expected) <= far(before, sizes, expected) * (0.6 if rows > 100 else 1)


@pytest.mark.parametrize("sizes", [(1,), (1, 4), (1, 1), (3, 1, 4)])
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_variables_of_one_code_and_few_rows_are_left_alone(sizes, rows):
    columns = [np.arange(rows) % size for size in sizes]
    free = [v for v, size in enumerate(sizes) if size > 1]
    expected = {(u, v): np.ones((sizes[u], sizes[v])) for u, v in combinations(free, 2)}
    after = balanced(columns, sizes, expected, np.random.default_rng(1))
    for old, new in zip(columns, after, strict=True):
        np.testing.assert_array_equal(np.bincount(old), np.bincount(new))


def star(leaves=4, size=6):
    """One centre, leaves that depend on it: no two leaves share a clique."""
    sizes = (size,) * (leaves + 1)
    rng = np.random.default_rng(7)
    potentials = {(0, leaf): rng.normal(0, 1.5, (size, size)) for leaf in range(1, leaves + 1)}
    beliefs = calibrate(junction_tree(sizes, potentials), potentials)
    every = (np.arange(size),) * (leaves + 1)
    return GraphicalModel(
        domain_of(sizes),
        5_000.0,
        beliefs,
        every,
        (np.ones(size),) * (leaves + 1),
    )


def test_samples_of_a_star_meet_measured_and_unmeasured_pairs(monkeypatch):
    model, rows = star(), 5_000
    names = model.domain.names

    def errors():
        codes = np.concatenate(list(model.sampler().batches(rows, 3))).astype(np.int64)
        found = {}
        for u, v in combinations(range(len(names)), 2):
            wanted = model.project((names[u], names[v]))
            error = np.abs(counts(codes.T, model.domain.shape(), (u, v)) - wanted).sum() / 2 / rows
            found.setdefault(u == 0, []).append(error)
        return np.mean(found[True]), np.mean(found[False])

    measured, unmeasured = errors()
    monkeypatch.setattr(graphical, "MOST_BALANCED", 0)
    plain_measured, plain_unmeasured = errors()
    assert unmeasured < 0.5 * plain_unmeasured
    assert measured < max(1.5 * plain_measured, 0.005)


def lumpy(rows, seed):
    """Rows whose codes within bins ignore each other, and the pair tables over codes that they should meet."""
    rng, sizes = np.random.default_rng(seed), (12, 10, 6)
    bins = tuple(np.arange(size) // 3 for size in sizes)
    within = tuple(np.tile([0.6, 0.3, 0.1], size)[:size] for size in sizes)
    within = tuple(own / np.bincount(b, own)[b] for own, b in zip(within, bins, strict=True))
    working = [int(b.max()) + 1 for b in bins]
    potentials = {(0, 1): rng.normal(0, 1.5, working[:2]), (1, 2): rng.normal(0, 1.5, working[1:])}
    beliefs = calibrate(junction_tree(working, potentials), potentials)
    domain = domain_of(sizes)
    return GraphicalModel(domain, float(rows), beliefs, bins, within)


def errors_of(model, rows):
    (codes,) = model.sampler().batches(rows, 5)
    names, shape = model.domain.names, model.domain.shape()
    pairs = {
        pair: np.abs(
            counts(codes.T.astype(np.int64), shape, pair) - model.project([names[v] for v in pair])
        ).sum()
        for pair in combinations(range(len(shape)), 2)
    }
    return pairs, [np.bincount(column, minlength=size) for column, size in zip(codes.T, shape, strict=True)]


@pytest.mark.parametrize("rows", [400, 3_000, 20_000])
def test_codes_within_bins_meet_pairs_too_unless_there_are_too_many(rows, monkeypatch):
    model = lumpy(rows, rows)
    on_codes, ones = errors_of(model, rows)
    monkeypatch.setattr(graphical, "MOST_EXPECTED", 12 * 10 + 12 * 6 + 10 * 6 - 1)
    on_bins, same_ones = errors_of(model, rows)
    monkeypatch.setattr(graphical, "MOST_EXPECTED", 12 * 10 + 12 * 6 + 10 * 6)
    assert errors_of(model, rows)[0] == on_codes  # at the limit, on codes
    assert sum(on_codes.values()) < 0.6 * sum(on_bins.values())
    for own, other in zip(ones, same_ones, strict=True):
        assert np.abs(own - other).max() <= 2  # exchanges keep one-way counts, here and there


def test_expected_tables_are_those_of_the_model_and_in_single_precision():
    model = lumpy(1_000, 1)
    whole = {(0, 1, 2): np.random.default_rng(2).normal(0, 1.5, model.beliefs.tree.sizes)}
    beliefs = calibrate(junction_tree(model.beliefs.tree.sizes, whole), whole)
    model = replace(model, beliefs=beliefs, sets=((0, 1, 2),))
    tables = model.tree_rows()._expected(model.domain.shape(), 1_000)
    assert {*tables} == {(0, 1), (0, 2), (1, 2), (0, 1, 2)}
    for scope, table in tables.items():
        assert table.dtype == np.float32
        np.testing.assert_allclose(table, model.project([f"x{place}" for place in scope]), rtol=1e-4)


def with_a_pair_beside(rows):
    """A model whose leaves 1 and 2 depend on each other more than its tree says, with the same margins."""
    model = replace(star(leaves=3), total=float(rows))
    table = model.project(["x1", "x2"]) / rows
    beside = table * np.exp(np.random.default_rng(8).normal(0, 0.7, table.shape))
    for _ in range(200):
        beside *= (table.sum(axis=1) / beside.sum(axis=1))[:, None]
        beside *= table.sum(axis=0) / beside.sum(axis=0)
    return model, replace(model, beside={(1, 2): beside})


@pytest.mark.parametrize(("rows", "batch"), [(6_000, 2**18), (20_000, 10_000)])
def test_rows_marginals_and_stored_tables_say_the_same_of_a_pair_beside_the_tree(rows, batch, monkeypatch):
    monkeypatch.setattr(graphical, "BATCH_ROWS", batch)
    monkeypatch.setattr(systematic, "BATCH_ROWS", batch)
    plain, model = with_a_pair_beside(rows)
    wanted = model.project(["x1", "x2"])
    np.testing.assert_allclose(wanted, model.project(["x2", "x1"]).T)
    np.testing.assert_allclose(wanted.sum(axis=1), model.project(["x1"]), rtol=1e-9)
    kept = dict(model.tables().tables)
    np.testing.assert_allclose(rows * kept[1, 2], wanted)
    assert np.abs(plain.project(["x1", "x2"]) - wanted).sum() > 0.2 * rows
    found = [
        np.concatenate(list(one.sampler().batches(rows, 4))).astype(np.int64) for one in (plain, model, model)
    ]
    np.testing.assert_array_equal(found[1], found[2])
    shape = model.domain.shape()
    errors = [np.abs(counts(codes.T, shape, (1, 2)) - wanted).sum() / 2 / rows for codes in found]
    assert errors[1] < 0.02 < 0.1 < errors[0]
    for pair in [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]:  # the pairs of the tree stay
        own = model.project([f"x{v}" for v in pair])
        assert np.abs(counts(found[1].T, shape, pair) - own).sum() / 2 / rows < 0.03
