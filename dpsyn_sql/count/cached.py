"""PRIVATE: exact counts of one release, made in one pass and kept until its last question.

Methods ask for the same marginals several times: distances in each round, then the chosen tables. The
counts of one source are the same each time, so they are made once. If no others can be asked for, the encoded
table is dropped at once. Keeping counts releases nothing: the door adds fresh noise to every answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.count.counter import SqlCounter
from dpsyn_sql.planning.queries import MarginalQuery

MAX_KEPT_CELLS = 3 * 2**24
"""Planned marginals are kept up to this number of cells: 400 MB."""


class CachedCounter:
    """Counts everything planned at the first question and answers from memory (implements ``Counter``).

    Further marginals are counted when they are asked for, and kept from then on.

    Plans of more than ``most`` cells are counted question by question and not kept. The public domain
    decides this, not the source.

    Args:
        counter: counts what is not kept; closed as soon as it is not needed.
        queries: the marginals that will be asked for.
        most: the most cells to keep.
        further: whether others may be asked for.
    """

    def __init__(
        self,
        counter: SqlCounter,
        queries: Sequence[MarginalQuery],
        most: int = MAX_KEPT_CELLS,
        *,
        further: bool = False,
    ) -> None:
        self._counter = counter
        self._planned = dict.fromkeys(queries)
        self._keeps = counter.plan.cells <= most
        self._further = further
        self._kept: dict[MarginalQuery, NDArray[np.int64]] = {}

    def __repr__(self) -> str:
        return f"CachedCounter({self._counter!r})"

    def counted_as(self, query: MarginalQuery) -> MarginalQuery:
        """As ``SqlCounter.counted_as``."""
        return self._counter.counted_as(query)

    def count(self, queries: Sequence[MarginalQuery]) -> list[NDArray[np.int64]]:
        """As ``SqlCounter.count``; kept tables are handed out read-only. PRIVATE.

        Raises:
            InternalError: a query was not announced, or a code is wrong.
            EngineFailure: a statement failed.
        """
        if not self._keeps:
            return self._counter.count(queries)
        wanted = dict.fromkeys(query for query in queries if query not in self._kept)
        if any(query in self._planned for query in wanted):
            wanted = {**self._planned, **wanted}
        if wanted:
            for query, table in zip(wanted, self._counter.count(tuple(wanted)), strict=True):
                table.setflags(write=False)
                self._kept[query] = table
            if not self._further:
                self._counter.close()
        return [self._kept[query] for query in queries]

    def close(self) -> None:
        """Forget the counts and drop the table of codes; may be called twice."""
        self._kept = {}
        self._counter.close()
