"""Domain files: what is accepted, and every fault in one message."""

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from support.shapes import domain_of

from dpsyn_sql.attributes.file import DomainFile, json_schema, read_domain
from dpsyn_sql.errors import DomainError, SourceError
from dpsyn_sql.source.relation import Column, Relation

ROOT = Path(__file__).resolve().parents[3]


def attribute(sql_type, entry, csv=False, **facts):
    columns = (Column("v", sql_type, **facts),)
    return read_domain({"columns": {"v": entry}}).to_shape(columns, csv=csv).domain.attributes[0]


def numeric(sql_type, csv=False, **entry):
    return attribute(sql_type, {"type": "numeric", **entry}, csv)


def temporal(sql_type, csv=False, **entry):
    return attribute(sql_type, {"type": "temporal", **entry}, csv)


def fault(columns, spec, exclude=(), csv=False):
    with pytest.raises(DomainError) as caught:
        read_domain(spec).to_shape(columns, exclude, csv=csv)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return caught.value.faults


def one_fault(sql_type, entry, csv=False, **facts):
    faults = fault((Column("v", sql_type, **facts),), {"columns": {"v": entry}}, csv=csv)
    assert len(faults) == 1, faults
    return faults[0]


def test_integer_bins_hold_whole_values():
    assert numeric("INTEGER", lower=17, upper=90).edges == tuple(range(17, 92))
    assert numeric("INTEGER", lower=1, upper=3, bins=50).edges == (1, 2, 3, 4)
    assert numeric("INTEGER", lower=0, upper=9, bins=3).edges == (0, 3, 6, 10)
    assert len(numeric("INTEGER", lower=0, upper=1000).edges) == 33
    assert numeric("INTEGER", edges=[0, 1, 5000, 99999]).edges == (0, 1, 5000, 100000)
    assert numeric("INTEGER", edges=[0, 1, 99999, 99999]).edges == (0, 1, 99999, 100000)
    assert numeric("BIGINT", lower=-(2**63), upper=2**63 - 1, bins=2).edges == (-(2**63), 0, 2**63)


def test_decimal_edges_are_multiples_of_the_scale():
    got = numeric("DECIMAL(5,2)", lower=0, upper=0.1)
    assert got.edges == tuple(Decimal(i) / 100 for i in range(12))
    assert numeric("DECIMAL(10,3)", edges=["0.001", 2]).edges == (Decimal("0.001"), Decimal("2.001"))


