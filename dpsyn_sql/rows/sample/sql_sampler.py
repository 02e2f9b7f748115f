"""Independent rows of a network, drawn by SQL inside the database into a staged table of codes.

For numbers of rows whose sampling error is small anyway: nothing passes through Python, and every row is
drawn by itself. The rows depend on the seed and their numbers only, not on the number of threads, the machine
or the version of DuckDB. Memory is bounded by the size of a chunk.

``independent_rows`` says who draws the rows of a model: its own sampler, or SQL.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from uuid import uuid4

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.model import Model, families_in
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.quotas import BATCH_ROWS
from dpsyn_sql.rows.sample.sql_text import MOST_NODES, Script, Tables, share_table
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, qualified
from dpsyn_sql.sqltext.render import render

CHUNK_ROWS = 2**22
"""Rows of one statement: they are put in order in memory, and progress is told in between."""

_STEP = "sampling rows"
_LOADING = "loading the model"
_TIDYING = "tidying up after sampling"


@contextlib.contextmanager
def alias_lists(engine: Engine, network: Network) -> Iterator[Fragment]:
    """A temporary table of one row, the alias tables of all nodes as lists; made once for all statements."""
    slots, lists = _temporary(), _temporary()
    try:
        load_slots(engine, network, slots)
        steps = Script(network, Fragment("0")).steps(Tables(slots, slots=slots))
        engine.execute(render("sample/list_table", table=lists, steps=steps), step=_LOADING)
    finally:
        engine.execute(render("sample/drop", table=slots), step=_TIDYING)
    try:
        yield lists
    finally:
        engine.execute(render("sample/drop", table=lists), step=_TIDYING)


def append_network(
    engine: Engine,
    network: Network,
    lists: Fragment,
    rows: int,
    seed: int,
    table: Fragment,
    *,
    first: int = 0,
    advance: Callable[[int], None] = lambda rows: None,
) -> int:
    """Draw independent rows of a network into a staged table (``write.staging``), in their order.

    Args:
        engine: the session that writes; it cannot reach the source.
        network: what is drawn from.
        lists: its alias tables (``alias_lists``).
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
    script = Script(network, Fragment(str(seed)))
    for start in range(first, first + rows, CHUNK_ROWS):
        count = min(first + rows - start, CHUNK_ROWS)
        query = script.iid(Fragment(str(count)), Tables(lists, lists=lists), start, ordered=1)
        engine.execute(render("sample/insert", staged=table, query=query), step=_STEP)
        advance(count)
    _check(engine, table, len(network.codes), first, rows)
    return rows


def load_slots(engine: Engine, network: Network, table: Fragment) -> None:
    """Make a temporary table of the slots of all nodes of a network, once for all chunks."""
    model = _temporary()
    try:
        load_distributions(engine, network, model)
        engine.execute(render("sample/slot_table", table=table), step=_LOADING)
        for query in Script(network, Fragment("0")).slots(Tables(model)):
            engine.execute(render("sample/insert", staged=table, query=query), step=_LOADING)
    finally:
        engine.execute(render("sample/drop", table=model), step=_TIDYING)


def load_distributions(engine: Engine, network: Network, table: Fragment) -> None:
    """Make a temporary table of the distributions of a network."""
    engine.execute(render("sample/table", table=table), step=_STEP)
    columns = share_table(network)
    if columns:
        engine.load(table, columns, step=_LOADING)


def _temporary() -> Fragment:
    return qualified("temp", "main", f"dpsyn_{uuid4().hex}")


def check_statement(table: Fragment, attributes: int, first: int | Fragment) -> Fragment:
    """The query that counts rows (``found``) and those with every code (``complete``), from a number on."""
    columns = [Fragment(f"a{position}") for position in range(attributes)]
    return render("sample/check", table=table, first=first, columns=columns)


def _check(engine: Engine, table: Fragment, attributes: int, first: int, rows: int) -> None:
    """Every row came through every step, and has every code."""
    found = engine.fetch(check_statement(table, attributes, first), step=_STEP)
    if (int(found["complete"][0]), int(found["found"][0])) != (rows, rows):
        raise InternalError("sampling in the database lost rows or codes")


MOST_LOW_VARIANCE_ROWS = 20_000_000
"""Up to this number rows are drawn with low variance. Above it the gain is small and the time is long."""

INDEPENDENTLY = "independently"
"""How SQL draws rows, in the words of certificates; ``Sampler.drawn`` has the words for other rows."""

_LOW_VARIANCE_PER_SECOND = 1e7
# Values, on two cores.


def independent_rows(model: Model, rows: int, deadline: Deadline = NO_DEADLINE) -> Network | None:
    """The network from which SQL draws so many rows, each independently. None if the sampler of the model
    draws them: few rows, a model that is not a network, one of too many variables, one whose counts are to be
    met (``exact``), or one of units."""
    seconds = rows * len(model.domain.attributes) / _LOW_VARIANCE_PER_SECOND
    # One batch takes no longer than to plan a query.
    if (
        rows <= BATCH_ROWS
        or getattr(model, "exact", False)
        or families_in(model) is not None
        or (rows <= MOST_LOW_VARIANCE_ROWS and seconds <= deadline.left)
    ):
        return None
    network = model.network()
    if network is None or len(network.nodes) > MOST_NODES:
        return None
    deadline.forbids(seconds, "rows were drawn independently")
    return network
