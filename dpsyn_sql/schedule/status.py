"""The state of every period, from the ledger alone and from whether the outputs stand."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpsyn_sql.errors import DpsynError
from dpsyn_sql.schedule.reading import read_schedule
from dpsyn_sql.schedule.records import (
    Records,
    Spending,
    check_clock,
    epsilon_of,
    expected,
    over_lifetime,
    read_records,
    refusal,
)
from dpsyn_sql.schedule.series import Item, Schedule

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
    """One period: ``spent`` is the epsilon of its debit, ``due`` when it may be released (None: at once)."""

    item: Item
    state: str
    account: str | None
    spent: float | None
    due: datetime | None

    def facts(self) -> dict[str, object]:
        """As plain data."""
        return {
            "release": self.item.releases.name,
            "period": self.item.period.label,
            "state": self.state,
            "account": self.account,
            "spent_epsilon": self.spent,
            "due": None if self.due is None else self.due.isoformat(sep=" "),
        }


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
    standing = _Outputs(schedule, items) if look else None
    found = {item.key: _recorded(item, records, standing, now) for item in items}
    spent = list(records.spending(items))
    for item in oldest_first([item for item in items if found[item.key] == DUE]):
        found[item.key] = _foreseen(schedule, item, spent, now)
    return tuple(_state(item, found[item.key], records) for item in items)


def oldest_first(items: Sequence[Item]) -> list[Item]:
    """By the time they became due; those that wait for nothing in the order of the file."""
    return sorted(items, key=lambda item: item.period.due or datetime.min)


def _state(item: Item, state: str, records: Records) -> State:
    entry = records.of(item)
    spent = None if entry is None else epsilon_of(item, entry.charged)
    account = item.releases.source.account if entry is None else entry.account
    return State(item, state, account, spent, item.period.due)


def _recorded(item: Item, records: Records, outputs: _Outputs | None, now: datetime) -> str:
    entry = records.of(item)
    if entry is None:
        due = item.period.due
        return DUE if due is None or due <= now else WAITING
    if entry.state == "published":
        return PUBLISHED if outputs is None or outputs.stands(item) else GONE
    return MEASURED if entry.state == "measured" else FAILED


def _foreseen(schedule: Schedule, item: Item, spent: list[Spending], now: datetime) -> str:
    """Due, or what its budget would refuse; what is due before it counts as spent."""
    account = schedule.accounts.get(item.releases.source.account or "")
    if account is None:
        return DUE
    try:
        kind = next(iter([*account.per.values(), account.limit])).budget.kind  # type: ignore[union-attr]
        cost = expected(item, item.releases.cost(kind), spent)
    except DpsynError:
        return DUE  # the run tells what is wrong
    if over_lifetime(account, cost, spent) or refusal(schedule, item, cost, spent, now)[0]:
        return REFUSED
    spent.append(Spending(account.name, cost, item.period.begins or now, item.releases.name))
    return DUE


class _Outputs:
    """Whether outputs are still where they were written."""

    def __init__(self, schedule: Schedule, items: Sequence[Item]) -> None:
        self._folder = schedule.folder
        self._tables: dict[Path, frozenset[str] | None] = {}
        self._wanted = defaultdict(set)
        for item in items:
            into = item.releases.into(item.period, schedule.folder)
            if isinstance(into, str) and item.releases.source.database is not None:
                self._wanted[item.releases.source.database].add(into)

    def stands(self, item: Item) -> bool:
        """A table of a database that cannot be opened now counts as standing."""
        into = item.releases.into(item.period, self._folder)
        if isinstance(into, Path):
            return into.exists()
        database = item.releases.source.database
        if database is None:
            return True
        if database not in self._tables:
            from dpsyn_sql.engines.outputs import standing  # loads the database engine

            self._tables[database] = standing(database, sorted(self._wanted[database]))
        known = self._tables[database]
        return known is None or into in known
