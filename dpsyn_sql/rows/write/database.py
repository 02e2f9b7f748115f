"""All tables of a database that joins: keys of rows that name each other, then one output for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from dpsyn_sql.domain.shape import ForeignKey, PartOfKey, PublicKey, RandomKey, Shape
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.rows.decode.keys import Lookup, Ties, fits
from dpsyn_sql.rows.decode.output import capacity, output_statement, units_of
from dpsyn_sql.rows.write.constraints import Constraints, not_null, written_order
from dpsyn_sql.rows.write.outputs import (
    NewFile,
    NewTable,
    changed,
    holds,
    write_database,
    write_files,
    write_tables,
)
from dpsyn_sql.rows.write.persist import StoredRelease
from dpsyn_sql.rows.write.public_rows import GroupedRows, PublicRows, copied_rows, load_lookup, load_texts
from dpsyn_sql.rows.write.publish import check_capacity
from dpsyn_sql.rows.write.staging import staged_rows
from dpsyn_sql.rows.write.words import comment_statements, readable_literal, statement_of
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import file_beside
from dpsyn_sql.sqltext.fragments import Fragment, qualified
from dpsyn_sql.sqltext.render import render


class DatabaseDestination(Protocol):
    """Where all tables go; resolved and checked before anything was charged."""

    @property
    def kind(self) -> str:
        """``"schema"`` of a database, ``"database"`` file, or ``"folder"`` of Parquet files."""

    @property
    def home(self) -> tuple[str, str] | None:
        """The attached database and the schema; None for a file or folder."""

    @property
    def path(self) -> Path | None:
        """The database file or the folder; None for a schema."""

    @property
    def names(self) -> Mapping[str, str]:
        """What each table of the release and each public table is called there, without folder or ending."""

    @property
    def existing(self) -> frozenset[str]:
        """Those of ``names`` that are there already."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of tables of the schema that are written anew, one that refers to others before them."""

    @property
    def replace(self) -> bool:
        """Whether what is there may be overwritten."""

    @property
    def only_same(self) -> bool:
        """Whether what is there is kept if it equals what would be written, and refused if not."""


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table of the tree, drawn and staged.

    Args:
        name: of the table in the tree.
        shape: complete; ``planning.tree.roles_of`` says the roles of its keys.
        staged: quoted name of the table of codes: row (0, 1, ... without gaps), a0, a1, ..., parent (row of
            the table above), rank (within the parent, from 0), and ``decode.output.beside_codes``.
        seed: of its values and keys (``table_seed``); conditions were met by the same seed.
        kept: what stays with the output.
        lookups: by attribute, the public rows that a reference to a public table names.
    """

    name: str
    shape: Shape
    staged: Fragment
    seed: int
    kept: StoredRelease | None = None
    lookups: Mapping[str, GroupedRows] = field(default_factory=dict)


def publish_database(
    engine: Engine,
    target: DatabaseDestination,
    tree: Tree,
    tables: Sequence[WrittenTable],
    public: Sequence[PublicRows] = (),
    *,
    constraints: bool = False,
) -> None:
    """Write the staged rows of all tables as values.

    A schema is as it was before on any failure, and a database file too. Files of a folder that is new
    appear together; in a folder that is there they appear one after another.

    Args:
        engine: the session that holds the staged tables and writes.
        target: where to.
        tree: how the tables are tied.
        tables: each of the tree once.
        public: the public tables that are copied into the output (``Target.copies``).
        constraints: keys are stated as PRIMARY KEY and FOREIGN KEY; of no meaning for a folder.

    Raises:
        PublishError: the output has appeared since the check, is not what this release wrote, cannot be
            written, or a key's type cannot hold so many values.
        EngineFailure: the database failed otherwise.
    """
    if [table.name for table in tree] != [table.name for table in tables]:
        raise InternalError("other tables are published than those of the tree")
    queries = _decoded(engine, tree, tables)
    queries = {**{rows.table.name: _copy(engine, rows) for rows in public}, **queries}
    models = [table.kept for table in tables if table.kept is not None]
    if target.kind == "folder":
        _publish_folder(engine, target, tables, queries, models)
        return

    def write(home: tuple[str, str]) -> None:
        new = _new_tables(target, home, tree, tables, queries, constraints)
        dropped = [] if target.only_same else [qualified(*home, name) for name in target.dropped]
        write_tables(engine, home[0], new, models, schema=qualified(*home), dropped=dropped)

    def compare(home: tuple[str, str]) -> None:
        for table in _new_tables(target, home, tree, tables, queries, constraints):
            if not holds(engine, table.name, table.query):
                raise PublishError(changed(f"database file {str(target.path)!r}"))

    if target.home is not None:
        write(target.home)
    elif target.path is not None:
        act = compare if target.only_same else write
        write_database(engine, target.path, act, replace=target.replace, there=target.only_same)


# -- the rows as values -----------------------------------------------------------------------------


def _decoded(engine: Engine, tree: Tree, tables: Sequence[WrittenTable]) -> dict[str, Fragment]:
    """The query of each table's rows, by name; keys that other rows name are made on the way."""
    rows = {table.name: staged_rows(engine, table.staged) for table in tables}
    decoding = _Decoding(engine, tree, {table.name: table for table in tables}, rows)
    for table in tables:
        _check_keys(tree, table, rows, decoding)
    return {table.name: decoding.query(table.name) for table in tables}


