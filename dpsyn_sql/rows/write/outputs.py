"""How outputs appear, all of them or none: tables with their models in one transaction, files that are made
in a work folder and moved into place when all are complete.

Several files are moved one after another, unless their folder is new: then it is moved as a whole.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsyn_sql.common.folders import locked_folder
from dpsyn_sql.errors import EngineFailure, PublishError
from dpsyn_sql.rows.write.persist import StoredRelease, after, persist, persist_beside, using
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render

_WORK = ".dpsyn-work-"
_NONE = Fragment("")
_WRITING = "writing the synthetic table"
_SAYING = "commenting the synthetic table"
_FILE = "writing the synthetic database file"
CONFLICTS = ("DependencyException", "TransactionException")
"""What DuckDB calls it when another transaction changed the same things."""

_PAUSES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Seconds before each further try."""

_one_writer = threading.Lock()
_ASIDE = "dpsyn_aside"  # the name of a database file that is made


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to write: its qualified ``name``, the ``query`` of its rows, the columns without NULL, and the
    statements that comment it.

    ``replace``: a table that is there may be overwritten; ``only_same``: it is kept, and must have these
    rows. ``part``: those of its rows that the query gives (to put after FROM), where a table that is kept
    has others too: they are added if there are none, and must be these if there are some.
    ``definitions``: of its columns and constraints; empty if the query says all.
    """

    name: Fragment
    query: Fragment
    not_null: tuple[str, ...] = ()
    comments: tuple[Fragment, ...] = ()
    replace: bool = False
    only_same: bool = False
    definitions: tuple[Fragment, ...] = ()
    part: Fragment | None = None


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write in ``format`` "parquet" or "csv": the ``query`` of its rows, and a literal of one piece
    that a Parquet file keeps."""

    path: Path
    format: str
    query: Fragment
    statement: Fragment = _NONE


def write_tables(
    engine: Engine,
    database: str,
    tables: Sequence[NewTable],
    models: Sequence[StoredRelease],
    *,
    schema: Fragment | None = None,
    dropped: Sequence[Fragment] = (),
) -> None:
    """Write tables and models in one transaction; on any failure the database is as it was before.

    Args:
        engine: the session that writes.
        database: name of the attached database.
        tables: in this order; one that others refer to stands before them.
        models: what is kept of the releases.
        schema: quoted name of the schema of all tables; it is made if it is missing. None: it is there.
        dropped: tables that go first, in this order, if they are there.

    Raises:
        PublishError: a table has appeared, has other rows, or rows do not meet a constraint.
        EngineFailure: the database failed otherwise.
    """
    shown = f"table {tables[0].name}" if schema is None else f"tables of schema {schema}"

    def write() -> None:
        for table in tables:
            if table.only_same and table.part is None and not holds(engine, table.name, table.query):
                raise PublishError(changed(f"table {table.name}"))
        if schema is not None:
            engine.execute(render("write/create_schema", schema=schema), step=_WRITING)
        for name in dropped:
            engine.execute(render("write/drop_table", table=name), step=_WRITING)
        with contextlib.nullcontext() if schema is None else using(engine, schema):
            for table in tables:
                _write_table(engine, table)
        for kept in models:
            persist(engine, database, kept)

    failure = committed(engine, write)
    if failure is None:
        return
    adds = any(table.part is not None for table in tables)
    if failure.kind in CONFLICTS:
        raise PublishError(crossed(f"The {shown} cannot be {'written' if adds else 'created'}"))
    if failure.kind == "CatalogException" and adds:
        raise PublishError(
            f"The {shown} cannot be written: it was made, changed or removed meanwhile. Nothing was written."
        )
    if failure.kind == "CatalogException":
        new = [table.name for table in tables if not (table.replace or table.only_same)]
        if appeared := [name for name in new if _is_there(engine, name)]:
            raise PublishError(
                f"The {shown} cannot be created: something of the name {appeared[0]} has appeared. Nothing "
                "was written. Choose another into=, or add replace=True for a table."
            )
        raise PublishError(
            f"The {shown} cannot be created: its schema was removed meanwhile, something that is no table "
            "has this name, or another table refers to it. Nothing was written. Choose another into=."
        )
    if failure.kind == "ConstraintException" and any(table.definitions for table in tables):
        raise PublishError(
            f"The rows of the {shown} do not meet the constraints of their keys: a public table has one key "
            "twice, or a key without a value. Nothing was written. Take away constraints=True, or repair the "
            "public table."
        )
    raise EngineFailure(failure.step, failure.kind, failure.statement)


