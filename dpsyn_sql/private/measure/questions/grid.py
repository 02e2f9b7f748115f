"""Grid: noisy numbers of distinct units for each code of a public grid over a column.

Claim: docs/privacy.md, "Grids". A unit counts for at most m codes, once each: m = 1 where a row is the unit,
ceil(sqrt(k)) for units of k rows; L1 sensitivity m, L2 sensitivity sqrt(m).
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.planning.discovery import counted_per_unit
from dpsyn_sql.planning.queries import GridQuery, NoisyMarginal
from dpsyn_sql.private.measure.calibrate import counts_event, refuse_no_discovery, standard_deviation
from dpsyn_sql.private.measure.counting import PrivateSide, check_counts
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, column_named, digest


def grid_event(codes_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting distinct units per code of a grid within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    refuse_no_discovery(share)
    return counts_event(codes_per_unit, codes_per_unit, share)


def question_parts(
    question: GridQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyMarginal]:
    """All codes are answered, empty ones included.

    Raises:
        BudgetError: as ``grid_event``.
        InternalError: the domain is complete.
    """
    counter, grid = private_side.columns(), question.grid
    event = grid_event(counted_per_unit("grid", private_side.rows_per_unit), budget)
    together = (question.owners,) if question.owners else ()
    cuts = digest(repr((grid.kind, grid.labels, grid.edges, grid.other, grid.nullable, *together)))
    named = {**column_named("grid", grid.name, grid.sql_type, grid.source), "codes": grid.size, "cuts": cuts}

    def noisy() -> Arrays:
        counts = counter.cells(question)
        check_counts(counts, (grid.size,))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisyMarginal:
        return NoisyMarginal((grid.name,), arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)
