"""Rows of one attribute with given counts."""

from __future__ import annotations

import numpy as np
import pytest

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.models.product import CountedModel
from dpsyn_sql.sample.quotas import BATCH_ROWS, CountedSampler
from dpsyn_sql.sample.sql_sampler import independent_rows


def drawn(rows: list[float], number: int, seed: int = 7) -> np.ndarray:
    return np.concatenate([np.zeros((0, 1), np.int64), *CountedSampler(np.array(rows)).batches(number, seed)])


def test_whole_counts_are_met_over_many_batches() -> None:
    rows = [BATCH_ROWS, 0, 17, 3 * BATCH_ROWS + 5, 1]
    codes = drawn(rows, int(sum(rows)))
    assert np.bincount(codes[:, 0], minlength=5).tolist() == rows
    batches = list(CountedSampler(np.array(rows, float)).batches(int(sum(rows)), 7))
    assert len(batches) > 4
    assert max(map(len, batches)) <= BATCH_ROWS
    share = [np.mean(batch == 3) for batch in batches]
    assert np.ptp(share) < 0.02  # every batch is a shuffled part of the whole


@pytest.mark.parametrize("number", [0, 1, 99, 1000])
def test_other_numbers_of_rows_are_in_proportion(number: int) -> None:
    counts = np.bincount(drawn([10.0, 30.0, 60.0], number)[:, 0], minlength=3)
    assert counts.sum() == number
    assert np.abs(counts - number * np.array([0.1, 0.3, 0.6])).max() < 1


def test_a_seed_means_the_same_rows() -> None:
    assert (drawn([5, 5], 10) == drawn([5, 5], 10)).all()
    assert (drawn([500, 500], 1000) != drawn([500, 500], 1000, 8)).any()


def test_no_rows_known_is_even() -> None:
    assert np.bincount(drawn([0, 0, 0], 30)[:, 0]).tolist() == [10, 10, 10]


def test_a_model_of_committed_counts_is_never_drawn_independently() -> None:
    domain = Domain((Attribute("a", "VARCHAR", "categorical", ("x", "y"), other=True),))
    rows = np.array([3.0, 5.0, 0.0])
    for exact in (False, True):
        model = CountedModel(domain, 8.0, rows, exact)
        assert model.project(["a"]).tolist() == pytest.approx(rows.tolist())
        assert model.supports(["a"]) and not model.supports(["b"])
        assert (independent_rows(model, 30_000_000) is None) == exact
    empty = CountedModel(domain, -4.0, np.zeros(3), False)
    assert empty.project(["a"]).tolist() == [0, 0, 0]
