"""Every changed column, row or trigger is found, and the first broken record is named."""

import re
import shutil
import sqlite3
from contextlib import closing

import pytest
from ledger_steps import debit, key, resealed, run, tamper

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import DpsynError, LedgerDamaged
from dpsyn_sql.ledger.sqlite import MemoryLedger, SqliteLedger

COLUMNS = [
    (table, row[1])
    for table in ("record", "account", "source", "entry", "event", "answer", "publication")
    for row in MemoryLedger()._store._connection.execute(f"PRAGMA table_info({table})")
]


def problem_of(path, head=None):
    with closing(SqliteLedger(path)) as ledger, pytest.raises(LedgerDamaged) as damaged:
        ledger.verify(head)
    assert damaged.value.__context__ is None
    return damaged.value


def test_a_sound_ledger_gives_its_head(full):
    with closing(SqliteLedger(full)) as ledger:
        assert re.fullmatch("[0-9a-f]{64}", ledger.verify())
        kinds = {row["kind"] for row in ledger._store.all("all_records")}
    assert kinds == {
        *("ledger", "account", "unit", "source", "grant", "approximate"),
        *("debit", "event", "answer", "measured", "published", "moved", "stopped"),
    }


def changed(value):
    if isinstance(value, int):
        return str(value + 100)
    if isinstance(value, bytes):
        return f"x'{bytes([value[0] ^ 1]).hex()}{value[1:].hex()}'"
    return "'x'" if value is None else "'" + value.replace("'", "''") + "x'"


@pytest.mark.parametrize("table, column", COLUMNS)
def test_a_change_in_any_column_of_any_row_is_found(full, table, column):
    with closing(sqlite3.connect(full)) as con:
        rows = con.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert rows
    step = 5 if table == "record" else 1
    for number, (rowid, value) in enumerate(rows[::step]):
        copy = shutil.copy(full, full.with_name(f"copy{number}"))
        tamper(copy, f"UPDATE {table} SET {column} = {changed(value)} WHERE rowid = {rowid}")
        problem = problem_of(copy)
        if table == "record":
            assert problem.record == rowid


