"""What a task of Spark does, without Spark: its functions on Arrow batches, however rows are cut into them."""

import ast
import math
import subprocess
import sys
import tempfile
import traceback
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from dpsyn_sql.attributes.attribute import Attribute, Domain  # noqa: E402
from dpsyn_sql.engines.spark import engine, tasks, worker  # noqa: E402
from dpsyn_sql.engines.spark.work import Codes, Reading, Sums, adding, counting, encoding, named_in  # noqa: E402
from dpsyn_sql.errors import InternalError  # noqa: E402
from dpsyn_sql.private.rows.codes import unit_bytes  # noqa: E402
from dpsyn_sql.private.rows.kept import Bound, KeptRows  # noqa: E402
from dpsyn_sql.source.engine import Encoding, Tally  # noqa: E402
from dpsyn_sql.sqltext.fragments import Fragment, ident  # noqa: E402

F = Fragment
SOURCE = ident("the rows")
COLUMNS = (("unit", "VARCHAR"), ('a"', "INTEGER"), ("b", "VARCHAR"))
SCHEMA = pa.schema([("c0", pa.string()), ("c1", pa.int32()), ("c2", pa.string())])
READING = Reading(SOURCE, COLUMNS)
OWNED = Reading(SOURCE, COLUMNS, unit=0)
CODES = Encoding(
    F("temp.main.codes"),
    F(
        f'SELECT CAST(coalesce("a""", 9) AS UTINYINT) AS p0, CAST(strlen(coalesce(b, \'\')) AS USMALLINT) AS p1 FROM {SOURCE}'
    ),
)
TYPES = {"p0": "UTINYINT", "p1": "USMALLINT"}
AGAIN = Encoding(
    F("temp.main.again"), F("SELECT CAST(p0 // 2 AS UTINYINT) AS p0 FROM temp.main.codes"), of=CODES
)
BY_A = Tally(F(f'SELECT "a""", count(*) AS n FROM {SOURCE} GROUP BY 1'), ('a"',))
BY_B = Tally(F(f'SELECT encode(b) AS b, "a""", count(*) AS n FROM {SOURCE} GROUP BY 1, 2'), ("b", 'a"'))
TOTAL = Sums(((BY_A, {'a"': "INTEGER"}), (BY_B, {"b": "BLOB", 'a"': "INTEGER"})))
BY_CODES = Tally(F("SELECT p0, p1, count(*) AS n FROM temp.main.codes GROUP BY 1, 2"), ("p0", "p1"))
BY_HALF = Tally(F("SELECT p0, count(*) AS n FROM temp.main.again GROUP BY 1"), ("p0",))

texts = st.text(max_size=3) | st.none() | st.just("a\0b")
rows_of = st.lists(
    st.tuples(st.sampled_from(["u", "v", "w'", None]), st.integers(0, 4) | st.none(), texts), max_size=40
)
FEW = settings(max_examples=12)  # each opens a few databases
cuts = st.lists(st.integers(0, 40), max_size=5)


def table_of(rows, schema=SCHEMA):
    return pa.table([[row[i] for row in rows] for i in range(len(schema))], schema=schema)


def batches_of(rows, places, schema=SCHEMA):
    """The rows as batches, some of them empty."""
    ends = sorted(min(place, len(rows)) for place in places)
    starts = [0, *ends]
    return [
        batch
        for start, end in zip(starts, [*ends, len(rows)], strict=True)
        for batch in (
            table_of(rows[start:end], schema).to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
        )
    ]


BUCKETS = 3


def counted(reading, made, sums, configured):
    return counting(reading, made, sums, configured, BUCKETS)


def run(work, parts):
    """What Spark gets from the tasks of all parts."""
    return [batch for part in parts for batch in tasks.task_of(work)(iter(part))]


def summed(found, sums):
    """What tasks make of it, each of a bucket, as sets of rows per tally."""
    totals = [{} for _ in sums.tallies]
    dealt = [[] for _ in range(BUCKETS)]
    for batch in found:
        (bucket,) = batch.column("bucket").to_pylist()
        dealt[bucket].append(batch.select(["packed"]))
    for batch in run(adding(sums), dealt):
        (data,) = batch.column("packed").to_pylist()
        rows = tasks.unpacked(data)
        for number, *keys, n in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            assert tuple(keys) not in totals[number], "a key is in two buckets, or there twice"
            totals[number][tuple(keys)] = n
    return totals


