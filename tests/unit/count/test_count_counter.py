"""The counter as a component: what it runs, when, and what it never shows."""

from itertools import combinations

import duckdb
import numpy as np
import pytest
from support.doors import table_of

from dpsyn_sql.attributes import labels
from dpsyn_sql.attributes.attribute import Attribute, Coded, Domain
from dpsyn_sql.common.progress import listening
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InternalError, PlanTooLarge
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.rows import kept
from dpsyn_sql.sqltext.fragments import Fragment

DOMAIN = Domain(
    tuple(
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size)), other=True)
        for name, size in [("a", 2), ("b", 3), ("c", 400)]
    )
)
AB, BA, AC, A, TOTAL = (MarginalQuery(tuple(attrs)) for attrs in ["ab", "ba", "ac", "a", ""])


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE source AS SELECT i % 2 AS a, i % 3 AS b, i % 401 AS c FROM range(876) AS n(i)"
        )
        yield connection


@pytest.fixture
def ran():
    return []


@pytest.fixture
def engine(con, ran):
    return DuckDBEngine(con, trace=ran.append)


def kinds(ran):
    """What statements do, but for views: these only show a table."""
    words = (
        line for sql in ran for line in sql.splitlines() if not line.startswith("--") and " VIEW " not in line
    )
    return [line.split()[0] for line in words if line.split()[0] in ("CREATE", "DROP", "GROUP")]


def test_nothing_runs_before_the_first_count(engine, ran):
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, [AB])
    counter.close()
    assert ran == []


def test_one_group_answers_all_marginals_inside_it(engine, ran):
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, [AB, BA, A, TOTAL])
    ab, ba, a, total, again = [*counter.count([AB, BA, A, TOTAL, AB])]
    assert kinds(ran) == ["CREATE", "GROUP", "DROP"]
    np.testing.assert_array_equal(ab, ba.T)
    np.testing.assert_array_equal(a, [438, 438, 0])
    assert (total.shape, int(total)) == ((), 876)
    assert ab.shape == (3, 4)
    np.testing.assert_array_equal(again, ab)


def test_one_way_counts_leave_no_table(engine, ran, con):
    queries = [MarginalQuery((name,)) for name in DOMAIN.names]
    SqlCounter(engine, Fragment("source"), DOMAIN, queries).count(queries)
    assert len(ran) == 1
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)


def test_close_drops_the_codes_and_a_later_count_makes_them_again(engine, con):
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, [AB], most=0)
    (first,) = counter.count([AB])
    temporary = "SELECT count(*) FROM duckdb_tables() WHERE temporary"
    assert con.execute(temporary).fetchone() == (1,)
    counter.close()
    assert con.execute(temporary).fetchone() == (0,)
    np.testing.assert_array_equal(next(counter.count([AB])), first)


def test_two_counters_share_a_session(engine):
    one = SqlCounter(engine, Fragment("source"), DOMAIN, [AB])
    other = SqlCounter(engine, Fragment("source WHERE a = 0"), DOMAIN, [AB])
    assert next(one.count([AB])).sum() == 876
    assert next(other.count([AB])).sum() == 438
    one.close()
    assert next(other.count([AB])).sum() == 438


def test_only_announced_marginals_are_counted(engine, ran):
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, [AB])
    with pytest.raises(InternalError, match="not planned"):
        counter.count([AB, AC])
    assert ran == []


def test_a_plan_too_large_is_refused_at_once(engine, ran):
    wide = Domain(
        tuple(Attribute(name, "INTEGER", "numeric", edges=tuple(range(5001))) for name in ("a", "b"))
    )
    with pytest.raises(PlanTooLarge):
        SqlCounter(engine, Fragment("source"), wide, [AB])
    assert ran == []


def test_repr_shows_no_count(engine):
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, [AB])
    counter.count([AB])
    assert repr(counter) == "SqlCounter(encoded)"


def test_a_failure_withholds_the_engines_text(con, engine):
    con.execute("CREATE TABLE texts AS SELECT 'secret value' AS a, 1 AS b, 2 AS c")
    for queries in ([AB], [A]):
        counter = SqlCounter(
            engine, Fragment("(SELECT CAST(a AS INTEGER) AS a, b, c FROM texts)"), DOMAIN, queries
        )
        with pytest.raises(EngineFailure) as caught:
            counter.count(queries)
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None
        counter.close()


