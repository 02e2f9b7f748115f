"""A unique text planted in the source shows nowhere: output, ledger, errors, logs, temporary files."""

import json
import secrets
import subprocess
import sys

import duckdb
import pytest
from support.canaries import Watched, everything_of, holding
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.cli.main import app

COUNTED = "a" * 5  # a public category, to see that the search finds what is there


@pytest.fixture
def canary():
    return f"canary{secrets.token_hex(8)}"


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder for temporary files; whatever is left there is searched."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def silent(watched, canary, tmp_path, scratch, *sources):
    assert canary not in watched.said.lower()
    assert holding(tmp_path, canary, sources) == []
    assert list(scratch.iterdir()) == []


LABELS = {"type": "categorical", "categories": [COUNTED, "b"], "other": True}


def contents(path):
    with duckdb.connect() as con:
        return str(con.execute(f"DESCRIBE FROM '{path}'").fetchall()) + str(
            con.execute(f"FROM '{path}'").fetchall()
        )


@pytest.mark.parametrize("place", ["connection", "database"])
@pytest.mark.parametrize("into", ["o.csv", "o.parquet", "table"])
def test_text_outside_the_categories(tmp_path, scratch, canary, place, into):
    """Neither the values nor the labels of an ENUM that may have been made from them."""
    source, target = tmp_path / "w.duckdb", tmp_path / into
    con = duckdb.connect(str(source))
    con.execute(
        f"""CREATE TABLE t AS SELECT CASE WHEN i < 200 THEN '{canary}' ELSE '{COUNTED}' END AS v,
        (CASE WHEN i < 200 THEN '{canary}' ELSE 'b' END)::ENUM ('{canary}', 'b') AS e
        FROM range(1000) AS r(i)"""
    )
    if into == "table":
        con.execute(f"ATTACH '{tmp_path}/other.duckdb' AS other")
        target = "other.main.o"
    if place == "database":
        con.close()
        if into == "table":
            pytest.skip("a table goes into the database that was given, which holds the source")
    spec = {"columns": {"v": LABELS, "e": {**LABELS, "categories": ["b", "c"]}}}
    watched = Watched(
        lambda: dpsyn_sql.release(
            con if place == "connection" else source,
            "t",
            domain=spec,
            into=target,
            epsilon=20,
            method="independent",
        )
    )
    assert watched.error is None, watched.said
    if into == "table":
        con.execute("USE other")
        shown = str(con.execute("DESCRIBE o").fetchall()) + str(con.execute("FROM o").fetchall())
        con.execute("USE w")
        con.execute("DETACH other")
    else:
        shown = contents(target)
    con.close()
    assert canary not in shown and COUNTED in shown
    silent(watched, canary, tmp_path, scratch, "w.duckdb", "w.duckdb.wal")
    ledger = source.with_name("w.duckdb.dpsyn-ledger")
    assert ledger in holding(tmp_path, COUNTED)  # the search finds what is there


BROKEN_LINES = {
    "stray quote": b'"%s,3\nb,4\n',
    "text after a quote": b'"b"%s,3\n',
    "too many fields": b"b,1,2,3,%s,%s\n",
    "no unicode": b"\xff\xfe%s,\xc3\x28\n",
    "NUL": b"\x00%s,\x00\n",
    "too long": b"%s" + b"x" * 3_000_000 + b",3\n",
    "no number": b"b,%s\n",
    "padded": b"%s\n",
}