def one_database(rows, statements, sums, schema=SCHEMA, columns=COLUMNS, source=SOURCE):
    """The same from one DuckDB that holds all rows."""
    with duckdb.connect(config={"python_enable_replacements": "false"}) as con:
        con.register("given", table_of(rows, schema))
        named = ", ".join(f"CAST(c{i} AS {kind}) AS {ident(name)}" for i, (name, kind) in enumerate(columns))
        con.execute(f"CREATE TABLE {source} AS SELECT {named} FROM given")
        for one in statements:
            con.execute(f"CREATE TEMP TABLE {one.table} AS {one.query}")
        totals = []
        for tally, types in sums.tallies:
            found = {}
            integers = [key for key in tally.keys if types[key] != "BLOB"]
            blobs = [key for key in tally.keys if types[key] == "BLOB"]
            for row in con.execute(tally.query).fetchall():
                held = dict(zip([column[0] for column in con.description], row, strict=True))
                keys = [held[key] for key in integers]
                keys += [None] * (len(sums.integers) - len(integers)) + [held[key] for key in blobs]
                keys += [None] * (len(sums.bytes) - len(blobs))
                found[tuple(keys)] = held["n"]
            totals.append(found)
        return totals


@FEW
@given(rows=rows_of, places=cuts, split=st.integers(0, 40), chunk=st.sampled_from([1, 3, 2**19]))
def test_counts_of_the_source_do_not_depend_on_parts_and_batches(rows, places, split, chunk):
    work = counted(READING, [], TOTAL, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "CHUNK_ROWS", chunk)
        found = run(work, [batches_of(rows[:split], places), batches_of(rows[split:], places)])
    assert summed(found, TOTAL) == one_database(rows, [], TOTAL)


