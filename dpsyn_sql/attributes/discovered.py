"""Columns whose values are not public: what of them is learnt, and what the catalog alone makes public."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StrictBool

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.cuts import Cuts, binned_attribute, granularity_of, has_unit_bins, stated_limits
from dpsyn_sql.attributes.fields import Bound, CodeCount, Granularity, Prefixes, moment_of, number_of
from dpsyn_sql.attributes.grids import rounded
from dpsyn_sql.attributes.labels import CategoricalSpec, catalog_attribute, lengths_fault
from dpsyn_sql.attributes.made import key_role
from dpsyn_sql.attributes.shape import MAX_CODES, Undiscovered
from dpsyn_sql.attributes.spec import Item, MeasuredSpec, Terms, TypedColumn, Unfit, natural_kind, shown
from dpsyn_sql.attributes.types import SqlType, to_tick
from dpsyn_sql.source.relation import Column


class DiscoverSpec(MeasuredSpec):
    """A column whose values are not public: they are learnt with noise, at a cost."""

    type: Literal["discover"]
    kind: Annotated[
        Literal["categorical", "numeric"] | None,
        Field(alias="as", description="categorical: whole numbers that are codes, such as zones."),
    ] = None
    max_codes: CodeCount | None = None
    nullable: StrictBool | None = None
    granularity: Granularity | None = None
    other: Annotated[
        StrictBool, Field(description="false: no value outside those that are found is written.")
    ] = True
    lower: Bound | None = None
    upper: Bound | None = None
    prefixes: Prefixes = Field(default=[])

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Attribute | Undiscovered:
        ((column, kind),) = columns
        if not terms.typed and self.kind is None and not self.prefixes:
            return self.to_learn(column, kind, typed=False)
        fault = (
            "a UUID cannot be measured; write type: key"
            if kind.family == "uuid"
            else lengths_fault(kind, self.prefixes)
        )
        if fault is not None:
            raise Unfit(fault)
        return catalog_attribute(column, kind) or self.to_learn(column, kind)

    def to_learn(self, column: Column, kind: SqlType, *, typed: bool = True) -> Undiscovered:
        """A column to learn; whole numbers may be codes if the owner says so.

        ``typed``: the type is public; that of text to be learnt is not.

        Raises:
            Unfit: its parts do not fit the type.
        """
        by_type = natural_kind(kind)
        how = self.kind or by_type
        if how != by_type and not (how == "categorical" and kind.family == "integer"):
            raise Unfit(f"type {shown(kind)} cannot be learnt as {how}; leave out as:")
        if how == "categorical" and self.granularity is not None:
            raise Unfit(
                "categories have no granularity"
                if typed
                else "granularity needs the type; write sql_type too"
            )
        if how != "categorical" and not self.other:
            raise Unfit(f"type {shown(kind)} is learnt as bins, which hold all values; leave out other:")
        granularity = granularity_of(kind, self.granularity)
        nullable = not column.not_null and self.nullable is not False
        size = MAX_CODES if self.max_codes is None else self.max_codes
        low, high = _checked_limits(column, kind)
        if self.lower is not None or self.upper is not None:
            if how == "categorical":
                why = "categories have no bounds; leave out lower: and upper:"
                raise Unfit(why if typed else "bounds need the type; write sql_type too")
            least, most = stated_limits(column, kind, self.lower, self.upper)
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
            other=self.other,
            typed=typed,
            prefixes=tuple(self.prefixes),
            clipped=self.lower is not None or self.upper is not None,
        )


SPECS = {"discover": DiscoverSpec}


def undeclared(column: Column, kind: SqlType, terms: Terms) -> Item | None:
    """What becomes of a column without a declaration; None if nobody made it public, and nothing is
    learnt."""
    if column.unique or kind.family == "uuid":
        return key_role(column, kind, "catalog")
    cataloged = catalog_attribute(column, kind) or _checked(column, kind)
    if cataloged is not None and not (
        terms.discover and cataloged.kind != "categorical" and not has_unit_bins(cataloged)
    ):
        return cataloged
    if not terms.discover:
        return None
    return DiscoverSpec(type="discover").to_learn(column, kind, typed=terms.typed)


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
            listed = CategoricalSpec.model_construct(
                type="categorical", categories=list(labels), other=False, nullable=nullable
            )
            attribute = listed.attribute(column.name, [(column, kind)], Terms(discover=False))
        else:
            how = kind.binned
            read = number_of if how == "numeric" else moment_of  # as from a domain file: dates are text
            bounds = Cuts(read(str(check.lower)), read(str(check.upper)))
            attribute = binned_attribute(column, kind, how, bounds, nullable=nullable)
    except (Unfit, ValueError):
        return None
    return replace(attribute, origin="catalog")


def _checked_limits(column: Column, kind: SqlType) -> tuple[Fraction | None, Fraction | None]:
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
