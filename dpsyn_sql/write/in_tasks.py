"""The statements that make synthetic rows part by part, in tasks on other machines: drawn and decoded.

What differs between parts is a variable of the task's session. Names of tables are those of the task.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.decode.output import Units, output_statement, reject_statement, units_of
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.fit.network import Network
from dpsyn_sql.folders import locked_folder
from dpsyn_sql.interfaces import Engine, PartRows, PartStatements, RowPublisher
from dpsyn_sql.sample.sql_sampler import check_statement
from dpsyn_sql.sample.sql_text import Script, Tables
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render
from dpsyn_sql.write.comments import column_comments, statement_of
from dpsyn_sql.write.persist import StoredRelease, persist_beside
from dpsyn_sql.write.publish import check_capacity
from dpsyn_sql.write.staging import room_statement

SLOTS = Fragment("dpsyn_slots")
"""The alias tables of the network (``sample.sql_sampler.load_slots``)."""

_STAGED = Fragment("dpsyn_staged")
_MODELS = "dpsyn-model-"


def _variable(name: str, kind: str) -> Fragment:
    return Fragment(f"CAST(getvariable('dpsyn_{name}') AS {kind})")


_FIRST, _ROWS, _SEED = (
    _variable("first", "BIGINT"),
    _variable("rows", "BIGINT"),
    _variable("seed", "UBIGINT"),
)


def part_rows(
    shape: Shape,
    rows: int,
    seed: int,
    network: Network | None = None,
    slots: Fragment | None = None,
    staged: Fragment | None = None,
) -> PartRows:
    """Rows that tasks draw from a network (with its ``slots``), or that are ``staged`` already.

    Args:
        shape: complete, with checked expressions.
        rows: wanted; of staged ones how many they are.
        seed: public.
        network: what is drawn from.
        slots: table of its alias tables (``sample.sql_sampler.load_slots``).
        staged: table of codes, which no condition excludes.
    """
    gaps = network is not None and bool(shape.never)
    return PartRows(_statements(shape, network, seed), rows, seed, gaps, slots, staged)


def _statements(shape: Shape, network: Network | None, seed: int) -> PartStatements:
    draw = reject = Fragment("")
    if network is not None:
        query = Script(network, _SEED).iid(_ROWS, Tables(SLOTS, slots=SLOTS), _FIRST)
        draw = render("sample/insert", staged=_STAGED, query=query)
        if shape.never:
            reject = reject_statement(shape, _STAGED, _FIRST, seed)
    return PartStatements(
        room=room_statement(shape.domain, _STAGED),
        staged=_STAGED,
        draw=draw,
        check=check_statement(_STAGED, len(shape.domain.attributes), _FIRST),
        reject=reject,
        count=render("write/count_staged", staged=_STAGED, first=_FIRST),
        slots=SLOTS,
        trim=render("write/trim", staged=_STAGED, first=_FIRST, rows=_ROWS),
    )


def part_query(shape: Shape, rows: int, units: Units, seed: int) -> Fragment:
    """The rows of a part as values (``decode.output``); ``before`` is the number of rows of earlier parts."""
    return output_statement(shape, _STAGED, rows, units, seed, _variable("before", "BIGINT"))


def publish_in_tasks(
    engine: Engine,
    publisher: RowPublisher,
    shape: Shape,
    rows: PartRows,
    units: NDArray[np.int64] | None,
    kept: StoredRelease,
) -> None:
    """Let tasks decode and write rows, and keep what stays with them beside; arguments as of
    ``write.publish.publish``.

    Raises:
        PublishError: the output has appeared, is not what this release wrote, or a key's type cannot hold so
            many values.
        EngineFailure: the database or the tasks failed.
    """
    shared = units_of(units, rows.kept)
    check_capacity(shape, rows.kept, shared.count)
    query = part_query(shape, rows.kept, shared, rows.seed)
    words = statement_of(kept.facts, kept.name).replace("\x00", "\\0")
    with locked_folder(Path(tempfile.gettempdir()), _MODELS) as folder:
        model = folder / "model.duckdb"
        persist_beside(engine, model, kept)
        publisher.publish(engine, rows, query, shape, column_comments(shape), words, kept.release_id, model)
