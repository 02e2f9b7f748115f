"""Releases of Spark sources from end to end: what comes out, what replays, and what stops in the middle."""

import os
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from support.spark import files_under

import dpsyn_sql
from dpsyn_sql.engines.spark import tasks
from dpsyn_sql.engines.spark.engine import SparkEngine
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.source.slices import Partition, Window

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("private"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

DOMAIN = {
    "columns": {
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 10},
        "sex": {"type": "categorical", "categories": ["f", "m"], "other": False},
    }
}
OPTIONS = {"domain": DOMAIN, "method": "independent", "epsilon": 2, "exclude": ["person", "day"]}
TRUSTED = {"trust_query": True, "account": "everybody"}
ROWS = (
    "SELECT CAST(id % 100 AS INT) AS age, IF(id % 3 = 0, 'f', 'm') AS sex, CONCAT('p', id DIV 3) AS person, "
    "DATE_ADD(DATE'2020-01-01', CAST(id % 90 AS INT)) AS day FROM range({rows})"
)


@pytest.fixture
def db(spark):
    spark.sql("CREATE DATABASE people_db")
    spark.sql(f"CREATE TABLE people_db.people USING parquet AS {ROWS.format(rows=600)}")
    yield "people_db"
    spark.sql("DROP DATABASE people_db CASCADE")


@pytest.fixture
def places(tmp_path):
    return {"ledger": tmp_path / "people.ledger", "into": tmp_path / "o.parquet"}


def _near(counts, exact, off=40):
    assert np.abs(np.asarray(counts) - np.asarray(exact)).max() < off


def test_a_table_and_its_replay(spark, db, places):
    release = dpsyn_sql.release(spark, f"{db}.people", **places, **OPTIONS)
    rows = release.to_df()
    assert list(rows) == ["age", "sex"] and set(rows.sex) == {"f", "m"} and rows.age.between(0, 99).all()
    _near(rows.sex.value_counts()[["f", "m"]], [200, 400])
    _near(np.histogram(rows.age, bins=10, range=(0, 100))[0], [60] * 10)
    spark.sql(f"INSERT OVERWRITE {db}.people {ROWS.format(rows=3)}")
    again = dpsyn_sql.release(spark, f"{db}.PEOPLE", **places, **OPTIONS)
    assert again.replayed and again.id == release.id and again.to_df().equals(rows)
    with pytest.MonkeyPatch.context() as patch:  # a replay needs the workers too
        patch.setattr(tasks, "versions", lambda _: iter([("python9", "", "")]))
        with pytest.raises(dpsyn_sql.errors.InputError, match=r"\(python9\) has no duckdb and no pyarrow"):
            dpsyn_sql.release(spark, f"{db}.people", **places, **OPTIONS)


def test_a_table_that_was_never_written_to(spark, db, places):
    spark.sql(f"CREATE TABLE {db}.fresh(age INT, sex STRING, person STRING, day DATE) USING parquet")
    assert 0 <= dpsyn_sql.release(spark, f"{db}.fresh", **places, **OPTIONS).rows < 60


def _frame(spark, db):
    return spark.table(f"{db}.people"), "people"


def _view(spark, db):
    spark.sql(f"CREATE VIEW {db}.seen AS SELECT * FROM {db}.people WHERE age < 50")
    return spark, f"{db}.seen"


def _query(spark, db):
    return spark, f"SELECT * FROM {db}.people WHERE sex = 'f'"


TRUSTING = {
    "a frame": (_frame, 600),
    "a view": (_view, 300),
    "a query": (_query, 200),
}


@pytest.mark.parametrize("case", TRUSTING)
def test_the_owner_answers_for_it(spark, db, places, case):
    make, rows = TRUSTING[case]
    con, source = make(spark, db)
    release = dpsyn_sql.release(con, source, **places, **OPTIONS, **TRUSTED)
    _near(release.rows, rows, off=60)
    assert "trust_query=True: the owner states" in str(release.facts)
    with closing(SqliteLedger(places["ledger"])) as ledger:
        assert [account.name for account in ledger.overview().accounts] == ["everybody"]


def test_rows_that_nobody_checked_are_rows_of_a_result(spark, db, places):
    """A query may give several rows for one row of a table, so that one account has not both."""
    options = {**places, **OPTIONS, "account": "everybody"}
    twice = f"SELECT * FROM {db}.people UNION ALL SELECT * FROM {db}.people"
    planned = dpsyn_sql.plan(spark, twice, trust_query=True, **options)
    assert planned.plan.source.unit_name == "row of result"
    assert "a row of the result is what is protected" in str(planned)
    dpsyn_sql.release(spark, f"{db}.people", **options)
    with pytest.raises(dpsyn_sql.DpsynError, match="this release protects 'row of result'"):
        dpsyn_sql.release(
            spark, twice, **{**options, "into": places["into"].with_name("p.parquet")}, trust_query=True
        )


def test_a_frame_without_an_output_is_in_memory(spark, db, tmp_path):
    release = dpsyn_sql.release(
        spark.table(f"{db}.people"), "people", ledger=tmp_path / "l", **OPTIONS, **TRUSTED
    )
    assert len(release.to_df()) == release.rows and len(release.sample(5)) == 5