@FEW
@given(
    rows=rows_of,
    places=cuts,
    split=st.integers(0, 40),
    limit=st.sampled_from([1, 4, 2**22]),
    deep=st.booleans(),
)
def test_counts_of_codes_made_in_passing(rows, places, split, limit, deep):
    made = [(CODES, TYPES), (AGAIN, {"p0": "UTINYINT"})] if deep else [(CODES, TYPES)]
    sums = Sums(((BY_HALF, {"p0": "UTINYINT"}),)) if deep else Sums(((BY_CODES, TYPES),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "CHUNK_ROWS", 2)
        patch.setattr("dpsyn_sql.engines.spark.work._TOGETHER_ROWS", limit)
        work = counted(READING, made, sums, [])
        found = run(work, [batches_of(rows[:split], places), batches_of(rows[split:], places)])
    assert summed(found, sums) == one_database(rows, [one for one, _ in made], sums)


@FEW
@given(rows=rows_of, places=cuts, deep=st.booleans(), whole=st.booleans())
def test_kept_codes_are_those_of_one_database(rows, places, deep, whole):
    made = [(CODES, TYPES), (AGAIN, {"p0": "UTINYINT"})] if deep else [(CODES, TYPES)]
    work = encoding(OWNED if whole else READING, made, [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "CHUNK_ROWS", 3)
        found = run(work, [batches_of(rows, places)])
    sums = Sums(((BY_HALF, {"p0": "UTINYINT"}),)) if deep else Sums(((BY_CODES, TYPES),))
    kept = Reading(made[-1][0].table, tuple(made[-1][1].items()), packed=True)
    again = run(counted(kept, [], sums, []), [found])
    assert summed(again, sums) == one_database(rows, [one for one, _ in made], sums)
    for batch in found:
        assert batch.schema.names == ["packed"] and batch.num_rows == 1


def bounded(key, most):
    attribute = Attribute(
        "a", "INTEGER", "categorical", labels=tuple(range(9)), other=True, source=F('"a"""')
    )
    driver = SimpleNamespace(part_of=lambda *_: None)
    rows = KeptRows.of_table(driver, SOURCE, Domain((attribute,)), bound=Bound("unit", most, key))
    return rows.encoding("", Domain((attribute,)), [(0,)]).query


@FEW
@given(
    rows=rows_of, places=cuts, key=st.integers(0, 2**64 - 1), most=st.integers(1, 3), passing=st.booleans()
)
def test_units_that_stay_whole_keep_the_rows_that_one_database_keeps(rows, places, key, most, passing):
    codes = Encoding(F("temp.main.codes"), bounded(key, most), unit="unit")
    tally = Tally(F("SELECT p0, count(*) AS n FROM temp.main.codes GROUP BY p0"), ("p0",))
    sums = Sums(((tally, {"p0": "UTINYINT"}),))
    made = [(codes, {"p0": "UTINYINT"})]
    parts = [[row for row in rows if row[0] in held] for held in (("u", "w'"), ("v",))]
    given_parts = [batches_of(part[::-1], places) for part in parts]
    if passing:
        found = run(counted(OWNED, made, sums, []), given_parts)
    else:
        kept = run(encoding(OWNED, made, []), given_parts)
        reading = Reading(codes.table, (("p0", "UTINYINT"),), packed=True)
        found = run(counted(reading, [], sums, []), [kept])
    assert summed(found, sums) == one_database(rows, [codes], sums)


VALUES = [
    ("BOOLEAN", pa.bool_(), [True, False, None]),
    ("TINYINT", pa.int8(), [-128, 127, None]),
    ("BIGINT", pa.int64(), [-(2**63), 2**63 - 1, None]),
    ("FLOAT", pa.float32(), [math.nan, -0.0, 0.0, math.inf, 1.5]),
    ("DOUBLE", pa.float64(), [math.nan, -0.0, 0.0, -math.inf, 5e-324]),
    ("VARCHAR", pa.string(), ["", "a\0b", "é𝄞\U0010ffff ", "a ", None]),
    ("VARCHAR", pa.large_string(), ["a", "\r\n", None]),
    ("BLOB", pa.binary(), [b"", b"\xff\0", None]),
    ("DATE", pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
    ("TIMESTAMP", pa.timestamp("us"), [datetime(1, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999), None]),
    ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", tz="America/Los_Angeles"), [datetime(2024, 3, 10, 9, 59, tzinfo=UTC), None]),
    ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", tz="+05:30"), [datetime(1970, 1, 1, tzinfo=UTC), None]),
    ("DECIMAL(38,10)", pa.decimal128(38, 10), [Decimal("-9999999999999999999999999999.0000000001"), Decimal(0), None]),
    ("DECIMAL(4,2)", pa.decimal128(4, 2), [Decimal("-99.99"), Decimal("0.10"), None]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "arrow", "values"), VALUES, ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_values_reach_the_task_as_they_are(kind, arrow, values):
    schema = pa.schema([("c0", arrow)])
    tally = Tally(
        F(
            f"SELECT encode(CAST(x AS VARCHAR)) AS t, CAST(hash(x) >> 1 AS BIGINT) AS h, count(*) AS n FROM {SOURCE} GROUP BY ALL"
        ),
        ("t", "h"),
    )
    sums = Sums(((tally, {"t": "BLOB", "h": "BIGINT"}),))
    rows = [(value,) for value in values] * 2
    zone = F("SET TimeZone = 'Asia/Tokyo'")
    found = run(
        counted(Reading(SOURCE, (("x", kind),)), [], sums, [zone]),
        [batches_of(rows, [1, 4], schema)],
    )
    with duckdb.connect() as con:
        con.execute(zone)
        con.execute(f"CREATE TABLE {SOURCE} (x {kind})")
        con.executemany(f"INSERT INTO {SOURCE} VALUES (?)", rows)
        expected = {(h, t): n for t, h, n in con.execute(tally.query).fetchall()}
    assert summed(found, sums) == [expected]


def test_text_that_is_no_utf8_stays_a_value_of_its_own_row():
    broken = pa.array([b"ok", b"\xff\xfea", None, b"z"]).view(pa.string())
    batch = pa.RecordBatch.from_arrays([broken, pa.array([1, 2, 3, 4], pa.int32()), broken], schema=SCHEMA)
    tally = Tally(F(f"SELECT encode(upper(b)) AS b, count(*) AS n FROM {SOURCE} GROUP BY ALL"), ("b",))
    sums = Sums(((tally, {"b": "BLOB"}),))
    found = run(counted(READING, [], sums, []), [[batch]])
    expected = {("OK",): 1, ("\ufffd\ufffdA",): 1, (None,): 1, ("Z",): 1}
    assert summed(found, sums) == [{(k[0] and k[0].encode(),): n for k, n in expected.items()}]


def test_bytes_that_are_no_utf8_are_no_unit():
    """Spark tells b"\\xff" and b"\\xfe" apart, and DuckDB would not: in one part they were one unit, in two
    parts two, so that the rows of one decided which rows of the other are kept."""
    units = pa.array([b"\xff", b"\xfe", b"\xff", "\ufffd".encode(), None, b"u"]).view(pa.string())
    text = pa.array([b"\xff", b"\xff", b"x", b"\xff", b"x", b"\xff"]).view(pa.string())
    batch = pa.RecordBatch.from_arrays([units, pa.array(range(6), pa.int32()), text], schema=SCHEMA)
    unit = unit_bytes("unit")
    tally = Tally(
        F(f"SELECT {unit} AS u, encode(b) AS b, count(*) AS n FROM {SOURCE} GROUP BY ALL"), ("u", "b")
    )
    sums = Sums(((tally, {"u": "BLOB", "b": "BLOB"}),))
    found = run(counted(OWNED, [], sums, []), [[batch]])
    bad = "\ufffd".encode()
    assert summed(found, sums) == [{(None, bad): 2, (None, b"x"): 2, (bad, bad): 1, (b"u", bad): 1}]


def test_rows_without_any_column_are_counted():
    tally = Tally(F(f"SELECT 1 AS k, count(*) AS n FROM {SOURCE}"), ("k",))
    sums = Sums(((tally, {"k": "INTEGER"}),))
    batch = pa.RecordBatch.from_pydict({"c0": [True] * 5})
    found = run(counted(Reading(SOURCE, ()), [], sums, []), [[batch, batch], [batch]])
    assert summed(found, sums) == [{(1,): 15}]


def test_a_part_without_rows_starts_no_database(monkeypatch):
    monkeypatch.setattr(duckdb, "connect", lambda *_, **__: pytest.fail("a database was opened"))
    for reading in (READING, OWNED):
        assert run(counted(reading, [], TOTAL, []), [[], batches_of([], [1])]) == []


SECRET = "Zanzibar-77"


def failing(where=SOURCE):
    tally = Tally(F(f"SELECT CAST(b AS INTEGER) AS k, count(*) AS n FROM {where} GROUP BY 1"), ("k",))
    return counted(READING, [], Sums(((tally, {"k": "INTEGER"}),)), [])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where tasks make their folders."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}")
    return tmp_path


def test_an_error_leaves_a_task_as_the_name_of_its_class(folder, capfd):
    with pytest.raises(RuntimeError) as raised:
        run(failing(), [batches_of([("u", 1, SECRET)], [])])
    assert str(raised.value) == worker.FAILED + "ConversionException"
    assert raised.value.__context__ is None and raised.value.__cause__ is None
    shown = "".join(traceback.format_exception(raised.value))
    assert SECRET not in shown and SECRET not in "".join(capfd.readouterr())
    assert list(folder.iterdir()) == []


def test_errors_of_what_gives_the_rows_are_named_by_class_too():
    def broken():
        yield from batches_of([("u", 1, "x")], [])
        raise ValueError(SECRET)

    with pytest.raises(RuntimeError, match=f"{worker.FAILED}ValueError$") as raised:
        list(tasks.task_of(failing())(broken()))
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_a_task_that_is_given_up_leaves_no_folder(folder, monkeypatch):
    monkeypatch.setattr(tasks, "CHUNK_ROWS", 1)
    rows = [("u", 1, "x")] * 5
    going = tasks.task_of(encoding(READING, [(CODES, TYPES)], []))(batches_of(rows, [1, 2, 3]))
    next(going)
    (own,) = folder.iterdir()
    assert own.stat().st_mode & 0o777 == 0o700
    going.close()
    assert list(folder.iterdir()) == []


def test_what_does_not_fit_in_memory_is_spilled_into_the_folder_of_the_task(folder, monkeypatch):
    monkeypatch.setattr(tasks, "_MEMORY", 24 * 2**20)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    seen = []
    returned = tasks._returned

    def looked(*given):
        seen.extend(path for path in folder.rglob("*") if path.is_file())
        return returned(*given)

    monkeypatch.setattr(tasks, "_returned", looked)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([f"{i:050d}" for i in range(400_000)]),
            pa.array([1] * 400_000, pa.int32()),
            pa.nulls(400_000, pa.string()),
        ],
        schema=SCHEMA,
    )
    tally = Tally(F(f"SELECT CAST(count(DISTINCT unit) AS BIGINT) AS k, count(*) AS n FROM {SOURCE}"), ("k",))
    sums = Sums(((tally, {"k": "BIGINT"}),))
    found = run(
        counted(OWNED, [], sums, []),
        [[batch.slice(i, 50_000) for i in range(0, 400_000, 50_000)]],
    )
    assert summed(found, sums) == [{(400_000,): 400_000}]
    assert seen, "nothing was spilled: the test shows nothing"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS k, count(*) AS n FROM read_csv('/etc/passwd')",
        "SELECT 1 AS k, count(*) AS n FROM glob('/*')",
        "SELECT 1 AS k, count(*) AS n FROM read_text('http://127.0.0.1/x')",
        "SELECT 1 AS k, count(*) AS n FROM sqlite_scan('x', 'y')",
        "SELECT 1 AS k, count(*) AS n FROM pa",
    ],
)
def test_a_task_reads_nothing_but_its_rows(query):
    work = counted(READING, [], Sums(((Tally(F(query), ("k",)), {"k": "INTEGER"}),)), [])
    with pytest.raises(RuntimeError, match=worker.FAILED):
        run(work, [batches_of([("u", 1, "x")], [])])


