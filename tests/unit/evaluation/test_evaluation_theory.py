"""What identical tables, shuffles and samples give, by theory."""

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsyn_sql.evaluation import marginals as distances
from dpsyn_sql.evaluation.evaluating import evaluate

pytestmark = pytest.mark.slow

MADE = """
CREATE TABLE real AS
SELECT
    i % 13 AS a,
    CASE WHEN i % 17 > 0 THEN 'w' || (hash(i) % 9 + i % 2) END AS b,
    ln(1 + i % 13) + (hash(i, 1) % 1000) / 1000.0 AS c,
    DATE '2020-01-01' + CAST(hash(i, 2) % 700 AS INTEGER) AS d,
    CASE WHEN i % 11 > 0 THEN i % 13 > 5 END AS e
FROM range(3000) AS t(i)
"""


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute(MADE)
        yield connection


def test_identical_tables_give_zero(con):
    con.execute("CREATE OR REPLACE TABLE same AS FROM real ORDER BY hash(c)")
    found = evaluate(con, "real", "same").tables
    for name in ("tv", "sse", "max"):
        own = found["marginals"].query("compared == 'synthetic'")
        assert (own[[f"{name}_mean", f"{name}_median", f"{name}_worst"]] == 0).all(axis=None)
    told = found["conjunctions"].filter(regex="mean|max")
    assert (told == 0).all(axis=None) and found["conjunctions"].ways.tolist() == [1, 2, 3]
    assert np.abs(found["pairs"].difference).max() < 1e-9
    assert found["pairs"].ContingencySimilarity.dropna().eq(1).all()
    assert found["ranges"].query("compared == 'synthetic'").worst.eq(0).all()
    columns = found["columns"]
    assert columns[["tv", "unseen"]].eq(0).all(axis=None)
    assert columns[["ks", "wasserstein"]].dropna().eq(0).all(axis=None)
    assert columns.MissingValueSimilarity.eq(1).all()
    names = ["TVComplement", "CategoryCoverage", "KSComplement", "RangeCoverage", "BoundaryAdherence"]
    assert columns[names].stack().dropna().eq(1).all()


def test_twice_the_rows_give_zero(con):
    con.execute("CREATE OR REPLACE TABLE doubled AS FROM real UNION ALL FROM real")
    found = evaluate(con, "real", "doubled").tables
    assert found["marginals"].query("compared == 'synthetic'").tv_worst.max() < 1e-12
    assert found["conjunctions"].max_100.max() < 1e-9


def test_shuffled_columns_give_what_theory_says(con):
    """Each column keeps its own distribution. Pairs have the association that is told for independent columns,
    and are as far from the real pairs as the product of their one-way marginals."""
    rng = np.random.default_rng(5)
    frame = con.execute("FROM real").df()
    con.register("shuffled_rows", frame.apply(lambda one: one.iloc[rng.permutation(len(one))].to_numpy()))
    con.execute("CREATE OR REPLACE TABLE shuffled AS FROM shuffled_rows")
    con.unregister("shuffled_rows")
    found = evaluate(con, "real", "shuffled").tables
    marginals = found["marginals"].set_index(["ways", "compared"])
    assert marginals.loc[1, "synthetic"].tv_worst == 0
    own, product = marginals.loc[2, "synthetic"], marginals.loc[2, "independent"]
    resample = marginals.loc[2, "resample"]
    assert product.tv_mean - resample.tv_mean < own.tv_mean < product.tv_mean + resample.tv_mean
    assert own.tv_worst == pytest.approx(product.tv_worst, abs=resample.tv_worst)
    pairs = found["pairs"]
    for measure, low, high in (("cramers_v", 0.8, 1.25), ("pearson", 0.1, 3), ("correlation_ratio", 0.3, 2)):
        lines = pairs[pairs.measure == measure]
        share = np.sqrt((lines.synthetic**2 / lines.independent**2).mean())
        assert low < share < high, measure
    dependent = pairs[(pairs["first"] == "a") & (pairs.second == "c") & (pairs.measure == "pearson")].iloc[0]
    assert dependent.real > 0.5 and abs(dependent.synthetic) < 0.1


def test_rows_without_any_value_are_counted():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE r AS SELECT CAST(NULL AS INTEGER) AS a, 'x' AS b FROM range(10)")
        con.execute("CREATE TABLE s AS SELECT i AS a, CASE WHEN i > 2 THEN 'x' END AS b FROM range(4) t(i)")
        found = evaluate(con, "r", "s").tables
    columns = found["columns"].set_index("column")
    assert columns.loc["a", ["tv", "missing_real", "missing_synthetic", "unseen"]].tolist() == [1, 1, 0, 1]
    assert columns.loc["b", ["tv", "missing_real", "missing_synthetic", "unseen"]].tolist() == [
        0.75,
        0,
        0.75,
        0,
    ]
    assert np.isnan(columns.loc["a", "ks"]) and np.isnan(columns.loc["a", "KSComplement"])
    assert found["ranges"].empty
    assert found["marginals"].query("ways == 2 and compared == 'synthetic'").tv_worst.tolist() == [1]


