"""Windows in DuckDB's own syntax tree, and whether the column that they partition by reaches the result.

Two lines of DuckDB are read: they name the parts of calls and casts differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpsyn_sql.source.engine_syntax import WindowCall
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.query_words import HIDDEN_COLUMNS

Node = dict[str, Any]
Carried = frozenset[str] | None
"""Names by which every window at or below a node partitions, and that its rows still have unchanged;
None: no window is below."""

_NOTHING: frozenset[str] = frozenset()


@dataclass
class TraceReading:
    """One walk over the structure of a query; ``windows`` are found on the way."""

    windows: list[WindowCall] = field(default_factory=list)

    def carried(self, node: Node, ctes: Mapping[str, Carried]) -> Carried:
        """What a query node or a relation hands on."""
        known = dict(ctes)
        for entry in (node.get("cte_map") or {}).get("map") or ():
            value = entry.get("value") or {}
            query = value.get("query_node") or (value.get("query") or {}).get("node") or {}
            found = self.carried(query, known)
            renamed = found is not None and value.get("aliases")
            known[fold(str(entry.get("key")))] = _NOTHING if renamed else found
        kind = node.get("type")
        if kind == "SELECT_NODE":
            return self._select(node, known)
        if kind == "BASE_TABLE":
            whole = not node.get("schema_name") and not node.get("catalog_name")
            found = known.get(fold(str(node.get("table_name")))) if whole else None
            return _NOTHING if found is not None and node.get("column_name_alias") else found
        if kind == "SUBQUERY":
            found = self.carried((node.get("subquery") or {}).get("node") or {}, known)
            return _NOTHING if found is not None and node.get("column_name_alias") else found
        parts = [node.get("left"), node.get("right"), *(node.get("children") or ())]
        below = [self.carried(part, known) for part in parts if isinstance(part, dict) and "type" in part]
        return None if all(found is None for found in below) else _NOTHING

    def _select(self, node: Node, ctes: Mapping[str, Carried]) -> Carried:
        source = node.get("from_table") or {}
        below = self.carried(source, ctes)
        parts = [part for key, part in node.items() if key not in ("from_table", "cte_map")]
        own = [_window(found) for part in parts for found in _of_class("WINDOW", part)]
        if any(_is_hidden(column) for part in parts for column in _of_class("COLUMN_REF", part)):
            own = [replace(call, whole=False) for call in own]
        self.windows += own
        if not own and below is None:
            return None
        if source.get("type") not in ("BASE_TABLE", "SUBQUERY"):
            return _NOTHING
        names = {call.unit for call in own} if own else set(below or ())
        if own and below is not None:
            names &= below
        if own and len({call.unit for call in own}) > 1:
            return _NOTHING
        items = node.get("select_list") or []
        return frozenset(
            name for name in names if name is not None and _hands_on(items, name) and _keeps(items, name)
        )


def _keeps(items: list[Node], name: str) -> bool:
    """Whether no other item of a SELECT can get ``name`` from the database: of two items of one name it calls
    the second ``name_1``, or by the next number that is free. So a name that ends in a digit comes first."""
    return not name[-1:].isdigit() or _hands_on(items[:1], name)


def _hands_on(items: list[Node], name: str) -> bool:
    """Whether exactly one item of a SELECT gives ``name``, and it is the column of that name itself."""
    unchanged = 0
    for item in items:
        alias, kind = fold(str(item.get("alias") or "")), item.get("class")
        if kind == "STAR":
            changed = (
                "replace_list",
                "rename_list",
                "qualified_exclude_list",
                "relation_name",
                "expr",
                "columns",
            )
            if any(item.get(key) for key in changed):
                return False
            unchanged += name not in {fold(str(left)) for left in item.get("exclude_list") or ()}
        elif kind == "COLUMN_REF":
            names = [fold(str(part)) for part in item.get("column_names") or ()]
            if name == (alias or names[-1]):
                if names != [name]:
                    return False
                unchanged += 1
        elif not alias or alias == name:
            return False
    return unchanged == 1


def _is_hidden(column: Node) -> bool:
    """Whether ``*`` may leave the column out: rows that are one to ``COLUMNS(*)`` can differ in it."""
    return fold(str((column.get("column_names") or [""])[-1])) in HIDDEN_COLUMNS


def _of_class(name: str, part: Any) -> Iterator[Node]:
    """The expressions of a class in a part of the tree."""
    waiting = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("class") == name:
                yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _window(node: Node) -> WindowCall:
    """Read a window. The end of its order that is the whole row is taken off the tree."""
    partitions, orders = node.get("partitions") or [], node.get("orders") or []
    unit = _bytes_of(partitions[0]) if len(partitions) == 1 else None
    named = (
        unit is not None and unit.get("class") == "COLUMN_REF" and len(unit.get("column_names") or ()) == 1
    )
    last = [order.get("expression") or {} for order in orders[-2:]]
    whole = len(last) == 2 and _is_row(last[0]) and _is_row(_bytes_of(last[1]) or {})
    if whole:
        del orders[-2:]
    extras = (node.get("distinct"), node.get("filter_expr"), node.get("arg_orders"), node.get("ignore_nulls"))
    return WindowCall(
        fold(str(node.get("function_name"))),
        fold(str(unit["column_names"][0])) if unit is not None and named else None,
        whole,
        any("ROWS" in str(node.get(end)) for end in ("start", "end")),
        not any(extras) and node.get("exclude_clause", "NO_OTHER") == "NO_OTHER",
    )


def arguments_of(call: Node) -> list[Node]:
    """The expressions that a function is called with."""
    given = call.get("children")
    return (
        given if given is not None else [part.get("expression") or {} for part in call.get("arguments") or ()]
    )


def _bytes_of(node: Node) -> Node | None:
    """x where the node is encode(CAST(x AS VARCHAR))."""
    inside = (
        arguments_of(node)
        if node.get("class") == "FUNCTION" and node.get("function_name") == "encode"
        else []
    )
    if len(inside) != 1 or inside[0].get("class") != "CAST" or inside[0].get("try_cast"):
        return None
    cast = inside[0]
    kind = (cast.get("cast_type") or {}).get("id") or (cast.get("type_expr") or {}).get("type_name")
    child = cast.get("child")
    return child if kind == "VARCHAR" and isinstance(child, dict) else None


def _is_row(node: Node) -> bool:
    """Whether the node is row(*COLUMNS(*)): all columns of the relation as one value."""
    inside = (
        arguments_of(node) if node.get("class") == "FUNCTION" and node.get("function_name") == "row" else []
    )
    if len(inside) != 1 or inside[0].get("type") != "OPERATOR_UNPACK":
        return False
    below = inside[0].get("children") or []
    if len(below) != 1 or below[0].get("class") != "STAR" or below[0].get("columns") is not True:
        return False
    parts = ("relation_name", "exclude_list", "replace_list", "expr", "qualified_exclude_list", "rename_list")
    return not any(below[0].get(part) for part in parts)
