"""Trees and leaves through the door: what is asked, charged, stored and read, without noise and with it."""

from contextlib import closing, contextmanager

import duckdb
import numpy as np
import pytest
from support.doors import NoNoise, OneRelease, ReadAtOnce
from support.hierarchies import Halves, Letters

from dpsyn_sql.accounting.account import event_price
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.growth import root_of
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import BudgetError, InputError, InternalError
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import LeafQuery, TreeQuery
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.questions.trees import tree_events
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

KEY = 5
BUDGETS = {
    "gdp": Budget.from_epsilon(3, "1e-6"),
    "pure": Budget.from_epsilon(3, 0),
}


@contextmanager
def door(con, kind="gdp", unit=PrivacyUnit(), noise=None):  # noqa: B008
    counter = SqlDiscoveryCounter(DuckDBEngine(con), Fragment("t"), unit=unit, key=KEY)
    key = ReleaseKey(None, "r", None, {})
    with closing(MemoryLedger()) as ledger, ledger.open_release(key, BUDGETS[kind]) as entry:
        yield ReadAtOnce(None, None, unit.max_rows, entry, noise or NoNoise(), counter)
    counter.close()


def half(kind):
    return BUDGETS[kind].without_thresholds().split([1, 1])[0]


@pytest.fixture
def con():
    with duckdb.connect() as made:
        made.execute("SET default_collation = 'nocase'")
        yield made


@pytest.mark.parametrize("kind", sorted(BUDGETS))
def test_a_dense_corner_is_resolved_and_counted(con, kind):
    con.execute(
        "CREATE TABLE t AS SELECT CASE WHEN i < 50000 THEN 5 ELSE i % 64 END AS x FROM range(50640) r(i)"
    )
    con.execute("INSERT INTO t VALUES (NULL), (64), (64), (-1)")
    where = Halves("x", 6, nullable=True)
    with door(con, kind) as asking:
        tree = asking.ask(TreeQuery((where,), "privtree", 6), half(kind))
        assert 6 in tree.levels[0] and tree.counts is None
        leaves = asking.ask(LeafQuery((where,), tree.levels, tree.nodes), half(kind))
    starts = where_starts(where, tree)
    assert starts == sorted(starts) and starts[0] == 0
    values = [row for (row,) in con.execute("SELECT x FROM t").fetchall()]
    wanted = [
        sum(v is not None and 0 <= v < 64 and v >> (6 - level) == node for v in values)
        for level, node in zip(tree.levels[0], tree.nodes[0], strict=True)
    ]
    assert leaves.values.tolist() == [*wanted, 3, 1]


def where_starts(where, tree):
    return [
        int(node) << (where.depth - level) for level, node in zip(tree.levels[0], tree.nodes[0], strict=True)
    ]


NUMBER, TEXT = Halves("x", 6), Letters("s", 3)


@pytest.fixture
def mixed(con):
    con.execute(
        "CREATE TABLE t AS SELECT i % 70 AS x, ['A', 'aA', 'aaa', 'b'][1 + i % 4] AS s, i % 9 AS who FROM range(900) r(i)"
    )
    return con


@pytest.mark.parametrize("kind", sorted(BUDGETS))
@pytest.mark.parametrize("splitter", ["privtree", "basic", "improved", "direct"])
def test_what_is_stored_is_read_as_the_same_tree_without_the_source(mixed, kind, splitter):
    release, noise = OneRelease(BUDGETS[kind]), ExactNoise()
    question = TreeQuery((NUMBER, TEXT), splitter, 4)
    counter = SqlDiscoveryCounter(DuckDBEngine(mixed), Fragment("t"))
    entry = release.open()
    tree = ReadAtOnce(None, None, 1, entry, noise, counter).ask(question, half(kind))
    entry.close_questions()
    again = ReadAtOnce(None, None, 1, release.open(), None, Unread()).ask(question, half(kind))
    assert [part.tolist() for part in (*tree.levels, *tree.nodes)] == [
        part.tolist() for part in (*again.levels, *again.nodes)
    ]
    assert (tree.counts is None) == (again.counts is None) == (splitter != "direct")
    assert tree.counts is None or tree.counts.tolist() == again.counts.tolist()


class Unread:
    """A source that is out of reach."""


def test_direct_counts_add_up_to_the_noisy_total(mixed):
    with door(mixed, noise=NoNoise()) as asking:
        tree = asking.ask(TreeQuery((NUMBER,), "direct", 6), half("gdp"))
    assert tree.counts.sum() == 828 and tree.counts.min() >= 0 and tree.sigma > 0
    values = [x for (x,) in mixed.execute("SELECT x FROM t").fetchall()]
    for level, node, count in zip(tree.levels[0], tree.nodes[0], tree.counts, strict=True):
        assert count == sum(0 <= x < 64 and x >> (6 - level) == node for x in values)


