"""Units per key, code, cell and number of rows: text of the statements, and counts against a brute force.

The brute force asks the database for hash values only; everything else is Python.
"""

import math
from collections import Counter as Tally
from collections import defaultdict
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.count import discovery
from dpsyn_sql.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.grids import grid_attribute
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InternalError
from dpsyn_sql.planning.queries import ContributionQuery, GridQuery, KeyQuery, TreeQuery, TreeRoot
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment, ident

QUICK = settings(max_examples=25, suppress_health_check=list(HealthCheck))
KEY = 11
UNIT = PrivacyUnit("id", 4)  # two keys, two codes, one point
UNITS = st.sampled_from(["ann", "Ann", "ann ", "", "1", "01", "é", "e\u0301", None])
TEXTS = st.sampled_from(
    ["a", "A", "a ", "", "é", "e\u0301", "É", "\ufb01", "fi", "\x00", "a\x00", "\U0001f600", "'", None]
)
TREE = (TreeRoot(Fraction(-8), Fraction(2), 2), TreeRoot(Fraction(0), Fraction(1), 3))


@pytest.fixture(scope="module")
def con():
    """Text is compared without regard to case here, as a caller may have set it."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET default_collation = 'nocase'")
        yield connection


def put(con, rows, s_type="VARCHAR", n_type="INTEGER"):
    con.execute(f"CREATE OR REPLACE TEMP TABLE source (id VARCHAR, s {s_type}, n {n_type})")
    if rows:
        con.execute(
            "INSERT INTO source SELECT u, s, n FROM (SELECT unnest(?::VARCHAR[]) AS u, "
            "unnest(?::VARCHAR[]) AS s, unnest(?::VARCHAR[]) AS n)",
            [list(column) for column in zip(*rows, strict=True)],
        )
    return Fragment("source")


def counter(con, unit=PrivacyUnit(), csv=False, relation="source"):  # noqa: B008
    return SqlDiscoveryCounter(DuckDBEngine(con), Fragment(relation), csv=csv, unit=unit, key=KEY)


def keys_of(found):
    parts = list(found)
    keys = [key for part, _ in parts for key in part]
    units = [count for _, counts in parts for count in counts.tolist()]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, units, strict=True))


def lots(con, unit, things, sql_type):
    sql = f"SELECT hash(xor(hash(?::{sql_type}), hash(xor(hash(?::BLOB), {KEY}::UBIGINT))))"
    return [con.execute(sql, [thing, unit.encode()]).fetchone()[0] for thing in things]


def expected(con, pairs, unit, most, sql_type="BIGINT"):
    """Units per thing by definition: at most ``most`` of a unit's different things, by their lots."""
    pairs = [(who, thing) for who, thing in pairs if thing is not None]
    if unit.column is None:
        return dict(Tally(thing for _, thing in pairs))
    things = defaultdict(set)
    for who, thing in pairs:
        if who is not None:
            things[who].add(thing)
    found = Tally()
    for who, told in things.items():
        order = sorted(told)
        drawn = sorted(zip(lots(con, who, order, sql_type), order, strict=True))
        found.update(thing for _, thing in drawn[:most])
    return dict(found)


def is_key(text, longest):
    return text is not None and len(text) <= longest and "\x00" not in text


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
@QUICK
@given(rows=st.lists(st.tuples(UNITS, TEXTS, st.none()), max_size=30), longest=st.sampled_from([0, 1, 1000]))
def test_keys_are_texts_byte_for_byte(con, unit, rows, longest):
    put(con, rows)
    found = keys_of(counter(con, unit).keys(KeyQuery("s", "VARCHAR", longest)))
    pairs = [(who, text.encode() if is_key(text, longest) else None) for who, text, _ in rows]
    wanted = expected(con, pairs, unit, 2, "BLOB")
    assert found == {text.decode(): units for text, units in wanted.items()}
    assert list(found) == sorted(found, key=str.encode)


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
@QUICK
@given(
    texts=st.lists(st.tuples(UNITS, st.text(max_size=4)), max_size=20),
)
def test_any_text_is_a_key(con, unit, texts):
    rows = [(who, text, None) for who, text in texts]
    put(con, rows)
    found = keys_of(counter(con, unit).keys(KeyQuery("s", "VARCHAR", 3)))
    pairs = [(who, text.encode() if is_key(text, 3) else None) for who, text in texts]
    assert found == {text.decode(): units for text, units in expected(con, pairs, unit, 2, "BLOB").items()}


