"""The session of one table that is compared with another."""

from contextlib import contextmanager

from dpsyn_sql.evaluation.tables import opened


@contextmanager
def opened_one(con, *tables, **options):
    """As ``opened``, of one table: its session."""
    with opened(con, *tables, **options) as compared:
        (session,) = compared.sessions.values()
        yield session