@pytest.mark.parametrize("table", sorted({table for table, _ in COLUMNS}))
def test_a_missing_row_is_found(full, table):
    tamper(full, f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
    problem_of(full)


def test_a_row_without_a_record_is_found(full):
    tamper(full, "INSERT INTO publication VALUES (1, 9, 'nowhere', 5)")
    assert "no record" in str(problem_of(full))
    tamper(full, "DELETE FROM publication WHERE ordinal = 9")
    with closing(SqliteLedger(full)) as ledger:
        ledger.verify()


@pytest.mark.parametrize("trigger", ["entry_kept", "account_forward", "record_stays"])
def test_a_removed_trigger_is_found(full, trigger):
    with closing(sqlite3.connect(full)) as con:
        con.execute(f"DROP TRIGGER {trigger}")
    assert "triggers" in str(problem_of(full))


def test_swapped_records_are_found(full):
    tamper(
        full,
        "UPDATE record SET position = -1 WHERE position = 3",
        "UPDATE record SET position = 3 WHERE position = 4",
        "UPDATE record SET position = 4 WHERE position = -1",
    )
    assert problem_of(full).record == 3


def test_a_lowered_debit_is_found_even_with_its_sum(full):
    tamper(
        full,
        "UPDATE entry SET amount = amount - 1 WHERE name = 'half'",
        "UPDATE account SET spent_amount = spent_amount - 1 WHERE name = 'people'",
    )
    assert "amount in the table entry" in str(problem_of(full))


def test_a_resealed_chain_cannot_hide_a_wrong_cost(full):
    """Recomputing all hashes does not help against recomputing all costs."""
    tamper(full, "UPDATE event SET amount = amount - 1 WHERE entry_id = 4")
    with closing(sqlite3.connect(full)) as con:
        amount = con.execute("SELECT amount FROM event WHERE entry_id = 4").fetchone()[0]
    lowered = f'"amount":{amount + 1}', f'"amount":{amount}'
    resealed(full, lambda kind, body: (kind, body.replace(*lowered) if kind == "event" else body))
    assert "event cost differs" in str(problem_of(full))


def test_a_head_kept_elsewhere_shows_a_restored_copy(full):
    with closing(SqliteLedger(full)) as ledger:
        old = ledger.verify()
    copy = shutil.copy(full, full.with_name("copy"))
    with closing(SqliteLedger(full)) as ledger:
        with ledger.open_release(key("late"), Budget("gdp", 1)) as entry:
            run(entry, questions=0)
        head = ledger.verify(old)  # an earlier head is still in the chain
        assert head != old and ledger.verify(head) == head
    assert head in str(problem_of(copy, head))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entry",
        "DELETE FROM record",
        "DELETE FROM account",
        "DELETE FROM source",
        "DELETE FROM event",
        "DELETE FROM answer",
        "DELETE FROM publication",
        "UPDATE record SET body = '{}'",
        "UPDATE account SET spent_amount = spent_amount - 1 WHERE name = 'people'",
        "UPDATE account SET spent_delta = spent_delta - 1",
        "UPDATE account SET spent_amount = limit_amount + 1 WHERE name = 'people'",
        "UPDATE account SET limit_amount = NULL, limit_delta = NULL WHERE name = 'people'",
        "UPDATE account SET limit_amount = 1 WHERE name = 'people'",
        "UPDATE account SET unit = 'other'",
        "UPDATE account SET name = 'other' WHERE account_id = 1",
        "UPDATE account SET kind = 'pure', spent_amount = 0",
        "UPDATE account SET shown_delta = '1'",
        "UPDATE source SET account_id = 1",
        "UPDATE entry SET amount = 0",
        "UPDATE entry SET state = 'debited'",
        "UPDATE entry SET state = 'published' WHERE name = 'half'",
        "UPDATE entry SET measured_on = '2000-01-01'",
        "UPDATE entry SET configuration = '{}', state = 'measured' WHERE name = 'half'",
        "UPDATE event SET amount = 0",
        "UPDATE answer SET content = x''",
        "UPDATE publication SET target = ''",
        "INSERT OR REPLACE INTO account (account_id, name, kind, shown_delta) VALUES (1, 'people', 'gdp', '1')",
        "INSERT OR REPLACE INTO entry SELECT * FROM entry WHERE entry_id = 1",
        "INSERT OR REPLACE INTO record SELECT * FROM record WHERE position = 2",
        "INSERT INTO record SELECT position + 100, kind, body, previous, 'x' FROM record LIMIT 1",
        "INSERT INTO event SELECT entry_id, 9, 0, event, amount * 2, delta FROM event",
    ],
)
def test_triggers_refuse_what_would_take_back_a_debit(full, statement):
    with closing(sqlite3.connect(full)) as con, pytest.raises(sqlite3.IntegrityError):
        con.execute(statement)
    with closing(SqliteLedger(full)) as ledger:
        ledger.verify()


def test_a_changed_answer_is_not_replayed(full):
    tamper(full, "UPDATE answer SET content = zeroblob(length(content)) WHERE sequence = 1")
    with closing(SqliteLedger(full)) as ledger:
        again = ledger.open_release(key(version="2026-11"), Budget("gdp", 1))
        with again as entry, pytest.raises(DpsynError, match="was changed"):
            run(entry)


def test_an_overspent_account_is_found_though_all_hashes_agree(path, monkeypatch):
    """As a ledger would look that was written by a version which forgot its limits."""
    with closing(SqliteLedger(path)) as ledger:
        ledger.grant("people", 1, 1e-9)
        with monkeypatch.context() as patched:
            patched.setattr("dpsyn_sql.accounting.account.Balance.admits", lambda *arguments: True)
            ledger._store._connection.execute("PRAGMA ignore_check_constraints = ON")
            debit(ledger, key(), Budget("gdp", 10**14))
    assert "overspent" in str(problem_of(path))