@pytest.mark.parametrize("kind", sorted(BUDGETS))
def test_a_tree_of_several_parts_charges_its_tests_and_its_choices(mixed, kind):
    question, unit = TreeQuery((NUMBER, TEXT), "privtree", 5), PrivacyUnit("who", 3)
    with door(mixed, kind, unit) as asking:
        asking.ask(question, half(kind))
        charged = asking._entry.events
    assert charged == tree_events(question, 3, half(kind))
    tests, choices = charged
    assert (tests.points_per_unit, tests.branching) == (3, 3)
    assert (choices.sensitivity, choices.number) == (3, 5)
    spent = [event_price(event, kind).amount for event in charged]
    assert 0.99 * half(kind).amount < sum(spent) <= half(kind).amount


def test_a_tree_of_several_parts_is_split_where_rows_are_together(con):
    """The text says nothing, and each number is a leaf of its own: the text is split first."""
    con.execute("CREATE TABLE t AS SELECT i % 64 AS x, 'aaa' AS s FROM range(64000) r(i)")
    with door(con) as asking:
        tree = asking.ask(TreeQuery((NUMBER, TEXT), "privtree", 3), half("gdp"))
    full = [text.startswith("aaa") for text in tree.nodes[1]]
    assert sum(full) == 1 and tree.levels[1].max() == 3 and tree.levels[0].max() == 0


def test_levels_of_too_many_nodes_are_not_asked(mixed):
    asked = []
    with door(mixed) as asking:
        counting = asking._private_side.unknown.nodes
        asking._private_side.unknown.nodes = lambda trees, nodes: (
            asked.append(len(nodes)) or counting(trees, nodes)
        )
        tree = asking.ask(TreeQuery((NUMBER,), "privtree", 6, most=5), half("gdp"))
    assert asked == [1, 2, 4] and tree.levels[0].tolist() == [2] * 4


def array(*numbers):
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(
    ("trees", "levels", "nodes"),
    [
        ((NUMBER,), (array(1, 1),), (array(0, 0),)),
        ((NUMBER,), (array(1, 3),), (array(0, 1),)),
        ((NUMBER,), (array(0, 1),), (array(0, 1),)),
        ((NUMBER,), (array(1),), (array(0, 1),)),
        ((NUMBER,), (), ()),
        ((), (), ()),
        ((NUMBER, TEXT), (array(1, 0), array(0, 1)), (array(1, 0), np.array(["", "a"], dtype=object))),
    ],
    ids=["twice", "within", "root", "lengths", "none", "nothing", "across"],
)
def test_leaves_that_may_share_rows_are_refused_before_the_charge(mixed, trees, levels, nodes):
    with door(mixed) as asking:
        with pytest.raises(InternalError, match="leaves"):
            asking.ask(LeafQuery(trees, levels, nodes), half("gdp"))
        assert asking._entry.events == ()


@pytest.mark.parametrize(
    ("question", "fault", "said"),
    [
        (TreeQuery((NUMBER,), "privtree", 7), InternalError, "no more than its hierarchies"),
        (TreeQuery((NUMBER,), "privtree", 0), InternalError, "at least a level"),
        (TreeQuery((NUMBER,), "privtree", 3, most=0), InternalError, "at least a level"),
        (TreeQuery((NUMBER,), "improved", 3, 1), InputError, r"e\^\(threshold / scale\)"),
        (TreeQuery((NUMBER,), "basic", 3, -1), InputError, "threshold=-1"),
    ],
)
def test_what_cannot_be_grown_is_refused_before_the_charge(mixed, question, fault, said):
    with door(mixed) as asking:
        with pytest.raises(fault, match=said):
            asking.ask(question, half("gdp"))
        with pytest.raises(BudgetError):
            asking.ask(TreeQuery((NUMBER,), "privtree", 3), Budget("gdp", 0))
        assert asking._entry.events == ()


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("splitter", ["privtree", "basic", "improved", "direct"])
def test_a_table_of_no_row_or_one(con, rows, splitter):
    con.execute(f"CREATE TABLE t AS SELECT 5 AS x FROM range({rows})")
    with door(con, noise=ExactNoise()) as asking:
        tree = asking.ask(TreeQuery((NUMBER,), splitter, 6), half("gdp"))
        leaves = asking.ask(LeafQuery((NUMBER,), tree.levels, tree.nodes), half("gdp"))
    assert len(leaves.values) == len(tree.levels[0]) + 2


def test_text_of_a_csv_file_is_read_as_the_type_of_its_column(con):
    con.execute("CREATE TABLE t AS SELECT unnest(['3', ' 40 ', 'x', '', NULL, '64', '1e1']) AS x")
    counter = SqlDiscoveryCounter(DuckDBEngine(con), Fragment("t"), decimal=".")
    nodes = root_of((NUMBER,))
    assert counter.nodes((NUMBER,), nodes).tolist() == [3] and counter.outside((NUMBER,)).tolist() == [4, 0]
    nullable = Halves("x", 6, nullable=True)
    assert counter.outside((nullable,)).tolist() == [1, 3]
    counter.close()
    assert not con.execute("FROM duckdb_tables() WHERE temporary").fetchall()
