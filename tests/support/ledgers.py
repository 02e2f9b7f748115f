"""Ledgers in files: a grant, a move, and what is in them."""

from contextlib import closing

from dpsyn_sql.ledger.sqlite import SqliteLedger


def granted(path, account, epsilon="1", delta="1e-9"):
    """Set the limit of an account of a ledger, which is made if there is none."""
    with closing(SqliteLedger(path)) as ledger:
        return ledger.grant(account, epsilon, delta)


def moved_with_data(path):
    with closing(SqliteLedger(path)) as ledger:
        ledger.moved(with_data=True)


def overview(path):
    """Accounts and releases of a ledger that is there, after checking every record."""
    with closing(SqliteLedger(path, create=False)) as ledger:
        assert ledger.verify()
        return ledger.overview()
