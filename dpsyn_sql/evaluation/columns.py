"""PRIVATE: one line per column, and one per pair of columns and measure of their dependence.

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
from dpsyn_sql.evaluation.codes import FIRST, SIDES, Coded, Codes, Numbers
from dpsyn_sql.evaluation.marginals import (
    Marginal,
    correlation_ratio,
    cramers_v,
    distance,
    rank_correlation,
    resampled,
    shares,
)
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

_QUARTERS = (25, 50, 75)
_BOTH = ("real", "synthetic")
_OF_NUMBERS = ("KSComplement", "RangeCoverage", "BoundaryAdherence")
_STEP = "measuring associations"
_AT_ONCE = 100

Strengths = dict[tuple[int, int], dict[str, float]]
"""By indices of two columns (of a ratio: category, number), then by table."""


def column_lines(codes: Codes, one_way: Sequence[Marginal]) -> pd.DataFrame:
    """One line per column.

    ``tv``: total variation of the codes, missing values among them; ``tv_resample``: expected of as many rows
    drawn from the real column. ``unseen``: share of the synthetic rows whose value the real column does not
    have. Of numbers and moments (seconds since 1970): ``ks``, ``wasserstein`` (in standard deviations of the
    real column), means, standard deviations and quartiles. By SDMetrics' names and definitions, which leave
    missing values out: ``TVComplement``, ``CategoryCoverage`` of text and booleans; ``KSComplement``,
    ``RangeCoverage``, ``BoundaryAdherence`` of the others; ``MissingValueSimilarity`` of all.
    """
    lines = []
    for column, marginal in zip(codes.columns, one_way, strict=True):
        lines.append(_column_line(codes, column, marginal))
    return pd.DataFrame(lines)


def _column_line(codes: Codes, column: Coded, marginal: Marginal) -> dict[str, object]:
    rows, facts = codes.session.rows, column.categories
    of_cells = {side: shares(counted, rows[side]) for side, counted in marginal.counts.items()}
    missing = [facts[f"missing_{side}"] / rows[side] for side in _BOTH]
    line: dict[str, object] = {
        "column": column.column.name,
        "kind": column.column.kind,
        "tv": distance(of_cells["real"], of_cells["synthetic"]).tv,
        "tv_resample": resampled(of_cells["real"], rows["synthetic"]).tv,
    }
    if "holdout" in of_cells:
        line["tv_holdout"] = distance(of_cells["real"], of_cells["holdout"]).tv
    line |= {"missing_real": missing[0], "missing_synthetic": missing[1]}
    line |= {"unseen": facts["unseen"] / rows["synthetic"], "distinct_real": int(facts["distinct_values"])}
    line |= _of_numbers(column.numbers)
    line["MissingValueSimilarity"] = 1 - abs(missing[0] - missing[1])
    if column.numbers is not None:
        return (
            line
            | {"TVComplement": np.nan, "CategoryCoverage": np.nan}
            | _sdmetrics_of_numbers(column.numbers)
        )
    line["TVComplement"] = 1 - facts["distance"]
    line["CategoryCoverage"] = (
        facts["covered"] / facts["distinct_values"] if facts["distinct_values"] else np.nan
    )
    return line | dict.fromkeys(_OF_NUMBERS, np.nan)


def _of_numbers(numbers: Numbers | None) -> dict[str, object]:
    line: dict[str, object] = {"ks": np.nan, "wasserstein": np.nan}
    if numbers is not None:
        line = {"ks": numbers["kolmogorov_smirnov"], "wasserstein": _relative(numbers)}
    for name, figure in (("mean", "mean"), ("sd", "deviation")):
        line |= {f"{name}_{side}": numbers[f"{figure}_{side}"] if numbers else np.nan for side in _BOTH}
    for quarter in _QUARTERS:
        line |= {f"q{quarter}_{side}": numbers.grids[side][quarter] if numbers else np.nan for side in _BOTH}
    return line


def _relative(numbers: Numbers) -> float:
    """Wasserstein's distance in real standard deviations; of a constant, 0 if it is the same constant."""
    if numbers.scaled:
        return numbers["wasserstein"] / numbers["deviation_real"]
    return 0.0 if numbers["wasserstein"] == 0 else float("nan")


