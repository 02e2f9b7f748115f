"""plan(), init(), suggest(): what a release would do, a domain file to fill in, and advice on a domain file.

No row is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from dpsyn_sql.accounting.budget import Budget, Number
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    ImprovedEvent,
    LaplaceEvent,
    PrivacyEvent,
    ThresholdEvent,
    TreeEvent,
)
from dpsyn_sql.domain.advice import Advice, advise
from dpsyn_sql.domain.file import DomainSpec
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.domain.template import template_text
from dpsyn_sql.domain.unit import check_unit
from dpsyn_sql.engines.database_session import is_database, open_schema
from dpsyn_sql.engines.frames import open_any_source
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InputError, InternalError, hides_own_frames
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.database_advice import advise_database, is_of_database
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.ledger_lookup import LedgerLookup, describe_ledger
from dpsyn_sql.front.prepare import at_period, con_and_source, prepared
from dpsyn_sql.front.request import Request
from dpsyn_sql.planning.database_template import database_template
from dpsyn_sql.planning.discovery import (
    Ask,
    DiscoveryStep,
    counted_per_unit,
    learning_share,
    steps_of_text,
)
from dpsyn_sql.planning.explain import explain, explain_details
from dpsyn_sql.planning.foresight import Spends, foresight_lines
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import TreeQuery
from dpsyn_sql.private.count.planner import CountingPlan, plan_counting
from dpsyn_sql.private.measure.calibrate import standard_deviation
from dpsyn_sql.private.measure.planned_events import discovery_events, explained_noise
from dpsyn_sql.private.measure.questions.columns import keys_event, shown_from
from dpsyn_sql.source.csv_form import csv_form
from dpsyn_sql.source.frames import DataFrame
from dpsyn_sql.source.relation import Column


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a release would do; ``str()`` gives what matters most, ``verbose()`` all of it.

    ``promise``: epsilon and delta, in words. ``engine``: lines about where counting happens, by their labels.
    ``cost``: what a new debit would add to what its account has spent. ``foresight``: what can be told from
    noise, by the number of rows. ``serious``: what is odd about the declarations, as ``suggest`` says it.
    """

    plan: Plan
    shape: Shape
    counting: CountingPlan
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

    def __str__(self) -> str:
        return "\n".join([*self._verdict(), "More        every column and question: verbose(), --verbose"])

    def verbose(self) -> str:
        """As ``str()``, with every column, every question and how it is counted."""
        noise = explained_noise(self.plan)
        found = found_in_words(self.plan, self.shape)
        further = self.plan.further
        counting = self.counting.describe(None if further is None else further.together)
        lines = explain_details(self.plan, self.shape, counting=counting, noise=noise, discovery=found)
        engine = {what: text for what, text in self.engine.items() if what == "Engine"}
        return "\n".join([*self._verdict(), *lines, *_labelled(engine)])

    def _verdict(self) -> list[str]:
        written = self.into
        if not self.obstacle:
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
        lines = explain(self.plan, self.shape, self.delta, explained_noise(self.plan))
        seen = _indented("Can tell", self.foresight)
        odd = _indented("Serious", self.serious)
        return [*_labelled(first), *odd, *lines, *seen, *_labelled(notes)]


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


def _finds(step: DiscoveryStep, event: PrivacyEvent, untyped: Sequence[str]) -> str:
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
        bounded = job.plan.source.unit.column is not None
        return Explanation(
            plan=job.plan,
            shape=job.shape,
            counting=plan_counting(
                job.plan.queries,
                job.plan.domain,
                bounded,
                in_parts=job.session.engine.in_parts,
                weighted=job.plan.source.unit.together,
            ),
            into=job.target.name,
            promise=f"{promise}, charged before" if job.preview.stored is not None else promise,
            ledger=describe_ledger(job.place),
            account=f"{job.preview.account_state} {job.preview.account_state.warning}".strip(),
            preview=str(job.preview),
            obstacle=job.obstacle or _of_another_panel(job),
            engine=job.session.told,
            cost=job.preview.cost or job.plan.budget,
            delta=job.request.delta,
            foresight=_foresight(job),
            serious=job.serious,
        )


def _of_another_panel(job: Job) -> str:
    """Why the period before was released as another panel; empty if not, or if it was not released yet."""
    if job.panel is None or not job.panel.follows:
        return ""
    before = at_period(job, job.panel.period - 1)
    refusal = LedgerLookup.of(job.con, job.place, before, before.plan).look(job.target.output).refusal
    return f"the period before was released with other settings. {refusal}" if refusal else ""


def _foresight(job: Job) -> tuple[str, ...]:
    columns, delta = len(job.plan.domain.attributes), job.request.delta

    def bought(epsilon: float) -> Budget:
        return Budget.from_epsilon(epsilon, delta)

    if not columns or job.total is not None:
        return ()

    most = 1 if job.source.unit.together else job.source.unit.max_rows
    return tuple(foresight_lines(columns, float(job.request.epsilon), bought, _spends(job), most))


