"""Which tables hang together: the tree of the tables to compare, from a domain file and the catalog."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsyn_sql.domain.document import load_yaml
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.relations import OpenedRelation
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree
from dpsyn_sql.source.names import fold, listed, split_name
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal
from dpsyn_sql.sqltext.render import render

DatabaseFile = Mapping[str, Any] | str | os.PathLike[str] | None
"""The domain file of a database: ``tables:`` by name with ``key``, ``parent``, ``foreign_key``, ``order`` and
``columns`` (of which ``references`` counts here)."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Of one table by the catalog: the primary key, and foreign keys as (columns, table, its columns)."""

    key: tuple[str, ...] = ()
    foreign: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = ()


def said_of(domain: DatabaseFile) -> tuple[dict[str, dict[str, Any]], str]:
    """What the file says of each table, and its unit.

    Raises:
        InputError: it is no file of a database.
    """
    if domain is None:
        return {}, ""
    read = domain if isinstance(domain, Mapping) else load_yaml(Path(domain))
    tables = read.get("tables") if isinstance(read, Mapping) else None
    if not isinstance(tables, Mapping) or not all(isinstance(one, Mapping | None) for one in tables.values()):
        raise InputError(
            "domain= is no domain file of a database: it needs tables: with the name of each table"
        )
    return {str(name): dict(one or {}) for name, one in tables.items()}, str(read.get("unit") or "")


def constraints_of(engine: DuckDBEngine, one: OpenedRelation) -> Constraints:
    """What the catalog says of a table; nothing of other relations."""
    parts = split_name(one.sql) if one.database is not None or one.stored else None
    if parts is None or len(parts) != 3:
        return Constraints()
    catalog, schema, name = map(literal, parts)
    sql = render("evaluate/constraints", catalog=catalog, schema=schema, name=name)
    found = engine.fetch(sql, step="reading the catalog")
    key, foreign = tuple[str, ...](), list[tuple[tuple[str, ...], str, tuple[str, ...]]]()
    for kind, columns, target, named in zip(
        *(found[name] for name in ("kind", "columns", "target", "named")), strict=True
    ):
        own = tuple(str(columns).split("\0"))
        if kind == "FOREIGN KEY":
            foreign.append((own, str(target), tuple(str(named).split("\0"))))
        elif kind == "PRIMARY KEY" or not key:
            key = own
    return Constraints(key, tuple(foreign))


def tree_of(
    names: Sequence[str],
    file: Mapping[str, Mapping[str, Any]],
    unit: str,
    found: Mapping[str, OpenedRelation],
    constraints: Mapping[str, Constraints],
) -> Tree:
    """The tree of the tables by ``names``, the root first.

    Raises:
        InputError: it is no tree with one root, or a key is not known.
    """
    short = {fold(_last(name)): name for name in names}
    tables = [_table(name, file, found[name], constraints[name], short) for name in names]
    roots = [table for table in tables if table.parent is None]
    if len(roots) != 1:
        listing = listed([table.name for table in roots]) if roots else "none"
        raise InputError(
            f"One table has no parent: the one that holds the units. Here these have none: {listing}. "
            "Say parent: and foreign_key: of the others in the domain file."
        )
    ordered = [roots[0]]
    while len(ordered) < len(tables):
        known = {table.name for table in ordered}
        more = [one for one in tables if one.name not in known and one.parent in known]
        if not more:
            left = [one.name for one in tables if one.name not in known]
            raise InputError(f"These tables do not hang from {said(roots[0].name)}: {listed(left)}.")
        ordered += more
    named = _keys(ordered, unit, constraints)
    public = {
        reference.table: PublicTable(reference.table, Relation(reference.table, "table", Fragment(""), ()))
        for table in ordered
        for reference in table.references
        if reference.kind == "public"
    }
    return Tree(tuple(named), tuple(public.values()))


def _last(name: str) -> str:
    return (split_name(name) or (name,))[-1]


