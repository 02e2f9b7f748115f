"""PRIVATE: what the questions of the door are made of: the counters behind it, exact tables of marginals and
their distances to public tables, the parts of a question and its name in the ledger."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent
from dpsyn_sql.accounting.gdp import MOST_CELLS
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InternalError, PlanTooLarge
from dpsyn_sql.planning.queries import Answer, MarginalQuery, NoisyMarginal, NoisyResidual
from dpsyn_sql.planning.row_labels import NearestLabel, check_labels, labelled
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.noise import ExactNoise, NoiseSource, add_noise
from dpsyn_sql.sqltext.fragments import Fragment

Arrays = list[NDArray[np.int64]]

LARGEST_REFERENCE = 2**57
"""More than the sum of a public table's cells and than every allowance, so no distance or score overflows,
nor a distance in steps of a lattice: it stays below ``noise.MOST_ROWS``."""


_TOGETHER = 2**20
# About the most cells of tables that are added up side by side.

MOST_PAIRED_BINS = 64
"""Of an attribute in tables of pairs of rows: a statement has a product for each cell."""


class Counter(Protocol):
    """PRIVATE: exact counts of marginals of the encoded source."""

    def count(
        self, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel] = ()
    ) -> Iterator[NDArray[np.int64]]:
        """One int64 array of the marginal's full shape per query, over bins if it has maps; ``labels`` are
        further attributes."""

    def siblings(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """For each query of two attributes the weights of ordered pairs of distinct rows of one unit, at most
        ``WEIGHT`` of a unit: int64 arrays of full shape."""


def nobody() -> Counter:
    """Of what is only priced.

    Raises:
        InternalError: always.
    """
    raise InternalError("nothing is counted while a release is planned")


@dataclass(frozen=True, slots=True, repr=False)
class Counts:
    """The encoded source as tables over its domain; ``labels`` are its last attributes. ``counter`` is opened
    at the first count."""

    counter: Callable[[], Counter]
    domain: Domain
    labels: tuple[NearestLabel, ...] = ()

    def with_labels(self, labels: Sequence[NearestLabel]) -> Counts:
        """The same rows with further columns, public functions of their codes (docs/privacy.md, "Labels").

        Raises:
            InternalError: a label that is no total function of one row, or without a name of its own.
        """
        own = tuple(labels)
        check_labels(own, self.domain)
        return replace(self, domain=labelled(self.domain, own), labels=own)

    def exact(self, queries: Sequence[MarginalQuery]) -> Iterator[NDArray[np.int64]]:
        """Exact tables, int64, one at a time; over bins if a query has maps."""
        for query, table in zip(queries, self.counter().count(queries, self.labels), strict=True):
            check_counts(table, query.shape(self.domain))
            yield table

    def siblings(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """Exact tables of pairs of rows of one unit, int64; ``check_pairs`` has accepted the queries."""
        tables = self.counter().siblings(queries)
        for query, table in zip(queries, tables, strict=True):
            check_counts(table, query.shape(self.domain))
        return tables

    def distances(
        self, queries: Sequence[MarginalQuery], references: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Exact L1 distances."""
        found, tables = np.zeros(len(queries), dtype=np.int64), self.exact(queries)
        for run in _runs(references):
            own = references[run]
            counts = [next(tables).ravel() for _ in own]
            apart = np.abs(np.concatenate(counts) - np.concatenate([table.ravel() for table in own]))
            found[run] = _sums(apart, own)
        return found

    def check_maps(self, queries: Sequence[MarginalQuery]) -> None:
        """A code in no bin or in two would break the proof (docs/privacy.md, "Marginals over bins").

        Raises:
            InternalError: a map that is missing, of the wrong length, or with an empty bin, or a query that
                could be another one when it is counted.
        """
        for query in queries:
            if type(query) is not MarginalQuery or not _is_plain(query):
                raise InternalError(
                    "a marginal that is asked for cannot change: no subclass, and tuples of str and int"
                )
            if query.maps and len(query.maps) != len(query.attrs):
                raise InternalError("a marginal over bins needs a map, or None, for every attribute")
            for name, bins in zip(query.attrs, query.maps, strict=False):
                if bins is not None and (
                    len(bins) != self.domain[name].size or set(bins) != set(range(max(bins, default=0) + 1))
                ):
                    raise InternalError("a map needs one bin for every code, and a code for every bin")

    def check_pairs(self, queries: Sequence[MarginalQuery]) -> None:
        """A table of pairs of rows has an attribute of either row.

        Raises:
            InternalError: no query, or one of other than two attributes, of an unknown one, or of more bins
                than a statement counts at once.
        """
        if not queries or any(len(query.attrs) != 2 for query in queries):
            raise InternalError("pairs of rows are counted by an attribute of either row")
        if any(name not in self.domain for query in queries for name in query.attrs):
            raise InternalError("pairs of rows are counted by attributes of the domain")
        if any(max(query.shape(self.domain)) > MOST_PAIRED_BINS for query in queries):
            raise InternalError(f"pairs of rows are counted over at most {MOST_PAIRED_BINS} bins")

    def check_cells(self, queries: Sequence[MarginalQuery]) -> None:
        """The price of noise on a lattice holds for so many cells (``gdp.MOST_CELLS``).

        Raises:
            PlanTooLarge: more.
        """
        cells = sum(math.prod(query.shape(self.domain)) for query in queries)
        if cells > MOST_CELLS:
            raise PlanTooLarge(
                f"One question would measure {cells:,} cells; at most {MOST_CELLS:,} can be measured. "
                "Declare fewer bins or categories, or leave a column out with exclude=."
            )

    def checked_references(
        self, queries: Sequence[MarginalQuery], references: Sequence[NDArray[np.int64]]
    ) -> list[NDArray[np.int64]]:
        """Copies of public tables, bounded so that no distance can overflow; what becomes of the caller's own
        arrays later has no say.

        Raises:
            InternalError: no queries, or references that are not int64 tables of the full shape.
        """
        if not queries or len(queries) != len(references):
            raise InternalError("distances need one reference per candidate, and a candidate")
        # The exact table is subtracted from it: an array of another class would see it.
        if any(type(table) is not np.ndarray for table in references):
            raise InternalError("a reference must be a plain numpy array")
        self.check_maps(queries)
        copies = [table.copy() for table in references]
        for query, table in zip(queries, copies, strict=True):
            check_counts(table, query.shape(self.domain))
        for run in _runs(copies):
            own = copies[run]
            sizes = np.abs(np.concatenate([table.ravel() for table in own]).astype(np.float64))
            if (_sums(sizes, own) >= LARGEST_REFERENCE).any():
                raise InternalError("a reference is too large: its cells must sum to less than 2^57")
        return copies


