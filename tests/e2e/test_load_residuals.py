"""load() of a release whose tables are composed of residuals, with pairs beside the tree of its model."""

from dataclasses import replace
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsyn_sql
from dpsyn_sql.methods.adaptive import Adaptive

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NAMES = tuple("abcde")
SPEC = {
    "columns": {name: {"type": "categorical", "categories": list(range(8)), "other": False} for name in NAMES}
}


@pytest.fixture(scope="module")
def both():
    """Five columns that all depend on each other, a tree with room for few pairs: the release and its copy."""
    rng = np.random.default_rng(2)
    hidden = rng.integers(0, 8, 20_000)
    columns = {name: np.where(rng.random(20_000) < 0.6, hidden, rng.integers(0, 8, 20_000)) for name in NAMES}
    few = replace(Adaptive.constants, cap=300.0, cap_most=300.0)
    with duckdb.connect() as con, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Adaptive, "constants", few)
        con.register("frame", pd.DataFrame(columns))
        con.execute("CREATE TABLE t AS FROM frame")
        fresh = dpsyn_sql.release(con, "t", into="o", domain=SPEC, method="adaptive", epsilon=10, seed=1)
        shown = {
            pair: con.execute("FROM dpsyn_marginal('o', ?) ORDER BY ALL", [list(pair)]).fetchall()
            for pair in combinations(NAMES, 2)
        }
        con.execute("DROP TABLE t")
        yield fresh, dpsyn_sql.load(con), shown


def test_marginals_beside_the_tree_are_those_of_the_release(both):
    fresh, loaded, _ = both
    beside = [tuple(NAMES[place] for place in pair) for pair in fresh.model.beside]
    assert beside
    assert all(fresh.model.beliefs.tree.home(pair) is None for pair in fresh.model.beside)
    for pair in combinations(NAMES, 2):
        one, other = fresh.marginal(pair), loaded.marginal(pair)
        pd.testing.assert_frame_equal(one.drop(columns="estimate"), other.drop(columns="estimate"))
        np.testing.assert_allclose(other["estimate"], one["estimate"], rtol=1e-6, atol=1e-9)
        if pair in beside:  # not what the tree alone would say
            plain = replace(fresh.model, beside={}).project(pair).ravel()
            assert np.abs(plain - fresh.model.project(pair).ravel()).sum() > 0.02 * fresh.model.total


def test_composed_tables_are_stored_and_loaded_as_such(both):
    fresh, loaded, _ = both
    kinds = {(len(table.attrs), table.composed) for table in fresh.measurements}
    assert {(0, False), (1, True), (2, True)} <= kinds and (2, False) not in kinds
    for one, other in zip(fresh.measurements, loaded.measurements, strict=True):
        assert (one.attrs, one.sigma, one.maps, one.composed) == (
            *(other.attrs, other.sigma, other.maps or one.maps),
            other.composed,
        )
        np.testing.assert_array_equal(one.values, other.values)


def test_the_same_is_said_in_sql(both):
    fresh, _, shown = both
    for pair, rows in shown.items():
        found, table = {row[:2]: row[2] for row in rows}, fresh.marginal(pair)
        wanted = {tuple(map(str, row[:2])): row.estimate for row in table.itertuples(index=False)}
        assert found == pytest.approx(wanted, rel=1e-6, abs=0.051) and len(wanted) == 64
