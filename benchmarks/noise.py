"""Draws of noise a second: ours beside OpenDP's, and the noise of a whole question.

    python benchmarks/noise.py [--runs 3] [--cells 8000000] [--scales 1 10 100 10000]

Thousands of draws a second of a core, medians of several runs. `first` is a call for one cell with a scale
that was not used before, which makes its table.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from harness import command_line, machine, peak_mebibytes, print_table

from dpsyn_sql.accounting.events import GaussianEvent
from dpsyn_sql.private.measure.drawing import drawn
from dpsyn_sql.private.measure.laws import Law, gaussian_law, laplace_law
from dpsyn_sql.private.measure.noise import ExactNoise, add_noise, gaussian_mechanism, laplace_mechanism

CALLS = (100, 10_000, 1_000_000)
OPENDP_CALL = 20_000
_PARTS = 61
LAWS = (("gaussian", gaussian_law, gaussian_mechanism), ("laplace", laplace_law, laplace_mechanism))


def seconds(work: Callable[[], object], runs: int) -> float:
    """Median of the processor seconds that a call takes."""
    taken = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return statistics.median(taken)


def rates(scales: Sequence[float], runs: int) -> None:
    """A line for each law and scale: draws a second by size of the call."""
    lines = []
    for name, law_of, mechanism_of in LAWS:
        for scale in scales:
            first = statistics.median(seconds(partial(first_draw, law_of, s), 1) for s in nearby(scale, runs))
            theirs = OPENDP_CALL / seconds(partial(mechanism_of(scale), [0] * OPENDP_CALL), runs)
            ours = [rate(law_of(scale), number, runs) for number in CALLS]
            rated = [f"{one / 1e3:,.0f}" for one in (theirs, *ours)]
            lines.append([name, f"{scale:g}", *rated, f"{ours[-1] / theirs:.0f}", f"{1e3 * first:.2g} ms"])
    print_table(["law", "scale", "OpenDP", *(f"{n:,} a call" for n in CALLS), "times", "first"], lines)


def rate(law: Law, number: int, runs: int) -> float:
    """Draws a second, ``number`` of them a call."""
    calls = max(1, 200_000 // number)
    return calls * number / seconds(lambda: [drawn(law, number) for _ in range(calls)], runs)


def first_draw(law_of: Callable[[float], Law], scale: float) -> None:
    drawn(law_of(scale), 1)


def nearby(scale: float, number: int) -> list[float]:
    """Scales beside this one, none of which has a table."""
    found = [math.nextafter(scale, 0)]
    while len(found) < number:
        found.append(math.nextafter(found[-1], 0))
    return found


def whole(cells: int, runs: int) -> None:
    """Noise on as many cells as one question has, in sixteenths, with all that is done to them."""
    event, tables = GaussianEvent(7_800.0, 1, 16), [np.zeros(cells, dtype=np.int64)]
    before = peak_mebibytes()
    begun = time.perf_counter()
    taken = seconds(lambda: add_noise(ExactNoise(), tables, event), runs)
    elapsed = (time.perf_counter() - begun) / runs
    more = peak_mebibytes() - before
    what = f"{cells:,} cells, sigma {event.sigma:g} rows in sixteenths"
    print(f"{what}: {taken:.2f} s of a core, {elapsed:.2f} s, peak {more:.0f} MiB above the counts")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cells", type=int, default=8_000_000)
    parser.add_argument("--scales", type=float, nargs="+", default=[1.0, 10.0, 100.0, 1e4])
    arguments = parser.parse_args()
    rates(arguments.scales, arguments.runs)
    whole(arguments.cells, arguments.runs)
    random = seconds(lambda: [os.urandom(3 * 4 * 2**14) for _ in range(_PARTS)], arguments.runs)
    print(f"Random bytes of the operating system: {random * 1e9 / (_PARTS * 2**14):.0f} ns for 12 bytes")
    print(machine())


if __name__ == "__main__":
    main()
