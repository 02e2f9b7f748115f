"""The values that a domain file may hold, each with what it must be: pydantic types of the declarations.

Numbers are kept exactly as written. What a validator raises is shown to the owner as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, StrictInt, StrictStr, WithJsonSchema

from dpsyn_sql.attributes.attribute import MAX_SIZE
from dpsyn_sql.attributes.trees import LONGEST, MAX_COLUMNS
from dpsyn_sql.errors import said

Cut = Decimal | date | time
Scalar = bool | int | Decimal | str | date | None
Id = int | str
Step = Decimal | Literal["second", "minute", "hour", "day", "month"]


def number_of(value: Any) -> Decimal:
    """A number exactly as written: 0.1 is one tenth, not the nearest double."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        raise ValueError("must be a number")
    try:
        number = Decimal(value) if isinstance(value, int) else Decimal(str(value).strip())
    except InvalidOperation:
        number = None
    if number is None:
        raise ValueError("must be a number")
    if not number.is_finite() or number.adjusted() > 400:
        raise ValueError("must be a finite number")
    return number


def moment_of(value: Any) -> Cut:
    """A date, timestamp or time of day; text is read as ISO 8601."""
    if isinstance(value, date | time):
        return value
    if isinstance(value, str):
        text = value.strip()
        for parse in (date.fromisoformat, datetime.fromisoformat, _time):
            try:
                return parse(text)
            except ValueError:
                continue
    if isinstance(value, int):
        raise ValueError("must be a date or time; write a time of day in quotes: '12:30:00'")
    raise ValueError("must be a date such as 2020-12-31 or a timestamp such as 2020-12-31 23:59:59")


def _time(text: str) -> time:
    parsed = time.fromisoformat(text) if ":" in text else None
    if parsed is None or parsed.tzinfo is not None:
        raise ValueError
    return parsed


def _bound(value: Any) -> Cut:
    """A number, or a date, timestamp or time of day."""
    if isinstance(value, float | Decimal):
        return number_of(value)
    with contextlib.suppress(ValueError):
        return number_of(value)
    with contextlib.suppress(ValueError):
        return moment_of(value)
    raise ValueError("must be a number, a date such as 2020-12-31 or a time such as '12:30:00'")


def _scalar(value: Any) -> Scalar:
    """A single value of a constant or a mapping; numbers exactly as written."""
    if value is None or isinstance(value, bool | int | str | date | Decimal):
        return value
    if isinstance(value, float):
        return number_of(value)
    raise ValueError("must be a single value: text, a number, true, false, a date or null")


def _step(value: Any) -> Any:
    return value if value in ("second", "minute", "hour", "day", "month") else number_of(value)


def _derivation(value: Any) -> Any:
    """A SQL expression, or the name of one column with a table of its values."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, Mapping) and len(value) == 1:
        ((column, pairs),) = value.items()
        if isinstance(column, str) and isinstance(pairs, Mapping) and pairs:
            return column, tuple((_scalar(key), _scalar(result)) for key, result in pairs.items())
    raise ValueError('must be "a SQL expression" or {column: {value: result, ...}}')


def _box(value: Any) -> tuple[tuple[str, Cut, Cut], ...]:
    """Columns with their bounds."""
    example = "{lat: [40.4, 41.0], lon: [-74.3, -73.6]}"
    if not isinstance(value, Mapping) or not 2 <= len(value) <= MAX_COLUMNS:
        raise ValueError(f"must have 2 to {MAX_COLUMNS} columns with their bounds: {example}")
    box = []
    for name, ends in value.items():
        if not isinstance(name, str):
            raise ValueError(f"must have names that are text: {example}")
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            raise ValueError(f"must have a lower and an upper bound for {name!r}: {example}")
        try:
            box.append((name, _bound(ends[0]), _bound(ends[1])))
        except ValueError as error:
            bounds = ", ".join(map(said, ends))
            raise ValueError(f"of {name!r}: a bound {error}, not [{bounds}]") from None
    return tuple(box)


def _id(value: Any) -> Id:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be text or whole numbers; write text in quotes")
    return value


def _parents(value: Any) -> tuple[tuple[Id, Id | None], ...]:
    """Ids with their parents."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError('must be a mapping of ids to their parents: {"250": "240-279", "240-279": all}')
    return tuple((_id(id_), None if parent is None else _id(parent)) for id_, parent in value.items())


Box = Annotated[
    Any,
    PlainValidator(_box),
    WithJsonSchema(
        {
            "type": "object",
            "minProperties": 2,
            "maxProperties": MAX_COLUMNS,
            "additionalProperties": {
                "type": "array",
                "items": {"type": ["number", "string"]},
                "minItems": 2,
                "maxItems": 2,
            },
        }
    ),
    Field(description="The columns of the point with their lower and upper bounds (both included)."),
]
Parents = Annotated[
    Any,
    PlainValidator(_parents),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": ["string", "integer", "null"]},
            "minProperties": 1,
        }
    ),
    Field(description="The parent of each id. One id, or one parent that is no id, is the root."),
]
IdList = list[Annotated[Any, PlainValidator(_id), WithJsonSchema({"type": ["string", "integer"]})]]
Depth = Annotated[StrictInt, Field(ge=1, description="Levels of the tree at most.")]
Lengths = Annotated[list[Annotated[StrictInt, Field(ge=1, le=LONGEST)]], Field(min_length=1)]
TextLength = Annotated[StrictInt, Field(ge=1, le=LONGEST, description="Characters; longer text is cut.")]
Number = Annotated[Decimal, PlainValidator(number_of), WithJsonSchema({"type": ["number", "string"]})]
Moment = Annotated[Any, PlainValidator(moment_of), WithJsonSchema({"type": "string"})]
Bound = Annotated[
    Any,
    PlainValidator(_bound),
    WithJsonSchema({"type": ["number", "string"]}),
    Field(description="No value beyond it is looked for or written."),
]
Single = Annotated[
    Any, PlainValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})
]
Granularity = Annotated[
    Any,
    PlainValidator(_step),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["second", "minute", "hour", "day", "month"]},
                {"type": ["number", "string"]},
            ]
        }
    ),
    Field(description="Values are whole multiples of it: a number, or second, minute, hour, day, month."),
]
Derivation = Annotated[
    Any,
    PlainValidator(_derivation),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object", "maxProperties": 1}]}),
    Field(description="A SQL expression over other columns, or {column: {value: result, ...}}."),
]
Prefixes = Annotated[
    list[Annotated[StrictInt, Field(ge=1, le=1000)]],
    Field(
        description="Text only, lengths: a value that is not listed, or not found, has the category of its "
        "longest prefix that is, such as 250*."
    ),
]
BinCount = Annotated[StrictInt, Field(ge=1, le=MAX_SIZE)]
CodeCount = Annotated[StrictInt, Field(ge=2, le=MAX_SIZE)]
SqlTypeName = Annotated[
    StrictStr | None, Field(description="For CSV only: the type the text is read and written as.")
]
