"""PRIVATE: errors of k-way marginals and of positive conjunction queries, from the table of codes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.common.progress import phase
from dpsyn_sql.evaluation import distances
from dpsyn_sql.evaluation.codes import SIDES, Codes
from dpsyn_sql.evaluation.distances import Counts, Distance, Floats
from dpsyn_sql.sqltext.render import render

MOST_WAYS = 6
MOST_TABLES = {3: 200, 4: 50, 5: 50, 6: 50}
"""So many marginals of each number of columns are drawn; all of 1 and 2 are compared."""

_WORST = 5
_LONGEST_QUERY = 3
_STEP = "counting marginals"

Attributes = tuple[int, ...]


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
        found = np.zeros(tuple(self.codes.max(axis=0) + 1), dtype=np.int64)
        np.add.at(found, tuple(self.codes.T), self.counts[side])
        return found


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
    wanted = {ways: chosen(number, ways, seed) for ways in range(1, min(MOST_WAYS, number) + 1)}
    kept: dict[int, list[Marginal]] = {1: [], 2: []}
    lines, queries = list[dict[str, object]](), dict[tuple[int, str], Queries]()
    with phase("marginals", sum(map(len, wanted.values()))) as done:
        for ways, listed in wanted.items():
            for place, attributes in enumerate(listed):
                marginal = _read(codes, attributes)
                if ways <= 2:
                    kept[ways].append(marginal)
                names = ", ".join(codes.columns[attribute].column.name for attribute in attributes)
                for compared, found in _distances(codes, marginal):
                    lines.append(
                        {
                            "ways": ways,
                            "place": place,
                            "columns": names,
                            "compared": compared,
                            **asdict(found),
                        }
                    )
                if ways <= _LONGEST_QUERY:
                    for side in [side for side in marginal.counts if side != "real"]:
                        asked = queries.setdefault((ways, side), Queries())
                        _add_queries(asked, side, marginal, codes.session.rows, kept[1])
                done(1)
    frame = pd.DataFrame(lines)
    return MarginalErrors(
        _summary(frame, codes),
        _worst(frame),
        _conjunctions(queries, codes),
        tuple(kept[1]),
        tuple(kept[2]),
    )


def _read(codes: Codes, attributes: Attributes) -> Marginal:
    keys = [codes.columns[attribute].key for attribute in attributes]
    few = len(attributes) <= 2
    template = "evaluate/cells" if few else "evaluate/cell_counts"
    found = codes.engine.fetch(render(template, table=codes.table, columns=keys), step=_STEP)
    counts = {side: np.asarray(found[side], dtype=np.int64) for side in SIDES if side in codes.session.rows}
    if not few:
        return Marginal(attributes, counts, np.asarray(found["cells"], dtype=np.int64))
    cells = np.stack([np.asarray(found[key], dtype=np.int64) for key in keys], axis=1)
    order = np.lexsort(cells.T[::-1])
    counts = {side: counted[order] for side, counted in counts.items()}
    return Marginal(attributes, counts, np.ones(len(cells), dtype=np.int64), cells[order])


def _distances(codes: Codes, marginal: Marginal) -> Iterator[tuple[str, Distance]]:
    """What is compared with the real marginal, and how far it is."""
    rows = codes.session.rows
    real = distances.shares(marginal.counts["real"], rows["real"])
    for side, counted in marginal.counts.items():
        if side != "real":
            yield side, distances.distance(real, distances.shares(counted, rows[side]), marginal.weight)
    yield "resample", distances.resampled(real, rows["synthetic"], marginal.weight)
    if len(marginal.attributes) == 2:
        yield "independent", _independent(marginal.table("real"))


def _independent(table: Counts) -> Distance:
    """The distance of a two-way marginal from the product of its one-way marginals."""
    shares = distances.shares(table, int(table.sum()))
    return distances.distance(shares, np.outer(shares.sum(axis=1), shares.sum(axis=0)))


def _add_queries(
    asked: Queries, side: str, marginal: Marginal, rows: Mapping[str, int], one_way: Sequence[Marginal]
) -> None:
    """Each combination of values that the columns have in the two tables is a query. Counts are scaled to the
    rows of the real table."""
    real, other = marginal.counts["real"], marginal.counts[side]
    kept = (real > 0) | (other > 0)
    scaled = other[kept] * (rows["real"] / rows[side])
    asked.errors.append(np.abs(real[kept] - scaled))
    asked.weights.append(marginal.weight[kept])
    queries = 1
    for attribute in marginal.attributes:
        single = one_way[attribute].counts
        queries *= int(((single["real"] > 0) | (single[side] > 0)).sum())
    asked.zeros += queries - int(marginal.weight[kept].sum())


# -- frames -------------------------------------------------------------------------------------


def _summary(frame: pd.DataFrame, codes: Codes) -> pd.DataFrame:
    """By number of columns and by what is compared: mean, median and worst of each distance.

    ``sse_rows`` is in squared rows of the real table.
    """
    frame = frame.assign(sse_rows=frame["sse"] * float(codes.session.rows["real"]) ** 2)
    grouped = frame.groupby(["ways", "compared"], sort=False)
    told = grouped.agg(marginals=("tv", "size"), possible=("ways", "first"))
    told["possible"] = [math.comb(len(codes.columns), ways) for ways in told["possible"]]
    for name in ("tv", "sse", "sse_rows", "max"):
        for kind, of in (("mean", "mean"), ("median", "median"), ("worst", "max")):
            told[f"{name}_{kind}"] = grouped[name].agg(of)
    return told.reset_index()


def _worst(frame: pd.DataFrame) -> pd.DataFrame:
    """The synthetic marginals with the greatest total variation, and what the others have there."""
    own = frame[frame["compared"] == "synthetic"].sort_values("tv", ascending=False, kind="stable")
    own = own.sort_values("ways", kind="stable").groupby("ways", sort=False).head(_WORST)
    for name in frame["compared"].unique():
        if name != "synthetic":
            other = frame[frame["compared"] == name].set_index(["ways", "place"])["tv"]
            own = own.join(other.rename(f"tv_{name}"), on=["ways", "place"])
    return own.drop(columns=["place", "compared"]).reset_index(drop=True)


def _conjunctions(queries: Mapping[tuple[int, str], Queries], codes: Codes) -> pd.DataFrame:
    """Absolute errors in rows: mean and maximum of the best 95, 99 and 100 % of the queries."""
    lines = []
    for (ways, side), asked in queries.items():
        line: dict[str, object] = {
            "ways": ways,
            "compared": side,
            "marginals": len(asked.weights),
            "possible": math.comb(len(codes.columns), ways),
            "queries": asked.zeros + sum(int(weight.sum()) for weight in asked.weights),
        }
        best = distances.best_errors(asked.errors, asked.weights, asked.zeros)
        for share, (mean, most) in zip(distances.BEST, best, strict=True):
            line |= {f"mean_{share:.0%}".rstrip("%"): mean, f"max_{share:.0%}".rstrip("%"): most}
        lines.append(line)
    return pd.DataFrame(lines)
