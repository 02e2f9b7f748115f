"""``dpsyn sample``, ``dpsyn marginal`` and ``dpsyn plot``: more of a stored release, for nothing."""

import io
import json

import duckdb
import pandas as pd
import pytest
from support.commands import run

import dpsyn_sql

DOMAIN = {
    "columns": {
        "estimate": {"type": "categorical", "categories": ["x", "y, z"], "other": False},
        "day": {"type": "temporal", "lower": "2020-01-01", "upper": "2020-12-31"},
        "price": {"type": "numeric", "lower": 0, "upper": 9},
    }
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A database and a file with releases; source and ledger are gone."""
    folder = tmp_path_factory.mktemp("made")
    with duckdb.connect(str(folder / "w.duckdb")) as con:
        con.execute(
            "CREATE TABLE t AS SELECT CASE i % 3 WHEN 0 THEN 'x' WHEN 1 THEN 'y, z' END AS estimate, "
            "DATE '2020-01-01' + (i % 300)::INTEGER AS day, (i % 10)::DECIMAL(4, 2) AS price FROM range(900) AS r(i)"
        )
        for into, ledger in (("one", "a"), (str(folder / "two.parquet"), "b")):
            dpsyn_sql.release(
                con, "t", into=into, epsilon=9, domain=DOMAIN, method="independent", ledger=folder / ledger
            )
        con.execute("DROP TABLE t")
    for ledger in ("a", "b"):
        (folder / ledger).unlink()
    return folder


@pytest.fixture(autouse=True)
def folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("w.duckdb", "two.parquet", "two.parquet.dpsyn.duckdb"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    return tmp_path


PLACES = [
    ("w.duckdb", "one"),
    pytest.param(("two.parquet", "two"), marks=pytest.mark.slow),
    pytest.param(("two.parquet.dpsyn.duckdb", "TWO"), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("place", PLACES)
def test_a_sample_is_that_of_load_wherever_it_goes(folder, place):
    wanted = dpsyn_sql.load(*place).sample(40, seed=7)
    before = sorted(path.name for path in folder.iterdir())
    told = run("sample", *place, "--rows", "40", "--seed", "7")
    assert told.exit_code == 0 and told.stderr == "", told.output
    assert sorted(path.name for path in folder.iterdir()) == before
    values = json.loads(run("sample", *place, "-n", "40", "--seed", "7", "--json").stdout)["values"]
    for ending in ("parquet", "csv", "csv.gz"):
        done = run("sample", *place, "--rows", "40", "--seed", "7", "--into", f"s.{ending}")
        assert done.exit_code == 0 and done.stdout == f"Wrote s.{ending}: 40 rows of {place[1]!r}\n", (
            done.output
        )
    with duckdb.connect() as con:
        for ending in ("parquet", "csv", "csv.gz"):
            found = con.execute(f"SELECT estimate, day::VARCHAR, price::DOUBLE FROM 's.{ending}'").fetchall()
            assert found == list(
                zip(
                    [None if pd.isna(value) else value for value in wanted["estimate"]],
                    wanted["day"].astype(str),
                    wanted["price"],
                    strict=True,
                )
            )
            assert [tuple(row.values()) for row in values] == found
        ((key, text),) = con.execute("SELECT key, value FROM parquet_kv_metadata('s.parquet')").fetchall()
        assert bytes(key) == b"dpsyn_sql" and bytes(text).startswith(b"Synthetic rows"), (key, text)
    printed = pd.read_csv(io.StringIO(told.stdout))
    assert list(printed["price"]) == list(wanted["price"]) and list(printed) == list(wanted)
    assert sorted({path.name for path in folder.iterdir()} - set(before)) == [
        "s.csv",
        "s.csv.gz",
        "s.parquet",
    ]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A database with a release of places."""
    file = tmp_path_factory.mktemp("places") / "p.duckdb"
    box = {"type": "point", "columns": {"lat": [0, 8], "lon": [0, 8]}}
    with duckdb.connect(str(file)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT (i % 7)::DOUBLE AS lat, (i % 5)::DOUBLE AS lon FROM range(900) AS r(i)"
        )
        dpsyn_sql.release(
            con, "t", into="o", epsilon=9, domain={"columns": {"place": box}}, ledger=file.parent / "l"
        )
        con.execute("DROP TABLE t")
    return file


def test_a_place_is_drawn_into_the_file_that_is_named(places, folder):
    pytest.importorskip("matplotlib")
    shown = run("plot", places, "o", "place", "--into", "map.svg", "--json")
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)
    assert (told["release"], told["file"], told["columns"]) == ("o", "map.svg", ["place"])
    assert (folder / "map.svg").read_text().startswith("<?xml")
    assert run("plot", places, "o", "lat", "lon", "--into", "map.png").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("o", "place", "--into", "map.txt"), "no ending of a picture: use .svg, .png, .pdf"),
        (("o", "lat", "x", "--into", "map.svg"), "this release has 'place', 'lat', 'lon'"),
        (("two", "lat", "--into", "map.svg"), "There is no release 'two'"),
    ],
)
def test_what_cannot_be_drawn_writes_nothing(places, folder, arguments, words):
    before = sorted(path.name for path in folder.iterdir())
    shown = run("plot", places, *arguments)
    assert shown.exit_code == 2 and words in " ".join(shown.stderr.split())
    assert sorted(path.name for path in folder.iterdir()) == before