def _many(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(map(str, value))  # type: ignore[call-overload]


def _table(
    name: str,
    file: Mapping[str, Mapping[str, Any]],
    one: OpenedRelation,
    constraints: Constraints,
    short: Mapping[str, str],
) -> Table:
    """Its links; the key of a table that the file and the catalog do not know is empty."""
    told = next((entry for key, entry in file.items() if fold(key) == fold(_last(name))), {})
    relation = Relation(name, "table", one.sql, one.columns)
    key = _many(told.get("key")) or constraints.key
    owners = [
        (columns, short[fold(target)])
        for columns, target, _ in constraints.foreign
        if fold(target) in short and fold(target) != fold(_last(name))
    ]
    if told.get("parent") is not None:
        parent = short.get(fold(str(told["parent"])))
        if parent is None:
            raise InputError(f"{name}: the parent {said(told['parent'])} is none of the tables to compare")
        columns = _many(told.get("foreign_key"))
        columns = columns or next((own for own, target in owners if target == parent), ())
        if not columns:
            raise InputError(f"{name}: say foreign_key: in the domain file, the columns that name its parent")
    elif len(owners) > 1:
        raise InputError(
            f"{name} has foreign keys to {listed([target for _, target in owners])}: say in the domain file "
            "which of them is its parent:, and the foreign_key:"
        )
    else:
        columns, parent = owners[0] if owners else ((), None)
    references = _references(name, told, columns, constraints, short)
    return Table(
        name, relation, key, parent, columns, order=str(told.get("order") or ""), references=references
    )


def _references(
    name: str,
    told: Mapping[str, Any],
    owning: tuple[str, ...],
    constraints: Constraints,
    short: Mapping[str, str],
) -> tuple[Reference, ...]:
    """The foreign keys beside the owning one; what the file says of a column is added."""
    entries = told.get("columns") if isinstance(told.get("columns"), Mapping) else {}
    said_so = {
        fold(str(column)): (str(column), str(entry["references"]), _many(entry.get("by")))
        for column, entry in dict(entries or {}).items()
        if isinstance(entry, Mapping) and entry.get("references")
    }
    found = []
    for columns, target, _ in constraints.foreign:
        if columns != owning:
            by = said_so.pop(fold(columns[0]), ("", "", ()))[2]
            found.append(_reference(name, columns, target, by, short))
    found += [_reference(name, (column,), target, by, short) for column, target, by in said_so.values()]
    return tuple(found)


def _reference(
    name: str, columns: tuple[str, ...], target: str, by: tuple[str, ...], short: Mapping[str, str]
) -> Reference:
    if fold(_last(target)) == fold(_last(name)):
        return Reference(columns, name, "self")
    inside = short.get(fold(_last(target)))
    if inside is not None:
        return Reference(columns, inside, "other")
    return Reference(columns, target, "public", by)


def _keys(tables: Sequence[Table], unit: str, constraints: Mapping[str, Constraints]) -> list[Table]:
    """Each table with children, and the root, has a key: its own, else the columns that a child names."""
    found = []
    for table in tables:
        key = table.key
        if not key and table.parent is None:
            parts = split_name(unit) if unit else None
            key = parts[-1:] if parts else ()
        for child in tables:
            if not key and child.parent == table.name:
                named = [one for own, _, one in constraints[child.name].foreign if own == child.foreign_key]
                key = named[0] if named else ()
        needed = table.parent is None or any(
            one.parent == table.name or any(reference.table == table.name for reference in one.references)
            for one in tables
        )
        if needed and not key:
            raise InputError(f"{table.name} has no PRIMARY KEY: say its key: in the domain file")
        found.append(replace(table, key=key))
    return found


def with_references(
    tree: Tree, found: Mapping[str, OpenedRelation], keys: Mapping[str, tuple[str, ...]]
) -> Tree:
    """The same with the public tables as they were opened, and their keys."""
    public = []
    for one in tree.public:
        opened = found[one.name]
        key = keys[one.name]
        relation = Relation(one.name, "table", opened.sql, opened.columns)
        public.append(replace(one, relation=relation, key=key))
    return replace(tree, public=tuple(public))


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
