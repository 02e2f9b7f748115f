"""What every template is rendered with for its golden texts: one table, by template and case.

A template that prints no variable needs no entry. Values are those of ``render``; a statement instead of
values is one that the package itself makes, where expressions go into it that are worth keeping an eye on.
"""

import re
from dataclasses import replace
from datetime import date
from itertools import count
from unittest.mock import patch

import numpy as np
from support.shapes import decode_statement, shape_of_domain

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.growth import Nodes
from dpsyn_sql.attributes.output import (
    impossible_rows,
    output_statement,
    rows_with_places,
    tied_rows,
    units_of,
    values_of,
)
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.roles import (
    Constant,
    Derived,
    ForeignKey,
    Key,
    Lookup,
    PublicKey,
    RandomKey,
    Ties,
    UnitId,
)
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.taxonomy import from_parents
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import HierarchyColumn, Leaves
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import FamilyClass, NearestLabel, labelled
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.private.count import passes
from dpsyn_sql.private.count.discovery import step_expression
from dpsyn_sql.private.count.passes import sibling_tally
from dpsyn_sql.private.count.trees import keyed_rows, shapes_of
from dpsyn_sql.private.rows import kept
from dpsyn_sql.private.rows.codes import encode_query
from dpsyn_sql.private.rows.kept import Bound, KeptRows, rows_of_units
from dpsyn_sql.private.rows.relations import (
    discovery_relation,
    sliced_source,
    typed_relation,
    units_of_rows,
)
from dpsyn_sql.rows.write.staging import possible_statements
from dpsyn_sql.source.engine import Encoding
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation
from dpsyn_sql.source.slices import Window
from dpsyn_sql.sqltext.fragments import Fragment, comma, ident, last_start, literal, qualified, string_literal

F = Fragment
SRC, CODED, STAGED = F("src"), F("coded"), F("staged")
PLACE = {"catalog": literal("m"), "schema": literal("s"), "name": literal("it's {{ x }}")}
SCHEMA = {"schema": F('"d".dpsyn')}
NUMBER = Attribute("a", "INTEGER", "numeric", edges=(0, 1, 2, 3))
WIDE = Attribute("w", "INTEGER", "numeric", edges=(0, 10, 30))
TEXT = Attribute('b"', "VARCHAR", "categorical", labels=("x", "it's"), other=True)
REAL = Attribute("c", "DOUBLE", "numeric", edges=(0.0, 0.5, 1.0), nullable=True)
CODE = Attribute("d", "SMALLINT", "categorical", labels=(1, 2, 5, 9), other=True)
MONTH = Attribute("m", "BIGINT", "categorical", tuple(range(1, 13)), source=F('month("when")'))
DOMAIN = Domain((NUMBER, TEXT, REAL, CODE, MONTH))
PAIR, OWN = (NUMBER.name, REAL.name), (TEXT.name, TEXT.name)
HALVES = (None, tuple(code % 2 for code in range(REAL.size)))
MANY = Domain(
    (Attribute("a", "VARCHAR", "categorical", tuple(f"it's {i}" for i in range(257)), nullable=True),)
)
BOX = Points(
    "place", (HierarchyColumn('x"', "DOUBLE"), HierarchyColumn("n", "INTEGER")), (0.0, 1), (1.0, 4), 2
)
WORDS = Texts(HierarchyColumn("word", "VARCHAR"), "'a", (1,), 1, nullable=True)
KINDS = from_parents(HierarchyColumn("kind", "VARCHAR"), {"it's": "all", "b": "all"})


def leafy(hierarchy, number):
    """An attribute of a hierarchy whose codes are its nodes of level 1, and then of those alone."""
    nodes, _ = hierarchy.children(hierarchy.root(), 0)
    codes = tuple(min(place, number - 1) for place in range(len(nodes)))
    leaves = Leaves((hierarchy,), ((1,) * len(nodes),), (tuple(nodes.tolist()),), (1.0,) * len(nodes), codes)
    labels = tuple(f"leaf {code}" for code in range(number))
    nullable = hierarchy.nullable
    return Attribute(
        hierarchy.name, "VARCHAR", "categorical", labels, other=True, nullable=nullable, leaves=leaves
    )


LEAVES = Domain((leafy(BOX, 3), NUMBER, leafy(WORDS, 2), leafy(KINDS, 1)))
BINS = Domain(
    (
        Attribute("a", "INTEGER", "numeric", edges=(0, 1, 5)),
        Attribute('b"', "VARCHAR", "categorical", labels=("it's",), other=True),
        Attribute("c", "DATE", "temporal", edges=(date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 3))),
    )
)
PARAMETERS = [
    {"name": ident(name), "key": string_literal(name), "value": literal(value)}
    for name, value in (("source", None), ("into", "it's"))
]
UNITS = Attribute("a", "INTEGER", "numeric", edges=(0, 1, 2))
ROLES = (Key("id", "VARCHAR"), Derived("b", "INTEGER", F('"a" + 1')))
WRITTEN = Shape((UNITS,), (*ROLES, Constant("c", "DATE", "2020-01-01")), ("id", "b", "a", "c"))
NEVER = Shape((UNITS,), ROLES, ("id", "b", "a"), (F('"a" > 0'), F('"b" IS NULL')))
CSV_COLUMNS = tuple(Column(name, "VARCHAR") for name in ("a", 'b"', "d", "left"))
CSV_SHAPE = Shape((NUMBER, TEXT, Undiscovered("d", "DATE", "temporal")))
CSV = {
    "paths": literal("a"),
    "columns": F("'x': 'VARCHAR'"),
    "delimiter": literal(";"),
    "compression": literal("gzip"),
    "quote": literal('"'),
    "escape": literal('"'),
    "null": literal(""),
    "skip": 0,
    "encoding": literal("utf-8"),
}
CSV_AS_STATED = {
    **CSV,
    "quote": literal("'"),
    "escape": literal("\\"),
    "null": F("['', 'NA']"),
    "skip": 2,
    "encoding": literal("latin-1"),
}
DAY = (Column("id", "INTEGER"), Column('d"', "DATE"), Column("place0", "VARCHAR"))


