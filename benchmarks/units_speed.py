"""Seconds and memory of drawing units and their rows, and of writing them.

    python benchmarks/units_speed.py [--units 1000000] [--walk]

A random model of 10 columns (8 of 20 codes, each beside one of two columns of the unit and the column before
it) and 1 to 64 rows a unit, about 10 on average. With --walk the first column follows from that of the row
before, and rows are drawn rank by rank. Run each form in a process of its own: memory is the peak of all.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
from harness import machine, peak_mebibytes, print_table

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.roles import UnitId
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.planning.families import Families, before, numbers_of_rows
from dpsyn_sql.rows.sample.walk import FamilySampler
from dpsyn_sql.rows.write.families import stage, together
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from, persist
from dpsyn_sql.sqltext.fragments import Fragment

MOST = 64
STAGED = Fragment("temp.main.staged")


def column(name: str, size: int) -> Attribute:
    """A categorical attribute of whole numbers."""
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)))


def random_model(walk: bool) -> GraphicalModel:
    """Columns x0 to x7 of the row, x8 and x9 of the unit, and what ties rows together."""
    rng = np.random.default_rng(0)
    own = [column(f"x{place}", 20 if place < 8 else 4) for place in range(10)]
    hidden = [numbers_of_rows("n", MOST), *([before("p", own[0]), column("place", 4)] if walk else [])]
    families = Families(
        Domain((*own, *hidden)),
        10,
        frozenset({"x8", "x9", "n"}),
        "n",
        (("p", "x0"),) if walk else (),
        "place" if walk else "",
    )
    names, sizes = families.domain.names, families.domain.shape()
    pairs = [("x8", "n"), ("x8", "x9"), ("x0", "n"), *((f"x{i}", f"x{i + 1}") for i in range(7))]
    pairs += [(f"x{i}", "x8" if i % 2 else "x9") for i in range(8)] + [("x0", "p"), ("x0", "place")] * walk
    scopes = [tuple(map(names.index, pair)) for pair in pairs]
    potentials = {scope: rng.normal(0, 0.7, [sizes[v] for v in scope]) for scope in scopes}
    potentials[(names.index("n"),)] = -0.1 * np.arange(sizes[names.index("n")])
    beliefs = calibrate(junction_tree(sizes, potentials, families.levels), potentials)
    bins, within = [np.arange(size) for size in sizes], [np.ones(size) for size in sizes]
    return GraphicalModel(families.domain, 1e6, beliefs, tuple(bins), tuple(within), families=families)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--walk", action="store_true")
    arguments = parser.parse_args()
    model, units = random_model(arguments.walk), arguments.units
    families, sampler = model.families, model.sampler()
    if families is None or not isinstance(sampler, FamilySampler):
        raise SystemExit("the model has no units")
    measured = model.domain.attributes[:10]
    roles = (UnitId("unit", "BIGINT"),)
    shape = together(Shape(measured, roles, ("unit", *model.domain.names[:10])), families)
    lines: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.duckdb"
        with duckdb.connect(str(path), config={"threads": 2, "memory_limit": "3GB"}) as con:
            engine = DuckDBEngine(con)
            begun, busy = time.perf_counter(), time.process_time()

            def line(what: str, rows: int) -> None:
                nonlocal begun, busy
                seconds = [time.perf_counter() - begun, time.process_time() - busy]
                lines.append([what, rows, *seconds, peak_mebibytes()])
                begun, busy = time.perf_counter(), time.process_time()

            rows = sum(len(batch) for batch in sampler.batches(units, 1))
            line("drawn in numpy", rows)
            staged = stage(engine, shape, model, units, STAGED, 1)
            line("drawn and staged", rows)
            persons = units_of(None, rows, staged.persons)
            con.execute(f"CREATE TABLE made AS {output_statement(shape, STAGED, rows, persons, 1)}")
            line("decoded and written", rows)
            labels = [list(range(own.size)) for own in model.domain.attributes]
            kept = StoredRelease("r", "id", "2026-01-01", {}, shape, model, drawn_from(model), (), labels)
            with engine.transaction():
                persist(engine, path.stem, kept)
            line("model stored", 0)
            for kind in ("sample", "iid"):
                number = units // 10
                found = con.execute(f"SELECT count(*) FROM dpsyn.{kind}_r({number}, 1)").fetchone()
                line(f"macro {kind}, {number:,} units", found[0] if found else 0)
    print(machine())
    print_table(["what", "rows", "seconds", "of processors", "peak MiB"], lines)


if __name__ == "__main__":
    main()
