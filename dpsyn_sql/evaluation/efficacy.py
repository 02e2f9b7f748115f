"""PRIVATE: what a learner gains from synthetic rows, judged on real rows, beside two baselines.

The baselines are those of "Evaluating differentially private generative models in the wild" (section 6): the
same learner on the real rows, and the labels alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InputError
from dpsyn_sql.evaluation.drawing import MOST_ROWS, drawn, is_number
from dpsyn_sql.evaluation.learning import (
    CLASSIFIERS,
    REGRESSIONS,
    Examples,
    Scores,
    class_baselines,
    class_scores,
    classifiers,
    need_scikit_learn,
    number_baselines,
    number_scores,
    regressions,
)
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.source.names import fold, name_hint, shorten

MOST_CLASSES = 50
"""Classes that are told apart; a target of more is not computed."""

MOST_EXAMPLES = 200_000
"""Rows times classes that a learner of classes learns from: its time grows with both."""

FEW_NUMBERS = 10
"""A target of whole numbers with at most so many different ones is a target of classes."""

SCORES = ("accuracy", "auc", "f1", "r2", "mae")
COLUMNS = ("target", "task", "learner", "learnt_from", *SCORES, "rows_learnt", "rows_judged")


@dataclass(frozen=True, slots=True)
class _Task:
    """What is learnt: the target, what it is learnt from, and whether it is of classes or of numbers."""

    target: ComparedColumn
    columns: tuple[ComparedColumn, ...]
    classes: bool


def efficacy(session: Session, target: str, seed: int = 1) -> tuple[pd.DataFrame, list[str]]:
    """Scores of each learner that learnt from synthetic and from real rows, and of the labels alone.

    Judged on the holdout, or on a seeded fifth of the real rows, which the real learners then do not see but
    the release may have. Columns: ``COLUMNS``; scores of the other task are NaN. At most ``MOST_ROWS`` rows
    of each table are drawn, and of more than two classes ``MOST_EXAMPLES`` by their number are learnt from.

    Returns:
        The table and what a reader must know.

    Raises:
        InputError: scikit-learn is missing, or there is no such column, or it is no target.
    """
    need_scikit_learn(f"target={target!r}")
    column = target_column(session, target)
    columns = tuple(one for one in session.columns if one != column)
    wanted = [*columns, column]
    held = "holdout" in session.tables
    sets: dict[str, pd.DataFrame] = {
        "synthetic": drawn(session, "synthetic", wanted, seed),
        "real": drawn(session, "real", wanted, seed, None if held else False),
        "judged": drawn(session, "holdout", wanted, seed)
        if held
        else drawn(session, "real", wanted, seed, held=True),
    }
    notes = [] if held else [_NO_HOLDOUT]
    if any(rows > MOST_ROWS for rows in session.rows.values()):
        notes.append(f"Learnt from and judged on at most {MOST_ROWS:,} rows of each table, drawn by a seed.")
    sets, told = _with_target(sets, column)
    notes += told
    if any(rows.empty for rows in sets.values()):
        return pd.DataFrame(columns=list(COLUMNS)), notes
    task = _Task(column, columns, _of_classes(column, sets))
    classes = (
        {value for rows in sets.values() for value in rows[column.name].unique()} if task.classes else ()
    )
    if len(classes) > MOST_CLASSES:
        why = f"The target {shorten(target)!r} has more than {MOST_CLASSES} classes: not computed."
        return pd.DataFrame(columns=list(COLUMNS)), [*notes, why]
    most = MOST_EXAMPLES // max(len(classes), 1)
    if len(classes) > 2 and any(len(sets[name]) > most for name in _LEARNT):
        sets |= {name: sets[name].iloc[:most] for name in _LEARNT}  # in the order of their lots
        notes.append(f"Learnt from at most {most:,} rows of each table, as there are {len(classes)} classes.")
    notes += _one_kind(sets, task)
    return pd.DataFrame(list(_lines(sets, task)), columns=list(COLUMNS)), notes


_LEARNT = ("synthetic", "real")

_NO_HOLDOUT = (
    "Efficacy is judged on a seeded fifth of the real rows: they may have been in the release, and rows of "
    "one person can be on both sides. Give holdout= with rows that the release did not see."
)


def target_column(session: Session, target: str) -> ComparedColumn:
    """The column of a target.

    Raises:
        InputError: there is none, it is of times, or it is the only column.
    """
    if not isinstance(target, str):
        raise InputError("target= is the name of one column")
    names = [column.name for column in session.columns]
    found = next((column for column in session.columns if fold(column.name) == fold(target)), None)
    if found is None:
        hint = name_hint(target, names, "they have")
        raise InputError(f"target={shorten(target)!r} is no column that is compared; {hint}")
    if found.kind == "temporal":
        raise InputError(
            f"target={shorten(target)!r} is of type {found.sql_type}: give a column of numbers, text or "
            f"booleans"
        )
    if len(session.columns) == 1:
        raise InputError(f"target={shorten(target)!r} is the only column: there is nothing to learn it from")
    return found


def _with_target(
    sets: Mapping[str, pd.DataFrame], target: ComparedColumn
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The rows whose target is known, and what is said of the others."""
    kept, notes = dict[str, pd.DataFrame](), list[str]()
    said = {"synthetic": "synthetic rows", "real": "real rows", "judged": "rows to judge on"}
    for name, rows in sets.items():
        known = rows[target.name].notna()
        kept[name] = rows[known]
        without = int((~known).sum())
        if not known.any():
            notes.append(f"None of the {said[name]} has a value of {target.name!r}: nothing is learnt.")
        elif without:
            notes.append(f"{without:,} of the {said[name]} have no value of {target.name!r}: left out.")
    return kept, notes


