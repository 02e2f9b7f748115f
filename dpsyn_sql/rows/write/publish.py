"""Codes become tables or files, all of it or nothing (public side of the door).

``publish`` decodes the staged codes of all tables (see ``staging``) in SQL, with keys of rows that name each
other, and writes them (see ``outputs``). Tasks on other machines write what they draw themselves (``tasks``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.roles import Lookup, PartOfKey, Sizes, Ties, written_type
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.fit.arrays import IntArray
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.rows.write.outputs import (
    NewFile,
    NewTable,
    changed,
    holds,
    write_database,
    write_files,
    write_tables,
)
from dpsyn_sql.rows.write.persist import StoredRelease, comment_statements, readable_literal, statement_of
from dpsyn_sql.rows.write.staging import (
    GroupedRows,
    PublicRows,
    copied_rows,
    load_lookup,
    load_texts,
    rows_in_place,
    staged_rows,
)
from dpsyn_sql.rows.write.tasks import PartRows, RowPublisher, write_in_tasks
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.sqltext.fragments import Fragment, ident, qualified, temporary_table
from dpsyn_sql.sqltext.render import render

Kind = Literal["table", "schema", "file", "folder", "database", "spark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where synthetic rows go; resolved and checked before anything was charged.

    Args:
        kind: a table, or a file of rows, of one table; a schema, a database file of its own, or a folder of
            Parquet files of several; or what Spark writes.
        names: what each table of the release, and each public table that is copied, is called there.
        home: the attached database and the schema; None for a file, a folder or Spark.
        path: the file, the folder or the database file; None for all else.
        existing: those of ``names`` that are there already.
        dropped: names of tables of a schema that are written anew, one that refers to others before them.
        replace: what is there may be overwritten.
        only_same: what is there must equal what is written.
        publisher: of Spark, writes the rows of tasks elsewhere.
    """

    kind: Kind
    names: Mapping[str, str] = field(default_factory=dict)
    home: tuple[str, str] | None = None
    path: Path | None = None
    existing: frozenset[str] = frozenset()
    dropped: tuple[str, ...] = ()
    replace: bool = False
    only_same: bool = False
    publisher: RowPublisher | None = None

    @property
    def format(self) -> Literal["parquet", "csv"] | None:
        """That of a file; one that ends in .gz is meant compressed."""
        if self.kind != "file" or self.path is None:
            return None
        return "parquet" if ending_of(self.path.name) == ".parquet" else "csv"