def committed(engine: Engine, write: Callable[[], None]) -> EngineFailure | None:
    """Write in one transaction, all or nothing; the failure if it could not be committed.

    Releases of this process write one after another: each makes the same functions of schema ``dpsyn``, and
    DuckDB refuses the second of two open transactions that do. If another transaction was in the way, all of
    it is tried again.
    """
    pauses = iter(_PAUSES)
    while True:
        try:
            with _one_writer, engine.transaction():
                write()
            return None
        except EngineFailure as error:
            failure, pause = error, next(pauses, None)
        if failure.kind not in CONFLICTS or pause is None:
            return failure
        time.sleep(pause)


def crossed(problem: str) -> str:
    """What is said when other transactions were in the way each time."""
    return (
        f"{problem}: other transactions of the database change the same tables, or hold them. Nothing was "
        "written. Commit or close them first."
    )


def _is_there(engine: Engine, table: Fragment) -> bool:
    with contextlib.suppress(EngineFailure):
        engine.fetch(render("write/is_there", table=table), step="looking for the table")
        return True
    return False


def _write_table(engine: Engine, table: NewTable) -> None:
    if table.only_same:
        if table.part is not None:
            _add_rows(engine, table, table.part)
        return
    if table.definitions:
        statement = render("write/define_table", table=table.name, definitions=list(table.definitions))
        engine.execute(statement, step=_WRITING)
        engine.execute(render("write/insert", table=table.name, query=table.query), step=_WRITING)
    else:
        replace = int(table.replace)
        statement = render("write/create_table", target=table.name, replace=replace, query=table.query)
        engine.execute(statement, step=_WRITING)
        for name in table.not_null:
            engine.execute(render("write/not_null", table=table.name, column=ident(name)), step=_WRITING)
    for comment in table.comments:
        engine.execute(comment, step=_SAYING)


def _add_rows(engine: Engine, table: NewTable, part: Fragment) -> None:
    """Write rows of a table that is there; its comment is that of the last ones."""
    if digest(engine, part)[0] == 0:
        engine.execute(render("write/insert", table=table.name, query=table.query), step=_WRITING)
        for comment in table.comments[:1]:
            engine.execute(comment, step=_SAYING)
    elif not holds(engine, part, table.query):
        raise PublishError(
            f"The rows of this period in {table.name} differ from what this call writes: they were changed, "
            "or made by another version of the package or on another machine. Nothing was changed."
        )


def digest(engine: Engine, rows: Fragment) -> tuple[int, str]:
    """How many rows there are, and what they are in short; ``rows`` stands after FROM."""
    fetched = engine.fetch(
        render("write/panel_digest", rows=rows), step="reading the rows of earlier periods"
    )
    return int(fetched["rows"][0]), str(fetched["digest"][0])


def holds(engine: Engine, table: Fragment, query: Fragment) -> bool:
    """Whether a table has the rows of a query, in any order; one that cannot be compared has others."""
    statement = render("write/differing", table=table, query=query)
    try:
        differing = engine.fetch(statement, step="comparing the table that is there")
    except EngineFailure:
        return False
    return int(differing["rows"][0]) == 0


def changed(output: str) -> str:
    """What is said of an output that is there and differs."""
    return (
        f"The {output} exists and differs from what this call writes: it was changed, or it was made with "
        "another seed=, rows= or package version, on another machine, or under a time of limits= (which "
        "can change how rows are drawn). It was not changed. Add replace=True to overwrite it."
    )


# -- files ------------------------------------------------------------------------------------------


