"""The functions that DuckDB itself brings, as an instance says that nobody else has touched.

A catalog calls a function that was registered from Python "internal", so what is built in cannot be
read from a caller's connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import duckdb

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.query_words import ROWWISE_MACROS
from dpsyn_sql.sqltext.render import render

Overload = tuple[str, str, bool]
"""Kind, types of the parameters, and whether it is row-wise and repeatable."""

_IN_EXPRESSIONS = ("scalar", "aggregate", "macro")


def functions_of(engine: DuckDBEngine) -> list[dict[str, Any]]:
    """Every function of a connection: name, kind, internal, stability, parameters."""
    columns = engine.fetch(render("source/functions"), step="reading the catalog")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def overloads(rows: Iterable[Mapping[str, Any]]) -> dict[str, set[Overload]]:
    """Functions that can stand in an expression, by folded name."""
    found: dict[str, set[Overload]] = {}
    for row in rows:
        name, kind = fold(str(row["name"])), str(row["kind"])
        if kind in _IN_EXPRESSIONS:
            rowwise = bool(row["internal"]) and (
                (kind == "scalar" and row["stability"] == "CONSISTENT")
                or (kind == "macro" and name in ROWWISE_MACROS)
            )
            found.setdefault(name, set()).add((kind, str(row["parameters"]), rowwise))
    return found


@cache
def builtin_names() -> frozenset[str]:
    """Folded names of all functions of an untouched instance, table functions included."""
    return frozenset(fold(str(row["name"])) for row in _untouched())


@cache
def builtin_overloads() -> Mapping[str, set[Overload]]:
    """``overloads`` of an untouched instance."""
    return overloads(_untouched())


@cache
def _untouched() -> tuple[Mapping[str, Any], ...]:
    with duckdb.connect(":memory:") as connection:
        found = connection.execute(render("source/functions"))
        columns = [column[0] for column in found.description or ()]
        return tuple(dict(zip(columns, row, strict=True)) for row in found.fetchall())
