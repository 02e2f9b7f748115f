"""PRIVATE: one pass per column over what values occur, then small codes of all rows in one temporary table.

The codes are made from the real table. Numbers and moments with few values have a code per value, others 20
bins with about equally many real rows. Text has a code for each of the most frequent categories, and one for
all others. Missing values, values that are not finite, and values that the real table does not have, keep
codes of their own: they are counted, not dropped. The encoding of releases (``private/rows/``) knows no
difference between rare and unseen values, so it is not used here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.sqltext.fragments import Fragment, literal, string_literal, temporary_table
from dpsyn_sql.sqltext.render import render

MISSING, UNSEEN, RARE, NOT_FINITE, FIRST = range(5)
"""Codes that every column has; values and bins begin at ``FIRST``. Numbers below and above all real ones have
the first and the last of these, so that codes keep the order of values."""

BINS = 20
"""At most so many values or bins of a number."""

MOST_LABELS = 100
"""So many categories of a text column have a code of their own."""

SIDES = ("real", "synthetic", "holdout")

MOST_ROWS = 100_000
"""So many rows of a table are learnt from, judged, or clustered."""

FOLDS = 5
"""One part of so many is held back where no holdout is given."""

_LARGEST = 1e100
"""Squares of larger numbers overflow: they count as not finite."""

_STEP = "comparing columns"
_DRAWING = "drawing rows to evaluate"
_SLACK = 1.2


Figures = Mapping[str, float]
"""The only row of a result; NaN for NULL."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Facts of the finite values of a column, in its own unit (moments: seconds since 1970): ``figures`` as
    ``evaluate/numbers.sql`` names them; ``grids``: of the real and the synthetic table quantiles float64[101]
    by hundredths, NaN without values."""

    figures: Figures
    grids: Mapping[str, NDArray[np.float64]]

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    @property
    def scaled(self) -> bool:
        """Whether the real values differ, so that they can be standardised."""
        return 0 < self["deviation_real"] < np.inf


@dataclass(frozen=True, slots=True)
class Coded:
    """A column with its facts and the ``value`` and ``code`` expressions of its codes.

    ``categories``: of its values as categories, as ``evaluate/categories.sql`` names them. ``numbers``: of
    numbers and moments. ``labels``: the table that text is looked up in.
    """

    column: ComparedColumn
    index: int
    value: Fragment
    code: Fragment
    categories: Figures
    numbers: Numbers | None = None
    labels: Fragment | None = None

    @property
    def key(self) -> Fragment:
        """The column of codes."""
        return Fragment(f"k{self.index}")

    @property
    def ordered(self) -> bool:
        """Whether codes from ``FIRST`` on are in the order of the values."""
        return self.numbers is not None

    @property
    def standardised(self) -> Fragment:
        """The finite value less the real mean, in real deviations, bounded; NULL for any other."""
        if self.numbers is None or not self.numbers.scaled:
            return Fragment("CAST(NULL AS DOUBLE)")
        mean, deviation = literal(self.numbers["mean_real"]), literal(self.numbers["deviation_real"])
        value, bound = f"v{self.index}", literal(_LARGEST)
        scaled = f"least(greatest(({value} - {mean}) / {deviation}, -{bound}), {bound})"
        return Fragment(f"CASE WHEN isfinite({value}) THEN {scaled} END")


@dataclass(frozen=True, slots=True)
class Codes:
    """The ``table`` of codes of all rows of all tables, and its columns."""

    session: Session
    table: Fragment
    columns: tuple[Coded, ...]

    @property
    def engine(self) -> DuckDBEngine:
        """That reads it."""
        return self.session.engine

    def rows(self, **more: Fragment) -> Fragment:
        """The same rows read anew, with further columns of values under their names."""
        aliased = [Fragment(f"{sql} AS {name}") for name, sql in more.items()]
        return _encoded(self.session, self.columns, aliased)


def encode(session: Session, **more: Fragment) -> Codes:
    """Look at each column, then write the table of codes, with further columns of values.

    Raises:
        EngineFailure: the database failed, such as for want of room.
    """
    columns = tuple(_look(session, index, column) for index, column in enumerate(session.columns))
    codes = Codes(session, temporary_table("codes"), columns)
    sql = render("evaluate/materialised", table=codes.table, relation=codes.rows(**more))
    session.engine.execute(sql, step="coding rows")
    return codes


def value_of(column: ComparedColumn) -> Fragment:
    """A number (infinity for all that is not finite) or text; NULL if missing."""
    if column.kind not in ("numeric", "temporal"):
        return Fragment(f"CAST({column.sql} AS VARCHAR)")
    number = f"CAST({column.sql} AS DOUBLE)" if column.kind == "numeric" else _seconds(column)
    return Fragment(
        f"CASE WHEN abs({number}) <= {literal(_LARGEST)} THEN {number} "
        f"WHEN {column.sql} IS NOT NULL THEN CAST('inf' AS DOUBLE) END"
    )


def _look(session: Session, index: int, column: ComparedColumn) -> Coded:
    engine, value = session.engine, value_of(column)
    numeric = column.kind in ("numeric", "temporal")
    table = temporary_table("distribution")
    sides = [
        {"number": SIDES.index(side), "value": value, "relation": relation}
        for side, relation in session.tables.items()
    ]
    engine.execute(
        render("evaluate/distribution", table=table, sides=sides, ordered=int(numeric)), step=_STEP
    )
    categories = _row(engine, render("evaluate/categories", table=table))
    numbers = _numbers(engine, table) if numeric else None
    if numbers is not None:
        code, labels = _number_code(index, _cuts(engine, table, numbers), numbers), None
    else:
        labels = temporary_table("labels")
        sql = render("evaluate/labels", labels=labels, table=table, most=MOST_LABELS, first=FIRST, rare=RARE)
        engine.execute(sql, step=_STEP)
        known_code = f"coalesce(l{index}.code, {UNSEEN})"
        code = Fragment(f"CASE WHEN v{index} IS NULL THEN {MISSING} ELSE {known_code} END")
    engine.execute(render("count/drop", table=table), step=_STEP)
    return Coded(column, index, value, code, categories, numbers, labels)


def _numbers(engine: DuckDBEngine, table: Fragment) -> Numbers:
    figures = _row(engine, render("evaluate/numbers", table=table))
    for name in ("n_real", "n_synthetic", "distinct_values", "inside"):
        figures[name] = np.nan_to_num(figures[name])
    if figures["n_real"] and figures["n_synthetic"]:
        figures["wasserstein"] = np.nan_to_num(figures["wasserstein"])
    grids = {side: _grid(engine, table, side, figures[f"n_{side}"]) for side in SIDES[:2]}
    return Numbers(figures, grids)


def _row(engine: DuckDBEngine, sql: Fragment) -> dict[str, float]:
    row = engine.fetch(sql, step=_STEP)
    return {
        name: float("nan") if np.ma.is_masked(cells[0]) else float(cells[0]) for name, cells in row.items()
    }


def _grid(engine: DuckDBEngine, table: Fragment, side: str, rows: float) -> NDArray[np.float64]:
    """Quantiles by hundredths: of each the least value that so many rows do not exceed."""
    grid = np.full(101, np.nan)
    if rows:
        sql = render("evaluate/quantiles", table=table, rows=Fragment(side), rows_to=Fragment(f"{side}_to"))
        quantiles = engine.fetch(sql, step=_STEP)
        steps = np.asarray(quantiles["hundredth"], dtype=np.int64)
        positions = np.searchsorted(steps, np.arange(101))
        grid = np.asarray(quantiles["value"], dtype=np.float64)[positions]
    return grid


def _cuts(engine: DuckDBEngine, table: Fragment, numbers: Numbers) -> NDArray[np.float64] | None:
    """The values, if they are few; else None."""
    if not 0 < numbers["distinct_values"] <= BINS:
        return None
    values = engine.fetch(render("evaluate/values", table=table), step=_STEP)
    return np.asarray(values["value"], dtype=np.float64)


def _number_code(index: int, values: NDArray[np.float64] | None, numbers: Numbers) -> Fragment:
    name = f"v{index}"
    cases = [f"WHEN {name} IS NULL THEN {MISSING}", f"WHEN NOT isfinite({name}) THEN {NOT_FINITE}"]
    if not numbers["n_real"]:
        return Fragment(f"CASE {' '.join(cases)} ELSE {UNSEEN} END")
    steps = 100 // BINS
    edges = np.unique(numbers.grids["real"][steps::steps]) if values is None else values
    compared = "<=" if values is None else "="
    low, high = (literal(float(bound)) for bound in (numbers["least_real"], numbers["most_real"]))
    cases.append(f"WHEN {name} < {low} THEN {FIRST}")
    coded_edges = enumerate(edges.tolist(), FIRST + 1)
    cases += [f"WHEN {name} {compared} {literal(edge)} THEN {code}" for code, edge in coded_edges]
    cases.append(f"WHEN {name} > {high} THEN {FIRST + 1 + len(edges)}")
    return Fragment(f"CASE {' '.join(cases)} ELSE {UNSEEN} END")


def _encoded(session: Session, columns: Sequence[Coded], more: Sequence[Fragment]) -> Fragment:
    keys = [Fragment(f"CAST({key} AS VARCHAR)") for key in session.keys]
    return render(
        "evaluate/encoded",
        sides=[
            {"number": SIDES.index(side), "relation": relation} for side, relation in session.tables.items()
        ],
        values=[*(column.value for column in columns), *keys],
        codes=[column.code for column in columns],
        lookups=[
            Fragment(
                f"LEFT JOIN {column.labels} AS l{column.index} ON v{column.index} = l{column.index}.value"
            )
            for column in columns
            if column.labels is not None
        ],
        more=list(more),
    )


# -- rows that are drawn into memory ---------------------------------------------------------------


def drawn_sql(
    relation: Fragment,
    columns: Sequence[Fragment],
    rows: int,
    seed: int,
    held_back: bool | None = None,
    most: int = MOST_ROWS,
) -> Fragment:
    """A query of at most ``most`` rows with the columns c0, c1, ...; the same ones for a seed, wherever the
    table gives its rows in the same order.

    Args:
        relation: what stands after FROM.
        columns: expressions.
        rows: how many the relation has.
        seed: of the draw and of the parts.
        held_back: whether of the fifth of the rows that is held back, or of the other four; None: of all.
        most: how many rows are drawn.
    """
    expected = rows if held_back is None else rows / FOLDS * (1 if held_back else FOLDS - 1)
    share = min(1.0, (_SLACK * most + 100) / max(1.0, expected))
    return render(
        "evaluate/drawn",
        relation=relation,
        columns=[Fragment(f"{column} AS c{index}") for index, column in enumerate(columns)],
        names=[Fragment(f"c{index}") for index in range(len(columns))],
        seed=string_literal(f"lot|{seed}"),
        part=None if held_back is None else _part(seed, held_back=held_back),
        highest=min(2**64 - 1, int(share * 2**64)),
        limit=most,
    )


def _part(seed: int, *, held_back: bool) -> dict[str, Fragment | int]:
    inside = Fragment("= 0" if held_back else "<> 0")
    return {"seed": string_literal(f"part|{seed}"), "parts": FOLDS, "inside": inside}


def read_as(column: ComparedColumn) -> Fragment:
    """A column as DOUBLE (times in seconds; NULL for NaN and infinities) or as text."""
    if column.kind == "numeric":
        value = f"CAST({column.sql} AS DOUBLE)"
        return Fragment(f"CASE WHEN isfinite({value}) THEN {value} END")
    if column.kind == "temporal":
        return Fragment(f"TRY(CAST({_seconds(column)} AS DOUBLE))")  # there is no number for infinity
    return Fragment(f"CAST({column.sql} AS VARCHAR)")


def _seconds(column: ComparedColumn) -> str:
    """Since 1970; coarse types by way of microseconds, as of nanoseconds they end in 2262."""
    coarse = column.sql_type in ("TIMESTAMP_S", "TIMESTAMP_MS")
    return f"epoch({f'TRY_CAST({column.sql} AS TIMESTAMP)' if coarse else column.sql})"


def is_number(column: ComparedColumn) -> bool:
    """Whether it is read as DOUBLE."""
    return column.kind in ("numeric", "temporal")


def drawn(
    session: Session,
    table: Literal["real", "synthetic", "holdout"],
    columns: Sequence[ComparedColumn],
    seed: int,
    held_back: bool | None = None,
    most: int = MOST_ROWS,
) -> pd.DataFrame:
    """Rows of a table in memory: float64 (NaN for NULL) or object (text, None for NULL), by column name."""
    read = [read_as(column) for column in columns]
    sql = drawn_sql(session.tables[table], read, session.rows[table], seed, held_back, most)
    values = session.engine.fetch(sql, step=_DRAWING)
    return pd.DataFrame(
        {column.name: _values(values[f"c{index}"], column) for index, column in enumerate(columns)}
    )


def _values(values: Any, column: ComparedColumn) -> Any:
    masked = np.ma.getmaskarray(values)
    if is_number(column):
        plain = np.asarray(np.ma.getdata(values), np.float64)
        return np.where(masked, np.nan, plain)
    plain = np.where(masked, np.array(None, object), np.asarray(np.ma.getdata(values), object))
    return pd.Series(plain, dtype=object)
