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
    ScheduleSpending,
    check_clock,
    epsilon_of,
    of_panel,
    read_records,
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
