"""How far a synthetic table is from its source: column by column in SQL, memory bounded; pairs and triples
of columns in memory.

These figures look at the real rows and no noise is added to them: they are as private as the source itself.
They are for benchmarks on public data, and never steer a release.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

BINS = 50
"""Bins of equal width over the true range of a numeric or temporal column."""

TOP = 500
"""Categories that are told apart, the commonest of the source; all others are one."""

EQUAL_BINS = 20
"""Bins of equal width over the declared range of a number where pairs and triples are compared."""

TRIPLES, TRIPLE_SEED = 200, 0

LISTED = 100_000
"""So many sets of attributes are listed and chosen from; of more, sets are drawn."""

_TEMPORAL = ("DATE", "TIMESTAMP", "TIME")


@dataclass(frozen=True)
class Distance:
    """``variation``: total variation distance of the one-way marginals, NULL a value of its own.

    ``transport``: 1-Wasserstein distance of the values that are not NULL, in units of the source's range;
    None where a column has no order or no range. ``nulls``: share of NULL in the copy less
    that in the source.
    """

    column: str
    variation: float
    transport: float | None
    nulls: float


def columns_of(con: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """Names and types of a relation's columns, in order."""
    return {row[0]: row[1] for row in con.execute(f"DESCRIBE FROM {relation}").fetchall()}


def distance(
    con: duckdb.DuckDBPyConnection, source: str, copy: str, column: str, *, categorical: bool
) -> Distance:
    """One column of two relations (SQL in brackets or a name)."""
    kind = columns_of(con, source)[column]
    value = f'"{column}"'
    if categorical or kind in ("VARCHAR", "BOOLEAN") or kind.startswith("ENUM"):
        return Distance(
            column, _categorical(con, source, copy, value), None, _nulls(con, source, copy, value)
        )
    number = f"epoch({value})" if kind.startswith(_TEMPORAL) else f"CAST({value} AS DOUBLE)"
    low, high = _range(con, source, number)
    return Distance(
        column,
        _binned(con, source, copy, number, low, high),
        _transport(con, source, copy, number) / (high - low) if high > low else None,
        _nulls(con, source, copy, value),
    )


def _range(con: duckdb.DuckDBPyConnection, source: str, number: str) -> tuple[float, float]:
    row = con.execute(
        f"SELECT min({number}), max({number}) FROM {source} WHERE isfinite({number})"
    ).fetchone()
    return (0.0, 0.0) if row is None or row[0] is None else (float(row[0]), float(row[1]))


def _variation(con: duckdb.DuckDBPyConnection, source_bins: str, copy_bins: str) -> float:
    """Half the L1 distance of two queries that give a column ``bin``; 1 if one of them is empty."""
    row = con.execute(f"""
        WITH
        a AS (SELECT bin, count(*) AS n FROM ({source_bins}) GROUP BY bin),
        b AS (SELECT bin, count(*) AS n FROM ({copy_bins}) GROUP BY bin),
        shares AS (
            SELECT
                coalesce(a.n, 0) / (SELECT sum(n) FROM a) AS p,
                coalesce(b.n, 0) / (SELECT sum(n) FROM b) AS q
            FROM a FULL JOIN b ON a.bin IS NOT DISTINCT FROM b.bin
        )
        SELECT sum(abs(p - q)) / 2 FROM shares
    """).fetchone()
    return 1.0 if row is None or row[0] is None else float(row[0])


