"""PRIVATE side: the rows of a table of a tree with the unit that each belongs to, for discovery."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.private.encode.codes import key_bytes
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.dialect import DUCKDB, Dialect
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

_OWN = "own"


def discovery_relation(tree: Tree, name: str, dialect: Dialect = DUCKDB) -> tuple[Relation, str]:
    """The rows of a table with the unit that each belongs to, and the name of the unit's column, which holds
    bytes and is never NULL.

    A row of two units is there once for each, a row of nobody is not. Nothing is bounded: what counts over it
    counts with ``PrivacyUnit(column, max_rows=1)``.
    """
    table = tree[name]
    relation = table.relation
    taken = {fold(column.name) for column in relation.columns}
    unit = next(text for number in count() if (text := f"its_unit{number or ''}") not in taken)
    sql = render(
        "encode/tree_joined",
        relation=relation.sql,
        columns=[ident(column.name) for column in relation.columns if not column.refused],
        unit=ident(unit),
        owner=key_bytes(table.foreign_key if table.parent else table.key, dialect, of=_OWN),
        units=None if table.parent is None else units_of_rows(tree, tree[table.parent], dialect),
    )
    columns = (*relation.columns, Column(unit, "BLOB", not_null=True))
    return replace(relation, sql=sql, columns=columns), unit


def units_of_rows(tree: Tree, table: Table, dialect: Dialect) -> Fragment:
    """The query of the units of an inner table's rows, by the keys of these rows."""
    return render(
        "encode/tree_units",
        relation=table.relation.sql,
        key=key_bytes(table.key, dialect, of=_OWN),
        owner=key_bytes(table.foreign_key, dialect, of=_OWN) if table.parent else Fragment(""),
        units=None if table.parent is None else units_of_rows(tree, tree[table.parent], dialect),
    )
