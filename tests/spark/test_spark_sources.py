"""Sources of Spark from end to end: what they are called, what is read of them, and what is refused."""

from contextlib import contextmanager
from uuid import uuid4

import pytest

import dpsyn_sql
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.source.frames import Frame
from dpsyn_sql.source.slices import Partition

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
OPTIONS = {"domain": DOMAIN, "method": "independent", "epsilon": 2}
TRUSTED = {"trust_query": True, "account": "everybody"}
ROWS = "SELECT CAST(id % 100 AS INT) AS age, IF(id % 3 = 0, 'f', 'm') AS sex, CONCAT('p', id DIV 3) AS person"


@pytest.fixture
def db(spark):
    """A database with ``people``, of 600 rows."""
    spark.sql("CREATE DATABASE people_db")
    spark.sql(f"CREATE TABLE people_db.People USING parquet AS {ROWS} FROM range(600)")
    yield "people_db"
    spark.catalog.dropTempView("people")
    spark.sql("USE default")
    spark.sql("DROP DATABASE people_db CASCADE")


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "people.ledger"


@contextmanager
def no_jobs(spark):
    """Fails if a job of Spark runs inside."""
    group = uuid4().hex
    spark.sparkContext.setJobGroup(group, "")
    try:
        yield
        tracker = spark.sparkContext.statusTracker()
        assert list(tracker.getJobIdsForGroup(group)) == []
        spark.range(3).count()
        assert list(tracker.getJobIdsForGroup(group))  # else nothing would be seen
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


# -- what is told before anything is read ------------------------------------------------------


def test_a_plan_reads_no_row_and_tells_what_stays_private(spark, db, ledger, tmp_path):
    with no_jobs(spark):
        plan = str(
            dpsyn_sql.plan(
                spark,
                f"{db}.people",
                into=tmp_path / "o.parquet",
                ledger=ledger,
                exclude=["person"],
                **OPTIONS,
            )
        )
    lines = {line[:12].strip(): line[12:] for line in plan.splitlines()}
    assert lines["Source"] == "spark_catalog.people_db.people (table)"
    assert "event logs, the Spark UI and query histories hold exact counts" in lines["Private"]
    assert "names, sizes and times of files" in lines["Snapshot"]
    assert "a private folder of this machine" in lines["Codes"]
    assert "'people_db" not in lines["Account"] and ":spark:" in lines["Account"]
    assert not ledger.exists()


def test_no_row_is_read_of_a_frame_that_cannot_be_computed(spark, ledger, tmp_path):
    failing = spark.range(9).selectExpr("CAST(raise_error('4711') AS INT) AS age", "'f' AS sex")
    options = {**OPTIONS, **TRUSTED, "ledger": ledger, "into": tmp_path / "o.parquet"}
    assert "trust_query=True" in dpsyn_sql.plan(failing, "people", **options).verbose()
    assert "age" in dpsyn_sql.init(failing, Frame(failing, "people"), trust_query=True)


def test_init_and_suggest(spark, db):
    with no_jobs(spark):
        form = dpsyn_sql.init(spark, f"{db}.people")
        advice = dpsyn_sql.suggest(spark, f"{db}.people", unit="person")
    assert "age" in form and "person" in form and "600" not in form
    assert "age" in str(advice.domain)


def test_every_spelling_of_a_table_is_one_account(spark, db, ledger, tmp_path):
    spark.sql(f"USE {db}")
    place = spark.sql("DESCRIBE TABLE EXTENDED people").where("col_name = 'Location'").first()[1]
    spark.sql(f"CREATE TABLE same USING parquet LOCATION '{place}'")
    accounts = set()
    for name in ("people", "PEOPLE", f"{db}.people", f"`spark_catalog`.`{db}`.`People`", "same"):
        plan = dpsyn_sql.plan(
            spark, name, into=tmp_path / "o.parquet", ledger=ledger, **OPTIONS, exclude=["person"]
        )
        accounts.add(str(plan.account))
    assert len(accounts) == 1


def test_types_are_told_without_a_row(spark, db, ledger, tmp_path):
    spark.sql(
        f"CREATE TABLE {db}.kinds(a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(10,2), h STRING,"
        " i CHAR(3), j VARCHAR(4), k BOOLEAN, l DATE, m TIMESTAMP, n TIMESTAMP_NTZ, o BINARY, p ARRAY<INT>, q INTERVAL"
        " DAY TO SECOND, r STRUCT<x: INT>, s STRING COLLATE UTF8_LCASE, t MAP<INT, INT>) USING parquet"
    )
    with open_source(spark, f"{db}.kinds") as session:
        types = {column.name: column.sql_type for column in session.relation.columns}
    assert " ".join(types[name] for name in "abcdefghijkl") == (
        "TINYINT SMALLINT INTEGER BIGINT FLOAT DOUBLE DECIMAL(10,2) VARCHAR VARCHAR VARCHAR BOOLEAN DATE"
    )
    assert (types["m"], types["n"]) == ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP")
    with pytest.raises(dpsyn_sql.errors.DomainError) as caught:
        dpsyn_sql.plan(spark, f"{db}.kinds", into=tmp_path / "o.parquet", ledger=ledger)
    told = str(caught.value)
    for name, kind in {
        "o": "BLOB",
        "p": "array<int>",
        "q": "interval day",
        "r": "struct<",
        "s": "UTF8_LCASE",
        "t": "map<int,int>",
    }.items():
        assert f"'{name}'" in told and kind in told and "exclude=" in told
    assert "'h'" not in told
    unread = {"exclude": list("opqrst"), "ledger": ledger, "into": tmp_path / "o.parquet"}
    dpsyn_sql.plan(spark, f"{db}.kinds", **unread)
    with pytest.raises(dpsyn_sql.errors.InputError, match="FLOAT, which cannot identify a unit"):
        dpsyn_sql.plan(spark, f"{db}.kinds", unit="e", most=1, **unread)


