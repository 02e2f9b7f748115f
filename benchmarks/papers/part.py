"""What a reproduction is, and small helpers that all of them share."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from charts import Panel

Figures = dict[str, Any]
"""What JSON holds."""


@dataclass(frozen=True)
class Picture:
    """A file of this name (no suffix) with these panels, and what a reader who does not see it is told."""

    name: str
    title: str
    panels: Sequence[Panel]
    described: str
    columns: int = 3


@dataclass(frozen=True)
class Shown:
    """Markdown of the tables, and pictures that come before them."""

    markdown: str
    pictures: Sequence[Picture] = field(default_factory=tuple)


@dataclass(frozen=True)
class Part:
    """One reproduction: ``measure(quick)`` takes the time, ``show`` takes none."""

    name: str
    title: str
    measure: Callable[[bool], Figures]
    show: Callable[[Figures], Shown]


def table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([*lines, *(["", caption] if caption else [])])


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Median of each figure over runs."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def of_releases(number: int) -> str:
    """How many releases a figure is of, for a caption."""
    return "one release each" if number == 1 else f"medians of {number} releases"


def said(text: str) -> None:
    """Progress of a long part."""
    print(text, flush=True)
