"""The engine on a Spark session: what one DuckDB counts, tasks and Spark count together."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from uuid import uuid4

import duckdb
import pytest
from support.spark import files_under, missing

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InputError, InternalError
from dpsyn_sql.source.engine import Encoding, Tally
from dpsyn_sql.sqltext.fragments import Fragment, ident

pytestmark = pytest.mark.slow
F = Fragment
ROWS = ident("the rows")


@contextmanager
def engine_of(spark, frame, place, partitions=3, **more):
    from dpsyn_sql.engines.spark.catalog import columns_of
    from dpsyn_sql.engines.spark.engine import open_engine
    from dpsyn_sql.engines.spark.pin import SparkRows

    place.mkdir(mode=0o700, exist_ok=True)
    columns = columns_of(frame.schema, "the table", enforced=False)
    rows = SparkRows(spark, frame, columns, ROWS, partitions, place.as_uri(), **more)
    engine = open_engine(rows)
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def one_database(sql):
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE {ROWS} AS {sql}")
        engine = DuckDBEngine(con)
        yield engine


@pytest.fixture
def made(spark, tmp_path):
    """A data frame of the rows of a query of DuckDB, in some files."""

    def frame(sql, files=3):
        folder = tmp_path / f"t{uuid4().hex}"
        folder.mkdir()
        with duckdb.connect() as con:
            for part in range(files):
                con.execute(
                    f"COPY (SELECT * FROM ({sql}) WHERE hash(i) % {files} = {part}) TO '{folder}/{part}.parquet'"
                )
        return spark.read.parquet(str(folder))

    return frame


TABLE = """SELECT i, (i * 7919) % 5 AS a, 'it''s ' || (i * 31) % 7 AS b,
    CASE WHEN i % 11 > 0 THEN CAST((i * i) % 301 AS VARCHAR) END AS unit FROM range(6000) t(i)"""
UNITS = 88  # squares modulo 301
BY_A = Tally(F(f"SELECT a, count(*) AS n FROM {ROWS} GROUP BY a"), ("a",))
BY_B = Tally(F(f"SELECT encode(b) AS b, a, count(*) AS n FROM {ROWS} GROUP BY b, a"), ("b", "a"))
CODES = Encoding(
    F("temp.main.codes"),
    F(f"SELECT CAST(a AS UTINYINT) AS p0, CAST(right(b, 1)::INTEGER + 250 AS USMALLINT) AS p1 FROM {ROWS}"),
)
AGAIN = Encoding(
    F("temp.main.again"), F("SELECT CAST(p0 % 2 AS UTINYINT) AS p0 FROM temp.main.codes"), of=CODES
)
BY_CODES = Tally(F("SELECT p0, p1, count(*) AS n FROM temp.main.codes GROUP BY p0, p1"), ("p0", "p1"))
BY_PARITY = Tally(F("SELECT p0, count(*) AS n FROM temp.main.again GROUP BY p0"), ("p0",))


def rows_of(columns):
    """A result as a multiset of rows, and its types."""
    rows = Counter(zip(*(map(_plain, values.tolist()) for values in columns.values()), strict=True))
    return list(columns), [values.dtype for values in columns.values()], rows


def _plain(value):
    return bytes(value) if isinstance(value, bytearray) else value


def same(one, other):
    """Two engines give the same sums, in the same types."""
    assert [rows_of(found) for found in one] == [rows_of(found) for found in other]


def test_sums_of_the_source_and_of_codes(spark, made, tmp_path):
    place = tmp_path / "place"
    with engine_of(spark, made(TABLE), place) as engine, one_database(TABLE) as one:
        assert engine.in_parts
        least = Tally(BY_B.query, BY_B.keys, least=172)
        same(engine.sums([BY_A, BY_B, least], step="x"), one.sums([BY_A, BY_B, least], step="x"))
        one.keep(CODES, step="x")
        one.keep(AGAIN, step="x")
        expected = rows_of(next(one.sums([BY_CODES], step="x")))
        parity = rows_of(next(one.sums([BY_PARITY], step="x")))
        assert rows_of(next(engine.sums([BY_CODES], step="x", over=CODES))) == expected  # in passing
        assert rows_of(next(engine.sums([BY_PARITY], step="x", over=AGAIN))) == parity
        assert files_under(place) == []
        engine.keep(CODES, step="x")
        assert rows_of(next(engine.sums([BY_CODES], step="x", over=CODES))) == expected  # kept
        assert rows_of(next(engine.sums([BY_PARITY], step="x", over=AGAIN))) == parity  # from what is kept
        engine.keep(AGAIN, step="x")
        assert rows_of(next(engine.sums([BY_PARITY], step="x", over=AGAIN))) == parity
        assert files_under(place)
        engine.drop(CODES.table, step="x")
        engine.drop(CODES.table, step="x")
        assert rows_of(next(engine.sums([BY_PARITY], step="x", over=AGAIN))) == parity
        engine.drop(AGAIN.table, step="x")
        assert files_under(place) == []


def test_kept_codes_go_with_the_rows(spark, made, tmp_path):
    place = tmp_path / "place"
    with engine_of(spark, made(TABLE), place) as engine:
        engine.keep(CODES, step="x")
        assert files_under(place)
        engine.release_rows()
        assert list(place.iterdir()) == []
        engine.release_rows()
        for call in (
            lambda: list(engine.sums([BY_A], step="x")),
            lambda: engine.gather(F("temp.main.g"), BY_A, step="x"),
            lambda: engine.keep(CODES, step="x"),
            engine.probe,
        ):
            with pytest.raises(InternalError, match="after the last question"):
                call()
        engine.forbid([ROWS])
        with pytest.raises(InternalError, match="names the source"):
            engine.fetch(BY_A.query, step="x")


def test_each_unit_is_in_one_part(spark, made, tmp_path):
    """As the engine deals rows, whatever the settings of the session are."""
    from pyspark.sql import functions

    own = spark.newSession()
    own.conf.set("spark.sql.adaptive.enabled", "true")
    own.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    own.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "1GB")
    frame = made(TABLE, files=4)
    for session in (spark, own):
        again = session.read.parquet(*frame.inputFiles())
        with engine_of(session, again, tmp_path / "place", partitions=5) as engine:
            given, reading = engine._reading(engine._rows, None, [BY_A.query], "unit")
            found = given()
            assert found.rdd.getNumPartitions() == 5
            assert [name for name, _ in reading.columns] == ["a", "unit"]
            dealt = found.withColumn("part", functions.spark_partition_id())
            assert found.where("c1 IS NULL").count() == 0
            homes = dealt.groupBy("c1").agg(functions.countDistinct("part").alias("parts"))
            assert homes.where("parts > 1").count() == 0 and homes.count() == UNITS
            assert dealt.select("part").distinct().count() == 5


def test_values_and_names_of_all_kinds(spark, tmp_path):
    values = [
        (True, 1, 1.5, float("nan"), "a\0b", bytearray(b"\xff\0"), date(1969, 12, 31), datetime(2024, 1, 2, 3, 4, 5, 6), Decimal("1.10"), [1]),
        (False, -1, -0.0, 0.0, "é𝄞 ", bytearray(), date(9999, 12, 31), datetime(1900, 1, 1), Decimal("-99.99"), []),
        (None,) * 10,
    ]  # fmt: skip
    kinds = [
        "boolean",
        "int",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp_ntz",
        "decimal(4,2)",
        "array<int>",
    ]
    names = ["p", "n", "a.b", 'q"x', "tick`s", "é", "d", "select", "two words", "nested"]
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in zip(names, kinds, strict=True))
    frame = spark.createDataFrame(values, schema).repartitionByRange(2, "n")
    read = [name for name in names if name != "nested"]
    text = " || '|' || ".join(f"coalesce(CAST({ident(name)} AS VARCHAR), '-')" for name in read)
    tally = Tally(F(f"SELECT encode({text}) AS t, count(*) AS n FROM {ROWS} GROUP BY 1"), ("t",))
    with engine_of(spark, frame, tmp_path / "place") as engine, duckdb.connect() as con:
        types = {column.name: column.sql_type for column in engine._columns}
        assert list(types) == read
        con.execute(f"CREATE TABLE {ROWS} ({', '.join(f'{ident(n)} {t}' for n, t in types.items())})")
        con.executemany(
            f"INSERT INTO {ROWS} VALUES ({', '.join('?' * len(read))})",
            [[bytes(v) if isinstance(v, bytearray) else v for v in row[:-1]] for row in values],
        )
        expected = Counter({(bytes(t), n): 1 for t, n in con.execute(tally.query).fetchall()})
        (found,) = engine.sums([tally], step="x")
        assert rows_of(found)[2] == expected


def test_moments_are_counted_as_moments_in_any_time_zone(spark, tmp_path):
    own = spark.newSession()
    tally = Tally(F(f"SELECT epoch_us(t) AS t, CAST(count(*) AS BIGINT) AS n FROM {ROWS} GROUP BY 1"), ("t",))
    for zone in ("UTC", "America/Los_Angeles", "+05:30", "GMT-8"):
        own.conf.set("spark.sql.session.timeZone", zone)
        frame = own.sql(
            "SELECT timestamp_micros(1700000000123456) AS t UNION ALL SELECT timestamp_micros(-1)"
        )
        with engine_of(own, frame, tmp_path / "place") as engine:
            assert engine._columns[0].sql_type == "TIMESTAMP WITH TIME ZONE"
            (found,) = engine.sums([tally], step="x")
            assert sorted(found["t"].tolist()) == [-1, 1700000000123456]


def test_only_what_is_asked_for_leaves_the_files(spark, made, tmp_path):
    with engine_of(spark, made(TABLE), tmp_path / "place") as engine:
        frame, reading = engine._reading(engine._rows, None, [BY_A.query], None)
        assert [name for name, _ in reading.columns] == ["a"]
        plan = frame()._jdf.queryExecution().executedPlan().toString()
        assert re.search(r"ReadSchema: struct<a:bigint>", plan)


def test_ctrl_c_ends_the_job_and_no_other(spark, tmp_path):
    slow = spark.range(10**12, numPartitions=2).selectExpr("id % 3 AS a")
    stopped = threading.Event()

    def press():
        tracker = spark.sparkContext.statusTracker()
        while not tracker.getActiveJobsIds() and not stopped.is_set():
            stopped.wait(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    with engine_of(spark, slow, tmp_path / "place") as engine:
        presser.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                list(engine.sums([BY_A], step="x"))
        finally:
            stopped.set()
            presser.join()
        assert not spark.sparkContext.getJobTags()
    assert spark.range(3).count() == 3
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        stopped.wait(0)


def test_workers_are_looked_at_before_anything_is_read(spark, tmp_path, monkeypatch):
    from dpsyn_sql.engines.spark import engine as module

    with engine_of(spark, spark.range(3), tmp_path / "place") as engine:
        engine.probe()
        monkeypatch.setattr(module.duckdb, "__version__", "1.2.3")
        with pytest.raises(
            InputError, match=r"has duckdb .*, the driver 1\.2\.3: run `pip install duckdb==1\.2\.3"
        ):
            engine.probe()
        with pytest.raises(EngineFailure, match="VersionDiffers"):
            list(
                engine.sums([Tally(F(f"SELECT id, count(*) AS n FROM {ROWS} GROUP BY 1"), ("id",))], step="x")
            )
        monkeypatch.undo()
        monkeypatch.setattr(module.tasks, "versions", lambda _: iter([("python9", "", "")]))
        with pytest.raises(InputError, match=r"\(python9\) has no duckdb and no pyarrow: run"):
            engine.probe()
        monkeypatch.setattr(module.tasks, "versions", lambda _: 1 / 0)
        with pytest.raises(
            InputError, match="No task of Python runs.*PYSPARK_PYTHON.*Nothing was read or charged"
        ):
            engine.probe()


SECRET = "Zanzibar-77"
LOGGED = f"""
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from dpsyn_sql.engines.spark.catalog import columns_of
from dpsyn_sql.engines.spark.engine import open_engine
from dpsyn_sql.engines.spark.pin import SparkRows
from dpsyn_sql.errors import EngineFailure
from dpsyn_sql.source.engine import Tally
from dpsyn_sql.sqltext.fragments import Fragment, ident
from support.spark import settings

folder = Path(sys.argv[1])
builder = SparkSession.builder.master("local[1,3]")
for name, value in settings(folder).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("INFO")
frame = spark.createDataFrame([("{SECRET}",)] * 3, "b string")
rows = SparkRows(spark, frame, columns_of(frame.schema, "t", enforced=False), ident("r"), 2, folder.as_uri())
engine = open_engine(rows)
query = Fragment("SELECT CAST(b AS INTEGER) AS k, count(*) AS n FROM r GROUP BY 1")
try:
    list(engine.sums([Tally(query, ("k",))], step="counting"))
except EngineFailure as error:
    assert error.__context__ is None
    print("RAISED", error.kind, error)
spark.stop()
"""


def test_no_value_of_a_failed_task_reaches_a_log(tmp_path):
    if reason := missing():
        pytest.skip(reason)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    (tmp_path / "tmp").mkdir()
    told = subprocess.run(
        [sys.executable, "-c", LOGGED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert "RAISED ConversionException" in told.stdout, told.stderr[-3000:]
    assert "dpsyn_sql task failed: ConversionException" in told.stderr  # the log is on, and has the task
    assert SECRET not in told.stderr + told.stdout
    assert not list(tmp_path.rglob("dpsyn-task-*"))
