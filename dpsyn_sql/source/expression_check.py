"""An owner's SQL expression over the columns of one row: checked on the syntax tree, fail-closed.

The same lists as for queries decide (``query_words``): row-wise, deterministic, no subquery, no
aggregate, no window. What runs is printed from the checked tree and read again by the database's own
parser. Such expressions touch synthetic rows only; the check keeps them from reading anything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlglot
import sqlglot.expressions as exp

from dpsyn_sql.source.names import fold, name_hint, shorten
from dpsyn_sql.source.query_check import QueryCatalog
from dpsyn_sql.source.query_tree import PARSER_TROUBLE, print_tree, refused_construct
from dpsyn_sql.source.query_words import expressions_fault, is_one_expression
from dpsyn_sql.source.relation import CheckDomain, Constant
from dpsyn_sql.sqltext.fragments import Fragment

Node = Any


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression fit to stand in a statement, and the columns in it (as the table spells them);
    or, in ``fault``, what is wrong with it."""

    sql: Fragment
    columns: frozenset[str] = frozenset()
    fault: str = ""


def check_expression(text: str, columns: Collection[str], catalog: QueryCatalog) -> Checked:
    """Check one expression; never raises for what is in it.

    Args:
        text: the owner's SQL.
        columns: names it may use.
        catalog: the engine's own parser and its functions.
    """
    tree = _parse(text)
    if tree is None:
        return _faulty("it cannot be parsed as one SQL expression")
    for node in tree.walk():
        construct = "an alias" if isinstance(node, exp.Alias | exp.Star) else refused_construct(node)
        if construct is not None:
            return _faulty(f"it uses {construct}; allowed are row-wise, deterministic expressions")
    name_of_fold = {fold(name): name for name in columns}
    used: set[str] = set()
    for column in tree.find_all(exp.Column):
        if column.table:
            return _faulty(f"it names {shorten(column.sql())}; write the column without a table")
        name = name_of_fold.get(fold(column.name))
        if name is None:
            hint = name_hint(column.name, columns, "there is")
            return _faulty(f"it uses {shorten(column.name)!r}, which is no column; {hint}")
        column.this.set("this", name)
        column.this.set("quoted", True)
        used.add(name)
    printed = print_tree(tree)
    if printed is None:
        return _faulty("it uses a construct that cannot be written")
    fault = _engine_fault(printed, catalog)
    return _faulty(fault) if fault else Checked(Fragment(printed), frozenset(used))


def _faulty(fault: str) -> Checked:
    return Checked(Fragment("NULL"), fault=fault)


def _parse(text: str) -> Node | None:
    trees: list[Any] = []
    with contextlib.suppress(*PARSER_TROUBLE):
        trees = [tree for tree in sqlglot.parse(text, read="duckdb") if tree is not None]
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        return None
    return trees[0]


def _engine_fault(printed: str, catalog: QueryCatalog) -> str:
    """What the database's own parser sees that is not allowed."""
    syntax = catalog.syntax(f"SELECT ({printed})")
    if syntax is None or not is_one_expression(syntax):
        return "the database reads it otherwise than this check"
    fault = expressions_fault(syntax, catalog.rowwise)
    return "" if fault is None else f"it uses {fault}"


def generated_columns(statement: str) -> list[tuple[str, str]] | None:
    """(column, expression) of the generated columns of a CREATE TABLE statement; None if it may have some
    and cannot be read."""
    if "generated" not in statement.lower():
        return []
    tree = _parse(statement)
    if tree is None:
        return None
    generated = []
    for column in tree.find_all(exp.ColumnDef):
        for constraint in column.args.get("constraints") or []:
            kind = constraint.kind
            if isinstance(kind, exp.GeneratedAsIdentityColumnConstraint | exp.ComputedColumnConstraint):
                expression = kind.args.get("expression") or kind.this
                text = expression.sql(dialect="duckdb") if isinstance(expression, exp.Expression) else ""
                generated.append((column.name, text))
    return generated


def check_domains(expressions: Iterable[str]) -> Mapping[str, CheckDomain]:
    """What CHECK constraints of the forms ``x IN (...)``, ``x BETWEEN a AND b``, ``x >= a``, ``x < b``
    and conjunctions of them say of single columns; by folded column name."""
    values: dict[str, tuple[Constant, ...]] = {}
    bounds: dict[str, dict[str, Constant]] = {}
    for text in expressions:
        for node in _conjuncts(_parse(text)):
            if isinstance(node, exp.In) and _plain_column(node.this):
                listed = [_constant(item) for item in node.expressions]
                constants = tuple(item for item in listed if item is not None)
                if constants and len(constants) == len(listed):
                    values.setdefault(fold(node.this.name), constants)
            for column, side, bound in _bounds(node):
                bounds.setdefault(fold(column), {}).setdefault(side, bound)
    domains = {name: CheckDomain(values=constants) for name, constants in values.items()}
    for name, sides in bounds.items():
        if name not in domains:
            domains[name] = CheckDomain((), sides.get("lower"), sides.get("upper"))
    return domains


def _conjuncts(node: Node | None) -> list[Node]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [] if node is None else [node]


def _bounds(node: Node) -> list[tuple[str, str, Constant]]:
    """(column, side, value) of a comparison; whether the bound itself is allowed makes no difference."""
    if isinstance(node, exp.Between) and _plain_column(node.this):
        low, high = _constant(node.args["low"]), _constant(node.args["high"])
        if low is None or high is None:
            return []
        return [(node.this.name, "lower", low), (node.this.name, "upper", high)]
    if not isinstance(node, exp.GTE | exp.GT | exp.LTE | exp.LT):
        return []
    left, right = node.this, node.expression
    rising = isinstance(node, exp.GTE | exp.GT)
    if isinstance(right, exp.Column):
        left, right, rising = right, left, not rising
    bound = _constant(right)
    if not _plain_column(left) or bound is None:
        return []
    return [(left.name, "lower" if rising else "upper", bound)]


def _plain_column(node: Node) -> bool:
    """A column, not a field of a struct (which is written as a column of a table of that name)."""
    return isinstance(node, exp.Column) and not node.table


def _constant(node: Node) -> Constant | None:
    """A literal: a number, or text that may be cast to a date."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        return -inner if isinstance(inner, Decimal) else None
    if not isinstance(node, exp.Literal):
        return None
    return str(node.this) if node.is_string else Decimal(str(node.this))
