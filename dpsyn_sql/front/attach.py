"""attach(): ``dpsyn_release`` and ``dpsyn_plan`` as SQL, on a connection of the caller.

A query may run its functions more often than it is written: in a self-join, in a PIVOT, each time a view is
read. So a release by SQL is idempotent: where the same release stands, its row is returned, nothing is
written, and nothing is charged. See docs/sql_release.md.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dpsyn_sql.common.notices import keeping
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.sql_calls import Answer, Call, CallingConnection, register
from dpsyn_sql.engines.stored_releases import standing as standing_release
from dpsyn_sql.errors import DpsynError, InputError, said
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.plan import plan
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.release import release
from dpsyn_sql.front.request import DEFAULTS, OPTIONS, Request
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, string_literal
from dpsyn_sql.sqltext.render import render

_NOT_IN_SQL = ("memory_limit",)
"""Options of a release that a query cannot have: the connection has its own limit."""

_PARAMETERS = tuple(name for name in OPTIONS if name not in _NOT_IN_SQL)

_JSON = ("domain", "method", "workload")
"""Options that can be an object: a STRUCT or a MAP of SQL, or its text as JSON."""

_Answering = Callable[[Call, list[str]], dict[str, Any]]
"""From a call and the list of warnings to the columns."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the one row says; ``spent`` is the epsilon of all that the account was ever charged."""

    release_id: str
    output: str
    rows: int
    epsilon: float
    delta: float
    account: str
    spent: float
    replayed: bool
    notes: tuple[str, ...]


_SQL_TYPES = {
    "str": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "tuple[str, ...]": "VARCHAR[]",
}
_STATUS = {field.name: _SQL_TYPES[str(field.type)] for field in fields(Status)}


def attach(con: Connection) -> None:
    """Let a connection release by SQL: ``FROM dpsyn_release('adult', 'synthetic', epsilon := 1.0)``.

    It makes two table macros that this connection alone has, until it is closed: ``dpsyn_release`` makes a
    release and returns one row that says what was made; ``dpsyn_plan`` says what it would do, line by line,
    and costs nothing. Both take the options of ``dpsyn_sql.release`` by name, ``memory_limit`` excepted:
    constants alone, no columns. The same call again costs nothing; where its output still stands, nothing
    is written either.

    Args:
        con: an open DuckDB connection. Repeating it is harmless.

    Raises:
        InputError: it is no DuckDB connection, is closed, or its transaction has failed.
    """
    mark = secrets.token_hex(4)
    kinds: list[tuple[str, _Answering, dict[str, str]]] = [
        ("dpsyn_release", _Releases(), _STATUS),
        ("dpsyn_plan", _planned, {"lines": "VARCHAR[]"}),
    ]
    for name, answer, columns in kinds:
        function = f"{name}_called_{mark}"
        result = {**columns, "fault": "VARCHAR"}
        register(con, function, _guarded(answer, function, columns), result, _macro(name, function))


def _macro(name: str, function: str) -> Fragment:
    """The statement that makes one of the two macros, with the options of ``Request`` and their defaults."""
    parameters = [
        {"name": ident(option), "key": string_literal(option), "value": _default(DEFAULTS[option])}
        for option in _PARAMETERS
    ]
    seen = render("attach/seen")
    answer = render("attach/answer", parameters=parameters, function=ident(function), seen=seen)
    return render(f"attach/{name}", parameters=parameters, answer=answer)


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


def _request(options: str) -> Request:
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


def _object(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    raise InputError(f"{name}={said(text)} starts as JSON and is not: give a STRUCT, or valid JSON")


def _planned(call: Call, warned: list[str]) -> dict[str, Any]:
    """Answers ``dpsyn_plan``."""
    lines = plan(call.connection(), _request(call.options)).verbose().splitlines()
    return {"lines": [*lines, *(f"Note        {in_sql(text)}" for text in warned)]}


class _Releases:
    """Answers ``dpsyn_release``, one call at a time.

    A query gets one answer to equal options, however often it asks, and is charged for one release at most:
    whatever makes a call per row of a table cannot spend more than that.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: int | None = None
        self._query, self._charged = -1, False
        self._answers: dict[str, dict[str, Any]] = {}

    def __call__(self, call: Call, warned: list[str]) -> dict[str, Any]:
        if self._running not in (None, call.query):
            raise InputError("This connection is making a release for another query. Nothing was charged.")
        with self._lock:
            self._running = call.query
            try:
                if call.query != self._query:
                    self._query, self._charged, self._answers = call.query, False, {}
                if call.options not in self._answers:
                    status = self._status(call.connection(), _request(call.options), warned)
                    self._answers[call.options] = asdict(status)
                return self._answers[call.options]
            finally:
                self._running = None

    def _status(self, con: CallingConnection, request: Request, warned: list[str]) -> Status:
        with prepared(con, request) as job:
            found = _standing(job)
            if found is None and job.preview.stored is None and not job.preview.refusal:
                if self._charged:
                    raise InputError(
                        f"A query is charged for one release at most, and this one was charged for another "
                        f"before {job.key.name!r}. Nothing was charged for {job.key.name!r}: release it in a "
                        "query of its own."
                    )
                self._charged = True
        if found is None:
            found = _made(con, request)
        notes = dict.fromkeys((*found.notes, *warned))
        return replace(found, notes=tuple(map(in_sql, notes)))


def _made(con: CallingConnection, request: Request) -> Status:
    """The release, and its account afterwards."""
    done = release(con, request)
    with prepared(con, request, explaining=True) as job:
        account_state = job.preview.account_state
    return Status(
        release_id=done.id,
        output=done.table,
        rows=done.rows,
        epsilon=done.epsilon,
        delta=done.delta,
        account=account_state.account,
        spent=account_state.spent_epsilon,
        replayed=done.replayed,
        notes=done.notes,
    )


def _standing(job: Job) -> Status | None:
    """The same release, if it was published to this output and the output still stands; else None.

    An output whose number of rows is another than the release wrote does not stand, nor one that is asked
    for with other rows or another seed, nor one that may be replaced.
    """
    request, preview, target = job.request, job.preview, job.target
    if not preview.published or not target.only_same:
        return None
    stored = standing_release(job.con if target.path is None else target.path, preview.published, target.sql)
    if stored is None:
        return None
    facts = json.loads(stored.certificate)
    sampling, guarantee = facts["sampling"], facts["guarantee"]
    if request.rows not in (None, sampling["rows"]) or request.seed not in (None, sampling["seed"]):
        return None
    return Status(
        release_id=stored.release_id,
        output=target.name,
        rows=sampling["rows"],
        epsilon=float(guarantee["epsilon"]),
        delta=float(guarantee["delta"]),
        account=preview.account_state.account,
        spent=preview.account_state.spent_epsilon,
        replayed=True,
        notes=(
            f"{target.name} stands as {job.key.name!r} wrote it, measured on {preview.measured_on}. Nothing "
            "was read, written or charged. To measure new data pass another version=.",
            f"The account {preview.account_state}.",
        ),
    )


# -- the words of SQL ------------------------------------------------------------------------------

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_FIGURES = ("epsilon", "delta")
_RESERVED = ("into",)
"""A word of SQL, which stands in quotes as the name of an argument."""

_NAMES = "|".join(name for name in _PARAMETERS if name not in _FIGURES)
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
