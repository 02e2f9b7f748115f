"""Data frames: which types they have, that every value counts as in a table, and what is refused."""

import datetime as dt
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsyn_sql
from dpsyn_sql.engines import frames
from dpsyn_sql.engines.frames import NAME, text_of
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import EngineFailure, InternalError, SourceError
from dpsyn_sql.front.measure import opened_counter
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.source.frames import Frame, is_frame

WHEN = [dt.datetime(2020, 2, 29, 12, 30), dt.datetime(1600, 1, 1), None, dt.datetime(2262, 1, 1, 0, 0, 1)]
CLOSE = [dt.datetime(2020, 2, 29, 12, 30), dt.datetime(1700, 1, 1), None, dt.datetime(2261, 1, 1, 0, 0, 1)]
TIMES = {"type": "temporal", "lower": "1690-01-01", "upper": "2260-01-01", "bins": 9, "nullable": True}
NUMBERS = {"type": "numeric", "lower": 0, "upper": 100, "bins": 7, "nullable": True}
WORDS = {"type": "categorical", "categories": ["a", "ü", "1", "True"], "nullable": True}
DAYS = {"type": "temporal", "lower": "2000-01-01", "upper": "2030-01-01", "bins": 5, "nullable": True}
HOURS = {"type": "temporal", "lower": "00:00:00", "upper": "23:59:59", "bins": 5, "nullable": True}

MIXED = ["a", 1, None, True, float("nan"), pd.NA, ["a"], b"a", np.str_("ü")]
MIXED_TEXT = ["a", "1", None, "True", None, None, None, None, "ü"]

PANDAS = {  # a column, its SQL type, its values as a table has them, a domain
    **{
        f"{kind}{size}": (np.array([0, 1, 100, 7], dtype=f"{kind}{size}"), sql, [0, 1, 100, 7], NUMBERS)
        for kind, size, sql in (
            ("int", 8, "TINYINT"),
            ("int", 16, "SMALLINT"),
            ("int", 32, "INTEGER"),
            ("int", 64, "BIGINT"),
            ("uint", 8, "UTINYINT"),
            ("uint", 16, "USMALLINT"),
            ("uint", 32, "UINTEGER"),
            ("uint", 64, "UBIGINT"),
        )
    },
    "float16": (np.array([0.5, np.nan, np.inf], "float16"), "FLOAT", [0.5, None, "inf"], NUMBERS),
    "float32": (np.array([0.5, np.nan, -np.inf], "float32"), "FLOAT", [0.5, None, "-inf"], NUMBERS),
    "float64": (np.array([0.5, np.nan, 1e300]), "DOUBLE", [0.5, None, 1e300], NUMBERS),
    "big endian": (np.array([1, 256, 2], ">i4"), "INTEGER", [1, 256, 2], NUMBERS),
    "strided": (np.arange(12)[::3], "BIGINT", [0, 3, 6, 9], NUMBERS),
    "bool": (np.array([True, False, True]), "BOOLEAN", [True, False, True], None),
    "Int64": (pd.array([1, None, -3], dtype="Int64"), "BIGINT", [1, None, -3], NUMBERS),
    "UInt8": (pd.array([1, None, 255], dtype="UInt8"), "UTINYINT", [1, None, 255], NUMBERS),
    "Float64": (pd.array([1.5, None, 2], dtype="Float64"), "DOUBLE", [1.5, None, 2], NUMBERS),
    "boolean": (pd.array([True, None, False], dtype="boolean"), "BOOLEAN", [True, None, False], None),
    **{
        f"datetime {unit}": (
            np.array(WHEN if unit != "ns" else CLOSE, dtype=f"M8[{unit}]"),
            "TIMESTAMP",
            values,
            TIMES,
        )
        for unit, values in (("s", WHEN), ("ms", WHEN), ("us", WHEN), ("ns", CLOSE))
    },
    "zoned": (
        pd.Series(pd.to_datetime(["2020-02-29 12:30", None, "1999-07-01 00:00"])).dt.tz_localize(
            "Europe/Berlin"
        ),
        "TIMESTAMP WITH TIME ZONE",
        ["2020-02-29 11:30:00+00", None, "1999-06-30 22:00:00+00"],
        TIMES,
    ),
    "str": (pd.Series(["a", None, "ü", "b\x00c"]), "VARCHAR", ["a", None, "ü", "b\x00c"], WORDS),
    "string": (pd.array(["a", None, "z"], dtype="string[python]"), "VARCHAR", ["a", None, "z"], WORDS),
    "object": (pd.Series(MIXED, dtype=object), "VARCHAR", MIXED_TEXT, WORDS),
    "categories": (pd.Categorical(["a", None, "ü", "a"]), "VARCHAR", ["a", None, "ü", "a"], WORDS),
    "numbers as categories": (pd.Categorical([5, None, 7, 5]), "BIGINT", [5, None, 7, 5], NUMBERS),
    "no categories": (pd.Categorical([None, None], categories=[]), "VARCHAR", [None, None], WORDS),
}