@pytest.mark.parametrize("queries", [[A], [AB]])
def test_a_missing_code_is_a_broken_promise_not_a_lost_row(engine, queries, monkeypatch):
    monkeypatch.setattr(labels, "code", lambda *_, **__: Coded((Fragment("NULL AS c0"),), Fragment("NULL")))
    monkeypatch.setattr(kept, "encode_query", lambda *_: Fragment("SELECT NULL AS p0, 1 AS p1"))
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, queries)
    with pytest.raises(InternalError, match="missing code"):
        counter.count(queries)


def test_phases_are_announced(engine):
    heard = []

    class Ear:
        def begin(self, name, total):
            heard.append((name, total))

        def advance(self, name, amount):
            heard.append((name, amount))

        def end(self, name):
            heard.append((name, "end"))

    with listening(Ear()):
        SqlCounter(engine, Fragment("source"), DOMAIN, [AB, AC]).count([AB, AC])
    assert heard == [("encode", None), ("encode", "end"), ("count", 1), ("count", 1), ("count", "end")]


# -- counts kept between questions ---------------------------------------------------------------

BC, B = MarginalQuery(("b", "c")), MarginalQuery(("b",))
PLANNED = [A, B, AB, BC, AB, TOTAL]
TEMPORARY = "SELECT count(*) FROM duckdb_tables() WHERE temporary"


def test_all_is_counted_at_the_first_question_and_the_codes_are_dropped(engine, con, ran):
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, PLANNED)
    (first,) = counter.count([A])
    statements = len(ran)
    assert con.execute(TEMPORARY).fetchone() == (0,)
    con.execute("INSERT INTO source VALUES (0, 0, 0)")
    answers = [*counter.count([BC, A, AB, A, TOTAL])]
    assert len(ran) == statements
    np.testing.assert_array_equal(answers[1], first)


@pytest.mark.parametrize("fewer", [0, 1])
def test_counts_are_the_same_kept_or_counted_question_by_question(engine, con, ran, fewer):
    cells = SqlCounter(engine, Fragment("source"), DOMAIN, PLANNED).plan.cells
    kept = SqlCounter(engine, Fragment("source"), DOMAIN, PLANNED, most=cells - fewer)
    plain = SqlCounter(DuckDBEngine(con), Fragment("source"), DOMAIN, PLANNED, most=0)
    for queries in ([A, B], [BC, AB], [AB, AB, TOTAL]):
        for one, other in zip(kept.count(queries), plain.count(queries), strict=True):
            assert one.dtype == np.int64
            np.testing.assert_array_equal(one, other)
    before = len(ran)
    kept.count([A])
    assert (len(ran) > before) == bool(fewer)
    plain.close()
    kept.close()
    assert con.execute(TEMPORARY).fetchone() == (0,)


@pytest.mark.parametrize("most", [0, 10**6])
def test_no_count_can_be_changed_and_all_go_at_the_end(engine, most):
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, PLANNED, most=most)
    (table,) = counter.count([AB])
    with pytest.raises(ValueError, match="read-only"):
        table += 1
    counter.close()
    assert counter._tables == {}


def test_further_marginals_are_counted_when_asked_for_and_kept_from_then_on(engine, con, ran):
    triple = MarginalQuery(("c", "a", "b"))
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, PLANNED, further=True)
    counter.count(PLANNED)
    (first,) = counter.count([triple])
    np.testing.assert_array_equal(first.sum(axis=0), next(counter.count([AB])))
    assert not first.flags.writeable
    statements = len(ran)
    con.execute("INSERT INTO source VALUES (0, 0, 0)")
    for table in [*counter.count([triple, AB, triple])][::2]:
        np.testing.assert_array_equal(table, first)
    assert len(ran) == statements
    counter.close()
    assert con.execute(TEMPORARY).fetchone() == (0,)


def test_a_resumed_release_may_ask_for_further_marginals_first(engine):
    triple = MarginalQuery(("a", "b", "c"))
    counter = SqlCounter(engine, Fragment("source"), DOMAIN, PLANNED, further=True)
    (table,) = counter.count([triple])
    np.testing.assert_array_equal(next(counter.count([AB])), table.sum(axis=2))
    counter.close()


# -- marginals that were not counted ahead --------------------------------------------------------

