"""What a run would do: what it would read, write and debit, by plans that cost nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.accounting.budget import exact_number
from dpsyn_sql.errors import DpsynError
from dpsyn_sql.schedule.calendar import (
    Calendar,
    Item,
    Listed,
    ReleaseSeries,
    Schedule,
    Single,
    in_keys,
    moment_text,
)
from dpsyn_sql.schedule.reading import read_schedule
from dpsyn_sql.schedule.records import (
    Records,
    ScheduleSpending,
    check_clock,
    epsilon_of,
    of_panel,
    read_records,
    states,
    utc_now,
)
from dpsyn_sql.schedule.running import check_due, other_limits, planned, wanted
from dpsyn_sql.source.slices import Window


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
        names = ("epsilon", "reads", "writes", "ledger", "bound", "problem")
        return self.item.facts(**{name: getattr(self, name) for name in names})


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
    period_states = states(schedule, records, now, look=bool(select))
    chosen = wanted(schedule, period_states, select)
    check_due(schedule, chosen)
    other_limits(schedule, records)
    state_of_key = {state.item.key: state.state for state in period_states}
    spent = ScheduleSpending(schedule, records, schedule.items(now), now)
    return tuple(_previewed(schedule, item, state_of_key[item.key], records, spent) for item in chosen)


def _previewed(
    schedule: Schedule, item: Item, state: str, records: Records, spent: ScheduleSpending
) -> Preview:
    """One period; what it would debit is added to ``spent`` for the next ones."""
    source = item.releases.source
    request, reads = schedule.request(item), _reading(schedule, item)
    bound = participation(item.releases, records)
    try:
        explained = planned(item, request)
    except DpsynError as error:
        return Preview(item, None, reads, str(request.into), state, bound, in_keys(str(error)))
    problem, cost = in_keys(explained.obstacle), spent.after_foreseen(item, explained.cost)
    epsilon = 0.0
    if records.of(item) is None:
        epsilon = epsilon_of(item, cost)
        if not problem and spent.over_lifetime(item, cost):
            problem = f"would be refused: the limit of the account {source.account!r} would be exceeded"
        problem = problem or spent.refusal(item, cost)[0]
        if not problem:
            spent.add(item, cost)
    return Preview(item, epsilon, reads, explained.into, explained.preview, bound, problem)


def _reading(schedule: Schedule, item: Item) -> str:
    """What a period reads, in words."""
    source, period = item.releases.source, item.period
    request = schedule.request(item)
    if request.several:
        return f"{', '.join(source.tables)} of {item.releases.con(period)}"
    text, total = str(request.source), request.total()
    reads = f"{text} of {source.database}" if source.database else text
    if total is not None and isinstance(request.window, Window):
        node = total.node(request.window)
        return f"{reads}, {source.window} from {moment_text(node.start)} until before {moment_text(node.end)}"
    if period.begins is not None and period.ends is not None and source.window is not None:
        begins = period.begins
        if item.releases.panel and isinstance(request.window, Window):
            begins = replace(request.window, index=max(period.index - 1, 0)).start
        span = f"from {moment_text(begins)} until before {moment_text(period.ends)}"
        return f"{reads}, {source.window} {span}"
    if item.releases.partition_by is not None:
        return f"{reads}, {item.releases.partition_by} = {period.partition!r}"
    return reads


def participation(release: ReleaseSeries, records: Records) -> str:
    """How often a person can be in a series, and what that costs."""
    epsilon = release.epsilon
    if isinstance(release.series, Single):
        return ""
    if release.panel:
        return of_panel(release, records)
    most, count = release.windows_per_unit, release.series.count()
    of_rows = release.of_rows
    if release.cumulative:
        return _of_totals(release, of_rows)
    if most is not None and isinstance(release.series, Calendar | Listed):
        if of_rows:
            return f"a row is in one window: epsilon={epsilon} in all, for a row and not for a person's rows"
        enforced = f"a person counts in at most {most} windows, which is enforced"
        return f"{enforced}: {most} x epsilon={epsilon} in all"
    if release.partition_by is not None and of_rows:
        return f"{count} partitions, a row is in one of them: epsilon={epsilon} in all"
    slices = "windows" if isinstance(release.series, Calendar | Listed) else "partitions"
    if count is None:
        return f"windows without an end, a person can be in all of them: epsilon={epsilon} for each"
    if count == 1:
        return f"one {slices.removesuffix('s')}: epsilon={epsilon}"
    each = f"{count} x epsilon={epsilon}, at most {shown(count * exact_number('epsilon', epsilon))} in all"
    return f"{count} {slices}, a person can be in all of them: {each}"


def _of_totals(release: ReleaseSeries, of_rows: bool) -> str:
    """The same for running totals, with the noise of both ways."""
    most, total = release.windows_per_unit, release.total(release.first)
    bound = "a person can be in all of them"
    if most is not None:
        bound = f"a person counts in at most {most}, which is enforced"
    if of_rows:
        bound = "a row is in one of them"
    cost = f"epsilon={release.epsilon} in all"
    noise_words = "" if total is None else f". {'; '.join(total.ways)}"
    return f"running totals of {release.series.count()} windows, {bound}: {cost}{noise_words}"
