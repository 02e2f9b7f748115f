"""PRIVATE: what the tables of an evaluation mean, and how they are shown, as plain text and as a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsyn_sql.common.notices import printable
from dpsyn_sql.report.html.templates import Bar, template
from dpsyn_sql.report.labels import counted

if TYPE_CHECKING:
    from dpsyn_sql.evaluation.result import Evaluation

PRIVATE = (
    "PRIVATE: made from exact counts of the real rows, without noise. Keep it as you keep the real table; do "
    "not publish it, and do not choose a release to publish by it."
)
"""The mark on every page, file and summary."""


SHOWN = 20
"""Rows of a table that a page shows at once; the others are folded."""

MOST_SHOWN = 2_000
"""Rows of a table that a page has; a document has all."""

MOST_DRAWN = 40
"""Bars of a picture."""

IN_SUMMARY = 10
"""Rows of a table that a summary has."""


# -- headings and meanings ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a table, how to read it, and the columns that a page shows first (none: all)."""

    heading: str
    meaning: str
    first: tuple[str, ...] = ()


HEADINGS: Mapping[str, Heading] = {  # in the order of the page
    "columns": Heading(
        "Columns",
        "How far the values of each column are from the real ones (tv, total variation distance: 0 is "
        "equal, 1 has nothing in common). Beside it (tv resample): what as many fresh rows of the real "
        "distribution would have. Unseen: the share of synthetic rows with a value that no real row has.",
        (
            "table",
            "column",
            "kind",
            "tv",
            "tv_resample",
            "tv_holdout",
            "missing_real",
            "missing_synthetic",
            "unseen",
        ),
    ),
    "marginals": Heading(
        "Tables of several columns",
        "Errors of all tables of one and two columns, and of a sample of larger ones: total variation "
        "distance, sum of squared differences of shares (sse), greatest difference of a share. Resample: "
        "fresh "
        "rows of the real distribution; independent: the columns without their dependence.",
        (
            "table",
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
    "worst": Heading("Worst tables", "The tables of columns that differ most."),
    "conjunctions": Heading(
        "Counts of people with several properties",
        "Errors of queries that ask for the rows with one value in each of several columns.",
    ),
    "pairs": Heading(
        "Dependence of pairs",
        "How strongly two columns depend on each other, in the real and in the synthetic rows: 0 is not at "
        "all. Independent: what chance alone gives.",
        ("table", "first", "second", "measure", "real", "synthetic", "holdout", "difference", "independent"),
    ),
    "keys": Heading(
        "Keys",
        "Rows whose key another row has too, or whose foreign key names no row (broken); of a release none. "
        "Missing: a NULL in the key. Owning: the foreign key that says whose row it is.",
    ),
    "links": Heading(
        "How many rows",
        "How many rows of a table a row above it has, or a person (what the unit column names): the mean "
        "(children), the share without any (childless), and the total variation distance (tv) of the number; "
        "columns tv: of the number and a column of the row above, mean over the columns. Wait: from a row to "
        "the one before it. Halves: two halves of the real units, which differ by luck alone.",
    ),
    "joined": Heading(
        "Columns of joined rows",
        "Total variation distance of the table of a column of the one table and a column of the other, over "
        "joined rows, mean over all such pairs; of one table the columns of a row.",
    ),
    "relatives": Heading(
        "How alike rows of one row above are",
        "Of rows of one person, or of one row above. Excess: how much more often two of them have the same "
        "value (or range) than rows of two persons; 0: as strangers. Constant: the share of persons of "
        "several rows that have one value in all of them. Rows tv: distance of the table of the number of "
        "rows and the column; each person counts one. All are means over the columns. Halves: two halves of "
        "the real persons, which differ by luck alone.",
    ),
    "relative_columns": Heading(
        "How alike rows of one row above are, by columns", "The same of each column."
    ),
    "sequences": Heading(
        "From a row to the next",
        "Of rows of one person, or of one row above: total variation distance of the table of a value and "
        "the value in the row before. Independent: that of rows that forget the row before. First and last: "
        "the first and the last rows alone.",
    ),
    "joined_pairs": Heading("Pairs of columns of joined rows", "The same of each pair, the worst first."),
    "numbers": Heading(
        "How many rows, by columns",
        "Total variation distance of the number of rows of a table and a column of its parent.",
    ),
    "ranges": Heading(
        "Counts in ranges", "Errors of queries that ask for the rows in a range of numbers or times."
    ),
    "conditions": Heading("Conditions", "The share of rows that break each of the owner's conditions."),
    "efficacy": Heading(
        "Learning",
        "What a learner gains from synthetic rows, judged on real ones, beside the same learner on real "
        "rows and beside the labels alone. AUC, F1 and accuracy: 1 is best; of two classes they are those "
        "of the rarer one. R2: 1 is best, 0 is the mean for every row. MAE: mean absolute error, in units "
        "of the column.",
    ),
    "clusters": Heading(
        "Places",
        "Mean squared distance of all real places to the nearest centre that k-means found in the synthetic "
        "places, beside the real table's own centres. A ratio of 1 is as good.",
    ),
    "membership": Heading(
        "Membership test",
        "The share of pairs (a real row, a row of the holdout) in which the real row has the higher "
        "likelihood under the released model, with its 95 % interval. One half: this test cannot tell them "
        "apart.",
    ),
}


# -- plain text ----------------------------------------------------------------------------------


def plain(value: object) -> Any:
    """As JSON has it: numbers that do not exist are None, other types are text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str) else str(value)


@dataclass(frozen=True, slots=True)
class Cells:
    """A table as text. ``right``: of each column whether it holds numbers, which are flush right."""

    names: list[str]
    rows: list[list[str]]
    right: list[bool]


def cells(frame: pd.DataFrame) -> Cells:
    """A table as text."""
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    right = [_is_numbers(frame.iloc[:, index]) for index in range(len(frame.columns))]
    return Cells([str(name) for name in frame.columns], rows, right)


def _is_numbers(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _cell(value: object) -> str:
    simple = plain(value)
    if simple is None:
        return ""
    if isinstance(simple, float):
        return f"{simple:,.0f}" if abs(simple) >= 1e5 else f"{simple:.4g}"
    if isinstance(simple, int) and not isinstance(simple, bool):
        return f"{simple:,}"
    text = ", ".join(map(str, simple)) if isinstance(simple, list) else str(simple)
    return printable(text, lines=False)


def heading(name: str) -> Heading:
    """Of a table by its name."""
    return HEADINGS.get(name, Heading(name, ""))


def first_columns(explained: Heading, frame: pd.DataFrame) -> list[str]:
    """The columns that are shown first, as far as the table has them."""
    return [column for column in explained.first if column in frame] or list(frame.columns)


# -- a page --------------------------------------------------------------------------------------


def page_of(evaluation: Evaluation) -> str:
    """One document that loads nothing; the mark is above it, and above every printed page."""
    sections = [_section(name, frame) for name, frame in evaluation.tables.items() if len(frame.columns)]
    return f"{_template().whole(evaluation, sections, PRIVATE)}\n"


def _section(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """What the page has of a table: rows that are shown at once, further ones, and all columns; the number of
    rows that it has not."""
    explained, draw = heading(name), _DRAWN.get(name)
    first = frame[first_columns(explained, frame)]
    return {
        "name": name,
        "explained": explained,
        "empty": frame.empty,
        "drawn": draw and not frame.empty and draw(frame),
        "shown": cells(_words_first(first.head(SHOWN))),
        "further": cells(_words_first(first.iloc[SHOWN:MOST_SHOWN])),
        "all": cells(_words_first(frame.head(MOST_SHOWN))) if first.shape != frame.shape else None,
        "left": len(frame) - MOST_SHOWN,
    }


def _words_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers, which are flush right, after those of words."""
    order = sorted(range(len(frame.columns)), key=lambda index: _is_numbers(frame.iloc[:, index]))
    return frame.iloc[:, order].rename(columns=lambda name: str(name).replace("_", " "))


@cache
def _template() -> Any:
    return template(Path(__file__).with_name("evaluation.html"), counted=counted, number="{:,}".format)


def _columns_drawn(frame: pd.DataFrame) -> tuple[str, str, list[Bar]]:
    """The distance of each column."""
    lines = [line for line in frame.to_dict("records") if _is_finite(line["tv"])][:MOST_DRAWN]
    items = [Bar(_label(line), line["tv"], line["tv"], line["tv"], f"{line['tv']:.3f}") for line in lines]
    words = "Total variation distance of each column"
    return words, "A longer bar is farther from the real rows.", items


def _label(line: Mapping[Any, Any]) -> str:
    """The column, of several tables with its table."""
    return f"{line['table']}.{line['column']}" if "table" in line else str(line["column"])


def _learning_drawn(frame: pd.DataFrame) -> tuple[str, str, list[Bar]]:
    score = "auc" if frame["auc"].notna().any() else "r2"
    name = {"auc": "AUC", "r2": "R2, 0 where it is below"}[score]
    items = [_bar(line, score) for line in frame.to_dict("records") if _is_finite(line[score])]
    return f"{name} on real rows; grey: learnt from real rows", "Longer is better.", items


_DRAWN = {"columns": _columns_drawn, "efficacy": _learning_drawn}
"""By table: the words of a picture, how to read it, and its bars."""


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _bar(line: dict[Any, Any], score: str) -> Bar:
    value = float(line[score])
    shown = max(0.0, value)
    real = line["learnt_from"] != "synthetic"
    label = f"{line['learner']}{', real' if line['learnt_from'] == 'real' else ''}"
    return Bar(label, shown, shown, shown, f"{value:.3f}", aside=real)
