"""The delta of a threshold: reserved within the debit, kept with the event, recomputed when checked."""

import json
import sqlite3
from contextlib import closing

import pytest
from ledger_steps import debit, key

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import ThresholdEvent, cost_units
from dpsyn_sql.errors import LedgerDamaged, PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import SqliteLedger

EVENT = ThresholdEvent(20.0, 2, 150)
DEBIT = Budget("gdp", 10**13, 2 * EVENT.delta_units - 1)


def charged(path):
    with closing(SqliteLedger(path)) as ledger, ledger.open_release(key(), DEBIT) as entry:
        entry.ask({"ask": 0}).charge(EVENT)
        yield ledger, entry


def test_a_second_threshold_exceeds_the_delta_of_the_debit(ledger):
    with ledger.open_release(key(), DEBIT) as entry:
        asked = entry.ask({"ask": 0})
        asked.charge(EVENT)
        with pytest.raises(PrivacyBudgetExceeded, match="threshold delta"):
            asked.charge(ThresholdEvent(20.0, 2, 150))
        assert entry.events == (EVENT,)


def test_an_account_holds_only_its_tenth_of_delta(ledger):
    ledger.grant("people", "1", "1e-9")
    whole = Budget.from_epsilon("1", "1e-9")
    debit(ledger, key("one"), Budget("gdp", 10**12, whole.delta))
    with pytest.raises(PrivacyBudgetExceeded):
        debit(ledger, key("two"), Budget("gdp", 10**12, 1))
    debit(ledger, key("three"), Budget("gdp", 10**12))


def test_verify_recomputes_the_delta(path, monkeypatch):
    for ledger, _ in charged(path):
        assert len(ledger.verify()) == 64
    with closing(sqlite3.connect(path)) as con:
        kept = con.execute("SELECT event, amount, delta FROM event").fetchone()
    assert json.loads(kept[0])["threshold"] == 150
    assert kept[1:] == (cost_units(EVENT, "gdp"), EVENT.delta_units)
    monkeypatch.setattr("dpsyn_sql.accounting.events.threshold_delta_units", lambda *what: 7)
    with closing(SqliteLedger(path)) as ledger, pytest.raises(LedgerDamaged, match="event cost differs"):
        ledger.verify()
