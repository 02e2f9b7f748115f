"""``dpsyn_sample`` of tables that are tied as a tree: tables of one number of units and one seed join."""

import subprocess
import sys
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from support.tables import MOST, PARENTS, families, models, shape_of_table

from dpsyn_sql.attributes.roles import Constant, PublicKey, RandomKey
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.rows.sample.tables import table_seed
from dpsyn_sql.rows.sample.walk import drawn_rows
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.rows.write.families import together
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from, persist
from dpsyn_sql.rows.write.staging import GroupedRows

UNITS = 20_000


def kept_tables(database, made, shapes):
    """What is stored of each table, parents first."""
    found = {}
    for name, model in made.items():
        labels = [code_labels(attribute) for attribute in model.domain.attributes]
        parent = found.get(PARENTS[name])
        found[name] = StoredRelease(
            f"{database}.{name}",
            f"{database}.{name}",
            "2026-11-01",
            {},
            together(shapes[name], model.families),
            model,
            drawn_from(model),
            (),
            labels,
            parent=parent,
        )
    return found.values()


def shapes_of(never=None):
    return {name: shape_of_table(name, (never or {}).get(name, ())) for name in PARENTS}


def stored(con, database, made, shapes):
    engine = DuckDBEngine(con)
    shapes = {name: check_expressions(shape, engine, DuckDBCatalog(engine)) for name, shape in shapes.items()}
    with engine.transaction():
        for one in kept_tables(database, made, shapes):
            persist(engine, con.execute("SELECT current_database()").fetchone()[0], one)


