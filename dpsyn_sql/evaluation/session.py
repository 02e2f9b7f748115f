"""PRIVATE: the real and the synthetic table, and a holdout, with the same columns of the same types.

Nothing is written into a database: what is made on the way are temporary tables of our own connection, and
they go when the session ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dpsyn_sql.attributes.types import SqlType, parse_type
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.open_source import OpenedRelation
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import EngineFailure, InputError
from dpsyn_sql.source.names import absolute_path, fold, listed, shorten
from dpsyn_sql.sqltext.fragments import Fragment, ident, temporary_table
from dpsyn_sql.sqltext.render import render

Kind = Literal["numeric", "temporal", "text", "boolean"]

_NUMBERS = ("integer", "decimal", "float")
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(_NUMBERS, "numeric"),
    **dict.fromkeys(("date", "time", "timestamp"), "temporal"),
    **dict.fromkeys(("text", "enum", "uuid"), "text"),
    "boolean": "boolean",
}
_READING = "reading the tables to compare"


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column that all tables have: its name in the real table, the SQL type and the kind of its values."""

    name: str
    sql_type: str
    kind: Kind

    @property
    def sql(self) -> Fragment:
        """The quoted name."""
        return ident(self.name)


@dataclass(frozen=True, slots=True)
class Session:
    """The ``tables``, each as SQL to put after FROM, with the ``columns`` in order and of their types.

    ``tables`` and ``rows``: by ``"real"``, ``"synthetic"`` and, if there is one, ``"holdout"``. ``notes``:
    what was left out or could not be read. ``keys``: columns of ``tables`` that say which row it is, or
    whose, of any type.
    """

    engine: DuckDBEngine
    tables: Mapping[str, Fragment]
    columns: tuple[ComparedColumn, ...]
    rows: Mapping[str, int]
    notes: tuple[str, ...] = ()
    keys: tuple[Fragment, ...] = ()


def refuse_empty(relations: Mapping[str, OpenedRelation], session: Session) -> None:
    """Refuse tables without rows.

    Raises:
        InputError: one of them has none.
    """
    for side, rows in session.rows.items():
        if rows == 0:
            raise InputError(
                f"{side}={shorten(repr(relations[side].name))} has no rows: there is nothing to compare."
            )


def ids_of(real: OpenedRelation) -> set[str]:
    """Folded names of columns that say which row or unit it is, where no stored release says it: what is
    unique by the catalog, and UUIDs."""
    return {fold(column.name) for column in real.columns if column.unique or column.sql_type == "UUID"}


def homes_of(con: Connection, real: Sequence[OpenedRelation]) -> tuple[Path, ...]:
    """Folders of the files and the databases that hold the real rows."""
    files = [file for relation in real for file in (*relation.paths, relation.database) if file is not None]
    if isinstance(con, str | os.PathLike):
        files.append(os.fspath(con))
    return tuple(dict.fromkeys(absolute_path(file).parent for file in files))


# -- what is a pair ------------------------------------------------------------------------------


def compared_pair(
    relations: Mapping[str, OpenedRelation], needed: Sequence[str] = ()
) -> tuple[dict[str, OpenedRelation], list[str]]:
    """The tables with the columns that the synthetic one has, and the names of those that it lacks: a release
    leaves out what is excluded.

    Args:
        relations: by ``"real"``, ``"synthetic"`` and perhaps ``"holdout"``.
        needed: columns of the real table that say whose row it is.

    Raises:
        InputError: one of them stands twice, a real one is the output of a release, or their columns differ.
    """
    _refuse_same(relations)
    _refuse_released(relations)
    _refuse_strangers(relations)
    released = {fold(column.name) for column in relations["synthetic"].columns}
    lacking = [column.name for column in relations["real"].columns if fold(column.name) not in released]
    missing = [name for name in needed if fold(name) not in released]
    if missing:
        raise InputError(
            f"The synthetic table lacks {listed(missing)}, which says whose row it is: rows of one unit "
            "cannot be compared without it."
        )
    return {
        side: replace(
            relation, columns=tuple(column for column in relation.columns if fold(column.name) in released)
        )
        for side, relation in relations.items()
    }, lacking


def _refuse_same(relations: Mapping[str, OpenedRelation]) -> None:
    sides = list(relations)
    for index, first in enumerate(sides):
        for second in sides[index + 1 :]:
            if relations[first].identity == relations[second].identity:
                raise InputError(
                    f"{first}={shorten(repr(relations[first].name))} and {second}="
                    f"{shorten(repr(relations[second].name))} are the same table: there is nothing to "
                    "compare. Give another one."
                )


def _refuse_released(relations: Mapping[str, OpenedRelation]) -> None:
    for side, relation in relations.items():
        if side != "synthetic" and relation.released:
            swapped = " Are real= and synthetic= swapped?" if not relations["synthetic"].released else ""
            raise InputError(
                f"{side}={shorten(repr(relation.name))} is the synthetic output of a release: give the table "
                f"that holds the real rows.{swapped}"
            )