def sliced_sql(unit):
    """A window of a table, for rows or with a bound on the windows of a unit."""
    window = Window('d"', "month", ("2013-01-01", "2013-02-01", "2013-03-01", "2013-04-01"), 1, most=1)
    relation = Relation("t", "table", SRC, DAY)
    return sliced_source(relation, PrivacyUnit(unit), window, Shape(())).relation.sql


class Kept:
    """An engine that keeps the statements that tables are made by."""

    in_parts = False

    def __init__(self):
        self.made = []

    def keep(self, encoding, *, step):
        self.made.append(encoding.query)

    def part_of(self, relation, unit):
        return None


def coded_units(together, persons=(), packs=((0, 1),), *, csv=False, numbered=False):
    """The kept rows of units; with ``together`` those of families."""
    families = families_of(FEW, together, persons) if together else None
    domain = families.domain if families else FEW
    rows = KeptRows.of_table(Kept(), SRC, domain, decimal="." if csv else "", bound=KEPT, families=families)
    return rows.encoding("", domain, packs, numbered=numbered).query


def tree_statements():
    """A table of each kind, with all that an attribute can come from."""

    def relation(name):
        return Relation(name, "table", ident(name), (Column("id", "INTEGER"), Column("its_unit", "INTEGER")))

    tree = Tree(
        (
            Table("p", relation("p"), ("id",)),
            Table("q", relation("q"), ("id", "n"), "p", ("of",), 3),
            Table("r", relation("r"), (), "q", ("of", "at"), 2),
        )
    )
    domains = {"p": Domain((NUMBER,)), "q": Domain((NUMBER, TEXT)), "r": Domain((TEXT,))}
    engine, numbers = Kept(), count()
    label = NearestLabel("group", (1, 0), (('b"', ((1, 0, 3), (0, 1, 2))),))
    with patch.object(kept, "temporary_table", lambda stem: F(f"temp.main.{stem}_{next(numbers)}")):
        codes = KeptRows(engine, tree, domains, {"q": "a"}, 7)
        codes.attach("r", [FamilyClass(label)])
    codes.keep()
    names = codes.families("q").domain.names
    wanted = [names.index(name) for name in ("a", "number of r", "p.a", "place of the row", "a before")]
    wanted.append(names.index("group of r"))
    root, rows, leaves, classes = engine.made
    return {
        "encode/kept": {
            "root": root,
            "rows": rows,
            "leaves": leaves,
            "units": rows_of_units(SRC, DOMAIN, Bound('Who "is"', 3, 2**64 - 1)),
        },
        "encode/table": {"": codes._rows("r", set(range(4)))},
        "encode/classes": {"": Fragment(re.sub(r"\[[0-9, ]{999,}\]", "[1]", classes))},
        "encode/codes": {
            "": codes.encoding("r", codes.families("r").domain, [(0, 1)]).query,
            "order": codes.encoding("q", codes.families("q").domain, [wanted], numbered=True).query,
            "units": coded_units(None),
            "families": coded_units(TOGETHER, {"a"}, [(0, 1), (2, 3)], numbered=True),
            "ordered": coded_units(ORDERED, {'b"'}, [(0,), (3, 4, 5)], csv=True),
        },
        "encode/tree_joined": {
            "": discovery_relation(tree, "r")[0].sql,
            "root": discovery_relation(tree, "p")[0].sql,
        },
        "encode/tree_units": {"": units_of_rows(tree, tree["q"])},
    }


