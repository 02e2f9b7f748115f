"""Arithmetic of fits where numbers are far apart: exact, or an error with a name, never a NaN or a warning."""

import warnings

import numpy as np
import pytest

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import quotient, raked, sound
from dpsyn_sql.fit.belief import Beliefs, calibrate, marginals
from dpsyn_sql.fit.centres import centres
from dpsyn_sql.fit.estimate import Likelihood, Observation, fit_potentials
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.network import node_of
from dpsyn_sql.fit.reconstruct import maximum_entropy


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_potentials_that_are_no_numbers_are_an_error():
    tree = junction_tree((2, 2), [(0, 1)])
    for wrong in (np.nan, np.inf, -np.inf):
        with pytest.raises(InternalError, match="not a finite number"):
            calibrate(tree, {(0, 1): np.array([[0.0, wrong], [0.0, 0.0]])})
    for table in (np.array([[0.5, np.nan], [0.5, 0.0]]), np.array([[1.5, -0.5], [0, 0]]), np.zeros((2, 2))):
        with pytest.raises(InternalError, match="no distribution"):
            Beliefs(tree, (table,), 0.0).checked()


@pytest.mark.parametrize("rows", [1e3, 2.0**53])
@pytest.mark.parametrize("sigma", [1e-30, 1.0, 1e3])
def test_tables_that_contradict_each_other_leave_other_columns_as_they_are(rows, sigma):
    """Two tables of one pair say the opposite; a third column has its shares all the same."""
    shares = np.array([0.3, 0.3, 0.2, 0.18, 0.02])
    values = {
        (0,): rows * shares,
        (1, 2): rows * np.array([[1.0, 0.0], [0.0, 0.0]]),
        (1, 3): rows * np.array([[0.0, 0.0], [0.0, 1.0]]),
        (2, 3): rows * np.array([[0.0, 0.5], [0.5, 0.0]]),
        (0, 1): rows * np.outer(shares, [0.5, 0.5]),
    }
    observed = {scope: Observation(table, np.asarray(sigma)) for scope, table in values.items()}
    base = {(0,): np.log(shares)}
    fit = fit_potentials(Likelihood(junction_tree((5, 2, 2, 2), observed), observed, rows, base), {}, 60)
    fit.beliefs.checked()
    np.testing.assert_allclose(marginals(fit.beliefs, [(0,)])[0,], shares, atol=0.01)


@pytest.mark.parametrize("wrong", [{"values": np.nan}, {"sigma": np.inf}, {"total": 0.0}])
def test_a_fit_of_no_numbers_is_an_error(wrong):
    values = np.array([1.0, wrong.get("values", 2.0)])
    observed = {(0,): Observation(values, np.asarray(wrong.get("sigma", 1.0)))}
    with pytest.raises(InternalError, match="finite numbers"):
        Likelihood(junction_tree((2,), observed), observed, wrong.get("total", 3.0), {})


def test_centres_of_cells_that_a_fit_has_excluded():
    """A potential of -800 is no factor of float64."""
    potentials = {(0, 1): np.array([[0.0, -800.0], [-800.0, 0.0]])}
    beliefs = calibrate(junction_tree((2, 2), potentials), potentials)
    observed = {(0, 1): Observation(np.array([[50.0, 0.0], [0.0, 50.0]]), np.asarray(1.0))}
    found = centres(potentials, beliefs, observed, 100.0, [False, False])[0, 1]
    assert np.isfinite(found).all()
    assert found[0, 0] == pytest.approx(found[1, 1]) and found[0, 1] == pytest.approx(found[1, 0])


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300, 1.0, 1e300])
def test_a_node_has_distributions_whatever_its_table_sums_to(size):
    node = node_of("x", (0,), (1,), np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 2.0]]) * size)
    assert node.given.ravel().tolist() == [0, 0, 2, 2] and node.values.ravel().tolist() == [0, 1, 0, 2]
    np.testing.assert_allclose(node.weights, [0.75, 0.25, 0.5, 0.5])


@pytest.mark.parametrize("table", [[[0.0, 0.0]], [[1.0, -0.1]], [[np.nan, 1.0]], [[np.inf, 1.0]]])
def test_a_node_without_a_distribution_is_an_error(table):
    with pytest.raises(InternalError, match="'x' in a fitted model"):
        node_of("x", (0,), (1,), np.array(table))


def test_quotients_and_what_is_fitted_by_them():
    faint = np.array([0.0, 5e-324, 1e-310, 1e-300, 0.5])
    np.testing.assert_allclose(quotient(np.full(5, 0.5), faint), [0, 0, 0, 5e299, 1])
    joint = raked(np.array([[1.0, 1e-310], [0.0, 5e-324]]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(joint.sum(axis=1), 0.5, atol=0.02)
    parts = {
        (0,): np.array([1.0, 5e-324]),
        (1,): np.array([5e-324, 1.0]),
        (0, 1): np.array([[0, 1.0], [0, 0]]),
    }
    np.testing.assert_allclose(maximum_entropy(parts, (0, 1), (2, 2)), parts[0, 1], atol=1e-9)


@pytest.mark.parametrize("power", [400, -400])
def test_arithmetic_that_leaves_float64_is_an_error_with_a_name(power):
    with (
        pytest.raises(InternalError, match="a test has left the numbers of float64"),
        sound("a test"),
    ):
        _ = (10.0 ** np.array([300.0]) * 10.0 ** np.array([float(power)])) / np.array([0.0])