def _categorical(con: duckdb.DuckDBPyConnection, source: str, copy: str, value: str) -> float:
    text = f"CAST({value} AS VARCHAR)"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE kept AS
        SELECT {text} AS label FROM {source} WHERE {value} IS NOT NULL
        GROUP BY label ORDER BY count(*) DESC, label LIMIT {TOP}
    """)
    bins = [
        f"""
        SELECT CASE
            WHEN {value} IS NULL THEN 'null'
            WHEN label IS NULL THEN 'rest'
            ELSE 'label ' || label
        END AS bin
        FROM {side} LEFT JOIN kept ON {text} = label
        """
        for side in (source, copy)
    ]
    return _variation(con, *bins)


def _binned(
    con: duckdb.DuckDBPyConnection, source: str, copy: str, number: str, low: float, high: float
) -> float:
    width = (high - low) / BINS or 1.0
    bins = [
        f"""
        SELECT CASE
            WHEN {number} IS NULL THEN NULL
            WHEN NOT isfinite({number}) THEN -3
            WHEN {number} < {low!r} THEN -2
            WHEN {number} > {high!r} THEN -1
            ELSE least({BINS - 1}, floor(({number} - {low!r}) / {width!r}))
        END AS bin
        FROM {side}
        """
        for side in (source, copy)
    ]
    return _variation(con, *bins)


def _transport(con: duckdb.DuckDBPyConnection, source: str, copy: str, number: str) -> float:
    """The area between the two distribution functions, exactly."""
    row = con.execute(f"""
        WITH
        weighted AS (
            SELECT {number} AS x, 1 / count(*) OVER () AS w FROM {source} WHERE isfinite({number})
            UNION ALL
            SELECT {number} AS x, -1 / count(*) OVER () AS w FROM {copy} WHERE isfinite({number})
        ),
        steps AS (SELECT x, sum(w) AS w FROM weighted GROUP BY x),
        areas AS (SELECT abs(sum(w) OVER (ORDER BY x)) * (lead(x) OVER (ORDER BY x) - x) AS area FROM steps)
        SELECT sum(area) FROM areas
    """).fetchone()
    return 0.0 if row is None or row[0] is None else float(row[0])


def _nulls(con: duckdb.DuckDBPyConnection, source: str, copy: str, value: str) -> float:
    shares = [
        con.execute(f"SELECT coalesce(avg(CAST({value} IS NULL AS INTEGER)), 0) FROM {side}").fetchone()
        for side in (source, copy)
    ]
    before, after = (0.0 if share is None else float(share[0]) for share in shares)
    return after - before


def chosen(attributes: int, ways: int, most: int | None = None) -> list[tuple[int, ...]]:
    """All sets of ``ways`` attributes, or ``most`` of them: the same ones in every script.

    Sets are drawn one by one where there are too many to list; none comes twice.
    """
    rng = np.random.default_rng(TRIPLE_SEED)
    number = math.comb(attributes, ways)
    if most is None or number <= max(most, LISTED):
        every = list(combinations(range(attributes), ways))
        if most is None or most >= number:
            return every
        return [every[index] for index in rng.choice(number, most, replace=False)]
    found: dict[tuple[int, ...], None] = {}
    while len(found) < most:
        found[tuple(sorted(rng.choice(attributes, ways, replace=False).tolist()))] = None
    return list(found)


def mean_distances(
    source: NDArray[np.int64], copy: NDArray[np.int64], sizes: Sequence[int]
) -> tuple[float, float]:
    """Mean total variation distance over all pairs and over ``TRIPLES`` seeded triples of columns.

    ``source`` and ``copy`` hold codes below ``sizes``, a column each.
    """
    two, three = (
        statistics.mean(variations(source, copy, sizes, group))
        for group in (chosen(len(sizes), 2), chosen(len(sizes), 3, TRIPLES))
    )
    return two, three


def variations(
    source: NDArray[np.int64],
    copy: NDArray[np.int64],
    sizes: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> list[float]:
    """Total variation distance of the marginal over each group of columns."""
    return [
        float(np.abs(shares(source, sizes, axes) - shares(copy, sizes, axes)).sum() / 2) for axes in groups
    ]


def shares(rows: NDArray[np.int64], sizes: Sequence[int], axes: Sequence[int]) -> NDArray[np.float64]:
    """The marginal over some columns as shares of the rows, flat in row-major order."""
    shape = [sizes[axis] for axis in axes]
    cells = np.ravel_multi_index(tuple(rows[:, axes].T), shape)
    return np.bincount(cells, minlength=math.prod(shape)) / len(rows)


def squared_error(true: NDArray[np.float64], answered: NDArray[np.float64]) -> float:
    """Sum of squared differences of the shares of all cells: the SSE of one marginal."""
    return float(np.square(true - answered).sum())


def codes_of(
    con: duckdb.DuckDBPyConnection,
    relations: Sequence[str],
    columns: Mapping[str, int | tuple[float, float] | None],
) -> tuple[list[NDArray[np.int64]], list[int]]:
    """Codes of several tables by the same rule, and the number of codes of each column.

    Args:
        con: a connection that sees them.
        relations: names of the tables.
        columns: of each column how many codes it holds already; or the range of a number, which is cut
            into ``EQUAL_BINS``; or None for categories. NULL is one more code of the latter two.
    """
    names = ", ".join(f'"{name}"' for name in columns)
    frames = [con.execute(f"SELECT {names} FROM {relation}").df() for relation in relations]
    every = pd.concat(frames, ignore_index=True)
    coded, sizes = [], []
    for name, rule in columns.items():
        if isinstance(rule, int):
            codes, size = every[name].to_numpy(np.int64), rule
        elif rule is None:
            codes, labels = pd.factorize(every[name].astype("string"), use_na_sentinel=False)
            size = len(labels)
        else:
            low, high = rule
            values = every[name].to_numpy(np.float64, na_value=np.nan)
            place = np.clip((values - low) * EQUAL_BINS / (high - low), 0, EQUAL_BINS - 1)
            codes, size = np.where(np.isnan(place), EQUAL_BINS, place).astype(np.int64), EQUAL_BINS + 1
        coded.append(codes)
        sizes.append(size)
    ends = np.cumsum([len(frame) for frame in frames])[:-1]
    return np.split(np.stack(coded, axis=1).astype(np.int64), ends), sizes
