"""Slices: the rows that the SQL keeps against a brute force in Python."""

from collections import defaultdict
from datetime import date, datetime, timedelta

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.file import shape_of
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import InputError
from dpsyn_sql.private.rows.relations import sliced_source, typed_relation
from dpsyn_sql.source.csv_form import csv_form
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation
from dpsyn_sql.source.slices import Partition, Window
from dpsyn_sql.sqltext.fragments import Fragment

QUICK = settings(max_examples=50, suppress_health_check=list(HealthCheck), deadline=None)
EDGES = ("2013-01-01", "2013-02-01", "2013-03-01", "2013-04-01", "2013-05-01")
START = date(2013, 1, 1)


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET default_collation = 'nocase'")
        yield connection


def ids(con, relation):
    return sorted(row[0] for row in con.execute(f"SELECT n FROM {relation.sql}").fetchall())


# -- windows of every kind of source -----------------------------------------------------------------

MOMENTS = (
    *(
        "2013-01-31 23:59:59.999999",
        "2013-02-01 00:00:00",
        "2013-02-01 00:00:00.000001",
        "2013-02-15 12:00:00",
    ),
    *("2013-02-28 23:59:59.999999", "2013-03-01 00:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59"),
    *("infinity", "-infinity", None),
)
INSIDE = {"TIMESTAMP": [1, 2, 3, 4], "DATE": [1, 2, 3, 4]}


@pytest.mark.parametrize("kind", ["TIMESTAMP", "DATE"])
def test_a_window_has_its_start_and_not_its_end_in_every_kind_of_source(con, tmp_path, kind):
    con.execute(f'CREATE TABLE t (n INTEGER, "When" {kind})')
    for number, moment in enumerate(MOMENTS):
        day = moment if moment is None or kind == "TIMESTAMP" else moment.split(" ")[0]
        con.execute("INSERT INTO t VALUES (?, ?)", [number, day])
    con.execute("CREATE VIEW v AS SELECT * FROM t")
    con.execute(f"COPY t TO '{tmp_path}/t.parquet'")
    con.execute(f'COPY (SELECT n, "When" FROM t WHERE isfinite("When")) TO \'{tmp_path}/t.csv\' (HEADER)')
    with (tmp_path / "t.csv").open("a") as file:
        file.write('20,soon\n21,2013-02-30\n22,\n23,"  2013-02-03  "\n')
    window = Window("when", "month", EDGES, 1)
    sources = [(con, "t"), (con, "v"), (con, 'SELECT n, "When" FROM t'), (None, str(tmp_path / "t.parquet"))]
    for place, source in sources:
        with open_source(place, source) as session:
            sliced = sliced_source(session.relation, PrivacyUnit(), window, Shape(())).relation
            found = session.engine.fetch(f"SELECT n FROM {sliced.sql}", step="testing")["n"]
            assert sorted(found) == INSIDE[kind], source
    for declared in (
        {},
        {"When": {"type": "temporal", "sql_type": kind, "lower": "2013-01-01", "upper": "2014-01-01"}},
    ):
        with open_source(None, str(tmp_path / "t.csv")) as session:
            domain = {"n": {"type": "numeric", "sql_type": "INTEGER", "lower": 0, "upper": 30}, **declared}
            left_out = [] if declared else ["When"]
            shape = shape_of({"columns": domain}, session.relation, left_out, discover=True)
            sliced = sliced_source(session.relation, PrivacyUnit(), window, shape).relation
            found = session.engine.fetch(f"SELECT n FROM {sliced.sql}", step="testing")["n"]
            assert sorted(map(int, found)) == [*INSIDE[kind], 23]


