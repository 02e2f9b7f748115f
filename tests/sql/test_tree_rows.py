"""Rows of the tables of a tree, staged: parents, places in families, conditions."""

import duckdb
import numpy as np
import pytest
from support.domains import attribute
from support.families import model_of, plain
from support.shop import numeric
from test_publish import Session

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import families_of_table
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.rows.write.families import stage, together
from dpsyn_sql.sqltext.fragments import Fragment

TOP, MIDDLE = Fragment("temp.top"), Fragment("temp.middle")


@pytest.fixture
def session(tmp_path):
    con = duckdb.connect(str(tmp_path / "out.duckdb"))
    con.execute("SET threads = 2")
    yield Session(con)
    con.close()


def tree(order="", most=4):
    """Families of shops (town) and their sales (color, kind, perhaps a day)."""
    own = [attribute("color", 2), attribute("kind", 3), *([numeric("day", 60)] if order else [])]
    shops = families_of_table("shops", Domain((attribute("town", 3),)), None, [("sales", most)], groups={})
    sales = families_of_table("sales", Domain(tuple(own)), shops, [("lines", 2)], groups={}, order=order)
    return shops, sales


def models(order="", seed=1):
    rng, (shops, sales) = np.random.default_rng(seed), tree(order)
    pairs = [("shops.town", "color"), ("color", "kind"), ("kind", "number of lines")]
    pairs += [("kind before", "kind"), ("color", "day")] if order else []
    size = {one.name: one.size for one in sales.domain.attributes}
    of = {pair: rng.normal(0, 1, [size[name] for name in pair]) for pair in pairs}
    top = model_of(shops, {("town", "number of sales"): rng.normal(0, 1, (3, 5))})
    return top, model_of(sales, of)


def shape_of(session, model, never=()):
    measured = model.domain.attributes[: model.families.written]
    shape = Shape(measured, (), tuple(one.name for one in measured), tuple(never))
    return together(check_expressions(shape, session, DuckDBCatalog(session)), model.families)


def staged(session, order="", units=600, top_never=(), never=(), seed=3):
    """Rows of both tables, as they are kept and as they are staged."""
    top, middle = models(order)
    for table in (TOP, MIDDLE):
        session.con.execute(f"DROP TABLE IF EXISTS {table}")
    above, told = stage(session, shape_of(session, top, top_never), top, units, TOP, seed).rows, []
    shape = shape_of(session, middle, never)
    rows = stage(session, shape, middle, units, MIDDLE, seed, told.append, above=above).rows
    assert sum(told) == above.given(middle.families, seed).rows.sum()
    frames = (session.con.execute(f'FROM {table} ORDER BY "row"').df() for table in (TOP, MIDDLE))
    return above, rows, *frames


def check(above, rows, frame):
    """The staged rows are those that are kept, by parent, without holes."""
    written = rows.families.written
    np.testing.assert_array_equal(frame.row, np.arange(rows.total))
    np.testing.assert_array_equal(frame[[f"a{place}" for place in range(written)]], rows.codes[:, :written])
    np.testing.assert_array_equal(frame.parent, rows.parent)
    assert (np.diff(rows.parent) >= 0).all() and rows.parent.max() < above.total
    np.testing.assert_array_equal(frame["rank"], frame.groupby("parent").cumcount())
    np.testing.assert_array_equal(rows.unit, above.unit[rows.parent])


@pytest.mark.parametrize("order", ["", "day"])
def test_rows_are_staged_by_parent_with_their_place_in_the_family(session, order):
    above, rows, top, middle = staged(session, order)
    assert above.total == len(top) == 600 and "parent" not in top and "rank" not in top
    np.testing.assert_array_equal(top.a0, above.codes[:, 0])
    np.testing.assert_array_equal(above.unit, np.arange(600))
    check(above, rows, middle)
    np.testing.assert_array_equal(np.bincount(rows.parent, minlength=600), above.codes[:, 1])
    assert rows.codes.shape[1] == rows.families.written + 1
    assert ("t" in middle) == bool(order) and "drawn" not in middle


@pytest.mark.parametrize("order", ["", "day"])
def test_a_row_that_cannot_be_is_drawn_again_and_its_parent_is_not(session, order):
    never = ["color = 1 AND kind = 2"] if not order else ["color = 1 AND day < 20"]
    above, rows, _, middle = staged(session, order, never=never)
    without, others, _, _ = staged(session, order)
    np.testing.assert_array_equal(above.codes, without.codes)
    check(above, rows, middle)
    assert rows.total == others.total and "drawn" in middle
    bad = (middle.a0 == 1) & ((middle.a1 == 2) if not order else (middle.a2 < 20))
    assert not bad.any()
    if not order:
        before = others.codes
        cannot = (before[:, 0] == 1) & (before[:, 1] == 2)
        assert cannot.any()
        np.testing.assert_array_equal(rows.codes[~cannot], before[~cannot])


def test_rows_without_hope_become_like_another_and_lost_families_leave_no_holes(session, monkeypatch):
    monkeypatch.setattr("dpsyn_sql.rows.write.families.ROUNDS", 0)
    _, others, _, _ = staged(session)
    with pytest.warns(UserWarning, match="exclude too many rows"):
        above, rows, _, middle = staged(session, never=["color = 1"])
    check(above, rows, middle)
    assert (rows.codes[:, 0] == 0).all()
    possible = np.unique(others.parent[others.codes[:, 0] == 0])
    np.testing.assert_array_equal(np.unique(rows.parent), possible)
    assert rows.total == np.isin(others.parent, possible).sum() < others.total
    copied = (others.codes[:, 0] == 1)[np.isin(others.parent, possible)]
    assert copied.any()


def test_rows_of_the_root_that_cannot_be_leave_no_holes(session):
    with pytest.warns(UserWarning, match="exclude too many rows"):
        above, rows, top, middle = staged(session, top_never=["town = 0 OR town >= 1"])
    assert above.total == len(top) == rows.total == len(middle) == 0
    above, rows, top, middle = staged(session, top_never=["town = 0"])
    assert (above.codes[:, 0] > 0).all() and above.total == 600 and (top.drawn > 600).any()
    np.testing.assert_array_equal(top.row, np.arange(600))
    np.testing.assert_array_equal(top[["a0", "a1"]], above.codes)
    check(above, rows, middle)


def test_rows_are_the_same_for_a_seed(session):
    frames = [staged(session, "day", never=["color = 1 AND day < 20"], seed=seed)[3] for seed in (5, 5, 6)]
    assert frames[0].equals(frames[1]) and not frames[0].equals(frames[2])


def test_no_units(session):
    above, rows, top, middle = staged(session, units=0)
    assert above.total == rows.total == len(top) == len(middle) == 0


def test_rows_of_other_parents_are_refused(session):
    top, middle = models()
    above = stage(session, shape_of(session, top), top, 10, TOP, 1).rows
    other = stage(session, shape_of(session, top), top, 9, MIDDLE, 1).rows
    given, shape = above.given(middle.families, 1), shape_of(session, middle)
    for options in ({}, {"above": other}):
        with pytest.raises(InternalError, match="other rows than those above"):
            stage(session, shape, middle, 10, MIDDLE, 1, evidence=given, **options)
    with pytest.raises(InternalError, match="given rows above"):
        stage(session, shape, middle, 10, MIDDLE, 1)
    with pytest.raises(InternalError, match="given rows above"):
        stage(session, shape_of(session, plain()), plain(), 10, MIDDLE, 1, above=above, evidence=given)
    with pytest.raises(InternalError, match="each by themselves"):
        stage(session, shape_of(session, top), top, 10, MIDDLE, 1, above=above)
