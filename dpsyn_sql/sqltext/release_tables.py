"""The tables that keep models beside releases: their names and columns, as in ``sql/macros``."""

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
    "shares",
    "variables",
    "variances",
    "releases",
)

ADDED = frozenset({"variables", "variances"})
"""Tables that databases of earlier versions lack. Their releases have no rows in them."""

_WIDER = {("model_cells", "probability"): "DOUBLE"}
"""Types of columns in tables of older versions of this package; the present rows fit in them."""

_COLUMN = re.compile(r"^ +(\w+) (\w+) NOT NULL", re.MULTILINE)


@cache
def columns_of(table: str) -> tuple[tuple[str, str], ...]:
    """The names and SQL types of a table's columns."""
    return tuple(_COLUMN.findall(render(f"macros/{table}", schema=Fragment(SCHEMA))))


def may_keep(table: str, columns: tuple[tuple[str, str], ...]) -> bool:
    """Whether an existing table with columns of these names and SQL types can hold the present rows."""
    older = tuple((name, _WIDER.get((table, name), kind)) for name, kind in columns_of(table))
    return columns in (columns_of(table), older)
