"""Codes become a table or a file, all of it or nothing (public side of the door).

``publish`` decodes staged codes (see ``staging``) in SQL and writes them (see ``outputs``).
``publish_in_tasks`` lets tasks on other machines draw and decode rows part by part.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.common.folders import locked_folder
from dpsyn_sql.domain.shape import Key, Shape, UnitId
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.fit.network import Network
from dpsyn_sql.rows.decode.output import (
    Units,
    beside_codes,
    capacity,
    output_statement,
    units_of,
)
from dpsyn_sql.rows.sample.sql_sampler import check_statement
from dpsyn_sql.rows.sample.sql_text import Script, Tables
from dpsyn_sql.rows.write.outputs import NewFile, NewTable, write_files, write_tables
from dpsyn_sql.rows.write.parts import PartRows, PartStatements, RowPublisher
from dpsyn_sql.rows.write.persist import StoredRelease, persist_beside
from dpsyn_sql.rows.write.redrawing import possible_statements
from dpsyn_sql.rows.write.staging import room_statement, rows_in_place
from dpsyn_sql.rows.write.words import column_comments, comment_statements, readable_literal, statement_of
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import file_beside
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render


class Destination(Protocol):
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
    def database(self) -> str | None:
        """The attached database of the table; None for a file."""

    @property
    def replace(self) -> bool:
        """Whether an existing output may be overwritten."""

    @property
    def only_same(self) -> bool:
        """Whether an existing output is kept if it equals what would be written, and refused if not."""


def publish(
    engine: Engine,
    target: Destination,
    shape: Shape,
    staged: Fragment,
    seed: int,
    units: NDArray[np.int64] | None = None,
    kept: StoredRelease | None = None,
) -> None:
    """Write the staged rows as values; on any failure the target is as it was before.

    Args:
        engine: the session that holds the staged table and writes.
        target: a table or a file.
        shape: complete; its expressions were checked (``expressions.check_expressions``).
        staged: quoted name of the table of codes.
        seed: of positions inside bins, keys and unit ids; public.
        units: int64; entry i is the number of privacy units with i+1 rows (``sample.units``); together
            they have the staged rows. None: every row has a unit of its own.
        kept: what stays with the output: in its database, in the same transaction, or in a database file
            beside an output file. None: nothing.

    Raises:
        PublishError: the output has appeared since the check, is not what this release wrote, cannot be
            written, or a key's type cannot hold so many values.
        EngineFailure: the database failed otherwise.
    """
    rows, in_place = rows_in_place(engine, staged)
    # Rows of conditions and of units are staged in pieces of any size. Row groups of a file would follow the
    # pieces, which DuckDB puts together as time will have it.
    in_place = in_place and not shape.never and not shape.together
    shared = units_of(units, rows)
    check_capacity(shape, rows, shared.count)
    query = output_statement(shape, staged, rows, shared, seed, in_place=in_place)
    if target.kind == "table":
        _publish_table(engine, target, shape, query, kept)
    else:
        _publish_file(engine, target, query, kept)


def check_capacity(shape: Shape, rows: int, units: int) -> None:
    """Refuse types that cannot hold as many different values as keys or units are needed."""
    for role in shape.roles:
        if isinstance(role, Key | UnitId):
            needed, what = (rows, "rows") if isinstance(role, Key) else (units, "units")
            most = capacity(role.type)
            if most is not None and needed > most:
                raise PublishError(
                    f"Column {role.name!r} needs a fresh value for each of {needed} {what}, but its type has "
                    f"only {most} values. Nothing was written. The same call with rows={most} or less costs "
                    "nothing more."
                )


def _publish_table(
    engine: Engine, target: Destination, shape: Shape, query: Fragment, kept: StoredRelease | None
) -> None:
    if target.sql is None or target.database is None:
        raise InternalError("a table target has no name")
    comments = () if kept is None else tuple(comment_statements(target.sql, shape, kept))
    table = NewTable(target.sql, query, shape.not_null, comments, target.replace, target.only_same)
    write_tables(engine, target.database, [table], [] if kept is None else [kept])


def _publish_file(engine: Engine, target: Destination, query: Fragment, kept: StoredRelease | None) -> None:
    if target.path is None or target.format not in ("parquet", "csv"):
        raise InternalError("a file target needs a path and one of the formats parquet and csv")
    statement = Fragment("") if kept is None else readable_literal(statement_of(kept.facts, kept.name))
    files = [NewFile(target.path, target.format, query, statement)]
    models, beside = [] if kept is None else [kept], file_beside(target.path)
    write_files(engine, files, models, beside, replace=target.replace, only_same=target.only_same)


# -- in tasks on other machines --------------------------------------------------------------------
# What differs between parts is a variable of the task's session. Names of tables are those of the task.

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
            reject = Fragment(";\n".join(one for one, _ in possible_statements(shape, _STAGED, _FIRST, seed)))
    return PartStatements(
        room=room_statement(shape.domain, _STAGED, beside_codes(shape)),
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
        persist_beside(engine, model, [kept])
        publisher.publish(engine, rows, query, shape, column_comments(shape), words, kept.release_id, model)
