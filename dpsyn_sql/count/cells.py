"""PRIVATE side: from a value to the number of its cell in the trees over a column, as SQL.

Values are compared first and clipped before anything is computed, so that nothing overflows at the
ends of a type; a value of no cell is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from dpsyn_sql.domain.types import SqlType, tick_literal
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import TreeRoot
from dpsyn_sql.sqltext.dialect import DUCKDB, Dialect
from dpsyn_sql.sqltext.fragments import Fragment, literal

_LARGEST = Fraction(float.fromhex("0x1.fffffffffffffp+1023"))


def cell_expression(
    kind: SqlType, roots: Sequence[TreeRoot], column: Fragment, dialect: Dialect = DUCKDB
) -> Fragment:
    """The number of a value's finest cell through all ``roots`` as BIGINT; NULL outside of them.

    Raises:
        InternalError: roots that overlap or descend, have fractions of ticks, or 2^62 cells or more.
    """
    _check(kind, roots)
    if not roots:
        return Fragment("CAST(NULL AS BIGINT)")
    branch = _float_branch if kind.family == "float" else _tick_branch
    offset, branches = 0, []
    for root in roots:
        branches.append(branch(kind, root, offset, column, dialect))
        offset += 1 << root.depth
    return Fragment("CASE " + " ".join(branches) + " END")


def _check(kind: SqlType, roots: Sequence[TreeRoot]) -> None:
    if not (kind.discrete or kind.family == "float"):
        raise InternalError(f"there are no trees over values of type {kind.family}")
    if any(root.width <= 0 or not 0 <= root.depth < 62 for root in roots):
        raise InternalError("a tree needs cells of some width and a depth")
    if sum(1 << root.depth for root in roots) >= 2**62:
        raise InternalError("the trees have too many cells to be numbered")
    if any(_end(one) > two.low for one, two in pairwise(roots)):
        raise InternalError("the roots of trees ascend and are disjoint")
    if kind.discrete and roots:
        if any(root.low.denominator > 1 or root.width.denominator > 1 for root in roots):
            raise InternalError("cells of a discrete type are whole ticks")
        if roots[0].low < kind.low or _end(roots[-1]) > kind.high + 1:
            raise InternalError("a tree goes beyond the values of its type")


def _end(root: TreeRoot) -> Fraction:
    return root.low + root.width * (1 << root.depth)


def _tick_branch(kind: SqlType, root: TreeRoot, offset: int, column: Fragment, dialect: Dialect) -> str:
    low, end, width = int(root.low), int(_end(root)), int(root.width)
    start, stop = tick_literal(kind, low), tick_literal(kind, end - 1)
    inside = f"LEAST(GREATEST({column}, {start}), {stop})"
    if kind.temporal:
        cell = _temporal_cell(kind, inside, low, width, dialect)
    else:
        cell = _number_cell(kind, inside, low, end, width)
    # Nanoseconds after the last whole microsecond still belong to it.
    ends = f"< {tick_literal(kind, end)}" if kind.text == "TIMESTAMP_NS" else f"<= {stop}"
    number = f"{offset} + CAST({cell} AS BIGINT)" if root.depth else str(offset)
    return f"WHEN {column} >= {start} AND {column} {ends} THEN CAST({number} AS BIGINT)"


def _temporal_cell(kind: SqlType, inside: str, low: int, width: int, dialect: Dialect) -> str:
    if kind.family == "date":
        return f"({inside} - {tick_literal(kind, low)}) // {width}"
    if kind.text == "TIMESTAMP_NS":
        start, ticks = _typed(low * 1_000, "HUGEINT"), _typed(width * 1_000, "HUGEINT")
        return f"(CAST({dialect.epoch(inside, True)} AS HUGEINT) - {start}) // {ticks}"
    start, ticks = _typed(low * kind.unit, "BIGINT"), _typed(width * kind.unit, "BIGINT")
    return f"({dialect.epoch(inside, False)} - {start}) // {ticks}"


def _number_cell(kind: SqlType, inside: str, low: int, end: int, width: int) -> str:
    """Ticks from the start of the root, in a type that holds them all."""
    if kind.family == "decimal":
        inside = f"replace(CAST({inside} AS VARCHAR), '.', '')"  # its text has all digits of the scale
    if kind.text == "UHUGEINT":
        wide = "UHUGEINT"
    elif low > -(2**62) and end < 2**62:
        wide = "BIGINT"
    elif end - low <= 2**127:
        wide = "HUGEINT"
    else:
        raise InternalError("a tree spans more values than 128 bits can count")
    return f"(CAST({inside} AS {wide}) - {_typed(low, wide)}) // {_typed(width, wide)}"


def _typed(value: int, wide: str) -> str:
    return f"CAST('{value}' AS {wide})"


def _float_branch(kind: SqlType, root: TreeRoot, offset: int, column: Fragment, _: Dialect) -> str:
    """Distances in DOUBLE, which also holds every FLOAT; clipped to the root's cells at the end."""
    value, end = f"CAST({column} AS DOUBLE)", _end(root)
    low, last = max(root.low, -_LARGEST), min(end, _LARGEST)
    ends = "<" if end <= _LARGEST else "<="
    number = str(offset)
    if root.depth:
        if end - root.low > _LARGEST or float(root.width) == 0:
            raise InternalError("a tree over floating-point numbers is too wide or its cells too narrow")
        inside = f"LEAST(GREATEST({value}, {_double(low)}), {_double(last)})"
        steps = f"floor(({inside} - {_double(low)}) / {_double(root.width)})"
        highest = _double(Fraction((1 << root.depth) - 1))
        number = f"{offset} + CAST(LEAST(GREATEST({steps}, {_double(Fraction(0))}), {highest}) AS BIGINT)"
    return f"WHEN {value} >= {_double(low)} AND {value} {ends} {_double(last)} THEN CAST({number} AS BIGINT)"


def _double(value: Fraction) -> str:
    return literal(float(value))
