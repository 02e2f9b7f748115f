"""Releases of databases and their ledger: one debit, replays, accounts, limits."""

import sys
import warnings

import duckdb
import pytest
from support.ledgers import granted, overview
from support.released_shop import SHOP, TABLES, check_joins, number, released, rows_of

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import MemoryLedger

pytestmark = pytest.mark.slow

ACCOUNT = "main.customers#customer_id"
WRITTEN = ("customers", "orders", "items")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute(SHOP)
    return file


def shown(path):
    return overview(f"{path}.dpsyn-ledger")


def tables_at(path, into="copy"):
    with duckdb.connect(str(path), read_only=True) as con:
        return {name: rows_of(con, f"{into}.{name}") for name in WRITTEN}


def emptied(path):
    """The same tables without a row."""
    with duckdb.connect(str(path)) as con:
        for name in reversed(WRITTEN):
            con.execute(f"DELETE FROM {name}")


def single(path, **options):
    return dpsyn_sql.release(
        path,
        "orders",
        unit="customer_id",
        most=4,
        weights=False,
        domain={"columns": TABLES["orders"]["columns"]},
        exclude=["order_id"],
        **options,
    )


def noisy(result):
    return [[one.values.tobytes() for one in table.measurements] for table in result.tables.values()]


def test_one_entry_and_one_debit_as_of_a_single_release(path):
    first = released(path)
    (entry,) = shown(path).releases
    (account,) = shown(path).accounts
    assert entry.state == "published" and account.name == ACCOUNT and account.spent == entry.cost
    assert first.id == entry.release_id and not first.replayed
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE alone AS FROM customers")
    dpsyn_sql.release(
        path,
        "alone",
        domain={"columns": TABLES["customers"]["columns"]},
        unit="row",
        exclude=["customer_id"],
    )
    alone = next(one for one in shown(path).releases if one.release_id != first.id)
    assert alone.cost.amount == entry.cost.amount == first.facts["budget"]["reserved_units_of_1e-15"]


def test_the_same_call_replays_byte_for_byte_whatever_the_data_are_now(path, monkeypatch):
    first = released(path, epsilon=20)
    rows = tables_at(path)
    emptied(path)

    def read(*arguments, **options):
        raise AssertionError("a replay reads no row")

    monkeypatch.setattr("dpsyn_sql.engines.duckdb_engine.DuckDBEngine.keep", read)
    monkeypatch.setattr("dpsyn_sql.engines.duckdb_engine.DuckDBEngine.sums", read)
    again = released(path, epsilon=20)
    assert again.replayed and again.id == first.id and noisy(again) == noisy(first)
    assert again.notes[0].startswith("Replayed ") and "Nothing was charged" in again.notes[0]
    assert ", replayed)" in repr(again) and "replayed" not in repr(first)
    assert tables_at(path) == rows
    other = released(path, epsilon=20, replace=True, seed=7)
    assert other.replayed and tables_at(path) != rows
    assert len(shown(path).releases) == 1


def test_noise_is_drawn_anew_and_rows_by_their_seed(path):
    one, two = (released(path, into=f"c{n}", name=f"r{n}", seed=3) for n in (1, 2))
    assert noisy(one) != noisy(two) and tables_at(path, "c1") != tables_at(path, "c2")
    released(path, into="c3", name="r1", seed=3)
    assert tables_at(path, "c3") == tables_at(path, "c1")
    released(path, into="c4", name="r1", seed=4)
    assert tables_at(path, "c4") != tables_at(path, "c1")


