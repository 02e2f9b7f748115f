"""A real table in, a synthetic table out."""

from itertools import product

import duckdb
import pytest

import dpsyn_sql

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


def described(con, relation):
    return [row[:2] for row in con.execute(f"DESCRIBE {relation}").fetchall()]


@pytest.mark.parametrize(
    ("method", "delta"),
    [
        *product(("independent", "auto"), (1e-9, 0)),
        *(
            pytest.param("copula", delta, marks=[pytest.mark.slow, pytest.mark.required])
            for delta in (1e-9, 0)
        ),
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
    with pytest.raises(dpsyn_sql.errors.InputError, match="no attribute 'nope'"):
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
            f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.t AS SELECT range % 2 = 0 AS a FROM range(500)"
        )
        dpsyn_sql.release(con, f"{schema}.t", seed=1)
    names = con.execute("SELECT name FROM dpsyn_releases() ORDER BY name").fetchall()
    assert names == [("one.t_synthetic",), ("two.t_synthetic",)]
    assert len(con.execute("FROM dpsyn_sample('two.t_synthetic', 5)").fetchall()) == 5


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
