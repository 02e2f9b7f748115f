"""Classifiers and regressions that learn from rows and are judged on others, by scikit-learn.

It is imported where it is used: without scikit-learn the rest of an evaluation works.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.errors import InputError

MOST_CATEGORIES = 100
"""Categories of a column that are told apart; the rarer ones are one."""

CLASSIFIERS = ("logistic", "svm", "boosting", "forest")
REGRESSIONS = ("linear", "boosting", "forest")

MOST_IN_A_TREE = 20_000
"""Rows that a tree of a forest learns from."""

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


def need_scikit_learn(what: str) -> None:
    """Refuse before anything is read.

    Raises:
        InputError: scikit-learn is not installed.
    """
    if find_spec("sklearn") is None:
        raise InputError(f"{what} needs scikit-learn: pip install 'dpsyn_sql[ml]'")


# -- learners ------------------------------------------------------------------------------------


def classifiers(columns: pd.DataFrame) -> dict[str, Any]:
    """Logistic regression, a linear support vector machine (hinge loss, C = 1), gradient boosting and a
    random forest, each with its own treatment of the ``columns`` to learn from; not yet fitted."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    numbers, texts = _known(columns)
    if not numbers and not texts:
        return {name: DummyClassifier() for name in CLASSIFIERS}
    boosting = HistGradientBoostingClassifier(categorical_features=_last(numbers, texts), random_state=0)
    made = (
        _linear(numbers, texts, LogisticRegression(max_iter=500)),
        _linear(numbers, texts, support_vector_machine()),
        _coded(numbers, texts, boosting),
        _coded(numbers, texts, RandomForestClassifier(**_forest(columns))),
    )
    return dict(zip(CLASSIFIERS, made, strict=True))


def regressions(columns: pd.DataFrame) -> dict[str, Any]:
    """Linear regression, gradient boosting and a random forest; not yet fitted."""
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LinearRegression

    numbers, texts = _known(columns)
    if not numbers and not texts:
        return {name: DummyRegressor() for name in REGRESSIONS}
    boosting = HistGradientBoostingRegressor(categorical_features=_last(numbers, texts), random_state=0)
    made = (
        _linear(numbers, texts, LinearRegression()),
        _coded(numbers, texts, boosting),
        _coded(numbers, texts, RandomForestRegressor(**_forest(columns))),
    )
    return dict(zip(REGRESSIONS, made, strict=True))


def _known(columns: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Names of numbers and of texts; a column without a value teaches nothing, and trees do not take it."""
    known = columns.dropna(axis="columns", how="all")
    numbers = known.select_dtypes("number")
    return [str(name) for name in numbers], [str(name) for name in known if name not in numbers]


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
        said = learner.predict(judged.columns)
        values = (getattr(learner, "predict_proba", None) or learner.decision_function)(judged.columns)
    classes = list(learner.classes_)

    def score(one: Any) -> FloatArray:
        if one not in classes:
            return np.zeros(len(said))
        if values.ndim == 1:
            return np.asarray(values if one == classes[1] else -values)
        return np.asarray(values[:, classes.index(one)])

    return _class_scores(said, score, judged.truth)


def _class_scores(said: NDArray[Any], score: Callable[[Any], FloatArray], truth: NDArray[Any]) -> Scores:
    from sklearn.metrics import f1_score

    wanted = positive_classes(truth)
    return {
        "accuracy": float((said == truth).mean()),
        "auc": _mean([area(score(one), truth == one) for one in wanted]),
        "f1": _mean([float(f1_score(truth == one, said == one, zero_division=0)) for one in wanted]),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def number_scores(learner: Any, learnt: Examples, judged: Examples) -> Scores:
    """R2 and mean absolute error of a fitted learner; R2 is NaN if the judged rows have one number only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(learnt.columns, learnt.truth)
        return _number_scores(learner.predict(judged.columns), judged.truth)


def _number_scores(said: FloatArray, truth: FloatArray) -> Scores:
    errors, spread = said - truth, truth - truth.mean()
    whole = float(spread @ spread)
    return {
        "r2": 1 - float(errors @ errors) / whole if whole > 0 else float("nan"),
        "mae": float(np.abs(errors).mean()),
    }


# -- what the labels alone give ------------------------------------------------------------------


def class_baselines(learnt: NDArray[Any], judged: NDArray[Any]) -> Mapping[str, Scores]:
    """The commonest class for every row, and a class drawn from the label distribution (in expectation): the
    lower baseline of "Evaluating generative models in the wild", section 6."""
    classes, counts = np.unique(learnt, return_counts=True)
    share = dict(zip(classes.tolist(), (counts / counts.sum()).tolist(), strict=True))
    commonest = np.full(len(judged), classes[int(np.argmax(counts))])
    found, truths = np.unique(judged, return_counts=True)
    wanted = positive_classes(judged)
    real = dict(zip(found.tolist(), (truths / truths.sum()).tolist(), strict=True))

    def drawn(one: Any) -> float:
        said, true = float(share.get(one, 0.0)), float(real[one])
        return 2 * said * true / (said + true)

    auc = 0.5 if len(found) > 1 else float("nan")
    return {
        "commonest label": _class_scores(commonest, lambda one: np.zeros(len(judged)), judged),
        "label distribution": {
            "accuracy": sum(share.get(one, 0.0) * part for one, part in real.items()),
            "auc": auc,
            "f1": _mean([drawn(one) for one in wanted]),
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
