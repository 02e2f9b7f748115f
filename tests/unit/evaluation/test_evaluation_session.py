"""Which tables are a pair to compare, and that evaluate() writes nothing and tells no cell in an error."""

import hashlib
import re

import duckdb
import pytest
from support.one_compared import opened_one

import dpsyn_sql
from dpsyn_sql.errors import DpsynError, InputError, SourceError

CANARY = "canary4711"
SETUP = f"""
CREATE TABLE real AS SELECT i % 7 AS a, '{CANARY}' || i % 3 AS b, DATE '2020-01-01' + CAST(i AS INTEGER) AS d FROM range(60) t(i);
CREATE TABLE made AS SELECT i % 6 AS a, '{CANARY}' || i % 2 AS b, DATE '2020-01-01' + CAST(i AS INTEGER) AS d FROM range(40) t(i);
CREATE VIEW shown AS SELECT * FROM made;
"""


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(SETUP)
        yield connection


def columns_of(con, *tables, **more):
    with opened_one(con, *tables, **more) as session:
        return [(column.name, column.sql_type, column.kind) for column in session.columns]


TYPED = [("a", "BIGINT", "numeric"), ("b", "VARCHAR", "text"), ("d", "DATE", "temporal")]


@pytest.mark.parametrize(
    "synthetic", ["made", "shown", "main.made", "SELECT d, b, a FROM made", "FROM made "]
)
def test_tables_views_and_queries_are_compared(con, synthetic):
    assert columns_of(con, "real", synthetic) == TYPED


def test_files_databases_and_their_mixture(con, tmp_path):
    for name, table in (("real.csv", "real"), ("made.csv", "made"), ("made.parquet", "made")):
        con.execute(f"COPY {table} TO '{tmp_path / name}'")
    con.execute(f"ATTACH '{tmp_path / 'w.duckdb'}' AS w; CREATE TABLE w.real AS FROM real; DETACH w")
    before = hashlib.sha256((tmp_path / "w.duckdb").read_bytes()).digest()
    files = [tmp_path / name for name in ("real.csv", "made.parquet", "made.csv")]
    assert columns_of(None, *files) == TYPED  # text is read as the typed file's types
    assert (
        columns_of(None, files[0], files[2], limits={"memory": "1GB"}) == TYPED
    )  # all text: as their values look
    assert columns_of(con, "real", str(files[2])) == TYPED
    assert columns_of(tmp_path / "w.duckdb", "real", files[1], files[2]) == TYPED
    assert columns_of(
        None, f"SELECT a FROM '{files[1]}'", f"SELECT CAST(a AS BIGINT) AS a FROM '{files[0]}'"
    ) == [("a", "BIGINT", "numeric")]
    assert hashlib.sha256((tmp_path / "w.duckdb").read_bytes()).digest() == before
    assert not (tmp_path / "w.duckdb.wal").exists()


def test_numbers_of_other_widths_and_names_in_other_case_match(con):
    con.execute(
        "CREATE TABLE wide AS SELECT CAST(A AS SMALLINT) AS A, CAST(B AS ENUM('x')) AS B, CAST(d AS TIMESTAMP) AS D FROM (SELECT a, 'x' AS b, d FROM real)"
    )
    assert columns_of(con, "real", "wide") == [
        ("a", "DOUBLE", "numeric"),
        TYPED[1],
        ("d", "TIMESTAMP", "temporal"),
    ]


def test_ids_are_no_subject_of_comparison(con, tmp_path):
    """Those of the stored release; without one what is unique by the catalog, and UUIDs."""
    con.execute(
        "CREATE TABLE people AS SELECT i // 2 AS who, i AS line, uuid() AS ref, i % 7 AS a FROM range(60) r(i)"
    )
    domain = {"columns": {"line": {"type": "key"}, "a": {"type": "numeric", "lower": 0, "upper": 6}}}
    asked = {
        "domain": domain,
        "unit": "who",
        "most": 1,
        "ledger": tmp_path / "ledger",
        "method": "independent",
    }
    for into in ("people2", tmp_path / "p.parquet"):
        dpsyn_sql.release(con, "people", into=into, version=str(into), **asked)
        with opened_one(con, "people", str(into)) as session:
            assert [column.name for column in session.columns] == ["a"]
            assert session.notes == (
                "Not compared, because they are ids with fresh values: 'who', 'line', 'ref'.",
            )
    made = dpsyn_sql.evaluate(con, "people", "people2")
    assert made.tables["columns"]["column"].tolist() == ["a"]
    con.execute("CREATE TABLE keyed (n BIGINT PRIMARY KEY, ref UUID, a BIGINT)")
    con.execute("INSERT INTO keyed SELECT line, ref, a FROM people; CREATE TABLE copy AS FROM keyed")
    assert columns_of(con, "keyed", "copy") == [TYPED[0]]
    with pytest.raises(InputError, match="ids alone \\('ref'\\)"):
        columns_of(con, "SELECT ref FROM keyed", "SELECT ref FROM copy")


