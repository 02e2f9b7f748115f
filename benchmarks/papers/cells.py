"""Figures that are kept cell by cell, so that a long measurement can stop and go on."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import machine

from dpsyn_sql.errors import DpsynError

from .part import said

Run = dict[str, Any]
STORED = Path(__file__).resolve().parent / "figures"


class Cells:
    """Runs by the key of a cell, in a file of this name. ``refused``: keys that cannot be, and why."""

    def __init__(self, name: str) -> None:
        self.file = STORED / f"{name}.json"
        known: dict[str, Any] = {}
        if self.file.exists():
            known = json.loads(self.file.read_text(encoding="utf-8"))
        self.runs: dict[str, list[Run]] = known.get("runs", {})
        self.refused: dict[str, str] = known.get("refused", {})
        self.facts: dict[str, Any] = known.get("facts", {})
        self.machine: str = known.get("machine", machine())

    def forget(self, methods: Sequence[str] = ()) -> None:
        """Drop what was measured of these methods, or everything."""
        for kept in (self.runs, self.refused):
            for key in [key for key in kept if not methods or re.split(r"[,|]", key)[0].strip() in methods]:
                del kept[key]

    def fill(self, keys: Iterable[str], measure: Callable[[str], Run], runs: int) -> None:
        """Measure until every cell has ``runs`` runs, one of each cell after the other; stored after each."""
        wanted = [*keys]
        for number in range(runs):
            for key in wanted:
                if key in self.refused or len(self.runs.get(key, ())) > number:
                    continue
                try:
                    self.runs.setdefault(key, []).append(measure(key))
                except DpsynError as error:
                    self.refused[key] = str(error).splitlines()[0]
                    said(f"{key}: refused: {self.refused[key]}")
                self.store()
            said(f"{self.file.stem}: run {number + 1} of {runs} done")

    def store(self) -> None:
        """Write the file."""
        self.machine = machine()
        self.file.parent.mkdir(exist_ok=True)
        names = ("runs", "refused", "facts", "machine")
        text = json.dumps({name: getattr(self, name) for name in names}, separators=(",", ":"))
        self.file.write_text(text.replace("}],", "}],\n") + "\n", encoding="utf-8")

    def of(self, key: str) -> list[Run]:
        """Runs of a cell; none if it was not measured."""
        return self.runs.get(key, [])

    @property
    def numbers(self) -> str:
        """How many runs the cells have, for a caption."""
        counts = sorted({len(runs) for runs in self.runs.values() if runs})
        return " or ".join(f"{one}" for one in counts) + (" runs each" if counts != [1] else " run each")


def mean_and_spread(runs: Sequence[Mapping[str, float]], name: str, digits: int = 3) -> str:
    """Mean, and the standard deviation of a run if there are several."""
    values = [run[name] for run in runs]
    if not values:
        return ""
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.{digits}f}"
