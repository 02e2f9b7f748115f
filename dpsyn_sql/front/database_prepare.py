"""What is decided before a database release is charged: tables, domains, plans, ledger, output.

Everything is decided from public facts. Every refusal of a call happens here, or where it is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.budget import Budget, exact_number, weakness
from dpsyn_sql.common.notices import warn
from dpsyn_sql.engines.database_output import DatabaseTarget
from dpsyn_sql.engines.database_session import DatabaseSession
from dpsyn_sql.engines.database_target import open_database_target
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.engines.target_session import Output
from dpsyn_sql.errors import SourceError, TargetError
from dpsyn_sql.front.database_job import DatabaseJob, Leg, TableDesign, divided_among
from dpsyn_sql.front.database_request import DatabaseRequest
from dpsyn_sql.front.ledger_lookup import LedgerLookup, check_not_the_ledger, ledger_place
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.tree import TreeOfTables, opened_tree
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.ledger.ties import row_of, two_owners
from dpsyn_sql.methods import METHODS
from dpsyn_sql.planning.deadline import Deadline
from dpsyn_sql.planning.explain import learnt_types
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.plan import Tie
from dpsyn_sql.planning.tree import Reference, Table, families_of_tree
from dpsyn_sql.private.encode.relations import discovery_relation
from dpsyn_sql.report.certificate import measured_facts
from dpsyn_sql.rows.write.public_rows import public_rows
from dpsyn_sql.source.ledger_names import LedgerNames
from dpsyn_sql.source.relation import PrivacyUnit, Source

METHOD = "adaptive"
"""The method that fits each table: it keeps rows of a family together."""


@contextmanager
def prepared_database(
    con: Connection, request: DatabaseRequest, *, explaining: bool = False
) -> Iterator[DatabaseJob]:
    """Check, resolve and plan; ``explaining``: an existing output is noted, not refused."""
    request.check()
    if weak := weakness(request.epsilon):
        warn(weak)
    with opened_tree(con, request) as (whole, session, resolved):
        asked = _Asked(con, whole, session, resolved)
        job = asked.recorded(ledger_place(whole, session), explaining=explaining)
        if not explaining:
            session.ready()
            if job.preview.debits:  # a replay reads no row
                session.refuse_undecodable()
        yield job


@dataclass(frozen=True, slots=True)
class _Asked:
    """An open database and what is asked of it."""

    con: Connection
    request: DatabaseRequest
    session: DatabaseSession
    resolved: TreeOfTables

    def recorded(self, place: SqliteLedger | Path | None, *, explaining: bool) -> DatabaseJob:
        """The plans, the output, and what the ledger will do."""
        request, session = self.request, self.session
        legs = self.legs(request.budget())
        budget = _whole(request.budget(), legs)
        book = LedgerLookup(self.con, place, request, session, budget, self.configuration, self.ties)
        target, obstacle = self._target(book, explaining=explaining)
        for file in _files_of(target):
            check_not_the_ledger(file, place)
        preview = book.look(target.output)
        if preview.account_state.warning:
            warn(preview.account_state.warning)
        for leg in legs:
            if leg.shape.untyped:
                warn(learnt_types(leg.plan, leg.shape.untyped))
        if preview.stored is not None:  # what was debited then is what may be asked now
            legs = self.legs(replace(preview.stored, delta=request.budget().delta))
        return DatabaseJob(
            request=request,
            session=session,
            tied=self.resolved,
            public=tuple(public_rows(session.engine, table) for table in target.copies),
            legs=legs,
            con=self.con,
            budget=budget,
            place=place,
            target=target,
            target_name=book.name(target.output),
            key=book.key(target.output),
            preview=preview,
            obstacle=obstacle,
        )

    def legs(self, budget: Budget) -> tuple[Leg, ...]:
        """The plans of all tables, the root first."""
        tree, shapes = self.resolved.tree, self.resolved.shapes
        domains = {name: shape.planned() for name, shape in shapes.items()}
        families = families_of_tree(tree, domains, self.resolved.orders, {})
        shares = divided_among(budget, tree, domains)
        request = self.request
        own = Request(epsilon=request.epsilon, delta=request.delta, exclude=request.exclude)
        terms = Terms(request.limits(), deadline=Deadline(request.time_limit))
        made = list[Leg]()
        for table in tree:
            relation, column = discovery_relation(tree, table.name)
            unit = PrivacyUnit(
                column, tree.rows_per_unit(table.name), together=True, order=table.order or None
            )
            design = TableDesign(
                request=own,
                session=self.session,
                source=Source(relation, unit),
                shape=shapes[table.name],
                method=METHODS[METHOD],
                terms=terms,
                total=None,
                panel=None,
                table=table,
                families=families[table.name],
            )
            made.append(Leg.of(design, shares[table.name]))
        return tuple(made)

    def configuration(self, home: LedgerNames) -> dict[str, Any]:
        """The public settings that decide the answers. Nothing here is computed from rows."""
        request, tree = self.request, self.resolved.tree
        session = self.session
        names = {name: table.name(home) for name, table in zip(session.relations, session.asked, strict=True)}
        return {
            "source": session.resolved_name(home),
            "kind": session.kind,
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
                    "references": [self._reference(table, one) for one in table.references],
                    "domain": [measured_facts(item) for item in self.resolved.shapes[table.name].measured],
                }
                for table in tree
            },
            "exclude": sorted(request.exclude),
            "method": METHOD,
            "epsilon": str(exact_number("epsilon", request.epsilon)),
            "delta": str(exact_number("delta", request.delta)),
        }

    def ties(self, home: LedgerNames) -> dict[str, Tie]:
        """By what the rows of each base table belong to the unit, views followed.

        Raises:
            SourceError: those of one in two ways.
        """
        tree, session, found = self.resolved.tree, self.session, dict[str, Tie]()
        for table in tree:
            opened, columns, above = session.opened[table.name], table.foreign_key or table.key, ""
            if table.parent is not None and table.parent != tree.root.name:
                keys = session.opened[table.parent].owners(tree[table.parent].key, home)
                above = row_of(keys)
            for source, own in opened.owners(columns, home).items():
                tie = above, own
                if found.setdefault(source, tie) != tie:
                    raise SourceError(two_owners(source, found[source], tie))
        return found

    def _reference(self, table: Table, reference: Reference) -> list[Any]:
        """A reference; to a public table with a digest of the rows that it can name: codes depend on them."""
        rows = self.resolved.lookups.get(table.name, {}).get(reference.columns[0])
        told = [list(reference.columns), reference.table, reference.kind, list(reference.by)]
        return told if rows is None else [*told, rows.digest]

    def _target(self, book: LedgerLookup, *, explaining: bool) -> tuple[DatabaseTarget, str]:
        """The output, and what prevents it (a plan says so, a release stops)."""
        request, tree = self.request, self.resolved.tree

        def opened(*, replace: bool) -> DatabaseTarget:
            return open_database_target(
                self.con,
                request.into,
                self.session,
                [table.name for table in tree],
                tree.public,
                replace=replace,
                written=written,
                constraints=request.constraints,
            )

        def written(output: Output) -> bool:
            return book.look(output).wrote

        try:
            return opened(replace=request.replace), ""
        except TargetError as error:
            if not explaining or request.replace:
                raise
            obstacle = str(error)
        return opened(replace=True), obstacle


def _whole(budget: Budget, legs: tuple[Leg, ...]) -> Budget:
    """The debit: all that the tables may spend, and the threshold deltas that they need."""
    return Budget(budget.kind, budget.amount, sum(leg.plan.budget.delta for leg in legs))


def _files_of(target: DatabaseTarget) -> tuple[Path, ...]:
    """The files that would be written."""
    if target.path is None:
        return ()
    inside = (target.path / f"{name}.parquet" for name in target.names.values())
    return (target.path, *(inside if target.kind == "folder" else ()))
