"""PRIVATE: errors of k-way marginals and of positive conjunction queries, from the table of codes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.evaluation import distances
from dpsyn_sql.evaluation.codes import SIDES, Codes
from dpsyn_sql.evaluation.distances import Counts, Distance, Floats
from dpsyn_sql.progress import phase
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
class Errors:
    """What is collected of marginals of one number of columns: distances by what is compared with the real
    table, and errors of queries."""

    possible: int
    names: list[str] = field(default_factory=list)
    found: dict[str, list[Distance]] = field(default_factory=dict)
    errors: dict[str, list[Floats]] = field(default_factory=dict)
    weights: dict[str, list[Counts]] = field(default_factory=dict)
    zeros: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compared:
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


def marginals(codes: Codes, seed: int) -> Compared:
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
    all_errors = dict[int, Errors]()
    with phase("marginals", sum(map(len, wanted.values()))) as done:
        for ways, listed in wanted.items():
            all_errors[ways] = Errors(math.comb(number, ways))
            for attributes in listed:
                marginal = _read(codes, attributes)
                if ways <= 2:
                    kept[ways].append(marginal)
                _add(all_errors[ways], codes, marginal, kept[1])
                done(1)
    return Compared(
        _summary(all_errors, codes),
        _worst(all_errors),
        _conjunctions(all_errors),
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


def _add(errors: Errors, codes: Codes, marginal: Marginal, one_way: Sequence[Marginal]) -> None:
    rows = codes.session.rows
    errors.names.append(", ".join(codes.columns[attribute].column.name for attribute in marginal.attributes))
    real = distances.shares(marginal.counts["real"], rows["real"])
    for side in marginal.counts:
        if side != "real":
            other = distances.shares(marginal.counts[side], rows[side])
            errors.found.setdefault(side, []).append(distances.distance(real, other, marginal.weight))
            if len(marginal.attributes) <= _LONGEST_QUERY:
                _add_queries(errors, side, marginal, rows, one_way)
    expected = distances.resampled(real, rows["synthetic"], marginal.weight)
    errors.found.setdefault("resample", []).append(expected)
    if len(marginal.attributes) == 2:
        errors.found.setdefault("independent", []).append(_independent(marginal.table("real")))


def _independent(table: Counts) -> Distance:
    """The distance of a two-way marginal from the product of its one-way marginals."""
    shares = distances.shares(table, int(table.sum()))
    return distances.distance(shares, np.outer(shares.sum(axis=1), shares.sum(axis=0)))


def _add_queries(
    errors: Errors, side: str, marginal: Marginal, rows: Mapping[str, int], one_way: Sequence[Marginal]
) -> None:
    """Each combination of values that the columns have in the two tables is a query. Counts are scaled to the
    rows of the real table."""
    real, other = marginal.counts["real"], marginal.counts[side]
    kept = (real > 0) | (other > 0)
    scaled = other[kept] * (rows["real"] / rows[side])
    errors.errors.setdefault(side, []).append(np.abs(real[kept] - scaled))
    errors.weights.setdefault(side, []).append(marginal.weight[kept])
    queries = 1
    for attribute in marginal.attributes:
        single = one_way[attribute].counts
        queries *= int(((single["real"] > 0) | (single[side] > 0)).sum())
    errors.zeros[side] = errors.zeros.get(side, 0) + queries - int(marginal.weight[kept].sum())


# -- frames -------------------------------------------------------------------------------------


def _summary(all_errors: dict[int, Errors], codes: Codes) -> pd.DataFrame:
    """By number of columns and by what is compared: mean, median and worst of each distance.

    ``sse_rows`` is in squared rows of the real table.
    """
    squared = float(codes.session.rows["real"]) ** 2
    lines = []
    for ways, errors in all_errors.items():
        for compared, found in errors.found.items():
            line: dict[str, object] = {
                "ways": ways,
                "compared": compared,
                "marginals": len(found),
                "possible": errors.possible,
            }
            values = {name: np.array([getattr(one, name) for one in found]) for name in ("tv", "sse", "max")}
            values["sse_rows"] = values["sse"] * squared
            for name in ("tv", "sse", "sse_rows", "max"):
                line |= {f"{name}_mean": values[name].mean(), f"{name}_median": np.median(values[name])}
                line[f"{name}_worst"] = values[name].max()
            lines.append(line)
    return pd.DataFrame(lines)


def _worst(all_errors: dict[int, Errors]) -> pd.DataFrame:
    """The synthetic marginals with the greatest total variation, and what the others have there."""
    lines = []
    for ways, errors in all_errors.items():
        order = np.argsort([-one.tv for one in errors.found["synthetic"]], kind="stable")
        for place in order[:_WORST].tolist():
            own = errors.found["synthetic"][place]
            line = {
                "ways": ways,
                "columns": errors.names[place],
                "tv": own.tv,
                "sse": own.sse,
                "max": own.max,
            }
            others = {name: found[place].tv for name, found in errors.found.items() if name != "synthetic"}
            lines.append(line | {f"tv_{name}": value for name, value in others.items()})
    return pd.DataFrame(lines)


def _conjunctions(all_errors: dict[int, Errors]) -> pd.DataFrame:
    """Absolute errors in rows: mean and maximum of the best 95, 99 and 100 % of the queries."""
    lines = []
    for ways, side, errors in _queried(all_errors):
        weights = errors.weights[side]
        line: dict[str, object] = {
            "ways": ways,
            "compared": side,
            "marginals": len(weights),
            "possible": errors.possible,
            "queries": errors.zeros[side] + int(sum(int(weight.sum()) for weight in weights)),
        }
        best = distances.best_errors(errors.errors[side], weights, errors.zeros[side])
        for share, (mean, most) in zip(distances.BEST, best, strict=True):
            line |= {f"mean_{share:.0%}".rstrip("%"): mean, f"max_{share:.0%}".rstrip("%"): most}
        lines.append(line)
    return pd.DataFrame(lines)


def _queried(all_errors: dict[int, Errors]) -> Iterator[tuple[int, str, Errors]]:
    for ways, errors in all_errors.items():
        for side in errors.errors:
            yield ways, side, errors
