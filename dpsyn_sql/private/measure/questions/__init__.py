"""The questions of the door, one file each: claim, event, counting, noise, and reading of a stored answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning import queries
from dpsyn_sql.planning.queries import Answer, Question
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.question_parts import QuestionParts
from dpsyn_sql.private.measure.questions import (
    choice,
    contributions,
    distances,
    family_choice,
    grid,
    keys,
    leaves,
    marginals,
    residuals,
    siblings,
    steps,
    tree,
    types,
)

QUESTIONS: dict[type[Question[Any]], Callable[[Any, Budget, PrivateSide], QuestionParts[Any]]] = {
    queries.Marginals: marginals.question_parts,
    queries.Siblings: siblings.question_parts,
    queries.Residuals: residuals.question_parts,
    queries.Distances: distances.question_parts,
    queries.Choice: choice.question_parts,
    queries.FamilyChoice: family_choice.question_parts,
    queries.KeyQuery: keys.question_parts,
    queries.GridQuery: grid.question_parts,
    queries.StepQuery: steps.question_parts,
    queries.TypesQuery: types.question_parts,
    queries.ContributionQuery: contributions.question_parts,
    queries.TreeQuery: tree.question_parts,
    queries.LeafQuery: leaves.question_parts,
}
"""Every question that can be asked; the door refuses all others."""


def parts_of_question(
    question: Question[Answer], budget: Budget, private_side: PrivateSide
) -> QuestionParts[Answer]:
    """Event, name, counting and reading of a question; reads nothing.

    Raises:
        BudgetError: the budget cannot pay for it.
        InternalError: the door does not know the question, or may not answer it now.
    """
    question_parts = QUESTIONS.get(type(question))
    if question_parts is None:
        raise InternalError("the door has no such question")
    return question_parts(question, budget, private_side)
