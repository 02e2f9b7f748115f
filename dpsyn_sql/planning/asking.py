"""How questions are asked: an answer is a handle, and nothing is charged or counted before one is read.

A recipe asks. Until it reads an answer, all that it asks follows from public facts; before it reads one, it
reserves what it may ask after that. A plan is therefore the recipe itself, run to its first look
(``planned_steps``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, cast

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import Answer, MarginalQuery, Question, Residuals, Siblings, TreeQuery


class Handle(Protocol[Answer]):
    """The answer to a question that was asked."""

    def read(self) -> Answer:
        """The noisy answer, the same each time. The first look charges, counts and stores all that was asked
        and not yet answered, in the order in which it was asked.

        Raises:
            PrivacyBudgetExceeded: the ledger does not hold the cost; nothing was counted.
        """


@dataclass(frozen=True, slots=True)
class Answered(Generic[Answer]):
    """A handle of what is known already."""

    answer: Answer

    def read(self) -> Answer:
        """As it is."""
        return self.answer


class Asked(NamedTuple):
    """A question with its budget, and its name in the plan: ``door.ask(*asked)``."""

    question: Question[Any]
    budget: Budget
    name: str

    @property
    def queries(self) -> tuple[MarginalQuery, ...]:
        """The marginals that it is about; tables of pairs of rows are none."""
        if isinstance(self.question, Siblings):
            return ()
        return tuple(getattr(self.question, "queries", getattr(self.question, "candidates", ())))

    @property
    def residuals(self) -> bool:
        """Whether it asks for residuals, not for whole marginals."""
        return isinstance(self.question, Residuals)


@dataclass(frozen=True, slots=True)
class Reserve:
    """What may be asked after the first look, within ``budget``: about ``queries``, over their codes or bins.

    Also about other marginals of at most ``most_attributes`` attributes and ``most_cells`` cells each,
    ``together`` cells in all: too many to count them ahead. Noisy answers decide which are asked for, and
    these are counted then, over bins if they are asked for over bins: cells are those of the table that is
    asked for. ``tables``: how many are measured, if that is known. ``pairs_of_rows``: tables of pairs of rows
    of one unit may be asked for.
    """

    name: str
    budget: Budget
    queries: tuple[MarginalQuery, ...] = ()
    most_attributes: int = 0
    most_cells: int = 0
    together: int = 0
    tables: int | None = None
    pairs_of_rows: bool = False

    @property
    def further(self) -> bool:
        """Whether other marginals than ``queries`` may be asked for."""
        return self.most_attributes > 0

    def holds(self, query: MarginalQuery, domain: Domain) -> bool:
        """Whether a marginal is within the limits on those that are not counted ahead."""
        return len(query.attrs) <= self.most_attributes and math.prod(query.shape(domain)) <= self.most_cells

    def pairs_assumed(self, domain: Domain) -> int:
        """The number of tables that explains a plan: ``tables``, else the number of attributes, or of all
        tables if fewer. How many further marginals there are is not known: then the number of attributes."""
        if self.tables is not None:
            return self.tables
        return min(len(domain.names), len(self.queries) or len(domain.names))


Step = Asked | Reserve


class Door(Protocol):
    """The only way from private data to a method."""

    def ask(self, question: Question[Answer], budget: Budget, name: str = "") -> Handle[Answer]:
        """The answer to a question of ``planning.queries``, at a cost of at most ``budget``.

        ``name``: of the question in the plan; those after the first look have the names of the reserves.

        Raises:
            BudgetError: the budget cannot pay for such a question; nothing was charged.
            InternalError: it comes after the first look, and lies in no reserve.
        """

    def reserve(self, reserve: Reserve) -> None:
        """Say before the first look what may be asked after it.

        Raises:
            InternalError: an answer was read already.
        """


def tables_of(handles: Iterable[Handle[list[Answer]]]) -> list[Answer]:
    """All tables of some answers, in order."""
    return [table for handle in handles for table in handle.read()]


# -- plans -------------------------------------------------------------------------------------------


class FirstLook(BaseException):
    """A recipe reads an answer, and nobody has asked for one: what it asks from here on depends on it."""


class Unread:
    """A handle of what is not known while a release is planned."""

    def read(self) -> Any:
        """Raises:
        FirstLook: always.
        """
        raise FirstLook


UNREAD = Unread()


class _Planning:
    """A door that notes what it is asked, and knows no answer."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def ask(self, question: Question[Answer], budget: Budget, name: str = "") -> Handle[Answer]:
        self.steps.append(Asked(question, budget, name))
        return UNREAD

    def reserve(self, reserve: Reserve) -> None:
        self.steps.append(reserve)


def planned_steps(run: Callable[[Door], object]) -> tuple[Step, ...]:
    """All that a recipe asks and reserves before its first look; nothing is read, charged or counted."""
    door = _Planning()
    with suppress(FirstLook):
        run(door)
    return tuple(door.steps)


class Recalled:
    """A door of tables that are there already: a recipe whose questions are all known gets them in order."""

    def __init__(self, tables: Iterable[object]) -> None:
        self._tables = iter(tables)

    def ask(self, question: Question[Answer], budget: Budget, name: str = "") -> Handle[Answer]:
        """The next tables, as many as the question asks for."""
        number = len(Asked(question, budget, name).queries)
        return Answered(cast(Answer, [next(self._tables) for _ in range(number)]))

    def reserve(self, reserve: Reserve) -> None:
        """Raises:
        InternalError: always; no question depends on an answer.
        """
        raise InternalError(f"{reserve.name} is reserved where all questions are known")


# -- looks ---------------------------------------------------------------------------------------------

# One question about a column that nobody declared, as it stands in a plan: a look at it, and its price.

Ask = Literal[
    "rows",
    "mixed",
    "types",
    "keys",
    "again",
    "prefixes",
    "values",
    "grid",
    "steps",
    "parts",
    "cells",
    "tree",
    "leaves",
    "total",
    "contributions",
]


def counted_per_unit(ask: Ask, rows_per_unit: int) -> int:
    """How many keys, or codes of a grid, a unit of up to k rows counts for.

    Signal over noise of a unit with d different ones is proportional to min(m, d) / sqrt(m) for Gaussian
    noise: m = sqrt(k) is within k^(1/4) of the best whatever d is. There are few steps, so d is small: one.
    """
    return 1 if ask in ("steps", "contributions") else math.isqrt(rows_per_unit - 1) + 1


@dataclass(frozen=True, slots=True)
class Look:
    """One question of discovery: ``attr`` is the column, None for the number of units, or of their rows.

    ``budget``: what it costs at most. ``length``: of the beginnings of text that are asked for, 0 for every
    other question. ``tree``: the question, for "tree", "leaves" and "total" (the rows below its root). A key
    of several attributes goes by the name of its first one.
    """

    ask: Ask
    attr: str | None
    budget: Budget
    length: int = 0
    tree: TreeQuery | None = None
