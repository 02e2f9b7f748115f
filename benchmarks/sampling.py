"""Rows a second drawn from a graphical model of 15 attributes: SQL beside numpy.

    python benchmarks/sampling.py [--rows 4000000] [--one-query 10000000] [--runs 3] [--memory-limit 4GB]

Medians of several runs. Until staged, not decoded; single queries are those of the macros of a release,
values in order. The model is random, of 15 attributes of 2 to 16 working bins: each is in a clique with the
two before it, and three have 74 codes.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
from harness import machine, peak_mebibytes, print_table

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.rows.sample.sql_rows import alias_lists, append_network
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from, persist_beside
from dpsyn_sql.rows.write.staging import append, make_room
from dpsyn_sql.sqltext.fragments import Fragment

SIZES = (16, 8, 12, 16, 7, 14, 6, 5, 2, 12, 10, 12, 16, 2, 9)
FOLDED = (0, 3, 12)
CODES = 74
STAGED = Fragment("temp.main.staged")


def random_model() -> GraphicalModel:
    """Cliques of three neighbours."""
    rng = np.random.default_rng(0)
    scopes = [(i, i + 1, i + 2) for i in range(len(SIZES) - 2)]
    potentials = {scope: rng.normal(0, 1.5, [SIZES[v] for v in scope]) for scope in scopes}
    beliefs = calibrate(junction_tree(SIZES, potentials), potentials)
    bins = [np.sort(np.arange(CODES) % k) if i in FOLDED else np.arange(k) for i, k in enumerate(SIZES)]
    within = [rng.dirichlet(np.ones(b.size)) if i in FOLDED else np.ones(b.size) for i, b in enumerate(bins)]
    within = [w / np.bincount(b, weights=w)[b] for w, b in zip(within, bins, strict=True)]
    domain = Domain(
        tuple(Attribute(f"x{i}", "INTEGER", "categorical", tuple(range(b.size))) for i, b in enumerate(bins))
    )
    return GraphicalModel(domain, 1e6, beliefs, tuple(bins), tuple(within))


def kept(model: GraphicalModel) -> StoredRelease:
    """The model as a release keeps it."""
    shape = Shape(model.domain.attributes, order=model.domain.names)
    labels = [attribute.labels for attribute in model.domain.attributes]
    return StoredRelease(
        name="r",
        release_id="id",
        created="2026-01-01T00:00:00Z",
        facts={},
        shape=shape,
        model=model,
        drawn=drawn_from(model),
        measurements=(),
        labels=labels,
    )


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--one-query", type=int, default=0, help="rows of the single query; 0: not run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory-limit", default="4GB")
    arguments = parser.parse_args()
    model = random_model()
    network = model.network()
    lines: list[list[object]] = []

    def once(draw: Callable[[DuckDBEngine], object]) -> tuple[float, float]:
        with duckdb.connect(config={"memory_limit": arguments.memory_limit}) as con:
            before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            draw(DuckDBEngine(con))
            seconds = time.perf_counter() - begun
            after = resource.getrusage(resource.RUSAGE_SELF)
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def line(name: str, rows: int, draw: Callable[[DuckDBEngine], object]) -> None:
        seconds, busy = map(statistics.median, zip(*(once(draw) for _ in range(arguments.runs)), strict=True))
        lines.append([name, rows, seconds, rows / seconds / 1e6, busy, peak_mebibytes()])

    def independent(engine: DuckDBEngine) -> None:
        make_room(engine, model.domain, STAGED)
        with alias_lists(engine, network) as lists:
            append_network(engine, network, lists, arguments.rows, 1, STAGED)

    line("SQL, independent rows", arguments.rows, independent)

    def low_variance(engine: DuckDBEngine) -> None:
        make_room(engine, model.domain, STAGED)
        append(engine, model.domain, model.sampler().batches(arguments.rows, 1), STAGED, 0)

    line("numpy, low variance", arguments.rows, low_variance)
    if arguments.one_query:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.duckdb"
            with duckdb.connect() as con:
                persist_beside(DuckDBEngine(con), path, [kept(model)])

            def macro(engine: DuckDBEngine, name: str) -> None:
                engine.execute(Fragment(f"ATTACH '{path}' AS model (READ_ONLY)"), step="attach")
                engine.execute(Fragment("USE model"), step="use")
                call = f"FROM dpsyn.{name}_r({arguments.one_query}, 1)"
                engine.execute(Fragment(f"CREATE TEMP TABLE drawn AS {call}"), step="sample")

            for name, prefix in (("independent rows", "iid"), ("low variance", "sample")):
                line(
                    f"SQL, {name}, one query",
                    arguments.one_query,
                    lambda engine, prefix=prefix: macro(engine, prefix),
                )
    header = ["how", "rows", "seconds", "million rows/s", "CPU seconds", "peak MiB so far"]
    print_table(header, lines, machine())


if __name__ == "__main__":
    main()
