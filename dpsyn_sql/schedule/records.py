"""What the ledger and the outputs say of the periods of a schedule: records, and their state."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path

from dpsyn_sql.accounting.account import USUAL_DELTA, describe, price, reported_epsilon, shown
from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.errors import AccountError, DpsynError, ScheduleError
from dpsyn_sql.ledger.overview import AccountOverview, ReleaseOverview
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule.calendar import Item, ReleaseSeries, Schedule, begin_of, end_of
from dpsyn_sql.schedule.document import LimitSpec
from dpsyn_sql.schedule.reading import read_schedule

# -- records -----------------------------------------------------------------------------------------

# What the ledger says about a schedule: states of periods, what is spent, what a limit still admits.

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


# -- state -------------------------------------------------------------------------------------------

# The state of every period, from the ledger alone and from whether the outputs stand.

PUBLISHED, GONE, DUE, MEASURED, FAILED, REFUSED, WAITING = (
    "published",
    "published, output gone",
    "due",
    "measured, not written",
    "failed before",
    "refused by budget",
    "waiting",
)
OPEN = (DUE, MEASURED, FAILED, REFUSED)
"""States in which a run tries a period."""


@dataclass(frozen=True, slots=True)
class State:
    """One period: ``spent`` is the epsilon of its debit, ``due`` when it may be released (None: at once).
    ``panel``: what all periods of a panel may spend and have spent; empty for other releases."""

    item: Item
    state: str
    account: str | None
    spent: float | None
    due: datetime | None
    panel: str = ""

    def facts(self) -> dict[str, object]:
        """As plain data."""
        due = None if self.due is None else self.due.isoformat(sep=" ")
        facts = {"state": self.state, "account": self.account, "spent_epsilon": self.spent, "due": due}
        return self.item.facts(**facts, panel=self.panel)


def utc_now() -> datetime:
    """The present time in UTC, without a zone as all times of a schedule."""
    return datetime.now(UTC).replace(tzinfo=None)


def status(path: str | os.PathLike[str] = "dpsyn.yml", *, now: datetime | None = None) -> tuple[State, ...]:
    """The state of every period that has begun, and of the next one. Changes nothing.

    Raises:
        ScheduleError: the file is wrong, or the clock has gone back.
        LedgerError: the ledger cannot be read.
    """
    schedule, now = read_schedule(path), now or utc_now()
    records = read_records(schedule.ledger)
    check_clock(schedule, records, now)
    return states(schedule, records, now)


def states(schedule: Schedule, records: Records, now: datetime, *, look: bool = True) -> tuple[State, ...]:
    """Of each period, in the order of the file; without ``look`` published outputs count as standing."""
    items = schedule.items(now)
    state_of_key = {item.key: _recorded(item, records, now) for item in items}
    published = [item for item in items if state_of_key[item.key] == PUBLISHED]
    state_of_key.update({item.key: GONE for item in gone(schedule, published)} if look else {})
    spent, stopped = ScheduleSpending(schedule, records, items, now), set[str]()
    for item in oldest_first([item for item in items if state_of_key[item.key] == DUE]):
        if item.releases.name in stopped or not _admitted(schedule, item, records, spent):
            state_of_key[item.key] = REFUSED
            stopped |= {item.releases.name} if item.releases.divided else set()
    panels = {release.name: of_panel(release, records) for release in schedule.releases}
    return tuple(_state(item, state_of_key[item.key], records, panels[item.releases.name]) for item in items)


def oldest_first(items: Sequence[Item]) -> list[Item]:
    """By the time they became due; those that wait for nothing in the order of the file."""
    return sorted(items, key=lambda item: item.period.due or datetime.min)


def _state(item: Item, state: str, records: Records, panel: str) -> State:
    entry = records.of(item)
    spent = None if entry is None else epsilon_of(item, entry.charged)
    account = item.releases.source.account if entry is None else entry.account
    return State(item, state, account, spent, item.period.due, panel)


def _recorded(item: Item, records: Records, now: datetime) -> str:
    entry = records.of(item)
    if entry is None:
        due = item.period.due
        return DUE if due is None or due <= now else WAITING
    return {"published": PUBLISHED, "measured": MEASURED}.get(entry.state, FAILED)


def _admitted(schedule: Schedule, item: Item, records: Records, spent: ScheduleSpending) -> bool:
    """Whether its budget admits what is due; if so, it counts as spent for what is due later."""
    account = schedule.accounts.get(item.releases.source.account or "")
    if account is None:
        return True
    try:
        limit = next(
            declared for declared in [*account.of_periods.values(), account.limit] if declared is not None
        )
        kind = limit.budget.kind
        cost = spent.expected(item, item.releases.cost(kind, item.period))
    except DpsynError:
        return True  # the run tells what is wrong
    if spent.over_lifetime(item, cost) or spent.refusal(item, cost)[0]:
        return False
    spent.add(item, cost)
    return True


def gone(schedule: Schedule, published: Sequence[Item]) -> list[Item]:
    """Periods whose outputs are gone. The tables of a database that cannot be opened now count as there."""
    tables: dict[Path, dict[str, list[Item]]] = defaultdict(lambda: defaultdict(list))
    gone_items = dict[tuple[str, str], Item]()
    for item in published:
        into, database = item.releases.into(item.period, schedule.folder), item.releases.con(item.period)
        if isinstance(into, Path):
            gone_items |= {} if into.exists() else {item.key: item}
        elif database is not None:
            for name in item.releases.written(into):
                tables[database][name].append(item)
    for database, items in tables.items():
        from dpsyn_sql.engines.written_rows import standing_tables  # loads the database engine

        there = standing_tables(database, sorted(items))
        missing = [] if there is None else [name for name in items if name not in there]
        gone_items |= {item.key: item for name in missing for item in items[name]}
    return list(gone_items.values())
