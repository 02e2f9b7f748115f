"""A release as a model of dbt: what the materialization ``dp_release`` of the package in ``dbt/`` calls.

dbt builds a model again and again: every ``dbt build`` makes the same release, which replays at no cost.
Nothing is charged with ``--empty`` or ``--sample``, nor where the ledger would not outlive the build. Of a
database each table is a model; the first one that is built writes all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.attributes.database_file import read_database
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.common.notices import keeping
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import DpsynError, InputError, LedgerError, said
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.ledger_lookup import describe_ledger
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.release import release
from dpsyn_sql.front.request import Request
from dpsyn_sql.report.result import Release
from dpsyn_sql.source.names import display_name, fold, listed
from dpsyn_sql.sqltext.fragments import ident, string_literal
from dpsyn_sql.sqltext.render import render

_ONE_AT_A_TIME = threading.Lock()
"""dbt builds models in several threads; two releases would change the macros of one database at once."""

_OURS = {
    "source": "the source is what the body names",
    "into": "the output is the model",
    "replace": "a model always replaces its table",
    "new_debit": "a model is built again and again; a new label under 'version' pays for another release",
}
_STATED = {"epsilon": ", such as 1.0"}
_STATED_OF_ONE = {**_STATED, "unit": ", 'row' or the column that identifies a person"}
_STATED_OF_SEVERAL = {**_STATED, "name": ", such as 'shop': all tables have one release"}
"""The options that are always stated, with examples."""

_made: dict[str, list[tuple[Request, str]]] = {}
"""The releases of several tables of this build, by its id, and what is told of their further tables."""

_WHERE = "meta.dpsyn"
_GOES_ON = "What was charged stays, and the next build goes on from there at no further cost."


def build(session: Any, call: str, options: object = None) -> None:
    """Carry out the release of a model and tell the outcome to the connection that asked for it.

    Args:
        session: the cursor that dbt gives to a Python model.
        call: JSON of the materialization: ``model``, ``project``, ``target_path``, ``sources`` (each with
            ``names``, as ``into``, and the ``path`` of a file), ``into`` (database, schema, name),
            ``options``, ``empty`` and ``invocation`` (the id of the build).
        options: what a Python model returned: options in place of those under ``meta``.
    """
    told: dict[str, Any]
    with _ONE_AT_A_TIME, keeping() as warned:
        try:
            told = _built(_connection(session), json.loads(call), options)
        except DpsynError as error:
            told = {"error": _in_dbt(str(error))}
        except Exception as error:  # noqa: BLE001 - dbt logs the text of any other error, which can quote rows
            told = {"error": f"The release stopped with an unexpected {type(error).__name__}. {_GOES_ON}"}
    told["warnings"] = warned
    told["notes"] = [note for note in told.get("notes", ()) if note not in told["warnings"]]
    statement = render("dbt/tell", told=string_literal(json.dumps(told)))
    DuckDBEngine(_connection(session)).execute(statement, step="telling dbt")


def _in_dbt(message: str) -> str:
    """The message in one line, with advice that fits a model of dbt."""
    return " ".join(message.replace(", or add new_debit=True", f" under {_WHERE}").split())


def _connection(session: Any) -> Any:
    """DuckDB's connection inside the wrappers of dbt."""
    while (inner := getattr(session, "_cursor", None)) is not None:
        session = inner
    return session


def _built(con: Any, call: Mapping[str, Any], returned: object) -> dict[str, Any]:
    """One table of a release: the first of several that is built makes it, the others find it made."""
    request = request_of(call, returned)
    with prepared(con, request) as job:
        _check_ledger(job, Path(call["project"]), call["target_path"])
        if call["empty"]:
            return {"columns": _columns(_shape_of(job, call))}
        _shape_of(job, call)
        place = describe_ledger(job.place)
    for built, told in _made.get(call["invocation"], []):
        if built == request:
            return {"told": told, "notes": []}
    made = release(con, request)
    if not request.several:
        words = _in_words(made, request.name, f"{made.rows:,} synthetic rows", place)
        return {"told": words, "notes": list(made.notes)}
    if call["invocation"] not in _made:
        _made.clear()
    told = f"a table of release {request.name!r} ({made.id}), which this build has made"
    _made.setdefault(call["invocation"], []).append((request, told))
    rows = ", ".join(f"{name} {table.rows:,}" for name, table in made.tables.items())
    words = _in_words(made, request.name, f"synthetic rows of {rows}", place)
    return {"told": words, "notes": list(made.notes)}


def _shape_of(job: Job, call: Mapping[str, Any]) -> Shape:
    """What is written of the table of a model.

    Raises:
        InputError: no table of the release is called as the model is.
    """
    if not job.request.several:
        return job.only.shape
    shapes = {fold(table.name): table.shape for table in job.tables}
    shape = shapes.get(fold(call["into"][-1]))
    if shape is None:
        raise InputError(
            f"The model is called {said(call['into'][-1])}, and the body names the private tables "
            f"{listed([table.name for table in job.tables])}: give the model the alias of one of them."
        )
    return shape