NEVER = {"orders": ("channel = 1 AND region = 0",), "customers": ("region = 2",), "items": ("category = 0",)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A database with two releases of five tables; conditions exclude rows of the second."""
    file = tmp_path_factory.mktemp("tables") / "out.duckdb"
    with duckdb.connect(str(file)) as con:
        stored(con, "shop", models(), shapes_of())
        stored(con, "small shop", models(), shapes_of(NEVER))
    return file


@pytest.fixture
def con(path):
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("SET threads = 2")
        yield connection


def sampled(con, units=UNITS, seed=1, database="shop"):
    return {
        name: con.execute(f"FROM dpsyn_sample('{database}.{name}', {units}, {seed})").df() for name in PARENTS
    }


def of_macro(con, kind, units=UNITS, seed=1):
    return {name: con.execute(f'FROM dpsyn."{kind}_shop.{name}"({units}, {seed})').df() for name in PARENTS}


def check_keys(frames):
    """Each key once, and each foreign key the key of a row."""
    customers, orders, items = frames["customers"], frames["orders"], frames["items"]
    assert customers.customer_id.is_unique and orders.order_id.is_unique and frames["returns"].id.is_unique
    assert orders.customer_id.isin(customers.customer_id).all()
    assert frames["visits"].customer.isin(customers.customer_id).all()
    assert items.order_id.isin(orders.order_id).all() and not items.duplicated(["order_id", "line"]).any()
    joined = frames["returns"].merge(items, on=["order_id", "line"])
    assert len(joined) == len(frames["returns"]) > 0


@pytest.mark.parametrize("kind", ["sample", "iid"])
def test_keys_of_one_number_and_seed_join(con, kind):
    frames = of_macro(con, kind)
    check_keys(frames)
    assert len(frames["customers"]) == UNITS
    assert frames["orders"].groupby("customer_id").size().max() == MOST["orders"]
    lines = frames["items"].groupby("order_id").line
    assert lines.max().max() == MOST["items"] and (lines.max() == lines.size()).all()


def test_rows_that_conditions_exclude_leave_no_rows_below(con):
    frames, all_rows = sampled(con, 5000, database="small shop"), sampled(con, 5000)
    check_keys(frames)
    assert not (frames["customers"].region == 2).any() and len(frames["customers"]) < 5000
    assert not ((frames["orders"].channel == 1) & (frames["orders"].region == 0)).any()
    assert (frames["items"].category != 0).all()
    pd.testing.assert_frame_equal(
        frames["customers"].reset_index(drop=True),
        all_rows["customers"].query("region != 2").reset_index(drop=True),
    )


def codes_of(frames):
    """Of each table a frame of codes: its own, those of the tables below and those above, by the names in the
    model, as counted in the sampled tables themselves."""
    made, found = families(), {}
    keys = {"customers": ["customer_id"], "orders": ["order_id"], "items": ["order_id", "line"]}
    above = {
        "orders": ["customer_id"],
        "visits": ["customer"],
        "items": ["order_id"],
        "returns": ["order_id", "line"],
    }
    for name, parent in PARENTS.items():
        own = frames[name].copy()
        for below in made[name].below:
            child = frames[below.table]
            counts = child.groupby(above[below.table]).size().rename(below.name)
            own = own.merge(counts, how="left", left_on=keys[name], right_index=True)
            own[below.name] = own[below.name].fillna(0).astype(int)
        if parent is not None:
            given = found[parent][[*keys[parent], *_known(made[parent])]]
            names = {_named(made[parent], one): one.name for one in made[name].above}
            left = dict(zip(above[name], keys[parent], strict=True))
            given = given.rename(columns={**names, **{key: f"key {key}" for key in keys[parent]}})
            own = own.merge(
                given, left_on=list(left), right_on=[f"key {key}" for key in left.values()], how="left"
            )
        found[name] = own
    return found


def _known(made):
    return list(made.domain.names[: made.drawn + len(made.above)])


def _named(parent, one):
    """The name of what is above a child in the domain of its parent."""
    if one.table == parent.table:
        return one.attribute
    return next(up.name for up in parent.above if (up.table, up.attribute) == (one.table, one.attribute))


@pytest.mark.parametrize("kind", ["sample", "iid"])
@pytest.mark.parametrize("name", ["customers", "orders", "items", "returns"])
def test_rows_follow_the_model_given_the_rows_above(con, kind, name):
    codes, network = codes_of(of_macro(con, kind))[name], models()[name].network()
    attributes = models()[name].domain.names
    columns = {}
    for place, variable in enumerate(network.codes):
        if attributes[place] in codes:
            own = codes[attributes[place]].to_numpy()
            columns[place] = models()[name].bins[place][own]
            columns[variable] = own if variable != place else columns[place]
    for node in network.nodes:
        found = pd.DataFrame({v: columns[v] for v in (*node.parents, *node.variables)}).value_counts()
        lines = pd.DataFrame(
            np.column_stack([node.given, node.values]), columns=[*node.parents, *node.variables]
        )
        lines["share"] = node.weights
        lines = lines.merge(found.reset_index(), how="left").fillna({"count": 0})
        rows = lines["count"]
        if node.parents:
            rows = lines.groupby(list(node.parents))["count"].transform("sum")
        else:
            rows = pd.Series(rows.sum(), index=lines.index)
        expected = rows * lines.share
        assert rows.sum() > 0 and lines["count"].sum() == len(codes)
        assert (np.abs(lines["count"] - expected) < 4.5 * np.sqrt(expected) + 3).all()


def drawn_by_numpy(seed):
    """Joined codes of customers, orders and items, as ``release_database()`` draws them."""
    above, rows = None, {}
    for name in ("customers", "orders", "items"):
        model, own = models()[name], table_seed(seed, name)
        above = rows[name] = drawn_rows(model, model.families, above, UNITS, own)
    order = rows["items"].parent
    customer = rows["orders"].parent[order]
    return np.column_stack(
        [rows["customers"].codes[customer, 0], rows["orders"].codes[order][:, :2], rows["items"].codes[:, 0]]
    )


def test_joined_rows_have_the_distribution_of_those_that_numpy_draws(con):
    frames = sampled(con)
    joined = (
        frames["items"]
        .merge(frames["orders"], on="order_id")
        .merge(frames["customers"], on="customer_id", suffixes=("", "_of_customer"))
    )
    ours = joined[["region_of_customer", "channel", "region", "category"]].to_numpy()
    found, wanted = np.zeros((3, 2, 3, 3)), np.zeros((3, 2, 3, 3))
    np.add.at(found, tuple(ours.T), 1)
    np.add.at(wanted, tuple(drawn_by_numpy(5).T.astype(int)), 1)
    assert abs(len(ours) / wanted.sum() - 1) < 0.02
    found, wanted = found / found.sum(), wanted / wanted.sum()
    strangers = wanted.sum(axis=(1, 2, 3))[:, None, None, None] * wanted.sum(axis=0)
    assert np.abs(found - wanted).sum() / 2 < 0.025 < np.abs(found - strangers).sum() / 4


def test_rows_of_a_table_depend_on_no_row_of_another_by_chance(con):
    """Attributes of one name in two tables share no random bits: orders of customers of one region, in the
    order of their numbers, say nothing of the customer of the same number."""
    frames = sampled(con)
    orders, customers = frames["orders"], frames["customers"]
    owner = customers.set_index("customer_id").region
    same = orders.assign(own=owner.reindex(orders.customer_id).to_numpy()).iloc[: len(customers)]
    other = customers.region.to_numpy()[: len(same)]
    for region in range(3):
        kept = (same.own == region).to_numpy()
        table = pd.crosstab(same.region.to_numpy()[kept], other[kept]).to_numpy()
        expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
        assert ((table - expected) ** 2 / expected).sum() < 25  # chi square of 4 degrees: 1e-4 beyond 23.5


def test_siblings_are_independent_given_their_parent(con):
    codes = codes_of(sampled(con))["items"]
    pairs = codes[codes["orders.number of items"] == 2].pivot_table(
        index=["order_id", "orders.channel", "customers.region"], columns="line", values="category"
    )
    for _, own in pairs.groupby(["orders.channel", "customers.region"]):
        shares = np.bincount(own.to_numpy().astype(int).ravel(), minlength=3) / own.size
        agree = (own[1] == own[2]).mean()
        assert abs(agree - (shares**2).sum()) < 4.5 * np.sqrt(0.25 / len(own))


def test_ordered_rows_never_go_backwards_and_follow_the_row_before(con):
    codes = codes_of(sampled(con))["visits"]
    assert (codes.groupby("customer", sort=False).day.diff().dropna().dt.days >= 0).all()
    before = codes.groupby("customer", sort=False).site.shift().fillna(3).astype(int)
    joint = models()["visits"].project(["site before", "site"])
    place = codes.groupby("customer").cumcount()
    middle = (place > 0) & (place + 1 < codes["customers.number of visits"])
    given = models()["visits"].project(["site before", "place of the row", "site"])[:, 2]
    given = given / given.sum(axis=1, keepdims=True)
    found = pd.crosstab(before[middle], codes.site[middle]).to_numpy()
    shares = found / found.sum(axis=1, keepdims=True)
    assert np.abs(shares - given[:3]).max() < 0.2 and joint.shape == (4, 3)


@pytest.mark.parametrize("name", PARENTS)
def test_rows_depend_on_units_and_seed_alone(con, name):
    draw = f"FROM dpsyn_sample('SHOP.{name}', 3000, $seed)"
    one, again, other = (con.execute(draw, {"seed": seed}).df() for seed in (4, 4, 5))
    con.execute("SET threads = 1")
    alone = con.execute(draw, {"seed": 4}).df()
    assert one.equals(again) and one.equals(alone) and not one.equals(other) and len(one) > 0
    assert con.execute(f"FROM dpsyn_sample('shop.{name}', 0)").df().empty


def test_an_exported_database_draws_the_same_rows(path, con, tmp_path):
    expected = sampled(con, 500)
    con.execute(f"EXPORT DATABASE '{tmp_path / 'dump'}'")
    with duckdb.connect(str(tmp_path / "again.duckdb")) as other:
        other.execute(f"IMPORT DATABASE '{tmp_path / 'dump'}'")
        for name, frame in sampled(other, 500).items():
            assert frame.equals(expected[name])


def test_a_file_needs_no_package_of_ours(path):
    code = (
        f"import duckdb; con = duckdb.connect({str(path)!r}, read_only=True); "
        "print(con.sql(\"SELECT count(*) FROM dpsyn_sample('shop.items', 90) JOIN "
        "dpsyn_sample('shop.orders', 90) USING (order_id)\").fetchall()[0][0])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0


def test_keys_of_other_rows_name_a_row_or_none(tmp_path):
    shapes = shapes_of()
    orders = shapes["orders"]
    roles = (
        RandomKey("channel", "BIGINT", "customers", "customer_id", "channel"),
        RandomKey("region", "INTEGER", "orders", "order_id", "region", earlier=True),
    )
    shapes["orders"] = replace(orders, roles=(*orders.roles, *roles))
    roles = (RandomKey("site", "INTEGER", "orders", "order_id", "site"),)
    shapes["visits"] = replace(shapes["visits"], roles=(*shapes["visits"].roles, *roles))
    with duckdb.connect(str(tmp_path / "out.duckdb")) as con:
        stored(con, "shop", models(), shapes)
        frames = sampled(con, 3000)
    customers, orders = frames["customers"], frames["orders"]
    assert orders.channel.isin(customers.customer_id).all()  # the attribute is never NULL here
    assert orders.channel.nunique() > 0.5 * len(customers)
    assert orders.region.isna().sum() == 1 and (orders.region < orders.order_id)[1:].all()
    assert frames["visits"].site.isna().all()


@pytest.mark.parametrize("most", [10_000, 3])
def test_keys_of_public_rows_are_of_the_group_that_is_drawn(tmp_path, monkeypatch, most):
    monkeypatch.setattr("dpsyn_sql.rows.write.macros.MOST_PUBLIC", most)
    shapes = shapes_of()
    role = PublicKey("category", "VARCHAR", "groups", "name", "category")
    shapes["items"] = replace(shapes["items"], roles=(*shapes["items"].roles, role))
    names = np.array(["b1", "a", "it's", "b2", "b3"], dtype=object)
    lookup = GroupedRows(np.array([1, 0, 3, 1, 1]), {"name": names})
    with duckdb.connect(str(tmp_path / "out.duckdb")) as con:
        engine = DuckDBEngine(con)
        for database, lookups in (("plain", {}), ("shop", {"category": lookup})):
            with engine.transaction():
                for one in kept_tables(database, models(), shapes):
                    if one.name.endswith(".items"):
                        one = replace(one, lookups=lookups)
                    persist(engine, "out", one)
        found = con.execute("FROM dpsyn_sample('shop.items', 3000)").df().category
        assert con.execute("FROM dpsyn_sample('plain.items', 3000)").df().category.isna().all()
        with_codes = stored_codes(con)
    if most == 3:
        assert found.isna().all()
        return
    assert set(found[with_codes == 0]) == {"a"} and found[with_codes == 2].isna().all()
    shares = found[with_codes == 1].value_counts(normalize=True)
    assert set(shares.index) == {"b1", "b2", "b3"} and (abs(shares - 1 / 3) < 0.06).all()


def stored_codes(con):
    """The categories of the same rows, where they are written themselves."""
    stored(con, "codes", models(), shapes_of())
    return con.execute("FROM dpsyn_sample('codes.items', 3000)").df().category


def test_no_column_of_a_table_above_is_taken_for_a_parameter(tmp_path):
    shapes = shapes_of({"customers": ("dpsyn_rows = 700",)})
    top = shapes["customers"]
    role = Constant("dpsyn_rows", "INTEGER", 1)
    shapes["customers"] = replace(top, roles=(*top.roles, role), order=(*top.order, role.name))
    with duckdb.connect(str(tmp_path / "out.duckdb")) as con:
        stored(con, "shop", models(), shapes)
        assert len(con.execute("FROM dpsyn_sample('shop.orders', 700)").df()) > 100


def test_a_table_below_one_that_sql_cannot_draw_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("dpsyn_sql.rows.write.macros.MOST_ON_WAY", 2)
    with duckdb.connect(str(tmp_path / "out.duckdb")) as con:
        stored(con, "shop", models(), shapes_of())
        assert len(con.execute("FROM dpsyn_sample('shop.orders', 5)").df()) >= 0
        with pytest.raises(duckdb.Error, match="too many variables"):
            con.execute("FROM dpsyn_sample('shop.items', 5)").df()
