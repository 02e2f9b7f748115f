"""What is said of the time left, and when nothing is."""

import itertools

import numpy as np
import pytest

from dpsyn_sql.report.progress_bar import Pace, duration


def after(durations, total, amount=1):
    """The pace after steps that took so long, and the moment."""
    pace, now = Pace(100.0, total), 100.0
    for one in durations:
        now += one
        pace.advance(amount, now)
    return pace, now


def test_even_steps_tell_exactly_what_is_left_and_it_counts_down():
    pace, now = after([2.0] * 10, 40)
    assert pace.left(now) == pytest.approx(60)
    assert pace.left(now + 1.5) == pytest.approx(58.5)
    assert after([2.0] * 10, 4000, 100)[0].left(now) == pytest.approx(60)


@pytest.mark.parametrize(
    ("durations", "total"),
    [
        ([], 10),
        ([5.0, 5.0], 10),  # two steps are a few too few
        ([0.1] * 5, 10),  # half a second
        ([2.0] * 5, None),
        ([2.0] * 10, 10),  # all done
        ([2.0] * 11, 10),  # more than all
        ([0.01] * 5 + [60.0] * 2, 20),  # the first steps were of another kind
        ([60.0] * 2 + [0.01] * 8, 20),
    ],
)
def test_nothing_is_said_where_it_means_nothing(durations, total):
    pace, now = after(durations, total)
    assert pace.left(now) is None and pace.words(now) == ""


def test_nothing_is_said_once_a_step_takes_much_longer_than_those_before():
    pace, now = after([1.0] * 5, 100)
    assert pace.left(now + 3.4) is not None and pace.left(now + 3.6) is None
    pace.advance(1, now + 60)
    assert pace.left(now + 60) is None


def test_steps_of_nothing_change_nothing():
    pace, now = after([1.0] * 5, 100)
    before = pace.left(now)
    pace.advance(0, now)
    assert pace.left(now) == before


def test_slices_that_are_read_slowly_and_counted_fast_are_alike():
    """Of each slice the first group takes long, and the others little: whole slices tell the pace."""
    slices, groups, reading, counting = 40, 30, 5.0, 0.1
    pace, now, said = Pace(0.0, slices * groups), 0.0, []
    for _ in range(slices - 1):
        said.append(pace.left(now + reading - 0.01))  # while the next slice is read
        now += reading
        for _ in range(groups):
            now += counting
            pace.advance(1, now)
        said.append(pace.left(now))
    whole = slices * (reading + counting * groups)
    assert said[:2] == [None, None] and None not in said[3:]
    assert said[-1] == pytest.approx(whole - now, rel=0.01)
    assert said[5] == pytest.approx(whole - 3 * (reading + counting * groups), rel=0.05)


def test_many_reports_are_kept_in_little_memory():
    pace, now = after([0.01] * 100_000, 200_000)
    assert pace.left(now) == pytest.approx(1000) and len(pace._marks) <= 256


@pytest.mark.parametrize("seed", range(5))
def test_it_never_counts_up_wildly(seed):
    """With uneven steps what is said of the end moves by less than half of what is left from step to step, and by less than a tenth after
    a few of them."""
    rng = np.random.default_rng(seed)
    pace, now, ends = Pace(0.0, 200), 0.0, []
    for place in range(200):
        now += float(rng.uniform(0.5, 1.5))
        pace.advance(1, now)
        if (left := pace.left(now)) is not None:
            ends.append((place, left, now + left))
    assert len(ends) > 150
    for (_, left, end), (place, _, later) in itertools.pairwise(ends):
        assert abs(later - end) <= (0.1 if place > 10 else 0.5) * max(left, 10)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "5 s"),
        (8, "10 s"),
        (24, "25 s"),
        (38, "40 s"),
        (54.9, "50 s"),
        (55, "1 min"),
        (179, "3 min"),
        (3569, "59 min"),
        (3571, "1 h"),
        (7900, "2 h 10 min"),
        (36000, "10 h"),
    ],
)
def test_durations_are_as_coarse_as_guesses(seconds, words):
    assert duration(seconds) == words


def test_a_phase_that_may_end_early_says_at_most():
    pace = Pace(0.0, 40, at_most=True)
    for step in range(1, 11):
        pace.advance(1, 6.0 * step)
    assert pace.words(60.0) == "at most 3 min"