def _refuse_strangers(relations: Mapping[str, OpenedRelation]) -> None:
    """A table has a column that the real one lacks, or the holdout lacks one that is compared."""
    real = {fold(column.name): column.name for column in relations["real"].columns}
    synthetic = {fold(column.name) for column in relations["synthetic"].columns}
    for side, relation in relations.items():
        spelled = {fold(column.name): column.name for column in relation.columns}
        common = [name for key, name in real.items() if key in spelled]
        if not common:
            raise InputError(
                f"real= and {side}= have no column in common: real has {listed(real.values(), 10)}; "
                f"{side} has {listed(spelled.values(), 10)}. Is it the right pair of tables?"
            )
        missing = [name for key, name in real.items() if key not in spelled]
        extra = [name for key, name in spelled.items() if key not in real]
        if extra or (side == "holdout" and any(fold(name) in synthetic for name in missing)):
            faults = [f"{side} lacks {listed(missing)}"] if missing else []
            faults += [f"{side} has {listed(extra)}, which real lacks"] if extra else []
            selected = ", ".join(ident(name) for name in common)
            raise InputError(
                f"The tables have other columns: {'; '.join(faults)}. To compare the common ones, give "
                f"queries that select them: real={shorten(repr(f'SELECT {selected} FROM ...'), 1000)}, "
                "and the same of the other table."
            )


# -- common types -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """How a column of one table is read: the quoted name, and the expression of the common type."""

    raw: Fragment
    read: Fragment


def session_of(
    engine: DuckDBEngine,
    relations: Mapping[str, OpenedRelation],
    ids: set[str],
    keys: Sequence[str],
    lacking: Sequence[str] = (),
    *,
    bare: bool = False,
) -> Session:
    """The tables under common types.

    Args:
        engine: that reads them.
        relations: by ``"real"``, ``"synthetic"`` and perhaps ``"holdout"``, with the same columns.
        ids: folded names of columns that are not compared.
        keys: columns of the real table that are kept as they are too.
        lacking: columns of the real table that the synthetic one lacks.
        bare: whether there may be no column to compare.

    Raises:
        InputError: types are incompatible, or no column can be compared.
    """
    types = {
        side: {fold(column.name): parse_type(column.sql_type) for column in relation.columns}
        for side, relation in relations.items()
    }
    if all(relation.untyped for relation in relations.values()):
        guessed = _guessed(engine, relations)
        types = {side: {**declared, **guessed} for side, declared in types.items()}
    columns, notes = _common(relations, types, ids, bare)
    notes += [f"Not compared, because the synthetic table lacks them: {listed(lacking)}."] if lacking else []
    reads = {side: _reads(relation, types[side], columns) for side, relation in relations.items()}
    tables, rows = dict[str, Fragment](), dict[str, int]()
    for side, relation in relations.items():
        rows[side], unread = _count(engine, side, relation, columns, reads[side])
        notes += unread
        tables[side] = _relation(engine, side, relation, columns, reads[side], keys)
    return Session(engine, tables, columns, rows, tuple(notes), tuple(map(ident, keys)))


def _guessed(engine: DuckDBEngine, relations: Mapping[str, OpenedRelation]) -> dict[str, SqlType | None]:
    """The narrowest type that reads every text of a column in every CSV file; text if none does."""
    keys = [fold(column.name) for column in relations["real"].columns]
    counts: list[dict[str, int]] = []
    for relation in relations.values():
        spelled = {fold(column.name): ident(column.name) for column in relation.columns}
        sql = render("evaluate/text_types", relation=relation.sql, columns=[spelled[key] for key in keys])
        counts.append({name: int(cells[0]) for name, cells in engine.fetch(sql, step=_READING).items()})
    guessed = dict[str, SqlType | None]()
    for index, key in enumerate(keys):
        for letter, kind in (("i", "BIGINT"), ("n", "DOUBLE"), ("d", "DATE"), ("t", "TIMESTAMP")):
            full = all(count[f"{letter}{index}"] == count[f"g{index}"] for count in counts)
            if full and any(count[f"g{index}"] for count in counts):
                guessed[key] = parse_type(kind)
                break
        else:
            guessed[key] = parse_type("VARCHAR")
    return guessed


