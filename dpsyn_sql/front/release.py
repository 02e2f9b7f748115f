"""release() on one page: for one table, for rows of a person, and for tables that keys tie.

    prepare     from public facts: the tree of tables (one table is a tree of one), what is declared of each,
                plans, ledger and output; a wrong call is refused here
    charge      the ledger, which may refuse the debit, once for all tables, before a row is counted
    measure     behind the door: what discovery asks of each table, until its domain is complete; then, from
                the leaves to the root, whether rows of one unit, or of one row above, are alike; then, from
                the root to the leaves, what the method asks, and the model of its answers
    close       the source: from here on nothing can read it
    write       from the root to the leaves: what values codes stand for, rows given the rows above, and what
                was lost; then all rows with their models in one transaction

One table whose rows count one each is not asked whether rows are alike. Where rows of a person stay together,
persons are no table: the model of the rows has a number of rows and a class for each of them.

What comes after the last question uses only noisy answers: it may be seeded, repeated, published. Questions
about a table below the root depend on synthetic rows above it. These are drawn from noisy answers alone, by a
seed that the release id decides, so that a replay asks the same. The rows that are written are drawn anew, by
the seed of the call if it gives one.

A period of a series goes on from those before it. A running total first measures those that are missing, each
under a debit of its own, and adds up all answers; a panel draws rows given the rows of the period before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from threadpoolctl import threadpool_limits

from dpsyn_sql.common.progress import phase
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.job import Job
from dpsyn_sql.front.ledger_lookup import opened_ledger
from dpsyn_sql.front.measure import charged, measured
from dpsyn_sql.front.panels import PanelBefore, write_period
from dpsyn_sql.front.prepare import prepared
from dpsyn_sql.front.publish import write_release
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.totals import TotalBefore
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.report.doubts import notes_on
from dpsyn_sql.report.progress_bar import LAST_PHASES, ReleaseProgress, progress_bar, telling_what_stays
from dpsyn_sql.report.result import Release


@takes_request(Request)
def release(con: Connection, request: Request) -> Release:
    """Write a differentially private synthetic copy of a table, or of tables that keys tie.

    ``release(con, source, epsilon=...)``, or ``release(con, Request(source, epsilon=...))``. Of several
    tables one holds the units; the rows of every other table belong to one of them through its keys. Each
    unit, with everything that hangs on it, is protected together (docs/privacy.md, "A tree of tables"). The
    keys of the output always hold.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, a Spark session, or None (files only). A file
            alone is the source: ``release("people.parquet")``. So is a data frame of pandas, Polars or Spark
            or an Arrow table, with the name that the ledger knows its data by:
            ``release(df, "people", ledger="people.ledger")``. Without ``into`` its synthetic rows are in
            memory: ``Release.to_df()``.
        request: the options as one value; or its fields as arguments:

    Raises:
        InputError: the call cannot be carried out; nothing was read, written or charged.
        PrivacyBudgetExceeded: the ledger refuses the debit; nothing was read.
        ReleaseChanged: name and version were released with other settings; nothing was charged.
        ReleaseExists: the same source, version and settings were released to another output, and no
            ``name`` is given; nothing was charged. The message says how to replay it at no cost.
        LedgerError: the ledger cannot be found, opened or written; nothing was read.
        PublishError: something else has appeared at ``into``; the debit stays, and the message says how
            another ``into`` costs nothing more.
        ReleaseStopped: it has learnt that little of the table can be kept (``method="auto"`` alone). Nothing
            was written; what it has not asked for pays for the next release of its account. The message says
            how to go on.
        EngineFailure: a statement failed in the database; the debit stays.
        ReleaseUnfinished: memory or a file was wanting after the debit, which stays.
        InternalError: a fault of ours. This and every other error after the debit says what was charged, and
            that the same call goes on at no further cost.
        KeyboardInterrupt: with a note that says what was charged and how to continue.
    """
    with begun(con, request) as (job, ledger, progress):
        earlier = earlier_periods(job, ledger, progress)  # None unless the release is of a series
        with charged(job, ledger, progress) as entry:
            notes = notes_on(entry) if earlier is None else (*notes_on(entry), *earlier.notes)
            tables = measured(job, entry) if earlier is None else earlier.measured(job, entry)
            entry.close_questions()
            progress.measured()
            job.session.release_source()  # from here on nothing can read the source
            if isinstance(earlier, PanelBefore):
                return write_period(job, entry, tables, earlier, progress, notes)
            return write_release(job, entry, tables, progress, notes)


@contextmanager
def begun(con: Connection, request: Request) -> Iterator[tuple[Job, SqliteLedger, ReleaseProgress]]:
    """The job of a call and its ledger, before the debit; and how far it comes, for interrupts and a bar."""
    with (
        telling_what_stays() as progress,
        progress_bar(LAST_PHASES),
        # Fits are small: on busy cores the threads of the linear algebra library would wait for each other.
        threadpool_limits(1, user_api="blas"),
        ExitStack() as opened,
    ):
        with phase("prepare"):
            job = opened.enter_context(prepared(con, request))
            ledger = opened.enter_context(opened_ledger(job.con, job.place))
        yield job, ledger, progress


def earlier_periods(
    job: Job, ledger: SqliteLedger, progress: ReleaseProgress
) -> TotalBefore | PanelBefore | None:
    """What the earlier periods of a series left: answers of a running total, rows of a panel.

    A running total measures periods that are missing, and charges them.
    """
    if job.request.series == "total":
        return TotalBefore.of(job, ledger, progress)
    return PanelBefore.of(job, ledger) if job.request.series == "panel" else None
