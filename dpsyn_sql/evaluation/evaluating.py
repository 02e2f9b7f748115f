"""PRIVATE: evaluate(): synthetic tables beside the real ones, for the owner of the data alone.

It reads the real tables with exact counts and charges nothing, because nothing of it may be published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpsyn_sql.attributes.file import DomainSpec
from dpsyn_sql.common.progress import phase
from dpsyn_sql.engines.open_source import Given
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InputError, hides_own_frames, said
from dpsyn_sql.evaluation.codes import Codes
from dpsyn_sql.evaluation.columns import associations, column_lines
from dpsyn_sql.evaluation.learning import efficacy, need_scikit_learn, target_column
from dpsyn_sql.evaluation.linked import coded, linked, notes_on_keys, order_column
from dpsyn_sql.evaluation.marginals import marginals
from dpsyn_sql.evaluation.membership import membership
from dpsyn_sql.evaluation.page import HEADINGS
from dpsyn_sql.evaluation.queries import (
    broken_conditions,
    checked_conditions,
    clusters,
    place_columns,
    range_errors,
)
from dpsyn_sql.evaluation.relatives import between
from dpsyn_sql.evaluation.result import Evaluation
from dpsyn_sql.evaluation.session import Session
from dpsyn_sql.evaluation.tables import ComparedTables, opened
from dpsyn_sql.planning.limits import LimitsSpec
from dpsyn_sql.report.progress_bar import progress_bar
from dpsyn_sql.source.names import fold, name_hint

Frames = Mapping[str, pd.DataFrame]
"""By the names of an ``Evaluation``."""


@hides_own_frames
def evaluate(
    con: Connection,
    real: Given | Sequence[str] | None,
    synthetic: Given,
    holdout: Given | None = None,
    *,
    domain: DomainSpec = None,
    unit: str | None = None,
    order: str | None = None,
    never: Sequence[str] | Mapping[str, Sequence[str]] = (),
    target: str | None = None,
    places: Sequence[str] | None = None,
    seed: int = 1,
    limits: LimitsSpec = None,
) -> Evaluation:
    """Compare synthetic tables with the real ones. PRIVATE: the result is as private as the real rows.

    It counts in the database by SQL, which can spill to disk. It writes nothing into a database, reads no
    ledger and charges nothing. One table, or several that are a tree: one holds the units, each other one
    hangs from its parent by a foreign key. Which, the catalog says or the domain file. Columns of ids (keys,
    the privacy unit) are not compared, as a release gives them fresh values; that keys hold is.

    Args:
        con: a DuckDB connection, the path of a DuckDB file (opened read-only), or None for files.
        real: the real rows: a table, view, query, or the path of Parquet or CSV files; or a list of names of
            tables; or None: the tables of the domain file.
        synthetic: the table to judge, given in the same way. Of several tables what was given to the release
            as ``into``: a schema of the database, a DuckDB file (where ``con`` is a file too), or a folder of
            Parquet files. Columns that it lacks, such as those that its release excluded, are not compared;
            it has none that ``real`` lacks.
        holdout: real rows of the same population that the release did not see; of several tables a schema or
            a folder. Their distance from ``real`` is what a perfect model could reach; learners are judged on
            them, and with the stored model of the release of one table they make a membership test.
        domain: the domain file of a database, or its content: how several tables hang together.
        unit: the column that says whose row it is, or of several tables the table of the units or its key
            (``"people.person"``). Then rows of a unit are compared: how many there are, and how alike.
        order: a column of numbers, dates or times that orders the rows of a unit, or of one row above: then
            steps from a row to the next are compared too. Of several tables ``"visits.day"``, beside those
            that the domain file states.
        never: SQL conditions that no row should meet, such as those of a domain file; of several tables a
            mapping of their names to conditions.
        target: a column that learners are to predict from the others, of several tables ``"orders.channel"``;
            needs ``pip install 'dpsyn_sql[ml]'``. Of more than two classes fewer rows are learnt from
            (200,000 by the number of classes), as time grows with both.
        places: columns of numbers of one table that are a place together, such as ``("lat", "lon")``, for
            k-means.
        seed: of the draw of marginals, range queries, rows and halves.
        limits: as for ``release``, of which only ``{"memory": "4GB"}``, where ``con`` is no connection.

    Returns:
        An ``Evaluation`` with data frames in ``tables``.

    Raises:
        InputError: the tables are no pair to compare or no tree, or an argument is wrong; the message says
            why.
        EngineFailure: the database failed.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed={said(seed)}: give a whole number from 0 up")
    if target is not None:
        need_scikit_learn(f"target={said(target)}")
    options: dict[str, Any] = {"domain": domain, "unit": unit, "order": order, "limits": limits}
    with progress_bar(), opened(con, real, synthetic, holdout, **options) as compared:
        uses = _uses_by_table(compared, never, target, places)
        frames, notes = _figures(compared, uses, seed)
        if not compared.listed:
            tested, unknown = membership(compared.sessions[compared.real], con, synthetic, seed)
            frames |= {} if tested is None else {"membership": tested}
            notes += unknown
        elif holdout is not None:
            notes.append("No membership test: it is of one table, and a list of them is compared.")
    ordered = {name: frames[name] for name in HEADINGS if name in frames}
    return Evaluation(compared.real, compared.synthetic, compared.rows, ordered, tuple(notes), compared.homes)


# -- what is asked of each table -----------------------------------------------------------------------


