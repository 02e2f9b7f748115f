"""Rows and models that Spark writes: those of one database, whole under their names, and found again.

The source is a table of DuckDB, so that only the publication is Spark's.
"""

from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pandas as pd
import pytest
from support.spark import files_under

import dpsyn_sql
from dpsyn_sql.engines.open_target import open_target
from dpsyn_sql.engines.spark import outputs
from dpsyn_sql.errors import InputError, PublishError, TargetError
from dpsyn_sql.front import prepare as preparation
from dpsyn_sql.rows.sample import rounds
from dpsyn_sql.rows.sample import sql_rows as compiled

pytestmark = pytest.mark.slow

DOMAIN = {
    "columns": {
        "id": {"type": "key"},
        "age": {"type": "numeric", "edges": [0, 20, 40, 60, 80, 100]},
        "work": {"type": "categorical", "categories": ["none", "it's", "public"]},
        "paid": {"type": "numeric", "edges": [0, 100, 400, 1001]},
        "day": {"type": "temporal", "edges": ["2020-01-01", "2020-07-01", "2021-01-02"]},
        "at": {"type": "temporal", "edges": ["2020-01-01", "2020-07-01", "2021-01-02"]},
    }
}


@pytest.fixture
def people(tmp_path):
    con = duckdb.connect(str(tmp_path / "people.duckdb"))
    con.execute("SELECT setseed(0.5)")
    con.execute(
        "CREATE TABLE people AS SELECT range AS id, CAST(random() * 99 AS INTEGER) AS age, "
        "CASE WHEN random() < 0.3 THEN 'none' WHEN random() < 0.5 THEN 'it''s' ELSE 'public' END AS work, "
        "CAST(random() * 1000 AS DECIMAL(8, 2)) AS paid, "
        "DATE '2020-01-01' + CAST(random() * 365 AS INTEGER) AS day, "
        "TIMESTAMP '2020-01-01' + INTERVAL 1 HOUR * CAST(random() * 8000 AS INTEGER) AS at "
        "FROM range(3000)"
    )
    yield con
    con.close()


@pytest.fixture
def database(spark, tmp_path):
    name = f"db_{tmp_path.name.replace('-', '_')}".lower()
    spark.sql(f"CREATE DATABASE `{name}`")
    yield name
    spark.sql(f"DROP DATABASE `{name}` CASCADE")


@pytest.fixture
def into_spark(spark, monkeypatch):
    def opened(con, into, session, **options):
        return open_target(spark if into is not None else con, into, session, **options)

    monkeypatch.setattr(preparation, "open_target", opened)


@pytest.fixture
def in_tasks(monkeypatch):
    """Tasks draw the rows, in parts of 500."""
    monkeypatch.setattr(compiled, "MOST_LOW_VARIANCE_ROWS", 0)
    monkeypatch.setattr(compiled, "BATCH_ROWS", 10)
    monkeypatch.setattr(rounds, "PART_ROWS", 500)


def released(con, into, **options):
    options = {"epsilon": 5.0, "domain": DOMAIN, "seed": 3, "name": "people", "method": "adaptive", **options}
    return dpsyn_sql.release(con, "people", into=into, **options)