def test_floats_are_continuous():
    assert numeric("DOUBLE", lower=0, upper=2.5, bins=5).edges == (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    assert len(numeric("DOUBLE", lower=0, upper=1).edges) == 33


def test_dates_count_days_and_a_day_belongs_to_a_timestamp_range_whole():
    edges = temporal("DATE", lower="2020-01-01", upper=date(2020, 1, 31)).edges
    assert edges == tuple(date(2020, 1, 1) + timedelta(days=i) for i in range(32))
    stamps = temporal("TIMESTAMP", lower=date(2020, 1, 1), upper="2020-01-02", bins=2).edges
    assert stamps == (datetime(2020, 1, 1), datetime(2020, 1, 2), datetime(2020, 1, 3))
    exact = temporal("TIMESTAMP", edges=[datetime(2020, 1, 1), "2020-01-02 00:00:00"]).edges
    assert exact[-1] == datetime(2020, 1, 2, 0, 0, 0, 1)


def test_year_9999_is_allowed():
    assert temporal("DATE", lower="2000-01-01", upper="9999-12-31", bins=1).edges[-1] == date.max
    assert "one step before" in one_fault("DATE", {"type": "temporal", "edges": ["2000-01-01", "9999-12-30"]})


def test_other_is_assumed_unless_the_categories_are_all_there_is():
    def entry(*labels, **more):
        return {"type": "categorical", "categories": list(labels), **more}

    assert attribute("VARCHAR", entry("a")).other
    assert not attribute("VARCHAR", entry("a", other=False)).other
    assert attribute("BOOLEAN", entry(True)).other
    assert not attribute("BOOLEAN", entry(True, False)).other
    assert not attribute("ENUM('a', 'b')", entry("b", "a"), enum_labels=("a", "b")).other
    assert attribute("ENUM('a', 'b')", entry("b"), enum_labels=("a", "b")).other


def test_an_anonymous_enum_never_shows_its_own_labels():
    column = Column("v", "ENUM('secret', 'a')")
    got = attribute("ENUM('secret', 'a')", {"type": "categorical", "categories": ["a"]})
    assert got.sql_type == "ENUM('a')" and "secret" not in repr(got)
    for spec in ({}, {"v": {"type": "numeric", "lower": 1, "upper": 2}}):
        assert "secret" not in str(fault((column,), {"columns": spec}))


def test_catalog_needs_no_declaration_and_a_declaration_overrides():
    columns = (
        Column("b", "BOOLEAN", not_null=True),
        Column("e", "ENUM('x', 'y')", enum_labels=("x", "y")),
    )
    domain = domain_of(None, Relation("t", "table", "t", columns))
    assert [a.origin for a in domain.attributes] == ["catalog", "catalog"]
    assert [a.nullable for a in domain.attributes] == [False, True]
    spec = {"columns": {"E": {"type": "categorical", "categories": ["y"], "nullable": True}}}
    declared = read_domain(spec).to_shape(columns).domain["e"]
    assert (declared.origin, declared.labels, declared.sql_type) == ("declared", ("y",), "ENUM('x', 'y')")


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"type": "numeric", "lower": 1, "upper": 2}, "BIGINT"),
        ({"type": "numeric", "lower": 1, "upper": 2.5}, "DOUBLE"),
        ({"type": "numeric", "lower": 1, "upper": 2**70}, "HUGEINT"),
        ({"type": "numeric", "lower": 1, "upper": 2.5, "sql_type": "numeric(10, 2)"}, "DECIMAL(10,2)"),
        ({"type": "temporal", "lower": "2020-01-01", "upper": "2021-01-01"}, "DATE"),
        ({"type": "temporal", "lower": "2020-01-01", "upper": "2021-01-01 10:00:00"}, "TIMESTAMP"),
        (
            {"type": "temporal", "lower": "2020-01-01 00:00:00Z", "upper": "2021-01-01"},
            "TIMESTAMP WITH TIME ZONE",
        ),
        ({"type": "categorical", "categories": ["a"]}, "VARCHAR"),
        ({"type": "categorical", "categories": [1, 2]}, "BIGINT"),
        ({"type": "categorical", "categories": [True, False], "sql_type": "BOOLEAN"}, "BOOLEAN"),
    ],
)
def test_types_of_csv_columns(entry, wanted):
    assert attribute("VARCHAR", entry, csv=True).sql_type == wanted


CATEGORICAL = {"type": "categorical"}