def test_columns_that_are_no_point_are_not_drawn(folder):
    shown = run("plot", *PLACES[0], "price", "--into", "map.svg")
    assert shown.exit_code == 2 and "this release has no point" in " ".join(shown.stderr.split())


def test_a_marginal_has_estimate_noisy_error_and_basis():
    shown = run("marginal", *PLACES[0], "estimate")
    assert shown.exit_code == 0, shown.output
    names, *lines = shown.stdout.splitlines()
    assert names.split() == ["estimate", "estimate", "estimate_error", "noisy", "standard_error", "basis"]
    assert [line.split("  ")[0].strip() for line in lines] == ["x", "y, z"]
    table = dpsyn_sql.load(*PLACES[0]).marginal(["price", "estimate"])
    document = json.loads(run("marginal", *PLACES[0], "price", "estimate", "--json").stdout)
    assert document["columns"] == ["price", "estimate"] and len(document["cells"]) == len(table)
    for cell, row in zip(document["cells"], table.itertuples(index=False, name=None), strict=True):
        assert cell["values"] == {"price": row[0], "estimate": row[1]} and cell["estimate"] == row[2]
        assert cell["noisy"] is None and cell["standard_error"] is None and cell["basis"] == "modelled"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sample", "w.duckdb", "two", "-n", "2"), "There is no release 'two'"),
        (("sample", "nothing.duckdb", "one", "-n", "2"), "There is no file"),
        (("sample", "notes.txt", "one", "-n", "2"), "cannot be opened as a DuckDB database"),
        (("sample", "w.duckdb", "one", "-n", "-1"), "--rows -1 is out of range"),
        (("sample", "w.duckdb", "one", "-n", str(2**63)), "is out of range"),
        (("sample", "w.duckdb", "one", "-n", "2", "--seed", "-1"), "--seed -1 is out of range"),
        (("sample", "w.duckdb", "one", "-n", "2", "--into", "notes.txt"), "ends in .parquet, .csv"),
        (("sample", "w.duckdb", "one", "-n", "2", "--into", "two.parquet"), "choose another --into"),
        (
            ("sample", "w.duckdb", "one", "-n", "2", "--into", "no/x.csv"),
            "does not exist or cannot be written",
        ),
        (("sample", "w.duckdb", "one", "-n", "100001", "--json"), "at most 100000: write them with --into"),
        (("marginal", "w.duckdb", "one", "prize"), "There is no attribute 'prize'; did you mean 'price'?"),
        (("marginal", "w.duckdb", "one", "day", "day"), "each once"),
        (("marginal", "w.duckdb", "two", "day"), "There is no release 'two'"),
    ],
)
def test_wrong_calls_are_one_message_and_leave_nothing(folder, arguments, message):
    (folder / "notes.txt").write_text("mine\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run(*arguments)
    said = json.loads(result.stdout)["error"]["message"] if "--json" in arguments else result.stderr
    assert result.exit_code == 2 and message in said and "Traceback" not in result.output, result.output
    assert "--json" in arguments or (said.startswith("Error: ") and said.count("\n") == 1)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
