"""Methods of this project and other synthesizers on one task, with one scorer; the library of two scripts.

A task is a table of codes in two parts: rows that every synthesizer gets, and rows held back that judge what
learners make of the synthetic rows. Other synthesizers run in environments of their own
(``peer_environments.py``) by the scripts of ``runners/``, which see codes, sizes and a budget. Each run is
bounded in time. Whatever fails is named with the reason and stops nothing else.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from adaptive import Table, codes_declared, written
from comparison import chosen, variations
from harness import apart
from numpy.typing import NDArray
from peer_environments import Environment, Unavailable, installed, limited

Codes = NDArray[np.int64]
Scorer = Callable[["Task", Codes], dict[str, float]]

RUNNERS = Path(__file__).resolve().parent / "runners"
SETS = 200
"""Sets of columns that are scored for each number of ways, of more a seeded choice."""

WALL, PROCESSOR, PEAK = "wall seconds", "CPU seconds", "MiB"


@dataclass(frozen=True)
class Task:
    """``sizes`` by name; ``ordered`` names; rows to synthesize, rows to judge by.

    ``ways``: marginals that are compared. ``scorer`` gives further figures of the synthetic rows.
    """

    name: str
    sizes: Mapping[str, int]
    ordered: frozenset[str]
    rows: Codes
    tested: Codes
    ways: tuple[int, ...]
    scorer: Scorer

    def table(self) -> Table:
        """The rows to synthesize, as the methods of this project take them."""

        def load(con: duckdb.DuckDBPyConnection) -> None:
            con.register("kept", {name: self.rows[:, place] for place, name in enumerate(self.sizes)})
            con.execute("CREATE TABLE source AS FROM kept")
            con.unregister("kept")

        return Table(load, codes_declared(self.sizes, set(self.ordered)), self.sizes)


@dataclass(frozen=True)
class Peer:
    """``runner``: its script and its environment; ``given``: private facts that it is told."""

    runner: str
    mechanism: str
    given: str = ""


EXACT_ROWS = "the exact number of rows"
ENVIRONMENTS: dict[str, Environment] = {
    "datasynthesizer": Environment(("DataSynthesizer==0.1.13",)),
    "dpmm": Environment(("dpmm==0.1.9",)),
    "opendp": Environment(("opendp[mbi]==0.16.0",)),
    "sdv": Environment(("sdv==2.0.0",)),
    "smartnoise": Environment(("smartnoise-synth==1.0.8",)),
}
PEERS: dict[str, Peer] = {
    "AIM (dpmm)": Peer("dpmm", "aim", EXACT_ROWS),
    "MST (dpmm)": Peer("dpmm", "mst", EXACT_ROWS),
    "PrivBayes (dpmm)": Peer("dpmm", "privbayes", EXACT_ROWS),
    "AIM (OpenDP)": Peer("opendp", "aim"),
    "MST (OpenDP)": Peer("opendp", "mst"),
    "AIM (SmartNoise)": Peer("smartnoise", "aim", EXACT_ROWS),
    "MST (SmartNoise)": Peer("smartnoise", "mst", EXACT_ROWS),
    "PrivBayes (DataSynthesizer)": Peer("datasynthesizer", "privbayes", EXACT_ROWS),
    "Gaussian copula (SDV), no privacy": Peer("sdv", "copula", "everything"),
}

BOOTSTRAP, SHUFFLED, REAL = (
    "bootstrap of the rows, no privacy",
    "columns shuffled, no privacy",
    "the real rows, no privacy",
)


@dataclass(frozen=True)
class Made:
    """Synthetic rows and what they took; the times are NaN for references, which take none."""

    copy: Codes
    wall: float = float("nan")
    processor: float = float("nan")
    peak: float = float("nan")
    versions: str = ""


def references(task: Task, seed: int) -> dict[str, Codes]:
    """Rows that are drawn from the real ones: what no synthesizer beats, and columns without dependence."""
    rng = np.random.default_rng(seed)
    shuffled = np.stack([rng.permutation(column) for column in task.rows.T], axis=1)
    return {REAL: task.rows, BOOTSTRAP: rng.choice(task.rows, len(task.rows)), SHUFFLED: shuffled}


def released(task: Task, method: object, epsilon: float, delta: float) -> Made:
    """One release by a method of this project, in the process that calls."""
    made = written(task.table(), method, epsilon, delta)
    return Made(made.copy, made.watch.seconds["total"], made.watch.processor["total"], made.peak)


def peer_made(
    peer: Peer, task: Task, epsilon: float, delta: float, cache: Path, install_limit: float, limit: float
) -> Made:
    """One run of another synthesizer in its own environment.

    Raises:
        Unavailable: it cannot be installed, fails, takes too long, or writes codes outside of its domain.
    """
    python = installed(peer.runner, ENVIRONMENTS[peer.runner], cache, install_limit)
    return ran([python, RUNNERS / f"{peer.runner}_runner.py"], peer.mechanism, task, epsilon, delta, limit)


def ran(
    command: Sequence[str | Path], mechanism: str, task: Task, epsilon: float, delta: float, limit: float
) -> Made:
    """One run of a runner by the protocol of ``runners/protocol.py``; raises as ``peer_made``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "rows.npy", task.rows)
        request = {
            "names": [*task.sizes],
            "sizes": [*task.sizes.values()],
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": mechanism,
        }
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        limited([*command, folder], limit, folder)
        try:
            copy = np.load(folder / "copy.npy", allow_pickle=False)
            report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
            made = Made(copy, **report)
        except (OSError, ValueError, TypeError) as error:
            raise Unavailable(f"its runner writes no result: {error}") from error
    sizes = np.array([*task.sizes.values()])
    if copy.ndim != 2 or copy.shape[1] != len(sizes) or not len(copy):
        raise Unavailable(f"writes rows of the shape {copy.shape}")
    if (copy < 0).any() or (copy >= sizes).any():
        raise Unavailable("writes codes outside of the declared domain")
    return made


