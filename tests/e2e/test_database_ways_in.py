"""A database of tables from the command line, a schedule and SQL: the same release, one debit, keys that hold."""

import json
import re
import warnings
from contextlib import closing
from datetime import datetime
from pathlib import Path

import duckdb
import pytest
from support.commands import run
from support.example_shop import TABLES, counts, dangling, make_shop

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule import preview, status
from dpsyn_sql.schedule import run as run_schedule

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

DOMAIN = ("--domain", "shop.domain.yml")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The shop, made once."""
    folder = tmp_path_factory.mktemp("shop")
    make_shop(folder)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("shop.duckdb", "shop.domain.yml"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    return tmp_path


def charged(ledger="shop.duckdb.dpsyn-ledger"):
    """Name, version and account of each debit."""
    with closing(SqliteLedger(ledger, read_only=True)) as opened:
        opened.verify()
        found = opened.overview()
    return [(one.name, one.version) for one in found.releases], [one.unit for one in found.accounts]


def test_the_command_plans_releases_and_replays(folder):
    planned = run("plan", "shop.duckdb", *DOMAIN, "--into", "copy", "--json")
    assert planned.exit_code == 0, planned.output
    told = json.loads(planned.stdout)
    assert set(told["tables"]) == set(TABLES) and told["obstacle"] is None
    assert sum(one["share"] for one in told["tables"].values()) == pytest.approx(1, abs=1e-6)
    assert not (folder / "shop.duckdb.dpsyn-ledger").exists()

    asked = ("release", "shop.duckdb", *DOMAIN, "--into", "copy", "--certificate", "c.json")
    first = run(*asked)
    assert first.exit_code == 0, first.output
    assert "Wrote " in first.stdout and "  items: " in first.stdout
    assert "for each customers.customer_id with all rows that belong to it" in first.stdout
    rows = counts("shop.duckdb", "copy")
    with duckdb.connect("shop.duckdb") as con:
        assert dangling(con, "copy") == 0
    (folder / "c.json").unlink()
    again = run(*asked, "--json")
    assert again.exit_code == 0, again.output
    document = json.loads(again.stdout)
    assert document["replayed"] and document["privacy_unit"] == "customers.customer_id"
    assert {name: one["rows"] for name, one in document["tables"].items()} == rows
    assert json.loads((folder / "c.json").read_text())["guarantee"]["epsilon"] <= 1
    releases, units = charged()
    assert len(releases) == 1 and units == ["customer_id"]


def test_the_form_that_init_writes_names_keys_and_links(folder):
    shown = run("init", "shop.duckdb")
    assert shown.exit_code == 0, shown.output
    assert "parent: " in shown.stdout and "references: " in shown.stdout
    assert run("init", "shop.duckdb", "--into", "form.yml").exit_code == 0
    assert run("init", "shop.duckdb", "--into", "form.yml").exit_code == 2


@pytest.mark.parametrize("into", ["copy.duckdb", "copy/"])
def test_other_outputs_of_the_command(folder, into):
    done = run("release", "shop.duckdb", *DOMAIN, "--into", into, "--rows", "50", "-q")
    assert done.exit_code == 0, done.output
    if into == "copy.duckdb":
        assert counts(into)["customers"] == 50
        with duckdb.connect(into, read_only=True) as con:
            assert dangling(con, "main", "main.products") == 0
    else:
        names = {path.name for path in (folder / "copy").iterdir()}
        assert {f"{name}.parquet" for name in TABLES} <= names
        with duckdb.connect() as con:
            assert con.execute("SELECT count(*) FROM 'copy/customers.parquet'").fetchone() == (50,)


def test_refusals_charge_nothing(folder):
    for arguments, words in (
        (("--unit", "customers.nothing"), "nothing"),
        (("--table", "orders", "--unit", "customers.customer_id"), "customers"),
        (("--most", "orders=0"), "out of range"),
        (("--most", "order=3"), "order"),
    ):
        done = run("release", "shop.duckdb", *DOMAIN, "--into", "copy", *arguments)
        assert done.exit_code == 2 and words in done.output, done.output
        assert "True" not in done.output and "unit=" not in done.output
    nothing = run("release", "shop.duckdb", "--into", "copy", "--table", "customers", "--table", "orders")
    assert nothing.exit_code == 2 and "--unit" in nothing.output
    assert not (folder / "shop.duckdb.dpsyn-ledger").exists()


def test_one_table_of_a_file_is_released_as_a_table(folder):
    done = run("release", "shop.duckdb", "--into", "copy", "--table", "customers", "-q")
    assert done.exit_code == 0, done.output
    with duckdb.connect("shop.duckdb", read_only=True) as con:
        described = [con.execute(f"DESCRIBE {name}").fetchall() for name in ("customers", "copy")]
    assert [row[:2] for row in described[0]] == [row[:2] for row in described[1]]
    assert charged()[1] == ["row"]


SCHEDULE = """accounts: {people: {limit: {epsilon: 3}, per: {year: {epsilon: 1.6}}}}
sources:
  shop: {database: shop.duckdb, tables: [customers, orders, items], public_tables: [products], domain: shop.domain.yml}
releases:
  copy: {source: shop, output: "copied", cadence: once, unit: customers.customer_id, most: {orders: 8}, epsilon: 1}
