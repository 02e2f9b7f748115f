"""PRIVATE: how strongly pairs of columns depend on each other, in the real and the synthetic table.

Cramer's V and Spearman's correlation come from the counts of codes, so of numbers with many values from bins.
Pearson's correlation and the correlation ratio come from the values. Missing values are a category for V, and
left out of the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.evaluation import distances
from dpsyn_sql.evaluation.codes import FIRST, SIDES, Coded, Codes
from dpsyn_sql.evaluation.marginals import Marginal
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

_STEP = "measuring associations"
_AT_ONCE = 100

Strengths = dict[tuple[int, int], dict[str, float]]
"""By places of two columns (of a ratio: category, number), then by table."""


def associations(codes: Codes, pairs: Sequence[Marginal]) -> pd.DataFrame:
    """One line per pair of columns and measure.

    Columns: ``first``, ``second``, ``measure`` (``"cramers_v"``, ``"pearson"``, ``"spearman"``,
    ``"correlation_ratio"`` of the second by categories of the first), ``real``, ``synthetic``, perhaps
    ``holdout``, ``difference`` (synthetic less real), ``independent`` (root mean square of the measure if
    the real columns were shuffled), and by SDMetrics' names ``ContingencySimilarity`` (of ``cramers_v``) and
    ``CorrelationSimilarity`` (of the correlations).

    Raises:
        EngineFailure: the database failed.
    """
    with phase("associations"):
        pearson, ratios = _pearson(codes), _ratios(codes)
    lines = []
    for marginal in pairs:
        first, second = (codes.columns[attribute] for attribute in marginal.attributes)
        lines.append(_cramers_v(codes, marginal))
        if first.ordered and second.ordered:
            lines.append(_line(codes, (first, second), "pearson", pearson[first.place, second.place]))
            lines.append(_spearman(codes, marginal))
        elif first.ordered != second.ordered:
            category, number = (second, first) if first.ordered else (first, second)
            found = ratios[category.place, number.place]
            lines.append(_line(codes, (category, number), "correlation_ratio", found))
    names = ["first", "second", "measure", *codes.session.rows, "difference", "independent"]
    return pd.DataFrame(lines, columns=[*names, "ContingencySimilarity", "CorrelationSimilarity"])


def _line(
    codes: Codes, pair: tuple[Coded, Coded], measure: str, strength: dict[str, float]
) -> dict[str, object]:
    """A measure whose square has the expected value 1/(n-1), or (k-1)/(n-1) by k categories, by chance."""
    first, second = pair
    rows = codes.session.rows["real"]
    freedom = 1
    if measure == "correlation_ratio":
        facts = first.categories
        freedom = max(int(facts["distinct_values"]) + (facts["missing_real"] > 0) - 1, 0)
    line: dict[str, object] = {"first": first.column.name, "second": second.column.name, "measure": measure}
    line |= strength
    line["difference"] = strength["synthetic"] - strength["real"]
    line["independent"] = np.sqrt(freedom / (rows - 1)) if rows > 1 else np.nan
    if measure != "correlation_ratio":
        line["CorrelationSimilarity"] = 1 - abs(strength["synthetic"] - strength["real"]) / 2
    return line


def _cramers_v(codes: Codes, marginal: Marginal) -> dict[str, object]:
    first, second = (codes.columns[attribute] for attribute in marginal.attributes)
    found = {side: distances.cramers_v(marginal.table(side)) for side in marginal.counts}
    line = _line(codes, (first, second), "cramers_v", {side: value for side, (value, _) in found.items()})
    real, synthetic = (
        distances.shares(marginal.counts[side], codes.session.rows[side]) for side in SIDES[:2]
    )
    line["independent"] = found["real"][1]
    line["ContingencySimilarity"] = 1 - distances.distance(real, synthetic).tv
    del line["CorrelationSimilarity"]
    return line


def _spearman(codes: Codes, marginal: Marginal) -> dict[str, object]:
    first, second = (codes.columns[attribute] for attribute in marginal.attributes)
    strength = {
        side: distances.rank_correlation(marginal.table(side)[FIRST:, FIRST:]) for side in marginal.counts
    }
    return _line(codes, (first, second), "spearman", strength)


def _numbers(codes: Codes) -> list[Coded]:
    return [column for column in codes.columns if column.ordered]


def _pearson(codes: Codes) -> Strengths:
    numbers = _numbers(codes)
    pairs = list(itertools.combinations(numbers, 2))
    found: Strengths = {(first.place, second.place): {} for first, second in pairs}
    for side, relation in codes.session.tables.items():
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            used = {column.place: column for pair in part for column in pair}
            sql = render(
                "evaluate/correlations",
                relation=_valued(relation, list(used.values())),
                numbers=[Fragment(f"{column.standardised} AS z{place}") for place, column in used.items()],
                pairs=[
                    {"first": Fragment(f"z{first.place}"), "second": Fragment(f"z{second.place}")}
                    for first, second in part
                ],
            )
            row = codes.engine.fetch(sql, step=_STEP)
            for place, (first, second) in enumerate(part):
                cell = row[f"r{place}"][0]
                value = np.nan if np.ma.is_masked(cell) else float(cell)
                found[first.place, second.place][side] = value
    return found


def _valued(relation: Fragment, columns: Sequence[Coded]) -> Fragment:
    """The values of some columns of a table under the names v<place>."""
    named = [Fragment(f"{column.value} AS v{column.place}") for column in columns]
    return render("source/frame", columns=named, frame=relation)


def _ratios(codes: Codes) -> Strengths:
    numbers = _numbers(codes)
    categories = [column for column in codes.columns if not column.ordered]
    found: Strengths = {(one.place, other.place): {} for one in categories for other in numbers}
    if not found:
        return found
    names = [Fragment(f"z{column.place}") for column in numbers]
    more = {str(name): column.standardised for name, column in zip(names, numbers, strict=True)}
    sql = render(
        "evaluate/ratios",
        relation=codes.rows(**more),
        columns=[{"name": column.key, "attribute": column.place} for column in categories],
        numbers=names,
    )
    rows = codes.engine.fetch(sql, step=_STEP)
    for side in codes.session.rows:
        for one in categories:
            kept = (rows["side"] == SIDES.index(side)) & (rows["attribute"] == one.place)
            for place, other in enumerate(numbers):
                sums = (np.asarray(rows[f"{letter}{place}"])[kept] for letter in "nsq")
                found[one.place, other.place][side] = distances.correlation_ratio(*sums)
    return found
