"""The private page and document: the mark, escaping, and where they may be written."""

import json
import os
import re
import stat
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from unit.report.test_report_html import check_harmless

import dpsyn_sql
from dpsyn_sql.errors import InputError
from dpsyn_sql.evaluation.evaluating import evaluate
from dpsyn_sql.evaluation.page import PRIVATE, SHOWN
from dpsyn_sql.evaluation.result import Evaluation, private_name

EVIL = "<script>alert(1)</script>&\"'\x1b[31m\u202e"


def evaluation(rows=3):
    evil = pd.DataFrame(
        {EVIL: [EVIL] * rows, "tv": np.linspace(0, 1, rows), "n": range(rows), "none": [None] * rows}
    )
    efficacy = pd.DataFrame(
        {"learner": [EVIL, "svm"], "learnt_from": ["synthetic", "real"], "auc": [0.7, np.nan], "r2": np.nan}
    )
    columns = pd.DataFrame({"column": [EVIL], "tv": [0.25], "ks": [np.inf]})
    tables = {"columns": columns, "worst": evil, "efficacy": efficacy, "clusters": evil.head(0)}
    return Evaluation(EVIL, f"{EVIL}.parquet", (10, 12_000), tables, (f"Note of {EVIL}",))


def read(text):
    """What a harmless page says."""
    return "".join(check_harmless(text).texts)


@pytest.fixture
def page(tmp_path):
    path = evaluation().report(tmp_path / "e.private.html")
    assert path == tmp_path / "e.private.html"
    return path.read_text(encoding="utf-8")


def test_a_page_shows_names_and_values_as_text(page):
    assert "<script>alert(1)</script>&\"'\\x1b[31m\\u202e" in read(page)
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_the_mark_is_above_the_page_in_its_title_and_on_every_printed_page(page):
    assert page.index('class="banner"') < page.index("<h1>")
    assert re.search(r'<div class="banner" role="note">PRIVATE: ', page)
    assert "<title>PRIVATE: " in page
    assert read(page).count(PRIVATE) == 2
    printed = page[page.index("@media print") :]
    assert re.search(r"\.banner \{ display: table-header-group;", printed)


def test_long_tables_are_folded_and_nothing_is_lost(tmp_path):
    rows = SHOWN + 7
    text = evaluation(rows).report(tmp_path / "e.private.html").read_text(encoding="utf-8")
    assert "7 more rows" in text
    assert text.count("<bdi>&lt;script&gt;") >= rows


def test_a_document_has_the_mark_first_and_no_nan(tmp_path):
    path = evaluation().report(tmp_path / "e.private.json")
    text = path.read_text(encoding="ascii")
    assert text.startswith('{\n  "PRIVATE": "PRIVATE: made from exact counts')
    found = json.loads(text, parse_constant=pytest.fail)
    assert next(iter(found)) == "PRIVATE"
    assert found == evaluation().to_dict()
    assert found["rows"] == {"real": 10, "synthetic": 12_000}
    assert found["tables"]["columns"] == [{"column": EVIL, "tv": 0.25, "ks": None}]
    assert found["tables"]["worst"][0] == {EVIL: EVIL, "tv": 0.0, "n": 0, "none": None}
    assert found["tables"]["clusters"] == []


def test_a_summary_begins_with_the_mark_and_has_no_control_character():
    told = evaluation(20).summary()
    assert told.startswith(PRIVATE)
    assert "... and 10 more" in told
    assert "\x1b" not in told
    assert "12,000 synthetic rows" in told
    assert f"Note: Note of {EVIL}".replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") in told


def test_repr_shows_no_figure():
    assert "0.25" not in repr(evaluation())
    assert "private" in repr(evaluation())


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("a", "a.private.html"),
        ("a.html", "a.private.html"),
        ("a.json", "a.private.json"),
        ("a.private.json", "a.private.json"),
        ("x.y/a.b", "x.y/a.b.private.html"),
    ],
)
def test_a_private_name(given, made):
    assert private_name(given) == Path(made)


@pytest.mark.parametrize("name", ["e.html", "e.private.htm", "e.private", "private.html", "e.json", "e"])
def test_a_name_says_that_it_is_private(tmp_path, name):
    with pytest.raises(InputError, match="does not say that it is private"):
        evaluation().report(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["html", "json"])
def test_only_the_owner_reads_a_file_and_nothing_is_overwritten(tmp_path, ending):
    path = tmp_path / f"e.private.{ending}"
    old = os.umask(0)
    try:
        evaluation().report(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        evaluation().report(path)
    assert path.read_bytes() == before
    link = tmp_path / f"l.private.{ending}"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="exists already"):
        evaluation().report(link)


def test_what_is_no_place_for_a_file(tmp_path):
    with pytest.raises(
        InputError, match=r"is a folder: give the path of a file, such as .*evaluation.private.html"
    ):
        evaluation().report(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        evaluation().report(tmp_path / "none" / "e.private.html")
    for wrong in (" ", "a\x00.private.html", 3, None):
        with pytest.raises(InputError):
            evaluation().report(wrong)


DOMAIN = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}


