"""What a slice makes public of its own column: the dates of its window, or its one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction

from dpsyn_sql.attributes.attribute import Attribute, Label, edge_ticks
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.roles import Constant, Role
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.spec import natural_kind
from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.attributes.types import SqlType, from_tick, to_tick
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.source.names import shorten
from dpsyn_sql.source.slices import Sliced, Window


def shape_of_slice(shape: Shape, sliced: Sliced) -> Shape:
    """The shape without the codes of the slice's column that no row of the slice can have.

    The edges of a window and the value of a partition are declared, so no row is asked.
    """

    def narrowed(item: Attribute | Undiscovered) -> Attribute | Undiscovered:
        if isinstance(item, Undiscovered) and item.hierarchy is not None:
            return _of_tree(item, item.hierarchy, sliced)
        if item.name != sliced.column or item.source is not None:
            return item
        if isinstance(sliced.slice, Window):
            return _in_window(item, sliced.slice)
        return _of_value(item, sliced.value)

    return replace(shape, measured=tuple(narrowed(item) for item in shape.measured))


def without_time(shape: Shape, sliced: Sliced) -> Shape:
    """The shape of a panel: the column of the calendar tells the period, and is not measured.

    It is written as the first moment of the window.

    Raises:
        InputError: it is not a column of dates or times of its own.
    """
    time_column = next(
        (item for item in shape.measured if item.name == sliced.column and item.source is None), None
    )
    hierarchical = time_column is not None and (
        len(time_column.columns) != 1 or time_column.columns[0].name != time_column.name
    )
    if (
        time_column is None
        or hierarchical
        or not time_column.type.temporal
        or not isinstance(sliced.slice, Window)
    ):
        raise InputError(
            f"The periods of a panel are told by {shorten(sliced.column)!r}, which must be a DATE or "
            "TIMESTAMP column of its own in the output: no expression, hierarchy or constant, and not "
            "excluded."
        )
    role = Constant(time_column.name, time_column.sql_type, None)
    measured = tuple(item for item in shape.measured if item is not time_column)
    if not measured:
        raise InputError(
            "A panel needs a column beside those of persons and periods: all others are left out."
        )
    return at_window(
        replace(shape, measured=measured, roles=(*shape.roles, role)), time_column.name, sliced.slice
    )


def with_time(shape: Shape, sliced: Sliced) -> Shape:
    """The shape of a panel with the column of the calendar as it is read: for other windows of its source."""
    column = Undiscovered(sliced.column, sliced.reads, "temporal")
    return replace(shape, measured=(*shape.measured, column))


def at_window(shape: Shape, column: str, window: Window) -> Shape:
    """The shape of a panel in the period of a window."""

    def told(role: Role) -> Role:
        if role.name != column or not isinstance(role, Constant):
            return role
        first = window.start
        dated = role.type is not None and role.type.family == "date"
        return replace(role, value=first.date() if dated else first)

    return replace(shape, roles=tuple(map(told, shape.roles)))


def _of_tree(item: Undiscovered, tree: Hierarchy, sliced: Sliced) -> Attribute | Undiscovered:
    """A tree of the values of the slice: a box narrowed to its dates or its number, or its one text or id."""
    column = next(
        (member for member in tree.columns if member.name == sliced.column and member.source is None), None
    )
    if column is None:
        return item
    part = Undiscovered(column.name, column.sql_type, natural_kind(column.type), item.nullable)
    if not isinstance(tree, Points):
        return item if isinstance(sliced.slice, Window) else _of_value(part, sliced.value)
    axis = tree.columns.index(column)
    low, high = tree.lows[axis], tree.highs[axis]
    if not column.type.discrete:
        return item
    part = replace(part, least=Fraction(low), most=Fraction(high))
    cut = (
        _in_window(part, sliced.slice) if isinstance(sliced.slice, Window) else _of_value(part, sliced.value)
    )
    first, last = _ends(cut)
    narrow = tree.within(column.name, first, last)
    if narrow is None:
        return _cut(part, column.type, [first, last + 1])
    nullable = item.nullable and len(tree.columns) > 1
    return replace(item, nullable=nullable, hierarchy=replace(narrow, nullable=nullable))


def _ends(item: Attribute | Undiscovered) -> tuple[int, int]:
    """The least and the greatest tick."""
    if isinstance(item, Attribute):
        ticks = edge_ticks(item)
        return ticks[0], ticks[-1] - 1
    if item.least is None or item.most is None:
        raise InternalError("a slice of a box has no ends")
    return int(item.least), int(item.most)


def _in_window(item: Attribute | Undiscovered, window: Window) -> Attribute | Undiscovered:
    """Dates of the window only; rows without a date are in no window."""
    kind = item.type
    if not kind.temporal:
        return item
    start, end = to_tick(kind, window.start), to_tick(kind, window.end)
    if isinstance(item, Undiscovered):
        first, last = Fraction(start), Fraction(end - 1)
        least = first if item.least is None else max(first, item.least)
        most = last if item.most is None else min(last, item.most)
        if least > most:  # the window is outside of the stated bounds, but its rows have its dates
            least, most = first, last
        return replace(item, nullable=False, least=least, most=most)
    cuts = edge_ticks(item)
    low, high = max(start, cuts[0]), min(end, cuts[-1])
    if low >= high:  # the window is outside of the declared bounds, but its rows have its dates
        low, high = start, end
    return _cut(item, kind, [low, *(cut for cut in cuts if low < cut < high), high])


def _of_value(item: Attribute | Undiscovered, value: str) -> Attribute | Undiscovered:
    """One code, for the value of the partition."""
    kind = item.type
    if item.kind != "categorical":
        tick = int(value) if kind.family == "integer" else to_tick(kind, date.fromisoformat(value))
        return _cut(item, kind, [tick, tick + 1])
    declared: Sequence[Label] = item.labels if isinstance(item, Attribute) else ()
    label = next((candidate for candidate in declared if _as_text(candidate) == value), None)
    if label is None and kind.family != "text":
        return item
    only: tuple[Label, ...] = (value if label is None else label,)
    if isinstance(item, Attribute):
        return replace(item, labels=only, other=False, nullable=False, prefixes=())
    return Attribute(item.name, item.sql_type, "categorical", labels=only, source=item.source)


def _cut(item: Attribute | Undiscovered, kind: SqlType, ticks: Sequence[int]) -> Attribute:
    """An attribute without NULL that is cut there."""
    edges = tuple(from_tick(kind, tick) for tick in ticks)
    if isinstance(item, Attribute):
        return replace(item, edges=edges, nullable=False)
    return Attribute(
        item.name, item.sql_type, kind.binned, edges=edges, ordered=True, granularity=item.granularity
    )


def _as_text(label: Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)