"""


def test_a_schedule_releases_it_once_and_sees_when_a_table_is_gone(folder):
    (folder / "dpsyn.yml").write_text(SCHEDULE)
    (told,) = preview()
    assert (told.problem, told.reads) == ("", f"customers, orders, items of {folder / 'shop.duckdb'}")
    assert 0.9 < told.epsilon <= 1
    assert not (folder / "shop.duckdb.dpsyn-ledger").exists()
    done = run_schedule()
    assert [(str(one.item), one.result) for one in done.outcomes] == [("copy:once", "published")]
    assert done.outcomes[0].rows == sum(counts("shop.duckdb", "copied").values())
    assert run_schedule().outcomes == ()
    assert [one.state for one in status()] == ["published"]
    assert charged() == ([("copy", "once")], ["customer_id"])
    with duckdb.connect("shop.duckdb") as con:
        kept = con.execute("FROM copied.items ORDER BY ALL").fetchall()
        con.execute("DROP TABLE copied.items")
    assert [one.state for one in status()] == ["published, output gone"]
    (again,) = run_schedule(select=["copy:once"]).outcomes
    assert (again.result, again.charged) == ("published", 0)
    with duckdb.connect("shop.duckdb") as con:
        assert con.execute("FROM copied.items ORDER BY ALL").fetchall() == kept
    assert charged() == ([("copy", "once")], ["customer_id"])


def test_a_period_is_a_file_and_a_limit_stops_the_third(folder):
    (folder / "shop.duckdb").rename(folder / "shop_2026-01.duckdb")
    for month in ("02", "03"):
        (folder / f"shop_2026-{month}.duckdb").write_bytes((folder / "shop_2026-01.duckdb").read_bytes())
    text = SCHEDULE.replace("shop.duckdb,", "'shop_{period}.duckdb', account: people,")
    text = text.replace("cadence: once", "cadence: month, start: 2026-01-01").replace(
        "copied", "copy_{period}/"
    )
    (folder / "dpsyn.yml").write_text(f"ledger: l\n{text}")
    done = run_schedule(now=datetime(2026, 4, 1))
    assert [one.result for one in done.outcomes] == ["published", "published", "refused by budget"]
    assert sorted(path.name for path in folder.glob("copy_*") if path.is_dir()) == [
        "copy_2026-01",
        "copy_2026-02",
    ]


CALL = """dpsyn_release(['customers', 'orders', 'items'], 'copy', unit := 'customers.customer_id',
    public_tables := ['products'], most := {'orders': 8}, domain := 'shop.domain.yml')"""


@pytest.fixture
def con(folder):
    with duckdb.connect(folder / "shop.duckdb") as opened, warnings.catch_warnings():
        warnings.simplefilter("error")
        dpsyn_sql.attach(opened)
        yield opened


def rows_of(con, sql):
    found = con.execute(sql)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_sql_plans_releases_and_returns_what_stands(con):
    plan = con.execute(f"FROM {CALL.replace('dpsyn_release', 'dpsyn_plan')}").fetchall()
    assert plan[0][0].startswith("Writes") and any("orders" in line for (line,) in plan)
    (row,) = rows_of(con, f"FROM {CALL}")
    assert [one["table"] for one in row["tables"]] == list(TABLES) and not row["replayed"]
    assert dangling(con, "copy") == 0
    found = {one["table"]: one["rows"] for one in row["tables"]}
    assert found == {name: con.execute(f"SELECT count(*) FROM copy.{name}").fetchone()[0] for name in TABLES}
    (again,) = rows_of(con, f"FROM {CALL}")
    assert again["replayed"] and again["release_id"] == row["release_id"] and again["tables"] == row["tables"]
    assert "stands" in again["notes"][0]
    pair = con.execute(f"SELECT a.release_id = b.release_id FROM {CALL} AS a, {CALL} AS b").fetchall()
    assert pair == [(True,)]
    con.execute("DROP TABLE copy.items")
    (anew,) = rows_of(con, f"FROM {CALL}")
    assert anew["replayed"] and anew["tables"] == row["tables"] and "stands" not in anew["notes"][0]
    assert len(charged()[0]) == 1


def test_the_example_of_the_page_runs(con):
    page = Path(__file__).resolve().parents[2] / "docs" / "sql_release.md"
    found = re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    (example,) = [one for one in found if "dpsyn_release([" in "".join(one.split())]
    assert con.execute(example).fetchall() and len(charged()[0]) == 1


def test_a_query_of_sql_is_charged_for_one_release(con):
    con.execute("CREATE TABLE numbers AS SELECT i % 2 = 0 AS a FROM range(300) AS r(i)")
    both = f"SELECT release_id FROM {CALL} UNION ALL SELECT release_id FROM dpsyn_release('numbers', 'n2', method := 'independent')"
    with pytest.raises(duckdb.Error, match="charged for one release at most"):
        con.execute(both).fetchall()
    assert len(charged()[0]) == 1
    assert len(con.execute(both).fetchall()) == 2 and len(charged()[0]) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("dpsyn_release(['customers', 'orders'], 'copy')", "unit"),
        ("dpsyn_release(['customers', 'orders'], unit := 'nothing.id')", "nothing"),
        (
            "dpsyn_release(['customers', 'orders'], unit := 'customers.customer_id', most := {'orders': 0})",
            "most",
        ),
        ("dpsyn_release(['customers', 'orders'], unit := 'customers.customer_id', most := 'x')", "most := "),
        (
            "dpsyn_release(['customers', 'orders'], unit := 'customers.customer_id', domain := '{x')",
            "valid JSON",
        ),
    ],
)
def test_refusals_of_sql_are_one_line_and_charge_nothing(con, folder, call, words):
    with pytest.raises(duckdb.Error) as error:
        con.execute(f"FROM {call}").fetchall()
    assert words in str(error.value) and ".py" not in str(error.value)
    assert not (folder / "shop.duckdb.dpsyn-ledger").exists()
