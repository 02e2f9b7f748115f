"""What a release of a database asks at the door, and what it can no longer do after the last question."""

import json
from collections import Counter

import duckdb
import numpy as np
import pytest
from support.released_shop import SHOP, TABLES, WORDS, number, released

from dpsyn_sql.errors import InternalError
from dpsyn_sql.front import release as front
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.source.relation import WEIGHT
from dpsyn_sql.sqltext.fragments import Fragment

pytestmark = [pytest.mark.slow, pytest.mark.required]

EVENT = ("event", "l2_squared", "sigma", "lattice")


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(SHOP)
        yield connection


def told(events):
    """How often each event is there."""
    return Counter(tuple(one.get(name) for name in EVENT) for one in events)


def test_each_event_is_of_one_table_and_counts_what_a_unit_weighs(con):
    ledger = MemoryLedger()
    result = released(con, ledger=ledger, epsilon=3)
    charged = [json.loads(row["event"]) for row in ledger._store.all("all_events")]
    own = {name: one.certificate()["mechanisms"] for name, one in result.tables.items()}
    assert told(charged) == sum(map(told, own.values()), Counter())
    assert told(charged) == told(result.certificate()["mechanisms"])
    assert all(one["l2_squared"] >= WEIGHT**2 for one in charged)
    for name, facts in own.items():
        steps = [one["step"] for one in facts]
        assert ("rows in all" in steps) == (name == "customers")
        assert ("pairs of rows of a unit" in steps) == (name != "customers")
        of_one_column = 1 if name == "items" else 2
        assert sum(step.startswith("one-way") for step in steps) == of_one_column
    (entry,) = ledger.overview().releases
    used = {name: one.certificate()["budget"]["used_units_of_1e-15"] for name, one in result.tables.items()}
    assert sum(used.values()) == sum(row["amount"] for row in ledger._store.all("all_events"))
    assert sum(used.values()) <= entry.cost.amount
    assert used["customers"] == pytest.approx(0.4 * entry.cost.amount, rel=0.01)


def test_after_the_last_question_the_source_is_out_of_reach(con, monkeypatch):
    ledger, write = MemoryLedger(), front.write_release

    def written(job, entry, *arguments):
        assert [one.state for one in ledger.overview().releases] == ["measured"]
        for table in ("customers", "orders", "items"):
            with pytest.raises(InternalError):
                job.session.engine.fetch(Fragment(f"FROM {job.tree[table].relation.sql}"), step="reading")
        assert number(con, "SELECT count(*) FROM duckdb_tables() WHERE temporary") == 0
        return write(job, entry, *arguments)

    monkeypatch.setattr(front, "write_release", written)
    assert released(con, ledger=ledger)["customers"].rows > 0


def test_discovery_counts_one_row_of_a_unit_in_every_table(con):
    """A word that one unit alone has, in all of its rows, is not found."""
    con.execute("INSERT INTO orders SELECT 1000 + i, 0, 'rare' FROM range(60) AS r(i)")
    con.execute("ALTER TABLE items ADD COLUMN word VARCHAR")
    con.execute("UPDATE items SET word = 'often'")
    con.execute("INSERT INTO items SELECT 1000 + i % 60, i // 60, NULL, 'rare' FROM range(600) AS r(i)")
    tables = {**TABLES, "orders": {"most": 64}, "items": {**TABLES["items"], "most": 16}}
    released(con, domain={"tables": tables}, epsilon=60)
    for column, table in (("channel", "orders"), ("word", "items")):
        found = con.execute(f"SELECT DISTINCT {column} FROM copy.{table}").fetchall()
        assert ("web",) in found or ("often",) in found
        assert ("rare",) not in found


def test_places_in_bins_are_drawn_for_each_table_by_itself(con):
    con.execute("CREATE TABLE people AS SELECT i AS id, 50.0::DOUBLE AS amount FROM range(300) AS r(i)")
    con.execute(
        "CREATE TABLE bills AS SELECT i AS id, i AS person, 50.0::DOUBLE AS amount FROM range(300) AS r(i)"
    )
    amount = {"amount": {"type": "numeric", "lower": 0, "upper": 100, "bins": 1}}
    tables = {
        "people": {"key": "id", "columns": amount},
        "bills": {"key": "id", "parent": "people", "foreign_key": "person", "most": 1, "columns": amount},
    }
    released(
        con, unit="people.id", source=[*tables], public_tables=[], domain={"tables": tables}, epsilon=100
    )
    pairs = con.execute(
        "SELECT p.amount, b.amount FROM copy.people AS p POSITIONAL JOIN copy.bills AS b"
    ).fetchall()
    one, other = np.array([pair for pair in pairs if None not in pair]).T
    assert one.size > 200
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.4
    keys = con.execute("SELECT p.id = b.id FROM copy.people AS p POSITIONAL JOIN copy.bills AS b").fetchall()
    assert sum(same for (same,) in keys if same is not None) < 30


def test_rows_below_follow_the_rows_right_above_them(con):
    """Each item has the channel of its own order, which differs from order to order of a customer."""
    con.execute("ALTER TABLE items ADD COLUMN way VARCHAR")
    con.execute("UPDATE items SET way = o.channel FROM orders AS o WHERE o.order_id = items.order_id")
    tables = {
        **TABLES,
        "items": {"most": 4, "columns": {**TABLES["items"]["columns"], "way": WORDS["channel"]}},
    }
    released(con, domain={"tables": tables}, epsilon=200)
    share = number(
        con,
        "SELECT count(*) FILTER (way IS NOT DISTINCT FROM channel) / count(*) FROM copy.items JOIN copy.orders USING (order_id)",
    )
    assert share > 0.9