@dataclass(frozen=True, slots=True, repr=False)
class PrivateSide:
    """PRIVATE: the counters behind the door, and its noise; ``rows_per_unit`` is public.

    ``counts`` exists once the domain is complete, ``unknown`` until then.
    """

    rows_per_unit: int
    noise: NoiseSource
    counts: Counts | None
    unknown: SqlDiscoveryCounter | None

    @classmethod
    def public(cls, domain: Domain, rows_per_unit: int) -> PrivateSide:
        """Nothing private: what questions about tables cost follows from public facts."""
        return cls(rows_per_unit, ExactNoise(), Counts(nobody, domain), None)

    def noisy(
        self, exact: Iterable[NDArray[np.int64]], event: GaussianEvent | LaplaceEvent
    ) -> list[NDArray[np.int64]]:
        """Exact tables with noise of the event in every cell."""
        tables = list(exact)
        with phase("noise"):
            return add_noise(self.noise, tables, event)

    def marginals(self) -> Counts:
        """Counts of the encoded source.

        Raises:
            InternalError: the domain is not complete.
        """
        if self.counts is None:
            raise InternalError("marginals were asked for before the domain was complete")
        return self.counts

    def columns(self) -> SqlDiscoveryCounter:
        """Counts of columns without a public domain.

        Raises:
            InternalError: the domain is complete.
        """
        if self.unknown is None:
            raise InternalError("nothing can be discovered once the domain is complete")
        return self.unknown


def _runs(tables: Sequence[NDArray[np.int64]]) -> Iterator[slice]:
    """All tables, one run of them after the other."""
    start = held = 0
    for place, table in enumerate(tables):
        if held > _TOGETHER:
            yield slice(start, place)
            start, held = place, 0
        held += table.size
    yield slice(start, len(tables))


def _sums(cells: NDArray[Any], tables: Sequence[NDArray[np.int64]]) -> NDArray[Any]:
    """Of each of some tables, whose ``cells`` follow each other, the sum; none is empty."""
    ends = np.cumsum([table.size for table in tables])
    return np.asarray(np.add.reduceat(cells, ends - [table.size for table in tables]))


def _is_plain(query: MarginalQuery) -> bool:
    """Whether its names and maps are tuples of str and int, without subclasses, whose text could be another
    one when a statement is made of them."""
    if type(query.attrs) is not tuple or type(query.maps) is not tuple:
        return False
    maps = [bins for bins in query.maps if bins is not None]
    return set(map(type, query.attrs)) <= {str} and all(
        type(bins) is tuple and set(map(type, bins)) <= {int} for bins in maps
    )


def check_counts(counts: NDArray[np.int64], shape: tuple[int, ...]) -> None:
    """A missing cell would show which cells are empty; a float would break the proof.

    Raises:
        InternalError: not int64 of this shape.
    """
    if counts.shape != shape or counts.dtype != np.int64:
        raise InternalError("counts must be int64, one for every cell of the public domain")


# -- questions -----------------------------------------------------------------------------------------


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
    ask: str, queries: Sequence[MarginalQuery], labels: Sequence[NearestLabel] = ()
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
