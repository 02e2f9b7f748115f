"""Releases of several tables, read back: all tables together, one of them, marginals over joined columns."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from support.tables import PARENTS, models
from support.tied_releases import stored_tables, without

from dpsyn_sql import load
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InputError
from dpsyn_sql.report.result import ReleasedTable
from dpsyn_sql.rows.write.persist import persist


def write(path, *releases):
    with duckdb.connect(str(path)) as con:
        engine = DuckDBEngine(con)
        for tables in releases:
            with engine.transaction():
                for one in tables.values():
                    persist(engine, path.stem, one)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("loaded") / "out.duckdb", stored_tables())


def test_all_tables_come_back_together(path):
    release = load(path, "SHOP")
    assert list(release.tables) == list(PARENTS)
    assert release.into == "shop" and release.id == "id-1" and release.replayed and release.notes == ()
    for name, made in models().items():
        own = release[name]
        assert isinstance(own, ReleasedTable) and own.id == f"id-1.{name}" and own.table == f"shop.{name}"
        names = list(made.domain.names[:2])
        np.testing.assert_allclose(own.model.project(names), made.project(names), rtol=1e-5)
    with pytest.raises(InputError, match="no table 'x'.*'customers'"):
        release["x"]


def test_the_only_release_needs_no_name_and_one_table_has_its_own(path):
    assert list(load(path).tables) == list(PARENTS)
    one = load(path, "shop.Items")
    assert list(one.tables) == ["items"] and one.rows == 103 and one.table == "shop.items"
    with pytest.raises(InputError, match="There is no release 'shops'.*'shop.customers'"):
        load(path, "shops")


def test_two_releases_need_a_name(tmp_path):
    path = write(tmp_path / "out.duckdb", stored_tables(), stored_tables("other.shop", "id-2"))
    with pytest.raises(InputError, match="several releases"):
        load(path)
    assert load(path, "other.shop").id == "id-2" and load(path, "shop").id == "id-1"
    assert load(path, "other.shop.orders").id == "id-2.orders"


def test_a_release_that_is_written_again_leaves_no_table_of_the_earlier_one(tmp_path):
    path = write(tmp_path / "out.duckdb", stored_tables(), without(stored_tables(release="id-2"), "returns"))
    release = load(path, "shop")
    assert release.id == "id-2" and list(release.tables) == [name for name in PARENTS if name != "returns"]
    with duckdb.connect(str(path)) as con:
        assert con.execute("SELECT count(*) FROM dpsyn_releases()").fetchone() == (4,)


def test_tables_of_two_releases_are_no_release(tmp_path):
    one, other = stored_tables(), stored_tables(release="id-2")
    with pytest.raises(InputError, match="not of one release"):
        load(write(tmp_path / "out.duckdb", {**one, "returns": other["returns"]}), "shop")


def test_rows_of_all_tables_join(path):
    release = load(path, "shop")
    frames = release.sample(500, seed=3)
    assert frames["orders"].customer_id.isin(frames["customers"].customer_id).all()
    assert frames["items"].order_id.isin(frames["orders"].order_id).all() and len(frames["items"]) > 0
    with duckdb.connect(str(path), read_only=True) as con:
        of_sql = con.execute("FROM dpsyn_sample('shop.items', 500, seed := 3)").df()
    pd.testing.assert_frame_equal(frames["items"], of_sql)


def test_counts_of_joined_columns_are_those_of_the_lowest_table(path):
    release, model = load(path, "shop"), models()["items"]
    found = release.marginal(["customers.region", "items.category"])
    expected = model.project(["customers.region", "category"]).ravel()
    np.testing.assert_allclose(found.estimate, expected, rtol=1e-5)
    assert list(found.columns[:2]) == ["customers.region", "items.category"]
    assert (found.basis == "modelled").all() and "divided among them" in repr(found)
    measured = release.marginal(["items.category", "orders.channel"])
    assert (measured.basis == "measured").all() and (measured.standard_error == 5).all()
    assert (abs(measured.noisy - measured.estimate) < 25).all()
    numbers = release.marginal(["customers.number of orders", "orders.channel"])
    expected = models()["orders"].project(["customers.number of orders", "channel"]).ravel()
    np.testing.assert_allclose(numbers.estimate, expected, rtol=1e-5)
    of_root = release.marginal(["customers.region"])
    assert of_root.attrs["counts"] == "Counts are of rows of customers."


@pytest.mark.parametrize(
    ("attrs", "said"),
    [
        (["orders.channel", "visits.site"], "side by side"),
        (["orders.chanel"], "no column 'orders.chanel'"),
        (["channel"], "give 'table.column'"),
        (["customers.nothing", "items.category"], "no column 'customers.nothing'"),
        ([], "at least one"),
        ("orders.channel", "a list of columns"),
        ([3], "no column of a table"),
    ],
)
def test_columns_that_no_model_has_together_are_refused(path, attrs, said):
    with pytest.raises(InputError, match=said):
        load(path, "shop").marginal(attrs)


def test_sql_counts_joined_columns_too(path):
    with duckdb.connect(str(path), read_only=True) as con:
        found = con.execute("FROM dpsyn_marginal('shop.items', ['customers.region', 'category'])").df()
        assert list(found.columns[:2]) == ["customers.region", "category"]
        expected = models()["items"].project(["customers.region", "category"]).ravel()
        np.testing.assert_allclose(found.estimate, expected.round(1), atol=0.051)
        told = con.execute("FROM dpsyn_certificate('shop.items')").df()
        assert "shop" in set(told.value) and "customers.customer_id" in set(told.value)
        assert len(con.execute("FROM dpsyn_domain('shop.items')").df()) > 3


def test_a_model_below_one_without_a_network_is_told_so(path, tmp_path):
    kept = stored_tables()
    broken = write(tmp_path / "out.duckdb", kept)
    with duckdb.connect(str(broken)) as con:
        con.execute(
            "DELETE FROM dpsyn.shares WHERE release = "
            "(SELECT release FROM dpsyn.releases WHERE name = 'shop.orders')"
        )
    with pytest.raises(InputError, match="is not a network"):
        load(broken, "shop.items").sample(5)
