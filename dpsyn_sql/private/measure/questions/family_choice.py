"""Family choice: which child hangs most on its parents, by a score of PrivBayes, chosen privately.

Claim: docs/privacy.md, "Scores of families". The score of a candidate is a whole number of steps, which one
row changes by at most D and the k rows of a unit by at most D k. The choice and its price are those of
``choice.py``.
"""

from __future__ import annotations

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import FamilyChoice
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.question_parts import Arrays, QuestionParts, tables_named
from dpsyn_sql.private.measure.questions.choice import selection_event
from dpsyn_sql.private.measure.scores import MOST_BITS, STEPS, scored


def question_parts(question: FamilyChoice, budget: Budget, private_side: PrivateSide) -> QuestionParts[int]:
    """The place of one candidate.

    Raises:
        BudgetError: as ``selection_event``.
        InternalError: the domain is not complete, no candidates, a child that its table does not have or,
            for ``F``, of more than two values, or no such score.
    """
    counts, candidates = private_side.marginals(), tuple(question.candidates)
    children, score, bits = tuple(question.children), question.score, question.bits
    counts.check_maps(candidates)
    if not candidates or len(children) != len(candidates):
        raise InternalError("a choice of families needs a candidate, and a child for each")
    if type(score) is not str or score not in STEPS or type(bits) is not int:
        raise InternalError("families are scored by 'I', 'F' or 'R', and a whole number of bits")
    if not (1 <= bits <= MOST_BITS if score == "I" else bits == 0):
        raise InternalError(f"bits are 1 to {MOST_BITS} for I, and 0 for F and R")
    if any(query.attrs.count(child) != 1 for query, child in zip(candidates, children, strict=True)):
        raise InternalError("a child is not an attribute of its table")
    axes = [query.attrs.index(child) for query, child in zip(candidates, children, strict=True)]
    shapes = [query.shape(counts.domain) for query in candidates]
    if score == "F" and any(shape[axis] != 2 for shape, axis in zip(shapes, axes, strict=True)):
        raise InternalError("the score F needs a child of two values")
    event = selection_event(1, STEPS[score](bits) * private_side.rows_per_unit, budget)
    named = {"ask": "family", "score": score, "bits": bits, "children": list(children)}

    def noisy() -> Arrays:
        tables = zip(counts.exact(candidates), axes, strict=True)
        scores = np.array([scored(table, axis, score, bits) for table, axis in tables], dtype=np.int64)
        with phase("noise"):
            return [private_side.noise.select(scores, event.scale, budget.kind, 1)]

    def read(arrays: Arrays) -> int:
        return int(arrays[0][0])

    return QuestionParts(event, tables_named("family", candidates) | named, noisy, read)
