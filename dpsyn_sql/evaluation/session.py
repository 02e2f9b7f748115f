"""PRIVATE: open the real and the synthetic table, and a holdout, with the same columns of the same types.

Nothing is written into a database: what is made on the way are temporary tables of our own connection, and
they go when the session ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpsyn_sql.domain.types import SqlType, parse_type
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.relations import Given, OpenedRelation, opened_relations
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import EngineFailure, InputError, said
from dpsyn_sql.evaluation.pair import compared_pair
from dpsyn_sql.evaluation.stored import identifiers
from dpsyn_sql.source.names import fold, listed, name_hint, shorten
from dpsyn_sql.source.paths import absolute_path
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, ident
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

    ``real_name``, ``synthetic_name``: as they were given. ``tables`` and ``rows``: by ``"real"``,
    ``"synthetic"`` and, if there is one, ``"holdout"``. ``notes``: what was left out or could not be read.
    ``homes``: the folders of the real rows. ``keys``: columns of ``tables`` that say which row it is, or
    whose, of any type.
    """

    engine: DuckDBEngine
    real_name: str
    synthetic_name: str
    tables: Mapping[str, Fragment]
    columns: tuple[ComparedColumn, ...]
    rows: Mapping[str, int]
    notes: tuple[str, ...] = ()
    homes: tuple[Path, ...] = ()
    keys: tuple[Fragment, ...] = ()


@contextlib.contextmanager
def opened(
    con: Connection,
    real: Given,
    synthetic: Given,
    holdout: Given | None = None,
    memory_limit: str | None = None,
    unit: str | None = None,
) -> Iterator[Session]:
    """The tables, opened to be compared. Temporary tables go at the end.

    Args:
        con: a DuckDB connection, the path of a DuckDB file (opened read-only), or None for files.
        real: a table, view, query, or the path of Parquet or CSV files.
        synthetic: the same.
        holdout: real rows of the same population that the release did not see; or None.
        memory_limit: such as ``"4GB"``, where ``con`` is no connection.
        unit: the column that says whose row it is; or None.

    Raises:
        InputError: the tables are no pair to compare; the message says why and what to give.
        EngineFailure: the database could not read them.
    """
    given: dict[str, Given] = {"real": real, "synthetic": synthetic}
    if holdout is not None:
        given["holdout"] = holdout
    with opened_relations(con, given, memory_limit) as (engine, found):
        keys = [] if unit is None else [_unit_column(found["real"], unit)]
        found, lacking = compared_pair(found, keys)
        ids = identifiers(con, engine, synthetic)
        ids = ids_of(found["real"]) if ids is None else ids
        ids = {*ids, *map(fold, keys)}
        session = session_of(engine, found, ids, homes_of(con, found["real"]), keys, lacking)
        _refuse_empty(found, session)
        yield session


def _refuse_empty(found: Mapping[str, OpenedRelation], session: Session) -> None:
    for called, rows in session.rows.items():
        if rows == 0:
            raise InputError(
                f"{called}={shorten(repr(found[called].name))} has no rows: there is nothing to compare."
            )


def _unit_column(real: OpenedRelation, unit: str) -> str:
    """The name of the column of units; the other tables have it too."""
    if not isinstance(unit, str):
        raise InputError(f"unit={said(unit)}: give the name of one column")
    known = {fold(column.name): column.name for column in real.columns}
    if fold(unit) not in known:
        raise InputError(
            f"unit={shorten(unit)!r} is no column; {name_hint(unit, known.values(), 'there are')}"
        )
    return known[fold(unit)]


def ids_of(real: OpenedRelation) -> set[str]:
    """Folded names of columns that say which row or unit it is, where no stored release says it: what is
    unique by the catalog, and UUIDs."""
    return {fold(column.name) for column in real.columns if column.unique or column.sql_type == "UUID"}


def homes_of(con: Connection, real: OpenedRelation) -> tuple[Path, ...]:
    """Folders of the files and the database that hold the real rows."""
    files = [*real.paths, *([real.database] if real.database else [])]
    if isinstance(con, str | os.PathLike):
        files.append(os.fspath(con))
    return tuple(dict.fromkeys(absolute_path(file).parent for file in files))


