"""attach(): releases and plans as SQL, on a connection of the caller. See docs/sql_release.md."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from dpsyn_sql.common.notices import keeping
from dpsyn_sql.engines.connections import Answer, Call, register
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import DpsynError, InputError, said
from dpsyn_sql.front.plan import plan
from dpsyn_sql.front.request import DEFAULTS, OPTIONS, Request
from dpsyn_sql.front.sql_release import Releases, Status, columns_of
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, string_literal
from dpsyn_sql.sqltext.render import render

_NOT_IN_SQL = ("memory_limit", "scratch")
"""Options of a release that a query cannot have: the connection has its own settings."""

_JSON = ("domain", "method", "workload", "most")
"""Options that can be an object: a STRUCT or a MAP of SQL, or its text as JSON."""

_Answering = Callable[[Call, list[str]], dict[str, Any]]
"""From a call and the list of warnings to the columns."""


def attach(con: Connection) -> None:
    """Let a connection release by SQL: ``FROM dpsyn_release('adult', 'synthetic', epsilon := 1.0)``.

    It makes table macros that this connection alone has, until it is closed: ``dpsyn_release`` makes a
    release and returns one row that says what was made; ``dpsyn_plan`` says what it would do, line by line,
    and costs nothing. They take the options of ``dpsyn_sql.release`` by name, but for ``memory_limit`` and
    ``scratch``: constants alone, no columns. The same call again costs nothing; where its output still
    stands, nothing is written either.

    Args:
        con: an open DuckDB connection. Repeating it is harmless.

    Raises:
        InputError: it is no DuckDB connection, is closed, or its transaction has failed.
    """
    mark, columns = secrets.token_hex(4), columns_of(Status)
    kinds: list[tuple[str, _Answering, dict[str, str]]] = [
        ("release", Releases(_request_of, in_sql), columns),
        ("plan", _planned, {"lines": "VARCHAR[]"}),
    ]
    for verb, answer, columns in kinds:
        name = f"dpsyn_{verb}"
        function = f"{name}_called_{mark}"
        macro = render(
            f"attach/{verb}",
            macro=ident(name),
            columns=[ident(column) for column in columns],
            **_parts(function),
        )
        result = {**columns, "fault": "VARCHAR"}
        register(con, function, _guarded(answer, function, columns), result, macro)


def _parts(function: str) -> dict[str, Any]:
    """The parameters of a macro, with their defaults, and the call that answers."""
    parameters = [
        {"name": ident(option), "key": string_literal(option), "value": _default(DEFAULTS[option])}
        for option in _OPTIONS
    ]
    seen = render("attach/seen")
    answer = render("attach/answer", parameters=parameters, function=ident(function), seen=seen)
    return {"parameters": parameters, "answer": answer}


def _request_of(options: str) -> Request:
    """The options of a call; NULL is one that is left out.

    Raises:
        InputError: a label that is no text, or text that looks like JSON and is not.
    """
    given = {name: value for name, value in json.loads(options).items() if value is not None}
    for name in _JSON:
        value = given.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            given[name] = _object(name, value)
    return Request.from_mapping(given)


def _planned(call: Call, warned: list[str]) -> dict[str, Any]:
    """The lines of a plan."""
    lines = plan(call.connection(), _request_of(call.options)).verbose().splitlines()
    return {"lines": [*lines, *(f"Note        {in_sql(text)}" for text in warned)]}


_OPTIONS = tuple(name for name in OPTIONS if name not in _NOT_IN_SQL)


def _default(value: Any) -> Fragment:
    """NULL stands for an option that is left out, as an empty list does."""
    return literal(None if value == () else value)


# -- one call --------------------------------------------------------------------------------------


_INTERRUPTED = (
    "Interrupted. The ledger says what was charged; if the release was, the same call continues from there "
    "at no further cost."
)


def _guarded(answer: _Answering, function: str, columns: Mapping[str, str]) -> Answer:
    """A function that returns its error as a column: DuckDB shows errors of Python with a traceback.

    Only a call that is not the macro's raises, because nothing else would stop its query.
    """

    def called(call: Call) -> dict[str, Any]:
        if function in call.text.lower():
            raise InputError(
                f"{function} is a part of a table macro. Call FROM {function.partition('_called_')[0]}(...), "
                "with constants. Nothing was charged."
            )
        try:
            with keeping() as warned:
                return {**answer(call, warned), "fault": None}
        except KeyboardInterrupt as interrupt:
            fault = " ".join(getattr(interrupt, "__notes__", [_INTERRUPTED]))
        except DpsynError as error:
            fault = in_sql(str(error))
        except Exception as error:  # noqa: BLE001 - its text may quote cell values
            fault = (
                f"The call failed ({type(error).__name__}). What was charged stays, and the same call "
                "continues from there at no further cost. Please report this."
            )
        return {**dict.fromkeys(columns), "fault": fault}

    return called


def _object(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    raise InputError(f"{name}={said(text)} starts as JSON and is not: give a STRUCT, or valid JSON")


# -- the words of SQL ------------------------------------------------------------------------------

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_FIGURES = ("epsilon", "delta")
_RESERVED = ("into",)
"""A word of SQL, which stands in quotes as the name of an argument."""

_NAMES = "|".join(name for name in _OPTIONS if name not in _FIGURES)
_ARGUMENT = re.compile(
    rf"(?<!\w)(?:{_QUOTED})|(?<![\w./-])(?P<name>{_NAMES})=(?!=)"
    r"(?:(?P<word>True\b|False\b|None\b)|(?P<value>(?=[\w'\"<+\[{-])))?"
)
_WORDS = {"True": "true", "False": "false", "None": "NULL"}
_PHRASES = {", or None": ", or leave it out", "give True or False": "give true or false"}


def in_sql(text: str) -> str:
    """A message of the package with ``into=`` as ``into := ``; quoted names and figures stay."""

    def spoken(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        if match["word"] is None and match["value"] is None:
            return match["name"]
        name = f'"{match["name"]}"' if match["name"] in _RESERVED else match["name"]
        return f"{name} := {_WORDS.get(match['word'] or '', '')}"

    text = _ARGUMENT.sub(spoken, text)
    for python, sql in _PHRASES.items():
        text = text.replace(python, sql)
    return text
