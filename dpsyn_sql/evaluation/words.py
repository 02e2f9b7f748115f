"""The tables of an evaluation in words: headings, and what a figure means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """The heading of a table, how to read it, and the columns that a page shows first (none: all)."""

    heading: str
    meaning: str
    first: tuple[str, ...] = ()


TOLD: Mapping[str, Told] = {
    "columns": Told(
        "Columns",
        "How far the values of each column are from the real ones (tv, total variation distance: 0 is "
        "equal, 1 has nothing in common). Beside it (tv resample): what as many fresh rows of the real "
        "distribution would have. Unseen: the share of synthetic rows with a value that no real row has.",
        ("column", "kind", "tv", "tv_resample", "tv_holdout", "missing_real", "missing_synthetic", "unseen"),
    ),
    "marginals": Told(
        "Tables of several columns",
        "Errors of all tables of one and two columns, and of a sample of larger ones: total variation "
        "distance, sum of squared differences of shares (sse), greatest difference of a share. Resample: "
        "fresh "
        "rows of the real distribution; independent: the columns without their dependence.",
        (
            "ways",
            "compared",
            "marginals",
            "possible",
            "tv_mean",
            "tv_median",
            "tv_worst",
            "sse_mean",
            "max_mean",
        ),
    ),
    "worst": Told("Worst tables", "The tables of columns that differ most."),
    "conjunctions": Told(
        "Counts of people with several properties",
        "Errors of queries that ask for the rows with one value in each of several columns.",
    ),
    "pairs": Told(
        "Dependence of pairs",
        "How strongly two columns depend on each other, in the real and in the synthetic rows: 0 is not at "
        "all. Independent: what chance alone gives.",
        ("first", "second", "measure", "real", "synthetic", "holdout", "difference", "independent"),
    ),
    "ranges": Told(
        "Counts in ranges", "Errors of queries that ask for the rows in a range of numbers or times."
    ),
    "conditions": Told("Conditions", "The share of rows that break each of the owner's conditions."),
    "efficacy": Told(
        "Learning",
        "What a learner gains from synthetic rows, judged on real ones, beside the same learner on real "
        "rows and beside the labels alone. AUC, F1 and accuracy: 1 is best; of two classes they are those "
        "of the rarer one. R2: 1 is best, 0 is the mean for every row. MAE: mean absolute error, in units "
        "of the column.",
    ),
    "clusters": Told(
        "Places",
        "Mean squared distance of all real places to the nearest centre that k-means found in the synthetic "
        "places, beside the real table's own centres. A ratio of 1 is as good.",
    ),
    "membership": Told(
        "Membership test",
        "The share of pairs (a real row, a row of the holdout) in which the real row has the higher "
        "likelihood under the released model, with its 95 % interval. One half: this test cannot tell them "
        "apart.",
    ),
}
