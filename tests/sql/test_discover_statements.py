"""Units per key, code, cell and number of rows: text of the statements, and counts against a brute force.

The brute force asks the database for hash values only; everything else is Python.
"""

import math
from collections import Counter as Tally
from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime, time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.grids import grid_attribute, grid_cuts, special_cuts
from dpsyn_sql.attributes.types import edge_text, parse_type, to_tick
from dpsyn_sql.discovery.attributes import steps_of
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InternalError
from dpsyn_sql.planning.queries import Beginning, ContributionQuery, GridQuery, KeyQuery, StepQuery
from dpsyn_sql.private.count import discovery
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment, ident

QUICK = settings(max_examples=25, suppress_health_check=list(HealthCheck))
KEY = 11
UNIT = PrivacyUnit("id", 4)  # two keys, two codes, one point
UNITS = st.sampled_from(["ann", "Ann", "ann ", "", "1", "01", "é", "e\u0301", None])
TEXTS = st.sampled_from(
    ["a", "A", "a ", "", "é", "e\u0301", "É", "\ufb01", "fi", "\x00", "a\x00", "\U0001f600", "'", None]
)
INTEGER, DOUBLE = parse_type("INTEGER"), parse_type("DOUBLE")


SETTINGS = "SET threads = 2; SET default_collation = 'nocase'"


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
    return SqlDiscoveryCounter(
        DuckDBEngine(con), Fragment(relation), decimal="." if csv else "", unit=unit, key=KEY
    )


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
@given(
    rows=st.lists(st.tuples(UNITS, TEXTS | st.text(max_size=4), st.none()), max_size=30),
    longest=st.sampled_from([0, 1, 1000]),
)
def test_keys_are_texts_byte_for_byte(con, unit, rows, longest):
    put(con, rows)
    found = keys_of(counter(con, unit).keys(KeyQuery("s", "VARCHAR", longest)))
    pairs = [(who, text.encode() if is_key(text, longest) else None) for who, text, _ in rows]
    wanted = expected(con, pairs, unit, 2, "BLOB")
    assert found == {text.decode(): units for text, units in wanted.items()}
    assert list(found) == sorted(found, key=str.encode)


BEGUN = st.text("ab*_é\u0301\x00", max_size=5)


@st.composite
def knowns(draw):
    """Labels that are found before, with those of beginnings."""
    prefixes = draw(st.sampled_from([(), (3,), (4, 2)]))
    labels = {*draw(st.lists(BEGUN, max_size=3)), *(draw(BEGUN)[:n].ljust(n, "a") + "*" for n in prefixes)}
    labels = tuple(sorted(label for label in labels if "\x00" not in label))
    prefixes = tuple(n for n in prefixes if any(len(x) == n + 1 and x[-1] == "*" for x in labels))
    return Attribute("s", "VARCHAR", "categorical", labels, other=True, prefixes=prefixes)


def is_known(text, known):
    return text in known.labels or any(
        len(text) >= n and f"{text[:n]}*" in known.labels for n in known.prefixes
    )


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
@QUICK
@given(
    texts=st.lists(st.tuples(UNITS, st.none() | BEGUN), max_size=30), known=knowns(), length=st.integers(1, 4)
)
def test_beginnings_of_text_that_no_known_label_covers(con, unit, texts, known, length):
    put(con, [(who, text, None) for who, text in texts])
    query = KeyQuery("s", "VARCHAR", beginning=Beginning(length, known))
    found = keys_of(counter(con, unit).keys(query))

    def key(text):
        covered = text is None or len(text) < length or is_known(text, known) or "\x00" in text[:length]
        return None if covered else text[:length].encode()

    wanted = expected(con, [(who, key(text)) for who, text in texts], unit, 2, "BLOB")
    assert found == {text.decode(): units for text, units in wanted.items()}


