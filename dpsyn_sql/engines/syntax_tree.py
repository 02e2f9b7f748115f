"""DuckDB's own syntax tree of a query, as its JSON tells it, in the words of ``source.engine_syntax``.

Two lines of DuckDB are read: they name the parts of CTEs, set operations, calls and casts differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpsyn_sql.source.names import fold
from dpsyn_sql.source.query_words import (
    CLOCK_COLUMNS,
    HIDDEN_COLUMNS,
    LAMBDA_FUNCTIONS,
    NAMING_FUNCTIONS,
    POSITIONAL_COLUMNS,
    Join,
    Name,
    Syntax,
    WindowCall,
)

Node = dict[str, Any]
_Ctes = Mapping[str, frozenset[Name]]
_Carried = frozenset[str] | None
"""Names by which every window at or below a node partitions, and that its rows still have unchanged;
None: no window is below."""

_NOTHING: frozenset[str] = frozenset()

_STAR_CHANGES = ("replace_list", "rename_list", "qualified_exclude_list", "relation_name", "expr")
_SET_CLAUSES = ("group_expressions", "group_sets", "having", "qualify", "sample", "at_clause")


def read_syntax(text: str) -> Syntax | None:
    """The parts of a query's JSON; None if it is no tree or holds an error.

    Raises:
        ValueError: ``text`` is no JSON.
    """
    tree = json.loads(text)
    if not isinstance(tree, dict) or tree.get("error"):
        return None
    reading, traces = _Reading(), _TraceReading()
    statements = [statement.get("node") or {} for statement in tree.get("statements", ())]
    carried = [traces.carried(node, {}) for node in statements]
    for node in _nodes(tree):
        reading.note(node)
    tables = frozenset().union(*(reading.tables(node, {}) for node in statements))
    hidden = {name for name in reading.named if len(name) > 1 or fold(name[0]) not in reading.ctes}
    return Syntax(
        len(statements),
        sum(len(node.get("select_list", ())) for node in statements),
        frozenset(reading.classes),
        frozenset(reading.functions),
        frozenset(reading.clauses),
        tables | hidden,
        tuple(reading.joins),
        frozenset(reading.types),
        tuple(traces.windows),
        # A window that stands elsewhere than in a SELECT is none that was followed.
        (carried[0] or frozenset()) if reading.windows == len(traces.windows) and carried else frozenset(),
    )


def _nodes(tree: Any) -> Iterator[Node]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _name(table: Node) -> Name:
    parts = (table.get("catalog_name"), table.get("schema_name"), table.get("table_name"))
    return tuple(str(part) for part in parts if part)


@dataclass
class _Reading:
    """What one walk collects."""

    classes: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    clauses: set[str] = field(default_factory=set)
    named: set[Name] = field(default_factory=set)
    ctes: set[str] = field(default_factory=set)
    joins: list[Join] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    lambdas: set[int] = field(default_factory=set)
    windows: int = 0

    def note(self, node: Node) -> None:
        """Kinds of expressions, functions and clauses, wherever they stand."""
        kind = node.get("type")
        if "type_name" in node or "type_info" in node:
            self.types.add(_type_name(node))
        is_window = node.get("class") == "WINDOW"
        self.windows += is_window
        if isinstance(node.get("function_name"), str) and not is_window:
            self._note_call(node)
        if isinstance(node.get("class"), str):
            self.classes.add(self._class(node))
            return
        if not isinstance(kind, str):
            return
        is_relation = "sample" in node and "alias" in node
        if is_relation or kind.endswith("_NODE"):
            self.clauses.add(kind)
        self.clauses.update(str(modifier.get("type")) for modifier in node.get("modifiers") or ())
        self.clauses.update(key.upper() for key in _SET_CLAUSES if node.get(key))
        if node.get("aggregate_handling", "STANDARD_HANDLING") != "STANDARD_HANDLING":
            self.clauses.add("GROUP BY ALL")
        if "setop_type" in node:
            self.clauses.add(f"{node['setop_type']}{' ALL' if node.get('setop_all') else ''}")
        if "join_type" in node:
            self.clauses.add(f"{node['join_type']} {node.get('ref_type')}")
        if kind == "TABLE_FUNCTION":
            self.clauses.add(f"TABLE_FUNCTION {(node.get('function') or {}).get('function_name')}")
        if kind == "BASE_TABLE":
            self.named.add(_name(node))
        self.ctes.update(fold(name) for name, *_ in _ctes(node))

    def _note_call(self, call: Node) -> None:
        """A function by its name; what ``list_aggregate`` is to run, by the name of its own function."""
        name, given = fold(call["function_name"]), _arguments(call)
        if name in NAMING_FUNCTIONS:
            constant = given[1] if len(given) > 1 else {}
            told = constant.get("literal") or constant.get("value")
            text = (told.get("text") or told.get("value")) if isinstance(told, dict) else None
            self.functions.add(f"list_{fold(text)}" if isinstance(text, str) else f"{name} without a name")
        self.functions.add(call["function_name"])
        if name in LAMBDA_FUNCTIONS:
            self.lambdas.update(id(part) for part in given)

    def _class(self, node: Node) -> str:
        """The kind of an expression. "OPERATOR" is a mixed bag (IS NULL, IN, but also GROUPING): its type
        tells more. Lambdas and an operator of JSON are one class. Columns are one class too, with some that
        are none of the table's."""
        if node["class"] == "COLUMN_REF":
            names = [fold(str(part)) for part in node.get("column_names") or ()]
            if not POSITIONAL_COLUMNS.isdisjoint(names):
                return "POSITION_OF_A_ROW_AMONG_THE_OTHERS"
            return "TIME_OF_THE_QUERY" if len(names) == 1 and names[0] in CLOCK_COLUMNS else "COLUMN_REF"
        if node["class"] != "LAMBDA":
            return str(node.get("type") if node["class"] == "OPERATOR" else node["class"])
        if id(node) not in self.lambdas:
            return "ARROW"
        return "WINDOW_IN_A_LAMBDA" if any(_of_class("WINDOW", node)) else "LAMBDA"

    def tables(self, node: Node, ctes: _Ctes) -> frozenset[Name]:
        """The tables that a node or relation reads, CTEs followed; joins are noted on the way."""
        ctes = self._with(node, ctes)
        kind = node.get("type")
        if kind == "BASE_TABLE":
            name = _name(node)
            known = ctes.get(fold(name[0])) if len(name) == 1 else None
            return frozenset({name}) if known is None else known
        if kind == "JOIN":
            left, right = (self.tables(node[side], ctes) for side in ("left", "right"))
            self.joins.append(Join(left, right, f"{node.get('join_type')} {node.get('ref_type')}"))
            return left | right
        if kind == "SET_OPERATION_NODE":
            sides = node.get("children") or (node["left"], node["right"])
            found = [self.tables(side, ctes) for side in sides]
            self.joins += [
                Join(frozenset().union(*found[:place]), found[place], "UNION")
                for place in range(1, len(found))
            ]
            return frozenset().union(*found)
        below = [node.get("from_table"), (node.get("subquery") or {}).get("node")]
        below += [node.get("left"), node.get("right")]
        return frozenset().union(*(self.tables(part, ctes) for part in below if isinstance(part, dict)))

    def _with(self, node: Node, ctes: _Ctes) -> _Ctes:
        known = dict(ctes)
        for name, query, _ in _ctes(node):
            own = {fold(name): frozenset[Name]()} if query.get("type") == "RECURSIVE_CTE_NODE" else {}
            known[fold(name)] = self.tables(query, {**known, **own})
        return known


