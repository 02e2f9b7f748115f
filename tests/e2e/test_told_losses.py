"""A release says what it lost: once, everywhere the same, and by noisy answers alone."""

import json
import warnings

import duckdb
import pytest
from support.noise import cut_off
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.cli.main import app
from dpsyn_sql.ledger.sqlite import MemoryLedger

pytestmark = pytest.mark.slow

WRONG = {
    "columns": {
        "age": {"type": "numeric", "lower": 200, "upper": 300, "bins": 20},
        "sex": {"type": "categorical", "categories": ["male", "female"], "other": False},
        "city": {"type": "categorical", "categories": ["Rome", "Oslo"]},
        "code": {"type": "discover"},
    }
}
BOUNDS, LIST, OTHER, KEY = (
    "lowest range of 'age', 200 to 204",
    "'male' is the only value of 'sex'",
    "a value of 'city' that is not among its categories",
    "No value of 'code' is frequent enough",
)
TABLE = """
    SELECT
        (20 + i % 60)::INTEGER AS age,
        CASE WHEN i % 3 = 0 THEN 'f' ELSE 'm' END AS sex,
        'Bonn' AS city,
        'code ' || i AS code
    FROM range(5000) AS r(i)
"""


@pytest.fixture(scope="module", autouse=True)
def short_noise():
    """The category without rows stands out from the noise once in 740 times: never from this noise."""
    with pytest.MonkeyPatch.context() as patch:
        cut_off(patch)
        yield


@pytest.fixture(scope="module")
def made():
    with duckdb.connect() as con, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        con.execute(f"CREATE TABLE t AS {TABLE}")
        release = dpsyn_sql.release(con, "t", domain=WRONG, ledger=MemoryLedger(), epsilon=2)
        yield con, release, [str(one.message) for one in warned]


@pytest.mark.parametrize(("column", "text"), [("age", BOUNDS), ("sex", LIST), ("city", OTHER), ("code", KEY)])
def test_each_column_that_is_ruined_is_named_with_its_reason(made, column, text):
    _, release, _ = made
    (told,) = [one for one in release.certificate()["losses"]["columns"] if one["name"] == column]
    assert told["verdict"] == "do not use" and text in told["why"]
    frame = release.verdict
    assert list(frame[frame["column"] == column]["why"]) == [told["why"]]
    assert sum(told["why"] in line for line in release.summary().splitlines() if line.startswith("  ")) == 1


def test_one_warning_names_all_of_them_and_says_the_worst(made):
    _, release, warned = made
    for told in (warned, release.notes, release.certificate()["losses"]["warnings"]):
        (text,) = [one for one in told if one.startswith("Of 4 columns 0 are good, 4 not to be used")]
        assert sum(name in text for name in ("'age'", "'sex'", "'city'", "'code'")) >= 3
        assert any(reason in text for reason in (BOUNDS, LIST, OTHER, KEY))
    assert release.verdict["verdict"][0] == "do not use"


def test_the_stored_release_says_the_same(made):
    con, release, _ = made
    loaded = dpsyn_sql.load(con)
    assert loaded.certificate()["losses"] == release.certificate()["losses"]
    assert loaded.summary().splitlines()[1:] == release.summary().splitlines()[1:]
    rows = con.execute("FROM dpsyn_certificate('t_synthetic') WHERE section = 'losses'").fetchall()
    told = {fact: value for _, fact, value in rows}
    assert "not named (__other__)" in told["city"] and told["pairs measured"].isdigit()
    assert told["age"].startswith("do not use. ") and BOUNDS in told["age"]
    assert told["verdict on the table"] == "do not use"
    assert sum(fact == "warning" for _, fact, _ in rows) == len(release.certificate()["losses"]["warnings"])


def test_losses_are_a_function_of_the_answers(made):
    """The same answers with other rows of the source: a replay after every row has changed."""
    with duckdb.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger = MemoryLedger()
        con.execute(f"CREATE TABLE t AS {TABLE}")
        options = {"domain": WRONG, "ledger": ledger, "epsilon": 2, "replace": True}
        first = dpsyn_sql.release(con, "t", **options).certificate()
        con.execute("DELETE FROM t")
        assert dpsyn_sql.release(con, "t", **options).certificate() == first


@pytest.fixture
def source(tmp_path):
    duckdb.sql(TABLE).write_parquet(str(tmp_path / "t.parquet"))
    (tmp_path / "domain.yml").write_text(json.dumps(WRONG))
    return tmp_path


def run(folder, *options):
    call = ["release", str(folder / "t.parquet"), "--domain", str(folder / "domain.yml"), "-e", "2"]
    return CliRunner().invoke(app, [*call, "--into", str(folder / "o.parquet"), *options])


def test_the_command_says_it_once(source):
    found = run(source)
    assert found.exit_code == 0, found.output
    told = " ".join(found.stdout.replace("│", " ").split())
    assert told.count("do not use") == 4 and found.stderr.count("Of 4 columns 0 are good") == 1
    assert "why and what helps" in told and "Pairs of columns:" in found.stdout
    assert not run(source, "--quiet").output
    document = json.loads(run(source, "--json").stdout)
    told = [*document["notes"], *document["warnings"]]
    assert sum("Of 4 columns 0 are good" in text for text in told) == 1 and len(told) == len(set(told))
    assert {column["name"] for column in document["losses"]["columns"]} == {"age", "sex", "city", "code"}


def test_sql_says_it_once():
    with duckdb.connect() as con, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        con.execute(f"CREATE TABLE t AS {TABLE}")
        dpsyn_sql.attach(con)
        domain = json.dumps(WRONG).replace("'", "''")
        (notes,) = con.execute(
            f"SELECT notes FROM dpsyn_release('t', 'u', epsilon := 2, domain := '{domain}')"
        ).fetchone()
    assert sum("Of 4 columns 0 are good" in note for note in notes) == 1
    assert not [one for one in warned if "are good" in str(one.message)]


def test_what_is_constant_or_null_is_known():
    columns = "NULL::INTEGER AS a, NULL::VARCHAR AS b, NULL::DATE AS c, 7 AS d, 'x' AS e, true AS f"
    with duckdb.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(20000) AS r(i)")
        made = dpsyn_sql.release(con, "t", ledger=MemoryLedger(), epsilon=1)
    assert {one["verdict"] for one in made.certificate()["losses"]["columns"]} == {"good"}
