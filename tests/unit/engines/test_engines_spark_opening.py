"""Opening a source of Spark, as far as it needs no Java: names, types, versions, places, and what is refused."""

import subprocess
import sys
import types
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsyn_sql
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.engines.spark.catalog import (
    SparkCatalogTable,
    columns_of,
    duckdb_type,
    look_up,
    parts_of,
    quoted,
    shown,
)
from dpsyn_sql.engines.spark.outputs import private_place
from dpsyn_sql.engines.spark.pin import files_of, is_steady, pinned_files, pinned_table
from dpsyn_sql.errors import EngineFailure, InputError, SourceError
from dpsyn_sql.source.frames import is_spark, is_spark_frame, library_of, session_of
from dpsyn_sql.source.names import LedgerNames

_FRESH = """
import sys
import dpsyn_sql.front.release, dpsyn_sql.front.plan, dpsyn_sql.front.load, dpsyn_sql.front.totals
print(sorted({"pandas", "pyarrow", "pyspark", "py4j"} & sys.modules.keys()))
"""


def test_the_package_loads_nothing_of_spark_or_data_frames():
    told = subprocess.run([sys.executable, "-c", _FRESH], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["[]"]


# -- names --------------------------------------------------------------------------------------


@given(st.lists(st.text(min_size=1).filter(lambda text: "\x00" not in text), min_size=1, max_size=4))
def test_a_quoted_name_is_read_back(parts):
    assert parts_of(quoted(parts)) == tuple(parts)
    assert parts_of(shown(parts)) == tuple(parts)


@pytest.mark.parametrize("text", ["", "a b", "a..b", ".a", "a.", "`a", "a`b`", "`a`b"])
def test_what_is_no_name(text):
    assert parts_of(text) is None


def test_two_spellings_of_one_place_are_one_source(tmp_path):
    home = LedgerNames.of(tmp_path / "t.ledger")
    (tmp_path / "rows").mkdir()
    (tmp_path / "link").symlink_to("rows")
    spelled = [
        f"file:{tmp_path}/rows",
        f"file://{tmp_path}/rows/",
        f"file:{tmp_path}/link",
        f"file:{tmp_path}/./rows",
    ]
    assert {home.spark(text) for text in spelled} == {":spark:rows"}
    assert home.spark("s3a://b/t/") == home.spark("s3://b/t") != home.spark("s3://b/T")
    assert home.spark("hdfs://n/t") != home.spark("s3://n/t")


# -- types --------------------------------------------------------------------------------------

_KNOWN = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "char(3)": "VARCHAR",
    "varchar(40)": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "decimal(38,18)": "DECIMAL(38,18)",
}
_OTHERS = [
    "void",
    "variant",
    "time(6)",
    "interval day to second",
    "array<int>",
    "map<int,int>",
    "struct<a:int>",
]


def test_every_type_is_one_of_duckdb_or_keeps_its_name():
    assert {kind: duckdb_type(kind) for kind in _KNOWN} == _KNOWN
    assert all(parse_type(name) is not None for name in _KNOWN.values())
    for kind in _OTHERS:
        assert duckdb_type(kind) == kind.upper() and parse_type(kind.upper()) is None
    assert duckdb_type("binary") == "BLOB"


def _schema(**kinds):
    return SimpleNamespace(
        fields=[
            SimpleNamespace(
                name=name, nullable=True, dataType=SimpleNamespace(simpleString=lambda kind=kind: kind)
            )
            for name, kind in kinds.items()
        ]
    )


def test_a_collated_column_is_refused_by_name():
    found = columns_of(
        _schema(a="string collate UTF8_LCASE", b="string collate UTF8_BINARY"), "t", enforced=False
    )
    assert "UTF8_LCASE" in found[0].refused and not found[1].refused
    assert [column.sql_type for column in found] == ["VARCHAR", "VARCHAR"]


def test_a_column_of_another_type_is_named_if_it_is_used():
    found = columns_of(_schema(a="array<int>", b="binary", c="time(6)", d="int"), "t", enforced=False)
    assert [column.name for column in found if column.refused] == ["a", "c"]
    assert "is of the type time(6), which is not read from Spark" in found[2].refused


