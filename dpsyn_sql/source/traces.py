"""Window functions over the rows of one privacy unit: a step from a row to the next one of the same person.

A window with PARTITION BY exactly the unit column gives each row something of its own unit's rows alone. Two
things would let in the rest of the table, and both are written out here: a collation, by which two units can
be one partition, and ties, whose order follows the place of rows in the table. So the partition is by the
unit's bytes, as rows per unit are counted, and an order is completed by the whole row.
"""

from __future__ import annotations

from typing import Any

import sqlglot.expressions as exp

from dpsyn_sql.source.names import fold, shorten
from dpsyn_sql.sqltext.fragments import Fragment, ident

Node = Any

WHOLE_ROW = (Fragment("row(*COLUMNS(*))"), Fragment("encode(CAST(row(*COLUMNS(*)) AS VARCHAR))"))
"""What completes an order: the columns by value, then their text as bytes, for values that differ and compare
equal (0.0 and -0.0, text under a collation). Rows that still tie are identical."""

ORDERED = frozenset({"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"})
"""Functions whose value depends on the order among ties."""

BY_PEERS = frozenset({"rank", "dense_rank", "count"})
"""Functions that treat ties alike. Of a frame in ROWS that is not so."""

# Sums and means of doubles depend on the place of the rows in memory; which of several equal values is the
# least or the greatest does too.
WINDOW_FUNCTIONS = ORDERED | BY_PEERS


def window_fault(window: Node, unit: str) -> str | None:
    """What a window is, in words, if it may not stand in a query of this unit; else None."""
    name = _function(window)
    if name not in WINDOW_FUNCTIONS:
        return f"{shorten(name)} OVER a window (allowed are {', '.join(sorted(WINDOW_FUNCTIONS))})"
    clauses = {key for key, value in window.args.items() if value}
    if not clauses <= {"this", "partition_by", "order", "spec", "over"}:
        return "a named window, FILTER, IGNORE NULLS or another addition to a window function"
    if any(value for key, value in _spec(window).items() if key not in _FRAME):
        return "a window function with EXCLUDE"
    partition = window.args.get("partition_by") or []
    if len(partition) != 1 or not _is_unit(partition[0], unit):
        return f"a window function without PARTITION BY {unit}, the privacy unit alone and without its table"
    return None


def operands(window: Node) -> list[Node]:
    """The expressions in a window that are to be row-wise."""
    inside = list(window.this.iter_expressions())
    order = window.args.get("order")
    if order is not None:
        inside.append(order)
    ends = (_spec(window).get("start"), _spec(window).get("end"))
    return inside + [end for end in ends if isinstance(end, exp.Expression)]


def settle(window: Node, tokens: dict[str, Fragment], stem: str) -> None:
    """Write the partition and the end of the order as ``tokens``, by which the printed text is completed."""
    unit = window.args["partition_by"][0]
    token = f"{stem}_unit_{fold(unit.name)}"
    tokens[token] = Fragment(f"encode(CAST({ident(unit.name)} AS VARCHAR))")
    window.set("partition_by", [_column(token)])
    if _function(window) in BY_PEERS and str(_spec(window).get("kind", "")).upper() != "ROWS":
        return
    order = window.args.get("order") or exp.Order(expressions=[])
    for number, tie_break in enumerate(WHOLE_ROW):
        tokens[f"{stem}_row_{number}"] = tie_break
        order.append("expressions", exp.Ordered(this=_column(f"{stem}_row_{number}"), nulls_first=False))
    window.set("order", order)


_FRAME = ("kind", "start", "start_side", "end", "end_side")


def _function(window: Node) -> str:
    call = window.this
    return fold(call.name if isinstance(call, exp.Anonymous) else _name(call))


def _name(call: Node) -> str:
    return str(call.sql_name()) if isinstance(call, exp.Func) else str(call.key)


def _spec(window: Node) -> dict[str, Any]:
    spec = window.args.get("spec")
    return dict(spec.args) if spec is not None else {}


def _is_unit(node: Node, unit: str) -> bool:
    return isinstance(node, exp.Column) and not node.table and fold(node.name) == fold(unit)


def _column(name: str) -> Node:
    return exp.column(exp.to_identifier(name, quoted=True))
