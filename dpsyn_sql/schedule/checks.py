"""What is checked of a schedule, and of its outputs."""

from __future__ import annotations

import fnmatch
import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpsyn_sql.errors import DpsynError, said
from dpsyn_sql.front.request import NOT_OF_A_PANEL, is_output_of_tables
from dpsyn_sql.schedule.calendar import (
    MOST_PERIODS,
    PLACEHOLDERS,
    Calendar,
    ReleaseSeries,
    Schedule,
    ScheduledSource,
    look_of_labels,
    unaligned,
)
from dpsyn_sql.schedule.document import LimitSpec
from dpsyn_sql.schedule.lines import Faults, Place
from dpsyn_sql.source.files import ending_of, looks_like_path
from dpsyn_sql.source.names import WILDCARDS, absolute_path, display_name, fold, near_matches, split_name

# -- outputs -----------------------------------------------------------------------------------------

# Outputs of a schedule: no two releases have the same one, and none is released again. Nothing is opened.

_ANY = "anyperiod"
_NAME = re.compile(r'"(?:[^"]|"")+"|[^\W\d]\w*(?:\.(?:"(?:[^"]|"")+"|\w+))*|\'(?:[^\']|\'\')*\'')
_NOTHING_GAINED = (
    "Nothing is gained: the rows are synthetic already, and noise would be added and paid a second time. "
    "Query the release itself; that is post-processing and costs nothing"
)


def check_outputs(schedule: Schedule, faults: Faults) -> None:
    """Each release has an output of its own."""
    patterns: dict[str, str] = {}
    written: dict[str, str] = {}
    calendars: list[tuple[re.Pattern[str], str]] = []
    for release in schedule.releases:
        pattern, mine = _output_pattern(schedule, release), _written(schedule, release)
        same = [patterns.get(pattern), *(written.get(output) for output in mine)]
        same += [name for of, name in calendars if any(map(of.fullmatch, mine))]
        if isinstance(release.series, Calendar):
            of = re.compile(_output_pattern(schedule, release, labels=look_of_labels(release.series.cadence)))
            same += [name for output, name in written.items() if of.fullmatch(output)]
            calendars.append((of, release.name))
        rival = next((name for name in same if name is not None), None)
        if rival is not None:
            message = f"{rival!r} has the same output; give each release its own"
            faults.at(("releases", release.name), message, "output")
        patterns.setdefault(pattern, release.name)
        written |= {output: release.name for output in mine if output not in written}


def _output_pattern(schedule: Schedule, release: ReleaseSeries, labels: str = "") -> str:
    """The output of any period: its placeholders are wildcards, or in a regular expression ``labels``."""
    plain = PLACEHOLDERS.sub(lambda match: release.name if match[1] == "release" else _ANY, release.output)
    if release.to_file:
        text = str(absolute_path(Path(schedule.folder, plain)))
    else:
        database = PLACEHOLDERS.sub(_ANY, str(release.source.database))
        text = f"{database}:{fold(display_name(*(split_name(plain) or (plain,))))}"
    return re.escape(text).replace(_ANY, labels) if labels else text.replace(_ANY, "*")


def _written(schedule: Schedule, release: ReleaseSeries) -> list[str]:
    """All outputs, but of a calendar, which can have very many."""
    if isinstance(release.series, Calendar):
        return []
    periods = list(release.series.periods(datetime.max))
    outputs = [(release.con(period), release.into(period, schedule.folder)) for period in periods]
    return [
        str(absolute_path(into)) if isinstance(into, Path) else f"{database}:{fold(into)}"
        for database, into in outputs
    ]


def check_circles(schedule: Schedule, faults: Faults) -> None:
    """No release reads what another one writes."""
    fed = {
        reader.name: {
            writer.name
            for writer in schedule.releases
            if _feeds(_output_pattern(schedule, writer), writer, reader, schedule)
        }
        for reader in schedule.releases
    }
    for name, writers in fed.items():
        for writer in sorted(writers):
            circle = "; the two feed each other" if name in fed[writer] and name != writer else ""
            circle = "; it feeds itself" if name == writer else circle
            message = f"its source is the output of {writer!r}{circle}. {_NOTHING_GAINED}"
            faults.at(("releases", name), message, "source")


