"""Points, dyadic columns, strings and taxonomies in a domain file: what they become, and every fault."""

import re
from datetime import date
from decimal import Decimal

import pytest
import yaml

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.file import read_domain
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.shape import MAX_CODES, Undiscovered
from dpsyn_sql.attributes.taxonomy import Taxonomy
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.errors import DomainError
from dpsyn_sql.planning.template import template_text
from dpsyn_sql.source.relation import Check, Column, Relation

TRIPS = (
    Column("id", "INTEGER", unique=True),
    Column("p_lat", "DOUBLE", not_null=True),
    Column("flag", "BOOLEAN", not_null=True),
    Column("p_lon", "DOUBLE", not_null=True),
    Column("d_lat", "DOUBLE"),
    Column("d_lon", "DOUBLE"),
    Column("day", "DATE"),
    Column("fare", "DECIMAL(8,2)"),
    Column("who", "VARCHAR"),
    Column("zone", "INTEGER"),
)
PICKUP = {"type": "point", "columns": {"p_lat": [40.4, 41.0], "p_lon": [-74.3, "-73.6"]}}
DROP = {"type": "point", "columns": {"d_lon": [-74, -73], "d_lat": [40, 41]}}
NAME = {"type": "string", "alphabet": "a-c", "longest": 4}
CODES = {"type": "taxonomy", "ids": ["250", "251", "401"], "prefixes": [1, 2]}


def columns_of(one):
    return tuple(column.name for column in one.columns)


def shape(spec, columns=TRIPS, **more):
    return read_domain({"columns": spec}).to_shape(columns, discover=True, **more)


def faults(spec, columns=TRIPS, **more):
    with pytest.raises(DomainError) as caught:
        shape(spec, columns, **more)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return caught.value.faults


def item(entry, sql_type="VARCHAR", csv=False, **facts):
    columns = (Column("v", sql_type, **facts),)
    (found,) = read_domain({"columns": {"v": entry}}).to_shape(columns, discover=True, csv=csv).measured
    assert isinstance(found, Undiscovered)
    assert (found.name, found.kind, found.sql_type, found.typed) == ("v", "categorical", "VARCHAR", True)
    return found


def tree(entry, sql_type="VARCHAR", **more):
    return item(entry, sql_type, **more).hierarchy


def fault(entry, sql_type="VARCHAR", **more):
    (found,) = faults({"v": entry}, (Column("v", sql_type),), **more)
    return found


def test_a_point_stands_in_the_place_of_its_first_column():
    found = shape({"pickup": {**PICKUP, "max_codes": 300}, "drop": {**DROP, "depth": 5}})
    assert [one.name for one in found.measured] == ["pickup", "flag", "drop", "day", "fare", "who", "zone"]
    assert found.order == tuple(column.name for column in TRIPS)
    pickup, flag, drop = found.measured[:3]
    assert isinstance(flag, Attribute)
    assert pickup.hierarchy == Points(
        "pickup",
        (HierarchyColumn("p_lat", "DOUBLE"), HierarchyColumn("p_lon", "DOUBLE")),
        (40.4, -74.3),
        (41.0, -73.6),
        16,
    )
    assert (pickup.max_codes, pickup.nullable) == (300, False)
    assert (drop.max_codes, drop.nullable) == (MAX_CODES, True)
    assert drop.hierarchy.depth == 5
    assert columns_of(drop) == ("d_lon", "d_lat")  # as the owner wrote them
    assert columns_of(flag) == ("flag",)
    assert found.planned().names == tuple(one.name for one in found.measured)


def test_a_journey_is_a_point_of_four_columns_in_any_letter_case():
    box = {name: [0, 1] for name in ("P_LAT", "p_lon", "d_lat", "d_lon")}
    found = shape({"journey": {"type": "point", "columns": box, "nullable": False}})
    (journey,) = [one for one in found.undiscovered if one.name == "journey"]
    assert columns_of(journey) == ("p_lat", "p_lon", "d_lat", "d_lon")
    assert (journey.hierarchy.branching, journey.hierarchy.depth, journey.nullable) == (16, 8, False)


def test_a_point_that_is_left_out_whole_is_not_measured():
    found = shape({"drop": DROP}, exclude=["d_lat", "D_LON"])
    assert "drop" not in [one.name for one in found.measured]
    assert "d_lat" not in found.order


def test_constraints_of_the_columns_of_a_point_hold_in_the_output():
    check = Check("p_lat < 50", frozenset({"p_lat"}))
    assert shape({"pickup": PICKUP}, checks=[check]).never == ("NOT (p_lat < 50)",)


