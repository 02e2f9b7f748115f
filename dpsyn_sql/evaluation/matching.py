"""PRIVATE: rows that match a condition: of random range queries on one and two columns, or of the owner."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.errors import EngineFailure, InputError, said
from dpsyn_sql.evaluation.codes import Coded, Codes
from dpsyn_sql.evaluation.distances import Floats
from dpsyn_sql.evaluation.session import Session
from dpsyn_sql.source.expression_check import check_expression
from dpsyn_sql.source.names import shorten
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

QUERIES = 200
"""So many queries for each number of columns."""

_AT_ONCE = 100
_STEP = "asking range queries"
_COUNTING = "counting rows that break conditions"


@dataclass(frozen=True, slots=True)
class Range:
    """A query: columns, and the bounds of each, both included. Rows without a value do not match."""

    columns: tuple[Coded, ...]
    bounds: tuple[tuple[float, float], ...]

    @property
    def condition(self) -> Fragment:
        """In SQL, on the values v<place>."""
        parts = (
            f"v{column.place} BETWEEN {literal(low)} AND {literal(high)}"
            for column, (low, high) in zip(self.columns, self.bounds, strict=True)
        )
        return Fragment(" AND ".join(parts))

    def __str__(self) -> str:
        parts = (
            f"{column.column.name} from {_said(column, low)} to {_said(column, high)}"
            for column, (low, high) in zip(self.columns, self.bounds, strict=True)
        )
        return " and ".join(parts)


def _said(column: Coded, value: float) -> str:
    """A number, or a moment as a date and time (without a zone: UTC)."""
    if column.column.sql_type == "DATE" or column.column.sql_type.startswith("TIMESTAMP"):
        moment = np.datetime64(round(value), "s")
        return str(moment.astype("datetime64[D]") if column.column.sql_type == "DATE" else moment)
    return f"{value:.6g}"


def drawn(codes: Codes, ways: int, seed: int) -> list[Range]:
    """``QUERIES`` ranges, whose bounds are hundredths of the real values, drawn with a seed."""
    numbers = [column for column in codes.columns if column.numbers is not None and column.numbers["n_real"]]
    choices = list(itertools.combinations(numbers, ways))
    if not choices:
        return []
    generator = np.random.default_rng((seed, ways))
    found = []
    for _ in range(QUERIES):
        columns = choices[int(generator.integers(len(choices)))]
        bounds = []
        for column in columns:
            low, high = np.sort(generator.integers(0, 101, 2)).tolist()
            grid = column.numbers.grids["real"] if column.numbers is not None else np.zeros(101)
            bounds.append((float(grid[low]), float(grid[high])))
        found.append(Range(columns, tuple(bounds)))
    return found


def range_errors(codes: Codes, seed: int) -> pd.DataFrame:
    """Errors of range queries in shares of the rows; one line per number of columns and what is compared.

    Columns: ``ways``, ``compared`` (``"synthetic"``, perhaps ``"holdout"``, and ``"resample"``: expected of
    as many rows drawn from the real table), ``queries``, ``mean``, ``median``, ``worst``, ``worst_query``.

    Raises:
        EngineFailure: the database failed.
    """
    lines: list[dict[str, object]] = []
    names = ("ways", "compared", "queries", "mean", "median", "worst", "worst_query")
    with phase("ranges"):
        for ways in (1, 2):
            queries = drawn(codes, ways, seed)
            if queries:
                lines += _lines(codes, ways, queries)
    return pd.DataFrame(lines, columns=list(names))


def _lines(codes: Codes, ways: int, queries: Sequence[Range]) -> list[dict[str, object]]:
    shares = {side: _shares(codes, side, queries) for side in codes.session.rows}
    real, rows = shares.pop("real"), codes.session.rows["synthetic"]
    errors = {side: np.abs(found - real) for side, found in shares.items()}
    errors["resample"] = np.sqrt(2 * real * (1 - real) / (np.pi * rows))
    return [
        {
            "ways": ways,
            "compared": compared,
            "queries": len(queries),
            "mean": float(found.mean()),
            "median": float(np.median(found)),
            "worst": float(found.max()),
            "worst_query": "" if compared == "resample" else str(queries[int(found.argmax())]),
        }
        for compared, found in errors.items()
    ]


def _shares(codes: Codes, side: str, queries: Sequence[Range]) -> Floats:
    """Share of the rows of a table that match each query, float64[queries]."""
    found: list[int] = []
    for start in range(0, len(queries), _AT_ONCE):
        part = queries[start : start + _AT_ONCE]
        used = {column.place: column for query in part for column in query.columns}
        named = [Fragment(f"{column.value} AS v{place}") for place, column in used.items()]
        relation = render("source/frame", columns=named, frame=codes.session.tables[side])
        sql = render("evaluate/matching", relation=relation, conditions=[query.condition for query in part])
        row = codes.engine.fetch(sql, step=_STEP)
        found += [int(row[f"c{place}"][0]) for place in range(len(part))]
    return np.array(found, dtype=np.float64) / codes.session.rows[side]


# -- the owner's conditions --------------------------------------------------------------------------


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
                rows = int(session.engine.fetch(sql, step=_COUNTING)["c0"][0])
            if rows is None:
                raise InputError(
                    f"never= has {shorten(repr(line['condition']))}, which the database does not accept: try "
                    "it in a query of your own."
                )
            line |= {f"{side}_rows": rows, f"{side}_share": rows / session.rows[side]}
    return pd.DataFrame(lines)
