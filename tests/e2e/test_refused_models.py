"""A method whose models cannot become rows is refused while that costs nothing."""

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.errors import InputError
from dpsyn_sql.methods import METHODS
from dpsyn_sql.methods.independent import Independent
from dpsyn_sql.models.product import ProductModel


class Answering:
    """Answers marginals, and has no rows."""

    domain, total = None, 1.0
    supports, project, tables = ProductModel.supports, ProductModel.project, ProductModel.tables


class Rowless(Independent):
    name = "rowless"

    model = Answering

    def run(self, plan, curator, terms=None):
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
        (Silent(), "method='silent' does not say what class of model it fits"),
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
