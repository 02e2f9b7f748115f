"""Whole releases of Spark tables: accuracy, noise, replays; counts of real tables, and questions, beside DuckDB."""

import math
from collections import Counter
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.spark import counted, exact_counts, table_of

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingLedger, ReplayedNoise
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.measure.noise import ExactNoise

pytestmark = [pytest.mark.slow, pytest.mark.required]

ROOT = Path(__file__).resolve().parents[2]
ADULT, DOMAIN = ROOT / "examples" / "adult.parquet", ROOT / "examples" / "adult.domain.yml"


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE adult AS FROM '{ADULT}'")
        yield connection


@pytest.fixture(scope="module")
def adult(spark, db, con, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adult")
    table_of(spark, f"{db}.adult", con, "FROM adult", folder / "adult")
    return f"{db}.adult", folder


@pytest.fixture(scope="module")
def released(spark, adult):
    """A release at epsilon 1, and the options that gave it."""
    name, folder = adult
    options = {"epsilon": 1.0, "domain": DOMAIN, "into": f"{name}_synthetic", "ledger": folder / "ledger"}
    options["method"] = "dpsyn"  # which measures whole tables, once
    return dpsyn_sql.release(spark, name, **options), options


def shares(rows, name):
    counts = Counter(rows[name].astype(str))
    return {value: number / len(rows) for value, number in counts.items()}


def distance(one, two, name):
    """Half of the L1 distance of the shares of a column's values."""
    here, there = shares(one, name), shares(two, name)
    return sum(abs(here.get(value, 0) - there.get(value, 0)) for value in here.keys() | there.keys()) / 2


def test_the_table_has_the_columns_types_and_shares_of_the_source(spark, con, adult, released):
    result, options = released
    source, made = spark.table(adult[0]), spark.table(options["into"])
    kinds = [(field.name, field.dataType.simpleString()) for field in source.schema]
    assert [(field.name, field.dataType.simpleString()) for field in made.schema] == kinds
    assert made.count() == result.rows
    rows, real = made.toPandas(), con.execute("FROM adult").df()
    for name in ("sex", "race", "education", "income", "marital_status"):
        assert distance(rows, real, name) < 0.03, name
    pairs = [[frame["sex"].astype(str) + frame["income"].astype(str)] for frame in (rows, real)]
    together = [Counter(pair[0]) for pair in pairs]
    assert all(abs(together[0][key] / len(rows) - n / len(real)) < 0.02 for key, n in together[1].items())


def shape_of(table, domain):
    """Of the marginal over codes; a table over bins has a smaller one."""
    return MarginalQuery(table.attrs).shape(domain)


def test_answers_are_the_counts_of_duckdb_and_noise_of_the_ledgered_scale(con, released):
    """A row that Spark counted twice, or not at all, would add up over the cells."""
    result, _ = released
    domain = dpsyn_sql.plan(con, "adult", domain=DOMAIN).plan.domain
    whole = [table for table in result.measurements if table.values.shape == shape_of(table, domain)]
    with open_source(con, "adult") as session:
        exact = counted(session, domain, [MarginalQuery(table.attrs) for table in whole])
    scaled = [
        (table.values - counts).ravel() / table.sigma for table, counts in zip(whole, exact, strict=True)
    ]
    noise = np.concatenate(scaled)
    assert noise.size > 100
    assert abs(noise.mean()) < 6 / math.sqrt(noise.size)
    assert abs((noise**2).mean() - 1) < 6 * math.sqrt(2 / noise.size)
    for part in scaled:
        assert abs(part.sum()) < 6 * math.sqrt(part.size)


def digest(table):
    """The number of rows, and a sum that tells tables with other rows."""
    hashed = f"xxhash64({', '.join(table.columns)})"
    return table.selectExpr("count(*)", f"sum(CAST({hashed} AS DECIMAL(38)))").first()


def test_the_same_call_costs_nothing_in_another_session(spark, adult, released):
    result, options = released
    before, session = digest(spark.table(options["into"])), spark.newSession()
    again = dpsyn_sql.release(session, adult[0], **options)
    assert again.replayed and again.id == result.id
    assert digest(session.table(options["into"])) == before


def test_a_stored_release_is_loaded_from_spark(spark, released):
    result, options = released
    loaded = dpsyn_sql.load(spark, options["into"])
    assert loaded.id == result.id
    one, two = loaded.marginal(["sex", "income"]), result.marginal(["sex", "income"])
    assert one[["sex", "income"]].equals(two[["sex", "income"]])
    numbers = ["estimate", "noisy", "standard_error"]
    np.testing.assert_allclose(one[numbers], two[numbers], rtol=1e-6)  # a stored model is rounded
    assert len(loaded.sample(100, seed=3)) == 100


DATA = ROOT.parent / "shared" / "data"
REAL = {
    "adult": ("uci_adult/adult_all.parquet", "* EXCLUDE (split)", "examples/adult.domain.yml"),
    "credit": ("german_credit/german_symbolic.parquet", "*", "benchmarks/domains/german_credit.yml"),
    "shop": ("online_retail/online_retail.parquet", "*", "benchmarks/domains/online_retail.yml"),
}
OUT = {"shop": ("CustomerID",)}
"""Columns that no domain declares: a unit."""
MOST = 20_000
"""Rows of a table: more would only take longer."""


@pytest.fixture(scope="module")
def real(spark, db, con, tmp_path_factory):
    """A real table in DuckDB and in Spark, and its domain."""
    folder = tmp_path_factory.mktemp("tables")

    def of(name):
        path, columns, spec = REAL[name]
        if not (DATA / path).exists():
            pytest.skip(f"needs {DATA / path}")
        known = con.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [name]).fetchall()
        if not known:
            con.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM '{DATA / path}' LIMIT {MOST}")
            table_of(spark, f"{db}.{name}", con, f"FROM {name}", folder / name)
        declared = dpsyn_sql.plan(con, name, domain=ROOT / spec, exclude=OUT.get(name, ()))
        return name, f"{db}.{name}", declared.plan.domain

    return of


