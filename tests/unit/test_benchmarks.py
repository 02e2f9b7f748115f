"""The scorer that benchmarks hold every synthesizer against."""

import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
comparison = pytest.importorskip("comparison", reason="the benchmarks are not beside the tests")


def test_distances_of_a_table_to_itself_to_a_shuffled_and_to_a_disjoint_one():
    rng = np.random.default_rng(1)
    source = np.repeat(rng.integers(0, 3, (50_000, 1)), 4, axis=1)
    shuffled = np.stack([rng.permutation(column) for column in source.T], axis=1)
    sizes = [6] * 4
    assert comparison.mean_distances(source, source, sizes) == (0, 0)
    assert comparison.mean_distances(source, source + 3, sizes) == (1, 1)
    # On the diagonal lies 1/3 in place of 1, then 1/9.
    assert comparison.mean_distances(source, shuffled, sizes) == pytest.approx((2 / 3, 8 / 9), abs=0.02)


def test_codes_of_two_tables_follow_one_rule():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE a AS FROM (VALUES (1, 0.0, 'x'), (0, 100.0, NULL)) t(code, number, word)")
        con.execute(
            "CREATE TABLE b AS "
            "FROM (VALUES (2, NULL, 'y'), (1, 49.9, 'x'), (1, 1e9, 'x')) t(code, number, word)"
        )
        columns = {"word": None, "number": (0, 100), "code": 3}
        (a, b), sizes = comparison.codes_of(con, ("a", "b"), columns)
    assert sizes == [3, comparison.EQUAL_BINS + 1, 3]
    assert a[:, 1].tolist() == [0, 19] and b[:, 1].tolist() == [20, 9, 19]
    assert a[:, 2].tolist() == [1, 0] and b[:, 2].tolist() == [2, 1, 1]
    words = np.concatenate([a[:, 0], b[:, 0]]).tolist()
    assert words[0] == words[3] == words[4] and len({*words}) == 3


def test_the_same_sets_of_attributes_are_chosen_every_time_and_none_comes_twice():
    assert comparison.chosen(4, 3) == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    for attributes, ways in ((14, 3), (128, 6)):  # few enough to list, and too many
        sets = comparison.chosen(attributes, ways, 200)
        assert sets == comparison.chosen(attributes, ways, 200)
        assert len({*sets}) == 200 and all(len({*one}) == ways and [*one] == sorted(one) for one in sets)


def test_squared_error_is_of_shares():
    rows = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    assert comparison.shares(rows, [2, 2], (0, 1)).tolist() == [0.25, 0.25, 0, 0.5]
    true = comparison.shares(rows, [2, 2], (1,))
    assert comparison.squared_error(true, np.array([0.5, 0.5])) == pytest.approx(2 * 0.25**2)
