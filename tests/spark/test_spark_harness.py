"""The shared session is what the other tests rely on."""

import sys

import pytest
from support.spark import missing

pytestmark = pytest.mark.slow


def test_workers_are_this_interpreter_without_this_package(spark):
    def told(batches):
        import sys

        import pyarrow as pa

        try:
            import dpsyn_sql  # noqa: F401
        except ModuleNotFoundError as error:
            lacking = str(error)
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"executable": [sys.executable], "lacking": [lacking]})

    found = spark.range(2).repartition(2).mapInArrow(told, "executable string, lacking string").collect()
    assert {tuple(row) for row in found} == {(sys.executable, "workers have no dpsyn_sql")}


def test_without_java_the_reason_names_the_cure(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = missing()
    assert "openjdk-17-jre-headless" in reason or "pip install" in reason