def test_a_strict_file_is_read_as_its_types_within_the_window_alone(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n,day\n1,2013-01-05\n2,2013-02-05\nmany,2013-03-05\n4,soon\n")
    with open_source(None, str(path), form=csv_form({"on_error": "fail"})) as session:
        domain = {"n": {"type": "numeric", "sql_type": "INTEGER", "lower": 0, "upper": 30}}
        shape = shape_of({"columns": domain}, session.relation, ["day"], discover=True)
        for index, wanted in ((0, [1]), (1, [2])):
            sliced = sliced_source(session.relation, PrivacyUnit(), Window("day", "m", EDGES, index), shape)
            sql = typed_relation(sliced.relation, shape).sql
            assert session.engine.fetch(f"SELECT n FROM {sql}", step="testing")["n"].tolist() == wanted


@pytest.mark.parametrize(
    ("sql_type", "edges", "said"),
    [
        ("TIMESTAMPTZ", EDGES, "TIMESTAMPTZ"),
        ("VARCHAR", EDGES, "VARCHAR"),
        ("TIMESTAMP_NS", EDGES, "TIMESTAMP_NS"),
        ("ENUM('secret')", EDGES, "ENUM"),
        ("DATE", ("2013-01-01", "2013-01-01T12:00:00"), "whole days"),
    ],
)
def test_what_makes_no_window_is_refused_and_shows_no_label(sql_type, edges, said):
    relation = Relation("t", "table", Fragment("t"), (Column("day", sql_type),))
    with pytest.raises(InputError, match=said) as caught:
        sliced_source(relation, PrivacyUnit(), Window("day", "c", edges, 0), Shape(()))
    assert "secret" not in str(caught.value)


def test_an_unknown_column_and_a_generated_one_that_mixes_rows_are_refused():
    columns = (Column("day", "DATE", refused="is computed in a way that may mix rows"), Column("a", "DATE"))
    relation = Relation("t", "table", Fragment("t"), columns)
    for name, said in (("dya", "not a column"), ("DAY", "may mix rows")):
        with pytest.raises(InputError, match=said):
            sliced_source(relation, PrivacyUnit(), Window(name, "c", EDGES, 0), Shape(()))
    other = sliced_source(relation, PrivacyUnit(), Window("a", "c", EDGES, 0), Shape(()))
    assert '"day"' not in other.relation.sql  # nothing evaluates it


def test_a_bound_that_nothing_enforces_is_refused():
    relation = Relation("t", "table", Fragment("t"), (Column("day", "DATE"), Column("id", "INTEGER")))
    with pytest.raises(InputError, match="a row has one date"):
        sliced_source(relation, PrivacyUnit(), Window("day", "c", EDGES, 0, most=2), Shape(()))
    with pytest.raises(InputError, match="nothing bounds"):
        sliced_source(relation, PrivacyUnit("id", 2), Partition("day", "2013-01-01", 1), Shape(()))


# -- partitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql_type", "values", "value", "wanted", "spelled"),
    [
        ("VARCHAR", ["a", "A", "a ", "á", "", None], "a", [0], "a"),
        ("VARCHAR", ["it's", "' OR 1=1 --", "{{ x }}"], "' OR 1=1 --", [1], "' OR 1=1 --"),
        ("ENUM('a', 'b')", ["a", "b", None], "b", [1], "b"),
        ("ENUM('a', 'b')", ["a", "b", None], "c", [], "c"),
        ("INTEGER", [1, -1, 10, None], "+01", [0], "1"),
        ("UHUGEINT", [0, 2**128 - 1, None], str(2**128 - 1), [1], str(2**128 - 1)),
        ("BOOLEAN", [True, False, None], "FALSE", [1], "false"),
        ("DATE", ["2013-02-01", "infinity", None], "2013-02-01", [0], "2013-02-01"),
    ],
)
def test_a_partition_has_the_rows_of_one_value(con, sql_type, values, value, wanted, spelled):
    con.execute(f"CREATE TABLE t (n INTEGER, v {sql_type})")
    for number, one in enumerate(values):
        con.execute(
            "INSERT INTO t VALUES (?, CAST(? AS VARCHAR))", [number, None if one is None else str(one)]
        )
    with open_source(con, "t") as session:
        source = sliced_source(session.relation, PrivacyUnit(), Partition("V", value, 1), Shape(()))
        assert ids(con, source.relation) == wanted
    assert source.sliced.value == spelled  # one partition has one name in the ledger


@pytest.mark.parametrize(
    ("sql_type", "value"),
    [
        *(("INTEGER", value) for value in ("1.0", "x", "", "\uff11", "3000000000")),
        *(("BOOLEAN", "1"), ("DATE", "2013-02-30"), ("DATE", "20130201"), ("DOUBLE", "1.0")),
        *(("TIMESTAMP", "2013-02-01"), ("INTEGER[]", "1")),
    ],
)
def test_a_value_that_the_column_cannot_have_is_refused(sql_type, value):
    relation = Relation("t", "table", Fragment("t"), (Column("v", sql_type),))
    with pytest.raises(InputError, match="cannot be one of its values"):
        sliced_source(relation, PrivacyUnit(), Partition("v", value), Shape(()))


# -- the bound across windows ------------------------------------------------------------------------