# -- common types -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """How a column of one table is read: the quoted name, and the expression of the common type."""

    raw: Fragment
    read: Fragment


def session_of(
    engine: DuckDBEngine,
    found: Mapping[str, OpenedRelation],
    ids: set[str],
    homes: tuple[Path, ...],
    keys: Sequence[str],
    lacking: Sequence[str] = (),
    *,
    bare: bool = False,
) -> Session:
    """The tables under common types.

    Args:
        engine: that reads them.
        found: by ``"real"``, ``"synthetic"`` and perhaps ``"holdout"``, with the same columns.
        ids: folded names of columns that are not compared.
        homes: the folders of the real rows.
        keys: columns of the real table that are kept as they are too.
        lacking: columns of the real table that the synthetic one lacks.
        bare: whether there may be no column to compare.

    Raises:
        InputError: types are incompatible, or no column can be compared.
    """
    types = {
        called: {fold(column.name): parse_type(column.sql_type) for column in one.columns}
        for called, one in found.items()
    }
    if all(one.untyped for one in found.values()):
        guessed = _guessed(engine, found)
        types = {called: {**known, **guessed} for called, known in types.items()}
    columns, notes = _common(found, types, ids, bare)
    notes += [f"Not compared, because the synthetic table lacks them: {listed(lacking)}."] if lacking else []
    reads = {called: _reads(one, types[called], columns) for called, one in found.items()}
    tables, rows = dict[str, Fragment](), dict[str, int]()
    for called, one in found.items():
        rows[called], told = _count(engine, called, one, columns, reads[called])
        notes += told
        tables[called] = _relation(engine, called, one, columns, reads[called], keys)
    names = (found["real"].name, found["synthetic"].name)
    return Session(engine, *names, tables, columns, rows, tuple(notes), homes, tuple(map(ident, keys)))


def _guessed(engine: DuckDBEngine, found: Mapping[str, OpenedRelation]) -> dict[str, SqlType | None]:
    """The narrowest type that reads every text of a column in every CSV file; text if none does."""
    keys = [fold(column.name) for column in found["real"].columns]
    counts: list[dict[str, int]] = []
    for one in found.values():
        spelled = {fold(column.name): ident(column.name) for column in one.columns}
        sql = render("evaluate/text_types", relation=one.sql, columns=[spelled[key] for key in keys])
        counts.append({name: int(cells[0]) for name, cells in engine.fetch(sql, step=_READING).items()})
    guessed = dict[str, SqlType | None]()
    for place, key in enumerate(keys):
        for letter, kind in (("i", "BIGINT"), ("n", "DOUBLE"), ("d", "DATE"), ("t", "TIMESTAMP")):
            full = all(one[f"{letter}{place}"] == one[f"g{place}"] for one in counts)
            if full and any(one[f"g{place}"] for one in counts):
                guessed[key] = parse_type(kind)
                break
        else:
            guessed[key] = parse_type("VARCHAR")
    return guessed


