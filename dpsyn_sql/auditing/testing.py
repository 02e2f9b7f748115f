"""Stand-ins that show a test what stands behind the door, and replay what came out of it.

PRIVATE: a recording noise source holds exact counts. It is for tests on toy tables only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import PrivacyEvent
from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.memory import MemoryLedger
from dpsyn_sql.ledger.questions import StoredQuestion
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.private.measure.noise import NoiseSource


@dataclass(frozen=True, slots=True)
class NoiseCall:
    """One call of a noise source.

    ``exact``: int64 counts of all tables of a question one after the other, or the scores of the
    candidates. ``answer``: int64, as long as ``exact``; for a choice, the indices. ``mechanism`` is
    ``"gaussian"``, ``"laplace"`` or ``"select"``; ``scale`` is the sigma or the scale asked for.
    """

    mechanism: str
    exact: NDArray[np.int64] = field(repr=False)
    scale: float
    answer: NDArray[np.int64]


class RecordingNoise:
    """Passes every question to another noise source and remembers both sides of it."""

    def __init__(self, inner: NoiseSource) -> None:
        self._inner = inner
        self.calls: list[NoiseCall] = []

    def gaussian(self, values: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
        """As the inner source."""
        return self._noted("gaussian", values, sigma, self._inner.gaussian(values, sigma))

    def laplace(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """As the inner source."""
        return self._noted("laplace", values, scale, self._inner.laplace(values, scale))

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """As the inner source."""
        return self._noted("select", scores, scale, self._inner.select(scores, scale, kind, number))

    def _noted(
        self, mechanism: str, exact: NDArray[np.int64], scale: float, answer: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        self.calls.append(NoiseCall(mechanism, exact.copy(), scale, answer.copy()))
        return answer


class ReplayedNoise:
    """Gives the answers of another run in order, whatever the counts are now."""

    def __init__(self, calls: Iterable[NoiseCall]) -> None:
        self._answers = iter([call.answer for call in calls])

    def gaussian(self, values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """The next answer.

        Raises:
            InternalError: there is none of this length.
        """
        return self._next(len(values))

    laplace = gaussian

    def select(self, scores: NDArray[np.int64], scale: float, kind: Kind, number: int) -> NDArray[np.int64]:
        """The next answer.

        Raises:
            InternalError: the next answer is not ``number`` indices.
        """
        return self._next(number)

    def _next(self, length: int) -> NDArray[np.int64]:
        answer = next(self._answers, None)
        if answer is None or len(answer) != length:
            raise InternalError("the replayed run asked another question")
        return answer.copy()


class RecordingLedger(MemoryLedger):
    """A ledger in memory that remembers keys, debits and questions (a ``Ledger``).

    Its releases have the identifier and the day that it is given, so that two runs can be equal
    byte for byte. ``entry``: the last one opened; its ``events`` are those that were charged.
    """

    def __init__(self, release_id: str = "0" * 16, debited_on: str = "2026-01-01") -> None:
        super().__init__()
        self.release_id, self.debited_on = release_id, debited_on
        self.keys: list[ReleaseKey] = []
        self.budgets: list[Budget] = []
        self.questions: list[dict[str, Any]] = []
        self.entry: SqliteEntry | None = None

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """What the last release was charged for, in order."""
        return () if self.entry is None else self.entry.events

    @contextmanager
    def open_release(self, key: ReleaseKey, budget: Budget, *, new_debit: bool = False) -> Iterator[Any]:
        """As the ledger in memory."""
        with super().open_release(key, budget, new_debit=new_debit) as entry:
            self.keys.append(key)
            self.budgets.append(budget)
            self.entry = cast(SqliteEntry, _Noted(entry, self))
            yield self.entry


class _Noted:
    """An entry that notes every question it is shown; all else is the entry's own."""

    def __init__(self, entry: SqliteEntry, ledger: RecordingLedger) -> None:
        self._entry, self._ledger = entry, ledger
        self.release_id, self.debited_on = ledger.release_id, ledger.debited_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def ask(self, question: Mapping[str, Any]) -> StoredQuestion:
        """Note the question, then pass it on."""
        self._ledger.questions.append(dict(question))
        return self._entry.ask(question)
