"""The stored release that wrote the synthetic table: its public facts and its model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.relations import Given
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.stored_names import Stored
from dpsyn_sql.engines.stored_releases import StoredSession, opened_releases
from dpsyn_sql.errors import EngineFailure, InputError
from dpsyn_sql.report.stored_facts import facts_of
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.names import fold, listed, shorten, split_name
from dpsyn_sql.source.paths import absolute_path

_IDS = ("key", "unitid")
"""Roles of columns that get fresh values, which say nothing about the real ones."""


@contextlib.contextmanager
def stored_release(
    con: Connection, engine: DuckDBEngine, synthetic: Given
) -> Iterator[tuple[StoredSession, Stored]]:
    """The release that wrote a table: of a file from the model beside it, else from the database.

    Raises:
        InputError: there is none; the message says why.
    """
    path = _beside(synthetic)
    if path is not None:
        with opened_releases(path) as stored:
            yield stored, stored.find(None)
        return
    if con is None:
        raise InputError("there is no stored model beside the synthetic table (NAME.dpsyn.duckdb).")
    stored, table = StoredSession(engine, "the database"), os.fspath(synthetic)
    parts = split_name(table) or (table,)
    names = {fold(".".join(parts[place:])) for place in range(len(parts))}
    releases = stored.releases()
    found = [one for one in releases if fold(one.name) in names]
    if len(found) != 1:
        raise InputError(
            f"no stored release has the name of the synthetic table {shorten(repr(table))}; stored are "
            f"{listed(sorted(one.name for one in releases))}."
        )
    yield stored, found[0]


def _beside(synthetic: Given) -> Path | None:
    """The released file, if its model lies beside it."""
    text = os.fspath(synthetic)
    if ending_of(text) is None or "\x00" in text:
        return None
    path = absolute_path(text)
    return path if file_beside(path).is_file() else None


def identifiers(con: Connection, engine: DuckDBEngine, synthetic: Given) -> set[str] | None:
    """Folded names of the columns to which the release gave fresh ids; None if there is no stored release."""
    with (
        contextlib.suppress(InputError, EngineFailure),
        stored_release(con, engine, synthetic) as (_, one),
    ):
        roles = facts_of(one.certificate)["public_facts"]["roles"]
        return {fold(role["name"]) for role in roles if role["role"] in _IDS}
    return None