def _feeds(output: str, writer: ReleaseSeries, reader: ReleaseSeries, schedule: Schedule) -> bool:
    """Whether the source of ``reader`` reads an output of ``writer``."""
    source = reader.source
    if writer.source.tables:
        return _feeds_of_tables(output, writer, source, schedule.folder)
    if source.path is not None:
        path = str(absolute_path(Path(schedule.folder, PLACEHOLDERS.sub("*", source.path))))
        return writer.to_file and _same(output, path if ending_of(path) else f"{path}/*")
    for word in _NAME.findall(", ".join(source.tables) if source.tables else source.text):
        if word.startswith("'"):
            path = word[1:-1].replace("''", "'")
            if writer.to_file and ending_of(path) and _same(output, str(absolute_path(path))):
                return True
        elif not writer.to_file and source.database == writer.source.database:
            name = fold(display_name(*(split_name(word) or (word,))))
            wanted = output.partition(":")[2]
            if fnmatch.fnmatchcase(name, wanted) or fnmatch.fnmatchcase(name.rpartition(".")[2], wanted):
                return True
    return False


def _feeds_of_tables(output: str, writer: ReleaseSeries, source: ScheduledSource, folder: Path) -> bool:
    """Whether a source reads a schema, a database or a folder that a database of tables was released to."""
    if not writer.to_file:
        names = source.tables or _NAME.findall(source.text)
        schemas = [
            fold(name_parts[-2])
            for name_parts in map(split_name, names)
            if name_parts is not None and len(name_parts) > 1
        ]
        mine = PLACEHOLDERS.sub("*", str(source.database)), PLACEHOLDERS.sub("*", str(writer.source.database))
        return mine[0] == mine[1] and any(
            fnmatch.fnmatchcase(schema, output.partition(":")[2]) for schema in schemas
        )
    read = [str(source.database)] if source.database else [] if source.path is None else [source.path]
    paths = [str(absolute_path(Path(folder, PLACEHOLDERS.sub("*", path)))) for path in read]
    return any(_same(output, path) or _same(f"{output}/*", path) for path in paths)


def _same(output: str, path: str) -> bool:
    """Whether a path or a glob and an output with wildcards can mean one file."""
    if not WILDCARDS & set(path):
        return fnmatch.fnmatchcase(path, output)
    return fnmatch.fnmatchcase(output, path) or fnmatch.fnmatchcase(path, output)


# -- checks ------------------------------------------------------------------------------------------

# What must hold between the parts of a schedule. Public facts only; nothing is opened.

_BRACE = re.compile(r"\{\w+\}|[{}]")
_LONGEST = 100


def check_document(document: Any, faults: Faults) -> None:
    """Each entry by itself."""
    for kind in ("sources", "releases", "accounts"):
        for name in getattr(document, kind):
            if problem := _wrong_name(name, kind):
                faults.add((kind, name), f"{kind}: the name {said(name)} {problem}")
    _check_accounts(document, faults)
    for name, spec in document.sources.items():
        _check_source(("sources", name), spec, faults)
    for name, spec in document.releases.items():
        source = document.sources.get(spec.source)
        entry: Place = ("releases", name)
        if source is None and ("sources", spec.source) not in faults.places:
            close = near_matches(spec.source, document.sources) or list(document.sources)
            message = f"there is no source {said(spec.source)}; did you mean {close[0]!r}?"
            faults.at(entry, message, "source")
        _check_series(entry, spec, faults)
        _check_output(entry, spec, source, faults)
        if source is not None:
            _check_reading(entry, spec, source, faults)
        if spec.panel:
            _check_panel(entry, spec, source, faults)


def _wrong_name(name: str, kind: str) -> str:
    if not name or not name.isprintable() or len(name) > _LONGEST:
        return f"must be printable text of 1 to {_LONGEST} characters"
    if "{" in name or "}" in name:
        return "must not have braces: {period} and {partition} stand for labels"
    if kind != "accounts" and (set(name) & set("/\\:") or name[0] in "-."):
        return "must not have / \\ or : and must not begin with - or ."
    return ""


def _check_accounts(document: Any, faults: Faults) -> None:
    used = {spec.account for spec in document.sources.values() if spec.account}
    declared = list(document.accounts)
    for name, spec in document.sources.items():
        entry: Place = ("sources", name)
        if spec.account and declared and spec.account not in declared:
            faults.at(entry, f"the account {said(spec.account)} is not under accounts:", "account")
        if not spec.account and len(declared) > 1:
            faults.at(entry, f"write account:, one of {', '.join(map(repr, declared))}")
    for name, account in document.accounts.items():
        entry = ("accounts", name)
        if len(declared) > 1 and name not in used:
            faults.at(entry, "no source has it, so its limit would protect nothing")
        if account.limit is None and not account.of_periods:
            faults.at(entry, "write limit: or per:")


