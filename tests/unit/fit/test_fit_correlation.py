"""The nearest correlation matrix: the paper's example, optimality conditions, free entries."""

import numpy as np
import pytest

from dpsyn_sql.fit.gaussian import floored, nearest_correlation


def test_the_example_of_the_paper():
    """Higham 2002, section 4: the tridiagonal matrix of order 3."""
    matrix = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    expected = np.array([[1.0, 0.7607, 0.1573], [0.7607, 1.0, 0.7607], [0.1573, 0.7607, 1.0]])
    np.testing.assert_allclose(nearest_correlation(matrix), expected, atol=5e-5)


def test_the_tridiagonal_example_of_order_4():
    """Higham 2002, section 4, equation 4.1: distance 2.1339 for the (2, -1) matrix."""
    matrix = 2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    nearest = nearest_correlation_full(matrix)
    assert np.linalg.norm(matrix - nearest) == pytest.approx(2.1339, abs=5e-4)


def nearest_correlation_full(matrix):
    return nearest_correlation(matrix, tolerance=1e-12, rounds=5000)


def random_symmetric(size, seed):
    raw = np.random.default_rng(seed).uniform(-1, 1, (size, size))
    matrix = (raw + raw.T) / 2
    np.fill_diagonal(matrix, 1.0)
    return matrix


@pytest.mark.parametrize("seed", range(5))
def test_optimality(seed):
    """X is nearest iff A - X = diag(d) - Z with Z positive semidefinite and Z X = 0."""
    matrix = random_symmetric(12, seed)
    nearest = nearest_correlation_full(matrix)
    values, vectors = np.linalg.eigh(nearest)
    null = vectors[:, values < 1e-6]
    assert values[0] > -1e-8 and null.shape[1] > 0
    # Stationarity: some d makes Z = diag(d) - (A - X) vanish on the range of X.
    difference = matrix - nearest
    range_ = vectors[:, values >= 1e-6]
    rows = [np.diag(unit) @ range_ for unit in np.eye(12)]
    system = np.column_stack([row.ravel() for row in rows])
    d, *_ = np.linalg.lstsq(system, (difference @ range_).ravel(), rcond=None)
    z = np.diag(d) - difference
    assert np.abs(z @ range_).max() < 1e-5
    assert np.linalg.eigvalsh(z)[0] > -1e-5


def test_no_random_feasible_matrix_is_nearer():
    matrix = random_symmetric(8, 11)
    nearest = nearest_correlation_full(matrix)
    rng = np.random.default_rng(3)
    distance = np.linalg.norm(matrix - nearest)
    for _ in range(300):
        factor = rng.standard_normal((8, 8))
        other = factor @ factor.T
        other /= np.sqrt(np.outer(np.diag(other), np.diag(other)))
        mixed = 0.9 * nearest + 0.1 * other
        assert np.linalg.norm(matrix - mixed) >= distance - 1e-9


def test_a_correlation_matrix_stays():
    good = floored(random_symmetric(9, 4), 0.01)
    np.testing.assert_allclose(nearest_correlation(good), good, atol=1e-12)


def test_floor():
    matrix = np.ones((5, 5))
    result = floored(matrix, 1e-4)
    assert np.linalg.eigvalsh(result)[0] > 0.9e-4
    np.testing.assert_array_equal(np.diag(result), 1.0)
    np.linalg.cholesky(result)


def test_no_columns():
    empty = np.empty((0, 0))
    assert floored(nearest_correlation(empty), 1e-4).shape == (0, 0)