@pytest.fixture
def warehouse(tmp_path):
    """The real rows, and folders with released output."""
    for name in ("file", "database", "mixed"):
        (tmp_path / name).mkdir()
    path = tmp_path / "mixed" / "w.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t AS SELECT i % 10 AS n FROM range(100) r(i)")
        common = {"domain": DOMAIN, "method": "independent", "ledger": tmp_path / "ledger"}
        dpsyn_sql.release(con, "t", into="s", **common)
        dpsyn_sql.release(con, "t", into=tmp_path / "file" / "s.csv", epsilon=2, **common)
        con.execute(f"ATTACH '{tmp_path / 'database' / 'public.duckdb'}' AS public")
        dpsyn_sql.release(con, "t", into="public.main.s", epsilon=3, **common)
    return tmp_path


@pytest.mark.parametrize(("folder", "named"), [("file", "s.csv.dpsyn.duckdb"), ("database", "public.duckdb")])
def test_a_folder_of_public_output_is_refused_and_another_one_named(warehouse, folder, named):
    place = warehouse / folder / "e.private.html"
    with pytest.raises(InputError) as refused:
        evaluation().report(place)
    told = str(refused.value)
    assert repr(named) in told
    assert repr(str(warehouse / "private" / "e.private.html")) in told
    assert not place.exists()
    (warehouse / "door").symlink_to(warehouse / folder)
    with pytest.raises(InputError, match="holds public output"):
        evaluation().report(warehouse / "door" / "e.private.html")


def test_a_folder_within_one_of_public_output_is_refused(warehouse):
    inside = warehouse / "file" / "deep" / "private"
    inside.mkdir(parents=True)
    with pytest.raises(InputError) as refused:
        evaluation().report(inside / "e.private.html")
    assert repr(str(warehouse / "file")) in str(refused.value)
    assert repr(str(warehouse / "private" / "e.private.html")) in str(refused.value)


def test_a_folder_where_a_ledger_knows_released_files_is_refused(warehouse, monkeypatch):
    """Also if nothing that is there now says so."""
    (warehouse / "csv").mkdir()
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT i % 10 AS n FROM range(100) r(i)) TO '{warehouse / 'mixed' / 't.parquet'}'"
        )
    asked = {"domain": DOMAIN, "method": "independent"}
    for name, ledger in (("beside.csv", None), ("elsewhere.csv", warehouse / "far.ledger")):
        into = warehouse / "csv" / name
        dpsyn_sql.release(None, warehouse / "mixed" / "t.parquet", into=into, ledger=ledger, **asked)
        into.unlink()
        into.with_name(f"{name}.dpsyn.duckdb").unlink()
    place = warehouse / "csv" / "e.private.html"
    with pytest.raises(InputError, match=r"holds public output \('beside.csv'\)"):
        replace(evaluation(), homes=(warehouse / "mixed",)).report(place)
    made = evaluate(None, f"{warehouse}/mixed/t.parquet", f"FROM '{warehouse}/mixed/t.parquet' WHERE n > 2")
    with pytest.raises(InputError, match="holds public output"):
        made.report(place)
    monkeypatch.setenv("DPSYN_LEDGER", str(warehouse / "far.ledger"))
    with pytest.raises(InputError, match=r"holds public output \('elsewhere.csv'\)"):
        evaluation().report(place)
    monkeypatch.delenv("DPSYN_LEDGER")
    assert evaluation().report(place).exists()  # nobody says which rows are real, so no ledger is known


def test_released_rows_without_their_model_are_public_output(warehouse):
    for name in ("rows", "real"):
        (warehouse / name).mkdir()
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 10 AS n, 'dpsyn_sql' AS dpsyn_sql FROM range(100) r(i)")
        con.execute(f"COPY t TO '{warehouse / 'real' / 't.parquet'}'")
        con.execute("ALTER TABLE t DROP dpsyn_sql")
        into = warehouse / "rows" / "s.parquet"
        dpsyn_sql.release(con, "t", into=into, domain=DOMAIN, method="independent", ledger=warehouse / "l2")
    (warehouse / "rows" / "s.parquet.dpsyn.duckdb").unlink()
    (warehouse / "real" / "short.parquet").write_bytes(b"PAR1")
    (warehouse / "real" / "broken.parquet").write_bytes(b"\xff\xff\xff\xffPAR1")
    with pytest.raises(InputError, match=r"holds public output \('s.parquet'\)"):
        evaluation().report(warehouse / "rows" / "e.private.html")
    assert evaluation().report(warehouse / "real" / "e.private.html").exists()


def test_a_folder_of_real_rows_is_no_public_place(warehouse):
    assert evaluation().report(warehouse / "mixed" / "e.private.html").exists()


def test_a_real_evaluation_of_hostile_names_becomes_a_page(tmp_path):
    with duckdb.connect() as con:
        quoted = EVIL.replace("\x1b", "").replace('"', '""')
        for name in ("real", "synthetic", "holdout"):
            con.execute(
                f'CREATE TABLE {name} AS SELECT i % 7 AS "{quoted}", \'<script>alert(2)</script>\' || (i % 3) AS "<b>", '
                f"(i % 5)::DOUBLE AS lat FROM range(60) r(i)"
            )
        made = evaluate(con, "real", "synthetic", "holdout", places=["lat"], never=["\"<b>\" = '<i>'"])
    seen = read(made.report(tmp_path / "e.private.html").read_text(encoding="utf-8"))
    assert "<b>" in seen and "<i>" in seen
    json.loads(made.report(tmp_path / "e.private.json").read_text(), parse_constant=pytest.fail)
