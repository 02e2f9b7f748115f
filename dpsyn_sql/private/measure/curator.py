"""THE DOOR: the only way from exact counts to a method.

The steps of every question are: look for a stored answer, charge the ledger, count, add noise,
store the noisy answer, hand out what is stored. No room outside ``private`` sees an exact count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import event_to_dict
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.planning.queries import Answer, NoisyMarginal, NoisyResidual, Question
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.counting import Counter, Counts, PrivateSide
from dpsyn_sql.private.measure.noise import NoiseSource
from dpsyn_sql.private.measure.questions import parts_of_question


class LocalCurator:
    """Answers questions about one source. One ledger entry numbers and pays them.

    Holds the counters (private) and nothing else of the source; its repr shows neither. While the domain
    is not complete, it has no counter and no domain and answers only questions of discovery; ``open``
    gives it both.
    """

    def __init__(
        self,
        counter: Counter | None,
        domain: Domain | None,
        rows_per_unit: int,
        entry: SqliteEntry,
        noise: NoiseSource,
        discovery: SqlDiscoveryCounter | None = None,
    ) -> None:
        counts = None if counter is None or domain is None else Counts(counter, domain)
        self._private_side = PrivateSide(rows_per_unit, noise, counts, discovery)
        self._entry = entry
        self._asked = self._events = 0
        self._measured: list[NoisyMarginal | NoisyResidual] = []

    def __repr__(self) -> str:
        return f"LocalCurator(questions={self._asked})"

    def discover(self, counter: SqlDiscoveryCounter, rows_per_unit: int) -> None:
        """Go on to the discovery of another table of the same units, of which ``counter`` counts at most
        ``rows_per_unit`` things of each.

        Raises:
            InternalError: the domain is complete.
        """
        if self._private_side.counts is not None:
            raise InternalError("nothing can be discovered once the domain is complete")
        self._private_side = replace(self._private_side, rows_per_unit=rows_per_unit, unknown=counter)

    def open(self, counter: Counter, domain: Domain, rows_per_unit: int | None = None) -> None:
        """The domain is complete: from now on marginals may be asked for, and nothing can be discovered. Each
        table of a tree is opened in turn.

        ``rows_per_unit``: what a unit adds to a table of ``counter`` at most, where it is not as before.
        """
        rows = self._private_side.rows_per_unit if rows_per_unit is None else rows_per_unit
        counts = Counts(counter, domain)
        self._private_side = replace(self._private_side, rows_per_unit=rows, counts=counts, unknown=None)

    def ask(self, question: Question[Answer], budget: Budget) -> Answer:
        """The noisy answer, at a cost of at most ``budget``; in a replay the stored answer.

        Raises:
            As ``ask_all``.
        """
        (answer,) = self.ask_all([(question, budget)])
        return answer

    def ask_all(self, asked: Sequence[tuple[Question[Answer], Budget]]) -> list[Answer]:
        """The noisy answers to questions, each at a cost of at most its budget, as if asked one by one.

        All are charged before the first is counted. The file of each question in ``measure/questions`` states
        its claim. docs/privacy.md ("One door, charged first", "The ledger") says why the order of the steps
        matters.

        Raises:
            BudgetError: a budget cannot pay for its question; nothing was charged.
            InternalError: the door does not know a question or may not answer it now, or a budget is of
                another kind than the entry's.
            PrivacyBudgetExceeded: the entry does not hold the cost of all; nothing was charged or counted.
            ReleaseChanged: the stored question of a number differs.
        """
        asked = tuple(asked)
        for _, budget in asked:
            if budget.kind != self._entry.budget.kind:  # it chooses the noise, the entry's sets its price
                kind = self._entry.budget.kind
                raise InternalError(f"a release of {kind} budgets was asked for {budget.kind}")
        parts = [parts_of_question(question, budget, self._private_side) for question, budget in asked]
        self._asked += len(parts)
        self._events += sum(1 + len(own.further) for own in parts)
        questions = [self._entry.ask({**own.named, **event_to_dict(own.event)}) for own in parts]
        stored = [question.stored for question in questions]
        fresh = [place for place, answer in enumerate(stored) if answer is None]
        if fresh:
            self._entry.charge([(questions[place], parts[place].events) for place in fresh])
            noisy = [(questions[place], parts[place].noisy()) for place in fresh]
            for place, answer in zip(fresh, self._entry.store(noisy), strict=True):
                stored[place] = answer
        kept = [(own, answer) for own, answer in zip(parts, stored, strict=True) if answer is not None]
        for own, answer in kept:
            self._measured += own.shown(answer)
        return [own.read(answer) for own, answer in kept]

    @property
    def questions(self) -> int:
        """How many were asked so far."""
        return self._asked

    @property
    def events(self) -> int:
        """How many events they have in the entry."""
        return self._events

    @property
    def measurements(self) -> tuple[NoisyMarginal | NoisyResidual, ...]:
        """The tables of all answers so far of which a release shows its reader something, in order."""
        return tuple(self._measured)
