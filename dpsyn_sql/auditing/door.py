"""The real door in front of toy rows, and a witness who knows the exact values of both tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent
from dpsyn_sql.accounting.pld import AnsweredQuestion
from dpsyn_sql.auditing.testing import Toy
from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.asking import Door, Handle, Reserve
from dpsyn_sql.planning.plan import Plan, ReleaseKey
from dpsyn_sql.planning.queries import (
    Answer,
    Choice,
    Distances,
    FamilyChoice,
    MarginalQuery,
    Marginals,
    NoisyMarginal,
    NoisyResidual,
    Question,
    Residuals,
    Siblings,
)
from dpsyn_sql.private.measure.curator import LocalCurator
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.questions.tables import whole_residuals
from dpsyn_sql.private.measure.scores import scored

_RUNS_PER_LEDGER = 50

Ask = Callable[[Plan, Door], object]

_Noted = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


class ToyDoor:
    """The real curator in front of toy counts; each run is a release with a debit of its own."""

    def __init__(self, plan: Plan, rows: Toy) -> None:
        self._plan, self._rows, self._ledger = plan, rows, MemoryLedger()
        self._counters = {within: rows.counter(within=within) for within in (False, True)}
        self._opened = 0

    def close(self) -> None:
        """Forget the ledger."""
        self._ledger.close()

    def run(self, ask: Ask, *, within: bool) -> Witness:
        """A whole run on the table without the unit or with it, and all that was asked in it."""
        with self._open(within) as (curator, entry):
            witness = Witness(curator, self._rows)
            ask(self._plan, witness)
            witness.charged(entry)
        return witness

    @contextmanager
    def _open(self, within: bool) -> Iterator[tuple[LocalCurator, SqliteEntry]]:
        """An account for each run, since thousands of debits may be more than one can hold; and a new
        ledger now and then, since a debit looks at all accounts."""
        self._opened += 1
        if self._opened % _RUNS_PER_LEDGER == 0:
            self._ledger.close()
            self._ledger = MemoryLedger()
        key = ReleaseKey(f"audit {self._opened}", "audit", None, {})
        with self._ledger.open_release(key, self._plan.budget) as entry:
            domain, limit = self._plan.domain, self._plan.source.unit.sensitivity
            curator = LocalCurator(entry, ExactNoise())
            curator.open(lambda _: self._counters[within], domain, limit)
            yield curator, entry


class Witness:
    """A curator that passes every question on and notes the exact values of both tables and the answer.

    ``answered``: filled by ``charged``, when the run is over. ``questions``: the marginals measured.
    """

    def __init__(self, curator: Door, rows: Toy) -> None:
        self._curator, self._rows = curator, rows
        self._asked: list[tuple[object, Handle[Any]]] = []
        self.questions: list[tuple[tuple[MarginalQuery, ...], Budget]] = []
        self.compared = 0
        self.answered: list[AnsweredQuestion] = []

    def reserve(self, reserve: Reserve) -> None:
        """As the curator."""
        self._curator.reserve(reserve)

    def ask(self, question: Question[Answer], budget: Budget, name: str = "") -> Handle[Answer]:
        """As the curator answers."""
        if isinstance(question, Marginals | Residuals):
            self.questions.append((tuple(question.queries), budget))
        if isinstance(question, Distances):
            self.compared += len(question.queries)
        handle = self._curator.ask(question, budget, name)
        self._asked.append((question, handle))
        return handle

    def _seen(self, question: object, answer: Any) -> _Noted:
        """The exact values without the unit and with it, and what was answered."""
        if isinstance(question, Marginals):
            return _cells(self._rows.with_labels(question.labels), question.queries, answer)
        if isinstance(question, Siblings):
            return _pairs(self._rows, question.queries, answer)
        if isinstance(question, Residuals):
            return _residuals(self._rows, question.queries, answer)
        if isinstance(question, Distances):
            return *_distances(self._rows, question.queries, question.references), _whole(answer)
        if isinstance(question, Choice):
            without, within = _distances(self._rows, question.candidates, question.references)
            allowed = _whole(question.allowances or [0] * len(question.candidates))
            return without - allowed, within - allowed, _whole(answer)
        if isinstance(question, FamilyChoice):
            return *_scores(self._rows, question), _whole([answer])
        raise InternalError(
            f"the audit does not know the exact answer to a question {type(question).__name__} on its two "
            "tables; add it to Witness in auditing/door.py"
        )

    def charged(self, entry: SqliteEntry) -> None:
        """Each question with the event that was charged for it: the noise that it should have had."""
        noted_all = [self._seen(question, handle.read()) for question, handle in self._asked]
        for event, noted in zip(entry.events, noted_all, strict=True):
            if not isinstance(event, GaussianEvent | LaplaceEvent | SelectionEvent):
                raise InternalError("a method charged for something other than marginals or a choice")
            self.answered.append(AnsweredQuestion(event, *noted))


def _cells(rows: Toy, queries: Sequence[MarginalQuery], tables: Sequence[NoisyMarginal]) -> _Noted:
    """Of each table only the cell of the unit's rows differs, by their number."""
    cells = [rows.place(query) for query in queries]
    without = _whole(rows.table(query)[cell] for query, cell in zip(queries, cells, strict=True))
    answer = _whole(table.values[cell] for table, cell in zip(tables, cells, strict=True))
    return without, without + rows.unit_rows, answer


def _pairs(rows: Toy, queries: Sequence[MarginalQuery], tables: Sequence[NoisyMarginal]) -> _Noted:
    """Of each table only the cell of the unit's pairs differs."""
    cells = [rows.place(query) for query in queries]
    without, within = (
        _whole(
            rows.siblings(query, within=with_unit)[cell] for query, cell in zip(queries, cells, strict=True)
        )
        for with_unit in (False, True)
    )
    return without, within, _whole(table.values[cell] for table, cell in zip(tables, cells, strict=True))


def _residuals(rows: Toy, queries: Sequence[MarginalQuery], tables: Sequence[NoisyResidual]) -> _Noted:
    """Every number differs."""
    of_sides: list[list[NDArray[np.int64]]] = [[], []]
    for query in queries:
        table = rows.table(query).copy()
        for side, more in enumerate((0, rows.unit_rows)):
            table[rows.place(query)] += more
            of_sides[side].append(whole_residuals(table).ravel())
    answer = np.concatenate([table.values.ravel() for table in tables])
    return np.concatenate(of_sides[0]), np.concatenate(of_sides[1]), answer


def _scores(rows: Toy, question: FamilyChoice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every family, without the unit and with it."""
    of_sides: list[list[int]] = [[], []]
    for query, child in zip(question.candidates, question.children, strict=True):
        table, axis = rows.table(query).copy(), query.attrs.index(child)
        for side, more in enumerate((0, rows.unit_rows)):
            table[rows.place(query)] += more
            of_sides[side].append(scored(table, axis, question.score, question.bits))
    return _whole(of_sides[0]), _whole(of_sides[1])


def _distances(
    rows: Toy, queries: Sequence[MarginalQuery], references: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = zip(queries, references, strict=True)
    of_sides = np.array([rows.distances(query, table) for query, table in pairs], dtype=np.int64)
    return of_sides[:, 0], of_sides[:, 1]


def _whole(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)
