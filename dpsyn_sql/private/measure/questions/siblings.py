"""Siblings: noisy tables of ordered pairs of distinct rows of one unit.

Claim: docs/privacy.md, "Siblings". A unit adds at most WEIGHT in all to each of m tables, and no other unit
has a say in what it adds: L1 sensitivity m WEIGHT, L2 sensitivity sqrt(m) WEIGHT. A repeated table counts
each time. The tables are not shown: they are means over units of two rows or more, and no marginals.
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.planning.queries import NoisyMarginal, Siblings
from dpsyn_sql.private.measure.calibrate import standard_deviation
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, tables_named
from dpsyn_sql.private.measure.questions.marginals import marginals_event
from dpsyn_sql.source.relation import WEIGHT


def question_parts(
    question: Siblings, budget: Budget, private_side: PrivateSide
) -> QuestionParts[list[NoisyMarginal]]:
    """All tables get the same noise.

    Raises:
        BudgetError: the share is nothing.
        InternalError: the domain is not complete, a query of other than two attributes, or maps that break
            the claim.
        PlanTooLarge: more cells than one question may have.
    """
    counts, queries = private_side.marginals(), tuple(question.queries)
    counts.check_maps(queries)
    counts.check_pairs(queries)
    counts.check_cells(queries)
    event = marginals_event(len(queries), WEIGHT, budget)

    def noisy() -> Arrays:
        return private_side.noisy(counts.siblings(queries), event)

    def read(arrays: Arrays) -> list[NoisyMarginal]:
        sigma = standard_deviation(event)
        pairs = zip(queries, arrays, strict=True)
        return [NoisyMarginal(query.attrs, table, sigma, query.maps) for query, table in pairs]

    return QuestionParts(event, tables_named("siblings", queries), noisy, read)