def write_files(
    engine: Engine,
    files: Sequence[NewFile],
    models: Sequence[StoredRelease],
    beside: Path,
    *,
    replace: bool,
    only_same: bool,
    makes_folder: bool = False,
) -> None:
    """Write files of one folder, and a database file with their models.

    Args:
        engine: the session that writes.
        files: all complete before the first is moved.
        models: what is kept of the releases; none: no file with models.
        beside: the database file for the models.
        replace: files that are there may be overwritten.
        only_same: files that are there are kept, and must have the same bytes.
        makes_folder: their folder is made if it is missing, and appears with all of them.

    Raises:
        PublishError: a file has appeared, is not what this release wrote, or cannot be written.
        EngineFailure: the database failed.
    """
    home = files[0].path.parent
    new = makes_folder and not home.is_dir()
    problem = f"The file {str(files[0].path)!r} cannot be written in its folder."
    with contextlib.suppress(OSError), locked_folder(home.parent if new else home, _WORK) as work:
        made, model = work / "made", work / "model.duckdb"
        made.mkdir()
        for file in files:
            # The ending stays, because the database compresses by it.
            place = string_literal(str(made / file.path.name))
            copy = render(f"write/copy_{file.format}", path=place, query=file.query, statement=file.statement)
            engine.execute(copy, step="writing the synthetic file")
        if models:
            persist_beside(engine, model, models)
        if models and not replace and os.path.lexists(beside):
            problem = _meanwhile(beside)
        else:
            there = [file.path for file in files if only_same and file.path.exists()]
            missing = [file.path for file in files if file.path not in there]
            differ = [path for path in there if not filecmp.cmp(made / path.name, path, shallow=False)]
            if differ:
                problem = changed(f"file {str(differ[0])!r}")
            else:
                problem = _move_folder(made, home) if new else _move_all(made, missing, replace=replace)
            # Files that are all there keep their model, if it is there too.
            if models and not problem and (missing or not os.path.lexists(beside)):
                problem = _move(model, beside, replace=bool(missing))
    if problem:
        raise PublishError(problem)


def write_database(
    engine: Engine, path: Path, act: Callable[[tuple[str, str]], None], *, replace: bool, there: bool
) -> None:
    """Write a database file, which appears when it is complete, or look at one that is there.

    Args:
        engine: the session that writes.
        path: of the file.
        act: writes into a schema (its database and its name), or compares it.
        replace: a file that is there may be overwritten.
        there: the file is there and is only compared.

    Raises:
        PublishError: the file has appeared, or cannot be written.
        EngineFailure: the database failed.
    """
    if there:
        attach = render("source/attach", path=string_literal(str(path)), name=ident(_ASIDE), read_only=1)
        with _attached(engine, attach) as home:
            act(home)
        return
    problem = f"The file {str(path)!r} cannot be written in its folder."
    with contextlib.suppress(OSError), locked_folder(path.parent, _WORK) as work:
        unfinished = work / path.name
        attach = render("write/attach_new", path=string_literal(str(unfinished)), name=ident(_ASIDE))
        with _attached(engine, attach) as home:
            act(home)
            # Said aloud, because a file that is closed without room for all of it is no error.
            engine.execute(render("macros/checkpoint", name=ident(home[0])), step=_FILE)
        problem = _move(unfinished, path, replace=replace)
    if problem:
        raise PublishError(problem)


@contextlib.contextmanager
def _attached(engine: Engine, attach: Fragment) -> Iterator[tuple[str, str]]:
    """The schema of a database that is attached inside."""
    engine.execute(attach, step=_FILE)
    with after(engine, render("source/detach", name=ident(_ASIDE))):
        yield _ASIDE, "main"


def _move_folder(complete: Path, home: Path) -> str:
    """Put a complete folder in its place; what went wrong, or empty text."""
    try:
        complete.rename(home)  # over an empty folder at most
    except OSError:
        return f"The folder {str(home)!r} has appeared, or cannot be made. Nothing was written."
    return ""


def _move_all(complete: Path, paths: Sequence[Path], *, replace: bool) -> str:
    """Put complete files in their places; what went wrong, or empty text."""
    moved = list[Path]()
    for path in paths:
        problem = _move(complete / path.name, path, replace=replace)
        if problem:
            if not replace:  # then each of them is new
                for done in moved:
                    done.unlink(missing_ok=True)
            return problem
        moved.append(path)
    return ""


def _move(part: Path, path: Path, *, replace: bool) -> str:
    """Put the complete file in its place; what went wrong, or empty text."""
    try:
        if replace:
            part.replace(path)
        else:
            _create_only(part, path)
    except FileExistsError:
        return _meanwhile(path)
    except OSError:
        return f"The file {str(path)!r} cannot be written in its folder."
    return ""


def _meanwhile(path: Path) -> str:
    return f"The file {str(path)!r} has appeared; it was not changed. Add replace=True to overwrite it."


def _create_only(part: Path, path: Path) -> None:
    """Give ``path`` the finished file unless it exists: a hard link is atomic; where the file
    system has none, an empty file is created exclusively first and then replaced."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        path.touch(exist_ok=False)
        part.replace(path)
