"""One column and its declaration, if any: an attribute, a role, or something to be learnt."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.declared import (
    Unfit,
    binned_attribute,
    catalog_attribute,
    categorical_attribute,
    declared_type,
    granularity_of,
    has_unit_bins,
    lengths_fault,
    limits_of,
    natural_kind,
    shown,
    stated_limits,
)
from dpsyn_sql.attributes.fields import Cut, Scalar, moment_of, number_of
from dpsyn_sql.attributes.grids import binned_kind, rounded
from dpsyn_sql.attributes.hierarchical import point, tree_column
from dpsyn_sql.attributes.shape import MAX_CODES, Constant, Derived, Key, Role, Undiscovered, UnitId
from dpsyn_sql.attributes.specs import (
    Bins,
    Categories,
    ConstantSpec,
    DerivedSpec,
    DiscoverSpec,
    DyadicSpec,
    Entry,
    HierarchyEntry,
    KeySpec,
    PointSpec,
)
from dpsyn_sql.attributes.types import SqlType, enum_type, parse_type, supported_type, to_tick
from dpsyn_sql.errors import InternalError
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import ident, literal


class FaultyDeclaration:
    """The column's declaration is wrong; the fault was noted."""


class UndeclaredColumn:
    """Nobody made the column's domain public, and it is not to be learnt."""


class PartOfPoint:
    """The column belongs to a point, which stands in the place of its first column."""


Fitted = (
    Attribute | Undiscovered | Role | type[FaultyDeclaration] | type[UndeclaredColumn] | type[PartOfPoint]
)


@dataclass(frozen=True, slots=True)
class Matching:
    """Declarations by declared name, and the declared name of each column."""

    entries: Mapping[str, Entry | None]
    sql_types: Mapping[str, str]
    names: Mapping[str, str]
    csv: bool
    discover: bool

    def column(self, column: Column, faults: list[str]) -> Fitted:
        """What becomes of a column; a fault is noted, but that a type is unsupported or that a domain
        is missing is for the caller to say, once for all columns."""
        kind = parse_type(column.sql_type)
        if kind is None:
            return FaultyDeclaration
        name = self.names.get(column.name)
        if name is None:
            return self._undeclared(column, kind)
        entry = self.entries[name]
        if entry is None:
            return FaultyDeclaration
        try:
            return self._fitted(column, kind, name, entry)
        except Unfit as unfit:
            faults.extend(f"column {column.name!r}: {fault}" for fault in unfit.args)
            return FaultyDeclaration

    def _fitted(self, column: Column, kind: SqlType, name: str, entry: Entry) -> Fitted:
        kind = _chosen_type(kind, entry, self.sql_types.get(name), self.csv)
        if isinstance(entry, Bins) and self.discover and entry.bins is None and not entry.edges:
            return _within_bounds(column, kind, entry)
        unstated = self.csv and name not in self.sql_types
        if isinstance(entry, DiscoverSpec) and unstated and entry.kind is None and not entry.prefixes:
            return _to_discover(column, kind, entry, typed=False)
        return _declared(column, kind, entry)

    def point(
        self, name: str, entry: PointSpec, columns: Sequence[Column], faults: list[str]
    ) -> Undiscovered | type[FaultyDeclaration]:
        """A point over these columns, in the order of its entry."""
        typed, who = [], name
        try:
            for column, (_, lower, upper) in zip(columns, entry.columns, strict=True):
                kind, stated = parse_type(column.sql_type), self.sql_types.get(name)
                if kind is None:
                    return FaultyDeclaration
                if self.csv and stated is None:
                    stated = end_type(lower, upper).text
                who = column.name
                typed.append((column, _chosen_type(kind, entry, stated, self.csv)))
            who = name
            return point(name, typed, entry)
        except Unfit as unfit:
            faults.extend(f"column {who!r}: {fault}" for fault in unfit.args)
            return FaultyDeclaration

    def _undeclared(self, column: Column, kind: SqlType) -> Fitted:
        if column.unique or kind.family == "uuid":
            return key_role(column, kind, "catalog")
        cataloged = catalog_attribute(column, kind) or _checked(column, kind)
        if cataloged is None or (
            self.discover and cataloged.kind != "categorical" and not has_unit_bins(cataloged)
        ):
            if not self.discover:
                return UndeclaredColumn
            return _to_discover(column, kind, DiscoverSpec(type="discover"), typed=not self.csv)
        return cataloged