def test_another_output_under_the_same_name_costs_nothing(path, tmp_path):
    first = released(path, name="shop")
    again = released(path, name="shop", into=tmp_path / "other.duckdb", rows=7, seed=3)
    assert again.replayed and again.id == first.id and again["customers"].rows == 7
    (only,) = shown(path).releases
    assert only.name == "shop" and len(only.published) == 2
    with pytest.raises(dpsyn_sql.errors.ReleaseExists, match=r"name='shop'|new_debit"):
        released(path, into="third")
    assert len(shown(path).releases) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 2},
        {"most": {"orders": 2}},
        {"exclude": ["orders.channel"]},
        {
            "source": ["customers", "orders"],
            "domain": {"tables": {name: TABLES[name] for name in WRITTEN[:2]}},
        },
        {"domain": {"tables": {**TABLES, "items": {"most": 4}}}},
    ],
)
def test_other_settings_under_one_name_are_refused_and_cost_nothing(path, changed):
    released(path, name="shop")
    with pytest.raises(dpsyn_sql.errors.ReleaseChanged):
        released(path, **{"name": "shop", "replace": True, **changed})
    assert len(shown(path).releases) == 1


def test_a_new_version_measures_anew_and_costs(path):
    released(path, version="1", epsilon=20)
    emptied(path)
    second = released(path, version="2", epsilon=20, replace=True)
    assert not second.replayed and second["customers"].rows < 50
    assert [entry.version for entry in shown(path).releases] == ["1", "2"]


@pytest.mark.parametrize("database_first", [True, False])
def test_a_table_released_alone_by_the_same_unit_shares_the_account(path, database_first):
    calls = [lambda: released(path), lambda: single(path)]
    for call in calls if database_first else calls[::-1]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    (account,) = shown(path).accounts
    assert len(shown(path).releases) == 2
    assert account.spent.amount == sum(one.cost.amount for one in shown(path).releases)


@pytest.mark.parametrize("table", ["orders", "items"])
def test_another_unit_of_a_table_is_refused(path, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"orders": ["order_id", "customer_id"], "items": ["order_id", "line"]}
        dpsyn_sql.release(path, table, unit="row", exclude=options[table])
    with pytest.raises(dpsyn_sql.errors.InputError, match="unit"):
        released(path)
    assert len(shown(path).releases) == 1
    assert not number_of_schemas(path)


def number_of_schemas(path):
    with duckdb.connect(str(path), read_only=True) as con:
        return number(con, "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'copy'")


def test_a_table_of_a_database_release_keeps_its_unit(path):
    released(path)
    with pytest.raises(dpsyn_sql.errors.InputError, match="unit"):
        dpsyn_sql.release(path, "items", exclude=["order_id", "line"])
    with pytest.raises(dpsyn_sql.errors.InputError, match="unit"):
        released(
            path,
            unit="orders.order_id",
            source=["orders", "items"],
            exclude=["orders.customer_id"],
            into="o",
            domain={"tables": {name: TABLES[name] for name in WRITTEN[1:]}},
        )
    assert len(shown(path).releases) == 1


def test_a_limit_is_kept_before_anything_is_read(path, monkeypatch):
    granted(f"{path}.dpsyn-ledger", ACCOUNT, "0.5")

    def read(*arguments, **options):
        raise AssertionError("refused calls read no row")

    monkeypatch.setattr("dpsyn_sql.engines.duckdb_engine.DuckDBEngine.keep", read)
    monkeypatch.setattr("dpsyn_sql.engines.duckdb_engine.DuckDBEngine.sums", read)
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded, match=r"(?s)left.*Nothing was read"):
        released(path)
    monkeypatch.undo()
    assert shown(path).releases == () and not number_of_schemas(path)
    assert not released(path, epsilon="0.5").replayed


def test_a_source_that_is_gone_is_a_clear_error_and_tables_without_rows_replay(path):
    first = released(path)
    rows = tables_at(path)
    with duckdb.connect(str(path)) as con:
        con.execute("DROP TABLE items")
    with pytest.raises(dpsyn_sql.errors.SourceError, match="items"):
        released(path)
    assert tables_at(path) == rows and len(shown(path).releases) == 1
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE items (order_id INTEGER REFERENCES orders (order_id), line SMALLINT, product_id "
            "SMALLINT REFERENCES products (product_id), PRIMARY KEY (order_id, line))"
        )
    assert released(path).id == first.id and tables_at(path) == rows


