"""Hierarchies: keys and nodes in numpy and in DuckDB against brute force; children partition their parents."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn_sql.attributes.points import MAX_DEPTH, Points, depth_limit
from dpsyn_sql.attributes.taxonomy import Taxonomy, from_parents, from_prefixes
from dpsyn_sql.attributes.text import END, Texts
from dpsyn_sql.attributes.trees import Hierarchy, HierarchyColumn, absent
from dpsyn_sql.attributes.types import from_tick, supported_type, to_tick
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment

SLOW_START = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def points(*columns: tuple[str, Any, Any], depth: int | None = None) -> Points:
    """A box named b over columns c0, c1, ... of these types and ends (ticks or doubles)."""
    box = [(supported_type(kind, "c"), low, high) for kind, low, high in columns]
    return Points(
        "b",
        tuple(HierarchyColumn(f"c{place}", kind) for place, (kind, _, _) in enumerate(columns)),
        tuple(low for _, low, _ in columns),
        tuple(high for _, _, high in columns),
        depth_limit(box) if depth is None else depth,
    )


def text(alphabet: str, lengths: Sequence[int], longest: int | None = None) -> Texts:
    column = HierarchyColumn("c0", "VARCHAR")
    return Texts(column, "".join(sorted(alphabet)), tuple(lengths), longest or lengths[-1])


def keys(con: duckdb.DuckDBPyConnection, tree: Hierarchy, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """For each row: the ids of its nodes from the root on, then its key and whether its value is absent."""
    con.execute("DROP TABLE IF EXISTS t")
    columns = ", ".join(f"c{place} {column.sql_type}" for place, column in enumerate(tree.columns))
    con.execute(f"CREATE TABLE t (n BIGINT, {columns})")
    marks = ", ".join("?" for _ in range(len(tree.columns) + 1))
    con.executemany(f"INSERT INTO t VALUES ({marks})", [(n, *row) for n, row in enumerate(rows)])
    values = [Fragment(f"c{place}") for place in range(len(tree.columns))]
    levels = [tree.at(Fragment("k"), level) for level in range(tree.depth + 1)]
    return [
        list(row)
        for row in con.execute(
            f"SELECT {', '.join(levels)}, k, absent FROM (SELECT n, {tree.key(values)} AS k, "
            f"{absent(tree, values)} AS absent FROM t) ORDER BY n"
        ).fetchall()
    ]


def grown(tree: Hierarchy, levels: int) -> list[NDArray[Any]]:
    """All nodes of the first levels."""
    nodes = [tree.root()]
    for level in range(levels):
        nodes.append(tree.children(nodes[-1], level)[0])
    return nodes


def check_is_a_tree(tree: Hierarchy, levels: int) -> None:
    """Children follow their parents, ascend in keys, begin with their parent's lowest key, fit the branching;
    labels are unique among all nodes."""
    nodes = grown(tree, levels)
    for level in range(levels):
        children, parents = tree.children(nodes[level], level)
        assert list(parents) == sorted(parents)
        assert np.bincount(parents, minlength=1).max() <= tree.branching
        lowest = list(tree.lowest(children, level + 1))
        assert all(before < after for before, after in itertools.pairwise(lowest))
        of_parents = list(tree.lowest(nodes[level], level))
        for child, parent in zip(lowest, parents, strict=True):
            assert of_parents[parent] <= child
            assert parent + 1 == len(of_parents) or child < of_parents[parent + 1]
    labels = [label for level, ids in enumerate(nodes) for label in tree.labels(ids, level)]
    assert len(set(labels)) == len(labels)
    assert "__other__" not in labels


def check_row(tree: Hierarchy, found: list[Any]) -> None:
    """A row's nodes are children of one another, until a node has none."""
    *ids, key, _ = found
    assert key == ids[-1]
    kind = object if tree.text else np.int64
    assert ids[0] == tree.root()[0]
    for level in range(tree.depth):
        children, _ = tree.children(np.array([ids[level]], dtype=kind), level)
        if not len(children):
            break
        assert ids[level + 1] in children.tolist()
        lowest = tree.lowest(children, level + 1).tolist()
        place = children.tolist().index(ids[level + 1])
        assert lowest[place] <= key
        assert place + 1 == len(lowest) or key < lowest[place + 1]


