"""Rows per node of hierarchies: text of the statements, and counts against a brute force.

The brute force asks the database for hash values only; everything else is Python.
"""

from collections import Counter as Tally
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.hierarchies import Halves, Letters

from dpsyn_sql.attributes.growth import Growth
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.taxonomy import from_parents
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.attributes.types import parse_type, to_tick
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
KEY, K = 11, 3
UNITS = {"row": PrivacyUnit(), "unit": PrivacyUnit("id", K)}
NUMBER, NUMBER_OR_NULL = Halves("n", 3), Halves("n", 3, nullable=True)
LETTERS, LETTERS_OR_NULL = Letters("s", 3), Letters("s", 3, nullable=True)
TREES = {
    "numbers": (NUMBER,),
    "letters": (LETTERS,),
    "letters or null": (LETTERS_OR_NULL,),
    "both": (NUMBER_OR_NULL, LETTERS),
}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "Ann", "", None]),
        st.one_of(st.none(), st.integers(-1, 8)),
        st.sampled_from(["", "a", "A", "aA", "Aa", "aaa", "aaaa", "b", "aab", "\x03", "a\x03", None]),
    ),
    max_size=40,
)


SETTINGS = "SET threads = 2; SET default_collation = 'nocase'"


def put(con, rows, number="INTEGER"):
    con.execute(f"CREATE OR REPLACE TEMP TABLE source (id VARCHAR, n {number}, s VARCHAR)")
    if rows:
        con.executemany("INSERT INTO source VALUES (?, ?, ?)", rows)


def counter(con, unit, csv=False):
    return SqlDiscoveryCounter(
        DuckDBEngine(con), Fragment("source"), decimal="." if csv else "", unit=unit, key=KEY
    )


def placed(row, trees):
    """Keys and state of a row."""
    values = [row[1] if tree.columns[0].name == "n" else row[2] for tree in trees]
    if any(value is None and tree.nullable for value, tree in zip(values, trees, strict=True)):
        return None, 2
    keys = tuple(tree.key_of(value) for value, tree in zip(values, trees, strict=True))
    return (None, 1) if None in keys else (keys, 0)


def kept(con, rows, trees, unit):
    """Keys and states of the rows that count: of a unit those of the lowest lots."""
    found = [(who, *placed(row, trees)) for row in rows for who in (row[0],)]
    if unit.column is None:
        return [(keys, state) for _, keys, state in found]
    of_units = defaultdict(list)
    for who, keys, state in found:
        if who is not None:
            of_units[who].append((keys, state))
    whole = []
    for who, own in of_units.items():
        copies, drawn = Tally(), []
        for keys, state in own:
            copies[keys, state] += 1
            drawn.append((lot(con, who, keys, state, copies[keys, state], trees), keys, state))
        whole += [(keys, state) for _, keys, state in sorted(drawn, key=lambda one: one[0])[:K]]
    return whole


def lot(con, who, keys, state, copy, trees):
    keys = keys or [None] * len(trees)
    parts, values = [], []
    for key, tree in zip(keys, trees, strict=True):
        parts.append("?::BLOB" if tree.text else "?::BIGINT")
        values.append(key.encode() if tree.text and key is not None else key)
    sql = f"SELECT hash(xor(hash({', '.join(parts)}, ?::INTEGER, ?::BIGINT), hash(xor(hash(?::BLOB), {KEY}::UBIGINT))))"
    return con.execute(sql, [*values, state, copy, who.encode()]).fetchone()[0]


def nodes_of(trees, rng):
    """The leaves of some tree, and what it is like on its way."""
    growth = Growth(trees, sum(tree.depth for tree in trees), 10_000)
    for _ in range(int(rng.integers(0, 5))):
        refined = growth.split(rng.random(len(growth.nodes)) < 0.7)
        parts = np.array(
            [rng.choice(np.flatnonzero(may)) if may.any() else -1 for may in refined], dtype=np.int64
        )
        if not growth.by(parts):
            break
    return growth.leaves()


def holds(nodes, place, keys, trees):
    return all(
        tree.node_of(key, int(nodes.levels[part][place])) == nodes.ids[part][place]
        for part, (tree, key) in enumerate(zip(trees, keys, strict=True))
    )


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", TREES)
@QUICK
@given(rows=ROWS, seed=st.integers(0, 1000))
def test_rows_are_counted_once_in_their_leaf(con, unit, name, rows, seed):
    trees = TREES[name]
    put(con, rows)
    nodes, whole = nodes_of(trees, np.random.default_rng(seed)), kept(con, rows, trees, UNITS[unit])
    counting = counter(con, UNITS[unit])
    found, others = counting.nodes(trees, nodes), counting.outside(trees)
    counting.close()
    wanted = [
        sum(state == 0 and holds(nodes, place, keys, trees) for keys, state in whole)
        for place in range(len(nodes))
    ]
    assert found.dtype == np.int64 and found.tolist() == wanted
    assert others.tolist() == [sum(own == state for _, own in whole) for state in (1, 2)]
    assert sum(wanted) + others.sum() == len(whole)  # the leaves of a tree hold every key