@pytest.mark.parametrize(
    ("sql_type", "values"),
    [
        ("TINYINT", [-128, 127, 0]),
        ("BIGINT", [-(2**63), 2**63 - 1, 10, 9]),
        ("HUGEINT", [-(2**127), 2**127 - 1]),
        ("UHUGEINT", [2**128 - 1, 0]),
        ("BOOLEAN", [True, False]),
        ("ENUM('x', 'X', 'é')", ["x", "X", "é"]),
    ],
)
def test_keys_of_each_type(con, sql_type, values):
    rows = [("u", str(value), None) for value in values] + [("u", None, None), ("v", str(values[0]), None)]
    put(con, rows, sql_type)
    found = keys_of(counter(con).keys(KeyQuery("s", sql_type)))
    assert found == {value: 1 + (value == values[0]) for value in values}
    assert {type(key) for key in found} == {type(value) for value in values}


def test_types_without_keys(con):
    put(con, [])
    for sql_type in ("DOUBLE", "DATE", "INTEGER[]"):
        with pytest.raises(InternalError):
            list(counter(con).keys(KeyQuery("s", sql_type)))


def test_text_of_a_file_is_read_as_its_type_and_never_raises(con):
    texts = [" 7 ", "7", "+7", "7.4", "x", "", None, "99999999999999999999", "\x00", "1e0", "-0", "0"]
    put(con, [("u", text, None) for text in texts])
    found = keys_of(counter(con, csv=True).keys(KeyQuery("s", "INTEGER")))
    read = [con.execute("SELECT TRY_CAST(trim(?) AS INTEGER)", [text]).fetchone()[0] for text in texts]
    assert found == dict(Tally(value for value in read if value is not None)) and found[7] >= 3
    assert keys_of(counter(con, csv=True).keys(KeyQuery("s", "VARCHAR")))[" 7 "] == 1


def test_five_thousand_texts_in_a_thousand_rows_come_in_parts(con, monkeypatch):
    monkeypatch.setattr(discovery, "PART", 64)
    rows = [(str(row % 10), f"text {row}", None) for row in range(5_000)]
    put(con, rows)
    parts = list(counter(con).keys(KeyQuery("s", "VARCHAR")))
    assert all(len(keys) == len(units) <= 64 for keys, units in parts)
    assert len(keys_of(parts)) == 5_000
    few = keys_of(counter(con, PrivacyUnit("id", 9)).keys(KeyQuery("s", "VARCHAR")))
    assert sum(few.values()) == 30
    assert con.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'dpsyn_keys%'"
    ).fetchone() == (0,)


def test_a_part_that_is_exactly_full_is_not_the_last(con, monkeypatch):
    monkeypatch.setattr(discovery, "PART", 2)
    put(con, [("u", text, None) for text in "abcd"])
    assert [keys for keys, _ in counter(con).keys(KeyQuery("s", "VARCHAR"))] == [["a", "b"], ["c", "d"], []]


def test_long_text_is_no_key_and_is_not_fetched(con):
    put(con, [("u", "x" * 10_000_000, None), ("u", "é" * 1_000, None), ("u", "é" * 1_001, None)])
    assert keys_of(counter(con).keys(KeyQuery("s", "VARCHAR"))) == {"é" * 1_000: 1}


def test_the_table_of_keys_goes_when_reading_stops(con):
    put(con, [("u", "a", None)])
    engine = DuckDBEngine(con)
    door = SqlDiscoveryCounter(engine, Fragment("nowhere"), key=KEY)
    with pytest.raises(EngineFailure):
        list(door.keys(KeyQuery("s", "VARCHAR")))
    reading = counter(con).keys(KeyQuery("s", "VARCHAR"))
    next(reading)
    reading.close()
    assert con.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'dpsyn_keys%'"
    ).fetchone() == (0,)


NUMBERS = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from([-(2**31), 2**31 - 1]))
NUMBERED = st.lists(st.tuples(UNITS, st.none(), NUMBERS), max_size=30)


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
@QUICK
@given(rows=NUMBERED)
def test_codes_of_a_grid(con, unit, rows):
    put(con, [(who, s, None if n is None else str(n)) for who, s, n in rows])
    grid = grid_attribute("n", "INTEGER", nullable=True)
    found = counter(con, unit).cells(GridQuery(grid))

    def code(n):
        return grid.null_code if n is None else sum(edge <= n for edge in grid.edges[1:-1])

    wanted = expected(con, [(who, code(n)) for who, _, n in rows], unit, 2)
    assert found.shape == (grid.size,) and found.dtype == np.int64
    assert {place: units for place, units in enumerate(found.tolist()) if units} == wanted


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
@QUICK
@given(rows=NUMBERED)
def test_points_of_a_tree(con, unit, rows):
    put(con, [(who, s, None if n is None else str(n)) for who, s, n in rows])
    cells, units = counter(con, unit).points(TreeQuery("n", "INTEGER", TREE))

    def cell(n):
        if n is None or not -8 <= n < 8:
            return None
        return (n + 8) // 2 if n < 0 else 4 + n

    wanted = expected(con, [(who, cell(n)) for who, _, n in rows], unit, 1)
    assert cells.dtype == units.dtype == np.int64
    assert (
        cells.tolist() == sorted(wanted) and dict(zip(cells.tolist(), units.tolist(), strict=True)) == wanted
    )


