"""Sampling inside the database: a network's rows drawn by SQL into a staged table of codes.

``low_variance`` draws chunk by chunk, each variable for all rows of a chunk at once: the rows of one parent
configuration in a random order get the values whose stretches of the cumulative distribution their ranks
fall into (systematic sampling). Every conditional count is within one of its expectation, which removes
the sampling error that otherwise is as large as the noise of privacy. ``iid`` draws rows independently, by
alias tables: several times as fast, for numbers of rows whose sampling error is small anyway.

Memory is bounded by the size of a chunk. The rows depend on the seed, the number of rows and the mode only,
not on the number of threads, the machine or the version of DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal
from uuid import uuid4

from dpsyn_sql.domain.encoding import code_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.interfaces import Engine
from dpsyn_sql.sample.sql_network import Network
from dpsyn_sql.sample.sql_tables import alias_table, cumulative_table
from dpsyn_sql.sample.sql_text import (
    CHUNK_ROWS,
    MOST_NODES,
    Script,
    Tables,
    chunk_statements,
    iid_query,
    script_of,
)
from dpsyn_sql.sqltext.fragments import Fragment, qualified
from dpsyn_sql.sqltext.render import render

Mode = Literal["low_variance", "iid"]

MOST_LOW_VARIANCE_ROWS = 20_000_000
"""Up to here rows are drawn with low variance; above, what it removes is small and the time is not."""

_STEP = "sampling rows"
_CUMULATIVE = ("node", "parent", "value", "low", "high")
_ALIASES = ("node", "parent", "slot", "cut", "value", "alias")


def mode_of(rows: int, network: Network) -> Mode:
    """How so many rows are drawn, unless somebody says otherwise. Rows of very many variables are not
    drawn by one query, which independent rows are."""
    few = rows <= MOST_LOW_VARIANCE_ROWS or len(network.nodes) > MOST_NODES
    return "low_variance" if few else "iid"


def stage_network(
    engine: Engine,
    network: Network,
    rows: int,
    seed: int,
    table: Fragment,
    *,
    mode: Mode | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> int:
    """Draw rows of a network into a new temporary table with the columns row (from 0), a0, a1, ...

    Args:
        engine: the session that writes; it cannot reach the source.
        network: what is drawn from.
        rows: how many; none if not positive.
        seed: 0 to 2^64 - 1; public.
        table: quoted name of the table to create.
        mode: default: by the number of rows.
        advance: is told the number of rows after each chunk.

    Returns:
        The number of rows staged.

    Raises:
        EngineFailure: the database failed.
        InternalError: a row was lost, which would mean a fault of ours.
    """
    types = [code_type(network.sizes[variable]) for variable in network.codes]
    columns = [Fragment(f"a{position} {name}") for position, name in enumerate(types)]
    engine.execute(render("write/stage", table=table, columns=columns), step="making room for sampled rows")
    return append_network(engine, network, rows, seed, table, mode=mode, advance=advance)


def append_network(
    engine: Engine,
    network: Network,
    rows: int,
    seed: int,
    table: Fragment,
    *,
    first: int = 0,
    mode: Mode | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> int:
    """Draw more rows into a staged table, numbered from ``first`` on; otherwise as ``stage_network``.

    Another seed than that of the rows before belongs to it, else the random bits of a number repeat.
    """
    if rows <= 0:
        return 0
    kind = mode or mode_of(rows, network)
    model, *scratch = (qualified("temp", "main", f"dpsyn_{uuid4().hex}") for _ in range(4))
    script = script_of(network, Fragment(str(seed)))
    try:
        load_distributions(engine, network, model, kind)
        for start in range(first, first + rows, CHUNK_ROWS):
            stop = min(first + rows, start + CHUNK_ROWS)
            for statement in _chunk(script, Tables(model), table, scratch, kind, start, stop):
                engine.execute(statement, step=_STEP)
            advance(stop - start)
        _check(engine, table, len(network.codes), first, rows)
    finally:
        for name in (model, *scratch):
            engine.execute(render("sample/drop", table=name), step="tidying up after sampling")
    return rows


def load_distributions(engine: Engine, network: Network, table: Fragment, mode: Mode) -> None:
    """Make a temporary table of the distributions that ``mode`` draws from."""
    names = _ALIASES if mode == "iid" else _CUMULATIVE
    engine.execute(
        render("sample/table", table=table, columns=[Fragment(name) for name in names]), step=_STEP
    )
    columns = (alias_table if mode == "iid" else cumulative_table)(network)
    if columns:
        engine.load(table, columns, step="loading the model")


def _chunk(
    script: Script,
    tables: Tables,
    staged: Fragment,
    scratch: Sequence[Fragment],
    mode: Mode,
    start: int,
    stop: int,
) -> Iterator[Fragment]:
    """The statements that draw the rows ``start`` to ``stop``."""
    if mode == "iid":
        query = iid_query(script, Fragment(str(start)), Fragment(str(stop)), tables)
        yield render("sample/insert", staged=staged, query=query)
    else:
        yield from chunk_statements(script, tables, staged, scratch, start, stop)


def _check(engine: Engine, table: Fragment, attributes: int, first: int, rows: int) -> None:
    """Every row came through every step, and has every code."""
    columns = [Fragment(f"a{position}") for position in range(attributes)]
    found = engine.fetch(render("sample/check", table=table, first=first, columns=columns), step=_STEP)
    if (int(found["complete"][0]), int(found["found"][0])) != (rows, rows):
        raise InternalError("sampling in the database lost rows or codes")
