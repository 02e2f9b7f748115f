"""A backup is whole, new, and as good as the ledger; restoring it shows."""

import shutil
import stat
from contextlib import closing

import pytest
from ledger_steps import debit, key, tamper

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InputError, LedgerDamaged, LedgerError
from dpsyn_sql.ledger.sqlite import SqliteLedger

SMALL = Budget("gdp", 10)


def versions(path):
    with closing(SqliteLedger(path, read_only=True)) as ledger:
        return {one.version for one in ledger.overview().releases}


def test_a_backup_holds_what_was_debited_and_restores_at_its_place(path):
    copy = path.with_name("copy")
    with closing(SqliteLedger(path)) as ledger:
        debit(ledger, key(version="1"), SMALL)
        path.chmod(0o640)
        head = ledger.backup(copy)
        assert head == ledger.overview().head and stat.S_IMODE(copy.stat().st_mode) == 0o640
        debit(ledger, key(version="2"), SMALL)
        later = ledger.verify(head)
    assert sorted(one.name for one in path.parent.iterdir()) == ["copy", path.name]
    with closing(SqliteLedger(copy)) as elsewhere:
        assert elsewhere.verify() == head
        with pytest.raises(LedgerError, match="dpsyn ledger moved"):
            debit(elsewhere, key(version="3"), SMALL)
    shutil.copy(copy, path)
    assert versions(path) == {"1"}
    with closing(SqliteLedger(path)) as restored:
        with pytest.raises(LedgerDamaged, match="records were cut off"):
            restored.verify(later)
        assert not debit(restored, key(version="2"), SMALL).replayed


def test_a_backup_never_overwrites(path):
    there = path.with_name("there")
    there.write_text("a better copy")
    with closing(SqliteLedger(path)) as ledger:
        for place in (there, path):
            with pytest.raises(
                InputError, match=r"exists, and a backup never overwrites.*No backup was made"
            ):
                ledger.backup(place)
    assert there.read_text() == "a better copy"


def test_where_no_backup_can_be_made_nothing_is_left(path):
    said = r"missing/copy cannot be used: the folder.*No backup was made"
    with closing(SqliteLedger(path)) as ledger, pytest.raises(LedgerError, match=said):
        ledger.backup(path.with_name("missing") / "copy")
    tamper(path, "UPDATE record SET hash = 'x'")
    with closing(SqliteLedger(path)) as ledger, pytest.raises(LedgerDamaged):
        ledger.backup(path.with_name("copy"))
    assert [one.name for one in path.parent.iterdir()] == [path.name]
