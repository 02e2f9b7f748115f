"""Codes as text that a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from dpsyn_sql.domain.attributes import OTHER, Attribute
from dpsyn_sql.domain.types import Edge


def code_labels(attribute: Attribute) -> list[object]:
    """The label of every code: a category, ``"[17, 21)"`` for a bin, ``__other__``, None for NULL."""
    labels: list[object] = list(attribute.labels) if attribute.kind == "categorical" else _bins(attribute)
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


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Names in quotes, as many as a sentence can hold: ``'a', 'b' and 7 more``."""
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
