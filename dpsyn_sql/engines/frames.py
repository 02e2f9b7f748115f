"""Open a data frame: its types before the debit, its rows when the first question reads them.

PRIVATE side. Opening looks at an empty frame of the same columns. The rows are registered with a DuckDB
instance of ours when the first statement reads them, and let go after the last question. The caller's
connection never sees them.

The type of a column follows from its dtype alone, never from its values: DuckDB would look at a sample of
rows to find the type of a column of Python objects. So such a column is text here, by a function of the
single value. Numbers, booleans and times are handed over without a copy.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.common.notices import warn
from dpsyn_sql.engines import instance
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.source_session import OpenedSource, SourceSession
from dpsyn_sql.errors import EngineFailure, SourceError
from dpsyn_sql.source.files import refuse_clashes
from dpsyn_sql.source.frames import Frame, library_of
from dpsyn_sql.source.names import LedgerNames, display_name, listed
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, qualified
from dpsyn_sql.sqltext.render import render

if TYPE_CHECKING:  # half a second of a processor, for those who have no data frame of pandas
    import pandas as pd

NAME = "dpsyn_frame"
_IDENTITY = ("temp", "main", NAME)
_FROM = qualified(*_IDENTITY)
_RELEASED_AS = {"TIME_NS": "TIME"}
"""Types of columns of Arrow data, and what such a column is read and released as."""

_ZONES = (timezone, ZoneInfo)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
# What DuckDB's TIMESTAMP holds; beyond lie its infinities, and NaT.
_LOWEST, _HIGHEST = -9_223_372_022_400_000_000, 9_223_372_036_854_775_806
_ARROW_TEXT = ("string", "large_string", "string_view")
_ARROW_TIME = re.compile(r"timestamp\[(s|ms|us|ns)(, tz=.+)?\]")
_ARROW_DECIMAL = re.compile(r"decimal(?:32|64|128)\((\d+), (\d+)\)")
_ARROW_CASTS = {"date32[day]": "DATE", "time32[s]": "TIME", "time32[ms]": "TIME", "time64[us]": "TIME"}


@dataclass(kw_only=True)
class OpenedFrame(OpenedSource):
    """An open data frame; the ledger knows it by its label alone."""

    unplaced: ClassVar[str] = "A data frame has no place"

    def resolved_name(self, home: LedgerNames) -> str:
        """The label, marked as that of a data frame."""
        return home.frame(self.relation.name)

    def private_sources(self, home: LedgerNames) -> tuple[str, ...]:
        """The only one."""
        return (home.frame(self.relation.name),)


def memory_connection(memory_limit: str | None) -> duckdb.DuckDBPyConnection:
    """A database in memory for the rows of a release that is written nowhere else."""
    config: dict[str, Any] = {"python_enable_replacements": "false"}
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    return duckdb.connect(":memory:", config=config)


def open_frame(frame: Frame, memory_limit: str | None) -> SourceSession:
    """Open a data frame. Looks at no row.

    Raises:
        SourceError: the names of its columns are none, or cannot be told apart.
        InputError: ``memory_limit`` is not understood.
    """
    names = _names(frame.data)
    engine = instance.private_instance(memory_limit)
    with instance.closed_on_failure(engine):
        instance.set_option(engine, "pandas_analyze_sample", literal(0))
        instance.lock(engine, ())
        described = _pandas if library_of(frame.data) == "pandas" else _arrow_data
        columns, sql, rows = described(engine, frame.data, names)
    engine.hold_back(NAME, rows)
    source = OpenedFrame(
        relation=Relation(frame.label, "frame", sql, columns),
        default_into=display_name(f"{frame.label}_synthetic"),
        reads=(_IDENTITY,),
    )
    return SourceSession(engine, {source.name: source}, memory_limit=memory_limit)


_Described = tuple[tuple[Column, ...], Fragment, Callable[[], object]]
"""Columns, the SQL of the rows, and what gives the object to register."""


def _pandas(engine: DuckDBEngine, data: Any, names: list[str]) -> _Described:
    if left_out := [name for name in data.index.names if name is not None]:
        index = listed(name if isinstance(name, str) else "no text" for name in left_out)
        warn(f"The index of the data frame ({index}) is left out. df.reset_index() makes it a column.")
    empty = pandas_columns(data.iloc[:0])
    arrays = registered(empty)
    sql = _relation(expressions(names, empty)) if arrays else Fragment("")
    types = dict(_described(engine, arrays, sql)) if arrays else {}
    columns = [
        Column(name, column.sql_type if isinstance(column, Unsupported) else types[name])
        for name, column in zip(names, empty, strict=True)
    ]
    return tuple(columns), sql, lambda: registered(pandas_columns(data))


def _arrow_data(engine: DuckDBEngine, data: Any, names: list[str]) -> _Described:
    """Of anything that gives streams of Arrow data: Polars needs no pyarrow for that."""
    empty = data.clear() if library_of(data) == "polars" else data.schema.empty_table()
    types = {name: _arrow_type(engine, empty.select([name])) for name in names}
    read = [name for name in names if parse_type(types[name]) is not None]
    sql = _relation([Fragment(f"CAST({ident(name)} AS {types[name]}) AS {ident(name)}") for name in read])
    columns = tuple(Column(name, types[name]) for name in names)
    return columns, sql, lambda: _Stream(data.select(read))


def _arrow_type(engine: DuckDBEngine, empty: Any) -> str:
    """The SQL type of the only column of an empty frame; of one that DuckDB cannot read its own type."""
    polars = library_of(empty) == "polars"
    dtype = str(empty.dtypes[0] if polars else empty.schema.types[0])
    if dtype.lower() == "null":
        return "NULL"  # the older DuckDB takes it for INTEGER
    with contextlib.suppress(SourceError, EngineFailure):
        sql_type = _described(engine, _Stream(empty), _FROM)[0][1]
        return "VARCHAR" if sql_type.startswith("ENUM(") else _RELEASED_AS.get(sql_type, sql_type)
    return dtype.split("(")[0].split("[")[0]


def _described(engine: DuckDBEngine, empty: object, sql: Fragment) -> list[tuple[str, str]]:
    """Names and types of the columns that are read of an empty frame."""
    with engine.registered(NAME, empty):
        columns = DuckDBCatalog(engine).describe_files(sql, "the data frame")
    return [(column.name, column.sql_type) for column in columns]


def _relation(columns: list[Fragment]) -> Fragment:
    return render("source/frame", columns=columns, frame=_FROM)


def _names(data: Any) -> list[str]:
    """The names of the columns: text that SQL can hold and tell apart."""
    labels = data.schema.names if library_of(data) == "pyarrow" else list(data.columns)
    for number, name in enumerate(labels, 1):
        if not isinstance(name, str):
            raise SourceError(
                f"The name of column {number} of the data frame is no text but <{type(name).__name__}>. Give "
                "every column a name: df.columns = [...]."
            )
        if not name or "\x00" in name or name != name.encode("utf-8", "replace").decode():
            raise SourceError(
                f"The name of column {number} of the data frame is empty, or has a NUL or half a surrogate "
                "pair, which no database can hold. Rename it."
            )
    if not labels:
        raise SourceError("The data frame has no columns.")
    names = [str.__str__(name) for name in labels]
    refuse_clashes(tuple(names), "The data frame")
    return names


class _Stream:
    """Arrow data by the C stream interface alone, so that DuckDB needs no other library for it."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