@pytest.mark.parametrize("line", BROKEN_LINES)
def test_lines_of_a_csv_file_that_do_not_parse(tmp_path, scratch, canary, line):
    path = tmp_path / "in.csv"
    broken = BROKEN_LINES[line].replace(b"%s", canary.encode())
    path.write_bytes(b"v,n\n" + f"{COUNTED},1\n".encode() * 300 + broken + b"b,2\n" * 300)
    spec = {"columns": {"v": LABELS, "n": {"type": "numeric", "lower": 0, "upper": 9}}}
    watched = Watched(lambda: dpsyn_sql.release(None, path, domain=spec, epsilon=20, method="independent"))
    silent(watched, canary, tmp_path, scratch, "in.csv")
    if watched.error is None:
        assert COUNTED in contents(tmp_path / "in_synthetic.parquet")
    else:
        refused = dpsyn_sql.errors.SourceError if line == "no unicode" else dpsyn_sql.errors.EngineFailure
        assert isinstance(watched.error, refused)


FAILING = {
    "cast": "CAST(v AS INTEGER)",
    "date": "strptime(v, '%Y')",
    "enum": "CAST(CAST(v AS ENUM ('aaaaa')) AS VARCHAR)",
    "arithmetic": "CAST(9223372036854775807 + length(v) AS VARCHAR)",
    "decimal": "CAST(CAST(v AS DECIMAL(3, 1)) AS VARCHAR)",
    "regex": "regexp_replace(v, '(' || v, 'x')",
    "error": "error(v)",
}


def broken_view(path, canary, expression):
    with duckdb.connect(str(path)) as con:
        con.execute(
            f"""CREATE TABLE people AS
            SELECT CASE WHEN i = 7 THEN '({canary}' ELSE '1' END AS v FROM range(100) AS r(i)"""
        )
        con.execute(f"CREATE VIEW broken AS SELECT {expression} AS n, v FROM people")


def domain_of(path):
    with duckdb.connect(str(path)) as con:
        kind = con.execute("DESCRIBE broken").fetchone()[1]
    one = LABELS
    if kind in ("INTEGER", "BIGINT"):
        one = {"type": "numeric", "lower": 0, "upper": 9}
    elif kind.startswith("TIMESTAMP"):
        one = {"type": "temporal", "lower": "2000-01-01", "upper": "2001-01-01"}
    return {"columns": {"n": one, "v": LABELS}}


@pytest.mark.parametrize("expression", FAILING)
@pytest.mark.parametrize(
    "place", ["connection", pytest.param("database", marks=[pytest.mark.slow, pytest.mark.required])]
)
def test_a_row_that_makes_a_statement_fail(tmp_path, scratch, canary, place, expression):
    path = tmp_path / "w.duckdb"
    broken_view(path, canary, FAILING[expression])
    spec = domain_of(path)

    def work():
        if place == "database":
            return dpsyn_sql.release(path, "broken", domain=spec, into=tmp_path / "o.parquet")
        with duckdb.connect(str(path)) as con:
            return dpsyn_sql.release(con, "broken", domain=spec, into=tmp_path / "o.parquet")

    watched = Watched(work)
    assert isinstance(watched.error, (dpsyn_sql.errors.EngineFailure, dpsyn_sql.errors.SourceError)), (
        watched.said
    )
    if expression in ("cast", "date", "decimal"):
        assert isinstance(watched.error, dpsyn_sql.errors.EngineFailure), watched.said
    assert watched.error.__cause__ is None and watched.error.__context__ is None
    assert not (tmp_path / "o.parquet").exists()
    silent(watched, canary, tmp_path, scratch, "w.duckdb", "w.duckdb.wal")


UNDECLARED = {
    "alone": "{enum}",
    "list": "[{enum}]",
    "struct": "{{'a': {enum}}}",
    "map": "MAP {{{enum}: 1}}",
    "union": "union_value(a := {enum})",
}


