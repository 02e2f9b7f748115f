"""A text planted in a Spark source shows nowhere: outputs, messages, logs, kept files."""

import json
import secrets
import tempfile
from pathlib import Path

import duckdb
import pytest
from support.canaries import Watched, holding
from support.spark import files_under, table_of

import dpsyn_sql
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.source.relation import PrivacyUnit

pytestmark = pytest.mark.slow

COUNTED = "a" * 5  # a public category, to see that the search finds what is there
SPEC = {
    "columns": {
        "v": {"type": "categorical", "categories": [COUNTED, "b"], "other": True},
        "n": {"type": "numeric", "lower": 0, "upper": 9},
        "m": {"type": "numeric", "lower": 0, "upper": 9},
    }
}


@pytest.fixture
def canary():
    return f"canary{secrets.token_hex(8)}"


@pytest.fixture
def table(spark, db, tmp_path, canary):
    name = f"{db}.planted"
    rows = f"""SELECT CASE WHEN i < 200 THEN '{canary}' WHEN i % 2 = 0 THEN '{COUNTED}' ELSE 'b' END AS v,
        (i % 10)::INTEGER AS n, (i % 7)::INTEGER AS m, (i % 3 = 0) AS f, CASE WHEN i % 9 = 0 THEN '{canary}' ELSE '' END || (i % 300) AS who
        FROM range(1000) AS r(i)"""
    with duckdb.connect() as con:
        table_of(spark, name, con, rows, tmp_path / "source")
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_kept_codes_hold_no_text_and_go_when_they_are_dropped(spark, table, canary, tmp_path, scratch):
    domain = dpsyn_sql.plan(
        spark, table, domain=SPEC, exclude=("who",), into="o", ledger=tmp_path / "l"
    ).plan.domain
    queries = [MarginalQuery(("v",)), MarginalQuery(("v", "n"))]
    with open_source(spark, table) as session:
        unit = PrivacyUnit("who", 2)
        counter = SqlCounter(session.engine, session.relation.sql, domain, queries, unit=unit, most=0)
        counter.count(queries[:1])  # not all that can be asked: codes are kept
        assert any(path.suffix == ".parquet" for path in scratch.rglob("*"))
        assert holding(scratch, canary) == []
        counter.count(queries[1:])
        counter.close()
        assert not any("parquet" in one for one in files_under(scratch))
    assert list(scratch.iterdir()) == []


def test_a_release_of_units(spark, table, canary, tmp_path, scratch, capfd):
    output = tmp_path / "out"
    options = {
        "domain": SPEC,
        "unit": "who",
        "most": 2,
        "weights": False,
        "epsilon": 20,
        "method": "adaptive",
    }
    watched = Watched(
        lambda: dpsyn_sql.release(spark, table, into=str(output), ledger=tmp_path / "l", **options)
    )
    assert watched.error is None, watched.said
    shown = json.dumps([row.asDict() for row in spark.read.parquet(str(output)).collect()])
    assert COUNTED in shown and canary not in shown
    assert canary not in watched.said.lower() + "".join(capfd.readouterr())
    found = holding(tmp_path, canary)
    assert found and {path.parent for path in found} == {
        tmp_path / "source"
    }  # the search finds the source alone
    assert list(scratch.iterdir()) == []


FAILING = {
    "cast": "CAST(v AS INT)",
    "error": "raise_error(v)",
    "date": "year(to_date(v, 'yyyy'))",
    "index": "array(1)[length(v)]",
}


@pytest.mark.parametrize("expression", FAILING)
def test_an_expression_of_the_owner_that_fails(
    spark, db, table, canary, tmp_path, scratch, expression, capfd
):
    frame = spark.sql(f"SELECT CAST({FAILING[expression]} AS INT) AS n FROM {table}")
    spec = {"columns": {"n": SPEC["columns"]["n"]}}
    watched = Watched(
        lambda: dpsyn_sql.release(
            frame,
            "planted",
            domain=spec,
            into=f"{db}.o",
            ledger=tmp_path / "l",
            trust_query=True,
            account="a",
        )
    )
    assert isinstance(watched.error, dpsyn_sql.errors.EngineFailure | dpsyn_sql.errors.SourceError), (
        watched.said
    )
    assert watched.error.__cause__ is None and watched.error.__context__ is None
    assert canary not in watched.said.lower() + "".join(capfd.readouterr())
    assert {path.parent for path in holding(tmp_path, canary)} == {Path(tmp_path / "source")}
    assert list(scratch.iterdir()) == [] and not spark.catalog.tableExists(f"{db}.o")