def counts_of(con, source, spec, **options):
    """The exact counts of all one-way tables, by the SQL of a release."""
    request = Request(source, epsilon=1, domain=spec, method="independent", **options)
    with prepared(con, request) as job:
        plan = job.only.plan
        with opened_counter(job, plan.source, plan.domain) as opening:
            return [table.tolist() for table in opening(plan.steps).count(plan.queries)], plan


def in_table(sql, values):
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t (x {sql})")
    for value in values:
        con.execute("INSERT INTO t VALUES (?)", [value])
    return con


def equal_counts(frame, sql, values, spec, tmp_path):
    spec = None if spec is None else {"columns": {"x": spec}}
    place = tmp_path / "x.ledger"
    found, plan = counts_of(frame, "people", spec, ledger=place)
    wanted, other = counts_of(in_table(sql, values), "t", spec, ledger=place)
    assert found == wanted
    assert sum(found[0]) == len(values)
    assert plan.domain == other.domain and plan.steps == other.steps


@pytest.mark.slow
@pytest.mark.parametrize("case", PANDAS)
def test_a_pandas_column_counts_as_the_same_values_in_a_table(tmp_path, case):
    column, sql, values, spec = PANDAS[case]
    frame = pd.DataFrame({"x": column})
    assert types_of(frame) == [sql]
    equal_counts(frame, sql, values, spec, tmp_path)


def types_of(frame):
    with open_source(None, Frame(frame, "people")) as session:
        return [column.sql_type for column in session.relation.columns]


@pytest.mark.slow
@pytest.mark.parametrize("case", PANDAS)
def test_types_of_a_pandas_frame_do_not_depend_on_its_rows(case):
    frame = pd.DataFrame({"x": PANDAS[case][0]})
    assert types_of(frame) == types_of(frame.iloc[:0]) == types_of(frame.iloc[1:2])


ARROW = {
    "int64": ([1, None, 200], "BIGINT", [1, None, 200], NUMBERS),
    "uint8": ([1, None, 200], "UTINYINT", [1, None, 200], NUMBERS),
    "double": ([1.5, None, float("nan"), float("inf")], "DOUBLE", [1.5, None, "nan", "inf"], NUMBERS),
    "bool": ([True, None, False], "BOOLEAN", [True, None, False], None),
    "string": (["a", None, "ü"], "VARCHAR", ["a", None, "ü"], WORDS),
    "large_string": (["a", None, "ü"], "VARCHAR", ["a", None, "ü"], WORDS),
    "date32": ([dt.date(2020, 1, 2), None], "DATE", [dt.date(2020, 1, 2), None], DAYS),
    "time64[us]": ([dt.time(1, 2), None], "TIME", [dt.time(1, 2), None], HOURS),
    "timestamp[us]": (WHEN, "TIMESTAMP", WHEN, TIMES),
    "timestamp[s]": (WHEN, "TIMESTAMP_S", WHEN, TIMES),
    "timestamp[ns]": (CLOSE, "TIMESTAMP_NS", CLOSE, TIMES),
    "decimal128(10, 2)": ([Decimal("1.23"), None], "DECIMAL(10,2)", [Decimal("1.23"), None], NUMBERS),
}


def arrow_type(pa, kind):
    if kind.startswith("decimal128"):
        return pa.decimal128(10, 2)
    return pa.timestamp(kind[10:-1]) if kind.startswith("timestamp") else pa.type_for_alias(kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    ["table", *(pytest.param(form, marks=pytest.mark.slow) for form in ("batch", "dictionary", "pandas"))],
)
@pytest.mark.parametrize("kind", ARROW)
def test_an_arrow_column_counts_as_the_same_values_in_a_table(tmp_path, kind, form):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    given, sql, values, spec = ARROW[kind]
    column = pa.array(given, arrow_type(pa, kind))
    if form == "dictionary":
        if kind not in ("string", "int64"):
            pytest.skip("one dictionary of text and one of numbers is enough")
        column = column.dictionary_encode()
    if form == "pandas":
        frame = pd.DataFrame({"x": pd.Series(column, dtype=pd.ArrowDtype(column.type))})
        sql = "TIMESTAMP" if sql.startswith("TIMESTAMP") else sql
    else:
        frame = pa.table({"x": column})
        frame = frame.to_batches()[0] if form == "batch" else frame
    assert types_of(frame) == [sql]
    if kind == "double" and form == "pandas":
        pytest.skip("whether NaN of an Arrow column of pandas is NULL is a choice of pandas")
    equal_counts(frame, sql, values, spec, tmp_path)


