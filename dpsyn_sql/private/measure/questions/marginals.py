"""Marginals: noisy full contingency tables.

Claim: docs/privacy.md, "Marginals" and "Marginals over bins". A row adds 1 to one cell of each of m tables:
L1 sensitivity m, L2 sensitivity sqrt(m); the k rows of a unit at most k times that. A repeated marginal
counts each time. A label is one more column (docs/privacy.md, "Labels"); tables with one are not shown.
"""

from __future__ import annotations

from functools import lru_cache

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.errors import BudgetError
from dpsyn_sql.planning.queries import Marginals, NoisyMarginal
from dpsyn_sql.private.measure.calibrate import counts_event, standard_deviation
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, tables_named


@lru_cache(maxsize=1000)
def marginals_event(tables: int, rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of measuring ``tables`` full marginals within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("a step of the plan has no budget: raise epsilon, or ask fewer marginals")
    return counts_event(tables * rows_per_unit, tables * rows_per_unit**2, share)


def question_parts(
    question: Marginals, budget: Budget, private_side: PrivateSide
) -> QuestionParts[list[NoisyMarginal]]:
    """All tables get the same noise.

    Raises:
        BudgetError: as ``marginals_event``.
        InternalError: the domain is not complete, or maps or labels that break the claim.
        PlanTooLarge: more cells than one question may have.
    """
    counts, queries = private_side.marginals().with_labels(question.labels), tuple(question.queries)
    counts.check_maps(queries)
    counts.check_cells(queries)
    event = marginals_event(len(queries), private_side.rows_per_unit, budget)

    def noisy() -> Arrays:
        return private_side.noisy(counts.exact(queries), event)

    def read(arrays: Arrays) -> list[NoisyMarginal]:
        sigma = standard_deviation(event)
        pairs = zip(queries, arrays, strict=True)
        return [NoisyMarginal(query.attrs, table, sigma, query.maps) for query, table in pairs]

    def shown(arrays: Arrays) -> list[NoisyMarginal]:
        return [table for table in read(arrays) if hidden.isdisjoint(table.attrs)]

    hidden = {label.name for label in counts.labels}
    return QuestionParts(event, tables_named("measure", queries, counts.labels), noisy, read, shown)
