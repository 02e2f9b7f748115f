"""Excess agreement of families from noisy tables: without bias, and with the deviation that it says."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from dpsyn_sql.fit.siblings import excess, explained, hanging_together


def pairs_of(codes, bins):
    """Ordered pairs of distinct rows of families of the same size, int[families, rows]."""
    families, rows = codes.shape
    counts = np.zeros((families, bins))
    np.add.at(counts, (np.repeat(np.arange(families), rows), codes.ravel()), 1)
    same = np.diag(counts.sum(axis=0))
    return (counts.T @ counts - same) / (rows * (rows - 1))


def noisy(random, table, sigma):
    return table + random.normal(0, sigma, table.shape)


@pytest.mark.parametrize(("families", "sigma"), [(400, 3.0), (4_000, 40.0), (2_000, 0.01)])
def test_strangers_have_no_excess_beyond_the_deviation(families, sigma):
    random, law = np.random.default_rng(1), np.array([0.4, 0.3, 0.2, 0.05, 0.05])
    scores = []
    for _ in range(600):
        codes = random.choice(5, (families, 2), p=law)
        found = excess(noisy(random, pairs_of(codes, 5), sigma), sigma)
        scores.append(np.nan if found is None else found.share / found.deviation)
    assert not np.isnan(scores).any()
    assert abs(np.mean(scores)) < 4 / np.sqrt(600)
    assert 0.9 < np.std(scores) < 1.1


def test_more_rows_of_a_family_make_the_deviation_smaller_than_said():
    random, law = np.random.default_rng(2), np.array([0.5, 0.3, 0.2])
    scores = []
    for _ in range(300):
        found = excess(pairs_of(random.choice(3, (300, 6), p=law), 3), 0.0)
        scores.append(found.share / found.deviation)
    assert abs(np.mean(scores)) < 0.1
    assert np.std(scores) < 0.5


def test_families_that_share_a_code_agree_as_much_as_it_says():
    """Half of the families always have the code 0, the others draw from all three."""
    random = np.random.default_rng(3)
    found = []
    for _ in range(200):
        codes = random.integers(0, 3, (3_000, 3))
        codes[::2] = 0
        found.append(excess(noisy(random, pairs_of(codes, 3), 30.0), 30.0).share)
    agree, margin = 0.5 + 0.5 / 3, np.array([0.5 + 0.5 / 3, 0.5 / 3, 0.5 / 3])
    assert np.mean(found) == pytest.approx(agree - (margin**2).sum(), abs=0.002)


@pytest.mark.parametrize("sigma", [0.01, 20.0])
def test_what_a_shared_code_explains_has_no_bias(sigma):
    random = np.random.default_rng(4)
    laws = random.dirichlet(np.ones(4) * 2, 3)
    shares = np.array([0.5, 0.3, 0.2])
    truth = (shares * (laws**2).sum(axis=1)).sum() - ((shares @ laws) ** 2).sum()
    table = 5_000 * shares[:, None] * laws
    found = [explained(noisy(random, table, sigma), sigma) for _ in range(500)]
    scores = [(one.share - truth) / one.deviation for one in found]
    assert np.mean([one.share for one in found]) == pytest.approx(truth, abs=0.002)
    assert 0.85 < np.std(scores) < 1.15


def test_codes_without_families_explain_nothing_by_their_noise():
    random = np.random.default_rng(5)
    table = np.zeros((60, 5))
    table[0] = [900, 900, 900, 900, 900]
    found = [explained(noisy(random, table, 20.0), 20.0) for _ in range(300)]
    scores = [one.share / one.deviation for one in found]
    assert abs(np.mean([one.share for one in found])) < 0.002
    assert max(map(abs, scores)) < 6


def test_nothing_is_said_of_families_that_noise_hides():
    random = np.random.default_rng(6)
    assert excess(noisy(random, np.full((4, 4), 1.0), 50.0), 50.0) is None
    assert explained(noisy(random, np.full((9, 4), 1.0), 50.0), 50.0) is None
    assert excess(np.zeros((1, 1)), 1.0) is None


def tables_of(classes, random, families=40_000, sigma=20.0, bins=4):
    """Noisy tables of pairs over attributes, each of which follows one of some independent classes."""
    laws = {place: random.dirichlet(np.full(bins, 0.5), 3) for place in range(len(classes))}
    shares, found = np.full(3, 1 / 3), {}
    for a, b in combinations_with_replacement(range(len(classes)), 2):
        if classes[a] == classes[b]:
            exact = (laws[a] * shares[:, None]).T @ laws[b]
        else:
            exact = np.multiply.outer(shares @ laws[a], shares @ laws[b])
        found[a, b] = families * exact + random.normal(0, sigma, (bins, bins))
    return found


@pytest.mark.parametrize(
    ("classes", "sets"),
    [
        ((0, 0, 0), [[0, 1, 2]]),
        ((0, 1, 2), [[0], [1], [2]]),
        ((0, 1, 0, 1), [[0, 2], [1, 3]]),
        ((0, 1, 1, 0, 2), [[0, 3], [1, 2], [4]]),
        ((0,), [[0]]),
    ],
)
def test_attributes_of_one_class_hang_together(classes, sets):
    for seed in range(20):
        tables = tables_of(classes, np.random.default_rng(seed))
        assert hanging_together(tables, len(classes), 20.0) == sets, seed


def test_noise_alone_hangs_nothing_together():
    for seed in range(20):
        tables = tables_of((0, 1, 2, 3), np.random.default_rng(seed), families=300, sigma=60.0)
        assert len(hanging_together(tables, 4, 60.0)) >= 3, seed
