"""The fourth question of the door, taken apart: event, question, noisy arrays, and what they say.

Nothing here asks the ledger; the curator does, in its one order. Exact counts come from the
``DiscoveryCounter`` and leave as noisy arrays only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent
from dpsyn_sql.domain.attributes import Label
from dpsyn_sql.domain.types import SqlType, parse_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.interfaces import DiscoveryCounter, NoiseSource
from dpsyn_sql.measure.calibrate import (
    contributions_event,
    grid_event,
    keys_event,
    standard_deviation,
    tree_event,
)
from dpsyn_sql.measure.privtree import grow
from dpsyn_sql.plan.discovery import things_per_unit
from dpsyn_sql.plan.queries import (
    ContributionQuery,
    DiscoveryQuery,
    GridQuery,
    KeyQuery,
    NoisyContributions,
    NoisyKeys,
    NoisyMarginal,
    NoisyTree,
    TreeQuery,
)

Arrays = list[NDArray[np.int64]]
Found = NoisyKeys | NoisyMarginal | NoisyTree | NoisyContributions


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question of discovery: what it is charged, how it is named in the ledger, how it is answered
    (PRIVATE counts in, noisy arrays out), and how stored arrays are read again."""

    event: PrivacyEvent
    question: dict[str, Any]
    ask: Callable[[DiscoveryCounter, NoiseSource], Arrays]
    read: Callable[[Arrays], Found]


def inquiry(query: DiscoveryQuery, rows_per_unit: int, budget: Budget) -> Inquiry:
    """Take a question apart; reads nothing.

    Raises:
        BudgetError: nothing to spend, or keys without threshold delta.
        InternalError: no question of discovery.
    """
    if isinstance(query, KeyQuery):
        return _of_keys(query, rows_per_unit, budget)
    if isinstance(query, GridQuery):
        return _of_grid(query, rows_per_unit, budget)
    if isinstance(query, TreeQuery):
        return _of_tree(query, rows_per_unit, budget)
    if isinstance(query, ContributionQuery):
        return _of_contributions(query, budget)
    raise InternalError("discovery has no such question")


def _of_keys(query: KeyQuery, rows_per_unit: int, budget: Budget) -> Inquiry:
    event = keys_event(things_per_unit("keys", rows_per_unit), budget)
    question = {"what": "keys", **_column(query.attr, query.sql_type), "longest": query.longest}
    kind = _type(query.sql_type)

    def ask(counter: DiscoveryCounter, noise: NoiseSource) -> Arrays:
        shown: list[tuple[Label, int]] = []
        for keys, units in counter.keys(query):
            _check(units, (len(keys),))
            noisy = noise.gaussian(units, event.sigma) if len(units) else units
            reached = np.flatnonzero(noisy >= event.threshold)
            shown += [(keys[place], int(noisy[place])) for place in reached.tolist()]
        # Only what is shown is sorted by what it is, so that its order says nothing of other keys.
        shown.sort(key=lambda pair: _rank(pair[0]))
        return _packed(shown)

    def read(arrays: Arrays) -> NoisyKeys:
        values, lengths, content = arrays
        texts = _texts(lengths, content)
        keys = tuple(_label(kind, text) for text in texts)
        return NoisyKeys(query.attr, keys, values, event.sigma, event.threshold)

    return Inquiry(event, question, ask, read)


def _of_grid(query: GridQuery, rows_per_unit: int, budget: Budget) -> Inquiry:
    grid, event = query.grid, grid_event(things_per_unit("grid", rows_per_unit), budget)
    cuts = repr((grid.kind, grid.labels, grid.edges, grid.other, grid.nullable))
    question = {"what": "grid", **_column(grid.name, grid.sql_type), "codes": grid.size, "cuts": _hash(cuts)}

    def ask(counter: DiscoveryCounter, noise: NoiseSource) -> Arrays:
        counts = counter.cells(query)
        _check(counts, (grid.size,))
        return [_noisy(counts, event, noise)]

    def read(arrays: Arrays) -> NoisyMarginal:
        return NoisyMarginal((grid.name,), arrays[0], standard_deviation(event))

    return Inquiry(event, question, ask, read)


def _of_tree(query: TreeQuery, rows_per_unit: int, budget: Budget) -> Inquiry:
    event = tree_event(things_per_unit("tree", rows_per_unit), budget)
    roots = _hash(repr([(str(root.low), str(root.width), root.depth) for root in query.roots]))
    question = {"what": "tree", **_column(query.attr, query.sql_type), "roots": roots}

    def ask(counter: DiscoveryCounter, noise: NoiseSource) -> Arrays:
        cells, units = counter.points(query)
        _check(units, cells.shape)
        split = grow(query.roots, cells, units, event, noise)
        return [np.ascontiguousarray(column) for column in split.T]

    def read(arrays: Arrays) -> NoisyTree:
        split = zip(*(array.tolist() for array in arrays), strict=True)
        return NoisyTree(query, tuple(split))

    return Inquiry(event, question, ask, read)


def _of_contributions(query: ContributionQuery, budget: Budget) -> Inquiry:
    event = contributions_event(budget)

    def ask(counter: DiscoveryCounter, noise: NoiseSource) -> Arrays:
        counts = counter.contributions(query)
        _check(counts, (query.most,))
        return [_noisy(counts, event, noise)]

    def read(arrays: Arrays) -> NoisyContributions:
        return NoisyContributions(arrays[0], standard_deviation(event))

    return Inquiry(event, {"what": "contributions", "most": query.most}, ask, read)


def _column(name: str, sql_type: str) -> dict[str, str]:
    """How a question names its column; an ENUM without its labels, which may be the rows' own."""
    return {"attr": name, "type": "ENUM" if sql_type.startswith("ENUM(") else sql_type}


def _type(sql_type: str) -> SqlType:
    kind = parse_type(sql_type)
    if kind is None:
        raise InternalError("a column of an unsupported type is discovered")
    return kind


def _noisy(
    counts: NDArray[np.int64], event: GaussianEvent | LaplaceEvent, noise: NoiseSource
) -> NDArray[np.int64]:
    if isinstance(event, GaussianEvent):
        return noise.gaussian(counts, event.sigma)
    return noise.laplace(counts, event.scale)


def _check(counts: NDArray[np.int64], shape: tuple[int, ...]) -> None:
    """A missing cell would show which are empty; a float would break the proof."""
    if counts.shape != shape or counts.dtype != np.int64:
        raise InternalError("counts must be int64, one for each thing that is counted")


def _rank(key: Label) -> tuple[int, bytes]:
    """Numbers by their value, text by its bytes."""
    return (0, key.encode()) if isinstance(key, str) else (int(key), b"")


def _packed(shown: list[tuple[Label, int]]) -> Arrays:
    """Noisy counts, lengths of the keys' UTF-8 texts in bytes, and these bytes, one after the other."""
    texts = [str(key).encode() for key, _ in shown]
    return [
        np.array([count for _, count in shown], dtype=np.int64),
        np.array([len(text) for text in texts], dtype=np.int64),
        np.frombuffer(b"".join(texts), dtype=np.uint8).astype(np.int64),
    ]


def _texts(lengths: NDArray[np.int64], content: NDArray[np.int64]) -> list[str]:
    whole = content.astype(np.uint8).tobytes()
    ends = np.cumsum(lengths).tolist()
    return [whole[end - length : end].decode() for end, length in zip(ends, lengths.tolist(), strict=True)]


def _label(kind: SqlType, text: str) -> Label:
    if kind.family == "integer":
        return int(text)
    return text == "True" if kind.family == "boolean" else text


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
