"""Rows of a copula over attributes of two codes: one latent column each."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.copula import fit_copula
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.rows.sample import copula
from dpsyn_sql.rows.sample.copula import _second_wins, copula_rows


@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_the_second_code_wins_as_often_as_it_should(rows, share, seed):
    latent, wanted = np.random.default_rng(seed).standard_normal(rows).astype(np.float32), round(share * rows)
    wins = _second_wins(latent.copy(), wanted)
    assert wins.sum() == wanted
    changed = wins != (latent > 0)
    assert np.all(wins[changed] == wins[changed][:1])  # all changes go one way


def binary_tables(codes):
    width = codes.shape[1]
    for number in (1, 2):
        for axes in combinations(range(width), number):
            counts = np.zeros((2,) * number, dtype=np.int64)
            np.add.at(counts, tuple(codes[:, axes].T), 1)
            yield NoisyMarginal(tuple(f"x{axis}" for axis in axes), counts, 0.0)


@pytest.mark.parametrize("batch", [1000, 32768])
def test_pairs_and_one_ways_follow_the_data_in_every_batch(monkeypatch, batch):
    monkeypatch.setattr(copula, "BATCH_ROWS", batch)
    rng = np.random.default_rng(3)
    factor = rng.standard_normal((20_000, 1))
    codes = (factor + rng.standard_normal((20_000, 6)) > np.linspace(-1, 1.4, 6)).astype(np.int64)
    names = tuple(f"x{i}" for i in range(6))
    domain = Domain(tuple(Attribute(n, "INTEGER", "categorical", labels=(0, 1)) for n in names))
    fitted = fit_copula(domain, binary_tables(codes))
    assert fitted.factor.shape == (6, 6)
    batches = list(copula_rows(fitted).batches(20_000, seed=5))
    rows = np.concatenate(batches)
    assert rows.dtype == np.uint8 and [len(one) for one in batches] == [len(batches[0])] * len(batches)
    np.testing.assert_allclose(rows.sum(axis=0), codes.sum(axis=0), atol=1)
    np.testing.assert_array_equal(rows, np.concatenate(list(copula_rows(fitted).batches(20_000, seed=5))))
    for first, second in combinations(range(6), 2):
        both = np.mean(codes[:, first] & codes[:, second])
        apart = codes[:, first].mean() * codes[:, second].mean()
        assert both - apart > 0.03
        # A threshold passes on all of a correlation: nothing is strengthened.
        drawn = np.mean(rows[:, first] & rows[:, second])
        assert 0.85 * (both - apart) < drawn - apart < 1.15 * (both - apart)