@dataclass(frozen=True, slots=True)
class Period:
    """Rows of a period of a panel: their ``query``, and the rows ``there`` of the output that are of this
    period, to put after FROM."""

    query: Fragment
    there: Fragment


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table whose rows are drawn.

    Args:
        name: of the table in the tree.
        shape: complete; its expressions were checked (``expressions.check_expressions``), and of a tree
            ``planning.tree.roles_of`` says the roles of its keys.
        staged: quoted name of the table of codes: row, a0, a1, ..., and ``decode.output.beside_codes``. Empty
            where tasks elsewhere draw the ``parts``.
        seed: of positions inside bins, keys and unit ids; public. Conditions were met by the same seed.
        kept: what stays with the output: in its database, in the same transaction, or in a database file
            beside an output file. None: nothing.
        lookups: by attribute, the public rows that a reference to a public table names.
        units: int64; entry i is the number of privacy units with i+1 rows (``sample.units``); together they
            have the staged rows. None: every row has a unit of its own.
        persons: so many were drawn, and the rows lie below them; 0 of other tables.
        parts: rows that tasks elsewhere make.
        period: the rows of a period, which follow those of earlier ones in the same table.
    """

    name: str
    shape: Shape
    staged: Fragment
    seed: int
    kept: StoredRelease | None = None
    lookups: Mapping[str, GroupedRows] = field(default_factory=dict)
    units: IntArray | None = None
    persons: int = 0
    parts: PartRows | None = None
    period: Period | None = None


def publish(
    engine: Engine,
    target: Destination,
    tables: Sequence[WrittenTable],
    tree: Tree | None = None,
    public: Sequence[PublicRows] = (),
    *,
    constraints: bool = False,
) -> None:
    """Write the rows of all tables as values.

    On any failure a database is as it was before, and so is a file. Files of a folder that is new appear
    together; in a folder that is there they appear one after another.

    Args:
        engine: the session that holds the staged tables and writes.
        target: where to.
        tables: each of the tree once; without a tree one.
        tree: how the tables are tied; None: one table by itself.
        public: the public tables that are copied into the output.
        constraints: keys are stated as PRIMARY KEY and FOREIGN KEY; of no meaning for files.

    Raises:
        PublishError: the output has appeared since the check, is not what this release wrote, cannot be
            written, or a key's type cannot hold so many values.
        EngineFailure: the database or the tasks failed otherwise.
    """
    names = [table.name for table in tables]
    if len(names) != 1 if tree is None else [table.name for table in tree] != names:
        raise InternalError("other tables are published than those of the tree")
    if target.publisher is not None:
        _publish_in_tasks(engine, target.publisher, tables[0])
        return
    queries = {rows.table.name: _copy(engine, rows) for rows in public} | _decoded(engine, tree, tables)
    if target.kind in ("file", "folder"):
        _write_files(engine, target, tables, queries)
        return

    def new_tables(home: tuple[str, str]) -> list[NewTable]:
        return _new_tables(target, home, tree, tables, queries, constraints)

    models = [table.kept for table in tables if table.kept is not None]

    def write(home: tuple[str, str]) -> None:
        dropped = [] if target.only_same else [qualified(*home, name) for name in target.dropped]
        schema = None if target.kind == "table" else qualified(*home)
        write_tables(engine, home[0], new_tables(home), models, schema=schema, dropped=dropped)

    def compare(home: tuple[str, str]) -> None:
        for table in new_tables(home):
            if not holds(engine, table.name, table.query):
                raise PublishError(changed(f"database file {str(target.path)!r}"))

    if target.home is not None:
        write(target.home)
    elif target.path is not None and target.kind == "database":
        act = compare if target.only_same else write
        write_database(engine, target.path, act, replace=target.replace, there=target.only_same)
    else:
        raise InternalError("a target has no name")


def _publish_in_tasks(engine: Engine, publisher: RowPublisher, table: WrittenTable) -> None:
    if table.parts is None or table.kept is None:
        raise InternalError(
            "tasks elsewhere write a table without their rows or without what stays with them"
        )
    units = units_of(table.units, table.parts.kept, table.persons)
    _check_room(table, Sizes({table.name: table.parts.kept}, units.count))
    write_in_tasks(engine, publisher, table.shape, table.parts, units, table.kept)


# -- the rows as values -----------------------------------------------------------------------------


def _decoded(engine: Engine, tree: Tree | None, tables: Sequence[WrittenTable]) -> dict[str, Fragment]:
    """The query of each table's rows, by name; keys that other rows name are made on the way."""
    if tree is None:
        return {table.name: _decoded_alone(engine, table) for table in tables}
    rows = {table.name: staged_rows(engine, table.staged) for table in tables}
    decoding = _Decoding(engine, tree, {table.name: table for table in tables}, rows)
    types = {table.name: table.shape.types for table in tables}
    for table in tables:
        _check_room(table, Sizes(rows, most=decoding.most(table.name), types=types))
    return {table.name: decoding.query(table.name) for table in tables}


def _decoded_alone(engine: Engine, table: WrittenTable) -> Fragment:
    if table.period is not None:
        return table.period.query
    shape, (rows, in_place) = table.shape, rows_in_place(engine, table.staged)
    # Rows of conditions and of units are staged in pieces of any size. Row groups of a file would follow the
    # pieces, which DuckDB puts together as time will have it.
    in_place = in_place and not shape.never and not shape.together
    units = units_of(table.units, rows, table.persons)
    _check_room(table, Sizes({table.name: rows}, units.count))
    return output_statement(shape, table.staged, rows, units, table.seed, in_place=in_place)


