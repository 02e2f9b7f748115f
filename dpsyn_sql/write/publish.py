"""Codes become a table or a file, all of it or nothing (public side of the door).

``stage`` loads sampled codes into a temporary table with bounded memory; ``publish`` decodes them
in SQL: into a table in one transaction, or into a file in a work folder beside the output which is
moved into place when it is complete.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.domain.decoding import decode_statement
from dpsyn_sql.domain.encoding import code_type
from dpsyn_sql.errors import EngineFailure, InternalError, PublishError
from dpsyn_sql.interfaces import Engine
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render
from dpsyn_sql.write.work_folder import work_folder

_DTYPES = {"UTINYINT": np.uint8, "USMALLINT": np.uint16, "UINTEGER": np.uint32, "UBIGINT": np.uint64}


class Target(Protocol):
    """Where the synthetic rows go; resolved and checked before anything was charged."""

    @property
    def kind(self) -> str:
        """``"table"`` or ``"file"``."""

    @property
    def sql(self) -> Fragment | None:
        """Qualified quoted name of the table; None for a file."""

    @property
    def path(self) -> Path | None:
        """The file; None for a table."""

    @property
    def format(self) -> str | None:
        """``"parquet"`` or ``"csv"``; None for a table."""

    @property
    def replace(self) -> bool:
        """Whether an existing output may be overwritten."""


def stage(
    engine: Engine, domain: Domain, batches: Iterator[NDArray[np.integer[Any]]], table: Fragment
) -> int:
    """Load codes into a new temporary table with the columns row (from 0), a0, a1, ...

    Args:
        engine: the session that writes; it cannot reach the source.
        domain: attributes in the order of the batches' columns.
        batches: arrays of shape (n, attributes) of codes; one at a time is held in memory.
        table: quoted name of the table to create.

    Returns:
        The number of rows loaded.

    Raises:
        InternalError: a batch has another number of columns, or a code outside the domain.
        EngineFailure: the database failed.
    """
    sizes = [attribute.size for attribute in domain.attributes]
    types = [code_type(size) for size in sizes]
    columns = [Fragment(f"a{position} {name}") for position, name in enumerate(types)]
    engine.execute(render("write/stage", table=table, columns=columns), step="making room for sampled rows")
    rows = 0
    for batch in batches:
        _check(batch, sizes)
        if len(batch) == 0:
            continue
        loaded: dict[str, NDArray[Any]] = {"row": np.arange(rows, rows + len(batch), dtype=np.int64)}
        for position, name in enumerate(types):
            loaded[f"a{position}"] = np.ascontiguousarray(batch[:, position], dtype=_DTYPES[name])
        engine.load(table, loaded, step="loading sampled rows")
        rows += len(batch)
    return rows


def _check(batch: NDArray[np.integer[Any]], sizes: list[int]) -> None:
    """A narrowing cast would wrap a wrong code silently into another valid one."""
    if batch.ndim != 2 or batch.shape[1] != len(sizes):
        raise InternalError(f"a batch of codes has shape {batch.shape}, expected (rows, {len(sizes)})")
    if len(batch) and not (batch.min() >= 0 and np.all(batch.max(axis=0) < np.array(sizes))):
        raise InternalError("a sampled code lies outside its attribute's domain")


def publish(engine: Engine, target: Target, domain: Domain, staged: Fragment, seed: int) -> None:
    """Decode the staged codes into the target; on any failure the target is as it was before.

    Args:
        engine: the session that holds the staged table and writes.
        target: a table or a file.
        domain: attributes of the staged codes.
        staged: quoted name of the table of codes.
        seed: of the positions inside bins; public.

    Raises:
        PublishError: the output came to exist meanwhile, or cannot be written.
        EngineFailure: the database failed otherwise.
    """
    query = decode_statement(domain, staged, seed)
    if target.kind == "table":
        _publish_table(engine, target, query)
    else:
        _publish_file(engine, target, query)


def _publish_table(engine: Engine, target: Target, query: Fragment) -> None:
    if target.sql is None:
        raise InternalError("a table target has no name")
    statement = render("write/create_table", target=target.sql, replace=int(target.replace), query=query)
    failure: EngineFailure | None = None
    try:
        with engine.transaction():
            engine.execute(statement, step="writing the synthetic table")
    except EngineFailure as error:
        failure = error
    if failure is None:
        return
    if failure.kind in ("CatalogException", "TransactionException"):
        raise PublishError(
            f"The table {target.sql} cannot be created: something of that name exists there meanwhile, or "
            "its schema is gone. Nothing was written; choose another into=, or replace=True for a table."
        )
    raise EngineFailure(failure.step, failure.kind, failure.statement)


def _publish_file(engine: Engine, target: Target, query: Fragment) -> None:
    if target.path is None or target.format not in ("parquet", "csv"):
        raise InternalError("a file target needs a path and one of the formats parquet and csv")
    template = f"write/copy_{target.format}"
    problem = f"The file {str(target.path)!r} cannot be written in its folder."
    with contextlib.suppress(OSError), work_folder(target.path.parent) as folder:
        # The ending stays, because the database compresses by it.
        part = folder / f"part{target.path.suffix}"
        engine.execute(
            render(template, path=string_literal(str(part)), query=query), step="writing the synthetic file"
        )
        problem = _move(part, target.path, replace=target.replace)
    if problem:
        raise PublishError(problem)


def _move(part: Path, path: Path, *, replace: bool) -> str:
    """Put the complete file in its place; what went wrong, or empty text."""
    try:
        if replace:
            part.replace(path)
        else:
            _create_only(part, path)
    except FileExistsError:
        return (
            f"The file {str(path)!r} exists meanwhile; it was left alone. Add replace=True to overwrite it."
        )
    except OSError:
        return f"The file {str(path)!r} cannot be written in its folder."
    return ""


def _create_only(part: Path, path: Path) -> None:
    """Give ``path`` the finished file unless it exists: a hard link is atomic; where the file
    system has none, an empty file is created exclusively first and then replaced."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        path.touch(exist_ok=False)
        part.replace(path)
