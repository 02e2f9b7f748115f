"""Leaves: noisy numbers of rows per leaf of a tree, of rows outside of it, and of rows without a value.

Claim: docs/privacy.md, "Leaves". A row is in one leaf, outside, or without a value: a marginal over these. L1
and L2 sensitivity 1, for the k rows of a unit at most k.
"""

from __future__ import annotations

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.domain.hierarchies.growth import Nodes, disjoint
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import LeafQuery, NoisyLeaves
from dpsyn_sql.private.measure.calibrate import counts_event, refuse_no_discovery, standard_deviation
from dpsyn_sql.private.measure.counting import PrivateSide, check_counts
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, digest, nodes_named


def leaves_event(rows_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting rows per leaf within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    refuse_no_discovery(share)
    return counts_event(rows_per_unit, rows_per_unit**2, share)


def question_parts(
    question: LeafQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyLeaves]:
    """All leaves are answered, empty ones included.

    Raises:
        BudgetError: as ``leaves_event``.
        InternalError: the domain is complete, or levels and nodes do not fit together.
    """
    counter, hierarchies = private_side.columns(), question.hierarchies
    event = leaves_event(private_side.rows_per_unit, budget)
    leaves = _leaves(question)
    parts = [part.tolist() for part in (*leaves.levels, *leaves.ids)]
    named = {**nodes_named("leaves", hierarchies), "leaves": digest(repr(parts))}

    def noisy() -> Arrays:
        counts, others = counter.nodes(hierarchies, leaves), counter.outside(hierarchies)
        check_counts(counts, (len(leaves),))
        check_counts(others, (2,))
        return private_side.noisy([np.concatenate((counts, others))], event)

    def read(arrays: Arrays) -> NoisyLeaves:
        return NoisyLeaves(arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)


def _leaves(question: LeafQuery) -> Nodes:
    """The leaves, which must share no row: a row in two of them would be counted twice.

    Raises:
        InternalError: they do not fit together, or two may share rows.
    """
    number = len(question.hierarchies)
    lengths = {len(part) for part in (*question.levels, *question.nodes)}
    if not number or {len(question.levels), len(question.nodes)} != {number} or len(lengths) != 1:
        raise InternalError("leaves need a level and a node in every hierarchy")
    leaves = Nodes(question.levels, question.nodes, np.zeros(lengths.pop(), dtype=np.int64))
    if not disjoint(question.hierarchies, leaves):
        raise InternalError("leaves must share no row")
    return leaves
