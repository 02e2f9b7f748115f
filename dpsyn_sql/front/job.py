"""A release as it is decided from public facts; no row is read to make one.

Each table of the tree has a plan of its own, with a share of the budget by its number of attributes. All have
one debit. One table is a tree of one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.discovery.designs import design, left_of, looks_at_key
from dpsyn_sql.discovery.learn import Chooser
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.engines.spark.outputs import SparkOutput
from dpsyn_sql.engines.target import Target
from dpsyn_sql.errors import InternalError
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.tree import TreeOfTables
from dpsyn_sql.ledger.preview import ReleasePreview
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.methods import DEFAULT, method_of
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Look
from dpsyn_sql.planning.families import Families, divided, families_of
from dpsyn_sql.planning.limits import Deadline, Terms
from dpsyn_sql.planning.panel import Panel, families_of_period, presence_domain, presence_step
from dpsyn_sql.planning.panel import divided as divided_period
from dpsyn_sql.planning.plan import Plan, ReleaseKey
from dpsyn_sql.planning.running import Total
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.private.count.planner import check_size
from dpsyn_sql.private.measure.planned_events import planned_events
from dpsyn_sql.rows.write.staging import PublicRows
from dpsyn_sql.source.relation import Source
from dpsyn_sql.source.slices import Window


@dataclass(frozen=True, slots=True)
class TableDesign:
    """One table of a release: what is protected, and how it is asked.

    ``shape`` may have columns still to be discovered. ``families``: of a table of several, as planned, of the
    largest domains. ``total``: the running total that is made; ``request`` is then of the node that its
    period measures (``at_node``). ``panel``: the period of a panel.
    """

    request: Request
    session: SourceSession
    table: Table
    source: Source
    shape: Shape
    method: Recipe
    terms: Terms
    families: Families | None = None
    total: Total | None = None
    panel: Panel | None = None

    @property
    def name(self) -> str:
        """That of the table."""
        return self.table.name

    @property
    def budget(self) -> Budget:
        """The budget of the release, of one node of a running total, or of one period of a panel."""
        part = self.total if self.panel is None else self.panel
        return self.request.budget() if part is None else part.budget

    @property
    def follows(self) -> bool:
        """Whether its rows follow those of the period before."""
        return self.panel is not None and self.panel.follows

    def planned(self, budget: Budget) -> Plan:
        """The whole plan, discovery included.

        It takes a column to be discovered at its largest possible size. A running total discovers nothing:
        rows per unit in its nodes do not tell rows per unit in the total.

        Raises:
            BudgetError: a share is too small to pay for its question.
            PlanTooLarge: more cells than fit.
        """
        declared = self.total is not None or self.follows
        looks = () if declared else self._looks(budget)
        rest = left_of(budget, looks)
        domain, terms = self.of_families(self.shape.planned(), self.terms)
        plan = self.method.plan(self.source, domain, self.divided(rest)[1], terms)
        whole = Budget(budget.kind, budget.amount, sum(look.budget.delta for look in looks))
        plan = replace(plan, budget=whole, discovery=looks)
        if terms.families is not None and not self.follows:
            details = replace(plan.details, lines=(*plan.details.lines, *terms.families.lines))
            siblings = self.divided(rest)[0] if self.asks_siblings else None
            plan = replace(plan, details=details, siblings=siblings)
        if self.total is not None:
            identity = {**plan.details.identity, **self.total.identity}
            lines = (*plan.details.lines, *self.total.lines)
            plan = replace(plan, details=replace(plan.details, identity=identity, lines=lines))
        if self.panel is not None:
            plan = _of_period(plan, self.panel, terms, rest, sorted(self.shape.per_unit))
        planned_events(plan)
        check_size(plan.queries, plan.domain)
        cells = [sum(plan.domain.cells(query.attrs) for query in asked.queries) for asked in plan.asked]
        self.terms.limits.check_measured(max(cells, default=0))
        return plan

    def of_families(self, domain: Domain, terms: Terms) -> tuple[Domain, Terms]:
        """The domain with what the rows of a unit decide together, if they stay together, with attributes of
        the rows above and below, or with what is known of the period before; and the terms."""
        if self.families is not None:
            return self.families.domain, replace(terms, families=self.families)
        if self.follows:
            period = families_of_period(domain, self.shape.per_unit)
            return period.domain, replace(terms, families=period)
        families = families_of(domain, self.source.unit, self.shape.per_unit)
        return (domain, terms) if families is None else (families.domain, replace(terms, families=families))

    def divided(self, budget: Budget) -> tuple[Budget, Budget]:
        """What pays for the question whether rows of a unit are alike, or who stays; and what is left to the
        method."""
        if self.follows:
            return divided_period(budget)
        return divided(budget) if self.asks_siblings else (replace(budget, amount=0), budget)

    @property
    def may_stop(self) -> bool:
        """Whether it stops where little can be kept. Who names a method has chosen what to ask for; windows
        belong to a series, and several tables have one debit."""
        by_default = method_of(self.request.method).name == DEFAULT
        return by_default and self.request.window is None and self.families is None

    @property
    def asks_siblings(self) -> bool:
        """Whether it asks if rows of a unit, or of a row above, are alike. A root has no such rows."""
        alone = self.families is not None and self.table.parent is None
        return self.source.unit.together and self.method.takes_classes and not alone

    @property
    def counted(self) -> str:
        """What a threshold counts, in words. The column of the unit of several tables is one that we make."""
        unit = self.source.unit.column
        return "units" if self.families is not None else "rows" if unit is None else f"values of {unit}"

    def chooser_of(self, plan: Plan) -> Chooser:
        """What decides whether columns are asked about once; ``plan`` is of this design."""
        attributes = len(plan.domain.attributes)

        def one_way_part(rows: float) -> Fraction:
            return self.method.one_way_part(rows, attributes, plan.budget, self.terms)

        return Chooser(plan.budget, self.source.unit, one_way_part)

    def _looks(self, budget: Budget) -> tuple[Look, ...]:
        if self.method.growth is None:
            return design(self.shape, self.source.unit, budget)
        return looks_at_key(self.shape, self.source.unit, budget, self.method.growth)


def _of_period(plan: Plan, panel: Panel, terms: Terms, budget: Budget, shared: list[str]) -> Plan:
    """The plan of a period, with the question who stays; ``shared``: what a person keeps."""
    details = plan.details
    keeps = {"panel_keeps": shared} if shared else {}
    lines = (f"            a person who stays keeps its {', '.join(shared)}",) if shared else ()
    details = replace(
        details,
        identity={**details.identity, **panel.identity, **keeps},
        lines=(*details.lines, *panel.lines, *lines),
        public={**details.public, "panel": panel.facts},
    )
    if terms.families is None or not panel.follows:
        return replace(plan, details=details)
    own = divided_period(budget)[0]
    domain = Domain((*plan.domain.attributes, *presence_domain(terms.families).attributes[-1:]))
    steps = (presence_step(terms.families, own), *plan.steps)
    return replace(plan, details=details, domain=domain, steps=steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan(TableDesign):
    """A table with its part of the whole plan."""

    plan: Plan

    @classmethod
    def of(cls, design: TableDesign, budget: Budget) -> TablePlan:
        """The plan of a table that may spend this."""
        values = {item.name: getattr(design, item.name) for item in fields(TableDesign)}
        return cls(**values, plan=design.planned(budget))

    @property
    def chooser(self) -> Chooser:
        """What decides whether columns are asked about once."""
        return self.chooser_of(self.plan)


@dataclass(frozen=True, slots=True)
class Job:
    """A release with its plan, its place in the ledger, and its output.

    ``tied``: the tables, with what references to public tables can name. ``tables``: parents before their
    children, the root first. ``public``: the rows of the public tables that are copied into the output.
    ``budget``: of the debit. ``place``: an open ledger, the file of one, or None for one in memory.
    ``target_name`` and ``key`` are what the ledger calls the output and the release; ``preview`` is what it
    will do. ``obstacle`` is what prevents the output (only in an explained plan; a release stops there).
    ``serious``: what is odd about the declarations.
    """

    request: Request
    session: SourceSession
    tied: TreeOfTables
    tables: tuple[TablePlan, ...]
    public: tuple[PublicRows, ...]
    con: Connection
    budget: Budget
    place: SqliteLedger | Path | None
    target: Target
    target_name: str
    key: ReleaseKey
    preview: ReleasePreview
    obstacle: str
    serious: tuple[str, ...]

    @property
    def tree(self) -> Tree:
        """The tables."""
        return self.tied.tree

    @property
    def only(self) -> TablePlan:
        """The only table.

        Raises:
            InternalError: there are several.
        """
        if len(self.tables) > 1:
            raise InternalError("one table of several was taken for all")
        return self.tables[0]

    @property
    def stored_name(self) -> str:
        """What the release is called where it is stored; of several tables before the name of the table."""
        return stored_name(self.request, self.target)

    @property
    def stored_in(self) -> Connection | SparkOutput:
        """Where the models are: beside a file or folder, otherwise with the tables."""
        return self.target.stored_in(self.con)

    @property
    def deadline(self) -> Deadline:
        """The deadline of everything after the last question."""
        return self.tables[0].terms.deadline


def stored_name(request: Request, target: Target) -> str:
    """The name that a release is stored under: that of a window is its output's, since all windows share
    one name."""
    return (request.name if request.window is None else None) or target.label


def divided_among(budget: Budget, tree: Tree, domains: Mapping[str, Domain]) -> dict[str, Budget]:
    """The shares of the tables, by their attributes: own ones, and numbers of rows below."""
    sizes = [len(domains[table.name].attributes) + len(tree.children(table.name)) for table in tree]
    shares = budget.split(sizes)
    return {table.name: share for table, share in zip(tree, shares, strict=True)}


def at_node(request: Request, total: Total | None) -> Request:
    """A request for the node that the period of a running total measures; any other stays the same."""
    if total is None or not isinstance(request.window, Window):
        return request
    return replace(
        request,
        window=total.node(request.window),
        most=total.level.rows,
        version=total.labels[total.period - 1],
    )


def seed_of(release_id: str) -> int:
    """The default sampling seed; the release id is random and public."""
    return int.from_bytes(hashlib.sha256(release_id.encode()).digest()[:8], "big")
