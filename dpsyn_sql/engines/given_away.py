"""Whether a database file is one to give away: it holds releases and nothing else."""

from __future__ import annotations

from pathlib import Path

from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.stored_releases import opened_releases
from dpsyn_sql.errors import EngineFailure, InputError
from dpsyn_sql.source.names import fold
from dpsyn_sql.sqltext.release_tables import SCHEMA


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
