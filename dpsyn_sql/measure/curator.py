"""THE DOOR: the only way from exact counts to a method.

Each question goes the same way: look for a stored answer, charge the ledger, count, add noise,
store the noisy answer, hand out what was stored. No other module sees an exact count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, PrivacyEvent, event_to_dict
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.interfaces import Counter, DiscoveryCounter, LedgerEntry, NoiseSource
from dpsyn_sql.measure.calibrate import marginals_event, selection_event, standard_deviation
from dpsyn_sql.measure.discovery import Found, inquiry
from dpsyn_sql.plan.queries import (
    ContributionQuery,
    DiscoveryQuery,
    GridQuery,
    KeyQuery,
    Map,
    MarginalQuery,
    NoisyContributions,
    NoisyKeys,
    NoisyMarginal,
    NoisyTree,
    TreeQuery,
)
from dpsyn_sql.progress import phase

_LARGEST_REFERENCE = 2**62


class LocalCurator:
    """Answers a method's questions about one source, within one ledger entry.

    Holds the counters (private) and nothing else of the source; its repr shows neither. While the domain
    is not complete it is made without counter and domain and asked to discover alone; ``open`` gives it
    both, and its questions go on being numbered.
    """

    def __init__(
        self,
        counter: Counter | None,
        domain: Domain | None,
        rows_per_unit: int,
        entry: LedgerEntry,
        noise: NoiseSource,
        discovery: DiscoveryCounter | None = None,
    ) -> None:
        self._opened = None if counter is None or domain is None else (counter, domain)
        self._discovery = discovery
        self._rows_per_unit = rows_per_unit
        self._entry = entry
        self._noise = noise
        self._asked = 0
        self._measured: list[NoisyMarginal] = []

    def __repr__(self) -> str:
        return f"LocalCurator(questions={self._asked})"

    def open(self, counter: Counter, domain: Domain) -> None:
        """The domain is complete: marginals may be asked for, and nothing is discovered any more."""
        self._opened, self._discovery = (counter, domain), None

    @overload
    def discover(self, query: KeyQuery, budget: Budget) -> NoisyKeys: ...

    @overload
    def discover(self, query: GridQuery, budget: Budget) -> NoisyMarginal: ...

    @overload
    def discover(self, query: TreeQuery, budget: Budget) -> NoisyTree: ...

    @overload
    def discover(self, query: ContributionQuery, budget: Budget) -> NoisyContributions: ...

    def discover(self, query: DiscoveryQuery, budget: Budget) -> Found:
        """What is not public about a column, or about the units' numbers of rows.

        Sensitivities: docs/privacy.md, "Keys", "Grids", "Trees" and "Rows per unit".

        Raises:
            BudgetError: keys are asked for without threshold delta; nothing was charged.
            InternalError: this curator was given nothing to discover with.
            PrivacyBudgetExceeded: the entry does not hold the cost; nothing was counted.
        """
        counter = self._discovery
        if counter is None:
            raise InternalError("nothing can be discovered once the domain is complete")
        asked = inquiry(query, self._rows_per_unit, budget)
        question = {"ask": "discover", **asked.question, **event_to_dict(asked.event)}
        return asked.read(self._answer(question, asked.event, lambda: asked.ask(counter, self._noise)))

    def measure(self, queries: Sequence[MarginalQuery], budget: Budget) -> list[NoisyMarginal]:
        """Noisy full marginals, all at the same noise, costing at most ``budget`` together.

        Sensitivity: docs/privacy.md, "Marginals". Repeated marginals count each time.

        Raises:
            PrivacyBudgetExceeded: the entry does not hold the cost; nothing was counted.
        """
        self._complete()
        event = marginals_event(len(queries), self._rows_per_unit, budget)
        question = {
            "ask": "measure",
            **_named(queries),
            **event_to_dict(event),
        }

        def noisy() -> list[NDArray[np.int64]]:
            counts = self._exact(queries)
            with phase("noise"):
                return self._add_noise(counts, event)

        answer = self._answer(question, event, noisy)
        sigma = standard_deviation(event)
        tables = [
            NoisyMarginal(query.attrs, table, sigma, query.maps)
            for query, table in zip(queries, answer, strict=True)
        ]
        self._measured += tables
        return tables

    @property
    def measurements(self) -> tuple[NoisyMarginal, ...]:
        """Every noisy marginal handed out so far, in order; public."""
        return tuple(self._measured)

    def select(
        self,
        candidates: Sequence[MarginalQuery],
        references: Sequence[NDArray[np.int64]],
        budget: Budget,
        number: int = 1,
        allowances: Sequence[int] | None = None,
    ) -> list[int]:
        """A private choice of the marginals that differ most from their public references.

        The score of a candidate is |counts - reference|_1 less a public allowance, an integer of sensitivity
        k for k rows a unit (docs/privacy.md, "Selection"). References and allowances are no part of the
        question, as for ``distance``.

        Returns:
            Indices of ``number`` different candidates, best first.

        Raises:
            InternalError: no candidates or not so many, references that are not int64 tables of the
                full shape, or allowances out of range.
            PrivacyBudgetExceeded: the entry does not hold the cost; nothing was counted.
        """
        self._check_references(candidates, references)
        allowed = [0] * len(candidates) if allowances is None else allowances
        if not 1 <= number <= len(candidates):
            raise InternalError("a choice takes at least one candidate, and no more than there are")
        if len(allowed) != len(candidates) or not all(0 <= rows < _LARGEST_REFERENCE for rows in allowed):
            raise InternalError("every candidate needs an allowance from 0 to below 2^62")
        event = selection_event(number, self._rows_per_unit, budget)
        question = {
            "ask": "select",
            **_named(candidates),
            **event_to_dict(event),
        }

        def chosen() -> list[NDArray[np.int64]]:
            scores = self._distances(candidates, references) - np.array(allowed, dtype=np.int64)
            with phase("noise"):
                return [self._noise.select(scores, event.scale, budget.kind, number)]

        return [int(index) for index in self._answer(question, event, chosen)[0]]

    def distance(
        self,
        queries: Sequence[MarginalQuery],
        references: Sequence[NDArray[np.int64]],
        budget: Budget,
    ) -> list[int]:
        """Noisy L1 distances |counts - reference|_1 in rows, at the same noise, within ``budget``.

        Each distance has sensitivity k for k rows a unit (docs/privacy.md, "Distances"). References are
        no part of the question: they follow from earlier answers, which are stored, by a fit whose last
        bits differ between machines. A replay hands out the distances that were measured, whatever they are.

        Raises:
            InternalError: no queries, or references that are not int64 tables of the full shape.
            PrivacyBudgetExceeded: the entry does not hold the cost; nothing was counted.
        """
        self._check_references(queries, references)
        event = marginals_event(len(queries), self._rows_per_unit, budget)
        question = {
            "ask": "distance",
            **_named(queries),
            **event_to_dict(event),
        }

        def noisy() -> list[NDArray[np.int64]]:
            distances = self._distances(queries, references)
            with phase("noise"):
                return self._add_noise([distances], event)

        return [int(distance) for distance in self._answer(question, event, noisy)[0]]

    def _distances(
        self, queries: Sequence[MarginalQuery], references: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Exact L1 distances, one table over bins at a time. PRIVATE."""
        found = self._originals(queries)
        return np.array(
            [
                np.abs(_aggregated(found[query.original], query.maps) - reference).sum()
                for query, reference in zip(queries, references, strict=True)
            ],
            dtype=np.int64,
        )

    def _answer(
        self, question: dict[str, Any], event: PrivacyEvent, ask: Callable[[], list[NDArray[np.int64]]]
    ) -> list[NDArray[np.int64]]:
        """Stored answer, else charge, ask and store: the order that the ledger relies on."""
        sequence, self._asked = self._asked, self._asked + 1
        stored = self._entry.stored(sequence, question)
        if stored is not None:
            return stored
        self._entry.charge(event)
        return self._entry.store(sequence, question, ask())

    @property
    def _counter(self) -> Counter:
        return self._complete()[0]

    @property
    def _domain(self) -> Domain:
        return self._complete()[1]

    def _complete(self) -> tuple[Counter, Domain]:
        if self._opened is None:
            raise InternalError("marginals were asked for before the domain was complete")
        return self._opened

    def _exact(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        found = self._originals(queries)
        return [_aggregated(found[query.original], query.maps) for query in queries]

    def _originals(self, queries: Sequence[MarginalQuery]) -> dict[MarginalQuery, NDArray[np.int64]]:
        """Exact counts over original codes, once for all bins of them. PRIVATE."""
        for query in queries:
            self._check_maps(query)
        originals = list(dict.fromkeys(query.original for query in queries))
        counts = self._counter.count(originals)
        self._check_shapes(originals, counts)
        return dict(zip(originals, counts, strict=True))

    def _check_maps(self, query: MarginalQuery) -> None:
        """A code in no bin or in two would break the proof."""
        if query.maps and len(query.maps) != len(query.attrs):
            raise InternalError("a marginal over bins needs a map, or None, for every attribute")
        for name, bins in zip(query.attrs, query.maps, strict=False):
            if bins is not None and (
                len(bins) != self._domain[name].size or set(bins) != set(range(max(bins, default=0) + 1))
            ):
                raise InternalError("a map needs one bin for every code, and a code for every bin")

    def _check_references(
        self, candidates: Sequence[MarginalQuery], references: Sequence[NDArray[np.int64]]
    ) -> None:
        """Public tables, bounded so that no distance can overflow."""
        if not candidates or len(candidates) != len(references):
            raise InternalError("distances need one reference per candidate, and a candidate")
        for query in candidates:
            self._check_maps(query)
        self._check_shapes(candidates, references)
        if any(np.abs(table.astype(np.float64)).sum() >= _LARGEST_REFERENCE for table in references):
            raise InternalError("a reference is too large: its cells must sum to less than 2^62")

    def _check_shapes(self, queries: Sequence[MarginalQuery], counts: Sequence[NDArray[np.int64]]) -> None:
        """A missing cell would show which cells are empty; a float would break the proof."""
        for query, table in zip(queries, counts, strict=True):
            if table.shape != query.shape(self._domain) or table.dtype != np.int64:
                raise InternalError("counts must be int64 tables over the full domain")

    def _add_noise(
        self, counts: Sequence[NDArray[np.int64]], event: GaussianEvent | LaplaceEvent
    ) -> list[NDArray[np.int64]]:
        flat = np.concatenate([table.ravel() for table in counts])
        if isinstance(event, GaussianEvent):
            noisy = self._noise.gaussian(flat, event.sigma)
        else:
            noisy = self._noise.laplace(flat, event.scale)
        ends = np.cumsum([table.size for table in counts])[:-1]
        parts = np.split(noisy, ends)
        return [part.reshape(table.shape) for part, table in zip(parts, counts, strict=True)]


def _named(queries: Sequence[MarginalQuery]) -> dict[str, Any]:
    """The tables of a question; public maps by a digest, so that a replay with others is noticed."""
    named: dict[str, Any] = {"tables": [list(query.attrs) for query in queries]}
    if any(query.maps for query in queries):
        maps = repr([query.maps for query in queries])
        named["maps"] = hashlib.sha256(maps.encode()).hexdigest()
    return named


def _aggregated(table: NDArray[np.int64], maps: Sequence[Map | None]) -> NDArray[np.int64]:
    """Sum the codes of each bin, axis by axis; exact integers. PRIVATE."""
    for axis, bins in enumerate(maps):
        if bins is not None:
            order = np.argsort(bins, kind="stable")
            starts = np.searchsorted(np.asarray(bins)[order], np.arange(max(bins) + 1))
            table = np.add.reduceat(table.take(order, axis=axis), starts, axis=axis)
    return table
