"""THE DOOR: the only way from exact counts to a method.

Each question goes the same way: look for a stored answer, charge the ledger, count, add noise,
store the noisy answer, hand out what was stored. No other module sees an exact count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, PrivacyEvent, event_to_dict
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.interfaces import Counter, LedgerEntry, NoiseSource
from dpsyn_sql.measure.calibrate import marginals_event, standard_deviation
from dpsyn_sql.plan.queries import MarginalQuery, NoisyMarginal
from dpsyn_sql.progress import phase


class LocalCurator:
    """Answers a method's questions about one source, within one ledger entry.

    Holds the counter (private) and nothing else of the source; its repr shows neither.
    """

    def __init__(
        self, counter: Counter, domain: Domain, rows_per_unit: int, entry: LedgerEntry, noise: NoiseSource
    ) -> None:
        self._counter = counter
        self._domain = domain
        self._rows_per_unit = rows_per_unit
        self._entry = entry
        self._noise = noise
        self._asked = 0
        self._measured: list[NoisyMarginal] = []

    def __repr__(self) -> str:
        return f"LocalCurator(questions={self._asked})"

    def measure(self, queries: Sequence[MarginalQuery], budget: Budget) -> list[NoisyMarginal]:
        """Noisy full marginals, all at the same noise, costing at most ``budget`` together.

        Sensitivity: docs/privacy.md, "Marginals". Repeated marginals count each time.

        Raises:
            PrivacyBudgetExceeded: the entry does not hold the cost; nothing was counted.
        """
        event = marginals_event(len(queries), self._rows_per_unit, budget)
        question = {
            "ask": "measure",
            "tables": [list(query.attrs) for query in queries],
            **event_to_dict(event),
        }
        answer = self._answer(question, event, queries)
        sigma = standard_deviation(event)
        tables = [
            NoisyMarginal(query.attrs, table, sigma) for query, table in zip(queries, answer, strict=True)
        ]
        self._measured += tables
        return tables

    @property
    def measurements(self) -> tuple[NoisyMarginal, ...]:
        """Every noisy marginal handed out so far, in order; public."""
        return tuple(self._measured)

    def _answer(
        self, question: dict[str, Any], event: PrivacyEvent, queries: Sequence[MarginalQuery]
    ) -> list[NDArray[np.int64]]:
        sequence, self._asked = self._asked, self._asked + 1
        stored = self._entry.stored(sequence, question)
        if stored is not None:
            return stored
        self._entry.charge(event)
        counts = self._counter.count(queries)
        self._check_shapes(queries, counts)
        with phase("noise"):
            noisy = self._add_noise(counts, event)
        return self._entry.store(sequence, question, noisy)

    def _check_shapes(self, queries: Sequence[MarginalQuery], counts: Sequence[NDArray[np.int64]]) -> None:
        """A missing cell would show which cells are empty; a float would break the proof."""
        for query, table in zip(queries, counts, strict=True):
            if table.shape != self._domain.shape(query.attrs) or table.dtype != np.int64:
                raise InternalError("counts must be int64 tables over the full domain")

    def _add_noise(self, counts: Sequence[NDArray[np.int64]], event: PrivacyEvent) -> list[NDArray[np.int64]]:
        flat = np.concatenate([table.ravel() for table in counts])
        if isinstance(event, GaussianEvent):
            noisy = self._noise.gaussian(flat, event.sigma)
        else:
            noisy = self._noise.laplace(flat, event.scale)
        ends = np.cumsum([table.size for table in counts])[:-1]
        parts = np.split(noisy, ends)
        return [part.reshape(table.shape) for part, table in zip(parts, counts, strict=True)]
