"""A real table in, a synthetic table out."""

import warnings
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.ledger.memory import MemoryLedger

REPOSITORY = Path(__file__).resolve().parents[2]
ADULT = REPOSITORY.parent / "shared" / "data" / "uci_adult" / "adult_all.parquet"
DOMAIN = REPOSITORY / "examples" / "adult.domain.yml"

SMALL = {
    "columns": {
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 10},
        "city": {"type": "categorical", "categories": ["Ulm", "O'Hara", 'Q"x', "東京"], "nullable": True},
        "pay": {"type": "numeric", "lower": "0.00", "upper": "999.99", "bins": 5},
        "since": {"type": "temporal", "lower": "2000-01-01", "upper": "2009-12-31", "bins": 10},
    }
}


def small_table(con, rows=2000, name="people"):
    con.execute("CREATE TYPE mood AS ENUM ('good', 'bad')")
    con.execute(
        f"""CREATE TABLE {name} AS SELECT
        (i * 7 % 100)::SMALLINT AS age,
        CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'Ulm' WHEN 2 THEN 'O''Hara' WHEN 3 THEN 'Q"x' ELSE '東京' END
            AS city,
        (i % 1000 + 0.25)::DECIMAL(7, 2) AS pay,
        DATE '2000-01-01' + (i % 3600)::INTEGER AS since,
        (CASE WHEN i % 3 = 0 THEN 'good' ELSE 'bad' END)::mood AS mood,
        i % 2 = 0 AS active
        FROM range({rows}) AS t(i)"""
    )


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        yield connection


def described(con, relation):
    return [row[:2] for row in con.execute(f"DESCRIBE {relation}").fetchall()]


@pytest.mark.parametrize(
    ("method", "delta"),
    [
        *product(("independent", "auto"), (1e-9, 0)),
        *(pytest.param("copula", delta, marks=pytest.mark.slow) for delta in (1e-9, 0)),
        ("independent", "1e-9"),
    ],
)
def test_same_schema_and_valid_values_only(con, method, delta):
    small_table(con)
    result = dpsyn_sql.release(con, "people", epsilon=5, delta=delta, method=method, domain=SMALL)
    assert described(con, "people_synthetic") == described(con, "people")
    assert result.rows == con.execute("SELECT count(*) FROM people_synthetic").fetchone()[0]
    assert abs(result.rows - 2000) < 1000
    outside = con.execute(
        """SELECT count(*) FROM people_synthetic
        WHERE NOT (age BETWEEN 0 AND 99) OR NOT (pay BETWEEN 0 AND 999.99)
        OR NOT (since BETWEEN DATE '2000-01-01' AND DATE '2009-12-31')
        OR NOT (city IN ('Ulm', 'O''Hara', 'Q"x', '東京', '__other__'))
        OR age IS NULL OR pay IS NULL OR since IS NULL"""
    ).fetchone()[0]
    assert outside == 0


@pytest.mark.parametrize("method", ["independent", "copula"])
def test_one_way_counts_are_kept_at_large_epsilon(con, method):
    """At epsilon 1000 the noise is a few rows, so what is lost is the method's and the sampler's fault."""
    small_table(con, 20_000)
    dpsyn_sql.release(con, "people", epsilon=1000, domain=SMALL, method=method)
    for column in ("age // 10", "city", "mood", "active", "year(since)"):
        counts = "SELECT {0} AS v, count(*) AS c FROM {1} GROUP BY v"
        distance = con.execute(
            f"""SELECT sum(abs(coalesce(a.c, 0) - coalesce(b.c, 0))) / 40000
            FROM ({counts.format(column, "people")}) a
            FULL JOIN ({counts.format(column, "people_synthetic")}) b ON a.v IS NOT DISTINCT FROM b.v"""
        ).fetchone()[0]
        assert distance < 0.03, column


def test_copula_keeps_a_strong_dependence_and_independent_does_not(con):
    con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS a, i % 2 = 0 AS b FROM range(10000) AS r(i)")
    dpsyn_sql.release(con, "t", epsilon=10, into="kept", method="copula")
    dpsyn_sql.release(con, "t", epsilon=10, into="lost", method="independent")
    share = "SELECT count(*) FILTER (a = b) / count(*) FROM "
    assert con.execute(share + "kept").fetchone()[0] > 0.95
    assert con.execute(share + "lost").fetchone()[0] < 0.6