def _check_room(table: WrittenTable, sizes: Sizes) -> None:
    """Refuse types that cannot hold as many different values as are needed.

    Raises:
        PublishError: there is one.
    """
    for role in table.shape.roles:
        role.check(table.name, sizes)


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
        """How many rows the largest family of a table has, where a part of its key numbers them; else 1."""
        if not self.tables[name].shape.roles_of(PartOfKey):
            return 1
        sql = render("write/largest_family", staged=self.tables[name].staged)
        return max(1, int(self.engine.fetch(sql, step="counting sampled rows")["most"][0]))

    def _statement(self, name: str, shape: Shape, *, numbered: bool) -> Fragment:
        table, references = self.tables[name], shape.references
        tables = sorted({role.table for role in references if role.table in self.tables})
        attributes = {role.attribute for role in references if role.table not in self.tables}
        ties = Ties(
            keys={other: self._keys_of(other) for other in tables},
            rows=self.rows,
            most=self.most(name),
            lookups={attribute: self._lookup(name, attribute) for attribute in attributes},
        )
        rows = self.rows[name]
        units = units_of(None, rows)
        return output_statement(shape, table.staged, rows, units, table.seed, ties=ties, numbered=numbered)

    def _keys_of(self, name: str) -> Fragment:
        """The temporary table of a table's keys."""
        if name not in self.keys:
            keys = temporary_table("dpsyn_keys")
            shape, key = self.tables[name].shape, self.tree[name].key
            roles = tuple(role for role in shape.roles if role.name in key)
            query = self._statement(name, replace(shape, roles=roles, order=key), numbered=True)
            self.engine.execute(render("write/keys", table=keys, query=query), step="making keys")
            self.keys[name] = keys
        return self.keys[name]

    def _lookup(self, name: str, attribute: str) -> Lookup:
        key = (name, attribute)
        if key not in self.lookups:
            rows = self.tables[name].lookups[attribute]
            self.lookups[key] = load_lookup(self.engine, rows, temporary_table("dpsyn_lookup"))
        return self.lookups[key]


def _copy(engine: Engine, rows: PublicRows) -> Fragment:
    """The query of a public table's rows, in the session that writes."""
    table = temporary_table("dpsyn_public")
    load_texts(engine, rows.values, table)
    return copied_rows(table, rows.table)


# -- where they go ----------------------------------------------------------------------------------


def _write_files(
    engine: Engine, output: Destination, tables: Sequence[WrittenTable], queries: Mapping[str, Fragment]
) -> None:
    """A file, or a folder of Parquet files, with the models in a database file beside it."""
    one_file = output.kind == "file"
    if output.path is None:
        raise InternalError("files need a path")
    models = {table.name: table.kept for table in tables if table.kept is not None}
    files = list[NewFile]()
    for name, query in queries.items():
        release, path = models.get(name), output.path
        words = (
            Fragment("") if release is None else readable_literal(statement_of(release.facts, release.name))
        )
        if not one_file:
            path = path / f"{output.names[name]}.parquet"
        files.append(NewFile(path, output.format or "parquet", query, words))
    write_files(
        engine,
        files,
        list(models.values()),
        file_beside(output.path),
        replace=output.replace,
        only_same=output.only_same,
        makes_folder=not one_file,
    )


