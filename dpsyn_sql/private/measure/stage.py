"""What is asked of one table: all of it until the first look, and then what was reserved.

The law of a plan: what is asked lies within it. The door enforces it before it charges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.asking import Asked, Reserve, Step
from dpsyn_sql.planning.plan import queries_of
from dpsyn_sql.planning.queries import MarginalQuery, Siblings
from dpsyn_sql.planning.row_labels import NearestLabel, labelled


@dataclass
class Stage:
    """The questions about one table over ``domain``; None: its columns are learnt, and all that this asks
    costs no more than was reserved. ``steps``: what was asked and reserved before the first look."""

    domain: Domain | None
    steps: list[Step] = field(default_factory=list)
    _left: int | None = None
    _cells: int = 0
    _further: set[MarginalQuery] = field(default_factory=set)

    def reserve(self, reserve: Reserve) -> None:
        """Say what may be asked after the first look.

        Raises:
            InternalError: an answer was read already.
        """
        if self._left is not None:
            raise InternalError(f"{reserve.name!r} is reserved after the first look")
        self.steps.append(reserve)
        if self.domain is None:
            self.look()

    def look(self) -> None:
        """An answer is read: from here on only what was reserved may be asked."""
        if self._left is None:
            self._left = sum(step.budget.amount for step in self.steps if isinstance(step, Reserve))

    def admit(self, asked: Asked, labels: Sequence[NearestLabel]) -> None:
        """Accept a question that lies within the plan. Marginals with labels count each time.

        Raises:
            InternalError: it comes after the first look, and costs more than is left of what was reserved, or
                is about marginals that were not.
        """
        if self._left is None and self.domain is not None:
            self.steps.append(asked)
            return
        reserves = [step for step in self.steps if isinstance(step, Reserve)]
        if self._left is None or asked.budget.amount > self._left:
            raise InternalError("a question costs more than was reserved")
        if self.domain is None:
            pass  # a look at a column names no marginal
        elif isinstance(asked.question, Siblings):
            if not any(reserve.pairs_of_rows for reserve in reserves):
                raise InternalError("pairs of rows are asked for that were not reserved")
        else:
            self._check_marginals(asked.queries, labelled(self.domain, labels), reserves, repeated=not labels)
        self._left -= asked.budget.amount

    def _check_marginals(
        self, queries: Sequence[MarginalQuery], domain: Domain, reserves: Sequence[Reserve], *, repeated: bool
    ) -> None:
        """Marginals that are not counted ahead keep, together with all earlier ones, to what was reserved.

        ``repeated``: those that were asked for before cost no cells.
        """
        planned = set(queries_of(self.steps))
        cells = {q: math.prod(q.shape(domain)) for q in queries if q.original not in planned}
        fresh = sum(size for query, size in cells.items() if not (repeated and query in self._further))
        within = all(any(reserve.holds(query, domain) for reserve in reserves) for query in cells)
        if not within or self._cells + fresh > sum(reserve.together for reserve in reserves):
            raise InternalError("a marginal is asked for that was not reserved")
        self._cells += fresh
        if repeated:
            self._further |= cells.keys()