@pytest.mark.parametrize(
    ("part", "rows"),
    [
        (Partition("sex", "f"), 200),
        (Window("day", "months", ("2020-01-01", "2020-02-01", "2020-03-01"), 1), 203),
    ],
)
def test_slices(spark, db, places, part, rows):
    spark.sql(f"ALTER TABLE {db}.people ADD COLUMN tags ARRAY<STRING>")  # is not read
    options = {**OPTIONS, "exclude": ["person", "tags", *({"day", "sex"} - {part.column})]}
    options["domain"] = {"columns": {"age": DOMAIN["columns"]["age"]}}
    release = dpsyn_sql.release(spark, f"{db}.people", window=part, **places, **options)
    _near(release.rows, rows, off=60)


def test_a_running_total(spark, db, places):
    days = {"type": "temporal", "lower": "2020-01-01", "upper": "2020-03-31", "bins": 3}
    options = {**OPTIONS, "exclude": ["person"], "domain": {"columns": {**DOMAIN["columns"], "day": days}}}
    window = Window("day", "months", ("2020-01-01", "2020-02-01", "2020-03-01"), 1, labels=("1", "2"))
    total = dpsyn_sql.release(
        spark,
        f"{db}.people",
        window=window,
        series="total",
        version="2",
        name="people",
        **places,
        **options,
    )
    _near(total.rows, 420, off=90)


# -- what stops in the middle -------------------------------------------------------------------


def _after_a_read(monkeypatch, act):
    """Run ``act`` when the first job that read rows is over, before anything is made of them."""
    plain, acted = SparkEngine._asked, []

    def reading(engine, call, statement, step):
        found = plain(engine, call, statement, step)
        if statement and not acted:
            acted.append(act())
        return found

    monkeypatch.setattr(SparkEngine, "_asked", reading)
    return acted


CHANGES = {
    "overwritten": ("INSERT OVERWRITE {db}.people {rows}", 300),
    "emptied": ("TRUNCATE TABLE {db}.people", 0),
}


@pytest.mark.parametrize(("change", "domain"), [("overwritten", None), ("emptied", DOMAIN)])
def test_a_table_that_changes_while_it_is_read(spark, db, places, monkeypatch, change, domain):
    statement, rows = CHANGES[change]
    statement = statement.format(db=db, rows=ROWS.format(rows=rows))
    options = {**places, **OPTIONS, "domain": domain}
    with monkeypatch.context() as patch:
        acted = _after_a_read(patch, lambda: spark.sql(statement))
        with pytest.raises(dpsyn_sql.errors.ReleaseUnfinished, match="files of the source changed") as caught:
            dpsyn_sql.release(spark, f"{db}.people", **options)
    assert acted and caught.value.__context__ is None and not places["into"].exists()
    with closing(SqliteLedger(places["ledger"])) as ledger:
        before = ledger.overview().accounts
    release = dpsyn_sql.release(spark, f"{db}.people", **options)  # under the same debit
    with closing(SqliteLedger(places["ledger"])) as ledger:
        assert ledger.overview().accounts == before
    _near(release.rows, rows, off=60)


def test_rows_that_come_meanwhile_are_not_counted(spark, db, places, monkeypatch):
    """Files that are added change none that is read."""
    more = f"INSERT INTO {db}.people {ROWS.format(rows=600)}"
    acted = _after_a_read(monkeypatch, lambda: spark.sql(more))
    release = dpsyn_sql.release(spark, f"{db}.people", **places, **{**OPTIONS, "domain": None, "epsilon": 50})
    assert acted and spark.table(f"{db}.people").count() == 1200
    _near(release.rows, 600, off=60)


def test_an_error_leaves_nothing_and_quotes_nothing(spark, db, places, monkeypatch, private):
    def fails():
        raise ValueError("4711 Ann")

    with monkeypatch.context() as patch:
        _after_a_read(patch, fails)
        with pytest.raises(dpsyn_sql.errors.InternalError, match="ValueError") as caught:
            dpsyn_sql.release(spark, f"{db}.people", **places, **OPTIONS)
    assert "Ann" not in str(caught.value) and "4711" not in str(caught.value)
    assert files_under(private) == []


_STOPPED = """
import sys
import dpsyn_sql
from dpsyn_sql.engines.spark.engine import SparkEngine
from support.spark import session_in

folder, options = sys.argv[1], {options}
with session_in(folder + "/session") as spark:
    spark.sql("CREATE TABLE people USING parquet AS {rows}")
    plain = SparkEngine._asked
    def stopping(engine, call, statement, step):
        if statement:
            spark.stop()
        return plain(engine, call, statement, step)
    SparkEngine._asked = stopping
    try:
        dpsyn_sql.release(spark, "people", ledger=folder + "/l", into=folder + "/o.parquet", **options)
    except dpsyn_sql.errors.ReleaseUnfinished as error:
        print("failed:", error.__context__, error.__cause__, error)
    try:
        dpsyn_sql.release(spark, "people", ledger=folder + "/l", into=folder + "/o.parquet", **options)
    except dpsyn_sql.errors.InputError as error:
        print(error)
    try:
        dpsyn_sql.load(spark, folder + "/o.parquet")
    except dpsyn_sql.errors.InputError as error:
        print(error)
"""


def test_a_session_that_is_stopped_in_the_middle(spark, tmp_path, private):
    code = _STOPPED.format(options=OPTIONS, rows=ROWS.format(rows=60))
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sys.path)), "TMPDIR": str(private)},
    )
    lines = told.stdout.splitlines()
    assert lines[0].startswith("failed: None None The Spark session was stopped while")
    assert "goes on from there and costs nothing more" in lines[0]
    assert all("The Spark session is stopped" in line for line in lines[1:3])
    assert not (tmp_path / "o.parquet").exists()
    with closing(SqliteLedger(tmp_path / "l")) as ledger:
        assert len(ledger.overview().accounts) == 1  # the debit stays
