"""Time of phases by themselves: what is inside a phase is not counted twice, and all adds up."""

import time

import pytest

from dpsyn_sql.common.progress import (
    OTHER,
    Stopwatch,
    bar_is_free,
    lines_of,
    listening,
    phase,
    stopwatch,
    without_bar,
)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def watched(clock):
    return Stopwatch(clock, lambda: 2 * clock.now)


def test_nested_phases_add_up_to_the_whole(clock):
    watch = watched(clock)
    with listening(watch):
        clock.now += 1
        with phase("discover", 3) as found:
            clock.now += 2
            found(1)
            with phase("count"):
                clock.now += 4
                with phase("encode"):
                    clock.now += 8
                clock.now += 16
            clock.now += 32
            found(2)
        clock.now += 64
        with phase("count"):
            clock.now += 128
        clock.now += 256
    spent = watch.spent()
    assert spent == {
        "discover": (34, 68), "count": (148, 296), "encode": (8, 16), OTHER: (321, 642),
    }  # fmt: skip
    assert sum(seconds for seconds, _ in spent.values()) == clock.now
    assert [(one.phase, one.times, one.done) for one in watch.timings()] == [
        ("discover domains", 1, "3 columns"),
        ("count marginals", 2, ""),
        ("encode the source", 1, ""),
        ("other", 1, ""),
    ]


def test_a_phase_inside_one_of_the_same_name(clock):
    watch = watched(clock)
    with listening(watch), phase("fit"):
        clock.now += 1
        with phase("fit", 5) as advance:
            clock.now += 2
            advance(5)
        clock.now += 4
    clock.now += 8
    assert watch.spent() == {"fit": (7, 14), OTHER: (8, 16)}
    assert watch.timings()[0][1:] == (2, 7, 14, "5 steps")


def test_steps_that_follow_the_rows_of_the_source_are_not_told(clock):
    watch = watched(clock)
    with listening(watch):
        for name in ("count", "encode"):
            with phase(name, 1000) as advance:
                advance(777)
    assert all(one.done == "" for one in watch.timings())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_a_failure_ends_the_phases_that_it_passes(clock, error):
    watch = watched(clock)
    with listening(watch):
        with pytest.raises(error), phase("discover"), phase("noise"):
            clock.now += 3
            raise error
        clock.now += 5
    assert watch.spent() == {"discover": (0, 0), "noise": (3, 6), OTHER: (5, 10)}


def test_phases_that_end_in_another_order_are_still_counted_once(clock):
    watch = watched(clock)
    watch.begin("a", None)
    watch.begin("b", None)
    clock.now += 1
    watch.end("a")
    clock.now += 2
    watch.end("b")
    watch.end("b")  # never begun again
    clock.now += 4
    assert watch.spent() == {"a": (0, 0), "b": (3, 6), OTHER: (4, 8)}


def test_what_runs_is_told_up_to_now(clock):
    watch = watched(clock)
    watch.begin("count", None)
    clock.now += 5
    assert watch.seconds("count") == 5 and watch.seconds("fit") == 0
    watch.begin("noise", None)
    clock.now += 2
    assert watch.seconds("count") == 5 and watch.seconds("noise") == 2
    assert watch.spent()["noise"] == (2, 4)  # asking changes nothing
    clock.now += 1
    assert watch.spent()["noise"] == (3, 6)


class Ear:
    def __init__(self, breaks=()):
        self.heard, self.breaks = [], breaks

    def begin(self, name, total):
        if name in self.breaks:
            raise RuntimeError("broken")
        self.heard.append(("begin", name, total))

    def advance(self, name, amount):
        self.heard.append(("advance", name, amount))

    def end(self, name):
        self.heard.append(("end", name))


def test_several_listeners_hear_the_same_while_they_listen():
    outer, inner = Ear(), Ear()
    with listening(outer):
        with phase("a", 2) as advance:
            advance(1)
        with listening(inner), phase("b"):
            pass
        with phase("c"):
            pass
    with phase("d"):
        pass
    assert outer.heard == [
        ("begin", "a", 2), ("advance", "a", 1), ("end", "a"),
        ("begin", "b", None), ("end", "b"), ("begin", "c", None), ("end", "c"),
    ]  # fmt: skip
    assert inner.heard == [("begin", "b", None), ("end", "b")]


def test_a_listener_that_fails_leaves_no_phase_running_with_the_others():
    ear = Ear()
    with listening(ear), listening(Ear(breaks=("a",))), pytest.raises(RuntimeError), phase("a"):
        raise AssertionError("nothing runs")
    assert ear.heard == [("begin", "a", None), ("end", "a")]


def test_a_bar_is_free_unless_somebody_takes_it():
    with stopwatch():
        assert bar_is_free()
        with without_bar():
            assert not bar_is_free()
        assert bar_is_free()


def test_real_clocks_tell_seconds_and_work():
    with stopwatch() as watch:
        with phase("count"):
            time.sleep(0.05)
        with phase("fit"):
            ends = time.process_time() + 0.05
            while time.process_time() < ends:
                pass
    spent = watch.spent()
    assert spent["count"][0] >= 0.05 > spent["count"][1]
    assert spent["fit"][1] >= 0.05


def test_lines_for_people_end_with_the_sum(clock):
    watch = watched(clock)
    with listening(watch), phase("sample", 9) as advance:
        clock.now += 12.34
        advance(1234)
    clock.now += 1
    assert lines_of(watch.timings()) == [
        ("sample rows", "1", "12.3", "24.7", "1,234 rows"),
        ("other", "", "1.0", "2.0", ""),
        ("total", "", "13.3", "26.7", ""),
    ]
