"""Which tables a database file has. Reads its catalog, never a row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.errors import DpsynError
from dpsyn_sql.source.paths import absolute_path


def standing(database: Path, names: Sequence[str]) -> frozenset[str] | None:
    """Those of ``names`` that are tables or views of a database file; None if it cannot be opened now."""
    if not database.is_file():
        return frozenset()
    path, engine = absolute_path(database), instance.private_instance()
    try:
        instance.attach(engine, path, instance.database_alias(path), read_only=True)
        catalog = DuckDBCatalog(engine)
        return frozenset(name for name in names if catalog.look_up(name) is not None)
    except DpsynError:
        return None
    finally:
        engine.close()
