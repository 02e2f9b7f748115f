"""The class of a text: a total function, against examples and a second definition in Python."""

import re
from datetime import date

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.types import (
    BOOLEAN,
    CLASSES,
    CODE,
    DATE,
    DECIMALS,
    EMPTY,
    INTEGER,
    LONG,
    LONGEST,
    MARKS,
    MISSING,
    NUMBER,
    TEXT,
    TIME,
    TIMESTAMP,
    WHOLE,
    ZONED,
)
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.queries import TypesQuery
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter, text_class_expression
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

EXAMPLES = {
    EMPTY: [None, "", " ", "   "],
    MISSING: ["NA", "n/a", "NaN", "null", "None", "?", "-", ".", r"\N", "#N/A", " na "],
    INTEGER: [
        "0",
        "1",
        "-7",
        "2013",
        " 12 ",
        "9223372036854775807",
        "-9223372036854775808",
        "-0",
        "20130131",
    ],
    LONG: ["9223372036854775808", "99999999999999999999", "-" + "9" * 38],
    WHOLE: ["1.0", "-3.", "12.000", "0.0"],
    DECIMALS[0]: ["1.5", "-0.5", ".5"],
    DECIMALS[1]: ["12.50", "0.01", "-.25", "99999999999.99"],
    DECIMALS[5]: ["40.712345", "-73.985656"],
    NUMBER: ["1e5", "1.5E-7", "0.1234567", "inf", "-Infinity", "1000000000000000.5", "2E+3", "1e999"],
    DATE: ["2020-01-31", "2020/01/31", "0001-01-01", "9999-12-31", " 2020-02-29 "],
    TIMESTAMP: [
        "2020-01-31 12:30",
        "2020-01-31T12:30:59",
        "2020-01-31 12:30:59.123456",
        "2020/01/31 1:02:03",
    ],
    ZONED: ["2020-01-31T12:30:59Z", "2020-01-31 12:30:59+02", "2020-01-31T12:30:59.5-05:30"],
    TIME: ["08:30", "8:30:00", "23:59:59.999"],
    BOOLEAN: ["true", "False", "TRUE"],
    CODE: ["01234", "007", "00", "-01"],
    TEXT: [
        *(
            "a",
            "t",
            "f",
            "yes",
            "no",
            "+7",
            "1,234",
            "1 234",
            "1_000",
            "0x1A",
            "12%",
            "$5",
            "1.2.3",
            "1..2",
            "--",
        ),
        *("2020-02-30", "2020-13-01", "31.01.2020", "01/31/2020", "2020-1-2", "20-01-31", "2020-01", "25:00"),
        *(
            "2020-01-31 99:00",
            "1e",
            "e5",
            "05.5",
            "1" * 65,
            "9" * 39,
            "\x00",
            "7\x00",
            "7\n",
            "é",
            "\U0001f600",
        ),
        *(
            "٣",
            "\uff11",
            "12e5x",
            "1-2",
            "12:30 pm",
            "0000-00-00",
            "2020-01-31 12:30 UTC",
            "infinite",
            "\t7",
            "fal\u017fe",
        ),
    ],
}


SETTINGS = "SET threads = 2; SET default_collation = 'nocase'"


def classes_of(con, texts):
    con.execute("CREATE OR REPLACE TEMP TABLE texts (i INTEGER, s VARCHAR)")
    con.executemany("INSERT INTO texts VALUES (?, ?)", list(enumerate(texts)))
    code = text_class_expression(Fragment("c"))
    rows = con.execute(f"SELECT {code} FROM (SELECT i, trim(s) AS c FROM texts) ORDER BY i").fetchall()
    return [CLASSES[code] for (code,) in rows]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples(con, name):
    texts = EXAMPLES[name]
    assert dict(zip(texts, classes_of(con, texts), strict=True)) == dict.fromkeys(texts, name)


def test_every_class_has_examples():
    assert set(EXAMPLES) | set(DECIMALS) == set(CLASSES) and len(set(CLASSES)) == len(CLASSES)


