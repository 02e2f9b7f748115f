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
    spark.sql(f"CREATE TABLE {db}.collated (n INT, s STRING COLLATE UTF8_LCASE) USING parquet")
    spark.sql(f"CREATE TABLE {db}.taken (n INT) USING parquet")
    return f"{db}.t"


CASES = {
    "collated": ("{db}.collated", {"domain": {"columns": {}}}, "UNICODE_CI|UTF8_LCASE"),
    "an output": ("{db}.t", {"into": "{db}.taken"}, "replace=True"),
    "itself": ("{db}.t", {"into": "{db}.t"}, "is the source"),
    "unit": ("{db}.t", {"privacy_unit": "whom"}, "whom"),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_calls(spark, db, table, tmp_path, case):
    name, options, words = CASES[case]
    options = {"domain": SPEC, "into": "{db}.o", "ledger": tmp_path / "l", **options}
    options["into"] = options["into"].format(db=db)
    before = sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {db}").collect())
    with pytest.raises(dpsyn_sql.InputError, match=words) as caught:
        dpsyn_sql.release(spark, name.format(db=db), **options)
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
