"""The functions that DuckDB itself brings, as an instance says that nobody else has touched.

A catalog calls a function that was registered from Python "internal", so what is built in cannot be
read from a caller's connection. The extensions in DuckDB's wheel are loaded in every instance; what
another one adds to a built-in name counts as changed too, as it cannot be told from a caller's function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

import duckdb

from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.query_words import ROWWISE_MACROS, ZONED_FUNCTIONS
from dpsyn_sql.sqltext.render import render

Overload = tuple[str, str, bool]
"""Kind, types of the parameters, and whether it is row-wise and repeatable."""

_IN_EXPRESSIONS = ("scalar", "aggregate", "macro")


class Function(NamedTuple):
    """One overload as the catalog describes it: the columns of ``source/functions.sql`` in their order."""

    name: str
    kind: str
    internal: bool
    stability: str | None
    parameters: str | None
    names: str | None
    more: str | None
    result: str | None
    effects: bool | None
    described: bool
    number: int

    @property
    def said(self) -> tuple[object, ...]:
        """All but the number, which differs between instances."""
        return self[:-1]


def functions_of(engine: Engine) -> list[Function]:
    """Every function of a connection."""
    columns = engine.fetch(render("source/functions"), step="reading the catalog")
    lists = [values.tolist() for values in columns.values()]  # a masked cell is None
    return [Function(*row) for row in zip(*lists, strict=True)]


def overloads(rows: Iterable[Function]) -> dict[str, set[Overload]]:
    """Functions that can stand in an expression, by folded name."""
    found: dict[str, set[Overload]] = {}
    for row in rows:
        name = fold(row.name)
        if row.kind in _IN_EXPRESSIONS:
            rowwise = bool(row.internal) and (
                (row.kind == "scalar" and (row.stability == "CONSISTENT" or _reads_zone_alone(row)))
                or (row.kind == "macro" and name in ROWWISE_MACROS)
            )
            found.setdefault(name, set()).add((row.kind, str(row.parameters), rowwise))
    return found


def _reads_zone_alone(row: Function) -> bool:
    """Whether the value depends on its arguments and the session's time zone alone."""
    types = f"{row.parameters} {row.result}"
    return (
        row.stability == "CONSISTENT_WITHIN_QUERY"
        and fold(row.name) in ZONED_FUNCTIONS
        and ("WITH TIME ZONE" in types or "TIMESTAMPTZ" in types)
    )


@cache
def builtin_names() -> frozenset[str]:
    """Folded names of all functions of an untouched instance, table functions included."""
    return frozenset(fold(row.name) for row in _untouched())


@cache
def builtin_overloads() -> Mapping[str, set[Overload]]:
    """``overloads`` of an untouched instance."""
    return overloads(_untouched())


def changed_builtins(rows: Iterable[Function]) -> list[str]:
    """Folded names of built-in functions with an overload more or less, or another one, than DuckDB brings.

    Overloads are compared in all that the catalog says of them. A function can be taken away and made
    again so that nothing else is left to see than when that was done; hence ``_made_again``.
    """
    rows = list(rows)
    differing = _said_untouched() ^ {row.said for row in rows}
    return sorted(({fold(str(said[0])) for said in differing} & builtin_names()) | _made_again(rows))


def _made_again(rows: Iterable[Function]) -> set[str]:
    """Folded names of scalar functions that are younger than a table function that DuckDB brings later.

    Instances number what they make in order. Nobody but DuckDB makes table functions, and the last function
    that it brings is one. (Macros are numbered when they are first asked for, so they say nothing.)
    """
    here, oldest, found = _numbers(rows), float("inf"), set()
    for kind, name in _last_brought():
        number = here.get((kind, name), 0)
        if kind == "table" and number:
            oldest = min(oldest, number)
        elif kind == "scalar" and number > oldest:
            found.add(name)
    return found


def _numbers(rows: Iterable[Function]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.kind in ("scalar", "table"):
            key = (row.kind, fold(row.name))
            found[key] = max(found.get(key, 0), row.number)
    return found


@cache
def _last_brought() -> tuple[tuple[str, str], ...]:
    """Kind and folded name of what an untouched instance has, the last first."""
    brought = _numbers(_untouched())
    return tuple(sorted(brought, key=brought.__getitem__, reverse=True))


@cache
def _said_untouched() -> frozenset[tuple[object, ...]]:
    return frozenset(row.said for row in _untouched())


@cache
def _untouched() -> tuple[Function, ...]:
    with duckdb.connect(":memory:") as connection:
        found = connection.execute(render("source/functions"))
        return tuple(Function(*row) for row in found.fetchall())
