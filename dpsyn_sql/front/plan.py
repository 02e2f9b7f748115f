"""plan(): what a release would do. No row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsyn_sql.accounting.account import KINDS, describe
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget, Number, exact_number
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    ImprovedEvent,
    LaplaceEvent,
    PrivacyEvent,
    ThresholdEvent,
    TreeEvent,
)
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.discovery.designs import design, left_of
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InternalError
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.job import Job, TablePlan
from dpsyn_sql.front.ledger_lookup import LedgerLookup, describe_ledger
from dpsyn_sql.front.prepare import at_period, prepared
from dpsyn_sql.front.request import Request
from dpsyn_sql.planning.asking import Ask, Look, counted_per_unit
from dpsyn_sql.planning.explain import errors_in_words, explain, explain_details, explain_tree, labelled
from dpsyn_sql.planning.foresight import Spends, foresight_lines
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import TreeQuery
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.private.count.planner import CountingPlan, counted_ahead, plan_counting
from dpsyn_sql.private.measure.noise import standard_deviation
from dpsyn_sql.private.measure.planned_events import discovery_events, explained_noise
from dpsyn_sql.private.measure.questions.columns import keys_event, shown_from


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a release would do; ``str()`` gives what matters most, ``verbose()`` all of it.

    ``tables``: of the ``tree``, with their plans, the root first. ``counting``: of one table how its
    questions are counted. ``promise``: epsilon and delta, in words. ``engine``: lines about where counting
    happens, by their labels. ``cost``: what a new debit would add to what its account has spent.
    ``foresight``: of one table what can be told from noise, by the number of rows. ``serious``: what is odd
    about the declarations, as ``suggest`` says it.
    """

    tables: tuple[TablePlan, ...]
    tree: Tree
    budget: Budget
    counting: CountingPlan | None
    into: str
    promise: str
    ledger: str
    account: str
    preview: str
    obstacle: str
    engine: Mapping[str, str]
    cost: Budget
    delta: Number
    foresight: tuple[str, ...]
    serious: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """Of the root: what is asked of it."""
        return self.tables[0].plan

    @property
    def shape(self) -> Shape:
        """Of the root: what is written of it."""
        return self.tables[0].shape

    @property
    def of_tree(self) -> bool:
        """Whether it is of tables that keys tie."""
        return self.counting is None

    def __str__(self) -> str:
        return "\n".join([*self._verdict(), "More        every column and question: verbose(), --verbose"])

    def verbose(self) -> str:
        """As ``str()``, with every column, every question and how it is counted."""
        lines = self._verdict()
        for table in self.tables:
            details = self._details(table)
            if self.of_tree:
                lines.append(f"Table       {table.name}")
                details = [f"  {line}" for line in details]
            lines += details
        engine = {what: text for what, text in self.engine.items() if what == "Engine"}
        return "\n".join([*lines, *_labelled(engine)])

    def _details(self, table: TablePlan) -> list[str]:
        """Every column and question of a table."""
        counting = list[str]()
        if self.counting is not None:
            counting = self.counting.describe(table.plan.together)
        noise, learnt = explained_noise(table.plan), found_in_words(table.plan, table.shape)
        return explain_details(table.plan, table.shape, counting=counting, noise=noise, discovery=learnt)

    def _verdict(self) -> list[str]:
        written = self.into
        if not self.obstacle and not self.of_tree:
            number = len(self.shape.order)
            written += f": {number} column{'' if number == 1 else 's'} of synthetic rows"
        first = {
            "Writes": f"{written}; {self.obstacle}" if self.obstacle else written,
            "Costs": self.promise,
            "Release": self.preview,
            "Account": self.account,
            "Ledger": self.ledger,
        }
        notes = {what: text for what, text in self.engine.items() if what != "Engine"}
        odd, seen = _indented("Serious", self.serious), _indented("Can tell", self.foresight)
        lines = self._of_tree() if self.of_tree else self._of_table()
        return [*_labelled(first), *odd, *lines, *seen, *_labelled(notes)]

    def _of_table(self) -> list[str]:
        return [*explain(self.plan, self.shape, self.delta, explained_noise(self.plan))]

    def _of_tree(self) -> list[str]:
        """The tree, the share of each table, and how far off its counts are."""
        lines = list(explain_tree(self.tree, {table.name: table.shape for table in self.tables}))
        for table in self.tables:
            share = table.plan.budget.amount / self.budget.amount
            errors = list(errors_in_words(table.plan, explained_noise(table.plan)))
            of_table = [f"{table.name}, {share:.0%} of the budget:", *(f"  {error}" for error in errors)]
            lines += labelled("Errors", of_table)
        return [*lines, f"Budget      {self._budget()}"]

    def _budget(self) -> str:
        if self.budget.kind == "pure":
            return "Laplace noise, delta = 0"
        thresholds = self.budget.delta / DELTA_UNITS
        whole = describe(self.budget, exact_number("delta", self.delta))
        return f"{whole}, {KINDS['gdp']}, Gaussian noise, threshold delta = {thresholds:.3g}"


def _labelled(lines: Mapping[str, str]) -> list[str]:
    return [f"{what:<12}{text}" for what, text in lines.items()]


def _indented(label: str, lines: Sequence[str]) -> list[str]:
    return [f"{'' if place else label:<12}{line}" for place, line in enumerate(lines)]


_COUNTED: dict[Ask, str] = {
    "rows": "rows in all: ",
    "mixed": "values and range: ",
    "types": "type of the text: ",
    "grid": "range: ",
    "steps": "granularity: ",
    "parts": "parts of the range: ",
    "cells": "bins: ",
    "leaves": "leaves of the tree: ",
    "total": "rows in all: ",
    "contributions": "",
}