# -- columns of pandas -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """Values of a column as numpy has them, and which of them are NULL (None: as the values say).

    ``read`` makes the column's value from the SQL of ``values``.
    """

    values: NDArray[Any]
    nulls: NDArray[np.bool_] | None
    read: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A column that cannot be read, by the name of its type."""

    sql_type: str


def pandas_columns(frame: pd.DataFrame) -> list[ColumnValues | Unsupported]:
    """The columns of a pandas data frame, in order."""
    return [_held(frame.iloc[:, number]) for number in range(frame.shape[1])]


def registered(columns: list[ColumnValues | Unsupported]) -> dict[str, NDArray[Any]]:
    """Arrays under names of ours, as DuckDB scans them."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, column in enumerate(columns):
        if isinstance(column, ColumnValues):
            arrays[f"v{number}"] = column.values
            if column.nulls is not None:
                arrays[f"n{number}"] = column.nulls
    return arrays


def expressions(names: list[str], columns: list[ColumnValues | Unsupported]) -> list[Fragment]:
    """The columns as SQL over ``registered``, under their own names."""
    sql = []
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        if isinstance(column, ColumnValues):
            value = column.read(f"v{number}")
            if column.nulls is not None:
                value = f"CASE WHEN n{number} THEN NULL ELSE {value} END"
            sql.append(Fragment(f"{value} AS {ident(name)}"))
    return sql


def text_of(value: object) -> str | None:
    """A Python object as text, whatever stands in other rows; None for what is no single value.

    Text stays as it is, with ``?`` for halves of surrogate pairs, which no database can hold. Numbers,
    booleans, dates, times and UUIDs are written as Python writes them; times in a zone whose offset code of
    somebody else would say are written without it.
    """
    if type(value) is str and value.isascii():
        return value
    if isinstance(value, str):
        return str.__str__(value).encode("utf-8", "replace").decode()
    if isinstance(value, np.generic):
        value = np.generic.item(value)  # never the method of a subclass
    if type(value) not in _written_types():
        return None
    if isinstance(value, datetime | time) and type(value.tzinfo) not in (type(None), *_ZONES):
        value = _without_zone(value)
    try:
        return str(value) if value == value else None  # else it is no number
    except (ValueError, ArithmeticError):  # a whole number of more than 4300 digits, or a signalling NaN
        return None


@cache
def _written_types() -> frozenset[type]:
    import pandas as pd

    return frozenset({bool, int, float, Decimal, date, datetime, time, UUID, pd.Timestamp})


def _without_zone(value: datetime | time) -> datetime | time:
    """What the clock showed; asks the zone nothing."""
    clock = time(value.hour, value.minute, value.second, value.microsecond)
    return (
        datetime.combine(date(value.year, value.month, value.day), clock)
        if isinstance(value, datetime)
        else clock
    )


def _held(series: pd.Series[Any]) -> ColumnValues | Unsupported:
    import pandas as pd

    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(series)
    if isinstance(dtype, pd.ArrowDtype):
        return _arrow(series, str(dtype.pyarrow_dtype))
    if isinstance(dtype, pd.StringDtype) or dtype == np.dtype(object):
        return _text(series)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _moments(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), zoned=True)
    if isinstance(dtype, np.dtype):
        return _plain(series.to_numpy())
    if isinstance(getattr(dtype, "numpy_dtype", None), np.dtype):
        return _masked(series, dtype.numpy_dtype)
    return Unsupported(type(dtype).__name__)


def _plain(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> ColumnValues | Unsupported:
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "M":
        return _moments(values, zoned=False)
    if kind == "m":
        return Unsupported("INTERVAL")
    if kind not in "biuf" or size > 8:
        return Unsupported(str(values.dtype))
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return ColumnValues(values, nulls, _itself)


def _masked(series: pd.Series[Any], dtype: np.dtype[Any]) -> ColumnValues | Unsupported:
    """A column with a mask of its own: Int64, boolean and the like, and Arrow's numbers."""
    if dtype.kind not in "biuf":
        return Unsupported(str(series.dtype))
    nulls = series.isna().to_numpy(dtype=bool)
    return _plain(series.to_numpy(dtype=dtype, na_value=dtype.type(0)), nulls)


