"""Private choices: of marginals that differ most from public tables, and of families of a network.

Choice: which marginals differ most from public tables, chosen privately.

Claim: docs/privacy.md, "Selection". The score of a candidate is its L1 distance to a public table less a
public allowance: a whole number that one row changes by at most 1, the k rows of a unit by at most k. The
cost grows with the number of chosen candidates, not with the number of all.

References and allowances are not part of the question, as for distances.

Family choice: which child hangs most on its parents, by a score of PrivBayes, chosen privately.

Claim: docs/privacy.md, "Scores of families". The score of a candidate is a whole number of steps, which one
row changes by at most D and the k rows of a unit by at most D k. The choice and its price are those of
``choice.py``.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import SelectionEvent, cost_units
from dpsyn_sql.accounting.gdp import range_of_choice
from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.planning.queries import Choice, FamilyChoice
from dpsyn_sql.private.measure.counting import (
    LARGEST_REFERENCE,
    Arrays,
    PrivateSide,
    QuestionParts,
    tables_named,
)
from dpsyn_sql.private.measure.noise import grown_until, selection_mechanism
from dpsyn_sql.private.measure.scores import MOST_BITS, STEPS, scored

# -- marginals -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def selection_event(number: int, rows_per_unit: int, share: Budget) -> SelectionEvent:
    """The event of a private choice of ``number`` candidates within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    if share.amount == 0:
        raise BudgetError("a private choice has no budget: raise epsilon")
    price = float(share.fraction) / number
    epsilon = _range(price, share.kind)

    def fits(scale: float) -> bool:
        event = SelectionEvent(scale, rows_per_unit, number)
        map_cost = Fraction(selection_mechanism(scale, share.kind, number).map(rows_per_unit))
        return cost_units(event, share.kind) <= share.amount and map_cost <= share.fraction

    return SelectionEvent(grown_until(fits, 2 * rows_per_unit / epsilon), rows_per_unit, number)


def _range(price: float, kind: Kind) -> float:
    """The range of the privacy loss of a choice at this price: in a pure account its epsilon."""
    return range_of_choice(Fraction(price)) if kind == "gdp" else price


def choice_question_parts(
    question: Choice, budget: Budget, private_side: PrivateSide
) -> QuestionParts[list[int]]:
    """Indices of different candidates, best first.

    Raises:
        BudgetError: as ``selection_event``.
        InternalError: the domain is not complete, there are too few candidates, references are not int64
            tables of the full shape, or allowances are out of range.
    """
    counts = private_side.marginals()
    candidates, number = tuple(question.candidates), question.number
    references = counts.checked_references(candidates, tuple(question.references))
    if not 1 <= number <= len(candidates):
        raise InternalError("a choice needs a number from one to that of the candidates")
    allowed = _allowances(question)
    event = selection_event(number, private_side.rows_per_unit, budget)

    def noisy() -> Arrays:
        scores = counts.distances(candidates, references) - np.array(allowed, dtype=np.int64)
        with phase("noise"):
            return [private_side.noise.select(scores, event.scale, budget.kind, number)]

    def read(arrays: Arrays) -> list[int]:
        return [int(index) for index in arrays[0]]

    return QuestionParts(event, tables_named("select", candidates), noisy, read)


def _allowances(question: Choice) -> tuple[int, ...]:
    candidates = len(question.candidates)
    allowed = (0,) * candidates if question.allowances is None else tuple(question.allowances)
    if len(allowed) != candidates or not all(
        type(rows) is int and 0 <= rows < LARGEST_REFERENCE for rows in allowed
    ):
        raise InternalError("every candidate needs an allowance from 0 to below 2^57, a whole number")
    return allowed


# -- families of a network -----------------------------------------------------------------------------


def family_choice_question_parts(
    question: FamilyChoice, budget: Budget, private_side: PrivateSide
) -> QuestionParts[int]:
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