def request_of(call: Mapping[str, Any], returned: object = None) -> Request:
    """The request of a model: of several tables if its body names several sources.

    Raises:
        InputError: options that are missing, unknown, or not a model's to decide, all at once.
    """
    given = call["options"] if returned is None else returned
    if returned is not None and call["options"]:
        raise InputError(f"The Python model returns options and has some under {_WHERE}: keep one of them.")
    if not isinstance(given, Mapping):
        raise InputError(f"The options of a release are a mapping, not {said(given)}: see {_WHERE}.")
    several = len(call["sources"]) > 1
    problems = [f"{key} is not an option here: {_OURS[key]}" for key in _OURS if key in given]
    for key, example in (_STATED_OF_SEVERAL if several else _STATED_OF_ONE).items():
        if given.get(key) is None:
            problems.append(f"{key} is missing: state it for every release{example}")
    folder, unknown, request = Path(call["project"]), "", None
    try:
        request = Request.from_mapping(
            {key: value for key, value in given.items() if key not in _OURS}, folder=folder
        )
    except InputError as error:
        unknown = str(error)
    if problems or unknown or request is None:
        told = "; ".join(problems) + "." if problems else ""
        many = _names_several(call) if several else ""
        raise InputError(f"{_WHERE}: {told} {unknown} {many}".replace("  ", " ").strip())
    if several:
        return _with_tables(request, call)
    (source,) = call["sources"]
    return replace(
        request,
        source=Path(source["path"]) if source["path"] else display_name(*source["names"]),
        into=display_name(*call["into"]),
        name=request.name or call["model"],
        replace=True,
    )


def _names_several(call: Mapping[str, Any]) -> str:
    names = listed(sorted(one["names"][-1] for one in call["sources"]))
    return f"The body names {names}: several sources are tables of a database that keys tie."


def _with_tables(request: Request, call: Mapping[str, Any]) -> Request:
    """With the sources as tables; public are those that the options or the domain file call so.

    Raises:
        InputError: a source is a file, or a public table is no source.
        DomainError: the domain file cannot be read.
    """
    if files := [one["path"] for one in call["sources"] if one["path"]]:
        raise InputError(f"{said(files[0])} is a file: tables that keys tie are in a database.")
    names = {fold(one["names"][-1]): display_name(*one["names"]) for one in call["sources"]}
    public = list(request.public_tables) or list(read_database(request.domain).public)
    if missing := [name for name in public if fold(name) not in names]:
        raise InputError(f"The public table {said(missing[0])} is not in the body. {_names_several(call)}")
    apart = {fold(name) for name in public}
    return replace(
        request,
        source=tuple(name for key, name in names.items() if key not in apart),
        public_tables=tuple(name for key, name in names.items() if key in apart),
        into=display_name(*call["into"][:-1]),
        replace=True,
    )


def _check_ledger(job: Job, project: Path, target_path: str) -> None:
    """Refuse a ledger that ends with the build or that ``dbt clean`` deletes: the next build would pay again.

    Raises:
        LedgerError: says what to do.
    """
    if job.place is None:
        raise LedgerError(
            "The source is in a database in memory, and so would be its ledger: every build would pay again. "
            f"Give the profile a database file, or name a ledger file under {_WHERE} or in DPSYN_LEDGER."
        )
    if not isinstance(job.place, Path):
        raise InputError(f"{_WHERE}: ledger must be the path of a file.")
    ledger = Path(os.path.realpath(job.place))
    for folder in _cleaned(project, target_path):
        if ledger.is_relative_to(folder):
            raise LedgerError(
                f"The ledger would be in {folder}, which `dbt clean` deletes: the next build would pay "
                f"again. Keep the database elsewhere, or name a ledger file under {_WHERE} or in "
                "DPSYN_LEDGER."
            )


def _cleaned(project: Path, target_path: str) -> list[str]:
    """The folders that ``dbt clean`` deletes: where dbt writes, and what the project lists."""
    from dpsyn_sql.attributes.document import load_yaml  # loads much

    document: Any = None
    with contextlib.suppress(DpsynError):
        document = load_yaml(project / "dbt_project.yml", "project", InputError)
    stated = document if isinstance(document, Mapping) else {}
    listed = stated.get("clean-targets")
    paths = [target_path, stated.get("target-path"), *(listed if isinstance(listed, list) else [])]
    return [os.path.realpath(project / path) for path in paths if isinstance(path, str) and path]


def _columns(shape: Shape) -> list[tuple[str, str]]:
    """Quoted names and types of the released table."""
    types = shape.sql_types
    return [(ident(name), _public_type(types[name])) for name in shape.order]


def _public_type(sql_type: str) -> str:
    """The type, but VARCHAR for an ENUM without a name, whose labels may come from the rows."""
    known = parse_type(sql_type)
    return "VARCHAR" if known is not None and known.family == "enum" else sql_type


def _in_words(made: Release, name: str | None, rows: str, place: str) -> str:
    cost = "replayed, nothing charged" if made.replayed else f"charged in {place}"
    claim = f"epsilon {shown(made.epsilon)}, delta {made.delta:g}"
    return f"release {name!r} ({made.id}): {rows}, {claim}; {cost}"
