"""The law of a target given all other attributes: against brute force, and against noise alone."""

from itertools import product

import numpy as np
import pytest

from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.conditional import Cells, Conditional, Evidence, Twin, corrected
from dpsyn_sql.fit.graph import junction_tree

SIZES = (3, 2, 4, 3)


def beliefs_of(sizes, scopes, seed=1, fixed=()):
    rng = np.random.default_rng(seed)
    potentials = {scope: rng.normal(0, 1, [sizes[v] for v in scope]) for scope in scopes}
    potentials |= dict(fixed)
    return calibrate(junction_tree(sizes, [*potentials]), potentials), potentials


def every_row(sizes):
    rows = np.array(list(product(*(range(size) for size in sizes))))
    return {place: rows[:, place] for place in range(len(sizes))}


def joint_of(sizes, potentials):
    """The table of a model over all of its variables, by brute force."""
    logs = np.zeros(sizes)
    for scope, table in potentials.items():
        shape = [sizes[v] if v in scope else 1 for v in range(len(sizes))]
        logs = logs + table.reshape(shape)
    found = np.exp(logs)
    return found / found.sum()


@pytest.mark.parametrize("target", range(4))
def test_without_corrections_it_is_the_law_of_the_graphical_model(target):
    beliefs, potentials = beliefs_of(SIZES, [(0, 1, 2), (2, 3), (1, 3)])
    joint = np.moveaxis(joint_of(SIZES, potentials), target, -1)
    law = joint / joint.sum(axis=-1, keepdims=True)
    columns = every_row(SIZES)
    own = tuple(columns[place] for place in range(4) if place != target)
    assert Conditional(beliefs, {}, target).given(columns) == pytest.approx(law[own], abs=1e-9)


@pytest.mark.parametrize("target", [0, 1])
def test_coarse_twins_follow_their_attribute(target):
    sizes, bins = (4, 3, 2), np.array([0, 0, 1, 1])  # the last is the twin of the first
    link = {(0, 2): np.where(bins[:, None] == np.arange(2), 0.0, -1e3)}
    beliefs, potentials = beliefs_of(sizes, [(0,), (1, 2)], fixed=link.items())
    joint = np.moveaxis(joint_of(sizes, potentials).sum(axis=2), target, -1)
    law = joint / joint.sum(axis=-1, keepdims=True)
    columns = every_row(sizes[:2])
    found = Conditional(beliefs, {2: Twin(0, bins)}, target).given(columns)
    assert found == pytest.approx(law[columns[1 - target]], abs=1e-9)


def parity(flipped=0.1, rows=40_000, sigma=0.0, seed=1):
    """Two fair bits and one more, and their parity: the columns, and the table of the first two with it."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (rows, 3))
    parity = (bits[:, 0] + bits[:, 1] + (rng.random(rows) < flipped)) % 2
    counts = np.zeros((4, 2))
    np.add.at(counts, (2 * bits[:, 0] + bits[:, 1], parity), 1)
    columns = {place: bits[:, place] for place in range(3)}
    return {**columns, 3: parity}, counts + rng.normal(0, sigma, counts.shape)


def pair_cells(first, second):
    same = np.arange(2)
    return Cells((first, second), (same, same), same)


def independent():
    beliefs, _ = beliefs_of((2,) * 4, [], fixed={(v,): np.zeros(2) for v in range(4)}.items())
    return Conditional(beliefs, {}, 3)


def test_a_parity_that_no_pair_shows_is_learnt_from_its_table():
    columns, counts = parity(sigma=20.0)
    found = corrected(independent(), columns, 40_000.0, [], [Evidence(pair_cells(0, 1), counts, 20.0)])
    law = found.given(every_row((2, 2, 2, 1)))
    truth = np.array([0.1 if (a + b) % 2 == 0 else 0.9 for a, b, _ in product(range(2), repeat=3)])
    assert law[:, 1] == pytest.approx(truth, abs=0.02)


def test_one_bin_more_of_the_target_than_of_its_tables_keeps_their_shares():
    """A target of three bins, of which the table knows two: the model divides the second."""
    rng = np.random.default_rng(3)
    beliefs, potentials = beliefs_of((2, 2, 3), [(2,)], fixed={(v,): np.zeros(2) for v in range(2)}.items())
    columns = {place: rng.integers(0, 2, 20_000) for place in range(2)}
    counts = np.array([[4000.0, 1000.0], [1000.0, 4000.0], [1000.0, 4000.0], [4000.0, 1000.0]])
    cells = Cells((0, 1), (np.arange(2), np.arange(2)), np.array([0, 1, 1]))
    start = Conditional(beliefs, {}, 2)
    law = corrected(start, columns, 20_000.0, [], [Evidence(cells, counts, 5.0)]).given(columns)
    own = np.exp(potentials[2,])
    assert law[:, 1] / law[:, 2] == pytest.approx(own[1] / own[2])
    alike = columns[0] == columns[1]
    assert law[alike, 0].mean() == pytest.approx(0.8, abs=0.02)
    assert law[~alike, 0].mean() == pytest.approx(0.2, abs=0.02)


def test_what_noise_alone_would_show_changes_nothing():
    changed = 0
    for seed in range(20):
        columns, _ = parity(flipped=0.5, seed=seed)
        rng = np.random.default_rng(seed)
        tried = [
            Evidence(pair_cells(*pair), 5_000 + rng.normal(0, 400.0, (4, 2)), 400.0)
            for pair in [(0, 1), (0, 2), (1, 2)]
        ]
        changed += bool(corrected(independent(), columns, 40_000.0, [], tried).corrections)
    assert changed <= 4


def test_pairs_that_are_kept_stay_while_a_table_changes_the_law():
    """The noise of the table says that the first bit alone moves the target, which its pair denies."""
    columns, counts = parity()
    skewed = counts + np.array([[900.0, -900.0], [900.0, -900.0], [-900.0, 900.0], [-900.0, 900.0]])
    even = np.full((2, 2), 10_000.0)
    same = np.arange(2)
    kept = [Evidence(Cells((bit,), (same,), same), even, 20.0) for bit in range(3)]
    found = corrected(independent(), columns, 40_000.0, kept, [Evidence(pair_cells(0, 1), skewed, 500.0)])
    law = found.given(columns)[:, 1]
    assert law[columns[0] == 1].mean() == pytest.approx(0.5, abs=0.02)
    assert law[columns[0] != columns[1]].mean() > 0.8


def test_a_stop_ends_the_fit_with_a_law():
    columns, counts = parity()
    evidence = [Evidence(pair_cells(0, 1), counts, 20.0)]
    law = corrected(independent(), columns, 40_000.0, [], evidence, stop=lambda: True).given(columns)
    assert np.isfinite(law).all() and law.sum(axis=1) == pytest.approx(1.0)
