"""PRIVATE: what a learner gains from synthetic rows, judged on real rows, beside two baselines.

The baselines are those of "Evaluating differentially private generative models in the wild" (section 6): the
same learner on the real rows, and the labels alone. scikit-learn is imported where it is used: without it the
rest of an evaluation works.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InputError
from dpsyn_sql.evaluation.codes import MOST_ROWS, drawn, is_number
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.source.names import fold, name_hint, shorten

MOST_CATEGORIES = 100
"""Categories of a column that are told apart; the rarer ones are one."""

CLASSIFIERS = ("logistic", "svm", "boosting", "forest")
REGRESSIONS = ("linear", "boosting", "forest")

MOST_IN_A_TREE = 20_000
"""Rows that a tree of a forest learns from."""

MOST_CLASSES = 50
"""Classes that are told apart; a target of more is not computed."""

MOST_EXAMPLES = 200_000
"""Rows times classes that a learner of classes learns from: its time grows with both."""

FEW_NUMBERS = 10
"""A target of whole numbers with at most so many different ones is a target of classes."""

SCORES = ("accuracy", "auc", "f1", "r2", "mae")
COLUMNS = ("target", "task", "learner", "learnt_from", *SCORES, "rows_learnt", "rows_judged")

_LEARNT = ("synthetic", "real")
_NO_HOLDOUT = (
    "Efficacy is judged on a seeded fifth of the real rows: they may have been in the release, and rows of "
    "one person can be on both sides. Give holdout= with rows that the release did not see."
)

FloatArray = NDArray[np.float64]
Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class Examples:
    """What is learnt from or judged on.

    ``columns``: float64 (NaN for NULL) or text (None for NULL). ``truth``: the class of each row as text, or
    its number as float64, by the task.
    """

    columns: pd.DataFrame
    truth: NDArray[Any]


def need_scikit_learn(option: str) -> None:
    """Refuse before anything is read.

    Raises:
        InputError: scikit-learn is not installed.
    """
    if find_spec("sklearn") is None:
        raise InputError(f"{option} needs scikit-learn: pip install 'dpsyn_sql[ml]'")


# -- learners ------------------------------------------------------------------------------------


def classifiers(columns: pd.DataFrame) -> dict[str, Any]:
    """Logistic regression, a linear support vector machine (hinge loss, C = 1), gradient boosting and a
    random forest, each with its own treatment of the ``columns`` to learn from; not yet fitted."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    numbers, texts = _with_values(columns)
    if not numbers and not texts:
        return {name: DummyClassifier() for name in CLASSIFIERS}
    boosting = HistGradientBoostingClassifier(categorical_features=_last(numbers, texts), random_state=0)
    learners = (
        _linear(numbers, texts, LogisticRegression(max_iter=500)),
        _linear(numbers, texts, support_vector_machine()),
        _coded(numbers, texts, boosting),
        _coded(numbers, texts, RandomForestClassifier(**_forest(columns))),
    )
    return dict(zip(CLASSIFIERS, learners, strict=True))


def regressions(columns: pd.DataFrame) -> dict[str, Any]:
    """Linear regression, gradient boosting and a random forest; not yet fitted."""
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LinearRegression

    numbers, texts = _with_values(columns)
    if not numbers and not texts:
        return {name: DummyRegressor() for name in REGRESSIONS}
    boosting = HistGradientBoostingRegressor(categorical_features=_last(numbers, texts), random_state=0)
    learners = (
        _linear(numbers, texts, LinearRegression()),
        _coded(numbers, texts, boosting),
        _coded(numbers, texts, RandomForestRegressor(**_forest(columns))),
    )
    return dict(zip(REGRESSIONS, learners, strict=True))


def _with_values(columns: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Names of numbers and of texts; a column without a value teaches nothing, and trees do not take it."""
    filled = columns.dropna(axis="columns", how="all")
    numbers, texts = filled.select_dtypes("number"), filled.select_dtypes(exclude="number")
    return list(map(str, numbers)), list(map(str, texts))


def _linear(numbers: list[str], texts: list[str], learner: Any) -> Any:
    """One-hot texts, and numbers spread to a normal law."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, QuantileTransformer

    spread = make_pipeline(
        SimpleImputer(strategy="median"),
        QuantileTransformer(n_quantiles=100, output_distribution="normal", random_state=0),
    )
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES)
    return make_pipeline(make_column_transformer((spread, numbers), (one_hot, texts)), learner)


