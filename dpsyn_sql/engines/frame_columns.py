"""What DuckDB is given of a data frame: columns of fixed types, each value by itself.

PRIVATE side. The type of a column follows from its dtype alone, never from its values: DuckDB would look at
a sample of rows to find the type of a column of Python objects. So such a column is text here, by a function
of the single value. Numbers, booleans and times are handed over without a copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.sqltext.fragments import Fragment, ident

_TEXTS = frozenset({bool, int, float, Decimal, date, datetime, time, UUID, pd.Timestamp})
_ZONES = (timezone, ZoneInfo)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
# What DuckDB's TIMESTAMP holds; beyond lie its infinities, and NaT.
_LOWEST, _HIGHEST = -9_223_372_022_400_000_000, 9_223_372_036_854_775_806
_ARROW_TEXT = ("string", "large_string", "string_view")
_ARROW_TIME = re.compile(r"timestamp\[(s|ms|us|ns)(, tz=.+)?\]")
_ARROW_DECIMAL = re.compile(r"decimal(?:32|64|128)\((\d+), (\d+)\)")
_ARROW_CASTS = {"date32[day]": "DATE", "time32[s]": "TIME", "time32[ms]": "TIME", "time64[us]": "TIME"}


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
    return [_held(frame.iloc[:, place]) for place in range(frame.shape[1])]


def registered(columns: list[ColumnValues | Unsupported]) -> dict[str, NDArray[Any]]:
    """Arrays under names of ours, as DuckDB scans them."""
    found: dict[str, NDArray[Any]] = {}
    for place, column in enumerate(columns):
        if isinstance(column, ColumnValues):
            found[f"v{place}"] = column.values
            if column.nulls is not None:
                found[f"n{place}"] = column.nulls
    return found


def expressions(names: list[str], columns: list[ColumnValues | Unsupported]) -> list[Fragment]:
    """The columns as SQL over ``registered``, under their own names."""
    found = []
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        if isinstance(column, ColumnValues):
            value = column.read(f"v{place}")
            if column.nulls is not None:
                value = f"CASE WHEN n{place} THEN NULL ELSE {value} END"
            found.append(Fragment(f"{value} AS {ident(name)}"))
    return found


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
    if type(value) not in _TEXTS:
        return None
    if isinstance(value, datetime | time) and type(value.tzinfo) not in (type(None), *_ZONES):
        value = _without_zone(value)
    try:
        return str(value) if value == value else None  # else it is no number
    except (ValueError, ArithmeticError):  # a whole number of more than 4300 digits, or a signalling NaN
        return None


def _without_zone(value: datetime | time) -> datetime | time:
    """What the clock showed; asks the zone nothing."""
    clock = time(value.hour, value.minute, value.second, value.microsecond)
    return (
        datetime.combine(date(value.year, value.month, value.day), clock)
        if isinstance(value, datetime)
        else clock
    )


def _held(series: pd.Series[Any]) -> ColumnValues | Unsupported:
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
    held = _held(pd.Series(listed))
    if isinstance(held, Unsupported):
        return held
    missing = codes < 0
    if len(held.values) == 0:
        return ColumnValues(
            np.zeros(len(codes), dtype=held.values.dtype), np.ones(len(codes), dtype=bool), held.read
        )
    nulls = missing if held.nulls is None else missing | held.nulls[codes]
    return ColumnValues(held.values[codes], nulls, held.read)


def _arrow(series: pd.Series[Any], kind: str) -> ColumnValues | Unsupported:
    """A pandas column that is kept by Arrow."""
    if kind in _ARROW_TEXT:
        return _text(series)
    if found := _ARROW_TIME.fullmatch(kind):
        moments = series.dt.tz_convert("UTC").dt.tz_localize(None) if found[2] else series
        values = moments.to_numpy(dtype=f"datetime64[{found[1]}]", na_value=np.datetime64("NaT"))
        return _moments(values, zoned=found[2] is not None)
    cast = _ARROW_CASTS.get(kind)
    if found := _ARROW_DECIMAL.fullmatch(kind):
        cast = f"DECIMAL({found[1]},{found[2]})"
    if cast is not None:
        held = _text(series)
        return ColumnValues(held.values, held.nulls, _cast(cast))
    return _masked(series, series.dtype.numpy_dtype)  # type: ignore[union-attr]


def _itself(name: str) -> str:
    return name


def _cast(kind: str) -> Callable[[str], str]:
    return lambda name: f"TRY_CAST({name} AS {kind})"
