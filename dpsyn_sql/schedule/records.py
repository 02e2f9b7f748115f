"""What the ledger says about a schedule: states of periods, what is spent, what a limit still admits."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path

from dpsyn_sql.accounting.account import USUAL_DELTA, describe, price, reported_epsilon, shown
from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.errors import AccountError, ScheduleError
from dpsyn_sql.ledger.overview import AccountOverview, ReleaseOverview
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule.calendar import begin_of, end_of
from dpsyn_sql.schedule.document import LimitSpec
from dpsyn_sql.schedule.series import Item, ReleaseSeries, Schedule

_STATES = ("stopped", "debited", "measured", "published")
_SLACK = timedelta(minutes=5)
"""How far two clocks of one day may be apart."""


@dataclass(frozen=True)
class Records:
    """What the ledger held when it was read."""

    accounts: Mapping[str, AccountOverview] = field(default_factory=dict)
    releases: tuple[ReleaseOverview, ...] = ()

    def of(self, item: Item) -> ReleaseOverview | None:
        """The entry of a period: the one that has come furthest."""
        account = item.releases.source.account
        entries = [entry for entry in self._by_key.get(item.key, ()) if account in (None, entry.account)]
        return max(entries, key=lambda entry: _STATES.index(entry.state), default=None)

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, str | None], list[ReleaseOverview]]:
        entries = defaultdict(list)
        for entry in self.releases:
            entries[entry.name, entry.version].append(entry)
        return entries

    def newest(self) -> datetime | None:
        """The time of the last debit."""
        return max((_moment(entry.debited_at) for entry in self.releases), default=None)


def read_records(ledger: Path) -> Records:
    """The records of a ledger, which is not changed; none if there is no ledger yet.

    Raises:
        LedgerError: it cannot be read.
    """
    if not os.path.lexists(ledger):
        return Records()
    with closing(SqliteLedger(ledger, read_only=True)) as opened:
        overview = opened.overview()
    return Records({account.name: account for account in overview.accounts}, overview.releases)


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


class ScheduleSpending:
    """What the accounts of a schedule have spent: debits of the ledger, and those that are foreseen.

    A scheduled debit counts where its window begins, and so does one of another name with the label of that
    window: a series that is renamed has no second budget. Others count on their day.
    """

    def __init__(self, schedule: Schedule, records: Records, items: Iterable[Item], now: datetime) -> None:
        self._accounts, self._now, self._records = schedule.accounts, now, records
        self._sums: dict[tuple[str, str, datetime | None], _Sum] = {}
        self._recorded = Counter(entry.name for entry in records.releases)
        self._foreseen: Counter[str] = Counter()
        begins: dict[tuple[str, str], datetime | None] = {}
        labels: dict[str, datetime | None] = {}
        for item in items:
            begins[item.key] = item.period.begins
            labels.setdefault(item.period.label, item.period.begins)
        for entry in records.releases:
            label = entry.version or ""
            counts_at = begins.get((entry.name, label)) or labels.get(label) or _moment(entry.debited_at)
            self._add(entry.account, entry.charged, counts_at)

    def add(self, item: Item, cost: Budget) -> None:
        """A debit that a run will make."""
        account = item.releases.source.account or ""
        self._foreseen[item.releases.name] += 1
        self._add(account, cost, item.period.begins or self._now)

    def expected(self, item: Item, cost: Budget) -> Budget:
        """What a period costs now: nothing once as many slices are paid as a unit can be in."""
        name = item.releases.name
        return _unless_paid(item, cost, self._recorded[name] + self._foreseen[name])

    def after_foreseen(self, item: Item, cost: Budget) -> Budget:
        """The same, where ``cost`` is what the ledger says as it is now."""
        recorded, foreseen = (count[item.releases.name] for count in (self._recorded, self._foreseen))
        if not foreseen:
            return cost
        # If it costs something although enough windows are paid, those were of another panel, or cheaper.
        most = item.releases.most
        return _unless_paid(item, cost, foreseen + (recorded if most is None or recorded < most else 0))

    def refusal(self, item: Item, cost: Budget) -> tuple[str, datetime | None]:
        """Why a limit of a budget period refuses a debit, and where that period ends; empty if none does."""
        name = item.releases.source.account or ""
        account = self._accounts.get(name)
        if account is None:
            return "", None
        for length, limit in account.of_periods.items():
            begins = begin_of(length, item.period.begins or self._now)
            problem = self._sum(name, length, begins, limit).exceeded(cost)
            if problem:
                return (
                    f"the account {name!r} may spend {limit} in the {length} from {begins:%Y-%m-%d}, "
                    f"and {problem}. Nothing was read or charged",
                    end_of(length, begins),
                )
        return "", None

    def over_lifetime(self, item: Item, cost: Budget) -> bool:
        """Whether a release exceeds what its account has left; for an outlook only."""
        name = item.releases.source.account or ""
        account = self._accounts.get(name)
        if account is None or account.limit is None:
            return False
        return bool(self._sum(name, "", None, account.limit).exceeded(cost))

    def _add(self, account_name: str, cost: Budget, counts_at: datetime) -> None:
        account = self._accounts.get(account_name)
        if account is None:
            return
        if account.limit is not None:
            self._sum(account_name, "", None, account.limit).add(cost)
        for length, limit in account.of_periods.items():
            self._sum(account_name, length, begin_of(length, counts_at), limit).add(cost)

    def _sum(self, account: str, length: str, begins: datetime | None, limit: LimitSpec) -> _Sum:
        key = (account, length, begins)
        if key not in self._sums:
            self._sums[key] = _Sum(limit.budget, limit.shown_delta)
        return self._sums[key]


def _unless_paid(item: Item, cost: Budget, paid: int) -> Budget:
    """Nothing if so many slices of the series are paid that a unit can be in no more."""
    total, most = item.releases.total(item.period), item.releases.most
    nothing = total.paid_before if total is not None else most is not None and paid >= most
    return Budget(cost.kind, 0) if nothing else cost


@dataclass(slots=True)
class _Sum:
    """Debits that one limit holds for. ``problem``: one of them cannot be priced in its kind."""

    limit: Budget
    shown_delta: Fraction
    amount: int = 0
    delta: int = 0
    problem: str = ""

    def add(self, cost: Budget) -> None:
        try:
            priced = price(cost, self.limit.kind)
        except AccountError as error:
            self.problem = str(error)
            return
        self.amount, self.delta = self.amount + priced.amount, self.delta + priced.delta

    def exceeded(self, cost: Budget) -> str:
        """Why one more debit is too much; empty if it is not."""
        then = replace(self)
        then.add(cost)
        if then.problem or (then.amount <= self.limit.amount and then.delta <= self.limit.delta):
            return then.problem
        total = Budget(self.limit.kind, then.amount, then.delta)
        would, limit = (describe(budget, self.shown_delta) for budget in (total, self.limit))
        return f"this release would make it {would} of {limit}"


def of_panel(release: ReleaseSeries, records: Records) -> str:
    """What all periods of a panel may spend, what is spent, and how many are to come; empty for others."""
    if not release.panel:
        return ""
    items = [Item(release, period) for period in release.series.periods(datetime.max)]
    paid = [entry.charged for entry in map(records.of, items) if entry is not None]
    bound = f"panel of {len(items)} periods, a person can be in all of them: epsilon={release.epsilon} in all"
    together = ""
    if paid:
        total = Budget(paid[0].kind, sum(cost.amount for cost in paid), sum(cost.delta for cost in paid))
        together = f" (together epsilon={shown(epsilon_of(items[0], total))})"
    share = f"each may spend 1/{len(items)} of the budget"
    return f"{bound}, {share}; paid: {len(paid)}{together}, to come: {len(items) - len(paid)}"


def epsilon_of(item: Item, cost: Budget) -> float:
    """The epsilon of a debit at the delta of its release."""
    return _epsilon(cost, exact_number("delta", item.releases.options.get("delta", USUAL_DELTA)))


@lru_cache(maxsize=64)
def _epsilon(cost: Budget, delta: Fraction) -> float:
    return reported_epsilon(cost, delta or USUAL_DELTA)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