def _common(
    found: Mapping[str, OpenedRelation],
    types: Mapping[str, Mapping[str, SqlType | None]],
    ids: set[str],
    bare: bool,
) -> tuple[tuple[ComparedColumn, ...], list[str]]:
    """The columns under a type that all tables can be read as, and what was left out."""
    columns, left, faults = list[ComparedColumn](), list[str](), list[str]()
    told = [column.name for column in found["real"].columns if fold(column.name) in ids]
    for column in found["real"].columns:
        if column.name in told:
            continue
        kinds = [types[called][fold(column.name)] for called in found]
        if any(kind is None for kind in kinds) or column.refused:
            left.append(column.name)
            continue
        common = kinds[0]
        for kind in kinds[1:]:
            common = common_type(common, kind) if common is not None and kind is not None else None
        if common is None:
            said = [f"{kind.family} in {called}" for called, kind in zip(found, kinds, strict=True) if kind]
            faults.append(f"{shorten(repr(column.name))} is {', '.join(said)}")
        else:
            columns.append(ComparedColumn(column.name, common.text, _KINDS[common.family]))
    if faults:
        raise InputError(
            f"The tables have columns of incompatible types: {'; '.join(faults[:10])}. Give queries that "
            "cast them to the same type, or leave them out."
        )
    if not columns and not left and not bare:
        raise InputError(f"The tables have ids alone ({listed(told)}): there is nothing to compare.")
    if not columns and not bare:
        raise InputError(
            f"None of the columns {listed(left)} has a type that can be compared: numbers, text, booleans, "
            "ENUMs, dates and times can."
        )
    notes = [f"Not compared, because of their types: {listed(left)}."] if left else []
    notes += [f"Not compared, because they are ids with fresh values: {listed(told)}."] if told else []
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
    one: OpenedRelation, types: Mapping[str, SqlType | None], columns: Sequence[ComparedColumn]
) -> list[_Read]:
    declared = {fold(column.name): column for column in one.columns}
    found = []
    for column in columns:
        own = declared[fold(column.name)]
        raw, kind = ident(own.name), parse_type(own.sql_type)
        text = kind is not None and kind.family == "text"
        if own.sql_type == column.sql_type:
            read = raw
        elif text and column.kind != "text":
            read = Fragment(f"TRY_CAST(trim({raw}) AS {column.sql_type})")
        else:
            read = Fragment(f"CAST({raw} AS {column.sql_type})")
        found.append(_Read(raw, read))
    return found


def _relation(
    engine: DuckDBEngine,
    called: str,
    one: OpenedRelation,
    columns: Sequence[ComparedColumn],
    reads: Sequence[_Read],
    keys: Sequence[str],
) -> Fragment:
    """The columns under their common types, and the keys as they are; of text files, queries and views a
    copy of their rows, as each column is read by itself later on."""
    named = [Fragment(f"{item.read} AS {column.sql}") for column, item in zip(columns, reads, strict=True)]
    spelled = {fold(column.name): column.name for column in one.columns}
    named += [Fragment(f"{ident(spelled[fold(key)])} AS {ident(key)}") for key in keys]
    relation = render("source/frame", columns=named, frame=one.sql)
    if one.stored:
        return relation
    table, made = DUCKDB.temporary(called), False
    with contextlib.suppress(EngineFailure):
        sql = render("evaluate/materialised", table=table, relation=relation)
        engine.execute(sql, step=_READING)
        made = True
    if not made:
        raise _unreadable(called, one)
    return table


def _unreadable(called: str, one: OpenedRelation) -> InputError:
    return InputError(
        f"{called}={shorten(repr(one.name))} cannot be read by the database. Run its query yourself to see "
        "why, or give more room for temporary files (TMPDIR)."
    )


def _count(
    engine: DuckDBEngine,
    called: str,
    one: OpenedRelation,
    columns: Sequence[ComparedColumn],
    reads: Sequence[_Read],
) -> tuple[int, list[str]]:
    """The number of rows, and notes on values that are not of the common type."""
    checked = [
        (column, item)
        for column, item in zip(columns, reads, strict=True)
        if item.read.startswith("TRY_CAST")
    ]
    sql = render("evaluate/readable", relation=one.sql, columns=[item for _, item in checked])
    counted: dict[str, Any] | None = None
    with contextlib.suppress(EngineFailure):
        counted = engine.fetch(sql, step=_READING)
    if counted is None:
        raise _unreadable(called, one)
    rows = int(counted["rows"][0])
    notes = []
    for place, (column, _) in enumerate(checked):
        given, unread = int(counted[f"g{place}"][0]), int(counted[f"u{place}"][0])
        if given and unread == given:
            raise InputError(
                f"The tables have incompatible types: no value of {shorten(repr(column.name))} in {called} "
                f"can be read as {column.sql_type}. Give a query that casts it, or leave it out."
            )
        if unread:
            notes.append(
                f"{unread} values of {shorten(repr(column.name))} in {called} cannot be read as "
                f"{column.sql_type}; they count as missing."
            )
    return rows, notes
