"""Where a release stops after learning: the mark in its ledger, and what its owner is told."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpsyn_sql.accounting.account import describe, left_in_words
from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.errors import ReleaseStopped
from dpsyn_sql.front.job import TablePlan
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.planning.stopping import TIED_PART, Learnt, little_is_kept
from dpsyn_sql.source.names import listed


def stopping(table: TablePlan, entry: SqliteEntry) -> Callable[[Learnt], None] | None:
    """What looks at what was learnt, and raises ReleaseStopped; None for a release that never stops.

    One that was measured before, or that went on by its owner's wish, is only finished.
    """
    if not table.may_stop:
        return None

    def tied(columns: int, learnt: Learnt, budget: Budget) -> float:
        return table.method.pairs_needed(learnt.rows, columns, budget, table.terms)

    def review(learnt: Learnt) -> None:
        now = tied(learnt.columns, learnt, table.plan.budget)
        if not little_is_kept(learnt, now):
            return
        left = entry.stop()
        if left is None:
            return
        others = learnt.columns - len(learnt.hidden)
        few = (number for number in range(others, 1, -1) if tied(number, learnt, left) <= TIED_PART * number)
        message = [
            _columns(learnt, table.counted),
            _pairs(now, tied(others, learnt, left), learnt),
            _cure(others, next(few, 0)),
            _rest(table, entry, left),
        ]
        raise ReleaseStopped(" ".join(message), tuple(learnt.hidden))

    return review


def _columns(learnt: Learnt, units: str) -> str:
    least = max(learnt.hidden.values())
    return (
        "The release has stopped after learning what its columns hold, and nothing was written: little of "
        f"the table can be kept. Of {learnt.columns:,} columns {len(learnt.hidden):,} have no value that is "
        f"frequent enough to be found (one needs about {least:,} {units}): {listed(learnt.hidden)}. Each "
        "would be '__other__' in every row, and has its share of the budget of all columns and pairs."
    )


def _pairs(now: float, without: float, learnt: Learnt) -> str:
    """``without``: of the other columns, with what is left of the budget."""
    if math.isinf(now):
        return "With so many columns no pair can be told from noise: all columns would be independent."
    pairs = learnt.columns * (learnt.columns - 1) // 2
    less = "" if math.isinf(without) else f" Of the others about {without:,.0f} have to, with what is left."
    return (
        f"With so many columns pairs are worth their budget only if about {now:,.0f} of {pairs:,} go "
        f"together clearly; else all columns are independent.{less}"
    )


def _cure(others: int, fewer: int) -> str:
    most = f", and name at most about {fewer:,} columns" if 1 < fewer < others else ""
    return (
        "Leave them out with exclude=, or say in the domain file what they hold (type: key for ids and "
        f"names, categories or prefixes for codes){most}; or spend a larger epsilon."
    )


def _rest(table: TablePlan, entry: SqliteEntry, left: Budget) -> str:
    delta = exact_number("delta", table.request.delta)
    asked = Budget(left.kind, entry.budget.amount - left.amount, entry.budget.delta - left.delta)
    if entry.state != "debited":
        return "A later release has taken over what it had left, or a part of it, so it cannot go on."
    return (
        f"Of its debit it has asked for {describe(asked, delta)}. The rest stays debited and pays for the "
        f"next release of the account {entry.account.name!r}: at no further cost "
        f"{left_in_words(left, delta)}. "
        "To keep all columns as they are, call again with "
        f"method={table.method.name!r}: that goes on under this debit, at no further cost."
    )
