"""Tables of a database that joins: random schemas with all kinds of keys, and outputs that are all or nothing."""

import duckdb
import numpy as np
import pytest
from support.staged_databases import check_joined, random_database, shop

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.rows.write.publish import Destination, publish


def names_of(made, *, copied=True):
    return {name: name for name in made.kinds if copied or name.startswith("t")}


def written(con, made, place):
    found = {}
    for table in made.tree:
        rows = con.execute(f"FROM {place(table.name)}")
        columns = [one[0] for one in rows.description]
        found[table.name] = [dict(zip(columns, row, strict=True)) for row in rows.fetchall()]
    return found


@pytest.fixture
def con(tmp_path):
    connection = duckdb.connect(str(tmp_path / "house.duckdb"))
    yield connection
    connection.close()


@pytest.mark.parametrize("number", range(60))
def test_random_schemas_join(con, tmp_path, number):
    made = random_database(np.random.default_rng(number))
    engine = DuckDBEngine(con)
    names = names_of(made)
    target = Destination(kind="schema", names=names, home=("house", "copy"))
    publish(engine, target, made.staged(engine, 7), made.tree, made.public, constraints=True)
    rows = written(con, made, lambda name: f"house.copy.{name}")
    check_joined(made, rows)
    plain = Destination(kind="schema", names=names, home=("house", "plain"))
    publish(engine, plain, made.staged(engine, 7), made.tree, made.public)
    assert written(con, made, lambda name: f"house.plain.{name}") == rows
    for public in made.public:
        assert con.execute(
            f"FROM house.copy.{public.table.name} SELECT CAST(COLUMNS(*) AS VARCHAR)"
        ).fetchall()


def test_same_seed_same_bytes_in_a_folder(con, tmp_path):
    made = random_database(np.random.default_rng(11))
    engine, contents = DuckDBEngine(con), []
    for name, seed in (("one", 5), ("two", 5), ("other", 6)):
        target = Destination(kind="folder", names=names_of(made), path=tmp_path / name)
        publish(engine, target, made.staged(engine, seed), made.tree, made.public)
        contents.append({file.name: file.read_bytes() for file in sorted((tmp_path / name).iterdir())})
    assert contents[0] == contents[1] != contents[2]
    assert set(contents[0]) == {f"{name}.parquet" for name in made.kinds}
    check_joined(made, written(con, made, lambda name: f"'{tmp_path}/one/{name}.parquet'"))


def test_tables_have_nothing_in_common_but_their_ties(con):
    made, names = shop(400), {"customers": "customers", "orders": "orders", "items": "items"}
    engine = DuckDBEngine(con)
    staged = made.staged(engine, 1)
    assert len({table.seed for table in staged} | {1}) == 4
    publish(engine, Destination(kind="schema", names=names, home=("house", "copy")), staged, made.tree)
    rows = con.execute(
        "SELECT corr(o.oid, o.cid), corr(o.oid, o.rowid), corr(o.cid, o.rowid) FROM copy.orders AS o"
    ).fetchone()
    assert max(map(abs, rows)) < 0.2
    named = con.execute("SELECT gid, count(*) FROM copy.items GROUP BY ALL ORDER BY ALL").fetchall()
    assert named == [(5, 1200), (6, 1200)]