def _moments(values: NDArray[Any], *, zoned: bool) -> ColumnValues:
    """Times as whole numbers of their unit: casts of those that are out of range would fail."""
    unit = np.datetime_data(values.dtype)[0]
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))

    def read(name: str) -> str:
        if unit == "ns":
            moment = f"CASE WHEN {name} > -9223372036854775807 THEN make_timestamp({name} // 1000) END"
        else:
            factor = _MICROSECONDS[unit]
            lowest, highest = -(-_LOWEST // factor), _HIGHEST // factor
            within = f"{name} BETWEEN {lowest} AND {highest}"
            moment = f"CASE WHEN {within} THEN make_timestamp({name} * {factor}) END"
        return f"timezone('UTC', {moment})" if zoned else moment

    return ColumnValues(values.view(np.int64), None, read)


def _text(series: pd.Series[Any]) -> ColumnValues:
    objects = series.to_numpy(dtype=object)
    texts = np.empty(len(objects), dtype=object)
    texts[:] = [text_of(value) for value in objects]
    return ColumnValues(texts, None, _cast("VARCHAR"))


def _categories(series: pd.Series[Any]) -> ColumnValues | Unsupported:
    """Codes are looked up: the categories may have been made from the rows, so none is public."""
    codes = series.cat.codes.to_numpy()
    listed = series.cat.categories if len(series) else series.cat.categories[:0]  # seen with the rows, or not
    category_values = _held(listed.to_series())
    if isinstance(category_values, Unsupported):
        return category_values
    missing = codes < 0
    if len(category_values.values) == 0:
        return ColumnValues(
            np.zeros(len(codes), dtype=category_values.values.dtype),
            np.ones(len(codes), dtype=bool),
            category_values.read,
        )
    nulls = missing if category_values.nulls is None else missing | category_values.nulls[codes]
    return ColumnValues(category_values.values[codes], nulls, category_values.read)


def _arrow(series: pd.Series[Any], kind: str) -> ColumnValues | Unsupported:
    """A pandas column that is kept by Arrow."""
    if kind in _ARROW_TEXT:
        return _text(series)
    if matched := _ARROW_TIME.fullmatch(kind):
        moments = series.dt.tz_convert("UTC").dt.tz_localize(None) if matched[2] else series
        values = moments.to_numpy(dtype=f"datetime64[{matched[1]}]", na_value=np.datetime64("NaT"))
        return _moments(values, zoned=matched[2] is not None)
    cast = _ARROW_CASTS.get(kind)
    if matched := _ARROW_DECIMAL.fullmatch(kind):
        cast = f"DECIMAL({matched[1]},{matched[2]})"
    if cast is not None:
        texts = _text(series)
        return ColumnValues(texts.values, texts.nulls, _cast(cast))
    return _masked(series, series.dtype.numpy_dtype)  # type: ignore[union-attr]


def _itself(name: str) -> str:
    return name


def _cast(kind: str) -> Callable[[str], str]:
    return lambda name: f"TRY_CAST({name} AS {kind})"
