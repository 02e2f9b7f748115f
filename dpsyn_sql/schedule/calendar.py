"""Calendars: windows of time, and the series of releases that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from dpsyn_sql.accounting.account import FIGURE, price
from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.errors import InternalError
from dpsyn_sql.front.request import DEFAULTS, OPTIONS, Request, is_output_of_tables
from dpsyn_sql.planning.panel import Panel
from dpsyn_sql.planning.running import Total
from dpsyn_sql.schedule.document import AccountSpec
from dpsyn_sql.schedule.lines import Faults
from dpsyn_sql.source.files import looks_like_path
from dpsyn_sql.source.names import display_name, last_part, split_name
from dpsyn_sql.source.slices import Partition, Slice, Window

# -- windows -----------------------------------------------------------------------------------------

# Periods from a declared calendar: which windows there are, what they are called, when they are due.
#
# A period never depends on a row. Times are without a zone, in the local time of the source's column.

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


# -- series ------------------------------------------------------------------------------------------

# A schedule that was read: accounts, and series of releases with the request of each period.

PLACEHOLDERS = re.compile(r"\{(\w+)\}")

_ARGUMENTS = re.compile(
    rf"(?P<figure>{FIGURE})|(?<![\w.'\"-])({'|'.join(OPTIONS)})=(?!=)(True\b|False\b|(?=[^\s,.;]))?"
)
_KEYS = {"into": "output", "con": "database"}


@dataclass(frozen=True, slots=True)
class ScheduledSource:
    """What is read. ``path`` may have placeholders; otherwise ``text`` is a table or a query. With ``tables``
    it is a database of tables that keys tie, and ``database`` may have placeholders."""

    name: str
    path: str | None
    text: str
    database: Path | None
    window: str | None
    account: str | None
    options: Mapping[str, Any]
    tables: tuple[str, ...] = ()

    @property
    def pattern(self) -> str | None:
        """What may have placeholders: the path, or the database of tables."""
        return str(self.database) if self.tables and self.database is not None else self.path


@dataclass(frozen=True)
class ReleaseSeries:
    """A series of releases; ``options`` are those of a request, ``cumulative`` means running totals, and
    ``panel`` the same synthetic persons in one table."""

    name: str
    source: ScheduledSource
    output: str
    series: Series
    options: Mapping[str, Any]
    windows_per_unit: int | None = None
    partition_by: str | None = None
    cumulative: bool = False
    panel: bool = False

    @property
    def divided(self) -> bool:
        """Whether epsilon is for all periods together: each needs those before it."""
        return self.cumulative or self.panel

    @property
    def ordered(self) -> bool:
        """Whether a period must not be read before an earlier one."""
        return self.divided or self.windows_per_unit is not None

    @property
    def to_file(self) -> bool:
        """Whether the outputs are files or folders, not tables or schemas."""
        return self._is_path(PLACEHOLDERS.sub("x", self.output))

    def _is_path(self, output: str) -> bool:
        return is_output_of_tables(output) if self.source.tables else looks_like_path(output)

    def into(self, period: Period, folder: Path) -> str | Path:
        """The output of a period: a path, or the quoted name of a table."""
        values = {"release": self.name, "period": period.label, "partition": period.partition or ""}
        if self.to_file:
            return Path(folder, filled(self.output, values))
        name_parts = [filled(part, values) for part in split_name(self.output) or (self.output,)]
        plain = display_name(*name_parts)
        return plain if not self._is_path(plain) else ".".join(_quoted(part) for part in name_parts)

    def written(self, into: str) -> list[str]:
        """The names of the tables that an output in the database is."""
        if not self.source.tables:
            return [into]
        names = [last_part(table) for table in self.source.tables]
        return [".".join(_quoted(part) for part in (*(split_name(into) or (into,)), name)) for name in names]

    def con(self, period: Period) -> Path | None:
        """The database of a period; None for files."""
        if self.source.database is None or not self.source.tables:
            return self.source.database
        values = {"period": period.label, "partition": period.partition or ""}
        return Path(filled(str(self.source.database), values))

    def request(self, period: Period, folder: Path, ledger: Path) -> Request:
        """The release of a period, as a call of ``release`` has it."""
        common: dict[str, Any] = {
            "into": self.into(period, folder),
            "name": self.name,
            "version": period.label,
            "account": self.source.account,
            "ledger": ledger,
        }
        series_request = self._given(folder)
        if self.source.tables:
            return replace(series_request, **common)
        series = "total" if self.cumulative else "panel" if self.panel else ""
        return replace(
            series_request,
            **common,
            source=self._read(period, folder),
            window=self.slice(period),
            series=series,
        )

    def _read(self, period: Period, folder: Path) -> str | Path:
        if self.source.path is None:
            return self.source.text
        values = {"period": period.label, "partition": period.partition or ""}
        return Path(folder, filled(self.source.path, values))

    def slice(self, period: Period) -> Slice | None:
        """The rows of a period; None for all rows of the source."""
        if self.partition_by is not None and period.partition is not None:
            # A row has one value: with single rows as units the partitions are disjoint.
            return Partition(self.partition_by, period.partition, self.most)
        if self.source.window is None or period.begins is None:
            return None
        if not isinstance(self.series, Calendar | Listed):
            raise InternalError("only calendars have windows")
        # What a period of a budget for all of them costs is decided by the whole calendar.
        labels = self._labels if self.divided else ()
        edges = self.series.edges(len(labels) - 1 if labels else period.index)
        return Window(self.source.window, self.series.identity, edges, period.index, 1, self.most, labels)

    @property
    def unit(self) -> str | None:
        """The column that identifies a unit, or ``row``; None if the domain file says it."""
        column = self.options.get("unit")
        if not self.source.tables:
            return "row" if column is None else str(column)
        return None if column is None else last_part(column)

    @property
    def of_rows(self) -> bool:
        """Whether single rows are protected."""
        return not self.source.tables and str(self.unit).lower() == "row"

    @property
    def epsilon(self) -> Any:
        """As the file has it, or by default."""
        return self.options.get("epsilon", DEFAULTS["epsilon"])

    @property
    def most(self) -> int | None:
        """In how many slices a unit is at most, where that is enforced; None without such a bound."""
        return 1 if self.partition_by is not None and self.of_rows else self.windows_per_unit

    def cost(self, kind: Kind, period: Period) -> Budget:
        """What a period costs an account of a kind at least: the delta of thresholds is not in it.

        Raises:
            AccountError: a pure account cannot hold it.
        """
        part = self.total(period) or self._panel_at(period)
        budget = self._request.budget() if part is None else part.budget
        return price(budget.without_thresholds(), kind)

    def total(self, period: Period) -> Total | None:
        """The running total of a period; None if each period is about its own rows."""
        first = self._total if self.cumulative else None
        return None if first is None else replace(first, period=period.index + 1)

    def _panel_at(self, period: Period) -> Panel | None:
        """The panel at a period; None for other series."""
        first = self._panel if self.panel else None
        return None if first is None else first.at(period.index + 1)

    @property
    def first(self) -> Period:
        """The first period."""
        return next(iter(self.series.periods(datetime.max)))

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        """Of all periods of a calendar with an end."""
        return tuple(period.label for period in self.series.periods(datetime.max))

    def _given(self, folder: Path | None = None) -> Request:
        """What the file says of all periods."""
        tables = {"source": self.source.tables} if self.source.tables else {}
        return Request.from_mapping({**self.source.options, **self.options, **tables}, folder=folder)

    @cached_property
    def _request(self) -> Request:
        return self._given()

    @cached_property
    def _total(self) -> Total | None:
        """Of the first period."""
        return self.request(self.first, Path(), Path()).total()

    @cached_property
    def _panel(self) -> Panel | None:
        """Of the first period."""
        return self.request(self.first, Path(), Path()).panel()


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule whose file has no fault. ``faults`` knows the lines of the file."""

    path: Path
    ledger: Path
    accounts: Mapping[str, AccountSpec]
    releases: tuple[ReleaseSeries, ...]
    faults: Faults = field(repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """Where relative paths begin."""
        return self.path.parent

    def items(self, now: datetime) -> tuple[Item, ...]:
        """Every period up to ``now`` and the next one, in the order of the file."""
        return tuple(Item(release, period) for release in self.releases for period in _known(release, now))

    def request(self, item: Item) -> Request:
        """What is to be released."""
        return item.releases.request(item.period, self.folder, self.ledger)


@dataclass(frozen=True, slots=True)
class Item:
    """One period of a series."""

    releases: ReleaseSeries
    period: Period

    @property
    def key(self) -> tuple[str, str]:
        """Name and version in the ledger."""
        return self.releases.name, self.period.label

    def facts(self, **more: object) -> dict[str, object]:
        """As plain data, and more."""
        return {"release": self.releases.name, "period": self.period.label, **more}

    def __str__(self) -> str:
        return f"{self.releases.name}:{self.period.label}"


def _known(release: ReleaseSeries, now: datetime) -> Iterable[Period]:
    """Periods that have begun; the first of the others is the next one."""
    for period in release.series.periods(datetime.max):
        yield period
        if period.begins is not None and period.begins > now and isinstance(release.series, Calendar):
            return


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with the values of its placeholders; what a value holds is never looked up again."""
    return PLACEHOLDERS.sub(lambda match: values.get(match[1], match[0]), template)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


def in_keys(text: str) -> str:
    """A message of the package, which names arguments, in keys of the file."""

    def in_key(match: re.Match[str]) -> str:
        if match["figure"]:
            return match[0]
        value = "" if match[3] is None else f" {match[3].lower()}"
        return f"{_KEYS.get(match[2], match[2])}:{value}"

    return _ARGUMENTS.sub(in_key, text)
