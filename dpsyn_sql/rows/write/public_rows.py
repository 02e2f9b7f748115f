"""Rows of public tables as text, on their way from the database that has them to the one that is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.keys import ROW, Lookup
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.rows.write.staging import load_table
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

Texts = Mapping[str, NDArray[Any]]
"""By column, object (rows,): text, or None for NULL."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """All rows of a public table."""

    table: PublicTable
    values: Texts


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRows:
    """Keys of public rows by group.

    Args:
        groups: int64 (rows,), the group 0, 1, ... of each row: the value of the attribute that is measured.
        keys: by column of the public table's key, the values; no NULL, and each castable to the type of the
            column that names it.
    """

    groups: NDArray[np.int64]
    keys: Texts


def public_rows(engine: Engine, table: PublicTable) -> PublicRows:
    """Read a public table, in the session that can.

    Raises:
        EngineFailure: the database failed.
    """
    names = [column.name for column in table.relation.columns]
    sql = render("write/public_text", rows=table.relation.sql, columns=list(map(ident, names)))
    fetched = engine.fetch(sql, step="reading a public table")
    return PublicRows(table, {name: _texts(fetched[f"c{position}"]) for position, name in enumerate(names)})


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Text with None for NULL, of a column that may be masked."""
    texts = np.array(np.ma.getdata(values), dtype=object)
    texts[np.ma.getmaskarray(values)] = None
    return texts


def load_lookup(engine: Engine, rows: GroupedRows, table: Fragment) -> Lookup:
    """Rows in the order of their groups, as a temporary table of the session that writes.

    Raises:
        InternalError: columns of another length than the groups, or a key without a value.
    """
    if any(len(column) != len(rows.groups) or None in set(column) for column in rows.keys.values()):
        raise InternalError("a lookup of public rows has a key without a value")
    order = np.argsort(rows.groups, kind="stable")
    load_texts(engine, {name: column[order] for name, column in rows.keys.items()}, table)
    return Lookup(table, tuple(np.bincount(rows.groups).tolist()))


def load_texts(engine: Engine, columns: Texts, table: Fragment) -> None:
    """Rows of text as a temporary table with the column ``ROW``, numbered from 0."""
    numbers = np.arange(len(next(iter(columns.values()))), dtype=np.int64)
    kinds, step = dict.fromkeys(columns, "VARCHAR"), "loading rows of a public table"
    load_table(engine, table, {ROW: numbers, **columns}, step=step, kinds=kinds)


def copied_rows(table: Fragment, public: PublicTable) -> Fragment:
    """The query of a public table's rows, of a table of text with them."""
    columns: Sequence[Fragment] = [
        Fragment(f"CAST({ident(column.name)} AS {_kind(column.sql_type)}) AS {ident(column.name)}")
        for column in public.relation.columns
    ]
    return render("write/public_rows", table=table, row=ROW, columns=columns)


def _kind(sql_type: str) -> Fragment:
    """A type as the catalog spells it, which quotes what it must."""
    return Fragment(sql_type)