STEP = {
    "name": F("step0"),
    "source": F("started"),
    "parent": F("CAST(0 AS UBIGINT)"),
    "words": [F("w0 | (CAST(d.value AS UBIGINT) << 2) AS w0")],
    "relation": F("stretches"),
    "lists": F("lists"),
    "columns": [F("entries0")],
    "slot_bits": 2,
    "packed_bits": 3,
    "rank_bits": F("hash('a|rank|7')"),
    "jitter_bits": F("hash('a|jitter|7')"),
    "value_bits": F("hash('a|value|7')"),
}
SAMPLER = {
    "started": F("SELECT 1"),
    "steps": [STEP],
    "codes": [F("w0 AS a0"), F("0 AS a1")],
    "last": F("step0"),
    "ordered": 0,
}
APART = {**STEP, "columns": [F("thresholds0"), F("own0"), F("aliases0")], "packed_bits": 0}
QUERY = F("SELECT 1 AS a")
FAMILY_ROWS = {"given": QUERY, "words": [F("w0"), F("w1")], "stride": 65}
BINNED = passes.BinnedMarginals.of([MarginalQuery(("a", 'b"', "c"), (None, (0, 0, 1), None))], DOMAIN)
THING = {"relation": SRC, "value": F('"a"'), "thing": F("encode(c)"), "spelled": F("thing"), "joins": []}
LABELS = (
    NearestLabel("near", (0, 5), (("a", ((1, 2, 9), (4, 0, 0))), ('b"', ((0, 3, 1), (2, 0, 0))))),
    NearestLabel("leaf", (0, 0, 1), (("a", ((0, 1, 1), (1, 0, 0), (1, 1, 0))),)),
)
LABELLED = passes.BinnedMarginals.of(
    [MarginalQuery(("near", "c")), MarginalQuery(("leaf",), ((0, 0, 1),))], labelled(DOMAIN, LABELS)
)
(SCAN,) = passes.scans(SRC, DOMAIN, [0, 1], decimal=".")
(SCAN_LEAVES,) = passes.scans(SRC, LEAVES, [0, 1], decimal="")

BOX = Points(
    "place",
    (HierarchyColumn("lat", "DOUBLE"), HierarchyColumn("lon", "DOUBLE")),
    (40.0, -75.0),
    (41.0, -74.0),
    3,
    nullable=True,
)
WORDS = Texts(HierarchyColumn('b"', "VARCHAR"), "ab", (1, 2), 2)
BOTH = (BOX, WORDS)
ENCODED = Encoding(CODED, F("SELECT 1 AS p0"))
MARGINAL = {"table": qualified("temp", "main", "codes"), "columns": [F("p0"), F("p2")]}
FEW = Domain((NUMBER, TEXT))
KEPT = Bound('Who "is"', 3, 2**64 - 1)
TOGETHER = PrivacyUnit('Who "is"', 3, together=True)
ORDERED = PrivacyUnit('Who "is"', 3, together=True, order="a")


def counted_nodes(refined=None):
    """Two nodes of other levels."""
    levels = tuple(np.array(level, dtype=np.int64) for level in ([1, 2], [0, 1]))
    ids = np.array([3, 9], dtype=np.int64), np.array(["", "a"], dtype=object)
    nodes = Nodes(levels, ids, np.zeros(2, dtype=np.int64))
    shapes, _ = shapes_of(BOTH, nodes, refined)
    return {"keyed": F("keyed_rows"), "nodes": F("some_nodes"), "shapes": shapes}


# By template: the case (part of the file's name; "" for the only one) and what it is rendered with.
DISTRIBUTION = F("temp.main.distribution")
SIDES = [
    {"number": number, "value": F("a + 1"), "relation": F(relation)}
    for number, relation in enumerate(("src", "made", "held"))
]

