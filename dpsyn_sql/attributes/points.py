"""Points: a box over one or more numbers or moments, every level halved in each of its dimensions.

Two columns make a quadtree, four hold a journey, one is the dyadic tree of a number or a date. The id of a
node is its Morton code: the bits of its cells, column by column, the first column's most significant. A box
is cut in the units of its columns' types (``domain.types``): whole ticks, or doubles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import edge_ticks
from dpsyn_sql.attributes.cuts import Cuts, binned_attribute
from dpsyn_sql.attributes.fields import Bound, Box, Cut, Depth
from dpsyn_sql.attributes.leaf_values import LeafColumn, LeafFact, drawn_number, lists_by_leaf
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.spec import Terms, TreeSpec, TypedColumn, Unfit, natural_kind, shown, tree_to_learn
from dpsyn_sql.attributes.trees import MAX_COLUMNS, HierarchyColumn
from dpsyn_sql.attributes.types import (
    MAX_SCALE,
    MAX_TICK,
    SqlType,
    from_tick,
    from_ticks,
    supported_type,
    tick_expression,
    tick_literal,
)
from dpsyn_sql.errors import InternalError
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment, literal, value_at

MAX_DEPTH = 31
"""Levels of one dimension at most; a key of several has 62 bits at most."""

_BITS = 62
_ULPS = 64  # the least width of a cell of floating point numbers, in units of the last place
_CHUNK = 8  # bits that one list spreads


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension: the values ``low`` to ``high`` (both included; ticks, or doubles) of a type.

    Discrete values are cut by ``unit`` ticks: unit number i (from 0, of ``size``) is in cell
    floor(i 2^level / size) of a level, so cells differ by one unit at most and halves nest.
    """

    kind: SqlType
    low: int | float
    high: int | float
    depth: int
    unit: int = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        unit = size = 1
        if self.kind.discrete:
            ticks = int(self.high) - int(self.low) + 1
            unit = max(1, math.ceil(ticks * 2**self.depth / MAX_TICK))  # number * 2^depth is a BIGINT
            size = -(-ticks // unit)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "size", size)

    def cell(self, value: Fragment) -> str:
        """The cell of the deepest level as SQL; NULL outside, and for NULL and NaN."""
        if self.kind.discrete:
            low, high = (tick_literal(self.kind, int(end)) for end in (self.low, self.high))
            position = f"({tick_expression(self.kind, value)} - ({int(self.low)}))"
            if self.unit > 1:
                position = f"({position} // {self.unit})"
            cell = (
                position if self.size == 2**self.depth else f"({position} * {2**self.depth} // {self.size})"
            )
        else:
            low, high = literal(float(self.low)), literal(float(self.high))
            value = value if self.kind.text == "DOUBLE" else Fragment(f"CAST({value} AS DOUBLE)")
            position = f"floor(({value} - {low}) * {literal(self.scale)})"
            cell = f"LEAST(CAST({position} AS BIGINT), {2**self.depth - 1})"
        return f"CASE WHEN {value} >= {low} AND {value} <= {high} THEN {cell} END"

    @property
    def scale(self) -> float:
        """Cells of the deepest level per unit of a floating point number."""
        return 2.0**self.depth / (self.high - self.low)

    def bounds(self, cells: NDArray[np.int64], level: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The least and the greatest value of each cell of a level: int64 ticks, or float64.

        A cell without a value of a discrete type has a greatest value below its least. Of floating point
        numbers a few next to a cut are left out, so that rounding puts no value into the cell beside it.
        """
        if self.kind.discrete:
            starts = [self._start(cells + step, level) for step in (0, 1)]
            lows, ends = (int(self.low) + self.unit * start for start in starts)
            return lows, np.minimum(ends - 1, int(self.high))
        width = (self.high - self.low) / 2.0**level
        margin = 8 * _epsilon(self.kind) * max(abs(self.low), abs(self.high))
        lows = np.where(cells > 0, self.low + cells * width + margin, self.low)
        last = cells == 2**level - 1
        highs = np.where(last, self.high, self.low + (cells + 1) * width - margin)
        return lows, highs

    def _start(self, cells: NDArray[np.int64], level: int) -> NDArray[np.int64]:
        """The number of the first unit of a cell: ceil(cell size / 2^level)."""
        return -((-cells * self.size) >> level)

    def text(self, low: int | float, high: int | float, level: int) -> str:
        """How a person reads the cell from ``low`` to ``high``."""
        if self.kind.discrete:
            first, last = str(from_tick(self.kind, int(low))), str(from_tick(self.kind, int(high)))
            return first if first == last else f"{first} to {last}"
        width = (self.high - self.low) / 2.0**level
        digits = max(1, math.ceil(math.log10(max(abs(self.low), abs(self.high)) / width)) + 2)
        return f"{low:.{digits}g} to {high:.{digits}g}"


def deepest(kind: SqlType, low: float, high: float) -> int:
    """How often the values from ``low`` to ``high`` can be halved; 0: there is one value only, or floating
    point numbers cannot tell more apart."""
    if kind.discrete:
        return min(MAX_DEPTH, (int(high) - int(low)).bit_length())
    least = _ULPS * _epsilon(kind) * max(abs(low), abs(high))
    if not 0 < least < high - low < math.inf:
        return 0
    return max(0, min(MAX_DEPTH, math.floor(math.log2((high - low) / least))))


def depth_limit(boxes: Sequence[tuple[SqlType, int | float, int | float]]) -> int:
    """Levels that a box can have at most: until every node has one value, or until one floating point number
    cannot tell cells apart, or the ids are too long. ``boxes``: type, least and greatest value per column."""
    limits = [(deepest(*box), box[0].discrete) for box in boxes]
    floating = [limit for limit, discrete in limits if not discrete]
    return min(max(limit for limit, _ in limits), *floating, _BITS // len(boxes))


def _epsilon(kind: SqlType) -> float:
    return 2.0**-23 if kind.text == "FLOAT" else 2.0**-52


@dataclass(frozen=True, slots=True)
class Points:
    """A ``Hierarchy`` over a box of one to ``MAX_COLUMNS`` columns; ``depth`` halvings of each.

    ``lows``, ``highs``: the ends of the box, both included: ticks, or doubles for FLOAT and DOUBLE. A node
    of one value in each column has no children, and no node is without values.

    Raises:
        InternalError: the box, its types or the depth do not fit together; see ``box_fault``.
    """

    text: ClassVar[bool] = False
    name: str
    columns: tuple[HierarchyColumn, ...]
    lows: tuple[int | float, ...]
    highs: tuple[int | float, ...]
    depth: int
    nullable: bool = False
    axes: tuple[Axis, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds = [supported_type(column.sql_type, column.name) for column in self.columns]
        count = len(kinds)
        if not 1 <= count <= MAX_COLUMNS or not len(self.lows) == len(self.highs) == count:
            raise InternalError(f"the box of {self.name!r} has no such number of columns")
        ends = list(zip(kinds, self.lows, self.highs, strict=True))
        if any(box_fault(*end) for end in ends) or not 1 <= self.depth <= depth_limit(ends):
            raise InternalError(f"the box of {self.name!r} does not fit its types")
        object.__setattr__(self, "axes", tuple(Axis(*end, self.depth) for end in ends))

    def within(self, column: str, low: int, high: int) -> Points | None:
        """The same points with the ticks of a column from ``low`` to ``high`` alone; of fewer levels if there
        are fewer values. None if one value is left of all."""
        axis = [member.name for member in self.columns].index(column)
        lows, highs = list(self.lows), list(self.highs)
        lows[axis], highs[axis] = low, high
        kinds = [member.type for member in self.columns]
        depth = min(self.depth, depth_limit(list(zip(kinds, lows, highs, strict=True))))
        if depth < 1:
            return None
        return replace(self, lows=tuple(lows), highs=tuple(highs), depth=depth)

    @property
    def branching(self) -> int:
        return 1 << len(self.columns)

    def root(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)

    def children(self, nodes: NDArray[Any], level: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ids = np.asarray(nodes, dtype=np.int64)
        parents = np.repeat(np.arange(len(ids), dtype=np.int64), self.branching)
        children = (ids[:, None] * self.branching + np.arange(self.branching)).reshape(-1)
        if level >= self.depth:
            return children[:0], parents[:0]
        inhabited = np.ones(len(children), dtype=bool)
        single = np.ones(len(ids), dtype=bool)
        of_parents = self.boxes(ids, level)
        for axis, (lows, highs) in enumerate(self.boxes(children, level + 1)):
            if self.axes[axis].kind.discrete:
                inhabited &= highs >= lows
            single &= of_parents[axis][0] == of_parents[axis][1]
        inhabited &= ~single[parents]
        return children[inhabited], parents[inhabited]

    def lowest(self, nodes: NDArray[Any], level: int) -> NDArray[np.int64]:
        return np.asarray(nodes, dtype=np.int64) << len(self.columns) * (self.depth - level)

    def boxes(self, nodes: NDArray[Any], level: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """For each column the least and the greatest value of each node (``Axis.bounds``)."""
        cells = self.cells(nodes, level)
        return [axis.bounds(axis_cells, level) for axis, axis_cells in zip(self.axes, cells, strict=True)]

    def cells(self, nodes: NDArray[Any], level: int) -> list[NDArray[np.int64]]:
        """For each column the cell of each node, 0 to 2^level - 1."""
        ids = np.asarray(nodes, dtype=np.int64)
        count = len(self.columns)
        columns = []
        for axis in range(count):
            cells = np.zeros(len(ids), dtype=np.int64)
            for bit in range(level):
                cells |= (ids >> (bit * count + count - 1 - axis) & 1) << bit
            columns.append(cells)
        return columns

    def labels(self, nodes: NDArray[Any], level: int) -> list[str]:
        columns = []
        for column, axis, (lows, highs) in zip(
            self.columns, self.axes, self.boxes(nodes, level), strict=True
        ):
            prefix = f"{column.name} " if len(self.columns) > 1 else ""
            texts = (axis.text(low, high, level) for low, high in zip(lows, highs, strict=True))
            columns.append([prefix + text for text in texts])
        return [", ".join(row) for row in zip(*columns, strict=True)]

    def key(self, values: Sequence[Fragment]) -> Fragment:
        cells = [axis.cell(value) for axis, value in zip(self.axes, values, strict=True)]
        if len(cells) == 1:
            return Fragment(cells[0])
        spread = [self._spread(f"({cell})", len(cells) - 1 - index) for index, cell in enumerate(cells)]
        return Fragment(f"({' + '.join(spread)})")

    def _spread(self, cell: str, shift: int) -> str:
        """The bits of a cell as far apart as there are columns, the lowest at ``shift``."""
        count, terms = len(self.columns), []
        for start in range(0, self.depth, _CHUNK):
            bits = min(_CHUNK, self.depth - start)
            listed = [
                sum((number >> bit & 1) << bit * count for bit in range(bits)) for number in range(2**bits)
            ]
            chunk = f"({cell} >> {start} & {2**bits - 1})"
            part = value_at(listed, chunk)
            factor = 2 ** (start * count + shift)
            terms.append(f"CAST({part} AS BIGINT) * {factor}")
        return " + ".join(terms)

    def at(self, key: Fragment, level: int) -> Fragment:
        return Fragment(f"({key} >> {len(self.columns) * (self.depth - level)})")

    def leaf_columns(
        self, levels: tuple[int, ...], nodes: NDArray[Any], first: int, *, nullable: bool
    ) -> list[LeafColumn]:
        """Uniform in the box of a leaf, in the steps of the columns' types."""
        boxes = lists_by_leaf(
            levels, nodes, lambda ids, level: [e.tolist() for pair in self.boxes(ids, level) for e in pair]
        )
        whole = [end.tolist()[0] for pair in self.boxes(self.root(), 0) for end in pair]
        ends = [[*box, None if nullable else end, None] for box, end in zip(boxes, whole, strict=True)]
        return [
            _number_column(axis.kind, ends[2 * place], ends[2 * place + 1], first + place)
            for place, axis in enumerate(self.axes)
        ]

    def named(self) -> Mapping[str, Any]:
        columns = [
            {
                **column.named,
                "low": low if isinstance(low, int) else repr(low),
                "high": high if isinstance(high, int) else repr(high),
            }
            for column, low, high in zip(self.columns, self.lows, self.highs, strict=True)
        ]
        facts = {"kind": "point", "name": self.name, "columns": columns, "depth": self.depth}
        return {**facts, "nullable": True} if self.nullable else facts


def _number_column(kind: SqlType, lows: Sequence[Any], highs: Sequence[Any], number: int) -> LeafColumn:
    """A value from the least to the greatest one of the leaf."""
    if kind.text == "FLOAT":
        lows, highs = _singles(lows, np.inf), _singles(highs, -np.inf)
    stored = "BIGINT" if kind.discrete else "DOUBLE"
    low, high = LeafFact(f"low{number}", stored, lows), LeafFact(f"high{number}", stored, highs)
    if kind.discrete:
        return LeafColumn(
            (low, high), lambda prefix, bits: from_ticks(kind, drawn_number(prefix, low, high, bits))
        )

    def value(prefix: str, bits: Fragment) -> Fragment:
        u = f"(CAST({bits} >> 11 AS DOUBLE) * CAST('{2.0**-53!r}' AS DOUBLE))"
        first, last = f"{prefix}{low.name}", f"{prefix}{high.name}"
        drawn = f"GREATEST({first}, LEAST({first} * (1 - {u}) + {last} * {u}, {last}))"
        return Fragment(f"CAST({drawn} AS {kind.sql})")

    return LeafColumn((low, high), value)


def _singles(values: Sequence[float | None], inwards: float) -> list[float | None]:
    """The nearest numbers of type FLOAT, inwards."""
    nearest: list[float | None] = []
    for value in values:
        single = None if value is None else np.float32(value)
        if value is not None and single is not None and (float(single) - value) * inwards < 0:
            single = np.nextafter(single, np.float32(inwards))
        nearest.append(None if single is None else float(single))
    return nearest


def box_fault(kind: SqlType, low: float, high: float) -> str | None:
    """Why values of the type from ``low`` to ``high`` are no side of a box, or None; one tick is a side."""
    if not kind.discrete and kind.family != "float":
        return f"type {kind.text} has no halves; allowed are numbers, dates and times"
    if kind.family == "decimal" and kind.scale > MAX_SCALE:
        return f"type {kind.text} has more than {MAX_SCALE} decimal places; cast it in a query"
    if kind.discrete and not -MAX_TICK < int(low) <= int(high) < MAX_TICK:
        return f"the bounds are too large; allowed are {MAX_TICK} steps of the type {kind.text} around zero"
    if not kind.discrete and not math.isfinite(high - low):
        return f"the bounds are too far apart for the type {kind.text}; write narrower ones"
    if not kind.discrete and deepest(kind, low, high) < 1:
        return f"the bounds are too close for the type {kind.text}; write an upper bound further above"
    return None


# -- declarations ------------------------------------------------------------------------------------


class DyadicSpec(TreeSpec):
    """A number, date or time between bounds (both included) whose range is halved where the rows are."""

    type: Literal["dyadic"]
    lower: Bound
    upper: Bound
    depth: Depth | None = None

    def implied_types(self) -> tuple[SqlType, ...]:
        return (Cuts(self.lower, self.upper).implied_type(),)

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Undiscovered:
        ((column, kind),) = columns
        ends = [(column, kind, self.lower, self.upper)]
        return tree_to_learn(_points(column.name, ends, self.depth, self.may_be_null(columns)), self)


class PointSpec(TreeSpec):
    """Two to eight columns of the source that are a place, or a way from one to another, under a name of
    its own: their box is halved where the rows are."""

    type: Literal["point"]
    columns: Box
    depth: Depth | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.columns)

    def implied_types(self) -> tuple[SqlType, ...]:
        """Places are seldom whole numbers."""
        return tuple(
            supported_type("DOUBLE", "") if isinstance(lower, Decimal) else Cuts(lower, upper).implied_type()
            for _, lower, upper in self.columns
        )

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Undiscovered:
        """A point without a value is written as NULL in all of its columns, so none of a nullable point is
        NOT NULL."""
        ends = [
            (column, kind, lower, upper)
            for (column, kind), (_, lower, upper) in zip(columns, self.columns, strict=True)
        ]
        return tree_to_learn(_points(name, ends, self.depth, self.may_be_null(columns)), self)


SPECS = {"point": PointSpec, "dyadic": DyadicSpec}

_USUAL_BITS = 32
_USUAL_DEPTH = 24
# Levels of a box whose depth is not stated: cells of some metres in a city, of seconds in a year.

_Box = tuple[SqlType, int | float, int | float]


def _points(
    name: str,
    ends: Sequence[tuple[Column, SqlType, Cut, Cut]],
    depth: int | None,
    nullable: bool,
) -> Points:
    boxes, faults = list[_Box](), list[str]()
    for end in ends:
        who = "" if name == end[0].name else f"{end[0].name!r}: "
        try:
            boxes.append(_box(*end))
        except Unfit as unfit:
            faults.extend(f"{who}{fault}" for fault in unfit.args)
    if faults:
        raise Unfit(*faults)
    limit = depth_limit(boxes)
    if depth is not None and depth > limit:
        raise Unfit(f"depth is {depth}; allowed are 1 to {limit} in this box")
    return Points(
        name,
        tuple(HierarchyColumn(column.name, kind.text) for column, kind, _, _ in ends),
        tuple(low for _, low, _ in boxes),
        tuple(high for _, _, high in boxes),
        min(limit, _USUAL_DEPTH, _USUAL_BITS // len(ends)) if depth is None else depth,
        nullable,
    )


def _box(column: Column, kind: SqlType, lower: Cut, upper: Cut) -> _Box:
    """The ends of one column, in the units of its type."""
    if natural_kind(kind) == "categorical":
        raise Unfit(f"type {shown(kind)} has no halves; allowed are numbers, dates and times")
    bounded = binned_attribute(column, kind, kind.binned, Cuts(lower, upper, bins=1))
    if kind.discrete:
        low, end = edge_ticks(bounded)
        box: _Box = (kind, low, end - 1)
    else:
        first, last = (edge for edge in bounded.edges if isinstance(edge, float))
        box = (kind, first, last)
    fault = box_fault(*box)
    if fault is not None:
        raise Unfit(fault)
    return box
