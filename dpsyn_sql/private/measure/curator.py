"""THE DOOR: the only way from exact counts to a method.

A question waits until an answer is read. Its steps then are: look for a stored answer, charge the ledger,
count, add noise, store the noisy answer, hand out what is stored. No room outside ``private``
sees an exact count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Generic

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import event_to_dict
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.questions import StoredQuestion
from dpsyn_sql.planning.asking import Asked, Handle, Reserve, Step
from dpsyn_sql.planning.queries import Answer, NoisyMarginal, NoisyResidual, Question
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.counting import Arrays, Counter, Counts, PrivateSide, QuestionParts
from dpsyn_sql.private.measure.noise import NoiseSource
from dpsyn_sql.private.measure.questions import parts_of_question, settled
from dpsyn_sql.private.measure.stage import Stage

_MOST_HELD = 2**22
# Cells of answers from which on they are stored before more is counted.


class _Waiting(Generic[Answer]):
    """The handle of a question; ``stored``: its answer as the ledger keeps it, once there is one."""

    def __init__(self, door: LocalCurator, parts: QuestionParts[Answer]) -> None:
        self._door, self.parts = door, parts
        self.stored: Arrays | None = None

    def __repr__(self) -> str:
        return f"Handle({self.parts.named['ask']})"

    @property
    def named(self) -> dict[str, Any]:
        """The question as the ledger numbers it."""
        return {**self.parts.named, **event_to_dict(self.parts.event)}

    def read(self) -> Answer:
        """The noisy answer; the first look answers all questions that wait.

        Raises:
            InternalError: its table was left before anybody looked.
        """
        if self.stored is None:
            self._door.answer()
        if self.stored is None:
            raise InternalError("an answer is read after its table was left")
        return self.parts.read(self.stored)

    def shown(self) -> Sequence[NoisyMarginal | NoisyResidual]:
        """The tables that a release shows of it."""
        return () if self.stored is None else self.parts.shown(self.stored)


Opening = Callable[[tuple[Step, ...]], Counter]
"""PRIVATE: makes what counts the rows of a table, of what is asked of it."""


class LocalCurator:
    """Answers questions about one source. One ledger entry numbers and pays them.

    Holds the counters (private) and nothing else of the source; its repr shows neither. While the domain
    is not complete, it answers only questions of discovery (``discover``); then marginals of one table after
    the other (``open``).
    """

    def __init__(self, entry: SqliteEntry, noise: NoiseSource) -> None:
        self._private_side = PrivateSide(1, noise, None, None)
        self._entry = entry
        self._asked = self._events = 0
        self._stage: Stage | None = None
        self._pending: list[_Waiting[Any]] = []
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
        self._pending, self._stage = [], Stage(None)
        self._private_side = replace(self._private_side, rows_per_unit=rows_per_unit, unknown=counter)

    def open(self, opening: Opening, domain: Domain, rows_per_unit: int | None = None) -> None:
        """The domain is complete: from now on marginals may be asked for, and nothing can be discovered. Each
        table of a tree is opened in turn.

        ``opening``: makes the counter of its rows, once something is counted, of what was asked and reserved
        before the first look. ``rows_per_unit``: what a unit adds to a table at most, where it is not as
        before.
        """
        self._pending, self._stage = [], (stage := Stage(domain))
        rows = self._private_side.rows_per_unit if rows_per_unit is None else rows_per_unit
        counts = Counts(cache(lambda: opening(tuple(stage.steps))), domain)
        self._private_side = replace(self._private_side, rows_per_unit=rows, counts=counts, unknown=None)

    def reserve(self, reserve: Reserve) -> None:
        """Say before the first look what may be asked of the table after it, or before any question of its
        discovery what all of them cost at most.

        Raises:
            InternalError: an answer was read already, or no table is open.
        """
        if self._stage is None:
            raise InternalError("something is reserved before a table is open")
        self._stage.reserve(reserve)

    def ask(self, question: Question[Answer], budget: Budget, name: str = "") -> Handle[Answer]:
        """A handle of the noisy answer, at a cost of at most ``budget``; in a replay of the stored answer.

        Nothing is charged, counted or looked up before a handle is read. The file of each question in
        ``measure/questions`` states its claim.

        Raises:
            BudgetError: the budget cannot pay for the question.
            InternalError: the door does not know the question or may not answer it now, it does not lie
                within the plan (``Stage.admit``), or the budget is of another kind than the entry's.
        """
        question = settled(question)
        if type(budget) is not Budget:
            raise InternalError("a question is paid for with something that is no budget")
        if budget.kind != self._entry.budget.kind:  # it chooses the noise, the entry's sets its price
            kind = self._entry.budget.kind
            raise InternalError(f"a release of {kind} budgets was asked for {budget.kind}")
        handle = _Waiting(self, parts_of_question(question, budget, self._private_side))
        if self._stage is not None:
            self._stage.admit(Asked(question, budget, name), tuple(getattr(question, "labels", ())))
        self._pending.append(handle)
        return handle

    def answer(self) -> None:
        """Answer all questions that wait, in the order in which they were asked.

        All are charged before the first is counted. docs/privacy.md ("One door, charged first", "The ledger")
        says why the order of the steps matters.

        Raises:
            PrivacyBudgetExceeded: the entry does not hold the cost of all; nothing was charged or counted.
            ReleaseChanged: the stored question of a number differs.
        """
        if self._stage is not None:
            self._stage.look()
        waiting, self._pending = self._pending, []
        questions = [self._entry.ask(handle.named) for handle in waiting]
        self._asked += len(waiting)
        self._events += sum(len(handle.parts.events) for handle in waiting)
        fresh = list[tuple[StoredQuestion, _Waiting[Any]]]()
        for question, handle in zip(questions, waiting, strict=True):
            handle.stored = question.stored
            if handle.stored is None:
                fresh.append((question, handle))
        if fresh:
            self._entry.charge([(question, handle.parts.events) for question, handle in fresh])
            self._count(fresh)
        for handle in waiting:
            self._measured += handle.shown()

    def _count(self, charged: Sequence[tuple[StoredQuestion, _Waiting[Any]]]) -> None:
        """Count, add noise, and store; answers of many cells are stored a few at a time."""
        noisy, cells = list[tuple[StoredQuestion, Arrays]](), 0
        for counted, (question, handle) in enumerate(charged, start=1):
            noisy.append((question, handle.parts.noisy()))
            cells += sum(table.size for table in noisy[-1][1])
            if cells > _MOST_HELD or counted == len(charged):
                answered = charged[counted - len(noisy) : counted]
                for (_, waiting), stored in zip(answered, self._entry.store(noisy), strict=True):
                    waiting.stored = stored
                noisy, cells = [], 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was asked and reserved of the table before the first look."""
        return () if self._stage is None else tuple(self._stage.steps)

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
