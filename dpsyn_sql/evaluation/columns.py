"""PRIVATE: one line per column: how far the synthetic values are from the real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpsyn_sql.evaluation import distances
from dpsyn_sql.evaluation.codes import Coded, Codes, Numbers
from dpsyn_sql.evaluation.marginals import Marginal

_QUARTERS = (25, 50, 75)
_BOTH = ("real", "synthetic")
_OF_NUMBERS = ("KSComplement", "RangeCoverage", "BoundaryAdherence")


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
        lines.append(_line(codes, column, marginal))
    return pd.DataFrame(lines)


def _line(codes: Codes, column: Coded, marginal: Marginal) -> dict[str, object]:
    rows, facts = codes.session.rows, column.categories
    shares = {side: distances.shares(counted, rows[side]) for side, counted in marginal.counts.items()}
    missing = [facts[f"missing_{side}"] / rows[side] for side in _BOTH]
    line: dict[str, object] = {
        "column": column.column.name,
        "kind": column.column.kind,
        "tv": distances.distance(shares["real"], shares["synthetic"]).tv,
        "tv_resample": distances.resampled(shares["real"], rows["synthetic"]).tv,
    }
    if "holdout" in shares:
        line["tv_holdout"] = distances.distance(shares["real"], shares["holdout"]).tv
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
