"""Tree: the dense parts of a column, as the nodes of public trees that PrivTree splits.

Claim: docs/privacy.md, "Trees". A unit counts for one of its points, whether it has one row or k; each test
on the way of a point has sensitivity 1, and all of them together cost as much as three. No count is shown.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import TreeEvent, cost_units
from dpsyn_sql.measure.calibrate import grown_until, refuse_no_discovery
from dpsyn_sql.measure.counting import check_counts
from dpsyn_sql.measure.inquiry import Arrays, Behind, Inquiry
from dpsyn_sql.measure.named import column_named, digest
from dpsyn_sql.measure.noise import laplace_mechanism
from dpsyn_sql.measure.privtree import grow
from dpsyn_sql.planning.discovery import things_per_unit
from dpsyn_sql.planning.queries import NoisyTree, TreeQuery


def tree_event(points_per_unit: int, share: Budget) -> TreeEvent:
    """The event of growing trees over the points of units, at most so many per unit, within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    refuse_no_discovery(share)
    amount = float(share.fraction)
    epsilon = math.sqrt(2 * amount) if share.kind == "zcdp" else amount

    def fits(scale: float) -> bool:
        # Three tests of sensitivity 1 are the worst case of a path, for each of the points.
        tests = Fraction(laplace_mechanism(scale).map(1)) * 3 * points_per_unit
        second = tests if share.kind == "pure" else tests**2 / 2
        return (
            cost_units(TreeEvent(scale, points_per_unit), share.kind) <= share.amount
            and second <= share.fraction
        )

    return TreeEvent(grown_until(fits, 3 * points_per_unit / epsilon), points_per_unit)


def inquiry(question: TreeQuery, budget: Budget, behind: Behind) -> Inquiry[NoisyTree]:
    """The nodes that are split.

    Raises:
        BudgetError: as ``tree_event``.
        InternalError: the domain is complete.
    """
    counter = behind.columns()
    event = tree_event(things_per_unit("tree", behind.rows_per_unit), budget)
    roots = digest(repr([(str(root.low), str(root.width), root.depth) for root in question.roots]))
    named = {**column_named("tree", question.attr, question.sql_type, question.source), "roots": roots}

    def noisy() -> Arrays:
        cells, units = counter.points(question)
        check_counts(units, cells.shape)
        split = grow(question.roots, cells, units, event, behind.noise)
        return [np.ascontiguousarray(column) for column in split.T]

    def read(arrays: Arrays) -> NoisyTree:
        return NoisyTree(question, tuple(zip(*(array.tolist() for array in arrays), strict=True)))

    return Inquiry(event, named, noisy, read)
