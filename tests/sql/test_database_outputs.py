"""All tables of a database or none: schemas, files and folders; replays, replacements, failures, killed writers."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.staged_databases import check_joined, relation_of, shop
from test_database import names_of, written

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.open_target import open_target
from dpsyn_sql.engines.stored_releases import opened_releases
from dpsyn_sql.errors import EngineFailure, PublishError
from dpsyn_sql.methods.models.margins import Margins, ProductModel
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.rows.write import outputs
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from
from dpsyn_sql.rows.write.publish import Destination
from dpsyn_sql.rows.write.publish import publish as publish_tables
from dpsyn_sql.rows.write.staging import public_rows

TESTS = Path(__file__).parents[1]


def kept(name, shape):
    domain = Domain(shape.domain.attributes)
    shares = {one.name: np.full(one.size, 1 / one.size) for one in domain.attributes}
    model = ProductModel(domain, Margins(10.0, shares))
    guarantee = {"epsilon": 1.0, "delta": 1e-9, "privacy_unit": "cid", "rows_per_unit": 6}
    facts = {"method": "independent", "guarantee": guarantee, "release": "id-1", "sampling": {"rows": 1}}
    labels = [code_labels(one) for one in domain.attributes]
    return StoredRelease(
        f"shop.{name}", "id-1", "2026-11-01", facts, shape, model, drawn_from(model), (), labels
    )


def staged(made, engine, seed=1):
    return [replace(one, kept=kept(one.name, one.shape)) for one in made.staged(engine, seed)]


def publish(con, made, target, *, seed=1, constraints=False, engine=None):
    engine = engine or DuckDBEngine(con)
    publish_tables(
        engine, target, staged(made, engine, seed), made.tree, made.public, constraints=constraints
    )


@pytest.fixture
def con(tmp_path):
    (tmp_path / "home").mkdir()
    connection = duckdb.connect(str(tmp_path / "home" / "house.duckdb"))
    yield connection
    connection.close()


def out(kind, made, tmp_path, **options):
    if kind == "schema":
        home = ("house", "copy")
        return Destination(kind=kind, names=names_of(made) | {"goods": "goods"}, home=home, **options)
    path = tmp_path / ("copy.duckdb" if kind == "database" else "copy")
    return Destination(kind=kind, names=names_of(made) | {"goods": "goods"}, path=path, **options)


def content(con, kind, made, tmp_path):
    """Rows of each table, and the names of stored releases."""
    if kind == "folder":
        return written(con, made, lambda name: f"'{tmp_path}/copy/{name}.parquet'"), released(
            tmp_path / "copy.dpsyn.duckdb"
        )
    if kind == "schema":
        return written(con, made, lambda name: f"house.copy.{name}"), released(con)
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as file:
        rows = written(file, made, lambda name: f"main.{name}")
    return rows, released(tmp_path / "copy.duckdb")


def released(con):
    with opened_releases(con) as session:
        return sorted(one.name for one in session.releases())


KINDS = ("schema", "database", "folder")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constraints", [False, True])
def test_tables_and_models_appear_together(con, tmp_path, kind, constraints):
    made = shop()
    publish(con, made, out(kind, made, tmp_path), constraints=constraints)
    rows, names = content(con, kind, made, tmp_path)
    check_joined(made, rows)
    assert names == ["shop.customers", "shop.items", "shop.orders"]
    there = {"schema": set(), "database": {"copy.duckdb"}, "folder": {"copy", "copy.dpsyn.duckdb"}}
    assert {file.name for file in tmp_path.iterdir()} == there[kind] | {"home"}
    assert con.execute("SELECT count(*) FROM duckdb_databases() WHERE NOT internal").fetchall() == [(1,)]
    assert con.execute("SELECT current_database(), current_schema()").fetchall() == [("house", "main")]
    if kind == "database":
        con.execute(f"ATTACH '{tmp_path}/copy.duckdb' AS made (READ_ONLY)")
    if kind != "folder":
        database, schema = ("house", "copy") if kind == "schema" else ("made", "main")
        stated = con.execute(
            "SELECT table_name, list_sort(list(constraint_type)) FROM duckdb_constraints() WHERE database_name = ? "
            "AND schema_name = ? AND constraint_type LIKE '% KEY' GROUP BY ALL ORDER BY ALL",
            [database, schema],
        ).fetchall()
        one, two = ["FOREIGN KEY", "PRIMARY KEY"], ["FOREIGN KEY", "FOREIGN KEY", "PRIMARY KEY"]
        whole = [("customers", ["PRIMARY KEY"]), ("goods", ["PRIMARY KEY"]), ("items", two), ("orders", one)]
        assert stated == (whole if constraints else [])
        comments = con.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE schema_name = ? AND comment LIKE 'Synthetic rows%shop.%'",
            [schema],
        )
        assert comments.fetchall() == [(3,)]
        nulls = "SELECT count(*) FROM duckdb_columns() WHERE schema_name = ? AND NOT is_nullable AND table_name = 'items'"
        assert con.execute(nulls, [schema]).fetchall() == [(2,)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_release_is_written_again_only_over_the_same_rows(con, tmp_path, kind):
    made = shop()
    names = frozenset(names_of(made))
    again = out(kind, made, tmp_path, replace=True, only_same=True, existing=names)
    publish(con, made, out(kind, made, tmp_path))
    first = content(con, kind, made, tmp_path)
    publish(con, made, again)
    assert content(con, kind, made, tmp_path) == first
    with pytest.raises(PublishError, match=r"differs.*replace=True"):
        publish(con, made, again, seed=2)
    assert content(con, kind, made, tmp_path) == first
    assert {file.name for file in tmp_path.iterdir()} - {"copy", "copy.duckdb", "copy.dpsyn.duckdb"} == {
        "home"
    }


@pytest.mark.parametrize("constraints", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_replacing(con, tmp_path, kind, constraints):
    made = shop()
    publish(con, made, out(kind, made, tmp_path), constraints=True)
    first = content(con, kind, made, tmp_path)
    options = {"replace": True, "existing": frozenset(names_of(made))}
    options["dropped"] = ("items", "orders", "customers", "goods") if kind == "schema" else ()
    publish(con, made, out(kind, made, tmp_path, **options), seed=2, constraints=constraints)
    rows, names = content(con, kind, made, tmp_path)
    assert rows != first[0] and names == first[1]
    check_joined(made, rows)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_leaves_everything_as_it_was(con, tmp_path, kind, replaced, monkeypatch):
    made = shop()
    options = {}
    if replaced:
        publish(con, made, out(kind, made, tmp_path), constraints=True)
        options = {"replace": True, "existing": frozenset(names_of(made))}
        options["dropped"] = ("items", "orders", "customers", "goods") if kind == "schema" else ()
        first = content(con, kind, made, tmp_path)
    standing = (
        "SELECT database_name, schema_name, table_name, sql FROM duckdb_tables() WHERE NOT temporary UNION ALL "
        "SELECT database_name, '', '', '' FROM duckdb_databases() ORDER BY ALL"
    )
    tables = con.execute(standing).fetchall()
    files = sorted(tmp_path.iterdir())

    def failing(*_):
        raise EngineFailure("keeping", "IOException", "")

    monkeypatch.setattr(outputs, "persist_beside" if kind == "folder" else "persist", failing)
    with pytest.raises(EngineFailure):
        publish(con, made, out(kind, made, tmp_path, **options), seed=2, constraints=True)
    assert con.execute(standing).fetchall() == tables
    assert sorted(tmp_path.iterdir()) == files
    if replaced:
        assert content(con, kind, made, tmp_path) == first


def test_what_has_appeared_meanwhile_stays(con, tmp_path):
    made = shop()
    con.execute("CREATE SCHEMA copy; CREATE TABLE copy.orders AS SELECT 42 AS mine")
    with pytest.raises(PublishError, match="Nothing was written"):
        publish(con, made, out("schema", made, tmp_path))
    assert con.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall() == [
        ("orders",)
    ]
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "orders.parquet").write_text("mine")
    (tmp_path / "copy.duckdb").write_text("mine")
    for kind in ("folder", "database"):
        with pytest.raises(PublishError, match="has appeared"):
            publish(con, made, out(kind, made, tmp_path))
    assert [file.name for file in (tmp_path / "copy").iterdir()] == ["orders.parquet"]
    assert (tmp_path / "copy.duckdb").read_text() == "mine"


@pytest.mark.parametrize("kind", KINDS)
def test_a_type_without_room_for_the_keys_is_refused_before_anything_is_written(con, tmp_path, kind):
    made = shop(customers=300, key="TINYINT")
    with pytest.raises(PublishError, match=r"'cid'.*has only 256 values"):
        publish(con, made, out(kind, made, tmp_path))
    made = shop(customers=200)
    orders = made.shapes["orders"]
    narrow = replace(next(role for role in orders.roles if role.name == "cid"), sql_type="TINYINT")
    roles = tuple(narrow if role.name == "cid" else role for role in orders.roles)
    made.shapes["orders"] = replace(orders, roles=roles)
    with pytest.raises(
        PublishError, match=r"'cid' of table 'orders'.*200 keys of 'customers'.*a smaller rows= costs nothing"
    ):
        publish(con, made, out(kind, made, tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["home"]
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE NOT temporary").fetchall() == [(0,)]


KILLED = """
import os, signal, sys, duckdb
sys.path[:0] = [{tests!r}, {sql!r}]
from pathlib import Path
from support.staged_databases import shop
from test_database_outputs import DuckDBEngine, out, publish
con, seen = duckdb.connect({database!r}), []

