"""A release of several tables as it is decided from public facts; no row is read to make one.

Each table is a leg: planned, measured and fitted like a table whose rows stay together, with a share of the
budget by its number of attributes. All legs have one debit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.discovery.discover import Chooser
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.spark.outputs import SparkOutput
from dpsyn_sql.engines.target import Target
from dpsyn_sql.front.database_request import DatabaseRequest
from dpsyn_sql.front.job import Design
from dpsyn_sql.front.tree import TreeOfTables
from dpsyn_sql.ledger.preview import ReleasePreview
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.plan import Plan, ReleaseKey
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.report.fitted import FittedRelease
from dpsyn_sql.rows.write.public_rows import PublicRows


@dataclass(frozen=True, slots=True)
class TableDesign(Design):
    """One table of a database release. ``families`` are planned: of the largest domains."""

    table: Table
    families: Families

    @property
    def name(self) -> str:
        """That of the table."""
        return self.table.name

    @property
    def counted(self) -> str:
        """What a threshold counts: the column of the unit is one that we made."""
        return "units"

    @property
    def asks_siblings(self) -> bool:
        """The root has no rows that belong together."""
        return self.table.parent is not None and self.method.takes_classes

    def of_families(self, domain: Domain, terms: Terms) -> tuple[Domain, Terms]:
        """With the attributes of the rows above and below."""
        return self.families.domain, replace(terms, families=self.families)


@dataclass(frozen=True, slots=True)
class Leg(TableDesign):
    """A table with its part of the whole plan. ``rest`` is what its discovery leaves to the method."""

    plan: Plan
    rest: Budget

    @classmethod
    def of(cls, design: TableDesign, budget: Budget) -> Leg:
        """The leg of a table that may spend this."""
        plan, rest = design.planned(budget)
        own = {one.name: getattr(design, one.name) for one in fields(TableDesign)}
        return cls(**own, plan=plan, rest=rest)

    @property
    def chooser(self) -> Chooser:
        """What decides whether columns are asked about once."""
        return self.chooser_of(self.plan)


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table after its last question: ``events`` are the places of its own in the entry."""

    leg: Leg
    fitted: FittedRelease
    events: Sequence[int]


@dataclass(frozen=True, slots=True)
class DatabaseJob:
    """A database release with its plan, its place in the ledger, and its output; fields as of ``Job``.

    ``tied``: the tables, with what references to public tables can name. ``public``: the rows of the public
    tables that are copied into the output. ``legs``: parents before their children, the root first.
    ``budget``: of the debit.
    """

    request: DatabaseRequest
    session: SourceSession
    tied: TreeOfTables
    public: tuple[PublicRows, ...]
    legs: tuple[Leg, ...]
    con: Connection
    budget: Budget
    place: SqliteLedger | Path | None
    target: Target
    target_name: str
    key: ReleaseKey
    preview: ReleasePreview
    obstacle: str

    @property
    def tree(self) -> Tree:
        """The tables."""
        return self.tied.tree

    @property
    def name(self) -> str:
        """What its stored releases are called, before the name of the table."""
        return self.request.name or self.target.label

    @property
    def stored_in(self) -> Connection | SparkOutput:
        """Where the models are: beside a folder, otherwise with the tables."""
        return self.target.stored_in(self.con)


def divided_among(budget: Budget, tree: Tree, domains: Mapping[str, Domain]) -> dict[str, Budget]:
    """The shares of the tables, by their attributes: own ones, and numbers of rows below."""
    parts = [len(domains[table.name].attributes) + len(tree.children(table.name)) for table in tree]
    shares = budget.split(parts)
    return {table.name: share for table, share in zip(tree, shares, strict=True)}
