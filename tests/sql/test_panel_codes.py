"""The joined rows of a panel: against a brute force, in any order, and how far one unit moves them."""

from collections import Counter, defaultdict
from itertools import groupby

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.panel import JOINS, LEAVES, STAYS, families_of_period
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.rows.relations import UNIT, joined_rows, sliced_source
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation
from dpsyn_sql.source.slices import Window
from dpsyn_sql.sqltext.fragments import Fragment

LABELS = ("x", "y")
DOMAIN = Domain(
    (
        Attribute("a", "VARCHAR", "categorical", labels=LABELS, nullable=True),
        Attribute("n", "INTEGER", "numeric", edges=(0, 1, 2, 5)),
    )
)
PERIODS = 3
EDGES = tuple(f"2020-01-{day:02}" for day in range(1, PERIODS + 2))
COLUMNS = (Column("id", "VARCHAR"), Column("day", "DATE"), Column("a", "VARCHAR"), Column("n", "INTEGER"))
RELATION = Relation("t", "table", Fragment("t"), COLUMNS)
UNITS = ("u", "U", "v", "w", None)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(UNITS),
        st.integers(0, PERIODS),
        st.sampled_from([*LABELS, "z", None]),
        st.integers(0, 4),
    ),
    max_size=30,
)
OWN = st.lists(
    st.tuples(st.integers(0, PERIODS - 1), st.sampled_from([*LABELS, None]), st.integers(0, 4)),
    min_size=1,
    max_size=12,
)
KEY = 5


def engine_of(con, rows):
    con.execute("CREATE OR REPLACE TEMP TABLE t (id VARCHAR COLLATE NOCASE, day DATE, a VARCHAR, n INTEGER)")
    for row in rows:
        con.execute("INSERT INTO t SELECT ?, DATE '2019-12-31' + ?::INTEGER, ?, ?", row)
    return DuckDBEngine(con)


def source(period):
    return sliced_source(RELATION, PrivacyUnit("id"), Window("day", "days", EDGES, period - 1), Shape(()))


def joined(con, rows, period, everybody):
    """The joined rows of a period as a list: unit, and codes by attribute name."""
    engine = engine_of(con, rows)
    sql, domain = joined_rows(source(period), source(period - 1), DOMAIN, KEY, everybody=everybody)
    read = ", ".join(f"{one.source} AS c{place}" for place, one in enumerate(domain.attributes))
    found = engine.fetch(
        Fragment(f"SELECT {UNIT} AS who, presence AS told, {read} FROM {sql} ORDER BY who"), step="joining"
    )
    units = [bytes(unit).decode() for unit in found["who"]]
    columns = [found[f"c{place}"].tolist() for place in range(len(domain.attributes))]
    codes = list(zip(units, zip(*columns, strict=True), strict=True))
    return domain, codes, [int(one) for one in found["told"]]


def of_period(rows, period):
    """By unit the codes of its rows in a period."""
    found = defaultdict(list)
    for unit, day, a, n in rows:
        if day == period and unit is not None:
            code = {"x": 0, "y": 1}.get(a, 2)
            found[unit].append((code, min(n, 2)))
    return found


def alone(rows):
    """At most one row of a unit in a period."""
    return [next(group) for _, group in groupby(sorted(rows, key=str), key=lambda row: (row[0], row[1]))]


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, period=st.integers(2, PERIODS))
def test_the_joined_rows_are_those_of_a_brute_force(con, rows, period):
    rows = alone(rows)
    now, past = of_period(rows, period), of_period(rows, period - 1)
    _, found, presence = joined(con, rows, period, everybody=False)
    gone = (2, 3)  # NULL is a code of a already; n gets one
    assert found == sorted((u, (*now[u][0], *(past[u][0] if u in past else gone), 0)) for u in now)
    assert presence == [STAYS if unit in past else JOINS for unit, _ in found]
    _, found, _ = joined(con, rows, period, everybody=True)

    def state(unit):
        return JOINS if unit not in past else STAYS if unit in now else LEAVES

    assert found == sorted((u, (*(past[u][0] if u in past else gone), state(u))) for u in {*now, *past})


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, own=OWN, period=st.integers(2, PERIODS), everybody=st.booleans(), data=st.data())
def test_a_unit_has_one_row_and_changes_no_other(con, rows, own, period, everybody, data):
    _, without, _ = joined(con, rows, period, everybody)
    added = [("eve", day + 1, a, n) for day, a, n in own]
    shuffled = data.draw(st.permutations([*rows, *added]))
    _, with_it, _ = joined(con, shuffled, period, everybody)
    assert [row for row in with_it if row[0] != "eve"] == without
    days = {day + 1 for day, _, _ in own}
    counted = period in days or (everybody and period - 1 in days)
    assert len(with_it) - len(without) == counted
    assert max(Counter(unit for unit, _ in with_it).values(), default=0) <= 1


def test_kept_rows_are_rows_of_their_unit(con):
    chance = np.random.default_rng(1)
    rows = [
        (f"u{i % 40}", int(chance.integers(1, 3)), "xy"[i % 2], int(chance.integers(3))) for i in range(300)
    ]
    now, past = of_period(rows, 2), of_period(rows, 1)
    _, found, _ = joined(con, rows, 2, everybody=False)
    assert len(found) == len(now)
    for unit, (a, n, a_before, n_before, _) in found:
        assert (a, n) in now[unit]
        assert not past[unit] or (a_before, n_before) in past[unit]


def test_tables_of_joined_rows_count_each_unit_once(con):
    chance = np.random.default_rng(2)
    rows = [
        (f"u{i % 50}", int(chance.integers(1, 3)), "xy"[i % 2], int(chance.integers(3))) for i in range(400)
    ]
    engine = engine_of(con, rows)
    sql, domain = joined_rows(source(2), source(1), DOMAIN, KEY, everybody=False)
    pairs = [MarginalQuery(("a", "a before")), MarginalQuery(("n before", "n"))]
    counter = SqlCounter(engine, sql, domain, pairs, unit=PrivacyUnit(UNIT), key=7)
    assert [int(table.sum()) for table in counter.count(pairs)] == [len(of_period(rows, 2))] * 2
    counter.close()
    assert domain.names == families_of_period(DOMAIN).domain.names
