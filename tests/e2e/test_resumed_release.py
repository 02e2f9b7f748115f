"""A release that failed after its debit goes on under it once what failed is mended, in a later version too."""

from contextlib import closing

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.front import release as pipeline
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.report import certificate

DOMAIN = {
    "columns": {
        "n": {"type": "numeric", "edges": list(range(11))},
        "b": {"type": "categorical", "categories": [0, 1]},
    }
}


class Fault(Exception):
    """What the mended version does not have."""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "w.duckdb"
    with duckdb.connect(path) as con:
        con.execute(
            "CREATE TABLE t AS SELECT CAST(range % 10 AS INTEGER) AS n, range % 2 AS b FROM range(500)"
        )
    return path


def release(path):
    return dpsyn_sql.release(path, "t", domain=DOMAIN, method="adaptive", ledger=path.with_name("ledger"))


def records(path):
    with closing(SqliteLedger(path.with_name("ledger"))) as ledger:
        ledger.verify()
        (account,), entries = ledger.overview().accounts, ledger.overview().releases
        answers = {row["sequence"]: row["content"] for row in ledger._store.all("all_answers")}
        return account.spent, [(one.release_id, one.cost) for one in entries], answers


@pytest.mark.parametrize(
    ("owner", "step", "call"),
    [(LocalCurator, "ask", 3), (pipeline, "recoded", 1), (pipeline, "write_rows", 1)],
)
def test_the_same_call_goes_on_under_the_debit_of_a_failed_one(path, monkeypatch, owner, step, call):
    """Questions that were answered before the fault are matched and never asked again."""
    real, calls = getattr(owner, step), []

    def failing(*args, **kwargs):
        calls.append(step)
        if len(calls) == call:
            raise Fault
        return real(*args, **kwargs)

    with monkeypatch.context() as faulty:
        faulty.setattr(owner, step, failing)
        with pytest.raises(Fault):
            release(path)
    spent, entries, answers = records(path)
    assert len(entries) == 1 and answers
    monkeypatch.setattr(certificate, "_versions", lambda: {"dpsyn_sql": "9.9.9"})
    monkeypatch.setattr(dpsyn_sql, "__version__", "9.9.9")
    done = release(path)
    now_spent, now_entries, now_answers = records(path)
    assert (now_spent, now_entries) == (spent, entries) and done.id == entries[0][0]
    assert answers.items() <= now_answers.items()
    assert done.facts["versions"] == {"dpsyn_sql": "9.9.9"}
