"""Steps that the ledger's tests share."""

import sqlite3
from contextlib import closing

import numpy as np

from dpsyn_sql.accounting.events import GaussianEvent
from dpsyn_sql.ledger.store import GENESIS, record_hash
from dpsyn_sql.planning.plan import ReleaseKey

EVENT = GaussianEvent(20.0, 2)  # rho = 0.0025
ANSWER = [np.arange(-3, 3, dtype=np.int64).reshape(2, 3), np.array([2**62, -(2**62)])]


def key(name="adult", *, account="people", version=None, source="main.adult", unit=None, **settings):
    return ReleaseKey(account, name, version, {"unit": unit, **settings}, (source,) if source else ())


def debit(ledger, which, budget, **more):
    """The entry of a release of which no question is asked."""
    with ledger.open_release(which, budget, **more) as entry:
        return entry


def run(entry, questions=2, into="adult_synthetic"):
    """What a release does with its entry; returns the noisy answers."""
    answers = []
    for number in range(questions):
        question = {"ask": "measure", "number": number, "sigma": 0.1}
        asked = entry.ask(question)
        if asked.stored is None:
            asked.charge(GaussianEvent(20.0 * questions**0.5, 2))
        answers.append(asked.stored or asked.store(ANSWER))
    entry.close_questions()
    entry.published(into, 7)
    return answers


def bytes_of(answers):
    return [table.tobytes() for answer in answers for table in answer]


def tamper(path, *statements):
    """What somebody with the file and no respect can do, triggers put back afterwards."""
    with closing(sqlite3.connect(path)) as con, con:
        triggers = con.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        con.execute("PRAGMA synchronous = OFF")  # a test need not wait for the disk
        con.execute("PRAGMA foreign_keys = OFF")
        con.execute("PRAGMA ignore_check_constraints = ON")
        for name, _ in triggers:
            con.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert con.execute(statement).rowcount != 0
        for _, text in triggers:
            con.execute(text)


def text(value):
    return "'" + value.replace("'", "''") + "'"


def resealed(path, change):
    """``change(kind, body)`` gives what a record says instead; all hashes are computed anew."""
    with closing(sqlite3.connect(path)) as con:
        rows = con.execute("SELECT position, kind, body FROM record ORDER BY position").fetchall()
    previous, updates = GENESIS, []
    for position, *said in rows:
        kind, body = change(*said)
        digest = record_hash(position, kind, body, previous)
        updates.append(
            f"UPDATE record SET kind = {text(kind)}, body = {text(body)}, previous = '{previous}', "
            f"hash = '{digest}' WHERE position = {position}"
        )
        previous = digest
    tamper(path, *updates)