def here(con, rows, name, **options):
    """The rows that the same release writes into DuckDB, replayed from its ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "open_target", open_target)
        dpsyn_sql.release(
            con,
            "people",
            into=name,
            epsilon=5.0,
            domain=DOMAIN,
            seed=3,
            name="people",
            method="adaptive",
            rows=rows,
            **options,
        )
    return con.sql(f"FROM {name} ORDER BY id").fetchall()


def sorted_rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def tables(spark, database):
    return sorted(one.name for one in spark.catalog.listTables(database))


@pytest.mark.parametrize("drawn", ["on the driver", "in tasks"])
def test_a_table_of_spark_has_the_rows_of_a_table_of_duckdb(
    request, spark, database, people, into_spark, drawn
):
    if drawn == "in tasks":
        request.getfixturevalue("in_tasks")
    made = released(people, f"{database}.synthetic", rows=1700)
    table = spark.table(f"{database}.synthetic")
    assert made.rows == table.count() == 1700
    assert sorted_rows(table) == here(people, 1700, "alone")
    assert dict(table.dtypes) == {
        "id": "bigint", "age": "int", "work": "string", "paid": "decimal(8,2)", "day": "date",
        "at": "timestamp_ntz",
    }  # fmt: skip
    comments = {one.name: one.description for one in spark.catalog.listColumns(f"{database}.synthetic")}
    assert comments["id"] == "Fresh key, unrelated to the keys of the source."
    assert "epsilon 5.0" in spark.catalog.getTable(f"{database}.synthetic").description
    assert tables(spark, database) == ["synthetic", "synthetic_dpsyn"]
    loaded = dpsyn_sql.load(spark, f"{database}.synthetic")
    assert loaded.id == made.id
    assert loaded.certificate() == made.certificate()
    pd.testing.assert_frame_equal(loaded.sample(50, seed=2), made.sample(50, seed=2))
    measured = ["work", "age"]
    pd.testing.assert_frame_equal(loaded.marginal(measured)[["noisy"]], made.marginal(measured)[["noisy"]])
    assert len(made.to_df()) == made.to_df("arrow").num_rows == loaded.to_df("spark").count() == 1700
    assert isinstance(table.first()["paid"], Decimal)


def test_a_folder_of_parquet_and_the_model_beside_it(spark, tmp_path, people, into_spark, in_tasks):
    (tmp_path / "out").mkdir()
    made = released(people, f"{tmp_path}/out/synthetic", rows=1200)
    assert sorted_rows(spark.read.parquet(f"{tmp_path}/out/synthetic")) == here(people, 1200, "alone")
    names = sorted(path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith("."))
    assert names == ["synthetic", "synthetic.dpsyn.duckdb"]
    assert dpsyn_sql.load(spark, tmp_path / "out/synthetic").id == made.id
    with duckdb.connect(str(tmp_path / "out/synthetic.dpsyn.duckdb"), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM dpsyn_sample('people', 30)").fetchone() == (30,)
    (tmp_path / "out/other").mkdir()
    with pytest.raises(TargetError, match="exists; choose another into="):
        released(people, f"{tmp_path}/out/other", rows=1200)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_and_one_row(spark, database, people, into_spark, in_tasks, rows):
    made = released(people, f"{database}.few", rows=rows)
    assert made.rows == spark.table(f"{database}.few").count() == rows
    assert [name for name, _ in spark.table(f"{database}.few").dtypes] == list(DOMAIN["columns"])


def test_replace_overwrites_rows_and_model_together(spark, database, people, into_spark):
    first = released(people, f"{database}.t", rows=100)
    second = released(people, f"{database}.t", rows=150, name="other", replace=True)
    assert spark.table(f"{database}.t").count() == 150
    assert dpsyn_sql.load(spark, f"{database}.t").id == second.id != first.id
    assert tables(spark, database) == ["t", "t_dpsyn"]
    with pytest.raises(InputError, match="was replaced, changed or removed"):
        first.to_df()


def test_the_same_call_again_costs_nothing_and_leaves_what_is_there(spark, database, people, into_spark):
    released(people, f"{database}.t", rows=100)
    again = released(people, f"{database}.t", rows=100)
    assert again.replayed
    spark.sql(f"INSERT INTO {database}.t SELECT * FROM {database}.t LIMIT 1")
    with pytest.raises(PublishError, match="differs from what this call writes"):
        released(people, f"{database}.t", rows=100)
    assert spark.table(f"{database}.t").count() == 101


class Killed(BaseException):
    """As a process that ends: nobody catches it."""


MOMENTS = {  # by the kind of output: whose call is the last one, and whether it is carried out
    ("table", "in the rows"): (outputs.SparkTable, "_drop", True),
    ("table", "before the rows have their name"): (outputs.SparkTable, "_rename", False),
    ("table", "between rows and model"): (outputs.SparkTable, "put_rows", True),
    ("folder", "in the rows"): (outputs.SparkFolder, "_beside", True),
    ("folder", "before the rows have their name"): (outputs.SparkFolder, "_swapped", False),
    ("folder", "between rows and model"): (outputs.SparkFolder, "put_rows", True),
    ("folder", "in the model"): (outputs.Files, "bring", True),
}


@pytest.mark.parametrize("replace", [False, True], ids=["new", "replacing"])
@pytest.mark.parametrize(("kind", "moment"), MOMENTS)
def test_whatever_moment_it_is_killed_the_same_call_repairs_it(
    spark, database, tmp_path, people, into_spark, kind, moment, replace
):
    into = f"{database}.t" if kind == "table" else str(tmp_path / "t")
    if replace:
        released(people, into, rows=70, name="before")
    owner, name, done = MOMENTS[kind, moment]
    real = getattr(owner, name)

    def dies(*arguments, **options):
        if done:
            real(*arguments, **options)
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(owner, name, dies)
        released(people, into, rows=90, replace=replace)
    assert rows_at(spark, into) in ([70, 90] if replace else [None, 90])
    again = released(people, into, rows=90, replace=replace)
    assert again.replayed
    assert rows_at(spark, into) == 90
    assert dpsyn_sql.load(spark, into).id == again.id
    if kind == "table":
        assert tables(spark, database) == ["t", "t_dpsyn"]
    else:
        assert not [path.name for path in tmp_path.iterdir() if "_dpsyn_" in path.name]


def rows_at(spark, into):
    """None if nothing stands there."""
    if "/" not in into:
        return spark.table(into).count() if spark.catalog.tableExists(into) else None
    return spark.read.parquet(into).count() if Path(into).exists() else None


def test_an_output_that_cannot_be_is_refused_before_the_debit(spark, database, tmp_path, people, into_spark):
    spark.sql(f"CREATE VIEW {database}.v AS SELECT 1 AS a")
    spark.sql(f"CREATE TABLE {database}.t (a INT) USING parquet")
    spark.sql(f"CREATE TABLE {database}.m_dpsyn (chunk INT, data BINARY) USING parquet")
    spark.sql(f"CREATE TABLE {database}.n_dpsyn (a INT) USING parquet")
    (tmp_path / "f.dpsyn.duckdb").write_text("no database of DuckDB")
    for into, why in [
        (f"{database}.v", "is a view"),
        (f"{database}.t", "exists; choose another into=, or add replace=True"),
        (f"{database}.m", "exists without its rows"),
        (f"{database}.n", "n_dpsyn.* is in the way: .*what stands there is none"),
        (str(tmp_path / "f"), "f.dpsyn.duckdb.* is in the way: .*what stands there is none"),
        ("nowhere.t", "There is no database"),
        ("nowhere.at.all", "There is no database 'nowhere.at'"),
        ("a.b.c.d", "is no name of a table"),
        (str(tmp_path / "missing" / "t"), "does not exist"),
        (str(tmp_path / "t.csv"), "folder of Parquet"),
        ("nosuch://x/y", "no file system"),
        ("file:///", "root of a file system"),
    ]:
        with pytest.raises(TargetError, match=why):
            released(people, into)
    with pytest.raises(InputError, match="no model of a release"):
        dpsyn_sql.load(spark, f"{database}.t")
    assert not list(tmp_path.glob("*.dpsyn-ledger"))


def test_a_failing_task_is_a_failure_without_the_words_of_spark_and_leaves_nothing(
    spark, database, tmp_path, people, into_spark, monkeypatch
):
    from dpsyn_sql.rows.write import tasks

    monkeypatch.setattr(tasks, "part_query", lambda *a: "SELECT CAST('secret' AS INTEGER)")
    with pytest.raises(PublishError, match="debit stands.*costs nothing more") as caught:
        released(people, f"{database}.t", rows=10)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert tables(spark, database) == []
    assert files_under(urlsplit(spark.catalog.getDatabase(database).locationUri).path) == []
    with pytest.raises(PublishError):
        released(people, str(tmp_path / "t"), rows=10, name="folder")
    assert not list(tmp_path.glob("*_dpsyn_new_*"))


def test_a_model_whose_rows_were_dropped_is_not_written_over(spark, database, people, into_spark):
    released(people, f"{database}.t", rows=100)
    spark.sql(f"DROP TABLE {database}.t")
    with pytest.raises(
        PublishError, match=r"t_dpsyn', the model of a release, exists without its rows\. Delete"
    ):
        released(people, f"{database}.t", rows=100)
    spark.sql(f"DROP TABLE {database}.t_dpsyn")
    assert released(people, f"{database}.t", rows=100).replayed