@dataclass
class _Uses:
    """What is asked of the rows of one table, beside the figures that all have."""

    never: Sequence[str] = ()
    target: str | None = None
    places: Sequence[str] | None = None


def _uses_by_table(
    compared: ComparedTables, never: Any, target: str | None, places: Sequence[str] | None
) -> dict[str, _Uses]:
    """What is asked of each table.

    Raises:
        InputError: a column or a condition is refused.
    """
    uses = {name: _Uses() for name in compared.sessions}
    for name, conditions in _conditions_by_table(compared, never).items():
        uses[name].never = conditions
        checked_conditions(compared.sessions[name], conditions)
    if target is not None:
        table, column = compared.named_column(target, "target")
        uses[table].target = column
        target_column(compared.sessions[table], column)
    if places is not None:
        table, columns = _places(compared, places)
        uses[table].places = columns
        place_columns(compared.sessions[table], columns)
    for table_of_tree in compared.tree:
        if table_of_tree.order:
            order_column(compared.sessions[table_of_tree.name], table_of_tree.order)
    return uses


def _conditions_by_table(compared: ComparedTables, never: Any) -> dict[str, Sequence[str]]:
    if not compared.several:
        return {compared.real: never}
    if not isinstance(never, Mapping):
        if isinstance(never, Sequence) and not never:
            return {}
        raise InputError(
            f"never={said(never)}: of several tables give a mapping of their names to lists of conditions"
        )
    names = {fold(name): name for name in compared.sessions}
    for name in never:
        if not isinstance(name, str) or fold(name) not in names:
            raise InputError(
                f"never= names {said(name)}, which is no table; {name_hint(str(name), names.values())}"
            )
    return {names[fold(name)]: conditions for name, conditions in never.items()}


def _places(compared: ComparedTables, places: Sequence[str]) -> tuple[str, Any]:
    if not compared.several:
        return compared.real, places
    if isinstance(places, str) or not places:
        raise InputError(
            f"places={said(places)}: give the names of columns of numbers, such as ('lat', 'lon')"
        )
    table_columns = [compared.named_column(text, "places") for text in places]
    tables = {table for table, _ in table_columns}
    if len(tables) > 1:
        raise InputError(f"places={said(places)}: give columns of one table")
    return table_columns[0][0], [column for _, column in table_columns]


# -- figures -----------------------------------------------------------------------------------------


def _figures(
    compared: ComparedTables, uses: Mapping[str, _Uses], seed: int
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The frames by name, and notes."""
    codes, by_table, notes = dict[str, Codes](), dict[str, Frames](), list[str]()
    for table in compared.tree:
        session = compared.sessions[table.name]
        with phase("columns"):
            codes[table.name] = coded(table, session)
        by_table[table.name], of_table = _figures_of_table(codes[table.name], uses[table.name], seed)
        prefix = f"{table.name}: " if compared.several else ""
        notes += [f"{prefix}{note}" for note in (*session.notes, *of_table)]
    frames = _stacked(by_table) if compared.several else dict(by_table[compared.real])
    if all(session.keys for session in compared.sessions.values()):
        with phase("rows of all tables"):
            rows, keys = linked(compared.tree, codes, seed)
        of_relatives, unknown = between(rows)
        frames |= {"keys": keys, **of_relatives}
        notes += [*notes_on_keys(compared.tree, keys), *unknown]
    return frames, notes


def _figures_of_table(codes: Codes, uses: _Uses, seed: int) -> tuple[Frames, list[str]]:
    """Of the rows of one table, whatever they belong to."""
    session = codes.session
    if not session.columns:
        return {}, []
    if not all(session.rows.values()):
        empty = [side for side, rows in session.rows.items() if not rows]
        return {}, [f"There are no {side} rows: its columns are not compared." for side in empty]
    errors = marginals(codes, seed)
    frames = {
        "columns": column_lines(codes, errors.one_way),
        "marginals": errors.marginals,
        "worst": errors.worst,
        "conjunctions": errors.conjunctions,
        "pairs": associations(codes, errors.pairs),
        "ranges": range_errors(codes, seed),
    }
    if uses.never:
        frames["conditions"] = broken_conditions(session, uses.never)
    of_uses, notes = _figures_of_uses(session, uses, seed)
    return {**frames, **of_uses}, notes


def _figures_of_uses(session: Session, uses: _Uses, seed: int) -> tuple[Frames, list[str]]:
    """What the rows are used for, where it is asked for: frames by name, and notes."""
    frames, notes = dict[str, pd.DataFrame](), list[str]()
    if uses.target is not None:
        frames["efficacy"], of_learning = efficacy(session, uses.target, seed)
        notes += of_learning
    if uses.places is not None:
        with phase("places"):
            frames["clusters"], of_places = clusters(session, uses.places, seed)
        notes += of_places
    return frames, notes


def _stacked(by_table: Mapping[str, Frames]) -> dict[str, pd.DataFrame]:
    """The frames of all tables, one below the other, with the name of the table first."""
    frames = dict[str, pd.DataFrame]()
    for name in dict.fromkeys(name for of_table in by_table.values() for name in of_table):
        of_name = {table: frames_of[name] for table, frames_of in by_table.items() if name in frames_of}
        columns = dict.fromkeys(["table", *(column for frame in of_name.values() for column in frame)])
        lines = [
            {"table": table, **line} for table, frame in of_name.items() for line in frame.to_dict("records")
        ]
        frames[name] = pd.DataFrame(lines, columns=[*columns])
    return frames
