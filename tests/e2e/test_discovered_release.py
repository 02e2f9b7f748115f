"""Whole releases of tables whose domain nobody declared."""

import re

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsyn_sql
from dpsyn_sql.errors import BudgetError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The source is a database in memory"),
    pytest.mark.filterwarnings("ignore:Of "),
    pytest.mark.filterwarnings("ignore:The noisy total is not above zero"),
]

RNG = np.random.default_rng(7)
ROWS = 20_000
PEOPLE = pd.DataFrame(
    {
        "city": RNG.choice(["Bonn", "Köln", "Ulm"], ROWS, p=[0.6, 0.3, 0.1]),
        "age": RNG.integers(18, 80, ROWS),
        "pay": np.where(RNG.random(ROWS) < 0.43, np.nan, RNG.gamma(2.0, 20.0, ROWS).round(2)),
        "born": np.datetime64("2013-01-01") + RNG.integers(0, 365, ROWS).astype("timedelta64[D]"),
        "person": RNG.integers(0, 4_000, ROWS),
    }
)
DDL = "CREATE TABLE t(city VARCHAR NOT NULL, age SMALLINT, pay DECIMAL(8,2), born DATE, person INTEGER)"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    with duckdb.connect() as con:
        con.execute(DDL)
        con.register("people", PEOPLE)
        con.execute(
            "INSERT INTO t SELECT city, age, CASE WHEN isnan(pay) THEN NULL ELSE pay END, born, person FROM people"
        )
        con.execute(f"COPY t TO '{path}'")
    return path


@pytest.fixture
def con(people):
    with duckdb.connect() as con:
        con.execute(DDL)
        con.execute(f"INSERT INTO t FROM '{people}'")
        yield con


def exclude_person(**options):
    return {"exclude": ["person"], "seed": 1, **options}


@pytest.mark.parametrize("method", ["independent", "adaptive"])
def test_the_copy_looks_like_the_table(con, method):
    release = dpsyn_sql.release(con, "t", method=method, **exclude_person())
    con.execute(DDL.replace("TABLE t", "TABLE again").replace(", person INTEGER", ""))
    con.execute("INSERT INTO again FROM t_synthetic")  # types and NOT NULL hold
    far = "avg((born NOT BETWEEN '2012-01-01' AND '2014-12-31')::INT)"
    facts = f"avg((city = 'Bonn')::INT), avg(age), avg((pay IS NULL)::INT), avg(pay), {far}"
    true = con.execute(f"SELECT {facts} FROM t").fetchone()
    copy = con.execute(f"SELECT {facts} FROM again").fetchone()
    assert abs(release.rows - ROWS) < 400
    assert copy[0] == pytest.approx(true[0], abs=0.02)
    assert copy[1] == pytest.approx(true[1], abs=1.5)
    assert copy[2] == pytest.approx(true[2], abs=0.02)
    assert float(copy[3]) == pytest.approx(float(true[3]), rel=0.1)
    # In one of 20 releases noise is taken for a year far away, with about a hundredth of the rows.
    assert true[4] == 0 and copy[4] < 0.05
    assert {a.origin for a in release.model.domain.attributes} == {"discovered"}
    assert set(release.model.domain["city"].labels) == {"Bonn", "Köln", "Ulm"}


def test_the_certificate_says_what_was_spent_and_found(con):
    release = dpsyn_sql.release(con, "t", **exclude_person(epsilon=2.0))
    facts = release.certificate()
    steps = [m["step"] for m in facts["mechanisms"]]
    assert steps[:2] == ["discover rows", "discover keys"]
    assert {"discover values", "discover grid", "discover steps", "discover cells"} <= set(steps)
    budget = facts["budget"]
    assert budget["used_units_of_1e-15"] <= budget["reserved_units_of_1e-15"]
    assert budget["threshold_delta"] == pytest.approx(1e-10)
    assert facts["guarantee"]["epsilon"] <= 2.0 * (1 + 1e-9) and facts["guarantee"]["delta"] == 1e-9
    shares = [m for m in facts["mechanisms"] if m["step"] == "discover keys"]
    assert shares[0]["column"] == "city" and shares[0]["threshold"] > 0


def test_pure_privacy_finds_bounds_and_no_categories(con):
    with pytest.raises(BudgetError, match=r"delta=0.*'city'"):
        dpsyn_sql.release(con, "t", delta=0, **exclude_person())
    spec = {"columns": {"city": {"type": "categorical", "categories": ["Bonn", "Köln", "Ulm"]}}}
    release = dpsyn_sql.release(con, "t", delta=0, epsilon=4, domain=spec, **exclude_person())
    (far,) = con.execute("SELECT avg((age NOT BETWEEN 0 AND 255)::INT) FROM t_synthetic").fetchone()
    assert far < 0.005 and release.delta == 0  # noise gives some rows to a range beside now and then
    assert {m["event"] for m in release.certificate()["mechanisms"]} <= {"laplace", "selection"}


