"""Walks from noisy tables: what they agree with, what noise leaves of them, where first rows lie."""

import numpy as np
import pytest

from dpsyn_sql.fit.gaussian import ahead, first_moments
from dpsyn_sql.fit.walks import (
    FIRST,
    LAST,
    MIDDLE,
    ONLY,
    Seen,
    alike,
    fitted_walks,
    masses,
    pulled,
    raked,
    rings,
)

PLACES = 6
ROWS = np.array([1.0, 5.0])
"""Units of a stratum have so many rows each."""

PEOPLE = np.array([400.0, 600.0])


def chain(rng):
    """Steps (6, 6) with a strong stay, and the shares of starts."""
    steps = rng.dirichlet(np.full(PLACES, 0.4), PLACES) + 0.8 * np.eye(PLACES)
    return steps / steps.sum(axis=1, keepdims=True), rng.dirichlet(np.full(PLACES, 2.0))


def seen_of(steps, start, sigma=0.0, classes=None, rng=None):
    """The tables of units of one row, and of units of five that walk; with noise."""
    flows, pairs = np.zeros((2, 4, PLACES)), np.zeros((PLACES, PLACES))
    flows[0, ONLY] = PEOPLE[0] * start
    at = start
    for rank in range(5):
        kind = FIRST if rank == 0 else LAST if rank == 4 else MIDDLE
        flows[1, kind] += PEOPLE[1] / 5 * at
        if rank < 4:
            pairs += PEOPLE[1] / 5 * at[:, None] * steps
            at = at @ steps
    tables = [flows.sum(axis=(0, 1)), flows, pairs]
    if rng is not None:
        tables = [table + rng.normal(0, sigma, table.shape) for table in tables]
    known = np.stack([masses(PEOPLE[[s]], ROWS[[s]]) for s in range(2)])
    none = np.zeros(PLACES, np.int64) if classes is None else classes
    return Seen(*((table, sigma) for table in tables), None, known, rings(None, PLACES), none)


def test_a_planted_chain_is_found_without_noise():
    steps, start = chain(np.random.default_rng(1))
    found = fitted_walks(seen_of(steps, start, 1e-6, rng=np.random.default_rng(2)))
    np.testing.assert_allclose(found.steps[1], steps, atol=2e-3)
    np.testing.assert_allclose(found.starts, np.stack([start, start]), atol=2e-3)
    np.testing.assert_allclose(found.steps.sum(axis=2), 1)


def test_noise_is_pulled_towards_what_is_expected():
    steps, start = chain(np.random.default_rng(1))
    exact, errors = seen_of(steps, start).steps[0], []
    for seed in range(20):
        noisy = seen_of(steps, start, 20.0, rng=np.random.default_rng(seed))
        raw = np.maximum(noisy.steps[0], 0)
        found = exact.sum(axis=1, keepdims=True) * fitted_walks(noisy).steps[1]
        errors.append([np.abs(table / table.sum() - exact / exact.sum()).sum() for table in (found, raw)])
    fitted, clipped = np.mean(errors, axis=0)
    assert fitted < 0.9 * clipped


@pytest.mark.parametrize("fill", [0.0, -1e9, 1e12])
def test_any_answer_gives_walks(fill):
    seen = seen_of(*chain(np.random.default_rng(1)))
    tables = [(np.full_like(table, fill), 5.0) for table, _ in (seen.places, seen.flows, seen.steps)]
    found = fitted_walks(Seen(*tables, None, seen.masses, seen.rings, np.arange(PLACES) % 2))
    for table in (found.starts, found.steps):
        assert np.isfinite(table).all() and (table > 0).all()
        np.testing.assert_allclose(table.sum(axis=-1), 1)


def test_what_is_pulled_keeps_its_total_and_follows_a_table_as_far_as_it_stands_out():
    expected = np.full(100, 50.0)
    rng = np.random.default_rng(3)
    assert np.abs(pulled(expected + rng.normal(0, 5, 100), expected, 5.0) - 50).mean() < 2
    far = expected * np.exp(rng.normal(0, 1, 100))
    far *= expected.sum() / far.sum()
    found = pulled(far + rng.normal(0, 5, 100), expected, 5.0)
    assert np.abs(found - far).mean() < 6
    assert found.sum() == pytest.approx(5000) and (found >= 0).all()


def test_raked_tables_have_the_sums_and_the_odds_of_the_first():
    rows, columns = np.indices((3, 4))
    first = np.random.default_rng(4).random((3, 4)) + 0.1
    found = raked(first, [(rows, np.array([3.0, 4, 5])), (columns, np.array([2.0, 3, 3, 4]))])
    np.testing.assert_allclose(found.sum(axis=1), [3, 4, 5], rtol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), [2, 3, 3, 4], rtol=1e-6)

    def odds(table):
        return table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0])

    assert odds(found) == pytest.approx(odds(first), rel=1e-4)


def test_masses_are_weights_of_rows_by_place():
    # 10 units of one row, 20 of two, 30 of five: each unit counts one.
    np.testing.assert_allclose(masses(np.array([10.0, 20, 30]), np.array([1.0, 2, 5])), [10, 16, 18, 16])


def test_rings_grow_with_the_distance():
    found = rings(np.array([[0.0, 0], [0, 0.01], [0, 1], [0, 10]]), 4)
    assert (np.diag(found) == 0).all() and (found == found.T).all()
    assert 1 <= found[0, 1] < found[0, 2] < found[0, 3]
    assert (rings(None, 3) == 1 - np.eye(3)).all()


def test_alike_profiles_have_one_class():
    profiles = np.repeat(np.eye(3), [4, 5, 6], axis=0) + 0.01 * np.random.default_rng(1).random((15, 3))
    found = alike(profiles, np.ones(15), 3)
    assert len(np.unique(found)) == 3
    assert all(len(np.unique(found[own])) == 1 for own in (slice(0, 4), slice(4, 9), slice(9, 15)))
    assert (alike(np.ones((5, 2)), np.ones(5), 4) == 0).all()


def test_first_moments_put_all_rows_where_they_are():
    edges, spans = np.arange(0.0, 101, 5), np.array([0.0, 2, 4, 8, 16])
    lines, times = ahead(edges, spans), np.array([0.1, 0.2, 0.5, 0.2])
    step = np.zeros((20, 20))
    np.add.at(step, (lines.before, lines.after), lines.shares * times[lines.since])
    np.testing.assert_allclose(step.sum(axis=1), 1)
    assert (np.tril(step, -1) == 0).all()
    start = np.random.default_rng(5).dirichlet(np.ones(20)) * (np.arange(20) < 12)
    start /= start.sum()
    rows = np.mean([start @ np.linalg.matrix_power(step, rank) for rank in range(8)], axis=0)
    found = first_moments(lines, times, 8, rows)
    again = np.mean([found @ np.linalg.matrix_power(step, rank) for rank in range(8)], axis=0)
    assert np.abs(again - rows).sum() < 0.05 < np.abs(rows - start).sum()
    np.testing.assert_allclose(first_moments(lines, times, 1, rows), rows)
