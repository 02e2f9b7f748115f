"""A release whose target hangs on two columns together: rows, marginals, what is stored, and a replay."""

import warnings
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsyn_sql
from dpsyn_sql.methods import Adaptive
from dpsyn_sql.methods.adaptive import method

ROWS = 40_000


def agreeing(people):
    """1 where at least two of three pairs of columns are in the same half."""
    return sum(((people[f"x{i}"] < 2) == (people[f"x{i + 1}"] < 2)).astype(int) for i in (0, 2, 4)) // 2


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    rng = np.random.default_rng(1)
    people = pd.DataFrame({f"x{place}": rng.integers(0, 4, ROWS) for place in range(12)})
    people["y"] = agreeing(people)
    codes = {"type": "categorical", "ordered": True, "other": False}
    columns = {name: {**codes, "categories": [0, 1, 2, 3] if name != "y" else [0, 1]} for name in people}
    con = duckdb.connect(str(folder / "a.duckdb"))
    con.execute("CREATE TABLE people AS FROM people")

    def release(into):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dpsyn_sql.release(
                con,
                "people",
                into=into,
                name="law",
                epsilon=2,
                workload="y",
                domain={"columns": columns},
                ledger=folder / "ledger",
                replace=True,
            )

    with pytest.MonkeyPatch.context() as patch:  # other questions would show a part of the rule too
        patch.setattr(method, "screened", lambda *asked: ({}, asked[-1]))
        patch.setattr(Adaptive, "constants", replace(Adaptive.constants, triple_rho=1e9))
        yield con, release, release("first")


def test_rows_keep_the_rule_and_the_marginals_are_theirs(released):
    con, _, release = released
    rows = con.execute("FROM first").df()
    assert (rows.y == agreeing(rows)).mean() > 0.75
    counted = rows.groupby(["x1", "y"]).size().to_numpy().reshape(4, 2)
    told = con.execute("SELECT sum(estimate) FROM dpsyn_marginal('law', ['x1', 'y'])").fetchone()[0]
    assert told == pytest.approx(ROWS, rel=0.02)
    assert np.abs(counted - counted.mean()).max() < 1_000
    assert (
        release.certificate()["sampling"]["drawn"] == "with low variance, the target given the other columns"
    )


def test_a_replay_costs_nothing_and_has_the_same_rows(released):
    con, release, _ = released
    before = con.execute("FROM first").df()
    again = release("first")
    assert con.execute("FROM first").df().equals(before)
    assert again.certificate()["release"] == again.certificate()["release"]


def test_sql_draws_rows_of_the_model_before_the_correction(released):
    con, _, _ = released
    drawn = con.execute("FROM dpsyn_sample('law', 2000)").df()
    assert len(drawn) == 2_000 and set(drawn.y) <= {0, 1}
