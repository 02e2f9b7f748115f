"""Names: every text round-trips through its printed form."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.source.names import (
    case_clashes,
    display_name,
    fold,
    is_query,
    near_matches,
    shorten,
    split_name,
    split_search_path,
)

names = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(st.lists(names, min_size=1, max_size=3))
def test_a_printed_name_reads_back(parts):
    assert split_name(display_name(*parts)) == tuple(parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("adult", ("adult",)),
        ("main.adult", ("main", "adult")),
        ('"a.b"."c""d".e', ("a.b", 'c"d', "e")),
        ("my table", ("my table",)),
        ("a.b.c.d", None),
        ('a"b', None),
        ("a..b", None),
        (".a", None),
        ('"a', None),
        ('""', None),
    ],
)
def test_dotted_names(text, parts):
    assert split_name(text) == parts


@pytest.mark.parametrize("text", ["SELECT 1", "from\tt", " with\nc AS (SELECT 1) FROM c"])
def test_queries(text):
    assert is_query(text)


@pytest.mark.parametrize("text", ["select", "selected t", "fromage", "/data/from x.csv", '"from here"', ""])
def test_names_and_paths_are_no_queries(text):
    assert not is_query(text)


@given(st.lists(st.tuples(names, names), min_size=1, max_size=3, unique=True))
def test_search_paths_read_back(pairs):
    text = ",".join('"' + a.replace('"', '""') + '"."' + b.replace('"', '""') + '"' for a, b in pairs)
    assert split_search_path(text) == tuple(pairs)


def test_the_search_path_as_duckdb_spells_it():
    con = duckdb.connect()
    con.execute("""ATTACH ':memory:' AS "we,ird.d""b"; CREATE SCHEMA "we,ird.d""b"."s.,x" """)
    con.execute('USE "we,ird.d""b"."s.,x"')
    text = con.execute("SELECT current_setting('search_path')").fetchone()[0]
    assert split_search_path(text) == (('we,ird.d"b', "s.,x"),)


def test_case_is_ascii_case_as_in_the_database():
    assert fold("AbÄ") == "abÄ"
    assert case_clashes(["a", "b", "A", "b"]) == ["a", "A", "b", "b"]
    assert case_clashes(["ä", "Ä"]) == []


def test_near_matches_and_short_messages():
    assert near_matches("adlut", ["adult", "zebra"]) == ["adult"]
    assert shorten("x" * 300).endswith("...") and len(shorten("x" * 300)) == 203
