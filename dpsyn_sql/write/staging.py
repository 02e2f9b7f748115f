"""Sampled codes in a temporary table, loaded with bounded memory (public side of the door)."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.decode.output import reject_statement
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.interfaces import Engine
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

Batches = Iterator[NDArray[np.integer[Any]]]
Draw = Callable[[int, int, int], int]

_DTYPES = {"UTINYINT": np.uint8, "USMALLINT": np.uint16, "UINTEGER": np.uint32, "UBIGINT": np.uint64}
_ROUNDS = 30
_SMALL = 20_000  # rows that any round may draw, however few are missing
_SPARE = 16
_MOST_DRAWN = 100  # rows drawn for each row wanted, at most


def stage(engine: Engine, domain: Domain, batches: Batches, table: Fragment) -> int:
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
    make_room(engine, domain, table)
    return append(engine, domain, batches, table, 0)


def make_room(engine: Engine, domain: Domain, table: Fragment) -> None:
    """Create the temporary table."""
    types = [DUCKDB.code_type(attribute.size) for attribute in domain.attributes]
    columns = [Fragment(f"a{position} {name}") for position, name in enumerate(types)]
    engine.execute(render("write/stage", table=table, columns=columns), step="making room for sampled rows")


def append(engine: Engine, domain: Domain, batches: Batches, table: Fragment, first: int) -> int:
    """Load more codes, numbered from ``first`` on; how many."""
    sizes = [attribute.size for attribute in domain.attributes]
    types = [DUCKDB.code_type(size) for size in sizes]
    rows = 0
    for batch in batches:
        _check(batch, sizes)
        if len(batch) == 0:
            continue
        start = first + rows
        loaded: dict[str, NDArray[Any]] = {"row": np.arange(start, start + len(batch), dtype=np.int64)}
        for position, name in enumerate(types):
            loaded[f"a{position}"] = np.ascontiguousarray(batch[:, position], dtype=_DTYPES[name])
        engine.load(table, loaded, step="loading sampled rows")
        rows += len(batch)
    return rows


def stage_rows(
    engine: Engine,
    shape: Shape,
    draw: Draw,
    rows: int,
    table: Fragment,
    seed: int,
) -> int:
    """Load ``rows`` sampled rows of which none meets a condition of ``shape.never``.

    Rows that do are deleted, and others are sampled in their place, until enough are left: the sample
    follows the model's distribution given that no condition holds. Bounded: after some rounds, or when
    the conditions leave almost nothing, fewer rows are staged and a warning says so.

    Args:
        engine: the session that writes.
        shape: complete, with checked expressions.
        draw: ``draw(rows, seed, first)`` adds rows to the table, numbered from ``first`` on, and says how
            many (``append``, or ``sample.sql_sampler.append_network``).
        rows: wanted.
        table: quoted name of the table to create, as ``stage``.
        seed: of the first sample and, together with the round, of the others; of positions in bins.

    Returns:
        The number of rows staged.
    """
    make_room(engine, shape.domain, table)
    drawn = draw(rows, seed, 0)
    if not shape.never:
        return drawn
    looked_at = 0
    for attempt in range(1, _ROUNDS + 1):
        statement = reject_statement(shape, table, looked_at, seed)
        engine.execute(statement, step="removing rows that cannot be")
        kept, looked_at = staged_rows(engine, table), drawn
        if kept >= rows or attempt == _ROUNDS or drawn > _MOST_DRAWN * max(rows, _SMALL):
            break
        share = max(kept / drawn, 1 / _MOST_DRAWN)
        wanted = min(math.ceil((rows - kept) / share) + _SPARE, max(rows, _SMALL))
        drawn += draw(wanted, _seed_of_round(seed, attempt), drawn)
    if kept > rows:
        engine.execute(render("write/trim", staged=table, rows=rows), step="trimming sampled rows")
    if kept < rows:
        warnings.warn(
            f"The conditions of never: and CHECK exclude too many rows: only {kept} of {rows} rows were "
            "written.",
            stacklevel=2,
        )
    return min(kept, rows)


def staged_rows(engine: Engine, table: Fragment) -> int:
    """How many rows are staged."""
    counted = engine.fetch(render("write/count_staged", staged=table), step="counting sampled rows")
    return int(counted["staged_rows"][0])


def _seed_of_round(seed: int, attempt: int) -> int:
    digest = hashlib.sha256(f"{seed}|round|{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def _check(batch: NDArray[np.integer[Any]], sizes: list[int]) -> None:
    """A narrowing cast would wrap a wrong code silently into another valid one."""
    if batch.ndim != 2 or batch.shape[1] != len(sizes):
        raise InternalError(f"a batch of codes has shape {batch.shape}, expected (rows, {len(sizes)})")
    if len(batch) and not (batch.min() >= 0 and np.all(batch.max(axis=0) < np.array(sizes))):
        raise InternalError("a sampled code lies outside its attribute's domain")
