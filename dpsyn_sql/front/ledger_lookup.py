"""The ledger before the debit: where it is, how it names a release, and what it would do with the release."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.engines.connections import instance_of
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.target import Output
from dpsyn_sql.errors import LedgerError, TargetError
from dpsyn_sql.front.database_request import DatabaseRequest
from dpsyn_sql.front.job import Design
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.accounts import new_account_state, new_name
from dpsyn_sql.ledger.creation import files_of
from dpsyn_sql.ledger.locations import (
    VARIABLE,
    existing_memory_ledger,
    memory_ledger,
    place_for,
    variable_place,
)
from dpsyn_sql.ledger.preview import ReleasePreview
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.ledger.store import IN_MEMORY
from dpsyn_sql.planning.plan import Plan, ReleaseKey, Tie
from dpsyn_sql.report.certificate import measured_facts
from dpsyn_sql.source.files import file_beside
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.slices import Sliced


class LedgerLookup:
    """Asks the ledger about a release before the debit. It never makes a missing ledger.

    ``configuration``: of the release, given the names of the ledger's home. ``ties``: likewise, by what rows
    belong to the unit.
    """

    def __init__(
        self,
        con: Connection,
        place: SqliteLedger | Path | None,
        request: Request | DatabaseRequest,
        session: SourceSession,
        budget: Budget,
        configuration: Callable[[LedgerNames], dict[str, Any]],
        ties: Callable[[LedgerNames], dict[str, Tie]],
    ) -> None:
        self._con, self._place, self._request, self._budget = con, place, request, budget
        self._session, self._configuration, self._ties = session, configuration, ties
        with _opened(con, place) as ledger:
            self._home = _home(ledger, place)

    @classmethod
    def of(
        cls, con: Connection, place: SqliteLedger | Path | None, design: Design, plan: Plan
    ) -> LedgerLookup:
        """Of a release of one table."""
        asked = _Asked(design, plan)
        return cls(con, place, design.request, design.session, plan.budget, asked.configuration, asked.ties)

    def name(self, output: Output) -> str:
        """The name of an output in the ledger."""
        return output.name(self._home)

    def key(self, output: Output) -> ReleaseKey:
        """The idempotency key of a release to this output."""
        request = self._request
        return ReleaseKey(
            account=request.account,
            name=request.name or self.name(output),
            version=request.version,
            configuration=self._configuration(self._home),
            sources=self._session.private_sources(self._home),
            named=request.name is not None,
            ties=self._ties(self._home),
        )

    def look(self, output: Output) -> ReleasePreview:
        """What the ledger would do with the release."""
        key, fresh = self.key(output), self._request.new_debit
        with _opened(self._con, self._place) as ledger:
            if ledger is None:
                return ReleasePreview(new_account_state(new_name(key), self._budget.kind))
            return ledger.look(key, self._budget, (self.name(output),), new_debit=fresh)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The settings of a release of one table."""

    design: Design
    plan: Plan

    def configuration(self, home: LedgerNames) -> dict[str, Any]:
        """The public settings that decide the answers, with the source as the ledger names it.
        Nothing here is computed from rows."""
        request, plan, session = self.design.request, self.plan, self.design.session
        unit, shape = plan.source.unit, self.design.shape
        left_out = {fold(name) for name in request.exclude} - {fold(unit.column or "")}
        configuration: dict[str, Any] = {
            "source": session.resolved_name(home),
            "kind": session.kind,
            "statements": list(plan.source.relation.statements),
            "unit": None if plan.source.unit_name == "row" else plan.source.unit_name,
            "rows_per_unit": unit.max_rows,
            "domain": [measured_facts(item) for item in shape.measured],
            "exclude": sorted(left_out),
            "method": plan.method,
            "epsilon": str(exact_number("epsilon", request.epsilon)),
            "delta": str(exact_number("delta", request.delta)),
        }
        if unit.together:
            shared = sorted(shape.per_unit)
            configuration["together"] = {"order": unit.order, "per_unit": shared}
        if any(step.ask == "contributions" for step in plan.discovery):
            configuration["rows_of_units"] = "measured"
        if plan.source.sliced is not None:
            configuration["slice"] = self._slice(plan.source.sliced, home)
        if request.on_error != "null" and plan.source.relation.kind == "csv":
            configuration["on_error"] = request.on_error
        if plan.details.settings:
            configuration["settings"] = dict(plan.details.settings)
        return {**configuration, **plan.details.identity}

    def ties(self, home: LedgerNames) -> dict[str, Tie]:
        """By what the rows of each source belong to the unit; none of single rows."""
        column = self.plan.source.unit.column
        if column is None:
            return {}
        return {name: ("", own) for name, own in self.design.session.owners((column,), home).items()}

    def _slice(self, sliced: Sliced, home: LedgerNames) -> dict[str, Any]:
        """A slice with all that decides its rows: the definition of a view and, if a bound is enforced, the
        conventions of the session such as its time zone."""
        session = self.design.session
        definition, conventions = session.definition(home), session.conventions
        told = {**sliced.identity, **({} if definition is None else {"definition": definition})}
        if conventions and sliced.slice.most is not None:
            told["conventions"] = dict(conventions)
        return told


