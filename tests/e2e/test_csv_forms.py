"""CSV files in other encodings, with other delimiters, quotes and decimals: read as stated, or refused at no cost."""

import gzip
from datetime import date
from decimal import Decimal

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import InputError, ReleaseChanged, SourceError
from dpsyn_sql.source.csv_form import csv_form
from dpsyn_sql.sqltext.fragments import text_as

CANARY = "canary4711é"
TOWNS = ["Besançon", "Évreux", "Nîmes", "Paris"]
ROWS = [(TOWNS[i % 4], f"{1000 + i}{'.,'[i % 2]}{i % 100:02}", f"{i % 90}") for i in range(400)]


def text(delimiter=",", decimal=".", quote='"', end="\n"):
    lines = [delimiter.join(("commune", "revenu", "age"))]
    for town, number, age in ROWS:
        number = number.replace(",", ".").replace(".", decimal)
        lines.append(
            delimiter.join((town, f"{quote}{number}{quote}" if decimal == delimiter else number, age))
        )
    return end.join(lines) + end


FORMS = {
    "latin-1": (text(";", ",").encode("latin-1"), {"encoding": "Latin1", "decimal": ","}),
    "utf-8 with its mark": (b"\xef\xbb\xbf" + text(end="\r\n").encode(), {}),
    "utf-16": (text().encode("utf-16"), {"encoding": "UTF-16"}),
    "utf-16 without its mark": (text().encode("utf-16-le"), {"encoding": "utf16"}),
    "tab": (text("\t", ",").encode(), {"decimal": ",", "delimiter": "tab"}),
    "another delimiter": (text("#").encode(), {"delimiter": "#"}),
    "another quote": (text(",", ",", "'").encode(), {"decimal": ",", "quote": "'"}),
    "no quote": (text(";").replace("Paris", 'Paris"').encode(), {"quote": "", "decimal": "."}),
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_every_row_is_read_as_it_is_stated(tmp_path, name, zipped):
    data, stated = FORMS[name]
    path = tmp_path / ("t.csv.gz" if zipped else "t.csv")
    path.write_bytes(gzip.compress(data) if zipped else data)
    with open_source(None, path, form=csv_form(stated)) as session:
        assert [column.name for column in session.relation.columns] == ["commune", "revenu", "age"]
        session.refuse_undecodable()
        read = f"commune, {text_as('revenu', 'DECIMAL(9,2)', session.relation.decimal)} AS revenu, CAST(age AS INTEGER) AS age"
        found = session.engine.fetch(f"SELECT {read} FROM {session.relation.sql}", step="a test")
    paris = 'Paris"' if name == "no quote" else "Paris"
    rows = zip(found["commune"], [f"{value:.2f}" for value in found["revenu"]], found["age"], strict=True)
    expected = [
        (paris if town == "Paris" else town, f"{Decimal(number.replace(',', '.')):.2f}", int(age))
        for town, number, age in ROWS
    ]
    assert list(rows) == expected


@pytest.mark.filterwarnings("ignore")
def test_a_release_has_the_right_values_and_another_form_is_another_release(tmp_path):
    """Towns with accents, and money with a comma as a decimal; the ledger and the certificate know the form."""
    data, stated = FORMS["latin-1"]
    (tmp_path / "t.csv").write_bytes(data)
    asked = {"into": tmp_path / "o.parquet", "epsilon": 50, "ledger": tmp_path / "ledger"}
    made = dpsyn_sql.release(None, tmp_path / "t.csv", **asked, csv=stated)
    with duckdb.connect() as con:
        found = con.execute(f"SELECT DISTINCT commune FROM '{tmp_path}/o.parquet' ORDER BY 1").fetchall()
        middle, kind = con.execute(
            f"SELECT median(revenu), any_value(typeof(revenu)) FROM '{tmp_path}/o.parquet'"
        ).fetchone()
    assert [town for (town,) in found] == sorted(TOWNS)
    assert kind == "DECIMAL(18,2)" and 1100 < middle < 1300
    assert "encoding='latin-1', decimal=','" in " ".join(made.certificate()["public_facts"]["statements"])
    assert dpsyn_sql.release(None, tmp_path / "t.csv", **asked, csv=stated).replayed
    # Of a replay no row is read: whatever the file has become, its answers are stored.
    (tmp_path / "t.csv").write_bytes(b"commune;revenu;age\n\x80;1;1\n")
    assert dpsyn_sql.release(None, tmp_path / "t.csv", **asked, csv=stated).id == made.id
    with pytest.raises(ReleaseChanged):
        dpsyn_sql.release(None, tmp_path / "t.csv", **asked, csv={"encoding": "latin-1"}, replace=True)


REFUSED = {
    "latin-1 as utf-8": (f"a,b\n1,x\n2,{CANARY}\n".encode("latin-1"), {}, "t.csv' is not UTF-8. Give csv={'encoding': 'latin-1'}"),
    "windows as latin-1": (f"a,b\n1,{CANARY}€\n".encode("cp1252"), {"encoding": "latin-1"}, "is not latin-1.*WINDOWS-1252"),
    "half of a character": (f"a,b\n1,{CANARY}".encode()[:-1], {}, "is not UTF-8"),
    "half of a unit": (f"a,b\n1,{CANARY}\n".encode("utf-16-le")[:-1], {"encoding": "utf-16"}, "is not utf-16"),
    "utf-16, high byte first": ("a,b\n1,x\n".encode("utf-16-be"), {"encoding": "utf-16"}, "high byte first"),
    "utf-16 as utf-8": (f"a,b\n1,{CANARY}\n".encode("utf-16"), {}, "is UTF-16: give csv={'encoding': 'utf-16'}"),
    "utf-16 without its mark as utf-8": ("a,b\n1,x\n".encode("utf-16-le"), {}, "Is the file UTF-16"),
    "utf-8 as latin-1": (b"\xef\xbb\xbfa,b\n1,x\n", {"encoding": "latin-1"}, "leave out csv={'encoding': 'latin-1'}"),
    "a header in latin-1": ("é,b\n1,x\n".encode("latin-1"), {}, "header.*is not UTF-8. Give csv={'encoding': 'latin-1'}"),
    "another delimiter": (b"a,b\n1,x\n", {"delimiter": ";"}, "has ',' between its names, it seems, and not ';'"),
    "an encoding of an extension": (b"a,b\n1,x\n", {"encoding": "cp1252"}, "use one of utf-8, utf-16, latin-1"),
    "two delimiters": (b"a,b\n1,x\n", {"delimiter": ",;"}, "one character"),
    "a decimal": (b"a,b\n1,x\n", {"decimal": ";"}, "give '.' or ','"),
    "a quote": (b"a,b\n1,x\n", {"quote": "ab"}, "one character"),
    "one for both": (b"a,b\n1,x\n", {"quote": ",", "delimiter": ","}, "cannot both"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_not_as_stated_is_refused_before_the_debit(tmp_path, name):
    data, stated, message = REFUSED[name]
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        dpsyn_sql.release(None, tmp_path / "t.csv", into=tmp_path / "o.csv", csv=stated)
    assert "canary" not in str(caught.value) and caught.value.__context__ is None
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.filterwarnings("ignore")
def test_neither_a_plan_nor_a_domain_file_reads_a_row(tmp_path):
    (tmp_path / "t.csv").write_bytes("é;b\n1;ü\n".encode("latin-1") + b"\x80")
    assert "é" in dpsyn_sql.init(None, tmp_path / "t.csv", csv={"encoding": "latin-1"})
    assert (
        len(dpsyn_sql.suggest(None, tmp_path / "t.csv", csv={"encoding": "latin-1"}).domain["columns"]) == 2
    )
    assert (
        dpsyn_sql.plan(None, tmp_path / "t.csv", csv={"encoding": "latin-1"})
        .plan.source.relation.columns[0]
        .name
        == "é"
    )
    with pytest.raises(SourceError, match="is not latin-1"):
        dpsyn_sql.evaluate(None, f"FROM read_csv('{tmp_path}/t.csv', encoding = 'latin-1')", "SELECT 1 AS b")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "stated"), [("encoding", "latin-1"), ("delimiter", ";"), ("decimal", ","), ("quote", "'")]
)
def test_what_is_no_csv_file_has_no_form(tmp_path, name, stated):
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS SELECT 1 AS a; COPY t TO '{tmp_path}/t.parquet'")
        for source in ("t", "SELECT a FROM t", str(tmp_path / "t.parquet"), con.table("t").df()):
            asked = {"name": "n", "ledger": tmp_path / "ledger"}
            with pytest.raises(InputError, match="csv= says how a CSV file is written"):
                dpsyn_sql.release(con, source, **asked, csv={name: stated})
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_commas_are_told_before_the_debit(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1;x\n")
    with pytest.warns(UserWarning, match="';' between its fields.*csv={'decimal': ','}"):
        dpsyn_sql.plan(None, tmp_path / "t.csv")


# -- queries -----------------------------------------------------------------------------------------

TYPED = (
    "read_csv('{path}', encoding = 'latin-1', delim = ';', quote = '''', decimal_separator = ',', skip = 2, "
    "nullstr = ['NA', 'n/a'], dateformat = '%d/%m/%Y', header = true, types = {'n': 'DECIMAL(9,2)', 'd': 'DATE', 'i': 'INTEGER'})"
)
LINES = (
    "made by\na program\ntown;n;d;i\n'Nîmes; Gard';1,50;31/12/2024;7\nParis;1.234;2024-12-31;x\nNA;;n/a;NA\n"
)


@pytest.mark.parametrize("form", ["query", "view"])
def test_options_of_a_query_are_total_functions_of_a_line(tmp_path, form):
    """No line is left out for a value that is not of its type."""
    path = tmp_path / "t.csv"
    path.write_bytes(LINES.encode("latin-1"))
    query = f"SELECT * FROM {TYPED.replace('{path}', str(path))}"
    with duckdb.connect() as con:
        con.execute(f"CREATE VIEW v AS {query}")
        with open_source(con, query if form == "query" else "v") as session:
            session.refuse_undecodable()
            found = session.engine.fetch(f"FROM {session.relation.sql}", step="a test")
            assert [one.sql_type for one in session.relation.columns] == [
                "VARCHAR",
                "DECIMAL(9,2)",
                "DATE",
                "INTEGER",
            ]
            assert session.paths == (str(path),)
        path.write_bytes(LINES.encode("cp1252") + b"\x80;1;1;1\n")
        with open_source(con, "v") as session, pytest.raises(SourceError, match="is not latin-1"):
            session.refuse_undecodable()
    rows = [
        [None if cell is None or cell != cell else cell for cell in column.tolist()]
        for column in found.values()
    ]
    assert rows[0] == ["Nîmes; Gard", "Paris", None]
    assert [None if value is None else float(value) for value in rows[1]] == [1.5, None, None]
    assert [None if value is None else str(value)[:10] for value in rows[2]] == [
        str(date(2024, 12, 31)),
        None,
        None,
    ]
    assert rows[3] == [7, None, None]


NUMBERS = {
    "1,5": 1.5, " -0,25 ": -0.25, "7": 7.0, "1e3": 1000.0, "2,5E-1": 0.25, "+3,0": 3.0, "1.234": None, "1.234,5": None,
    "1,2,3": None, "x": None, "": None, "12,5 %": None, None: None,
}  # fmt: skip


def test_numbers_with_a_comma():
    read = text_as("t", "DOUBLE", ",")
    with duckdb.connect() as con:
        found = {
            value: con.execute(f"SELECT {read} FROM (SELECT ?::VARCHAR AS t)", [value]).fetchone()[0]
            for value in NUMBERS
        }
        days = con.execute(f"SELECT {text_as('t', 'DATE', ',')} FROM (SELECT '2024-12-31' AS t)").fetchone()
    assert found == NUMBERS and days == (date(2024, 12, 31),)


@pytest.mark.parametrize(
    "option", ["store_rejects", "union_by_name", "filename", "ignore_errors", "auto_detect"]
)
def test_an_option_that_is_not_listed_is_refused_whoever_answers_for_the_query(tmp_path, option):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for trusted in (False, True):
        with pytest.raises(SourceError, match=f"read_csv the option '{option}': allowed are"):
            open_source(None, f"FROM read_csv('{tmp_path}/t.csv', {option} = true)", trust_query=trusted)
