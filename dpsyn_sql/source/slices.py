"""Slices of a source: the rows of one window of a public calendar, or of one declared partition.

Public facts only: what a slice is follows from what the owner declares, never from rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any

from dpsyn_sql.errors import InputError, said

_MOST_WINDOWS = 100_000


@dataclass(frozen=True, slots=True)
class Window:
    """Rows whose ``column`` lies in [edges[index], edges[index + span]) of a public calendar.

    Args:
        column: a date or timestamp of the source; rows without a value are in no window.
        calendar: public identity of the calendar, such as "month from 2013-01-01".
        edges: ISO dates or timestamps, ascending, from the calendar's start; a later call may have more.
        index: the first window.
        span: consecutive windows taken together; ``index`` is a multiple of it, so that slices of one span
            have no row in common.
        most: a unit counts in at most so many windows, the first ones in which it has rows; None: no bound,
            every window is charged.
        labels: of all windows of the calendar, as releases of a series call them; default: their edges.

    Raises:
        InputError: all that is wrong with it.
    """

    column: str
    calendar: str
    edges: tuple[str, ...] = field(repr=False)
    index: int
    span: int = 1
    most: int | None = None
    labels: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        faults = [*_named("column", self.column), *_named("calendar", self.calendar)]
        faults += [
            *self._edge_faults(),
            *self._place_faults(),
            *_most_faults(self.most),
            *self._label_faults(),
        ]
        _refuse("window", faults)

    @property
    def names(self) -> tuple[str, ...]:
        """A label for each window of the calendar."""
        return self.labels or self.edges[:-1]

    @property
    def start(self) -> datetime:
        """The first moment of the window."""
        return _moment(self.edges[self.index])

    @property
    def end(self) -> datetime:
        """The first moment after the window."""
        return _moment(self.edges[self.index + self.span])

    @property
    def moments(self) -> tuple[datetime, ...]:
        """All edges up to the end of the window: they decide which rows of a unit count."""
        return tuple(_moment(edge) for edge in self.edges[: self.index + self.span + 1])

    def _edge_faults(self) -> list[str]:
        if not isinstance(self.edges, tuple) or not 2 <= len(self.edges) <= _MOST_WINDOWS + 1:
            return [f"edges={said(self.edges)}: give a tuple of 2 to {_MOST_WINDOWS + 1} dates or timestamps"]
        unread = [edge for edge in self.edges if not _is_moment(edge)]
        if unread:
            return [
                f"edges has {said(unread[0])}: give ISO dates or timestamps without a time zone, such as "
                "2013-01-01 or 2013-01-01T06:00:00"
            ]
        moments = [_moment(edge) for edge in self.edges]
        for later in range(1, len(moments)):
            if moments[later] <= moments[later - 1]:
                return [
                    f"edges are not ascending: {self.edges[later - 1]!r} stands before {self.edges[later]!r}"
                ]
        return []

    def _label_faults(self) -> list[str]:
        labels = self.labels
        if not isinstance(labels, tuple) or not all(isinstance(label, str) and label for label in labels):
            return ["labels must be a tuple of the labels of all windows"]
        if len(set(labels)) < len(labels):
            return ["two windows have the same label"]
        windows = len(self.edges) - 1 if isinstance(self.edges, tuple) else 0
        if labels and len(labels) != windows:
            return [
                f"there are {len(labels)} labels, but the calendar {self.calendar!r} has {windows} windows: "
                "give its start, its end and a label for each window"
            ]
        return []

    def _place_faults(self) -> list[str]:
        if not _is_whole(self.index, 0):
            return [f"index={said(self.index)}: give a whole number from 0 up"]
        if not _is_whole(self.span, 1):
            return [f"span={said(self.span)}: give a whole number from 1 up"]
        if self.index % self.span:
            return [
                f"index={self.index} is no multiple of span={self.span}: windows taken together must not "
                "overlap others of the same span"
            ]
        if isinstance(self.edges, tuple) and self.index + self.span >= len(self.edges):
            return [
                f"index={self.index} with span={self.span} needs {self.index + self.span + 1} edges; there "
                f"are {len(self.edges)}"
            ]
        return []


@dataclass(frozen=True, slots=True)
class Partition:
    """Rows whose ``column`` has one declared value.

    Args:
        column: text, integers, booleans, dates or an ENUM; rows without a value are in no partition.
        value: as text.
        most: 1 with the unit "row": a row has one value; otherwise None, and every partition is charged.

    Raises:
        InputError: all that is wrong with it.
    """

    column: str
    value: str
    most: int | None = None

    def __post_init__(self) -> None:
        faults = _named("column", self.column)
        if not isinstance(self.value, str) or not _is_unicode(self.value):
            faults.append(f"value={said(self.value)}: give text (numbers, booleans and dates as text too)")
        if self.most is not None and not (_is_whole(self.most, 1) and self.most == 1):
            faults.append(f"most={said(self.most)}: give 1 with unit='row', or None")
        _refuse("partition", faults)


Slice = Window | Partition


@dataclass(frozen=True, slots=True)
class Sliced:
    """The slice of a resolved source.

    Args:
        slice: what was asked for.
        column: as the source spells it.
        reads: how its values are read, such as ``"DATE"``, ``"integer"``; other readings give other slices.
        value: of a partition, in its one spelling.
        unit: the unit column; None if a row is the unit.
        together: the guarantee is for all windows of the calendar together.
    """

    slice: Slice
    column: str
    reads: str
    value: str = ""
    unit: str | None = None
    together: bool = False

    @property
    def ends(self) -> tuple[str, str]:
        """Of a window: its first moment, and the first one after it."""
        edges = self._edges
        return (edges[self.slice.index], edges[-1]) if isinstance(self.slice, Window) else ("", "")

    @property
    def _edges(self) -> tuple[str, ...]:
        moments = self.slice.moments if isinstance(self.slice, Window) else ()
        return tuple(_spelled(moment) for moment in moments)

    @property
    def identity(self) -> dict[str, Any]:
        """What the ledger knows it by, JSON-ready: all that decides its rows, and ``most``."""
        facts: dict[str, Any] = {"column": self.column, "reads": self.reads, "most": self.slice.most}
        if isinstance(self.slice, Partition):
            return {**facts, "value": self.value}
        edges = list(self.ends if self.slice.most is None else self._edges)
        window = {"index": self.slice.index, "span": self.slice.span}
        return {**facts, "calendar": self.slice.calendar, "edges": edges, **window}

    @property
    def facts(self) -> dict[str, Any]:
        """What readers of a certificate need to know, JSON-ready."""
        facts: dict[str, Any] = {"column": self.column}
        if isinstance(self.slice, Partition):
            facts["value"] = self.value
        else:
            start, end = self.ends
            facts |= {"from": start, "until_before": end, "calendar": self.slice.calendar}
            facts |= {"window": self.slice.index + 1, "windows_together": self.slice.span}
        promise = {"claim": self._claim, "at_most": self.slice.most}
        return facts | promise | ({} if self.slice.most is None else {"assumed": self._assumed})

    @property
    def lines(self) -> tuple[str, ...]:
        """In words, for a plan."""
        bound = [] if self.slice.most is None else [f"owner states: {self._assumed}"]
        return (str(self), self._claim, *bound)

    def __str__(self) -> str:
        if isinstance(self.slice, Partition):
            return f"rows whose {self.column} is {self.value!r}"
        start, end = self.ends
        first, last = self.slice.index + 1, self.slice.index + self.slice.span
        windows = f"window {first}" if first == last else f"windows {first} to {last}"
        return f"{windows} of {self.slice.calendar!r}: {self.column} from {start} until before {end}"

    @property
    def _claim(self) -> str:
        """How often a unit bears the loss of such a release."""
        if self.together:
            return "The guarantee is for all rows of a unit in the calendar, in whichever windows they are."
        kind, most = "window" if isinstance(self.slice, Window) else "partition", self.slice.most
        of_this = f"The guarantee is for the rows of a unit in this {kind}"
        if most is None:
            return f"{of_this}. All {kind}s are charged: a unit with rows in several bears the loss of each."
        if self.unit is None:
            return (
                f"{of_this}. A row is in one {kind} only, so of all {kind}s together the dearest is charged."
            )
        if most == 1:
            first, dearest = f"one {kind}, the first in which it has rows", "dearest is charged"
        else:
            first = f"at most {most} {kind}s, the first in which it has rows"
            dearest = f"{most} dearest are charged"
        counting = (
            f"A unit counts in {first}, so of all {kind}s released in order under one name the {dearest}"
        )
        return f"{of_this}. {counting}. In all a unit loses at most what the account has spent."

    @property
    def _assumed(self) -> str:
        columns = self.column if self.unit is None else f"{self.column} and their {self.unit}"
        return f"rows that were there stay, and keep their {columns}; rows may be added at any time"


def is_slice(value: Any) -> bool:
    """Whether a value is a window or a partition."""
    return isinstance(value, Window | Partition)


def check_slice(value: Any) -> None:
    """Refuse what is no slice.

    Raises:
        InputError: says what to give.
    """
    if value is not None and not is_slice(value):
        raise InputError(f"window={said(value)}: give a Window, a Partition, or None")


def _refuse(kind: str, faults: list[str]) -> None:
    if faults:
        raise InputError(f"The {kind} cannot be used: {'; '.join(faults)}.")


def _named(argument: str, text: Any) -> list[str]:
    """A name must survive a ledger, a message and a terminal."""
    if isinstance(text, str) and text and text.isprintable() and _is_unicode(text):
        return []
    return [f"{argument}={said(text)}: give some printable text"]


def _is_unicode(text: str) -> bool:
    return "\x00" not in text and not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def _most_faults(most: Any) -> list[str]:
    if most is None or _is_whole(most, 1):
        return []
    return [f"most={said(most)}: give a whole number from 1 up, or None"]


def _is_whole(value: Any, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_moment(edge: Any) -> bool:
    try:
        return isinstance(edge, str) and _moment(edge).tzinfo is None
    except ValueError:
        return False


def _moment(edge: str) -> datetime:
    return datetime.fromisoformat(edge)


def _spelled(moment: datetime) -> str:
    """The one spelling of an edge."""
    return moment.isoformat() if moment.time() != time() else moment.date().isoformat()
