"""Distance of the rows to the model's own marginals, measured and unmeasured pairs alike."""

from itertools import combinations

import numpy as np
import pytest

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.fit.belief import calibrate, marginals
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.models.graphical import GraphicalModel
from dpsyn_sql.sample.graphical import drawn_bins
from dpsyn_sql.sample.systematic import stratified

ROWS = 20_000
SCOPES = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "clique": [(0, 1, 2), (2, 3, 4)],
    "independent": [(0,), (1,), (2,), (3,), (4,)],
}


def model(scopes):
    rng = np.random.default_rng(7)
    potentials = {scope: rng.normal(0, 1.5, [4] * len(scope)) for scope in scopes}
    domain = Domain(tuple(Attribute(f"x{i}", "INTEGER", "categorical", tuple(range(6))) for i in range(5)))
    bins, within = np.array([0, 1, 1, 2, 3, 3]), np.array([1, 0.3, 0.7, 1, 0.0, 1])
    beliefs = calibrate(junction_tree((4,) * 5, potentials), potentials)
    return GraphicalModel(domain, 1000.0, beliefs, (bins,) * 5, (within,) * 5)


@pytest.mark.parametrize("scopes", SCOPES.values(), ids=SCOPES)
def test_rows_are_nearer_to_the_model_than_independent_draws(scopes):
    fitted = model(scopes)
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


def test_counts_within_a_group_are_within_one_at_the_ends_and_unbiased():
    groups = np.repeat([0, 1, 2], [1000, 1, 37])
    weights = np.array([[1.0, 2, 7], [1, 1, 0], [0, 3, 1]])
    means = np.zeros((3, 3))
    for seed in range(300):
        drawn = stratified(groups, weights, np.random.default_rng(seed))
        counts = np.array([np.bincount(drawn[groups == g], minlength=3) for g in range(3)])
        expected = np.bincount(groups)[:, None] * weights / weights.sum(axis=1, keepdims=True)
        assert np.abs(counts - expected)[:, [0, 2]].max() < 1
        means += counts / 300
    np.testing.assert_allclose(means, expected, atol=0.15)


def test_two_children_of_one_parent_do_not_move_together():
    parent = np.zeros(5000, dtype=np.int64)
    generator = np.random.default_rng(0)
    first, second = (stratified(parent, np.ones((1, 4)), generator) for _ in range(2))
    joint = np.bincount(first * 4 + second, minlength=16)
    assert np.abs(joint / 5000 - 1 / 16).sum() < 0.1


def test_batches_add_up_and_a_seed_fixes_them():
    sampler = model(SCOPES["chain"]).sampler()
    assert list(sampler.batches(0, 1)) == []
    first, again, other = (np.concatenate(list(sampler.batches(300_000, seed))) for seed in (1, 1, 2))
    assert first.shape == (300_000, 5) and np.array_equal(first, again) and np.any(first != other)


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
