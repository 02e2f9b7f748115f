"""PRIVATE: evaluate_database(): a synthetic database beside the real one, for the owner of the data alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.domain.database_file import DatabaseFile, read_database
from dpsyn_sql.domain.file import DomainSpec
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.relations import FURTHER, Given, OpenedRelation, opened_relations
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.table_facts import given_of
from dpsyn_sql.errors import InputError, hides_own_frames, said
from dpsyn_sql.evaluation.between import between
from dpsyn_sql.evaluation.linked import keys_of, linked
from dpsyn_sql.evaluation.pair import compared_pair
from dpsyn_sql.evaluation.result import Evaluation
from dpsyn_sql.evaluation.session import Session, homes_of, ids_of, session_of
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.planning.tying.tables import tied_tables
from dpsyn_sql.report.progress_bar import progress_bar
from dpsyn_sql.source.files import DATABASE_ENDINGS
from dpsyn_sql.source.names import fold, last_part, listed, split_name
from dpsyn_sql.sqltext.fragments import Fragment, ident


@hides_own_frames
def evaluate_database(
    con: Connection,
    synthetic: Given,
    *,
    tables: Sequence[str] | None = None,
    domain: DomainSpec = None,
    seed: int = 1,
    memory_limit: str | None = None,
) -> Evaluation:
    """Compare a synthetic database with the real one. PRIVATE: the result is as private as the real rows.

    It counts in the database by SQL, writes nothing into a database, reads no ledger and charges nothing.
    The tables are a tree: one holds the units, each other one hangs from its parent by a foreign key. Which,
    the catalog says or the domain file. Keys are not compared, but that they hold is.

    Args:
        con: a DuckDB connection, or the path of a DuckDB file (opened read-only), with the real tables.
        synthetic: what was given to the release as ``into``: a schema of the database, a DuckDB file (where
            ``con`` is a file too), or a folder of Parquet files.
        tables: names of the real tables; None: those of the domain file.
        domain: the domain file of the database, as ``release_database`` takes it, or its content.
        seed: of the halves of the units.
        memory_limit: such as ``"4GB"``, where ``con`` is no connection.

    Returns:
        An ``Evaluation``; ``tables`` has ``"keys"``, ``"links"``, ``"joined"``, ``"relatives"``,
        ``"sequences"`` (of tables with an order), ``"joined_pairs"``, ``"numbers"``, ``"relative_columns"``.

    Raises:
        InputError: the tables are no tree, or no pair to compare; the message says why.
        EngineFailure: the database failed.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed={said(seed)}: give a whole number from 0 up")
    with progress_bar():
        tree = tree_of(con, tables, domain, memory_limit)
        path, made = _synthetic(con, synthetic, tree)
        given: dict[str, Given] = {f"real {table.name}": table.name for table in tree}
        given |= {f"synthetic {name}": place for name, place in made.items()}
        with opened_relations(con, given, memory_limit, path) as (engine, found):
            tree = _released(tree, found)
            sessions = _sessions(con, engine, tree, found)
            with phase("rows of all tables"):
                tied, broken = linked(tree, sessions, seed)
            frames = {"keys": broken, **between(tree, tied)}
    rows = tuple(sum(one.rows[side] for one in sessions.values()) for side in ("real", "synthetic"))
    notes = [f"{name}: {note}" for name, one in sessions.items() for note in one.notes]
    notes += _nobodys(broken)
    homes = tuple(dict.fromkeys(home for one in sessions.values() for home in one.homes))
    called = listed([table.name for table in tree], len(tree.tables)).replace("'", "")
    return Evaluation(called, os.fspath(synthetic), (rows[0], rows[1]), frames, tuple(notes), homes)


def _synthetic(con: Connection, synthetic: Given, tree: Tree) -> tuple[Path | None, dict[str, Given]]:
    """A file to attach, and where each table is."""
    if not isinstance(synthetic, str | os.PathLike) or not os.fspath(synthetic).strip():
        raise InputError(
            f"synthetic={said(synthetic)}: give a schema, a DuckDB file or a folder of Parquet files"
        )
    text = os.fspath(synthetic)
    short = {table.name: last_part(table.name) for table in tree}
    if text.lower().endswith(DATABASE_ENDINGS):
        if not isinstance(con, str | os.PathLike):
            raise InputError(
                f"synthetic={said(text)} is a database file, and con is a connection: give the file of the "
                "real database as con, or ATTACH the synthetic one to your connection and give its name."
            )
        if not Path(text).is_file():
            raise InputError(f"There is no database file {said(text)}.")
        return Path(text).absolute(), {
            name: f"{ident(FURTHER)}.main.{ident(last)}" for name, last in short.items()
        }
    if Path(text).is_dir():
        return None, {name: str(Path(text) / f"{last}.parquet") for name, last in short.items()}
    parts = split_name(text)
    schema = ".".join(map(ident, parts)) if parts else ident(text)
    return None, {name: f"{schema}.{ident(last)}" for name, last in short.items()}


def _sessions(
    con: Connection, engine: DuckDBEngine, tree: Tree, found: Mapping[str, OpenedRelation]
) -> dict[str, Session]:
    sessions = {}
    for table in tree:
        pair = {side: found[f"{side} {table.name}"] for side in ("real", "synthetic")}
        pair, lacking = compared_pair(pair, keys_of(table))
        homes = homes_of(con, pair["real"])
        ids = {*ids_of(pair["real"]), *map(fold, table.tied)} - {*map(fold, table.measured_key)}
        pair = {side: extended(table, tree, one) for side, one in pair.items()}
        sessions[table.name] = session_of(engine, pair, ids, homes, keys_of(table), lacking, bare=True)
    return sessions


def _released(tree: Tree, found: Mapping[str, OpenedRelation]) -> Tree:
    """The tree without references whose columns the synthetic tables lack: their release excluded them."""
    tables = []
    for table in tree:
        made = {fold(column.name) for column in found[f"synthetic {table.name}"].columns}
        kept = [one for one in table.references if made.issuperset(map(fold, one.columns))]
        tables.append(replace(table, references=tuple(kept)))
    return replace(tree, tables=tuple(tables))


def _nobodys(keys: pd.DataFrame) -> list[str]:
    """Rows that name no parent are left out of all figures but those of keys."""
    notes = []
    for line in keys[keys["names"] != ""].to_dict("records"):
        for side in ("real", "synthetic"):
            lost = line[f"missing_{side}"] + line[f"broken_{side}"]
            if lost and line["owning"]:
                notes.append(
                    f"{lost:,} {side} rows of {line['table']} name no row of {line['names']}: they belong to "
                    "no unit, and figures but those of keys leave them and the rows below them out."
                )
    return notes


# -- which tables hang together, by the rules of a release -------------------------------------------


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
    public = [*file.public, *stated]
    with open_source(
        con, names, trust_query=True, public_tables=public, linked=True, memory_limit=memory_limit
    ) as session:
        file = _compared(file, session)
        tree = tied_tables(given_of(session, file, file.unit))
        return _called(tree, {name: source.spelled for name, source in session.private.items()})


def _compared(file: DatabaseFile, session: SourceSession) -> DatabaseFile:
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
        public = tree.public_table(reference.table)
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