def _ctes(node: Node) -> Iterator[tuple[str, Node, bool]]:
    """Name and query of each CTE of a node, and whether it gives the columns other names."""
    for entry in (node.get("cte_map") or {}).get("map") or ():
        value = entry.get("value") or {}
        query = value.get("query_node") or (value.get("query") or {}).get("node") or {}
        yield str(entry.get("key")), query, bool(value.get("aliases"))


def _type_name(node: Node) -> str:
    """The type that a node names. One that the parser does not know itself is told by the name that is
    written: with a space it is a quoted name, and none of a type with a time zone."""
    told = node.get("type_info")
    written = node.get("type_name") or (told.get("name") if isinstance(told, dict) else None)
    name = fold(str(written or node.get("id")))
    return f'"{name}"' if written and " " in name else name


def _of_class(name: str, part: Any) -> Iterator[Node]:
    """The expressions of a class in a part of the tree."""
    return (node for node in _nodes(part) if node.get("class") == name)


def _arguments(call: Node) -> list[Node]:
    if "children" in call:
        return list(call["children"])
    return [part.get("expression") or {} for part in call.get("arguments") or ()]


# -- windows, and whether the column that they partition by reaches the result -------------------


@dataclass
class _TraceReading:
    """One walk over the structure of a query; ``windows`` are found on the way."""

    windows: list[WindowCall] = field(default_factory=list)

    def carried(self, node: Node, ctes: Mapping[str, _Carried]) -> _Carried:
        """What a query node or a relation hands on."""
        known = dict(ctes)
        for name, query, renamed in _ctes(node):
            found = self.carried(query, known)
            known[fold(name)] = _NOTHING if renamed and found is not None else found
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

    def _select(self, node: Node, ctes: Mapping[str, _Carried]) -> _Carried:
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
            if item.get("columns") or any(item.get(key) for key in _STAR_CHANGES):
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


def _called(name: str, node: Node) -> list[Node]:
    """What a function of this name is called with; nothing if the node is another one."""
    is_call = node.get("class") == "FUNCTION" and node.get("function_name") == name
    return _arguments(node) if is_call else []


def _bytes_of(node: Node) -> Node | None:
    """x where the node is encode(CAST(x AS VARCHAR))."""
    inside = _called("encode", node)
    if len(inside) != 1 or inside[0].get("class") != "CAST" or inside[0].get("try_cast"):
        return None
    cast = inside[0]
    kind = (cast.get("cast_type") or {}).get("id") or (cast.get("type_expr") or {}).get("type_name")
    child = cast.get("child")
    return child if kind == "VARCHAR" and isinstance(child, dict) else None


def _is_row(node: Node) -> bool:
    """Whether the node is row(*COLUMNS(*)): all columns of the relation as one value."""
    inside = _called("row", node)
    if len(inside) != 1 or inside[0].get("type") != "OPERATOR_UNPACK":
        return False
    below = inside[0].get("children") or []
    if len(below) != 1 or below[0].get("class") != "STAR" or below[0].get("columns") is not True:
        return False
    return not any(below[0].get(part) for part in ("exclude_list", *_STAR_CHANGES))