def found_in_words(plan: Plan, shape: Shape) -> list[str]:
    """What each step of discovery can find."""
    planned = zip(plan.discovery, discovery_events(plan), strict=True)
    return [_finds(step, events[0], shape.untyped) for step, events in planned]


def _finds(step: Look, event: PrivacyEvent, untyped: Sequence[str]) -> str:
    """What a question of discovery can find."""
    if isinstance(event, ThresholdEvent):
        text = "if it is text: " if step.attr in untyped else ""
        what = f"first {step.length} characters of others" if step.length else "values"
        what = f"again, if many rows are hidden: {what}" if step.ask == "again" else what
        return f"{text}{what} that at least {shown_from(event)} units have"
    if step.ask == "tree" and step.tree is not None:
        return _tree(step.tree, event)
    if isinstance(event, GaussianEvent | LaplaceEvent):
        things = "rows" if step.ask in ("leaves", "total") else "units"
        noise = f"numbers of {things} with noise of standard deviation {standard_deviation(event):.4g}"
        return f"{_COUNTED[step.ask]}{noise}"
    raise InternalError("discovery has no such event")


def _tree(query: TreeQuery, event: PrivacyEvent) -> str:
    """Which tree is grown, and by what."""
    several = ", each node split by one of " + ", ".join(repr(one.name) for one in query.hierarchies)
    grown = f"tree of up to {query.depth} levels{several if len(query.hierarchies) > 1 else ''}: "
    if isinstance(event, GaussianEvent | LaplaceEvent):
        noise = f"numbers of rows a node with noise of standard deviation {standard_deviation(event):.4g}"
    elif isinstance(event, TreeEvent | ImprovedEvent):
        noise = f"decisions to split nodes, with noise of scale {event.scale:.4g} rows"
    else:
        raise InternalError("no tree is grown by such an event")
    return f"{grown}{noise} ({query.splitter})"


@takes_request(Request)
def plan(con: Connection, request: Request) -> Explanation:
    """Explain what ``release`` would do with the same arguments. Reads no rows, charges nothing.

    Args:
        con: as for ``release``.
        request: as for ``release``; or instead its fields, as arguments:

    Raises:
        InputError: ``release`` would refuse the same call.
    """
    with prepared(con, request, explaining=True) as job:
        promise = f"epsilon = {float(request.epsilon):g}, delta = {float(request.delta):g}"
        once = ", once for all tables" if job.request.several else ""
        return Explanation(
            tables=job.tables,
            tree=job.tree,
            budget=job.budget,
            counting=None if job.request.several else _counting(job),
            into=job.target.name,
            promise=f"{promise}, charged before" if job.preview.stored is not None else f"{promise}{once}",
            ledger=describe_ledger(job.place),
            account=f"{job.preview.account_state} {job.preview.account_state.warning}".strip(),
            preview=str(job.preview),
            obstacle=job.obstacle or _of_another_panel(job),
            engine={} if job.request.several else job.session.engine_words,
            cost=job.preview.cost or job.budget,
            delta=job.request.delta,
            foresight=() if job.request.several else _foresight(job.only),
            serious=job.serious,
        )


def _counting(job: Job) -> CountingPlan:
    """How the questions about one table are counted."""
    plan, in_parts = job.only.plan, job.session.engine.in_parts
    unit = plan.source.unit
    return plan_counting(
        counted_ahead(plan.queries),
        plan.domain,
        unit.column is not None,
        in_parts=in_parts,
        weighted=unit.together,
    )


def _of_another_panel(job: Job) -> str:
    """Why the period before was released as another panel; empty if not, or if it was not released yet."""
    panel = job.tables[0].panel
    if panel is None or not panel.follows:
        return ""
    before = at_period(job, panel.period - 1)
    lookup = LedgerLookup(
        job.con, job.place, before.request, job.session, job.tied, before.tables, before.budget
    )
    refusal = lookup.look(job.target.output).refusal
    return f"the period before was released with other settings. {refusal}" if refusal else ""


def _foresight(table: TablePlan) -> tuple[str, ...]:
    columns, delta = len(table.plan.domain.attributes), table.request.delta

    def bought(epsilon: float) -> Budget:
        return Budget.from_epsilon(epsilon, delta)

    if not columns or table.total is not None:
        return ()

    most = 1 if table.source.unit.together else table.source.unit.max_rows
    return tuple(foresight_lines(columns, float(table.request.epsilon), bought, _spends(table), most))


def _spends(table: TablePlan) -> Spends:
    """How a release of this job would spend a budget, by its rows."""
    method, terms, shape, unit = table.method, table.terms, table.shape, table.source.unit

    def part(rows: float, attributes: int, budget: Budget) -> Fraction:
        return method.one_way_part(rows, attributes, budget, terms)

    def tied(rows: float, attributes: int, budget: Budget) -> float:
        return method.pairs_needed(rows, attributes, budget, terms)

    if table.follows or method.growth is not None or not shape.undiscovered:
        return Spends(part, tied=tied)

    def learning(rows: float, budget: Budget) -> Fraction:
        left = left_of(budget, design(shape, unit, budget, rows))
        return 1 - Fraction(left.amount, budget.amount)

    def text(rows: float, budget: Budget) -> int:
        looks = design(shape, unit, budget, rows, part(rows, len(shape.measured), budget))
        keys = counted_per_unit("keys", unit.in_discovery.max_rows)
        budgets = {look.budget for look in looks if look.ask in ("keys", "again")}
        return min((shown_from(keys_event(keys, paid)) for paid in budgets), default=0)

    return Spends(part, learning, tied, text, "rows" if unit.column is None else "units")
