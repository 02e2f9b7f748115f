"""Rows of a network that SQL draws inside the database, and the table of conditional distributions, as whole
numbers, that it draws from.

Probabilities are whole numbers, so that every rank and every comparison in SQL is exact integer arithmetic:
the same rows on every machine, DuckDB version and number of threads. One table serves both ways to draw
(``sql_text.Script``): SQL makes the stretches of a cumulative distribution of it, and the slots of an alias
table.

Independent rows go into a staged table of codes, for numbers of rows whose sampling error is small anyway:
nothing passes through Python, and every row is drawn by itself. The rows depend on the seed and their numbers
only, not on the number of threads, the machine or the version of DuckDB. Memory is bounded by the size of a
chunk. ``independent_rows`` says who draws the rows of a model: its own sampler, or SQL.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import group_cumsum
from dpsyn_sql.fit.network import Model, Network, Node, columns_of, families_in, numbered, slot_bits_of
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.sql_text import MOST_NODES, UNIT, Script, Tables
from dpsyn_sql.rows.sample.systematic import BATCH_ROWS
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table
from dpsyn_sql.sqltext.render import render

Columns = dict[str, NDArray[Any]]

FEWEST = 2**8
"""Units that a slot of a configuration has at least, however seldom it occurs."""

_GOLDEN = (5**0.5 - 1) / 2


def shares(node: Node, sizes: tuple[int, ...]) -> Columns:
    """Columns parent, value, weight: of each configuration of the parents whole numbers in proportion to the
    probabilities of its values.

    Together they are as many as the configuration has units of 2^-32 of all rows, but at least ``FEWEST`` a
    slot: what seldom occurs takes few bits, and no joint probability is off by more than a unit. They are
    differences of rounded sums; what is added before rounding is spread evenly over the configurations, so
    that rounding favours no value. Those of 0 are left out.
    """
    columns, lines = columns_of(node), node.weights.size
    parent, value = (numbered(columns, scope, sizes, lines) for scope in (node.parents, node.variables))
    begins = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
    counts = np.diff(begins, append=parent.size)
    least = min(1.0, FEWEST * 2.0 ** slot_bits_of(node) / UNIT)
    units = np.clip(node.reach[begins], least, 1.0) * (UNIT - 1)
    phase = (0.5 + np.arange(begins.size) * _GOLDEN) % 1.0
    sums = group_cumsum(node.weights, begins)
    whole = np.repeat(sums[begins + counts - 1], counts)
    upto = (np.repeat(phase, counts) + sums / whole * np.repeat(units, counts)).astype(np.int64)
    weight = np.diff(upto, prepend=0)
    weight[begins] = upto[begins]
    kept = np.flatnonzero(weight > 0)
    return {"parent": parent[kept], "value": value[kept], "weight": weight[kept].astype(np.uint32)}


def share_table(network: Network) -> Columns:
    """Columns node and those of ``shares``, of all nodes."""
    parts = []
    for number, node in enumerate(network.nodes):
        columns = shares(node, network.sizes)
        parts.append({"node": np.full(len(columns["value"]), number, np.int32), **columns})
    names = list(parts[0]) if parts else []
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in names}  # never all twice


def variable_table(network: Network) -> Columns:
    """Columns node, place, parent, variable, size and attribute (-1: none): what the numbers in
    ``share_table`` stand for."""
    of_codes = {variable: attribute for attribute, variable in enumerate(network.codes)}
    for variable, bins in network.evidence.items():  # of an attribute of the same number, in working bins
        if not np.array_equal(bins, np.arange(bins.size)):
            of_codes.pop(variable, None)
    lines = [
        (number, place, place < len(node.parents), variable)
        for number, node in enumerate(network.nodes)
        for place, variable in enumerate((*node.parents, *node.variables))
    ]
    if not lines:
        return {}
    node, place, parent, variables = zip(*lines, strict=True)
    return {
        "node": np.array(node, np.int32),
        "place": np.array(place, np.int32),
        "parent": np.array(parent, np.bool_),
        "variable": np.array(variables, np.int32),
        "size": np.array([network.sizes[variable] for variable in variables], np.int64),
        "attribute": np.array([of_codes.get(variable, -1) for variable in variables], np.int32),
    }


CHUNK_ROWS = 2**22
"""Rows of one statement: they are put in order in memory, and progress is told in between."""

_STEP = "sampling rows"
_LOADING = "loading the model"
_TIDYING = "tidying up after sampling"

_DISTRIBUTIONS = [Fragment(f"{name} NOT NULL") for name in ("node INTEGER", "parent BIGINT", "value BIGINT")]
_DISTRIBUTIONS.append(Fragment("weight UINTEGER NOT NULL"))
# As dpsyn.shares without the release.

_SLOTS = [Fragment(f"{name} NOT NULL") for name in ("node INTEGER", "position BIGINT", "threshold BIGINT")]
_SLOTS += [Fragment("value BIGINT"), Fragment("alias BIGINT")]


@contextlib.contextmanager
def alias_lists(engine: Engine, network: Network) -> Iterator[Fragment]:
    """A temporary table of one row, the alias tables of all nodes as lists; made once for all statements."""
    slots, lists = temporary_table("dpsyn_slots"), temporary_table("dpsyn_lists")
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
    counted = engine.fetch(check_statement(table, len(network.codes), first), step=_STEP)
    if (int(counted["complete"][0]), int(counted["found"][0])) != (rows, rows):
        raise InternalError("sampling in the database lost rows or codes")
    return rows


def load_slots(engine: Engine, network: Network, table: Fragment) -> None:
    """Make a temporary table of the slots of all nodes of a network, once for all chunks."""
    model = temporary_table("dpsyn_model")
    try:
        load_distributions(engine, network, model)
        engine.execute(render("sample/room", table=table, columns=_SLOTS), step=_LOADING)
        for query in Script(network, Fragment("0")).slots(Tables(model)):
            engine.execute(render("sample/insert", staged=table, query=query), step=_LOADING)
    finally:
        engine.execute(render("sample/drop", table=model), step=_TIDYING)


def load_distributions(engine: Engine, network: Network, table: Fragment) -> None:
    """Make a temporary table of the distributions of a network."""
    engine.execute(render("sample/room", table=table, columns=_DISTRIBUTIONS), step=_STEP)
    columns = share_table(network)
    if columns:
        engine.load(table, columns, step=_LOADING)


def check_statement(table: Fragment, attributes: int, first: int | Fragment) -> Fragment:
    """The query that counts rows (``found``) and those with every code (``complete``), from a number on."""
    columns = [Fragment(f"a{position}") for position in range(attributes)]
    return render("sample/check", table=table, first=first, columns=columns)


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
