"""Residuals: what marginals say beyond their own margins, noisy.

Claim: docs/privacy.md, "Residual marginals". The table x of sizes k_1 ... k_m becomes the integers
(k_1 I - J) x ... x (k_m I - J) x, J the matrix of ones. One row changes them by exactly
prod k_i (k_i - 1) in squared L2, the k rows of a unit by at most k^2 times that; the squares of several
tables add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.planning.queries import NoisyResidual, Residuals, holds_residuals, largest_count
from dpsyn_sql.private.measure.calibrate import gaussian_event
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, tables_named


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


def question_parts(
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
