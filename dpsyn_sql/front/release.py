"""release() on one page: for one table, for rows of a person, and for tables that keys tie.

What is released is a tree of tables. The rows of its root are the units that are protected, mostly persons;
each row of another table has one parent, a row of the table above, and so belongs to one unit. One table is a
tree of one. If it has many rows of a person (``unit=``), they lie below a root of persons, which has no
columns and is not written. Of one parent at most ``most=`` rows count; the others are left out by lot. A unit
weighs the same however many rows it has, or (``weights=False``) noise grows with ``most``: either way the
noise hides a unit with all its rows.

    prepare     reads the call, the catalog and what is declared, but no row: the tree, the questions about
                each table and their price, the output, the ledger. A wrong call is refused here
    charge      writes one debit for all tables into the ledger, which may refuse it, before a row is counted.
                It stays open until the end, so that every error says what was charged
    measure     asks the curator (``private/``), which counts and adds noise: nothing else sees a row. For
                each table: which values its columns have, where that is not declared. From the leaves to the
                root: how much the rows of one parent resemble each other; if they do, each parent has a
                hidden class, which is a column of the parent from then on. From the root to the leaves:
                counts of values together, as the method chooses them (``method=``), also with values of the
                row above and with how many rows it has below; and a model of the noisy answers
    close       ends the questions of the debit and lets the source go: from here on nothing can read it
    write       from the root to the leaves: draws rows of the model, those of a table below the root given
                the rows above, as codes (numbers of values or of ranges); finds values for the codes; notes
                what the copy loses, as far as the noisy answers tell. Then the rows and models of all tables
                are written in one transaction

One table of single rows (each a unit) is not asked about resemblance, and has nothing above or below. Of rows
of a person the model draws how many she has and her class, then so many rows. With ``order=`` it draws the
dates of her rows first, in order, then each row given its date and the row before it: the questions count
such pairs of rows.

Noise has no seed. Each noisy answer is in the ledger before anything is made of it. What is made of answers
costs nothing: it may have a seed, be repeated, be published. The same call again finds its debit and pays
nothing: it reads the answers that are there (if all are, it is a replay) and asks what is missing. The model
of a table below the root is fitted beside synthetic rows of its parent, and so is the choice of questions.
Those rows are drawn while measuring, by a seed that the id of the release in the ledger decides, so that a
release that was stopped asks the same when it goes on; they are not written. The rows that are written are
drawn anew, by the seed of the call or one that also follows from the id.

A series is the same source released period after period, such as each month. Before its own debit a running
total (``series="total"``) charges and measures the periods that are missing, each under a debit of its own,
and its model is that of all answers added up. A panel (``series="panel"``) goes on with the synthetic persons
of the period before: it asks who stays and who joins, and draws a row given the person's row in that period.
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
    tables one holds the units; each row of another table belongs to one unit by its keys. A unit is protected
    with all its rows in all tables (docs/privacy.md, "A tree of tables"). The keys of the output always hold.
    The ``Release`` that it returns has the tables, their models, the certificate and what was charged.

    Args:
        con: a DuckDB connection, the path of a DuckDB file, a Spark session, or None (files only). A file
            alone is the source: ``release("people.parquet")``. So is a data frame of pandas, Polars or Spark
            or an Arrow table, with the name that the ledger knows its data by:
            ``release(df, "people", ledger="people.ledger")``. Without ``into`` its synthetic rows are in
            memory: ``Release.to_df()``.
        request: all options as one value, or its fields as arguments.

    Raises:
        InputError: the call cannot be carried out; nothing was read, written or charged.
        PrivacyBudgetExceeded: the ledger refuses the debit; nothing was read for it. Earlier periods of a
            running total that were measured before stay measured and paid.
        ReleaseChanged: name and version were released with other settings; nothing was charged.
        ReleaseExists: the same source, version and settings were released to another output, and no
            ``name`` is given; nothing was charged. The message says how to replay it at no cost.
        LedgerError: the ledger cannot be found, opened or written; nothing was read.
        PublishError: something else has appeared at ``into``; the debit stays, and the message says how
            another ``into`` costs nothing more.
        ReleaseStopped: the first answers show that the copy would keep little of the table
            (``method="auto"`` alone). Nothing was written; what was charged and not asked pays for the next
            release of the account. The message says how to go on.
        EngineFailure: a statement failed in the database; the debit stays.
        ReleaseUnfinished: after the debit memory ran out, or a file could not be read or written; the debit
            stays.
        InternalError: a fault of ours. Every error after the debit says what was charged, and that the same
            call goes on at no further cost.
        KeyboardInterrupt: with a note that says what was charged and how to continue.
    """
    with begun(con, request) as (job, ledger, progress):
        earlier = earlier_periods(job, ledger, progress)  # of a series; a running total may charge here
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
    """Prepare a call: its job, its ledger, and how far it has come, which an interrupt and a bar show."""
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
    """What earlier periods of a series left: noisy answers of a total, synthetic rows of a panel (None before
    the first); None of a release alone. A running total charges and measures the periods that are missing.
    """
    if job.request.series == "total":
        return TotalBefore.of(job, ledger, progress)
    return PanelBefore.of(job, ledger) if job.request.series == "panel" else None