# -- what is refused before the debit ----------------------------------------------------------


def _view(spark, db):
    spark.sql(f"CREATE VIEW {db}.seen AS SELECT * FROM {db}.people")
    return spark, f"{db}.seen"


def _temporary(spark, db):
    spark.table(f"{db}.people").createOrReplaceTempView("people")
    return spark, "people"


def _collated(spark, db):
    spark.sql(
        f"CREATE TABLE {db}.collated USING parquet AS SELECT *, person COLLATE UTF8_LCASE AS s FROM {db}.people"
    )
    return spark, f"{db}.collated"


def _table(spark, db):
    return spark, f"{db}.people"


def _frame(spark, db):
    return spark.table(f"{db}.people"), "people"


def _frame_of(expression):
    return lambda spark, db: (spark.sql(expression.format(people=f"{db}.people")), "people")


def _text(source):
    return lambda spark, db: (spark, source.format(people=f"{db}.people", db=db))


CASES = {
    "a view": (_view, {}, "is a view. .*trust_query=True and account="),
    "a temporary view": (_temporary, {}, "is a temporary view. .*trust_query=True"),
    "a query": (_text("SELECT * FROM {people}"), {}, "is a query. .*trust_query"),
    "a data frame": (_frame, {}, "is a data frame.*trust_query"),
    "no account": (_frame, {"trust_query": True}, r"account='\.\.\.' must be named"),
    "no label": (lambda spark, db: (spark.table(f"{db}.people"), None), TRUSTED, "no name of its own"),
    "other values each time": (
        _frame_of("SELECT *, rand() AS noise FROM {people}"),
        TRUSTED,
        "other values each time",
    ),
    "a sample": (_text("SELECT * FROM {people} TABLESAMPLE (50 PERCENT)"), TRUSTED, "not the same each time"),
    "some rows": (_frame_of("SELECT * FROM {people} LIMIT 9"), TRUSTED, "LIMIT, OFFSET"),
    "a command": (_text("FROM {people} INSERT INTO {people} SELECT *"), TRUSTED, "not accept"),
    "a missing table": (_text("{db}.peple"), {}, "no table 'people_db.peple'.*people_db.people"),
    "itself": (_table, {"into": "people_db.people"}, "is the source"),
    "a unit": (_table, {"unit": "whom", "most": 1}, "whom"),
    "a path": (_text("/data/people.parquet"), {}, "no name of a table"),
    "public tables": (_table, {"public_tables": ["x"]}, "queries of DuckDB"),
    "memory": (_table, {"limits": {"memory": "many"}}, "limits="),
    "no ledger": (_table, {"ledger": None}, "no lasting place.*ledger must be named"),
    "a slice of a frame": (
        _frame,
        {**TRUSTED, "window": Partition("sex", "f")},
        "parts of a table or a file",
    ),
    "a column of a collation": (_collated, {"exclude": []}, "UTF8_LCASE"),
    "an output that exists": (_table, {"into": "people_db.taken"}, "replace=True"),
    "a stream": (
        lambda spark, db: (spark.readStream.format("rate").load(), "people"),
        TRUSTED,
        "is a stream",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_before_the_debit(spark, db, ledger, tmp_path, case, monkeypatch):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    make, options, message = CASES[case]
    con, source = make(spark, db)
    spark.sql(f"CREATE TABLE {db}.taken (n INT) USING parquet")
    before = sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {db}").collect())
    options = {"ledger": ledger, "into": tmp_path / "o.parquet", **OPTIONS, "exclude": ["person"], **options}
    with pytest.raises(dpsyn_sql.DpsynError, match=message) as caught:
        dpsyn_sql.release(con, source, **options)
    assert caught.value.__cause__ is None
    assert not ledger.exists() and not (tmp_path / "o.parquet").exists()
    assert sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {db}").collect()) == before
    assert spark.table(f"{db}.people").count() == 600


def test_columns_that_differ_in_case_alone(spark, db, ledger):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.sql(f"SELECT age, age AS AGE FROM {db}.people")
        with pytest.raises(dpsyn_sql.errors.SourceError, match=r"age.*AGE|AGE.*age"):
            dpsyn_sql.release(frame, "t", into="o", ledger=ledger, **OPTIONS, **TRUSTED)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert not ledger.exists()


@pytest.mark.parametrize(("rows", "parts"), [(0, 1), (1, 1), (1000, 1), (1000, 10_000)])
def test_sizes_and_numbers_of_parts_that_are_odd(spark, db, ledger, rows, parts):
    """An empty table has no file; 10,000 parts are joined before they are counted."""
    frame = spark.range(rows, numPartitions=parts).selectExpr("CAST(id % 10 AS INT) AS n")
    into = f"{db}.o_{rows}_{parts}"
    spec = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}
    made = dpsyn_sql.release(frame, "t", domain=spec, into=into, ledger=ledger, epsilon=20, **TRUSTED)
    assert abs(made.rows - rows) < 30 and spark.table(into).count() == made.rows