@pytest.mark.parametrize(
    ("spec", "more", "words"),
    [
        ({"p_lat": PICKUP}, {}, ["a point needs a name that no column"]),
        ({"a": PICKUP, "A": DROP}, {}, ["'A' differs by letter case", "'a' differs by letter case"]),
        ({"a": PICKUP, "p_lat": {"type": "discover"}}, {}, ["'p_lat' has an entry of its own too; remove"]),
        (
            {"a": PICKUP, "b": {"type": "point", "columns": {"p_lat": [0, 1], "d_lat": [0, 1]}}},
            {},
            ["'p_lat' belongs to 'b' too; name it in one", "'p_lat' belongs to 'a' too; name it in one"],
        ),
        (
            {"a": {"type": "point", "columns": {"p_lat": [0, 1], "P_LAT": [0, 1]}}},
            {},
            ["'p_lat' is named twice", "'P_LAT' is named twice"],
        ),
        (
            {"a": {"type": "point", "columns": {"p_lat": [0, 1], "nowhere": [0, 1]}}},
            {},
            ["the source has no column 'nowhere'; it has 'id', 'p_lat'"],
        ),
        (
            {"a": PICKUP},
            {"exclude": ["p_lat"]},
            ["exclude= leaves out 'p_lat'; leave out all of its columns or"],
        ),
        ({"a": PICKUP}, {"unit": TRIPS[1]}, ["'p_lat' is the privacy unit"]),
        (
            {"a": {"type": "point", "columns": {"p_lat": [1, 1], "who": [0, 1]}}},
            {},
            ["'p_lat': lower 1.0 is not below upper 1.0", "'who': type VARCHAR has no halves; allowed are"],
        ),
        ({"a": {**PICKUP, "columns": {"p_lat": [0, 1]}}}, {}, ["columns must have 2 to 8 columns"]),
        ({"a": {**PICKUP, "columns": {f"c{n}": [0, 1] for n in range(9)}}}, {}, ["must have 2 to 8 columns"]),
        ({"a": {**PICKUP, "columns": {1: [0, 1], 2: [0, 1]}}}, {}, ["must have names that are text"]),
        ({"a": {**PICKUP, "columns": {"p_lat": [0], "p_lon": [0, 1]}}}, {}, ["upper bound for 'p_lat'"]),
        (
            {"a": {**PICKUP, "columns": {"p_lat": [0, float("nan")], "p_lon": [0, 1]}}},
            {},
            ["columns of 'p_lat': a bound must be a finite number, not [0, nan]"],
        ),
        (
            {"a": {**PICKUP, "columns": {"p_lat": ["x", 1], "p_lon": [0, 1]}}},
            {},
            [
                "a bound must be a number, a date such as 2020-12-31 or a time such as '12:30:00', not ['x', 1]"
            ],
        ),
        ({"a": {**PICKUP, "depth": 0}}, {}, ["depth must be greater than or equal to 1, not 0"]),
        ({"a": {**PICKUP, "depth": 32}}, {}, ["depth is 32; allowed are 1 to 31 in this box"]),
        ({"a": {**PICKUP, "max_codes": 1}}, {}, ["max_codes must be greater than or equal to 2"]),
        ({"a": {**PICKUP, "sql_type": "BIGINT"}}, {}, ["'p_lat': sql_type 'BIGINT' contradicts the source"]),
    ],
)
def test_a_point_that_does_not_fit_is_refused_once(spec, more, words):
    found = faults(spec, **more)
    assert len(found) == len(words), found
    for fault_, word in zip(found, words, strict=True):
        assert word in fault_


def test_a_dyadic_column_is_halved_to_single_values():
    assert tree({"type": "dyadic", "lower": 0, "upper": 200}, "INTEGER") == Points(
        "v", (HierarchyColumn("v", "INTEGER"),), (0,), (200,), 8, nullable=True
    )
    money = tree({"type": "dyadic", "lower": 0, "upper": 9.99}, "DECIMAL(6,2)", not_null=True)
    assert (money.lows, money.highs, money.nullable) == ((0,), (999,), False)
    days = tree({"type": "dyadic", "lower": date(1970, 1, 1), "upper": "1970-12-31", "depth": 3}, "DATE")
    assert (days.lows, days.highs, days.depth) == ((0,), (364,), 3)
    seconds = tree({"type": "dyadic", "lower": "1970-01-01", "upper": "1970-01-01"}, "TIMESTAMP_S")
    assert (seconds.highs, seconds.depth) == ((86_399,), 17)  # a day as upper bound belongs to the box whole
    assert tree({"type": "dyadic", "lower": 0, "upper": 1}, "DOUBLE").depth == 24
    assert item({"type": "dyadic", "lower": 0, "upper": 9, "nullable": False}, "BIGINT").nullable is False


