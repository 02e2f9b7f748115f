"""Questions about tables of codes: marginals, their residuals, pairs of rows, and distances to public tables.

Marginals: noisy full contingency tables.

Claim: docs/privacy.md, "Marginals" and "Marginals over bins". A row adds 1 to one cell of each of m tables:
L1 sensitivity m, L2 sensitivity sqrt(m); the k rows of a unit at most k times that. A repeated marginal
counts each time. A label is one more column (docs/privacy.md, "Labels"); tables with one are not shown.

Residuals: what marginals say beyond their own margins, noisy.

Claim: docs/privacy.md, "Residual marginals". The table x of sizes k_1 ... k_m becomes the integers
(k_1 I - J) x ... x (k_m I - J) x, J the matrix of ones. One row changes them by exactly
prod k_i (k_i - 1) in squared L2, the k rows of a unit by at most k^2 times that; the squares of several
tables add up.

Siblings: noisy tables of ordered pairs of distinct rows of one unit.

Claim: docs/privacy.md, "Siblings". A unit adds at most WEIGHT in all to each of m tables, and no other unit
has a say in what it adds: L1 sensitivity m WEIGHT, L2 sensitivity sqrt(m) WEIGHT. A repeated table counts
each time. The tables are not shown: they are means over units of two rows or more, and no marginals.

Distances: noisy L1 distances of marginals to public tables.

Claim: docs/privacy.md, "Distances". A row changes each of m distances by at most 1, up or down: L1
sensitivity m, L2 sensitivity sqrt(m); the k rows of a unit at most k times that.

References are not part of the question: a fit makes them from earlier, stored answers, and its last bits
differ between machines. A replay hands out the measured distances, whatever its own references are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.planning.queries import (
    Distances,
    Marginals,
    NoisyMarginal,
    NoisyResidual,
    Residuals,
    Siblings,
    holds_residuals,
    largest_count,
)
from dpsyn_sql.private.measure.counting import Arrays, PrivateSide, QuestionParts, tables_named
from dpsyn_sql.private.measure.noise import counts_event, gaussian_event, standard_deviation
from dpsyn_sql.source.relation import WEIGHT

# -- marginals -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def marginals_event(tables: int, rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of measuring ``tables`` full marginals within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("a step of the plan has no budget: raise epsilon, or ask fewer marginals")
    return counts_event(tables * rows_per_unit, tables * rows_per_unit**2, share)


def marginals_question_parts(
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


# -- residuals of marginals ----------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def residuals_event(shapes: Sequence[tuple[int, ...]], rows_per_unit: int, share: Budget) -> GaussianEvent:
    """The event of measuring the residuals of marginals of these shapes within ``share``.

    Raises:
        BudgetError: the share is nothing.
        InternalError: a pure budget, which buys no Gaussian noise, or a shape without residuals.
    """
    if share.kind == "pure":
        raise InternalError("a pure budget measures whole marginals: residuals gain nothing by Laplace noise")
    if not shapes or not all(shape and min(shape) > 1 for shape in shapes):
        raise InternalError("residuals need a marginal, and two codes of each of its attributes")
    if share.amount == 0:
        raise BudgetError("a step of the plan has no budget: raise epsilon, or ask fewer marginals")
    one_row = sum(math.prod(size * (size - 1) for size in shape) for shape in shapes)
    return gaussian_event(one_row * rows_per_unit**2, share, lattice=1)  # fine as they are


def residuals_question_parts(
    question: Residuals, budget: Budget, private_side: PrivateSide
) -> QuestionParts[list[NoisyResidual]]:
    """All tables get noise of the same scale.

    Raises:
        BudgetError: as ``residuals_event``.
        InternalError: as ``residuals_event``; the domain is not complete, maps that break the claim, or too
            many cells for counts as large as units make them.
    """
    counts, queries = private_side.marginals(), tuple(question.queries)
    counts.check_maps(queries)
    counts.check_cells(queries)
    shapes = tuple(query.shape(counts.domain) for query in queries)
    event = residuals_event(shapes, private_side.rows_per_unit, budget)
    if not all(holds_residuals(shape, private_side.rows_per_unit) for shape in shapes):
        raise InternalError(
            "residuals of tables with so many cells would cut counts: ask for the whole tables"
        )

    def noisy() -> Arrays:
        return private_side.noisy(map(whole_residuals, counts.exact(queries)), event)

    def read(arrays: Arrays) -> list[NoisyResidual]:
        pairs = zip(queries, arrays, strict=True)
        return [NoisyResidual(query.attrs, table, event.sigma, query.maps) for query, table in pairs]

    return QuestionParts(event, tables_named("residuals", queries), noisy, read, shown=read)


def whole_residuals(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(k_1 I - J) x ... x (k_m I - J) of a table (k_1, ..., k_m); exact integers. PRIVATE.

    Counts are cut at a bound that depends on the shape alone, so that nothing overflows.
    """
    table: NDArray[np.int64] = np.minimum(counts, largest_count(counts.shape))
    for axis, size in enumerate(counts.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table


# -- pairs of rows -------------------------------------------------------------------------------------


def siblings_question_parts(
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


# -- distances -----------------------------------------------------------------------------------------


def distances_event(distances: int, rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of measuring this many distances within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("distances have no budget: raise epsilon")
    return counts_event(distances * rows_per_unit, distances * rows_per_unit**2, share)


def distances_question_parts(
    question: Distances, budget: Budget, private_side: PrivateSide
) -> QuestionParts[list[int]]:
    """All distances get the same noise.

    Raises:
        BudgetError: as ``distances_event``.
        InternalError: the domain is not complete, no queries, or references that are not int64 tables of
            the full shape.
    """
    counts, queries = private_side.marginals(), tuple(question.queries)
    references = counts.checked_references(queries, tuple(question.references))
    event = distances_event(len(queries), private_side.rows_per_unit, budget)

    def noisy() -> Arrays:
        return private_side.noisy([counts.distances(queries, references)], event)

    def read(arrays: Arrays) -> list[int]:
        return [int(distance) for distance in arrays[0]]

    return QuestionParts(event, tables_named("distance", queries), noisy, read)