TIED = Shape(
    (NUMBER,),
    (
        ForeignKey("up", "BIGINT", "above", "id"),
        PublicKey("g", "INTEGER", "goods", "id", "g"),
        RandomKey("o", "BIGINT", "other", "id", "o"),
        RandomKey("s", "BIGINT", "own", "id", "s", earlier=True),
    ),
    not_null=("s",),
)
TIES = Ties(
    keys={"above": F("k_above"), "other": F("k_other"), "own": F("k_own")},
    rows={"above": 3, "other": 7, "own": 5},
    lookups={"g": Lookup(F("goods"), (2, 0, 3))},
)
EXAMPLES = {
    "count/chunk": {"": {"table": CODED, "columns": [F("p0"), F("p1")], "start": 0, "stop": 7}},
    "count/drop": {"": {"table": CODED}},
    "count/extent": {"": {"table": CODED}},
    "count/keep": {"": {"table": CODED, "query": QUERY}},
    "count/keep_filed": {"": {"table": F("dpsyn_filed.main.t0"), "query": QUERY}},
    "count/slice": {
        "": {"table": F("dpsyn_filed.main.t0"), "start": None, "stop": None},
        "part": {"table": F("dpsyn_filed.main.t0"), "start": 0, "stop": 7},
    },
    "count/view": {"": {"view": CODED, "relation": F("dpsyn_filed.main.t0")}},
    "count/attach_filed": {
        "": {"path": literal("/scratch/filed.duckdb"), "name": F("dpsyn_filed"), "key": literal("ab12")},
        "open": {"path": literal("/scratch/filed.duckdb"), "name": F("dpsyn_filed"), "key": None},
    },
    "count/reaching": {"": {"query": QUERY, "least": 3}},
    "count/marginal": {
        "": {**MARGINAL, "weighted": False},
        "weighted": {**MARGINAL, "weighted": True},
    },
    "count/repack": {
        "": passes.repack(F("again"), ENCODED, DOMAIN, [(0, 1), (2,)], BINNED, [(0,), (1, 2)]).query,
        "labels": passes.repack(
            F("again"), ENCODED, DOMAIN, [(0, 1), (2,)], LABELLED, [(0, 1), (2,)], labels=LABELS
        ).query,
    },
    "count/siblings": {
        "": sibling_tally(ENCODED, DOMAIN, [(0, 1), (2,)], MarginalQuery(PAIR, HALVES)).query,
        "own": sibling_tally(ENCODED, DOMAIN, [(0, 1), (2,)], MarginalQuery(OWN)).query,
    },
    "count/scan": {"": SCAN[1].query, "leaves": SCAN_LEAVES[1].query},
    "dbt/tell": {"": {"told": literal('{"told": "it\'s"}')}},
    "discover/contributions": {"": {"relation": SRC, "unit": F("encode(id)"), "most": 3}},
    "discover/keyed": {
        "row": keyed_rows(SRC, (BOX,)).query,
        "csv": keyed_rows(SRC, (BOX,), decimal=".").query,
        "unit": keyed_rows(SRC, BOTH, bound=Bound('Who "is"', 3, 2**64 - 1)).query,
        "text": keyed_rows(SRC, (WORDS,)).query,
    },
    "discover/nodes": {"": counted_nodes()},
    "discover/largest": {"": counted_nodes(np.array([[True, True], [True, True]]))},
    "discover/states": {"": {"keyed": F("keyed_rows")}},
    "discover/node_table": {"": {"table": F("temp.main.nodes"), "text": [0, 1]}},
    "discover/keys": {"": {"table": F("temp.main.k"), "gathered": F("temp.main.g"), "order": F("thing")}},
    "discover/part": {
        "": {"table": F("temp.main.k"), "text": F("encode(CAST(thing AS VARCHAR))"), "start": 0, "stop": 5}
    },
    "discover/units": {
        "row": {**THING, "unit": None, "bound": None},
        "unit": {**THING, "spelled": F("encode(thing)"), "unit": F("encode(id)"), "bound": Bound("id", 2, 7)},
        "joined": {
            **THING,
            "thing": F("COALESCE(lc.code + 1, 0)"),
            "joins": [last_start("CAST('[1, 2]' AS INTEGER[])", 2, "lc", "c")],
            "unit": None,
            "bound": None,
        },
        "steps": {
            **THING,
            "thing": step_expression(parse_type("TIMESTAMP"), (1_000_000, "month"), F("c")),
            "unit": None,
            "bound": None,
        },
    },
    "encode/encode": {
        "row": encode_query(SRC, DOMAIN, [(0, 2), (1,), (3, 4)]),
        "csv": encode_query(SRC, DOMAIN, [(0,), (1,)], decimal="."),
        "many": encode_query(SRC, MANY, [(0,)]),
        "leaves": encode_query(SRC, LEAVES, [(0,), (1, 2, 3)], decimal="."),
    },
    **tree_statements(),
    "encode/slice": {"": sliced_sql(None), "bounded": sliced_sql("id")},
    "encode/panel": {
        "": {
            "now": F("SELECT parent, p0 FROM present_rows"),
            "before": F("SELECT parent, p0 FROM past_rows"),
            "everybody": False,
            "stays": 0,
            "leaves": 1,
            "joins": 2,
            "columns": [F("present.p0 AS n0"), F("coalesce(past.p0, 3) AS b0")],
        },
        "everybody": {
            "now": F("SELECT parent, p0 FROM present_rows"),
            "before": F("SELECT parent, p0 FROM past_rows"),
            "everybody": True,
            "stays": 0,
            "leaves": 1,
            "joins": 2,
            "columns": [F("coalesce(past.p0, 3) AS b0")],
        },
    },
    "encode/strict": {"": typed_relation(Relation("f", "csv", F("texts"), CSV_COLUMNS), CSV_SHAPE).sql},
    "attach/answer": {
        "": {"parameters": PARAMETERS, "function": ident("f"), "seen": F("seen")},
    },
    "attach/plan": {
        "": {"macro": ident("p"), "parameters": PARAMETERS, "answer": F("(SELECT 1 AS answer)")},
    },
    "attach/release": {
        "": {
            "macro": ident("r"),
            "parameters": PARAMETERS,
            "columns": [ident("rows"), ident("notes")],
            "answer": F("(SELECT 1 AS answer)"),
        },
    },
    "evaluate/categories": {"": {"table": DISTRIBUTION}},
    "evaluate/cell_counts": {"": {"table": CODED, "columns": [F("k0"), F("k1"), F("k2")]}},
    "evaluate/cells": {"": {"table": CODED, "columns": [F("k0"), F("k2")]}},
    "evaluate/children": {
        "": {
            "table": F("children"),
            "parents": F("linked_1"),
            "children": F("linked_2"),
            "columns": [F("k0_0"), F("k0_1")],
        }
    },
    "evaluate/comment": {"": PLACE},
    "evaluate/constant": {"": {"table": F("families"), "values": [F("h0"), F("h1")]}},
    "evaluate/correlations": {
        "": {
            "relation": SRC,
            "numbers": [F("v0 AS z0"), F("v3 AS z3")],
            "pairs": [{"first": F("z0"), "second": F("z3")}],
        }
    },
    "evaluate/crossed": {"": {"table": F("linked_1"), "first": F("k0_0"), "second": F("k1_2")}},
    "evaluate/dangling": {
        case: {
            "table": CODED,
            "target": F("other"),
            "sided": sided,
            "ties": [{"own": F("r0"), "key": F("r1")}, {"own": F("r2"), "key": F("r0")}],
        }
        for case, sided in (("", 1), ("public", 0))
    },
    "evaluate/distribution": {
        "": {"table": DISTRIBUTION, "sides": SIDES[:2], "ordered": 0},
        "ordered": {"table": DISTRIBUTION, "sides": SIDES, "ordered": 1},
    },
    "evaluate/drawn": {
        case: {
            "relation": SRC,
            "columns": [F('"a" AS c0'), F('CAST("b" AS VARCHAR) AS c1')],
            "names": [F("c0"), F("c1")],
            "seed": literal("lot|1"),
            "part": part,
            "highest": 2**64 - 1,
            "limit": 5,
        }
        for case, part in (
            ("", None),
            ("held", {"seed": literal("part|1"), "parts": 5, "inside": F("= 0")}),
        )
    },
    "evaluate/encoded": {
        "": {
            "sides": SIDES,
            "values": [F('"a"'), F('CAST("b" AS VARCHAR)')],
            "codes": [F("CASE WHEN v0 IS NULL THEN 0 ELSE 1 END"), F("coalesce(l1.code, 1)")],
            "lookups": [F("LEFT JOIN labels AS l1 ON v1 = l1.value")],
            "more": [F("v0 / 2 AS z0")],
        }
    },
    "evaluate/families": {"": {"table": F("families"), "relation": SRC}},
    "evaluate/labels": {
        "": {"labels": F("labels"), "table": DISTRIBUTION, "most": 100, "first": 4, "rare": 2}
    },
    "evaluate/linked": {
        case: {
            "table": F("linked_2"),
            "codes": CODED,
            "parents": F("linked_1"),
            "once": once,
            "keys": [F("r0"), F("r1")],
            "ties": [{"own": F("r1"), "key": F("r0")}, {"own": F("r2"), "key": F("r1")}],
            "above": [F("k0_0")],
            "columns": [F("k0 AS k1_0"), F("r0")],
        }
        for case, once in (("", 0), ("once", 1))
    },
    "evaluate/matching": {"": {"relation": SRC, "conditions": [F("v0 > 1"), F("v1 BETWEEN 2 AND 3")]}},
    "evaluate/materialised": {"": {"table": CODED, "relation": SRC}},
    "evaluate/nearest": {
        "": {
            "relation": SRC,
            "coordinates": [F('CAST("a" AS DOUBLE)'), F('CAST("b" AS DOUBLE)')],
            "names": [F("v0"), F("v1")],
            "nearest": [F("least((v0 - 1) * (v0 - 1) + (v1 - 2) * (v1 - 2))")],
        }
    },
    "evaluate/numbered": {"": {"table": F("children")}},
    "evaluate/numbers": {"": {"table": DISTRIBUTION}},
    "evaluate/quantiles": {"": {"table": DISTRIBUTION, "rows": F("real"), "rows_to": F("real_to")}},
    "evaluate/ratios": {
        "": {
            "relation": SRC,
            "columns": [{"name": F("k1"), "attribute": 1}, {"name": F("k2"), "attribute": 2}],
            "numbers": [F("z0"), F("z3")],
        }
    },
    "evaluate/readable": {
        "": {"relation": SRC, "columns": [{"raw": F('"a"'), "read": F('TRY_CAST("a" AS DATE)')}]}
    },
    "evaluate/repeated": {"": {"table": CODED, "keys": [F("r0"), F("r1")]}},
    "evaluate/roots": {
        case: {
            "table": F("linked_1"),
            "codes": CODED,
            "part": F("CASE side WHEN 1 THEN 2 ELSE 0 END"),
            "keys": [F("r0"), F("r1")],
            "once": once,
            "columns": [F("k0 AS k0_0"), F("r0"), F("r1")],
        }
        for case, once in (("", 0), ("once", 1))
    },
    "evaluate/siblings": {"": {"table": F("families"), "code": F("k1")}},
    "evaluate/steps": {"": {"table": STAGED, "families": F("families"), "codes": [F("k0"), F("k1")]}},
    "evaluate/text_types": {"": {"relation": SRC, "columns": [F('"a"'), F('"b"')]}},
    "evaluate/transitions": {"": {"table": STAGED, "previous": F("p0"), "code": F("k0")}},
    "evaluate/values": {"": {"table": DISTRIBUTION}},
    "evaluate/waits": {"": {"table": STAGED}},
    "load/all": {"": {"rows": qualified("d", "main", "it's")}},
    "load/released": {
        "": {
            "database": literal("d"),
            "schema": literal("main"),
            "name": literal("it's"),
            "release": literal("0123456789abcdef"),
        }
    },
    "load/read_csv": {
        "": {"path": literal("it's"), "columns": F("'a': 'DATE'"), "compression": literal("none")}
    },
    "load/count": {"": {"table": qualified("d", "main", "it's")}},
    "macros/attach": {"": {"path": literal("it's"), "name": ident("x")}},
    "macros/checkpoint": {"": {"name": ident("x")}},
    "macros/create_macro": {
        "": {"macro": F('dpsyn."sample_r"'), "rows": F("n"), "seed": F("s"), "query": QUERY}
    },
    "macros/dpsyn_certificate": {"": {"database": ident("d"), "found": QUERY}},
    "macros/dpsyn_domain": {"": {"database": ident("d"), "found": QUERY}},
    "macros/dpsyn_marginal": {"": {"database": ident("d")}},
    "macros/dpsyn_releases": {"": {"database": ident("d")}},
    "macros/dpsyn_sample": {
        "": {
            "database": ident("d"),
            "most": 5,
            "names": [literal("a"), literal("it's")],
            "known": literal("'a', 'it''s'"),
        }
    },
    "macros/forget": {
        "": {**SCHEMA, "table": ident("shares"), "name": literal("it's.t"), "whole": literal("it's")}
    },
    "macros/found": {"": {"caller": literal("it's"), "wanted": F("wanted_release"), "most": 5}},
    "macros/marginal": {"": {**SCHEMA, "found": QUERY}},
    "macros/no_model": {
        "": {"columns": [F('CAST(NULL AS DATE) AS "d"')], "message": string_literal("it's no network")}
    },
    "load/nodes": {"": {"table": qualified("db", "dpsyn", "shares"), "release": 3}},
    "load/releases": {"": SCHEMA},
    "load/rows": {
        "": {**SCHEMA, "table": ident("codes"), "columns": [ident("code"), ident("label")], "release": 3}
    },
    "load/sample": {
        case: {"database": ident("db"), "name": literal("it's"), "rows": 5, "seeded": seeded, "seed": seed}
        for case, seeded, seed in (("", 0, literal(None)), ("seeded", 1, literal(2**64 - 1)))
    },
    "macros/sampled": {
        "": {
            "staged": F(f"(\n{QUERY}\n    )"),
            "columns": [F('a0 AS "a"')],
            "written": [ident("a"), F('1 AS "b"')],
            "conditions": [F('TRY("a" > 0)')],
        }
    },
    "macros/names": {"": SCHEMA},
    "macros/next_release": {"": {**SCHEMA, "name": literal("it's.t"), "whole": literal("it's")}},
    "macros/tables": {"": {"database": ident("d")}},
    "sample/check": {"": {"table": STAGED, "first": 5, "columns": [F("a0"), F("a1")]}},
    "sample/drop": {"": {"table": F("model")}},
    "sample/family_rows": {"": FAMILY_ROWS},
    "sample/given": {
        "": {
            "parents": QUERY,
            "number": F("a2 + 1"),
            "words": [F("CAST(a0 AS UBIGINT) AS w0"), F("CAST(sofar AS UBIGINT) AS w1")],
        }
    },
    "sample/numbered": {"": {"drawn": QUERY, "stride": 17, "codes": [F("a0"), F("a1_0"), F("t")]}},
    "sample/possible": {"": {"rows": QUERY, "impossible": QUERY}},
    "sample/walk": {
        "": {
            "words": FAMILY_ROWS["words"],
            "stride": 65,
            "lists": [(F("lists0"), F("lists"))],
            "moments": QUERY,
            "drawn": QUERY,
            "tick": F("tick + 1"),
            "codes": [F("w0 AS a0"), F("0 AS a1")],
        }
    },
    "sample/entries": {
        "": {"slots": F("slots WHERE node = 1"), "threshold_bits": 31, "bits": 3, "column": F("entries0")}
    },
    "sample/iid": {"": SAMPLER, "ordered": {**SAMPLER, "steps": [APART], "ordered": 1}},
    "sample/insert": {"": {"staged": STAGED, "query": QUERY}},
    "sample/lines": {
        "": {"table": F("model"), "condition": F("TRUE AND node = 1"), "packed": F("value % 2")}
    },
    "sample/list_table": {"": {"table": F("made"), "steps": [STEP]}},
    "sample/lists": {
        "": {"slots": F("slots WHERE node = 1"), "type": F("UTINYINT"), "columns": APART["columns"]}
    },
    "sample/beside": {"": {"rows": QUERY, "steps": [STEP]}},
    "sample/low_variance": {"": {**SAMPLER, "chunk_bits": 20}},
    "sample/moments": {
        "": {
            "drawn": QUERY,
            "own": F("w0 & 3"),
            "columns": [F("w0 AS m0"), F("w1 AS m1")],
            "stride": 65,
        }
    },
    "sample/numbers": {"": {"first": 9, "rows": F("5"), "steps": [STEP]}},
    "sample/slots": {"": {"number": 1, "lines": F("lines"), "slot_bits": 2, "configurations": 3}},
    "sample/start": {"": {"numbers": F("range(0, 5)"), "words": [F("w0"), F("w1")], "steps": [STEP]}},
    "sample/stretches": {"": {"lines": F("lines"), "slot_bits": 2}},
    "source/attach": {
        "read_only": {"path": literal("it's.duckdb"), "name": ident('a"b'), "read_only": 1},
        "writable": {"path": literal("x.duckdb"), "name": ident("x"), "read_only": 0},
    },
    "source/columns": {"": PLACE},
    "source/constraints": {"": PLACE},
    "source/keys": {"": PLACE},
    "source/references": {"": {"catalog": PLACE["catalog"], "schema": PLACE["schema"]}},
    "source/public_rows": {
        "": {
            "table": F('"temp"."main"."p"'),
            "relation": SRC,
            "keys": [ident("a"), ident('b"')],
            "by": [ident("c")],
        }
    },
    "source/public_facts": {"": {"table": F('"temp"."main"."p"'), "keys": 2}},
    "source/public_labels": {"": {"table": F('"temp"."main"."p"'), "columns": 2}},
    "source/public_keys": {"": {"table": F('"temp"."main"."p"'), "keys": 2}},
    "source/referring": {
        "": {
            "relation": SRC,
            "columns": [ident("a"), ident('b"')],
            "references": [
                {
                    "name": ident("code of a"),
                    "alias": F("r0"),
                    "lookup": F('"temp"."main"."p"'),
                    "columns": [ident("a"), ident('b"')],
                },
                {
                    "name": ident("code of c"),
                    "alias": F("r1"),
                    "lookup": F(""),
                    "columns": [ident("c"), ident("d")],
                },
            ],
        }
    },
    "source/describe": {"": {"relation": F('"t"')}},
    "source/describe_query": {"": {"query": QUERY}},
    "source/detach": {"": {"name": ident("x")}},
    "source/drop_temporary": {
        "table": {"view": 0, "name": qualified("temp", "main", "x")},
        "view": {"view": 1, "name": qualified("temp", "main", "x")},
    },
    "source/frame": {
        "": {"columns": [F('v0 AS "a"'), F('v1 AS "b"')], "frame": qualified("temp", "main", "x")}
    },
    "source/parquet_names": {"": {"path": literal("x")}},
    "source/read_csv": {
        "": {**CSV, "strict": 0},
        "strict": {**CSV, "strict": 1},
        "as stated": {**CSV_AS_STATED, "strict": 0},
    },
    "source/parquet_rows": {"": {"paths": [literal("a"), literal("b")]}},
    "source/parquet_slice": {"": {"path": literal("a"), "start": 0, "stop": 7}},
    "source/read_parquet": {"": {"paths": comma([literal("a"), literal("b")])}},
    "source/set_option": {"": {"name": ident("threads"), "value": literal(2)}},
    "source/set_search_path": {"": {"search_path": literal('a."b,c"')}},
    "source/syntax": {"": {"query": literal("SELECT 'x'")}},
    "source/table_sql": {"": PLACE},
    "source/conventions": {"": {}},
    "source/use": {"": {"name": ident("x")}},
    "source/instance": {"": {"mark": literal("dpsyn_instance_")}},
    "spark/clear": {"": {"table": CODED}},
    "spark/codes": {"": {"query": QUERY, "columns": [F("p0 AS c0")]}},
    "spark/count": {
        "": {"table": STAGED, "number": 1, "keys": [ident('a"'), F("NULL"), F("b")], "query": QUERY},
    },
    "spark/empty": {"": {"table": CODED, "query": QUERY}},
    "spark/insert": {"": {"table": CODED, "query": QUERY}},
    "spark/relation": {"": {"table": SRC, "columns": [F('"a""" INTEGER'), F("b VARCHAR")]}},
    "spark/sums": {
        "": {"table": STAGED, "keys": [F("i0"), F("b0")], "buckets": 8, "least": []},
        "all": {
            "table": STAGED,
            "keys": [F("i0"), F("b0")],
            "buckets": None,
            "least": [F("(tally != 0 OR sum(n) >= 5)"), F("(tally != 2 OR sum(n) >= 9)")],
        },
    },
    "spark/sums_table": {"": {"table": STAGED, "integers": [F("i0"), F("i1")], "bytes": [F("b0")]}},
    "spark/tally": {"": {"table": STAGED, "number": 1, "keys": [F("CAST(i0 AS UTINYINT) AS p0")]}},
    "spark/view": {"": {"name": CODED, "query": QUERY}},
    "write/attach_new": {"": {"path": literal("it's"), "name": ident("x")}},
    "write/bind": {"": {"columns": [F('CAST(NULL AS DATE) AS "d"')], "value": F('"d" + 1')}},
    "write/copy_csv": {"": {"path": literal("it's"), "query": QUERY}},
    "write/comment": {
        "": {"what": F("COLUMN"), "name": F('"d"."t"."c"'), "text": literal("it's {{ x }}; --")}
    },
    "write/copy_json": {"": {"path": literal("it's"), "query": QUERY}},
    "write/copy_parquet": {
        case: {"path": literal("it's"), "query": QUERY, "statement": statement}
        for case, statement in (("", F("")), ("statement", literal("it's {{ x }}")))
    },
    "write/in_place": {"": {"staged": STAGED}},
    "write/in_order": {"": {"staged": STAGED}},
    "source/setting": {"": {"name": literal("TimeZone")}},
    "write/count_staged": {"": {"staged": STAGED, "first": 0}},
    "write/create_table": {
        "": {"target": F('"d"."t"'), "replace": 0, "query": QUERY},
        "replace": {"target": F('"d"."t"'), "replace": 1, "query": QUERY},
    },
    "write/create_schema": {"": {"schema": F('"d"."s"')}},
    "write/define_table": {
        "": {"table": F('"d"."t"'), "definitions": [F('"a" INTEGER'), F('PRIMARY KEY ("a")')]}
    },
    "write/drop_table": {"": {"table": F('"d"."t"')}},
    "write/insert": {"": {"table": F('"d"."t"'), "query": QUERY}},
    "write/is_there": {"": {"table": F('"d"."t"')}},
    "write/keys": {"": {"table": F("keys"), "query": QUERY}},
    "write/largest_family": {"": {"staged": STAGED}},
    "write/public_rows": {
        "": {"table": F("goods"), "row": F("dpsyn_row"), "columns": [F('CAST("a" AS DATE) AS "a"')]}
    },
    "write/public_text": {"": {"rows": F('"d"."t"'), "columns": [F('"a"'), F('"it\'s"')]}},
    "write/tied": {"": tied_rows(TIED, STAGED, TIES, {"g": F("a1"), "o": F("a2"), "s": F("a2")}, 9).rows},
    "write/decode": {
        "": decode_statement(BINS, STAGED, 9),
        "roles": output_statement(WRITTEN, STAGED, 10, units_of(None, 10), 9),
        "in_place": output_statement(shape_of_domain(BINS), STAGED, 2, units_of(None, 2), 9, in_place=True),
        "together": output_statement(
            Shape(
                (NUMBER, WIDE),
                (UnitId("u", "BIGINT"),),
                ("u", "a", "w"),
                together=True,
                numbered=True,
                ticks="a",
                per_unit=frozenset({"w"}),
            ),
            STAGED,
            7,
            units_of(None, 7, 4),
            9,
        ),
    },
    "write/panel_count": {"": {"rows": F('"d"."t"'), "id": F("encode(CAST(who AS VARCHAR))")}},
    "write/panel_digest": {"": {"rows": F("(SELECT * FROM d.t WHERE day = 1)")}},
    "write/panel_joined": {
        "": {
            "staged": STAGED,
            "numbered": F("numbered"),
            "past": None,
            "own": F("encode(CAST(n.person + 1 AS VARCHAR))"),
            "id": F("encode(CAST(earlier.who AS VARCHAR))"),
            "kept": [],
        },
        "kept": {
            "staged": STAGED,
            "numbered": F("numbered"),
            "past": F("(SELECT * FROM d.t WHERE day = 1)"),
            "own": F("encode(CAST(n.person + 1 AS VARCHAR))"),
            "id": F("encode(CAST(earlier.who AS VARCHAR))"),
            "kept": [F("earlier.born AS kept0"), F("earlier.sex AS kept1")],
        },
    },
    "write/panel_persons": {
        "": {
            "coded": F("SELECT unit, p0, p1 FROM coded_rows"),
            "codes": [F("p0"), F("p1")],
            "id": F("encode(CAST(number + 1 AS VARCHAR))"),
            "persons": 7,
        }
    },
    "write/panel_rows": {"": {"staged": STAGED}},
    "write/differing": {"": {"table": F('"d"."t"'), "query": QUERY}},
    "write/fits": {"": {"value": literal(1), "cast": F("CAST(1 AS INTEGER)")}},
    "write/leaves": {
        "": rows_with_places(STAGED, values_of(LEAVES, lambda one: F(f"hash({literal(one.name)})")))
    },
    "write/not_null": {"": {"table": F('"d"."t"'), "column": F('"it""s"')}},
    "write/reject": {"": [*possible_statements(NEVER, STAGED, 7, 9)][-1][0]},
    "write/panel_kept": {
        "": {
            "table": F("kept"),
            "numbered": F("numbered"),
            "past": F("(SELECT * FROM d.t WHERE day = 1)"),
            "own": F("encode(CAST(n.person + 1 AS VARCHAR))"),
            "id": F("encode(CAST(earlier.who AS VARCHAR))"),
            "kept": [F("earlier.born AS kept0"), F("earlier.sex AS kept1")],
        }
    },
    "write/panel_looked": {"": {"staged": STAGED, "table": F("kept"), "kept": [F("kept0"), F("kept1")]}},
    "write/again": {"": next(possible_statements(NEVER, STAGED, 7, 9))[0]},
    "write/instead": {"": [*possible_statements(NEVER, STAGED, 7, 9)][12][0]},
    "write/replaced": {"": {"staged": STAGED, "apart": 64, "step": 8, "within": 3, "drawn": 5}},
    "write/impossible": {
        "": impossible_rows(replace(NEVER, together=True, numbered=True, ticks="a"), STAGED, 7, 9)[1]
    },
    "write/unstage": {"": {"staged": STAGED, "listed": F("listed")}},
    "write/copied": {
        "": {"staged": STAGED, "listed": F("listed")},
    },
    "write/numbered": {"": {"table": F("numbered"), "staged": STAGED}},
    "write/renumbered": {"": {"staged": STAGED, "listed": F("listed")}},
    "write/before": {
        "": {
            "staged": STAGED,
            "listed": F("listed"),
            "columns": [F("a0"), F("a1"), F("t")],
        }
    },
    "write/drawn": {
        name: {"staged": STAGED, "columns": [F("a0"), F("a1")], "condition": None, **options}
        for name, options in {
            "": {"ordered": False},
            "ordered": {"ordered": True},
            "part": {"condition": F("s.a0 < 5"), "ordered": False},
        }.items()
    },
    "sample/room": {"": {"table": STAGED, "columns": [F("a0 UTINYINT"), F("a1 USMALLINT")]}},
    "write/trim": {"": {"staged": STAGED, "first": 0, "rows": 5}},
}
