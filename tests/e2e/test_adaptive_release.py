"""Adaptive releases from end to end, on input that leaves a method little to choose."""

from importlib import import_module

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.private.measure.noise import ExactNoise

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The source is a database in memory")]


def coded(size, ordered=False):
    return {"type": "categorical", "categories": list(range(size)), "other": False, "ordered": ordered}


def released(columns, sizes, **options):
    con = duckdb.connect()
    read = ", ".join(f"unnest(?::INTEGER[]) AS {name}" for name in columns)
    con.execute(
        f"CREATE TABLE t AS SELECT {read}", [np.asarray(values).tolist() for values in columns.values()]
    )
    spec = {"columns": {name: coded(*size) for name, size in sizes.items()}}
    release = dpsyn_sql.release(con, "t", domain=spec, method="adaptive", **options)
    return con, release


RNG = np.random.default_rng(0)
X = RNG.integers(0, 6, 3000)


@pytest.mark.parametrize("delta", [1e-9, 0])
def test_identical_columns_stay_identical_and_independent_ones_independent(delta):
    con, release = released(
        {"x": X, "same": X, "other": RNG.integers(0, 3, 3000), "one": np.zeros(3000, dtype=int)},
        {"x": (6,), "same": (6,), "other": (3,), "one": (1,)},
        epsilon=5.0,
        delta=delta,
        seed=1,
    )
    rows = np.array(con.execute('SELECT x, same, other, "one" FROM t_synthetic').fetchall())
    assert abs(len(rows) - 3000) < 200 and np.mean(rows[:, 0] == rows[:, 1]) > 0.95
    joint = np.bincount(rows[:, 0] * 3 + rows[:, 2], minlength=18) / len(rows)
    assert np.abs(joint - 1 / 18).sum() < 0.3  # 0.05 to 0.08 by chance; of columns that depend above 1
    facts = release.certificate()
    assert facts["guarantee"]["epsilon"] <= 5.0 * (1 + 1e-9)
    assert facts["budget"]["used_units_of_1e-15"] <= facts["budget"]["reserved_units_of_1e-15"]
    assert set(release.marginal(["x", "same"]).basis) <= {"measured", "modelled"}


def test_a_round_that_finds_nothing_passes_its_budget_on():
    _, release = released(
        {"x": X, "y": RNG.integers(0, 6, 3000)}, {"x": (6,), "y": (6,)}, epsilon=0.5, seed=1
    )
    budget = release.certificate()["budget"]
    assert budget["used_units_of_1e-15"] > 0.999 * budget["reserved_units_of_1e-15"]


class Below(ExactNoise):
    """The noise of a table whose noisy total comes out below zero."""

    def gaussian(self, values, sigma):
        return np.full(len(values), -50)


class Quiet(ExactNoise):
    """The noise that happens to be none."""

    def gaussian(self, values, sigma):
        return np.asarray(values)


def test_it_is_said_when_the_columns_came_out_independent(monkeypatch, recwarn):
    """300 rows at epsilon 0.1: distances are noisier than the dependence of two identical columns, even
    if, as here, they happen to be right."""
    monkeypatch.setattr(import_module("dpsyn_sql.front.measure"), "ExactNoise", Quiet)
    _, release = released({"x": X[:300], "y": X[:300]}, {"x": (6,), "y": (6,)}, epsilon=0.1, seed=1)
    said = "The noise is too large to tell which columns go together"
    assert [said in note for note in release.notes].count(True) == 1
    assert [said in str(warning.message) for warning in recwarn].count(True) == 1
    _, strong = released({"x": X, "y": X}, {"x": (6,), "y": (6,)}, epsilon=5.0, seed=1)
    assert not any(said in note for note in strong.notes)


def test_an_empty_table_that_was_asked_for_is_not_blamed_on_the_total(recwarn):
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS x FROM range(3000) r(i)")
    assert dpsyn_sql.release(con, "t", rows=0).rows == 0
    assert not any("noisy total" in str(warning.message) for warning in recwarn)