@pytest.mark.parametrize(
    "shape",
    [
        "alone",
        "struct",
        *(
            pytest.param(one, marks=[pytest.mark.slow, pytest.mark.required])
            for one in ("list", "map", "union")
        ),
    ],
)
@pytest.mark.parametrize("call", ["release", "plan", "template", "wrong", "unit"])
def test_labels_of_an_enum_without_a_name(tmp_path, scratch, canary, shape, call):
    """Such a type may have been made from the values: no message shows its labels."""
    con = duckdb.connect(str(tmp_path / "w.duckdb"))
    enum = f"'{canary}'::ENUM ('{canary}', 'b')"
    con.execute(f"CREATE TABLE t AS SELECT {UNDECLARED[shape].format(enum=enum)} AS e, true AS b")
    wrong = {"columns": {"e": {"type": "numeric", "lower": 0, "upper": 1}}}
    work = {
        "release": lambda: dpsyn_sql.release(con, "t"),
        "plan": lambda: dpsyn_sql.plan(con, "t").verbose(),
        "template": lambda: dpsyn_sql.init(con, "t"),
        "wrong": lambda: dpsyn_sql.release(con, "t", domain=wrong),
        "unit": lambda: dpsyn_sql.release(con, "t", unit="e", most=2, weights=False, into="o"),
    }[call]
    watched = Watched(work)
    if call == "wrong" or (call in ("release", "plan") and shape != "alone"):
        assert isinstance(watched.error, dpsyn_sql.errors.DomainError)
    con.close()
    silent(watched, canary, tmp_path, scratch, "w.duckdb", "w.duckdb.wal")


@pytest.mark.slow
@pytest.mark.required
def test_the_command_says_nothing_of_a_row(tmp_path, scratch, canary):
    path, domain = tmp_path / "w.duckdb", tmp_path / "domain.yml"
    broken_view(path, canary, FAILING["cast"])
    domain.write_text(json.dumps(domain_of(path)))
    into = ["--into", str(tmp_path / "o.parquet")]
    arguments = ["release", "broken", "--database", str(path), "--domain", str(domain), *into]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", "from dpsyn_sql.cli.main import app; app()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"TMPDIR": str(scratch), "PATH": "", "HOME": str(scratch)},
    )
    assert done.returncode == 1 and "Error: The database failed" in done.stderr
    assert canary not in done.stdout + done.stderr
    for more in (["ledger", "show"], ["ledger", "verify"]):
        result = CliRunner().invoke(app, [*more, f"{path}.dpsyn-ledger"])
        assert result.exit_code == 0 and canary not in result.output
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1 and canary not in result.output + everything_of(result.exception)
    assert holding(tmp_path, canary, ("w.duckdb", "w.duckdb.wal")) == []


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize(
    ("encrypted", "killed"),
    [(True, True), pytest.param(False, True, id="planted fault"), (True, False)],
)
def test_what_does_not_fit_in_memory(children, tmp_path, canary, encrypted, killed):
    """Long names are sorted in little memory; a killed process leaves what it had spilled."""
    source, scratch = tmp_path / "t.parquet", tmp_path / "scratch"
    scratch.mkdir()
    with duckdb.connect() as con:
        con.execute(
            f"""COPY (SELECT '{canary}' || '-' || repeat(i::VARCHAR, 8) AS person, (i % 10)::INTEGER AS n
            FROM range(1_000_000) AS r(i)) TO '{source}'"""
        )
    spec = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}
    job = {
        "con": None,
        "source": str(source),
        "options": {"domain": spec, "unit": "person", "most": 1, "method": "independent", "rows": 10},
        "scratch": str(scratch),
        "result": str(tmp_path / "result.json"),
        "log": str(tmp_path / "log"),
        "memory": "110MB",
        "encrypted": encrypted,
        "die_once_spilled": killed,
    }
    assert children(job) == [-9 if killed else 0], (tmp_path / "log").read_text()
    left = [path for path in scratch.rglob("*") if path.is_file()]
    if not killed:
        assert left == [] and list(scratch.iterdir()) == []
        assert "error" not in json.loads((tmp_path / "result.json").read_text())
    else:
        assert sum(path.stat().st_size for path in left) > 2**20
        assert all(path.stat().st_mode & 0o077 == 0 for path in scratch.iterdir())
    found = holding(tmp_path, canary, ("t.parquet",))
    assert (found == []) == encrypted
