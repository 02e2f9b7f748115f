"""What is told, before anything is charged, of columns of a CSV file without a stated type."""

from __future__ import annotations

from collections.abc import Sequence

from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.source.names import listed

_MOST = 8  # names in a message


def stay_text(names: Sequence[str]) -> str:
    """What columns lose that are read as text for the sake of a statement of the owner's."""
    one = len(names) == 1
    return (
        f"{listed(names, _MOST)} {'has' if one else 'have'} no stated type and "
        f"{'is' if one else 'are'} read as text: an expression (derived:, never:), the slice, or "
        "on_error='fail' needs the type before rows are read. Numbers and dates that are text come back as "
        "frequent values or __other__. State sql_type in a domain file; dpsyn init writes one."
    )


def learnt_types(plan: Plan, names: Sequence[str]) -> str:
    """What it costs to learn the types of these columns."""
    spent = sum(step.budget.amount for step in plan.discovery if step.ask == "types") / plan.budget.amount
    one = len(names) == 1
    return (
        f"{len(names)} column{'' if one else 's'} of the CSV file {'has' if one else 'have'} no stated type "
        f"({listed(names, _MOST)}): {'it is' if one else 'they are'} learnt from the rows with noise, at "
        f"{spent:.2%} of the budget, and values that do not fit the found type become NULL. To spare that, "
        "state sql_type in a domain file; dpsyn init writes one."
    )
