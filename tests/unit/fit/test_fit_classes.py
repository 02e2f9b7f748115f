"""EM on noisy tables of pairs finds the classes that families were drawn from."""

from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest

from dpsyn_sql.fit.siblings import MOST_CLASSES, found_classes

SIZES = (4, 5, 3)


def tables_of(shares, laws, families, sigma, random):
    found = {}
    for a, b in combinations_with_replacement(range(len(laws)), 2):
        exact = families * np.einsum("k,ki,kj->ij", shares, laws[a], laws[b])
        found[a, b] = exact + random.normal(0, sigma, exact.shape)
    return found


def planted(random):
    shares = np.array([0.5, 0.3, 0.2])
    return shares, [random.dirichlet(np.ones(size) * 0.6, 3) * 0.97 + 0.03 / size for size in SIZES]


def separate():
    """Each class has a bin of the first attribute for itself: no other classes have the same tables."""
    first = np.array([[0.7, 0.0, 0.0, 0.3], [0.0, 0.6, 0.0, 0.4], [0.0, 0.0, 0.9, 0.1]])
    second = np.array([[0.6, 0.3, 0.1, 0.0, 0.0], [0.1, 0.1, 0.8, 0.0, 0.0], [0.0, 0.0, 0.1, 0.4, 0.5]])
    third = np.array([[0.8, 0.1, 0.1], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
    return np.array([0.5, 0.3, 0.2]), [first, second, third]


@pytest.mark.parametrize(("sigma", "off"), [(0.01, 0.02), (60.0, 0.05)])
def test_planted_classes_are_found(sigma, off):
    random = np.random.default_rng(1)
    shares, laws = separate()
    found = found_classes(tables_of(shares, laws, 50_000, sigma, random), SIZES, sigma)
    assert len(found.shares) == 3
    best = min(
        max(
            np.abs(found.shares[list(order)] - shares).max(),
            *(np.abs(law[list(order)] - true).max() for law, true in zip(found.laws, laws, strict=True)),
        )
        for order in permutations(range(3))
    )
    assert best < off


@pytest.mark.parametrize(("sigma", "off"), [(0.01, 0.004), (60.0, 0.012)])
def test_the_tables_are_those_of_the_classes(sigma, off):
    random = np.random.default_rng(2)
    shares, laws = planted(random)
    exact = tables_of(shares, laws, 1, 0, random)
    found = found_classes(tables_of(shares, laws, 20_000, sigma, random), SIZES, sigma)
    fitted = tables_of(found.shares, found.laws, 1, 0, random)
    for pair, table in exact.items():
        assert np.abs(fitted[pair] - table).max() < off


def test_strangers_have_one_class():
    more = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        laws = [random.dirichlet(np.ones(size))[None] for size in SIZES]
        found = found_classes(tables_of(np.ones(1), laws, 10_000, 50.0, random), SIZES, 50.0)
        more += len(found.shares) > 1
    assert more <= 1


def test_shares_and_laws_are_positive_and_sum_to_one():
    random = np.random.default_rng(4)
    shares, laws = planted(random)
    found = found_classes(tables_of(shares, laws, 300, 40.0, random), SIZES, 40.0)
    assert 1 <= len(found.shares) <= MOST_CLASSES
    assert found.shares.min() > 0
    assert found.shares.sum() == pytest.approx(1)
    assert (np.diff(found.shares) <= 0).all()
    for law, size in zip(found.laws, SIZES, strict=True):
        assert law.shape == (len(found.shares), size)
        assert law.min() > 0
        np.testing.assert_allclose(law.sum(axis=1), 1)


def test_tables_of_nothing_have_one_class():
    random = np.random.default_rng(5)
    nothing = {pair: random.normal(0, 9.0, (3, 3)) for pair in ((0, 0), (0, 1), (1, 1))}
    assert np.isfinite(found_classes(nothing, (3, 3), 9.0).laws[0]).all()
