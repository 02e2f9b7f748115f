"""The private side of a release, and the fits between its questions: table by table, down the tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.discovery.designs import left_of
from dpsyn_sql.discovery.families import found_groups
from dpsyn_sql.discovery.learn import Discovered, discovered
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.reconstruct import shown_tables
from dpsyn_sql.front.job import Job, TablePlan, seed_of
from dpsyn_sql.front.losses import stopping
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.asking import Answered, Reserve, Step
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.limits import NO_DEADLINE, Evidence
from dpsyn_sql.planning.plan import queries_of
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.curator import LocalCurator, Opening
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.rows.kept import Bound, KeptRows
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted, total_error
from dpsyn_sql.report.progress_bar import ReleaseProgress
from dpsyn_sql.rows.sample.tables import TableRows, table_seed
from dpsyn_sql.rows.sample.walk import drawn_rows
from dpsyn_sql.source.relation import WEIGHT, Source


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table after its last question: ``events`` are the places of its own in the entry."""

    plan: TablePlan
    fitted: FittedRelease
    events: Sequence[int]

    @property
    def name(self) -> str:
        """That of the table."""
        return self.plan.name


def charged(job: Job, ledger: SqliteLedger, progress: ReleaseProgress) -> AbstractContextManager[SqliteEntry]:
    """The debit, or the entry of the same release at no cost."""
    opening = ledger.open_release(job.key, job.budget, new_debit=job.request.new_debit)
    name = f"{job.key.name} {job.key.version}" if job.request.series else job.key.name
    return progress.charging(name, opening, kept=job.place is not None)


def measured(job: Job, entry: SqliteEntry) -> dict[str, FittedTable]:
    """Everything that is asked of the door, and the model of each table; the root first."""
    door = LocalCurator(entry, ExactNoise())
    measuring = _Measuring(job, entry, door, seed_of(entry.release_id))
    learnt = {table.name: measuring.discovered(table) for table in job.tables}
    with closing(_kept_rows(job, learnt)) as rows:
        left = {
            table.name: measuring.grouped(table, learnt[table.name], rows) for table in reversed(job.tables)
        }
        for table in job.tables:
            measuring.fit(table, learnt[table.name], left[table.name], rows)
    return measuring.tables


def _kept_rows(job: Job, learnt: dict[str, Discovered]) -> KeptRows:
    """PRIVATE: the rows of all tables, whose domains are complete now: plans took what was unknown at its
    largest."""
    domains = {name: table.shape.domain for name, table in learnt.items()}
    if job.request.several:
        return KeptRows(job.session.engine, job.tree, domains, job.tied.orders)
    table = job.only
    domain, terms = table.of_families(domains[table.name], table.terms)
    relation, bound = table.source.relation, Bound.of(table.source.unit, None)
    return KeptRows.of_table(
        job.session.engine,
        relation.sql,
        domain,
        decimal=relation.text_decimal,
        bound=bound,
        families=terms.families,
        name=table.name,
    )


