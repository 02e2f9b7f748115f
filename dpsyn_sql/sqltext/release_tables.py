"""The tables that keep models beside releases: their names and columns, as in ``sql/macros``."""

from __future__ import annotations

import re
from functools import cache

from dpsyn_sql.sqltext.fragments import ident
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

FORMAT = 1
"""Of the tables, in each row of ``releases``. Version 0.1 wrote none."""

OLD = (
    "made by dpsyn_sql 0.1, and this version cannot read or extend them. Keep the file, and version 0.1 to "
    "read it with; for new releases give another output in another database (into=)."
)
"""What an error says of the releases of a database whose table ``releases`` has no format."""

_TABLE = re.compile(r"^CREATE TABLE IF NOT EXISTS \S+?\.(\w+) \((.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^ +(\w+) (\w+) NOT NULL", re.MULTILINE)


@cache
def columns_of(table: str) -> tuple[tuple[str, str], ...]:
    """The names and SQL types of a table's columns."""
    statements = dict(_TABLE.findall(render("macros/tables", database=ident("memory"))))
    return tuple(_COLUMN.findall(statements[table]))


def is_old(columns: tuple[tuple[str, str], ...]) -> bool:
    """Whether a table ``releases`` of these columns is one of version 0.1: without a format."""
    return columns == tuple(column for column in columns_of("releases") if column[0] != "format")