@QUICK
@given(rows=NUMBERED, most=st.integers(1, 4))
def test_units_by_their_rows(con, rows, most):
    put(con, [(who, s, None if n is None else str(n)) for who, s, n in rows])
    found = counter(con, PrivacyUnit("id", most)).contributions(ContributionQuery(most))
    rows_of = Tally(who for who, _, _ in rows if who is not None)
    wanted = Tally(min(count, most) for count in rows_of.values())
    assert found.tolist() == [wanted[number] for number in range(1, most + 1)] and found.dtype == np.int64


def test_rows_of_units_need_units_and_their_bound(con):
    put(con, [])
    for unit in (PrivacyUnit(), UNIT):
        with pytest.raises(InternalError):
            counter(con, unit).contributions(ContributionQuery(1))
    with pytest.raises(InternalError):
        counter(con, PrivacyUnit("id", 0))


def test_nothing_in_an_empty_table(con):
    put(con, [])
    door = counter(con, UNIT)
    assert keys_of(door.keys(KeyQuery("s", "VARCHAR"))) == {}
    assert not door.cells(GridQuery(grid_attribute("n", "INTEGER", nullable=False))).any()
    assert [array.tolist() for array in door.points(TreeQuery("n", "INTEGER", TREE))] == [[], []]
    assert door.contributions(ContributionQuery(4)).tolist() == [0, 0, 0, 0]


def test_columns_named_like_our_own(con):
    for name in ("c", "unit", "thing", "units", "place", "{{ value }}", 'a"b', "é", "e\u0301"):
        con.execute(f"CREATE OR REPLACE TEMP TABLE odd ({ident(name)} VARCHAR)")
        con.execute("INSERT INTO odd VALUES ('x'), ('x'), (NULL)")
        for unit in (PrivacyUnit(), PrivacyUnit(name, 2)):
            found = keys_of(counter(con, unit, relation="odd").keys(KeyQuery(name, "VARCHAR")))
            assert found == {"x": 2 if unit.column is None else 1}


def test_numbers_that_are_none_in_a_grid_of_doubles(con):
    put(con, [("u", None, text) for text in ("NaN", "inf", "-inf", "0", None)], n_type="DOUBLE")
    grid = grid_attribute("n", "DOUBLE", nullable=True)
    found = counter(con).cells(GridQuery(grid))
    assert found.sum() == 5 and found[grid.null_code] == 2
    assert found[0] == 1 and found[grid.regular - 1] == 1
    assert math.isfinite(grid.edges[0])


def test_a_unit_draws_among_its_keys_fairly_and_anew(con):
    """Which of four keys a unit shows differs between units and between draws."""
    put(con, [(str(unit), key, None) for unit in range(400) for key in "abcd"])
    one = keys_of(counter(con, PrivacyUnit("id", 1)).keys(KeyQuery("s", "VARCHAR")))
    assert sum(one.values()) == 400 and all(60 < units < 140 for units in one.values())
    other = SqlDiscoveryCounter(DuckDBEngine(con), Fragment("source"), unit=PrivacyUnit("id", 1))
    again = SqlDiscoveryCounter(DuckDBEngine(con), Fragment("source"), unit=PrivacyUnit("id", 1))
    query = KeyQuery("s", "VARCHAR")
    assert keys_of(other.keys(query)) != keys_of(again.keys(query))
    assert repr(other) == "SqlDiscoveryCounter()"


A_CATEGORY = Attribute("s", "VARCHAR", "categorical", labels=("a", "b"), other=True, nullable=True)


def test_codes_of_labels(con):
    put(con, [("u", "a", None), ("u", "A", None), ("v", "a", None), (None, "a", None), ("v", None, None)])
    assert counter(con, UNIT).cells(GridQuery(A_CATEGORY)).tolist() == [2, 0, 1, 1]
