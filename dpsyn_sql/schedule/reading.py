"""From the file of a schedule to a ``Schedule``; all faults of the file at once, each with its line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from dpsyn_sql.errors import InputError, LedgerError, said, yaml_word
from dpsyn_sql.front.request import Request
from dpsyn_sql.ledger.locations import default_place, variable_place
from dpsyn_sql.schedule.calendar import (
    PLACEHOLDERS,
    Calendar,
    Listed,
    Partitions,
    ReleaseSeries,
    Schedule,
    ScheduledSource,
    Series,
    Single,
    in_keys,
)
from dpsyn_sql.schedule.checks import check_document, check_schedule
from dpsyn_sql.schedule.document import OF_RELEASE, OF_SOURCE, ScheduleDocument
from dpsyn_sql.schedule.lines import Faults, Place, read_yaml
from dpsyn_sql.source.names import WILDCARDS, absolute_path, near_matches

_HINTS = {
    "into": "write output:",
    "name": "the name of the release is its key",
    "version": "the version of a release is the label of its period",
    "new_debit": "a schedule never pays twice for a period",
}
_ANY_LIMIT = {"limit": {"epsilon": 1000, "delta": "1e-6"}}
"""In place of a faulty account, whose limits are not compared with anything."""

_OF_UNITS = ("unit", "most", "order", "weights")
"""Options that are checked with each other."""


def read_schedule(path: str | os.PathLike[str]) -> Schedule:
    """Read a schedule and check all that can be checked without opening a source.

    Raises:
        ScheduleError: every fault of the file, with its line.
    """
    file = absolute_path(path)
    data, faults = read_yaml(file)
    document = _validated(data, faults)
    _check_options(data, faults, file.parent)
    document = _sound(data, document, faults)
    if document is not None:
        check_document(document, faults)
        document = _sound(data, document, faults)
    if document is None:
        faults.refuse()
    schedule = _schedule(file, document, faults)
    check_schedule(schedule, faults)
    faults.refuse()
    return schedule


def _sound(data: Any, document: Any, faults: Faults) -> Any:
    """The document without its faulty entries and what reads them, so that the rest is checked too; None if
    nothing is left."""
    if not faults.found:
        return document
    kinds = ("sources", "releases", "accounts")
    if not isinstance(data, Mapping) or not all(isinstance(data.get(kind, {}), Mapping) for kind in kinds):
        return None
    left = {
        kind: {n: one for n, one in data.get(kind, {}).items() if (kind, n) not in faults.places}
        for kind in kinds
    }
    left["accounts"] = {name: left["accounts"].get(name, _ANY_LIMIT) for name in data.get("accounts", {})}
    left["releases"] = {n: one for n, one in left["releases"].items() if one["source"] in left["sources"]}
    if not left["sources"] or not left["releases"]:
        return None
    return ScheduleDocument.model_validate({**left, "ledger": data.get("ledger")})


def _validated(data: Any, faults: Faults) -> Any:
    """The document; None if it has faults."""
    try:
        return ScheduleDocument.model_validate(data)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
    told: set[Place] = set()
    for problem in problems:
        place, text = _explained(problem, faults)
        if place not in told:
            faults.add(place, text)
        told.add(place)
    return None


def _explained(problem: Any, faults: Faults) -> tuple[Place, str]:
    """Where a problem stands in the file, without the alternatives of a type, and what it is."""
    place: Place = ()
    for part in problem["loc"]:
        if (*place, part) in faults.lines:
            place = (*place, part)
    name = ".".join(str(part) for part in problem["loc"] if part in (*place, problem["loc"][-1]))
    key = str(problem["loc"][-1]) if problem["loc"] else ""
    if problem["type"] == "extra_forbidden":
        return place, f"unknown key {said(key)}{_allowed(problem['loc'], key)}"
    if problem["type"] == "missing":
        return place, f"{name}: is missing"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    where = ".".join(str(part) for part in place) or "the file"
    written = str(place[-1]) if place and isinstance(place[-1], str) else ""
    word = yaml_word(problem["input"], written) if problem["type"] == "string_type" else ""
    hint = f": {word}" if word else ""
    text = f"{message[:1].lower()}{message[1:]}, not {said(problem['input'])}{hint}"
    return place, f"{where}: {text}"


def _allowed(loc: Place, key: str) -> str:
    if key in _HINTS:
        return f": {_HINTS[key]}"
    model: Any = ScheduleDocument
    for part in loc[:-1]:
        found = None
        if isinstance(part, str):
            fields = {field.alias or name: field for name, field in model.model_fields.items()}
            found = fields.get(part)
        if found is not None:
            model = _model_of(found.annotation) or model
    names = [field.alias or name for name, field in model.model_fields.items()]
    close = near_matches(key, names)
    return f"; did you mean {' or '.join(close)}?" if close else f"; allowed are {', '.join(names)}"


def _model_of(annotation: Any) -> Any:
    """The model inside a type such as dict[str, Model] or Model | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = [_model_of(part) for part in getattr(annotation, "__args__", ())]
    return next((model for model in inner if model is not None), None)


