"""The ledger before the debit: where it is, how it names a release, and what it would do with the release."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.engines.connections import instance_of
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.target import Output
from dpsyn_sql.errors import LedgerError, SourceError, TargetError
from dpsyn_sql.front.job import TablePlan
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.tree import TreeOfTables
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
from dpsyn_sql.ledger.ties import row_of, two_owners
from dpsyn_sql.planning.plan import ReleaseKey, Tie
from dpsyn_sql.planning.tree import Reference, Table
from dpsyn_sql.report.certificate import measured_facts
from dpsyn_sql.source.csv_form import csv_form
from dpsyn_sql.source.files import file_beside
from dpsyn_sql.source.names import LedgerNames, fold
from dpsyn_sql.source.slices import Sliced


class LedgerLookup:
    """Asks the ledger about a release before the debit. It never makes a missing ledger."""

    def __init__(
        self,
        con: Connection,
        place: SqliteLedger | Path | None,
        request: Request,
        session: SourceSession,
        tied: TreeOfTables,
        tables: Sequence[TablePlan],
        budget: Budget,
    ) -> None:
        self._con, self._place, self._request, self._budget = con, place, request, budget
        self._session, self._tied, self._tables = session, tied, tables
        with _opened(con, place) as ledger:
            self._home = _home(ledger, place)

    def name(self, output: Output) -> str:
        """The name of an output in the ledger."""
        return output.name(self._home)

    def key(self, output: Output) -> ReleaseKey:
        """The idempotency key of a release to this output."""
        request = self._request
        several = len(self._tables) > 1 or request.several
        return ReleaseKey(
            account=request.account,
            name=request.name or self.name(output),
            version=request.version,
            configuration={**self._common(), **(self._of_tree() if several else self._of_table())},
            sources=self._session.private_sources(self._home),
            named=request.name is not None,
            ties=self._ties_of_tree() if several else self._ties_of_table(),
        )

    def look(self, output: Output) -> ReleasePreview:
        """What the ledger would do with the release."""
        key, fresh = self.key(output), self._request.new_debit
        with _opened(self._con, self._place) as ledger:
            if ledger is None:
                return ReleasePreview(new_account_state(new_name(key), self._budget.kind))
            return ledger.look(key, self._budget, (self.name(output),), new_debit=fresh)

    # The public settings that decide the answers. Nothing here is computed from rows.

    def _common(self) -> dict[str, Any]:
        """What every release has, with the source as the ledger names it."""
        request, table = self._request, self._tables[0]
        return {
            "source": self._session.resolved_name(self._home),
            "kind": self._session.kind,
            "method": table.plan.method,
            "epsilon": str(exact_number("epsilon", request.epsilon)),
            "delta": str(exact_number("delta", request.delta)),
        }

    def _of_table(self) -> dict[str, Any]:
        """The settings of one table."""
        request, (table,) = self._request, self._tables
        plan, shape, unit = table.plan, table.shape, table.plan.source.unit
        left_out = {fold(name) for name in request.exclude} - {fold(unit.column or "")}
        configuration: dict[str, Any] = {
            "statements": list(plan.source.relation.statements),
            "unit": None if plan.source.unit_name == "row" else plan.source.unit_name,
            "rows_per_unit": unit.max_rows,
            "domain": [measured_facts(item) for item in shape.measured],
            "exclude": sorted(left_out),
        }
        if unit.together:
            configuration["together"] = {"order": unit.order, "per_unit": sorted(shape.per_unit)}
        if any(step.ask == "contributions" for step in plan.discovery):
            configuration["rows_of_units"] = "measured"
        if plan.source.sliced is not None:
            configuration["slice"] = self._slice(plan.source.sliced)
        if (form := csv_form(request.csv)).strict and plan.source.relation.kind == "csv":
            configuration["on_error"] = form.on_error
        if plan.details.settings:
            configuration["settings"] = dict(plan.details.settings)
        return {**configuration, **plan.details.identity}

    def _slice(self, sliced: Sliced) -> dict[str, Any]:
        """A slice with all that decides its rows: the definition of a view and, if a bound is enforced, the
        conventions of the session such as its time zone."""
        session = self._session
        definition, conventions = session.definition(self._home), session.conventions
        facts = {**sliced.identity, **({} if definition is None else {"definition": definition})}
        if conventions and sliced.slice.most is not None:
            facts["conventions"] = dict(conventions)
        return facts

    def _of_tree(self) -> dict[str, Any]:
        """The settings of tables that keys tie."""
        tree, session, home = self._tied.tree, self._session, self._home
        names = session.resolved_names(home)
        return {
            "definition": session.definition(home),
            "unit": ", ".join(tree.root.key),
            "rows_per_unit": max(tree.rows_per_unit(table.name) for table in tree),
            "tables": {
                table.name: {
                    "source": names[table.name],
                    "statements": list(table.relation.statements),
                    "key": list(table.key),
                    "parent": table.parent,
                    "foreign_key": list(table.foreign_key),
                    "most": table.most,
                    "order": table.order,
                    "references": [self._reference(table, reference) for reference in table.references],
                    "domain": [measured_facts(item) for item in self._tied.shapes[table.name].measured],
                }
                for table in tree
            },
            "exclude": sorted(self._request.exclude),
        }

    def _reference(self, table: Table, reference: Reference) -> list[Any]:
        """A reference; to a public table with a digest of the rows that it can name: codes depend on them."""
        rows = self._tied.lookups.get(table.name, {}).get(reference.columns[0])
        facts = [list(reference.columns), reference.table, reference.kind, list(reference.by)]
        return facts if rows is None else [*facts, rows.digest]

    def _ties_of_table(self) -> dict[str, Tie]:
        """By what the rows of each source belong to the unit; none of single rows."""
        column = self._tables[0].plan.source.unit.column
        if column is None:
            return {}
        return {name: ("", columns) for name, columns in self._session.owners((column,), self._home).items()}

    def _ties_of_tree(self) -> dict[str, Tie]:
        """By what the rows of each base table belong to the unit, views followed.

        Raises:
            SourceError: those of one in two ways.
        """
        tree, session, ties = self._tied.tree, self._session, dict[str, Tie]()
        for table in tree:
            opened, columns, above = session.private[table.name], table.foreign_key or table.key, ""
            if table.parent is not None and table.parent != tree.root.name:
                keys = session.private[table.parent].owners(tree[table.parent].key, self._home)
                above = row_of(keys)
            for source, owners in opened.owners(columns, self._home).items():
                tie = above, owners
                if ties.setdefault(source, tie) != tie:
                    raise SourceError(two_owners(source, ties[source], tie))
        return ties


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


def ledger_place(request: Request, session: SourceSession) -> SqliteLedger | Path | None:
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