@pytest.mark.parametrize(
    ("entry", "sql_type", "words"),
    [
        ({"lower": 5, "upper": 5}, "INTEGER", "lower 5 is not below upper 5"),
        ({"lower": 5, "upper": 4}, "DOUBLE", "lower 5.0 is not below upper 4.0"),
        ({"lower": 0}, "DOUBLE", "upper is missing"),
        ({"lower": 0, "upper": float("inf")}, "DOUBLE", "upper must be a finite number, not inf"),
        ({"lower": 0, "upper": 1}, "VARCHAR", "type VARCHAR has no halves; allowed are numbers, dates"),
        ({"lower": 0, "upper": "2020-01-01"}, "DATE", "0 is not a value of the type DATE"),
        ({"lower": 0, "upper": "2020-01-01"}, "DOUBLE", "2020-01-01 is not a value of the type DOUBLE"),
        ({"lower": 0, "upper": 2**62}, "HUGEINT", "the bounds are too large"),
        ({"lower": -1.7e308, "upper": 1.7e308}, "DOUBLE", "too far apart for the type DOUBLE"),
        ({"lower": 0, "upper": 1}, "DECIMAL(38,20)", "more than 18 decimal places; cast it"),
        ({"lower": 1_000_000, "upper": 1_000_001}, "FLOAT", "too close for the type FLOAT"),
        ({"lower": 0, "upper": 100, "depth": 8}, "INTEGER", "depth is 8; allowed are 1 to 7 in this box"),
        ({"lower": 0, "upper": 100, "depth": 0}, "INTEGER", "depth must be greater than or equal to 1"),
        ({"lower": 0, "upper": 100, "bins": 8}, "INTEGER", "unknown key 'bins'; allowed are depth, lower"),
    ],
)
def test_dyadic_columns_that_cannot_be_halved(entry, sql_type, words):
    assert words in fault({"type": "dyadic", **entry}, sql_type)


def test_an_alphabet_is_written_as_a_class_of_characters():
    def alphabet(text):
        return tree({**NAME, "alphabet": text}).alphabet

    assert alphabet("a-cX' -") == " '-Xabc"
    assert alphabet("-az") == "-az" and alphabet("a-") == "-a" and alphabet("--/") == "-./"
    assert alphabet("aab-b") == "ab" and alphabet("é-ê") == "éê"
    assert alphabet("^]\\[") == "[\\]^"
    assert "\ud800" not in alphabet("\ud700-\ue001") and "\ue001" in alphabet("\ud700-\ue001")


def test_a_string_has_a_level_for_each_character_or_length():
    made = tree({**NAME, "longest": 3}, not_null=True)
    assert made == Texts(HierarchyColumn("v", "VARCHAR"), "abc", (1, 2, 3), 3)
    assert tree({**NAME, "depth": 2}).lengths == (1, 2) and tree({**NAME, "depth": 2}).longest == 4
    assert tree({**NAME, "lengths": [1, 3]}).lengths == (1, 3)
    spaced = tree({"type": "string", "alphabet": "ab", "lengths": [1, 3, 6]})
    assert (spaced.lengths, spaced.longest) == ((1, 3, 6), 6)
    assert tree({**NAME, "alphabet": "*a", "longest": 3}).labels(tree(NAME).root(), 0) == ["\u2026"]


@pytest.mark.parametrize(
    ("entry", "sql_type", "words"),
    [
        ({"alphabet": ""}, "VARCHAR", "alphabet must have characters"),
        ({"alphabet": "z-a"}, "VARCHAR", "alphabet has the range z-a, which does not ascend; write a-z"),
        ({"alphabet": 5}, "VARCHAR", "alphabet must be text"),
        ({"alphabet": "\x00-z"}, "VARCHAR", "control character from U+0000 to U+0003"),
        ({"alphabet": "*\u2026"}, "VARCHAR", "one of which marks text that goes on; leave one out"),
        ({"alphabet": "a\ud800"}, "VARCHAR", "half a surrogate pair"),
        ({"longest": 0}, "VARCHAR", "longest must be greater than or equal to 1"),
        ({"longest": 1001}, "VARCHAR", "longest must be less than or equal to 1000"),
        ({"longest": "ten"}, "VARCHAR", "longest must be a whole number, not 'ten'"),
        ({"longest": None}, "VARCHAR", "write longest:"),
        ({"lengths": []}, "VARCHAR", "lengths must have at least 1, not 0"),
        ({"lengths": [3, 1]}, "VARCHAR", "lengths must ascend"),
        ({"lengths": [1, 5]}, "VARCHAR", "longest is 4; allowed are 5"),
        ({"depth": 0}, "VARCHAR", "depth must be greater than or equal to 1"),
        ({"alphabet": "a-z", "lengths": [1, 6], "longest": 6}, "VARCHAR", "make the steps 4 or less"),
        ({}, "INTEGER", "type INTEGER is no text; write type: dyadic"),
        ({}, "ENUM('a', 'b')", "type ENUM is no text; cast it to text in a query"),
    ],
)
def test_strings_that_make_no_tree(entry, sql_type, words):
    assert words in fault({**NAME, **entry}, sql_type)


