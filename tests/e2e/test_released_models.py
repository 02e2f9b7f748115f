"""Models and their release: a certificate has their words, a new model needs no more than its file, and one that
cannot become rows is refused while that costs nothing."""

import warnings

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.network import Network, node_of
from dpsyn_sql.methods import METHODS, NO_TERMS, Independent
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.report.labels import code_labels

pytestmark = pytest.mark.slow


class Answering:
    """Answers marginals, and has no rows."""

    domain, total = None, 1.0
    supports, project, tables = ProductModel.supports, ProductModel.project, ProductModel.tables


class Rowless(Independent):
    name = "rowless"

    model = Answering

    def run(self, door, domain, budget, terms=NO_TERMS):
        raise AssertionError("the method ran")


class Silent(Rowless):
    name = "silent"
    model = None


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (
            Rowless(),
            r"method='rowless' fits a model of class Answering, which has no network\(\) and no sampler",
        ),
        (Silent(), "method='silent' does not name the class of its model"),
    ],
    ids=["no sampler", "no class"],
)
def test_a_model_without_rows_is_refused_before_the_debit(method, told, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, method.name, method)
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute("CREATE TABLE t AS SELECT (i % 2 = 0) AS b FROM range(100) AS r(i)")
    for call in (dpsyn_sql.release, dpsyn_sql.plan):
        with pytest.raises(InputError, match=told):
            call(file, "t", method=method.name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.duckdb"]  # no ledger, no output
    with duckdb.connect(str(file)) as con:
        assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)]


class Chain(Independent):
    """A chain of attributes that all are what the one before them is, up to a tenth."""

    name = "chain"

    model = NetworkModel
    keeps_columns = False  # it has its own, whatever was counted

    def run(self, door, domain, budget, terms=NO_TERMS):
        total, sizes = super().run(door, domain, budget, terms).total, domain.shape()
        nodes = [node_of(domain.names[0], (), (0,), np.arange(1.0, sizes[0] + 1))]
        for place in range(1, len(sizes)):
            table = 0.9 * np.eye(sizes[place - 1], sizes[place]) + 0.1 / sizes[place]
            nodes.append(node_of(domain.names[place], (place - 1,), (place,), table))
        return NetworkModel(domain, total, Network(sizes, tuple(nodes), tuple(range(len(sizes)))))


@pytest.mark.parametrize(
    ("method", "drawn"),
    [
        ("adaptive", "with low variance"),
        ("privbayes", "with low variance"),
        ("copula", "with one-way counts met"),
        ("independent", "with one-way counts met"),
        ("chain", "with low variance"),
    ],
)
def test_a_certificate_says_in_the_models_words_how_rows_were_drawn(method, drawn, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "chain", Chain())
    with duckdb.connect(str(tmp_path / "w.duckdb")) as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute(
            "CREATE TABLE t AS SELECT i, nullif(i % 3, 2) = 0 AS x, x AS y, x AS z FROM range(5000) AS r(i)"
        )
        release = dpsyn_sql.release(con, "t", exclude=["i"], method=method, seed=1)
        model = release.model
        assert release.certificate()["sampling"]["drawn"] == drawn == model.sampler().drawn
        assert type(model) is METHODS[method].model
        monkeypatch.setattr("dpsyn_sql.rows.sample.sql_rows.BATCH_ROWS", 10)
        monkeypatch.setattr("dpsyn_sql.rows.sample.sql_rows.MOST_LOW_VARIANCE_ROWS", 10)
        many = dpsyn_sql.release(con, "t", exclude=["i"], method=method, seed=1, replace=True)
        by_sql = model.network() is not None
        assert many.certificate()["sampling"]["drawn"] == ("independently" if by_sql else drawn)
        if method == "chain":
            _check_chain(con, model)


def _check_chain(con, model):
    """Rows that SQL drew, rows that it draws, and marginals that it answers are those of the network."""
    expected = model.project(["x", "z"])
    for source in ("t_synthetic", "dpsyn_sample('t_synthetic', 20000, seed := 3)"):
        found = con.execute(f"SELECT x, z, count(*) FROM {source} GROUP BY ALL ORDER BY 1, 2").fetchall()
        counts = np.zeros(expected.shape)
        labels = code_labels(model.domain["x"])
        for x, z, number in found:
            counts[labels.index(x), labels.index(z)] = number
        difference = counts / counts.sum() - expected / expected.sum()
        assert np.abs(difference).sum() < 0.06
    answered = con.execute("SELECT sum(estimate) FROM dpsyn.marginal('t_synthetic', ['x', 'z'])").fetchone()[
        0
    ]
    assert answered == pytest.approx(model.total, rel=1e-5)


@pytest.mark.parametrize("into", ["out", "out.parquet"])
def test_a_named_enum_is_released_from_a_database_file_with_a_macro_that_draws_it(into, tmp_path):
    """Macros are stored in the file; DuckDB 1.5 cannot store one with a list of an ENUM."""
    file, labels = tmp_path / "w.duckdb", ["it's", "b", "c"]
    into = str(tmp_path / into) if "." in into else into
    with duckdb.connect(str(file)) as con, warnings.catch_warnings(action="ignore"):
        con.execute("CREATE TYPE e AS ENUM ('it''s', 'b', 'c')")
        con.execute("CREATE TABLE t AS SELECT enum_range(NULL::e)[1 + i % 3]::e AS v FROM range(600) AS r(i)")
        done = dpsyn_sql.release(con, "t", into=into, epsilon=10, rows=60)
        written = con.execute(
            f"SELECT DISTINCT v, typeof(v) FROM '{into}' WHERE v IS NOT NULL"  # noise may give a row to NULL
        ).fetchall()
    kind = "VARCHAR" if into.endswith("parquet") else "ENUM('it''s', 'b', 'c')"
    assert sorted(written) == sorted((label, kind) for label in labels)
    drawn = dpsyn_sql.load(file if into == "out" else into).sample(90)
    assert sorted(set(drawn["v"].dropna())) == sorted(labels) and len(drawn) == 90
    assert done.rows == 60
