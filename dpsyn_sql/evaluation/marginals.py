"""PRIVATE: errors of k-way marginals and of positive conjunction queries, from the table of codes.

Distances are arithmetic on arrays: ``counts`` are cells of one marginal, int64[cells], each standing for
``weight`` cells with the same counts. Cells without rows in any table add nothing and need not be there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from dpsyn_sql.common.progress import phase
from dpsyn_sql.evaluation.codes import SIDES, Codes
from dpsyn_sql.sqltext.render import render

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

BEST = (0.95, 0.99, 1.0)
"""Shares of the queries, best first, whose mean and maximum are given: Table 2 of the copula paper."""


MOST_WAYS = 6
MOST_TABLES = {3: 200, 4: 50, 5: 50, 6: 50}
"""So many marginals of each number of columns are drawn; all of 1 and 2 are compared."""

_WORST = 5
_LONGEST_QUERY = 3
_STEP = "counting marginals"

Attributes = tuple[int, ...]


# -- distances ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Distance:
    """Of two marginals: total variation, the sum of squared differences of shares, and the greatest
    difference of a share; NaN where there is none."""

    tv: float
    sse: float
    max: float


def shares(counts: Counts, rows: int) -> Floats:
    """Of all rows."""
    return counts / max(rows, 1)


def distance(first: Floats, second: Floats, weight: Counts | int = 1) -> Distance:
    """The distance of two marginals in shares of their rows."""
    apart = np.abs(first - second)
    if not apart.size:
        return Distance(0.0, 0.0, 0.0)
    return Distance(float((apart * weight).sum() / 2), float((apart**2 * weight).sum()), float(apart.max()))


def resampled(probabilities: Floats, rows: int, weight: Counts | int = 1) -> Distance:
    """What is expected of ``rows`` independent draws from the marginal itself, in closed form.

    The mean absolute deviation of a binomial is 2 v (1-p) P[X = v] with v = floor(np) + 1 (de Moivre). The
    expected maximum has no closed form.
    """
    above = np.floor(rows * probabilities) + 1
    apart = 2 * above * (1 - probabilities) * stats.binom.pmf(above, rows, probabilities) / rows
    squares = probabilities * (1 - probabilities) / rows
    return Distance(float((apart * weight).sum() / 2), float((squares * weight).sum()), float("nan"))


def best_errors(errors: Sequence[Floats], weights: Sequence[Counts], zeros: int) -> list[tuple[float, float]]:
    """(mean, maximum) of the best 95, 99 and 100 % of queries.

    Args:
        errors: absolute errors of queries.
        weights: how many queries each of them stands for.
        zeros: so many further queries without an error.
    """
    sorted_errors = np.concatenate([np.zeros(1), *errors])
    multiplicities = np.concatenate([np.array([zeros], dtype=np.int64), *weights])
    order = np.argsort(sorted_errors, kind="stable")
    sorted_errors, upto = sorted_errors[order], np.cumsum(multiplicities[order])
    summaries = []
    for share in BEST:
        best = max(1, int(np.ceil(share * int(upto[-1]))))
        counted = np.diff(np.minimum(upto, best), prepend=0)
        largest = sorted_errors[counted > 0].max(initial=0.0)
        summaries.append((float(sorted_errors @ counted / best), float(largest)))
    return summaries


def cramers_v(table: Counts) -> tuple[float, float]:
    """Cramer's V of a table of two columns, and its root mean square if the columns were independent.

    V is never negative, so it is above 0 for independent columns too: E[chi2] = (r-1)(c-1) n/(n-1).
    """
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    rows, columns = table.shape
    least, total = min(rows, columns) - 1, int(table.sum())
    if least < 1 or total < 2:
        return float("nan"), float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    squared = float(((table - expected) ** 2 / expected).sum()) / (total * least)
    chance = (rows - 1) * (columns - 1) / ((total - 1) * least)
    return float(np.sqrt(squared)), float(np.sqrt(chance))


def rank_correlation(table: Counts) -> float:
    """Spearman's correlation of rows whose ordered values are the places of a table, ties at middle ranks."""
    total = int(table.sum())
    if total == 0:
        return float("nan")
    first, second = (_centred(table.sum(axis=axis)) for axis in (1, 0))
    spread = np.sqrt((table.sum(axis=1) @ first**2) * (table.sum(axis=0) @ second**2))
    return float(first @ table @ second / spread) if spread > 0 else float("nan")


def _centred(counts: Counts) -> Floats:
    """Middle ranks of the values less their mean, as shares of the rows."""
    total = counts.sum()
    ranks: Floats = np.cumsum(counts) - (counts - 1) / 2 - (total + 1) / 2
    return ranks / float(total)