def _home(ledger: SqliteLedger | None, place: SqliteLedger | Path | None) -> LedgerNames:
    return LedgerNames.of(place if isinstance(place, Path) else None) if ledger is None else ledger.home


@contextmanager
def _opened(con: Connection, place: SqliteLedger | Path | None) -> Iterator[SqliteLedger | None]:
    """The ledger; None if it does not exist yet."""
    if place is None:
        yield existing_memory_ledger(instance_of(con))
    elif isinstance(place, Path) and not os.path.lexists(place):
        yield None
    else:
        with opened_ledger(con, place) as ledger:
            yield ledger


def describe_ledger(place: SqliteLedger | Path | None) -> str:
    """Where a debit is recorded, for the explained plan."""
    if place is None:
        return "in memory: it ends with the database"
    return str(place) if isinstance(place, Path) else "the open ledger that you passed"


def ledger_place(request: Request | DatabaseRequest, session: SourceSession) -> SqliteLedger | Path | None:
    """The ledger of a release: an open one, the path of a file, or None for one in memory. Makes nothing."""
    if request.ledger is not None and not isinstance(request.ledger, str | os.PathLike):
        ledger: SqliteLedger = request.ledger
        return ledger
    if isinstance(request.ledger, str) and "://" in request.ledger:
        raise LedgerError(
            f"ledger={request.ledger!r} is a URL: a ledger is a file on a disk of this machine. Nothing was "
            "read."
        )
    if session.unplaced and request.ledger is None and variable_place() is None:
        raise LedgerError(
            f"{session.unplaced}, so its ledger must be named: give ledger='path/to/file', the same "
            f"for every release of these data, or set the environment variable {VARIABLE}. Nothing was read."
        )
    databases = [table.file for table in session.tables]
    return place_for(ledger=request.ledger, databases=databases, pattern=session.pattern, files=session.paths)


@contextmanager
def opened_ledger(con: Connection, place: SqliteLedger | Path | None) -> Iterator[SqliteLedger]:
    """Open the ledger; close it if it was not open before."""
    if place is None:
        yield memory_ledger(instance_of(con, marked=True))
    elif isinstance(place, Path):
        with closing(SqliteLedger(place)) as ledger:
            yield ledger
    else:
        yield place


def check_not_the_ledger(output: Path | None, place: SqliteLedger | Path | None) -> None:
    """Refuse an output file, or a model beside it, that would overwrite the ledger.

    Raises:
        TargetError: it would.
    """
    file = place if isinstance(place, Path) else getattr(place, "place", None)
    if output is None or file is None or file == IN_MEMORY:
        return
    taken = files_of(os.fspath(file))
    for path in (output, file_beside(output)):
        if os.path.realpath(path) in taken:
            raise TargetError(
                f"{str(path)!r} is the ledger of this release, or one of its files; choose another into=."
            )
