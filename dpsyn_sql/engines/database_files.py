"""What a database file holds: which tables stand in it, and whether it is one to give away."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.stored_releases import opened_releases
from dpsyn_sql.errors import DpsynError, EngineFailure, InputError
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.paths import absolute_path
from dpsyn_sql.sqltext.release_tables import SCHEMA


def standing(database: Path, names: Sequence[str]) -> frozenset[str] | None:
    """Those of ``names`` that are tables or views of a database file; None if it cannot be opened now."""
    if not database.is_file():
        return frozenset()
    with contextlib.suppress(DpsynError):
        engine = instance.opened_database(absolute_path(database))
        if engine is not None:
            with contextlib.closing(engine):
                catalog = DuckDBCatalog(engine)
                return frozenset(name for name in names if catalog.look_up(name) is not None)
    return None


def holds_releases_alone(path: Path) -> bool:
    """Whether every table of the database is one that a release wrote.

    A database that has the real rows too cannot be given away, because DuckDB has no rights on tables. One
    that is open for writing, or that cannot be read, is not known to be public.
    """
    try:
        with opened_releases(path) as session:
            known = {fold(one.name) for one in session.releases()}
            relations = list(DuckDBCatalog(session.engine).relations.values())
    except (InputError, EngineFailure):
        return False
    for relation in relations:
        _, schema, table = map(fold, relation.identity)
        if schema != SCHEMA and not known & {table, f"{schema}.{table}"}:
            return False
    return True
