"""PRIVATE: some rows of a table, drawn by SQL with a seed: memory is bounded whatever the table holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render

MOST_ROWS = 100_000
"""So many rows of a table are learnt from, judged, or clustered."""

PARTS = 5
"""One part of so many is held back where no holdout is given."""

_STEP = "drawing rows to evaluate"
_SLACK = 1.2


def drawn_sql(
    relation: Fragment,
    columns: Sequence[Fragment],
    rows: int,
    seed: int,
    held: bool | None = None,
    most: int = MOST_ROWS,
) -> Fragment:
    """A query of at most ``most`` rows with the columns c0, c1, ...; the same ones for a seed, wherever the
    table gives its rows in the same order.

    Args:
        relation: what stands after FROM.
        columns: expressions.
        rows: how many the relation has.
        seed: of the draw and of the parts.
        held: whether of the fifth of the rows that is held back, or of the other four; None: of all.
        most: how many rows are drawn.
    """
    expected = rows if held is None else rows / PARTS * (1 if held else PARTS - 1)
    share = min(1.0, (_SLACK * most + 100) / max(1.0, expected))
    return render(
        "evaluate/drawn",
        relation=relation,
        columns=[Fragment(f"{column} AS c{place}") for place, column in enumerate(columns)],
        names=[Fragment(f"c{place}") for place in range(len(columns))],
        seed=string_literal(f"lot|{seed}"),
        part=None if held is None else _part(seed, held=held),
        highest=min(2**64 - 1, int(share * 2**64)),
        limit=most,
    )


def _part(seed: int, *, held: bool) -> dict[str, Fragment | int]:
    inside = Fragment("= 0" if held else "<> 0")
    return {"seed": string_literal(f"part|{seed}"), "parts": PARTS, "inside": inside}


def read_as(column: ComparedColumn) -> Fragment:
    """A column as DOUBLE (times in seconds; NULL for NaN and infinities) or as text."""
    if column.kind == "numeric":
        value = f"CAST({column.sql} AS DOUBLE)"
        return Fragment(f"CASE WHEN isfinite({value}) THEN {value} END")
    if column.kind == "temporal":
        return Fragment(f"TRY(CAST(epoch({column.sql}) AS DOUBLE))")  # there is no number for infinity
    return Fragment(f"CAST({column.sql} AS VARCHAR)")


def is_number(column: ComparedColumn) -> bool:
    """Whether it is read as DOUBLE."""
    return column.kind in ("numeric", "temporal")


def drawn(
    session: Session,
    table: Literal["real", "synthetic", "holdout"],
    columns: Sequence[ComparedColumn],
    seed: int,
    held: bool | None = None,
    most: int = MOST_ROWS,
) -> pd.DataFrame:
    """Rows of a table in memory: float64 (NaN for NULL) or object (text, None for NULL), by column name."""
    read = [read_as(column) for column in columns]
    sql = drawn_sql(session.tables[table], read, session.rows[table], seed, held, most)
    found = session.engine.fetch(sql, step=_STEP)
    return pd.DataFrame(
        {column.name: _values(found[f"c{place}"], column) for place, column in enumerate(columns)}
    )


def _values(values: Any, column: ComparedColumn) -> Any:
    masked = np.ma.getmaskarray(values)
    if is_number(column):
        plain = np.asarray(np.ma.getdata(values), np.float64)
        return np.where(masked, np.nan, plain)
    plain = np.where(masked, np.array(None, object), np.asarray(np.ma.getdata(values), object))
    return pd.Series(plain, dtype=object)
