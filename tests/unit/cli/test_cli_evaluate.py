"""``dpsyn evaluate``: the private page, the summary, JSON, and what it refuses."""

import json
import stat

import duckdb
import pytest
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.cli.main import app
from dpsyn_sql.evaluation import learning
from dpsyn_sql.evaluation.page import PRIVATE


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("w.duckdb") as con:
        for name, apart in (("real", 0), ("made", 1), ("held", 2)):
            con.execute(
                f"CREATE TABLE {name} AS SELECT i % 7 AS \"n, m\", (i + {apart}) % 3 AS lat, 'x' || (i % 4) AS word "
                "FROM range(100) r(i)"
            )
            con.execute(f"COPY {name} TO '{name}.parquet'")
        con.execute("COPY (FROM made LIMIT 0) TO 'empty.parquet'")
        con.execute("COPY (SELECT 1 AS other) TO 'others.parquet'")
    (tmp_path / "out").mkdir()
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_a_summary_is_printed_without_into(folder):
    done = run("real.parquet", "made.parquet", "--places", "lat")
    assert done.exit_code == 0
    assert done.stdout.startswith(PRIVATE)
    assert "Places." in done.stdout
    assert "it needs --holdout" in done.stdout
    assert sorted(path.name for path in folder.glob("*private*")) == []


@pytest.mark.parametrize(
    ("into", "made"),
    [
        ("e", "e.private.html"),
        ("e.html", "e.private.html"),
        ("out/e.private.json",) * 2,
        ("e.json", "e.private.json"),
    ],
)
def test_a_private_file_is_written(folder, into, made):
    done = run(
        "real", "made", "-d", "w.duckdb", "--holdout", "held", "--into", into, "--places", '"n, m",lat'
    )
    assert done.exit_code == 0, done.output
    assert f"Wrote {folder / made}: PRIVATE" in done.stdout
    assert stat.S_IMODE((folder / made).stat().st_mode) == 0o600
    assert "no release in the database" in done.stdout
    again = run("real", "made", "-d", "w.duckdb", "--into", into)
    assert again.exit_code == 2
    assert "exists already" in again.stderr


def test_quiet_says_nothing_and_json_begins_with_the_mark(folder):
    done = run("real.parquet", "made.parquet", "-q", "--into", "e")
    assert (done.exit_code, done.output) == (0, "")
    done = run("real.parquet", "made.parquet", "--json", "--never", "lat > 1")
    found = json.loads(done.stdout)
    assert next(iter(found.items())) == ("PRIVATE", PRIVATE)
    assert found["file"] is None
    assert {"columns", "marginals", "pairs", "conditions"} <= {*found["tables"]}
    whole = dpsyn_sql.evaluate(None, "real.parquet", "made.parquet", never=["lat > 1"])
    assert found["tables"] == whole.to_dict()["tables"]


WRONG = {
    "a missing file": (("real.parquet", "none.parquet"), "none.parquet"),
    "other columns": (("real.parquet", "others.parquet"), "no column in common"),
    "an empty table": (("real.parquet", "empty.parquet"), "has no rows"),
    "one table twice": (("real.parquet", "real.parquet"), "same table"),
    "no target": (("real.parquet", "made.parquet", "--target", "none"), "--target 'none' is no column"),
    "no place": (("real.parquet", "made.parquet", "--places", "word"), "no column of numbers"),
    "a folder": (("real.parquet", "made.parquet", "--into", "out"), "is a folder"),
    "no folder": (("real.parquet", "made.parquet", "--into", "gone/e"), "does not exist"),
    "a seed": (("real.parquet", "made.parquet", "--seed", "-1"), "--seed"),
    "no database": (("real", "made", "-d", "none.duckdb"), "no database file"),
    "no unit": (("real.parquet", "made.parquet", "--unit", "none"), "--unit 'none' is no column"),
    "an order without a unit": (("real.parquet", "made.parquet", "--order", "lat"), "give --unit too"),
    "an order of words": (
        ("real.parquet", "made.parquet", "--unit", "lat", "--order", "word"),
        "--order 'word' is no column of numbers",
    ),
    "a condition": (("real.parquet", "made.parquet", "--never", "nothing > 1"), "nothing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_one_line(folder, case):
    arguments, told = WRONG[case]
    before = sorted(folder.rglob("*"))
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert told in done.stderr
    assert sorted(folder.rglob("*")) == before


def test_rows_of_a_unit_are_compared(folder):
    done = run("real.parquet", "made.parquet", "--unit", "word", "--order", "lat", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["tables"]
    (link,) = found["links"]
    assert (link["of"], link["rows_above_real"], link["children_real"]) == ("word", 4, 25)
    assert link["wait_real"] is not None
    assert [line["column"] for line in found["relative_columns"]] == ["n, m", "lat"]
    assert len(found["sequences"]) == 2


def test_without_scikit_learn_the_command_is_named(folder, monkeypatch):
    monkeypatch.setattr(learning, "find_spec", lambda name: None)
    done = run("real.parquet", "made.parquet", "--target", "word")
    assert done.exit_code == 2
    assert "--target 'word' needs scikit-learn: pip install 'dpsyn_sql[ml]'" in done.stderr


def test_a_place_of_public_output_is_refused_before_anything_is_read(folder):
    (folder / "out" / "s.parquet.dpsyn.duckdb").write_bytes(b"")
    done = run("none.parquet", "none.parquet", "--into", "out/e")
    assert done.exit_code == 2
    assert "holds public output" in done.stderr


def test_a_database_is_compared_with_another(folder):
    with duckdb.connect("shop.duckdb") as con, duckdb.connect("made.duckdb") as other:
        for one in (con, other):
            one.execute("CREATE TABLE a AS SELECT range AS a, range % 3 AS x FROM range(30)")
            one.execute("CREATE TABLE b AS SELECT range % 30 AS a, range % 5 AS y FROM range(60)")
    (folder / "shop.yml").write_text("tables: {a: {key: a}, b: {parent: a, foreign_key: a}}")
    done = run("made.duckdb", "-d", "shop.duckdb", "--domain", "shop.yml", "--into", "out/x", "--json")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["tables"]["joined"][0] == {
        **said["tables"]["joined"][0],
        "above": "a",
        "below": "b",
        "pairs": 1,
        "tv_mean": 0,
    }
    assert (folder / "out" / "x.private.html").is_file()
    named = run("a", "b", "made.duckdb", "-d", "shop.duckdb", "--domain", "shop.yml", "--json")
    assert json.loads(named.stdout)["tables"] == said["tables"]
    done = run("a", "b", "made.duckdb", "-d", "shop.duckdb")
    assert done.exit_code != 0 and "One table has no parent" in done.stderr
    done = run("a", "b", "made.duckdb", "-d", "shop.duckdb", "--domain", "shop.yml", "--unit", "c.x")
    assert done.exit_code != 0 and "--unit 'c.x' names no table" in done.stderr
    done = run("made.duckdb", "-d", "shop.duckdb")
    assert done.exit_code != 0 and "Say which tables" in done.stderr