def _of_classes(target: ComparedColumn, sets: Mapping[str, pd.DataFrame]) -> bool:
    if not is_number(target):
        return True
    real = np.concatenate([sets[name][target.name].to_numpy() for name in ("real", "judged")])
    different = np.unique(real)
    return len(different) <= FEW_NUMBERS and bool((different == np.round(different)).all())


def _one_kind(sets: Mapping[str, pd.DataFrame], task: _Task) -> Iterator[str]:
    values = {name: rows[task.target.name].nunique() for name, rows in sets.items()}
    name = task.target.name
    if values["synthetic"] == 1:
        yield f"The synthetic rows have one value of {name!r} only: a learner can say nothing else."
    if values["real"] == 1:
        yield f"The real rows have one value of {name!r} only: a learner can say nothing else."
    if values["judged"] == 1:
        missing = "AUC" if task.classes else "R2"
        yield f"The rows to judge on have one value of {name!r} only: there is no {missing}."


def _lines(sets: Mapping[str, pd.DataFrame], task: _Task) -> Iterator[list[object]]:
    examples = {name: _examples(rows, task) for name, rows in sets.items()}
    judged, make = examples["judged"], classifiers if task.classes else regressions
    score: Callable[..., Scores] = class_scores if task.classes else number_scores
    said = "classes" if task.classes else "numbers"

    def line(learner: str, learnt_from: str, scores: Scores, rows: int) -> list[object]:
        figures = [scores.get(one, float("nan")) for one in SCORES]
        return [task.target.name, said, learner, learnt_from, *figures, rows, len(judged.truth)]

    with phase("learning from rows", 2 * len(CLASSIFIERS if task.classes else REGRESSIONS)) as advance:
        for name in CLASSIFIERS if task.classes else REGRESSIONS:
            for table in ("synthetic", "real"):
                learnt = examples[table]
                yield line(name, table, score(make(learnt.columns)[name], learnt, judged), len(learnt.truth))
                advance(1)
    baselines = class_baselines if task.classes else number_baselines
    for name, scores in baselines(examples["real"].truth, judged.truth).items():
        yield line(name, "real labels alone", scores, len(examples["real"].truth))


def _examples(rows: pd.DataFrame, task: _Task) -> Examples:
    """Columns under neutral names: a learner must not trip over names."""
    columns = pd.DataFrame(
        {f"c{place}": rows[column.name].to_numpy() for place, column in enumerate(task.columns)}
    )
    truth: NDArray[Any] = rows[task.target.name].to_numpy()
    if task.classes:
        truth = truth.astype(np.float64 if is_number(task.target) else str)
    return Examples(columns, truth)