def test_a_replay_leaves_alone_what_it_did_not_write(path, tmp_path):
    outputs = ["copy", tmp_path / "o.duckdb", tmp_path / "folder"]
    for into in outputs:
        released(path, into=into, name="shop")
    with duckdb.connect(str(path)) as con:
        con.execute("DELETE FROM copy.items; INSERT INTO copy.items VALUES (1, 1, NULL)")
    with duckdb.connect(str(tmp_path / "o.duckdb")) as con:
        con.execute("CREATE OR REPLACE TABLE orders AS SELECT 42 AS mine")
    (tmp_path / "folder" / "orders.parquet").write_text("my notes")
    for into in outputs:
        with pytest.raises(dpsyn_sql.errors.PublishError, match="changed") as refused:
            released(path, into=into, name="shop")
        assert "replace=True" in str(refused.value)
    assert tables_at(path)["items"] == [(1, 1, None)]
    assert (tmp_path / "folder" / "orders.parquet").read_text() == "my notes"
    for into in outputs:
        assert released(path, into=into, name="shop", replace=True).replayed
    assert len(shown(path).releases) == 1


def test_every_table_has_its_own_questions_and_their_cost_adds_up(path):
    result = released(path, domain=None, source=[*WRITTEN], epsilon=3)
    facts = result.certificate()
    assert facts["guarantee"]["epsilon"] == pytest.approx(3, abs=1e-9)
    assert facts["guarantee"]["delta"] == pytest.approx(1e-9)
    (entry,) = shown(path).releases
    own = {name: one.certificate() for name, one in result.tables.items()}
    used = {name: one["budget"]["used_units_of_1e-15"] for name, one in own.items()}
    assert sum(used.values()) == facts["budget"]["used_units_of_1e-15"] <= entry.cost.amount
    assert all(0 < one < entry.cost.amount for one in used.values())
    columns = {"customers": "region", "orders": "channel", "items": "product_id"}
    for name, one in own.items():
        assert one["mechanisms"] and one["guarantee"]["epsilon"] == facts["guarantee"]["epsilon"]
        steps = [fact["step"] for fact in facts["mechanisms"] if fact["table"] == name]
        assert [fact["step"] for fact in one["mechanisms"]] == steps
        assert columns[name] in [fact["name"] for fact in one["public_facts"]["domain"]]
        assert ("pairs of rows of a unit" in steps) == (name != "customers")
    for note in [*result.notes, *facts["losses"]["warnings"]]:
        assert note.partition(":")[0] in WRITTEN or "account" in note.lower(), note


def test_a_note_that_fails_after_publishing_says_that_the_output_stands(path, monkeypatch):
    front = sys.modules["dpsyn_sql.front.publish"]
    original = front.SqliteEntry.published

    def failing(self, *arguments):
        raise dpsyn_sql.errors.LedgerError("the output was written, and the ledger is busy")

    monkeypatch.setattr("dpsyn_sql.ledger.entries.SqliteEntry.published", failing)
    with pytest.raises(dpsyn_sql.errors.LedgerError, match="output was written"):
        released(path)
    monkeypatch.setattr("dpsyn_sql.ledger.entries.SqliteEntry.published", original)
    rows = tables_at(path)
    assert released(path).replayed and tables_at(path) == rows
    assert shown(path).releases[0].state == "published"


def test_a_failure_in_the_private_part_keeps_the_debit_and_writes_nothing(monkeypatch):
    ledger = MemoryLedger()

    def broken(self, encoding, *, step):
        raise dpsyn_sql.errors.EngineFailure("encoding", "OutOfMemory", "SELECT")

    with duckdb.connect() as con:
        con.execute(SHOP)
        before = con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        monkeypatch.setattr("dpsyn_sql.engines.duckdb_engine.DuckDBEngine.keep", broken)
        with pytest.raises(dpsyn_sql.errors.EngineFailure):
            released(con, ledger=ledger)
        monkeypatch.undo()
        assert [entry.state for entry in ledger.overview().releases] == ["debited"]
        assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == before
        assert released(con, ledger=ledger).replayed
        check_joins(con)
