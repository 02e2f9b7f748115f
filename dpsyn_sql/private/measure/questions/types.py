"""Types: noisy numbers of distinct units for each class of text in a column of text.

Claim: docs/privacy.md, "Types of text". A grid whose codes are the classes: a unit counts for at most m of
them, once each, and the charge is that of a grid.
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.text_types import CLASSES
from dpsyn_sql.planning.discovery import counted_per_unit
from dpsyn_sql.planning.queries import NoisyMarginal, TypesQuery
from dpsyn_sql.private.measure.calibrate import standard_deviation
from dpsyn_sql.private.measure.counting import PrivateSide, check_counts
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, column_named, digest
from dpsyn_sql.private.measure.questions.grid import grid_event


def question_parts(
    question: TypesQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyMarginal]:
    """All classes are answered, empty ones too.

    Raises:
        BudgetError: as ``grid_event``.
        InternalError: the domain is complete.
    """
    counter = private_side.columns()
    event = grid_event(counted_per_unit("types", private_side.rows_per_unit), budget)
    named = {**column_named("types", question.attr, "VARCHAR", None), "classes": digest(repr(CLASSES))}

    def noisy() -> Arrays:
        counts = counter.types(question)
        check_counts(counts, (len(CLASSES),))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisyMarginal:
        return NoisyMarginal((question.attr,), arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)
