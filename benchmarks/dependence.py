"""What rows keep of dependence: correlations, cells that cannot be, one-way tables beside ``independent``.

    python benchmarks/dependence.py [--tables adult credit] [--methods adaptive independent]
        [--epsilon 1 10] [--seeds 5]

Declared domains, counts in memory and numpy's noise as in ``variants.py``: paired by seed, no privacy, only
for public tables. Medians over the seeds, per table and method:

    Spearman     mean / largest absolute difference of the rank correlation of two ordered columns, over all
                 pairs, real rows against sampled ones; rows without a value in either are left out
    Pearson      the same of values, each code standing for the mean real value in it
    impossible   share of sampled rows in cells of pair tables in which the source has no row, mean over all
                 pairs
    one-way      mean total variation distance of one-way tables
    two-way      the same of all pairs

``credit`` is made here: 30,000 rows with the amounts of six monthly bills, heavy tails, Spearman about 0.88
from one month to the next, six payments, a limit and two categories.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
from comparison import chosen, shares, variations
from harness import DATA, command_line, machine, methods_wanted, need, print_table
from numpy.typing import NDArray
from real_tables import REAL_TABLES
from scipy.stats import rankdata
from variants import InMemory, SeededNoise

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.file import shape_of
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.methods import method_of
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

FLIGHTS = [
    "month",
    "dep_delay",
    "arr_delay",
    "carrier",
    "origin",
    "air_time",
    "distance",
    "hour",
    "sched_dep_time",
    "dep_time",
    "arr_time",
]
DIABETES = [
    "race",
    "gender",
    "age",
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
    "A1Cresult",
    "insulin",
    "change",
    "diabetesMed",
    "readmitted",
]
AMOUNTS = [-5_000, -1, 0, 1, 200, 400, 700, 1_000, 1_500, 2_000, 3_000, 4_500, 7_000, 10_000, 15_000]
AMOUNTS += [20_000, 25_000, 30_000, 40_000, 50_000, 60_000, 75_000, 90_000, 110_000, 130_000, 150_000]
AMOUNTS += [180_000, 220_000, 260_000, 300_000, 400_000, 600_000, 1_000_000]
CREDIT_ROWS = 30_000


@dataclass(frozen=True)
class Coded:
    """Codes of real rows over a declared domain, and what each code of an ordered attribute is worth."""

    domain: Domain
    codes: Codes
    values: Mapping[int, Floats]


def coded(con: duckdb.DuckDBPyConnection, table: str, spec: Mapping[str, Any], kept: Sequence[str]) -> Coded:
    """The rows of a table by the rule of releases; of ``kept`` columns, or all that are measured."""
    described = con.execute(f"DESCRIBE FROM {table}").fetchall()
    columns = tuple(Column(row[0], row[1]) for row in described if not kept or row[0] in kept)
    declared = {
        **spec,
        "columns": {c.name: spec["columns"][c.name] for c in columns if c.name in spec["columns"]},
    }
    relation = Relation(table, "table", Fragment(table), columns)
    domain = shape_of({"columns": declared["columns"]}, relation, discover=False).domain
    expressions = [str(attribute.code(attribute.columns[0].read()).code) for attribute in domain.attributes]
    names = [f"c{index}" for index in range(len(expressions))]
    select = ", ".join(f"CAST({e} AS BIGINT) AS {n}" for e, n in zip(expressions, names, strict=True))
    found = con.execute(f"SELECT {select} FROM {table}").fetchnumpy()
    codes = np.stack([np.asarray(found[name]) for name in names], axis=1).astype(np.int64)
    return Coded(domain, codes, dict(_values(con, table, domain, codes)))


def _values(
    con: duckdb.DuckDBPyConnection, table: str, domain: Domain, codes: Codes
) -> list[tuple[int, Floats]]:
    """Of each ordered attribute the mean value of the rows of each regular code; codes for labels."""
    found = []
    for index, attribute in enumerate(domain.attributes):
        if attribute.regular < 3 or not attribute.ordered:
            continue
        worth = np.arange(attribute.regular, dtype=np.float64)
        if attribute.kind == "numeric":
            query = f"SELECT CAST({attribute.columns[0].read()} AS DOUBLE) AS v FROM {table}"
            column = np.ma.filled(con.execute(query).fetchnumpy()["v"].astype(np.float64), np.nan)
            for code in range(attribute.regular):
                own = column[codes[:, index] == code]
                own = own[np.isfinite(own)]
                worth[code] = own.mean() if own.size else attribute.edges[code]
        found.append((index, worth))
    return found


def real(name: str, kept: Sequence[str] = ()) -> Callable[[], Coded]:
    """A table of ``real_tables.py`` with its declared domain."""

    def load() -> Coded:
        with duckdb.connect() as con:
            table = REAL_TABLES[name]
            need(DATA / table.path)
            table.load(con, DATA)
            return coded(con, name, table.declared(), kept)

    return load


def credit() -> Coded:
    """Bills that follow each other, heavy tails, a spike at 0; payments that follow the bills."""
    rng = np.random.default_rng(3)
    level = rng.standard_normal(CREDIT_ROWS)
    limit = np.round(np.exp(11.8 + 0.45 * level + 0.55 * rng.standard_normal(CREDIT_ROWS)), -4) + 10_000
    use = 1.6 * level + rng.standard_normal(CREDIT_ROWS)
    frame: dict[str, NDArray[np.generic]] = {"credit_limit": limit.astype(np.int64)}
    own = use
    for month in range(6):
        own = use * 0.25 + 0.75 * own + (1.0 if month else 0.6) * rng.standard_normal(CREDIT_ROWS)
        bill = np.where(own < -2.2, 0.0, np.exp(9.9 + 1.05 * np.tanh(own / 3) * 2 + 0.25 * own))
        frame[f"bill_{month + 1}"] = np.minimum(bill, 990_000).astype(np.int64)
        paid = bill * rng.beta(0.5, 4.0, CREDIT_ROWS) * (rng.random(CREDIT_ROWS) > 0.18)
        frame[f"paid_{month + 1}"] = np.rint(paid).astype(np.int64)
    frame["education"] = np.clip(
        np.rint(2.2 - 0.5 * level + 0.8 * rng.standard_normal(CREDIT_ROWS)), 0, 5
    ).astype(int)
    frame["default"] = (rng.random(CREDIT_ROWS) < 1 / (1 + np.exp(1.4 + 0.5 * level - 0.2 * use))).astype(int)
    amounts = {"type": "numeric", "edges": AMOUNTS}
    spec = {name: amounts for name in frame if name not in ("education", "default")}
    spec |= {
        "education": {"type": "categorical", "categories": list(range(6)), "other": False, "ordered": True},
        "default": {"type": "categorical", "categories": [0, 1], "other": False},
    }
    with duckdb.connect() as con:
        con.register("frame", frame)
        con.execute("CREATE TABLE credit AS FROM frame")
        return coded(con, "credit", {"columns": spec}, ())


TABLES: dict[str, Callable[[], Coded]] = {
    "adult": real("adult_all"),
    "flights": real("flights", FLIGHTS),
    "green_taxi": real("green_taxi"),
    "diabetes": real("diabetes_130", DIABETES),
    "credit": credit,
}


def sampled(table: Coded, counter: InMemory, method: Recipe, epsilon: float, seed: int) -> Codes:
    """Rows of one release, as codes."""
    budget = Budget.from_epsilon(epsilon, 1e-9).without_thresholds()
    ledger = MemoryLedger()
    with ledger.open_release(ReleaseKey("dependence", "dependence", None, {}), budget) as entry:
        door = LocalCurator(entry, SeededNoise(seed))
        door.open(lambda _: counter, table.domain)
        model = method.run(door, table.domain, budget)
    ledger.close()
    rows = max(1, round(model.total))
    return np.concatenate([*model.sampler().batches(rows, seed)]).astype(np.int64)


def correlations(table: Coded, rows: Codes, *, ranks: bool) -> Floats:
    """Of all pairs of ordered attributes, one after the other."""
    found = []
    for (one, first), (other, second) in combinations(table.values.items(), 2):
        there = (rows[:, one] < first.size) & (rows[:, other] < second.size)
        a, b = rows[there, one], rows[there, other]
        x, y = (rankdata(a), rankdata(b)) if ranks else (first[a], second[b])
        constant = x.size < 2 or not (np.ptp(x) and np.ptp(y))
        found.append(0.0 if constant else float(np.corrcoef(x, y)[0, 1]))
    return np.array(found)


def impossible(table: Coded, rows: Codes) -> float:
    """Share of rows in cells of pair tables without a row of the source, mean over pairs."""
    sizes = table.domain.shape()
    return statistics.fmean(
        float(shares(rows, sizes, pair)[shares(table.codes, sizes, pair) == 0].sum())
        for pair in chosen(len(sizes), 2)
    )


def figures(table: Coded, rows: Codes) -> list[float]:
    """One line: Spearman mean and largest, Pearson mean and largest, impossible, one-way, two-way."""
    apart = [
        np.abs(correlations(table, table.codes, ranks=ranks) - correlations(table, rows, ranks=ranks))
        for ranks in (True, False)
    ]
    sizes = table.domain.shape()
    found = [float(part) for own in apart for part in (own.mean(), own.max())]
    found.append(impossible(table, rows))
    for ways in (1, 2):
        found.append(statistics.fmean(variations(table.codes, rows, sizes, chosen(len(sizes), ways))))
    return found


def main() -> None:
    """Print one table."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument("--methods", nargs="+", default=["adaptive", "independent"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[list[object]] = []
    for name in arguments.tables:
        table = TABLES[name]()
        counter = InMemory(table.domain, table.codes)
        for epsilon in arguments.epsilon:
            for label, setting in methods_wanted(arguments.methods).items():
                method = method_of(setting)
                found = [
                    figures(table, sampled(table, counter, method, epsilon, seed))
                    for seed in range(arguments.seeds)
                ]
                middle = [f"{statistics.median(column):.4f}" for column in zip(*found, strict=True)]
                spearman, pearson = " / ".join(middle[:2]), " / ".join(middle[2:4])
                rows.append([name, f"{epsilon:g}", label, spearman, pearson, *middle[4:]])
                print(*rows[-1], flush=True)
    print_table(
        ["table", "epsilon", "method", "Spearman", "Pearson", "impossible", "one-way", "two-way"],
        rows,
        f"delta 1e-9, medians over {arguments.seeds} seeds; {machine()}",
    )


if __name__ == "__main__":
    main()
