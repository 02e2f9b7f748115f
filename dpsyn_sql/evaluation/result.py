"""What ``evaluate()`` returns: figures, as a page, a JSON document and plain text, each with the mark.

All of it is as private as the real table.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsyn_sql.common.notices import aligned, printable
from dpsyn_sql.evaluation.files import checked_place, write_private
from dpsyn_sql.report.html.templates import Bar, template
from dpsyn_sql.report.labels import counted

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


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """Figures of one synthetic table beside the real one.

    ``real``, ``synthetic``: as they were named. ``rows``: of both. ``tables``: data frames by the name of
    what is measured: ``"columns"``, ``"marginals"``, ``"worst"``, ``"conjunctions"``, ``"pairs"``,
    ``"families"``, ``"siblings"``, ``"steps"``, ``"ranges"``, ``"conditions"``, ``"efficacy"``,
    ``"clusters"``, ``"membership"``; of a database ``"keys"``, ``"links"``, ``"joined"``, ``"relatives"``,
    ``"sequences"``, ``"joined_pairs"``, ``"numbers"``, ``"relative_columns"``; what was not asked for is not
    there. ``notes``: what a reader must
    know, such as what could not be computed and why.
    ``homes``: the folders of the real rows, whose ledgers know where releases were written.
    """

    real: str
    synthetic: str
    rows: tuple[int, int]
    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]
    homes: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"Evaluation({self.synthetic} beside {self.real}; private)"

    def summary(self) -> str:
        """The mark, the rows, the head of every table with its meaning, and the notes, as plain text."""
        lines = [PRIVATE, "", f"{self.synthetic} beside {self.real}"]
        lines += [f"{self.rows[0]:,} real rows, {self.rows[1]:,} synthetic rows"]
        for name, frame in self.tables.items():
            told = _heading(name)
            cells = _cells(frame[_first(told, frame)].head(IN_SUMMARY))
            lines += ["", f"{told.heading}. {told.meaning}", *aligned(cells.names, cells.rows, cells.right)]
            if len(frame) > IN_SUMMARY:
                lines.append(f"... and {len(frame) - IN_SUMMARY:,} more")
        if self.notes:
            lines += ["", *(f"Note: {note}" for note in self.notes)]
        return printable("\n".join(lines))

    def to_dict(self) -> dict[str, Any]:
        """All figures, JSON-ready (NaN as None); the first key, ``"PRIVATE"``, holds the mark."""
        return {
            "PRIVATE": PRIVATE,
            "real": self.real,
            "synthetic": self.synthetic,
            "rows": {"real": self.rows[0], "synthetic": self.rows[1]},
            "tables": {name: _records(frame) for name, frame in self.tables.items()},
            "notes": list(self.notes),
        }

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a new page (``.private.html``) or document (``.private.json``) that its owner alone can read.

        The mark is on every page, also printed. A page needs neither network nor JavaScript.

        Returns:
            The absolute path.

        Raises:
            InputError: the name does not end so, the file exists, its folder does not, or the folder holds
                public output, or lies in one that does: a released file with its model, a released Parquet
                file, a database of releases alone, or a file that a ledger knows as the output of a release.
        """
        place = checked_place(path, self.homes)
        if place.suffix != ".json":
            return write_private(place, page_of(self))
        document = json.dumps(self.to_dict(), indent=2, ensure_ascii=True, allow_nan=False)
        return write_private(place, f"{document}\n")


# -- headings and meanings ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a table, how to read it, and the columns that a page shows first (none: all)."""

    heading: str
    meaning: str
    first: tuple[str, ...] = ()


