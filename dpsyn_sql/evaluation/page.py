"""PRIVATE: an evaluation as a page, as a JSON document and as plain text, each with the mark."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsyn_sql.evaluation.result import PRIVATE
from dpsyn_sql.evaluation.words import TOLD, Told
from dpsyn_sql.notices import printable
from dpsyn_sql.report.html.charts import Bar, bars
from dpsyn_sql.report.html.element import Html, element, joined, named
from dpsyn_sql.report.html.page import Section, box, bullets, facts, folded, page, paragraph, table

if TYPE_CHECKING:
    from dpsyn_sql.evaluation.result import Evaluation

SHOWN = 20
"""Rows of a table that a page shows at once; the others are folded."""

MOST_SHOWN = 2_000
"""Rows of a table that a page has; a document has all."""

MOST_DRAWN = 40
"""Bars of a picture."""

IN_SUMMARY = 10
"""Rows of a table that a summary has."""


def text_of(evaluation: Evaluation, suffix: str) -> str:
    """The file of an evaluation: a page, or a document if ``suffix`` is ``.json``."""
    if suffix == ".json":
        return json.dumps(document_of(evaluation), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    return page_of(evaluation)


# -- a document ----------------------------------------------------------------------------------


def document_of(evaluation: Evaluation) -> dict[str, Any]:
    """JSON-ready; the first key is the mark."""
    return {
        "PRIVATE": PRIVATE,
        "real": evaluation.real,
        "synthetic": evaluation.synthetic,
        "rows": {"real": evaluation.rows[0], "synthetic": evaluation.rows[1]},
        "tables": {name: _records(frame) for name, frame in evaluation.tables.items()},
        "notes": list(evaluation.notes),
    }


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


def summary_of(evaluation: Evaluation) -> str:
    """For people, without control characters."""
    lines = [PRIVATE, "", f"{evaluation.synthetic} beside {evaluation.real}", _rows_in_words(evaluation)]
    for name, frame in evaluation.tables.items():
        told = _told(name)
        first = [column for column in told.first if column in frame] or list(frame.columns)
        lines += ["", f"{told.heading}. {told.meaning}", *_aligned(frame[first].head(IN_SUMMARY))]
        if len(frame) > IN_SUMMARY:
            lines.append(f"... and {len(frame) - IN_SUMMARY:,} more")
    if evaluation.notes:
        lines += ["", *(f"Note: {note}" for note in evaluation.notes)]
    return printable("\n".join(lines))


def _rows_in_words(evaluation: Evaluation) -> str:
    return f"{evaluation.rows[0]:,} real rows, {evaluation.rows[1]:,} synthetic rows"


def _aligned(frame: pd.DataFrame) -> Iterator[str]:
    names = [str(name) for name in frame.columns]
    cells = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    flush = [_is_numbers(frame.iloc[:, place]) for place in range(len(names))]
    for row in [names, *cells]:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, flush, strict=True)
        )
        yield "  ".join(padded).rstrip()


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


def _told(name: str) -> Told:
    return TOLD.get(name, Told(name, ""))


# -- a page --------------------------------------------------------------------------------------


def page_of(evaluation: Evaluation) -> str:
    """One document that loads nothing; the mark is above it, and above every printed page."""
    opening = joined(
        paragraph(named(evaluation.synthetic), " beside ", named(evaluation.real), ".", class_="lead"),
        facts(
            [("Real rows", f"{evaluation.rows[0]:,}"), ("Synthetic rows", f"{evaluation.rows[1]:,}")],
        ),
        box(paragraph(PRIVATE), warning=True),
    )
    sections = [
        Section(name, _told(name).heading, _content(name, frame)) for name, frame in _tables(evaluation)
    ]
    if evaluation.notes:
        sections.append(Section("notes", "Notes", bullets(evaluation.notes)))
    return page("Synthetic rows beside real rows", opening, sections, banner=PRIVATE)


def _tables(evaluation: Evaluation) -> list[tuple[str, pd.DataFrame]]:
    return [(name, frame) for name, frame in evaluation.tables.items() if len(frame.columns)]


def _content(name: str, frame: pd.DataFrame) -> Html:
    told = _told(name)
    if frame.empty:
        return joined(paragraph(told.meaning), paragraph("Nothing was computed; the notes say why."))
    first = [column for column in told.first if column in frame] or list(frame.columns)
    shown, rest = frame[first], frame.iloc[SHOWN:MOST_SHOWN]
    parts = [paragraph(told.meaning), *_pictures(name, frame), _table(told.heading, shown.head(SHOWN))]
    if len(rest):
        more = "1 more row" if len(rest) == 1 else f"{len(rest):,} more rows"
        parts.append(folded(more, _table(f"{told.heading}, continued", rest[first])))
    if len(first) < len(frame.columns):
        parts.append(folded("All figures", _table(f"{told.heading}, all figures", frame.head(MOST_SHOWN))))
    if len(frame) > MOST_SHOWN:
        parts.append(paragraph(f"{len(frame) - MOST_SHOWN:,} rows are left out; the JSON document has all."))
    return joined(*parts)


def _table(caption: str, frame: pd.DataFrame) -> Html:
    """Columns of words first: those of numbers are flush right."""
    order = sorted(range(len(frame.columns)), key=lambda place: _is_numbers(frame.iloc[:, place]))
    ordered = frame.iloc[:, order]
    numbers = sum(_is_numbers(ordered.iloc[:, place]) for place in range(len(order)))
    words = len(order) - numbers
    names = [str(name).replace("_", " ") for name in ordered.columns]
    rows = (
        [named(_cell(value)) if place < words else _cell(value) for place, value in enumerate(row)]
        for row in ordered.itertuples(index=False, name=None)
    )
    return table(caption, names, rows, numbers)


def _pictures(name: str, frame: pd.DataFrame) -> Sequence[Html]:
    drawn = {"columns": _columns_drawn, "efficacy": _learning_drawn}.get(name)
    return [] if drawn is None else drawn(frame)


def _columns_drawn(frame: pd.DataFrame) -> Sequence[Html]:
    """The distance of each column, and how far fresh rows would be."""
    items = [
        Bar(str(line["column"]), line["tv"], line["tv"], line["tv"], f"{line['tv']:.3f}")
        for line in frame.to_dict("records")
        if _known(line["tv"])
    ][:MOST_DRAWN]
    words = "Total variation distance of each column"
    return [_figure(words, "A longer bar is farther from the real rows.", items)]


def _learning_drawn(frame: pd.DataFrame) -> Sequence[Html]:
    score = "auc" if frame["auc"].notna().any() else "r2"
    said = {"auc": "AUC", "r2": "R2, 0 where it is below"}[score]
    items = [_bar(line, score) for line in frame.to_dict("records") if _known(line[score])]
    words = f"{said} on real rows; grey: learnt from real rows"
    return [_figure(words, "Longer is better.", items)]


def _figure(words: str, description: str, items: Sequence[Bar]) -> Html:
    drawn = bars(words, description, items)
    return element(
        "div", element("figure", drawn, element("figcaption", f"{words}. {description}")), class_="card"
    )


def _known(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _bar(line: dict[Any, Any], score: str) -> Bar:
    value = float(line[score])
    shown = max(0.0, value)
    real = line["learnt_from"] != "synthetic"
    label = f"{line['learner']}{', real' if line['learnt_from'] == 'real' else ''}"
    return Bar(label, shown, shown, shown, f"{value:.3f}", aside=real)
