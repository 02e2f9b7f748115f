"""Carry out what is due: oldest first, one run at a time, each period paid once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dpsyn_sql.accounting.account import describe
from dpsyn_sql.accounting.budget import Budget, exact_number
from dpsyn_sql.errors import DpsynError, InputError, PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule.calendar import Calendar, Listed, Single, moment_text
from dpsyn_sql.schedule.lock import alone
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
from dpsyn_sql.schedule.series import Item, Releases, Schedule, in_keys
from dpsyn_sql.schedule.status import GONE, OPEN, PUBLISHED, State, oldest_first, states, utc_now
from dpsyn_sql.source.names import listed, near_matches
from dpsyn_sql.source.slices import Window

DONE, FAILED, REFUSED, SKIPPED = "published", "failed", "refused by budget", "skipped"

EXIT_DONE, EXIT_FAILED, EXIT_REFUSED = 0, 1, 3
"""Exit codes of a run that began; 2, 4 and 130 are those of a wrong file, a lock and an interrupt."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one period. ``charged`` is the epsilon that this run debited for it."""

    item: Item
    result: str
    message: str
    charged: float = 0.0
    rows: int | None = None
    output: str = ""

    def facts(self) -> dict[str, object]:
        """As plain data."""
        return {
            "release": self.item.releases.name,
            "period": self.item.period.label,
            "result": self.result,
            "message": self.message,
            "charged_epsilon": self.charged,
            "rows": self.rows,
            "output": self.output,
        }


@dataclass(frozen=True, slots=True)
class Run:
    """All outcomes of a run; ``exit_code`` is 0, 1 (something failed) or 3 (a budget refused)."""

    outcomes: tuple[Outcome, ...]

    @property
    def exit_code(self) -> int:
        """That of the command."""
        results = {one.result for one in self.outcomes}
        if FAILED in results:
            return EXIT_FAILED
        return EXIT_REFUSED if REFUSED in results else EXIT_DONE


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run would do for one period.

    ``epsilon`` is what it debits, 0 for what is paid already, None if the cost is not known. With a
    ``problem`` nothing is debited before that is mended.
    """

    item: Item
    epsilon: float | None
    reads: str
    writes: str
    ledger: str
    bound: str
    problem: str = ""

    def facts(self) -> dict[str, object]:
        """As plain data."""
        return {
            "release": self.item.releases.name,
            "period": self.item.period.label,
            "epsilon": self.epsilon,
            "reads": self.reads,
            "writes": self.writes,
            "ledger": self.ledger,
            "bound": self.bound,
            "problem": self.problem,
        }


def run(
    path: str | os.PathLike[str] = "dpsyn.yml",
    *,
    select: Sequence[str] = (),
    now: datetime | None = None,
    told: Callable[[Outcome], None] = lambda outcome: None,
) -> Run:
    """Release what is due, oldest first.

    Args:
        path: the file of the schedule.
        select: ``NAME`` or ``NAME:PERIOD``; other releases stay as they are.
        now: the present time in UTC; default: the clock.
        told: is called with each outcome as soon as there is one.

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
        wanted = _wanted(schedule, states(schedule, records, now, look=bool(select)), select)
        _check_methods(schedule, wanted)
        _set_limits(schedule, records)
        return _carried_out(schedule, wanted, now, told)


def preview(
    path: str | os.PathLike[str] = "dpsyn.yml", *, select: Sequence[str] = (), now: datetime | None = None
) -> tuple[Preview, ...]:
    """What ``run`` would do. Reads no row, charges nothing, changes nothing.

    Raises:
        ScheduleError: as ``run``.
        InputError: as ``run``.
        LedgerError: the ledger cannot be read.
    """
    schedule, now = read_schedule(path), now or utc_now()
    records = read_records(schedule.ledger)
    check_clock(schedule, records, now)
    found = states(schedule, records, now, look=bool(select))
    wanted = _wanted(schedule, found, select)
    _check_methods(schedule, wanted)
    _check_limits(schedule, records)
    known = {state.item.key: state.state for state in found}
    spent = list(records.spending(schedule.items(now)))
    return tuple(_previewed(schedule, item, known[item.key], records, spent, now) for item in wanted)