def _spends(job: Job) -> Spends:
    """How a release of this job would spend a budget, by its rows."""
    method, terms, shape, unit = job.method, job.terms, job.shape, job.source.unit

    def part(rows: float, attributes: int, budget: Budget) -> Fraction:
        return method.one_way_part(rows, attributes, budget, terms)

    def tied(rows: float, attributes: int, budget: Budget) -> float:
        return method.pairs_needed(rows, attributes, budget, terms)

    if job.follows or method.growth is not None or not shape.undiscovered:
        return Spends(part, tied=tied)

    def learning(rows: float, budget: Budget) -> Fraction:
        return learning_share(shape, unit, budget, rows)

    def text(rows: float, budget: Budget) -> int:
        wanted = part(rows, len(shape.measured), budget)
        steps = steps_of_text(shape, unit, budget, rows, wanted)
        keys = counted_per_unit("keys", unit.in_discovery.max_rows)
        shown = {shown_from(keys_event(keys, budget)) for budget in {step.budget for step in steps}}
        return min(shown, default=0)

    return Spends(part, learning, tied, text, "rows" if unit.column is None else "units")


@hides_own_frames
def init(
    con: Connection | DataFrame,
    source: str | os.PathLike[str] | DataFrame | None = None,
    *,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
) -> str:
    """A domain file (YAML) to fill in, from catalog types or header names alone. Reads no row.

    Without a source, of a DuckDB connection or file: the file of a whole database, with the keys and links of
    all tables of its schema, for ``release_database``.

    Args:
        con: as for ``release``.
        source: as for ``release``.
        trust_query: as for ``release``.
        public_tables: as for ``release``.
        encoding: as for ``release``.
        delimiter: as for ``release``.
        quote: as for ``release``.

    Raises:
        InputError: an option of a CSV file is not understood, or the source is none.
        SourceError: the source is missing, ambiguous or not accepted.
    """
    form = csv_form(encoding, delimiter, None, quote)
    if source is None and is_database(con):
        with open_schema(cast("Connection", con), public_tables) as database:
            return database_template(database.facts, tuple(database.public))
    place, rows = con_and_source(con, source)
    with open_any_source(
        place, rows, trust_query=trust_query, public_tables=public_tables, form=form
    ) as session:
        return template_text(session.relation)


@hides_own_frames
def suggest(
    con: Connection | DataFrame = None,
    source: str | os.PathLike[str] | DataFrame | None = None,
    *,
    domain: DomainSpec = None,
    privacy_unit: str | None = None,
    exclude: Sequence[str] = (),
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
) -> Advice:
    """What is odd about a domain file, or about a catalog without one; most important first. Reads no row.

    ``suggest(con, source, domain="people.yml")`` judges the file beside the catalog of the source,
    ``suggest(domain="people.yml")`` the file alone, and ``suggest(con, source)`` the catalog alone: then
    ``Advice.domain`` is a mapping to begin with, which ``release`` takes as it is. The file of a database
    (with ``tables:``) is judged table by table, beside ``con`` or alone; ``privacy_unit`` is then its unit.

    Args:
        con: as for ``release``.
        source: as for ``release``.
        domain: as for ``release``.
        privacy_unit: as for ``release``.
        exclude: as for ``release``.
        trust_query: as for ``release``.
        public_tables: as for ``release``.
        encoding: as for ``release``.
        delimiter: as for ``release``.
        quote: as for ``release``.

    Returns:
        Findings with ``.column`` (None: several columns, or the table), ``.what``, ``.cure`` and
        ``.severity``: ``fault`` (a release refuses it), ``serious`` (a column is ruined, or the protection is
        not what the owner means) or ``hint``.

    Raises:
        InputError: neither a source nor a domain is given, the unit's column does not exist, an option of a
            CSV file is not understood, or the source is none.
        SourceError: the source is missing, ambiguous or not accepted.
        DomainError: the file cannot be read, is no YAML, or has no ``columns:``.
    """
    if con is None and source is None and domain is None:
        raise InputError("Nothing to judge: give a source, or domain=.")
    if is_of_database(domain):
        if con is not None and source is not None:
            raise InputError("domain= is the file of a database: give the database alone, without a table.")
        return advise_database(
            cast("Connection", con if source is None else source),
            domain,
            unit=privacy_unit,
            public_tables=public_tables,
            exclude=exclude,
        )
    request = Request(source, domain=domain, privacy_unit=privacy_unit, exclude=exclude)
    request.check()
    unit, stated = request.unit(), privacy_unit is not None
    form = csv_form(encoding, delimiter, None, quote)
    if con is None and source is None:
        column = None if unit.column is None else Column(unit.column, "VARCHAR")
        return advise(domain, None, unit=column, stated=stated, exclude=exclude, most_cells=MAX_PAIR_CELLS)
    place, rows = con_and_source(con, source)
    with open_any_source(
        place, rows, trust_query=trust_query, public_tables=public_tables, unit=unit.column, form=form
    ) as session:
        relation = session.relation
        column = None if unit.column is None else check_unit(relation.columns, unit)
        return advise(
            domain, relation, unit=column, stated=stated, exclude=exclude, most_cells=MAX_PAIR_CELLS
        )