def test_beginnings_of_long_text_count_and_collations_merge_none(con):
    con.execute("SET default_collation = 'nocase'")
    put(con, [("u", "x" * 10_000_000, None), ("u", "Xy", None), ("u", "xy", None), ("u", "x", None)])
    known = Attribute("s", "VARCHAR", "categorical", ("XY", "Xy"), other=True, nullable=True)
    query = KeyQuery("s", "VARCHAR", longest=2, beginning=Beginning(2, known))
    assert keys_of(counter(con).keys(query)) == {"xx": 1, "xy": 1}
    with pytest.raises(InternalError, match="no label covers"):
        query = KeyQuery("s", "VARCHAR", beginning=Beginning(2, replace(known, other=False)))
        list(counter(con).keys(query))


@pytest.mark.parametrize(
    ("sql_type", "values"),
    [
        ("TINYINT", [-128, 127, 0]),
        ("BIGINT", [-(2**63), 2**63 - 1, 10, 9]),
        ("HUGEINT", [-(2**127), 2**127 - 1]),
        ("UHUGEINT", [2**128 - 1, 0]),
        ("BOOLEAN", [False, True]),
        ("DOUBLE", [0.1, -0.25, 1e300, 5e-324, 1.7976931348623157e308]),
        ("FLOAT", [float(np.float32(0.1)), 16777216.0]),
        ("ENUM('x', 'X', 'é')", ["x", "X", "é"]),
    ],
)
def test_keys_of_each_type(con, sql_type, values):
    rows = [("u", str(value), None) for value in values] + [("u", None, None), ("v", str(values[0]), None)]
    put(con, rows, sql_type)
    found = keys_of(counter(con).keys(KeyQuery("s", sql_type)))
    assert found == {value: 1 + (value == values[0]) for value in values}
    assert {type(key) for key in found} == {type(value) for value in values}


@pytest.mark.parametrize(
    ("sql_type", "texts", "ticks"),
    [
        ("DECIMAL(10,2)", ["-0.05", "0.05", "12345678.90", "0"], [-5, 5, 1234567890, 0]),
        ("DECIMAL(38,0)", ["9" * 38, "-" + "9" * 38], [10**38 - 1, 1 - 10**38]),
        (
            "DATE",
            ["1969-12-31", "0001-01-01", "9999-12-31", "infinity", "0001-01-01 (BC)"],
            [-1, -719162, 2932896],
        ),
        ("TIME", ["00:00:00.000001", "23:59:59.999999"], [1, 86_399_999_999]),
        ("TIMESTAMP", ["1969-12-31 23:59:59.999999", "1970-01-01", "infinity"], [-1, 0]),
        ("TIMESTAMP_S", ["1969-12-31 23:59:58", "9999-12-31"], [-2, 253_402_214_400]),
        ("TIMESTAMP_MS", ["1969-12-31 23:59:59.999", "2300-01-01"], [-1, 10_413_792_000_000]),
        ("TIMESTAMP_NS", ["1969-12-31 23:59:59.999999999", "1970-01-01 00:00:00.000001999"], [-1, 1]),
        ("TIMESTAMP WITH TIME ZONE", ["1970-01-01 01:00:00+01", "infinity"], [0]),
    ],
)
def test_keys_of_decimals_and_moments_are_ticks(con, sql_type, texts, ticks):
    put(con, [("u", text, None) for text in texts], sql_type)
    assert keys_of(counter(con).keys(KeyQuery("s", sql_type))) == dict.fromkeys(ticks, 1)


BITS = st.integers(0, 2**64 - 1)


