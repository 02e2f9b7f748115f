"""Independent rows of a network, drawn by SQL inside the database into a staged table of codes.

For numbers of rows whose sampling error is small anyway: nothing passes through Python, and every row is
drawn by itself. The rows depend on the seed and their numbers only, not on the number of threads, the
machine or the version of DuckDB. Memory is bounded by the size of a chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.network import Network
from dpsyn_sql.interfaces import Engine
from dpsyn_sql.sample.sql_tables import share_table
from dpsyn_sql.sample.sql_text import Script, Tables, script_of
from dpsyn_sql.sqltext.fragments import Fragment, qualified
from dpsyn_sql.sqltext.render import render

CHUNK_ROWS = 2**22
"""Rows of one statement: progress is told in between."""

_STEP = "sampling rows"


def append_network(
    engine: Engine,
    network: Network,
    rows: int,
    seed: int,
    table: Fragment,
    *,
    first: int = 0,
    advance: Callable[[int], None] = lambda rows: None,
) -> int:
    """Draw independent rows of a network into a staged table (``write.staging``).

    Args:
        engine: the session that writes; it cannot reach the source.
        network: what is drawn from.
        rows: how many; none if not positive.
        seed: 0 to 2^64 - 1; public. Another one than that of rows before.
        table: quoted name of the table, with the columns row, a0, a1, ...
        first: number of the first row.
        advance: is told the number of rows after each chunk.

    Returns:
        The number of rows staged.

    Raises:
        EngineFailure: the database failed.
        InternalError: a row was lost, which would mean a fault of ours.
    """
    if rows <= 0:
        return 0
    model, slots = (qualified("temp", "main", f"dpsyn_{uuid4().hex}") for _ in range(2))
    script = script_of(network, Fragment(str(seed)))
    try:
        load_distributions(engine, network, model)
        _make_slots(engine, script, Tables(model), slots)
        for start in range(first, first + rows, CHUNK_ROWS):
            count = min(first + rows - start, CHUNK_ROWS)
            query = script.iid(Fragment(str(count)), Tables(model, slots=slots), start)
            engine.execute(render("sample/insert", staged=table, query=query), step=_STEP)
            advance(count)
        _check(engine, table, len(network.codes), first, rows)
    finally:
        for made in (model, slots):
            engine.execute(render("sample/drop", table=made), step="tidying up after sampling")
    return rows


def load_distributions(engine: Engine, network: Network, table: Fragment) -> None:
    """Make a temporary table of the distributions of a network."""
    engine.execute(render("sample/table", table=table), step=_STEP)
    columns = share_table(network)
    if columns:
        engine.load(table, columns, step="loading the model")


def _make_slots(engine: Engine, script: Script, tables: Tables, slots: Fragment) -> None:
    """Make a temporary table of the slots of all nodes, once for all chunks."""
    engine.execute(render("sample/slot_table", table=slots), step="loading the model")
    for query in script.slots(tables):
        engine.execute(render("sample/insert", staged=slots, query=query), step="loading the model")


def _check(engine: Engine, table: Fragment, attributes: int, first: int, rows: int) -> None:
    """Every row came through every step, and has every code."""
    columns = [Fragment(f"a{position}") for position in range(attributes)]
    found = engine.fetch(render("sample/check", table=table, first=first, columns=columns), step=_STEP)
    if (int(found["complete"][0]), int(found["found"][0])) != (rows, rows):
        raise InternalError("sampling in the database lost rows or codes")
