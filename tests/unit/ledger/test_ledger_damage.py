"""Whatever a file holds: a ledger is whole, or the error says that it cannot be used."""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from functools import partial

import pytest
from ledger_steps import key, resealed, run, tamper, text

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.cli.ledger import _account_line, _release_line
from dpsyn_sql.errors import LedgerDamaged, LedgerError, PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import MemoryLedger, SqliteLedger

FLIPS = 100


class Hasty(sqlite3.Connection):
    """Waits for no disk: these tests damage files themselves."""

    def execute(self, statement, *values):
        return super().execute(statement.replace("synchronous = FULL", "synchronous = OFF"), *values)


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Hasty))


COLUMNS = [
    (table, row[1], row[2])
    for table in ("record", "account", "source", "entry", "event", "answer", "publication")
    for row in MemoryLedger()._store._connection.execute(f"PRAGMA table_info({table})")
]


def show(ledger):
    overview = ledger.overview()
    return [*map(_account_line, overview.accounts), *map(_release_line, overview.releases)]


def released(ledger, name, version=None):
    with ledger.open_release(key(name, version=version), Budget("gdp", 10**12)) as entry:
        if entry.state == "debited":
            run(entry, questions=1 if name == "half" else 0)
        return entry.events, entry.measured_on


STEPS = {
    "verify": SqliteLedger.verify,
    "show": show,
    "look": lambda ledger: ledger.look(key(version="2026-11"), Budget("gdp", 5), ("adult_synthetic",)),
    "home": lambda ledger: ledger.home,
    "replay": lambda ledger: released(ledger, "adult", "2026-11"),
    "grant": lambda ledger: ledger.grant("people", 2, 1e-9),
    "release": lambda ledger: released(ledger, "late"),
}


def outcomes(path):
    """Each step is done, or ends in an error of the ledger; any other error ends the test."""
    ended = {}
    for name, step in STEPS.items():
        try:
            with closing(SqliteLedger(path)) as ledger:
                step(ledger)
            ended[name] = "done"
        except LedgerError as error:
            assert error.__context__ is None and error.__cause__ is None
            ended[name] = "damaged" if isinstance(error, LedgerDamaged) else "unusable"
    return ended