def _check_source(entry: Place, spec: Any, faults: Faults) -> None:
    kinds = [kind for kind in ("path", "table", "query", "tables") if getattr(spec, kind) is not None]
    if len(kinds) != 1 or not (kinds == ["tables"] or getattr(spec, kinds[0]).strip()):
        faults.at(entry, "write one of path:, table: or tables: with database:, or query:")
        return
    if kinds[0] in ("table", "tables") and spec.database is None:
        faults.at(entry, f"database: is missing, the DuckDB file that has the {kinds[0]}")
        return
    if kinds == ["tables"]:
        _check_pattern(entry, "database", spec, faults)
        if spec.window is not None:
            message = "window: has no meaning with tables:; write {period} in database:, one file a period"
            faults.at(entry, message, "window")
    if kinds == ["path"]:
        if spec.database is not None:
            faults.at(entry, "database: has no meaning with path:; write one of them", "database")
        _check_pattern(entry, "path", spec, faults)


def _check_pattern(entry: Place, key: str, spec: Any, faults: Faults) -> None:
    """A name of files, one for each period or partition."""
    placeholders = set(PLACEHOLDERS.findall(getattr(spec, key)))
    _check_braces(entry, key, getattr(spec, key), {"period", "partition"}, faults)
    if placeholders and not spec.account:
        faults.at(
            entry,
            "write account:. Each file would have an account of its own, and nobody would see what is spent "
            "on a person who is in several of them",
        )
    if "period" in placeholders and spec.window is not None and key == "path":
        faults.at(entry, "write window: or {period} in path:, not both", "window")


def _check_series(entry: Place, spec: Any, faults: Faults) -> None:
    kinds = [kind for kind in ("cadence", "windows", "partitions") if getattr(spec, kind) is not None]
    if len(kinds) != 1:
        faults.at(entry, "write one of cadence:, windows: or partitions:")
        return
    kind = spec.cadence if kinds == ["cadence"] else kinds[0]
    takes = {
        "windows": ("wait", "windows_per_unit", "cumulative", "panel"),
        "partitions": ("partition_by",),
        "once": ("start",),
    }
    allowed = takes.get(kind, ("start", "end", "wait", "windows_per_unit", "cumulative", "panel"))
    for key in ("start", "end", "wait", "windows_per_unit", "partition_by", "cumulative", "panel"):
        if getattr(spec, key) is not None and key not in allowed:
            faults.at(entry, f"{key}: has no meaning with {kind}", key)
    if kind == "windows":
        _check_windows(entry, spec.windows, faults)
    elif kind == "partitions":
        _check_labels(entry, "partitions", spec.partitions, faults)
    elif kind != "once":
        _check_calendar(entry, spec, faults)


def _check_calendar(entry: Place, spec: Any, faults: Faults) -> None:
    if spec.start is None:
        faults.at(entry, f"start: is missing, where the first {spec.cadence} begins")
        return
    for key, moment in (("start", spec.start), ("end", spec.end)):
        if moment is not None and (first := unaligned(spec.cadence, moment)):
            faults.at(entry, f"{key}: {moment} is not {first}, where a {spec.cadence} begins", key)
    if spec.end is None:
        return
    if spec.end <= spec.start:
        faults.at(entry, f"end: {spec.end} is not after start: {spec.start}", "end")
    elif (spec.end - spec.start).total_seconds() / 3600 > MOST_PERIODS and spec.cadence == "hour":
        faults.at(entry, f"there are more than {MOST_PERIODS} periods", "end")


def _check_windows(entry: Place, windows: list[Any], faults: Faults) -> None:
    _check_labels(entry, "windows", [window.label for window in windows], faults)
    for position, window in enumerate(windows):
        if window.ends <= window.begins:
            message = f"the window {window.label!r} ends at {window.ends}, not after {window.begins}"
            faults.at(entry, message, "windows", position)
    numbered = sorted(enumerate(windows), key=lambda item: item[1].begins)
    for (_, earlier), (position, later) in pairwise(numbered):
        if later.begins < earlier.ends:
            message = f"the windows {earlier.label!r} and {later.label!r} overlap: rows would be in both"
            faults.at(entry, message, "windows", position)


