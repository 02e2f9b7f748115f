"""The tables that keep models beside releases: their names and columns, as ``sql/macros`` makes them."""

from __future__ import annotations

import re
from functools import cache

from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

SCHEMA = "dpsyn"

TABLES = (
    "attributes",
    "codes",
    "measurements",
    "axes",
    "measured_bins",
    "measured_cells",
    "model_cells",
    "distributions",
    "releases",
)

_COLUMN = re.compile(r"^ +(\w+) (\w+) NOT NULL", re.MULTILINE)


@cache
def columns_of(table: str) -> tuple[tuple[str, str], ...]:
    """The names and SQL types of a table's columns."""
    return tuple(_COLUMN.findall(render(f"macros/{table}", schema=Fragment(SCHEMA))))
