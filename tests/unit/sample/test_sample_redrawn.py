"""Rows whose target is drawn given their other columns."""

import numpy as np
import pytest

from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.conditional import Cells, Conditional
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.rows.sample.graphical import TreeRows, drawn_evenly, raked, with_target


def test_raked_probabilities_have_the_wanted_means():
    given = np.random.default_rng(1).dirichlet([1, 2, 3], 5_000)
    wanted = np.array([0.2, 0.5, 0.3])
    assert raked(given, wanted).mean(axis=0) == pytest.approx(wanted, abs=1e-3)
    assert raked(given, wanted).sum(axis=1) == pytest.approx(1.0)


def test_a_bin_that_no_row_can_have_is_drawn_nowhere():
    given = np.tile([0.0, 1.0], (100, 1))
    assert raked(given, np.array([0.5, 0.5])) == pytest.approx(given)


def test_every_bin_has_its_expected_number_of_rows_also_among_likely_ones():
    rng = np.random.default_rng(2)
    share = rng.random(20_000)
    drawn = drawn_evenly(np.stack([1 - share, share], axis=1), rng)
    assert drawn.sum() == pytest.approx(share.sum(), abs=20)
    likely = share > 0.9
    assert drawn[likely].sum() == pytest.approx(share[likely].sum(), abs=10)


def sampler():
    """Four codes in two bins beside a target of three codes in two bins, which is the bin of the other."""
    sizes = (2, 2)
    tree = junction_tree(sizes, [(0,), (1,)])
    beliefs = calibrate(tree, {(0,): np.log([0.5, 0.5]), (1,): np.log([0.5, 0.5])})
    bins = (np.array([0, 0, 1, 1]), np.array([0, 1, 1]))
    within = (np.full(4, 0.5), np.array([1.0, 0.25, 0.75]))
    cells = Cells((0,), (np.arange(2),), np.arange(2))
    law = Conditional(beliefs, {}, 1, ((cells, np.array([[9.0, -9.0], [-9.0, 9.0]])),))
    rows = TreeRows(beliefs, bins, within)
    return rows.sampler(), with_target(rows, law, np.array([0.5, 0.5]))


def test_only_the_target_is_drawn_anew_and_its_codes_keep_their_share_of_a_bin():
    rows, redrawn = sampler()
    before, after = (np.concatenate([*own.batches(4_000, 7)]) for own in (rows, redrawn))
    assert before.dtype == after.dtype
    assert np.array_equal(before[:, 0], after[:, 0])
    assert np.array_equal(after[:, 1] > 0, after[:, 0] > 1)
    assert (after[:, 1] == 1).sum() == pytest.approx(500, abs=2)


def test_a_seed_means_the_same_rows():
    redrawn = sampler()[1]
    first, again, other = (np.concatenate([*redrawn.batches(100, seed)]) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert not [*redrawn.batches(0, 1)]
