"""PRIVATE: what queries get from real and synthetic rows: random ranges of one and two columns, the owner's
conditions, and whether centres that k-means finds in synthetic places serve the real ones.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from dpsyn_sql.common.progress import phase
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.errors import EngineFailure, InputError, said
from dpsyn_sql.evaluation.codes import MOST_ROWS, Coded, Codes, drawn, read_as
from dpsyn_sql.evaluation.marginals import Floats
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.source.expression_check import check_expression
from dpsyn_sql.source.names import fold, listed, name_hint, shorten
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

QUERIES = 200
"""So many queries for each number of columns."""

CENTRES = (1, 2, 5, 10, 20)
"""Numbers of centres that are tried; one centre says how far the places are spread."""

STARTS = 5
"""k-means starts so often, each time from other centres (k-means++), and the best end counts."""

CLUSTERS = ("places", "centres", "synthetic_centres", "real_centres", "ratio")

_AT_ONCE = 100
_STEP = "asking range queries"
_DISTANCES = "measuring distances to centres"
_COUNTING = "counting rows that break conditions"


@dataclass(frozen=True, slots=True)
class Range:
    """A query: columns, and the bounds of each, both included. Rows without a value do not match."""

    columns: tuple[Coded, ...]
    bounds: tuple[tuple[float, float], ...]

    @property
    def condition(self) -> Fragment:
        """In SQL, on the values v<index>."""
        bounds = (
            f"v{column.index} BETWEEN {literal(low)} AND {literal(high)}"
            for column, (low, high) in zip(self.columns, self.bounds, strict=True)
        )
        return Fragment(" AND ".join(bounds))

    def __str__(self) -> str:
        bounds = (
            f"{column.column.name} from {_shown(column, low)} to {_shown(column, high)}"
            for column, (low, high) in zip(self.columns, self.bounds, strict=True)
        )
        return " and ".join(bounds)


def _shown(column: Coded, value: float) -> str:
    """A number, or a moment as a date and time (without a zone: UTC)."""
    if column.column.sql_type == "DATE" or column.column.sql_type.startswith("TIMESTAMP"):
        moment = np.datetime64(round(value), "s")
        return str(moment.astype("datetime64[D]") if column.column.sql_type == "DATE" else moment)
    return f"{value:.6g}"


def drawn_ranges(codes: Codes, ways: int, seed: int) -> list[Range]:
    """``QUERIES`` ranges, whose bounds are hundredths of the real values, drawn with a seed."""
    numbers = [column for column in codes.columns if column.numbers is not None and column.numbers["n_real"]]
    choices = list(itertools.combinations(numbers, ways))
    if not choices:
        return []
    generator = np.random.default_rng((seed, ways))
    ranges = []
    for _ in range(QUERIES):
        columns = choices[int(generator.integers(len(choices)))]
        bounds = []
        for column in columns:
            low, high = np.sort(generator.integers(0, 101, 2)).tolist()
            grid = column.numbers.grids["real"] if column.numbers is not None else np.zeros(101)
            bounds.append((float(grid[low]), float(grid[high])))
        ranges.append(Range(columns, tuple(bounds)))
    return ranges


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
            queries = drawn_ranges(codes, ways, seed)
            if queries:
                lines += _lines(codes, ways, queries)
    return pd.DataFrame(lines, columns=list(names))


def _lines(codes: Codes, ways: int, queries: Sequence[Range]) -> list[dict[str, object]]:
    shares = {side: _shares(codes, side, queries) for side in codes.session.rows}
    real, rows = shares.pop("real"), codes.session.rows["synthetic"]
    errors = {side: np.abs(differences - real) for side, differences in shares.items()}
    errors["resample"] = np.sqrt(2 * real * (1 - real) / (np.pi * rows))
    return [
        {
            "ways": ways,
            "compared": compared,
            "queries": len(queries),
            "mean": float(differences.mean()),
            "median": float(np.median(differences)),
            "worst": float(differences.max()),
            "worst_query": "" if compared == "resample" else str(queries[int(differences.argmax())]),
        }
        for compared, differences in errors.items()
    ]


def _shares(codes: Codes, side: str, queries: Sequence[Range]) -> Floats:
    """Share of the rows of a table that match each query, float64[queries]."""
    counts: list[int] = []
    for start in range(0, len(queries), _AT_ONCE):
        batch = queries[start : start + _AT_ONCE]
        used = {column.index: column for query in batch for column in query.columns}
        aliased = [Fragment(f"{column.value} AS v{index}") for index, column in used.items()]
        relation = render("source/frame", columns=aliased, frame=codes.session.tables[side])
        sql = render("evaluate/matching", relation=relation, conditions=[query.condition for query in batch])
        row = codes.engine.fetch(sql, step=_STEP)
        counts += [int(row[f"c{index}"][0]) for index in range(len(batch))]
    return np.array(counts, dtype=np.float64) / codes.session.rows[side]


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
    conditions = []
    for text in never:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"never= has {said(text)}: give SQL conditions as text")
        checked = check_expression(text, names, catalog)
        if checked.fault:
            raise InputError(f"never= has {shorten(repr(text))}: {checked.fault}")
        conditions.append(Fragment(f"TRY(CAST(({checked.sql}) AS BOOLEAN))"))
    return conditions


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


# -- places ----------------------------------------------------------------------------------------


def clusters(session: Session, places: Sequence[str], seed: int = 1) -> tuple[pd.DataFrame, list[str]]:
    """Mean squared distance of all real places to the nearest centre: of those that k-means finds in the
    synthetic places, beside the real table's own.

    Distances are Euclidean in the columns as they are: columns of one unit belong together. Centres are
    learnt from at most ``MOST_ROWS`` rows of each table, drawn by a seed; the cost is of all real rows.
    Columns: ``CLUSTERS``; the costs of both in squared units of the columns, ``ratio`` is the first by the
    second.

    Returns:
        The table and what a reader must know.

    Raises:
        InputError: ``places`` are no columns of numbers.
    """
    columns = place_columns(session, places)
    points = {name: _points(session, name, columns, seed) for name in ("synthetic", "real")}
    notes = list[str]()
    for name, coordinates in points.items():
        if not len(coordinates):
            return _table([]), [f"No {name} row has all of {listed(places)}: places are not clustered."]
    if any(session.rows[name] > MOST_ROWS for name in points):
        notes.append(f"Centres of places are learnt from at most {MOST_ROWS:,} rows of each table.")
    most = min(len(np.unique(coordinates, axis=0)) for coordinates in points.values())
    counts = [number for number in CENTRES if number <= most]
    centres = {
        (name, number): centres_of(coordinates, number, seed)
        for name, coordinates in points.items()
        for number in counts
    }
    costs = dict(zip(centres, _costs(session, columns, list(centres.values())), strict=True))
    column_names = ", ".join(column.name for column in columns)
    lines = [[column_names, number, costs["synthetic", number], costs["real", number]] for number in counts]
    return _table(lines), notes


def place_columns(session: Session, places: Sequence[str]) -> tuple[ComparedColumn, ...]:
    """The columns of places.

    Raises:
        InputError: they are no list of different columns of numbers.
    """
    if isinstance(places, str) or not all(isinstance(name, str) for name in places) or not places:
        raise InputError(
            f"places={said(places)}: give the names of columns of numbers, such as ('lat', 'lon')"
        )
    numbers = {fold(column.name): column for column in session.columns if column.kind == "numeric"}
    for name in places:
        if fold(name) not in numbers:
            names = [column.name for column in numbers.values()]
            hint = name_hint(name, names, "there are")
            raise InputError(f"places: {shorten(name)!r} is no column of numbers that is compared; {hint}")
    if len({fold(name) for name in places}) < len(places):
        raise InputError("places names a column twice")
    return tuple(numbers[fold(name)] for name in places)


def _points(session: Session, name: str, columns: Sequence[ComparedColumn], seed: int) -> Floats:
    rows = drawn(session, "real" if name == "real" else "synthetic", columns, seed)
    return np.asarray(rows.dropna().to_numpy(np.float64))


def centres_of(points: Floats, number: int, seed: int) -> Floats:
    """The centres (number, columns) of k-means that cost least of ``STARTS`` starts (Lloyd 1982, with the
    start of Arthur and Vassilvitskii 2007)."""
    middle = points.mean(axis=0)
    shifted = points - middle  # so that squares of large numbers keep their digits
    best, least = shifted[:1], np.inf
    for start in range(STARTS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a centre without points stays where it is
            rng = np.random.default_rng([seed, number, start])
            centres, _ = kmeans2(shifted, number, minit="++", seed=rng)
        cost = mean_cost(shifted, centres)
        if cost < least:
            best, least = centres, cost
    return np.asarray(best + middle)


def mean_cost(points: Floats, centres: Floats) -> float:
    """Mean squared distance to the nearest centre."""
    return float(cdist(points, centres, "sqeuclidean").min(axis=1).mean())


def _costs(session: Session, columns: Sequence[ComparedColumn], lists: Sequence[Floats]) -> list[float]:
    """The mean cost of each list of centres over all real rows."""
    sql = render(
        "evaluate/nearest",
        relation=session.tables["real"],
        coordinates=[read_as(column) for column in columns],
        names=[Fragment(f"v{index}") for index in range(len(columns))],
        nearest=[_nearest(centres) for centres in lists],
    )
    costs = session.engine.fetch(sql, step=_DISTANCES)
    return [float(costs[f"m{index}"][0]) for index in range(len(lists))]


def _nearest(centres: Floats) -> Fragment:
    squares = (
        " + ".join(
            f"(v{index} - {literal(float(value))}) * (v{index} - {literal(float(value))})"
            for index, value in enumerate(centre)
        )
        for centre in centres
    )
    return Fragment(f"least({', '.join(squares)})")


def _table(lines: Sequence[list[object]]) -> pd.DataFrame:
    table = pd.DataFrame(list(lines), columns=list(CLUSTERS[:-1]))
    synthetic, real = (table[name].astype(float) for name in CLUSTERS[2:4])
    table["ratio"] = (synthetic / real).where(real > 0)  # none where the real centres meet every place
    return table
