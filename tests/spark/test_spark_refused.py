"""What cannot be released from Spark is one sentence of ours: nothing is read, written or charged."""

import duckdb
import pytest
from support.spark import files_under, table_of

import dpsyn_sql

pytestmark = pytest.mark.slow

SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}


@pytest.fixture(scope="module")
def table(spark, db, tmp_path_factory):
    with duckdb.connect() as con:
        rows = "SELECT (i % 10)::INTEGER AS n, 'a' AS s FROM range(100) AS r(i)"
        table_of(spark, f"{db}.t", con, rows, tmp_path_factory.mktemp("t") / "t")
    spark.sql(f"CREATE VIEW {db}.v AS SELECT n FROM {db}.t")
    spark.sql(f"CREATE TABLE {db}.taken (n INT) USING parquet")
    return f"{db}.t"


TYPED = {
    "array": "array(n)",
    "map": "map(n, n)",
    "struct": "named_struct('a', n)",
    "interval": "make_dt_interval(n)",
}


@pytest.mark.parametrize("kind", TYPED)
def test_types_that_are_not_released_are_named_with_a_cure(spark, db, table, tmp_path, kind):
    name = f"{db}.typed_{kind}"
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT n, {TYPED[kind]} AS odd FROM {table}")
    with pytest.raises(dpsyn_sql.InputError, match=r"odd.*exclude=") as caught:
        dpsyn_sql.plan(spark, name, domain=SPEC, into=f"{db}.o", ledger=tmp_path / "l")
    assert "Traceback" not in str(caught.value)
    dpsyn_sql.plan(spark, name, domain=SPEC, into=f"{db}.o", ledger=tmp_path / "l", exclude=("odd",))


def refusals(spark, db, table):
    return {
        "no table": ((spark, f"{db}.nowhere"), {}, "There is no table"),
        "nearly": ((spark, f"{db}.tt"), {}, "Did you mean"),
        "a path": ((spark, "/data/t.parquet"), {}, "no name of a table"),
        "a view": ((spark, f"{db}.v"), {}, "trust_query=True"),
        "a query": ((spark, f"SELECT n FROM {table}"), {}, "trust_query=True"),
        "a frame": ((spark.table(table), "t"), {}, "trust_query=True"),
        "a frame of chance": (
            (spark.sql(f"SELECT n + CAST(rand() AS INT) AS n FROM {table}"), "t"),
            {"trust_query": True, "account": "a"},
            "rand()",
        ),
        "collated": ((spark, f"{db}.collated"), {"domain": {"columns": {}}}, "UNICODE_CI|UTF8_LCASE"),
        "an output": ((spark, table), {"into": f"{db}.taken"}, "replace=True"),
        "itself": ((spark, table), {"into": table}, "is the source"),
        "unit": ((spark, table), {"privacy_unit": "whom"}, "whom"),
        "public tables": ((spark, table), {"public_tables": ("p",)}, "public_tables="),
    }


CASES = sorted(refusals(type("Any", (), {"__getattr__": lambda *_: lambda *_: None})(), "", ""))


@pytest.mark.parametrize("case", CASES)
def test_wrong_calls(spark, db, table, tmp_path, case):
    if case == "collated":
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {db}.collated (n INT, s STRING COLLATE UTF8_LCASE) USING parquet"
        )
    place, options, words = refusals(spark, db, table)[case]
    options = {
        "domain": {"columns": {**SPEC["columns"]}},
        "into": f"{db}.o",
        "ledger": tmp_path / "l",
        **options,
    }
    before = sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {db}").collect())
    with pytest.raises(dpsyn_sql.InputError, match=words) as caught:
        dpsyn_sql.release(*place, **options)
    assert caught.value.__cause__ is None
    assert sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {db}").collect()) == before
    assert files_under(tmp_path) == []


def test_columns_that_differ_in_case_alone(spark, table, tmp_path):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.sql(f"SELECT n, n AS N FROM {table}")
        with pytest.raises(dpsyn_sql.SourceError, match=r"n.*N|N.*n"):
            dpsyn_sql.release(
                frame, "t", domain=SPEC, into="o", ledger=tmp_path / "l", trust_query=True, account="a"
            )
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert files_under(tmp_path) == []


@pytest.mark.parametrize(("rows", "parts"), [(0, 1), (1, 1), (1000, 1), (1000, 10_000)])
def test_sizes_and_numbers_of_parts_that_are_odd(spark, db, tmp_path, rows, parts):
    """An empty table has no file; 10,000 parts are joined before they are counted."""
    frame = spark.range(rows, numPartitions=parts).selectExpr("CAST(id % 10 AS INT) AS n")
    into = f"{db}.o_{rows}_{parts}"
    made = dpsyn_sql.release(
        frame, "t", domain=SPEC, into=into, ledger=tmp_path / "l", trust_query=True, account="a", epsilon=20
    )
    assert abs(made.rows - rows) < 30 and spark.table(into).count() == made.rows


def test_an_empty_table_of_the_catalog(spark, db, table, tmp_path):
    made = dpsyn_sql.release(
        spark, f"{db}.taken", domain=SPEC, into=f"{db}.o_taken", ledger=tmp_path / "l", epsilon=20
    )
    assert made.rows < 30
