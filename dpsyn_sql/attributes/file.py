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
from dpsyn_sql.attributes.discovered import undeclared
from dpsyn_sql.attributes.document import json_schema, read_document
from dpsyn_sql.attributes.made import unit_role
from dpsyn_sql.attributes.roles import Derived, Role
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.spec import ColumnSpec, Item, Terms, TypedColumn, Unfit, chosen_type
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
    """What becomes of each column that is kept: None of one that a declaration under another name holds, that
    is ``unknown``, for nobody made its domain public, or that is wrong; and all ``faults``. ``names``: of
    each column of the source, the name that it is declared under."""

    outcomes: Sequence[tuple[Column, Item | None]]
    unknown: Sequence[Column]
    names: Mapping[str, str]
    faults: list[str]


@dataclass(frozen=True, slots=True)
class DomainFile:
    """A domain declaration that was read; ``faults`` are shown by ``to_shape`` with its own.

    ``columns`` holds None where a declaration is faulty. ``sql_types``: those that are stated. ``per_unit``:
    the columns whose value all rows of a unit share.
    """

    columns: Mapping[str, ColumnSpec | None]
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
        faults.extend(_undeclared(fit.unknown))
        items = [item for _, item in fit.outcomes if item is not None]
        measured = tuple(item for item in items if not isinstance(item, Role))
        if not tied and not measured and not faults:
            faults.append("every column has a role; at least one must be measured")
        if faults:
            raise DomainError("The domain does not fit the source:", faults)
        roles = tuple(item for item in items if isinstance(item, Role))
        never = (*self.never, *_impossible(written, roles, measured, checks))
        strict = tuple(column.name for column in written if column.not_null)
        shared = {item.name for item in measured if fit.names.get(item.name, item.name) in self.per_unit}
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
        matching = _Matching(self, columns, matches, entries, csv=csv, discover=discover, faults=faults)
        together = matching.together(dropped, unit)
        outcomes = [
            (c, unit_role(c) if c == unit else together[c.name] if c.name in together else matching.alone(c))
            for c in written
        ]
        return Fit(outcomes, matching.unknown, entries, faults)

    def _by_column(self, matches: Names, faults: list[str]) -> dict[str, str]:
        """Declared name of each column of the source."""
        declared_names: dict[str, str] = {}
        for name, entry in self.columns.items():
            if entry is not None and entry.parts:
                continue
            column = matches.find(name)
            if column is None and entry is None:
                continue  # perhaps of several columns; what is wrong with the entry is a fault already
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
    valued = {column.name for item in measured for column in item.columns}
    valued |= {role.name for role in roles if not role.last}
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


class _Matching:
    """The declarations of a file beside the columns of a source; ``unknown``: columns that nobody made
    public."""

    def __init__(
        self,
        file: DomainFile,
        columns: Sequence[Column],
        names: Names,
        declared: Mapping[str, str],
        *,
        csv: bool,
        discover: bool,
        faults: list[str],
    ) -> None:
        self._file, self._names, self._declared = file, names, declared
        self._columns = {column.name: column for column in columns}
        self._csv, self._discover, self._faults = csv, discover, faults
        self.unknown: list[Column] = []

    def alone(self, column: Column) -> Item | None:
        """What becomes of a column by its own declaration, or without one; that a type is unsupported is for
        the caller to say, once for all columns."""
        kind = parse_type(column.sql_type)
        if kind is None:
            return None
        name = self._declared.get(column.name)
        if name is None:
            item = undeclared(column, kind, Terms(self._discover, typed=not self._csv))
            if item is None:
                self.unknown.append(column)
            return item
        spec = self._file.columns[name]
        return None if spec is None else self._made(name, spec, [column], column.name)

    def _made(self, name: str, spec: ColumnSpec, columns: Sequence[Column], who: str) -> Item | None:
        """What a declaration makes of its columns; a fault is noted with the name that it is of."""
        stated, typed = self._file.sql_types.get(name), list[TypedColumn]()
        owner = who
        try:
            for column, implied in zip(columns, spec.implied_types(), strict=True):
                kind = parse_type(column.sql_type)
                if kind is None:
                    return None
                owner = column.name
                typed.append((column, chosen_type(kind, implied, stated, csv=self._csv)))
            owner = who
            return spec.attribute(
                name, typed, Terms(self._discover, typed=not self._csv or stated is not None)
            )
        except Unfit as unfit:
            self._faults.extend(f"column {owner!r}: {fault}" for fault in unfit.args)
            return None

    def together(self, dropped: Collection[str], unit: Column | None) -> dict[str, Item | None]:
        """What becomes of the columns that belong to a declaration of several: the first one that is written
        gets its attribute.

        Args:
            dropped: names of columns that are not written; a declaration that loses all its columns is not
                either.
            unit: the privacy unit's column.
        """
        owners, outcomes = self._owners(), dict[str, Item | None]()
        for name, spec in self._specs_of_several().items():
            parts = [self._names.find(part) for part in spec.parts]
            members = [self._columns[part] for part in parts if part is not None]
            problems = list(self._problems(name, spec, owners, unit))
            left = [column.name for column in members if column.name in dropped]
            if left and len(left) < len(parts):
                problems.append(f"exclude= leaves out {listed(left)}; leave out all of its columns or none")
            self._faults.extend(f"column {name!r}: {problem}" for problem in problems)
            written = [
                column for column in self._columns if self._columns[column] in members and column not in left
            ]
            outcomes |= dict.fromkeys(written)
            if written and not problems:
                outcomes[written[0]] = self._made(name, spec, members, name)
        return outcomes

    def _specs_of_several(self) -> dict[str, ColumnSpec]:
        return {name: spec for name, spec in self._file.columns.items() if spec is not None and spec.parts}

    def _owners(self) -> dict[str, Counter[str]]:
        """How often each declaration of several names each column."""
        owners: dict[str, Counter[str]] = {}
        for name, spec in self._specs_of_several().items():
            for part in spec.parts:
                column = self._names.find(part)
                if column is not None:
                    owners.setdefault(column, Counter())[name] += 1
        return owners

    def _problems(
        self, name: str, spec: ColumnSpec, owners: Mapping[str, Counter[str]], unit: Column | None
    ) -> Iterator[str]:
        if self._names.find(name) is not None:
            yield "a point needs a name that no column of the source has; rename it"
        alike = [rival for rival in self._file.columns if fold(rival) == fold(name) and rival != name]
        if alike:
            yield f"{alike[0]!r} differs by letter case only; rename one of them"
        for part in spec.parts:
            column = self._names.find(part)
            if column is None:
                yield f"the source has no column {part!r}; {self._names.name_hint(part)}"
            elif column in self._declared:
                yield f"{part!r} has an entry of its own too; remove it, since the point holds the column"
            elif owners[column].total() > 1:
                also = [rival for rival in owners[column] if rival != name]
                yield (
                    f"{part!r} belongs to {also[0]!r} too; name it in one of them"
                    if also
                    else f"{part!r} is named twice"
                )
            elif unit is not None and column == unit.name:
                yield f"{part!r} is the privacy unit, which gets fresh ids; a point cannot hold it"
