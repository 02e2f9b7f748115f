"""What the benchmarks share: a stopwatch for phases, peak memory, the machine, the data folder."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import dpsyn_sql
from dpsyn_sql.common.progress import stopwatch, without_bar
from dpsyn_sql.errors import InputError
from dpsyn_sql.methods import METHODS, method_of

REPOSITORY = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DPSYN_BENCHMARK_DATA", REPOSITORY.parent / "shared" / "data"))


@dataclass(slots=True)
class Stopwatch:
    """Seconds of each phase by itself, of "other" and of the "total", once what was timed is over.

    ``processor`` are seconds of all cores together: they say how long it takes on an idle machine.
    """

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    processor: dict[str, float] = field(default_factory=lambda: defaultdict(float))


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Phases of everything inside, and the whole as ``total``. No bar is shown: it would take time too."""
    told = Stopwatch()
    with without_bar(), stopwatch() as watch:
        yield told
    for name, (seconds, processor) in watch.spent().items():
        told.seconds[name], told.processor[name] = seconds, processor
    told.seconds["total"], told.processor["total"] = sum(told.seconds.values()), sum(told.processor.values())


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


def apart(function: Callable[..., Any], *arguments: object) -> Any:
    """What a function of a module gives in a process of its own, so that its peak memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def command_line(text: str | None) -> argparse.ArgumentParser:
    """A parser that shows the text of a module as it stands."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def methods_wanted(names: Sequence[str], variants: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Methods by a label, as ``release(method=)`` takes them; what is not registered is told and left out.

    Each variant is a text like ``dpsyn synthesis=sts cover=3``. Values are read as JSON if they are JSON.
    """
    wanted: dict[str, dict[str, object]] = {}
    for text in (*names, *variants):
        name, *pairs = text.split()
        given = dict(pair.partition("=")[::2] for pair in pairs)
        method: dict[str, object] = {"name": name, **{key: _read(value) for key, value in given.items()}}
        try:
            method_of(method)
        except InputError as error:
            print(f"{text} is left out: {error}\n", flush=True)
            continue
        wanted[text] = method
    return wanted


def add_methods(parser: argparse.ArgumentParser, default: Sequence[str] = tuple(METHODS)) -> None:
    """Options for ``methods_wanted``."""
    parser.add_argument("--methods", nargs="*", default=[*default], help="default: %(default)s")
    parser.add_argument(
        "--variants",
        nargs="*",
        default=[],
        help="methods with settings, each in quotes: 'dpsyn synthesis=sts cover=3'",
    )


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def repeat(count: int, run: Callable[[], Stopwatch]) -> dict[str, float]:
    """Medians over ``count`` runs."""
    return medians([run() for _ in range(count)])
