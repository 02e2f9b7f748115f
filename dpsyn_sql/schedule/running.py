"""Carry out what is due: oldest first, one run at a time, each period paid once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpsyn_sql.accounting.account import describe, shown
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import (
    DpsynError,
    InputError,
    LedgerError,
    PrivacyBudgetExceeded,
    ScheduleLocked,
    said,
)
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule.calendar import Item, Schedule, in_keys
from dpsyn_sql.schedule.document import LimitSpec
from dpsyn_sql.schedule.reading import read_schedule
from dpsyn_sql.schedule.records import (
    GONE,
    OPEN,
    PUBLISHED,
    Records,
    ScheduleSpending,
    State,
    check_clock,
    epsilon_of,
    oldest_first,
    read_records,
    states,
    utc_now,
)
from dpsyn_sql.source.names import listed, near_matches

if TYPE_CHECKING:
    from dpsyn_sql.front.plan import Explanation

try:
    import fcntl
except ImportError:  # no such locks on this system: the ledger still debits each release once
    fcntl = None  # type: ignore[assignment]

DONE, FAILED, REFUSED, SKIPPED = "published", "failed", "refused by budget", "skipped"

EXIT_DONE, EXIT_FAILED, EXIT_REFUSED = 0, 1, 3
"""Exit codes of a run that began; 2, 4 and 130 are those of a wrong file, a lock and an interrupt."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one period. ``charged`` is the epsilon that this run debited for it.

    ``tried``: it was begun; otherwise an earlier period stands in its way.
    """

    item: Item
    result: str
    message: str
    charged: float = 0.0
    rows: int | None = None
    output: str = ""
    tried: bool = True

    def facts(self) -> dict[str, object]:
        """As plain data."""
        facts = {"result": self.result, "message": self.message, "charged_epsilon": self.charged}
        return self.item.facts(**facts, rows=self.rows, output=self.output)


@dataclass(frozen=True, slots=True)
class Run:
    """All outcomes of a run; ``exit_code`` is 0, 1 (something failed) or 3 (a budget refused)."""

    outcomes: tuple[Outcome, ...]

    @property
    def exit_code(self) -> int:
        """That of the command."""
        results = {outcome.result for outcome in self.outcomes}
        if FAILED in results:
            return EXIT_FAILED
        return EXIT_REFUSED if REFUSED in results else EXIT_DONE


def run(
    path: str | os.PathLike[str] = "dpsyn.yml",
    *,
    select: Sequence[str] = (),
    now: datetime | None = None,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Run:
    """Release what is due, oldest first.

    Args:
        path: the file of the schedule.
        select: ``NAME`` or ``NAME:PERIOD``; other releases stay as they are.
        now: the present time in UTC; default: the clock.
        on_outcome: is called with each outcome as soon as there is one.

    Raises:
        ScheduleError: the file is wrong or the clock has gone back; nothing was done.
        InputError: ``select`` names nothing, or what is not due; nothing was done.
        ScheduleLocked: another run charges the same ledger; nothing was done.
        LedgerError: the ledger cannot be used.
        KeyboardInterrupt: with a note of what was charged; the same call goes on at no cost.
    """
    schedule, now = read_schedule(path), now or utc_now()
    with alone(schedule.ledger):
        records = read_records(schedule.ledger)
        check_clock(schedule, records, now)
        chosen = wanted(schedule, states(schedule, records, now, look=bool(select)), select)
        check_due(schedule, chosen)
        _set_limits(schedule, records)
        return _carried_out(schedule, chosen, now, on_outcome)


# -- one run at a time --------------------------------------------------------------------------------


@contextlib.contextmanager
def alone(ledger: Path) -> Iterator[None]:
    """Hold the lock ``<ledger>.run-lock``; the file stays, and is not in the way of anybody.

    Raises:
        ScheduleLocked: another run holds it.
        LedgerError: the folder of the ledger cannot be written.
    """
    real = Path(os.path.realpath(ledger))
    lock = real.with_name(f"{real.name}.run-lock")
    number, acquired = -1, True
    with contextlib.suppress(OSError):
        number = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if number < 0:
        raise LedgerError(
            f"The lock {lock} cannot be made: the folder is missing or cannot be written. Nothing was done."
        )
    try:
        if fcntl is not None:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                acquired = False
        if not acquired:
            raise ScheduleLocked(
                f"Another run holds the lock {lock}, because it charges the same ledger. Nothing was done. "
                "Run again when it is done."
            )
        yield
    finally:
        os.close(number)


# -- what is wanted ----------------------------------------------------------------------------------


def wanted(schedule: Schedule, period_states: Sequence[State], select: Sequence[str]) -> list[Item]:
    """Open periods, oldest first; a selected period whose output is gone is written again at no cost."""
    if not select:
        return oldest_first([state.item for state in period_states if state.state in OPEN])
    chosen: dict[tuple[str, str], Item] = {}
    problems = []
    for text in select:
        name, colon, label = text.partition(":")
        mine = [state for state in period_states if state.item.releases.name == name]
        if not mine:
            names = [release.name for release in schedule.releases]
            problems.append(f"--select {text!r}: there is no such release; there are {listed(names)}")
            continue
        selected = [state for state in mine if state.item.period.label == label] if colon else mine
        if not selected:
            labels = [state.item.period.label for state in mine]
            close = near_matches(label, labels) or labels[-3:]
            problems.append(f"--select {text!r}: {name!r} has no such period; it has {listed(close)}")
        first = _first_open(mine)
        for state in selected:
            earlier = first if state.state in OPEN and state.item.period.label != first else None
            if earlier is not None and colon and not {f"{name}:{earlier}", name} & set(select):
                problems.append(f"--select {text!r}: {name}:{earlier} comes first. {_why_in_order(state)}")
            elif state.state in OPEN:
                chosen[state.item.key] = state.item
            elif colon and state.state in (PUBLISHED, GONE):
                chosen |= {item.key: item for item in _written_again(state, mine)}
            elif colon:
                problems.append(f"--select {text!r}: it is not due before {state.due:%Y-%m-%d %H:%M}")
    if problems:
        raise InputError("\n".join(["Nothing was done.", *problems]))
    return oldest_first(list(chosen.values()))


def _first_open(series: Sequence[State]) -> str | None:
    """The label of the first period that is open, where the order of the periods matters."""
    if not series[0].item.releases.ordered:
        return None
    return next((state.item.period.label for state in series if state.state in OPEN), None)


def _why_in_order(state: State) -> str:
    if state.item.releases.panel:
        return "Rows of a period of a panel follow those of the period before"
    return (
        "With windows_per_unit or cumulative a window that is released after a later one is charged in full"
    )


def _written_again(state: State, series: Sequence[State]) -> list[Item]:
    """What a selected period that was published writes again, if its output is gone: of a panel also the
    periods before, whose rows are in the same table."""
    if not state.item.releases.panel:
        return [state.item] if state.state == GONE else []
    return [
        earlier.item for earlier in series[: series.index(state) + 1] if earlier.state in (PUBLISHED, GONE)
    ]


def check_due(schedule: Schedule, wanted: Sequence[Item]) -> None:
    """What is checked only where something is due: folders of outputs, which may go once the outputs are
    published, and settings of methods, which take long to load.

    Raises:
        ScheduleError: a folder is missing, or a method has no such setting.
    """
    if not wanted:
        return
    for item in wanted:
        output = item.releases.into(item.period, schedule.folder)
        if isinstance(output, Path) and not output.parent.is_dir():
            problem = f"output: there is no folder {said(str(output.parent))}: create it"
            schedule.faults.at(("releases", item.releases.name), problem, "output")
    from dpsyn_sql.front.prepare import asked_method

    for release in schedule.releases:
        problem = ""
        try:
            request = schedule.request(Item(release, release.first))
            if "method" in release.options:
                asked_method(request)
        except InputError as error:
            problem = in_keys(str(error))
        if problem:
            schedule.faults.at(("releases", release.name), problem, "method")
    schedule.faults.refuse()


# -- limits --------------------------------------------------------------------------------------------


def other_limits(schedule: Schedule, records: Records) -> list[tuple[str, LimitSpec]]:
    """The lifetime limits of the file, by account, where the ledger has others.

    Raises:
        ScheduleError: a limit is below what is spent.
    """
    limits = []
    for name, account in schedule.accounts.items():
        recorded = records.accounts.get(name)
        if account.limit is None or (recorded is not None and recorded.granted == account.limit.pair):
            continue
        limits.append((name, account.limit))
        limit = account.limit.budget
        if recorded is not None and recorded.spent.kind == limit.kind:
            spent = recorded.spent
            if spent.amount > limit.amount or spent.delta > limit.delta:
                message = (
                    f"the limit {account.limit} is below {describe(spent, account.limit.shown_delta)}, which "
                    "is spent already. A limit is never lowered below what is spent"
                )
                schedule.faults.at(("accounts", name), message, "limit")
    schedule.faults.refuse()
    return limits


def _set_limits(schedule: Schedule, records: Records) -> None:
    """Grant the lifetime limits of the file.

    Raises:
        ScheduleError: a limit is below what is spent.
    """
    if limits := other_limits(schedule, records):
        with closing(SqliteLedger(schedule.ledger)) as ledger:
            for name, limit in limits:
                ledger.grant(name, *limit.pair)


# -- carrying out --------------------------------------------------------------------------------------


def _carried_out(
    schedule: Schedule, chosen: Sequence[Item], now: datetime, on_outcome: Callable[[Outcome], None]
) -> Run:
    outcomes: list[Outcome] = []
    stopped: dict[str, tuple[str, datetime]] = {}
    items = schedule.items(now)
    for item in chosen:
        why, until = stopped.get(item.releases.name, ("", datetime.min))
        if why and (item.period.begins or now) < until:
            result = SKIPPED if why.endswith("failed") else REFUSED
            outcome = Outcome(item, result, f"not tried: {why}", tried=False)
        else:
            outcome, ends = _released(schedule, item, items, now)
            if outcome.result == REFUSED and item.releases.divided:
                # The next period would measure this one first, or follows it.
                stopped[item.releases.name] = (f"{item} was refused by its budget", datetime.max)
            elif outcome.result == REFUSED:
                stopped[item.releases.name] = (f"{item} was refused by its budget", ends or datetime.max)
            elif outcome.result == FAILED and item.releases.ordered:
                # A window that is read after a later one is charged in full; one of a panel follows it.
                stopped[item.releases.name] = (f"{item} comes first and failed", datetime.max)
        outcomes.append(outcome)
        on_outcome(outcome)
    return Run(tuple(outcomes))


def _released(
    schedule: Schedule, item: Item, items: Sequence[Item], now: datetime
) -> tuple[Outcome, datetime | None]:
    """One period; for a refusal by the limit of a budget period, where that ends."""
    try:
        problem, ends = _over_limit(schedule, item, items, now)
        if problem:
            return Outcome(item, REFUSED, problem), ends
        written = _made(item, schedule.request(item))
    except PrivacyBudgetExceeded as error:
        return Outcome(item, REFUSED, _in_limits(str(error), schedule, item)), None
    except DpsynError as error:
        return Outcome(item, FAILED, in_keys(str(error))), None
    entry = read_records(schedule.ledger).of(item)
    charged = 0.0 if written.replayed or entry is None else epsilon_of(item, entry.charged)
    cost = "nothing more charged" if written.replayed else f"epsilon={shown(charged)} charged"
    part = (
        f"; period {item.period.index + 1} of {item.releases.series.count()}" if item.releases.panel else ""
    )
    message = f"{written.rows} rows to {written.output}; {cost}{part}"
    return Outcome(item, DONE, message, charged, written.rows, written.output), None


class _Made(NamedTuple):
    """What a release wrote: rows of all its tables, and where they are."""

    rows: int
    output: str
    replayed: bool


def _made(item: Item, request: Request) -> _Made:
    from dpsyn_sql.front.release import release  # loads everything that a release loads

    result = release(item.releases.con(item.period), request)
    return _Made(sum(table.rows for table in result.tables.values()), result.into, result.replayed)


def _in_limits(text: str, schedule: Schedule, item: Item) -> str:
    """A refusal of the ledger: a limit of the file is raised there, since a run sets it again."""
    name = item.releases.source.account or ""
    account = schedule.accounts.get(name)
    if account is None or account.limit is None:
        return text
    return text.replace("(`dpsyn ledger grant`)", f"(limit: of accounts.{name})")


def _over_limit(
    schedule: Schedule, item: Item, items: Sequence[Item], now: datetime
) -> tuple[str, datetime | None]:
    """Whether a limit of a budget period refuses a new debit, by what the ledger holds at this moment."""
    account = schedule.accounts.get(item.releases.source.account or "")
    records = read_records(schedule.ledger)
    if account is None or not account.of_periods or records.of(item) is not None:
        return "", None
    return ScheduleSpending(schedule, records, items, now).refusal(item, _cost(schedule, item))


def _cost(schedule: Schedule, item: Item) -> Budget:
    """What the release would debit exactly, by its plan; no row is read."""
    return planned(item, schedule.request(item)).cost


def planned(item: Item, request: Request) -> Explanation:
    """The plan of a period, which costs nothing.

    Raises:
        DpsynError: the release would be refused.
    """
    from dpsyn_sql.front.plan import plan

    return plan(item.releases.con(item.period), request)
