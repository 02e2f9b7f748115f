"""Attributes of leaves: codes of rows against numpy, values drawn inside leaves, and codes of those again."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.shapes import shape_of_domain

from dpsyn_sql.attributes.attribute import Attribute, Domain, Recoding
from dpsyn_sql.attributes.leaf_values import LeafFact
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.roles import Constant, Derived
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.attributes.taxonomy import from_parents, from_prefixes
from dpsyn_sql.attributes.text import END, Texts
from dpsyn_sql.attributes.trees import HierarchyColumn, Leaves, absent
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count import passes
from dpsyn_sql.private.count.planner import plan_counting
from dpsyn_sql.private.rows.codes import encode_query
from dpsyn_sql.private.rows.kept import Bound, rows_of_units
from dpsyn_sql.report.certificate import attribute_facts
from dpsyn_sql.report.stored_facts import attribute_of_facts
from dpsyn_sql.rows.write.staging import possible_statements
from dpsyn_sql.sqltext.fragments import Fragment, ident

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NUMBER = Attribute("row", "BIGINT", "numeric", edges=tuple(range(2_001)))


def column(name, sql_type):
    return HierarchyColumn(name, sql_type)


def points(types, lows, highs, depth, name="p", nullable=False):
    columns = tuple(column(f"{name}{place}", kind) for place, kind in enumerate(types))
    return Points(name, columns, lows, highs, depth, nullable)


SQUARE = points(("DOUBLE", "DOUBLE"), (40.4, -74.3), (41.0, -73.6), 6)
JOURNEY = points(("DOUBLE", "FLOAT", "INTEGER", "DECIMAL(9,2)"), (0.0, -1.0, -5, 0), (1.0, 1.0, 90, 9999), 5)
PARENTS = {"1": "low", "2": "low", "3": "low", "low": "all", "40": "high", "high": "all", "50": "high"}
HIERARCHIES = {
    "square": SQUARE,
    "journey": JOURNEY,
    "single": points(("FLOAT",), (0.1,), (7.7,), 8),
    "fares": points(("DECIMAL(8,2)",), (0,), (20_000,), 9),
    "days": points(("DATE",), (-400,), (900,), 11),
    "seconds": points(("TIMESTAMP_S", "TIME"), (0, 0), (10**9, 86_399_999_999), 7),
    "moments": points(("TIMESTAMP WITH TIME ZONE",), (0,), (10**15,), 20),
    "whole": points(("BIGINT",), (-(2**61),), (2**61,), 31),
    "few": points(("INTEGER", "UTINYINT"), (0, 3), (4, 5), 3),
    "names": Texts(column("p", "VARCHAR"), "'abcé", (1, 2, 3), 3),
    "jumps": Texts(column("p", "VARCHAR"), " ab", (1, 3), 6),
    "ids": from_parents(column("p", "INTEGER"), PARENTS),
    "codes": from_prefixes(column("p", "VARCHAR"), ["250.1", "250.2", "V1", "9", "it's"], [1, 3]),
}


def grown(hierarchy, rng, splits):
    """A partition by random splits: levels and nodes, in the order of keys."""
    leaves = [(0, hierarchy.root().tolist()[0])]
    for _ in range(splits):
        place = int(rng.integers(len(leaves)))
        level, node = leaves[place]
        below, _ = hierarchy.children(np.array([node], dtype=hierarchy.root().dtype), level)
        if len(below):
            leaves[place : place + 1] = [(level + 1, one) for one in below.tolist()]
    return leaves


def attribute_of(hierarchy, rng, splits=12, most=5, nullable=False):
    leaves = grown(hierarchy, rng, splits)
    cuts = 1 + np.sort(rng.choice(len(leaves) - 1, size=min(most, len(leaves)) - 1, replace=False))
    codes = np.searchsorted(cuts, np.arange(len(leaves)), side="right")
    rows = np.where(rng.random(len(leaves)) < 0.3, 0.0, rng.random(len(leaves)) * 100)
    levels, nodes = zip(*leaves, strict=True)
    found = Leaves((hierarchy,), (levels,), (nodes,), tuple(rows.tolist()), tuple(codes.tolist()))
    labels = tuple(f"code {code}" for code in range(int(codes.max()) + 1))
    return Attribute(
        hierarchy.name,
        "VARCHAR",
        "categorical",
        labels,
        other=True,
        nullable=nullable,
        origin="discovered",
        leaves=found,
    )


def encoded(con, attribute, source, csv=False):
    """Codes in the order of the column row, by the encoded table and, without a join, by a scan alike."""
    domain = Domain((attribute, NUMBER))
    con.execute("DROP TABLE IF EXISTS temp.coded")
    con.execute(
        f"CREATE TEMP TABLE coded AS {encode_query(Fragment(source), domain, [(0,), (1,)], '.' if csv else '')}"
    )
    found = con.execute("SELECT p1, p0 FROM coded ORDER BY p1").fetchall()
    [(rows,)] = con.execute(f"SELECT count(*) FROM {source}").fetchall()
    assert [row for row, _ in found] == list(range(rows))
    codes = [code for _, code in found]
    if not attribute.code("c").joins:
        [(_, scan)] = passes.scans(Fragment(source), domain, [0], decimal="." if csv else "")
        counts = {code: n for _, code, n in con.execute(scan.query).fetchall()}
        assert counts == {code: codes.count(code) for code in set(codes)}
    return codes


def expected(attribute, key, missing):
    """The code of a key by the definition: of the last leaf that does not begin after it."""
    if missing:
        return attribute.fallback_code if attribute.null_code is None else attribute.null_code
    if key is None:
        return attribute.other_code
    (hierarchy,) = attribute.leaves.hierarchies
    starts = [
        hierarchy.lowest(np.array([node], dtype=hierarchy.root().dtype), level)[0]
        for level, node in zip(attribute.leaves.levels[0], attribute.leaves.nodes[0], strict=True)
    ]
    return attribute.leaves.codes[max(place for place, start in enumerate(starts) if start <= key)]


def staged(con, attribute, codes):
    con.execute('CREATE OR REPLACE TEMP TABLE staged ("row" BIGINT, a0 UINTEGER)')
    con.execute("INSERT INTO staged SELECT unnest(range(?)), unnest(?::UINTEGER[])", [len(codes), codes])


def decoded(con, attribute, codes, seed=7):
    """A table ``drawn`` of the values, with their rows."""
    staged(con, attribute, codes)
    shape = shape_of_domain(Domain((attribute,)))
    query = output_statement(shape, Fragment("staged"), len(codes), units_of(None, len(codes)), seed)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE drawn AS SELECT *, row_number() OVER () - 1 AS row FROM ({query})"
    )
    types = con.execute("SELECT column_name, column_type FROM (DESCRIBE drawn)").fetchall()
    wanted = [(one.name, one.type.text) for one in attribute.columns]
    assert types[:-1] == wanted
    names = ", ".join(f"CAST({ident(one.name)} AS VARCHAR)" for one in attribute.columns)
    return con.execute(f"SELECT {names} FROM drawn ORDER BY row").fetchall()


def unfinished(attribute, code):
    """Whether a code has leaves of text that goes on, which is written with an asterisk."""
    (hierarchy,) = attribute.leaves.hierarchies
    if not hierarchy.text:
        return False
    leaves = zip(attribute.leaves.levels[0], attribute.leaves.nodes[0], attribute.leaves.codes, strict=True)
    return any(
        own == code and hierarchy.labels([node], level)[0].endswith("*") for level, node, own in leaves
    )


@pytest.mark.parametrize("name", HIERARCHIES)
@QUICK
@given(seed=st.integers(0, 2**31), splits=st.integers(0, 40), nullable=st.booleans())
def test_a_drawn_value_has_the_code_it_is_drawn_for(con, name, seed, splits, nullable):
    rng = np.random.default_rng(seed)
    hierarchy = HIERARCHIES[name]
    attribute = attribute_of(
        replace(hierarchy, nullable=nullable), rng, splits, int(rng.integers(1, 9)), nullable
    )
    codes = [code for code in range(attribute.size) for _ in range(8)]
    values = decoded(con, attribute, codes)
    again = encoded(con, attribute, "drawn")
    for code, value, found in zip(codes, values, again, strict=True):
        if code == attribute.null_code:
            assert value == (None,) * len(attribute.columns)
        elif code == attribute.other_code and hierarchy.text:
            assert (value, found) == (("__other__",), code)
        elif code == attribute.other_code and nullable:
            assert (value, found) == ((None,) * len(value), attribute.null_code)
        elif code == attribute.other_code:
            assert found < attribute.regular
        elif unfinished(attribute, code):
            assert found in (code, attribute.other_code)
        else:
            assert found == code, (value, attribute.leaves)


def keyed(con, hierarchy, source):
    """The keys of rows and whether they have no value, one row after the other."""
    values = [ident(one.name) for one in hierarchy.columns]
    sql = f"SELECT {hierarchy.key(values)}, {absent(hierarchy, values)} FROM {source} ORDER BY row"
    return con.execute(sql).fetchall()


def put(con, types, rows):
    """A table ``src`` of rows given as text."""
    names = ", ".join(f"p{place} {kind}" for place, kind in enumerate(types))
    con.execute(f"CREATE OR REPLACE TEMP TABLE src (row BIGINT, {names})")
    marks = ", ".join(["unnest(?)"] * (len(types) + 1))
    columns = [list(range(len(rows))), *(list(own) for own in zip(*rows, strict=True))]
    con.execute(f"INSERT INTO src SELECT {marks}", columns)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("most", [1, 7, 400])
def test_codes_of_points_are_those_of_the_last_leaf_that_begins_before(con, nullable, most):
    """Few codes by comparisons, many by a join; NULL, NaN and values outside have codes of their own."""
    rng = np.random.default_rng(most)
    attribute = attribute_of(replace(SQUARE, nullable=nullable), rng, 600, most, nullable)
    assert attribute.regular == most
    rows = [(40.4 + 0.6 * a, -74.3 + 0.7 * b) for a, b in rng.random((500, 2)).tolist()]
    rows += [(40.4, -74.3), (41.0, -73.6), (None, -74.0), (40.5, None), (None, None), (math.nan, -74.0)]
    rows += [(40.5, math.nan), (math.inf, -74.0), (40.5, -math.inf), (40.39999, -74.0), (40.5, -73.5999)]
    rows += [(None, 99.0), (99.0, None)]
    put(con, ("DOUBLE", "DOUBLE"), rows)
    found = encoded(con, attribute, "src")
    assert found == [expected(attribute, key, missing) for key, missing in keyed(con, SQUARE, "src")]
    assert found[500] == 0 and found[501] == most - 1
    null = attribute.null_code if nullable else attribute.other_code
    assert found[502:507] == [null] * 5 and found[507:511] == [attribute.other_code] * 4
    assert found[511:] == [null] * 2


@pytest.mark.parametrize("most", [6, 300])
@pytest.mark.parametrize("collation", ["", "NOCASE", "NOACCENT"])
def test_codes_of_text_do_not_depend_on_a_collation(con, collation, most):
    rng = np.random.default_rng(1)
    hierarchy = Texts(column("p", "VARCHAR"), " AEabeé", (1, 2, 3), 4)
    attribute = attribute_of(hierarchy, rng, 80, most)
    texts = ["".join(rng.choice(list(" AEaebé"), size=n)) for n in rng.integers(0, 7, 400)]
    texts += ["", None, "e\u0301", "é", "É", "*", "a*", "a1", "aaaaaaaa1", END, "A", "a", "__other__"]
    con.execute("CREATE OR REPLACE TEMP TABLE src (row BIGINT, p VARCHAR)")
    con.executemany("INSERT INTO src VALUES (?, ?)", list(enumerate(texts)))

    def code(text):
        if text is None or not set(text[:3]) <= set(hierarchy.alphabet):
            return attribute.other_code
        return expected(attribute, text[:3] + (END if len(text) < 3 else ""), False)

    wanted = [code(text) for text in texts]
    con.execute(f"SET default_collation = '{collation}'")
    try:
        assert encoded(con, attribute, "src") == wanted
    finally:
        con.execute("RESET default_collation")


def test_text_of_a_csv_file_is_read_as_the_columns_types(con):
    rng = np.random.default_rng(2)
    hierarchy = HIERARCHIES["few"]
    attribute = attribute_of(hierarchy, rng, 4)
    con.execute("CREATE OR REPLACE TEMP TABLE src (row VARCHAR, p0 VARCHAR, p1 VARCHAR)")
    texts = [("3", " 4 "), ("0", "3"), ("x", "3"), ("", "3"), (None, "4"), ("4", "5.6"), ("9", "3")]
    con.executemany("INSERT INTO src VALUES (?, ?, ?)", [(str(i), *two) for i, two in enumerate(texts)])
    typed = "(SELECT row, TRY_CAST(trim(p0) AS INTEGER) AS p0, TRY_CAST(trim(p1) AS UTINYINT) AS p1 FROM src)"
    wanted = [expected(attribute, key, missing) for key, missing in keyed(con, hierarchy, typed)]
    assert encoded(con, attribute, "src", csv=True) == wanted
    assert wanted[2] == wanted[6] == attribute.other_code != wanted[0]


def test_the_rows_of_a_unit_are_bounded_with_their_leaves(con):
    """A unit keeps at most its rows; the same ones whatever rows others have."""
    rng = np.random.default_rng(3)
    attribute = attribute_of(SQUARE, rng, 30, 20)
    rows = [(40.4 + 0.6 * a, -74.3 + 0.7 * b) for a, b in rng.random((300, 2)).tolist()]
    put(con, ("DOUBLE", "DOUBLE"), rows)
    domain, counted = Domain((attribute,)), []
    for source in ("src", "(SELECT * FROM src WHERE row % 30 <> 4)"):
        con.execute("DROP TABLE IF EXISTS temp.coded")
        relation = Fragment(f"(SELECT row % 30 AS unit, p0, p1 FROM {source})")
        bound = Bound("unit", 3, 12345)
        con.execute(f"CREATE TEMP TABLE coded AS {rows_of_units(relation, domain, bound)}")
        found = con.execute("SELECT p0, count(*) FROM coded GROUP BY p0").fetchall()
        counted.append(Counter(dict(found)))
    assert counted[0].total() == 90 and counted[1].total() == 87
    assert (counted[0] - counted[1]).total() == 3 and not counted[1] - counted[0]


@pytest.mark.parametrize("few", [0, 64])
def test_rows_of_a_code_are_spread_over_its_leaves_by_their_numbers(con, few, monkeypatch):
    """Leaves of the proportions 1 : 0 : 3 and of none at all, and what is drawn in them, by chi squared."""
    monkeypatch.setattr("dpsyn_sql.attributes.leaves._FEW", few)
    days = HIERARCHIES["days"]
    nodes = days.root()
    for level in range(3):
        nodes, _ = days.children(nodes, level)
    assert len(nodes) == 8
    leaves = Leaves(
        (days,),
        ((3,) * 8,),
        (tuple(nodes.tolist()),),
        (10.0, 0.0, 30.0, 0.0, 0.0, 0.0, 7.0, 7.0),
        (0, 0, 0, 1, 1, 2, 2, 2),
    )
    attribute = Attribute("p", "VARCHAR", "categorical", ("a", "b", "c"), other=True, leaves=leaves)
    each = 6_000
    decoded(con, attribute, [0] * each + [1] * each + [2] * each)
    number = f"CAST(p0 - DATE '{date(1970, 1, 1)}' AS BIGINT) + 400"
    drawn = con.execute(f"SELECT row // {each}, ({number}) * 8 // 1301, {number} FROM drawn").fetchall()
    shares = [[0.25, 0, 0.75, 0, 0, 0, 0, 0], [0, 0, 0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0.5, 0.5]]
    counts = np.zeros((3, 8))
    for code, leaf, _ in drawn:
        counts[code, leaf] += 1
    wanted = each * np.array(shares)
    assert (np.abs(counts - wanted) <= 5 * np.sqrt(wanted)).all()  # none where none is wanted
    by_day = np.bincount([day for code, leaf, day in drawn if leaf == 2], minlength=600)
    inside = by_day[by_day > 0]
    assert len(inside) in (162, 163)  # every day of the leaf
    mean = inside.mean()
    assert ((inside - mean) ** 2 / mean).sum() < len(inside) + 6 * math.sqrt(2 * len(inside))


def test_what_is_drawn_for_the_columns_of_a_point_does_not_depend(con):
    attribute = attribute_of(SQUARE, np.random.default_rng(0), 0)
    decoded(con, attribute, [0] * 40_000)
    [(slope, low, high)] = con.execute("SELECT corr(p0, p1), min(p0), max(p1) FROM drawn").fetchall()
    assert abs(slope) < 5 / math.sqrt(40_000)
    assert 40.4 <= low < 40.41 and -73.61 < high <= -73.6
    halves = con.execute("SELECT p0 > 40.7, p1 > -73.95, count(*) FROM drawn GROUP BY ALL").fetchall()
    assert len(halves) == 4 and all(abs(n - 10_000) < 500 for _, _, n in halves)


def test_a_code_of_several_hierarchies_gives_all_their_columns(con):
    """One leaf a code, in any order of keys; what is outside of one column is outside of all."""
    days, ids = replace(HIERARCHIES["days"], name="d"), HIERARCHIES["ids"]
    days = replace(days, columns=(column("d", "DATE"),))
    values, _ = ids.children(ids.root(), 0)
    halves, _ = days.children(days.root(), 0)
    leaves = Leaves(
        (days, ids),
        ((1, 1, 0), (0, 1, 1)),
        ((int(halves[1]), int(halves[0]), 0), (0, int(values[0]), int(values[1]))),
        (5.0, 6.0, 7.0),
        (0, 1, 2),
    )
    attribute = Attribute("key", "VARCHAR", "categorical", ("a", "b", "c"), other=True, leaves=leaves)
    rows = decoded(con, attribute, [code for code in range(4) for _ in range(50)])
    drawn = [(code // 50, date.fromisoformat(day), int(id_)) for code, (day, id_) in enumerate(rows)]
    middle = date(1970, 1, 1) + timedelta(days=-400 + 651)
    assert {day >= middle for code, day, _ in drawn if code == 0} == {True}
    assert {day >= middle for code, day, _ in drawn if code == 1} == {False}
    assert {id_ for code, _, id_ in drawn if code in (0, 3)} == {1, 2, 3, 40, 50}
    below = [{id_ for code, _, id_ in drawn if code == one} for one in (1, 2)]
    assert below[0] | below[1] == {1, 2, 3, 40, 50} and not below[0] & below[1]
    with pytest.raises(InternalError, match="several hierarchies"):
        encode_query(Fragment("src"), Domain((attribute,)), [(0,)])


def test_codes_that_are_not_written_get_a_leaf_of_another_code(con):
    rng = np.random.default_rng(5)
    attribute = attribute_of(HIERARCHIES["fares"], rng, 9, 3, nullable=True)
    instead = Recoding((attribute.other_code, attribute.null_code), (2,))
    decoded(con, replace(attribute, recoding=instead), list(range(attribute.size)) * 20)
    again = encoded(con, attribute, "drawn")
    assert again == [0, 1, 2, 2, 2] * 20


TABLE = Shape(
    (
        Attribute("n", "INTEGER", "numeric", edges=(0, 1, 2)),
        attribute_of(points(("DOUBLE", "INTEGER"), (0.0, 0), (1.0, 99), 4), np.random.default_rng(8), 9, 4),
    ),
    (Derived("far", "BOOLEAN", Fragment('"p1" >= 50')), Constant("c", "VARCHAR", "x")),
    ("p1", "c", "n", "far", "p0"),
    (Fragment('"p1" < 20'), Fragment('"far" AND "p0" > 0.5')),
)


def test_a_points_columns_stand_in_source_order_and_conditions_use_them(con):
    rng = np.random.default_rng(9)
    con.execute('CREATE OR REPLACE TEMP TABLE staged ("row" BIGINT, a0 UTINYINT, a1 UTINYINT)')
    codes = [(row, int(rng.integers(2)), int(rng.integers(5))) for row in range(500)]
    con.executemany("INSERT INTO staged VALUES (?, ?, ?)", codes)
    query = output_statement(TABLE, Fragment("staged"), 500, units_of(None, 500), 3)
    before = con.execute(query).fetchall()
    kept = [row for row in before if not (row[0] < 20 or (row[3] and row[4] > 0.5))]
    assert [name for name, *_ in con.description] == list(TABLE.order) and 0 < len(kept) < 500
    for statement, _ in possible_statements(TABLE, Fragment("staged"), 0, 3):
        con.execute(statement)
    (left,) = con.execute("SELECT count(*) FROM staged").fetchone()
    after = output_statement(TABLE, Fragment("staged"), left, units_of(None, left), 3)
    written = con.execute(after).fetchall()
    assert len(kept) < len(written) <= 500 and set(kept) <= set(written)
    assert not [row for row in written if row[0] < 20 or (row[3] and row[4] > 0.5)]
    assert all(row[3] == (row[0] >= 50) and row[1] == "x" for row in kept)


@pytest.mark.parametrize("name", HIERARCHIES)
def test_leaves_are_read_back_from_a_certificate(name):
    attribute = attribute_of(HIERARCHIES[name], np.random.default_rng(4), 30, 9)
    rows = tuple(round(one, 3) for one in attribute.leaves.rows)
    kept = replace(attribute, leaves=replace(attribute.leaves, rows=rows))
    facts = json.loads(json.dumps(attribute_facts(attribute)))
    assert attribute_of_facts(facts) == kept
    assert attribute_facts(kept) == attribute_facts(attribute)
    for fault in ({"rows": [1.0]}, {"levels": []}, {"nodes": [["x"] * 9]}, {"hierarchies": [{"kind": "x"}]}):
        damaged = {**facts, "leaves": {**facts["leaves"], **fault}}
        with pytest.raises((InternalError, KeyError, TypeError, ValueError)):
            attribute_of_facts(damaged)


def test_many_codes_are_never_found_by_a_scan():
    """A scan is one query without joins: too many codes would make it a long list of comparisons."""
    few, many = (attribute_of(SQUARE, np.random.default_rng(4), 600, most) for most in (200, 300))
    strategies = [
        plan_counting([MarginalQuery(("p",))], Domain((attribute,))).strategy for attribute in (few, many)
    ]
    assert strategies == ["scan", "encoded"]


@pytest.mark.parametrize(
    ("starts", "codes", "rows"),
    [((1, 0), (0, 1), (1.0, 1.0)), ((0, 1), (0, 2), (1.0, 1.0)), ((0, 1), (1, 2), (1.0, 1.0))],
)
def test_leaves_that_are_no_partition_in_order_are_refused(starts, codes, rows):
    leaves = Leaves((HIERARCHIES["days"],), ((1, 1),), (starts,), rows, codes)
    attribute = Attribute("p", "VARCHAR", "categorical", ("a", "b"), other=True, leaves=leaves)
    with pytest.raises(InternalError):
        encode_query(Fragment("src"), Domain((attribute,)), [(0,)])


@pytest.mark.parametrize(
    "texts",
    [
        [""],
        ["", None],
        ["a", "", "it's", "x y", None],
        [None, "b"],
        ["a\x01b", "c"],
        ["\x02", None, "d"],
        ["\x00"],
        [],
    ],
)
def test_texts_of_leaves_are_listed_as_they_are(con, texts):
    """Also those that hold what stands between texts, or in place of NULL."""
    listed = LeafFact("text", "VARCHAR", texts).unnested
    assert [text for (text,) in con.execute(f"SELECT {listed}").fetchall()] == texts


@pytest.mark.parametrize("name", ["days", "names"])
def test_few_leaves_of_a_code_are_found_as_many_are(con, name, monkeypatch):
    """Both joins draw the same leaves, with codes that are other, NULL, or have leaves of tiny shares."""
    where, rng = HIERARCHIES[name], np.random.default_rng(4)
    nodes = where.root()
    for level in range(2):
        nodes, _ = where.children(nodes, level)
    codes = np.sort(rng.integers(0, 5, len(nodes)))
    codes = np.unique(codes, return_inverse=True)[1]
    rows = np.where(rng.random(len(nodes)) < 0.4, 0.0, rng.pareto(0.3, len(nodes)))
    leaves = Leaves(
        (where,), ((2,) * len(nodes),), (tuple(nodes.tolist()),), tuple(rows.tolist()), tuple(codes.tolist())
    )
    labels = tuple("abcde"[: codes[-1] + 1])
    attribute = Attribute("p", "VARCHAR", "categorical", labels, other=True, nullable=True, leaves=leaves)
    wanted = rng.permutation(np.repeat(np.arange(attribute.size), 300)).tolist()
    found = []
    for few in (0, 64):
        monkeypatch.setattr("dpsyn_sql.attributes.leaves._FEW", few)
        found.append(decoded(con, attribute, wanted))
    assert found[0] == found[1] and len(found[0]) == len(wanted)
