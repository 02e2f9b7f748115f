"""Which tables hang together: the tree of the tables to compare, by the rules of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpsyn_sql.domain.database_file import DatabaseFile, read_database
from dpsyn_sql.domain.file import DomainSpec
from dpsyn_sql.engines.database_given import given_of
from dpsyn_sql.engines.database_session import DatabaseSession, open_linked
from dpsyn_sql.engines.relations import OpenedRelation
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.planning.tying.tables import tied_tables
from dpsyn_sql.source.names import fold
from dpsyn_sql.sqltext.fragments import Fragment, ident


def tree_of(
    con: Connection, tables: Sequence[str] | None, domain: DomainSpec, memory_limit: str | None
) -> Tree:
    """The tree of the real tables, each called as it was given.

    Raises:
        InputError, SourceError: the tables, the file or the names are refused, or they are no tree.
    """
    if isinstance(tables, str) or (tables is not None and not all(isinstance(name, str) for name in tables)):
        raise InputError(f"tables={said(tables)}: give a list of names of tables")
    file = read_database(domain)
    names = [*(file.tables if tables is None else tables)]
    if not names:
        raise InputError("Say which tables: give tables=, or domain= with the domain file of the database.")
    stated = (reference.table for one in file.tables.values() for reference in one.references.values())
    with open_linked(con, names, [*file.public, *stated], memory_limit=memory_limit) as session:
        file = _compared(file, session)
        tree = tied_tables(given_of(session, file, file.unit))
        return _called(tree, {name: session.spelled[name] for name in session.relations})


def _compared(file: DatabaseFile, session: DatabaseSession) -> DatabaseFile:
    """What the file says of the tables that are compared."""
    unit = session.named(file.unit) or (session.named_column(file.unit) or ("",))[0]
    return DatabaseFile(
        file.unit if unit in session.relations else "",
        {text: one for text, one in file.tables.items() if session.named(text) in session.relations},
        {text: key for text, key in file.public.items() if session.named(text) in session.public},
    )


def _called(tree: Tree, names: Mapping[str, str]) -> Tree:
    tables = [
        replace(
            table,
            name=names[table.name],
            parent=None if table.parent is None else names[table.parent],
            references=tuple(replace(one, table=names.get(one.table, one.table)) for one in table.references),
        )
        for table in tree
    ]
    return replace(tree, tables=tuple(tables))


def extended(table: Table, tree: Tree, one: OpenedRelation) -> OpenedRelation:
    """A relation with what its references say: columns of public rows, and whether a private one is named."""
    selected, joins, columns = list[str](), list[str](), list[Any]()
    for place, reference in enumerate(table.references):
        if reference.kind != "public":
            name = f"{reference.columns[0]} given"
            named = " AND ".join(f"t.{ident(column)} IS NOT NULL" for column in reference.columns)
            selected.append(f"{named} AS {ident(name)}")
            columns.append(replace(one.columns[0], name=name, sql_type="BOOLEAN", refused=""))
            continue
        public = next(item for item in tree.public if item.name == reference.table)
        known = {fold(column.name): column for column in public.relation.columns}
        for by in reference.by or public.key:
            column = known[fold(by)]
            name = f"{reference.columns[0]}: {column.name}"
            selected.append(f"x{place}.{ident(column.name)} AS {ident(name)}")
            columns.append(replace(column, name=name, unique=False))
        pairs = zip(reference.columns, public.key, strict=True)
        equal = " AND ".join(f"t.{ident(own)} = x{place}.{ident(key)}" for own, key in pairs)
        joins.append(f"LEFT JOIN {public.relation.sql} AS x{place} ON {equal}")
    if not selected:
        return one
    sql = f"(SELECT t.*, {', '.join(selected)} FROM {one.sql} AS t {' '.join(joins)})"
    added = tuple(replace(column, not_null=False, unique=False) for column in columns)
    return replace(one, sql=Fragment(sql), columns=(*one.columns, *added), stored=False)