def test_a_taxonomy_is_read_from_parents_codes_or_a_file(tmp_path):
    by_prefix = tree(CODES, not_null=True)
    assert isinstance(by_prefix, Taxonomy)
    assert by_prefix.ids == ("250", "251", "401")
    parents = {"250": "25*", "251": "25*", "25*": "*", "401": "*"}
    assert tree({"type": "taxonomy", "parents": parents}, not_null=True) == by_prefix
    (tmp_path / "icd.csv").write_text(
        "\ufeffparent,code,name\n25*,250,a\n25*,251,b\n*,25*,c\n*,401,d\n,*,all\n", encoding="utf-8"
    )
    path = tmp_path / "domain.yml"
    written = {"type": "taxonomy", "file": "icd.csv", "id": "code", "parent": "parent"}
    path.write_text(yaml.safe_dump({"columns": {"v": written}}))
    columns = (Column("v", "VARCHAR", not_null=True),)
    (found,) = read_domain(path).to_shape(columns, discover=True).undiscovered
    assert found.hierarchy == by_prefix
    (tmp_path / "codes.csv").write_text("code\n401\n251\n250\n")
    flat = {"type": "taxonomy", "file": str(tmp_path / "codes.csv"), "id": "code", "prefixes": [1, 2]}
    assert tree(flat, not_null=True) == by_prefix


def test_whole_numbers_are_ids_of_whole_numbers():
    parents = {10: "tens", 11: "tens", "tens": "all", "7": "all"}
    made = tree({"type": "taxonomy", "parents": parents}, "SMALLINT")
    assert made.ids == ("7", "10", "11")
    assert tree({"type": "taxonomy", "ids": [10, 11, 7], "prefixes": [1]}, "SMALLINT").ids == (
        "10",
        "11",
        "7",
    )


@pytest.mark.parametrize(
    ("entry", "sql_type", "words"),
    [
        ({"parents": {"a": "b", "b": "a"}}, "VARCHAR", "the taxonomy has a cycle: 'a', 'b'"),
        ({"parents": {"a": "r", "b": "s"}}, "VARCHAR", "has 2 roots: 'r', 's'; give them one parent"),
        (
            {"parents": {"a": "r", "b": "r", 7: "r"}},
            "VARCHAR",
            "has the id 7, which is not text; write it in",
        ),
        ({"parents": {"1": "r", 1: "r"}}, "INTEGER", "has 1 twice"),
        ({"parents": {"x": "r", 1: "r"}}, "INTEGER", "has the id 'x', which is no value of the type INTEGER"),
        ({"parents": {300: "r", 1: "r"}}, "TINYINT", "has the id 300, which is no value of the type TINYINT"),
        ({"parents": {"a": "r", "b": "r"}}, "DATE", "type DATE has no taxonomy; cast the column to text"),
        ({"parents": {"a": "r", "b": 1.5}}, "VARCHAR", "parents must be text or whole numbers"),
        ({"parents": {}}, "VARCHAR", "parents must be a mapping of ids"),
        (
            {"parents": {"a": "r", "b": "r"}, "prefixes": [1]},
            "VARCHAR",
            "write either the parents or prefixes",
        ),
        ({"parents": {"a": "r", "b": "r"}, "depth": 2}, "VARCHAR", "unknown key 'depth'"),
        ({"ids": ["a", "b"]}, "VARCHAR", "write either the parents or prefixes"),
        ({"ids": ["a", "a"], "prefixes": [1]}, "VARCHAR", "the taxonomy has 'a' twice"),
        ({"ids": ["a", "b"], "prefixes": [2, 1]}, "VARCHAR", "prefixes must ascend"),
        ({"ids": ["a", "b"], "prefixes": [0]}, "VARCHAR", "prefixes must be greater than or equal to 1"),
        ({"ids": ["a"], "prefixes": [1]}, "VARCHAR", "ids must have at least 2, not 1"),
        ({"ids": ["a", True], "prefixes": [1]}, "VARCHAR", "ids must be text or whole numbers"),
        ({"ids": ["a", "b"], "id": "code", "prefixes": [1]}, "VARCHAR", "name the columns of file:"),
        ({}, "VARCHAR", "write one of parents:, ids: and file:"),
        ({"file": "none.csv", "id": "a", "parent": "b"}, "VARCHAR", "'none.csv' cannot be read as CSV text"),
    ],
)
def test_taxonomies_that_are_no_tree(entry, sql_type, words):
    assert words in fault({"type": "taxonomy", **entry}, sql_type)