def test_a_key_that_is_released_by_its_values_is_compared(con, tmp_path):
    con.execute("CREATE TABLE days (a BIGINT PRIMARY KEY); INSERT INTO days FROM range(30)")
    domain = {"columns": {"a": {"type": "numeric", "lower": 0, "upper": 30}}}
    options = {"ledger": tmp_path / "ledger", "method": "independent", "rows": 30}
    dpsyn_sql.release(con, "days", into="days2", domain=domain, **options)
    assert columns_of(con, "days", "days2") == [TYPED[0]]


def test_what_a_release_excluded_is_left_out_and_named(con, tmp_path):
    """By the table that it wrote, in a database and in a file; a holdout needs no more columns either."""
    domain = {
        "columns": {
            "a": {"type": "numeric", "lower": 0, "upper": 6},
            "b": {"type": "categorical", "categories": [f"{CANARY}{i}" for i in range(3)]},
        }
    }
    asked = {"domain": domain, "exclude": ["D"], "ledger": tmp_path / "ledger", "rows": 30}
    for into in ("real2", tmp_path / "r.csv"):
        dpsyn_sql.release(con, "real", into=into, version=str(into), **asked)
        for held in (None, "SELECT a, b FROM made", "SELECT b, d, a FROM made"):
            with opened_one(con, "real", str(into), held) as session:
                assert [column.name for column in session.columns] == ["a", "b"]
                assert session.notes == ("Not compared, because the synthetic table lacks them: 'd'.",)
    found = dpsyn_sql.evaluate(con, "real", "real2")
    assert found.tables["columns"]["column"].tolist() == ["a", "b"]
    assert "'d'" in found.summary()
    for more, message in (
        ({"unit": "d"}, "synthetic table lacks 'd', which says whose row it is"),
        ({"never": ["d > DATE '2021-01-01'"]}, "d"),
        ({"unit": "a", "order": "d"}, "order='d' is no column .* that is compared"),
    ):
        with pytest.raises(InputError, match=message):
            dpsyn_sql.evaluate(con, "real", "real2", **more)


def test_codes_with_leading_zeros_stay_text(tmp_path):
    for name in ("r", "s"):
        (tmp_path / f"{name}.csv").write_text(
            "zip,n,when\n02134,1,2020-01-01 10:00:00\n10001,2.5,2020-01-02 00:00:00\n"
        )
    assert columns_of(None, tmp_path / "r.csv", tmp_path / "s.csv") == [
        ("zip", "VARCHAR", "text"),
        ("n", "DOUBLE", "numeric"),
        ("when", "TIMESTAMP", "temporal"),
    ]


def test_text_that_cannot_be_read_is_counted_as_missing_and_told(con, tmp_path):
    (tmp_path / "s.csv").write_text(f"a,b,d\n1,x,2020-01-01\n{CANARY},x,2020-01-01\n,x,2020-01-01\n")
    found = dpsyn_sql.evaluate(con, "real", tmp_path / "s.csv")
    assert any("1 values of 'a' in synthetic cannot be read as BIGINT" in note for note in found.notes)
    assert CANARY not in " ".join(found.notes)
    columns = found.tables["columns"].set_index("column")
    assert columns.loc["a", "missing_synthetic"] == pytest.approx(2 / 3)


BAD = [
    (("real", "real"), "the same table"),
    (("real", "main.REAL"), "the same table"),
    (("real", "made", "memory.main.made"), "synthetic='made' and holdout='memory.main.made' are the same"),
    (("SELECT a FROM real", "SELECT  a\nFROM real"), "the same table"),
    (("real", "SELECT a, b, d AS e FROM made"), "lacks 'd'; synthetic has 'e'.*SELECT \"a\", \"b\" FROM"),
    (("real", "SELECT *, 1 AS more FROM made"), "synthetic has 'more', which real lacks"),
    (("real", "made", "SELECT a FROM made"), "holdout lacks"),
    (("real", "SELECT 1 AS other"), "no column in common.*right pair"),
    (("real", "SELECT * FROM made WHERE a > 99"), "no rows: there is nothing to compare"),
    (("real", "SELECT a > 1 AS a, b, d FROM made"), "'a' is integer in real, boolean in synthetic"),
    (("real", "SELECT b AS a, b, d FROM made"), "no value of 'a' in synthetic can be read as BIGINT"),
    (("SELECT [1] AS a", "SELECT [2] AS a"), "None of the columns 'a' has a type"),
    (("real", "nothing"), "no table, view or file 'nothing'"),
    (("real", "maed"), "Did you mean memory.main.made"),
    (("real", ""), "synthetic= is empty"),
    (("real", 5), "synthetic=5: give the name"),
    (("real", "/nowhere.parquet"), "no table, view or file"),
    (("real", "DELETE FROM made"), "no table, view or file"),
    (("real", "WITH x AS (DELETE FROM made RETURNING *) SELECT * FROM x"), "."),
    (("real", "SELECT * FROM read_text('/etc/hostname')"), "read_text"),
    (("real", "SELECT CAST(b AS INTEGER) AS a, b, d FROM made"), "cannot be read by the database"),
]