def _check_keys(tree: Tree, table: WrittenTable, rows: Mapping[str, int], decoding: _Decoding) -> None:
    """Refuse types that cannot hold the keys."""
    check_capacity(table.shape, rows[table.name], 0)
    for role in table.shape.roles:
        if isinstance(role, PartOfKey):
            most, needed = capacity(role.type), decoding.most(table.name)
            if most is not None and needed > most:
                raise PublishError(
                    f"Column {role.name!r} of table {table.name!r} numbers up to {needed} rows of one row "
                    f"above, but its type has only {most} values. Nothing was written. A release with "
                    f"most={{{table.name!r}: {most}}} has fewer."
                )
        if isinstance(role, ForeignKey | RandomKey):
            key = decoding.tables[role.table].shape.types[role.key]
            if not fits(role.type, key, rows[role.table]):
                raise PublishError(
                    f"Column {role.name!r} of table {table.name!r} has a type that cannot hold the "
                    f"{rows[role.table]} keys of {role.table!r}. Nothing was written. The same call with "
                    "fewer units= costs nothing more."
                )


@dataclass
class _Decoding:
    """Makes the tables of keys, each once, before the tables that name its rows."""

    engine: Engine
    tree: Tree
    tables: Mapping[str, WrittenTable]
    rows: Mapping[str, int]
    keys: dict[str, Fragment] = field(default_factory=dict)
    lookups: dict[tuple[str, str], Lookup] = field(default_factory=dict)

    def query(self, name: str) -> Fragment:
        """The rows of a table as values."""
        return self._statement(name, self.tables[name].shape, numbered=False)

    def most(self, name: str) -> int:
        """How many rows the largest family of a table has."""
        sql = render("write/largest_family", staged=self.tables[name].staged)
        return int(self.engine.fetch(sql, step="counting sampled rows")["most"][0])

    def _statement(self, name: str, shape: Shape, *, numbered: bool) -> Fragment:
        table = self.tables[name]
        named = {role.table for role in shape.roles if isinstance(role, ForeignKey | RandomKey)}
        parts = any(isinstance(role, PartOfKey) for role in shape.roles)
        ties = Ties(
            keys={other: self._keys_of(other) for other in sorted(named)},
            rows=self.rows,
            most=max(1, self.most(name)) if parts else 1,
            lookups={
                role.attribute: self._lookup(name, role.attribute)
                for role in shape.roles
                if isinstance(role, PublicKey)
            },
        )
        rows = self.rows[name]
        units = units_of(None, rows)
        return output_statement(shape, table.staged, rows, units, table.seed, ties=ties, numbered=numbered)

    def _keys_of(self, name: str) -> Fragment:
        """The temporary table of a table's keys."""
        if name not in self.keys:
            made = _temporary("keys")
            shape, key = self.tables[name].shape, self.tree[name].key
            roles = tuple(role for role in shape.roles if role.name in key)
            query = self._statement(name, replace(shape, roles=roles, order=key), numbered=True)
            self.engine.execute(render("write/keys", table=made, query=query), step="making keys")
            self.keys[name] = made
        return self.keys[name]

    def _lookup(self, name: str, attribute: str) -> Lookup:
        place = (name, attribute)
        if place not in self.lookups:
            rows = self.tables[name].lookups[attribute]
            self.lookups[place] = load_lookup(self.engine, rows, _temporary("lookup"))
        return self.lookups[place]


def _copy(engine: Engine, rows: PublicRows) -> Fragment:
    """The query of a public table's rows, in the session that writes."""
    made = _temporary("public")
    load_texts(engine, rows.values, made)
    return copied_rows(made, rows.table)


def _temporary(what: str) -> Fragment:
    return qualified("temp", "main", f"dpsyn_{what}_{uuid4().hex}")


# -- where they go ----------------------------------------------------------------------------------


def _publish_folder(
    engine: Engine,
    target: DatabaseDestination,
    tables: Sequence[WrittenTable],
    queries: Mapping[str, Fragment],
    models: Sequence[StoredRelease],
) -> None:
    if target.path is None:
        raise InternalError("a folder has no path")
    words = {
        table.name: readable_literal(statement_of(table.kept.facts, table.kept.name))
        for table in tables
        if table.kept is not None
    }
    files = [
        NewFile(
            target.path / f"{target.names[name]}.parquet", "parquet", query, words.get(name, Fragment(""))
        )
        for name, query in queries.items()
    ]
    write_files(
        engine,
        files,
        models,
        file_beside(target.path),
        replace=target.replace,
        only_same=target.only_same,
        makes_folder=True,
    )


def _new_tables(
    target: DatabaseDestination,
    home: tuple[str, str],
    tree: Tree,
    tables: Sequence[WrittenTable],
    queries: Mapping[str, Fragment],
    constraints: bool,
) -> list[NewTable]:
    """What is written into a schema, tables before those that refer to them."""
    written = {table.name: table for table in tables}
    shapes = {name: table.shape for name, table in written.items()}
    stated = Constraints(tree, shapes, target.names) if constraints else None
    order = written_order(tree, queries)
    new = list[NewTable]()
    for name in order:
        full = qualified(*home, target.names[name])
        own = written.get(name)
        comments = () if own is None or own.kept is None else comment_statements(full, own.shape, own.kept)
        new.append(
            NewTable(
                full,
                queries[name],
                () if own is None else not_null(own.shape),
                tuple(comments),
                target.replace,
                target.only_same and name in target.existing,
                () if stated is None else stated.definitions(name, order[: order.index(name)]),
            )
        )
    return new
