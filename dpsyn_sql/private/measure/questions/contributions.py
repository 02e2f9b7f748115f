"""Contributions: noisy numbers of units with 1, 2, ... rows after the bound.

Claim: docs/privacy.md, "Rows per unit". A unit counts in one cell, whether it has one row or k:
sensitivity 1.
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.planning.queries import ContributionQuery, NoisyContributions
from dpsyn_sql.private.measure.calibrate import counts_event, refuse_no_discovery, standard_deviation
from dpsyn_sql.private.measure.counting import PrivateSide, check_counts
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts


def contributions_event(share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting units by their number of rows within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    refuse_no_discovery(share)
    return counts_event(1, 1, share)


def question_parts(
    question: ContributionQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyContributions]:
    """One cell for each number of rows.

    Raises:
        BudgetError: as ``contributions_event``.
        InternalError: the domain is complete.
    """
    counter, event = private_side.columns(), contributions_event(budget)

    def noisy() -> Arrays:
        counts = counter.contributions(question)
        check_counts(counts, (question.most,))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisyContributions:
        return NoisyContributions(arrays[0], standard_deviation(event))

    named = {"ask": "discover", "what": "contributions", "most": question.most}
    return QuestionParts(event, named, noisy, read)
