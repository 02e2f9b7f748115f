"""A ledger that lives as long as the process: entries of releases, each within its debit."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import PrivacyEvent, cost_units, total_units
from dpsyn_sql.errors import InternalError, PrivacyBudgetExceeded
from dpsyn_sql.plan.key import ReleaseKey


@dataclass(slots=True)
class MemoryEntry:
    """One release: a debit, the events charged within it, the noisy answers."""

    key: ReleaseKey
    budget: Budget
    release_id: str = field(default_factory=lambda: secrets.token_hex(8))
    debited_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    state: str = "debited"
    into: str | None = None
    _events: list[PrivacyEvent] = field(default_factory=list)
    _answers: dict[int, tuple[Mapping[str, Any], list[NDArray[np.int64]]]] = field(default_factory=dict)

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """Events charged so far, in order."""
        return tuple(self._events)

    def charge(self, event: PrivacyEvent) -> None:
        """Reserve an event within the debit, before the source is read."""
        if self.state != "debited":
            raise InternalError(f"a release that is {self.state} asks no more questions")
        spent, price = total_units(self._events, self.budget.kind), cost_units(event, self.budget.kind)
        if spent + price > self.budget.amount:
            raise PrivacyBudgetExceeded(
                f"the release has {self.budget.amount - spent} units of 1e-15 left and the question "
                f"costs {price}; it was not asked"
            )
        self._events.append(event)

    def stored(self, sequence: int, question: Mapping[str, Any]) -> list[NDArray[np.int64]] | None:
        """The stored answer to a question, if it was asked before in this entry."""
        if sequence not in self._answers:
            return None
        known, answer = self._answers[sequence]
        if known != question:
            raise InternalError(f"question {sequence} differs from the stored one")
        return answer

    def store(
        self, sequence: int, question: Mapping[str, Any], answer: Sequence[NDArray[np.int64]]
    ) -> list[NDArray[np.int64]]:
        """Keep a noisy answer; the first one wins."""
        return self._answers.setdefault(sequence, (question, list(answer)))[1]

    def close_questions(self) -> None:
        """From here on the source is not read again."""
        self.state = "measured"

    def published(self, into: str, rows: int) -> None:
        """The synthetic table is visible."""
        self.state, self.into = "published", into


class MemoryLedger:
    """Entries of this process, without a limit on the account."""

    def __init__(self) -> None:
        self.entries: list[MemoryEntry] = []

    @contextmanager
    def open_release(self, key: ReleaseKey, budget: Budget) -> Iterator[MemoryEntry]:
        """Debit the whole budget first; whatever happens inside, it stays debited."""
        entry = MemoryEntry(key, budget)
        self.entries.append(entry)
        yield entry