POLARS = {
    "Int64": ([1, None, 200], "BIGINT", [1, None, 200], NUMBERS),
    "UInt16": ([1, None, 200], "USMALLINT", [1, None, 200], NUMBERS),
    "Float32": ([1.5, None, float("nan"), float("inf")], "FLOAT", [1.5, None, "nan", "inf"], NUMBERS),
    "Boolean": ([True, None, False], "BOOLEAN", [True, None, False], None),
    "String": (["a", None, "ü", "b\x00c"], "VARCHAR", ["a", None, "ü", "b\x00c"], WORDS),
    "Categorical": (["a", None, "ü"], "VARCHAR", ["a", None, "ü"], WORDS),
    "Enum": (["a", None, "ü"], "VARCHAR", ["a", None, "ü"], WORDS),
    "Date": ([dt.date(2020, 1, 2), None], "DATE", [dt.date(2020, 1, 2), None], DAYS),
    "Time": ([dt.time(1, 2), None], "TIME", [dt.time(1, 2), None], HOURS),
    "Datetime": (WHEN, "TIMESTAMP", WHEN, TIMES),
    "Decimal": ([Decimal("1.23"), None], "DECIMAL(38,2)", [Decimal("1.23"), None], NUMBERS),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", POLARS)
def test_a_polars_column_counts_as_the_same_values_in_a_table(tmp_path, kind):
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    given, sql, values, spec = POLARS[kind]
    made = {"Enum": lambda: pl.Enum(["ü", "a"]), "Decimal": lambda: pl.Decimal(38, 2)}
    column = pl.Series(given, dtype=made.get(kind, lambda: getattr(pl, kind))())
    frame = pl.DataFrame({"x": column})
    assert types_of(frame) == types_of(frame.clear()) == [sql]
    equal_counts(frame, sql, values, spec, tmp_path)


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import dpsyn_sql, polars
frame = polars.DataFrame({"b": [True, False] * 50, "n": range(100)})
spec = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 100, "bins": 7}}}
release = dpsyn_sql.release(frame, "p", domain=spec, epsilon=9, ledger=sys.argv[1], rows=20)
assert release.to_df("polars").shape == (20, 2)
try:
    release.to_df("arrow")
except dpsyn_sql.errors.InputError as error:
    assert "dpsyn_sql[arrow]" in str(error)
    print("done")