def _check_options(data: Any, faults: Faults, folder: Path) -> None:
    """Each option alone, as a release checks it, so that every wrong one is told."""
    for kind, names in (("sources", OF_SOURCE), ("releases", OF_RELEASE)):
        entries = data.get(kind) if isinstance(data, Mapping) else None
        for name, entry in entries.items() if isinstance(entries, Mapping) else ():
            given = {key: entry[key] for key in names if key in entry} if isinstance(entry, Mapping) else {}
            given = {key: value for key, value in given.items() if value is not None}
            source = {"source": tables} if (tables := _tables(data, entry)) else {}
            of_units = {key: given.pop(key) for key in _OF_UNITS if key in given}
            groups = [{key: value} for key, value in given.items()] + ([of_units] if of_units else [])
            for group in groups:
                if problem := _problem({**group, **source}, folder):
                    named = next((key for key in group if problem.startswith(f"{key}:")), next(iter(group)))
                    faults.at((kind, name), problem, named)


def _tables(data: Mapping[str, Any], entry: Any) -> list[str]:
    """The tables of a source that has several, or of an entry that reads it; else none."""
    if isinstance(entry, Mapping) and isinstance(entry.get("source"), str):
        sources = data.get("sources")
        entry = sources.get(entry["source"]) if isinstance(sources, Mapping) else None
    tables = entry.get("tables") if isinstance(entry, Mapping) else None
    return tables if isinstance(tables, list) else []


def _problem(options: Mapping[str, Any], folder: Path) -> str:
    try:
        request = Request.from_mapping(options, folder=folder)
        request.check()
    except InputError as error:
        return in_keys(str(error))
    except (TypeError, ValueError, AttributeError):
        return ""  # the type is wrong, which is told already
    if isinstance(request.domain, str | os.PathLike) and not Path(request.domain).is_file():
        return f"there is no domain file {said(str(request.domain))}"
    return ""


def _schedule(file: Path, document: Any, faults: Faults) -> Schedule:
    sources = {
        name: _source(name, spec, tuple(document.accounts), file.parent)
        for name, spec in document.sources.items()
    }
    releases = tuple(
        ReleaseSeries(
            name,
            sources[spec.source],
            spec.output,
            _series(spec),
            _given(spec, OF_RELEASE),
            spec.windows_per_unit,
            spec.partition_by,
            bool(spec.cumulative),
            bool(spec.panel),
        )
        for name, spec in document.releases.items()
    )
    ledger = _ledger(document.ledger, file, list(sources.values()), faults)
    return Schedule(file, ledger, document.accounts, releases, faults)


def _source(name: str, spec: Any, accounts: tuple[str, ...], folder: Path) -> ScheduledSource:
    account = spec.account or (accounts[0] if len(accounts) == 1 else None)
    options = {key: value for key, value in _given(spec, OF_SOURCE).items() if key != "account"}
    database = None if spec.database is None else Path(folder, spec.database)
    text = spec.table if spec.query is None else spec.query
    tables = tuple(spec.tables or ())
    return ScheduledSource(name, spec.path, text or "", database, spec.window, account, options, tables)


def _given(spec: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Options that the file gives."""
    return {name: getattr(spec, name) for name in names if getattr(spec, name) is not None}


def _series(spec: Any) -> Series:
    wait = spec.wait or timedelta()
    if spec.partitions is not None:
        return Partitions(tuple(spec.partitions))
    if spec.windows is not None:
        listed = sorted(((one.label, one.begins, one.ends) for one in spec.windows), key=lambda one: one[1])
        return Listed(tuple(listed), wait)
    if spec.cadence == "once":
        return Single(spec.start)
    return Calendar(spec.cadence, spec.start, spec.end, wait)


def _ledger(given: str | None, file: Path, sources: list[ScheduledSource], faults: Faults) -> Path:
    """The one ledger of all sources: stated, or their default place."""
    folder, chosen = file.parent, None
    if given:
        chosen = Path(folder, given)
        if not Path(given).is_absolute() and _is_elsewhere(file):
            told = (
                f"ledger: {said(given)} would be another ledger beside each link to this file, which is "
                f"{os.path.realpath(file)}; write the whole path"
            )
            faults.add(("ledger",), told)
    else:
        try:
            chosen = variable_place()
        except LedgerError as error:
            faults.add((), str(error))
            return folder
    if chosen is not None:
        return chosen
    places: dict[Path, str] = {}
    for source in sources:
        problem, place = "", None
        try:
            place = _place_of(source, folder)
        except (LedgerError, InputError) as error:
            problem = str(error)
        if place is not None:
            places.setdefault(place, source.name)
        else:
            told = problem or "the ledger of a query over files, or of several databases, has no default."
            faults.at(("sources", source.name), f"{told} Write ledger:")
    if len(places) > 1:
        told = ", ".join(f"{place} ({name})" for place, name in places.items())
        faults.add((), f"the sources have several ledgers: {told}. A schedule has one: write ledger:")
    return next(iter(places), folder)


def _is_elsewhere(file: Path) -> bool:
    """Whether a file is a link into another folder."""
    return os.path.dirname(os.path.realpath(file)) != os.path.realpath(file.parent)  # noqa: PTH120


def _place_of(source: ScheduledSource, folder: Path) -> Path | None:
    if source.path is None:
        if not source.database or PLACEHOLDERS.search(str(source.database)):
            return None
        return default_place(databases=[str(source.database)])
    path = str(Path(folder, PLACEHOLDERS.sub("*", source.path)))
    if WILDCARDS & set(path) or Path(path).is_dir():
        return default_place(pattern=path if WILDCARDS & set(path) else f"{path}/*")
    return default_place(files=[path])