def _check_labels(entry: Place, key: str, labels: list[str], faults: Faults) -> None:
    declared: set[str] = set()
    for position, label in enumerate(labels):
        problems = []
        if not label or not label.isprintable() or len(label) > _LONGEST:
            problems.append(f"is no label: give 1 to {_LONGEST} printable characters")
        elif set(label) & set("{}/\\:*?[]") or label[0] in "-.":
            problems.append("must not have { } / \\ : * ? [ ] nor begin with - or .")
        if label in declared:
            problems.append("is declared twice")
        elif fold(label) in {fold(earlier) for earlier in declared}:
            problems.append("differs from another label in letter case only")
        for problem in problems:
            the = "the label " if problem.startswith("must") else ""
            faults.at(entry, f"{the}{said(label)} {problem}", key, position)
        declared.add(label)


def _check_output(entry: Place, spec: Any, source: Any, faults: Faults) -> None:
    placeholder = "period" if spec.partitions is None else "partition"
    _check_braces(entry, "output", spec.output, {"release", placeholder}, faults)
    placeholders = PLACEHOLDERS.findall(spec.output)
    if spec.panel and placeholder in placeholders:
        message = f"output: a panel is one table that grows: leave out {{{placeholder}}}"
        faults.at(entry, message, "output")
    elif spec.cadence != "once" and not spec.panel and placeholder not in placeholders:
        message = f"output: needs {{{placeholder}}}, or each release would overwrite the one before"
        faults.at(entry, message, "output")
    plain = PLACEHOLDERS.sub("x", spec.output)
    if source is None:
        return
    if source.tables:
        _check_output_of_tables(entry, spec, plain, faults)
    elif looks_like_path(plain):
        if ending_of(plain) is None:
            faults.at(entry, "output: a file must end in .parquet, .csv or .csv.gz", "output")
    elif source.database is None and not spec.panel:
        message = f"output: must be a file, because the source {spec.source!r} has no database:"
        faults.at(entry, message, "output")
    elif split_name(plain) is None:
        faults.at(entry, f"output: {said(spec.output)} is no name of a table", "output")


def _check_output_of_tables(entry: Place, spec: Any, plain: str, faults: Faults) -> None:
    """A schema, a DuckDB file, or a folder."""
    if not is_output_of_tables(plain):
        if len(split_name(plain) or ()) != 1:
            faults.at(entry, f"output: {said(spec.output)} is no name of a schema", "output")
    elif ending_of(plain) is not None:
        faults.at(entry, "output: must be a schema, a DuckDB file, or a folder of Parquet files", "output")


def _check_reading(entry: Place, spec: Any, source: Any, faults: Faults) -> None:
    """What says which rows of the source belong to a period."""
    key = "database" if source.tables else "path"
    placeholders = set(PLACEHOLDERS.findall(getattr(source, key) or ""))
    if spec.partition_by is not None and source.tables:
        message = "partition_by: has no meaning with tables:; write {partition} in database:, one file each"
        faults.at(entry, message, "partition_by")
        return
    if spec.partitions is not None:
        if "period" in placeholders or ("partition" in placeholders) == (spec.partition_by is not None):
            faults.at(entry, f"write partition_by: with a column, or {{partition}} in {key}: of the source")
        return
    if "partition" in placeholders:
        faults.at(entry, f"{{partition}} in {key}: of the source needs partitions:", "source")
    if spec.cadence == "once":
        if "period" in placeholders:
            faults.at(entry, f"{{period}} in {key}: of the source needs periods", "cadence")
        return
    if source.window is None and "period" not in placeholders and not spec.panel:
        column = "" if source.tables else f"window: with a column of dates in the source {spec.source!r}, or "
        message = f"which rows belong to a period? Write {column}{{period}} in its {key}:"
        faults.at(entry, message, "source")
    if spec.cumulative and not spec.panel and (problem := _undivided(spec, source)):
        faults.at(entry, f"cumulative: {problem}", "cumulative")
    if spec.cumulative and not spec.panel and spec.order is not None:
        message = (
            "order: has no meaning with cumulative: rows of a running total are not ordered; leave it out"
        )
        faults.at(entry, message, "order")
    if spec.windows_per_unit not in (None, 1) and (spec.unit or "row").lower() == "row":
        message = "windows_per_unit: must be 1 with single rows as units: a row is in one window"
        faults.at(entry, message, "windows_per_unit")
    if spec.windows_per_unit is not None and "period" in placeholders:
        message = "windows_per_unit: needs window: in the source; no bound holds across files"
        faults.at(entry, message, "windows_per_unit")


