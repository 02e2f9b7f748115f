"""What the progress bar shows of phases: steps, time, what is left and what is still to come."""

import io
import threading

import pytest
from rich.console import Console

from dpsyn_sql.common.progress import listening, phase
from dpsyn_sql.report.progress_bar import LAST_PHASES, Bars


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def looks(act, last=(), width=80):
    """What is seen each time that ``act(clock, look)`` looks."""
    clock, seen = Clock(), []
    bars = Bars(last, clock)

    def look():
        out = io.StringIO()
        Console(file=out, width=width, force_terminal=False).print(bars)
        seen.append(out.getvalue())

    with listening(bars):
        act(clock, look)
    return seen


def test_steps_time_and_what_is_left():
    def act(clock, look):
        with phase("count", 40) as advance:
            look()
            for _ in range(10):
                clock.now += 6
                advance(1)
            look()
            clock.now += 3
            look()

    first, then, later = looks(act)
    assert "count marginals" in first and "0 of 40" in first and "left" not in first
    assert "10 of 40" in then and "0:01:00" in then and "About 3 min left in this phase." in then
    assert "0:01:03" in later and "About 3 min left in this phase." in later


def test_unknown_steps_show_the_time_alone():
    def act(clock, look):
        with phase("encode"):
            clock.now += 7
            look()

    (seen,) = looks(act)
    assert "encode the source" in seen and "0:00:07" in seen and "left" not in seen and " of " not in seen


def test_a_phase_that_comes_again_keeps_its_time_and_begins_its_steps_anew():
    def act(clock, look):
        for steps in (3, 5):
            with phase("fit", 100) as advance:
                clock.now += 20
                advance(steps)
            look()
            clock.now += 100  # of no phase
        with phase("fit", 100) as advance:
            for _ in range(5):
                clock.now += 2
                advance(10)
            look()

    first, second, third = looks(act)
    assert "0:00:20" in first and "0:00:40" in second and "0:00:50" in third
    assert " of " not in first + second and "50 of 100" in third
    assert "At most 10 s left in this phase." in third  # a fit may end before its last step


def test_time_of_a_phase_inside_another_is_shown_once():
    def act(clock, look):
        with phase("discover", 10):
            clock.now += 5
            with phase("noise"):
                clock.now += 30
                look()
            clock.now += 1
            look()

    inside, after = looks(act)
    for seen in (inside, after):
        (noise,) = [line for line in seen.splitlines() if "add noise" in line]
        assert "0:00:30" in noise
    assert "0:00:05" in inside and "0:00:06" in after


def test_the_innermost_phase_that_can_tell_says_what_is_left():
    def act(clock, look):
        with phase("count", 100) as outer:
            for _ in range(4):
                clock.now += 10
                outer(1)
            with phase("fit", 10) as inner:
                look()
                for _ in range(5):
                    clock.now += 4
                    inner(1)
                look()

    before, after = looks(act)
    assert "About 16 min left" in before and "At most 20 s left" in after


def test_what_is_still_to_come_is_named_until_it_begins():
    def act(clock, look):
        look()
        with phase("count"):
            look()
        with phase("sample"):
            look()
        with phase("write"):
            look()

    none, counting, sampling, writing = looks(act, LAST_PHASES)
    assert "Still" not in none
    assert "Still to come: sample rows, write." in counting
    assert "Still to come: write." in sampling
    assert "Still" not in writing


def test_more_steps_than_announced_make_no_promise():
    def act(clock, look):
        with phase("sample", 10) as advance:
            for _ in range(6):
                clock.now += 2
                advance(5)
            look()

    (seen,) = looks(act)
    assert "30 of 10" not in seen and "left" not in seen


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_phase_that_fails_is_over(error):
    def act(clock, look):
        with pytest.raises(error), phase("count", 10), phase("noise"):
            raise error
        clock.now += 50
        look()

    (seen,) = looks(act)
    assert "count marginals" in seen and "0:00:50" not in seen and " of 10" not in seen


def test_all_fits_on_eighty_columns():
    def act(clock, look):
        with phase("model", 1_000_000_000) as advance:
            for _ in range(4):
                clock.now += 3600
                advance(100_000_000)
            look()

    (seen,) = looks(act, LAST_PHASES)
    assert "compute expected counts" in seen and "400,000,000 of 1,000,000,000" in seen and "4:00:00" in seen
    assert "About 6 h left in this phase. Still to come: sample rows, write." in seen
    assert len(seen.splitlines()) == 2 and "…" not in seen


def test_it_can_be_drawn_while_phases_come_and_go():
    bars, ends, errors = Bars(LAST_PHASES), threading.Event(), []

    def draw():
        console = Console(file=io.StringIO(), width=80, force_terminal=False)
        while not ends.is_set():
            try:
                console.print(bars)
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not happen
                errors.append(error)

    drawing = threading.Thread(target=draw)
    drawing.start()
    with listening(bars):
        for turn in range(1500):
            with phase(f"phase {turn % 150}", 4) as advance, phase("noise"):
                advance(1)
    ends.set()
    drawing.join()
    assert not errors
