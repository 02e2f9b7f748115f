"""Where the columns of a query come from: which column, or which expression, of which table.

Losses of one account add up for one kind of unit, so the ledger has to know by which column the rows of each
table belong to it, whatever a query or a view calls that column. The query is followed on its syntax tree,
from the tables up. What cannot be followed is an expression of its own, equal to itself alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlglot.expressions as exp

from dpsyn_sql.source.names import Identity, fold
from dpsyn_sql.source.query_tree import PARSER_TROUBLE, Node, arguments_of, is_cte

Place = Identity | str
"""A table of the catalog, or the path of files as the query has it."""

Origin = tuple[Place | None, str]
"""A table (None: no table), and what is taken of it: the folded name of a column, or an expression."""

Origins = frozenset[Origin]
"""The same column of several branches of a UNION can come from several tables, or from one in two ways."""

Columns = list[tuple[str, Origins]]
"""Folded names of the columns of a relation, in order, and where each comes from."""

IN_SELECT = " in SELECT "
"""Before the number of a SELECT, where what is taken of a table is equal only within the same query."""

AWAY = f"what it meets{IN_SELECT}"
"""What is taken of a table whose rows are read for a column that is a constant, or of another table: how the
two meet decides, which the column's name does not tell."""

Label = tuple[str, ...]
"""The name of a relation in a SELECT, in parts."""

_TEXTS = ("TEXT", "VARCHAR", "CHAR", "NCHAR", "NVARCHAR", "BPCHAR")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_WRITTEN_ONE_WAY = frozenset(("VARCHAR", "UUID", "DATE", *_INTEGERS, *(f"U{name}" for name in _INTEGERS)))
"""Types of which two values have two texts, and each has one."""


class _Lost(Exception):
    """The query is of a kind that is not followed."""


def origins_of(
    tree: Node, tokens: Mapping[str, str], types: Callable[[Place], Mapping[str, str]]
) -> dict[str, Origins] | None:
    """Where each column of a query comes from, by its folded name; None if the query cannot be followed.

    Args:
        tree: its names are written in full, and its views written out.
        tokens: the paths of files by the names that stand for them.
        types: the columns of a table or a path in order, with their SQL types.
    """
    with contextlib.suppress(_Lost, *PARSER_TROUBLE):
        return dict(_Walk(tokens, types).query(tree, {}))
    return None


