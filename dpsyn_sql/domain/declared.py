"""Attributes from what an owner declares or a catalog states; every fault is collected.

Each function appends what is wrong to ``faults`` and returns None, so that a caller can go on
and show all faults of all columns in one message. Nothing here reads a row.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpsyn_sql.domain.attributes import (
    ANY_REST,
    MAX_SIZE,
    OTHER,
    Attribute,
    Granularity,
    Label,
    edge_ticks,
)
from dpsyn_sql.domain.fields import Cut, Step
from dpsyn_sql.domain.grids import binned_kind, edge_of, rounded
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.specs import Bins, Categories, DiscoverSpec
from dpsyn_sql.domain.types import Edge, SqlType, enum_type, from_tick, parse_type, to_tick
from dpsyn_sql.source.relation import Column

_UNIT_BINS = 100
_DEFAULT_BINS = 32


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


def categorical_attribute(
    column: Column, kind: SqlType, spec: Categories, faults: list[str]
) -> Attribute | None:
    """A declared categorical attribute of a VARCHAR, integer, BOOLEAN or ENUM column."""
    who = f"column {column.name!r}"
    if kind.family not in ("text", "integer", "boolean", "enum"):
        faults.append(f"{who}: type {kind.text} cannot be categorical; write type: {natural_kind(kind)}")
        return None
    before = len(faults)
    _check_labels(who, column, kind, spec, faults)
    _check_prefixes(who, kind, spec, faults)
    if len(faults) > before:
        return None
    complete = _complete(column, kind, spec.labels)
    other = not complete if spec.other is None else spec.other
    if other and OTHER in spec.labels:
        faults.append(f"{who}: {OTHER!r} is reserved for values outside the categories; add other: false")
        return None
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
        other=other,
        nullable=spec.nullable,
        ordered=spec.ordered,
        prefixes=spec.prefixes,
    )


def _check_prefixes(who: str, kind: SqlType, spec: Categories, faults: list[str]) -> None:
    """Every length needs a category that is such a beginning."""
    lengths = spec.prefixes
    fault = lengths_fault(kind, lengths)
    if fault is not None:
        faults.append(f"{who}: {fault}")
        return
    found = {len(str(label)) - 1 for label in spec.labels if str(label).endswith(ANY_REST)}
    for length in lengths:
        if length not in found:
            faults.append(
                f"{who}: prefixes has the length {length}, but no category of so many characters and "
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


def _check_labels(who: str, column: Column, kind: SqlType, spec: Categories, faults: list[str]) -> None:
    if not spec.labels:
        faults.append(f"{who}: categories is empty; list at least one value")
    if len(spec.labels) > MAX_SIZE:
        faults.append(f"{who}: {len(spec.labels)} categories; at most {MAX_SIZE} are allowed")
    wanted = {"integer": int, "boolean": bool}.get(kind.family, str)
    wrong = [label for label in spec.labels if type(label) is not wanted]
    if wrong:
        advice = "write it in quotes" if wanted is str else f"write {wanted.__name__} values"
        faults.append(f"{who}: category {wrong[0]!r} does not fit the type {shown(kind)}; {advice}")
        return
    doubles = (
        sorted({str(label) for label in spec.labels if spec.labels.count(label) > 1})
        if (len(set(spec.labels)) < len(spec.labels))
        else []
    )
    if doubles:
        faults.append(f"{who}: category {doubles[0]!r} is listed twice")
    for label in spec.labels:
        fault = _label_fault(label, column, kind)
        if fault is not None:
            faults.append(f"{who}: category {label!r} {fault}")


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


def binned_attribute(column: Column, kind: SqlType, spec: Bins, faults: list[str]) -> Attribute | None:
    """A declared numeric or temporal attribute, cut exactly in the column's own type."""
    who = f"column {column.name!r}"
    if natural_kind(kind) != spec.kind:
        faults.append(
            f"{who}: type {shown(kind)} cannot be {spec.kind}; write type: {natural_kind(kind)}, or exclude "
            "the column"
        )
        return None
    if spec.bins is not None and not 1 <= spec.bins <= MAX_SIZE:
        faults.append(f"{who}: bins is {spec.bins}; allowed are 1 to {MAX_SIZE}")
        return None
    if len(spec.edges) > MAX_SIZE:
        faults.append(f"{who}: {len(spec.edges)} edges; at most {MAX_SIZE} are allowed")
        return None
    before = len(faults)
    granularity = granularity_of(who, kind, spec.granularity, faults)
    cut = _float_edges if kind.family == "float" else _discrete_edges
    edges = cut(who, kind, spec, faults)
    if edges is None or len(faults) > before:
        return None
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
    column: Column, kind: SqlType, spec: DiscoverSpec, faults: list[str]
) -> tuple[Fraction | None, Fraction | None] | None:
    """The bounds of a column whose bins are learnt, as ``limits_of`` gives them; None if one does not fit."""
    lower, upper = spec.lower, spec.upper
    if lower is not None and upper is not None:
        both = binned_attribute(column, kind, Bins(binned_kind(kind), lower, upper), faults)
        return None if both is None else limits_of(both)
    before = len(faults)
    stated = lower if lower is not None else upper
    found: Fraction | None = None
    if stated is not None and kind.family == "float":
        if isinstance(stated, Decimal):
            found = rounded(kind, Fraction(stated))
        else:
            faults.append(f"column {column.name!r}: {stated} is not a value of the type {kind.text}")
    elif stated is not None:
        tick = _tick(f"column {column.name!r}", kind, stated, faults)
        whole_day = upper is not None and kind.family == "timestamp" and not isinstance(upper, datetime)
        found = Fraction(min(kind.high, tick + kind.day - 1) if whole_day else tick)
    if len(faults) > before:
        return None
    return (found, None) if lower is not None else (None, found)


