"""The tick of a value (``domain.types``) as SQL: no value passes through floating point."""

from __future__ import annotations

from dpsyn_sql.domain.types import SqlType, tick_literal
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment

MAX_TICK = 2**62
"""Ticks below it, of either sign, can be added and subtracted as BIGINT."""

MAX_SCALE = 18
"""Decimal places of values that have ticks here."""

_DIGITS = 19  # of MAX_TICK


def moment_tick(kind: SqlType, column: Fragment, dialect: Dialect) -> str:
    """The tick of a date or time that Python has."""
    if kind.family == "date":
        return f"CAST({column} - {tick_literal(kind, 0)} AS BIGINT)"
    if kind.text == "TIMESTAMP_NS":
        nanoseconds = dialect.epoch(column, True)  # division is towards zero
        return f"(({nanoseconds} - ({nanoseconds} % 1000 + 1000) % 1000) // 1000)"
    return f"({dialect.epoch(column, False)}{f' // {kind.unit}' if kind.unit > 1 else ''})"


def number_tick(kind: SqlType, column: Fragment) -> str:
    """The tick of an integer or decimal, a BIGINT, where it is less than ``MAX_TICK`` away from zero.

    A decimal has at most ``MAX_SCALE`` decimal places.
    """
    if kind.scale == 0:
        return f"CAST({column} AS BIGINT)"
    exact = f"CAST({column} AS DECIMAL({_DIGITS},{kind.scale}))"
    return f"CAST({exact} * CAST({10**kind.scale} AS DECIMAL({_DIGITS},0)) AS BIGINT)"


def tick_expression(kind: SqlType, column: Fragment, dialect: Dialect) -> str:
    """The tick of a value of a discrete type, less than ``MAX_TICK`` away from zero, as BIGINT."""
    if kind.temporal:
        return moment_tick(kind, column, dialect)
    return number_tick(kind, column)