def figures(task: Task, made: Made) -> dict[str, float]:
    """Mean total variation distance by number of ways, the scorer's figures, times and memory."""
    sizes = [*task.sizes.values()]
    found = {
        f"{ways}-way": statistics.mean(
            variations(task.rows, made.copy, sizes, chosen(len(sizes), ways, SETS))
        )
        for ways in task.ways
    }
    taken = {WALL: made.wall, PROCESSOR: made.processor, PEAK: made.peak}
    return {**found, **task.scorer(task, made.copy), **taken}


class Results:
    """Figures of runs, kept in a file of JSON lines, so that hours of runs can be continued.

    A run that the file holds is not made again. To make it again, delete its line.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.lines: list[dict[str, object]] = []
        if file is not None and file.exists():
            self.lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def made(
        self, key: Mapping[str, object], make: Callable[[], Mapping[str, object]]
    ) -> Mapping[str, object]:
        """The result of a key; ``reason`` in it says why there is none."""
        for line in self.lines:
            if all(line.get(name) == value for name, value in key.items()):
                return line
        try:
            found: Mapping[str, object] = make()
        except Unavailable as error:
            found = {"reason": str(error)}
        line = {**key, **found}
        self.lines.append(line)
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as kept:
                kept.write(json.dumps(line) + "\n")
        told = found.get("reason", "done")
        print(" ".join(map(str, [*key.values(), told])), file=sys.stderr, flush=True)
        return line


def repeated(
    results: Results, key: Mapping[str, object], runs: int, make: Callable[[int], Mapping[str, object]]
) -> list[Mapping[str, object]]:
    """Results of some runs; after one that failed no other is tried."""
    found: list[Mapping[str, object]] = []
    for run in range(runs):
        found.append(results.made({**key, "run": run}, lambda run=run: make(run)))  # type: ignore[misc]
        if "reason" in found[-1]:
            break
    return found


def compared(
    task: Task,
    release: Callable[..., Made],
    methods: Mapping[str, object],
    peers: Sequence[str],
    epsilon: float,
    delta: float,
    runs: int,
    results: Results,
    bounds: tuple[Path, float, float],
) -> dict[str, list[Mapping[str, object]]]:
    """Results of every synthesizer by label.

    ``release(task name, method, epsilon, delta)``: a function of the script, for a process of its own.
    ``bounds``: cache of the environments, and the limits of an installation and of a run in seconds.
    """

    def of(label: str, make: Callable[[int], Made]) -> list[Mapping[str, object]]:
        key = {"task": task.name, "synthesizer": label, "epsilon": epsilon, "delta": delta}
        return repeated(results, key, runs, lambda run: _with_versions(task, make(run)))

    found = {
        label: of(
            label,
            lambda run, method=method: apart(release, task.name, method, epsilon, delta),  # type: ignore[misc]
        )
        for label, method in methods.items()
    }
    for label in PEERS if "all" in peers else peers:
        found[label] = of(
            label,
            lambda run, label=label: peer_made(PEERS[label], task, epsilon, delta, *bounds),  # type: ignore[misc]
        )
    for label in (BOOTSTRAP, SHUFFLED, REAL):
        found[label] = of(label, lambda run, label=label: Made(references(task, run)[label]))  # type: ignore[misc]
    return found


def _with_versions(task: Task, made: Made) -> dict[str, object]:
    return {**figures(task, made), "versions": made.versions}


def medians(runs: Sequence[Mapping[str, object]], name: str) -> float:
    """Median of a figure over the runs that gave it; NaN where none did."""
    values = [float(str(run[name])) for run in runs if name in run]
    return statistics.median(values) if values else float("nan")


def table_lines(
    found: Mapping[str, Sequence[Mapping[str, object]]], columns: Sequence[str]
) -> tuple[list[list[object]], dict[str, str]]:
    """A line of medians for each synthesizer that ran; of the others, the reasons."""
    rows: list[list[object]] = []
    reasons: dict[str, str] = {}
    for label, runs in found.items():
        failed = [str(run["reason"]) for run in runs if "reason" in run]
        if failed:
            reasons[label] = failed[0]
        done = [run for run in runs if "reason" not in run]
        if done:
            shown = [_shown(name, medians(done, name)) for name in columns]
            rows.append([label, *shown, len(done)])
    return rows, reasons


def _shown(name: str, value: float) -> str:
    if value != value:
        return ""
    if name == PEAK:
        return f"{value:,.0f}"
    if name in (WALL, PROCESSOR):
        return f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return f"{value:.4f}" if name.endswith("-way") else f"{value:.3f}"