@pytest.mark.parametrize("names", [("a", "A"), ("é", "É")])
def test_names_that_differ_in_case_only(names):
    with pytest.raises(SourceError, match="cannot tell apart"):
        columns_of(_schema(**dict.fromkeys(names, "int")), "The table t", enforced=False)


def test_a_table_without_columns():
    with pytest.raises(SourceError, match="The table t has no columns"):
        columns_of(_schema(), "The table t", enforced=False)


def test_not_null_counts_only_where_it_is_enforced():
    schema = _schema(a="int")
    schema.fields[0].nullable = False
    assert [columns_of(schema, "t", enforced=each)[0].not_null for each in (True, False)] == [True, False]


# -- what a session is --------------------------------------------------------------------------


def _of_spark(name, module, base=object):
    return type(name, (base,), {"__module__": module})


def test_sessions_and_frames_are_told_by_their_classes(monkeypatch):
    session = _of_spark("SparkSession", "pyspark.sql.session")
    frame = _of_spark("DataFrame", "pyspark.sql.classic.dataframe")
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["pyspark.sql"].DataFrame = frame
    assert is_spark(session()) and is_spark(_of_spark("Mine", "pyspark.mine", session)())
    assert is_spark_frame(frame()) and library_of(frame()) == "pyspark" and not is_spark(frame())
    for other in (None, 3, "people", object()):
        assert not is_spark(other) and not is_spark_frame(other)


@pytest.mark.parametrize("name", ["Builder", "SparkContext", "DataFrame"])
def test_what_is_of_spark_and_no_session(name):
    with pytest.raises(InputError, match=f"con is a {name} of Spark.*Java 17"):
        dpsyn_sql.release(_of_spark(name, "pyspark.somewhere")(), "people")


@pytest.mark.parametrize("name", ["SparkSession", "DataFrame"])
def test_spark_connect(name):
    value = _of_spark(name, "pyspark.sql.connect.somewhere")()
    with pytest.raises(InputError, match="Spark Connect"):
        dpsyn_sql.plan(value, "people", name="people")
    with pytest.raises(InputError, match="Spark Connect"):
        session_of(value)


def test_a_stopped_session():
    session = _of_spark("SparkSession", "pyspark.sql.session")()
    session.sparkContext = SimpleNamespace(_jsc=None)
    with pytest.raises(InputError, match="session is stopped"):
        dpsyn_sql.plan(session, "people")
    with pytest.raises(InputError, match=r"public_tables= is for queries of DuckDB"):
        dpsyn_sql.plan(session, "people", public_tables=["codes"])
    with pytest.raises(InputError, match="write both to Parquet"):
        dpsyn_sql.evaluate(session, "people", "people_synthetic")


# -- versions -----------------------------------------------------------------------------------


class Seq(list):
    """A sequence of Scala."""

    size, apply = list.__len__, list.__getitem__
    isEmpty = lambda self: not self  # noqa: E731 - Scala's name


def step(kind, *children, **more):
    """A step of a plan of Spark. ``more``: its other methods, as what they give."""
    name = SimpleNamespace(getSimpleName=lambda: kind)
    more = {"children": Seq(children), "subqueries": Seq(), "deterministic": True, **more}
    return SimpleNamespace(
        getClass=lambda: name, **{key: (lambda found=one: found) for key, one in more.items()}
    )


class FakeFrame:
    """A data frame with one plan, in which nothing is cached, and its files."""

    def __init__(self, plan=None, *, cached=None, files=(), text=""):
        self.plan = step("LogicalRelation") if plan is None else plan
        self.cached, self.text, self.inputFiles = cached, text, lambda: list(files)
        self._jdf = SimpleNamespace(queryExecution=lambda: self)

    def select(self, _):
        return self

    def withCachedData(self):
        return self.cached or self.plan

    def analyzed(self):
        return self.plan

    optimizedPlan = analyzed