def test_the_settings_of_a_task_are_final():
    tally = Tally(F(f"SELECT 1 AS k, count(*) AS n FROM {SOURCE}"), ("k",))
    work = counted(READING, [], Sums(((tally, {"k": "INTEGER"}),)), [])
    work = tasks.Work(**{**vars(work), "count": ("SET threads = 2",)})
    with pytest.raises(RuntimeError, match=f"{worker.FAILED}InvalidInputException"):
        run(work, [batches_of([("u", 1, "x")], [])])


def test_another_duckdb_counts_nothing(monkeypatch):
    work = tasks.Work(**{**vars(failing()), "duckdb": "0.0.1"})
    with pytest.raises(RuntimeError, match=f"{worker.FAILED}VersionDiffers$"):
        run(work, [batches_of([("u", 1, "x")], [])])


@pytest.mark.parametrize(("allowed", "expected"), [("", 2**30), ("-1", 2**30), ("0", 2**30), ("512", 2**28)])
def test_memory_follows_what_spark_allows(monkeypatch, allowed, expected):
    monkeypatch.setenv("PYSPARK_EXECUTOR_MEMORY_MB", allowed)
    assert tasks._memory() == expected


@FEW
@given(
    rows=st.lists(st.tuples(st.integers(0, 5) | st.none(), st.integers(0, 3)), max_size=40),
    piece=st.sampled_from([1, 2, 2**12]),
    parts=st.integers(1, 3),
    least=st.integers(1, 4),
)
def test_counts_are_added_up_and_small_ones_left_out_where_all_of_a_key_are(rows, piece, parts, least):
    """In pieces of any size, of any number of tasks; no key without a value is lost."""
    schema = pa.schema([("c0", pa.int32()), ("c1", pa.int32())])
    tally = Tally(F(f"SELECT a, count(*) AS n FROM {SOURCE} GROUP BY a"), ("a",), least)
    total = Tally(F(f"SELECT 7 AS k, sum(b) AS n FROM {SOURCE}"), ("k",))
    sums = Sums(((tally, {"a": "INTEGER"}), (total, {"k": "INTEGER"})))
    reading = Reading(SOURCE, (("a", "INTEGER"), ("b", "INTEGER")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "PIECE_ROWS", piece)
        found = run(
            counted(reading, [], sums, []), [batches_of(rows[i::parts], [3], schema) for i in range(parts)]
        )
    assert all(tasks.unpacked(batch.column("packed")[0].as_buffer()).num_rows <= piece for batch in found)
    expected = {}
    for key, _ in rows:
        expected[(key,)] = expected.get((key,), 0) + 1
    whole = {(7,): sum(b for _, b in rows)} if rows else {}
    assert summed(found, sums) == [{key: n for key, n in expected.items() if n >= least}, whole]


@FEW
@given(rows=st.integers(0, 40), least=st.sampled_from([None, 1, 7]), values=st.integers(1, 5))
def test_values_are_put_together_whole_and_each_once(rows, least, values):
    given_rows = [("u", i, "x\0") for i in range(rows)]
    sent = [
        value for batch in batches_of(given_rows, range(0, 40, values)) for value in tasks._values(batch, [])
    ]
    found = list(tasks._unpacked(sent, least))
    assert [row for one in found for row in one.to_pylist()] == table_of(given_rows).to_pylist()
    assert all(one.num_rows >= (least or rows) for one in found[:-1])


def test_keys_that_are_neither_integers_nor_bytes_are_refused():
    for kind in ("DOUBLE", "VARCHAR", "UBIGINT", "HUGEINT", "BOOLEAN", "DECIMAL(9,2)"):
        with pytest.raises(InternalError, match="integers and bytes"):
            Sums(((BY_A, {'a"': kind}),)).table(ident("t"))
        with pytest.raises(InternalError, match="integers within BIGINT"):
            Codes({"p0": kind})
    with pytest.raises(InternalError, match="keys"):
        Sums(((Tally(BY_A.query, ()), {}),)).table(ident("t"))


def test_only_columns_that_a_statement_may_name_travel():
    names = ["age", "AG", "a b", 'q"x', "wage", "ü", "n"]
    statement = 'SELECT Age, "a b" AS c0, "q""x" FROM t -- wage_'
    assert named_in([statement], names) == [0, 2, 3]
    assert named_in(["SELECT Ü", "FROM AG.wage"], names) == [1, 4, 5]
    assert named_in(["SELECT count(*) AS n"], names) == [6]  # a few more do no harm


def test_workers_need_not_have_this_package(tmp_path):
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    from dpsyn_sql.engines.spark.guard import sent_along

    sent_along(tasks, worker)
    task = tmp_path / "task"
    task.write_bytes(cloudpickle.dumps((tasks.task_of(counted(READING, [], TOTAL, [])), tasks.versions)))
    code = (
        "import sys, pickle; sys.modules['dpsyn_sql'] = None; import pyarrow as pa\n"
        f"task, versions = pickle.load(open({str(task)!r}, 'rb'))\n"
        "batch = pa.RecordBatch.from_pydict({'c0': ['u'], 'c1': pa.array([3], pa.int32()), 'c2': ['x']})\n"
        "print(sum(one.num_rows for one in task(iter([batch, batch]))), next(versions(()))[1])"
    )
    # Not with -I: a worker finds pyspark and the rest where PYTHONPATH points to.
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stdout == f"2 {duckdb.__version__}\n", told.stderr


PACKAGE = Path(tasks.__file__).parent
NEVER = {
    "accumulator", "cache", "checkpoint", "localCheckpoint", "monotonically_increasing_id", "orderBy", "persist", "rand",
    "randn", "randomSplit", "sample", "sampleBy", "shuffle", "uuid", "foreach", "foreachPartition", "broadcast",
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_nothing_random_cached_or_counted_by_accumulators(path):
    tree = ast.parse(path.read_text())
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in called}
    assert not names & NEVER
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "repartition":
            assert len(node.args) >= 2, "without columns rows are dealt in turns, by their order"


def test_only_the_name_of_a_class_passes_from_an_error():
    quoted = RuntimeError(f"cannot cast '{worker.FAILED}Smith' to INT")
    assert engine.kind_of(quoted) == "RuntimeError"
    of_task = RuntimeError(f"{worker.FAILED}Smith, {worker.FAILED}OutOfMemoryException")
    assert engine.kind_of(of_task) == "OutOfMemoryException"
    assert engine.kind_of(RuntimeError(f"{worker.FAILED}VersionDiffers")) == "VersionDiffers"


def test_a_setting_that_a_task_cannot_make_stops_it():
    work = counted(READING, [], TOTAL, [F("SET TimeZone = 'Nowhere/At_all'")])
    with pytest.raises(RuntimeError) as raised:
        run(work, [batches_of([("u", 1, "x")], [])])
    assert "Nowhere" not in str(raised.value)
