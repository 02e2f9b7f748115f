"""A connection for the laws of a module."""

import duckdb
import pytest
from laws.adapter import SETTINGS


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        connection.execute(SETTINGS)
        yield connection