@pytest.mark.parametrize(("tables", "message"), BAD, ids=[str(one) for one, _ in BAD])
def test_a_wrong_pair_is_said_not_computed(con, tables, message):
    before = con.execute("SELECT database_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
    rows = con.execute("SELECT count(*) FROM made").fetchone()
    with pytest.raises(InputError) as caught:
        dpsyn_sql.evaluate(con, *tables)
    assert re.search(message, str(caught.value), flags=re.DOTALL)
    assert CANARY not in str(caught.value) and caught.value.__context__ is None
    assert (
        con.execute("SELECT database_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall() == before
    )
    assert con.execute("SELECT count(*) FROM made").fetchone() == rows


def test_wrong_places_and_arguments(con, tmp_path):
    (tmp_path / "broken.duckdb").write_text("no database")
    for arguments, message in (
        ((tmp_path / "none.duckdb", "a", "b"), "no database file"),
        ((tmp_path / "broken.duckdb", "a", "b"), "cannot be opened"),
        ((5, "a", "b"), "con=5"),
        ((None, "real", "made"), "no table, view or file"),
    ):
        with pytest.raises(InputError, match=message):
            dpsyn_sql.evaluate(*arguments)
    for more, message in (
        ({"limits": {"memory": "1GB"}}, "limits= with 'memory'"),
        ({"seed": -1}, "seed=-1"),
        ({"never": "a > 1"}, "never="),
        ({"never": [5]}, "never= has 5"),
        ({"never": ["(SELECT max(a) FROM real) > 1"]}, "never= has"),
        ({"never": ["nothing > 1"]}, "'nothing'"),
        ({"never": ["a > 1; DROP TABLE made"]}, "never= has"),
        ({"never": ["b + d"]}, "does not accept"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            dpsyn_sql.evaluate(con, "real", "made", **more)
    with pytest.raises(InputError, match="limits={'memory': 'much'}"):
        dpsyn_sql.evaluate(None, "SELECT 1 AS a", "SELECT 2 AS a", limits={"memory": "much"})
    con.execute("CREATE TEMP TABLE made AS SELECT 1 AS a")
    with pytest.raises(SourceError, match="only your connection sees"):
        dpsyn_sql.evaluate(con, "real", "made")


def test_a_condition_that_fails_on_a_value_tells_no_value(con):
    found = dpsyn_sql.evaluate(con, "real", "made", never=["CAST(b AS INTEGER) > 1", "a > 4"])
    assert found.tables["conditions"].real_rows.tolist() == [0, 16]


def test_the_output_of_a_release_is_not_the_real_table(con, tmp_path):
    spec = {
        "columns": {
            "a": {"type": "numeric", "lower": 0, "upper": 9},
            "b": {"type": "categorical", "categories": ["x"]},
            "d": {"type": "temporal", "lower": "2020-01-01", "upper": "2020-12-31"},
        }
    }
    dpsyn_sql.release(
        con, "real", into="out", epsilon="1", domain=spec, method="independent", ledger=tmp_path / "ledger"
    )
    found = dpsyn_sql.evaluate(con, "real", "out")
    assert found.rows[0] == 60
    before = (tmp_path / "ledger").read_bytes()
    with pytest.raises(InputError, match="real='out' is the synthetic output of a release.*swapped"):
        dpsyn_sql.evaluate(con, "out", "real")
    dpsyn_sql.release(
        con,
        "real",
        into=tmp_path / "out.parquet",
        epsilon="1",
        domain=spec,
        method="independent",
        ledger=tmp_path / "ledger2",
    )
    with pytest.raises(InputError, match="is the synthetic output of a release"):
        dpsyn_sql.evaluate(con, tmp_path / "out.parquet", "real")
    assert (tmp_path / "ledger").read_bytes() == before


def test_nothing_is_written_and_the_connection_is_as_before(con):
    def state():
        settings = con.execute("SELECT name, value FROM duckdb_settings() ORDER BY ALL").fetchall()
        tables = con.execute(
            "SELECT database_name, schema_name, table_name FROM duckdb_tables() ORDER BY ALL"
        ).fetchall()
        return settings, tables, con.execute("FROM duckdb_databases()").fetchall()

    before = state()
    found = dpsyn_sql.evaluate(con, "real", "made", "SELECT * FROM made WHERE a > 2", never=["a > 5"])
    assert set(found.tables) >= {
        "columns",
        "marginals",
        "worst",
        "conjunctions",
        "pairs",
        "ranges",
        "conditions",
    }
    after = state()
    assert after[1:] == before[1:]
    assert after[0] == before[0]


def test_a_failing_engine_tells_no_cell(con, monkeypatch):
    monkeypatch.setattr("dpsyn_sql.evaluation.codes.value_of", lambda column: 'CAST("b" AS INTEGER)')
    with pytest.raises(DpsynError) as caught:
        dpsyn_sql.evaluate(con, "real", "made")
    assert CANARY not in str(caught.value) and caught.value.__context__ is None