def _sdmetrics_of_numbers(numbers: Numbers) -> dict[str, float]:
    line = dict.fromkeys(_OF_NUMBERS, float("nan"))
    if not (numbers["n_real"] and numbers["n_synthetic"]):
        return line
    line["KSComplement"] = 1 - numbers["kolmogorov_smirnov"]
    line["BoundaryAdherence"] = numbers["inside"] / numbers["n_synthetic"]
    low, high = numbers["least_real"], numbers["most_real"]
    if high > low:
        lost = max(numbers["least_synthetic"] - low, 0) + max(high - numbers["most_synthetic"], 0)
        line["RangeCoverage"] = max(0.0, 1 - lost / (high - low))
    return line


# -- pairs of columns ------------------------------------------------------------------------------


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
            lines.append(_pair_line(codes, (first, second), "pearson", pearson[first.index, second.index]))
            lines.append(_spearman(codes, marginal))
        elif first.ordered != second.ordered:
            category, number = (second, first) if first.ordered else (first, second)
            ratio = ratios[category.index, number.index]
            lines.append(_pair_line(codes, (category, number), "correlation_ratio", ratio))
    names = ["first", "second", "measure", *codes.session.rows, "difference", "independent"]
    return pd.DataFrame(lines, columns=[*names, "ContingencySimilarity", "CorrelationSimilarity"])


def _pair_line(
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
    with_chance = {side: cramers_v(marginal.table(side)) for side in marginal.counts}
    strength = {side: value for side, (value, _) in with_chance.items()}
    line = _pair_line(codes, (first, second), "cramers_v", strength)
    real, synthetic = (shares(marginal.counts[side], codes.session.rows[side]) for side in SIDES[:2])
    line["independent"] = with_chance["real"][1]
    line["ContingencySimilarity"] = 1 - distance(real, synthetic).tv
    del line["CorrelationSimilarity"]
    return line


def _spearman(codes: Codes, marginal: Marginal) -> dict[str, object]:
    first, second = (codes.columns[attribute] for attribute in marginal.attributes)
    strength = {side: rank_correlation(marginal.table(side)[FIRST:, FIRST:]) for side in marginal.counts}
    return _pair_line(codes, (first, second), "spearman", strength)


def _numbers(codes: Codes) -> list[Coded]:
    return [column for column in codes.columns if column.ordered]


def _pearson(codes: Codes) -> Strengths:
    pairs = list(itertools.combinations(_numbers(codes), 2))
    strengths: Strengths = {(first.index, second.index): {} for first, second in pairs}
    for side, relation in codes.session.tables.items():
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            used = {column.index: column for pair in part for column in pair}
            numbers = [Fragment(f"{column.standardised} AS z{index}") for index, column in used.items()]
            sql = render(
                "evaluate/correlations",
                relation=_valued(relation, list(used.values())),
                numbers=numbers,
                pairs=[
                    {"first": Fragment(f"z{first.index}"), "second": Fragment(f"z{second.index}")}
                    for first, second in part
                ],
            )
            row = codes.engine.fetch(sql, step=_STEP)
            for position, (first, second) in enumerate(part):
                cell = row[f"r{position}"][0]
                value = np.nan if np.ma.is_masked(cell) else float(cell)
                strengths[first.index, second.index][side] = value
    return strengths


def _valued(relation: Fragment, columns: Sequence[Coded]) -> Fragment:
    """The values of some columns of a table under the names v<place>."""
    aliased = [Fragment(f"{column.value} AS v{column.index}") for column in columns]
    return render("source/frame", columns=aliased, frame=relation)


def _ratios(codes: Codes) -> Strengths:
    numbers = _numbers(codes)
    categories = [column for column in codes.columns if not column.ordered]
    pairs = itertools.product(categories, numbers)
    strengths: Strengths = {(category.index, number.index): {} for category, number in pairs}
    if not strengths:
        return strengths
    names = [Fragment(f"z{column.index}") for column in numbers]
    more = {str(name): column.standardised for name, column in zip(names, numbers, strict=True)}
    sql = render(
        "evaluate/ratios",
        relation=codes.rows(**more),
        columns=[{"name": column.key, "attribute": column.index} for column in categories],
        numbers=names,
    )
    rows = codes.engine.fetch(sql, step=_STEP)
    for side in codes.session.rows:
        for category in categories:
            of_column = (rows["side"] == SIDES.index(side)) & (rows["attribute"] == category.index)
            for position, number in enumerate(numbers):
                sums = (np.asarray(rows[f"{letter}{position}"])[of_column] for letter in "nsq")
                strengths[category.index, number.index][side] = correlation_ratio(*sums)
    return strengths