@pytest.mark.slow
@pytest.mark.skipif(not ADULT.exists(), reason="the real table is not distributed with the project")
def test_uci_adult_with_its_declared_domain(con):
    con.execute(f"CREATE TABLE adult AS SELECT * EXCLUDE (split) FROM '{ADULT}'")
    result = dpsyn_sql.release(con, "adult", domain=DOMAIN)
    assert described(con, "adult_synthetic") == described(con, "adult")
    assert abs(result.rows - 48_842) < 3_000
    for column in ("workclass", "education", "occupation", "native_country", "sex", "income"):
        strange = con.execute(
            f"""SELECT count(*) FROM adult_synthetic WHERE {column} IS NOT NULL
            AND {column} NOT IN (SELECT {column} FROM adult WHERE {column} IS NOT NULL)"""
        ).fetchone()[0]
        assert strange == 0
    bounds = con.execute(
        "SELECT min(age), max(age), min(hours_per_week), max(hours_per_week) FROM adult_synthetic"
    )
    low, high, least, most = bounds.fetchone()
    assert low >= 17 and high <= 90 and least >= 1 and most <= 99


def test_release_object(con):
    small_table(con)
    result = dpsyn_sql.release(con, "people", epsilon="0.5", domain=SMALL, method="copula", rows=123, seed=7)
    assert result.rows == 123 and result.delta == 1e-9
    assert 0.4 < result.epsilon <= 0.5
    assert result.table in repr(result) and result.id in repr(result)
    table = result.marginal(["mood", "city"])
    assert len(table) == 3 * 6 and set(table["basis"]) == {"measured"}
    assert (table["standard_error"] > 0).all()
    assert table["estimate"].sum() == pytest.approx(result.model.total, rel=1e-6)
    with pytest.raises(dpsyn_sql.InputError, match="no attribute 'nope'"):
        result.marginal(["nope"])
    certificate = result.certificate()
    assert certificate["release"] == result.id
    assert certificate["sampling"] == {"rows": 123, "seed": 7, "drawn": "with one-way counts met"}
    assert [mechanism["event"] for mechanism in certificate["mechanisms"]] == ["gaussian", "gaussian"]
    certificate["release"] = "changed"
    assert result.certificate()["release"] == result.id


def test_tables_of_one_name_in_two_schemas_keep_a_model_each(con):
    for schema in ("one", "two"):
        con.execute(
            f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.t AS SELECT range % 2 = 0 AS a FROM range(50)"
        )
        dpsyn_sql.release(con, f"{schema}.t", seed=1)
    names = con.execute("SELECT name FROM dpsyn_releases() ORDER BY name").fetchall()
    assert names == [("one.t_synthetic",), ("two.t_synthetic",)]
    assert len(con.execute("FROM dpsyn_sample('two.t_synthetic', 5)").fetchall()) == 5


@pytest.mark.slow
def test_error_bars_are_honest(con):
    """The z-scores of a measured one-way have variance one (10 draws of 10 cells)."""
    small_table(con, 500)
    columns = {"mood": "mood::VARCHAR", "city": "city"}
    exact = {
        name: dict(con.execute(f"SELECT {label}, count(*) FROM people GROUP BY ALL").fetchall())
        for name, label in columns.items()
    }
    scores = []
    for _ in range(10):
        result = dpsyn_sql.release(
            con, "people", domain=SMALL, method="independent", replace=True, ledger=MemoryLedger()
        )
        for name, counts in exact.items():
            table = result.marginal([name])
            found = [counts.get(label, 0) for label in table[name].where(table[name].notna(), None)]
            scores += ((table.noisy - found) / table.standard_error).tolist()
    assert len(scores) >= 80
    assert 0.6 < np.std(scores) < 1.5
    assert abs(np.mean(scores)) < 0.5


@pytest.mark.parametrize("rows", [0, 1])
def test_tiny_and_empty_tables(con, rows):
    small_table(con, rows)
    for method in ("independent", "copula"):
        result = dpsyn_sql.release(
            con, "people", domain=SMALL, method=method, rows=10, replace=True, new_debit=True
        )
        assert result.rows == 10
        assert described(con, "people_synthetic") == described(con, "people")


def test_a_total_below_zero_writes_an_empty_table(con):
    """A tiny epsilon on an empty table gives a negative total in half the runs."""
    con.execute("CREATE TABLE t(a BOOLEAN)")
    seen, runs = set(), 0
    while seen != {True, False}:
        runs += 1
        assert runs <= 40
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = dpsyn_sql.release(con, "t", epsilon=0.01, replace=True, ledger=MemoryLedger())
        warned = any("empty" in str(one.message) for one in caught)
        assert warned == (result.rows == 0)
        seen.add(result.rows > 0)
    assert described(con, "t_synthetic") == [("a", "BOOLEAN")]


