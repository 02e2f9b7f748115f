"""Tables of integer codes with public sizes: released whole, scored by their two- and three-way marginals.

The scores compare with private data: only for public tables.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
from harness import Stopwatch, timed
from numpy.typing import NDArray

import dpsyn_sql

TRIPLES, TRIPLE_SEED = 200, 0


def domain_of(sizes: Mapping[str, int], ordered: Collection[str]) -> dict[str, object]:
    """Public codes 0..size-1."""
    return {
        "columns": {
            name: {
                "type": "categorical",
                "categories": list(range(size)),
                "ordered": name in ordered,
                "other": False,
            }
            for name, size in sizes.items()
        }
    }


def distance(
    real: NDArray[np.int64], synthetic: NDArray[np.int64], sizes: Sequence[int], axes: Sequence[int]
) -> float:
    """Total variation distance of one marginal; 1 from an empty table."""
    shape = [sizes[axis] for axis in axes]
    if not len(synthetic):
        return 1.0
    tables = [
        np.bincount(np.ravel_multi_index(rows[:, axes].T, shape), minlength=int(np.prod(shape))) / len(rows)
        for rows in (real, synthetic)
    ]
    return float(np.abs(tables[0] - tables[1]).sum() / 2)


def score(real: NDArray[np.int64], synthetic: NDArray[np.int64], sizes: Sequence[int]) -> tuple[float, float]:
    """Mean distance over all pairs and over seeded triples."""
    pairs = list(combinations(range(len(sizes)), 2))
    triples = list(combinations(range(len(sizes)), 3))
    chosen = np.random.default_rng(TRIPLE_SEED).choice(
        len(triples), min(TRIPLES, len(triples)), replace=False
    )
    groups = (pairs, [triples[index] for index in chosen])
    two, three = (
        statistics.mean(distance(real, synthetic, sizes, list(axes)) for axes in group) for group in groups
    )
    return two, three


def released(
    load: Callable[[duckdb.DuckDBPyConnection], None],
    sizes: Mapping[str, int],
    ordered: Collection[str],
    method: str,
    epsilon: float,
    delta: float,
) -> tuple[tuple[float, float], Stopwatch]:
    """Scores and times of one whole release of the table ``coded`` that ``load`` makes."""
    columns = ", ".join(f'"{name}"' for name in sizes)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "a.duckdb")) as con:
        load(con)
        with timed() as watch:
            dpsyn_sql.release(
                con,
                "coded",
                epsilon=epsilon,
                delta=delta,
                method=method,
                domain=domain_of(sizes, ordered),
                ledger=Path(folder) / "ledger",
            )
        tables = []
        for table in ("coded", "coded_synthetic"):
            found = con.execute(f"SELECT {columns} FROM {table}").fetchnumpy()
            tables.append(np.stack([found[name] for name in sizes], axis=1).astype(np.int64))
    return score(tables[0], tables[1], list(sizes.values())), watch