# -- what is wanted ----------------------------------------------------------------------------------


def _wanted(schedule: Schedule, found: Sequence[State], select: Sequence[str]) -> list[Item]:
    """Open periods, oldest first; a selected period whose output is gone is written again at no cost."""
    if not select:
        return oldest_first([state.item for state in found if state.state in OPEN])
    chosen: dict[tuple[str, str], Item] = {}
    problems = []
    for text in select:
        name, colon, label = text.partition(":")
        mine = [state for state in found if state.item.releases.name == name]
        if not mine:
            names = [one.name for one in schedule.releases]
            problems.append(f"--select {text!r}: there is no such release; there are {listed(names)}")
            continue
        named = [state for state in mine if state.item.period.label == label] if colon else mine
        if not named:
            labels = [state.item.period.label for state in mine]
            close = near_matches(label, labels) or labels[-3:]
            problems.append(f"--select {text!r}: {name!r} has no such period; it has {listed(close)}")
        for state in named:
            earlier = _open_before(state, mine)
            if earlier is not None and colon and not {f"{name}:{earlier}", name} & set(select):
                problems.append(
                    f"--select {text!r}: {name}:{earlier} comes first. With windows_per_unit or cumulative a "
                    "window that is released after a later one is charged in full"
                )
            elif state.state in OPEN or (colon and state.state == GONE):
                chosen[state.item.key] = state.item
            elif colon and state.state != PUBLISHED:
                problems.append(f"--select {text!r}: it is not due before {state.due:%Y-%m-%d %H:%M}")
    if problems:
        raise InputError("\n".join(["Nothing was done.", *problems]))
    return oldest_first(list(chosen.values()))


def _open_before(state: State, series: Sequence[State]) -> str | None:
    """The label of an earlier window that is still open, where the order of the windows matters."""
    if not state.item.releases.ordered or state.state not in OPEN:
        return None
    before = [one for one in series if one.item.period.index < state.item.period.index]
    return next((one.item.period.label for one in before if one.state in OPEN), None)


def _check_methods(schedule: Schedule, wanted: Sequence[Item]) -> None:
    """Methods take long to load: their settings are checked where something is due."""
    if not wanted:
        return
    from dpsyn_sql.methods import method_of, static_of

    for one in schedule.releases:
        problem = ""
        try:
            if "method" in one.options:
                (static_of if one.cumulative else method_of)(one.options["method"])
        except InputError as error:
            problem = in_keys(str(error))
        if problem:
            schedule.faults.add(("releases", one.name, "method"), f"releases.{one.name}: {problem}")
    schedule.faults.refuse()


# -- limits --------------------------------------------------------------------------------------------


def _check_limits(schedule: Schedule, records: Records) -> bool:
    """Whether the ledger has other limits than the file.

    Raises:
        ScheduleError: a limit is below what is spent.
    """
    changed = False
    for account in schedule.accounts.values():
        known = records.accounts.get(account.name)
        if account.limit is None or (known is not None and known.granted == _pair(account.limit)):
            continue
        changed = True
        limit = account.limit.budget
        if known is not None and known.spent.kind == limit.kind:
            spent = known.spent
            if spent.amount > limit.amount or spent.delta > limit.delta:
                schedule.faults.add(
                    ("accounts", account.name, "limit"),
                    f"accounts.{account.name}: the limit {account.limit} is {describe(limit)}, and "
                    f"{describe(spent)} is spent already. A limit is never lowered below what is spent",
                )
    schedule.faults.refuse()
    return changed


