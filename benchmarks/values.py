"""Whether the numbers and times of a copy are believable: mean, standard deviation and percentiles.

Like ``comparison.py`` this reads the real rows without noise. It is for benchmarks on public data.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
from comparison import columns_of

PERCENTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

NOT_NUMBERS = ("VARCHAR", "BOOLEAN", "ENUM", "UUID", "BLOB")
TIMES = ("DATE", "TIME")

SMALLEST_MEAN, LARGEST_MEAN = 0.1, 3.0
"""The error of a mean is relative to the mean, but to at least and at most so many standard deviations."""


@dataclass(frozen=True)
class ValueErrors:
    """Errors of one column's values; NULL, NaN and infinities are left out.

    ``mean``: |difference| / |mean of the source|, where the divisor is at least ``SMALLEST_MEAN`` standard
    deviations (a mean near zero would make any error huge) and at most ``LARGEST_MEAN`` (a longitude or a
    year lies far from zero, and nothing would count as an error). Times have no zero: their divisor is
    the standard deviation.
    ``deviation``: |difference| / standard deviation of the source.
    ``percentiles``: |difference| / (99th - 1st percentile of the source), one for each of ``PERCENTILES``;
    the standard deviation divides where these two are the same.
    A constant column has no spread: its errors are 0 or, where the copy differs, 1.
    All are infinite where the copy has no value at all and the source has some.
    """

    column: str
    mean: float
    deviation: float
    percentiles: tuple[float, ...]

    @property
    def percentile(self) -> float:
        """The largest error of the percentiles."""
        return max(self.percentiles)


@dataclass(frozen=True)
class Profile:
    """What the values of one column are."""

    mean: float
    deviation: float
    percentiles: tuple[float, ...]


def is_number(kind: str) -> bool:
    """Whether a column of this SQL type holds numbers or times."""
    return not kind.startswith(NOT_NUMBERS)


Ends = tuple[object, object]


def profile(
    con: duckdb.DuckDBPyConnection, relation: str, column: str, ends: Ends | None = None
) -> Profile | None:
    """Of all values that are finite; None if there is none. Times in seconds.

    Args:
        con: a connection that sees the relation.
        relation: SQL in brackets, or a name.
        column: numeric or temporal.
        ends: values beyond them count as these.
    """
    kind = columns_of(con, relation)[column]
    value = f'"{column}"'
    if ends is not None:
        low, high = (f"CAST('{end}' AS {kind})" for end in ends)
        value = f"greatest({low}, least({high}, {value}))"
    number = f"epoch({value})" if kind.startswith(TIMES) else f"CAST({value} AS DOUBLE)"
    row = con.execute(f"""
        WITH
        finite AS (SELECT {number} AS x FROM {relation} WHERE "{column}" IS NOT NULL AND isfinite({number})),
        middle AS (SELECT quantile_disc(x, 0.5) AS m FROM finite)
        SELECT any_value(m), favg(x - m), stddev_pop(x - m), quantile_disc(x, {list(PERCENTILES)})
        FROM finite, middle
    """).fetchone()
    if row is None or row[0] is None:
        return None
    middle, mean, deviation, percentiles = row
    return Profile(middle + mean, deviation, tuple(percentiles))


def value_errors(
    con: duckdb.DuckDBPyConnection, source: str, copy: str, column: str, ends: Ends | None = None
) -> ValueErrors | None:
    """How far the values of one column of a copy are from the source's; None if the source has none.

    Values of the source beyond ``ends`` count as these.
    """
    true, made = profile(con, source, column, ends), profile(con, copy, column)
    if true is None:
        return None
    if made is None:
        return ValueErrors(column, math.inf, math.inf, (math.inf,) * len(PERCENTILES))
    differences = [abs(a - b) for a, b in zip(true.percentiles, made.percentiles, strict=True)]
    if true.deviation == 0:
        return ValueErrors(
            column,
            float(true.mean != made.mean),
            float(made.deviation != 0),
            tuple(float(difference != 0) for difference in differences),
        )
    spread = true.percentiles[-1] - true.percentiles[0] or true.deviation
    return ValueErrors(
        column,
        abs(true.mean - made.mean) / _unit_of_mean(true, columns_of(con, source)[column]),
        abs(true.deviation - made.deviation) / true.deviation,
        tuple(difference / spread for difference in differences),
    )


def _unit_of_mean(true: Profile, kind: str) -> float:
    if kind.startswith(TIMES):
        return true.deviation
    least, most = SMALLEST_MEAN * true.deviation, LARGEST_MEAN * true.deviation
    return min(max(abs(true.mean), least), most)


VALUE_HEADER = [
    "mean, median",
    "worst",
    "deviation, median",
    "worst",
    "percentiles, median",
    "worst",
]


def value_cells(errors: Sequence[ValueErrors]) -> list[object]:
    """Median and worst column of each error, for ``VALUE_HEADER``."""
    cells: list[object] = []
    for name in ("mean", "deviation", "percentile"):
        figures = {item.column: getattr(item, name) for item in errors}
        if not figures:
            cells += ["", ""]
            continue
        worst = max(figures, key=figures.__getitem__)
        cells += [percent(statistics.median(figures.values())), f"{percent(figures[worst])} ({worst})"]
    return cells


def percent(figure: float) -> str:
    """A share as per cent, three digits."""
    return f"{100 * figure:.3g} %"