@dataclass(frozen=True, slots=True)
class _Measuring:
    """What is asked of the door, table by table. ``seed`` draws the rows that are evidence for rows below."""

    job: Job
    entry: SqliteEntry
    door: LocalCurator
    seed: int
    tables: dict[str, FittedTable] = field(default_factory=dict)
    _rows: dict[str, TableRows] = field(default_factory=dict)
    _events: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _siblings: dict[str, tuple[Budget, int]] = field(default_factory=dict)

    @contextmanager
    def _of(self, table: TablePlan) -> Iterator[None]:
        """The events of the questions inside are of this table."""
        before = self.door.events
        yield
        self._events[table.name] += range(before, self.door.events)

    def discovered(self, table: TablePlan) -> Discovered:
        """The complete domain of a table."""
        relation, looked = table.source.relation, table.source.unit.in_discovery
        counter = SqlDiscoveryCounter(
            self.job.session.engine, relation.sql, decimal=relation.text_decimal, unit=looked
        )
        chooser = replace(table.chooser, review=stopping(table, self.entry))
        with self._of(table), closing(counter) as unknown:
            self.door.discover(unknown, looked.max_rows)
            return discovered(table.shape, table.plan.discovery, self.door, chooser)

    def grouped(self, table: TablePlan, learnt: Discovered, rows: KeptRows) -> Budget:
        """Give the rows of a unit, or of a row above, classes, if they are alike; what discovery and this
        leave of the budget."""
        budget = left_of(table.plan.budget, learnt.asked)
        families = rows.families(table.name)
        if families is None or not table.asks_siblings:
            return budget
        share, rest = table.divided(budget)
        with self._of(table), self._opened(table, families.domain, rows):
            before = self.door.questions
            groups, unspent = found_groups(self.door, families, share)
            self._siblings[table.name] = share, self.door.questions - before
        rows.attach(table.name, groups)
        return replace(rest, amount=rest.amount + unspent.amount)

    def fit(self, table: TablePlan, learnt: Discovered, budget: Budget, rows: KeptRows) -> None:
        """Ask what the method asks of a table, fit it, and draw the rows that those below depend on."""
        families, weight = rows.families(table.name), table.source.unit.weight
        domain = learnt.shape.domain if families is None else families.domain
        above = None if table.table.parent is None else self._rows[table.table.parent]
        seed = table_seed(self.seed, table.name)
        given = None if above is None or families is None else above.given(families, seed)
        in_discovery, seen = (
            tuple(one_way.weighted(weight) for one_way in tables) for tables in (learnt.tables, learnt.seen)
        )  # discovery counts each unit once
        evidence = Evidence(in_discovery, seen, learnt.counted, given)
        terms = replace(table.terms, families=families, unit=table.source.unit, evidence=Answered(evidence))
        if table.families is not None:
            # No clock: rows that are drawn from this fit decide questions about the tables below.
            terms = replace(terms, deadline=NO_DEADLINE)
        names = frozenset(name for one_way in learnt.tables for name in one_way.attrs)
        terms = replace(terms, alone=learnt.alone, known=names)
        before = len(self.door.measurements) if table.families is not None else 0
        with self._of(table), self._opened(table, domain, rows), phase("build"):
            model = table.method.run(self.door, domain, budget, terms)
            steps = self.door.steps
        siblings, asked_of_siblings = self._siblings.get(table.name, (None, 0))
        plan = replace(
            table.plan,
            domain=domain,
            steps=steps,
            discovery=learnt.asked,
            details=table.method.details(terms),
            siblings=siblings,
            sibling_questions=asked_of_siblings,
        )
        answers = self.door.measurements[before:]
        if given is not None and families is not None and table.table.parent is not None:
            in_discovery += _evidence(families, given, self.tables[table.table.parent].fitted)
        counted = () if learnt.counted is None else learnt.counted.tables
        shown = (*(counted or in_discovery), *shown_tables(domain, answers, in_discovery))
        fitted = FittedRelease(
            shape=learnt.shape,
            plan=plan,
            model=model,
            measurements=tuple(marginal.in_units(weight) for marginal in shown),
            contributions=learnt.contributions,
            types=learnt.types,
            families=families,
            answers=(*counted, *answers),
            weight=weight,
            beyond=learnt.beyond,
            looks=learnt.looks,
        )
        self.tables[table.name] = FittedTable(table, fitted, tuple(self._events[table.name]))
        if families is not None and families.below:
            units = rows_wanted(fitted) if above is None else 0
            self._rows[table.name] = drawn_rows(model, families, above, units, seed)

    @contextmanager
    def _opened(self, table: TablePlan, domain: Domain, rows: KeptRows) -> Iterator[None]:
        """PRIVATE: what counts the marginals of a table is behind the door inside."""
        with opened_counter(self.job, table.source, domain, rows, table.name) as opening:
            self.door.open(opening, domain, table.source.unit.sensitivity)
            yield


@contextmanager
def opened_counter(
    job: Job, source: Source, domain: Domain, rows: KeptRows | None = None, table: str = ""
) -> Iterator[Opening]:
    """PRIVATE: for the door alone, what makes the counter of a table, in its kept ``rows``; it is closed at
    the end."""
    with ExitStack() as stack:

        def opening(steps: tuple[Step, ...]) -> SqlCounter:
            reserves = [step for step in steps if isinstance(step, Reserve)]
            counter = SqlCounter(
                job.session.engine,
                source.relation.sql,
                domain,
                queries_of(steps),
                decimal=source.relation.text_decimal,
                unit=source.unit,
                further=any(reserve.further for reserve in reserves),
                siblings=any(reserve.pairs_of_rows for reserve in reserves),
                rows=rows,
                table=table,
            )
            return stack.enter_context(closing(counter))

        yield opening


def _evidence(families: Families, given: Given, above: FittedRelease) -> tuple[NoisyMarginal, ...]:
    """What the rows above tell of a table: its total, and the one-way tables of their attributes. They are no
    measurements; their error is about that of the total of the table above."""
    sigma = total_error(above.measurements) * WEIGHT

    def table(attrs: tuple[str, ...], counts: FloatArray) -> NoisyMarginal:
        return NoisyMarginal(attrs, np.rint(counts * WEIGHT).astype(np.int64), sigma, fitted=bool(attrs))

    sizes = {attribute.name: np.arange(families.domain[attribute.name].size) for attribute in families.above}
    single = [table((name,), given.table([name], [codes])) for name, codes in sizes.items()]
    return (table((), np.asarray(given.total)), *single)