def _common(
    relations: Mapping[str, OpenedRelation],
    types: Mapping[str, Mapping[str, SqlType | None]],
    ids: set[str],
    bare: bool,
) -> tuple[tuple[ComparedColumn, ...], list[str]]:
    """The columns under a type that all tables can be read as, and what was left out."""
    columns, untyped, faults = list[ComparedColumn](), list[str](), list[str]()
    of_ids = [column.name for column in relations["real"].columns if fold(column.name) in ids]
    for column in relations["real"].columns:
        if column.name in of_ids:
            continue
        kinds = [types[side][fold(column.name)] for side in relations]
        if any(kind is None for kind in kinds) or column.refused:
            untyped.append(column.name)
            continue
        common = kinds[0]
        for kind in kinds[1:]:
            common = common_type(common, kind) if common is not None and kind is not None else None
        if common is None:
            families = [
                f"{kind.family} in {side}" for side, kind in zip(relations, kinds, strict=True) if kind
            ]
            faults.append(f"{shorten(repr(column.name))} is {', '.join(families)}")
        else:
            columns.append(ComparedColumn(column.name, common.text, _KINDS[common.family]))
    if faults:
        raise InputError(
            f"The tables have columns of incompatible types: {'; '.join(faults[:10])}. Give queries that "
            "cast them to the same type, or leave them out."
        )
    if not columns and not untyped and not bare:
        raise InputError(f"The tables have ids alone ({listed(of_ids)}): there is nothing to compare.")
    if not columns and not bare:
        raise InputError(
            f"None of the columns {listed(untyped)} has a type that can be compared: numbers, text, "
            "booleans, ENUMs, dates and times can."
        )
    notes = [f"Not compared, because of their types: {listed(untyped)}."] if untyped else []
    notes += [f"Not compared, because they are ids with fresh values: {listed(of_ids)}."] if of_ids else []
    return tuple(columns), notes


def common_type(first: SqlType, second: SqlType) -> SqlType | None:
    """What values of two types can both be read as; None if they are not comparable. Text is read as the
    other type."""
    if first.text == second.text and first.family != "enum":
        return first
    families = {first.family, second.family}
    if families <= set(_NUMBERS):
        return parse_type("DOUBLE")
    if families <= {"text", "enum", "uuid"}:
        return parse_type("VARCHAR")
    if families <= {"date", "timestamp"} and not (first.zoned or second.zoned):
        return parse_type("TIMESTAMP")
    if "text" in families:
        return second if first.family == "text" else first
    return None


def _reads(
    relation: OpenedRelation, types: Mapping[str, SqlType | None], columns: Sequence[ComparedColumn]
) -> list[_Read]:
    declared = {fold(column.name): column for column in relation.columns}
    reads = []
    for column in columns:
        read_from = declared[fold(column.name)]
        raw, kind = ident(read_from.name), parse_type(read_from.sql_type)
        text = kind is not None and kind.family == "text"
        if read_from.sql_type == column.sql_type:
            read = raw
        elif text and column.kind != "text":
            read = Fragment(f"TRY_CAST(trim({raw}) AS {column.sql_type})")
        else:
            read = Fragment(f"CAST({raw} AS {column.sql_type})")
        reads.append(_Read(raw, read))
    return reads


def _relation(
    engine: DuckDBEngine,
    side: str,
    source: OpenedRelation,
    columns: Sequence[ComparedColumn],
    reads: Sequence[_Read],
    keys: Sequence[str],
) -> Fragment:
    """The columns under their common types, and the keys as they are; of text files, queries and views a
    copy of their rows, as each column is read by itself later on."""
    aliased = [Fragment(f"{item.read} AS {column.sql}") for column, item in zip(columns, reads, strict=True)]
    spelled = {fold(column.name): column.name for column in source.columns}
    aliased += [Fragment(f"{ident(spelled[fold(key)])} AS {ident(key)}") for key in keys]
    relation = render("source/frame", columns=aliased, frame=source.sql)
    if source.stored:
        return relation
    table, readable = temporary_table(side), False
    with contextlib.suppress(EngineFailure):
        sql = render("evaluate/materialised", table=table, relation=relation)
        engine.execute(sql, step=_READING)
        readable = True
    if not readable:
        raise _unreadable(side, source)
    return table


def _unreadable(side: str, relation: OpenedRelation) -> InputError:
    return InputError(
        f"{side}={shorten(repr(relation.name))} cannot be read by the database. Run its query yourself to "
        "see why, or give more room for temporary files (TMPDIR)."
    )


def _count(
    engine: DuckDBEngine,
    side: str,
    relation: OpenedRelation,
    columns: Sequence[ComparedColumn],
    reads: Sequence[_Read],
) -> tuple[int, list[str]]:
    """The number of rows, and notes on values that are not of the common type."""
    checked = [
        (column, item)
        for column, item in zip(columns, reads, strict=True)
        if item.read.startswith("TRY_CAST")
    ]
    sql = render("evaluate/readable", relation=relation.sql, columns=[item for _, item in checked])
    counted: dict[str, Any] | None = None
    with contextlib.suppress(EngineFailure):
        counted = engine.fetch(sql, step=_READING)
    if counted is None:
        raise _unreadable(side, relation)
    rows = int(counted["rows"][0])
    notes = []
    for index, (column, _) in enumerate(checked):
        filled, unread = int(counted[f"g{index}"][0]), int(counted[f"u{index}"][0])
        if filled and unread == filled:
            raise InputError(
                f"The tables have incompatible types: no value of {shorten(repr(column.name))} in {side} "
                f"can be read as {column.sql_type}. Give a query that casts it, or leave it out."
            )
        if unread:
            notes.append(
                f"{unread} values of {shorten(repr(column.name))} in {side} cannot be read as "
                f"{column.sql_type}; they count as missing."
            )
    return rows, notes
