"""Periods from a declared calendar: which windows there are, what they are called, when they are due.

A period never depends on a row. Times are without a zone, in the local time of the source's column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

MOST_PERIODS = 100_000
"""The most that a calendar with an end may have: eleven years of hours."""


class _Cadence(NamedTuple):
    """The length of a window in ``months`` or as a ``step``, where one begins in words, and how its label is
    written and looks, also in a folded name."""

    step: timedelta | None
    months: int
    first: str
    form: str
    label: str


_DAY = r"\d{4}-\d\d-\d\d"
_CADENCES = {
    "hour": _Cadence(timedelta(hours=1), 0, "at the full hour", "%Y-%m-%dT%H", rf"{_DAY}[Tt]\d\d"),
    "day": _Cadence(timedelta(days=1), 0, "at midnight", "%Y-%m-%d", _DAY),
    "week": _Cadence(timedelta(weeks=1), 0, "a Monday", "%G-W%V", r"\d{4}-[Ww]\d\d"),
    "month": _Cadence(None, 1, "the first day of a month", "%Y-%m", r"\d{4}-\d\d"),
    "quarter": _Cadence(None, 3, "the first day of a quarter", "%Y-Q{}", r"\d{4}-[Qq]\d"),
    "year": _Cadence(None, 12, "the first of January", "%Y", r"\d{4}"),
}


@dataclass(frozen=True, slots=True)
class Period:
    """One release of a series: a window of time, a partition, or the only one.

    ``label`` is the version of the release. ``due``: when it may be released, None for at once. ``begins``
    and ``ends`` are None where it is no window of time. ``index`` is its place among the edges.
    """

    label: str
    due: datetime | None = None
    begins: datetime | None = None
    ends: datetime | None = None
    index: int = 0
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Calendar:
    """Windows of one length from ``start`` on; the last ends at ``end``, if there is one."""

    cadence: str
    start: datetime
    end: datetime | None = None
    wait: timedelta = timedelta()

    @property
    def identity(self) -> str:
        """What tells this calendar from others."""
        return f"{self.cadence} from {moment_text(self.start)}"

    def periods(self, until: datetime) -> Iterator[Period]:
        """All periods that begin before ``until``; at least the first one."""
        begins, index = self.start, 0
        while self.end is None or begins < self.end:
            if index and begins >= until:
                return
            ends = end_of(self.cadence, begins)
            yield Period(label_of(self.cadence, begins), ends + self.wait, begins, ends, index)
            begins, index = ends, index + 1

    def count(self) -> int | None:
        """The number of periods; None without an end."""
        return None if self.end is None else sum(1 for _ in self.periods(datetime.max))

    def edges(self, last: int) -> tuple[str, ...]:
        """The edges of all windows up to the one of index ``last``."""
        edges = [self.start]
        while len(edges) < last + 2:
            edges.append(end_of(self.cadence, edges[-1]))
        return tuple(moment_text(edge) for edge in edges)


@dataclass(frozen=True, slots=True)
class Listed:
    """Windows that are written out, in ascending order and without overlap; there may be gaps."""

    windows: tuple[tuple[str, datetime, datetime], ...]
    wait: timedelta = timedelta()

    @property
    def identity(self) -> str:
        """What tells this calendar from others."""
        return f"windows from {moment_text(self.windows[0][1])}"

    def periods(self, until: datetime) -> Iterator[Period]:
        """All periods, also later ones: somebody wrote them down."""
        edges = self._edges()
        for label, begins, ends in self.windows:
            yield Period(label, ends + self.wait, begins, ends, edges.index(begins))

    def count(self) -> int | None:
        """The number of periods."""
        return len(self.windows)

    def edges(self, last: int) -> tuple[str, ...]:
        """The edges of all windows and gaps up to the one of index ``last``."""
        return tuple(moment_text(edge) for edge in self._edges()[: last + 2])

    def _edges(self) -> list[datetime]:
        return sorted({edge for _, *edges in self.windows for edge in edges})


@dataclass(frozen=True, slots=True)
class Single:
    """One period, of everything there is; ``due`` from a day on, or at once."""

    due: datetime | None = None

    def periods(self, until: datetime) -> Iterator[Period]:
        """The only one."""
        yield Period("once", self.due)

    def count(self) -> int | None:
        """One."""
        return 1


@dataclass(frozen=True, slots=True)
class Partitions:
    """One period for each declared value of a column."""

    values: tuple[str, ...]

    def periods(self, until: datetime) -> Iterator[Period]:
        """All partitions, in the order of the file."""
        for index, value in enumerate(self.values):
            yield Period(value, partition=value, index=index)

    def count(self) -> int | None:
        """The number of partitions."""
        return len(self.values)


Series = Calendar | Listed | Single | Partitions


def end_of(cadence: str, begins: datetime) -> datetime:
    """The end of the window of a cadence that begins there."""
    step, more, *_ = _CADENCES[cadence]
    if step is not None:
        return begins + step
    months = begins.year * 12 + begins.month - 1 + more
    return begins.replace(year=months // 12, month=months % 12 + 1)


def label_of(cadence: str, begins: datetime) -> str:
    """``2013``, ``2013-Q1``, ``2013-01``, ``2013-W05``, ``2013-01-31`` or ``2013-01-31T05``."""
    return begins.strftime(_CADENCES[cadence].form).format((begins.month + 2) // 3)


def look_of_labels(cadence: str) -> str:
    """A regular expression for the labels of a cadence."""
    return _CADENCES[cadence].label


def begin_of(cadence: str, moment: datetime) -> datetime:
    """Where the window of a cadence begins that a moment lies in."""
    if cadence == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = datetime(moment.year, moment.month, moment.day)
    if months := _CADENCES[cadence].months:
        return day.replace(day=1, month=(day.month - 1) // months * months + 1)
    return day - timedelta(days=day.weekday() if cadence == "week" else 0)


def unaligned(cadence: str, moment: datetime) -> str:
    """Where a window of the cadence can begin, if not there; else empty."""
    return "" if begin_of(cadence, moment) == moment else _CADENCES[cadence].first


def moment_text(moment: datetime) -> str:
    """ISO 8601; the day alone at midnight."""
    if moment.time() == datetime.min.time():
        return moment.date().isoformat()
    return moment.isoformat(sep=" ")
