"""The membership test: exact likelihoods, its figures against brute force, its bound, and where there is none."""

import itertools
import math

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from support.one_compared import opened_one

import dpsyn_sql
from dpsyn_sql.errors import InputError
from dpsyn_sql.evaluation.evaluating import evaluate
from dpsyn_sql.evaluation.membership import (
    MEANING,
    _model,
    advantage,
    area_with_interval,
    auc_bound,
    likelihood_of,
    membership,
)
from dpsyn_sql.fit.network import Network, joined, node_of
from dpsyn_sql.rows.sample.sql_rows import share_table, variable_table

pytestmark = pytest.mark.slow

SIZES = (3, 4, 2, 2, 8)
# An attribute in bins, one in codes, a coarse twin, one more attribute, codes of the first.


def network(seed, together=False):
    """A coarse twin (2) of the bins (0), which depend on it; codes (4) after their bins; codes 1 and 3."""
    rng = np.random.default_rng(seed)
    twin_of = np.array([0, 1, 1])
    bins_of = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    bins = rng.random((2, 3)) * (twin_of == np.arange(2)[:, None])
    codes = rng.random((3, 8)) * (bins_of == np.arange(3)[:, None])
    second = rng.random((2, 4)) * (rng.random((2, 4)) > 0.2) + 0.01 * np.eye(2, 4)
    nodes = [
        node_of("twin", (), (2,), rng.random(2)),
        node_of("bins", (2,), (0,), bins),
        node_of("second", (2,), (1,), second),
        node_of("codes", (0,), (4,), codes),
        node_of("third", (0, 1), (3,), rng.random((3, 4, 2))),
    ]
    return Network(SIZES, joined(nodes, SIZES) if together else tuple(nodes), (4, 1, 3)), twin_of, bins_of