def test_all_null_and_one_category_columns(con):
    con.execute("CREATE TABLE t AS SELECT NULL::INTEGER AS n, 'x' AS one FROM range(1000)")
    spec = {
        "columns": {
            "n": {"type": "numeric", "lower": 0, "upper": 9, "nullable": True},
            "one": {"type": "categorical", "categories": ["x"], "other": False},
        }
    }
    for method in ("independent", "copula"):
        dpsyn_sql.release(con, "t", domain=spec, epsilon=10, method=method, replace=True, new_debit=True)
        nulls, ones, rows = con.execute(
            "SELECT count(*) FILTER (n IS NULL), count(*) FILTER (one = 'x'), count(*) FROM t_synthetic"
        ).fetchone()
        assert ones == rows and nulls > 0.95 * rows


def test_the_seed_is_of_the_sampling_only(con):
    small_table(con)
    first = dpsyn_sql.release(con, "people", domain=SMALL, seed=1, into="s1")
    second = dpsyn_sql.release(con, "people", domain=SMALL, seed=1, into="s2", new_debit=True)
    differ = [
        (a.values != b.values).any()
        for a, b in zip(first.measurements[:2], second.measurements[:2], strict=True)
    ]
    assert any(differ)


def test_the_debit_is_made_and_kept(con):
    small_table(con)
    ledger = MemoryLedger()
    dpsyn_sql.release(con, "people", domain=SMALL, ledger=ledger)
    assert [entry.state for entry in ledger.overview().releases] == ["published"]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.csv.gz"])
def test_files(con, tmp_path, name):
    small_table(con)
    con.execute(f"COPY (SELECT age, city, mood FROM people) TO '{tmp_path}/in.parquet' (FORMAT parquet)")
    spec = {"columns": {name: SMALL["columns"][name] for name in ("age", "city")}}
    spec["columns"]["mood"] = {"type": "categorical", "categories": ["good", "bad"], "other": False}
    result = dpsyn_sql.release(None, tmp_path / "in.parquet", into=tmp_path / name, domain=spec)
    assert con.execute(f"SELECT count(*) FROM '{tmp_path / name}'").fetchone()[0] == result.rows
    assert [row[0] for row in described(con, f"(FROM '{tmp_path / name}')")] == ["age", "city", "mood"]
    beside = f"{name}.dpsyn.duckdb"
    left = sorted([".dpsyn-ledger", "in.parquet", name, beside])
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    with duckdb.connect(str(tmp_path / beside), read_only=True) as kept:
        label = name.partition(".")[0]
        assert len(kept.execute(f"FROM dpsyn_sample('{label}', 9)").fetchall()) == 9


def test_csv_source_has_declared_types(tmp_path, con):
    (tmp_path / "in.csv").write_text("age;name\n" + "12;a\nx;b\n99999;\n" * 50)
    spec = {
        "columns": {
            "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 5, "nullable": True},
            "name": {"type": "categorical", "categories": ["a", "b"], "nullable": True},
        }
    }
    dpsyn_sql.release(None, tmp_path / "in.csv", domain=spec, epsilon=50)
    out = tmp_path / "in_synthetic.parquet"
    assert described(con, f"(FROM '{out}')") == [("age", "BIGINT"), ("name", "VARCHAR")]
    nulls, top, rows = con.execute(
        f"SELECT count(*) FILTER (age IS NULL), count(*) FILTER (age >= 80), count(*) FROM '{out}'"
    ).fetchone()
    assert rows > 100 and 0.2 < nulls / rows < 0.45 and 0.2 < top / rows < 0.45


def test_query_and_database_file(tmp_path):
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as con:
        small_table(con)
    result = dpsyn_sql.release(
        path, "SELECT age + 1 AS age, active FROM people WHERE age < 50", into="young",
        domain={"columns": {"age": SMALL["columns"]["age"]}}, epsilon=5,
    )  # fmt: skip
    with duckdb.connect(str(path)) as con:
        assert con.execute("SELECT count(*) FROM young").fetchone()[0] == result.rows
        assert described(con, "young") == described(con, "(SELECT age + 1 AS age, active FROM people)")


def test_caller_settings_and_work_tables_are_left_alone(con):
    small_table(con)
    before = con.execute("SELECT name, value FROM duckdb_settings() ORDER BY name").fetchall()
    dpsyn_sql.release(con, "people", domain=SMALL)
    assert con.execute("SELECT name, value FROM duckdb_settings() ORDER BY name").fetchall() == before
    tables = con.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY 2").fetchall()
    assert [name for schema, name in tables if schema != "dpsyn"] == ["people", "people_synthetic"]
    assert {schema for schema, _ in tables} == {"main", "dpsyn"}
    assert con.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone()[0] == 0