def by_definition(text):
    """The classes of numbers, dates and words once more, without the database."""
    text = (text or "").strip(" ")
    if not text:
        return EMPTY
    if len(text.encode()) > LONGEST:
        return TEXT
    if text.lower() in MARKS and text.isascii():
        return MISSING
    if text.lower() in ("true", "false") and text.isascii():
        return BOOLEAN
    if re.fullmatch("-?0[0-9]+", text):
        return CODE
    if re.fullmatch("-?[0-9]+", text):
        value = int(text)
        if -(2**63) <= value < 2**63:
            return INTEGER
        return LONG if -(2**127) <= value < 2**127 else TEXT
    found = re.fullmatch(r"-?(0|[1-9][0-9]*)?\.([0-9]*)", text)
    if found and (found[1] or found[2]):
        if not found[2].strip("0") and found[1]:
            value = int(text.split(".")[0])
            if -(2**63) <= value < 2**63:
                return WHOLE
            return NUMBER if found[2] else TEXT
        small = len(found[1] or "") <= 12
        return DECIMALS[len(found[2]) - 1] if len(found[2]) <= 6 and small else NUMBER
    if re.fullmatch("[0-9]{4}([-/])[0-9]{2}[-/][0-9]{2}", text) and text[4] == text[7]:
        try:
            date(*map(int, re.split("[-/]", text)))
        except ValueError:
            return None if text.startswith("0000") else TEXT  # the database has a year 0
        return DATE
    return None


TEXTS = st.one_of(
    st.text(max_size=8),
    st.text("0123456789-.eE:/ TZ+", max_size=24),
    st.from_regex(r"\A-?[0-9]{0,20}\.[0-9]{0,8}\Z"),
    st.from_regex(r"\A[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}\Z"),
    st.integers(-(2**130), 2**130).map(str),
    st.sampled_from([*MARKS, *(mark.upper() for mark in MARKS), "true", "False", "fal\u017fe"]),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=40))
@example(["-.", ".", "-0.", "99999999999999999999.", "99999999999999999999.0", "2020-01/31"])
def test_any_text_has_one_class_and_it_is_this(con, texts):
    for text, found in zip(texts, classes_of(con, texts), strict=True):
        wanted = by_definition(text)
        assert found in CLASSES and wanted in (None, found), (text, found, wanted)


READ_AS = {
    INTEGER: "BIGINT",
    LONG: "HUGEINT",
    WHOLE: "BIGINT",
    **dict.fromkeys(DECIMALS, "DECIMAL(18,6)"),
    NUMBER: "DOUBLE",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    ZONED: "TIMESTAMP WITH TIME ZONE",
    TIME: "TIME",
    BOOLEAN: "BOOLEAN",
}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(TEXTS, min_size=1, max_size=40))
def test_a_text_of_a_class_is_a_value_of_its_type(con, texts):
    for text, found in zip(texts, classes_of(con, texts), strict=True):
        if found in READ_AS:
            sql = f"SELECT TRY_CAST(trim(?) AS {READ_AS[found]}) IS NOT NULL"
            assert con.execute(sql, [text]).fetchone() == (True,), (text, found)


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("id", 4)], ids=["row", "unit"])
def test_units_per_class(con, unit):
    """A row counts once; of a unit of up to four rows two classes at most, once each."""
    rows = [
        ("ann", "1"),
        ("ann", "2"),
        ("ann", None),
        ("bob", "x"),
        ("bob", "1.5"),
        ("bob", "3"),
        (None, "7"),
    ]
    con.execute("CREATE OR REPLACE TEMP TABLE source (id VARCHAR, s VARCHAR)")
    con.executemany("INSERT INTO source VALUES (?, ?)", rows)
    counts = SqlDiscoveryCounter(DuckDBEngine(con), Fragment("source"), decimal=".", unit=unit, key=3).types(
        TypesQuery("s")
    )
    found = {name: int(count) for name, count in zip(CLASSES, counts, strict=True) if count}
    if unit.column is None:
        assert found == {INTEGER: 4, EMPTY: 1, TEXT: 1, DECIMALS[0]: 1}
    else:
        assert sum(found.values()) == 4 and found[EMPTY] == 1 and found[INTEGER] in (1, 2)