@QUICK
@given(bits=st.lists(BITS, min_size=1, max_size=20), double=st.booleans())
def test_two_doubles_are_one_key_only_if_they_are_equal(con, bits, double):
    """Any bits: NaN and infinities are no keys, zeros are one."""
    kind = np.float64 if double else np.float32
    values = np.array(bits, dtype=np.uint64).astype(np.uint64 if double else np.uint32).view(kind)
    values = np.concatenate([values, np.array([0.0, -0.0, np.nan, np.inf, -np.inf], dtype=kind)])
    con.execute("CREATE OR REPLACE TEMP TABLE source AS SELECT unnest(?) AS n", [values])
    wanted = Tally(float(value) for value in values if np.isfinite(value))
    found = keys_of(counter(con).keys(KeyQuery("n", "DOUBLE" if double else "FLOAT")))
    assert found == dict(wanted) and found[0.0] >= 2


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
def test_keys_of_too_few_units_are_not_read(con, unit):
    put(con, [(str(who), key, "5") for key, units in (("a", 3), ("b", 2), ("c", 1)) for who in range(units)])
    door = counter(con, unit)
    every = keys_of(door.keys(KeyQuery("s", "VARCHAR")))
    for least in (1, 2, 3, 9):
        found = keys_of(door.keys(KeyQuery("s", "VARCHAR"), least))
        assert found == {key: units for key, units in every.items() if units >= least}
        numbers = keys_of(door.keys(KeyQuery("n", "INTEGER"), least))
        assert numbers == (
            {5: 6 if unit.column is None else 3} if least <= (6 if unit.column is None else 3) else {}
        )


STEPPED = {
    "TINYINT": ["100", "-128", "50", "5", "3", "0", None],
    "UHUGEINT": [str(2**128 - 1), "1000000", "15"],
    "DECIMAL(10,2)": ["0.05", "0.10", "12.00", "-7.50", "0.01", "0.00", "99999999.99"],
    "DECIMAL(38,2)": ["9" * 36 + ".25", "1" + "0" * 35 + ".00"],
    "DOUBLE": [
        "0.1",
        "0.3",
        "2.5",
        "1e300",
        "123456.789",
        "0.30000000000000004",
        "nan",
        "inf",
        "-0.0",
        "1e-6",
        "1e-7",
    ],
    "FLOAT": ["0.1", "2.5", "1000", "0.123"],
    "DATE": ["2020-03-01", "2020-03-02", "1969-12-01", "infinity"],
    "TIME": ["10:15:00", "10:00:00", "10:00:01", "10:00:00.000001", "00:00:00"],
    "TIMESTAMP": [
        "2020-03-01",
        "2020-03-02",
        "2020-03-01 05:00:00",
        "1969-12-31 23:45:00",
        "1969-12-31 23:59:59.9",
    ],
    "TIMESTAMP_NS": ["1969-12-31 23:59:59.999999", "2020-03-01 00:00:00"],
    "TIMESTAMP WITH TIME ZONE": ["2020-03-01 00:00:00+00", "2020-03-01 05:30:00+05:30"],
}


def fits(kind, value, step):
    """Whether a value of Python's is a whole multiple of a step, exactly."""
    if kind.family == "float":
        kept = np.float32 if kind.text == "FLOAT" else np.float64
        whole = round(Fraction(float(value)) / Fraction(step))
        return kept(float(Fraction(whole) * Fraction(step))) == kept(value)
    if step == "month":
        return value.day == 1 and (kind.family == "date" or value.time() == time())
    return to_tick(kind, value) % step == 0