class FakeSpark:
    """Answers statements by what they begin with; keeps what it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def sql(self, text):
        self.asked.append(text)
        found = self.answers.get(text.split()[0], [])
        if isinstance(found, Exception):
            raise found
        frame = FakeFrame(text=text)
        frame.collect = lambda: found
        return frame


_TABLE = ("c", "d b", "t`s")
_QUOTED = "`c`.`d b`.`t``s`"


def test_a_delta_table_is_read_at_its_newest_version():
    spark = FakeSpark(DESCRIBE=[{"version": 7}])
    pinned = pinned_table(spark, SparkCatalogTable(_TABLE, "table", "delta", "s3://b/t"))
    assert spark.asked == [f"DESCRIBE HISTORY {_QUOTED} LIMIT 1", f"SELECT * FROM {_QUOTED} VERSION AS OF 7"]
    assert pinned.versioned and pinned.frame.text == spark.asked[-1] and "version 7" in pinned.words
    pinned.check()


def test_an_iceberg_table_is_read_at_its_snapshot():
    spark = FakeSpark(SELECT=[{"snapshot_id": 5781947118336215154}])
    pinned = pinned_table(spark, SparkCatalogTable(_TABLE, "table", "iceberg", "s3://b/t"))
    assert spark.asked == [
        f"SELECT snapshot_id FROM {_QUOTED}.refs WHERE name = 'main'",
        f"SELECT * FROM {_QUOTED} VERSION AS OF 5781947118336215154",
    ]
    assert pinned.versioned


@pytest.mark.parametrize(
    ("provider", "spark", "error", "message"),
    [
        ("iceberg", FakeSpark(SELECT=[]), SourceError, "nothing was ever written"),
        ("hudi", FakeSpark(), SourceError, "'hudi'.*be pinned"),
        (
            "delta",
            FakeSpark(DESCRIBE=ValueError("4 rows of Ann")),
            EngineFailure,
            "version of the table .ValueError",
        ),
    ],
)
def test_a_table_that_cannot_be_pinned(provider, spark, error, message):
    with pytest.raises(error, match=message) as caught:
        pinned_table(spark, SparkCatalogTable(_TABLE, "table", provider, "s3://b/t"))
    assert "Ann" not in str(caught.value) and caught.value.__context__ is None


def test_a_frame_without_files_has_nothing_to_compare():
    frame = FakeFrame()
    pinned = pinned_files(None, frame, "The query", files=False)
    pinned.check()
    assert pinned.words.startswith("none") and pinned.frame is frame


def _cached():
    """A plan whose subquery is cached."""
    return step(
        "Filter", step("LogicalRelation"), subqueries=Seq([step("Project", step("InMemoryRelation"))])
    )


def test_what_is_in_the_cache_is_refused_and_noticed():
    """A version does not change, but parts of the cache can be of another one."""
    with pytest.raises(SourceError, match="The query is in the cache.*Nothing was read or charged"):
        pinned_files(None, FakeFrame(cached=_cached()), "The query", files=False)
    frame = FakeFrame()
    pinned = pinned_files(None, frame, "The query", files=False)
    versioned = pinned_table(
        FakeSpark(DESCRIBE=[{"version": 7}]), SparkCatalogTable(_TABLE, "table", "delta", "s3://b/t")
    )
    versioned.check()
    for one in (frame, versioned.frame):
        one.cached = _cached()
    for check in (pinned.check, versioned.check):
        with pytest.raises(SourceError, match="put into the cache of Spark while it was counted"):
            check()


@pytest.mark.parametrize("kind", ["Sample", "GlobalLimit", "LocalLimit", "Offset", "Tail"])
def test_steps_that_take_other_rows_each_time(kind):
    assert is_steady(FakeFrame(step("Project", step("LogicalRelation"))))
    assert not is_steady(FakeFrame(step("Project", step(kind, step("LogicalRelation")))))
    assert not is_steady(FakeFrame(step("Filter", subqueries=Seq([step(kind)]))))
    assert not is_steady(FakeFrame(step("Project", deterministic=False)))


def test_partitions_of_a_hive_table_lie_anywhere():
    """Hive's own formats are read from the folders of partitions, of which Spark lists none."""
    places = ["file:/w/t/p=1", "file:/elsewhere/p2"]
    table = SimpleNamespace(partitionColumnNames=lambda: Seq(["p"]), identifier=lambda: "t")
    found = [SimpleNamespace(location=lambda at=at: SimpleNamespace(toString=lambda: at)) for at in places]
    catalog = SimpleNamespace(listPartitions=lambda name, none: Seq(found if name == "t" else []))
    state = SimpleNamespace(catalog=lambda: catalog)
    spark = SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jvm=SimpleNamespace(scala=SimpleNamespace(**{"None$": SimpleNamespace(**{"MODULE$": None})}))
        ),
        _jsparkSession=SimpleNamespace(sessionState=lambda: state),
    )
    plan = step("Project", step("HiveTableRelation", tableMeta=table))
    assert files_of(spark, FakeFrame(plan, files=["file:/w/t"])) == ["file:/w/t", *places]
    table.partitionColumnNames = Seq
    assert files_of(spark, FakeFrame(plan, files=["file:/w/t"])) == ["file:/w/t"]


