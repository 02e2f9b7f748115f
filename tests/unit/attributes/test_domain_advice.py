"""Advice: every rule fires on what it is for, with a cure, and on nothing that a careful owner wrote."""

import re
from pathlib import Path

import pytest

from dpsyn_sql.attributes.advice import advise
from dpsyn_sql.attributes.file import shape_of
from dpsyn_sql.attributes.unit import (
    names_a_code,
    names_a_person,
    names_an_identifier,
    names_money,
    words_of,
)
from dpsyn_sql.errors import DomainError
from dpsyn_sql.source.relation import Column, Relation

ROOT = Path(__file__).parents[3]
MOST_CELLS = 10_000


def judged(columns, spec, kind="table", **options):
    """Findings about a source of these columns; ``columns`` is None for the file alone."""
    relation = None
    if columns is not None:
        relation = Relation("t", kind, "t", tuple(Column(name, *rest) for name, *rest in columns))
    domain = None if spec is None else {"columns": spec}
    return advise(domain, relation, most_cells=MOST_CELLS, **options)


N, L, T = "INTEGER", "DOUBLE", "VARCHAR"
NUMBER = {"type": "numeric", "lower": 0, "upper": 9, "nullable": False}
WORDS = {"type": "categorical", "categories": ["a", "b"], "other": False, "nullable": False}
GROWING = [0, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]

