"""Rows of units that go together, staged and published: conditions, ids, values that never go backwards."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pytest
from support.domains import attribute
from support.families import DAYS, MOST, born, chain, dated, dates, model_of, plain, timed
from support.publishing import publish
from test_publish import Session, table

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.roles import Key, UnitId
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import Families, numbers_of_rows
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.rows.write.families import stage, together
from dpsyn_sql.sqltext.fragments import Fragment

STAGED = Fragment("temp.staged")
PERSON = UnitId("person", "BIGINT")


@pytest.fixture
def session(tmp_path):
    con = duckdb.connect(str(tmp_path / "out.duckdb"))
    con.execute("SET threads = 2")
    yield Session(con)
    con.close()


def shape_for(session, model, never=(), roles=(PERSON,)):
    families = model.families
    measured = model.domain.attributes[: families.written]
    order = (*(role.name for role in roles), *(one.name for one in measured))
    return together(
        check_expressions(Shape(measured, roles, order, tuple(never)), session, DuckDBCatalog(session)),
        families,
    )


def staged(session, model, units=2000, seed=3, **options):
    """The output and the numbers of units by rows."""
    shape = shape_for(session, model, **options)
    session.con.execute(f"DROP TABLE IF EXISTS {STAGED}")
    rows = stage(session, shape, model, units, STAGED, seed)
    publish(session, table("made", replace=True), shape, STAGED, seed, persons=rows.persons)
    sizes = np.bincount(np.bincount(rows.rows.parent), minlength=MOST + 1)[1:]
    assert sizes @ np.arange(1, MOST + 1) == rows.total
    return session.con.execute("FROM out.main.made").df(), sizes


def sizes_of(frame):
    return np.bincount(frame.groupby("person").size(), minlength=MOST + 1)[1:]


def test_a_unit_has_one_id_its_rows_lie_together_and_share_its_attributes(session):
    model = plain()
    frame, sizes = staged(session, model, roles=(UnitId("person", "BIGINT"), Key("id", "VARCHAR")))
    people = model.sampler().people(2000, 3)
    np.testing.assert_array_equal(sizes, np.bincount(people.rows, minlength=MOST + 1)[1:])
    np.testing.assert_array_equal(sizes_of(frame), sizes)
    assert frame.person.nunique() == 2000 and frame.id.nunique() == len(frame) == people.total
    assert (frame.person.diff().ne(0).sum()) == 2000  # each once
    assert (frame.groupby("person").age.nunique() == 1).all()
    codes = np.concatenate(list(model.sampler().batches(2000, 3)))
    np.testing.assert_array_equal(frame[["age", "color", "kind"]], codes)


@pytest.mark.parametrize("never", [[], ["color = 1 AND born % 2 = 0"]])
def test_rows_of_a_unit_share_values_within_bins(session, never):
    frame, _ = staged(session, born(), never=never)
    assert (frame.groupby("person").born.nunique() == 1).all()
    assert frame.born.nunique() == 60
    assert not ((frame.color == 1) & (frame.born % 2 == 0)).any() or not never


@pytest.mark.parametrize("model", [plain, chain, dated, timed])
def test_a_row_that_cannot_be_is_drawn_again_and_its_unit_is_not(session, model):
    made = model()
    never = {
        plain: "color = 1 AND kind = 2",
        chain: "state = 1",
        dated: "color = 1 AND month(day) < 6",
        timed: "month(day) IN (3, 4, 9)",  # of moments alone
    }[model]
    frame, sizes = staged(session, made, never=[never])
    people = made.sampler().people(2000, 3)
    np.testing.assert_array_equal(sizes, np.bincount(people.rows, minlength=MOST + 1)[1:])
    np.testing.assert_array_equal(sizes_of(frame), np.bincount(people.rows, minlength=MOST + 1)[1:])
    assert session.con.execute(f"SELECT count(*) FROM out.main.made WHERE {never}").fetchone() == (0,)
    if model is plain:
        without, _ = staged(session, made)
        np.testing.assert_array_equal(frame.age, without.age)
        possible = ~((without.color == 1) & (without.kind == 2))
        assert not possible.all()
        np.testing.assert_array_equal(frame[possible].kind, without[possible].kind)
    if model in (dated, timed):
        assert (frame.groupby("person", sort=False).day.diff().dropna().dt.days >= 0).all()


def test_rows_of_a_chain_follow_the_row_that_stands_before_them(session):
    frame, _ = staged(session, chain(place=False), 20_000, never=["state = 1"])
    before = frame.groupby("person", sort=False).state.shift()
    for state, expected in ((0, 0.7 / 0.8), (2, 0.25 / 0.75)):
        assert abs((frame.state[before == state] == 0).mean() - expected) < 0.02


def test_rows_without_hope_become_like_another_of_their_unit(session, monkeypatch):
    monkeypatch.setattr("dpsyn_sql.rows.write.families.ROUNDS", 0)
    made = plain()
    with pytest.warns(UserWarning, match="exclude too many rows"):
        frame, sizes = staged(session, made, never=["color = 1"])
    without, _ = staged(session, made)
    left = without[without.groupby("person").color.transform("min") == 0]
    people = made.sampler().people(2000, 3)
    assert len(frame) == len(left) < len(without) and sizes.sum() < people.rows.size
    np.testing.assert_array_equal(sizes_of(frame), sizes)
    assert (frame.color == 0).all() and (frame.groupby("person").age.nunique() == 1).all()
    np.testing.assert_array_equal(frame.age, left.age)


def test_a_walk_that_is_completed_by_copies_never_goes_backwards(session, monkeypatch):
    monkeypatch.setattr("dpsyn_sql.rows.write.families.ROUNDS", 1)
    with pytest.warns(UserWarning, match="exclude too many rows"):
        frame, sizes = staged(session, dated(), never=["color = 1"])
    assert (frame.color == 0).all()
    np.testing.assert_array_equal(sizes_of(frame), sizes)
    assert (frame.groupby("person", sort=False).day.diff().dropna().dt.days >= 0).all()


def test_conditions_of_every_row_leave_nothing(session):
    with pytest.warns(UserWarning, match="only 0 of"):
        frame, sizes = staged(session, plain(), 50, never=["color >= 0"])
    assert len(frame) == 0 and not sizes.any()


@pytest.mark.parametrize(
    ("sql_type", "edges"),
    [
        ("DATE", None),
        ("INTEGER", (0, 10, 20)),
        ("DECIMAL(9,2)", None),
        ("TIMESTAMP", None),
        ("TIMESTAMP_S", None),
        ("TIMESTAMP WITH TIME ZONE", None),
    ],
)
def test_values_of_every_type_are_the_ticks_that_were_drawn(session, sql_type, edges):
    if sql_type == "DATE":
        edges = dates(DAYS[:3])
    elif sql_type.startswith("TIMESTAMP"):
        edges = (datetime(2020, 1, 1), datetime(2020, 2, 1), datetime(2020, 3, 1))
    elif edges is None:
        edges = (Decimal("0.50"), Decimal("1.00"), Decimal("9.99"))
    kind = "temporal" if sql_type[0] in "DT" and not sql_type.startswith("DEC") else "numeric"
    when = Attribute("when", sql_type, kind, edges=edges, nullable=True, ordered=True)
    families = Families(
        Domain((when, attribute("x", 2), numbers_of_rows("n", MOST))), 2, frozenset({"n"}), "n", order="when"
    )
    made = model_of(families, {("when", "x"): np.zeros((3, 2)), ("when", "n"): np.zeros((3, MOST))})
    staged(session, made, 500)
    kinds = dict(
        session.con.execute("SELECT column_name, column_type FROM (DESCRIBE out.main.made)").fetchall()
    )
    assert kinds["when"] == sql_type
    backwards = """SELECT count(*) FILTER ("when" < last), count(*) FILTER ("when" IS NULL), count(DISTINCT "when")
        FROM (SELECT *, max("when") OVER (PARTITION BY person ORDER BY place ROWS UNBOUNDED PRECEDING) AS last
              FROM (SELECT *, rowid AS place FROM out.main.made))"""
    back, empty, different = session.con.execute(backwards).fetchone()
    assert back == 0 and empty > 0 and different > 10


@pytest.mark.parametrize("never", [[], ["color = 1 AND month(day) < 6"]])
def test_rows_decoded_in_parts_are_those_decoded_together(session, never):
    roles = (PERSON, Key("id", "BIGINT"))
    shape = shape_for(session, dated(), never, roles)
    staged_rows = stage(session, shape, dated(), 500, STAGED, 3)
    rows, persons = staged_rows.total, staged_rows.persons
    units, whole = units_of(None, rows, persons), session.con.execute
    expected = whole(output_statement(shape, STAGED, rows, units, 3)).fetchall()
    found = []
    for part in range(2):
        half = f"(SELECT * FROM {STAGED} ORDER BY row LIMIT {rows if part else 700} OFFSET {700 * part})"
        whole(f"CREATE OR REPLACE TEMP TABLE half AS FROM {half}")
        query = output_statement(shape, Fragment("half"), rows, units, 3, Fragment(str(700 * part)))
        found += whole(query).fetchall()
    assert found == expected and len({row[0] for row in found}) == persons


def test_other_attributes_than_are_written_are_a_fault(session):
    made = plain()
    shape = shape_for(session, made)
    with pytest.raises(InternalError, match="other attributes"):
        together(replace(shape, measured=shape.measured[:2]), made.families)
