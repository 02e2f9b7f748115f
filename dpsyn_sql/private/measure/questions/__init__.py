"""The questions of the door, one file each: claim, event, counting, noise, and reading of a stored answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning import queries
from dpsyn_sql.planning.queries import Answer, Question
from dpsyn_sql.private.measure.counting import Behind
from dpsyn_sql.private.measure.inquiry import Inquiry
from dpsyn_sql.private.measure.questions import (
    choice,
    contributions,
    distances,
    grid,
    keys,
    leaves,
    marginals,
    residuals,
    steps,
    tree,
    types,
)

QUESTIONS: dict[type[Question[Any]], Callable[[Any, Budget, Behind], Inquiry[Any]]] = {
    queries.Marginals: marginals.inquiry,
    queries.Residuals: residuals.inquiry,
    queries.Distances: distances.inquiry,
    queries.Choice: choice.inquiry,
    queries.KeyQuery: keys.inquiry,
    queries.GridQuery: grid.inquiry,
    queries.StepQuery: steps.inquiry,
    queries.TypesQuery: types.inquiry,
    queries.ContributionQuery: contributions.inquiry,
    queries.TreeQuery: tree.inquiry,
    queries.LeafQuery: leaves.inquiry,
}
"""Every question that can be asked; the door refuses all others."""


def taken_apart(question: Question[Answer], budget: Budget, behind: Behind) -> Inquiry[Answer]:
    """Event, name, counting and reading of a question; reads nothing.

    Raises:
        BudgetError: the budget cannot pay for it.
        InternalError: the door does not know the question, or may not answer it now.
    """
    inquiry = QUESTIONS.get(type(question))
    if inquiry is None:
        raise InternalError("the door has no such question")
    return inquiry(question, budget, behind)
