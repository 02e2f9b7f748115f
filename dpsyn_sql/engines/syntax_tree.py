"""DuckDB's own syntax tree of a query, as its JSON tells it, in the words of ``source.engine_syntax``.

Two lines of DuckDB are read: they name the parts of CTEs and set operations differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpsyn_sql.engines.trace_syntax import TraceReading, arguments_of
from dpsyn_sql.source.engine_syntax import Join, Name, Syntax
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.query_words import LAMBDA_FUNCTIONS, NAMING_FUNCTIONS

Node = dict[str, Any]
_Ctes = Mapping[str, frozenset[Name]]

_SET_CLAUSES = ("group_expressions", "group_sets", "having", "qualify", "sample", "at_clause")


def read_syntax(text: str) -> Syntax | None:
    """The parts of a query's JSON; None if it is no tree or holds an error.

    Raises:
        ValueError: ``text`` is no JSON.
    """
    tree = json.loads(text)
    if not isinstance(tree, dict) or tree.get("error"):
        return None
    reading, traces = _Reading(), TraceReading()
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
    lambdas: set[int] = field(default_factory=set)
    windows: int = 0

    def note(self, node: Node) -> None:
        """Kinds of expressions, functions and clauses, wherever they stand."""
        kind = node.get("type")
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
        self.ctes.update(fold(name) for name, _ in _ctes(node))

    def _note_call(self, call: Node) -> None:
        """A function by its name; what ``list_aggregate`` is to run, by the name of its own function."""
        name, given = fold(call["function_name"]), arguments_of(call)
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
        tells more. Lambdas and an operator of JSON are one class."""
        if node["class"] != "LAMBDA":
            return str(node.get("type") if node["class"] == "OPERATOR" else node["class"])
        if id(node) not in self.lambdas:
            return "ARROW"
        within = (part.get("class") for part in _nodes(node.get("expr")))
        return "WINDOW_IN_A_LAMBDA" if "WINDOW" in within else "LAMBDA"

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
        for name, query in _ctes(node):
            own = {fold(name): frozenset[Name]()} if query.get("type") == "RECURSIVE_CTE_NODE" else {}
            known[fold(name)] = self.tables(query, {**known, **own})
        return known


def _ctes(node: Node) -> Iterator[tuple[str, Node]]:
    """Name and query of each CTE of a node."""
    for entry in (node.get("cte_map") or {}).get("map") or ():
        value = entry.get("value") or {}
        query = value.get("query_node") or (value.get("query") or {}).get("node") or {}
        yield str(entry.get("key")), query
