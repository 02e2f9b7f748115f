"""The synthetic rows of a release as a data frame, read from where they were written. All of it is public."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.engines.catalog import path_literal
from dpsyn_sql.engines.database_output import DatabaseTarget
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.spark.outputs import SparkOutput, read_rows
from dpsyn_sql.engines.stored_releases import opened_releases, reopenable
from dpsyn_sql.engines.target_session import Target
from dpsyn_sql.errors import EngineFailure, InputError, said
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.names import Identity
from dpsyn_sql.sqltext.fragments import Fragment, comma, literal, qualified
from dpsyn_sql.sqltext.render import render

_STEP = "reading the synthetic rows"
_LIBRARIES = {"polars": ("polars", "DataFrame"), "arrow": ("pyarrow", "table")}
"""What makes a frame of a relation of DuckDB, by the kind of frame that is asked for."""


def reading(con: Connection, target: Target, shape: Shape, release_id: str) -> Callable[[str], Any]:
    """A function of the kind of a data frame that reads the written rows; nothing stays open in between.

    Args:
        con: that the output table was written by.
        target: the output; what stands in its place later is never read.
        shape: of the output; complete.
        release_id: of the release that wrote it.
    """
    if target.kept is not None:
        return _reading_spark(target.kept, release_id)
    place = reopenable(con if target.path is None else target.path)
    rows = _Rows(target.name, _rows(target, shape), release_id, target.path, target.output.table)
    return rows.reader(place)


def reading_table(
    con: Connection, target: DatabaseTarget, table: str, release_id: str
) -> Callable[[str], Any]:
    """As ``reading``, of a table of a release of several.

    Args:
        con: that the output was written by.
        target: the output of all tables.
        table: the name of the table in the release.
        release_id: of the table.
    """
    name, path = target.names[table], target.path
    if path is None:
        identity = (*(target.home or ("", "")), name)
        return _Rows(name, qualified(*identity), release_id, None, identity).reader(reopenable(con))
    if target.kind == "database":
        return _Rows(name, qualified("main", name), release_id, None, None).reader(path)
    file = path / f"{name}.parquet"
    rows = render("source/read_parquet", paths=path_literal(str(file)))
    return _Rows(str(file), rows, release_id, file, None).reader(file_beside(path))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Written rows: ``rows`` is what to put after FROM, of a file at ``path`` or of the ``table``."""

    name: str
    rows: Fragment
    release_id: str
    path: Path | None
    table: Identity | None

    def reader(self, place: Connection | SparkOutput) -> Callable[[str], Any]:
        """The function that reads them; ``place`` has the model."""
        query, written = render("load/all", rows=self.rows), _mark(self.path)

        def read(kind: str) -> Any:
            make = _maker(kind)
            gone = f"The rows of the release cannot be read: {self.name} was replaced, changed or removed."
            with opened_releases(place, self.path) as session:
                there = session.known(self.release_id) is not None
                if not (there and _is_table_of(session.engine, self.table, self.release_id)):
                    raise InputError(gone)
                if _mark(self.path) != written:
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


def _reading_spark(kept: SparkOutput, release_id: str) -> Callable[[str], Any]:
    def read(kind: str) -> Any:
        with opened_releases(kept) as session:
            if session.known(release_id) is None:
                raise InputError(
                    f"The rows of the release cannot be read: {kept.name} was replaced, changed or removed."
                )
        return read_rows(kept, kind)

    return read


def _mark(path: Path | None) -> tuple[int, ...] | None:
    """What another file at the path would have otherwise; None if there is none, or the output is a table."""
    with contextlib.suppress(OSError):
        if path is not None:
            found = path.stat()
            return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def _is_table_of(engine: Engine, table: Identity | None, release_id: str) -> bool:
    """Whether the table is that of the release, or there is none: the output is a file."""
    if table is None:
        return True
    database, schema, name = map(literal, table)
    sql = render(
        "load/released", database=database, schema=schema, name=name, release=literal(f"id {release_id}.")
    )
    found = engine.fetch(sql, step=_STEP)
    return int(found["found"][0]) == 1


def _rows(target: Target, shape: Shape) -> Fragment:
    """What to put after FROM."""
    if target.path is None:
        return qualified(*target.output.table or ())
    place = path_literal(str(target.path))
    if target.format == "parquet":
        return render("source/read_parquet", paths=place)
    kinds = shape.sql_types
    pairs = comma(Fragment(f"{literal(name)}: {literal(kinds[name])}") for name in shape.order)
    compression = literal("gzip" if ending_of(target.path.name) == ".csv.gz" else "none")
    return render("load/read_csv", path=place, columns=pairs, compression=compression)


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
