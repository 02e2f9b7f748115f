"""Sampled codes in a temporary table, loaded with bounded memory (public side of the door)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.rows.sample.rounds import parts, rows_left
from dpsyn_sql.rows.write.redrawing import possible_statements
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

Batches = Iterator[NDArray[np.integer[Any]]]
Draw = Callable[[int, int, int], int]

ROW_GROUP = 122_880
"""Rows that are loaded together, or a multiple of it. DuckDB takes a full row group as it is and copies the
rows of a part of one: of 1,000 columns a fifth of the processor time. And row groups of a file that is
written of the rows as they lie do not depend on batches."""

_DTYPES = {"UTINYINT": np.uint8, "USMALLINT": np.uint16, "UINTEGER": np.uint32, "UBIGINT": np.uint64}


def make_room(engine: Engine, domain: Domain, table: Fragment, beside: Sequence[str] = ()) -> None:
    """Create a temporary table of codes with the columns row (from 0), a0, a1, ..., then BIGINT ones of the
    names ``beside``."""
    engine.execute(room_statement(domain, table, beside), step="making room for sampled rows")


def room_statement(domain: Domain, table: Fragment, beside: Sequence[str] = ()) -> Fragment:
    """The statement that creates the temporary table."""
    types = [DUCKDB.code_type(attribute.size) for attribute in domain.attributes]
    columns = [Fragment(f"a{position} {name}") for position, name in enumerate(types)]
    columns += [Fragment(f"{name} BIGINT") for name in beside]
    return render("write/stage", table=table, columns=columns)


def append(engine: Engine, domain: Domain, batches: Batches, table: Fragment, first: int) -> int:
    """Load codes, numbered from ``first`` on; how many.

    Args:
        engine: the session that writes; it cannot reach the source.
        domain: attributes in the order of the batches' columns.
        batches: arrays of shape (n, attributes) of codes; a row group of them is held in memory.
        table: quoted name of the table.
        first: the number of the first row.

    Raises:
        InternalError: a batch has another number of columns, or a code outside the domain.
        EngineFailure: the database failed.
    """
    rows = 0
    for held in _row_groups(batches, [attribute.size for attribute in domain.attributes]):
        start, count = first + rows, sum(map(len, held))
        load_codes(engine, domain, held, table, np.arange(start, start + count, dtype=np.int64))
        rows += count
    return rows


def load_codes(
    engine: Engine,
    domain: Domain,
    held: Sequence[NDArray[np.integer[Any]]],
    table: Fragment,
    numbers: NDArray[np.int64],
    beside: Mapping[str, NDArray[np.int64]] | None = None,
) -> None:
    """Load checked batches of codes as the rows of these numbers (n,); ``beside``: their further columns."""
    loaded: dict[str, NDArray[Any]] = {"row": numbers}
    for position, attribute in enumerate(domain.attributes):
        column = np.concatenate([batch[:, position] for batch in held])
        loaded[f"a{position}"] = column.astype(_DTYPES[DUCKDB.code_type(attribute.size)], copy=False)
    engine.load(table, {**loaded, **(beside or {})}, step="loading sampled rows")


def _row_groups(batches: Batches, sizes: list[int]) -> Iterator[list[NDArray[np.integer[Any]]]]:
    """Checked batches, cut so that together they are whole row groups; only the last ones are other rows."""
    held, rows = list[NDArray[np.integer[Any]]](), 0
    for batch in batches:
        check_codes(batch, sizes)
        rows += len(batch)
        rest = rows % ROW_GROUP
        if rows < ROW_GROUP:
            held.append(batch)
            continue
        cut = len(batch) - rest
        yield [*held, batch[:cut]]
        held, rows = [batch[cut:]], rest
    if rows:
        yield held


def stage_rows(
    engine: Engine,
    shape: Shape,
    draw: Draw,
    rows: int,
    table: Fragment,
    seed: int,
    *,
    in_parts: bool = False,
) -> int:
    """Load ``rows`` sampled rows of which none meets a condition of ``shape.never``.

    Rows that do are changed as little as possible (``write.redrawing``). Those that are impossible all the
    same are deleted, and others are sampled in their place, until enough are left (``sample.rounds``). If too
    few are left, a warning says so.

    Args:
        engine: the session that writes.
        shape: complete, with checked expressions.
        draw: ``draw(rows, seed, first)`` adds rows to the table, numbered from ``first`` on, and says how
            many (``append``, or ``sample.sql_sampler.append_network``).
        rows: wanted.
        table: quoted name of the table to create, as ``make_room``.
        seed: of the first sample and, together with the round, of the others; of positions in bins.
        in_parts: conditions are met part by part; for rows that are independent of each other.

    Returns:
        The number of rows staged.
    """
    make_room(engine, shape.domain, table)
    if not shape.never:
        return draw(rows, seed, 0)
    kept = 0
    for first, wanted in parts(rows, gaps=True) if in_parts else [(0, rows)]:
        kept += _stage_possible(engine, shape, draw, wanted, table, seed, first)
    warn_of_few_rows(kept, rows)
    return kept


def _stage_possible(
    engine: Engine, shape: Shape, draw: Draw, rows: int, table: Fragment, seed: int, first: int
) -> int:
    def reject(number: int) -> int:
        for statement, moved in possible_statements(shape, table, number, seed):
            if moved and not staged_rows(engine, table, number + moved):
                break
            engine.execute(statement, step="changing rows that cannot be")
        return staged_rows(engine, table, first)

    def trim(most: int) -> None:
        statement = render("write/trim", staged=table, first=first, rows=most)
        engine.execute(statement, step="trimming sampled rows")

    return rows_left(rows, seed, first, draw, reject, trim)


def warn_of_few_rows(kept: int, rows: int) -> None:
    """Warn if conditions leave fewer rows than are wanted."""
    if kept < rows:
        warnings.warn(
            f"The conditions of never: and CHECK exclude too many rows: only {kept} of {rows} rows were "
            "written.",
            stacklevel=2,
        )


def staged_rows(engine: Engine, table: Fragment, first: int = 0) -> int:
    """How many rows are staged, from row number ``first`` on."""
    sql = render("write/count_staged", staged=table, first=first)
    return int(engine.fetch(sql, step="counting sampled rows")["staged_rows"][0])


def rows_in_place(engine: Engine, table: Fragment) -> tuple[int, bool]:
    """How many rows are staged, and whether a query gives them in the order of their numbers without sorting.

    That is measured, and not concluded from how rows were staged: each lies where its number says.
    """
    found = engine.fetch(render("write/in_place", staged=table), step="counting sampled rows")
    rows = int(found["staged_rows"][0])
    return rows, bool(found["kept"][0]) and int(found["in_place"][0]) == rows


def check_codes(batch: NDArray[np.integer[Any]], sizes: list[int]) -> None:
    """A narrowing cast would wrap a wrong code silently into another valid one."""
    if batch.ndim != 2 or batch.shape[1] != len(sizes):
        raise InternalError(f"a batch of codes has shape {batch.shape}, expected (rows, {len(sizes)})")
    if batch.size and not (batch.min() >= 0 and np.all(batch.max(axis=0) < np.array(sizes))):
        raise InternalError("a sampled code lies outside its attribute's domain")