def test_a_noisy_total_below_zero_gives_an_empty_table_of_the_right_columns(monkeypatch):
    monkeypatch.setattr(import_module("dpsyn_sql.front.measure"), "ExactNoise", Below)
    with pytest.warns(UserWarning, match="The noisy total is not above zero"):
        con, release = released({"x": X[:3], "y": X[:3]}, {"x": (6, True), "y": (6,)}, epsilon=0.01)
    assert release.rows == 0 and release.model.total < 0
    assert con.execute("SELECT count(*) FROM t_synthetic").fetchone() == (0,)
    described = [con.execute(f"DESCRIBE {table}").fetchall() for table in ("t", "t_synthetic")]
    assert described[0] == described[1]


def test_a_hundred_thousand_codes_are_coarsened_not_a_memory_error(tmp_path):
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT least(i % 4, 1) * i AS n, i % 4 > 0 AS y FROM range(3000) r(i)")
    numeric = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 99_999}}}
    release = dpsyn_sql.release(con, "t", domain=numeric, method="adaptive", epsilon=5.0, seed=1)
    assert abs(release.rows - 3000) < 300
    coded_ = {"columns": {"n": coded(100_000)}}
    release = dpsyn_sql.release(con, "t", into="s", domain=coded_, epsilon=5.0, seed=1)
    zeros, found, together = con.execute(
        "SELECT avg((n = 0)::INT), count(*), avg(((n > 0) = y)::INT) FROM s"
    ).fetchone()
    # Among so many codes the number of rows is uncertain: 60 and 124 too many in two releases.
    assert abs(found - 3000) < 900 and abs(zeros - 0.25) < 0.08 and together > 0.8
    with pytest.raises(dpsyn_sql.errors.PlanTooLarge, match="a latent variable for each of 100,00. codes"):
        dpsyn_sql.release(
            con, "t", into="u", domain=coded_, method="copula", ledger=tmp_path / "other.ledger"
        )
    assert not (tmp_path / "other.ledger").exists()
    with pytest.raises(dpsyn_sql.errors.InputError, match="200000 categories; at most 131072 are allowed"):
        dpsyn_sql.release(con, "t", into="u", domain={"columns": {"n": coded(200_000)}})


def test_a_plan_says_what_is_reserved():
    con = duckdb.connect()
    con.execute("CREATE TABLE t(u BOOLEAN, v BOOLEAN, w BOOLEAN, x BOOLEAN, y BOOLEAN)")
    text = dpsyn_sql.plan(con, "t", into="s", method="adaptive").verbose()
    assert "Method      adaptive" in text
    assert "two-way, in two rounds, then three-way: 60.0% of the budget" in text
    assert "and about other marginals of at most 5 attributes and 1,048,576 cells each, " in text
    for fewer in ({"epsilon": 0.5}, {"exclude": ["u"]}):
        text = dpsyn_sql.plan(con, "t", into="s", method="adaptive", **fewer).verbose()
        assert "two-way, in two rounds: " in text and "3 attributes" not in text


def people(con, name="t"):
    con.execute(
        f"CREATE TABLE {name} AS SELECT i AS id, i % 4 > 1 AS x, i % 4 > 1 AS y, i % 3 > 1 AS z, "
        "chr(65 + (i % 2)::INTEGER) AS s FROM range(2000) r(i)"
    )


SPEC = {"columns": {"id": {"type": "key"}}}


def test_a_workload_is_part_of_plan_key_and_certificate(tmp_path):
    con = duckdb.connect(str(tmp_path / "d.duckdb"))
    people(con)
    options = {
        "name": "r",
        "domain": SPEC,
        "epsilon": 5,
        "workload": {"X": 5, ("s", "y"): "0.5"},
    }  # s is discovered
    text = dpsyn_sql.plan(con, "t", **options).verbose()
    assert "Workload    x x 5; (y, s) x 0.5; other pairs x 1" in text and "mean weight 5" in text
    release = dpsyn_sql.release(con, "t", **options)
    assert release.certificate()["public_facts"]["workload"] == [
        {"attributes": ["x"], "weight": "5"},
        {"attributes": ["y", "s"], "weight": "1/2"},
    ]
    again = dpsyn_sql.release(con, "t", **options | {"workload": {("y", "s"): 0.5, "x": 5.0}})
    assert again.id == release.id
    with pytest.raises(dpsyn_sql.errors.ReleaseChanged):
        dpsyn_sql.release(con, "t", into="o", name="r", domain=SPEC, epsilon=5)
