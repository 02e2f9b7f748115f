"""A table whose column is named like the id of a person: every way in asks whom to protect before it charges."""

import warnings
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.cli.main import app
from dpsyn_sql.errors import DpsynError, InputError

pytestmark = pytest.mark.filterwarnings("ignore")

DOMAIN = {
    "columns": {
        "patient_id": {"type": "key"},
        "ward": {"type": "categorical", "categories": ["eye", "ear"], "other": False, "nullable": False},
    }
}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "w.duckdb"
    with duckdb.connect(str(found)) as con:
        con.execute(
            "CREATE TABLE visits AS SELECT i % 300 AS patient_id, CASE WHEN i % 3 = 0 THEN 'eye' ELSE 'ear' END "
            "AS ward FROM range(2000) t(i)"
        )
        con.execute("CREATE TABLE patients (patient_id INTEGER PRIMARY KEY, ward VARCHAR)")
        con.execute("INSERT INTO patients SELECT DISTINCT ON (patient_id) * FROM visits")
        con.execute(
            "CREATE TABLE states AS SELECT i % 50 AS state_id, i AS id, 'x' AS ward FROM range(100) t(i)"
        )
    return str(found)


@pytest.mark.parametrize(
    "options",
    [{}, {"domain": DOMAIN}, {"exclude": ["patient_id"]}, {"source": "SELECT patient_id, ward FROM visits"}],
    ids=["plain", "key", "left out", "query"],
)
def test_a_release_asks_whom_to_protect_and_charges_nothing(path, options):
    with pytest.raises(InputError) as caught:
        dpsyn_sql.release(path, **{"source": "visits", "into": "copy", **options})
    told = str(caught.value)
    assert told.startswith("unit= is not given, and column 'patient_id' says whose row it is")
    assert "Write unit='patient_id', with the most rows of one that count as most=" in told
    assert "or unit='row' if every person has one row" in told
    assert told.endswith("Nothing was read or charged.")
    assert not Path(f"{path}.dpsyn-ledger").exists()


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("visits", {"unit": "row"}),
        ("visits", {"unit": "ROW"}),
        ("visits", {"unit": "patient_id", "most": 7, "weights": False}),
        ("patients", {}),
        ("states", {}),
        ("SELECT ward FROM visits", {}),
    ],
)
def test_what_is_said_or_is_a_key_of_the_table_is_released(path, source, options):
    made = dpsyn_sql.release(path, source, into="copy", epsilon=5, **options)
    assert made.rows > 0


def test_a_plan_shows_what_a_release_would_refuse(path):
    found = dpsyn_sql.plan(path, "visits")
    assert "a release is refused: unit= is not given, and column 'patient_id'" in str(found)
    assert "a release is refused: unit= is not given" in found.obstacle
    stated = dpsyn_sql.plan(path, "visits", unit="row")
    assert stated.obstacle == "" and "one row, not one person" in str(stated)


def test_what_check_calls_serious_stands_in_the_plan_and_before_a_release(path):
    odd = {"columns": {"state_id": {"type": "numeric", "lower": 0, "upper": 49}}}
    told = (
        "column 'state_id': its name says that its numbers are ids or codes, but it is measured as an amount: "
        "values between those of the source are written; write type: key if it tells rows apart, or "
        "type: discover, as: categorical if it has few values"
    )
    assert told in dpsyn_sql.plan(path, "states", domain=odd).serious
    assert f"Serious     {told}" in str(dpsyn_sql.plan(path, "states", domain=odd))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dpsyn_sql.release(path, "states", domain=odd, into="copy", epsilon=5)
    assert [str(one.message) for one in caught].count(told) == 1


def test_the_command_speaks_of_its_option(path):
    out = CliRunner().invoke(app, ["release", "visits", "--database", path])
    assert out.exit_code == 2
    assert "--unit is not given, and column 'patient_id' says whose row it is" in out.stderr
    assert "--unit 'patient_id'" in out.stderr and "--unit 'row'" in out.stderr
    found = CliRunner().invoke(app, ["release", "visits", "--database", path, "--unit", "row"])
    assert found.exit_code == 0, found.stderr


def test_sql_asks_too(path):
    with duckdb.connect(path) as con:
        dpsyn_sql.attach(con)
        with pytest.raises(duckdb.Error, match="unit is not given, and column 'patient_id'"):
            con.execute("FROM dpsyn_release('visits', 'copy')").fetchall()
        con.execute("FROM dpsyn_release('visits', 'copy', unit := 'row')").fetchall()
        assert con.execute("SELECT count(*) FROM copy").fetchone()[0] > 0


@pytest.mark.parametrize(("stated", "result"), [("", "failed"), ("    unit: row\n", "released")])
def test_a_schedule_asks_too(path, tmp_path, stated, result):
    file = tmp_path / "due.yml"
    file.write_text(
        f"ledger: {tmp_path / 'own.ledger'}\nsources:\n  visits: {{database: {path}, table: visits}}\n"
        f"releases:\n  wards:\n    source: visits\n    output: copy\n    cadence: once\n{stated}"
    )
    out = CliRunner().invoke(app, ["run", str(file)])
    assert ("unit: is not given" in out.output) == (result == "failed"), out.output


def test_an_unknown_unit_stays_an_error(path):
    for wrong in ("", 3):
        with pytest.raises(DpsynError, match="unit="):
            dpsyn_sql.release(path, "visits", unit=wrong, most=1)