def granularity_of(who: str, kind: SqlType, stated: Step | None, faults: list[str]) -> Granularity | None:
    """A stated granularity in the terms of an attribute; None for the type's own."""
    if stated is None:
        return None
    if isinstance(stated, str):
        return _temporal_step(who, kind, stated, faults)
    if kind.family not in ("integer", "decimal", "float"):
        faults.append(f"{who}: granularity of a {kind.text} is one of {', '.join(_steps(kind)) or 'none'}")
        return None
    ticks = 0
    if kind.family != "float":
        with contextlib.suppress(ValueError):
            ticks = to_tick(kind, stated)
    if stated <= 0 or (kind.family != "float" and not 0 < ticks < 2**62):
        faults.append(f"{who}: granularity {stated} is not a positive value of the type {kind.text}")
        return None
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


def _temporal_step(who: str, kind: SqlType, name: str, faults: list[str]) -> Granularity | None:
    steps = _steps(kind)
    if name in steps:
        return steps[name]
    allowed = ", ".join(steps) or "a number"
    faults.append(f"{who}: granularity {name} does not fit the type {kind.text}; allowed: {allowed}")
    return None


def _float_edges(who: str, kind: SqlType, spec: Bins, faults: list[str]) -> tuple[Edge, ...] | None:
    """Edges as DOUBLE, or rounded to FLOAT so that comparing and drawing agree bit for bit."""
    single = kind.text == "FLOAT"
    with np.errstate(over="ignore"):
        given = [float(np.float32(float(str(v)))) if single else float(str(v)) for v in spec.values]
    given = [value + 0.0 for value in given]  # -0.0 and 0.0 are one cut
    if not all(np.isfinite(given)):
        faults.append(f"{who}: a bound does not fit the type {kind.text}")
        return None
    if spec.edges:
        return _increasing(who, given, "edges", faults)
    lower, upper = given
    if _increasing(who, given, "bounds", faults) is None:
        return None
    count = spec.bins or _DEFAULT_BINS
    inner = [lower * (1 - i / count) + upper * (i / count) for i in range(1, count)]
    cuts = [lower, *(float(np.float32(cut)) if single else cut for cut in inner), upper]
    if any(low >= high for low, high in pairwise(cuts)):
        faults.append(f"{who}: the type {kind.text} cannot tell {count} bins apart; write fewer")
        return None
    return tuple(cuts)


def _increasing(who: str, cuts: Sequence[float], what: str, faults: list[str]) -> tuple[Edge, ...] | None:
    if what == "bounds" and cuts[0] >= cuts[1]:
        faults.append(f"{who}: lower {cuts[0]} is not below upper {cuts[1]}")
        return None
    for low, high in pairwise(cuts):
        if low >= high:
            faults.append(f"{who}: edges must increase, but {high} follows {low}")
            return None
    return tuple(cuts)


