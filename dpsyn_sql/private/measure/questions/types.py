"""Types: noisy numbers of distinct units for each class of text in a column of text.

Claim: docs/privacy.md, "Types of text". A grid whose codes are the classes: a unit counts for at most m of
them, once each, and the charge is that of a grid.
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.text_types import CLASSES
from dpsyn_sql.planning.discovery import things_per_unit
from dpsyn_sql.planning.queries import NoisyMarginal, TypesQuery
from dpsyn_sql.private.measure.calibrate import standard_deviation
from dpsyn_sql.private.measure.counting import Behind, check_counts
from dpsyn_sql.private.measure.inquiry import Arrays, Inquiry, column_named, digest
from dpsyn_sql.private.measure.questions.grid import grid_event


def inquiry(question: TypesQuery, budget: Budget, behind: Behind) -> Inquiry[NoisyMarginal]:
    """All classes are answered, empty ones too.

    Raises:
        BudgetError: as ``grid_event``.
        InternalError: the domain is complete.
    """
    counter = behind.columns()
    event = grid_event(things_per_unit("types", behind.rows_per_unit), budget)
    named = {**column_named("types", question.attr, "VARCHAR", None), "classes": digest(repr(CLASSES))}

    def noisy() -> Arrays:
        counts = counter.types(question)
        check_counts(counts, (len(CLASSES),))
        return behind.noisy([counts], event)

    def read(arrays: Arrays) -> NoisyMarginal:
        return NoisyMarginal((question.attr,), arrays[0], standard_deviation(event))

    return Inquiry(event, named, noisy, read)