class _Walk:
    """One walk from the tables up."""

    def __init__(self, tokens: Mapping[str, str], types: Callable[[Place], Mapping[str, str]]) -> None:
        self._tokens, self._types_of = tokens, types
        self._types: dict[Origin, str] = {}
        self._selects = 0

    def query(self, node: Node, ctes: Mapping[str, Columns]) -> Columns:
        """The columns of a query."""
        columns_of_cte = dict(ctes)
        clause = arguments_of(node).get("with")
        if clause is not None and clause.args.get("recursive"):
            raise _Lost
        for cte in () if clause is None else clause.expressions:
            columns_of_cte[fold(cte.alias)] = _renamed(self.query(cte.this, columns_of_cte), cte)
        if isinstance(node, exp.Subquery):
            return self.relation(node, columns_of_cte)
        if isinstance(node, exp.Select):
            return self._select(node, columns_of_cte)
        if isinstance(node, exp.SetOperation):
            left, right = self.query(node.this, columns_of_cte), self.query(node.expression, columns_of_cte)
            if node.args.get("by_name"):
                names = dict.fromkeys(name for name, _ in (*left, *right))
                sides = dict(left), dict(right)
                return [(name, frozenset().union(*(side.get(name, ()) for side in sides))) for name in names]
            return [(name, first | second) for (name, first), (_, second) in zip(left, right, strict=True)]
        raise _Lost

    def relation(self, node: Node, ctes: Mapping[str, Columns]) -> Columns:
        """The columns of what stands after FROM or JOIN, under the names that its alias gives them."""
        if isinstance(node, exp.Subquery):
            inside = self.relation if isinstance(node.this, exp.Table) else self.query
            columns = inside(node.this, ctes)
        elif isinstance(node, exp.Values):
            width = len(node.expressions[0].expressions)
            columns = [(f"col{number}", frozenset({(None, "a constant")})) for number in range(width)]
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            columns = self._table(node, ctes)
        else:
            raise _Lost
        columns = _renamed(columns, node)
        for join in node.args.get("joins") or ():
            columns = [*columns, *self._joined(join, ctes)[1]]
        return columns

    def _table(self, node: Node, ctes: Mapping[str, Columns]) -> Columns:
        name_parts = [part.name for part in node.parts]
        if len(name_parts) == 1 and is_cte(node, name_parts[0]) and name_parts[0] not in self._tokens:
            return ctes[fold(name_parts[0])]
        table: Place = (
            self._tokens[name_parts[0]]
            if len(name_parts) == 1
            else (name_parts[0], name_parts[1], name_parts[2])
        )
        columns: Columns = []
        for name, sql_type in self._types_of(table).items():
            origin = (table, fold(name))
            self._types[origin] = sql_type
            columns.append((fold(name), frozenset({origin})))
        return columns

    def _joined(self, join: Node, ctes: Mapping[str, Columns]) -> tuple[Label, Columns]:
        """The name and the columns that a join adds: none that USING has once, and none of a filter."""
        if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            return (), []
        shared = {fold(column.name) for column in join.args.get("using") or ()}
        columns = self.relation(join.this, ctes)
        return _name_of(join.this), [(name, origins) for name, origins in columns if name not in shared]

    def _select(self, node: Node, ctes: Mapping[str, Columns]) -> Columns:
        clauses = arguments_of(node)
        if {"laterals", "pivots"} & set(clauses):
            raise _Lost
        sources: list[tuple[Label, Columns]] = []
        if clauses.get("from") is not None:
            first = clauses["from"].this
            sources.append((_name_of(first), self.relation(first, ctes)))
        sources += [self._joined(join, ctes) for join in clauses.get("joins") or ()]
        self._selects += 1
        here, read = self._selects, {table for _, columns in sources for table in _places(columns)}
        selected: Columns = []
        for item in node.expressions:
            if item.is_star:
                selected += self._star(item, sources, selected, here)
            else:
                has_name = isinstance(item, exp.Alias | exp.Column)
                name = fold(item.alias_or_name) if has_name else ""
                selected.append((name, self._value(item, sources, selected, here)))
        met = [(name, origins | _away(read - _places([(name, origins)]), here)) for name, origins in selected]
        return _told_apart(met)

    def _star(
        self, item: Node, sources: list[tuple[Label, Columns]], selected: Columns, here: int
    ) -> Columns:
        """``*`` or ``t.*``, with what EXCLUDE, REPLACE and RENAME change."""
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            raise _Lost
        wanted = fold(item.table) if isinstance(item, exp.Column) else None
        changes = arguments_of(star)
        excluded = {fold(column.name) for column in changes.get("except") or ()}
        replaced = {fold(alias.alias): alias for alias in changes.get("replace") or ()}
        renamed = {fold(alias.this.name): fold(alias.alias) for alias in changes.get("rename") or ()}
        columns: Columns = []
        for name, origins in (
            column for label, of_source in sources if wanted in (None, *label[-1:]) for column in of_source
        ):
            if name in replaced:
                origins = self._value(replaced[name], sources, selected, here)
            if name not in excluded:
                columns.append((renamed.get(name, name), origins))
        return columns

    def _value(
        self, item: Node, sources: list[tuple[Label, Columns]], selected: Columns, here: int
    ) -> Origins:
        """Where the value of an expression in the SELECT of this number comes from."""
        while isinstance(item, exp.Alias | exp.Paren):
            item = item.this
        if isinstance(item, exp.Column):
            known_origins = _looked_up(item, sources, selected)
            if known_origins is not None:
                return known_origins
        if type(item) is exp.Cast and item.to.this.name in _TEXTS:
            below = self._value(item.this, sources, selected, here)
            if all(self._types.get(origin) in _WRITTEN_ONE_WAY for origin in below if not _is_away(origin)):
                return below
        copy, tables, away = item.copy(), set[Place | None](), set[Place | None]()
        for column in list(copy.find_all(exp.Column)):
            origins = _looked_up(column, sources, selected) or frozenset()
            away |= {origin[0] for origin in origins if _is_away(origin)}
            origins = frozenset(origin for origin in origins if not _is_away(origin))
            tables |= {table for table, _ in origins}
            texts = sorted({text for _, text in origins}) or [f"? {column.sql()}"]
            if column is not copy:
                column.replace(exp.to_identifier(" or ".join(texts), quoted=True))
        text = f"the value of {copy.sql(dialect='duckdb', comments=False)}"
        if len(tables | away) > 1:  # of several tables: how they meet decides too
            text = f"{text}{IN_SELECT}{here}"
        return frozenset((table, text) for table in tables or {None}) | _away(away - tables, here)


def _places(columns: Columns) -> set[Place | None]:
    return {table for _, origins in columns for table, _ in origins if table is not None}


def _away(tables: set[Place | None], here: int) -> Origins:
    return frozenset((table, f"{AWAY}{here}") for table in tables)


def _is_away(origin: Origin) -> bool:
    return origin[1].startswith(AWAY)


def _told_apart(columns: Columns) -> Columns:
    """Of columns of one name the database gives all but the first another name, which can be that of a column
    that ends in a digit: what is not sure has no name here."""
    names_before, names = set[str](), [name for name, _ in columns]
    if len(set(names)) == len(names):
        return columns
    distinct: Columns = []
    for name, origins in columns:
        distinct.append(("" if name in names_before or name[-1:].isdigit() else name, origins))
        names_before.add(name)
    return distinct


def _name_of(relation: Node) -> Label:
    """The name that columns of a relation can be told by: in full, of a table without an alias."""
    if isinstance(relation, exp.Table) and not relation.alias:
        return tuple(fold(part.name) for part in relation.parts)
    return (fold(relation.alias_or_name),)


def _renamed(columns: Columns, node: Node) -> Columns:
    """The first columns under the names that an alias lists."""
    alias = node.args.get("alias")
    names = [fold(column.name) for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return [(new or name, origins) for (name, origins), new in _with_rest(columns, names)]


def _with_rest(columns: Columns, names: list[str]) -> Iterator[tuple[Any, str]]:
    yield from zip(columns, [*names, *[""] * (len(columns) - len(names))], strict=True)


def _looked_up(column: Node, sources: list[tuple[Label, Columns]], selected: Columns) -> Origins | None:
    """What a column's name means: a column of a relation, else one of the same SELECT before it."""
    name, table = fold(column.name), tuple(fold(part.name) for part in column.parts[:-1])
    for label, columns in sources:
        if not table or label[-len(table) :] == table:
            for column_name, origins in columns:
                if column_name == name:
                    return origins
    return dict(selected).get(name) if not table else None