def test_values_that_are_not_finite_have_a_code_of_their_own():
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE r AS SELECT CAST(v AS DOUBLE) AS a, 1e300 * i AS b, CAST(d AS DATE) AS d FROM (VALUES "
            "('nan', 0, '2020-01-01'), ('inf', 1, 'infinity'), ('1', 2, NULL), (NULL, 3, '2020-01-02')) t(v, i, d)"
        )
        con.execute("CREATE TABLE s AS FROM r WHERE b > 0")
        columns = evaluate(con, "r", "s").tables["columns"].set_index("column")
    assert columns.loc["a", "tv"] == pytest.approx((abs(2 / 4 - 1 / 3) + 2 * (1 / 3 - 1 / 4)) / 2)
    assert columns.loc["a", "mean_real"] == 1 and columns.loc["a", "missing_real"] == 0.25
    assert columns.loc["b", "mean_real"] == 0 and np.isnan(columns.loc["b", "mean_synthetic"])
    assert columns.loc["d", "missing_real"] == 0.25 and columns.loc["d", "tv"] == pytest.approx(0.25)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(any),
    st.integers(1, 60),
)
@settings(max_examples=50, deadline=None)
def test_the_expected_distance_of_a_resample_is_exact(counts, rows):
    probabilities = np.array(counts) / sum(counts)
    drawn = np.arange(rows + 1)
    apart = [np.abs(drawn / rows - p) @ stats.binom.pmf(drawn, rows, p) for p in probabilities]
    squares = [(drawn / rows - p) ** 2 @ stats.binom.pmf(drawn, rows, p) for p in probabilities]
    found = distances.resampled(probabilities, rows)
    assert (found.tv, found.sse) == pytest.approx((sum(apart) / 2, sum(squares)), abs=1e-12)


@given(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=2, max_size=5))
@settings(max_examples=50, deadline=None)
def test_rank_correlation_is_spearmans(table):
    table = np.array(table)
    rows = np.repeat(np.indices(table.shape).reshape(2, -1), table.ravel(), axis=1)
    constant = not rows.size or any(len(set(side)) < 2 for side in rows.tolist())
    found = distances.rank_correlation(table)
    if constant:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(stats.spearmanr(*rows).statistic, abs=1e-12)


def test_cramers_v_of_independent_columns_has_the_mean_that_is_told():
    """The expectation is over permutations, with both margins kept."""
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 4, 60), rng.integers(0, 3, 60) ** 2 % 3
    squares, told = [], 0.0
    for _ in range(2000):
        table = np.zeros((4, 3), dtype=np.int64)
        np.add.at(table, (first, rng.permutation(second)), 1)
        value, told = distances.cramers_v(table)
        squares.append(value**2)
    error = np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(told**2, abs=5 * error)


def test_a_constant_column_has_no_association():
    assert np.isnan(distances.cramers_v(np.array([[3, 4]]))).all()
    assert np.isnan(distances.correlation_ratio(np.array([3, 4]), np.array([3.0, 4.0]), np.array([3.0, 4.0])))
    with duckdb.connect() as con:
        con.execute("CREATE TABLE r AS SELECT 1 AS a, i AS b, 'x' || i % 2 AS c FROM range(30) t(i)")
        con.execute("CREATE TABLE s AS SELECT 1 AS a, 5 AS b, 'x' || i % 2 AS c FROM range(20) t(i)")
        pairs = evaluate(con, "r", "s").tables["pairs"]
    assert pairs[["real", "synthetic"]].isna().any(axis=1).sum() >= 6


def test_columns_may_have_the_names_of_our_own():
    names = ["v1", "v0", "side", "k0", "value", "real", "z1"]
    with duckdb.connect() as con:
        for table, seed in (("r", 1), ("s", 2)):
            values = [f"hash(i, {seed}, {place}) % {place + 2} + i % 2" for place in range(len(names))]
            values[2] = f"'x' || ({values[2]})"
            plain = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values))
            own = ", ".join(f'{value} AS "{name}"' for value, name in zip(values, names, strict=True))
            con.execute(f"CREATE TABLE {table} AS SELECT {plain} FROM range({90 * seed}) AS t(i)")
            con.execute(f"CREATE TABLE own_{table} AS SELECT {own} FROM range({90 * seed}) AS t(i)")
        found = evaluate(con, "own_r", "own_s").tables
        for name, wanted in evaluate(con, "r", "s").tables.items():
            figures = wanted.select_dtypes("number").columns
            assert np.allclose(found[name][figures], wanted[figures], equal_nan=True), name


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e98, 1e200])
def test_extreme_numbers_overflow_nothing(scale):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE r AS SELECT i * 1e-3 AS a, -i AS b, 'x' || i % 2 AS c FROM range(50) t(i)")
        con.execute(
            f"CREATE TABLE s AS SELECT i * {scale} AS a, i * i AS b, 'x' || i % 2 AS c FROM range(40) t(i)"
        )
        for pair in (("r", "s"), ("s", "r")):
            columns = evaluate(con, *pair).tables["columns"].set_index("column")
            assert 0.9 <= columns.loc["a", "tv"] <= 1