def brute(net):
    """Probabilities of all values of all variables, by the rounded weights, summed over what is no code."""
    columns = share_table(net)
    table = np.ones(SIZES)
    for number, node in enumerate(net.nodes):
        lines = {name: values[columns["node"] == number] for name, values in columns.items()}
        shape = [SIZES[v] for v in (*node.parents, *node.variables)]
        given_sizes = math.prod(shape[: len(node.parents)])
        own = np.zeros((given_sizes, math.prod(shape) // given_sizes))
        own[lines["parent"], lines["value"]] = lines["weight"]
        whole = own.sum(axis=1, keepdims=True)
        own = np.divide(own, whole, out=np.zeros_like(own), where=whole > 0).reshape(shape)
        axes = (*node.parents, *node.variables)
        order = np.argsort(axes)
        placed = own.transpose(order).reshape([SIZES[v] if v in axes else 1 for v in range(len(SIZES))])
        table = table * placed
    return np.einsum("abcde->ebd", table)


ALL = np.array(list(itertools.product(*(range(SIZES[v]) for v in (4, 1, 3)))))


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_likelihoods_are_those_of_the_network_and_sum_to_one(seed, together):
    net, _, _ = network(seed, together)
    made = likelihood_of(share_table(net), variable_table(net), 3)
    shares = np.exp(made.log(ALL))
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    assert shares == pytest.approx(brute(net).ravel(), rel=1e-9, abs=1e-15)
    assert {v for v, _, _ in made.found} == {0, 2}
    assert ((shares == 0) == (brute(net).ravel() == 0)).all()


def test_a_variable_that_no_code_shows_has_no_likelihood():
    hidden = (
        node_of("h", (), (0,), np.array([0.5, 0.5])),
        node_of("x", (0,), (1,), np.array([[0.9, 0.1], [0.2, 0.8]])),
    )
    net = Network((2, 2), hidden, (1,))
    assert likelihood_of(share_table(net), variable_table(net), 1) is None


@pytest.mark.parametrize("change", ["node", "attribute", "size"])
def test_a_changed_network_is_said(change):
    net, _, _ = network(1)
    shares, variables = share_table(net), variable_table(net)
    if change == "node":
        shares = {name: values[shares["node"] > 0] for name, values in shares.items()}
    elif change == "attribute":
        variables["attribute"] = variables["attribute"] + 5
    else:
        variables["size"] = np.ones_like(variables["size"])
    with pytest.raises(InputError, match="changed or is damaged"):
        likelihood_of(shares, variables, 3)


SCORES = st.lists(st.sampled_from([-np.inf, -3.0, -2.0, -1.0, 0.0]), min_size=2, max_size=15).map(np.array)


@given(SCORES, SCORES)
@settings(max_examples=60)
def test_the_interval_is_that_of_delong(members, others):
    kernel = (members[:, None] > others) + 0.5 * (members[:, None] == others)
    auc, low, high = area_with_interval(members, others)
    variance = kernel.mean(axis=1).var(ddof=1) / len(members) + kernel.mean(axis=0).var(ddof=1) / len(others)
    reach = norm.ppf(0.975) * math.sqrt(variance)
    assert auc == pytest.approx(kernel.mean())
    assert (low, high) == pytest.approx((max(0, auc - reach), min(1, auc + reach)), abs=1e-9)
    cuts = np.union1d(members, others)
    best = max((members >= cut).mean() - (others >= cut).mean() for cut in cuts)
    assert advantage(members, others) == pytest.approx(max(0, best))


def test_the_interval_covers():
    rng = np.random.default_rng(0)
    truth = norm.cdf(0.5 / math.sqrt(2))
    inside = 0
    for _ in range(400):
        _, low, high = area_with_interval(rng.normal(0.5, 1, 80), rng.normal(0, 1, 120))
        inside += low <= truth <= high
    assert 0.92 <= inside / 400 <= 0.98


def facts(epsilon=1.0, delta=0.0, mu=0.0, threshold=0.0, kind="pure", k=1):
    guarantee = {"epsilon": epsilon, "delta": delta, "rho": mu * mu / 2, "rows_per_unit": k}
    return {"guarantee": guarantee, "budget": {"kind": kind, "threshold_delta": threshold}}


@given(st.floats(0, 4), st.floats(0, 1e-3))
def test_the_bound_of_epsilon_and_delta_is_the_fixed_point_of_two_changes(epsilon, delta):
    bound, by = auc_bound(facts(epsilon, delta))
    wanted = math.exp(epsilon) * (math.exp(epsilon) * (1 - bound) + delta) + delta
    assert bound == pytest.approx(min(1, wanted), rel=1e-9)
    assert by.startswith("epsilon=")
    assert bound >= 0.5


@given(st.floats(0.01, 5))
def test_the_gaussian_bound_without_thresholds_is_the_normal_law(mu):
    bound, by = auc_bound(facts(100.0, 1e-9, mu, kind="gdp"))
    assert bound == pytest.approx(norm.cdf(mu), abs=1e-9)
    assert by.startswith("mu=")
    above, _ = auc_bound(facts(100.0, 1e-9, mu, 1e-4, "gdp"))
    assert bound < above < bound + 0.01


def test_units_of_several_rows_have_no_bound():
    assert math.isnan(auc_bound(facts(k=3))[0])


def test_a_mechanism_stays_under_the_bound_and_comes_near_it():
    """The noisy total of +1 and -1, of a table of one member, is N(x, 1): neighbours are mu = 1 apart, and the
    best test reaches a part of Phi(1), as the row beside is as often like the member as not."""
    rng = np.random.default_rng(1)
    members, others = rng.choice([-1, 1], (2, 100_000))
    released = members + rng.normal(size=100_000)
    auc = ((members * released > others * released) + 0.5 * (members == others)).mean()
    bound, _ = auc_bound(facts(100.0, 1e-9, 1.0, kind="gdp"))
    assert 0.65 < auc < bound == pytest.approx(norm.cdf(1))


# -- with releases -------------------------------------------------------------------------------

DOMAIN = {
    "columns": {
        "x": {"type": "categorical", "categories": ["a", "it's", "c"], "nullable": True},
        "y": {"type": "numeric", "lower": 0, "upper": 16, "bins": 6},
        "w": {"type": "numeric", "lower": 0, "upper": 10, "bins": 8},
    }
}
ROWS = """SELECT ['a', 'it''s', NULL][1 + (hash(i) % 3)::BIGINT] AS x, (hash(i, 1) % 17)::INTEGER AS y,
    (hash(i, 2) % 100 / 10)::DOUBLE AS w FROM range({first}, {last}) r(i)"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    with duckdb.connect(str(folder / "w.duckdb")) as con:
        con.execute("CREATE TABLE p AS " + ROWS.format(first=0, last=1500))
        con.execute("CREATE TABLE h AS " + ROWS.format(first=1500, last=2500))
        for name in ("p", "h"):
            con.execute(f"COPY {name} TO '{folder / name}.parquet'")
        common = {"domain": DOMAIN, "epsilon": 5, "ledger": folder / "ledger"}
        dpsyn_sql.release(con, "p", into="s", method="adaptive", **common)
        dpsyn_sql.release(con, "p", into="c", method="copula", **common)
        dpsyn_sql.release(con, "p", into=folder / "s.parquet", method="privbayes", **common)
        dpsyn_sql.release(
            con,
            "p",
            into="units",
            method="independent",
            unit="y",
            most=9,
            weights=False,
            domain=DOMAIN,
            epsilon=5,
            ledger=folder / "other",
            exclude=["y"],
        )
    return folder


@pytest.fixture
def con(made, tmp_path):
    (tmp_path / "w.duckdb").write_bytes((made / "w.duckdb").read_bytes())
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        yield connection


def figures(con, synthetic, holdout="h", real="p"):
    with opened_one(con, real, synthetic, holdout) as session:
        return membership(session, con, synthetic)


def test_members_beside_a_random_holdout_are_hard_to_tell(con):
    table, notes = figures(con, "main.S")
    assert notes == [MEANING]
    line = table.iloc[0]
    assert (line["release"], line["members"], line["others"]) == ("s", 1500, 1000)
    assert line["low"] < line["auc"] < line["high"]
    assert abs(line["auc"] - 0.5) < 0.12  # releases have 0.06, with a deviation of 0.008
    assert 0.5 < line["bound"] < 0.8


def test_likelihoods_of_a_stored_release_are_the_shares_of_its_rows(con):
    with opened_one(con, "p", "s", "h") as session:
        model, why = _model(session, con, "s")
    assert why == ""
    shape = model.domain.shape()
    codes = np.array(list(itertools.product(*map(range, shape))))
    shares = np.exp(model.likelihood.log(codes))
    assert shares.sum() == pytest.approx(1, abs=1e-9)
    attribute, own = model.domain["x"], codes[:, 0]
    drawn = dict(con.execute("SELECT x, count(*) FROM dpsyn_sample('s', 200000) GROUP BY x").fetchall())
    if "__other__" not in drawn:  # too few rows to be written: other values take their place
        shares = np.where(own == attribute.other_code, 0, shares)
        shares /= shares.sum()
    places = {"a": 0, "it's": 1, "c": 2, "__other__": attribute.other_code, None: attribute.null_code}
    for value, count in drawn.items():
        assert count / 200000 == pytest.approx(shares[own == places[value]].sum(), abs=0.002)


def test_a_released_file_has_its_model_beside_it(made):
    found = evaluate(None, made / "p.parquet", made / "s.parquet", made / "h.parquet")
    assert found.tables["membership"]["members"].item() == 1500
    assert found.notes == (MEANING,)
    found = evaluate(made / "w.duckdb", "p", str(made / "s.parquet"), "h")
    assert "membership" in found.tables
    assert "membership" in evaluate(made / "w.duckdb", "p", "s", "h").tables


def test_without_a_holdout_nothing_is_tested(con):
    table, notes = figures(con, "s", None)
    assert table is None
    assert "needs holdout=" in notes[0]


def test_what_has_no_likelihood_is_said(con):
    table, notes = figures(con, "c")
    assert table is None
    assert "(method copula) is no network" in notes[0]
    con.execute("CREATE TABLE t AS FROM s")
    assert "no stored release has the name of the synthetic table 't'" in figures(con, "t")[1][0]
    assert "no stored release" in figures(con, "SELECT * FROM s")[1][0]
    con.execute("DELETE FROM s WHERE y = 3")
    assert "it is not the same, or was changed" in figures(con, "s")[1][0]
    rows = dpsyn_sql.load(con, "s").rows
    con.execute(f"DROP TABLE s; CREATE TABLE s AS FROM dpsyn_sample('s', {rows}); DROP TABLE dpsyn.variables")
    assert "no table 'variables'" in figures(con, "s")[1][0]
    con.execute("DROP SCHEMA dpsyn CASCADE")
    assert "There is no release" in figures(con, "s")[1][0]


def test_columns_that_are_not_compared_are_said(con):
    table, _ = figures(con, "SELECT x, y FROM s", "SELECT x, y FROM h", "SELECT x, y FROM p")
    assert table is None
    con.execute("ALTER TABLE s DROP w; ALTER TABLE p DROP w; ALTER TABLE h DROP w")
    assert "column 'w' of the release is not compared" in figures(con, "s")[1][0]


def test_units_of_several_rows_are_tested_without_a_bound(con):
    for name in ("p", "h"):
        con.execute(f"ALTER TABLE {name} DROP y")
    table, notes = figures(con, "units")
    assert np.isnan(table["bound"].item())
    assert "units of one row" in notes[1]


def test_a_model_that_knows_its_rows_by_heart_is_found(con):
    """Of a release at a huge epsilon the test tells members apart, where the rows are rare enough."""
    con.execute("CREATE TABLE few AS FROM p WHERE y < 1 AND x = 'a'; CREATE TABLE rest AS FROM h")
    dpsyn_sql.release(con, "few", into="known", method="privbayes", domain=DOMAIN, epsilon=400)
    table, _ = figures(con, "known", "rest", "few")
    assert table["auc"].item() > 0.9
