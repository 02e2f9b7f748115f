"""Do classes tie the rows of a family as real ones are? Agreement of two rows, in a generated shop.

    python benchmarks/family_classes.py [--persons 50000 5000] [--epsilon 1 10] [--runs 6] [--strangers]

Customers have a region, a segment, one to five orders, and a hidden taste. Three columns of an order follow
taste and segment, one the segment alone, one nothing. Printed are means over columns of the excess: how much
more two orders of a customer agree than orders of different customers. ``real``: of the shop. ``persons``:
of orders that are independent given region and segment. ``class``: given the class that was found. ``both``:
given both, which is what a model of these columns can reach: orders are drawn from the exact laws here, so
that only the class is judged. The stage has 12 % of the budget. ``--strangers``: taste and segment have no
say; nothing should be found. Needs numpy and DuckDB alone.
"""

from __future__ import annotations

import argparse
import statistics
import time

import duckdb
import numpy as np
from harness import machine, print_table
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.discovery.families import found_groups
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.families import Families, families_of
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

SIZES = {"region": 8, "segment": 4, "category": 8, "price": 12, "channel": 5, "priority": 4, "weekday": 6}
ROWS = tuple(SIZES)[2:]
TASTES = (0.3, 0.25, 0.2, 0.15, 0.1)
SEGMENTS = (0.4, 0.3, 0.2, 0.1)
UNIT = PrivacyUnit("customer", 8, together=True)
STAGE = (12, 88)
MEANS = ("real", "persons", "class", "both")


def shop(con: duckdb.DuckDBPyConnection, persons: int, seed: int, strangers: bool) -> None:
    """The table ``orders``."""
    random, fixed = np.random.default_rng(seed), np.random.default_rng(7)
    columns = {"region": random.integers(0, 8, persons), "segment": random.choice(4, persons, p=SEGMENTS)}
    taste = random.choice(len(TASTES), persons, p=TASTES)
    who = np.repeat(np.arange(persons), random.integers(1, 6, persons))
    columns = {name: values[who] for name, values in columns.items()}
    for place, name in enumerate(ROWS):
        size = SIZES[name]
        base, tastes, segments = (
            fixed.normal(0, spread, (count, size))
            for spread, count in ((0.7, 1), (1.0, len(TASTES)), (0.6, len(SEGMENTS)))
        )
        of_taste, of_segment = (place < 3 and not strangers), (place < 4 and not strangers)
        law = np.exp(base + of_taste * tastes[:, None] + of_segment * segments[None])
        ends = np.cumsum(law / law.sum(axis=-1, keepdims=True), axis=-1)
        drawn = (random.random(len(who))[:, None] > ends[taste[who], columns["segment"]]).sum(axis=1)
        columns[name] = np.minimum(drawn, size - 1)
    lists = [values.tolist() for values in (who, *columns.values())]
    names = ", ".join(f'unnest(?::INTEGER[]) AS "{name}"' for name in ("customer", *columns))
    con.execute(f"CREATE TABLE orders AS SELECT {names}", lists)


def excess_given(table: NDArray[np.int64]) -> float:
    """Excess of rows that are independent given all axes but the last."""
    cells = table.reshape(-1, table.shape[-1]).astype(np.float64)
    cells = cells[cells.sum(axis=1) > 0] / cells.sum()
    return float((cells**2 / cells.sum(axis=1, keepdims=True)).sum() - (cells.sum(axis=0) ** 2).sum())


def counter_of(engine: DuckDBEngine, families: Families, queries: list[MarginalQuery]) -> SqlCounter:
    """A counter of weights, and of pairs of rows."""
    return SqlCounter(
        engine, Fragment("orders"), families.domain, queries, unit=UNIT, families=families, siblings=True
    )


def once(persons: int, epsilon: float, seed: int, strangers: bool) -> dict[str, float]:
    """One shop, one stage."""
    attributes = (
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size))) for name, size in SIZES.items()
    )
    families = families_of(Domain(tuple(attributes)), UNIT, ("region", "segment"))
    assert families is not None
    whole = Budget.from_epsilon(epsilon, "1e-9")
    with duckdb.connect() as con:
        shop(con, persons, seed, strangers)
        engine, started = DuckDBEngine(con), time.perf_counter()
        plain = counter_of(engine, families, [MarginalQuery((name,)) for name in families.domain.names])
        with MemoryLedger().open_release(ReleaseKey(None, "r", None, {}), whole) as entry:
            door = LocalCurator(entry, ExactNoise())
            door.open(lambda _: plain, families.domain, WEIGHT)
            found, _ = found_groups(door, families, whole.split(STAGE)[0])
        seconds = time.perf_counter() - started
        pairs = plain.siblings([MarginalQuery((name, name)) for name in ROWS])
        real = [np.trace(t) / t.sum() - ((t.sum(axis=0) / t.sum()) ** 2).sum() for t in pairs]
        grouped = families.grouped(found)
        drawn = tuple(one.attribute.name for one in found)
        shared = ("region", "segment")
        scopes = [(*axes, name) for axes in (shared, drawn, (*drawn, *shared)) for name in ROWS]
        tables = counter_of(engine, grouped, queries := [MarginalQuery(scope) for scope in scopes])
        given = [excess_given(table) for table in tables.count(queries)]
    means = [np.mean(real), *(np.mean(part) for part in np.split(np.array(given), 3))]
    result = {name: float(mean) for name, mean in zip(MEANS, means, strict=True)}
    classes = sum(one.attribute.size for one in found)
    return {**result, "classes": classes, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--persons", nargs="+", type=int, default=[50_000, 5_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1, 10])
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--strangers", action="store_true")
    options = parser.parse_args()
    print(machine())
    lines = []
    for persons in options.persons:
        for epsilon in options.epsilon:
            runs = [once(persons, epsilon, seed, options.strangers) for seed in range(options.runs)]
            found = sum(run["classes"] > 0 for run in runs)
            means = [f"{statistics.mean(run[name] for run in runs):.4f}" for name in MEANS]
            median = statistics.median(run["classes"] for run in runs)
            seconds = statistics.median(run["seconds"] for run in runs)
            lines.append(
                [
                    f"{persons:,}",
                    f"{epsilon:g}",
                    f"{found} of {options.runs}",
                    f"{median:g}",
                    *means,
                    f"{seconds:.1f}",
                ]
            )
    print_table(["customers", "epsilon", "found", "classes", *MEANS, "seconds"], lines)


if __name__ == "__main__":
    main()