# -- places and names of tables -----------------------------------------------------------------


def _application(master, folder):
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, getCheckpointDir=lambda: folder))


@pytest.mark.parametrize("folder", [None, "file:/data/x", "/data/x"])
def test_a_cluster_needs_a_folder_that_its_machines_share(folder):
    with pytest.raises(SourceError, match="setCheckpointDir.*Nothing was read or charged"):
        private_place(_application("spark://one:7077", folder))


def test_one_machine_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = private_place(_application("local[2]", None))
    (folder,) = tmp_path.iterdir()
    assert place.uri == folder.as_uri() and folder.stat().st_mode & 0o777 == 0o700
    (folder / "codes").mkdir()
    place.close()
    place.close()
    assert not list(tmp_path.iterdir())


def _described(*lines):
    """A session whose one table is described by these lines after its columns."""
    found = SimpleNamespace(isTemporary=False, catalog="c", namespace=["d"], name="t", tableType="EXTERNAL")
    catalog = SimpleNamespace(tableExists=lambda name: True, getTable=lambda name: found)
    columns = [
        ("# Detailed Table Information", "int", ""),
        ("Location", "string", ""),
        ("Provider", "int", ""),
    ]
    rows = [*columns, ("", "", ""), ("# Detailed Table Information", "", ""), *lines]
    return SimpleNamespace(catalog=catalog, sql=lambda text: SimpleNamespace(collect=lambda: rows))


def test_a_column_is_no_fact_of_the_table():
    lines = [("Provider", "PARQUET", ""), ("Location", "s3://b/t", ""), ("Location", "no", "")]
    assert look_up(_described(*lines), "t") == SparkCatalogTable(
        ("c", "d", "t"), "table", "parquet", "s3://b/t"
    )


def test_rows_that_another_system_holds_have_no_place():
    lines = [
        ("Provider", "hive", ""),
        ("Table Properties", "[storage_handler=org.apache.hadoop.hive.hbase.HBaseStorageHandler]", ""),
        ("Location", "file:/w/t", ""),
    ]
    assert look_up(_described(*lines), "t").location is None


def _catalog(*names):
    return SimpleNamespace(
        catalog=SimpleNamespace(
            tableExists=lambda name: False,
            listTables=lambda *database: [SimpleNamespace(name=n) for n in names],
        )
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("db.trip", r"There is no table 'db.trip' .*Did you mean db.trips\?"),
        ("no such name", "There is no table 'no such name'"),
        ("parquet.`/data/trips`", "no name of a table.*LOCATION"),
        ("/data/trips.parquet", "no name of a table"),
    ],
)
def test_a_missing_table(text, message):
    with pytest.raises(SourceError, match=message):
        look_up(_catalog("trips", "people"), text)