def _undivided(spec: Any, source: Any) -> str:
    """Why a budget is not divided among periods: the whole calendar decides what a period costs."""
    if source.window is None:
        return "needs window: in the source; periods of different files are not one calendar"
    if spec.windows is None:
        last = "needs end:, where the last period ends; epsilon is for all periods together"
        return "" if spec.end else last
    ascending = sorted(spec.windows, key=lambda window: window.begins)
    gaps = any(earlier.ends != later.begins for earlier, later in pairwise(ascending))
    return "needs windows: without gaps" if gaps else ""


def _check_panel(entry: Place, spec: Any, source: Any, faults: Faults) -> None:
    """A panel is a table that grows in the database of its source, with a row for each person and period."""
    if source is not None and (source.tables or source.database is None):
        message = "panel: is a table that grows in the database of its source: give the source database: and "
        faults.at(entry, f"{message}table: or query:", "source")
        return
    for key in (*NOT_OF_A_PANEL, "cumulative"):
        value = getattr(spec, key, None)
        if value is not None and value is not False:
            message = f"{key}: has no meaning with panel: a period follows from those before it; leave it out"
            faults.at(entry, message, key)
    if spec.windows_per_unit is not None:
        message = (
            "windows_per_unit: leave it out: a person can be in all periods of a panel, and all are charged"
        )
        faults.at(entry, message, "windows_per_unit")
    if (spec.unit or "row").lower() == "row":
        message = "panel: follows persons: write unit: with the column that identifies them"
        faults.at(entry, message, "unit" if spec.unit else "panel")
    if spec.most not in (None, 1):
        message = "most: leave it out: a person has one row in each period of a panel"
        faults.at(entry, message, "most")
    if looks_like_path(PLACEHOLDERS.sub("x", spec.output)):
        message = (
            "output: a panel is a table of the database of its source: write the name of a table, no path"
        )
        faults.at(entry, message, "output")
    if source is not None and spec.cadence != "once" and (problem := _undivided(spec, source)):
        faults.at(entry, f"panel: {problem}", "panel")


def _check_braces(entry: Place, key: str, text: str, placeholders: set[str], faults: Faults) -> None:
    for brace in dict.fromkeys(_BRACE.findall(text)):
        if brace.strip("{}") not in placeholders or len(brace) == 1:
            allowed = " and ".join(f"{{{placeholder}}}" for placeholder in sorted(placeholders))
            faults.at(entry, f"{key}: {brace} is not known here; allowed are {allowed}", key)


# -- between entries ---------------------------------------------------------------------------------


def check_schedule(schedule: Schedule, faults: Faults) -> None:
    """Outputs, sources and budgets of all releases together."""
    check_outputs(schedule, faults)
    check_circles(schedule, faults)
    _check_units(schedule, faults)
    for release in schedule.releases:
        _check_budget(schedule, release, faults)


def _check_units(schedule: Schedule, faults: Faults) -> None:
    units: dict[str, tuple[str, str]] = {}
    for release in schedule.releases:
        account = release.source.account
        if account is None:
            continue
        unit = release.unit
        if unit is None:
            continue
        protected, name = units.setdefault(account, (unit, release.name))
        if fold(protected) != fold(unit):
            message = (
                f"the account {account!r} protects {protected!r} for {name!r}; {unit!r} needs another account"
            )
            key = "unit"
            faults.at(("releases", release.name), f"{key}: {message}", key)


def _check_budget(schedule: Schedule, release: ReleaseSeries, faults: Faults) -> None:
    name = release.source.account or ""
    account = schedule.accounts.get(name)
    if account is None:
        return
    limits: list[tuple[Place, LimitSpec]] = [(("per", key), spec) for key, spec in account.of_periods.items()]
    limits += [] if account.limit is None else [(("limit",), account.limit)]
    for key, limit in limits:
        problem = ""
        try:
            budget = limit.budget
            if release.cost(budget.kind, release.first).amount > budget.amount:
                problem = f"{limit} is below one release of {release.name!r}: nothing could be released"
        except DpsynError as error:
            problem = str(error)
        if problem:
            faults.at(("accounts", name, *key), problem)