def _discrete_edges(who: str, kind: SqlType, spec: Bins, faults: list[str]) -> tuple[Edge, ...] | None:
    before = len(faults)
    ticks = [_tick(who, kind, value, faults) for value in spec.values]
    if len(faults) > before:
        return None
    top = ticks[-1]
    last = spec.values[-1]
    if kind.family == "timestamp" and not isinstance(last, datetime):
        top = ticks[-1] = top + kind.day - 1  # a day named as upper bound belongs to the range whole
    if top > kind.high:
        faults.append(f"{who}: upper bound {last} does not fit the type {kind.text}")
    if _no_edge_past(kind, top):
        faults.append(
            f"{who}: upper bound {last} is one step before the end of year 9999; write the last value"
        )
    if len(faults) > before:
        return None
    if spec.edges:
        return _listed_edges(who, kind, ticks, spec, faults)
    lower = ticks[0]
    if lower >= top:
        faults.append(f"{who}: lower {spec.lower} is not below upper {spec.upper}")
        return None
    values = top - lower + 1
    count = spec.bins or (values if values <= _UNIT_BINS else _DEFAULT_BINS)
    count = min(count, values)
    return tuple(from_tick(kind, lower + i * values // count) for i in range(count + 1))


def _listed_edges(
    who: str, kind: SqlType, ticks: Sequence[int], spec: Bins, faults: list[str]
) -> tuple[Edge, ...] | None:
    """Lower cuts and the inclusive upper bound; the bound may repeat the last cut, which then
    is a bin of one value."""
    for position, (low, high) in enumerate(pairwise(ticks)):
        if low > high or (low == high and position < len(ticks) - 2):
            later, earlier = spec.edges[position + 1], spec.edges[position]
            faults.append(f"{who}: edges must increase, but {later} follows {earlier}")
            return None
    return tuple(from_tick(kind, tick) for tick in (*ticks[:-1], ticks[-1] + 1))


def _no_edge_past(kind: SqlType, top: int) -> bool:
    """Whether the edge past ``top`` would be taken for the mark of year 9999's end."""
    return kind.temporal and kind.unit == 1 and kind.high - 1 == top and (kind.text != "TIMESTAMP_NS")


def _tick(who: str, kind: SqlType, value: Cut, faults: list[str]) -> int:
    moment = value
    if kind.temporal and isinstance(value, time) != (kind.family == "time"):
        needs = "a time of day such as 12:30:00" if kind.family == "time" else "a date"
        faults.append(f"{who}: {value} is not a value of the type {kind.text}; write {needs}")
        return 0
    if kind.family == "date" and isinstance(value, datetime):
        faults.append(f"{who}: {value} has a time of day, but the column is a DATE")
        return 0
    if kind.family == "timestamp" and isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        if moment.tzinfo is not None and not kind.zoned:
            faults.append(f"{who}: {value} has a time zone, but the column ({kind.text}) has none")
            return 0
        if kind.zoned and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
    try:
        tick = to_tick(kind, moment)
    except ValueError:
        faults.append(f"{who}: {value} is not a value of the type {kind.text}")
        return 0
    if not kind.low <= tick <= kind.high:
        faults.append(f"{who}: {value} does not fit the type {kind.text}")
        return 0
    return tick


def declared_type(spec: Bins | Categories) -> SqlType:
    """The type that a CSV column gets when its declaration names none."""
    if isinstance(spec, Categories):
        whole = bool(spec.labels) and all(type(label) is int for label in spec.labels)
        name = _integer_name([int(label) for label in spec.labels]) if whole else "VARCHAR"
    elif spec.kind == "temporal":
        found = [value for value in spec.values if isinstance(value, datetime)]
        zoned = any(moment.tzinfo is not None for moment in found)
        name = "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP" if found else "DATE"
        if any(isinstance(value, time) for value in spec.values):
            name = "TIME"
    else:
        numbers = [value for value in spec.values if isinstance(value, Decimal)]
        whole = all(number.as_tuple().exponent == 0 for number in numbers)
        name = _integer_name([int(number) for number in numbers]) if whole else "DOUBLE"
    parsed = parse_type(name)
    assert parsed is not None
    return parsed


def _integer_name(values: Sequence[int]) -> str:
    return "BIGINT" if all(-(2**63) <= value < 2**63 for value in values) else "HUGEINT"
