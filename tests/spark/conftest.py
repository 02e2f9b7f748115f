"""A database of its own for the tests of a module."""

import secrets

import pytest
from support.spark import files_under

from dpsyn_sql.engines.spark import session


@pytest.fixture(scope="session", autouse=True)
def few_parts():
    """Two parts of units instead of eight: a job of a small table takes as long as its tasks start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_PARTS", 1)
        yield


@pytest.fixture(scope="module")
def db(spark):
    """The name of an empty database of Spark's catalog, dropped at the end."""
    name = f"db_{secrets.token_hex(4)}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def private(tmp_path, monkeypatch):
    """Where codes are kept; nothing may stay."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert files_under(folder) == []