@pytest.mark.parametrize("name", STEPPED)
def test_steps_of_every_type(con, name):
    con.execute("SET TimeZone = 'Asia/Kolkata'")
    kind, texts = parse_type(name), STEPPED[name]
    put(con, [("u", None, text) for text in texts], n_type=name)
    steps = steps_of(kind)
    found = counter(con).steps(StepQuery("n", name, steps))
    wanted = [0] * (len(steps) + 1)
    read = "n AT TIME ZONE 'UTC'" if kind.zoned else "n"
    for (value,) in con.execute(f"SELECT {read} FROM source").fetchall():
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            continue
        if (kind.temporal and not isinstance(value, date | datetime | time)) or value == 0:
            continue
        if kind.temporal and isinstance(value, date | datetime) and value.year in (1, 9999):
            continue  # infinity
        wanted[max((i + 1 for i, step in enumerate(steps) if fits(kind, value, step)), default=0)] += 1
    assert found.tolist() == wanted


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
    grid = grid_attribute("n", "INTEGER", grid_cuts(INTEGER))
    found = counter(con, unit).cells(GridQuery(grid))

    def code(n):
        return grid.null_code if n is None else sum(edge <= n for edge in grid.edges[1:-1])

    wanted = expected(con, [(who, code(n)) for who, _, n in rows], unit, 2)
    assert found.shape == (grid.size,) and found.dtype == np.int64
    assert {place: units for place, units in enumerate(found.tolist()) if units} == wanted


OWNED = tuple(Fraction(cut) for cut in (-(2**31), -5, -4, 0, 1, 3, 4, 2**31))
OWNERS = (0, 1, 0, 3, 0, 5, 0)  # -5, 0 and 3 are alone, all else is one code


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
@QUICK
@given(rows=NUMBERED)
def test_cells_that_are_counted_together_are_one_code(con, unit, rows):
    """A unit with rows in several of them counts once: sums of finished counts would count it again."""
    put(con, [(who, s, None if n is None else str(n)) for who, s, n in rows])
    found = counter(con, unit).cells(GridQuery(grid_attribute("n", "INTEGER", OWNED), OWNERS))

    def code(n):
        return 7 if n is None else {-5: 1, 0: 3, 3: 5}.get(n, 0)

    wanted = expected(con, [(who, code(n)) for who, _, n in rows], unit, 2)
    assert found.shape == (8,) and found.dtype == np.int64
    assert {place: units for place, units in enumerate(found.tolist()) if units} == wanted


@pytest.mark.parametrize("sql_type", ["TINYINT", "INTEGER", "HUGEINT", "DECIMAL(9,2)", "DOUBLE", "FLOAT"])
@pytest.mark.parametrize("strength", [10.0, 100.0, 1000.0])
def test_every_value_has_exactly_one_code_of_the_grid_of_one_look(con, sql_type, strength):
    """Every row adds 1 to one count, whatever its value: the ends of all cells, values beside them, none."""
    kind = parse_type(sql_type)
    cuts, owners = special_cuts(kind, None, None, strength)
    grid = grid_attribute("n", sql_type, cuts)
    ends = [
        text for edge in grid.edges for text in {str(edge), str(int(edge) + 1) if edge < 100 else str(edge)}
    ]
    con.execute(f"CREATE OR REPLACE TEMP TABLE source (id VARCHAR, n {sql_type})")
    con.execute(
        f"INSERT INTO source SELECT 'u', TRY_CAST(n AS {sql_type}) FROM (SELECT unnest(?::VARCHAR[]) AS n)",
        [[*ends, None]],
    )
    found = counter(con).cells(GridQuery(grid, owners))
    (rows,) = con.execute("SELECT count(*) FROM source").fetchone()
    assert found.sum() == rows == len(ends) + 1
    owner = np.array(owners)
    assert not found[:-1][owner != np.arange(owner.size)].any() and (owner[owner] == owner).all()


