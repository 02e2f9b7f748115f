"""Rows of a copula from pools, beside rows with normals of their own.

    python benchmarks/copula_rows.py [--rows 20000000] [--against 8000000]

The copula is fitted to the exact tables of a million rows of the table of ``billion.py``: 15 attributes, 397
values, 395 normals a row. First the rate of ``--rows`` rows. Then ``--against`` rows of either kind, twice:
total variation of all pairs and of 60 triples of attributes between two samples; chance, the mean of
(a - b)^2 / (a + b) over their cells, which is 1 if rows are independent and less if counts are met; rows that
occurred before; and the correlation of the errors of a batch with those of the next of its pool.
"""

from __future__ import annotations

import os
import time
from itertools import combinations

import duckdb
import numpy as np
from harness import apart, command_line, machine, peak_mebibytes, print_table
from hundred_million import SIZES
from large_tables import Shape

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.copula import fit_copula
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.rows.sample import copula
from dpsyn_sql.rows.sample.systematic import Batches

PAIRS = tuple(combinations(range(len(SIZES)), 2))
TRIPLES = tuple(
    scope for scope in combinations(range(len(SIZES)), 3) if np.prod([SIZES[v] for v in scope]) < 3e4
)
Counts = list[np.ndarray]


def sampler(rows: int = 1_000_000) -> Batches:
    """Of a copula fitted without noise."""
    with duckdb.connect() as con:
        con.execute("SET enable_progress_bar = false")
        found = con.execute(Shape("", rows, SIZES).query(rows)).fetchnumpy()
    codes = np.array([found[f"a{i}"] for i in range(len(SIZES))])
    domain = Domain(
        tuple(
            Attribute(f"a{i}", "INTEGER", "categorical", tuple(range(size))) for i, size in enumerate(SIZES)
        )
    )
    scopes = [(i,) for i in range(len(SIZES))] + list(PAIRS)
    tables = zip(scopes, counts(codes, scopes), strict=True)
    return copula.copula_rows(
        fit_copula(
            domain,
            [
                NoisyMarginal(tuple(f"a{i}" for i in scope), table.reshape([SIZES[i] for i in scope]), 0.0)
                for scope, table in tables
            ],
        )
    )


def counts(codes: np.ndarray, scopes: list[tuple[int, ...]]) -> Counts:
    """Flat tables over ``scopes`` of codes (attributes, rows)."""
    found = []
    for scope in scopes:
        cells = codes[scope[0]].astype(np.int32)
        for axis in scope[1:]:
            cells = cells * SIZES[axis] + codes[axis]
        found.append(np.bincount(cells, minlength=int(np.prod([SIZES[axis] for axis in scope]))))
    return found


def rate(rows: int) -> tuple[float, float, float]:
    """Seconds of all cores and by the clock for a million rows, and peak memory (MiB)."""
    drawn = sampler().batches(rows, 1)
    processor, clock = time.process_time(), time.perf_counter()
    for _ in drawn:
        pass
    spent = time.process_time() - processor, time.perf_counter() - clock
    return spent[0] * 1e6 / rows, spent[1] * 1e6 / rows, peak_mebibytes()


def sampled(rows: int, seed: int, fresh: bool) -> tuple[Counts, int, float]:
    """Tables of pairs and triples, rows that occurred before, and how pairs of a batch follow its pool."""
    if fresh:
        copula.FRESH_ROWS = rows
    picked = np.random.default_rng(0).choice(len(TRIPLES), 60, replace=False)
    scopes = [*PAIRS, *(TRIPLES[i] for i in picked)]
    total, batches = [np.zeros(1, np.int64)] * len(scopes), []
    hashes, done = np.zeros(rows, np.uint64), 0
    for batch in sampler().batches(rows, seed):
        codes = batch.T
        own = counts(codes, scopes)
        total = [a + b for a, b in zip(total, own, strict=True)]
        batches.append(np.concatenate(own[: len(PAIRS)]).astype(np.float32) / len(batch))
        part = hashes[done : done + len(batch)]
        for column in codes:
            part[:] = (part ^ column) * np.uint64(0x9E3779B97F4A7C15)
            part ^= part >> np.uint64(29)
        done += len(batch)
    errors = np.array(batches) - np.mean(batches, axis=0)
    follows = float((errors[2:] * errors[:-2]).mean() / (errors**2).mean())
    return total, rows - int(np.unique(hashes).size), follows


def compared(first: Counts, second: Counts) -> list[object]:
    """Mean total variation of pairs and of triples, and the mean of (a - b)^2 / (a + b) in their cells."""
    rows = first[0].sum()
    variation = [0.5 * np.abs(a - b).sum() / rows for a, b in zip(first, second, strict=True)]
    chance = []
    for a, b in zip(first, second, strict=True):
        many = a + b > 20
        chance.append(((a - b)[many] ** 2 / (a + b)[many]).mean())
    cut = len(PAIRS)
    parts = (variation[:cut], variation[cut:], chance[:cut], chance[cut:])
    return [f"{float(np.mean(part)):.5f}" for part in parts]


def main() -> None:
    """The rate, then both kinds of rows against each other."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--against", type=int, default=8_000_000)
    arguments = parser.parse_args()
    processor, clock, memory = apart(rate, arguments.rows)
    print_table(
        ["rows", "processor s per million", "s per million", "peak MiB"],
        [[f"{arguments.rows:,}", processor, clock, round(memory)]],
        f"load {os.getloadavg()[0]:.1f}; {machine()}",
    )
    kinds = {"pools": False, "own normals": True}
    found = {
        (name, seed): apart(sampled, arguments.against, seed, fresh)
        for name, fresh in kinds.items()
        for seed in ((3, 4) if fresh else (1, 2))
    }
    print_table(
        ["first", "second", "pairs", "triples", "chance, pairs", "chance, triples"],
        [
            [f"{a[0]} {a[1]}", f"{b[0]} {b[1]}", *compared(found[a][0], found[b][0])]
            for a, b in combinations(found, 2)
        ],
        f"{arguments.against:,} rows each",
    )
    print_table(
        ["rows of", "rows that occurred before", "follows the last batch of its pool"],
        [[f"{name} {seed}", equal, follows] for (name, seed), (_, equal, follows) in found.items()],
    )


if __name__ == "__main__":
    main()
