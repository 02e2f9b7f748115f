"""Coordinates of a fit: linear, what they say of gradients, and the curvature they level."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.fit.belief import calibrate, marginals
from dpsyn_sql.fit.estimate import Coordinates, Likelihood, Observation, fit_potentials
from dpsyn_sql.fit.graph import junction_tree

SCOPES = st.lists(
    st.sets(st.integers(0, 4), min_size=1, max_size=3).map(lambda scope: tuple(sorted(scope))),
    min_size=1,
    max_size=6,
    unique=True,
)
SIZES = (3, 2, 4, 1, 2)


def coordinates_of(scopes, rng):
    shapes = [tuple(SIZES[v] for v in scope) for scope in scopes]
    cells = sum(int(np.prod(shape)) for shape in shapes)
    values = rng.normal(20, 30, cells)
    return Coordinates(scopes, shapes, values, rng.uniform(0.5, 3, cells), 100.0), cells


@given(scopes=SCOPES, seed=st.integers(0, 99))
def test_gradients_go_with_points(scopes, seed):
    """<g, C z> = <C^T g, z>, and both ways lead back."""
    rng = np.random.default_rng(seed)
    coordinates, cells = coordinates_of(scopes, rng)
    flat, gradient = rng.normal(size=(2, cells))
    np.testing.assert_allclose(coordinates.flat(coordinates.point(flat)), flat)
    np.testing.assert_allclose(coordinates.of_cells(coordinates.gradient(gradient)), gradient)
    point = rng.normal(size=coordinates.point(flat).size)
    assert gradient @ coordinates.flat(point) == pytest.approx(coordinates.gradient(gradient) @ point)


def shared_configurations(scopes):
    """Indicators over all cells, a column for every table, and for every configuration of a scope in it that
    others hold too."""
    parts = {
        part
        for scope in scopes
        for number in range(len(scope) + 1)
        for part in combinations(scope, number)
        if not part or sum(set(part) <= set(other) for other in scopes) > 1
    }
    columns = []
    for place, part in product(range(len(scopes)), parts):
        if not set(part) <= set(scopes[place]):
            continue
        for values in product(*(range(SIZES[v]) for v in part)):
            held = dict(zip(part, values, strict=True))
            columns.append(
                [
                    float(other == place and held.items() <= dict(zip(scope, cell, strict=True)).items())
                    for other, scope in enumerate(scopes)
                    for cell in product(*(range(SIZES[v]) for v in scope))
                ]
            )
    return np.array(columns).T


@given(scopes=SCOPES, seed=st.integers(0, 99))
def test_shifts_reach_every_configuration_that_tables_share(scopes, seed):
    coordinates, cells = coordinates_of(scopes, np.random.default_rng(seed))
    expected = shared_configurations(scopes)
    number = coordinates.point(np.zeros(cells)).size - cells
    assert number == expected.shape[1]
    points = np.eye(cells + number)[cells:]
    found = np.array([coordinates.flat(point) for point in points]).T
    rank = np.linalg.matrix_rank(expected)
    assert np.linalg.matrix_rank(found) == rank
    assert np.linalg.matrix_rank(np.hstack([found, expected])) == rank


def star(tables, noise, rng):
    """Tables (0, i) and the marginals of attributes, of counts that are independent but for ``noise``."""
    sizes = (4, *[3] * tables)
    parts = [rng.dirichlet(np.full(size, 3.0)) for size in sizes]
    scopes = [(v,) for v in range(len(sizes))] + [(0, v) for v in range(1, len(sizes))]
    sigmas = dict(zip(scopes, rng.uniform(2, 9, len(scopes)), strict=True))
    observed = {}
    for scope in scopes:
        exact = 1000 * (parts[scope[0]] if len(scope) == 1 else np.outer(parts[scope[0]], parts[scope[1]]))
        drawn = exact + noise * sigmas[scope] * rng.normal(size=exact.shape)
        observed[scope] = Observation(drawn, np.asarray(sigmas[scope]))
    base = {(v,): np.log(part) for v, part in enumerate(parts)}
    return Likelihood(junction_tree(sizes, scopes), observed, 1000.0, base)


def dependent(total):
    """Counts of a model that is far from independent, at which the objective is looked at."""
    rng, sizes = np.random.default_rng(3), (3, 2, 2, 4)
    scopes = [(0,), (1,), (0, 1), (2, 3), (0, 1, 2), (0, 1, 3)]
    base = {(0, 1, 2): rng.normal(0, 1.5, (3, 2, 2)), (0, 1, 3): rng.normal(0, 1.5, (3, 2, 4))}
    tree = junction_tree(sizes, scopes)
    expected = marginals(calibrate(tree, base), scopes)
    observed = {
        scope: Observation(total * expected[scope], np.asarray(rng.uniform(1, 6))) for scope in scopes
    }
    return Likelihood(tree, observed, total, base)


@pytest.mark.parametrize("likelihood", [star(4, 0.0, np.random.default_rng(1)), dependent(1000.0)])
def test_shifts_of_one_group_have_the_identity_for_their_hessian(likelihood):
    """Against second differences of the objective itself."""
    coordinates, flat = likelihood.coordinates(), likelihood.flat({})
    tables = len(likelihood.potentials(flat))
    groups = {}
    for shift in range(coordinates.point(flat).size - flat.size):
        point = coordinates.point(flat)
        point[flat.size + shift] = 1.0
        direction = coordinates.flat(point)
        moved = [table for table in likelihood.potentials(direction).values() if table.any()]
        # A shift of one whole table no model sees; those of another group all move the same cells.
        whole = len(moved) == 1 and moved[0].all()
        group = () if whole else tuple(np.flatnonzero(direction))
        groups.setdefault(group, []).append(direction)
    assert len(groups[()]) == tables
    assert all(len(directions) > 1 for directions in groups.values())
    step = 1e-4
    for directions in groups.values():
        for first, one in enumerate(directions):
            ahead, behind = (likelihood(flat + sign * step * one)[1] for sign in (1, -1))
            for second, other in enumerate(directions):
                curvature = 1000 * (ahead - behind) @ other / (2 * step)
                assert curvature == pytest.approx(float(first == second), abs=1e-4)


@pytest.mark.parametrize("sigma", [1e-3, 1e-7, 1e-24])
def test_tables_next_to_without_noise_are_met(sigma):
    """A large epsilon and Laplace noise; their values are on a grid."""
    joint = 1000 * np.random.default_rng(4).dirichlet(np.full(24, 0.5)).reshape(3, 4, 2)
    observed = {}
    for scope in ((0,), (1,), (0, 1), (0, 2), (1, 2)):
        exact = joint.sum(axis=tuple(v for v in range(3) if v not in scope))
        observed[scope] = Observation(np.rint(exact * 1024) / 1024, np.asarray(sigma))
    fit = fit_potentials(Likelihood(junction_tree((3, 4, 2), observed), observed, 1000.0, {}), {}, 200)
    for scope, table in marginals(fit.beliefs, observed).items():
        np.testing.assert_allclose(1000 * table, observed[scope].values, atol=0.5)


def steps_of(tables):
    likelihood = star(tables, 1.0, np.random.default_rng(2))
    steps = []
    fit = fit_potentials(likelihood, {}, 500, 0.05, advance=steps.append)
    assert fit.misfit <= 0.05
    return len(steps)


def test_many_tables_of_one_attribute_take_less_than_half_the_steps(monkeypatch):
    with_shifts = steps_of(20)

    monkeypatch.setattr("dpsyn_sql.fit.estimate._within", lambda scope: [()])
    assert steps_of(20) > 2 * with_shifts
