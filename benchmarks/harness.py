"""What the benchmarks share: a stopwatch for phases, peak memory, the machine, the data folder."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import dpsyn_sql
from dpsyn_sql.progress import listening

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DPSYN_BENCHMARK_DATA", REPOSITORY.parent / "shared" / "data"))


class Stopwatch:
    """A progress listener that adds up seconds per phase; nested phases count in both.

    ``processor`` are seconds of all cores together: they say how long it takes on an idle machine.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.processor: dict[str, float] = defaultdict(float)
        self._begun: dict[str, tuple[float, float]] = {}

    def begin(self, name: str, total: int | None) -> None:
        self._begun[name] = time.perf_counter(), time.process_time()

    def advance(self, name: str, amount: int) -> None:
        pass

    def end(self, name: str) -> None:
        wall, processor = self._begun.pop(name)
        self.seconds[name] += time.perf_counter() - wall
        self.processor[name] += time.process_time() - processor


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Phases of everything inside, and the whole as ``total``."""
    watch = Stopwatch()
    begun, processor = time.perf_counter(), time.process_time()
    with listening(watch):
        yield watch
    watch.seconds["total"] = time.perf_counter() - begun
    watch.processor["total"] = time.process_time() - processor


def peak_mebibytes() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine() -> str:
    """Cores and versions, for the caption of a table."""
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("duckdb", "numpy", "scipy", "opendp")
    )
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, Python {platform.python_version()}, {versions}, dpsyn_sql {dpsyn_sql.__version__}"


def medians(runs: list[Stopwatch]) -> dict[str, float]:
    """Median seconds per phase over runs."""
    return {name: statistics.median(run.seconds[name] for run in runs) for name in runs[-1].seconds}


def need(path: Path) -> Path:
    """The file, or a message that says where it is expected."""
    if not path.exists():
        raise SystemExit(
            f"{path} is missing; set DPSYN_BENCHMARK_DATA to the folder that holds the data sets"
        )
    return path


def print_table(header: list[str], rows: list[list[object]], caption: str = "") -> None:
    """A Markdown table."""
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print(
            "| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |"
        )
    if caption:
        print(f"\n{caption}")
    print(flush=True)


def repeat(count: int, run: Callable[[], Stopwatch]) -> dict[str, float]:
    """Medians over ``count`` runs."""
    return medians([run() for _ in range(count)])
