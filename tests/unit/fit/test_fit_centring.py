"""Rows taken in turns and centred counts, against one row at a time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.fit.centres import _turns, centred, group_sums, take_rows_in_turns

groups_of_counts = st.lists(st.lists(st.integers(-9, 30), min_size=1, max_size=6), min_size=1, max_size=5)


def flat(parts):
    groups = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return np.array([count for part in parts for count in part], dtype=np.int64), groups


def in_turn(places):
    """The places of a group in their turns, without end."""
    while True:
        yield from places


def by_definition(parts, totals, groups):
    """Figure 4, one row at a time."""
    turns, found = _turns(groups), []
    for group, (part, total) in enumerate(zip(parts, totals, strict=True)):
        counts = [max(0, count) for count in part]
        step = 1 if total > sum(counts) else -1
        places = in_turn(np.argsort(turns[groups == group]).tolist())
        while sum(counts) != total:
            place = next(places)
            counts[place] = max(0, counts[place] + step)
        found += counts
    return found


@settings(max_examples=200)
@given(groups_of_counts, st.data())
def test_centred_counts_are_those_of_one_row_at_a_time(parts, data):
    counts, groups = flat(parts)
    totals = data.draw(st.lists(st.integers(0, 90), min_size=len(parts), max_size=len(parts)))
    found = centred(counts, groups, np.array(totals))
    assert found.dtype == np.int64 and found.min() >= 0
    assert group_sums(found, groups).tolist() == totals
    assert found.tolist() == by_definition(parts, totals, groups)


@settings(max_examples=200)
@given(groups_of_counts, st.data())
def test_rows_taken_in_turns(parts, data):
    counts, groups = flat([[max(0, count) for count in part] for part in parts])
    number = np.array(data.draw(st.lists(st.integers(0, 99), min_size=len(parts), max_size=len(parts))))
    totals = np.maximum(group_sums(counts, groups) - number, 0)
    left = take_rows_in_turns(counts, groups, number)
    assert left.tolist() == by_definition(parts, totals.tolist(), groups)


def test_counts_of_any_size():
    noisy, groups = np.array([2**60, -(2**60), 2**60, 6]), np.array([0, 0, 1, 1])
    assert centred(noisy, groups, np.array([7, 2**60])).tolist() == [7, 0, 2**60 - 3, 3]
    assert centred(noisy[:0], groups[:0], noisy[:0]).tolist() == []


def test_the_first_child_is_not_favoured():
    """Of four empty children one gets the only row: each of them about equally often."""
    groups = np.repeat(np.arange(4000), 4)
    found = centred(np.zeros(16_000, dtype=np.int64), groups, np.ones(4000, dtype=np.int64))
    received = found.reshape(-1, 4).sum(axis=0)
    assert received.sum() == 4000 and abs(received - 1000).max() < 120