@pytest.mark.parametrize(
    "sql_type",
    [
        "BIGINT",
        "UHUGEINT",
        "DECIMAL(9,2)",
        "DOUBLE",
        "FLOAT",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NS",
        "TIMESTAMP WITH TIME ZONE",
    ],
)
def test_bins_that_are_joined_have_the_codes_of_comparisons(con, sql_type):
    """Edges, what lies beside them, nothing, and what is no number."""
    kind = parse_type(sql_type)
    grid = grid_attribute("n", sql_type, special_cuts(kind, None, None, 1000.0)[0])
    joined, compared = (grid.code("c", joined=way) for way in (True, False))
    assert joined.joins and not compared.joins
    texts = [edge_text(edge) for edge in grid.edges] + [
        "0.5",
        "-7",
        "nan",
        "inf",
        "-inf",
        "infinity",
        "-infinity",
    ]
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE listed AS SELECT TRY_CAST(n AS {sql_type}) AS c "
        "FROM (SELECT unnest(?::VARCHAR[]) AS n)",
        [texts],
    )
    con.execute("INSERT INTO listed VALUES (NULL)")
    together = f"SELECT {joined.code}, {compared.code} FROM listed {' '.join(joined.joins)}"
    codes = con.execute(together).fetchall()
    assert len(codes) == len(texts) + 1 and all(code == other for code, other in codes)
    assert {code for code, _ in codes} >= {*range(1, grid.regular - 1)}


@pytest.mark.parametrize("unit", [PrivacyUnit(), UNIT], ids=["row", "unit"])
@QUICK
@given(rows=NUMBERED)
def test_steps_of_integers(con, unit, rows):
    put(con, [(who, s, None if n is None else str(n)) for who, s, n in rows])
    found = counter(con, unit).steps(StepQuery("n", "INTEGER", (2, 4, 8)))

    def step(n):
        return None if not n else sum(n % divisor == 0 for divisor in (2, 4, 8))

    wanted = expected(con, [(who, step(n)) for who, _, n in rows], unit, 1)
    assert found.shape == (4,) and found.dtype == np.int64
    assert {place: units for place, units in enumerate(found.tolist()) if units} == wanted


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


def test_columns_named_like_our_own(con):
    for name in ("c", "unit", "thing", "units", "place", "{{ value }}", 'a"b', "é", "e\u0301"):
        con.execute(f"CREATE OR REPLACE TEMP TABLE odd ({ident(name)} VARCHAR)")
        con.execute("INSERT INTO odd VALUES ('x'), ('x'), (NULL)")
        for unit in (PrivacyUnit(), PrivacyUnit(name, 2)):
            found = keys_of(counter(con, unit, relation="odd").keys(KeyQuery(name, "VARCHAR")))
            assert found == {"x": 2 if unit.column is None else 1}


def test_numbers_that_are_none_in_a_grid_of_doubles(con):
    put(con, [("u", None, text) for text in ("NaN", "inf", "-inf", "0", None)], n_type="DOUBLE")
    grid = grid_attribute("n", "DOUBLE", grid_cuts(DOUBLE))
    found = counter(con).cells(GridQuery(grid))
    assert found.sum() == 5 and found[grid.null_code] == 2
    assert found[0] == 1 and found[grid.regular - 1] == 1
    assert math.isfinite(grid.edges[0])


def test_a_unit_draws_among_its_keys_fairly_and_anew(con):
    """Which of four keys a unit shows differs between units and between draws."""
    put(con, [(str(unit), key, None) for unit in range(400) for key in "abcd"])
    one = keys_of(counter(con, PrivacyUnit("id", 1)).keys(KeyQuery("s", "VARCHAR")))
    assert sum(one.values()) == 400 and all(60 < units < 140 for units in one.values())
    others = [
        SqlDiscoveryCounter(DuckDBEngine(con), Fragment("source"), unit=PrivacyUnit("id", 1))
        for _ in range(3)
    ]
    found = [str(keys_of(other.keys(KeyQuery("s", "VARCHAR")))) for other in others]
    assert len(set(found)) > 1  # two are equal once in 20,000 times
    assert repr(others[0]) == "SqlDiscoveryCounter()"


A_CATEGORY = Attribute("s", "VARCHAR", "categorical", labels=("a", "b"), other=True, nullable=True)


def test_codes_of_labels(con):
    put(con, [("u", "a", None), ("u", "A", None), ("v", "a", None), (None, "a", None), ("v", None, None)])
    assert counter(con, UNIT).cells(GridQuery(A_CATEGORY)).tolist() == [2, 0, 1, 1]