def _set_limits(schedule: Schedule, records: Records) -> None:
    """Grant the lifetime limits of the file, where the ledger has others.

    Raises:
        ScheduleError: a limit is below what is spent.
    """
    if not _check_limits(schedule, records):
        return
    with closing(SqliteLedger(schedule.ledger)) as ledger:
        for account in schedule.accounts.values():
            known = records.accounts.get(account.name)
            if account.limit is not None and (known is None or known.granted != _pair(account.limit)):
                ledger.grant(account.name, account.limit.epsilon, account.limit.delta)


def _pair(limit: Any) -> tuple[str, str]:
    return limit.epsilon, limit.delta


# -- carrying out --------------------------------------------------------------------------------------


def _carried_out(
    schedule: Schedule, wanted: Sequence[Item], now: datetime, told: Callable[[Outcome], None]
) -> Run:
    outcomes: list[Outcome] = []
    stopped: dict[str, tuple[str, datetime]] = {}
    for item in wanted:
        why, until = stopped.get(item.releases.name, ("", datetime.min))
        if why and (item.period.begins or now) < until:
            outcome = Outcome(item, SKIPPED if why.endswith("failed") else REFUSED, f"not tried: {why}")
        else:
            outcome, ends = _released(schedule, item, now)
            if outcome.result == REFUSED:
                stopped[item.releases.name] = (f"{item} was refused by its budget", ends or datetime.max)
            elif outcome.result == FAILED and item.releases.ordered:
                # A window that is read after a later one is charged in full.
                stopped[item.releases.name] = (f"{item} comes first and failed", datetime.max)
        outcomes.append(outcome)
        told(outcome)
    return Run(tuple(outcomes))


def _released(schedule: Schedule, item: Item, now: datetime) -> tuple[Outcome, datetime | None]:
    """One period; for a refusal by the limit of a budget period, where that ends."""
    from dpsyn_sql.pipeline import release  # loads everything that a release loads
    from dpsyn_sql.totals import running_total

    con = item.releases.source.database
    request = schedule.request(item)
    try:
        problem, ends = _over_limit(schedule, item, now)
        if problem:
            return Outcome(item, REFUSED, problem), ends
        made = running_total(con, request) if request.cumulative else release(con, request)
    except PrivacyBudgetExceeded as error:
        return Outcome(item, REFUSED, _in_limits(str(error), schedule, item)), None
    except DpsynError as error:
        return Outcome(item, FAILED, in_keys(str(error))), None
    entry = read_records(schedule.ledger).of(item)
    charged = 0.0 if made.replayed or entry is None else epsilon_of(item, entry.charged)
    cost = "nothing more charged" if made.replayed else f"epsilon={charged:.4g} charged"
    message = f"{made.rows} rows to {made.table}; {cost}"
    return Outcome(item, DONE, message, charged, made.rows, made.table), None


def _in_limits(text: str, schedule: Schedule, item: Item) -> str:
    """A refusal of the ledger: a limit of the file is raised there, since a run sets it again."""
    account = schedule.accounts.get(item.releases.source.account or "")
    if account is None or account.limit is None:
        return text
    return text.replace("(`dpsyn ledger grant`)", f"(limit: of accounts.{account.name})")


def _over_limit(schedule: Schedule, item: Item, now: datetime) -> tuple[str, datetime | None]:
    """Whether a limit of a budget period refuses a new debit, by what the ledger holds at this moment."""
    account = schedule.accounts.get(item.releases.source.account or "")
    records = read_records(schedule.ledger)
    if account is None or not account.per or records.of(item) is not None:
        return "", None
    return refusal(schedule, item, _cost(schedule, item), records.spending(schedule.items(now)), now)


def _cost(schedule: Schedule, item: Item) -> Budget:
    """What the release would debit exactly, by its plan; no row is read."""
    from dpsyn_sql.explanation import plan

    return plan(item.releases.source.database, schedule.request(item)).cost


# -- previews ------------------------------------------------------------------------------------------