def _declared(column: Column, kind: SqlType, entry: Entry) -> Attribute | Undiscovered | Role:
    if isinstance(entry, KeySpec):
        return key_role(column, kind, "declared")
    if isinstance(entry, ConstantSpec):
        return constant_role(column, kind, entry)
    if isinstance(entry, DiscoverSpec):
        fault = (
            "a UUID cannot be measured; write type: key"
            if kind.family == "uuid"
            else lengths_fault(kind, entry.prefixes)
        )
        if fault is not None:
            raise Unfit(fault)
        return catalog_attribute(column, kind) or _to_discover(column, kind, entry)
    if isinstance(entry, DerivedSpec):
        return derived_role(column, kind, entry)
    if isinstance(entry, HierarchyEntry):
        return tree_column(column, kind, entry)
    if isinstance(entry, PointSpec):
        raise InternalError("a point is no column of the source")
    nullable = entry.nullable and not column.not_null
    if isinstance(entry, Categories):
        return categorical_attribute(column, kind, replace(entry, nullable=nullable))
    return binned_attribute(column, kind, replace(entry, nullable=nullable))


def _within_bounds(column: Column, kind: SqlType, entry: Bins) -> Fitted:
    """Declared bounds without bins: these are learnt, unless every value gets one."""
    declared = _declared(column, kind, entry)
    if not isinstance(declared, Attribute) or has_unit_bins(declared):
        return declared
    low, high = limits_of(declared)
    size, nullable = MAX_CODES, declared.nullable
    return Undiscovered(
        column.name, kind.text, entry.kind, nullable, size, declared.granularity, low, high, clipped=True
    )


def _to_discover(column: Column, kind: SqlType, entry: DiscoverSpec, *, typed: bool = True) -> Undiscovered:
    """A column to learn; whole numbers may be codes if the owner says so.

    ``typed``: the type is stated; that of text to be learnt is not.
    """
    by_type = natural_kind(kind)
    how = entry.kind or by_type
    if how != by_type and not (how == "categorical" and kind.family == "integer"):
        raise Unfit(f"type {shown(kind)} cannot be learnt as {how}; leave out as:")
    if how == "categorical" and entry.granularity is not None:
        raise Unfit(
            "categories have no granularity" if typed else "granularity needs the type; write sql_type too"
        )
    if how != "categorical" and not entry.other:
        raise Unfit(f"type {shown(kind)} is learnt as bins, which hold all values; leave out other:")
    granularity = granularity_of(kind, entry.granularity)
    nullable = not column.not_null and entry.nullable is not False
    size = MAX_CODES if entry.max_codes is None else entry.max_codes
    low, high = _limits(column, kind)
    if entry.lower is not None or entry.upper is not None:
        if how == "categorical":
            why = "categories have no bounds; leave out lower: and upper:"
            raise Unfit(why if typed else "bounds need the type; write sql_type too")
        least, most = stated_limits(column, kind, entry)
        low, high = (low if least is None else least), (high if most is None else most)
    return Undiscovered(
        column.name,
        kind.text,
        how,
        nullable,
        size,
        granularity,
        low,
        high,
        other=entry.other,
        typed=typed,
        prefixes=tuple(entry.prefixes),
        clipped=entry.lower is not None or entry.upper is not None,
    )


def _limits(column: Column, kind: SqlType) -> tuple[Fraction | None, Fraction | None]:
    """Bounds that CHECK constraints state, in ticks (values for FLOAT and DOUBLE); None where they do not."""
    check = column.check
    if check is None or natural_kind(kind) == "categorical":
        return None, None
    low, high = _limit(kind, check.lower), _limit(kind, check.upper)
    if not kind.discrete:
        return None if low is None else rounded(kind, low), None if high is None else rounded(kind, high)
    least = None if low is None else Fraction(math.ceil(low))
    return least, None if high is None else Fraction(math.floor(high))


def _limit(kind: SqlType, bound: Decimal | str | None) -> Fraction | None:
    if isinstance(bound, Decimal) and kind.family in ("integer", "decimal", "float"):
        return Fraction(bound * 10**kind.scale)
    if isinstance(bound, str) and kind.family in ("date", "timestamp"):
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(bound)
            return Fraction(to_tick(kind, moment.date() if kind.family == "date" else moment))
    if isinstance(bound, str) and kind.family == "time":
        with contextlib.suppress(ValueError):
            return Fraction(to_tick(kind, time.fromisoformat(bound)))
    return None