def test_the_plan_says_what_can_be_found_column_by_column(con):
    text = dpsyn_sql.plan(con, "t", **exclude_person()).verbose()
    assert "city: to be discovered, at most 100 codes" in text
    assert "values that at least" in text and "bins: numbers of units" in text
    unlimited = dpsyn_sql.plan(con, "t", **exclude_person(domain={"columns": {}}, discover=True)).verbose()
    assert unlimited == text


def test_a_small_table_warns_that_its_domain_should_be_declared(tmp_path):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE small AS SELECT 'v' || (i % 5) AS v, i % 3 AS w FROM range(300) AS r(i)")
        told = "No value of 'v' is frequent enough|Nothing is known of 'v'"  # noise decides
        with pytest.warns(UserWarning, match=told):
            release = dpsyn_sql.release(con, "small", epsilon=0.5)
        assert any(re.search(told, note) for note in release.notes)


HARD = [
    ("VARCHAR", ["'' ", "'é'", "'e\u0301'", "'{{ x }}'", "repeat('x', 100000)", "NULL", "chr(127)"]),
    ("DOUBLE", ["'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "1.7e308", "-5e-324", "0", "NULL"]),
    ("FLOAT", ["'nan'::FLOAT", "'inf'::FLOAT", "3.4e38", "1e-45", "NULL"]),
    ("BIGINT", ["9223372036854775807", "-9223372036854775808", "0", "NULL"]),
    ("HUGEINT", ["170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"]),
    ("UHUGEINT", ["340282366920938463463374607431768211455", "0"]),
    ("DECIMAL(38,2)", ["999999999999999999999999999999999999.99", "-0.01", "NULL"]),
    ("DATE", ["DATE '0001-01-01'", "DATE '9999-12-31'", "'infinity'::DATE", "NULL"]),
    ("TIMESTAMP", ["TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'", "'-infinity'::TIMESTAMP"]),
    ("TIMESTAMPTZ", ["TIMESTAMPTZ '1900-01-01 00:00:00+00'", "NULL"]),
    ("TIMESTAMP_NS", ["TIMESTAMP_NS '1700-01-01'", "TIMESTAMP_NS '2262-04-11'"]),
    ("TIME", ["TIME '00:00:00'", "TIME '23:59:59.999999'"]),
    ("BOOLEAN", ["true", "false", "NULL"]),
    ("TINYINT", ["-128", "127"]),
    ("UTINYINT", ["0", "255"]),
    ("INTEGER", ["NULL"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql_type", "values"), HARD, ids=[name for name, _ in HARD])
def test_every_value_of_every_type_is_taken(sql_type, values):
    """Each value 300 times: it must stand out, be found, and come back as the exact type."""
    with duckdb.connect() as con:
        con.execute(f'CREATE TABLE t("{{{{ x }}}}" {sql_type}, i INTEGER)')
        for value in values:
            con.execute(f"INSERT INTO t SELECT ({value})::{sql_type}, r FROM range(300) AS q(r)")
        release = dpsyn_sql.release(con, "t", epsilon=20.0, seed=3)
        (name, written, *_), *_ = con.execute("DESCRIBE t_synthetic").fetchall()
        assert (name, written) == ("{{ x }}", con.execute("DESCRIBE t").fetchall()[0][1])
        assert abs(release.rows - 300 * len(values)) < 200


@pytest.mark.parametrize("number", [4, 11], ids=["full table", "sets"])
@pytest.mark.parametrize("target", [None, "a", "d"])
def test_a_small_table_with_a_column_of_which_nothing_is_found(con, number, target):
    """Its one look counted that column, and no pair does: the method must not ask for it either. Nor is it
    said to be too large for pairs."""
    more = "".join(f", (hash(i * {n}) % 3)::INTEGER AS c{n}" for n in range(10, 7 + number))
    con.execute(
        "CREATE TABLE small AS SELECT ['a', 'b'][1 + (hash(i) % 2)::INT] AS a, (hash(i * 3) % 3)::INTEGER AS b, "
        "((hash(i) % 2 + hash(i * 5) % 2) // 2)::INTEGER AS c, CASE WHEN hash(i * 7) % 300 = 0 "
        f"THEN DATE '2020-01-01' + (hash(i * 9) % 900)::INT END AS d{more} FROM range(3000) r(i)"
    )
    release = dpsyn_sql.release(con, "small", workload=target)
    assert con.execute("SELECT avg((d IS NULL)::INT) FROM small_synthetic").fetchone()[0] > 0.95
    assert not any("too large for a table" in note for note in release.notes)