def look(sql):
    seen.extend(word for word in ("CREATE TABLE", "TO '", "CREATE OR REPLACE TABLE", "persisted") if word in sql)
    if len(seen) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)

made = shop()
target = out({kind!r}, made, Path({folder!r}))
publish(con, made, target, engine=DuckDBEngine(con, trace=look))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_writer_leaves_the_target_as_it_was(con, tmp_path, kind):
    con.execute("CREATE TABLE mine AS SELECT 42 AS x")
    con.close()
    database = tmp_path / "home" / "house.duckdb"
    for number in (1, 3):
        script = KILLED.format(
            tests=str(TESTS),
            sql=str(TESTS / "sql"),
            database=str(database),
            folder=str(tmp_path),
            kind=kind,
            number=number,
        )
        done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
        assert done.returncode == -9, done.stderr
        assert not (tmp_path / "copy").exists() and not (tmp_path / "copy.duckdb").exists()
        with duckdb.connect(str(database)) as after:
            assert after.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall() == [
                ("main", "mine")
            ]
            if number == 3:  # the same call afterwards writes all, and removes what was left behind
                made = shop()
                publish(after, made, out(kind, made, tmp_path))
                check_joined(made, content(after, kind, made, tmp_path)[0])
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".dpsyn")]


@pytest.mark.parametrize("into", [None, "house.copy", "copy.db", "copy"])
def test_from_an_open_source_to_an_output_that_joins(con, tmp_path, into):
    made = shop()
    con.execute("CREATE TABLE customers AS SELECT 1 AS cid; CREATE TABLE orders AS SELECT 1 AS oid")
    con.execute(
        "CREATE TABLE items AS SELECT 1 AS oid; CREATE TABLE goods AS FROM (VALUES (5), (6), (NULL)) t(gid)"
    )
    goods = PublicTable("goods", relation_of("goods", {"gid": "INTEGER"}, "house"), ("gid",))
    chosen = tmp_path / into if into is not None and "house" not in into else into
    with open_source(con, "customers") as session:
        names = [table.name for table in made.tree]
        target = open_target(con, chosen, session, names, [goods])
        public = [public_rows(session.engine, table) for table in target.copies]
        session.release_source()
    engine = target.open()
    publish_tables(engine, target, staged(made, engine), made.tree, public)
    engine.close()
    home = {None: "house.house_synthetic.", "house.copy": "house.copy.", "copy.db": "made.main."}.get(into)
    if into == "copy.db":
        con.execute(f"ATTACH '{chosen}' AS made (READ_ONLY)")
    place = {
        name: f"'{chosen}/{name}.parquet'" if home is None else f"{home}{name}" for name in (*names, "goods")
    }
    check_joined(made, written(con, made, place.__getitem__))
    there = place["goods"] if public else "house.main.goods"
    joined = con.execute(f"SELECT count(*) FROM {place['items']} JOIN {there} USING (gid)").fetchall()
    assert joined == [(120,)] and bool(public) == (into in ("copy.db", "copy"))
    assert con.execute(f"SELECT count(*), count(gid) FROM {there}").fetchall() == [(3, 2)]
