"""Codes and numbers as text that a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from itertools import pairwise

from dpsyn_sql.domain.attributes import OTHER, Attribute, edge_ticks
from dpsyn_sql.domain.types import Edge, SqlType, from_tick

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
    found = [
        range_words(attribute.type, low, high)  # type: ignore[arg-type]
        for low, high in pairwise(ends)
    ]
    return found + [ELSE] * attribute.other + [MISSING] * attribute.nullable


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
        whole = not (edge.hour or edge.minute or edge.second or edge.microsecond)
        return edge.date().isoformat() if whole else edge.isoformat(" ")
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


def counted(number: int, one: str, several: str = "") -> str:
    """``1 value``, ``1,234 values``."""
    return f"1 {one}" if number == 1 else f"{number:,} {several or one + 's'}"
