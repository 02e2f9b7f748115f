"""A ledger in which another version of dpsyn_sql asked other questions of discovery: trees, in place of grids."""

from contextlib import closing

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.accounting.events import TreeEvent
from dpsyn_sql.book import opened_ledger
from dpsyn_sql.fit import denoise
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.preparation import prepared
from dpsyn_sql.request import Request

TREE = TreeEvent(1000.0, 1)
ASKED = {"ask": "tree", "column": "n", "sql_type": "INTEGER", "low": 0, "high": 1 << 32}
ANSWER = [np.array([0, 5, 9, 1 << 40], dtype=np.int64)]


@pytest.fixture
def con():
    with duckdb.connect() as made:
        made.execute("CREATE TABLE t AS SELECT (i % 10)::INTEGER AS n, i < 150 AS s FROM range(400) AS r(i)")
        yield made


def released(con, ledger, **options):
    return dpsyn_sql.release(con, "t", into="o", name="n", ledger=ledger, epsilon=2, **options)


def asked_before(con, ledger, *, measured):
    """The release as the other version debited it: its first question and, if ``measured``, its last."""
    request = Request("t", into="o", name="n", ledger=ledger, epsilon=2)
    with prepared(con, request) as job, opened_ledger(job.con, job.place) as accounts:
        with accounts.open_release(job.key, job.plan.budget) as entry:
            asked = entry.ask(ASKED)
            asked.charge(TREE)
            asked.store(ANSWER)
            if measured:
                entry.close_questions()
        return entry.release_id


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("measured", [True, False])
def test_it_is_shown_verified_and_summed_and_its_releases_are_refused_at_no_cost(con, tmp_path, measured):
    file = tmp_path / "ledger"
    number = asked_before(con, file, measured=measured)
    with closing(SqliteLedger(file, create=False)) as ledger:
        head, before = ledger.verify(), ledger.overview()
        assert before.releases[0].charged.amount >= before.accounts[0].spent.amount > 0
        assert [(one.release_id, one.name) for one in before.releases] == [(number, "n")]
    for options in ({}, {"new_debit": True}):
        with pytest.raises(dpsyn_sql.ReleaseChanged, match=f"{number} .* question 0 .* another version="):
            released(con, file, **options)
    assert "o" not in {name for (name,) in con.execute("SHOW TABLES").fetchall()}
    with closing(SqliteLedger(file, create=False)) as ledger:
        assert ledger.verify() == head and ledger.overview() == before
    again = released(con, file, version="2")
    assert not again.replayed and again.id != number
    with closing(SqliteLedger(file, create=False)) as ledger:
        ledger.verify()
        (account,) = ledger.overview().accounts
        assert account.epsilon > before.accounts[0].epsilon


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_release_over_other_working_bins_is_refused_at_no_cost(tmp_path, monkeypatch):
    """A column that is nearly always zero, once with few bins for its tail and once with the bins of this version."""
    ledger, spec = tmp_path / "ledger", {"n": {"type": "numeric", "lower": 0, "upper": 199, "bins": 200}}
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE t AS SELECT CASE WHEN i % 20 = 0 THEN i // 20 % 200 ELSE 0 END::INTEGER AS n, "
            "i % 20 = 0 AND i // 20 % 200 > 99 AS s, i % 20 = 0 AS zero FROM range(40000) AS r(i)"
        )

        def made(**options):
            return released(con, ledger, domain={"columns": spec}, method="adaptive", **options)

        with monkeypatch.context() as patch:
            patch.setattr(denoise, "_tail", lambda values, even: 1.0)
            first = made()
            assert made().replayed
        rows = con.execute("FROM o").fetchall()
        with closing(SqliteLedger(ledger, create=False)) as file:
            head, before = file.verify(), file.overview()
        for options in ({}, {"new_debit": True}):
            with pytest.raises(dpsyn_sql.ReleaseChanged, match=f"{first.id} .* another version="):
                made(**options)
        assert con.execute("FROM o").fetchall() == rows
        with closing(SqliteLedger(ledger, create=False)) as file:
            assert file.verify() == head and file.overview() == before
        again = made(version="2", replace=True)
        finest = [
            max(max(bins) for bins in table.maps if bins) for table in again.measurements if any(table.maps)
        ]
        coarse = [
            max(max(bins) for bins in table.maps if bins) for table in first.measurements if any(table.maps)
        ]
        assert max(finest) > max(coarse)
