"""PRIVATE: evaluate(): a synthetic table beside the real one, for the owner of the data alone.

It reads the real table with exact counts and charges nothing, because nothing of it may be published.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.engines.relations import Given
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InputError, hides_own_frames, said
from dpsyn_sql.evaluation.associations import associations
from dpsyn_sql.evaluation.clusters import clusters, place_columns
from dpsyn_sql.evaluation.codes import encode
from dpsyn_sql.evaluation.columns import column_lines
from dpsyn_sql.evaluation.efficacy import efficacy, target_column
from dpsyn_sql.evaluation.families import families, order_column
from dpsyn_sql.evaluation.learning import need_scikit_learn
from dpsyn_sql.evaluation.marginals import marginals
from dpsyn_sql.evaluation.matching import broken_conditions, checked_conditions, range_errors
from dpsyn_sql.evaluation.membership import membership
from dpsyn_sql.evaluation.result import Evaluation
from dpsyn_sql.evaluation.session import ComparedColumn, Session, opened
from dpsyn_sql.report.progress_bar import progress_bar


@hides_own_frames
def evaluate(
    con: Connection,
    real: Given,
    synthetic: Given,
    holdout: Given | None = None,
    *,
    never: Sequence[str] = (),
    target: str | None = None,
    places: Sequence[str] | None = None,
    unit: str | None = None,
    order: str | None = None,
    seed: int = 1,
    memory_limit: str | None = None,
) -> Evaluation:
    """Compare a synthetic table with the real one. PRIVATE: the result is as private as the real rows.

    It counts in the database by SQL, which can spill to disk. It writes nothing into a
    database, reads no ledger and charges nothing. Columns of ids (keys, the privacy unit) are not compared:
    a release gives them fresh values.

    Args:
        con: a DuckDB connection, the path of a DuckDB file (opened read-only), or None for files.
        real: the table of real rows: a table, view, query, or the path of Parquet or CSV files.
        synthetic: the table to judge, given in the same way. Columns that it lacks, such as those that its
            release excluded, are not compared; it has none that ``real`` lacks.
        holdout: real rows of the same population that the release did not see. Their distance from
            ``real`` is what a perfect model could reach; learners are judged on them, and with the stored
            model of the release they make a membership test.
        never: SQL conditions that no row should meet, such as those of a domain file.
        target: a column that learners are to predict from the others; needs ``pip install
            'dpsyn_sql[ml]'``. Of more than two classes fewer rows are learnt from (200,000 by the number of
            classes), as time grows with both.
        places: columns of numbers that are a place together, such as ``("lat", "lon")``, for k-means.
        unit: the column that says whose row it is. Then the rows of a unit are compared: how many there are,
            and how alike. It is not compared itself.
        order: a column of numbers, dates or times that orders the rows of a unit: then steps from a row to
            the next are compared too.
        seed: of the draw of marginals, range queries, rows and halves.
        memory_limit: such as ``"4GB"``, where ``con`` is no connection.

    Returns:
        An ``Evaluation`` with data frames in ``tables``.

    Raises:
        InputError: the tables are no pair to compare, or an argument is wrong; the message says why.
        EngineFailure: the database failed.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed={said(seed)}: give a whole number from 0 up")
    if target is not None:
        need_scikit_learn(f"target={said(target)}")
    if order is not None and unit is None:
        raise InputError(f"order={said(order)} orders the rows of a unit: give unit= too")
    with progress_bar(), opened(con, real, synthetic, holdout, memory_limit, unit) as session:
        checked_conditions(session, never)
        if target is not None:
            target_column(session, target)
        if places is not None:
            place_columns(session, places)
        ordering = None if order is None else order_column(session, order)
        tables, about_units = _tables(session, seed, ordering)
        if never:
            tables["conditions"] = broken_conditions(session, never)
        uses, notes = _uses(session, target, places, seed)
        tested, told = membership(session, con, synthetic, seed)
    rows = (session.rows["real"], session.rows["synthetic"])
    tables |= uses if tested is None else {**uses, "membership": tested}
    notes = [*session.notes, *about_units, *notes, *told]
    return Evaluation(session.real_name, session.synthetic_name, rows, tables, tuple(notes), session.homes)


def _uses(
    session: Session, target: str | None, places: Sequence[str] | None, seed: int
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """What the rows are used for, where it is asked for: frames by name, and notes."""
    tables, notes = dict[str, pd.DataFrame](), list[str]()
    if target is not None:
        tables["efficacy"], told = efficacy(session, target, seed)
        notes += told
    if places is not None:
        with phase("places"):
            tables["clusters"], told = clusters(session, places, seed)
        notes += told
    return tables, notes


def _tables(
    session: Session, seed: int, order: ComparedColumn | None
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The frames by name, and notes on units."""
    with phase("columns"):
        codes = encode(session)
    compared = marginals(codes, seed)
    of_units, notes = ({}, []) if not session.keys else families(codes, order, seed)
    return {
        "columns": column_lines(codes, compared.one_way),
        "marginals": compared.marginals,
        "worst": compared.worst,
        "conjunctions": compared.conjunctions,
        "pairs": associations(codes, compared.pairs),
        **of_units,
        "ranges": range_errors(codes, seed),
    }, notes
