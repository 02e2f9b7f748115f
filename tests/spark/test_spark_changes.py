"""Files of a source that change while it is counted: nothing is made of their counts, and no value is shown."""

import duckdb
import pytest
from support.spark import counted, table_of

import dpsyn_sql
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.spark.engine import SparkEngine
from dpsyn_sql.planning.queries import MarginalQuery

pytestmark = pytest.mark.slow

SPEC = {
    "columns": {
        "v": {"type": "categorical", "categories": ["a", "b"]},
        "n": {"type": "numeric", "lower": 0, "upper": 9},
    }
}
ROWS = "SELECT ['a', 'b', 'canary'][i % 3 + 1] AS v, (i % 10)::INTEGER AS n FROM range(1000) AS r(i)"


def replaced(folder):
    duckdb.sql(
        f"COPY (SELECT v, 5::INTEGER AS n FROM ({ROWS}) LIMIT 100) TO '{folder}/part-1.parquet' (FORMAT parquet)"
    )


def removed(folder):
    (folder / "part-2.parquet").unlink()


CHANGES = {"replaced": replaced, "removed": removed}


@pytest.fixture
def table(spark, db, tmp_path):
    """Its name and the folder of its files."""
    name = f"{db}.changing"
    with duckdb.connect() as con:
        table_of(spark, name, con, ROWS, tmp_path / "t")
    yield name, tmp_path / "t"
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("change", CHANGES)
def test_a_release_stops_and_nothing_is_written(spark, table, db, tmp_path, monkeypatch, change, capfd):
    """The files change between the debit and the first pass over the rows."""
    name, folder = table
    changed = []

    def changing(method):
        def changing_first(self, *asked, **how):
            if not changed:
                changed.append(method)
                CHANGES[change](folder)
            return method(self, *asked, **how)

        return changing_first

    for method in ("sums", "gather", "keep"):
        monkeypatch.setattr(SparkEngine, method, changing(getattr(SparkEngine, method)))
    into = f"{db}.o_{change}"
    with pytest.raises((dpsyn_sql.errors.ReleaseUnfinished, dpsyn_sql.errors.EngineFailure)) as caught:
        dpsyn_sql.release(spark, name, domain=SPEC, into=into, ledger=tmp_path / "l")
    if change != "removed":  # a file that is gone fails the task that reads it
        assert isinstance(caught.value, dpsyn_sql.errors.ReleaseUnfinished) and "changed" in str(caught.value)
    assert changed and "canary" not in str(caught.value) + "".join(capfd.readouterr())
    assert not spark.catalog.tableExists(into)


READ_AS = {
    "a table": lambda spark, name: (spark, name),
    "a frame of it": lambda spark, name: (spark.table(name).where("n < 5"), "frame"),
    "a query with it in a subquery": lambda spark, name: (
        spark,
        f"SELECT * FROM {name} AS outer WHERE n < (SELECT max(n) FROM {name})",
    ),
}


@pytest.mark.parametrize("case", READ_AS)
def test_a_cache_can_mix_states_and_is_refused(spark, table, tmp_path, case):
    """One file is cached, another is replaced: rows of the first could count twice, and nobody would see it."""
    name, _ = table
    spark.table(name).persist().take(1)
    con, source = READ_AS[case](spark, name)
    owners = {"trust_query": True, "account": "a"} if case != "a table" else {}
    options = {"domain": SPEC, "into": tmp_path / "o.parquet", "ledger": tmp_path / "l", **owners}
    try:
        with pytest.raises(
            dpsyn_sql.errors.SourceError, match="in the cache of Spark.*Nothing was read or charged"
        ):
            dpsyn_sql.release(con, source, **options)
    finally:
        spark.catalog.uncacheTable(name)
    assert not (tmp_path / "l").exists()
    dpsyn_sql.plan(*READ_AS[case](spark, name), **options)


def test_a_cache_that_comes_in_between_stops_the_release(spark, table):
    name, folder = table
    domain = dpsyn_sql.plan(spark, name, domain=SPEC, into="o", ledger=folder.parent / "l").plan.domain
    with open_source(spark, name) as session:
        spark.table(name).persist().take(1)
        try:
            with pytest.raises(dpsyn_sql.errors.SourceError, match="put into the cache of Spark while"):
                counted(session, domain, [MarginalQuery(("v",))])
        finally:
            spark.catalog.uncacheTable(name)