def _checked(column: Column, kind: SqlType) -> Attribute | None:
    """The domain that a simple CHECK constraint makes public, if it fits the type."""
    check = column.check
    if check is None or not (check.values or (check.lower is not None and check.upper is not None)):
        return None
    nullable = not column.not_null
    try:
        if check.values:
            labels = tuple(
                int(value)
                if kind.family == "integer" and isinstance(value, Decimal) and value == int(value)
                else str(value)
                for value in dict.fromkeys(check.values)
            )
            attribute = categorical_attribute(column, kind, Categories(labels, False, nullable=nullable))
        else:
            how = binned_kind(kind)
            read = number_of if how == "numeric" else moment_of  # as from a domain file: dates are text
            bounds = Bins(how, read(str(check.lower)), read(str(check.upper)), nullable=nullable)
            attribute = binned_attribute(column, kind, bounds)
    except (Unfit, ValueError):
        return None
    return replace(attribute, origin="catalog")


def _chosen_type(kind: SqlType, spec: Entry, stated: str | None, csv: bool) -> SqlType:
    """The type of the column in the output: its own, or for CSV the declared one."""
    if stated is None:
        return implied_type(spec) if csv else kind
    parsed = parse_type(stated)
    if parsed is None or parsed.family == "enum":
        raise Unfit(f"sql_type {stated!r} is not a type that can be declared")
    if not csv and parsed != kind:
        raise Unfit(
            f"sql_type {stated!r} contradicts the source, whose type is {shown(kind)}; remove it, or cast in "
            "a query"
        )
    return parsed


def implied_type(spec: Entry | None) -> SqlType:
    """The type of a column of text whose declaration names none."""
    if isinstance(spec, Bins | Categories):
        return declared_type(spec)
    if isinstance(spec, DyadicSpec):
        return declared_type(Bins(_kind_of(spec.lower), spec.lower, spec.upper))
    name = "VARCHAR"
    if isinstance(spec, ConstantSpec):
        value = spec.value
        if isinstance(value, bool):
            name = "BOOLEAN"
        elif isinstance(value, int):
            name = "BIGINT" if -(2**63) <= value < 2**63 else "HUGEINT"
        elif isinstance(value, Decimal):
            name = "DOUBLE"
        elif isinstance(value, date):
            name = "DATE" if type(value) is date else "TIMESTAMP"
    return supported_type(name, "")


def _kind_of(bound: Cut) -> Literal["numeric", "temporal"]:
    return "numeric" if isinstance(bound, Decimal) else "temporal"


def end_type(lower: Cut, upper: Cut) -> SqlType:
    """The type of a column of a point that nobody states: places are seldom whole numbers."""
    numbers = _kind_of(lower) == "numeric"
    return supported_type("DOUBLE", "") if numbers else declared_type(Bins("temporal", lower, upper))


def _public_type(column: Column, kind: SqlType) -> str:
    """An ENUM without a name may hold the data's own values: fresh ones are text."""
    return "VARCHAR" if kind.family == "enum" and column.enum_labels is None else kind.text


def key_role(column: Column, kind: SqlType, origin: str) -> Key:
    """A column of fresh values, unique in the output."""
    return Key(column.name, _public_type(column, kind), origin)


def unit_role(column: Column) -> UnitId:
    """The privacy unit's column; BLOB is written too."""
    kind = parse_type(column.sql_type)
    return UnitId(column.name, column.sql_type if kind is None else _public_type(column, kind))


def constant_role(column: Column, kind: SqlType, entry: ConstantSpec) -> Constant:
    """A column of one value; whether it fits the type is asked of the database (``write.expressions``)."""
    value = entry.value
    if value is None and column.not_null:
        raise Unfit("it is NOT NULL; its constant cannot be null")
    sql_type = kind.text
    if kind.family == "enum" and column.enum_labels is None:
        sql_type = "VARCHAR" if value is None else enum_type((str(value),))
    elif column.enum_labels is not None and value is not None and value not in column.enum_labels:
        raise Unfit(f"{value!r} is not a label of the column's {shown(kind)} type")
    return Constant(column.name, sql_type, value)


def derived_role(column: Column, kind: SqlType, entry: DerivedSpec) -> Derived:
    """A computed column; a table of values becomes the CASE expression that looks it up."""
    stated = entry.derived if isinstance(entry.derived, str) else _lookup(entry)
    return Derived(column.name, _public_type(column, kind), stated)


def _lookup(entry: DerivedSpec) -> str:
    source, pairs = entry.derived
    column, cases = ident(source), []
    for key, value in pairs:
        matches = f"{column} IS NULL" if key is None else f"{column} = {_literal(key)}"
        cases.append(f"WHEN {matches} THEN {_literal(value)}")
    return f"CASE {' '.join(cases)} ELSE {_literal(entry.otherwise)} END"


def _literal(value: Scalar) -> str:
    return literal(value) if not isinstance(value, Decimal) else format(value, "f")