HEADINGS: Mapping[str, Heading] = {
    "columns": Heading(
        "Columns",
        "How far the values of each column are from the real ones (tv, total variation distance: 0 is "
        "equal, 1 has nothing in common). Beside it (tv resample): what as many fresh rows of the real "
        "distribution would have. Unseen: the share of synthetic rows with a value that no real row has.",
        ("column", "kind", "tv", "tv_resample", "tv_holdout", "missing_real", "missing_synthetic", "unseen"),
    ),
    "marginals": Heading(
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
    "worst": Heading("Worst tables", "The tables of columns that differ most."),
    "conjunctions": Heading(
        "Counts of people with several properties",
        "Errors of queries that ask for the rows with one value in each of several columns.",
    ),
    "pairs": Heading(
        "Dependence of pairs",
        "How strongly two columns depend on each other, in the real and in the synthetic rows: 0 is not at "
        "all. Independent: what chance alone gives.",
        ("first", "second", "measure", "real", "synthetic", "holdout", "difference", "independent"),
    ),
    "families": Heading(
        "A person's rows",
        "Units (persons, or what the unit column names), and how many rows they have: means, and total "
        "variation distance of octaves (1, 2 to 3, 4 to 7, ...). Time between rows: from a row to the one "
        "before it. Halves: the same distance between two halves of the real units, which is luck alone.",
    ),
    "siblings": Heading(
        "How alike the rows of a person are",
        "Excess: how much more often two rows of one person have the same value (or range) than rows of two "
        "persons; 0: as strangers. Constant: the share of persons of several rows that have one value in all "
        "of them. Rows tv: distance of the table of the number of rows and the column; each person counts "
        "one. Halves: two halves of the real persons, which differ by luck alone.",
    ),
    "steps": Heading(
        "From a row to the next",
        "Total variation distance of the table of a value and the value in the row before. Independent: that "
        "of rows that forget the row before. First and last: the first and the last rows of persons alone.",
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
    "keys": Heading(
        "Keys",
        "Rows whose key another row has too, or whose foreign key names no row (broken); of a release none. "
        "Missing: a NULL in the key. Owning: the foreign key that says whose row it is.",
    ),
    "links": Heading(
        "Numbers of children",
        "How many rows of a table a row of its parent has: the mean, the share without any (childless), and "
        "the total variation distance (tv) of the number; columns tv: of the number and a column of the "
        "parent, mean over the columns. Halves: two halves of the real units, which differ by luck alone.",
    ),
    "joined": Heading(
        "Columns of joined rows",
        "Total variation distance of the table of a column of the one table and a column of the other, over "
        "joined rows, mean over all such pairs; of one table the columns of a row.",
    ),
    "joined_pairs": Heading("Pairs of columns of joined rows", "The same of each pair, the worst first."),
    "numbers": Heading(
        "Numbers of children by columns",
        "Total variation distance of the number of rows of a table and a column of its parent.",
    ),
    "relatives": Heading(
        "How alike rows of one row above are",
        "Excess: how much more often two rows of a table that hang from one row above have the same value "
        "(or range) than rows of two, mean over the columns; 0: as strangers. Halves: the difference of two "
        "halves of the real units.",
    ),
    "relative_columns": Heading(
        "How alike rows of one row above are, by columns", "The same of each column."
    ),
    "sequences": Heading(
        "From a row to the next of one row above",
        "Total variation distance of the table of a value and the value in the row before. Independent: that "
        "of rows that forget the row before. First and last: the first and the last rows alone.",
    ),
    "membership": Heading(
        "Membership test",
        "The share of pairs (a real row, a row of the holdout) in which the real row has the higher "
        "likelihood under the released model, with its 95 % interval. One half: this test cannot tell them "
        "apart.",
    ),
}


# -- a document ----------------------------------------------------------------------------------


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    return [
        dict(zip(names, map(_plain, row), strict=True)) for row in frame.itertuples(index=False, name=None)
    ]


def _plain(value: object) -> Any:
    """As JSON has it: numbers that do not exist are None, other types are text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int | str) else str(value)


# -- plain text ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cells:
    """A table as text. ``right``: of each column whether it holds numbers, which are flush right."""

    names: list[str]
    rows: list[list[str]]
    right: list[bool]


def _cells(frame: pd.DataFrame) -> _Cells:
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    right = [_is_numbers(frame.iloc[:, place]) for place in range(len(frame.columns))]
    return _Cells([str(name) for name in frame.columns], rows, right)


def _is_numbers(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _cell(value: object) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, float):
        return f"{plain:,.0f}" if abs(plain) >= 1e5 else f"{plain:.4g}"
    if isinstance(plain, int) and not isinstance(plain, bool):
        return f"{plain:,}"
    text = ", ".join(map(str, plain)) if isinstance(plain, list) else str(plain)
    return printable(text, lines=False)


def _heading(name: str) -> Heading:
    return HEADINGS.get(name, Heading(name, ""))


def _first(told: Heading, frame: pd.DataFrame) -> list[str]:
    return [column for column in told.first if column in frame] or list(frame.columns)


# -- a page --------------------------------------------------------------------------------------


def page_of(evaluation: Evaluation) -> str:
    """One document that loads nothing; the mark is above it, and above every printed page."""
    parts = [_part(name, frame) for name, frame in evaluation.tables.items() if len(frame.columns)]
    return f"{_template().whole(evaluation, parts, PRIVATE)}\n"


def _part(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """What the page has of a table: rows that are shown at once, further ones, and all columns; the number of
    rows that it has not."""
    told, draw = _heading(name), _DRAWN.get(name)
    first = frame[_first(told, frame)]
    return {
        "name": name,
        "told": told,
        "empty": frame.empty,
        "drawn": draw and not frame.empty and draw(frame),
        "shown": _cells(_words_first(first.head(SHOWN))),
        "rest": _cells(_words_first(first.iloc[SHOWN:MOST_SHOWN])),
        "all": _cells(_words_first(frame.head(MOST_SHOWN))) if first.shape != frame.shape else None,
        "left": len(frame) - MOST_SHOWN,
    }


def _words_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers, which are flush right, after those of words."""
    order = sorted(range(len(frame.columns)), key=lambda place: _is_numbers(frame.iloc[:, place]))
    return frame.iloc[:, order].rename(columns=lambda name: str(name).replace("_", " "))


@cache
def _template() -> Any:
    return template(Path(__file__).with_name("evaluation.html"), counted=counted, number="{:,}".format)


def _columns_drawn(frame: pd.DataFrame) -> tuple[str, str, list[Bar]]:
    """The distance of each column."""
    lines = [line for line in frame.to_dict("records") if _known(line["tv"])][:MOST_DRAWN]
    items = [Bar(str(one["column"]), one["tv"], one["tv"], one["tv"], f"{one['tv']:.3f}") for one in lines]
    words = "Total variation distance of each column"
    return words, "A longer bar is farther from the real rows.", items


def _learning_drawn(frame: pd.DataFrame) -> tuple[str, str, list[Bar]]:
    score = "auc" if frame["auc"].notna().any() else "r2"
    said = {"auc": "AUC", "r2": "R2, 0 where it is below"}[score]
    items = [_bar(line, score) for line in frame.to_dict("records") if _known(line[score])]
    return f"{said} on real rows; grey: learnt from real rows", "Longer is better.", items


_DRAWN = {"columns": _columns_drawn, "efficacy": _learning_drawn}
"""By table: the words of a picture, how to read it, and its bars."""


def _known(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _bar(line: dict[Any, Any], score: str) -> Bar:
    value = float(line[score])
    shown = max(0.0, value)
    real = line["learnt_from"] != "synthetic"
    label = f"{line['learner']}{', real' if line['learnt_from'] == 'real' else ''}"
    return Bar(label, shown, shown, shown, f"{value:.3f}", aside=real)
