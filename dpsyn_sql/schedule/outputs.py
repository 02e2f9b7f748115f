"""Outputs of a schedule: no two releases have the same one, and none is released again. Nothing is opened."""

from __future__ import annotations

import fnmatch
import re
from datetime import datetime
from pathlib import Path

from dpsyn_sql.schedule.calendar import Calendar, look_of_labels
from dpsyn_sql.schedule.lines import Faults
from dpsyn_sql.schedule.series import PLACEHOLDERS, ReleaseSeries, Schedule, ScheduledSource
from dpsyn_sql.source.files import ending_of
from dpsyn_sql.source.names import display_name, fold, split_name
from dpsyn_sql.source.paths import WILDCARDS, absolute_path

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
    for one in schedule.releases:
        pattern, mine = _output_pattern(schedule, one), _written(schedule, one)
        same = [patterns.get(pattern), *(written.get(output) for output in mine)]
        same += [name for of, name in calendars if any(map(of.fullmatch, mine))]
        if isinstance(one.series, Calendar):
            of = re.compile(_output_pattern(schedule, one, labels=look_of_labels(one.series.cadence)))
            same += [name for output, name in written.items() if of.fullmatch(output)]
            calendars.append((of, one.name))
        other = next((name for name in same if name is not None), None)
        if other is not None:
            told = f"{other!r} has the same output; give each release its own"
            faults.at(("releases", one.name), told, "output")
        patterns.setdefault(pattern, one.name)
        written |= {output: one.name for output in mine if output not in written}


def _output_pattern(schedule: Schedule, one: ReleaseSeries, labels: str = "") -> str:
    """The output of any period: its placeholders are wildcards, or in a regular expression ``labels``."""
    plain = PLACEHOLDERS.sub(lambda found: one.name if found[1] == "release" else _ANY, one.output)
    if one.to_file:
        text = str(absolute_path(Path(schedule.folder, plain)))
    else:
        database = PLACEHOLDERS.sub(_ANY, str(one.source.database))
        text = f"{database}:{fold(display_name(*(split_name(plain) or (plain,))))}"
    return re.escape(text).replace(_ANY, labels) if labels else text.replace(_ANY, "*")


def _written(schedule: Schedule, one: ReleaseSeries) -> list[str]:
    """All outputs, but of a calendar, which can have very many."""
    if isinstance(one.series, Calendar):
        return []
    periods = list(one.series.periods(datetime.max))
    outputs = [(one.con(period), one.into(period, schedule.folder)) for period in periods]
    return [
        str(absolute_path(into)) if isinstance(into, Path) else f"{database}:{fold(into)}"
        for database, into in outputs
    ]


def check_circles(schedule: Schedule, faults: Faults) -> None:
    """No release reads what another one writes."""
    fed = {
        one.name: {
            other.name
            for other in schedule.releases
            if _feeds(_output_pattern(schedule, other), other, one, schedule)
        }
        for one in schedule.releases
    }
    for name, others in fed.items():
        for other in sorted(others):
            circle = "; the two feed each other" if name in fed[other] and name != other else ""
            circle = "; it feeds itself" if name == other else circle
            told = f"its source is the output of {other!r}{circle}. {_NOTHING_GAINED}"
            faults.at(("releases", name), told, "source")


def _feeds(output: str, other: ReleaseSeries, one: ReleaseSeries, schedule: Schedule) -> bool:
    """Whether the source of ``one`` reads an output of ``other``."""
    source = one.source
    if other.source.tables:
        return _feeds_of_tables(output, other, source, schedule.folder)
    if source.path is not None:
        path = str(absolute_path(Path(schedule.folder, PLACEHOLDERS.sub("*", source.path))))
        return other.to_file and _same(output, path if ending_of(path) else f"{path}/*")
    for word in _NAME.findall(", ".join(source.tables) if source.tables else source.text):
        if word.startswith("'"):
            path = word[1:-1].replace("''", "'")
            if other.to_file and ending_of(path) and _same(output, str(absolute_path(path))):
                return True
        elif not other.to_file and source.database == other.source.database:
            name = fold(display_name(*(split_name(word) or (word,))))
            wanted = output.partition(":")[2]
            if fnmatch.fnmatchcase(name, wanted) or fnmatch.fnmatchcase(name.rpartition(".")[2], wanted):
                return True
    return False


def _feeds_of_tables(output: str, other: ReleaseSeries, source: ScheduledSource, folder: Path) -> bool:
    """Whether a source reads a schema, a database or a folder that a database of tables was released to."""
    if not other.to_file:
        names = source.tables or _NAME.findall(source.text)
        schemas = [
            fold(parts[-2]) for parts in map(split_name, names) if parts is not None and len(parts) > 1
        ]
        mine = PLACEHOLDERS.sub("*", str(source.database)), PLACEHOLDERS.sub("*", str(other.source.database))
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
