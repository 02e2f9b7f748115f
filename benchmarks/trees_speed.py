"""How long it takes to grow a tree through the door and to count its leaves, level by level.

    python benchmarks/trees_speed.py [--points 10000000] [--strings 90000000] [--memory 4GB] [--epsilon 1]

Points: venues of gowalla_nyc drawn evenly and moved by up to 0.0005 degrees. Strings: words as often as their
frequencies say; with --phrases each is followed by another, so that most of them differ. All lie in a DuckDB
file; counting has 2 threads and the memory that is given.
"""

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path

import duckdb

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import LeafQuery, TreeQuery
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.sqltext.fragments import Fragment

DATA = Path(__file__).parents[2] / "shared" / "data"
CHECKINS = DATA / "gowalla_nyc" / "checkins.parquet"
VENUES = DATA / "gowalla_nyc" / "venues.parquet"
WORDS = DATA / "english_word_frequencies" / "word_frequencies.parquet"
LONGEST = 20
ALPHABET = " 'abcdefghijklmnopqrstuvwxyz"


def points_of(con, rows):
    con.execute(
        f"CREATE TABLE t AS SELECT lat + (random() - .5) / 1000 AS lat, lon + (random() - .5) / 1000 AS lon "
        f"FROM (SELECT row_number() OVER () - 1 AS place, lat, lon FROM '{VENUES}') AS v "
        f"JOIN (SELECT CAST(floor(random() * (SELECT count(*) FROM '{VENUES}')) AS BIGINT) AS place "
        f"FROM range({rows})) AS drawn USING (place)"
    )


def strings_of(con, rows):
    con.execute(
        f"CREATE TABLE t AS SELECT word AS s FROM '{WORDS}', "
        f"range(CAST(ceil(count * {rows} / (SELECT sum(count) FROM '{WORDS}')) AS BIGINT))"
    )


def phrases_of(con, rows):
    """Every word is followed by one that is drawn evenly."""
    strings_of(con, rows)
    con.execute(f"CREATE TABLE words AS SELECT row_number() OVER () - 1 AS place, word FROM '{WORDS}'")
    con.execute(
        "CREATE OR REPLACE TABLE t AS SELECT s || ' ' || word AS s FROM (SELECT s, CAST(floor(random() * "
        "(SELECT count(*) FROM words)) AS BIGINT) AS place FROM t) AS drawn JOIN words USING (place)"
    )


class Timed:
    """A counter that prints how long each level took."""

    def __init__(self, inner):
        self.inner, self.level, self.began = inner, 0, time.perf_counter()

    def nodes(self, hierarchies, nodes):
        noise, start = time.perf_counter() - self.began, time.perf_counter()
        counts = self.inner.nodes(hierarchies, nodes)
        self.began = time.perf_counter()
        several = len(set(nodes.levels[0].tolist())) > 1
        name, held = "leaves" if several else f"level {self.level}", int((counts > 0).sum())
        took = f"counted {self.began - start:6.1f} s  before it {noise:5.1f} s"
        print(f"  {name:8}  {len(nodes):9,} nodes  {held:9,} with rows  {took}", flush=True)
        self.level += 1
        return counts

    def outside(self, hierarchies):
        return self.inner.outside(hierarchies)


def grown(con, hierarchy, splitter, epsilon):
    """Grow one tree and count its leaves, each with half of the budget; print how long both took."""
    budget = Budget.from_epsilon(epsilon, "1e-9").without_thresholds()
    share, rest = budget.split([1, 1])
    key = ReleaseKey(None, "r", None, {})
    with (
        closing(SqlDiscoveryCounter(DuckDBEngine(con), Fragment("t"))) as counting,
        closing(MemoryLedger()) as ledger,
        ledger.open_release(key, budget) as entry,
    ):
        began = time.perf_counter()
        door = LocalCurator(entry, ExactNoise())
        door.discover(Timed(counting), 1)
        tree = door.ask(TreeQuery((hierarchy,), splitter, hierarchy.depth), share).read()
        middle = time.perf_counter()
        counts = door.ask(LeafQuery((hierarchy,), tree.levels, tree.nodes), rest).read()
        end = time.perf_counter()
    print(
        f"{splitter}: {len(tree.nodes[0]):,} leaves; tree {middle - began:.1f} s, "
        f"leaves {end - middle:.1f} s, both {end - began:.1f} s; {counts.values[:-2].sum():,} rows"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--strings", type=int, default=90_000_000)
    parser.add_argument("--phrases", type=int, default=0)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--splitters", nargs="*", default=["privtree"])
    asked = parser.parse_args()
    columns = tuple(HierarchyColumn(name, "DOUBLE") for name in ("lat", "lon"))
    place = Points("place", columns, (40.4, -74.3), (41.0, -73.6), 20)
    word = Texts(HierarchyColumn("s", "VARCHAR"), ALPHABET, tuple(range(1, LONGEST + 1)), LONGEST)
    tables = (
        (asked.points, points_of, place),
        (asked.strings, strings_of, word),
        (asked.phrases, phrases_of, word),
    )
    for rows, fill, hierarchy in tables:
        if not rows:
            continue
        with tempfile.TemporaryDirectory() as folder, duckdb.connect(f"{folder}/t.duckdb") as con:
            con.execute(f"SET threads = 2; SET memory_limit = '{asked.memory}'")
            con.execute("SET preserve_insertion_order = false")
            fill(con, rows)
            counted = "SELECT count(*) FROM t"
            (number,) = con.execute(counted).fetchone()
            print(f"{number:,} rows, depth {hierarchy.depth}, branching {hierarchy.branching}")
            for splitter in asked.splitters:
                grown(con, hierarchy, splitter, asked.epsilon)


if __name__ == "__main__":
    main()
