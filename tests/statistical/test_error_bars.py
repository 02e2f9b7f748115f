"""Error bars of estimates hold on a generated table whose counts are known."""

from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsyn_sql

ROWS, COLUMNS, CODES = 20_000, 8, 6
DOMAIN = {
    "columns": {
        f"c{place}": {"type": "categorical", "categories": list(range(CODES)), "other": False}
        for place in range(COLUMNS)
    }
}


@pytest.fixture(scope="module")
def codes():
    """Correlated normals, cut into codes."""
    rng = np.random.default_rng(3)
    shared = rng.normal(size=(ROWS, 2)) @ rng.normal(size=(2, COLUMNS))
    values = shared + rng.normal(size=(ROWS, COLUMNS))
    return np.clip(np.rint(1.2 * values / values.std(axis=0) + 2), 0, CODES - 1).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "epsilon"), [("adaptive", 0.5), ("adaptive", 3.0), ("dpsyn", 1.0)])
def test_true_counts_are_within_the_error_bars(codes, tmp_path, method, epsilon):
    con = duckdb.connect()
    con.register("frame", pd.DataFrame(codes, columns=list(DOMAIN["columns"])))
    con.execute("CREATE TABLE t AS FROM frame")
    con.unregister("frame")
    ledger = tmp_path / "ledger"
    given = {"domain": DOMAIN, "method": method, "epsilon": epsilon, "ledger": ledger}
    release = dpsyn_sql.release(con, "t", into="s", name="s", **given)
    inside = {1: [], 2: []}
    for places in (*combinations(range(COLUMNS), 1), *combinations(range(COLUMNS), 2)):
        names = [f"c{place}" for place in places]
        shown = release.marginal(names)
        true = np.zeros((CODES,) * len(places), np.int64)
        np.add.at(true, tuple(codes[:, places].T), 1)
        assert len(shown) == true.size
        assert (shown["estimate_error"] > 0).all()
        inside[len(places)] += (
            abs(shown["estimate"] - true.ravel()) <= 1.96 * shown["estimate_error"]
        ).tolist()
    # 48 and 1,008 cells; those of one table share noise, so that fewer may be inside by chance.
    assert np.mean(inside[1]) > 0.65
    assert np.mean(inside[2]) > 0.88
    # A replay tells the same, and has the same rows.
    again = dpsyn_sql.release(con, "t", into="again", name="s", **given)
    assert again.replayed
    pd.testing.assert_frame_equal(again.marginal(["c0", "c1"]), release.marginal(["c0", "c1"]))
    same = "SELECT count(*) FROM (FROM s EXCEPT ALL FROM again)"
    assert con.execute(same).fetchone() == (0,)