SIZES = (2, 3, 7, 40, 1, 256)  # 255 + 1 overflows the smallest type
WIDE = Domain(
    tuple(
        Attribute(f"x{i}", "INTEGER", "categorical", labels=tuple(range(size)))
        for i, size in enumerate(SIZES)
    )
)
PAIRS = [MarginalQuery(pair) for pair in combinations(WIDE.names, 2)]
TRIPLES = [MarginalQuery(order) for triple in combinations(WIDE.names, 3) for order in (triple, triple[::-1])]


@pytest.fixture
def wide(con):
    codes = np.random.default_rng(3).integers(0, SIZES, (500, len(SIZES)))
    con.execute(f"CREATE TABLE wide ({', '.join(f'{name} INTEGER' for name in WIDE.names)})")
    con.executemany(f"INSERT INTO wide VALUES ({', '.join('?' * len(SIZES))})", codes.tolist())
    return codes


@pytest.mark.parametrize("planned", [PAIRS, PAIRS[:1] + [MarginalQuery((name,)) for name in WIDE.names]])
def test_further_marginals_are_those_of_brute_force(engine, wide, ran, planned):
    counter = SqlCounter(engine, Fragment("wide"), WIDE, planned, further=True)
    counter.count(planned)
    found = [*counter.count(TRIPLES[:1]), *[*counter.count(TRIPLES[1:] + planned[:2])][:-2]]
    for query, table in zip(TRIPLES, found, strict=True):
        places = [WIDE.index(name) for name in query.attrs]
        expected = np.zeros([SIZES[place] for place in places], dtype=np.int64)
        np.add.at(expected, tuple(wide[:, place] for place in places), 1)
        np.testing.assert_array_equal(table, expected)
    assert (kinds(ran).count("CREATE"), kinds(ran).count("DROP")) == (3, 2)  # the codes, and twice repacked
    counter.close()


@pytest.mark.parametrize("ahead", [False, True])
def test_further_marginals_over_bins_are_those_of_brute_force(engine, wide, ran, ahead):
    """Their original codes would be 430,080 cells; one attribute has several maps, one a map of one bin."""
    rng = np.random.default_rng(4)
    maps = {
        name: [None if size < 10 else tuple((rng.permutation(size) % bins).tolist()) for bins in (4, 5)]
        for name, size in zip(WIDE.names, SIZES, strict=True)
    }
    maps["x2"][1] = (0,) * 7
    asked = [
        MarginalQuery(attrs, tuple(maps[name][(number + place) % 2] for place, name in enumerate(attrs)))
        for number, attrs in enumerate([WIDE.names, WIDE.names[::-1], ("x5", "x2", "x3"), ("x3", "x5")])
    ]
    planned = asked if ahead else [MarginalQuery((name,)) for name in WIDE.names]
    counter = SqlCounter(engine, Fragment("wide"), WIDE, planned, further=not ahead)
    for query, table in zip(asked, counter.count(asked), strict=True):
        np.testing.assert_array_equal(table, table_of(WIDE, wide.T, query))
    assert (kinds(ran).count("CREATE"), kinds(ran).count("DROP")) == (2, 1)
    counter.close()


def test_what_is_planned_is_counted_over_its_codes_once(engine, wide, ran):
    binned = MarginalQuery(("x0", "x1"), (None, (0, 0, 1)))
    counter = SqlCounter(engine, Fragment("wide"), WIDE, [*PAIRS, binned], further=True)
    counter.count(PAIRS)
    statements = len(ran)
    np.testing.assert_array_equal(next(counter.count([binned])), table_of(WIDE, wide.T, binned))
    assert len(ran) == statements
    other = MarginalQuery(("x0", "x1", "x2"), (None, (0, 0, 1), None))
    np.testing.assert_array_equal(next(counter.count([other])), table_of(WIDE, wide.T, other))
    assert len(ran) > statements
    counter.close()


@pytest.mark.parametrize(
    ("further", "attrs"),
    [
        (False, ("x0", "x1", "x2")),
        (True, ("x0", "x1", "x5")),  # x5 is not encoded
    ],
)
def test_nothing_beyond_what_was_announced_is_counted(engine, wide, ran, further, attrs):
    planned = [MarginalQuery(("x0", "x2")), MarginalQuery(("x1", "x3"))]
    counter = SqlCounter(engine, Fragment("wide"), WIDE, planned, further=further)
    with pytest.raises(InternalError, match="not planned"):
        counter.count([*planned, MarginalQuery(attrs)])
    assert ran == []
