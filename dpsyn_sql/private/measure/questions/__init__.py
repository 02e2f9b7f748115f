"""The questions of the door, by subject: claim, event, counting, noise, and reading of a stored answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning import queries
from dpsyn_sql.planning.queries import Answer, Question
from dpsyn_sql.private.measure.counting import PrivateSide, QuestionParts
from dpsyn_sql.private.measure.questions import choices, columns, tables, trees

QUESTIONS: dict[type[Question[Any]], Callable[[Any, Budget, PrivateSide], QuestionParts[Any]]] = {
    queries.Marginals: tables.marginals_question_parts,
    queries.Siblings: tables.siblings_question_parts,
    queries.Residuals: tables.residuals_question_parts,
    queries.Distances: tables.distances_question_parts,
    queries.Choice: choices.choice_question_parts,
    queries.FamilyChoice: choices.family_choice_question_parts,
    queries.KeyQuery: columns.keys_question_parts,
    queries.GridQuery: columns.grid_question_parts,
    queries.StepQuery: columns.steps_question_parts,
    queries.TypesQuery: columns.types_question_parts,
    queries.ContributionQuery: columns.contributions_question_parts,
    queries.TreeQuery: trees.tree_question_parts,
    queries.LeafQuery: trees.leaves_question_parts,
}
"""Every question that can be asked; the door refuses all others."""


def settled(question: Question[Answer]) -> Question[Answer]:
    """A copy whose marginals and labels nobody else holds, so that what is admitted and priced is what is
    counted.

    Raises:
        InternalError: the door does not know the question.
    """
    if type(question) not in QUESTIONS:
        raise InternalError("the door has no such question")
    held = [name for name in ("queries", "candidates", "labels") if hasattr(question, name)]
    known: Any = question
    copy: Question[Answer] = replace(
        known, **{name: tuple(map(replace, getattr(known, name))) for name in held}
    )
    return copy


def parts_of_question(
    question: Question[Answer], budget: Budget, private_side: PrivateSide
) -> QuestionParts[Answer]:
    """Event, name, counting and reading of a question; reads nothing.

    Raises:
        BudgetError: the budget cannot pay for it.
        InternalError: the door may not answer it now.
    """
    return QUESTIONS[type(question)](question, budget, private_side)