@pytest.mark.parametrize("name", REAL)
def test_all_one_way_pair_and_triple_counts_are_those_of_duckdb(spark, con, real, name):
    here, there, domain = real(name)
    queries = [MarginalQuery(some) for k in range(4) for some in combinations(domain.names, k)]
    with open_source(con, here) as one, open_source(spark, there) as two:
        assert two.engine.in_parts
        expected, found = counted(one, domain, queries), counted(two, domain, queries)
    rows = con.execute(f"SELECT count(*) FROM {here}").fetchone()[0]
    for query, one, two in zip(queries, expected, found, strict=True):
        assert two.dtype == np.int64 and two.sum() == rows
        np.testing.assert_array_equal(one, two, err_msg=str(query.attrs))


SPEC = {
    "columns": {
        "n": {"type": "numeric", "edges": [0, 1, 7, 9, 40]},
        "c": {"type": "categorical", "categories": [2, 3, 5, 9]},
        "s": {"type": "categorical", "categories": ["a", "b", "it's"], "nullable": True},
        "d": {"type": "temporal", "lower": "2001-01-01", "upper": "2001-03-31", "bins": 3},
        "x": {"type": "numeric", "lower": 0.0, "upper": 1.0, "bins": 3, "nullable": True},
    }
}
TOY = """
    SELECT
        (i // 2)::VARCHAR AS who, (i % 41)::INTEGER AS n, [2, 3, 5, 7, 9][i % 5 + 1]::INTEGER AS c,
        ['a', 'b', 'it''s', 'zz', NULL][i % 7 % 5 + 1] AS s,
        DATE '2001-01-01' + (i % 90)::INTEGER AS d,
        ['0.5', 'nan', 'inf', '-inf', NULL, '-0.0'][i % 6 + 1]::DOUBLE AS x,
        ((i % 2000) / 8)::DECIMAL(9, 2) AS price
    FROM range(3000) r(i)
"""
OPTIONS = {
    "rows": {"exclude": ("who", "price"), "domain": SPEC},
    "units": {"unit": "who", "most": 3, "weights": False, "exclude": ("price",), "domain": SPEC},
    "learnt of units": {
        "unit": "who",
        "most": 3,
        "weights": False,
        "exclude": ("c", "d"),
        "epsilon": 50.0,
    },
}


@pytest.mark.parametrize("options", OPTIONS)
def test_every_question_is_answered_from_the_counts_of_duckdb(spark, db, con, tmp_path, options):
    """The answers of a release of DuckDB are replayed through Spark; what is behind them is compared."""
    con.execute(f"CREATE OR REPLACE TABLE toy AS {TOY}")
    name = f"{db}.toy_{options.replace(' ', '_')}"
    table_of(spark, name, con, "FROM toy", tmp_path / "toy")
    calls = []
    for place, source, into in ((con, "toy", "toy_synthetic"), (spark, name, f"{name}_synthetic")):
        noise = ReplayedNoise(calls[0]) if calls else ExactNoise()
        given = {"epsilon": 20.0, "seed": 1, "replace": True, **OPTIONS[options]}
        calls.append(exact_counts(place, source, into, noise, ledger=RecordingLedger(), **given))
    first, again = calls
    assert len(first) == len(again) > 3
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.exact, two.exact)