# -- points ---------------------------------------------------------------------------------------


def halves(size: int, level: int, cell: int) -> range:
    """The numbers 0..size-1 whose cell floor(i 2^level / size) it is."""
    inside = [i for i in range(size) if i * 2**level // size == cell]
    return range(inside[0], inside[-1] + 1) if inside else range(0)


@pytest.mark.parametrize("size", [2, 3, 5, 8, 13])
def test_a_dyadic_number_is_halved_down_to_single_values(con: duckdb.DuckDBPyConnection, size: int) -> None:
    tree = points(("INTEGER", -2, size - 3))
    check_is_a_tree(tree, tree.depth)
    for level, nodes in enumerate(grown(tree, tree.depth)):
        ((lows, highs),) = tree.boxes(nodes, level)
        for node, low, high in zip(nodes, lows, highs, strict=True):
            own = halves(size, level, int(node))
            assert (low, high) == (own[0] - 2, own[-1] - 2)
    rows = [(value,) for value in range(-4, size)] + [(None,)]
    for (value,), found in zip(rows, keys(con, tree, rows), strict=True):
        if value is None or not -2 <= value <= size - 3:
            assert found[-2] is None
            assert found[-1] == (value is None)
        else:
            assert found[:-2] == [(value + 2) * 2**level // size for level in range(tree.depth + 1)]
            check_row(tree, found)


def test_a_journey_halves_all_its_columns_at_once(con: duckdb.DuckDBPyConnection) -> None:
    tree = points(("INTEGER", 0, 3), ("DOUBLE", 0.0, 1.0), ("DATE", 0, 2), ("DECIMAL(6,2)", 0, 99), depth=7)
    assert tree.branching == 16
    check_is_a_tree(tree, 2)
    values = (
        range(-1, 5),
        (-0.1, 0.0, 0.3, 1.0, 1.1, float("nan"), float("inf")),
        [date(1970, 1, 1) + timedelta(days=day) for day in range(-1, 4)],
        [Decimal("-0.01"), Decimal("0.00"), Decimal("0.49"), Decimal("0.50"), Decimal("0.99"), None],
    )
    rows = list(itertools.product(*values))
    for row, found in zip(rows, keys(con, tree, rows), strict=True):
        cells = []
        for value, size in zip((row[0], row[2], row[3]), (4, 3, 100), strict=True):
            tick = value * 100 if isinstance(value, Decimal) else value
            tick = (tick - date(1970, 1, 1)).days if isinstance(tick, date) else tick
            cells.append(None if tick is None or not 0 <= tick < size else int(tick) * 2**7 // size)
        share = row[1]
        cells.insert(1, min(int(share * 2**7), 127) if 0 <= share <= 1 else None)
        assert found[-1] == (row[3] is None or share != share)
        if None in cells:
            assert found[-2] is None
            continue
        morton = 0
        for bit in range(6, -1, -1):
            for cell in cells:
                morton = morton * 2 + ((cell or 0) >> bit & 1)
        assert found[-2] == morton
        check_row(tree, found)


TYPES = [
    ("TINYINT", -128, 127),
    ("BIGINT", -(2**62) + 1, 2**62 - 1),
    ("UBIGINT", 7, 2**61),
    ("HUGEINT", -5, 12345),
    ("DECIMAL(9,3)", -1500, 2500),
    ("DECIMAL(38,18)", -(10**18), 10**18),
    ("DATE", -3000, 20000),
    ("TIME", 0, 86_399_999_999),
    ("TIMESTAMP", 10**15, 17 * 10**14),
    ("TIMESTAMP_S", -(10**9), 10**9),
    ("TIMESTAMP_MS", -(10**12), 10**12),
    ("TIMESTAMP_NS", -(10**15), 10**15),
    ("TIMESTAMP WITH TIME ZONE", 0, 10**15),
]


@pytest.mark.parametrize(("name", "low", "high"), TYPES)
def test_values_of_every_type_are_in_the_box_of_their_nodes(
    con: duckdb.DuckDBPyConnection, name: str, low: int, high: int
) -> None:
    kind = supported_type(name, "c0")
    tree = points((name, low, high), depth=min(10, depth_limit([(kind, low, high)])))
    step = (high - low) // 37
    ticks = [low - 1, low, low + 1, *range(low, high, step), high - 1, high, high + 1]
    rows = [(_value(kind, tick),) for tick in ticks if kind.low <= tick <= kind.high]
    for (value,), found in zip(rows, keys(con, tree, rows), strict=True):
        tick = to_tick(kind, value)
        if not low <= tick <= high:
            assert found[-2] is None
            continue
        check_row(tree, found)
        for level, node in enumerate(found[:-2]):
            ((least, most),) = tree.boxes(np.array([node]), level)
            if least[0] != most[0]:
                assert least[0] <= tick <= most[0]


def _value(kind: Any, tick: int) -> Any:
    value = from_tick(kind, tick)
    assert isinstance(value, int | Decimal | date | datetime | time)
    return value


@SLOW_START
@given(
    single=st.booleans(),
    low=st.floats(-1e6, 1e6, width=32),
    width=st.floats(2.0**-10, 2.0**20, width=32),
    share=st.floats(0, 1),
)
def test_the_ends_of_a_floating_cell_are_inside_it(
    con: duckdb.DuckDBPyConnection, single: bool, low: float, width: float, share: float
) -> None:
    name = "FLOAT" if single else "DOUBLE"
    high = float(np.float32(low + width))
    limit = depth_limit([(supported_type(name, "c0"), low, high)])
    if limit < 1:
        return
    tree = points((name, low, high), depth=min(limit, 20))
    level = tree.depth
    node = np.array([min(int(share * 2**level), 2**level - 1)], dtype=np.int64)
    ((least, most),) = tree.boxes(node, level)
    ends = [float(least[0]), float(most[0])]
    assert low <= ends[0] < ends[1] <= high
    if single:  # as a value of the type, rounded either way
        ends = [float(np.float32(end)) for end in ends]
    for found in keys(con, tree, [(end,) for end in ends]):
        assert found[-2] == node[0]


@pytest.mark.parametrize("count", range(1, 9))
def test_ids_of_the_deepest_boxes_fit_whole_numbers(con: duckdb.DuckDBPyConnection, count: int) -> None:
    tree = points(*[("DOUBLE", 0.0, 1.0)] * count)
    assert tree.depth == min(MAX_DEPTH, 62 // count)
    (found,) = keys(con, tree, [(1.0,) * count])
    assert found[-2] == 2 ** (count * tree.depth) - 1
    check_row(tree, found)


def test_an_axis_of_one_cell_less_than_another_has_no_empty_nodes() -> None:
    tree = points(("INTEGER", 0, 1), ("INTEGER", 0, 99))
    check_is_a_tree(tree, tree.depth)
    for level, nodes in enumerate(grown(tree, tree.depth)):
        for lows, highs in tree.boxes(nodes, level):
            assert (lows <= highs).all()
    single = tree.children(np.array([0]), 7)[0]
    assert not len(single)


@pytest.mark.parametrize(
    "columns",
    [
        (("DOUBLE", 1.0, 1.0),),
        (("DOUBLE", 1.0, 0.0),),
        (("DOUBLE", float("nan"), 1.0),),
        (("DOUBLE", -1.7e308, 1.7e308),),
        (("FLOAT", 1e6, 1000000.5),),
        (("INTEGER", 3, 3),),
        (("HUGEINT", 0, 2**62),),
        (("VARCHAR", 0, 1),),
        (("DECIMAL(38,19)", 0, 10),),
        (("INTEGER", 0, 9),) * 9,
        (),
    ],
)
def test_a_box_that_cannot_be_halved_is_refused(columns: Any) -> None:
    with pytest.raises(InternalError):
        points(*columns, depth=1)


# -- text -----------------------------------------------------------------------------------------


def beginnings(value: str, lengths: Sequence[int]) -> list[str]:
    return ["", *(value[:n] + (END if len(value) < n else "") for n in lengths)]


@SLOW_START
@given(
    rows=st.lists(st.text(alphabet="ab é\u0301字😀-]\\^'", max_size=6), min_size=1, max_size=8),
    lengths=st.sampled_from([(1, 2, 3, 4), (1, 3), (2, 4), (4,), (3, 4, 5)]),
)
def test_text_is_refined_by_its_beginnings(
    con: duckdb.DuckDBPyConnection, rows: list[str], lengths: tuple[int, ...]
) -> None:
    alphabet = "ab é\u0301字-]\\^'"  # every character of the rows but one
    tree = text(alphabet, lengths, 6)
    for row, found in zip(rows, keys(con, tree, [(row,) for row in rows]), strict=True):
        inside = set(row[: lengths[-1]]) <= set(alphabet)
        assert found[:-2] == (beginnings(row, lengths) if inside else [None] * (len(lengths) + 1))
        assert found[-1] is False
        if inside:
            check_row(tree, found)


def test_children_of_text_are_all_its_beginnings() -> None:
    tree = text("abc", (1, 3), 3)
    check_is_a_tree(tree, 2)
    assert tree.branching == 1 + 3 + 9
    assert tree.labels(*_level(tree, 1)) == ["", "a*", "b*", "c*"]
    below = tree.children(np.array(["b"], dtype=object), 1)[0]
    assert tree.labels(below, 2)[:6] == ["b", "ba", "baa", "bab", "bac", "bb"]
    assert not len(tree.children(np.array([END], dtype=object), 1)[0])
    every = {"".join(letters) for n in range(4) for letters in itertools.product("abc", repeat=n)}
    assert set(tree.labels(np.concatenate([below, _level(tree, 2)[0]]), 2)) == every - {""}
    assert tree.labels(tree.root(), 0) == ["*"]


def _level(tree: Hierarchy, level: int) -> tuple[NDArray[Any], int]:
    return grown(tree, level)[level], level


def test_text_beyond_the_last_level_is_marked_and_text_of_the_longest_length_is_cut(
    con: duckdb.DuckDBPyConnection,
) -> None:
    cut, open_ = text("ab", (1, 2), 2), text("ab", (1, 2), 9)
    rows = [("abba",), ("ab",), ("a",), ("",), ("ab!",), (None,)]
    for tree, label in ((cut, "ab"), (open_, "ab*")):
        found = keys(con, tree, rows)
        assert [row[-2] for row in found] == ["ab", "ab", f"a{END}", END, "ab", None]
        assert [row[-1] for row in found] == [False] * 5 + [True]
        assert tree.labels(np.array(["ab", f"a{END}"], dtype=object), 2) == [label, "a"]


def test_an_asterisk_of_the_alphabet_is_no_mark() -> None:
    tree = text("a*", (1, 2, 3), 3)
    check_is_a_tree(tree, 3)
    nodes = np.array(["*", END], dtype=object)
    assert tree.labels(nodes, 1) == ["*\u2026", ""] and tree.finished(nodes, 1).tolist() == [False, True]
    assert tree.labels(np.array([f"a{END}", "a*"], dtype=object), 2) == ["a", "a*\u2026"]
    assert tree.finished(np.array(["aa*"], dtype=object), 3).all()
    assert not tree.finished(tree.root(), 0).any()


def test_the_word_for_all_other_values_is_no_text(con: duckdb.DuckDBPyConnection) -> None:
    tree = text("_ehort", range(1, 13))
    rows = [("__other__",), ("__other_",), ("__other__h",), ("__other__hhhhhhhhhhh",)]
    other, *beside = keys(con, tree, rows)
    assert other[-2] is None
    assert [row[-2] for row in beside] == [f"__other_{END}", f"__other__h{END}", "__other__hhh"]
    for level, node in ((9, "__other__"), (8, "__other_")):
        labels = tree.labels(tree.children(np.array([node], dtype=object), level)[0], level + 1)
        assert "__other__" not in labels
        assert len(labels) == (6 if level == 9 else 7)
    cut = text("_ehort", range(1, 10))
    assert [row[-2] for row in keys(con, cut, rows)] == [None, f"__other_{END}", None, None]
    children = cut.children(np.array(["__other_"], dtype=object), 8)[0]
    assert "__other__" not in cut.labels(children, 9)


@pytest.mark.parametrize(
    ("alphabet", "lengths", "longest"),
    [
        ("", (1,), 1),
        ("ba", (1,), 1),
        ("aa", (1,), 1),
        ("a*", (1,), 1),
        ("\x00a", (1,), 1),
        ("\x03a", (1,), 1),
        ("a\ud800", (1,), 1),
        ("ab", (), 1),
        ("ab", (0, 1), 1),
        ("ab", (2, 1), 2),
        ("ab", (1, 2), 1),
        ("ab", (1,), 1001),
        ("ab", (25,), 25),
    ],
)
def test_an_alphabet_or_lengths_that_make_no_tree_are_refused(
    alphabet: str, lengths: tuple[int, ...], longest: int
) -> None:
    with pytest.raises(InternalError):
        Texts(HierarchyColumn("c0", "VARCHAR"), alphabet, lengths, longest)


def test_a_collation_merges_no_keys() -> None:
    con = duckdb.connect()
    con.execute("SET default_collation = 'NOCASE'")
    tree = text("aAbB", (1, 2))
    found = keys(con, tree, [("a",), ("A",), ("aB",), ("Ab",)])
    assert [row[-2] for row in found] == [f"a{END}", f"A{END}", "aB", "Ab"]


# -- taxonomies -----------------------------------------------------------------------------------

COLUMN = HierarchyColumn("c0", "VARCHAR")
DISEASES = {
    "250.0": "250",
    "250.1": "250",
    "251": "endocrine",
    "250": "endocrine",
    "endocrine": "all",
    "V": "all",
    "460": "lungs",
    "lungs": "breath",
    "breath": "all",
}


def test_a_taxonomy_numbers_its_values_in_the_order_of_the_tree(con: duckdb.DuckDBPyConnection) -> None:
    tree = from_parents(COLUMN, DISEASES)
    assert tree.ids == ("V", "460", "250.0", "250.1", "251")
    assert (tree.depth, tree.branching) == (3, 3)
    assert [tree.labels(*_level(tree, level)) for level in range(4)] == [
        ["all"],
        ["V", "460", "endocrine"],  # the chain breath, lungs, 460 is one node
        ["250", "251"],
        ["250.0", "250.1"],
    ]
    assert [tree.members(*_level(tree, level)).tolist() for level in range(4)] == [
        [5],
        [1, 1, 3],
        [2, 1],
        [1, 1],
    ]
    check_is_a_tree(tree, 3)
    rows = [("250.1",), ("V",), ("251",), ("250",), ("nothing",), ("",), (None,)]
    found = keys(con, tree, rows)
    assert [row[:-1] for row in found[:3]] == [[0, 2, 2, 3, 3], [0, 0, 0, 0, 0], [0, 2, 4, 4, 4]]
    assert [row[-2] for row in found[3:]] == [None] * 4
    assert [row[-1] for row in found] == [False] * 6 + [True]


@SLOW_START
@given(st.sets(st.text("0129V.'é", min_size=1, max_size=5), min_size=2, max_size=400), st.data())
def test_a_taxonomy_of_beginnings(con: duckdb.DuckDBPyConnection, ids: set[str], data: st.DataObject) -> None:
    lengths = data.draw(st.sampled_from([(1,), (1, 3), (2, 3, 4), ()]))
    tree = from_prefixes(COLUMN, sorted(ids), lengths)
    assert set(tree.ids) == ids
    check_is_a_tree(tree, tree.depth)
    rows = [(id_,) for id_ in [*sorted(ids), "absent"]]
    *found, absent_ = keys(con, tree, rows)
    assert absent_[-2] is None
    for (id_,), row in zip(rows, found, strict=False):
        assert tree.ids[row[-2]] == id_
        check_row(tree, row)
    for level, nodes in enumerate(grown(tree, tree.depth)):
        labelled = zip(nodes, tree.members(nodes, level), tree.labels(nodes, level), strict=True)
        for node, members, label in labelled:
            below = tree.ids[node : node + members]
            if label.endswith("*"):
                assert len(below) > 1
                assert set(below) == {id_ for id_ in ids if id_.startswith(label[:-1])}
            else:
                assert below == (label,)


def test_many_ids_of_whole_numbers_are_joined(con: duckdb.DuckDBPyConnection) -> None:
    column = HierarchyColumn("c0", "INTEGER")
    tree = from_prefixes(column, [str(id_) for id_ in range(100, 700)], [1])
    found = keys(con, tree, [(99,), (100,), (699,), (None,), (-5,)])
    assert [row[-2] for row in found] == [None, 0, 599, None, None]
    assert [row[1] for row in found] == [None, 0, 500, None, None]


@pytest.mark.parametrize(
    ("parents", "fault"),
    [
        ({"a": "b", "b": "c", "c": "a", "d": "e"}, "a cycle: 'a', 'b', 'c'"),
        ({"a": "a", "b": "r", "c": "r"}, "a cycle: 'a'"),
        ({"x": "a", "a": "b", "b": "a", "c": "r", "d": "r"}, "a cycle: 'a', 'b'"),
        ({"a": "r", "b": "s"}, "2 roots: 'r', 's'; give them one parent"),
        ({"a": None, "b": "a", "c": None, "d": "a"}, "2 roots: 'a', 'c'"),
        ({"a": "r"}, "has 1 ids without children"),
        ({}, "has no ids"),
        ({"": "r", "a": "r"}, "the id ''"),
        ({"__other__": "r", "a": "r"}, "the id '__other__'"),
        ({"a\x00": "r", "a": "r"}, "a NUL"),
    ],
)
def test_a_table_of_parents_that_is_no_tree(parents: dict[str, str | None], fault: str) -> None:
    with pytest.raises(ValueError, match=fault.replace("(", "\\(")):
        from_parents(COLUMN, parents)


def test_ids_that_make_no_tree() -> None:
    with pytest.raises(ValueError, match="'7' twice"):
        from_prefixes(COLUMN, ["7", "8", "7"], [1])
    with pytest.raises(ValueError, match=r"'7\*', which stands for a beginning"):
        from_prefixes(COLUMN, ["7*", "70", "71"], [1])
    with pytest.raises(ValueError, match=r"'\*', which stands for a beginning"):
        from_prefixes(COLUMN, ["70", "71", "*"], [1])
    with pytest.raises(InternalError):
        Taxonomy(COLUMN, ("a", "a"), (((0, "r"),), ((0, "a"), (1, "b"))))


# -- all of them ----------------------------------------------------------------------------------


def test_hierarchies_are_named_apart_and_equal_ones_alike() -> None:
    made = [
        points(("INTEGER", 0, 9)),
        points(("INTEGER", 0, 9), depth=2),
        points(("INTEGER", 0, 8)),
        points(("DOUBLE", 0.0, 9.0)),
        points(("DOUBLE", 0.0, 9.0), ("DOUBLE", 0.0, 9.0)),
        text("ab", (1, 2)),
        text("ab", (1, 2), 3),
        text("ac", (1, 2)),
        text("ab", (2,)),
        from_parents(COLUMN, DISEASES),
        from_parents(COLUMN, {**DISEASES, "252": "endocrine"}),
        from_prefixes(COLUMN, ["11", "12"], [1]),
        from_prefixes(HierarchyColumn("c0", "VARCHAR", Fragment("upper(c0)")), ["11", "12"], [1]),
    ]
    assert len({str(tree.named()) for tree in made}) == len({*made}) == len(made)
    assert text("ab", (1, 2)) == made[5]
    assert from_parents(COLUMN, DISEASES).named() == made[9].named()