ODD = {
    "a person's rows": ([("customer_id", "BIGINT")], None, "customer_id", "one person", "unit="),
    "an id as an amount": ([("store_id", N)], None, "store_id", "ids or codes", "type: key"),
    "a code as an amount": (
        [("zip", N, True)],
        {"zip": {"type": "numeric", "lower": 0, "upper": 99999, "bins": 50}},
        "zip",
        "ids or codes",
        "as: categorical",
    ),
    "text that is unique": ([("uid", T)], None, "uid", "tells rows apart", "type: key"),
    "a place in two columns": (
        [("pickup_latitude", L), ("fare", N), ("pickup_longitude", L)],
        None,
        "pickup_latitude",
        "with 'pickup_longitude' it is a place by its name",
        "declare pickup_place: {type: point, columns: {pickup_latitude: [lower, upper], pickup_longitude:",
    ),
    "text of many values": (
        [("lastName", T)],
        {"lastName": {"type": "discover"}},
        "lastName",
        "its name says that it has many values",
        "write type: string",
    ),
    "text that is a code": ([("sku", T)], None, "sku", "it holds codes", "write type: taxonomy"),
    "bounds of the type": (
        [("n", "BIGINT", True)],
        {"n": {"type": "numeric", "lower": 0, "upper": 10**18, "bins": 32}},
        "n",
        "its bounds span 1e+18",
        "write bounds",
    ),
    "dates of all times": (
        [("d", "DATE", True)],
        {"d": {"type": "temporal", "lower": "0001-01-01", "upper": "2100-12-31", "bins": 32}},
        "d",
        "more than 200 years",
        "write bounds",
    ),
    "a wide last bin": (
        [("n", N, True)],
        {"n": {"type": "numeric", "edges": [*GROWING, 2_000_000]}},
        "n",
        "its last bin is 199 times as wide",
        "next: 20000",
    ),
    "a wide last bin of dates": (
        [("d", "DATE", True)],
        {
            "d": {
                "type": "temporal",
                "edges": ["2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01", "2030-01-01"],
            }
        },
        "d",
        "its last bin is",
        "add edges within it",
    ),
    "bins of equal width": (
        [("n", N, True)],
        {"n": {"type": "numeric", "lower": 0, "upper": 2_000_000, "bins": 32}},
        "n",
        "its 32 bins are all 62,500 wide",
        "edges that grow: [0, 1000, 2000, 5000, 10000, ",
    ),
    "alike categories": (
        [("s", T, True)],
        {"s": {**WORDS, "categories": ["Private", "private ", "Public"]}},
        "s",
        "'Private', 'private ' differ in case or spaces",
        "keep the spelling",
    ),
    "too many codes": (
        [("s", T, True), ("n", N, True)],
        {"s": {**WORDS, "categories": [f"c{i}" for i in range(2000)]}, "n": NUMBER},
        "s",
        "2,000 codes, 20,000 cells together with 'n'",
        "list the common ones",
    ),
    "categories that may be all": (
        [("s", T, True)],
        {"s": {"type": "categorical", "categories": ["a", "b"]}},
        "s",
        "do not say whether they are all",
        "other: false",
    ),
    "NULL by the catalog": (
        [("s", T)],
        {"s": {"type": "categorical", "categories": ["a", "b"], "other": False}},
        "s",
        "may be NULL, and nullable: is not stated",
        "nullable: true",
    ),
    "moments to the last digit": (
        [("at", "TIMESTAMP", True)],
        {"at": {"type": "temporal", "lower": "2020-01-01", "upper": "2020-12-31"}},
        "at",
        "no granularity",
        "granularity: second",
    ),
    "money of any digits": (
        [("unit_price", L, True)],
        {"unit_price": {"type": "numeric", "lower": 0, "upper": 50, "bins": 10}},
        "unit_price",
        "says money",
        "granularity: 0.01",
    ),
    "nothing declared": ([("s", T)], None, "s", "learnt with noise", "declare what is public"),
    "a column that is not there": (
        [("age", N, True)],
        {"age": NUMBER, "agge": NUMBER},
        None,
        "the source has no column 'agge'",
        "did you mean 'age'?",
    ),
    "a constant of NOT NULL": (
        [("s", T, True), ("n", N, True)],
        {"s": {"type": "constant", "value": None}, "n": NUMBER},
        "s",
        "is NOT NULL",
        "cannot be null",
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_a_rule_fires_on_what_it_is_for_and_names_the_cure(what):
    columns, spec, column, says, cure = ODD[what]
    found = [finding for finding in judged(columns, spec) if says in finding.what]
    assert len(found) == 1, judged(columns, spec)
    assert found[0].column == column and cure in found[0].cure
    assert says in str(found[0]) and cure in str(found[0])


def test_csv_text_without_a_declaration_is_named_once():
    (found,) = [f for f in judged([("a", T), ("b", T)], None, "csv") if "CSV" in f.what]
    assert found.column is None and "'a', 'b'" in found.what and "sql_type:" in found.cure
    assert "types are learnt" in found.what
    assert not [f for f in judged([("a", T), ("b", T)], None, "csv") if "tenth of the budget" in f.what]


def test_a_form_that_nobody_filled_in_is_told():
    (found,) = judged(None, {})
    assert "declares no column" in found.what and "FILL" in found.cure


def test_very_many_columns_are_told():
    columns = [(f"c{i}", "BOOLEAN", True) for i in range(301)]
    assert [f.what.split(":")[0] for f in judged(columns, None)] == ["301 columns are measured"]


CAREFUL = {
    "age": {"type": "numeric", "lower": 0, "upper": 120, "nullable": False},
    "n": {"type": "numeric", "edges": GROWING, "nullable": True},
    "decades": {"type": "numeric", "edges": [0, 1, 10, 100, 1000, 10_000, 100_000], "nullable": False},
    "learnt": {"type": "numeric", "lower": 0, "upper": 10**18, "nullable": False},
    "ever": {"type": "temporal", "lower": "0001-01-01", "upper": "2100-12-31", "nullable": False},
    "pickup": {"type": "point", "columns": {"lat": [40, 41], "lon": [-74, -73]}},
    "lat_work": {"type": "numeric", "lower": -90, "upper": 90, "nullable": False},
    "name": {"type": "string", "alphabet": "a-z", "longest": 10},
    "title": {"type": "categorical", "categories": ["Ms", "Mr"], "other": False, "nullable": False},
    "icd_code": {"type": "taxonomy", "ids": ["a1", "a2", "b"], "prefixes": [1]},
    "months": {"type": "numeric", "edges": [1, 6, 7, 12, 13, 24, 25, 36], "nullable": False},
    "zip": {"type": "categorical", "categories": [10115, 10117], "other": True, "nullable": False},
    "customer_id": {"type": "key"},
    "s": WORDS,
    "price": {"type": "numeric", "lower": 0, "upper": 50, "granularity": "0.01", "nullable": False},
    "at": {
        "type": "temporal",
        "lower": "2020-01-01",
        "upper": "2020-12-31",
        "granularity": "hour",
        "nullable": False,
    },
}
SOURCE = [("age", N), ("n", N), ("decades", N), ("months", N), ("zip", N), ("customer_id", N), ("s", T)]
SOURCE += [("learnt", "BIGINT"), ("ever", "DATE"), ("price", L), ("at", "TIMESTAMP")]
SOURCE += [("lat", L), ("lon", L), ("lat_work", L), ("name", T), ("title", T), ("icd_code", T)]


def test_nothing_is_odd_about_what_a_careful_owner_wrote():
    assert not judged(SOURCE, CAREFUL, stated=True) and not judged(None, CAREFUL, stated=True)


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.domain.yml")), ids=lambda path: path.name)
def test_the_examples_are_not_odd(path):
    assert not advise(path, None, most_cells=MOST_CELLS)


def test_the_most_important_comes_first_and_a_fault_hides_other_findings_of_its_column():
    spec = {
        "s": {"type": "categorical", "categories": ["a", "A"]},
        "n": {"type": "numeric", "lower": 5, "upper": 1},
        "patient_nbr": {"type": "discover"},
    }
    found = judged([("s", T), ("n", N), ("patient_nbr", N), ("at", "TIMESTAMP")], spec).findings
    assert [finding.severity for finding in found] == sorted(
        (finding.severity for finding in found), key=["fault", "serious", "hint"].index
    )
    assert [finding.column for finding in found][:3] == ["n", "patient_nbr", "patient_nbr"]
    assert sum(finding.column == "n" for finding in found) == 1


def test_a_privacy_unit_or_a_unique_column_is_no_person_in_rows():
    person = Column("customer_id", N)
    assert not judged([("customer_id", N), ("b", "BOOLEAN", True)], None, unit=person)
    assert not judged(None, {"customer_id": {"type": "discover"}, "s": WORDS}, unit=Column("Customer_ID", T))
    unique = Relation(
        "t", "table", "t", (Column("customer_id", N, unique=True), Column("b", "BOOLEAN", True))
    )
    assert not advise(None, unique, most_cells=MOST_CELLS)
    row = judged([("customer_id", N), ("b", "BOOLEAN", True)], {"customer_id": {"type": "key"}}, stated=True)
    assert "customer_id" not in [found.column for found in row]


@pytest.mark.parametrize("entry", [{"type": "key"}, {"type": "discover"}])
def test_what_becomes_of_a_person_s_id_does_not_say_that_each_has_one_row(entry):
    """Nor does leaving it out."""
    columns = [("customer_id", N), ("b", "BOOLEAN", True)]
    cured = [judged(columns, {"customer_id": entry}), judged(columns, None, exclude=["CUSTOMER_ID"])]
    for found in cured:
        assert [str(one) for one in found if "one person" in one.what] == [
            "column 'customer_id': its name says whose row it is, but one row is protected, not one person; "
            "release with unit='customer_id' and most=, or write unit='row' if "
            "every person has one row"
        ]


def test_without_a_domain_there_is_one_to_begin_with_that_a_release_takes():
    columns = [
        ("id", N),
        ("zone_id", N),
        ("fare", L),
        ("at", "TIMESTAMP"),
        ("s", T),
        ("n", N),
        ("b", "BOOLEAN"),
    ]
    advice = judged(columns, None)
    assert advice.domain == {
        "columns": {
            "id": {"type": "key"},
            "zone_id": {"type": "discover", "as": "categorical"},
            "fare": {"type": "discover", "granularity": "0.01"},
            "at": {"type": "discover", "granularity": "second"},
            "s": {"type": "discover"},
            "n": {"type": "discover"},
        }
    }
    relation = Relation("t", "table", "t", tuple(Column(*column) for column in columns))
    shape = shape_of(advice.domain, relation, discover=False)
    assert [role.name for role in shape.roles] == ["id"]
    assert judged(columns, {}).domain == {}


def test_a_file_that_is_none_is_refused_and_faulty_columns_are_findings():
    with pytest.raises(DomainError, match="columns:"):
        advise({"cols": {}}, None, most_cells=MOST_CELLS)
    (found,) = judged(None, {"n": {"type": "number"}})
    assert found.column == "n" and found.severity == "fault" and found.cure


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("customer_id", ["customer", "id"]),
        ("CustomerID", ["customer", "id"]),
        ("customerid", ["customer", "id"]),
        ("PULocationID", ["pu", "location", "id"]),
        ("icd9_code", ["icd", "9", "code"]),
        ("", []),
        ("Größe", ["gr", "e"]),
    ],
)
def test_words_of_names(name, words):
    assert words_of(name) == words


def test_what_names_say():
    assert [
        n for n in ("patient_nbr", "userId", "email", "user", "valid", "paid", "grid") if names_a_person(n)
    ] == [
        "patient_nbr",
        "userId",
        "email",
    ]
    assert names_an_identifier("StoreKey") and not names_an_identifier("keyboard")
    assert names_a_code("zip") and not names_a_code("encoded")
    assert names_money("UnitPrice") and names_money("fare_amount") and not names_money("total_eclipses_seen")


def test_every_finding_is_one_line_that_ends_without_a_full_stop():
    for columns, spec, *_ in ODD.values():
        for finding in judged(columns, spec):
            assert finding.what and finding.cure and not re.search(r"\n|\.$", f"{finding.what}{finding.cure}")