WINDOWS = 5
BASE = tuple((START + timedelta(days=7 * week)).isoformat() for week in range(WINDOWS + 1))
COLUMNS = (
    Column("n", "INTEGER"),
    Column("id", "VARCHAR"),
    Column("day", "DATE"),
    Column("its_unit0", "INTEGER"),
)
UNITS = st.sampled_from(["ann", "ann", "Ann", "Ann", None])
DAYS = st.sampled_from([None, -1, 0, 6, 7, 13, 14, 20, 21, 27, 28, 34, 35]).map(
    lambda days: None if days is None else START + timedelta(days=days)
)
ADDED = st.lists(st.tuples(UNITS, DAYS), max_size=5)
ROWS = st.lists(st.tuples(UNITS, DAYS), min_size=6, max_size=14)


def put(con, rows):
    con.execute('CREATE OR REPLACE TEMP TABLE grown (n INTEGER, id VARCHAR, "day" DATE, its_unit0 INTEGER)')
    if rows:
        con.executemany("INSERT INTO grown VALUES (?, ?, ?, 0)", [[n, *row] for n, row in enumerate(rows)])


def kept(con, rows, index, most, span=1):
    """Numbers of the rows that the slice keeps, once each."""
    put(con, rows)
    window = Window("day", "week", BASE, index, span, most)
    source = sliced_source(
        Relation("g", "table", Fragment("grown"), COLUMNS), PrivacyUnit("ID", 9), window, Shape(())
    )
    return ids(con, source.relation)


def week_of(day):
    return (
        None
        if day is None or not START <= day < START + timedelta(days=7 * WINDOWS)
        else (day - START).days // 7
    )


def expected(rows, index, most, span=1):
    weeks = defaultdict(set)
    for unit, day in rows:
        if unit is not None and week_of(day) is not None:
            weeks[unit].add(week_of(day))
    return [
        number
        for number, (unit, day) in enumerate(rows)
        if unit is not None
        and (week := week_of(day)) is not None
        and index <= week < index + span
        and week in sorted(weeks[unit])[:most]
    ]


@example(rows=[("ann", START), ("ann", START + timedelta(days=14))], most=1, place=(2, 1))
@QUICK
@given(
    rows=ROWS,
    most=st.integers(1, 3),
    place=st.sampled_from([(0, 1), (2, 1), (4, 1), (0, 2), (2, 2), (0, 4)]),
)
def test_a_row_counts_in_the_first_windows_of_its_unit(con, rows, most, place):
    index, span = place
    assert kept(con, rows, index, most, span) == expected(rows, index, most, span)


@QUICK
@given(
    rows=ROWS, more=st.lists(DAYS, min_size=1, max_size=8), most=st.integers(1, 3), index=st.integers(0, 4)
)
def test_a_unit_more_changes_no_row_of_another_unit(con, rows, more, most, index):
    with_it = rows + [("eve", day) for day in more]
    kept_with = [number for number in kept(con, with_it, index, most) if number < len(rows)]
    assert kept_with == kept(con, rows, index, most)


@QUICK
@given(
    growth=st.lists(ADDED, min_size=WINDOWS, max_size=WINDOWS),
    most=st.integers(1, 3),
    span=st.sampled_from([1, 2]),
)
@pytest.mark.slow
def test_no_unit_counts_in_more_windows_than_the_bound_while_late_rows_arrive(con, growth, most, span):
    rows, counted = [], defaultdict(set)
    for step in range(WINDOWS // span):
        rows += growth[step]  # with dates in any window, past ones too
        for number in kept(con, rows, step * span, most, span):
            counted[rows[number][0]].add(step)
    assert max(map(len, counted.values()), default=0) <= most
    assert None not in counted


def test_windows_of_a_calendar_share_no_row(con):
    con.execute("CREATE TABLE t (n INTEGER, day TIMESTAMP)")
    moments = [datetime(2013, 1, 1) + timedelta(hours=12 * half) for half in range(-10, 260)]
    con.executemany("INSERT INTO t VALUES (?, ?)", [[number, one] for number, one in enumerate(moments)])
    with open_source(con, "t") as session:
        for span in (1, 2, 4):
            seen = []
            for index in range(0, 4, span):
                window = Window("day", "month", EDGES, index, span, most=1)
                seen += ids(con, sliced_source(session.relation, PrivacyUnit(), window, Shape(())).relation)
            assert sorted(seen) == list(range(10, 250))
