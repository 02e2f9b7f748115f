"""PRIVATE: one line per column: how far the synthetic values are from the real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpsyn_sql.evaluation import distances
from dpsyn_sql.evaluation.codes import Coded, Codes, Numbers
from dpsyn_sql.evaluation.marginals import Marginal

_QUARTERS = (25, 50, 75)


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
    missing = [facts.missing[place] / rows[side] for place, side in enumerate(("real", "synthetic"))]
    line: dict[str, object] = {
        "column": column.column.name,
        "kind": column.column.kind,
        "tv": distances.distance(shares["real"], shares["synthetic"]).tv,
        "tv_resample": distances.resampled(shares["real"], rows["synthetic"]).tv,
    }
    if "holdout" in shares:
        line["tv_holdout"] = distances.distance(shares["real"], shares["holdout"]).tv
    line |= {"missing_real": missing[0], "missing_synthetic": missing[1]}
    line |= {"unseen": facts.unseen / rows["synthetic"], "distinct_real": facts.distinct}
    line |= _of_numbers(column.numbers)
    line["MissingValueSimilarity"] = 1 - abs(missing[0] - missing[1])
    text = column.numbers is None
    line["TVComplement"] = 1 - facts.distance if text else np.nan
    line["CategoryCoverage"] = facts.covered / facts.distinct if text and facts.distinct else np.nan
    return line | _sdmetrics_of_numbers(column.numbers)


def _of_numbers(numbers: Numbers | None) -> dict[str, object]:
    line: dict[str, object] = {"ks": np.nan, "wasserstein": np.nan}
    both = ("real", "synthetic")
    for name in ("mean", "sd", *(f"q{quarter}" for quarter in _QUARTERS)):
        line |= {f"{name}_{side}": np.nan for side in both}
    if numbers is None:
        return line
    line["ks"] = numbers.kolmogorov_smirnov
    line["wasserstein"] = _relative(numbers)
    for place, side in enumerate(both):
        grid = (numbers.grid_real, numbers.grid_synthetic)[place]
        line |= {f"mean_{side}": numbers.mean[place], f"sd_{side}": numbers.deviation[place]}
        line |= {f"q{quarter}_{side}": float(grid[quarter]) for quarter in _QUARTERS}
    return line


def _relative(numbers: Numbers) -> float:
    """Wasserstein's distance in real standard deviations; of a constant, 0 if it is the same constant."""
    if numbers.scaled:
        return numbers.wasserstein / numbers.deviation[0]
    return 0.0 if numbers.wasserstein == 0 else float("nan")


def _sdmetrics_of_numbers(numbers: Numbers | None) -> dict[str, object]:
    line = dict.fromkeys(("KSComplement", "RangeCoverage", "BoundaryAdherence"), float("nan"))
    if numbers is None or not all(numbers.rows):
        return dict(line)
    line["KSComplement"] = 1 - numbers.kolmogorov_smirnov
    line["BoundaryAdherence"] = numbers.inside / numbers.rows[1]
    (low, least), (high, most) = numbers.least, numbers.most
    if high > low:
        lost = max((least - low) / (high - low), 0) + max((high - most) / (high - low), 0)
        line["RangeCoverage"] = max(0.0, 1 - lost)
    return dict(line)