def _coded(numbers: list[str], texts: list[str], learner: Any) -> Any:
    """Numbers as they are, and then codes of texts; what is missing stays so."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=MOST_CATEGORIES,
    )
    return make_pipeline(make_column_transformer(("passthrough", numbers), (codes, texts)), learner)


def _last(numbers: list[str], texts: list[str]) -> list[int]:
    """Places of texts among the columns of ``_coded``."""
    return list(range(len(numbers), len(numbers) + len(texts)))


def _forest(columns: pd.DataFrame) -> dict[str, Any]:
    """A hundred trees of so many rows each that a large table takes no longer."""
    drawn = min(len(columns), MOST_IN_A_TREE)
    return {"max_samples": drawn, "max_features": "sqrt", "min_samples_leaf": 2, "random_state": 0}


def support_vector_machine() -> Any:
    """The linear one with hinge loss and C = 1 of PrivBayes and of "in the wild"."""
    from sklearn.svm import LinearSVC

    return LinearSVC(C=1.0, loss="hinge", random_state=0, max_iter=2000)


# -- scores --------------------------------------------------------------------------------------


def area(scores: NDArray[Any], truth: NDArray[np.bool_]) -> float:
    """Area under the ROC curve; NaN if all rows are of one kind."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, scores)) if truth.any() and not truth.all() else float("nan")


def positive_classes(truth: NDArray[Any]) -> list[Any]:
    """Of two classes the rarer one (the last in order if they are equally rare); else all of them."""
    classes, counts = np.unique(truth, return_counts=True)
    return [classes[::-1][int(np.argmin(counts[::-1]))]] if len(classes) == 2 else list(classes)


def class_scores(learner: Any, learnt: Examples, judged: Examples) -> Scores:
    """Accuracy, AUC and F1 of a fitted learner: of the rarer of two classes, or the mean over all classes,
    each against the rest.

    Where there is one class only to learn, every row is said to have it, and the AUC is one half.
    """
    from sklearn.dummy import DummyClassifier

    learner = learner if len(np.unique(learnt.truth)) > 1 else DummyClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a learner that stops early is judged as it is
        learner.fit(learnt.columns, learnt.truth)
        predicted = learner.predict(judged.columns)
        values = (getattr(learner, "predict_proba", None) or learner.decision_function)(judged.columns)
    classes = list(learner.classes_)

    def score(label: Any) -> FloatArray:
        if label not in classes:
            return np.zeros(len(predicted))
        if values.ndim == 1:
            return np.asarray(values if label == classes[1] else -values)
        return np.asarray(values[:, classes.index(label)])

    return _class_scores(predicted, score, judged.truth)


