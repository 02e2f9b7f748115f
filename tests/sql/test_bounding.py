"""Bounding the rows of one unit: text of the statement, and the rows kept against a brute force.

The brute force asks the database for hash values only; grouping, ordering and cutting are Python.
"""

from collections import Counter as Tally
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.rows.kept import Bound, KeptRows
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal

QUICK = settings(max_examples=40, suppress_health_check=list(HealthCheck))
A = Attribute("a", "INTEGER", "numeric", edges=(0, 1, 2, 3))
B = Attribute("b", "VARCHAR", "categorical", labels=("x", "y"), other=True)
DOMAIN = Domain((A, B))
ALL = MarginalQuery(("a", "b"))
SINGLES = ((0,), (1,))
KEYS = st.one_of(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))
UNITS = st.sampled_from(["ann", "Ann", "ann ", "", "1", "01", "é", "e\u0301", "NULL", "nan", None])
ROWS = st.lists(st.tuples(UNITS, st.integers(-1, 3), st.sampled_from(["x", "y", "X", None])), max_size=30)


SETTINGS = "SET threads = 2; SET default_collation = 'nocase'"


def put(con, rows, unit_type="VARCHAR"):
    con.execute(f"CREATE OR REPLACE TEMP TABLE source (id {unit_type}, a INTEGER, b VARCHAR)")
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        con.execute(
            "INSERT INTO source SELECT u, a, b FROM "
            "(SELECT unnest(?::VARCHAR[]) AS u, unnest(?::INTEGER[]) AS a, unnest(?::VARCHAR[]) AS b)",
            columns,
        )
    return Fragment("source")


def kept(con, packs, key, max_rows, column="id", relation="source"):
    """The rows of codes that the statement keeps, sorted."""
    con.execute("DROP TABLE IF EXISTS temp.kept")
    bound = Bound(column, max_rows, key)
    rows = KeptRows.of_table(DuckDBEngine(con), Fragment(relation), DOMAIN, bound=bound)
    con.execute(f"CREATE TEMP TABLE kept AS {rows.encoding('', DOMAIN, packs).query}")
    return sorted(con.execute("FROM temp.kept").fetchall())


def codes_of(row):
    _, a, b = row
    return (min(max(a, 0), 2), {"x": 0, "y": 1}.get(b, 2))


def packed(codes, packs):
    return tuple(
        int(np.ravel_multi_index([codes[i] for i in pack], [DOMAIN.attributes[i].size for i in pack]))
        for pack in packs
    )


def drawn(con, rows, key, max_rows):
    """The same rows by definition; only the lots come from the database."""
    units = defaultdict(Tally)
    for row in rows:
        if row[0] is not None:
            units[row[0]][codes_of(row)] += 1
    chosen = []
    for unit, tally in units.items():
        tickets = [(codes, copy) for codes, times in sorted(tally.items()) for copy in range(1, times + 1)]
        lots = [lot(con, unit, codes, copy, key) for codes, copy in tickets]
        order = sorted(zip(lots, (codes for codes, _ in tickets), strict=True))
        chosen += [codes for _, codes in order[:max_rows]]
    return sorted(chosen)


def lot(con, unit, codes, copy, key):
    pack = np.ravel_multi_index(codes, DOMAIN.shape())
    sql = f"SELECT hash(xor(hash({pack}::UBIGINT, {copy}::BIGINT), hash(xor(hash(?::BLOB), {key}::UBIGINT))))"
    return con.execute(sql, [unit.encode()]).fetchone()[0]


@pytest.mark.parametrize("packs", [SINGLES, ((0, 1),), ((1,),)])
@given(rows=ROWS, key=KEYS, max_rows=st.integers(1, 4))
@QUICK
def test_rows_kept_equal_a_brute_force(con, packs, rows, key, max_rows):
    """However their codes are packed, and whatever of them is asked."""
    put(con, rows)
    expected = sorted(packed(codes, packs) for codes in drawn(con, rows, key, max_rows))
    assert kept(con, packs, key, max_rows) == expected


@pytest.mark.parametrize("max_rows", [10**6 + 1, 2**31, 2**62])
def test_a_bound_beyond_all_rows_keeps_all(con, max_rows):
    rows = [(str(i % 3), i % 4, "x") for i in range(50)]
    put(con, rows)
    assert kept(con, SINGLES, 5, max_rows) == sorted(map(codes_of, rows))


