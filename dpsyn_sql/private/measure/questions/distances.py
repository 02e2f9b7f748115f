"""Distances: noisy L1 distances of marginals to public tables.

Claim: docs/privacy.md, "Distances". A row changes each of m distances by at most 1, up or down: L1
sensitivity m, L2 sensitivity sqrt(m); the k rows of a unit at most k times that.

References are not part of the question: a fit makes them from earlier, stored answers, and its last bits
differ between machines. A replay hands out the measured distances, whatever its own references are.
"""

from __future__ import annotations

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.errors import BudgetError
from dpsyn_sql.planning.queries import Distances
from dpsyn_sql.private.measure.calibrate import counts_event
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, tables_named


def distances_event(distances: int, rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of measuring this many distances within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("distances have no budget: raise epsilon")
    return counts_event(distances * rows_per_unit, distances * rows_per_unit**2, share)


def question_parts(
    question: Distances, budget: Budget, private_side: PrivateSide
) -> QuestionParts[list[int]]:
    """All distances get the same noise.

    Raises:
        BudgetError: as ``distances_event``.
        InternalError: the domain is not complete, no queries, or references that are not int64 tables of
            the full shape, or labels that break the claim.
    """
    counts, queries = private_side.marginals().with_labels(question.labels), tuple(question.queries)
    references = counts.checked_references(queries, tuple(question.references))
    event = distances_event(len(queries), private_side.rows_per_unit, budget)

    def noisy() -> Arrays:
        return private_side.noisy([counts.distances(queries, references)], event)

    def read(arrays: Arrays) -> list[int]:
        return [int(distance) for distance in arrays[0]]

    return QuestionParts(event, tables_named("distance", queries, counts.labels), noisy, read)
