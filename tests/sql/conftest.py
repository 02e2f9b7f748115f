"""A connection for the tests of a module."""

import duckdb
import pytest


@pytest.fixture(scope="module")
def con(request):
    """With what the module sets in ``SETTINGS``, as a caller may have."""
    with duckdb.connect() as connection:
        connection.execute(getattr(request.module, "SETTINGS", "SET threads = 2"))
        yield connection
