"""SQL types of columns, and types of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final, Literal

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, epoch, literal, string_literal, text_as

Family = Literal[
    "boolean", "integer", "decimal", "float", "text", "enum", "date", "time", "timestamp", "uuid"
]

Edge = int | float | Decimal | date | datetime | time

MAX_TICK = 2**62
"""Ticks below it, of either sign, can be added and subtracted as BIGINT."""

MAX_SCALE = 18
"""Decimal places of values that have ticks in SQL."""

_DIGITS = 19  # of MAX_TICK

_SIGNED = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63, "HUGEINT": 127}
_UNSIGNED = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64, "UHUGEINT": 128}
_TIMESTAMPS = {  # microseconds in a tick; nanoseconds are drawn as whole microseconds
    "TIMESTAMP": 1,
    "TIMESTAMP_NS": 1,
    "TIMESTAMP_MS": 1_000,
    "TIMESTAMP_S": 1_000_000,
    "TIMESTAMP WITH TIME ZONE": 1,
}
_ALIASES = {
    "BOOL": "BOOLEAN",
    "INT": "INTEGER",
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT4": "INTEGER",
    "INT8": "BIGINT",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
    "REAL": "FLOAT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
    "DATETIME": "TIMESTAMP",
}
# Bare numbers are safe beside these; beside unsigned and 128-bit types DuckDB may settle on BIGINT
# as the common type, whose overflow would depend on a value of the source.
_PLAIN = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_PYTHON_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
# Nanoseconds since 1970 in 64 bits end within these days.
_NS_LOW, _NS_HIGH = datetime(1677, 9, 22), datetime(2262, 4, 11)


@dataclass(frozen=True, slots=True)
class SqlType:
    """A supported type: canonical spelling, family, and for discrete types the lowest and the
    highest tick, the decimal scale and the microseconds of a timestamp's tick."""

    text: str
    family: Family
    low: int = 0
    high: int = 0
    scale: int = 0
    unit: int = 1

    @property
    def discrete(self) -> bool:
        """Whether the values are whole numbers of ticks."""
        return self.family in ("integer", "decimal", "date", "time", "timestamp")

    @property
    def temporal(self) -> bool:
        """Whether the values are dates or times."""
        return self.family in ("date", "time", "timestamp")

    @property
    def binned(self) -> Literal["numeric", "temporal"]:
        """What bins of it hold: numbers or times."""
        return "temporal" if self.temporal else "numeric"

    @property
    def zoned(self) -> bool:
        """Whether it is a timestamp with time zone."""
        return self.text == "TIMESTAMP WITH TIME ZONE"

    @property
    def day(self) -> int:
        """Ticks in a day (dates, times and timestamps)."""
        return 1 if self.family == "date" else 86_400_000_000 // self.unit

    @property
    def sql(self) -> Fragment:
        """The type as written in a statement."""
        return Fragment(self.text)


def parse_type(text: str) -> SqlType | None:
    """The type that a catalog or a person spells so; None if it is not supported."""
    if text.startswith("ENUM("):
        return SqlType(text, "enum") if _is_enum(text) else None
    name = " ".join(text.upper().split())
    name = _ALIASES.get(name, name)
    if name in _SIGNED:
        return SqlType(name, "integer", -(2 ** _SIGNED[name]), 2 ** _SIGNED[name] - 1)
    if name in _UNSIGNED:
        return SqlType(name, "integer", 0, 2 ** _UNSIGNED[name] - 1)
    if name in _TIMESTAMPS:
        return _timestamp(name, _TIMESTAMPS[name])
    if name == "DATE":
        return SqlType(name, "date", *((day - date(1970, 1, 1)).days for day in (date.min, date.max)))
    if name == "TIME":
        return SqlType(name, "time", 0, _DAY - 1)
    if name in ("FLOAT", "DOUBLE"):
        return SqlType(name, "float")
    if name == "UUID":
        return SqlType(name, "uuid")
    if name in ("BOOLEAN", "VARCHAR"):
        return SqlType(name, "boolean" if name == "BOOLEAN" else "text")
    return _decimal(name)


