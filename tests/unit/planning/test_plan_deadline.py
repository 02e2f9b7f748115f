"""The clock of what comes after the last question."""

import math

from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_without_a_limit_nothing_is_cut():
    with NO_DEADLINE.running(), NO_DEADLINE.running():
        assert NO_DEADLINE.left == math.inf
        assert not NO_DEADLINE.over(0.0, "x") and not NO_DEADLINE.forbids(1e9, "y")
    assert NO_DEADLINE.cuts == []


def test_only_time_inside_counts():
    clock = Clock()
    deadline = Deadline(10, clock)
    clock.now = 150.0
    assert deadline.left == 10 and not deadline.over(0.5, "early")
    with deadline.running():
        clock.now = 154.0
        assert deadline.left == 6 and not deadline.over(0.5, "fit")
    clock.now = 1000.0  # closing the source
    assert deadline.left == 6
    assert deadline.forbids(6.5, "balance") and not deadline.forbids(5.5, "sample")
    with deadline.running():
        clock.now = 1001.0
        assert deadline.over(0.5, "fit") and deadline.over(0.5, "fit")
    assert deadline.cuts == ["balance", "fit"]