@pytest.mark.parametrize("unit", UNITS)
@QUICK
@given(rows=ROWS, seed=st.integers(0, 1000))
def test_the_largest_child_of_each_part_is_counted(con, unit, rows, seed):
    trees = TREES["both"]
    put(con, rows)
    nodes, whole = nodes_of(trees, np.random.default_rng(seed)), kept(con, rows, trees, UNITS[unit])
    # A part that cannot be refined is not asked for, nor is a node without one.
    refined = np.array(
        [
            [
                len(tree.children(nodes.ids[part][[place]], int(nodes.levels[part][place]))[0]) > 0
                and nodes.levels[part][place] < tree.depth
                for part, tree in enumerate(trees)
            ]
            for place in range(len(nodes))
        ]
    )
    nodes, refined = nodes.at(refined.all(axis=1)), refined[refined.all(axis=1)]
    if not len(nodes):
        return
    counting = counter(con, UNITS[unit])
    found = counting.largest(trees, nodes, refined)
    counting.close()
    for place in range(len(nodes)):
        inside = [keys for keys, state in whole if state == 0 and holds(nodes, place, keys, trees)]
        for part, tree in enumerate(trees):
            level = int(nodes.levels[part][place]) + 1
            children = Tally(tree.node_of(keys[part], level) for keys in inside)
            assert found[place, part] == max(children.values(), default=0)


@pytest.mark.parametrize("csv", [False, True])
@pytest.mark.parametrize("kind", ["DOUBLE", "DECIMAL(9,2)", "INTEGER", "DATE"])
def test_points_are_counted_in_their_boxes(con, kind, csv):
    """Against the boxes that the hierarchy says its nodes are; the ends of the types come as well."""
    made = {"DATE": "DATE '2020-01-01' + CAST(i * 7 % 900 - 100 AS INTEGER)"}.get(
        kind, f"CAST(i * 37 % 1300 / 10 - 15 + .03 AS {kind})"
    )
    column = f"CAST({made} AS VARCHAR)" if csv else made
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE source AS SELECT {column} AS n, {'CAST(y AS VARCHAR)' if csv else 'y'} AS y "
        "FROM (SELECT i, CASE WHEN i % 50 = 0 THEN NULL ELSE i % 31 - 2 END AS y FROM range(3000) AS r(i))"
    )
    ends = (18262, 18627) if kind == "DATE" else {"DOUBLE": (0.0, 100.0)}.get(kind, (0, 100))
    if kind == "DECIMAL(9,2)":
        ends = (0, 10_000)
    tree = Points(
        "where",
        (HierarchyColumn("n", kind), HierarchyColumn("y", "INTEGER")),
        (ends[0], 0),
        (ends[1], 20),
        4,
        True,
    )
    nodes = nodes_of((tree,), np.random.default_rng(3))
    counting = counter(con, PrivacyUnit(), csv)
    found, others = counting.nodes((tree,), nodes), counting.outside((tree,))
    counting.close()
    ticks = con.execute(f"SELECT CAST(n AS {kind}) AS n, CAST(y AS INTEGER) AS y FROM source").fetchall()
    values = [
        (None if n is None else to_tick(parse_type(kind), n) if kind != "DOUBLE" else n, y) for n, y in ticks
    ]
    assert others[1] == sum(y is None for _, y in values) > 0
    for level in np.unique(nodes.levels[0]).tolist():
        own = np.flatnonzero(nodes.levels[0] == level)
        (lows, highs), (bottoms, tops) = tree.boxes(nodes.ids[0][own], level)
        for place, low, high, bottom, top in zip(own, lows, highs, bottoms, tops, strict=True):
            held = [(n, y) for n, y in values if y is not None and bottom <= y <= top]
            margin = 0 if tree.axes[0].kind.discrete else 1e-6  # no value lies at a cut
            assert found[place] == sum(low - margin <= n <= high + margin for n, _ in held)
    assert found.sum() + others.sum() == 3000 and found.sum() > 500


@QUICK
@given(
    rows=st.lists(
        st.sampled_from(["", "a", "ab", "abc", "abcd", "b", "é", "e\u0301", "A", "aé", None]), max_size=30
    )
)
def test_texts_are_counted_by_their_beginnings(con, rows):
    """As a person reads the labels: text that ends, or begins so."""
    put(con, [(None, None, text) for text in rows])
    tree = Texts(HierarchyColumn("s", "VARCHAR"), "abé", (1, 3), 3)
    nodes = nodes_of((tree,), np.random.default_rng(len(rows)))
    counting = counter(con, PrivacyUnit())
    found, others = counting.nodes((tree,), nodes), counting.outside((tree,))
    counting.close()
    kept = [text for text in rows if text is not None and set(text[:3]) <= set("abé")]
    for place, (level, node) in enumerate(zip(nodes.levels[0].tolist(), nodes.ids[0], strict=True)):
        (label,) = tree.labels(nodes.ids[0][[place]], level)
        assert found[place] == sum(
            text.startswith(label[:-1]) if label.endswith("*") else text[:3] == label for text in kept
        ), node
    assert found.sum() == len(kept) and others.tolist() == [len(rows) - len(kept), 0]


@QUICK
@given(rows=st.lists(st.sampled_from(["x", "x1", "x2", "x11", "y", "z", None]), max_size=30))
def test_ids_are_counted_below_their_parents(con, rows):
    parents = {"x": None, "x1": "x", "x2": "x", "x11": "x1", "x12": "x1", "y": None}
    put(con, [(None, None, text) for text in rows])
    tree = from_parents(
        HierarchyColumn("s", "VARCHAR"), {"all": None} | {k: v or "all" for k, v in parents.items()}
    )
    nodes = nodes_of((tree,), np.random.default_rng(len(rows)))
    counting = counter(con, PrivacyUnit())
    found, others = counting.nodes((tree,), nodes), counting.outside((tree,))
    counting.close()
    values = set(parents) - set(parents.values())
    known = [text for text in rows if text in values]
    assert found.sum() == len(known) and others.tolist() == [len(rows) - len(known), 0]
    for place, level in enumerate(nodes.levels[0].tolist()):
        (label,) = tree.labels(nodes.ids[0][[place]], level)
        if label in values:
            assert found[place] == rows.count(label)
