"""Codes become a table or a file, all of it or nothing (public side of the door).

``publish`` decodes staged codes (see ``staging``) in SQL: into a table in one transaction, or into a
file in a work folder beside the output which is moved into place when it is complete. ``publish_in_tasks``
lets tasks on other machines draw and decode rows part by part. What an output says of itself are public facts
of its certificate, in words.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.common.folders import locked_folder
from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.shape import Constant, Key, Role, Shape, UnitId
from dpsyn_sql.errors import EngineFailure, InternalError, PublishError
from dpsyn_sql.fit.network import Network
from dpsyn_sql.rows.decode.output import (
    Units,
    beside_codes,
    capacity,
    output_statement,
    reject_statement,
    units_of,
)
from dpsyn_sql.rows.sample.sql_sampler import check_statement
from dpsyn_sql.rows.sample.sql_text import Script, Tables
from dpsyn_sql.rows.write.parts import PartRows, PartStatements, RowPublisher
from dpsyn_sql.rows.write.persist import StoredRelease, persist, persist_beside
from dpsyn_sql.rows.write.staging import room_statement, staged_rows
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.files import file_beside
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render

_WORK = ".dpsyn-work-"


class Destination(Protocol):
    """Where the synthetic rows go; resolved and checked before anything was charged."""

    @property
    def kind(self) -> str:
        """``"table"`` or ``"file"``."""

    @property
    def sql(self) -> Fragment | None:
        """Qualified quoted name of the table; None for a file."""

    @property
    def path(self) -> Path | None:
        """The file; None for a table."""

    @property
    def format(self) -> str | None:
        """``"parquet"`` or ``"csv"``; None for a table."""

    @property
    def database(self) -> str | None:
        """The attached database of the table; None for a file."""

    @property
    def replace(self) -> bool:
        """Whether an existing output may be overwritten."""

    @property
    def only_same(self) -> bool:
        """Whether an existing output is kept if it equals what would be written, and refused if not."""


def publish(
    engine: Engine,
    target: Destination,
    shape: Shape,
    staged: Fragment,
    seed: int,
    units: NDArray[np.int64] | None = None,
    kept: StoredRelease | None = None,
) -> None:
    """Write the staged rows as values; on any failure the target is as it was before.

    Args:
        engine: the session that holds the staged table and writes.
        target: a table or a file.
        shape: complete; its expressions were checked (``expressions.check_expressions``).
        staged: quoted name of the table of codes.
        seed: of positions inside bins, keys and unit ids; public.
        units: int64; entry i is the number of privacy units with i+1 rows (``sample.units``); together
            they have the staged rows. None: every row has a unit of its own.
        kept: what stays with the output: in its database, in the same transaction, or in a database file
            beside an output file. None: nothing.

    Raises:
        PublishError: the output has appeared since the check, is not what this release wrote, cannot be
            written, or a key's type cannot hold so many values.
        EngineFailure: the database failed otherwise.
    """
    rows = staged_rows(engine, staged)
    shared = units_of(units, rows)
    check_capacity(shape, rows, shared.count)
    query = output_statement(shape, staged, rows, shared, seed)
    if target.kind == "table":
        _publish_table(engine, target, shape, query, kept)
    else:
        _publish_file(engine, target, query, kept)


def check_capacity(shape: Shape, rows: int, units: int) -> None:
    """Refuse types that cannot hold as many different values as keys or units are needed."""
    for role in shape.roles:
        if isinstance(role, Key | UnitId):
            needed, what = (rows, "rows") if isinstance(role, Key) else (units, "units")
            most = capacity(role.type)
            if most is not None and needed > most:
                raise PublishError(
                    f"Column {role.name!r} needs a fresh value for each of {needed} {what}, but its type has "
                    f"only {most} values. Nothing was written. The same call with rows={most} or less costs "
                    "nothing more."
                )


def _publish_table(
    engine: Engine, target: Destination, shape: Shape, query: Fragment, kept: StoredRelease | None
) -> None:
    if target.sql is None or target.database is None:
        raise InternalError("a table target has no name")
    statement = render("write/create_table", target=target.sql, replace=int(target.replace), query=query)
    failure: EngineFailure | None = None
    try:
        if target.only_same and not _holds(engine, target.sql, query):
            raise PublishError(_changed(f"table {target.sql}"))
        with engine.transaction():
            if not target.only_same:
                engine.execute(statement, step="writing the synthetic table")
                for name in shape.not_null:
                    constraint = render("write/not_null", table=target.sql, column=ident(name))
                    engine.execute(constraint, step="writing the synthetic table")
                for comment in () if kept is None else comment_statements(target.sql, shape, kept):
                    engine.execute(comment, step="commenting the synthetic table")
            if kept is not None:
                persist(engine, target.database, kept)
    except EngineFailure as error:
        failure = error
    if failure is None:
        return
    if failure.kind in ("CatalogException", "TransactionException"):
        raise PublishError(
            f"The table {target.sql} cannot be created: something of this name has appeared, its schema was "
            "removed, or the database refused the commit. Nothing was written. Choose another into=, or add "
            "replace=True for a table."
        )
    raise EngineFailure(failure.step, failure.kind, failure.statement)


def _holds(engine: Engine, table: Fragment, query: Fragment) -> bool:
    """Whether a table has the rows of a query, in any order; one that cannot be compared has others."""
    statement = render("write/differing", table=table, query=query)
    try:
        differing = engine.fetch(statement, step="comparing the table that is there")
    except EngineFailure:
        return False
    return int(differing["rows"][0]) == 0


def _changed(what: str) -> str:
    return (
        f"The {what} exists and differs from what this call writes: it was changed, or it was made with "
        "another seed=, rows= or package version, on another machine, or under a time_limit= (which can "
        "change how rows are drawn). It was not changed. Add replace=True to overwrite it."
    )


def _publish_file(engine: Engine, target: Destination, query: Fragment, kept: StoredRelease | None) -> None:
    if target.path is None or target.format not in ("parquet", "csv"):
        raise InternalError("a file target needs a path and one of the formats parquet and csv")
    statement = Fragment("") if kept is None else readable_literal(statement_of(kept.facts, kept.name))
    problem = f"The file {str(target.path)!r} cannot be written in its folder."
    with contextlib.suppress(OSError), locked_folder(target.path.parent, _WORK) as folder:
        # The ending stays, because the database compresses by it.
        part = folder / f"part{target.path.suffix}"
        place = string_literal(str(part))
        copy = render(f"write/copy_{target.format}", path=place, query=query, statement=statement)
        engine.execute(copy, step="writing the synthetic file")
        model = folder / "model.duckdb"
        if kept is not None:
            persist_beside(engine, model, kept)
        beside = file_beside(target.path)
        if kept is not None and not target.replace and os.path.lexists(beside):
            problem = _meanwhile(beside)
        elif target.only_same and target.path.exists():
            if not filecmp.cmp(part, target.path, shallow=False):
                problem = _changed(f"file {str(target.path)!r}")
            elif kept is None or os.path.lexists(beside):  # all written before
                problem = ""
            else:
                problem = _move(model, beside, replace=False)
        else:
            problem = _move(part, target.path, replace=target.replace)
            if kept is not None and not problem:
                problem = _move(model, beside, replace=True)
    if problem:
        raise PublishError(problem)


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


# -- in tasks on other machines --------------------------------------------------------------------
# What differs between parts is a variable of the task's session. Names of tables are those of the task.

SLOTS = Fragment("dpsyn_slots")
"""The alias tables of the network (``sample.sql_sampler.load_slots``)."""

_STAGED = Fragment("dpsyn_staged")
_MODELS = "dpsyn-model-"


def _variable(name: str, kind: str) -> Fragment:
    return Fragment(f"CAST(getvariable('dpsyn_{name}') AS {kind})")


_FIRST, _ROWS, _SEED = (
    _variable("first", "BIGINT"),
    _variable("rows", "BIGINT"),
    _variable("seed", "UBIGINT"),
)


def part_rows(
    shape: Shape,
    rows: int,
    seed: int,
    network: Network | None = None,
    slots: Fragment | None = None,
    staged: Fragment | None = None,
) -> PartRows:
    """Rows that tasks draw from a network (with its ``slots``), or that are ``staged`` already.

    Args:
        shape: complete, with checked expressions.
        rows: wanted; of staged ones how many they are.
        seed: public.
        network: what is drawn from.
        slots: table of its alias tables (``sample.sql_sampler.load_slots``).
        staged: table of codes, which no condition excludes.
    """
    gaps = network is not None and bool(shape.never)
    return PartRows(_statements(shape, network, seed), rows, seed, gaps, slots, staged)


def _statements(shape: Shape, network: Network | None, seed: int) -> PartStatements:
    draw = reject = Fragment("")
    if network is not None:
        query = Script(network, _SEED).iid(_ROWS, Tables(SLOTS, slots=SLOTS), _FIRST)
        draw = render("sample/insert", staged=_STAGED, query=query)
        if shape.never:
            reject = reject_statement(shape, _STAGED, _FIRST, seed)
    return PartStatements(
        room=room_statement(shape.domain, _STAGED, beside_codes(shape)),
        staged=_STAGED,
        draw=draw,
        check=check_statement(_STAGED, len(shape.domain.attributes), _FIRST),
        reject=reject,
        count=render("write/count_staged", staged=_STAGED, first=_FIRST),
        slots=SLOTS,
        trim=render("write/trim", staged=_STAGED, first=_FIRST, rows=_ROWS),
    )


def part_query(shape: Shape, rows: int, units: Units, seed: int) -> Fragment:
    """The rows of a part as values (``decode.output``); ``before`` is the number of rows of earlier parts."""
    return output_statement(shape, _STAGED, rows, units, seed, _variable("before", "BIGINT"))


def publish_in_tasks(
    engine: Engine,
    publisher: RowPublisher,
    shape: Shape,
    rows: PartRows,
    units: NDArray[np.int64] | None,
    kept: StoredRelease,
) -> None:
    """Let tasks decode and write rows, and keep what stays with them beside; arguments as of
    ``write.publish.publish``.

    Raises:
        PublishError: the output has appeared, is not what this release wrote, or a key's type cannot hold so
            many values.
        EngineFailure: the database or the tasks failed.
    """
    shared = units_of(units, rows.kept)
    check_capacity(shape, rows.kept, shared.count)
    query = part_query(shape, rows.kept, shared, rows.seed)
    words = statement_of(kept.facts, kept.name).replace("\x00", "\\0")
    with locked_folder(Path(tempfile.gettempdir()), _MODELS) as folder:
        model = folder / "model.duckdb"
        persist_beside(engine, model, kept)
        publisher.publish(engine, rows, query, shape, column_comments(shape), words, kept.release_id, model)


# -- what an output says of itself -----------------------------------------------------------------

_DOMAIN_OF = {
    "declared": "the domain is declared",
    "catalog": "the domain is from the catalog",
    "discovered": "the domain is discovered with noise",
}


def comment_statements(table: Fragment, shape: Shape, kept: StoredRelease) -> Iterator[Fragment]:
    """Statements that comment a new table and each of its columns."""
    shown = f"Certificate: FROM dpsyn_certificate({string_literal(kept.name)});"
    yield _comment("TABLE", table, f"{statement_of(kept.facts, kept.name)} {shown}")
    described = column_comments(shape)
    for name in shape.order or described:
        # The space: without it the end of the name could read like the name of a source.
        yield _comment("COLUMN", Fragment(f"{table} .{ident(name)}"), described[name])


def column_comments(shape: Shape) -> dict[str, str]:
    """What a column of the output is, by name."""
    described = {column.name: _measured(item) for item in shape.domain.attributes for column in item.columns}
    return described | {role.name: _made(role) for role in shape.roles}


def statement_of(facts: Mapping[str, Any], name: str) -> str:
    """What a reader of the rows should know first, from a certificate. Epsilon and delta have all digits: a
    rounded bound would claim more."""
    guarantee = facts["guarantee"]
    return (
        "Synthetic rows, drawn from a model of noisy answers. Differential privacy: "
        f"epsilon {guarantee['epsilon']!r}, delta {guarantee['delta']!r}, for one privacy unit added or "
        f"removed; privacy unit: {guarantee['privacy_unit']}; rows per unit: at most "
        f"{guarantee['rows_per_unit']}. Method: {facts['method']}. Release: {name}, id "
        f"{facts['release']}."
    )


def readable_literal(text: str) -> Fragment:
    """A text literal of one piece: a statement that takes no expression cannot splice a NUL in."""
    return string_literal(text.replace("\x00", "\\0"))


def _comment(what: str, name: Fragment, text: str) -> Fragment:
    return render("write/comment", what=Fragment(what), name=name, text=readable_literal(text))


def _measured(attribute: Attribute) -> str:
    codes = "1 code" if attribute.size == 1 else f"{attribute.size} codes"
    if attribute.leaves is not None:
        codes = f"{len(attribute.leaves.codes)} leaves of the hierarchy {attribute.name!r} in {codes}"
        return f"Synthetic values: {codes}; {_DOMAIN_OF[attribute.origin]}."
    return f"Synthetic values: {attribute.kind}, {codes}; {_DOMAIN_OF[attribute.origin]}."


def _made(role: Role) -> str:
    if isinstance(role, Key):
        return "Fresh key, unrelated to the keys of the source."
    if isinstance(role, UnitId):
        return "Fresh unit id, unrelated to the ids of the source."
    if isinstance(role, Constant):
        return "Constant, as the owner states it; not measured."
    return f"Computed from other columns of the synthetic row: {role.expression}"