@pytest.mark.parametrize(
    ("sql_type", "same", "others"),
    [
        ("VARCHAR", ["ann", "ann"], ["Ann", "ann ", "änn", ""]),
        ("VARCHAR COLLATE NOCASE", ["ann", "ann"], ["Ann", "ANN"]),
        ("CHAR(5)", ["ann", "ann"], ["ann ", "ann  "]),
        ("BIGINT", ["1", "01", " 1"], ["-1", "9223372036854775807", "-9223372036854775808"]),
        ("UHUGEINT", ["0"], [str(2**128 - 1), str(2**128 - 2)]),
        ("BOOLEAN", ["true", "t"], ["false"]),
        ("DECIMAL(38,2)", ["1", "1.00"], ["1.01", "-1", "0"]),
        ("DATE", ["2001-02-03", "2001-2-3"], ["2001-02-04", "2001-02-03 (BC)", "infinity", "-infinity"]),
        ("TIMESTAMP_NS", ["2001-02-03"], ["2001-02-03 00:00:00.000000001", "2001-02-03 00:00:00.000000002"]),
        ("TIMESTAMP", ["2001-02-03", "2001-02-03T00:00:00"], ["2001-02-03 00:00:00.000001", "infinity"]),
        ("BLOB", ["a", r"\x61"], [r"\x00", r"\x5Cx00", r"\x5C", r"\x27"]),
        ("ENUM('a', 'A', 'b ')", ["a", "a"], ["A", "b "]),
        (
            "UUID",
            ["0a0B0c0d-0000-0000-0000-000000000000", "0A0b0c0d-0000-0000-0000-000000000000"],
            ["8a0b0c0d-0000-0000-0000-000000000000", "0a0b0c0d-0000-0000-0000-000000000001"],
        ),
    ],
)
def test_two_rows_are_of_one_unit_iff_their_values_are_the_same(con, sql_type, same, others):
    """Each value holds two rows of which one is kept: so the rows kept count the units."""
    put(con, [(value, 0, "x") for value in [*same, *others] * 2] + [(None, 0, "x")] * 2, sql_type)
    assert len(kept(con, SINGLES, 1, 1)) == 1 + len(others)


@pytest.mark.parametrize("name", ["unit", "copy", "lot", "place", "p0", "c0", "k0", 'a"b', "rowid", "key"])
def test_names_of_columns_that_our_statement_uses_too(con, name):
    column = ident(name)
    con.execute(f"CREATE OR REPLACE TEMP TABLE named ({column} VARCHAR, a INTEGER, b VARCHAR)")
    rows = [("u", 0, "x"), ("u", 1, "x"), ("v", 2, "y"), ("w", 0, None), (None, 1, "x")]
    con.execute(
        f"INSERT INTO named VALUES {', '.join(f'({literal(u)}, {a}, {literal(b)})' for u, a, b in rows)}"
    )
    assert kept(con, SINGLES, 9, 1, column=name, relation="named") == drawn(con, rows, 9, 1)


@pytest.mark.parametrize("name", ["unit", "copy", "lot", "place", "p1", "ranked"])
def test_names_of_attributes_that_our_statement_uses_too(con, name):
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE named AS SELECT 'u' || (i // 2) AS id, i % 5 AS {ident(name)} FROM range(10) t(i)"
    )
    domain = Domain((Attribute(name, "BIGINT", "numeric", edges=(0, 1, 2, 3, 4, 5)),))
    query = MarginalQuery((name,))
    counter = SqlCounter(DuckDBEngine(con), Fragment("named"), domain, [query], unit=PrivacyUnit("id", 2))
    assert next(counter.count([query])).tolist() == [2, 2, 2, 2, 2]


def test_csv_units_are_text_as_it_stands(con, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "id,a,b\n" + "".join(f"{u},{a},x\n" for u in ("1", "01", " 1", '"1"', "") for a in (0, 1))
    )
    relation = Fragment(
        f"read_csv({literal(str(path))}, auto_detect = FALSE, header = TRUE, nullstr = '', "
        "delim = ',', quote = '\"', escape = '\"', "
        "columns = {'id': 'VARCHAR', 'a': 'VARCHAR', 'b': 'VARCHAR'})"
    )
    counter = SqlCounter(
        DuckDBEngine(con), relation, DOMAIN, [ALL], decimal=".", unit=PrivacyUnit("id", 2), key=3
    )
    counts = next(counter.count([ALL]))
    # '1' and '"1"' are one text with four rows, two of them kept; '01' and ' 1' are others; '' is no unit.
    assert counts.sum() == 6
    assert counts[2].sum() == 0


def test_each_counter_has_a_key_of_its_own_and_keeps_it(con):
    rows = [(f"u{i}", code, label) for i in range(400) for code, label in product(range(3), "xy")]
    relation = put(con, rows)
    engine, unit = DuckDBEngine(con), PrivacyUnit("id", 2)
    counters = [SqlCounter(engine, relation, DOMAIN, [ALL], unit=unit) for _ in range(3)]
    answers = [[next(counter.count([ALL])).tobytes() for _ in range(2)] for counter in counters]
    assert all(first == second for first, second in answers)
    assert len({first for first, _ in answers}) == 3
    again = [
        next(SqlCounter(engine, relation, DOMAIN, [ALL], unit=unit, key=7).count([ALL])) for _ in range(2)
    ]
    np.testing.assert_array_equal(*again)


def test_the_encoded_table_holds_codes_and_nothing_of_the_unit(con):
    put(con, [("ann", 1, "x")])
    kept(con, SINGLES, 1, 1)
    described = con.execute("DESCRIBE temp.kept").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [("p0", "UTINYINT"), ("p1", "UTINYINT")]