def _previewed(
    schedule: Schedule, item: Item, state: str, records: Records, spent: list[Spending], now: datetime
) -> Preview:
    """One period; what it would debit is added to ``spent`` for the next ones."""
    from dpsyn_sql.explanation import plan

    source = item.releases.source
    request, reads, bound = schedule.request(item), _reading(schedule, item), participation(item.releases)
    try:
        explained = plan(source.database, request)
    except DpsynError as error:
        return Preview(item, None, reads, str(request.into), state, bound, in_keys(str(error)))
    problem = in_keys(explained.obstacle)
    cost = _after_others(item, explained.cost, records, spent)
    if records.of(item) is not None:
        return Preview(item, 0.0, reads, explained.into, explained.outlook, bound, problem)
    account = schedule.accounts.get(source.account or "")
    if not problem and over_lifetime(account, cost, spent):
        problem = f"would be refused: the limit of the account {source.account!r} would be exceeded"
    problem = problem or refusal(schedule, item, cost, spent, now)[0]
    if problem:
        return Preview(item, epsilon_of(item, cost), reads, explained.into, explained.outlook, bound, problem)
    spent.append(Spending(source.account or "", cost, item.period.begins or now, item.releases.name))
    return Preview(item, epsilon_of(item, cost), reads, explained.into, explained.outlook, bound)


def _after_others(item: Item, cost: Budget, records: Records, spent: Sequence[Spending]) -> Budget:
    """What a period costs after those previewed before it; ``cost`` is what the ledger says as it is now."""
    mine = [one for one in spent if one.name == item.releases.name]
    recorded = sum(1 for one in records.releases if one.name == item.releases.name)
    previewed, most = mine[recorded:], item.releases.most
    if not previewed:
        return cost
    # If it costs something although enough windows are paid, those were of another panel, or cheaper.
    return expected(item, cost, previewed if most is not None and recorded >= most else mine)


def _reading(schedule: Schedule, item: Item) -> str:
    """What a period reads, in words."""
    source, period = item.releases.source, item.period
    request = schedule.request(item)
    text, total = str(request.source), request.total()
    reads = f"{text} of {source.database}" if source.database else text
    if total is not None and isinstance(request.slice, Window):
        node = total.node(request.slice)
        return f"{reads}, {source.window} from {moment_text(node.start)} until before {moment_text(node.end)}"
    if period.begins is not None and period.ends is not None and source.window is not None:
        span = f"from {moment_text(period.begins)} until before {moment_text(period.ends)}"
        return f"{reads}, {source.window} {span}"
    if item.releases.partition_by is not None:
        return f"{reads}, {item.releases.partition_by} = {period.partition!r}"
    return reads


def participation(one: Releases) -> str:
    """How often a person can be in a series, and what that costs."""
    epsilon = one.options.get("epsilon", 1.0)
    if isinstance(one.series, Single):
        return ""
    most, count = one.windows_per_unit, one.series.count()
    of_rows = str(one.options.get("privacy_unit", "row")).lower() == "row"
    if one.cumulative:
        bound = "a person can be in all of them"
        if most is not None:
            bound = f"a person counts in at most {most}, which is enforced"
        if of_rows:
            bound = "a row is in one of them"
        return f"running totals of {count} windows, {bound}: epsilon={epsilon} in all"
    if most is not None and isinstance(one.series, Calendar | Listed):
        if of_rows:
            return f"a row is in one window: epsilon={epsilon} in all, for a row and not for a person's rows"
        enforced = f"a person counts in at most {most} windows, which is enforced"
        return f"{enforced}: {most} x epsilon={epsilon} in all"
    if one.partition_by is not None and of_rows:
        return f"{count} partitions, a row is in one of them: epsilon={epsilon} in all"
    what = "windows" if isinstance(one.series, Calendar | Listed) else "partitions"
    if count is None:
        return f"windows without an end, a person can be in all of them: epsilon={epsilon} for each"
    if count == 1:
        return f"one {what.removesuffix('s')}: epsilon={epsilon}"
    whole = float(count * exact_number("epsilon", epsilon))
    total = f"{count} x epsilon={epsilon}, at most {whole:g} in all"
    return f"{count} {what}, a person can be in all of them: {total}"