@pytest.mark.parametrize(
    ("sql_type", "entry", "words"),
    [
        ("INTEGER", {"type": "numeric", "lower": 5, "upper": 5}, "lower 5 is not below upper 5"),
        ("INTEGER", {"type": "numeric", "lower": 1.5, "upper": 5}, "1.5 is not a value of the type INTEGER"),
        ("TINYINT", {"type": "numeric", "lower": 0, "upper": 128}, "128 does not fit the type TINYINT"),
        ("UTINYINT", {"type": "numeric", "lower": -1, "upper": 8}, "-1 does not fit"),
        ("DECIMAL(3,1)", {"type": "numeric", "lower": 0, "upper": 100}, "does not fit the type DECIMAL(3,1)"),
        ("DOUBLE", {"type": "numeric", "lower": 2, "upper": 1}, "lower 2.0 is not below upper 1.0"),
        ("FLOAT", {"type": "numeric", "lower": 0, "upper": 1e39}, "does not fit the type FLOAT"),
        ("DOUBLE", {"type": "numeric", "lower": 0, "upper": 5e-324, "bins": 9}, "write fewer"),
        ("DOUBLE", {"type": "numeric", "edges": [0, 0, 1]}, "edges must increase"),
        ("INTEGER", {"type": "numeric", "edges": [0, 5, 3]}, "edges must increase, but 3 follows 5"),
        ("INTEGER", {"type": "numeric", "edges": [0, 0, 3]}, "edges must increase"),
        ("INTEGER", {"type": "numeric", "edges": [1]}, "edges"),
        ("INTEGER", {"type": "numeric", "lower": 0, "upper": 9, "bins": 0}, "bins"),
        ("INTEGER", {"type": "numeric", "lower": 0, "upper": 9, "bins": 2.5}, "bins"),
        ("INTEGER", {"type": "numeric", "lower": 0, "upper": 9, "bins": 10**9}, "bins"),
        ("INTEGER", {"type": "numeric", "lower": float("nan"), "upper": 9}, "finite number"),
        ("INTEGER", {"type": "numeric", "lower": float("inf"), "upper": 9}, "finite number"),
        ("INTEGER", {"type": "numeric", "lower": "1e999999", "upper": 9}, "finite number"),
        ("INTEGER", {"type": "numeric", "lower": True, "upper": 9}, "must be a number"),
        ("INTEGER", {"type": "numeric", "lower": "FILL", "upper": 9}, "must be a number"),
        ("INTEGER", {"type": "numeric", "lower": 1}, "write lower and upper"),
        ("INTEGER", {"type": "numeric", "edges": [1, 2], "bins": 3}, "write either edges"),
        ("INTEGER", {"type": "numeric", "lower": 1, "upper": 2, "step": 3}, "unknown key 'step'"),
        ("INTEGER", {"type": "float", "lower": 1, "upper": 2}, "write type: numeric, temporal"),
        ("INTEGER", None, "write type: numeric, temporal"),
        ("INTEGER", {"type": "numeric", "lower": 1, "upper": 2, "sql_type": "BIGINT"}, "contradicts"),
        ("INTEGER", {"type": "numeric", "lower": 1, "upper": 2, "nullable": "yes"}, "nullable"),
        ("INTEGER", {"type": "temporal", "lower": "2020-01-01", "upper": "2020-01-02"}, "cannot be temporal"),
        ("VARCHAR", {"type": "numeric", "lower": 1, "upper": 2}, "type VARCHAR cannot be numeric"),
        ("DATE", {"type": "numeric", "lower": 1, "upper": 2}, "type DATE cannot be numeric"),
        ("DATE", {"type": "temporal", "lower": "2020-01-01 10:00:00", "upper": "2020-02-01"}, "time of day"),
        ("DATE", {"type": "temporal", "lower": "soon", "upper": "2020-02-01"}, "must be a date"),
        ("TIMESTAMP", {"type": "temporal", "lower": "2020-01-01 00:00Z", "upper": "2021-01-01"}, "time zone"),
        (
            "TIMESTAMP_S",
            {"type": "temporal", "lower": "2020-01-01T00:00:00.5", "upper": "2021-01-01"},
            "not a value",
        ),
        ("TIMESTAMP_NS", {"type": "temporal", "lower": "1500-01-01", "upper": "2021-01-01"}, "does not fit"),
        ("DOUBLE", {**CATEGORICAL, "categories": ["a"]}, "cannot be categorical"),
        ("DATE", {**CATEGORICAL, "categories": ["a"]}, "write type: temporal"),
        ("VARCHAR", {**CATEGORICAL, "categories": []}, "categories is empty"),
        ("VARCHAR", {**CATEGORICAL}, "categories is missing"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["a", "b", "a"]}, "'a' is listed twice"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["a", True]}, "write it in quotes"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["a", 1]}, "write it in quotes"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["a", None]}, "nullable: true"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["a", 1.5]}, "in quotes"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["a", "__other__"]}, "other: false"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["a\x00"]}, "NUL"),
        ("VARCHAR", {**CATEGORICAL, "categories": ["\ud800"]}, "surrogate"),
        ("TINYINT", {**CATEGORICAL, "categories": [300]}, "does not fit the type TINYINT"),
        ("BOOLEAN", {**CATEGORICAL, "categories": [1]}, "does not fit the type BOOLEAN"),
    ],
)
def test_each_fault_says_what_to_do(sql_type, entry, words):
    message = one_fault(sql_type, entry)
    assert "'v'" in message and words in message


