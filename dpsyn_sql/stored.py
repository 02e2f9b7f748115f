"""load(): a stored release, without its source, ledger or a charge."""

from __future__ import annotations

import os

from dpsyn_sql.engines.released import drawing, opened_releases
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.report.result import Release
from dpsyn_sql.report.stored import read_parts


def load(con: Connection, name: str | None = None) -> Release:
    """Load a stored release: marginals, certificate, noisy answers and more rows.

    It reads what ``release()`` stored in the schema ``dpsyn`` beside the synthetic table. All of it is
    public. It writes nothing, needs neither source nor ledger, and charges nothing. It reads the model into
    memory: at most about four million cells of pairs, and the cliques.
    Give a database that somebody else made as a path: ``sample()`` runs one of its macros, which on a
    connection can read what the connection can.

    Args:
        con: a DuckDB connection (its current database comes first, then the attached ones), the path of a
            DuckDB file, the path of a file that ``release()`` wrote, or of the ``.dpsyn.duckdb`` beside it.
            Paths are opened read-only.
        name: of the release, as ``dpsyn_releases()`` lists it, in any letter case; None if there is only one.

    Returns:
        A ``Release``. Its ``marginal()`` gives the same answers as after the release (``estimate`` to seven
        digits, everything else exactly). ``table`` is the written file, by the path of the database,
        otherwise the name of the release. ``replayed`` is true, because nothing is charged; ``notes``
        is empty.

    Raises:
        InputError: there is no such release (the message lists all releases), or its stored form
            has an older format, was changed or is damaged.
    """
    if name is not None and not isinstance(name, str):
        raise InputError(f"name={said(name)}: give the name of a release, or None")
    with opened_releases(con) as session:
        one = session.find(name)
        parts = read_parts(one.total, one.certificate, session.tables(one))
        output = session.output
    guarantee = parts.facts["guarantee"]
    return Release(
        table=one.name if output is None else os.fspath(output),
        rows=parts.rows,
        epsilon=float(guarantee["epsilon"]),
        delta=float(guarantee["delta"]),
        rho=float(guarantee["rho"]),
        id=one.release_id,
        model=parts.model,
        measurements=parts.measurements,
        facts=parts.facts,
        replayed=True,
        notes=(),
        draw=drawing(con, one.release_id, one.name),
    )
