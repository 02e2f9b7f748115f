"""suggest() and dpsyn check: what they say of real sources, what they print, and that they read no row."""

import json

import duckdb
import pytest
from support.released_shop import SHOP, TABLES, WORDS
from test_no_second_access import Recorder
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.cli.main import app
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import DomainError, InputError

ODD = "columns: {age: {type: numeric, lower: 0, upper: 90, nullable: true}, s: {type: categorical, categories: [a, A]}}"
FINE = "columns: {age: {type: numeric, lower: 0, upper: 90, nullable: true}}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.yml").write_text(ODD)
    (tmp_path / "fine.yml").write_text(FINE)
    with duckdb.connect("w.duckdb") as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS customer_id, i % 9 AS age, 'a' AS s FROM range(50) r(i)"
        )
        con.execute("CREATE VIEW seen AS FROM people; CREATE TABLE ages AS SELECT age FROM people")
        for kind in ("parquet", "csv"):
            con.execute(f"COPY people TO 'people.{kind}'")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["check", *arguments])


@pytest.mark.parametrize(
    "source", ["people", "seen", "SELECT * FROM people WHERE age > 3", "people.parquet", "people.csv"]
)
@pytest.mark.parametrize("domain", [None, "odd.yml"])
def test_no_statement_touches_a_row(folder, monkeypatch, source, domain):
    """No statement counts, orders or limits the source."""
    statements, begin = [], DuckDBEngine.__init__

    def recorded(self, connection, **options):
        begin(self, Recorder(connection, statements), **options)

    monkeypatch.setattr(DuckDBEngine, "__init__", recorded)
    advice = dpsyn_sql.suggest(None if "." in source else "w.duckdb", source, domain=domain)
    assert len(advice) and statements
    about = [sql for sql in statements if "people" in sql or "seen" in sql]
    assert about
    allowed = (
        "DESCRIBE",
        "ATTACH",
        "DETACH",
        "duckdb_",
        "json_serialize_sql",
        "LIMIT 0",
        "glob(",
        "parquet_schema",
        "allowed_paths",
    )
    assert [sql for sql in about if not any(word in sql for word in allowed)] == []


def test_a_row_that_cannot_be_read_is_never_met(folder):
    with duckdb.connect("w.duckdb") as con:
        con.execute(
            "CREATE VIEW traps AS SELECT CASE WHEN age >= 0 THEN error('read') ELSE 1 END AS trap FROM people"
        )
        with pytest.raises(duckdb.Error, match="read"):
            con.execute("FROM traps").fetchall()
        assert len(dpsyn_sql.suggest(con, "SELECT trap::INTEGER AS trap FROM traps", trust_query=True))
        assert len(dpsyn_sql.suggest(con, "traps", trust_query=True))


def test_a_catalog_alone_gives_findings_and_a_domain_that_a_release_takes(folder):
    with duckdb.connect("w.duckdb") as con:
        advice = dpsyn_sql.suggest(con, "people")
        assert advice.findings[0].column == "customer_id" and "unit='customer_id'" in advice.findings[0].cure
        assert advice.domain["columns"]["customer_id"] == {"type": "discover", "as": "categorical"}
        assert "to be discovered" in dpsyn_sql.plan(con, "people", domain=advice.domain).verbose()
        protected = dpsyn_sql.suggest(con, "people", unit="customer_id")
        assert "customer_id" not in {finding.column for finding in protected}
        assert "customer_id" not in protected.domain["columns"]


def test_a_file_alone_is_judged_without_a_source(folder):
    assert [f.column for f in dpsyn_sql.suggest(domain="odd.yml")] == ["s", "s"]
    assert not dpsyn_sql.suggest(domain="fine.yml")
    with pytest.raises(InputError, match="Nothing to judge"):
        dpsyn_sql.suggest()
    with pytest.raises(InputError, match="name the table too"):
        dpsyn_sql.suggest("w.duckdb", domain="odd.yml")
    with pytest.raises(DomainError, match="no such file"):
        dpsyn_sql.suggest(domain="none.yml")


def test_the_command_prints_a_table_a_document_and_an_exit_code(folder):
    fine = run("fine.yml", "ages", "-d", "w.duckdb")
    assert (fine.exit_code, fine.output) == (0, "Nothing is odd.\n")
    odd = run("odd.yml", "people", "-d", "w.duckdb")
    assert odd.exit_code == 1
    lines = odd.stdout.splitlines()
    assert lines[1].startswith("serious  customer_id") and "--unit" in lines[1]
    told = run("odd.yml", "people", "-d", "w.duckdb", "--json")
    assert told.exit_code == 1
    document = json.loads(told.stdout)
    assert set(document) == {"findings", "warnings"}
    assert set(document["findings"][0]) == {"column", "what", "cure", "severity"}
    assert len(document["findings"]) == len(lines) - 1
    assert run("odd.yml").exit_code == 1 and run("fine.yml", "--quiet").output == ""


def tables_of(**changed):
    tables = {**TABLES, **changed}
    return {"unit": "customers.customer_id", "public_tables": ["products"], "tables": tables}


@pytest.mark.parametrize("beside", [False, True])
def test_the_file_of_a_database_is_judged_table_by_table(beside, tmp_path):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(SHOP)
    place = (None, str(path)) if beside else (None, None)
    found = [(one.column, one.severity) for one in dpsyn_sql.suggest(*place, domain=tables_of())]
    assert found == ([("orders.channel", "hint")] if beside else [])
    wrong = {"type": "categorical", "categories": ["web", "Web "], "other": False}
    text = tables_of(orders={"columns": {"channel": wrong}, "most": 4})
    (first, *_) = dpsyn_sql.suggest(*place, domain=text)
    assert (first.column, first.severity) == ("orders.channel", "serious")
    assert "differ in case or spaces alone" in first.what
    first = next(
        iter(
            dpsyn_sql.suggest(*place, domain=tables_of(orders={"columns": {"channel": {"type": "nothing"}}}))
        )
    )
    assert (first.column, first.severity) == ("orders.channel", "fault") and "write type:" in first.what
    if beside:
        (first, *_) = dpsyn_sql.suggest(
            *place, domain=tables_of(orders={"columns": {"chanel": WORDS["channel"]}})
        )
        assert (first.column, first.severity) == ("orders", "fault") and "'chanel'" in first.what
        first = next(iter(dpsyn_sql.suggest(*place, domain={**tables_of(), "unit": "customers.nothing"})))
        assert (first.column, first.severity) == (None, "fault") and "nothing" in first.what
        with pytest.raises(InputError, match="give the database alone"):
            dpsyn_sql.suggest(str(path), "orders", domain=tables_of())
    assert not list(tmp_path.glob("*ledger*"))


def test_the_command_judges_the_file_of_a_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("shop.duckdb") as con:
        con.execute(SHOP)
    (tmp_path / "shop.yml").write_text(json.dumps(tables_of()))
    for words in (["shop.yml", "shop.duckdb"], ["shop.yml", "--database", "shop.duckdb"]):
        done = CliRunner().invoke(app, ["check", *words, "--json"])
        assert done.exit_code == 1 and '"orders.channel"' in done.stdout, done.output
    assert CliRunner().invoke(app, ["check", "shop.yml"]).exit_code == 0
