"""attach(): releases and plans as SQL, on a connection of the caller. See docs/sql_release.md."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dpsyn_sql.common.notices import keeping
from dpsyn_sql.engines.connections import Answer, Call, CallingConnection, register
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.stored_releases import standing as standing_release
from dpsyn_sql.errors import DpsynError, InputError, said
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.plan import plan
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.release import release
from dpsyn_sql.front.request import DEFAULTS, OPTIONS, Request
from dpsyn_sql.report.certificate import id_of_table
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, string_literal
from dpsyn_sql.sqltext.render import render

# -- one row for a release ---------------------------------------------------------------------------

# What ``dpsyn_release`` answers: one row that says what was made.
#
# A query may run its functions more often than it is written: in a self-join, in a PIVOT, each time a view is
# read. So a release by SQL is idempotent: where the same release stands, its row is returned, nothing is
# written, and nothing is charged.


@dataclass(frozen=True, slots=True)
class Status:
    """What the one row says. ``rows``: of the table of the units; ``tables``: the number of rows of each.
    ``spent`` is the epsilon of all that the account was ever charged."""

    release_id: str
    output: str
    rows: int
    tables: tuple[dict[str, Any], ...]
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
    "tuple[dict[str, Any], ...]": 'STRUCT("table" VARCHAR, "rows" BIGINT)[]',
}


def columns_of(status: type[Any]) -> dict[str, str]:
    """SQL types by the names of the columns."""
    return {field.name: _SQL_TYPES[str(field.type)] for field in fields(status)}


class Releases:
    """Answers the calls of the macro, one at a time.

    A query gets one answer to equal options, however often it asks, and is charged for one release at most:
    whatever makes a call per row of a table cannot spend more than that.
    """

    def __init__(self, request: Callable[[str], Request], spoken: Callable[[str], str]) -> None:
        """``request`` reads the options of a call; ``spoken`` says a message in words of SQL."""
        self._request, self._spoken, self._charged = request, spoken, ChargedQuery()
        self._query = -1
        self._answers: dict[str, dict[str, Any]] = {}

    def __call__(self, call: Call, warned: list[str]) -> dict[str, Any]:
        """The row."""
        with self._charged.alone(call.query):
            if call.query != self._query:
                self._query, self._answers = call.query, {}
            if call.options not in self._answers:
                status = self._status(call.connection(), self._request(call.options), warned)
                self._answers[call.options] = asdict(status)
            return self._answers[call.options]

    def _status(self, con: CallingConnection, request: Request, warned: list[str]) -> Status:
        with prepared(con, request) as job:
            status = _standing(job)
            if status is None and job.preview.stored is None and not job.preview.refusal:
                self._charged.once(job.key.name)
        if status is None:
            status = _made(con, request)
        notes = dict.fromkeys((*status.notes, *warned))
        return replace(status, notes=tuple(map(self._spoken, notes)))


class ChargedQuery:
    """Which query of a connection is making a release, and whether it was charged for one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: int | None = None
        self._query, self._charged = -1, False

    @contextmanager
    def alone(self, query: int) -> Iterator[None]:
        """Hold back other calls.

        Raises:
            InputError: another query is making a release.
        """
        if self._running not in (None, query):
            raise InputError("This connection is making a release for another query. Nothing was charged.")
        with self._lock:
            self._running = query
            try:
                if query != self._query:
                    self._query, self._charged = query, False
                yield
            finally:
                self._running = None

    def once(self, name: str) -> None:
        """The release of this name is charged now.

        Raises:
            InputError: another release was, by the same query.
        """
        if self._charged:
            raise InputError(
                f"A query is charged for one release at most, and this one was charged for another "
                f"before {name!r}. Nothing was charged for {name!r}: release it in a query of its own."
            )
        self._charged = True


def _made(con: CallingConnection, request: Request) -> Status:
    """The row of a release that is made now."""
    done = release(con, request)
    with prepared(con, request, explaining=True) as after:  # tells the account as it is then
        account_state = after.preview.account_state
        return Status(
            release_id=done.id,
            output=after.target.name,
            **_rows_of({name: table.rows for name, table in done.tables.items()}),
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
    for with other rows or another seed, nor one that may be replaced. Of several tables all stand, or none
    does.
    """
    request, preview, target = job.request, job.preview, job.target
    if not preview.published or not target.only_same:
        return None
    facts = dict[str, Any]()
    for table in job.tables:
        certificate = _certificate_of(job, table.name, preview.published)
        if certificate is None:
            return None
        facts[table.name] = json.loads(certificate)
    first = facts[job.tables[0].name]
    sampling, guarantee = first["sampling"], first["guarantee"]
    if request.rows not in (None, sampling["rows"]) or request.seed not in (None, sampling["seed"]):
        return None
    notes = (
        f"{target.name} stands as {job.key.name!r} wrote it, measured on {preview.measured_on}. Nothing "
        "was read, written or charged. To measure new data pass another version=.",
        f"The account {preview.account_state}.",
    )
    return Status(
        release_id=preview.published,
        output=target.name,
        **_rows_of({name: table["sampling"]["rows"] for name, table in facts.items()}),
        epsilon=float(guarantee["epsilon"]),
        delta=float(guarantee["delta"]),
        account=preview.account_state.account,
        spent=preview.account_state.spent_epsilon,
        replayed=True,
        notes=notes,
    )


def _certificate_of(job: Job, table: str, release_id: str) -> str | None:
    """The certificate of a table that stands as the release wrote it; else None."""
    target = job.target
    release = id_of_table(job.tree, release_id, table)
    stored = standing_release(job.stored_in, release, target.sql_of(table))
    if stored is None or (target.kind == "folder" and table not in target.existing):
        return None
    return stored.certificate


def _rows_of(tables: dict[str, int]) -> dict[str, Any]:
    rows = tuple({"table": name, "rows": number} for name, number in tables.items())
    return {"rows": rows[0]["rows"], "tables": rows}


# -- macros ------------------------------------------------------------------------------------------

# attach(): releases and plans as SQL, on a connection of the caller. See docs/sql_release.md.

_JSON = ("domain", "method", "most", "csv", "limits", "workload")
"""Options that can be an object: a STRUCT or a MAP of SQL, or its text as JSON."""

_Answering = Callable[[Call, list[str]], dict[str, Any]]
"""From a call and the list of warnings to the columns."""


def attach(con: Connection) -> None:
    """Let a connection release by SQL: ``FROM dpsyn_release('adult', 'synthetic', epsilon := 1.0)``.

    It makes table macros that this connection alone has, until it is closed: ``dpsyn_release`` makes a
    release and returns one row that says what was made; ``dpsyn_plan`` says what it would do, line by line,
    and costs nothing. They take the options of ``dpsyn_sql.release`` by name: constants alone, no columns.
    The same call again costs nothing; where its output still stands, nothing is written either.

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
        for option in OPTIONS
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

_NAMES = "|".join(name for name in OPTIONS if name not in _FIGURES)
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
