"""Declared bins: bounds, edges and granularities in the units of a column's type, and equal bins between
bounds.

A function that finds faults raises ``Unfit`` with all of them. Nothing here reads a row.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np

from dpsyn_sql.attributes.attribute import MAX_SIZE, Attribute, Granularity, edge_ticks
from dpsyn_sql.attributes.fields import Cut, Step
from dpsyn_sql.attributes.grids import binned, rounded
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.spec import Unfit, integer_name, natural_kind, shown
from dpsyn_sql.attributes.types import Edge, SqlType, from_tick, supported_type, to_tick
from dpsyn_sql.source.relation import Column

_UNIT_BINS = 100
_DEFAULT_BINS = 32


@dataclass(frozen=True, slots=True)
class Cuts:
    """Declared cuts of a column: either ``lower``, ``upper`` and perhaps ``bins``, or ``edges``."""

    lower: Cut | None = None
    upper: Cut | None = None
    bins: int | None = None
    edges: tuple[Cut, ...] = ()

    @property
    def values(self) -> tuple[Cut, ...]:
        """Every value the owner wrote."""
        return (*(value for value in (self.lower, self.upper) if value is not None), *self.edges)

    def implied_type(self) -> SqlType:
        """The type of a column that nobody states."""
        moments = [value for value in self.values if isinstance(value, datetime)]
        if isinstance(self.values[0], Decimal):
            numbers = [value for value in self.values if isinstance(value, Decimal)]
            integral = all(number.as_tuple().exponent == 0 for number in numbers)
            name = integer_name([int(number) for number in numbers]) if integral else "DOUBLE"
        elif any(isinstance(value, time) for value in self.values):
            name = "TIME"
        else:
            zoned = any(moment.tzinfo is not None for moment in moments)
            name = "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP" if moments else "DATE"
        return supported_type(name, "")


def binned_attribute(
    column: Column,
    kind: SqlType,
    how: Literal["numeric", "temporal"],
    cuts: Cuts,
    *,
    nullable: bool = False,
    granularity: Step | None = None,
) -> Attribute:
    """A declared numeric or temporal attribute, cut exactly in the column's own type.

    Raises:
        Unfit: with all faults.
    """
    if natural_kind(kind) != how:
        raise Unfit(
            f"type {shown(kind)} cannot be {how}; write type: {natural_kind(kind)}, or exclude the column"
        )
    if len(cuts.edges) > MAX_SIZE:
        raise Unfit(f"{len(cuts.edges)} edges; at most {MAX_SIZE} are allowed")
    faults, step, edges = list[str](), None, tuple[Edge, ...]()
    try:
        step = granularity_of(kind, granularity)
    except Unfit as unfit:
        faults += unfit.args
    try:
        edges = _float_edges(kind, cuts) if kind.family == "float" else _discrete_edges(kind, cuts)
    except Unfit as unfit:
        faults += unfit.args
    if faults:
        raise Unfit(*faults)
    return Attribute(
        column.name, kind.text, how, edges=edges, nullable=nullable, ordered=True, granularity=step
    )


def has_unit_bins(attribute: Attribute) -> bool:
    """Whether every bin holds a single value."""
    if not attribute.type.discrete:
        return False
    ticks = edge_ticks(attribute)
    return ticks[-1] - ticks[0] == attribute.regular


def limits_of(attribute: Attribute) -> tuple[Fraction, Fraction]:
    """The least and the greatest value of a binned attribute: ticks, or numbers for FLOAT and DOUBLE."""
    if attribute.type.discrete:
        ticks = edge_ticks(attribute)
        return Fraction(ticks[0]), Fraction(ticks[-1] - 1)
    low, high = (Fraction(float(str(edge))) for edge in (attribute.edges[0], attribute.edges[-1]))
    return low, high


def evenly_binned(column: Undiscovered) -> Attribute | None:
    """Equal bins between the bounds of a column, for releases that learn nothing; None without both."""
    kind, least, most = column.type, column.least, column.most
    if column.kind == "categorical" or least is None or most is None:
        return None
    values = math.floor(most - least) + 1
    count = min(_DEFAULT_BINS, values) if kind.discrete else _DEFAULT_BINS
    end = most + 1 if kind.discrete else most
    cuts = [rounded(kind, least + (end - least) * Fraction(part, count)) for part in range(count + 1)]
    if any(low >= high for low, high in pairwise(cuts)):
        return None
    return binned(column, cuts, column.granularity, origin="declared")


def stated_limits(
    column: Column, kind: SqlType, lower: Cut | None, upper: Cut | None
) -> tuple[Fraction | None, Fraction | None]:
    """The bounds of a column whose bins are learnt, as ``limits_of`` gives them; None where none is stated.

    Raises:
        Unfit: one does not fit.
    """
    if lower is not None and upper is not None:
        return limits_of(binned_attribute(column, kind, kind.binned, Cuts(lower, upper)))
    return _limit(kind, lower, upper=False), _limit(kind, upper, upper=True)


def _limit(kind: SqlType, stated: Cut | None, *, upper: bool) -> Fraction | None:
    if stated is None:
        return None
    if kind.family == "float":
        if not isinstance(stated, Decimal):
            raise Unfit(f"{stated} is not a value of the type {kind.text}")
        return rounded(kind, Fraction(stated))
    tick = _tick(kind, stated)
    whole_day = upper and kind.family == "timestamp" and not isinstance(stated, datetime)
    return Fraction(min(kind.high, tick + kind.day - 1) if whole_day else tick)


def granularity_of(kind: SqlType, stated: Step | None) -> Granularity | None:
    """A stated granularity in the terms of an attribute; None for the type's own.

    Raises:
        Unfit: it does not fit the type.
    """
    if stated is None:
        return None
    steps = _steps(kind)
    if isinstance(stated, str):
        if stated in steps:
            return steps[stated]
        allowed = ", ".join(steps) or "a number"
        raise Unfit(f"granularity {stated} does not fit the type {kind.text}; allowed: {allowed}")
    if kind.family not in ("integer", "decimal", "float"):
        raise Unfit(f"granularity of a {kind.text} is one of {', '.join(steps) or 'none'}")
    ticks = 0
    if kind.family != "float":
        with contextlib.suppress(ValueError):
            ticks = to_tick(kind, stated)
    if stated <= 0 or (kind.family != "float" and not 0 < ticks < 2**62):
        raise Unfit(f"granularity {stated} is not a positive value of the type {kind.text}")
    return stated if kind.family == "float" else ticks


def _steps(kind: SqlType) -> dict[str, Granularity]:
    """Names of granularities that fit a temporal type."""
    if not kind.temporal:
        return {}
    if kind.family == "date":
        return {"day": 1, "month": "month"}
    second = 1_000_000 // kind.unit
    steps: dict[str, Granularity] = {"second": second, "minute": 60 * second, "hour": 3600 * second}
    return steps if kind.family == "time" else {**steps, "day": kind.day, "month": "month"}


def _float_edges(kind: SqlType, cuts: Cuts) -> tuple[Edge, ...]:
    """Edges as DOUBLE, or rounded to FLOAT so that comparing and drawing agree bit for bit."""
    wrong = [value for value in cuts.values if not isinstance(value, Decimal)]
    if wrong:
        raise Unfit(*(f"{value} is not a value of the type {kind.text}" for value in wrong))
    single = kind.text == "FLOAT"
    with np.errstate(over="ignore"):
        bounds = [float(np.float32(float(str(v)))) if single else float(str(v)) for v in cuts.values]
    bounds = [value + 0.0 for value in bounds]  # -0.0 and 0.0 are one cut
    if not all(np.isfinite(bounds)):
        raise Unfit(f"a bound does not fit the type {kind.text}")
    if cuts.edges:
        for low, high in pairwise(bounds):
            if low >= high:
                raise Unfit(f"edges must increase, but {high} follows {low}")
        return tuple(bounds)
    lower, upper = bounds
    if lower >= upper:
        raise Unfit(f"lower {lower} is not below upper {upper}")
    count = cuts.bins or _DEFAULT_BINS
    inner = [lower * (1 - i / count) + upper * (i / count) for i in range(1, count)]
    edges = [lower, *(float(np.float32(cut)) if single else cut for cut in inner), upper]
    if any(low >= high for low, high in pairwise(edges)):
        raise Unfit(f"the type {kind.text} cannot tell {count} bins apart; write fewer")
    return tuple(edges)


def _discrete_edges(kind: SqlType, cuts: Cuts) -> tuple[Edge, ...]:
    faults, ticks = list[str](), list[int]()
    for value in cuts.values:
        try:
            ticks.append(_tick(kind, value))
        except Unfit as unfit:
            faults += unfit.args
    if faults:
        raise Unfit(*faults)
    top = ticks[-1]
    last = cuts.values[-1]
    if kind.family == "timestamp" and not isinstance(last, datetime):
        top = ticks[-1] = top + kind.day - 1  # a day named as upper bound belongs to the range whole
    if top > kind.high:
        raise Unfit(f"upper bound {last} does not fit the type {kind.text}")
    if _no_edge_past(kind, top):
        raise Unfit(f"upper bound {last} is one step before the end of year 9999; write the last value")
    if cuts.edges:
        return _listed_edges(kind, ticks, cuts)
    lower = ticks[0]
    if lower >= top:
        raise Unfit(f"lower {cuts.lower} is not below upper {cuts.upper}")
    values = top - lower + 1
    count = cuts.bins or (values if values <= _UNIT_BINS else _DEFAULT_BINS)
    count = min(count, values)
    return tuple(from_tick(kind, lower + i * values // count) for i in range(count + 1))


def _listed_edges(kind: SqlType, ticks: Sequence[int], cuts: Cuts) -> tuple[Edge, ...]:
    """Lower cuts and the inclusive upper bound; the bound may repeat the last cut, which then
    is a bin of one value."""
    for position, (low, high) in enumerate(pairwise(ticks)):
        if low > high or (low == high and position < len(ticks) - 2):
            later, earlier = cuts.edges[position + 1], cuts.edges[position]
            raise Unfit(f"edges must increase, but {later} follows {earlier}")
    return tuple(from_tick(kind, tick) for tick in (*ticks[:-1], ticks[-1] + 1))


def _no_edge_past(kind: SqlType, top: int) -> bool:
    """Whether the edge past ``top`` would be taken for the mark of year 9999's end."""
    return kind.temporal and kind.unit == 1 and kind.high - 1 == top and (kind.text != "TIMESTAMP_NS")


def _tick(kind: SqlType, value: Cut) -> int:
    moment = value
    if kind.temporal and isinstance(value, time) != (kind.family == "time"):
        needs = "a time of day such as 12:30:00" if kind.family == "time" else "a date"
        raise Unfit(f"{value} is not a value of the type {kind.text}; write {needs}")
    if kind.family == "date" and isinstance(value, datetime):
        raise Unfit(f"{value} has a time of day, but the column is a DATE")
    if kind.family == "timestamp" and isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        if moment.tzinfo is not None and not kind.zoned:
            raise Unfit(f"{value} has a time zone, but the column ({kind.text}) has none")
        if kind.zoned and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
    try:
        tick = to_tick(kind, moment)
    except ValueError:
        raise Unfit(f"{value} is not a value of the type {kind.text}") from None
    if not kind.low <= tick <= kind.high:
        raise Unfit(f"{value} does not fit the type {kind.text}")
    return tick
