"""Attributes from what an owner declares or a catalog states.

A function that finds faults raises ``Unfit`` with all of them, so that a caller can show those of all
columns in one message. Nothing here reads a row.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn_sql.attributes.attribute import (
    ANY_REST,
    MAX_SIZE,
    OTHER,
    Attribute,
    Granularity,
    Label,
    edge_ticks,
)
from dpsyn_sql.attributes.fields import Cut, Step
from dpsyn_sql.attributes.grids import binned_kind, edge_of, rounded
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.specs import Bins, Categories, DiscoverSpec
from dpsyn_sql.attributes.types import Edge, SqlType, enum_type, from_tick, parse_type, to_tick
from dpsyn_sql.source.relation import Column

_UNIT_BINS = 100
_DEFAULT_BINS = 32


class Unfit(Exception):
    """A declaration does not fit its column. ``args`` are the faults, which do not name the column."""


def catalog_attribute(column: Column, kind: SqlType) -> Attribute | None:
    """The domain that the type alone makes public: BOOLEAN and named ENUM; else None."""
    labels: tuple[Label, ...]
    if kind.family == "boolean":
        labels, sql_type = (False, True), kind.text
    elif kind.family == "enum" and column.enum_labels and not any("\x00" in x for x in column.enum_labels):
        labels, sql_type = column.enum_labels, enum_type(column.enum_labels)
    else:
        return None
    nullable = not column.not_null
    return Attribute(column.name, sql_type, "categorical", labels, nullable=nullable, origin="catalog")


def categorical_attribute(column: Column, kind: SqlType, spec: Categories) -> Attribute:
    """A declared categorical attribute of a VARCHAR, integer, BOOLEAN or ENUM column.

    Raises:
        Unfit: with all faults.
    """
    if kind.family not in ("text", "integer", "boolean", "enum"):
        raise Unfit(f"type {kind.text} cannot be categorical; write type: {natural_kind(kind)}")
    faults = [*_label_faults(column, kind, spec), *_prefix_faults(kind, spec)]
    if faults:
        raise Unfit(*faults)
    complete = _complete(column, kind, spec.labels)
    has_other = not complete if spec.other is None else spec.other
    if has_other and OTHER in spec.labels:
        raise Unfit(f"{OTHER!r} is reserved for values outside the categories; add other: false")
    sql_type = kind.text
    if kind.family == "enum":
        # An anonymous ENUM may hold the data's own values: the output gets the declared ones.
        strings = column.enum_labels or tuple(label for label in spec.labels if isinstance(label, str))
        sql_type = enum_type(strings)
    return Attribute(
        column.name,
        sql_type,
        "categorical",
        spec.labels,
        other=has_other,
        nullable=spec.nullable,
        ordered=spec.ordered,
        prefixes=spec.prefixes,
    )


def _prefix_faults(kind: SqlType, spec: Categories) -> Iterator[str]:
    """Every length needs a category that is such a beginning."""
    fault = lengths_fault(kind, spec.prefixes)
    if fault is not None:
        yield fault
        return
    lengths = {len(str(label)) - 1 for label in spec.labels if str(label).endswith(ANY_REST)}
    for length in spec.prefixes:
        if length not in lengths:
            yield (
                f"prefixes has the length {length}, but no category of so many characters and "
                f"{ANY_REST!r}; add one, or leave the length out"
            )


def lengths_fault(kind: SqlType, lengths: Sequence[int]) -> str | None:
    """What is wrong with lengths of prefixes of a type, or None."""
    if lengths and kind.family != "text":
        return f"prefixes need text, and the type is {shown(kind)}; leave them out"
    if list(lengths) != sorted(set(lengths), reverse=True):
        return f"prefixes is {list(lengths)}; write lengths once each, the longest first"
    return None


def natural_kind(kind: SqlType) -> str:
    """The kind of entry that suits a type."""
    if kind.family == "uuid":
        return "key"
    if kind.family in ("boolean", "text", "enum"):
        return "categorical"
    return "temporal" if kind.temporal else "numeric"


def _complete(column: Column, kind: SqlType, labels: Sequence[Label]) -> bool:
    if kind.family == "boolean":
        return len(labels) == 2
    return column.enum_labels is not None and set(labels) == set(column.enum_labels)


def _label_faults(column: Column, kind: SqlType, spec: Categories) -> Iterator[str]:
    if not spec.labels:
        yield "categories is empty; list at least one value"
    if len(spec.labels) > MAX_SIZE:
        yield f"{len(spec.labels)} categories; at most {MAX_SIZE} are allowed"
    wanted = {"integer": int, "boolean": bool}.get(kind.family, str)
    wrong = [label for label in spec.labels if type(label) is not wanted]
    if wrong:
        advice = "write it in quotes" if wanted is str else f"write {wanted.__name__} values"
        yield f"category {wrong[0]!r} does not fit the type {shown(kind)}; {advice}"
        return
    doubles = sorted(str(label) for label, times in Counter(spec.labels).items() if times > 1)
    if doubles:
        yield f"category {doubles[0]!r} is listed twice"
    for label in spec.labels:
        fault = _label_fault(label, column, kind)
        if fault is not None:
            yield f"category {label!r} {fault}"


def _label_fault(label: Label, column: Column, kind: SqlType) -> str | None:
    if isinstance(label, str):
        if "\x00" in label or any("\ud800" <= character <= "\udfff" for character in label):
            return "holds a NUL or half a surrogate pair, which SQL text cannot hold"
        if column.enum_labels is not None and label not in column.enum_labels:
            return "is not a label of the column's ENUM type"
    elif kind.family == "integer" and not kind.low <= label <= kind.high:
        return f"does not fit the type {kind.text}"
    return None


def shown(kind: SqlType) -> str:
    """A type without labels, which can be made from the data."""
    return "ENUM" if kind.family == "enum" else kind.text


def binned_attribute(column: Column, kind: SqlType, spec: Bins) -> Attribute:
    """A declared numeric or temporal attribute, cut exactly in the column's own type.

    Raises:
        Unfit: with all faults.
    """
    if natural_kind(kind) != spec.kind:
        raise Unfit(
            f"type {shown(kind)} cannot be {spec.kind}; write type: {natural_kind(kind)}, or exclude the "
            "column"
        )
    if len(spec.edges) > MAX_SIZE:
        raise Unfit(f"{len(spec.edges)} edges; at most {MAX_SIZE} are allowed")
    cut = _float_edges if kind.family == "float" else _discrete_edges
    faults, granularity, edges = list[str](), None, tuple[Edge, ...]()
    try:
        granularity = granularity_of(kind, spec.granularity)
    except Unfit as unfit:
        faults += unfit.args
    try:
        edges = cut(kind, spec)
    except Unfit as unfit:
        faults += unfit.args
    if faults:
        raise Unfit(*faults)
    return Attribute(
        column.name,
        kind.text,
        spec.kind,
        edges=edges,
        nullable=spec.nullable,
        ordered=True,
        granularity=granularity,
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
    return Attribute(
        column.name,
        column.sql_type,
        binned_kind(kind),
        edges=tuple(edge_of(kind, cut) for cut in cuts),
        nullable=column.nullable,
        ordered=True,
        granularity=column.granularity,
        source=column.source,
    )


def stated_limits(
    column: Column, kind: SqlType, spec: DiscoverSpec
) -> tuple[Fraction | None, Fraction | None]:
    """The bounds of a column whose bins are learnt, as ``limits_of`` gives them; None where none is stated.

    Raises:
        Unfit: one does not fit.
    """
    lower, upper = spec.lower, spec.upper
    if lower is not None and upper is not None:
        return limits_of(binned_attribute(column, kind, Bins(binned_kind(kind), lower, upper)))
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


def _float_edges(kind: SqlType, spec: Bins) -> tuple[Edge, ...]:
    """Edges as DOUBLE, or rounded to FLOAT so that comparing and drawing agree bit for bit."""
    wrong = [value for value in spec.values if not isinstance(value, Decimal)]
    if wrong:
        raise Unfit(*(f"{value} is not a value of the type {kind.text}" for value in wrong))
    single = kind.text == "FLOAT"
    with np.errstate(over="ignore"):
        bounds = [float(np.float32(float(str(v)))) if single else float(str(v)) for v in spec.values]
    bounds = [value + 0.0 for value in bounds]  # -0.0 and 0.0 are one cut
    if not all(np.isfinite(bounds)):
        raise Unfit(f"a bound does not fit the type {kind.text}")
    if spec.edges:
        for low, high in pairwise(bounds):
            if low >= high:
                raise Unfit(f"edges must increase, but {high} follows {low}")
        return tuple(bounds)
    lower, upper = bounds
    if lower >= upper:
        raise Unfit(f"lower {lower} is not below upper {upper}")
    count = spec.bins or _DEFAULT_BINS
    inner = [lower * (1 - i / count) + upper * (i / count) for i in range(1, count)]
    cuts = [lower, *(float(np.float32(cut)) if single else cut for cut in inner), upper]
    if any(low >= high for low, high in pairwise(cuts)):
        raise Unfit(f"the type {kind.text} cannot tell {count} bins apart; write fewer")
    return tuple(cuts)


def _discrete_edges(kind: SqlType, spec: Bins) -> tuple[Edge, ...]:
    faults, ticks = list[str](), list[int]()
    for value in spec.values:
        try:
            ticks.append(_tick(kind, value))
        except Unfit as unfit:
            faults += unfit.args
    if faults:
        raise Unfit(*faults)
    top = ticks[-1]
    last = spec.values[-1]
    if kind.family == "timestamp" and not isinstance(last, datetime):
        top = ticks[-1] = top + kind.day - 1  # a day named as upper bound belongs to the range whole
    if top > kind.high:
        raise Unfit(f"upper bound {last} does not fit the type {kind.text}")
    if _no_edge_past(kind, top):
        raise Unfit(f"upper bound {last} is one step before the end of year 9999; write the last value")
    if spec.edges:
        return _listed_edges(kind, ticks, spec)
    lower = ticks[0]
    if lower >= top:
        raise Unfit(f"lower {spec.lower} is not below upper {spec.upper}")
    values = top - lower + 1
    count = spec.bins or (values if values <= _UNIT_BINS else _DEFAULT_BINS)
    count = min(count, values)
    return tuple(from_tick(kind, lower + i * values // count) for i in range(count + 1))


def _listed_edges(kind: SqlType, ticks: Sequence[int], spec: Bins) -> tuple[Edge, ...]:
    """Lower cuts and the inclusive upper bound; the bound may repeat the last cut, which then
    is a bin of one value."""
    for position, (low, high) in enumerate(pairwise(ticks)):
        if low > high or (low == high and position < len(ticks) - 2):
            later, earlier = spec.edges[position + 1], spec.edges[position]
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


def declared_type(spec: Bins | Categories) -> SqlType:
    """The type that a CSV column gets when its declaration names none."""
    if isinstance(spec, Categories):
        integral = bool(spec.labels) and all(type(label) is int for label in spec.labels)
        name = _integer_name([int(label) for label in spec.labels]) if integral else "VARCHAR"
    elif spec.kind == "temporal":
        moments = [value for value in spec.values if isinstance(value, datetime)]
        zoned = any(moment.tzinfo is not None for moment in moments)
        name = "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP" if moments else "DATE"
        if any(isinstance(value, time) for value in spec.values):
            name = "TIME"
    else:
        numbers = [value for value in spec.values if isinstance(value, Decimal)]
        integral = all(number.as_tuple().exponent == 0 for number in numbers)
        name = _integer_name([int(number) for number in numbers]) if integral else "DOUBLE"
    parsed = parse_type(name)
    assert parsed is not None
    return parsed


def _integer_name(values: Sequence[int]) -> str:
    return "BIGINT" if all(-(2**63) <= value < 2**63 for value in values) else "HUGEINT"
