"""What a release wrote, read again: its rows as a data frame, and what stands in a database file.

All of it is public.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog, path_literal
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.spark.outputs import SparkOutput, read_rows
from dpsyn_sql.engines.stored_releases import opened_releases, reopenable
from dpsyn_sql.engines.target import Target
from dpsyn_sql.errors import DpsynError, EngineFailure, InputError, said
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import ending_of
from dpsyn_sql.source.names import Identity, absolute_path, fold
from dpsyn_sql.sqltext.fragments import Fragment, comma, literal, qualified
from dpsyn_sql.sqltext.release_tables import SCHEMA
from dpsyn_sql.sqltext.render import render

_STEP = "reading the synthetic rows"
_LIBRARIES = {"polars": ("polars", "DataFrame"), "arrow": ("pyarrow", "table")}
"""What makes a frame of a relation of DuckDB, by the kind of frame that is asked for."""


def reading(
    con: Connection, target: Target, table: str, shape: Shape, release_id: str
) -> Callable[[str], Any]:
    """A function of the kind of a data frame that reads the written rows; nothing stays open in between.

    Args:
        con: that the output was written by.
        target: the output; what stands in its place later is never read.
        table: the name of the table in the release.
        shape: of what is written of the table; complete.
        release_id: of the table.
    """
    if target.spark is not None:
        return _reading_spark(target.spark, release_id)
    name, models = target.names[table], reopenable(target.stored_in(con))
    if target.home is not None:
        identity = (*target.home, name)
        shown = target.name if target.kind == "table" else name
        return _Rows(shown, qualified(*identity), release_id, None, identity).reader(models)
    if target.kind == "database" or target.path is None:
        return _Rows(name, qualified("main", name), release_id, None, None).reader(models)
    file = target.path / f"{name}.parquet" if target.kind == "folder" else target.path
    shown = str(file) if target.kind == "folder" else target.name
    return _Rows(shown, _rows_of_file(file, shape), release_id, file, None).reader(models)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Written rows: ``rows`` is what to put after FROM, of a file at ``path`` or of the ``table``."""

    name: str
    rows: Fragment
    release_id: str
    path: Path | None
    table: Identity | None

    def reader(self, models: Connection | SparkOutput) -> Callable[[str], Any]:
        """The function that reads them; ``models`` is where the model is."""
        query, mark = render("load/all", rows=self.rows), _mark(self.path)

        def read(kind: str) -> Any:
            make = _maker(kind)
            gone = f"The rows of the release cannot be read: {self.name} was replaced, changed or removed."
            with opened_releases(models, self.path) as session:
                stands = session.known(self.release_id) is not None
                if not (stands and _is_table_of(session.engine, self.table, self.release_id)):
                    raise InputError(gone)
                if _mark(self.path) != mark:
                    raise InputError(gone)
                failed = ""
                try:
                    return session.engine.converted(query, make, step=_STEP)
                except EngineFailure as error:
                    if error.kind in ("OutOfMemoryException", "MemoryError"):
                        raise
                    failed = error.kind
            raise InputError(f"{gone} ({failed})")

        return read


def _reading_spark(output: SparkOutput, release_id: str) -> Callable[[str], Any]:
    def read(kind: str) -> Any:
        with opened_releases(output) as session:
            if session.known(release_id) is None:
                raise InputError(
                    f"The rows of the release cannot be read: {output.name} was replaced, changed or removed."
                )
        return read_rows(output, kind)

    return read


def _mark(path: Path | None) -> tuple[int, ...] | None:
    """What another file at the path would have otherwise; None if there is none, or the output is a table."""
    with contextlib.suppress(OSError):
        if path is not None:
            status = path.stat()
            return status.st_ino, status.st_size, status.st_mtime_ns
    return None


def _is_table_of(engine: Engine, table: Identity | None, release_id: str) -> bool:
    """Whether the table is that of the release, or there is none: the output is a file."""
    if table is None:
        return True
    database, schema, name = map(literal, table)
    sql = render(
        "load/released", database=database, schema=schema, name=name, release=literal(f"id {release_id}.")
    )
    return int(engine.fetch(sql, step=_STEP)["found"][0]) == 1


def _rows_of_file(path: Path, shape: Shape) -> Fragment:
    """What to put after FROM."""
    ending, file = ending_of(path.name), path_literal(str(path))
    if ending == ".parquet":
        return render("source/read_parquet", paths=file)
    kinds = shape.sql_types
    pairs = comma(Fragment(f"{literal(name)}: {literal(kinds[name])}") for name in shape.order)
    compression = literal("gzip" if ending == ".csv.gz" else "none")
    return render("load/read_csv", path=file, columns=pairs, compression=compression)


def _maker(kind: object) -> Callable[[Any], Any]:
    """What makes the frame.

    Raises:
        InputError: an unknown kind, or its library is not installed.
    """
    if kind == "pandas":
        return lambda relation: relation.df()
    if not isinstance(kind, str) or kind not in _LIBRARIES:
        raise InputError(f"to_df({said(kind)}) is not known; use one of pandas, {', '.join(_LIBRARIES)}")
    library, name = _LIBRARIES[kind]
    try:
        module = importlib.import_module(library)
    except ImportError:
        module = None
    if module is None:
        raise InputError(f"to_df({kind!r}) needs the package {library}: pip install 'dpsyn_sql[{kind}]'")
    make: Callable[[Any], Any] = getattr(module, name)
    return make


# -- what stands in a database file --------------------------------------------------------------------


def standing_tables(database: Path, names: Sequence[str]) -> frozenset[str] | None:
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
            released = {fold(release.name) for release in session.releases()}
            relations = list(DuckDBCatalog(session.engine).relations.values())
    except (InputError, EngineFailure):
        return False
    for relation in relations:
        _, schema, table = map(fold, relation.identity)
        if schema != SCHEMA and not released & {table, f"{schema}.{table}"}:
            return False
    return True
