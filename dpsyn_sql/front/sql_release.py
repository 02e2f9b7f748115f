"""What ``dpsyn_release`` and ``dpsyn_release_database`` answer: one row that says what was made.

A query may run its functions more often than it is written: in a self-join, in a PIVOT, each time a view is
read. So a release by SQL is idempotent: where the same release stands, its row is returned, nothing is
written, and nothing is charged.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from dpsyn_sql.engines.sql_calls import Call, CallingConnection
from dpsyn_sql.engines.stored_releases import standing as standing_release
from dpsyn_sql.errors import InputError
from dpsyn_sql.front.database import release_database
from dpsyn_sql.front.database_job import DatabaseJob
from dpsyn_sql.front.database_prepare import prepared_database
from dpsyn_sql.front.database_request import DatabaseRequest
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.release import release
from dpsyn_sql.front.request import Request
from dpsyn_sql.report.certificate import id_of_table
from dpsyn_sql.report.result import Release
from dpsyn_sql.sqltext.fragments import qualified


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


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """The same of a database; ``tables``: the number of rows of each."""

    release_id: str
    output: str
    tables: tuple[dict[str, Any], ...]
    epsilon: float
    delta: float
    account: str
    spent: float
    replayed: bool
    notes: tuple[str, ...]


_S = TypeVar("_S", Status, DatabaseStatus)

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


@dataclass(frozen=True, slots=True)
class Kind:
    """How a kind of release is carried out: ``standing`` is the row of one that stands, ``made`` makes it."""

    prepared: Callable[..., AbstractContextManager[Any]]
    standing: Callable[[Any], Any]
    made: Callable[[CallingConnection, Any], Any]


class Releases:
    """Answers the calls of one macro, one at a time.

    A query gets one answer to equal options, however often it asks, and is charged for one release at most:
    whatever makes a call per row of a table cannot spend more than that.
    """

    def __init__(
        self, kind: Kind, request: Callable[[str], Any], spoken: Callable[[str], str], charged: ChargedQuery
    ) -> None:
        """``request`` reads the options of a call; ``spoken`` says a message in words of SQL; ``charged``:
        what all macros of a connection share."""
        self._kind, self._request, self._spoken, self._charged = kind, request, spoken, charged
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

    def _status(self, con: CallingConnection, request: Any, warned: list[str]) -> Any:
        with self._kind.prepared(con, request) as job:
            found = self._kind.standing(job)
            if found is None and job.preview.stored is None and not job.preview.refusal:
                self._charged.once(job.key.name)
        if found is None:
            found = self._kind.made(con, request)
        notes = dict.fromkeys((*found.notes, *warned))
        return replace(found, notes=tuple(map(self._spoken, notes)))


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
    done = release(con, request)
    with prepared(con, request, explaining=True) as job:
        return _of_made(Status, done, job, output=done.table, rows=done.rows)


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
    return _of_standing(Status, job, guarantee, release_id=stored.release_id, rows=sampling["rows"])


def _made_database(con: CallingConnection, request: DatabaseRequest) -> DatabaseStatus:
    done = release_database(con, request)
    with prepared_database(con, request, explaining=True) as job:
        rows = {name: table.rows for name, table in done.tables.items()}
        return _of_made(DatabaseStatus, done, job, output=done.into, tables=_rows_of(rows))


def _standing_database(job: DatabaseJob) -> DatabaseStatus | None:
    """As ``_standing``: all tables stand, or none does."""
    request, preview, target = job.request, job.preview, job.target
    if not preview.published or not target.only_same:
        return None
    facts = dict[str, Any]()
    for leg in job.legs:
        table = None if target.home is None else qualified(*target.home, target.names[leg.name])
        stored = standing_release(job.stored_in, id_of_table(job.tree, preview.published, leg.name), table)
        if stored is None or (target.kind == "folder" and leg.name not in target.existing):
            return None
        facts[leg.name] = json.loads(stored.certificate)
    first = facts[job.legs[0].name]
    sampling, guarantee = first["sampling"], first["guarantee"]
    if request.units not in (None, sampling["rows"]) or request.seed not in (None, sampling["seed"]):
        return None
    tables = _rows_of({name: one["sampling"]["rows"] for name, one in facts.items()})
    return _of_standing(DatabaseStatus, job, guarantee, release_id=preview.published, tables=tables)


def _rows_of(tables: dict[str, int]) -> tuple[dict[str, Any], ...]:
    return tuple({"table": name, "rows": rows} for name, rows in tables.items())


def _of_made(status: type[_S], done: Release, after: Job | DatabaseJob, **own: Any) -> _S:
    """The row of a release that was made; ``after`` tells the account as it is then."""
    account_state = after.preview.account_state
    return status(
        release_id=done.id,
        epsilon=done.epsilon,
        delta=done.delta,
        account=account_state.account,
        spent=account_state.spent_epsilon,
        replayed=done.replayed,
        notes=done.notes,
        **own,
    )


def _of_standing(status: type[_S], job: Job | DatabaseJob, guarantee: dict[str, Any], **own: Any) -> _S:
    """The row of a release that stands, by the guarantee of its certificate."""
    preview = job.preview
    notes = (
        f"{job.target.name} stands as {job.key.name!r} wrote it, measured on {preview.measured_on}. Nothing "
        "was read, written or charged. To measure new data pass another version=.",
        f"The account {preview.account_state}.",
    )
    return status(
        output=job.target.name,
        epsilon=float(guarantee["epsilon"]),
        delta=float(guarantee["delta"]),
        account=preview.account_state.account,
        spent=preview.account_state.spent_epsilon,
        replayed=True,
        notes=notes,
        **own,
    )


ONE_TABLE = Kind(prepared, _standing, _made)
DATABASE = Kind(prepared_database, _standing_database, _made_database)