def _new_tables(
    output: Destination,
    home: tuple[str, str],
    tree: Tree | None,
    tables: Sequence[WrittenTable],
    queries: Mapping[str, Fragment],
    constraints: bool,
) -> list[NewTable]:
    """What is written into a database, tables before those that refer to them."""
    written = {table.name: table for table in tables}
    shapes = {name: table.shape for name, table in written.items()}
    stated = Constraints(tree, shapes, output.names) if constraints and tree is not None else None
    order = list(queries) if tree is None else written_order(tree, queries)
    new = list[NewTable]()
    for name in order:
        full = qualified(*home, output.names[name])
        table = written.get(name)
        release = None if table is None else table.kept
        comments = () if table is None or release is None else comment_statements(full, table.shape, release)
        new.append(
            NewTable(
                full,
                queries[name],
                () if table is None else not_null(table.shape),
                tuple(comments),
                output.replace,
                output.only_same and name in output.existing,
                () if stated is None else stated.definitions(name, order[: order.index(name)]),
                None if table is None or table.period is None else table.period.there,
            )
        )
    return new


def written_order(tree: Tree, names: Collection[str]) -> list[str]:
    """Tables after those that they refer to: where two refer to each other, a parent stands first."""
    order = [name for name in names if name not in {table.name for table in tree}]
    left = [table.name for table in tree]
    while left:
        for owned in (False, True):
            ready = [
                name
                for name in left
                if all(
                    link.table in order or link.table == name or (owned and link.table != tree[name].parent)
                    for link in tree.links(name)
                    if link.table in names
                )
            ]
            if ready:
                break
        order.append(ready[0])
        left.remove(ready[0])
    return order


def not_null(shape: Shape) -> tuple[str, ...]:
    """Columns without NULL: one that names other rows has NULL where there are none."""
    references = {role.name for role in shape.references if role.attribute}
    return tuple(name for name in shape.not_null if name not in references)


@dataclass(frozen=True, slots=True)
class Constraints:
    """The definitions of tables with the constraints of their keys.

    A self-reference has none: DuckDB looks for the rows that one INSERT names before it has written any. Nor
    has a key that is not of the type of what it names, or that a table of the output does not hold.
    """

    tree: Tree
    shapes: Mapping[str, Shape]
    names: Mapping[str, str]

    def definitions(self, name: str, before: Sequence[str]) -> tuple[Fragment, ...]:
        """Columns and constraints of a table; ``before``: the tables that are there by then."""
        return tuple(self._definitions(name, before))

    def _definitions(self, name: str, before: Sequence[str]) -> Iterator[Fragment]:
        shape, kinds = self.shapes.get(name), self._types(name)
        never_null = {*self._key(name), *(not_null(shape) if shape else ())}
        for column, kind in kinds.items():
            yield Fragment(f"{ident(column)} {kind}{' NOT NULL' if column in never_null else ''}")
        if key := self._key(name):
            yield Fragment(f"PRIMARY KEY ({_listed(key)})")
        for link in () if shape is None else self.tree.links(name):
            if link.table in before and link.key == self._key(link.table):
                other_types = self._types(link.table)
                if all(
                    kinds[column] == other_types[key]
                    for column, key in zip(link.columns, link.key, strict=True)
                ):
                    # The name alone: DuckDB 1.5 takes no other database's here, whatever it is called.
                    referenced = ident(self.names[link.table])
                    yield Fragment(
                        f"FOREIGN KEY ({_listed(link.columns)}) REFERENCES {referenced} ({_listed(link.key)})"
                    )

    def _key(self, name: str) -> tuple[str, ...]:
        """The columns of the key; none if nothing promises that it holds."""
        if name in self.shapes:
            return self.tree.stated_key(name, self.shapes[name])
        return self.tree.public_table(name).key

    def _types(self, name: str) -> dict[str, Fragment]:
        if name in self.shapes:
            shape = self.shapes[name]
            return {column: written_type(shape.types[column]) for column in shape.order}
        return {
            column.name: Fragment(column.sql_type) for column in self.tree.public_table(name).relation.columns
        }


def _listed(columns: Sequence[str]) -> Fragment:
    return Fragment(", ".join(map(ident, columns)))