def _timestamp(name: str, unit: int) -> SqlType:
    bounds = (_NS_LOW, _NS_HIGH) if name == "TIMESTAMP_NS" else (datetime.min, datetime.max)
    low, high = ((moment - _PYTHON_EPOCH) // _MICROSECOND // unit for moment in bounds)
    return SqlType(name, "timestamp", low, high, unit=unit)


def _decimal(name: str) -> SqlType | None:
    match = re.fullmatch(r"(?:DECIMAL|NUMERIC) ?\( ?(\d{1,2}) ?, ?(\d{1,2}) ?\)", name)
    if match is None:
        return None
    precision, scale = int(match[1]), int(match[2])
    if not (1 <= precision <= 38 and scale <= precision):
        return None
    limit = 10**precision - 1
    return SqlType(f"DECIMAL({precision},{scale})", "decimal", -limit, limit, scale=scale)


def _is_enum(text: str) -> bool:
    return re.fullmatch(r"ENUM\('(?:[^']|'')*'(?:, '(?:[^']|'')*')*\)", text) is not None


def enum_type(labels: tuple[str, ...]) -> str:
    """The spelling of an ENUM type with these labels (none of them holds a NUL)."""
    return "ENUM(" + ", ".join(string_literal(label) for label in labels) + ")"


def supported_type(text: str, name: str) -> SqlType:
    """The type of a measured column.

    Raises:
        InternalError: the type is not supported, so this package never reads the column.
    """
    parsed = parse_type(text)
    if parsed is None:
        raise InternalError(f"column {name!r} has an unsupported type")
    return parsed


def to_tick(kind: SqlType, value: Edge) -> int:
    """The tick of a value of a discrete type.

    Raises:
        ValueError: the value is not a whole number of ticks.
    """
    if kind.family in ("integer", "decimal"):
        scaled = Decimal(value) if isinstance(value, (int, float, Decimal)) else Decimal("NaN")
        return _whole(scaled, kind.scale)
    if kind.family == "date" and isinstance(value, date):
        return (date(value.year, value.month, value.day) - date(1970, 1, 1)).days
    if kind.family == "time" and isinstance(value, time):
        return (datetime.combine(_PYTHON_EPOCH, value) - _PYTHON_EPOCH) // _MICROSECOND
    if isinstance(value, datetime):
        naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        ticks, remainder = divmod((naive - _PYTHON_EPOCH) // _MICROSECOND, kind.unit)
        if remainder == 0:
            return ticks
    raise ValueError("no whole number of ticks")


def _whole(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    magnitude: int
    if not isinstance(exponent, int) or value.adjusted() > 60:
        raise ValueError("no whole number of ticks")
    digit_text, shift = "".join(map(str, digits)), exponent + scale
    if shift >= 0:
        magnitude = int(digit_text) * 10**shift
    else:
        magnitude, remainder = divmod(int(digit_text), 10**-shift) if -shift < 400 else (0, int(digit_text))
        if remainder:
            raise ValueError("no whole number of ticks")
    return -magnitude if sign else magnitude


def from_tick(kind: SqlType, tick: int) -> Edge:
    """The value of a tick; after the last day of Python, that day (or moment)."""
    if kind.family == "integer":
        return tick
    if kind.family == "decimal":
        return Decimal((int(tick < 0), tuple(map(int, str(abs(tick)))), -kind.scale))
    if kind.family == "date":
        return date(1970, 1, 1) + timedelta(days=tick) if tick <= kind.high else date.max
    if kind.family == "time":
        return (_PYTHON_EPOCH + tick * _MICROSECOND).time() if tick <= kind.high else time.max
    past = kind.high if kind.text != "TIMESTAMP_NS" else tick
    moment = _PYTHON_EPOCH + tick * kind.unit * _MICROSECOND if tick <= past else datetime.max
    return moment.replace(tzinfo=UTC) if kind.zoned else moment


def tick_literal(kind: SqlType, tick: int) -> Fragment:
    """A value of a discrete type as a literal of exactly that type."""
    if kind.text in _PLAIN and -(2**31) < tick < 2**31:
        return Fragment(str(tick))
    value = from_tick(kind, tick)
    if isinstance(value, date) and kind.family == "date":
        return literal(value)
    return Fragment(f"CAST('{edge_text(value)}' AS {kind.sql})")


def edge_text(edge: Edge) -> str:
    """A value as its type reads it from a text; a double keeps every bit."""
    if isinstance(edge, Decimal):
        return format(edge, "f")
    return repr(edge) if isinstance(edge, float) else str(edge)


def moment_tick(kind: SqlType, column: Fragment) -> str:
    """The tick of a date or time that Python has."""
    if kind.family == "date":
        return f"CAST({column} - {tick_literal(kind, 0)} AS BIGINT)"
    if kind.text == "TIMESTAMP_NS":
        nanoseconds = epoch(column, nanoseconds=True)  # division is towards zero
        return f"(({nanoseconds} - ({nanoseconds} % 1000 + 1000) % 1000) // 1000)"
    if kind.unit == 1:
        return f"({epoch(column)})"
    # DuckDB may count the microseconds of coarser types by way of nanoseconds, which end in 2262.
    return f"({epoch(f'CAST({column} AS TIMESTAMP)')} // {kind.unit})"


def number_tick(kind: SqlType, column: Fragment) -> str:
    """The tick of an integer or decimal, a BIGINT, where it is less than ``MAX_TICK`` away from zero.

    A decimal has at most ``MAX_SCALE`` decimal places.
    """
    if kind.scale == 0:
        return f"CAST({column} AS BIGINT)"
    exact = f"CAST({column} AS DECIMAL({_DIGITS},{kind.scale}))"
    return f"CAST({exact} * CAST({10**kind.scale} AS DECIMAL({_DIGITS},0)) AS BIGINT)"


def tick_expression(kind: SqlType, column: Fragment) -> str:
    """The tick of a value of a discrete type, less than ``MAX_TICK`` away from zero, as BIGINT."""
    if kind.temporal:
        return moment_tick(kind, column)
    return number_tick(kind, column)


def read_as(kind: SqlType, value: Fragment, decimal: str) -> Fragment:
    """A value of its type. With a ``decimal`` mark it is text of a file, and NULL if it cannot be read so."""
    return text_as(value, kind.sql, decimal) if decimal and kind.family != "text" else value


# -- lists of values, and steps -----------------------------------------------------------------------

LOOKUP: Final = 4_096
"""Longest list by which the code of a value is looked up."""


def from_ticks(kind: SqlType, tick: str) -> Fragment:
    """The value of a tick of a discrete type."""
    if kind.family == "integer":
        value = tick
    elif kind.family == "decimal":
        step = format(Decimal((0, (1,), -kind.scale)), "f")
        unit = f"CAST('{step}' AS DECIMAL(38,{kind.scale}))"
        value = f"CAST({tick} AS DECIMAL(38,0)) * {unit}"
    elif kind.family == "date":
        value = f"DATE '1970-01-01' + CAST({tick} AS INTEGER)"
    elif kind.family == "time":
        value = f"make_timestamp(CAST({tick} AS BIGINT))"
    else:
        microseconds = f"CAST({tick} AS BIGINT)" + (f" * {kind.unit}" if kind.unit > 1 else "")
        value = f"{'make_timestamptz' if kind.zoned else 'make_timestamp'}({microseconds})"
    return Fragment(f"CAST({value} AS {kind.sql})")


def listed_value(values: Sequence[str], kind: SqlType, code: str) -> Fragment:
    """Element of a constant list of texts of values; NULL for every code past its end, such as the code of
    NULL."""
    if len(set(values)) > 1:
        index = f"CAST({code} AS BIGINT) + 1"
        if kind.family == "enum":
            # DuckDB 1.5 cannot store a macro with a list of an ENUM in a database file.
            return Fragment(f"CAST(([{', '.join(values)}])[{index}] AS {kind.sql})")
        return Fragment(f"(CAST([{', '.join(values)}] AS {kind.sql}[]))[{index}]")
    return Fragment(f"CAST(CASE WHEN {code} < {len(values)} THEN {values[0]} END AS {kind.sql})")


def listed_number(values: Sequence[int], sql_type: str, code: str) -> Fragment:
    """As ``listed_value``, of whole numbers of an integer type."""
    parsed = supported_type(sql_type, "of numbers")
    return listed_value([tick_literal(parsed, value) for value in values], parsed, code)


def clipped(kind: SqlType, column: Fragment, ticks: Sequence[int]) -> str:
    """Steps of an integer or date above the lowest tick, after clipping to the ticks: never overflows a
    BIGINT, whose range their span fits because there are so few bins or labels. ``ticks``: ascending, the
    last exclusive."""
    low, high = tick_literal(kind, ticks[0]), tick_literal(kind, ticks[-1] - 1)
    # By comparisons: LEAST and GREATEST of DuckDB take ten times as long.
    inside = f"CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END"
    if kind.family == "date":
        return f"({inside} - {low})"
    wide = "BIGINT" if ticks[0] > -(2**62) and ticks[-1] < 2**62 else kind.text
    return f"CAST(CAST({inside} AS {wide}) - CAST({low} AS {wide}) AS BIGINT)"


# -- types of text -----------------------------------------------------------------------------------

# What a text can be read as: a public list of classes, and the SQL type of each.
#
# A CSV file has no types, and a type that somebody guessed from its rows is not public. So each value of a
# column falls into exactly one of these classes (``private/count/discovery.py``), noisy numbers of units in
# each are asked for, and the type of the column follows from them (``discovery/attributes.py``).

MOST_DIGITS: Final = 6
"""Digits after the point up to which numbers are decimals; numbers with more are DOUBLE."""

DECIMALS: Final = tuple(f"{digits} digits after the point" for digits in range(1, MOST_DIGITS + 1))

EMPTY: Final = "empty"
MISSING: Final = "a mark for missing"
TEXT: Final = "other text"
CODE: Final = "digits after a leading zero"
BOOLEAN: Final = "true or false"
INTEGER: Final = "integer"
LONG: Final = "integer beyond 64 bits"
WHOLE: Final = "integer with a point"
NUMBER: Final = "other number"
DATE: Final = "date"
TIMESTAMP: Final = "timestamp"
ZONED: Final = "timestamp with a time zone"
TIME: Final = "time of day"

CLASSES: Final = (
    EMPTY,
    MISSING,
    TEXT,
    CODE,
    BOOLEAN,
    INTEGER,
    LONG,
    WHOLE,
    *DECIMALS,
    NUMBER,
    DATE,
    TIMESTAMP,
    ZONED,
    TIME,
)
"""Every text is in exactly one class; its code is the place in this tuple. Stored ledgers keep the codes."""

MARKS: Final = ("na", "n/a", "#n/a", "nan", "null", "none", "nil", r"\n", "?", "-", ".")
"""Texts, in any letter case, that stand for a missing value in columns of numbers and times."""

LONGEST: Final = 64
"""Bytes of the longest text that is looked at; longer ones are other text."""


def decimal_type(digits: int) -> str:
    """The type of numbers with so many digits after the point: 64 bits hold it."""
    return f"DECIMAL(18,{digits})"
