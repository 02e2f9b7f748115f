"""The parts of a question at the door, and its name in the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.events import PrivacyEvent
from dpsyn_sql.domain.hierarchies.base import Hierarchy
from dpsyn_sql.planning.queries import Answer, MarginalQuery, NoisyMarginal, NoisyResidual
from dpsyn_sql.planning.row_labels import RowLabel
from dpsyn_sql.sqltext.fragments import Fragment

Arrays = list[NDArray[np.int64]]


@dataclass(frozen=True, slots=True, repr=False)
class QuestionParts(Generic[Answer]):
    """The parts of one question; making them charges and counts nothing.

    ``further``: events of the question beside its first. ``named`` is its name in the ledger; the first event
    is not part of it. Names are public and never change, so that stored ledgers replay. ``noisy`` counts
    (PRIVATE) and adds the noise of the event. ``read`` makes the answer from the arrays that the ledger
    keeps. ``shown`` makes the tables that a release shows to its reader, if there are any.
    """

    event: PrivacyEvent
    named: Mapping[str, Any]
    noisy: Callable[[], Arrays]
    read: Callable[[Arrays], Answer]
    shown: Callable[[Arrays], Sequence[NoisyMarginal | NoisyResidual]] = lambda arrays: ()
    further: tuple[PrivacyEvent, ...] = ()

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """All of them."""
        return self.event, *self.further


def tables_named(
    ask: str, queries: Sequence[MarginalQuery], labels: Sequence[RowLabel] = ()
) -> dict[str, Any]:
    """A question about marginals. Labels have their names and sizes in it: what they compute was fitted to
    earlier answers, and the last bits of a fit differ between machines."""
    named: dict[str, Any] = {"ask": ask, "tables": [list(query.attrs) for query in queries]}
    if any(query.maps for query in queries):
        named["maps"] = digest(repr([query.maps for query in queries]))
    if labels:
        named["labels"] = [[label.name, label.size] for label in labels]
    return named


def column_named(what: str, name: str, sql_type: str, source: Fragment | None) -> dict[str, Any]:
    """A question about a column, or about what ``source`` computes from columns. It has an ENUM without its
    labels, which may come from the rows."""
    kind = "ENUM" if sql_type.startswith("ENUM(") else sql_type
    named = {"ask": "discover", "what": what, "attr": name, "type": kind}
    return named if source is None else {**named, "source": str(source)}


def nodes_named(what: str, hierarchies: Sequence[Hierarchy]) -> dict[str, Any]:
    """A question about nodes of hierarchies."""
    return {"ask": "discover", "what": what, "hierarchies": [dict(one.named()) for one in hierarchies]}


def digest(text: str) -> str:
    """A hash of public parts that are too long to keep; a replay with other parts is noticed."""
    return hashlib.sha256(text.encode()).hexdigest()