"""


@pytest.mark.slow
def test_polars_needs_no_pyarrow(tmp_path):
    pytest.importorskip("polars", reason="Polars is not installed")
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_PYARROW, str(tmp_path / "l")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


class Loud(int):
    def __str__(self):
        raise AssertionError("code of a value runs")


class LoudNumber(np.float64):
    def item(self):
        raise AssertionError("code of a value runs")


class LoudText(str):
    def __str__(self):
        raise AssertionError("code of a value runs")

    isascii = encode = __str__


class LoudZone(dt.tzinfo):
    """Another offset at each call: what earlier rows asked would show in later ones."""

    calls = 0

    def utcoffset(self, moment):
        LoudZone.calls += 1
        return dt.timedelta(minutes=self.calls)

    dst = utcoffset

    def tzname(self, moment):
        return str(self.utcoffset(moment))


@given(
    st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.decimals(), st.datetimes(), st.none())
)
def test_text_of_a_value_is_text_that_a_database_can_hold(value):
    text = text_of(value)
    assert text is None or text == text.encode().decode()
    if isinstance(value, str) and max(value, default="") < "\ud800":
        assert text == value


def test_text_of_hostile_values():
    assert text_of("\ud800x") == "?x"
    assert text_of(10**5000) is None and text_of(10**50) == str(10**50)
    assert text_of(Loud(3)) is None and text_of(object()) is None and text_of({"a": 1}) is None
    assert text_of(np.float64("nan")) is None and text_of(Decimal("nan")) is None and text_of(pd.NaT) is None
    assert text_of(np.int8(3)) == "3" and text_of(dt.date(2020, 1, 2)) == "2020-01-02"
    assert text_of(UUID(int=0)) == str(UUID(int=0))
    assert text_of(LoudNumber(2.5)) == "2.5" and text_of(LoudText("a")) == "a"


def test_text_of_a_time_asks_no_zone_of_somebody_else():
    moment = dt.datetime(2020, 1, 2, 3, 4, 5)
    zone = LoudZone()
    loud = [moment.replace(tzinfo=zone), pd.Timestamp(moment, tz=zone)]
    before = LoudZone.calls
    assert [text_of(value) for value in loud] == [str(moment)] * 2
    assert text_of(dt.time(3, 4, tzinfo=zone)) == "03:04:00"
    assert LoudZone.calls == before
    for own in (dt.UTC, ZoneInfo("Europe/Berlin")):
        for value in (moment.replace(tzinfo=own), pd.Timestamp(moment, tz=own)):
            assert text_of(value) == str(value)


@pytest.mark.parametrize("content", [b"\xff\xfek9secret", b"\xed\xa0\x80k9", b"k9\xf0", b"\xff" * 300])
def test_bytes_that_are_no_text_are_no_key_and_in_no_error(tmp_path, content):
    """Arrow data can hold them, and DuckDB reads them as they are.

    Noise writes a NULL that no row has in about one release of a hundred: it is no key either.
    """
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    ends = np.arange(601, dtype=np.int32) * len(content)
    odd = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(content * 600)]
    frame = pa.table({"x": pa.Array.from_buffers(pa.utf8(), 600, odd), "y": ["a", "b", "b"] * 200})
    release = dpsyn_sql.release(frame, "p", ledger=tmp_path / "l", epsilon=5, rows=20, method="independent")
    rows = release.to_df()
    assert set(rows.x.dropna()) == {"__other__"} and set(rows.y.dropna()) <= {"a", "b", "__other__"}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=3), st.integers(), st.none(), st.floats(), st.lists(st.none()))))
def test_no_object_column_makes_a_count_fail(tmp_path_factory, values):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    spec = {"columns": {"x": {"type": "categorical", "categories": ["a", "0"], "nullable": True}}}
    found, _ = counts_of(frame, "p", spec, ledger=tmp_path_factory.mktemp("l") / "x")
    texts = [text_of(value) for value in values]
    assert sum(found[0]) == len(values)
    assert (
        found[0][0] == texts.count("a")
        and found[0][1] == texts.count("0")
        and found[0][-1] == texts.count(None)
    )


def test_times_out_of_range_are_null(tmp_path):
    far = np.array([2**62, -(2**62), 5], dtype="int64").view("M8[s]")
    frame = pd.DataFrame({"x": pd.Series(far), "y": pd.Series(far).dt.tz_localize("UTC")})
    found, _ = counts_of(frame, "p", {"columns": {"x": TIMES, "y": TIMES}}, ledger=tmp_path / "l")
    assert [table[-1] for table in found] == [2, 2]


# -- what is refused ---------------------------------------------------------------------------------


REFUSED = {
    "no columns": (pd.DataFrame(index=[1, 2]), "no columns"),
    "one name twice": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "cannot tell apart"),
    "one name in two cases": (pd.DataFrame([[1, 2]], columns=["a", "A"]), "cannot tell apart"),
    "a number as name": (pd.DataFrame([[1, 2]], columns=["a", 731]), "column 2 .* no text but <int>"),
    "several levels": (
        pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])),
        "column 1 .* no text but <tuple>",
    ),
    "an empty name": (pd.DataFrame({"": [1]}), "column 1 .* empty"),
    "a NUL in a name": (pd.DataFrame({"a\x00": [1]}), "NUL"),
    "half a pair in a name": (pd.DataFrame([[1]], columns=pd.Index(["a\udc00"], dtype=object)), "surrogate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_frames_that_are_refused(tmp_path, case):
    frame, message = REFUSED[case]
    with pytest.raises(SourceError, match=message) as caught:
        dpsyn_sql.release(frame, "p", ledger=tmp_path / "l")
    assert "731" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


UNSUPPORTED = {
    "timedelta": pd.Series(pd.to_timedelta([1, 2])),
    "complex": pd.Series([1j, 2j]),
    "interval": pd.Series(pd.interval_range(0, 2)),
    "period": pd.Series(pd.period_range("2020", periods=2, freq="M")),
    "bins of cut": pd.Series(pd.cut([1, 2], 2)),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_columns_that_cannot_be_read_are_named_and_can_be_left_out(tmp_path, case):
    frame = pd.DataFrame({"x": UNSUPPORTED[case], "b": [True, False]})
    with pytest.raises(dpsyn_sql.errors.DomainError, match="unsupported types: 'x'"):
        dpsyn_sql.release(frame, "p", ledger=tmp_path / "l")
    assert list(tmp_path.iterdir()) == []
    release = dpsyn_sql.release(frame, "p", ledger=tmp_path / "l", exclude=["x"], rows=4)
    assert list(release.to_df()) == ["b"] and len(release.to_df()) == 4


def test_columns_of_polars_that_cannot_be_read(tmp_path):
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    odd = {
        "l": pl.Series([[1], None]),
        "n": pl.Series([None, None]),
        "d": pl.Series([dt.timedelta(1), None]),
        "o": pl.Series([object(), None], dtype=pl.Object),
        "h": pl.Series([b"x", None]),
        "i": pl.Series([1, None], dtype=pl.Int128),
    }
    frame = pl.DataFrame({"b": [True, False], **odd})
    kinds = dict(zip(frame.columns, types_of(frame), strict=True))
    readable = [name for name in odd if kinds[name] == "HUGEINT"]  # some DuckDB may learn to read it
    with pytest.raises(dpsyn_sql.errors.DomainError, match="unsupported types: 'l'"):
        dpsyn_sql.release(frame, "p", ledger=tmp_path / "l")
    rest = [name for name in odd if name not in readable]
    release = dpsyn_sql.release(frame, "p", ledger=tmp_path / "l", exclude=rest, rows=4)
    assert list(release.to_df()) == ["b", *readable]


def test_a_named_index_is_left_out_with_a_warning(tmp_path):
    frame = pd.DataFrame({"b": [True, False]}, index=pd.Index(["secret1", "secret2"], name="person"))
    with pytest.warns(UserWarning, match="index of the data frame \\('person'\\) is left out") as told:
        release = dpsyn_sql.release(frame, "p", ledger=tmp_path / "l")
    assert list(release.to_df()) == ["b"] and not any("secret" in str(one.message) for one in told)


# -- when the rows are read --------------------------------------------------------------------------


def test_no_row_is_looked_at_before_the_first_question(tmp_path, monkeypatch):
    seen, own = [], frames.pandas_columns
    monkeypatch.setattr(frames, "pandas_columns", lambda frame: (seen.append(len(frame)), own(frame))[1])
    frame = pd.DataFrame({"x": pd.Categorical(["a", "b"] * 5), "o": pd.Series([1, "a"] * 5, dtype=object)})
    options = dict(ledger=tmp_path / "l", epsilon=1)
    dpsyn_sql.plan(frame, "p", **options)
    dpsyn_sql.init(frame, "p")
    assert set(seen) == {0}
    kept = dpsyn_sql.release(frame, "p", **options)
    assert seen[-1] == 10 and seen.count(10) == 1
    before = len(seen)
    again = dpsyn_sql.release(frame.iloc[:3], "p", **options)  # a replay asks nothing
    assert again.replayed and set(seen[before:]) == {0} and again.to_df().equals(kept.to_df())
    with closing(SqliteLedger(tmp_path / "l")) as ledger:
        ledger.grant(":frame:p#row", 1, 1e-9)
    before = len(seen)
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
        dpsyn_sql.release(frame, "p", version="2", **options)
    assert set(seen[before:]) == {0}


def test_after_the_last_question_nothing_can_read_the_rows():
    frame = pd.DataFrame({"x": [1, 2]})
    with open_source(None, Frame(frame, "p")) as session:
        sql = f"SELECT count(*) AS n FROM {session.relation.sql}"
        assert session.engine.fetch(sql, step="test")["n"][0] == 2
        session.release_source()
        with pytest.raises(InternalError, match="names the source"):
            session.engine.fetch(sql, step="test")
        with pytest.raises(EngineFailure):
            session.engine.fetch(f"SELECT count(*) AS n FROM {NAME}", step="test")


def test_a_frame_is_never_registered_on_the_callers_connection(tmp_path):
    con = duckdb.connect()
    dpsyn_sql.release(con, pd.DataFrame({"b": [True, False]}), name="p", ledger=tmp_path / "l")
    names = [
        row[0] for row in con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    ]
    assert NAME not in names and con.execute("FROM p_synthetic").fetchall() is not None


def test_what_is_a_frame():
    assert is_frame(pd.DataFrame()) and is_frame(Frame(None, "p"))
    assert not any(
        is_frame(one) for one in (None, "t", pd.Series([1]), np.zeros(3), {"a": [1]}, duckdb.connect())
    )