def correlation_ratio(rows: Counts, sums: Floats, squares: Floats) -> float:
    """The correlation ratio (eta) of a number by categories: the root of the share of its variance that lies
    between them. ``rows``, ``sums``, ``squares``: of each category."""
    filled = rows > 0
    rows, sums, squares = rows[filled], sums[filled], squares[filled]
    if not rows.size:
        return float("nan")
    total = int(rows.sum())
    mean = sums.sum() / total
    all_of_it = squares.sum() - total * mean**2
    between = float((rows * (sums / rows - mean) ** 2).sum())
    if all_of_it <= 1e-12 * max(squares.sum(), 1e-300):
        return float("nan")
    return float(np.sqrt(min(1.0, between / all_of_it)))


# -- marginals ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Marginal:
    """Counts of one marginal in each table, int64[cells]; ``weight``: cells with the same counts.

    ``codes``: of each cell int64[cells, attributes], of one- and two-way marginals only.
    """

    attributes: Attributes
    counts: dict[str, Counts]
    weight: Counts
    codes: NDArray[np.int64] | None = None

    def table(self, side: str) -> Counts:
        """The counts of a two-way marginal as int64[codes, codes]."""
        if self.codes is None or len(self.attributes) != 2:
            raise ValueError("only a two-way marginal is a table")
        cells = np.zeros(tuple(self.codes.max(axis=0) + 1), dtype=np.int64)
        np.add.at(cells, tuple(self.codes.T), self.counts[side])
        return cells


@dataclass
class Queries:
    """Errors of queries about one number of columns of one table: ``weights`` says for how many queries each
    error stands, ``zeros`` how many further ones have none."""

    errors: list[Floats] = field(default_factory=list)
    weights: list[Counts] = field(default_factory=list)
    zeros: int = 0


@dataclass(frozen=True, slots=True)
class MarginalErrors:
    """The frames ``marginals``, ``worst`` and ``conjunctions``, and the two-way marginals."""

    marginals: pd.DataFrame
    worst: pd.DataFrame
    conjunctions: pd.DataFrame
    one_way: tuple[Marginal, ...]
    pairs: tuple[Marginal, ...]


def chosen(columns: int, ways: int, seed: int) -> list[Attributes]:
    """The marginals of ``ways`` columns to compare: all, or as many as ``MOST_TABLES`` drawn with a seed."""
    possible, most = math.comb(columns, ways), MOST_TABLES.get(ways)
    if most is None or possible <= most:
        return list(itertools.combinations(range(columns), ways))
    generator = np.random.default_rng((seed, ways))
    drawn: dict[Attributes, None] = {}
    while len(drawn) < most:
        drawn[tuple(sorted(generator.choice(columns, ways, replace=False).tolist()))] = None
    return sorted(drawn)


def marginals(codes: Codes, seed: int) -> MarginalErrors:
    """Compare all one- and two-way marginals and some of up to six columns.

    Args:
        codes: of all rows.
        seed: of the draw of marginals.

    Raises:
        EngineFailure: the database failed, such as for want of room.
    """
    number = len(codes.columns)
    chosen_by_ways = {ways: chosen(number, ways, seed) for ways in range(1, min(MOST_WAYS, number) + 1)}
    compared_by_ways: dict[int, list[Marginal]] = {1: [], 2: []}
    lines, queries = list[dict[str, object]](), dict[tuple[int, str], Queries]()
    with phase("marginals", sum(map(len, chosen_by_ways.values()))) as done:
        for ways, choice in chosen_by_ways.items():
            for position, attributes in enumerate(choice):
                marginal = _read(codes, attributes)
                if ways <= 2:
                    compared_by_ways[ways].append(marginal)
                names = ", ".join(codes.columns[attribute].column.name for attribute in attributes)
                for compared, errors in _distances(codes, marginal):
                    lines.append(
                        {
                            "ways": ways,
                            "position": position,
                            "columns": names,
                            "compared": compared,
                            **asdict(errors),
                        }
                    )
                if ways <= _LONGEST_QUERY:
                    for side in [side for side in marginal.counts if side != "real"]:
                        counted = queries.setdefault((ways, side), Queries())
                        _add_queries(counted, side, marginal, codes.session.rows, compared_by_ways[1])
                done(1)
    frame = pd.DataFrame(lines)
    return MarginalErrors(
        _summary(frame, codes),
        _worst(frame),
        _conjunctions(queries, codes),
        tuple(compared_by_ways[1]),
        tuple(compared_by_ways[2]),
    )


