"""From a domain file and the catalog to the public shape of a table.

    columns:
      age:       {type: numeric, lower: 17, upper: 90, bins: 20}     # or edges: [17, 25, 35, 90]
      workclass: {type: categorical, categories: [Private, Public], other: false, nullable: true}
      born:      {type: temporal, lower: 1990-01-01, upper: 2020-12-31, bins: 12}
      pickup:    {type: point, columns: {lat: [40.4, 41.0], lon: [-74.3, -73.6]}}
      zone:      {type: discover, as: categorical, max_codes: 200}   # learnt with noise, at a cost
      id:        {type: key}                                         # fresh values
      source:    {type: constant, value: census}
      grown_up:  {derived: "age >= 18"}                              # computed, not measured
    never: ["age < 16 AND workclass = 'Private'"]

No function here reads a row of the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.document import json_schema, read_document
from dpsyn_sql.attributes.matching import (
    FaultyDeclaration,
    Fitted,
    Matching,
    PartOfPoint,
    UndeclaredColumn,
    unit_role,
)
from dpsyn_sql.attributes.shape import Constant, Derived, Role, Shape, Undiscovered
from dpsyn_sql.attributes.specs import Entry, PointSpec
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.attributes.unit import family_of
from dpsyn_sql.errors import DomainError, SourceError
from dpsyn_sql.source.names import fold, listed, name_hint
from dpsyn_sql.source.relation import Check, Column, Relation
from dpsyn_sql.sqltext.fragments import ident

__all__ = ["DomainFile", "DomainSpec", "json_schema", "read_domain", "shape_of"]

DomainSpec = Mapping[str, Any] | str | PathLike[str] | None


@dataclass(frozen=True, slots=True)
class Fit:
    """What becomes of each column that is kept, the declarations that say so, and all faults."""

    outcomes: Sequence[tuple[Column, Fitted]]
    matching: Matching
    faults: list[str]


@dataclass(frozen=True, slots=True)
class DomainFile:
    """A domain declaration that was read; ``faults`` are shown by ``to_shape`` with its own.

    ``columns`` holds None where a declaration is faulty. ``sql_types``: those that are stated. ``per_unit``:
    the columns whose value all rows of a unit share.
    """

    columns: Mapping[str, Entry | None]
    sql_types: Mapping[str, str]
    faults: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    per_unit: frozenset[str] = frozenset()

    def to_shape(
        self,
        columns: Sequence[Column],
        exclude: Collection[str] = (),
        *,
        csv: bool = False,
        discover: bool = False,
        unit: Column | None = None,
        checks: Sequence[Check] = (),
        tied: bool = False,
    ) -> Shape:
        """What is measured, made or still unknown, of the columns that are kept.

        Args:
            columns: of the source, in order.
            exclude: names of columns that are not written.
            csv: every column is text whose type is declared here.
            discover: a column without a public domain is to be learnt; else it is a fault.
            unit: the privacy unit's column.
            checks: CHECK constraints of the source.
            tied: other columns tie the table to others, so that none of these need be measured.

        Raises:
            SourceError: no column is left.
            DomainError: with all faults of the file and of its fit to the source.
        """
        fit = self.fitted(columns, exclude, csv=csv, discover=discover, unit=unit)
        written, faults = [column for column, _ in fit.outcomes], fit.faults
        if not tied and not [column for column in written if column != unit] and not faults:
            raise SourceError("no columns left: every column of the source is excluded")
        faults.extend(_undeclared([column for column, item in fit.outcomes if item is UndeclaredColumn]))
        items: list[Attribute | Undiscovered | Role] = [i for _, i in fit.outcomes if not isinstance(i, type)]
        measured = tuple(item for item in items if isinstance(item, Attribute | Undiscovered))
        if not tied and not measured and not faults:
            faults.append("every column has a role; at least one must be measured")
        if faults:
            raise DomainError("The domain does not fit the source:", faults)
        roles = tuple(item for item in items if not isinstance(item, Attribute | Undiscovered))
        never = (*self.never, *_impossible(written, roles, measured, checks))
        strict = tuple(column.name for column in written if column.not_null)
        declared = fit.matching.names
        shared = {item.name for item in measured if declared.get(item.name, item.name) in self.per_unit}
        order = tuple(column.name for column in written)
        return Shape(measured, roles, order, never, strict, frozenset(shared))

    def fitted(
        self,
        columns: Sequence[Column],
        exclude: Collection[str] = (),
        *,
        csv: bool = False,
        discover: bool = False,
        unit: Column | None = None,
    ) -> Fit:
        """What becomes of the columns; arguments as of ``to_shape``, which says more of what is missing."""
        faults = list(self.faults)
        matches = Names(column.name for column in columns)
        dropped = _matched(matches, exclude, "exclude names", faults)
        faults.extend(matches.clashes(dropped))
        entries = self._by_column(matches, faults)
        written = [column for column in columns if column.name not in dropped]
        faults.extend(_unsupported(written, unit))
        read = [*written, *([] if unit is None or unit in written else [unit])]
        faults.extend(f"column {c.name!r} {c.refused}; leave it out with exclude=" for c in read if c.refused)
        matching = Matching(self.columns, self.sql_types, entries, csv=csv, discover=discover)
        joined = _pointed(matching, columns, dropped, unit, matches, faults)
        outcomes = [
            (c, unit_role(c) if c == unit else joined.get(c.name) or matching.column(c, faults))
            for c in written
        ]
        return Fit(outcomes, matching, faults)

    def _by_column(self, matches: Names, faults: list[str]) -> dict[str, str]:
        """Declared name of each column of the source."""
        declared_names: dict[str, str] = {}
        for name, entry in self.columns.items():
            if isinstance(entry, PointSpec):
                continue
            column = matches.find(name)
            if column is None and entry is None:
                continue  # perhaps a point; what is wrong with the entry is a fault already
            if column is None:
                faults.append(f"the source has no column {name!r}; {matches.name_hint(name)}")
            elif column in declared_names:
                faults.append(f"{declared_names[column]!r} and {name!r} declare the same column {column!r}")
            else:
                declared_names[column] = name
        return declared_names


def _unsupported(written: Sequence[Column], unit: Column | None) -> list[str]:
    """One fault that names every column of a type that cannot be written."""
    wrong = [
        column
        for column in written
        if parse_type(column.sql_type) is None and column != unit and not column.refused
    ]
    if not wrong:
        return []
    columns = ", ".join(f"{column.name!r} (type {family_of(column.sql_type)})" for column in wrong)
    return [f"unsupported types: {columns}; leave these columns out with exclude="]


def _undeclared(columns: Sequence[Column]) -> list[str]:
    if not columns:
        return []
    names = ", ".join(repr(column.name) for column in columns)
    return [
        f"no public domain for {names}: declare them in the domain file (dpsyn init writes a form), "
        f"or leave them out with exclude="
    ]


def _impossible(
    written: Sequence[Column],
    roles: Sequence[Role],
    measured: Sequence[Attribute | Undiscovered],
    checks: Sequence[Check],
) -> list[str]:
    """Conditions that no row of the output meets, by the constraints of the catalog.

    A CHECK on a column that is not written, or gets fresh values, says nothing about the output.
    """
    derived = [role.name for role in roles if isinstance(role, Derived)]
    constant = [role.name for role in roles if isinstance(role, Constant)]
    valued = {column.name for item in measured for column in item.columns} | {*derived, *constant}
    conditions = [f"NOT ({check.expression})" for check in checks if valued.issuperset(check.columns)]
    strict = {column.name for column in written if column.not_null}
    return conditions + [f"{ident(name)} IS NULL" for name in derived if name in strict]


class Names:
    """Names of columns: a name is one of them, else the one that differs by letter case if that is unique."""

    def __init__(self, names: Iterable[str]) -> None:
        self._order = list(names)
        self._folded: dict[str, list[str]] = {}
        for name in self._order:
            self._folded.setdefault(name.lower(), []).append(name)

    def clashes(self, dropped: Collection[str]) -> list[str]:
        remaining = [[name for name in names if name not in dropped] for names in self._folded.values()]
        doubles = [names for names in remaining if len(names) > 1]
        return [
            "the source has columns that differ only by letter case: "
            + ", ".join(map(repr, names))
            + "; leave one out with exclude="
            for names in doubles
        ]

    def find(self, name: str) -> str | None:
        if name in self._order:
            return name
        candidates = self._folded.get(name.lower(), [])
        return candidates[0] if len(candidates) == 1 else None

    def name_hint(self, name: str) -> str:
        return name_hint(name, self._order)


def _matched(matches: Names, names: Collection[str], subject: str, faults: list[str]) -> set[str]:
    matched = set()
    for name in names:
        column = matches.find(name)
        if column is None:
            faults.append(
                f"{subject} {name!r}, which is not a column of the source; {matches.name_hint(name)}"
            )
        else:
            matched.add(column)
    return matched


def read_domain(spec: Mapping[str, Any] | str | PathLike[str]) -> DomainFile:
    """Read a domain from a dict or from the path of a YAML file.

    Faults of single columns are kept and raised by ``DomainFile.to_shape``, so that one run
    shows everything that is wrong.

    Raises:
        DomainError: the file cannot be read, is no YAML, or has no ``columns:``.
    """
    return DomainFile(*read_document(spec if isinstance(spec, Mapping) else Path(spec)))


def shape_of(
    spec: DomainSpec,
    relation: Relation,
    exclude: Collection[str] = (),
    *,
    discover: bool,
    unit: Column | None = None,
) -> Shape:
    """The public shape of a relation; ``spec=None`` takes what the catalog alone makes public.

    Args:
        spec: a domain file, or the same as a mapping.
        relation: the source.
        exclude: names of columns that are not written.
        discover: columns without a public domain are to be learnt through the door; else a fault.
        unit: the privacy unit's column: written with fresh ids unless it is excluded.

    Raises:
        SourceError: no column is left.
        DomainError: the domain is missing or contradictory; all faults at once.
    """
    declared = DomainFile({}, {}) if spec is None else read_domain(spec)
    return declared.to_shape(
        relation.columns,
        exclude,
        csv=relation.kind == "csv",
        discover=discover,
        unit=unit,
        checks=relation.checks,
    )


def _pointed(
    matching: Matching,
    columns: Sequence[Column],
    dropped: Collection[str],
    unit: Column | None,
    names: Names,
    faults: list[str],
) -> dict[str, Fitted]:
    """What becomes of each column that belongs to a point: the point itself, or ``PartOfPoint``.

    Args:
        matching: the declarations, and the declared name of each column.
        columns: of the source, in order.
        dropped: names of columns that are not written; a point that loses all its columns is not either.
        unit: the privacy unit's column.
        names: of the columns.
        faults: gets what is wrong.
    """
    points = {name: entry for name, entry in matching.entries.items() if isinstance(entry, PointSpec)}
    owners = _owners(points, names)
    by_name = {column.name: column for column in columns}
    outcomes: dict[str, Fitted] = {}
    for name, entry in points.items():
        point_columns = [names.find(written) for written, _, _ in entry.columns]
        members = [by_name[column] for column in point_columns if column is not None]
        problems = list(_problems(name, entry, matching, names, owners, by_name, unit))
        left = [column.name for column in members if column.name in dropped]
        if left and len(left) < len(point_columns):
            problems.append(f"exclude= leaves out {listed(left)}; leave out all of its columns or none")
        faults.extend(f"column {name!r}: {problem}" for problem in problems)
        written_columns = [column.name for column in columns if column in members and column.name not in left]
        outcomes.update(
            (column, FaultyDeclaration if problems else PartOfPoint) for column in written_columns
        )
        if written_columns and not problems:
            outcomes[written_columns[0]] = matching.point(name, entry, members, faults)
    return outcomes


def _owners(points: Mapping[str, PointSpec], names: Names) -> dict[str, Counter[str]]:
    """How often each point names each column."""
    owners: dict[str, Counter[str]] = {}
    for name, entry in points.items():
        for written, _, _ in entry.columns:
            column = names.find(written)
            if column is not None:
                owners.setdefault(column, Counter())[name] += 1
    return owners


def _problems(
    name: str,
    entry: PointSpec,
    matching: Matching,
    names: Names,
    owners: Mapping[str, Counter[str]],
    columns: Mapping[str, Column],
    unit: Column | None,
) -> Iterator[str]:
    if names.find(name) is not None:
        yield "a point needs a name that no column of the source has; rename it"
    alike = [rival for rival in matching.entries if fold(rival) == fold(name) and rival != name]
    if alike:
        yield f"{alike[0]!r} differs by letter case only; rename one of them"
    for written, _, _ in entry.columns:
        column = names.find(written)
        if column is None:
            yield f"the source has no column {written!r}; {names.name_hint(written)}"
        elif column in matching.names:
            yield f"{written!r} has an entry of its own too; remove it, since the point holds the column"
        elif owners[column].total() > 1:
            also = [rival for rival in owners[column] if rival != name]
            yield (
                f"{written!r} belongs to {also[0]!r} too; name it in one of them"
                if also
                else (f"{written!r} is named twice")
            )
        elif unit is not None and column == unit.name:
            yield f"{written!r} is the privacy unit, which gets fresh ids; a point cannot hold it"