def test_a_file_that_holds_no_taxonomy(tmp_path):
    path = tmp_path / "codes.csv"
    entry = {"type": "taxonomy", "file": str(path), "id": "a", "parent": "b"}
    path.write_text("a,c\n1,2\n")
    assert "has no column 'b'; it has 'a', 'c'" in fault(entry)
    path.write_text("a,b\n1,r\n1,r\n2,r\n")
    assert "has '1' twice; write each id once" in fault(entry)
    path.write_bytes(b"a,b\n\xff,r\n")
    assert "cannot be read as CSV text in UTF-8" in fault(entry)
    path.write_text("a,b\n,r\n2,r\n")
    assert "has the id ''" in fault(entry)
    path.write_text("a,b,a\n1,r,2\n")
    assert "has more than one column 'a'" in fault(entry)
    path.write_text("")
    assert "is empty; it needs a header" in fault(entry)


def test_columns_of_csv_files_get_the_types_of_their_entries():
    columns = tuple(Column(name, "VARCHAR") for name in ("lat", "lon", "day", "fare", "name", "code"))
    spec = {
        "place": {"type": "point", "columns": {"lat": [40, 41], "lon": [-74, -73]}},
        "day": {"type": "dyadic", "lower": "2020-01-01", "upper": "2020-12-31"},
        "fare": {"type": "dyadic", "lower": 0, "upper": 10, "sql_type": "DECIMAL(5,2)"},
        "name": NAME,
        "code": CODES,
    }
    found = read_domain({"columns": spec}).to_shape(columns, discover=True, csv=True)
    types = {column.name: column.sql_type for one in found.undiscovered for column in one.hierarchy.columns}
    assert types == {
        "lat": "DOUBLE",
        "lon": "DOUBLE",
        "day": "DATE",
        "fare": "DECIMAL(5,2)",
        "name": "VARCHAR",
        "code": "VARCHAR",
    }
    assert found.untyped == ()
    exact = {"place": {**spec["place"], "sql_type": "DECIMAL(9,6)"}}
    (place, *_) = read_domain({"columns": exact}).to_shape(columns, discover=True, csv=True).measured
    assert place.hierarchy.lows == (40_000_000, -74_000_000)


def test_a_faulty_point_is_told_once():
    (found,) = faults({"pickup": {**PICKUP, "depht": 3}})
    assert "unknown key 'depht'" in found


def test_the_trees_that_the_form_explains_are_valid():
    text = template_text(Relation("t", "table", "t", ()))
    examples = [yaml.safe_load(found) for found in re.findall(r"\{type: (?:point|string|dyadic).*\}", text)]
    examples += [yaml.safe_load(found) for found in re.findall(r"\{type: taxonomy, .*?[\]}]\}", text)]
    assert [example["type"] for example in examples] == ["point", "string", "dyadic", "taxonomy", "taxonomy"]
    columns = (
        *(Column(name, "DOUBLE") for name in ("lat", "lon")),
        Column("c1", "VARCHAR"),
        Column("c2", "BIGINT"),
        *(Column(f"c{n}", "VARCHAR") for n in (3, 4)),
    )
    found = shape({f"c{n}": example for n, example in enumerate(examples)}, columns)
    assert all(one.hierarchy for one in found.undiscovered) and len(found.undiscovered) == 5


def test_a_point_keeps_decimals_exactly():
    columns = (Column("x", "DECIMAL(9,3)"), Column("y", "INTEGER"))
    (found,) = shape({"p": {"type": "point", "columns": {"x": ["0.1", 2], "y": [0, 7]}}}, columns).measured
    assert found.hierarchy.lows == (100, 0) and found.hierarchy.highs == (2000, 7)
    assert Decimal(found.hierarchy.lows[0]).scaleb(-3) == Decimal("0.1")
