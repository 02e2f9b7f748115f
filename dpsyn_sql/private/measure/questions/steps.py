"""Steps: noisy numbers of distinct units by the coarsest step that their values are multiples of.

Claim: docs/privacy.md, "Steps". A unit counts for one step, whether it has one row or k: L1 and L2
sensitivity 1.
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.planning.discovery import counted_per_unit
from dpsyn_sql.planning.queries import NoisySteps, StepQuery
from dpsyn_sql.private.measure.calibrate import standard_deviation
from dpsyn_sql.private.measure.counting import PrivateSide, check_counts
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, column_named
from dpsyn_sql.private.measure.questions.grid import grid_event


def question_parts(
    question: StepQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisySteps]:
    """All steps are answered, those that no value fits included.

    Raises:
        BudgetError: the share is nothing.
        InternalError: the domain is complete.
    """
    counter, steps = private_side.columns(), question.steps
    event = grid_event(counted_per_unit("steps", private_side.rows_per_unit), budget)
    named = {
        **column_named("steps", question.attr, question.sql_type, question.source),
        "steps": [str(step) for step in steps],
    }

    def noisy() -> Arrays:
        counts = counter.steps(question)
        check_counts(counts, (len(steps) + 1,))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisySteps:
        return NoisySteps(steps, arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)