def _read(codes: Codes, attributes: Attributes) -> Marginal:
    keys = [codes.columns[attribute].key for attribute in attributes]
    with_codes = len(attributes) <= 2
    template = "evaluate/cells" if with_codes else "evaluate/cell_counts"
    counted = codes.engine.fetch(render(template, table=codes.table, columns=keys), step=_STEP)
    counts = {side: np.asarray(counted[side], dtype=np.int64) for side in SIDES if side in codes.session.rows}
    if not with_codes:
        return Marginal(attributes, counts, np.asarray(counted["cells"], dtype=np.int64))
    cells = np.stack([np.asarray(counted[key], dtype=np.int64) for key in keys], axis=1)
    order = np.lexsort(cells.T[::-1])
    counts = {side: cell_counts[order] for side, cell_counts in counts.items()}
    return Marginal(attributes, counts, np.ones(len(cells), dtype=np.int64), cells[order])


def _distances(codes: Codes, marginal: Marginal) -> Iterator[tuple[str, Distance]]:
    """What is compared with the real marginal, and how far it is."""
    rows = codes.session.rows
    real = shares(marginal.counts["real"], rows["real"])
    for side, counted in marginal.counts.items():
        if side != "real":
            yield side, distance(real, shares(counted, rows[side]), marginal.weight)
    yield "resample", resampled(real, rows["synthetic"], marginal.weight)
    if len(marginal.attributes) == 2:
        yield "independent", _independent(marginal.table("real"))


def _independent(table: Counts) -> Distance:
    """The distance of a two-way marginal from the product of its one-way marginals."""
    joint = shares(table, int(table.sum()))
    return distance(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0)))


def _add_queries(
    queries: Queries,
    side: str,
    marginal: Marginal,
    rows: Mapping[str, int],
    one_way: Sequence[Marginal],
) -> None:
    """Each combination of values that the columns have in the two tables is a query. Counts are scaled to the
    rows of the real table."""
    real, compared = marginal.counts["real"], marginal.counts[side]
    filled = (real > 0) | (compared > 0)
    scaled = compared[filled] * (rows["real"] / rows[side])
    queries.errors.append(np.abs(real[filled] - scaled))
    queries.weights.append(marginal.weight[filled])
    combinations = 1
    for attribute in marginal.attributes:
        single = one_way[attribute].counts
        combinations *= int(((single["real"] > 0) | (single[side] > 0)).sum())
    queries.zeros += combinations - int(marginal.weight[filled].sum())


# -- frames -------------------------------------------------------------------------------------


def _summary(frame: pd.DataFrame, codes: Codes) -> pd.DataFrame:
    """By number of columns and by what is compared: mean, median and worst of each distance.

    ``sse_rows`` is in squared rows of the real table.
    """
    frame = frame.assign(sse_rows=frame["sse"] * float(codes.session.rows["real"]) ** 2)
    grouped = frame.groupby(["ways", "compared"], sort=False)
    summary = grouped.agg(marginals=("tv", "size"), possible=("ways", "first"))
    summary["possible"] = [math.comb(len(codes.columns), ways) for ways in summary["possible"]]
    for name in ("tv", "sse", "sse_rows", "max"):
        for kind, of in (("mean", "mean"), ("median", "median"), ("worst", "max")):
            summary[f"{name}_{kind}"] = grouped[name].agg(of)
    return summary.reset_index()


def _worst(frame: pd.DataFrame) -> pd.DataFrame:
    """The synthetic marginals with the greatest total variation, and what the others have there."""
    synthetic = frame[frame["compared"] == "synthetic"].sort_values("tv", ascending=False, kind="stable")
    synthetic = synthetic.sort_values("ways", kind="stable").groupby("ways", sort=False).head(_WORST)
    for name in frame["compared"].unique():
        if name != "synthetic":
            distances = frame[frame["compared"] == name].set_index(["ways", "position"])["tv"]
            synthetic = synthetic.join(distances.rename(f"tv_{name}"), on=["ways", "position"])
    return synthetic.drop(columns=["position", "compared"]).reset_index(drop=True)


def _conjunctions(queries: Mapping[tuple[int, str], Queries], codes: Codes) -> pd.DataFrame:
    """Absolute errors in rows: mean and maximum of the best 95, 99 and 100 % of the queries."""
    lines = []
    for (ways, side), counted in queries.items():
        line: dict[str, object] = {
            "ways": ways,
            "compared": side,
            "marginals": len(counted.weights),
            "possible": math.comb(len(codes.columns), ways),
            "queries": counted.zeros + sum(int(weight.sum()) for weight in counted.weights),
        }
        best = best_errors(counted.errors, counted.weights, counted.zeros)
        for share, (mean, most) in zip(BEST, best, strict=True):
            line |= {f"mean_{share:.0%}".rstrip("%"): mean, f"max_{share:.0%}".rstrip("%"): most}
        lines.append(line)
    return pd.DataFrame(lines)