def test_faults_by_what_the_source_says_of_a_column():
    assert "not a label" in one_fault("ENUM('a')", {**CATEGORICAL, "categories": ["z"]}, enum_labels=("a",))
    assert "in quotes" in one_fault("VARCHAR", {"type": "categorical", "categories": [True]}, csv=True)
    entry = {"type": "numeric", "lower": 1, "upper": 2, "sql_type": "BLOB"}
    assert "not a type that can be declared" in one_fault("VARCHAR", entry, csv=True)


@pytest.mark.parametrize(
    "sql_type",
    [
        *("INTEGER[]", "INTEGER[3]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "UNION(a INTEGER)"),
        *(
            "BLOB",
            "JSON",
            "INTERVAL",
            "BIT",
            "TIME WITH TIME ZONE",
            "GEOMETRY",
            'STRUCT("ENUM(\'x" INTEGER)[]',
        ),
    ],
)
def test_unsupported_types_ask_for_exclude(sql_type):
    columns = (Column("v", sql_type), Column("ok", "BOOLEAN"))
    (message,) = fault(columns, {"columns": {}})
    assert "'v'" in message and "exclude=" in message
    assert read_domain({"columns": {}}).to_shape(columns, ["v"]).domain.names == ("ok",)


def test_all_faults_come_at_once():
    columns = (
        Column("a", "INTEGER"),
        Column("B", "VARCHAR"),
        Column("b", "VARCHAR"),
        Column("c", "BLOB"),
        Column("d", "DOUBLE"),
        Column("e", "DATE"),
        Column("f", "DATE"),
    )
    spec = {
        "colums": 1,
        "columns": {
            "a": {"type": "numeric", "lower": 3, "upper": 1},
            "A": {"type": "numeric", "lower": 1, "upper": 3},
            "nope": {"type": "categorical", "categories": []},
            "d": {"type": "numeric", "lower": 0, "upper": 1, "bins": 0, "bin": 1},
            3: {},
        },
    }
    faults = "\n".join(fault(columns, spec, exclude=["zz"]))
    for words in (
        "unknown key 'colums'",
        "lower 3 is not below",
        "'A' declare the same column 'a'",
        "no column 'nope'",
        "bins",
        "unknown key 'bin'",
        "column name 3",
        "exclude names 'zz'",
        "differ only by letter case: 'B', 'b'",
        "type BLOB",
        "no public domain for 'B', 'b', 'e', 'f'",
    ):
        assert words in faults


def test_a_case_clash_is_gone_when_one_is_excluded():
    columns = (Column("B", "BOOLEAN"), Column("b", "BOOLEAN"))
    assert DomainFile({}, {}).to_shape(columns, ["b"]).domain.names == ("B",)


def test_names_match_exactly_first_then_by_case():
    columns = (Column("Straße", "INTEGER"), Column("STRASSE", "BOOLEAN"))
    spec = {"columns": {"straße": {"type": "numeric", "lower": 1, "upper": 2}}}
    assert read_domain(spec).to_shape(columns).domain.names == ("Straße", "STRASSE")


def test_nothing_left_is_an_error_of_the_source():
    with pytest.raises(SourceError, match="no columns left"):
        DomainFile({}, {}).to_shape((Column("a", "BLOB"),), ["A"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("columns:\n  a: {type: numeric\n  b: [", "line"),
        ("columns:\n  a: {type: numeric}\n  a: {type: numeric}\n", "line 3: the key 'a' occurs twice"),
        ("- 1\n", "columns:"),
        ("", "columns:"),
        ("columns: 5", "mapping"),
        ("columns:\n  a: {lower: 2020-13-45}\n", "not valid"),
        ("columns:\n  a: {lower: " + "9" * 5000 + "}\n", "not valid"),
        ("columns: !!python/object/apply:os.system [ls]", "line 1"),
        ("[" * 5000, "not valid YAML"),
        ("a: \x01", "not valid YAML"),
    ],
)
def test_what_is_no_domain_file(tmp_path, text, words):
    path = tmp_path / "d.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DomainError, match=words) as caught:
        read_domain(path)
    assert caught.value.__context__ is None


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin").write_bytes(b"columns: {\xe9: 1}")
    for path in (tmp_path / "none.yml", tmp_path, tmp_path / "latin"):
        with pytest.raises(DomainError, match="cannot be read") as caught:
            read_domain(path)
        assert caught.value.__context__ is None


def test_yaml_and_dict_give_the_same_domain(tmp_path):
    path = tmp_path / "d.yml"
    path.write_text(
        "columns:\n  a: {type: numeric, lower: 0, upper: 9, bins: 2}\n"
        "  b: {type: temporal, lower: 1990-01-01, upper: 1990-12-31, bins: 12}\n"
        "  c: {type: categorical, categories: [x, 'yes'], ordered: true, nullable: true}\n"
    )
    spec = {
        "columns": {
            "a": {"type": "numeric", "lower": 0, "upper": 9, "bins": 2},
            "b": {"type": "temporal", "lower": date(1990, 1, 1), "upper": "1990-12-31", "bins": 12},
            "c": {"type": "categorical", "categories": ("x", "yes"), "ordered": True, "nullable": True},
        }
    }
    columns = (Column("a", "INTEGER"), Column("b", "DATE"), Column("c", "VARCHAR"))
    assert read_domain(str(path)).to_shape(columns).domain == read_domain(spec).to_shape(columns).domain


PREFIXED = {"type": "categorical", "categories": ["250*", "2*", "401"], "other": False}


def test_prefixes_are_lengths_of_categories_that_stand_for_a_beginning():
    found = attribute("VARCHAR", {**PREFIXED, "prefixes": [3, 1]})
    assert found.prefixes == (3, 1)
    assert found.stems(3) == (("250*", 0),) and found.stems(1) == (("2*", 1),) and found.stems(2) == ()
    assert attribute("VARCHAR", PREFIXED).prefixes == ()


@pytest.mark.parametrize(
    ("sql_type", "entry", "words"),
    [
        ("VARCHAR", {"prefixes": [1, 3]}, "the longest first"),
        ("VARCHAR", {"prefixes": [3, 3]}, "once each"),
        ("VARCHAR", {"prefixes": [3, 2]}, "has the length 2, but no category of so many characters"),
        ("VARCHAR", {"prefixes": [0]}, "greater than or equal to 1"),
        ("VARCHAR", {"prefixes": 3}, "list"),
        ("INTEGER", {"prefixes": [1], "categories": [1, 2]}, "prefixes need text"),
        ("ENUM('250*', '2*', '401')", {"prefixes": [3]}, "prefixes need text"),
    ],
)
def test_prefixes_that_fit_nothing_are_faults(sql_type, entry, words):
    assert words in one_fault(sql_type, {**PREFIXED, **entry})


def test_the_published_schema_is_current():
    """Write it again with: python -c "import json; from dpsyn_sql.attributes.file import json_schema;
    print(json.dumps(json_schema(), indent=2))" > docs/domain.schema.json"""
    assert json.loads((ROOT / "docs/domain.schema.json").read_text()) == json_schema()


def test_the_example_is_a_valid_domain():
    whole = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
    example = read_domain(ROOT / "examples/adult.domain.yml")
    columns = [Column(name, "INTEGER" if name in whole else "VARCHAR") for name in example.columns]
    domain = example.to_shape(columns).domain
    assert len(domain.names) == 15 and set(whole) < set(domain.names)
    nullable = {a.name for a in domain.attributes if a.nullable}
    assert nullable == {"workclass", "occupation", "native_country"}
    assert not any(a.other for a in domain.attributes)
    assert domain["capital_gain"].edges[:2] == (0, 1) and domain["capital_gain"].edges[-2:] == (99999, 100000)
