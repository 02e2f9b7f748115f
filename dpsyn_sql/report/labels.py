"""Codes, types, names and numbers as text that a person can read who never saw a statistical program."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from itertools import pairwise
from typing import Any

from dpsyn_sql.attributes.attribute import OTHER, Attribute, edge_ticks
from dpsyn_sql.attributes.types import Edge, SqlType, from_tick

MISSING = "(no value)"
ELSE = "(other values)"


def code_labels(attribute: Attribute) -> list[object]:
    """The label of every code: a category, or what it stands for, ``"[17, 21)"`` for a bin, ``__other__``,
    None for NULL."""
    listed = list[object](attribute.named or attribute.labels)
    labels = listed if attribute.kind == "categorical" else _bins(attribute)
    if attribute.other:
        labels.append(OTHER)
    if attribute.nullable:
        labels.append(None)
    return labels


def _bins(attribute: Attribute) -> list[object]:
    pairs = zip(attribute.edges[:-1], attribute.edges[1:], strict=True)
    return [f"[{_text(low)}, {_text(high)})" for low, high in pairs]


def _text(edge: Edge) -> str:
    return edge.isoformat() if isinstance(edge, date) else str(edge)


def code_words(attribute: Attribute) -> list[str]:
    """Every code as a person says it: ``17 to 18`` for a bin of whole numbers."""
    if attribute.kind == "categorical":
        return [_category(label) for label in code_labels(attribute)]
    ends = edge_ticks(attribute) if attribute.type.discrete else attribute.edges
    words = [
        range_words(attribute.type, low, high)  # type: ignore[arg-type]
        for low, high in pairwise(ends)
    ]
    return words + [ELSE] * attribute.other + [MISSING] * attribute.nullable


def _category(label: object) -> str:
    if label is None:
        return MISSING
    if label == OTHER:
        return ELSE
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label) if str(label).strip() else f"“{label}”"


def range_words(kind: SqlType, low: float, high: float) -> str:
    """The values from ``low`` to below ``high``, ticks for a discrete type; both ends are values of it where
    there are steps between values."""
    if not kind.discrete:
        return f"{edge_words(low)} up to {edge_words(high)}"
    first, last = int(low), int(high) - 1
    if first >= last:
        return edge_words(from_tick(kind, first))
    if kind.family in ("timestamp", "time"):
        return f"{edge_words(from_tick(kind, first))} up to {edge_words(from_tick(kind, last + 1))}"
    return f"{edge_words(from_tick(kind, first))} to {edge_words(from_tick(kind, last))}"


def edge_words(edge: Edge) -> str:
    """A value as people write it: thousands apart, six digits of a float, no midnight."""
    if isinstance(edge, datetime):
        midnight = not (edge.hour or edge.minute or edge.second or edge.microsecond)
        return edge.date().isoformat() if midnight else edge.isoformat(" ")
    if isinstance(edge, date | time):
        return edge.isoformat()
    return f"{edge:,.6g}" if isinstance(edge, float) else f"{edge:,}"


def outer_values(attribute: Attribute) -> tuple[str, str]:
    """The lowest and the highest value that a column of bins is written with."""
    low, high = attribute.edges[0], attribute.edges[-1]
    if attribute.type.discrete and attribute.type.family not in ("timestamp", "time"):
        high = from_tick(attribute.type, edge_ticks(attribute)[-1] - 1)
    return edge_words(low), edge_words(high)


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Names in quotes, as many as a sentence can hold: ``'a', 'b' and 7 more``."""
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(number: int, singular: str, plural: str = "") -> str:
    """``1 value``, ``1,234 values``."""
    return f"1 {singular}" if number == 1 else f"{number:,} {plural or singular + 's'}"


# -- types, numbers and names of a page ---------------------------------------------------------------

_FILES = (".parquet", ".csv", ".csv.gz", ".duckdb")
_PART = re.compile(r'"(?:[^"]|"")+"|[^".]+')

_SOURCES = {"parquet": "Parquet file", "csv": "CSV file"}

_TYPES = {
    "integer": "whole numbers",
    "decimal": "numbers",
    "float": "numbers",
    "date": "dates",
    "time": "times of day",
    "timestamp": "dates with time",
}


def value_words(value: Edge) -> str:
    """A value between the edges, such as a mean, in as many digits as are worth reading."""
    if isinstance(value, datetime):
        return value.replace(microsecond=0).isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def type_words(attribute: Attribute) -> str:
    """What the values of a column are."""
    if attribute.leaves is not None:
        return "groups of a tree, from coarse to fine"
    if attribute.kind == "categorical":
        number = len(attribute.labels)
        return f"{number:,} categor{'y' if number == 1 else 'ies'}"
    number, kind = attribute.regular, _TYPES[attribute.type.family]
    if attribute.type.discrete and all(low + 1 >= high for low, high in pairwise(edge_ticks(attribute))):
        return f"{kind}, {number:,} value{'' if number == 1 else 's'}"
    return f"{kind} in {number:,} range{'' if number == 1 else 's'}"


def origin_words(attribute: Attribute, share: float | None) -> str:
    """Who made the domain of a column public, and what learning it took of the budget."""
    if attribute.origin == "declared":
        return "Possible values: listed by the owner beforehand."
    if attribute.origin == "catalog":
        return "Possible values: from the public definition of the database."
    cost = "" if share is None else f", for {percent(share)} of the privacy budget"
    return f"Possible values: learnt from the rows with noise{cost}."


def percent(share: float) -> str:
    """``12.3 %``; small shares keep one digit that says something, and none is above the whole."""
    figure = 100 * min(1.0, share)
    if figure == 0 or not math.isfinite(figure):
        return "0 %"
    return (
        f"{figure:.0f} %" if abs(figure) >= 99.95 else f"{figure:.1f} %" if abs(figure) >= 0.05 else "<0.1 %"
    )


def rows_words(rows: float) -> str:
    """A number of rows, whole; of three digits at most where it is large and uncertain."""
    return f"{max(0.0, rows):,.0f}"


def rounded_up(rows: float) -> float:
    """A number of rows rounded up to two digits."""
    if not math.isfinite(rows) or rows <= 0:
        return 0.0
    unit = 10.0 ** max(0, math.floor(math.log10(rows)) - 1)
    return math.ceil(rows / unit - 1e-9) * unit


def public_name(table: str) -> str:
    """The last part of a path or of a quoted name: readers need not know the folders of a machine."""
    if "/" in table or "\\" in table or table.lower().endswith(_FILES):
        return table.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    names = _PART.findall(table)
    last = names[-1] if names else table
    return last[1:-1].replace('""', '"') if last.startswith('"') and len(last) > 2 else last


def release_name(table: str) -> str:
    """The name of the release that wrote a table or a file: that of the table, or of the file without its
    ending."""
    name = public_name(table)
    endings = (ending for ending in (".csv.gz", ".parquet", ".csv") if name.lower().endswith(ending))
    return name[: -len(next(endings, "")) or None]


def source_words(facts: Mapping[str, Any]) -> str:
    """What a release is made from, by its public name."""
    kind, name = facts["source"]["kind"], facts["source"]["name"]
    shown = public_name(name) if kind in ("table", "view") else name
    return f"{_SOURCES.get(kind, kind)} {shown}"
