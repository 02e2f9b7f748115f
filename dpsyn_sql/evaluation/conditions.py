"""PRIVATE: how many rows break the owner's conditions."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pandas as pd

from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.errors import EngineFailure, InputError, said
from dpsyn_sql.evaluation.session import Session
from dpsyn_sql.source.expression_check import check_expression
from dpsyn_sql.source.names import shorten
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

_STEP = "counting rows that break conditions"


def checked_conditions(session: Session, never: Sequence[str]) -> list[Fragment]:
    """The owner's conditions as SQL that reads one row and nothing else.

    Raises:
        InputError: one is no such condition.
    """
    if isinstance(never, str) or not isinstance(never, Sequence):
        raise InputError(
            f"never={said(never)}: give a list of SQL conditions, such as ['age < 16 AND married']"
        )
    catalog = DuckDBCatalog(session.engine)
    names = [column.name for column in session.columns]
    found = []
    for text in never:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"never= has {said(text)}: give SQL conditions as text")
        checked = check_expression(text, names, catalog)
        if checked.fault:
            raise InputError(f"never= has {shorten(repr(text))}: {checked.fault}")
        found.append(Fragment(f"TRY(CAST(({checked.sql}) AS BOOLEAN))"))
    return found


def broken_conditions(session: Session, never: Sequence[str]) -> pd.DataFrame:
    """Rows of each table that meet a condition which no row should meet.

    Columns: ``condition``, and of each table ``<table>_rows`` and ``<table>_share``. A row for which the
    condition is NULL or cannot be computed does not meet it.

    Raises:
        InputError: one is no condition of a single row.
        EngineFailure: the database failed.
    """
    conditions = checked_conditions(session, never)
    lines: list[dict[str, object]] = [{"condition": text} for text in never]
    for side, relation in session.tables.items():
        for line, condition in zip(lines, conditions, strict=True):
            rows: int | None = None
            with contextlib.suppress(EngineFailure):
                sql = render("evaluate/matching", relation=relation, conditions=[condition])
                rows = int(session.engine.fetch(sql, step=_STEP)["c0"][0])
            if rows is None:
                raise InputError(
                    f"never= has {shorten(repr(line['condition']))}, which the database does not accept: try "
                    "it in a query of your own."
                )
            line |= {f"{side}_rows": rows, f"{side}_share": rows / session.rows[side]}
    return pd.DataFrame(lines)
