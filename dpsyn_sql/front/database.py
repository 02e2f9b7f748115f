"""release_database() on one page.

    prepare     the tree of tables, their domains, plans, ledger and output, from public facts
    charge      the ledger, once for all tables
    measure     behind the door: what discovery asks of each table; then, from the leaves to the root, whether
                rows of a family are alike; then, from the root to the leaves, what the method asks
    finish      the source is let go; what values codes stand for, and what was lost
    write       rows of the root, then of each table given the rows above it; all in one transaction

Questions about a table depend on synthetic rows above it. These are drawn from noisy answers alone, by a seed
that the release id decides, so that a replay asks the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from threadpoolctl import threadpool_limits

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.common.progress import phase
from dpsyn_sql.discovery.discover import Discovered, discovered
from dpsyn_sql.discovery.families import found_groups, pairs_of_rows
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.residuals import shown_tables
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.database_job import DatabaseJob, FittedTable, Leg
from dpsyn_sql.front.database_prepare import prepared_database
from dpsyn_sql.front.database_publish import write_database
from dpsyn_sql.front.database_request import DatabaseRequest
from dpsyn_sql.front.job import seed_of
from dpsyn_sql.front.ledger_lookup import opened_ledger
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.planning.deadline import NO_DEADLINE
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.plan import MeasureStep, Plan, ReservedStep, SiblingStage
from dpsyn_sql.planning.queries import MarginalQuery, NoisyMarginal
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.encode.kept import KeptRows
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.report.database_result import DatabaseRelease
from dpsyn_sql.report.doubts import notes_on
from dpsyn_sql.report.fitted import FittedRelease, rows_wanted
from dpsyn_sql.report.marginals import total_error
from dpsyn_sql.report.progress_bar import LAST_PHASES, ReleaseProgress, progress_bar, telling_what_stays
from dpsyn_sql.rows.sample.tree import TableRows, drawn_rows, table_seed
from dpsyn_sql.rows.write.families import family_sampler
from dpsyn_sql.source.relation import WEIGHT


@takes_request(DatabaseRequest)
def release_database(con: Connection, request: DatabaseRequest) -> DatabaseRelease:
    """Write a differentially private synthetic copy of several tables that are tied by keys.

    ``release_database(con, unit="customers.customer_id", tables=[...], epsilon=...)``, or
    ``release_database(con, DatabaseRequest(...))``. One table holds the units; the rows of every other table
    belong to one of them through its keys. Each unit, with everything that hangs on it, is protected together
    (docs/privacy.md, "A tree of tables"). The keys of the output always hold.

    Args:
        con: a DuckDB connection, or the path of a DuckDB file.
        request: the options as one value; or its fields as arguments:

    Raises:
        InputError: the call cannot be carried out; nothing was read, written or charged.
        PrivacyBudgetExceeded: the ledger refuses the debit; nothing was read.
        ReleaseChanged: name and version were released with other settings; nothing was charged.
        ReleaseExists: the same tables, version and settings were released to another output; nothing was
            charged.
        LedgerError: the ledger cannot be found, opened or written; nothing was read.
        PublishError: something else has appeared at ``into``; the debit stays, and the message says how
            another ``into`` costs nothing more.
        EngineFailure: a statement failed in the database; the debit stays.
        ReleaseUnfinished: memory or a file was wanting after the debit, which stays.
        InternalError: a fault of ours. This and every other error after the debit says what was charged, and
            that the same call goes on at no further cost.
        KeyboardInterrupt: with a note that says what was charged and how to continue.
    """
    with (
        _begun(con, request) as (job, ledger, progress),
        _charged(job, ledger, progress) as entry,
    ):
        notes = notes_on(entry)
        fitted = _measured_and_fitted(job, entry)
        entry.close_questions()
        progress.measured()
        job.session.release_source()  # from here on nothing can read the source
        return write_database(job, entry, fitted, progress, notes)


@contextmanager
def _begun(
    con: Connection, request: DatabaseRequest
) -> Iterator[tuple[DatabaseJob, SqliteLedger, ReleaseProgress]]:
    """As ``release.begun``."""
    with (
        telling_what_stays() as progress,
        progress_bar(LAST_PHASES),
        threadpool_limits(1, user_api="blas"),
        ExitStack() as opened,
    ):
        with phase("prepare"):
            job = opened.enter_context(prepared_database(con, request))
            ledger = opened.enter_context(opened_ledger(job.con, job.place))
        yield job, ledger, progress


def _charged(
    job: DatabaseJob, ledger: SqliteLedger, progress: ReleaseProgress
) -> AbstractContextManager[SqliteEntry]:
    opening = ledger.open_release(job.key, job.budget, new_debit=job.request.new_debit)
    return progress.charging(job.key.name, opening, kept=job.place is not None)


def _measured_and_fitted(job: DatabaseJob, entry: SqliteEntry) -> dict[str, FittedTable]:
    """The private side of the door, and the fits between its questions; by table, the root first."""
    engine = job.session.engine
    measuring = _Measuring(job, LocalCurator(None, None, 1, entry, ExactNoise()), seed_of(entry.release_id))
    found = {leg.name: measuring.discovered(leg) for leg in job.legs}
    domains = {name: one.shape.domain for name, one in found.items()}
    orders = {table.name: table.order for table in job.tree if table.order}
    with closing(KeptRows(engine, job.tree, domains, orders)) as codes:
        left = dict[str, Budget]()
        for leg in reversed(job.legs):
            left[leg.name] = measuring.grouped(leg, _left(leg, found[leg.name]), codes)
        for leg in job.legs:
            measuring.fit(leg, found[leg.name], left[leg.name], codes)
    return measuring.fitted


def _left(leg: Leg, found: Discovered) -> Budget:
    """What discovery leaves of the share of a table."""
    return found.once.rest if found.once else replace(leg.rest, amount=leg.rest.amount + found.unspent)


@dataclass(frozen=True, slots=True)
class _Measuring:
    """What is asked of the door, table by table. ``seed`` draws the rows that are evidence for rows below."""

    job: DatabaseJob
    door: LocalCurator
    seed: int
    fitted: dict[str, FittedTable] = field(default_factory=dict)
    _rows: dict[str, TableRows] = field(default_factory=dict)
    _events: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    _stages: dict[str, SiblingStage] = field(default_factory=dict)

    @contextmanager
    def _of(self, leg: Leg) -> Iterator[None]:
        """The events of the questions inside are of this table."""
        before = self.door.events
        yield
        self._events[leg.name] += range(before, self.door.events)

    def discovered(self, leg: Leg) -> Discovered:
        """The domain of a table: one row of each unit tells it."""
        looked = leg.source.unit.in_discovery
        counter = SqlDiscoveryCounter(self.job.session.engine, leg.source.relation.sql, unit=looked)
        with self._of(leg), closing(counter) as unknown:
            self.door.discover(unknown, looked.max_rows)
            return discovered(leg.shape, leg.plan.discovery, self.door, looked.max_rows, leg.chooser)

    def grouped(self, leg: Leg, budget: Budget, codes: KeptRows) -> Budget:
        """Give each family of a table's rows its classes, if they are alike; what is left of the budget."""
        if not leg.asks_siblings:
            return budget
        families, (own, rest) = codes.families(leg.name), leg.divided(budget)
        queries = tuple(MarginalQuery((name,)) for name in families.domain.names)
        step = MeasureStep("pairs of rows of a family", queries, own)
        rows = ReservedStep("two attributes of a row", (), replace(own, amount=0), pairs_of_rows())
        plan = Plan(leg.source, families.domain, leg.method.name, (step, rows), own)
        with self._of(leg), self._counter(plan, families, codes, siblings=True):
            before = self.door.questions
            groups, unspent = found_groups(self.door, families, own)
            self._stages[leg.name] = SiblingStage(own, self.door.questions - before)
        codes.attach(leg.name, groups)
        return replace(rest, amount=rest.amount + unspent.amount)

    def fit(self, leg: Leg, found: Discovered, budget: Budget, codes: KeptRows) -> None:
        """Ask what the method asks of a table, fit it, and draw the rows that those below depend on."""
        families = codes.families(leg.name)
        above = None if leg.table.parent is None else self._rows[leg.table.parent]
        seed = table_seed(self.seed, leg.name)
        given = None if above is None else above.given(families, seed)
        # No clock: rows that are drawn from this fit decide questions about the tables below.
        terms = replace(leg.terms, families=families, given=given, deadline=NO_DEADLINE)
        if found.once is not None:
            names = frozenset(name for table in found.tables for name in table.attrs)
            terms = replace(terms, alone=found.once.alone, known=names)
        plan = leg.method.plan(leg.source, families.domain, budget, terms)
        known, seen = (
            tuple(table.weighted(WEIGHT) for table in own) for own in (found.tables, found.seen)
        )  # discovery counts each unit once
        plan = replace(plan, siblings=self._stages.get(leg.name), known_tables=known, seen=seen)
        before = len(self.door.measurements)
        with self._of(leg), self._counter(plan, families, codes), phase("build"):
            model = leg.method.run(plan, self.door, terms)
        own = self.door.measurements[before:]
        if given is not None and leg.table.parent is not None:
            known += _evidence(families, given, self.fitted[leg.table.parent].fitted)
        shown = (*known, *shown_tables(families.domain, own, known))
        fitted = FittedRelease(
            shape=found.shape,
            plan=replace(plan, budget=leg.plan.budget, discovery=found.asked),
            model=model,
            measurements=tuple(table.in_units(WEIGHT) for table in shown),
            contributions=None,
            types=found.types,
            families=families,
            answers=own,
            weight=WEIGHT,
            beyond=found.beyond,
            looks=found.looks,
        )
        self.fitted[leg.name] = FittedTable(leg, fitted, tuple(self._events[leg.name]))
        if families.below:
            sampler = family_sampler(model)
            units = rows_wanted(fitted) if above is None else 0
            self._rows[leg.name] = drawn_rows(sampler, given, above, units, seed)

    @contextmanager
    def _counter(
        self, plan: Plan, families: Families, codes: KeptRows, *, siblings: bool = False
    ) -> Iterator[None]:
        """PRIVATE: what counts the marginals of a table is behind the door inside."""
        counter = SqlCounter(
            self.job.session.engine,
            plan.source.relation.sql,
            families.domain,
            plan.queries,
            unit=plan.source.unit,
            further=plan.further,
            families=families,
            siblings=siblings,
            rows=codes,
        )
        with closing(counter):
            self.door.open(counter, families.domain, WEIGHT)
            yield


def _evidence(families: Families, given: Given, above: FittedRelease) -> tuple[NoisyMarginal, ...]:
    """What the rows above tell of a table: its total, and the one-way tables of their attributes. They are no
    measurements; their error is about that of the total of the table above."""
    sigma = total_error(above.measurements) * WEIGHT

    def table(attrs: tuple[str, ...], counts: FloatArray) -> NoisyMarginal:
        return NoisyMarginal(attrs, np.rint(counts * WEIGHT).astype(np.int64), sigma, fitted=bool(attrs))

    sizes = {one.name: np.arange(families.domain[one.name].size) for one in families.above}
    single = [table((name,), given.table([name], [codes])) for name, codes in sizes.items()]
    return (table((), np.asarray(given.total)), *single)
