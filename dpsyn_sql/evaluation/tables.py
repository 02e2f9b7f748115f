"""PRIVATE: open the tables that are compared: one, or several that hang together by keys, as a tree.

One table is a tree of one. Its rows may belong to units: then its foreign key names what no table holds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsyn_sql.attributes.database_file import DatabaseFile, read_database
from dpsyn_sql.attributes.file import DomainSpec
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.identities import given_of
from dpsyn_sql.engines.open_source import FURTHER, Given, OpenedRelation, open_source, opened_relations
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.evaluation.membership import identifiers
from dpsyn_sql.evaluation.session import Session, compared_pair, homes_of, ids_of, refuse_empty, session_of
from dpsyn_sql.planning.limits import LimitsSpec, read_limits
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.planning.tying.keys import split_column
from dpsyn_sql.planning.tying.tables import tied_tables
from dpsyn_sql.source.files import DATABASE_ENDINGS
from dpsyn_sql.source.names import fold, last_part, listed, name_hint, shorten, split_name
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident

Relations = Mapping[str, OpenedRelation]
"""Of one table by ``"real"``, ``"synthetic"`` and perhaps ``"holdout"``."""


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """The ``tree`` of the real tables, and by table the ``sessions`` that read it and those beside it.

    ``synthetic``: as it was named. ``homes``: the folders of the real rows. ``listed``: whether the real
    tables were given as a list, or by the domain file.
    """

    tree: Tree
    sessions: Mapping[str, Session]
    synthetic: str
    homes: tuple[Path, ...]
    listed: bool

    @property
    def several(self) -> bool:
        """Whether there is more than one table."""
        return len(self.tree.tables) > 1

    @property
    def real(self) -> str:
        """The names of the real tables, as they were given."""
        if not self.several:
            return self.tree.root.name
        return listed([table.name for table in self.tree], len(self.tree.tables)).replace("'", "")

    @property
    def rows(self) -> tuple[int, int]:
        """Real and synthetic rows of all tables."""
        sessions = self.sessions.values()
        real, synthetic = (sum(session.rows[side] for session in sessions) for side in ("real", "synthetic"))
        return real, synthetic

    def named_column(self, text: Any, option: str) -> tuple[str, Any]:
        """The table and the column that an option names.

        Raises:
            InputError: there are several tables, and the text is no ``table.column`` of them.
        """
        return _named_column(self.tree, text, option)


@contextlib.contextmanager
def opened(
    con: Connection,
    real: Given | Sequence[str] | None,
    synthetic: Given,
    holdout: Given | None = None,
    *,
    domain: DomainSpec = None,
    unit: str | None = None,
    order: str | None = None,
    limits: LimitsSpec = None,
) -> Iterator[ComparedTables]:
    """The tables, opened to be compared; the arguments are those of ``evaluate``. Temporary tables go at the
    end.

    Raises:
        InputError: the tables are no pair to compare, or no tree; the message says why and what to give.
        EngineFailure: the database could not read them.
    """
    names: Any = real
    memory_limit = read_limits(limits, ("memory",)).engine
    listed_names = real is None or (isinstance(real, Sequence) and not isinstance(real, str))
    if domain is None and not listed_names:
        sources: dict[str, Any] = {"real": real, "synthetic": synthetic}
        sources |= {} if holdout is None else {"holdout": holdout}
        with opened_relations(con, sources, memory_limit) as (engine, relations):
            tree = _tree_of_one(relations["real"], unit, order)
            ids = identifiers(con, engine, synthetic)
            session = _session(engine, tree, tree.root, relations, ids)
            refuse_empty(relations, session)
            homes = homes_of(con, [relations["real"]])
            yield ComparedTables(tree, {tree.root.name: session}, os.fspath(synthetic), homes, listed=False)
        return
    tree = tree_of(con, names if listed_names else [names], domain, unit, order, memory_limit)
    sources, file = _sources(con, tree, synthetic, holdout)
    with opened_relations(con, sources, memory_limit, file) as (engine, relations):
        by_table = {table.name: _of_table(table, relations) for table in tree}
        tree = _with_released_references(tree, by_table)
        sessions = {table.name: _session(engine, tree, table, by_table[table.name], None) for table in tree}
        homes = homes_of(con, [of_table["real"] for of_table in by_table.values()])
        yield ComparedTables(tree, sessions, os.fspath(synthetic), homes, listed=True)


def _session(
    engine: DuckDBEngine,
    tree: Tree,
    table: Table,
    relations: Relations,
    fresh: set[str] | None,
) -> Session:
    """The real rows of a table beside the others, with its keys; ``fresh``: ids of its stored release."""
    compared, lacking = compared_pair(relations, keys_of(table))
    ids = ids_of(compared["real"]) if fresh is None else fresh
    ids = {*ids, *map(fold, table.tied)} - {*map(fold, table.measured_key)}
    compared = {side: extended(table, tree, relation) for side, relation in compared.items()}
    keyed = bool(table.key or table.parent)
    return session_of(engine, compared, ids, keys_of(table), lacking, bare=keyed)


def keys_of(table: Table) -> list[str]:
    """The columns of all keys, in the order of the table."""
    tied = {*map(fold, (*table.tied, *table.key))}
    return [column.name for column in table.relation.columns if fold(column.name) in tied]


# -- one table ---------------------------------------------------------------------------------------


def _tree_of_one(real: OpenedRelation, unit: str | None, order: str | None) -> Tree:
    """Rows that stand for themselves, or belong to the units that a column names."""
    if order is not None and unit is None:
        raise InputError(f"order={said(order)} orders the rows of a unit: give unit= too")
    owner = () if unit is None else (_unit_column(real, unit),)
    relation = Relation(real.name, "table", real.sql, real.columns)
    return Tree((Table(real.name, relation, (), foreign_key=owner, order=order or ""),))


def _unit_column(real: OpenedRelation, unit: str) -> str:
    """The name of the column of units; the other tables have it too."""
    if not isinstance(unit, str):
        raise InputError(f"unit={said(unit)}: give the name of one column")
    spelled = {fold(column.name): column.name for column in real.columns}
    if fold(unit) not in spelled:
        hint = name_hint(unit, spelled.values(), "there are")
        raise InputError(f"unit={shorten(unit)!r} is no column; {hint}")
    return spelled[fold(unit)]


# -- several tables: where they are --------------------------------------------------------------------


def _sources(
    con: Connection, tree: Tree, synthetic: Given, holdout: Given | None
) -> tuple[dict[str, Given], Path | None]:
    """Where each table is, by what it is called in messages, and a database file to attach."""
    file, locations = _located(con, tree, "synthetic", synthetic)
    sources: dict[str, Given] = {f"real {table.name}": table.name for table in tree}
    sources |= {f"synthetic {name}": location for name, location in locations.items()}
    if holdout is not None:
        attached, locations = _located(con, tree, "holdout", holdout)
        if attached is not None:
            raise InputError(
                f"holdout={said(os.fspath(holdout))} is a database file: give a folder of Parquet files, or "
                "ATTACH it to a connection of yours and give its name."
            )
        sources |= {f"holdout {name}": location for name, location in locations.items()}
    return sources, file


def _located(con: Connection, tree: Tree, option: str, source: Given) -> tuple[Path | None, dict[str, Given]]:
    """A file to attach, and where each table is."""
    if not isinstance(source, str | os.PathLike) or not os.fspath(source).strip():
        raise InputError(
            f"{option}={said(source)}: give a schema, a DuckDB file or a folder of Parquet files"
        )
    text = os.fspath(source)
    short = {table.name: last_part(table.name) for table in tree}
    if text.lower().endswith(DATABASE_ENDINGS):
        if not isinstance(con, str | os.PathLike):
            raise InputError(
                f"{option}={said(text)} is a database file, and con is a connection: give the file of the "
                "real database as con, or ATTACH the synthetic one to your connection and give its name."
            )
        if not Path(text).is_file():
            raise InputError(f"There is no database file {said(text)}.")
        attached = Fragment(f"{ident(FURTHER)}.main")
        return Path(text).absolute(), {name: f"{attached}.{ident(last)}" for name, last in short.items()}
    if Path(text).is_dir():
        return None, {name: str(Path(text) / f"{last}.parquet") for name, last in short.items()}
    name_parts = split_name(text)
    schema = ".".join(map(ident, name_parts)) if name_parts else ident(text)
    return None, {name: f"{schema}.{ident(last)}" for name, last in short.items()}


def _of_table(table: Table, relations: Relations) -> dict[str, OpenedRelation]:
    names = {side: f"{side} {table.name}" for side in ("real", "synthetic", "holdout")}
    return {side: relations[name] for side, name in names.items() if name in relations}


def _with_released_references(tree: Tree, relations: Mapping[str, Relations]) -> Tree:
    """The tree without references whose columns the synthetic tables lack: their release excluded them."""
    tables = []
    for table in tree:
        released = {fold(column.name) for column in relations[table.name]["synthetic"].columns}
        references = [
            reference for reference in table.references if released.issuperset(map(fold, reference.columns))
        ]
        tables.append(replace(table, references=tuple(references)))
    return replace(tree, tables=tuple(tables))


def _named_column(tree: Tree, text: Any, option: str) -> tuple[str, Any]:
    if len(tree.tables) == 1:
        return tree.root.name, text
    names = [table.name for table in tree]
    table_and_column = split_column(text, names) if isinstance(text, str) else None
    if table_and_column is None:
        raise InputError(
            f"{option}={said(text)}: of several tables give a table and its column, such as "
            f"'{names[0]}.{tree.root.relation.columns[0].name}'. The tables are {listed(names)}."
        )
    return table_and_column


# -- several tables: how they hang together, by the rules of a release ----------------------------------


def tree_of(
    con: Connection,
    names: Sequence[str] | None,
    domain: DomainSpec,
    unit: str | None,
    order: str | None,
    memory_limit: str | None,
) -> Tree:
    """The tree of the real tables, each called as it was given.

    Raises:
        InputError, SourceError: the tables, the file or the names are refused, or they are no tree.
    """
    if names is not None and not all(isinstance(name, str) for name in names):
        raise InputError(f"real={said(names)}: give a list of names of tables")
    file = read_database(domain)
    names = [*(file.tables if names is None else names)]
    if not names:
        raise InputError(
            "Say which tables: give a list of them as real=, or domain= with the domain file of the database."
        )
    stated = (
        reference.table for table_spec in file.tables.values() for reference in table_spec.references.values()
    )
    public = [*file.public, *stated]
    with open_source(
        con, names, trust_query=True, public_tables=public, linked=True, memory_limit=memory_limit
    ) as session:
        file = _stated_of_compared(file, session)
        tree = tied_tables(given_of(session, file, file.unit if unit is None else unit))
        tree = _called(tree, {name: source.spelled for name, source in session.private.items()})
    if order is None:
        return tree
    ordered, column = _named_column(tree, order, "order")
    tables = (replace(table, order=column) if table.name == ordered else table for table in tree)
    return replace(tree, tables=tuple(tables))


def _stated_of_compared(file: DatabaseFile, session: SourceSession) -> DatabaseFile:
    """What the file says of the tables that are compared."""
    unit = session.named(file.unit) or (session.named_column(file.unit) or ("",))[0]
    return DatabaseFile(
        file.unit if unit in session.relations else "",
        {text: table for text, table in file.tables.items() if session.named(text) in session.relations},
        {text: key for text, key in file.public.items() if session.named(text) in session.public},
    )


def _called(tree: Tree, names: Mapping[str, str]) -> Tree:
    tables = [
        replace(
            table,
            name=names[table.name],
            parent=None if table.parent is None else names[table.parent],
            references=tuple(
                replace(reference, table=names.get(reference.table, reference.table))
                for reference in table.references
            ),
        )
        for table in tree
    ]
    return replace(tree, tables=tuple(tables))


def extended(table: Table, tree: Tree, relation: OpenedRelation) -> OpenedRelation:
    """A relation with what its references say: columns of public rows, and whether a private one is named."""
    selected, joins, columns = list[str](), list[str](), list[Any]()
    for index, reference in enumerate(table.references):
        if reference.kind != "public":
            name = f"{reference.columns[0]} given"
            all_given = " AND ".join(f"t.{ident(column)} IS NOT NULL" for column in reference.columns)
            selected.append(f"{all_given} AS {ident(name)}")
            columns.append(replace(relation.columns[0], name=name, sql_type="BOOLEAN", refused=""))
            continue
        public = tree.public_table(reference.table)
        spelled = {fold(column.name): column for column in public.relation.columns}
        for by in reference.by or public.key:
            column = spelled[fold(by)]
            name = f"{reference.columns[0]}: {column.name}"
            selected.append(f"x{index}.{ident(column.name)} AS {ident(name)}")
            columns.append(replace(column, name=name, unique=False))
        pairs = zip(reference.columns, public.key, strict=True)
        equal = " AND ".join(f"t.{ident(column)} = x{index}.{ident(key)}" for column, key in pairs)
        joins.append(f"LEFT JOIN {public.relation.sql} AS x{index} ON {equal}")
    if not selected:
        return relation
    sql = f"(SELECT t.*, {', '.join(selected)} FROM {relation.sql} AS t {' '.join(joins)})"
    added = tuple(replace(column, not_null=False, unique=False) for column in columns)
    return replace(relation, sql=Fragment(sql), columns=(*relation.columns, *added), stored=False)
