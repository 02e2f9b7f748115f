"""What the progress bar shows of phases with and without known steps."""

import io

from rich.console import Console
from rich.progress import Progress

from dpsyn_sql.common.progress import listening, phase
from dpsyn_sql.report.progress_bar import _Bars, _columns


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def shown(act):
    """The table as text after ``act(clock)``."""
    clock, out = Clock(), io.StringIO()
    console = Console(file=out, width=120, force_terminal=False)
    progress = Progress(*_columns(), console=console, auto_refresh=False, get_time=clock)
    with listening(_Bars(progress)):
        act(clock, lambda: console.print(progress.get_renderable()))
    return out.getvalue()


def test_known_steps_show_how_many_and_the_time_left():
    def act(clock, look):
        with phase("count", 40) as advance:
            for _ in range(10):
                clock.now += 3
                advance(1)
            look()

    text = shown(act)
    assert "count marginals" in text and "10 of 40" in text
    assert "0:00:30" in text and "0:01:30" in text


def test_unknown_steps_show_elapsed_time_alone():
    def act(clock, look):
        with phase("encode"):
            clock.now += 7
            look()

    text = shown(act)
    assert "encode the source" in text and "0:00:07" in text and "left" not in text


def test_a_phase_that_ends_early_or_comes_again():
    def act(clock, look):
        for steps in (3, 5):
            with phase("fit", 100) as advance:
                clock.now += 1
                advance(steps)
            look()
        with phase("fit", 100) as advance:
            clock.now += 1
            advance(50)
            look()

    lines = [line for line in shown(act).splitlines() if "fit the model" in line]
    assert len(lines) == 3
    assert "left" not in lines[0] and "left" not in lines[1] and "50 of 100" in lines[2]
