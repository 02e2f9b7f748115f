"""The syntax tree of a query, by sqlglot: what its nodes are, and which may stand where."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlglot
import sqlglot.expressions as exp
from sqlglot.errors import ErrorLevel, SqlglotError

from dpsyn_sql.errors import SourceError
from dpsyn_sql.source import query_words as words
from dpsyn_sql.source.names import Identity, fold, shorten

# sqlglot moved its base classes between releases we support, so its nodes carry no static type here.
Node = Any

# The parser stumbles over some texts that it does not expect.
PARSER_TROUBLE = (SqlglotError, RecursionError, AttributeError, TypeError, ValueError, LookupError)


def parsed(sql: str) -> Node:
    """The tree of a single SELECT."""
    if not sql.strip():
        raise SourceError("The query is empty.")
    trees: list[Any] = []
    with contextlib.suppress(*PARSER_TROUBLE):
        trees = [tree for tree in sqlglot.parse(sql, read="duckdb") if tree is not None]
    if not trees:
        raise SourceError(
            "The query cannot be parsed, so it cannot be checked and its tables cannot be found. "
            "Write the difficult part to a table and release that table."
        )
    if len(trees) > 1:
        raise SourceError("The query holds several statements; a source must be one SELECT.")
    if not isinstance(trees[0], exp.Query):
        raise SourceError(f"The source is a {trees[0].key.upper()} statement; it must be one SELECT.")
    for node in trees[0].walk():
        if isinstance(node, exp.DML | exp.DDL | exp.Command | exp.Into) and not isinstance(node, exp.Query):
            raise SourceError(f"The query holds {node.key.upper()}; a source must only read.")
        if isinstance(node, exp.Pivot):
            raise SourceError(
                "The query holds PIVOT or UNPIVOT. The columns of a pivot are values of the rows, so they "
                "cannot be known before anything is charged. Write the result to a table and release it."
            )
    return trees[0]


def arguments_of(node: Node) -> dict[str, Any]:
    """The arguments that are set; newer sqlglot ends some names with an underscore."""
    return {
        key.rstrip("_"): value
        for key, value in node.args.items()
        if value is not None and value is not False and value != []
    }


def argument_fault(node: Node, *allowed: str) -> str | None:
    """An argument of ``node`` that is not among ``allowed``, in words."""
    for key in arguments_of(node):
        if key not in allowed:
            return words.ARGUMENT_WORDS.get(key, f"{key.upper()} of {node.key.upper()}")
    return None


def clause_fault(node: Node) -> str | None:
    """What a clause or relation is, in words, if its kind may not stand in a query; else None."""
    if isinstance(node, exp.Union) and node.args.get("distinct"):
        return "UNION without ALL"
    if isinstance(node, exp.Qualify) and node.find(exp.Window):
        return "a window function in QUALIFY (name it in the SELECT and filter on that name)"
    if not isinstance(node, exp.Join):
        return None
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if node.args.get("method"):
        return f"the join {str(node.args['method']).upper()}"
    if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"):
        return f"the join {f'{side} {kind}'.strip()}"
    return None


def operands(node: Node) -> list[Node]:
    """What is below a node, but for names of relations: they are written in full, or given here."""
    below = node.args.get("joins") or () if isinstance(node, exp.Table) else node.iter_expressions()
    return [part for part in below if not isinstance(part, exp.TableAlias)]


def is_relation(node: Node) -> bool:
    """Whether the node stands where a relation is read."""
    parents = (exp.From, exp.Join, exp.CTE, exp.Subquery, exp.Union)
    return isinstance(node.parent, parents) and node.arg_key in ("this", "expression")


def in_select_list(node: Node) -> bool:
    """Whether a window belongs to an item of a SELECT, and not to a lambda or another window in it."""
    apart = (exp.Lambda, exp.Comprehension, exp.Window)
    while node.parent is not None and not isinstance(node.parent, apart):
        if isinstance(node.parent, exp.Query):
            return isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        node = node.parent
    return False


def print_tree(tree: Node) -> str | None:
    """The SQL of a tree without its comments; None for what DuckDB does not have."""
    with contextlib.suppress(*PARSER_TROUBLE):
        return str(tree.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.RAISE))
    return None


def refused_construct(node: Node) -> str | None:
    """What a node of an expression is, in words, if it may not stand there; else None."""
    for kind, construct in words.REFUSED_EXPRESSIONS:
        if isinstance(node, kind):
            return construct
    name = type(node).__name__
    if name.startswith(words.REFUSED_PREFIXES):
        return f"{name}, which is not a row-wise deterministic expression"
    if not isinstance(node, words.ALLOWED_EXPRESSIONS):
        return f"{node.key.upper()}, which this check does not know"
    if isinstance(node, exp.JSONPath) and len(node.expressions) != 2:
        # 'a.b' is one key to DuckDB, and two steps to the printer.
        return "a JSON path of several steps (write '/a/b')"
    if isinstance(node, exp.Dot) and not isinstance(node.expression, exp.Identifier):
        return "a schema-qualified or chained function"
    if isinstance(node, exp.Lambda) and any(
        fold(parameter.name) in words.CLOCK_COLUMNS for parameter in node.expressions
    ):
        return "a lambda function whose parameter has the name of the time of the query"
    if isinstance(node, exp.Var) and not words.PLAIN_WORD.fullmatch(node.name):
        return f"{shorten(node.name)!r} in place of a word"
    if isinstance(node, exp.Var) and isinstance(node.parent, exp.DateBin):  # printed without its quotes
        return "time_bucket with a text as its third argument (write CAST('UTC' AS VARCHAR))"
    if isinstance(node, exp.Identifier) and fold(node.name) in words.POSITIONAL_COLUMNS:
        return f"{node.name}, the position of a row among the others"
    if isinstance(node, exp.Column) and not node.table and fold(node.name) in words.CLOCK_COLUMNS:
        return f"{node.name}, the time of the query (name a column of that name with its table)"
    return None


def is_cte(table: Node, name: str) -> bool:
    """Whether an unqualified name means a common table expression that is visible where it stands."""
    inside, path = table, [table]
    while inside.parent is not None:
        inside = inside.parent
        path.append(inside)
        clause = arguments_of(inside).get("with")
        if not isinstance(clause, exp.With):
            continue
        for cte in clause.expressions:
            if any(step is cte for step in path) and not clause.args.get("recursive"):
                break
            if fold(cte.alias) == fold(name):
                return True
    return False


def write_name(table: exp.Table, identity: Identity) -> None:
    """The full name of a table, in place of the one it has."""
    for key, part in zip(("catalog", "db", "this"), identity, strict=True):
        table.set(key, exp.to_identifier(part, quoted=True))
