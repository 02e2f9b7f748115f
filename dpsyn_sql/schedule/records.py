"""What the ledger says about a schedule: states of periods, what is spent, what a limit still admits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dpsyn_sql.accounting.account import USUAL_DELTA, describe, price, reported_epsilon
from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.errors import AccountError, ScheduleError
from dpsyn_sql.ledger.overview import AccountOverview, ReleaseOverview
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule.calendar import after
from dpsyn_sql.schedule.series import Account, Item, Limit, Schedule

_STATES = ("debited", "measured", "published")
_SLACK = timedelta(minutes=5)
"""How far two clocks of one day may be apart."""


@dataclass(frozen=True, slots=True)
class Spending:
    """A debit of an account, and the moment that it counts for."""

    account: str
    cost: Budget
    counts_at: datetime
    name: str


def expected(item: Item, cost: Budget, spent: Iterable[Spending]) -> Budget:
    """What a period costs after ``spent``: nothing once as many slices are paid as a unit can be in."""
    if item.releases.cumulative:
        total = item.releases.request(item.period, Path(), Path()).total()
        return Budget(cost.kind, 0) if total is not None and total.paid_before else cost
    most = item.releases.most
    paid = sum(1 for one in spent if one.name == item.releases.name)
    return cost if most is None or paid < most else Budget(cost.kind, 0)


@dataclass(frozen=True, slots=True)
class Records:
    """What the ledger held when it was read."""

    accounts: Mapping[str, AccountOverview] = field(default_factory=dict)
    releases: tuple[ReleaseOverview, ...] = ()

    def of(self, item: Item) -> ReleaseOverview | None:
        """The entry of a period: the one that has come furthest."""
        account = item.releases.source.account
        found = [
            one
            for one in self.releases
            if (one.name, one.version) == item.key and account in (None, one.account)
        ]
        return max(found, key=lambda one: _STATES.index(one.state), default=None)

    def spending(self, items: Iterable[Item]) -> tuple[Spending, ...]:
        """All debits. A scheduled one counts where its window begins, and so does one of another name with
        the label of that window: a series that is renamed has no second budget. Others count on their day."""
        known = [(item, item.period.begins) for item in items]
        own = {item.key: begins for item, begins in known}
        labels: dict[str, datetime | None] = {}
        for item, begins in known:
            labels.setdefault(item.period.label, begins)
        found = []
        for one in self.releases:
            label = one.version or ""
            counts_at = own.get((one.name, label)) or labels.get(label) or _moment(one.debited_at)
            found.append(Spending(one.account, one.charged, counts_at, one.name))
        return tuple(found)

    def newest(self) -> datetime | None:
        """The time of the last debit."""
        return max((_moment(one.debited_at) for one in self.releases), default=None)


def read_records(ledger: Path) -> Records:
    """The records of a ledger, which is not changed; none if there is no ledger yet.

    Raises:
        LedgerError: it cannot be read.
    """
    if not os.path.lexists(ledger):
        return Records()
    with closing(SqliteLedger(ledger, read_only=True)) as opened:
        overview = opened.overview()
    return Records({one.name: one for one in overview.accounts}, overview.releases)


def check_clock(schedule: Schedule, records: Records, now: datetime) -> None:
    """Refuse a clock that has gone back: what is due could not be told.

    Raises:
        ScheduleError: the ledger has a later record.
    """
    newest = records.newest()
    if newest is not None and newest > now + _SLACK:
        raise ScheduleError(
            f"The clock says {now:%Y-%m-%d %H:%M} (UTC), but the ledger {schedule.ledger} has a debit of "
            f"{newest:%Y-%m-%d %H:%M}. Set the clock. Nothing was done."
        )


def refusal(
    schedule: Schedule, item: Item, cost: Budget, spent: Iterable[Spending], now: datetime
) -> tuple[str, datetime | None]:
    """Why a limit of a budget period does not admit a debit, and where that period ends; empty if it does."""
    account = schedule.accounts.get(item.releases.source.account or "")
    if account is None:
        return "", None
    counts_at = item.period.begins or now
    for length, limit in account.per.items():
        begins = budget_period(length, counts_at)
        ends = after(length, begins)
        costs = [one.cost for one in spent if one.account == account.name and begins <= one.counts_at < ends]
        problem = _exceeded(limit, [*costs, cost])
        if problem:
            return (
                f"the account {account.name!r} may spend {limit} in the {length} from {begins:%Y-%m-%d}, "
                f"and {problem}. Nothing was read or charged",
                ends,
            )
    return "", None


def _exceeded(limit: Limit, costs: list[Budget]) -> str:
    budget = limit.budget
    try:
        prices = [price(cost, budget.kind) for cost in costs]
    except AccountError as error:
        return str(error)
    total = Budget(budget.kind, sum(one.amount for one in prices), sum(one.delta for one in prices))
    if total.amount <= budget.amount and total.delta <= budget.delta:
        return ""
    return f"this release would make it {describe(total)} of {describe(budget)}"


def over_lifetime(account: Account | None, cost: Budget, spent: Iterable[Spending]) -> bool:
    """Whether the amount of a release exceeds what its account has left; for an outlook only."""
    if account is None or account.limit is None:
        return False
    costs = [one.cost for one in spent if one.account == account.name]
    return bool(_exceeded(account.limit, [*costs, cost]))


def budget_period(length: str, moment: datetime) -> datetime:
    """Where the year, quarter or month of a moment begins."""
    month = {"year": 1, "quarter": (moment.month - 1) // 3 * 3 + 1, "month": moment.month}[length]
    return datetime(moment.year, month, 1)


def epsilon_of(item: Item, cost: Budget) -> float:
    """The epsilon of a debit at the delta of its release."""
    delta = exact_number("delta", item.releases.options.get("delta", USUAL_DELTA))
    return reported_epsilon(cost, delta or USUAL_DELTA)


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