def _class_scores(predicted: NDArray[Any], score: Callable[[Any], FloatArray], truth: NDArray[Any]) -> Scores:
    from sklearn.metrics import f1_score

    labels = positive_classes(truth)
    return {
        "accuracy": float((predicted == truth).mean()),
        "auc": _mean([area(score(label), truth == label) for label in labels]),
        "f1": _mean(
            [float(f1_score(truth == label, predicted == label, zero_division=0)) for label in labels]
        ),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def number_scores(learner: Any, learnt: Examples, judged: Examples) -> Scores:
    """R2 and mean absolute error of a fitted learner; R2 is NaN if the judged rows have one number only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(learnt.columns, learnt.truth)
        return _number_scores(learner.predict(judged.columns), judged.truth)


def _number_scores(predicted: FloatArray, truth: FloatArray) -> Scores:
    errors, spread = predicted - truth, truth - truth.mean()
    total = float(spread @ spread)
    return {
        "r2": 1 - float(errors @ errors) / total if total > 0 else float("nan"),
        "mae": float(np.abs(errors).mean()),
    }


# -- what the labels alone give ------------------------------------------------------------------


def class_baselines(learnt: NDArray[Any], judged: NDArray[Any]) -> Mapping[str, Scores]:
    """The commonest class for every row, and a class drawn from the label distribution (in expectation): the
    lower baseline of "Evaluating generative models in the wild", section 6."""
    classes, counts = np.unique(learnt, return_counts=True)
    share = dict(zip(classes.tolist(), (counts / counts.sum()).tolist(), strict=True))
    commonest = np.full(len(judged), classes[int(np.argmax(counts))])
    labels, truths = np.unique(judged, return_counts=True)
    scored = positive_classes(judged)
    real = dict(zip(labels.tolist(), (truths / truths.sum()).tolist(), strict=True))

    def drawn(label: Any) -> float:
        guessed, actual = float(share.get(label, 0.0)), float(real[label])
        return 2 * guessed * actual / (guessed + actual)

    auc = 0.5 if len(labels) > 1 else float("nan")
    return {
        "commonest label": _class_scores(commonest, lambda label: np.zeros(len(judged)), judged),
        "label distribution": {
            "accuracy": sum(share.get(label, 0.0) * part for label, part in real.items()),
            "auc": auc,
            "f1": _mean([drawn(label) for label in scored]),
        },
    }


def number_baselines(learnt: FloatArray, judged: FloatArray) -> Mapping[str, Scores]:
    """The mean for every row, and a number drawn from the real ones (in expectation)."""
    mean = _number_scores(np.full(len(judged), learnt.mean()), judged)
    ordered = np.sort(learnt)
    below = np.searchsorted(ordered, judged)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    apart = (judged * below - sums[below]) + (sums[-1] - sums[below] - judged * (len(ordered) - below))
    spread = float(((judged - judged.mean()) ** 2).mean())
    error = float(((judged - learnt.mean()) ** 2).mean()) + float(learnt.var())
    return {
        "mean": mean,
        "label distribution": {
            "r2": 1 - error / spread if spread > 0 else float("nan"),
            "mae": float((apart / len(ordered)).mean()),
        },
    }


# -- efficacy --------------------------------------------------------------------------------------


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
    columns = tuple(candidate for candidate in session.columns if candidate != column)
    read = [*columns, column]
    has_holdout = "holdout" in session.tables
    sets: dict[str, pd.DataFrame] = {
        "synthetic": drawn(session, "synthetic", read, seed),
        "real": drawn(session, "real", read, seed, None if has_holdout else False),
        "judged": drawn(session, "holdout", read, seed)
        if has_holdout
        else drawn(session, "real", read, seed, held_back=True),
    }
    notes = [] if has_holdout else [_NO_HOLDOUT]
    if any(rows > MOST_ROWS for rows in session.rows.values()):
        notes.append(f"Learnt from and judged on at most {MOST_ROWS:,} rows of each table, drawn by a seed.")
    sets, of_target = _with_target(sets, column)
    notes += of_target
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


def target_column(session: Session, target: str) -> ComparedColumn:
    """The column of a target.

    Raises:
        InputError: there is none, it is of times, or it is the only column.
    """
    if not isinstance(target, str):
        raise InputError("target= is the name of one column")
    names = [column.name for column in session.columns]
    chosen = next((column for column in session.columns if fold(column.name) == fold(target)), None)
    if chosen is None:
        hint = name_hint(target, names, "they have")
        raise InputError(f"target={shorten(target)!r} is no column that is compared; {hint}")
    if chosen.kind == "temporal":
        raise InputError(
            f"target={shorten(target)!r} is of type {chosen.sql_type}: give a column of numbers, text or "
            f"booleans"
        )
    if len(session.columns) == 1:
        raise InputError(f"target={shorten(target)!r} is the only column: there is nothing to learn it from")
    return chosen


def _with_target(
    sets: Mapping[str, pd.DataFrame], target: ComparedColumn
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The rows whose target is known, and what is said of the others."""
    with_target, notes = dict[str, pd.DataFrame](), list[str]()
    called = {"synthetic": "synthetic rows", "real": "real rows", "judged": "rows to judge on"}
    for name, rows in sets.items():
        has_target = rows[target.name].notna()
        with_target[name] = rows[has_target]
        without = int((~has_target).sum())
        if not has_target.any():
            notes.append(f"None of the {called[name]} has a value of {target.name!r}: nothing is learnt.")
        elif without:
            notes.append(f"{without:,} of the {called[name]} have no value of {target.name!r}: left out.")
    return with_target, notes


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
    kind = "classes" if task.classes else "numbers"

    def line(learner: str, learnt_from: str, scores: Scores, rows: int) -> list[object]:
        figures = [scores.get(score_name, float("nan")) for score_name in SCORES]
        return [task.target.name, kind, learner, learnt_from, *figures, rows, len(judged.truth)]

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
        {f"c{index}": rows[column.name].to_numpy() for index, column in enumerate(task.columns)}
    )
    truth: NDArray[Any] = rows[task.target.name].to_numpy()
    if task.classes:
        truth = truth.astype(np.float64 if is_number(task.target) else str)
    return Examples(columns, truth)
