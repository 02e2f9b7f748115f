"""load(): a stored release, without its source, ledger or a charge."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dpsyn_sql.common.folders import locked_folder
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.spark.outputs import SparkOutput, read_rows
from dpsyn_sql.engines.spark.target import spark_output
from dpsyn_sql.engines.stored_releases import Stored, StoredSession, drawing, opened_releases
from dpsyn_sql.errors import InputError, hides_own_frames, said
from dpsyn_sql.report.result import Release, ReleasedTable, check_draw
from dpsyn_sql.report.stored import read_parts
from dpsyn_sql.report.stored_facts import facts_of
from dpsyn_sql.rows.write.persist import readable_literal, statement_of
from dpsyn_sql.source.files import ending_of
from dpsyn_sql.source.frames import is_spark
from dpsyn_sql.source.names import absolute_path, shorten

_WORK = ".dpsyn-work-"


@hides_own_frames
def load(con: Connection, name: str | None = None) -> Release:
    """Load a stored release: marginals, certificate, noisy answers and more rows.

    It reads what ``release()`` stored in the schema ``dpsyn`` beside the synthetic
    tables. All of it is public. It writes nothing, needs neither source nor ledger, and charges nothing. It
    reads the model into memory: at most about four million cells of pairs, and the cliques.
    Give a database that somebody else made as a path: ``sample()`` runs one of its macros, which on a
    connection can read what the connection can.

    Args:
        con: a DuckDB connection (its current database comes first, then the attached ones), the path of a
            DuckDB file, the path of a file or folder that was written, or of the ``.dpsyn.duckdb`` beside it.
            Paths are opened read-only. Or a Spark session.
        name: of the release, as ``dpsyn_releases()`` lists it, in any letter case; None if there is only one.
            Of several tables ``"shop"``, or ``"shop.orders"`` for one of them.
            With a Spark session the table or folder that was written: ``load(spark, "db.trips_synthetic")``.

    Returns:
        Of one table or of several. Its ``marginal()`` gives the same answers as after the release
        (``estimate`` to seven digits, everything else exactly). ``into`` is the written file, by the path of
        the database, otherwise the name of the release. ``replayed`` is true, because nothing is charged;
        ``notes`` is empty.

    Raises:
        InputError: there is no such release (the message lists all releases), or its stored form
            has an older format, was changed or is damaged.
    """
    if is_spark(con):
        return _load_spark(con, name)
    if name is not None and not isinstance(name, str):
        raise InputError(f"name={said(name)}: give the name of a release, or None")
    with opened_releases(con) as session:
        tables = session.find_tables(name)
        if tables:
            return Release.of({name: _table(con, session, stored) for name, stored in tables.items()})
        stored = session.find(name)
        table = _table(con, session, stored)
    alone = stored.name if stored.tied is None else stored.tied.table
    return Release({alone: table}, table.table, table.facts, replayed=True, notes=())


def _load_spark(con: Any, name: object) -> Release:
    if not isinstance(name, str | os.PathLike):
        raise InputError(
            f"name={said(name)}: give the table or folder that release() wrote: load(spark, 'db.table')"
        )
    output = spark_output(con, name)
    with opened_releases(output) as session:
        stored = session.find(None)
        table = _table(output, session, stored, partial(read_rows, output))
    return Release.of({stored.name: replace(table, table=output.name)})


def _table(
    con: Connection | SparkOutput,
    session: StoredSession,
    stored: Stored,
    read: Callable[[str], Any] | None = None,
) -> ReleasedTable:
    """``read``: gives its rows; None: nobody knows where they are now."""
    parts = read_parts(stored.total, stored.certificate, session.tables(stored))
    return ReleasedTable(
        table=stored.name if session.output is None else os.fspath(session.output),
        facts=parts.facts,
        model=parts.model,
        measurements=parts.measurements,
        draw=drawing(con, stored.release_id, stored.name),
        read=_unread if read is None else read,
        variances=parts.variances,
    )


def _unread(kind: str) -> Any:
    """Refuse: the stored parts do not say where the synthetic rows are now."""
    raise InputError(
        f"to_df({said(kind)}): a release that was loaded does not know its rows. Read the table or file "
        "itself, or draw new rows with sample()."
    )


def write_sample(
    source: str | os.PathLike[str],
    name: str,
    into: str | os.PathLike[str],
    rows: int,
    seed: int | None = None,
) -> int:
    """Draw rows of a stored release into a new file: those of ``load(source, name).sample(rows, seed)``.

    The database writes them, so that memory is no limit. It charges nothing.

    Args:
        source: the path of a DuckDB file, of a file that ``release()`` wrote, or of the one beside it.
        name: of the release.
        into: a path that ends in .parquet, .csv, .csv.gz or .json (an array of objects).
        rows: how many to draw.
        seed: None: 1, as in SQL.

    Returns:
        How many rows were written: fewer than ``rows`` if the owner's conditions exclude some.

    Raises:
        InputError: there is no such release, SQL cannot draw its rows, or ``into`` exists or cannot be
            written.
        EngineFailure: there was not enough room.
    """
    check_draw(rows, seed)
    path = absolute_path(into)
    ending = ".json" if path.suffix.lower() == ".json" else ending_of(path.name)
    shown = repr(shorten(os.fspath(into)))
    if ending is None:
        raise InputError(f"into={shown}: give a path that ends in .parquet, .csv, .csv.gz or .json")
    if os.path.lexists(path):
        raise InputError(f"{shown} exists already: choose another into=, or remove it")
    work = None
    with contextlib.suppress(OSError):
        work = locked_folder(path.parent, _WORK)
    if work is None:
        raise InputError(f"The folder of {shown} does not exist or cannot be written: choose another into=")
    with work as folder:
        draft = folder / f"rows{ending}"
        with opened_releases(source, draft) as session:
            one = session.find(name)
            statement = readable_literal(statement_of(facts_of(one.certificate), one.name))
            drawn = session.write(one, rows, seed, draft, statement)
        draft.replace(path)
    return drawn