@pytest.mark.parametrize("seed", [1, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("bits", [1, 8])
def test_flipped_bits_and_bytes_anywhere_in_the_file(full, seed, bits):
    """A flip in a page that nothing uses, or in padding, leaves a whole ledger."""
    sound, chance, seen = full.read_bytes(), random.Random(seed), set()
    for _ in range(FLIPS if seed else 10 * FLIPS):
        content, place = bytearray(sound), chance.randrange(len(sound))
        content[place] ^= 1 << chance.randrange(8) if bits == 1 else chance.randrange(1, 256)
        full.with_name(f"{full.name}-journal").unlink(missing_ok=True)
        full.write_bytes(content)
        ended = outcomes(full)
        seen.add(ended["verify"])
        if ended["verify"] == "done":
            # By byte 18 SQLite may only read the file: a whole ledger, which takes nothing more.
            allowed = {"done", "unusable"} if place == 18 else {"done"}
            assert set(ended.values()) <= allowed, place
    assert {"done", "damaged"} <= seen


def strange(kind):
    """Values that a column of this kind cannot have been given."""
    common = ["x'ff00'", "1.5"]
    if kind == "INTEGER":
        return [*common, "'many'", "9223372036854775807", "-9223372036854775808", "CAST(x'ff' AS TEXT)"]
    broken = ["", "{", "null", "9" * 5000, "[" * 100_000, "-1"]
    return [*common, "CAST(x'c328' AS TEXT)", "CAST(x'eda080' AS TEXT)", *map(text, broken)]


@pytest.mark.slow
@pytest.mark.parametrize("table, column, kind", COLUMNS)
def test_strange_values_in_any_column(full, table, column, kind):
    """Invalid UTF-8, bytes where text belongs, NULL, huge numbers, broken JSON."""
    for number, value in enumerate(["NULL", *strange(kind)]):
        path = shutil.copy(full, full.with_name(f"copy{number}"))
        with closing(sqlite3.connect(path)) as con:
            ((rowid, before),) = con.execute(f"SELECT max(rowid), {column} FROM {table}").fetchall()
        if value == "NULL" and before is None:
            continue
        try:
            without_constraints(path, f"UPDATE {table} SET {column} = {value} WHERE rowid = {rowid}")
        except sqlite3.IntegrityError:
            assert "INTEGER PRIMARY KEY" in kind or column.endswith(("_id", "position"))
            continue
        assert outcomes(path)["verify"] == "damaged", value


def without_constraints(path, statement):
    """NOT NULL is taken out of the tables for one statement."""
    with closing(sqlite3.connect(path)) as con:
        tables = con.execute("SELECT sql, name FROM sqlite_master WHERE type = 'table'").fetchall()
    rewrite(path, [(sql.replace(" NOT NULL", ""), name) for sql, name in tables])
    try:
        tamper(path, statement)
    finally:
        rewrite(path, tables)


def rewrite(path, tables):
    with closing(sqlite3.connect(path)) as con, con:
        con.execute("PRAGMA synchronous = OFF")
        con.execute("PRAGMA writable_schema = ON")
        con.executemany("UPDATE sqlite_master SET sql = ? WHERE name = ?", tables)


EVENTS = [
    {"event": "gaussian", "sigma": -20.0, "l2_squared": 2},
    {"event": "gaussian", "sigma": 0, "l2_squared": 2},
    {"event": "gaussian", "sigma": 1e999, "l2_squared": 2},
    {"event": "gaussian", "sigma": 5e-324, "l2_squared": 10**300},
    {"event": "gaussian", "sigma": "20", "l2_squared": None},
    {"event": "gaussian"},
    {"event": "gaussian", "sigma": 20.0, "l2_squared": 2, "more": 1},
    {"event": "threshold", "sigma": 1e300, "keys_per_unit": 10**30, "threshold": 10**40},
    {"event": "tree", "scale": -1.0, "points_per_unit": 1},
    {"event": "unheard of", "sigma": 1.0},
    {"event": ["gaussian"]},
    {},
    [],
    "gaussian",
    None,
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_a_resealed_chain_with_an_event_that_cannot_be(full, event):
    event = json.dumps(event)
    tamper(full, f"UPDATE event SET event = {text(event)} WHERE entry_id = 4")

    def change(kind, body):
        said = json.loads(body)
        return (kind, json.dumps({**said, "event": event}) if kind == "event" else body)

    resealed(full, change)
    with closing(sqlite3.connect(full)) as con:
        con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert outcomes(full)["verify"] == "damaged"


@pytest.mark.parametrize(
    "kind, body",
    [
        ("unheard_of", "{}"),
        ("__class__", "{}"),
        ("debit", "{}"),
        ("debit", "[" * 100_000),
        ("debit", "9" * 5000),
        ("grant", '{"account": "people", "epsilon": "1e-999", "delta": "1e-900", "limit": [1, 1]}'),
        ("grant", '{"account": "people", "epsilon": {"a": 1}, "delta": [], "limit": 7}'),
        ("approximate", '{"account": null, "spent": null}'),
        ("event", '{"release": [1], "sequence": {}, "ordinal": null}'),
        ("source", "null"),
    ],
)
def test_a_resealed_chain_with_a_record_that_cannot_be(full, kind, body):
    resealed(full, lambda *said: (kind, body) if said[0] == "grant" else said)
    assert outcomes(full)["verify"] == "damaged"


@pytest.mark.parametrize("spent", ["spent_amount - 1", "0", "spent_amount + 1", "limit_amount"])
def test_a_debit_recounts_what_is_spent_and_charges_nothing_if_it_differs(full, spent):
    tamper(full, f"UPDATE account SET spent_amount = {spent} WHERE name = 'people'")
    with closing(SqliteLedger(full)) as ledger:
        before = ledger.overview()
        again = ledger.open_release(key("late"), Budget("gdp", 1))
        with pytest.raises(LedgerDamaged, match="Nothing was read or charged") as damaged, again:
            pass
        assert damaged.value.__context__ is None
        assert ledger.overview() == before


@pytest.mark.parametrize(
    "change", ["spent_amount = spent_amount - 1", "spent_delta = 1", "kind = 'pure'"], ids=str
)
def test_the_sum_of_an_account_that_became_approximate_is_recounted(full, change):
    """Its first release was pure and counts as rho = epsilon^2 / 2."""
    late = key("late", account="toy", source="toys")
    with closing(SqliteLedger(full)) as ledger, ledger.open_release(late, Budget.from_epsilon("0.1", 0)):
        pass
    tamper(full, f"UPDATE account SET {change} WHERE name = 'toy'")
    later = key("later", account="toy", source="toys")
    with closing(SqliteLedger(full)) as ledger:
        opened = ledger.open_release(later, Budget.from_epsilon("0.1", 0))
        with pytest.raises(LedgerDamaged, match="Nothing was read or charged"), opened:
            pass


def test_a_release_beside_the_account_is_recounted(full):
    """A debit that was taken out, or given to somebody else, leaves its sum behind."""
    tamper(full, "UPDATE entry SET account_id = 1 WHERE name = 'half'")
    with closing(SqliteLedger(full)) as ledger:
        for account, source in (("people", "main.adult"), ("toy", "toys")):
            opened = ledger.open_release(key("late", account=account, source=source), Budget("gdp", 1))
            with pytest.raises(LedgerDamaged, match="releases cost"), opened:
                pass


def test_a_refusal_is_not_blamed_on_the_caller_if_the_ledger_is_damaged(full):
    tamper(full, "UPDATE account SET limit_amount = spent_amount WHERE name = 'people'")
    with closing(SqliteLedger(full)) as ledger:
        late = ledger.open_release(key("late"), Budget("gdp", 10**12))
        with pytest.raises(LedgerDamaged, match="limit_amount"), late:
            pass


def test_a_refusal_of_a_whole_ledger_is_itself(full):
    with closing(SqliteLedger(full)) as ledger:
        late = ledger.open_release(key("late"), Budget("gdp", 10**14))
        with pytest.raises(PrivacyBudgetExceeded) as refused, late:
            pass
        assert refused.value.__context__ is None
