"""The domain file as a document: its format (pydantic models) and its reading (YAML or a dict).

The file is public, so messages may quote it. Faults are collected, so that one run shows them all.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    WithJsonSchema,
)

from dpsyn_sql.domain.attributes import MAX_SIZE
from dpsyn_sql.domain.entries import (
    Bins,
    Categories,
    ConstantColumn,
    Cut,
    DerivedColumn,
    Discover,
    Entry,
    KeyColumn,
    Scalar,
)
from dpsyn_sql.errors import DomainError, InputError, said

_KEYS = ("columns", "never")


def _number(value: Any) -> Decimal:
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


def _moment(value: Any) -> Cut:
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
    found = time.fromisoformat(text) if ":" in text else None
    if found is None or found.tzinfo is not None:
        raise ValueError
    return found


def _bound(value: Any) -> Cut:
    """A number, or a date, timestamp or time of day."""
    with contextlib.suppress(ValueError):
        return _number(value)
    return _moment(value)


def _scalar(value: Any) -> Scalar:
    """A single value of a constant or a mapping; numbers exactly as written."""
    if value is None or isinstance(value, bool | int | str | date | Decimal):
        return value
    if isinstance(value, float):
        return _number(value)
    raise ValueError("must be a single value: text, a number, true, false, a date or null")


def _step(value: Any) -> Any:
    return value if value in ("second", "minute", "hour", "day", "month") else _number(value)


def _derivation(value: Any) -> Any:
    """A SQL expression, or the name of one column with a table of its values."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, Mapping) and len(value) == 1:
        ((column, pairs),) = value.items()
        if isinstance(column, str) and isinstance(pairs, Mapping) and pairs:
            return column, tuple((_scalar(key), _scalar(found)) for key, found in pairs.items())
    raise ValueError('must be "a SQL expression" or {column: {value: result, ...}}')


Number = Annotated[Decimal, PlainValidator(_number), WithJsonSchema({"type": ["number", "string"]})]
Moment = Annotated[Any, PlainValidator(_moment), WithJsonSchema({"type": "string"})]
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


class _Spec(BaseModel, ABC):
    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, populate_by_name=True
    )

    sql_type: SqlTypeName = None

    @abstractmethod
    def entry(self) -> Entry:
        """The declaration as a plain value.

        Raises:
            ValueError: its parts contradict each other, or one is missing.
        """


class _Measured(_Spec):
    nullable: Annotated[StrictBool, Field(description="NULL is a value of its own.")] = False


class NumericSpec(_Measured):
    """A numeric column: lower and upper bound (both included), whose bins are learnt or counted, or edges."""

    type: Literal["numeric"]
    lower: Number | None = None
    upper: Number | None = None
    bins: BinCount | None = None
    edges: Annotated[list[Number], Field(min_length=2)] | None = None
    granularity: Granularity | None = None

    def entry(self) -> Bins:
        return _bins(self)


class TemporalSpec(_Measured):
    """A date or time column: lower and upper bound (both included), whose bins are learnt or counted, or
    edges."""

    type: Literal["temporal"]
    lower: Moment | None = None
    upper: Moment | None = None
    bins: BinCount | None = None
    edges: Annotated[list[Moment], Field(min_length=2)] | None = None
    granularity: Granularity | None = None

    def entry(self) -> Bins:
        return _bins(self)


class CategoricalSpec(_Measured):
    """A column of listed values; ``other: false`` states that the list is complete."""

    type: Literal["categorical"]
    categories: list[StrictBool | StrictInt | StrictStr]
    other: StrictBool | None = None
    ordered: StrictBool = False
    prefixes: Prefixes = []

    def entry(self) -> Categories:
        prefixes = tuple(self.prefixes)
        return Categories(tuple(self.categories), self.other, self.ordered, self.nullable, prefixes)


class DiscoverSpec(_Spec):
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
    prefixes: Prefixes = []

    def entry(self) -> Discover:
        return Discover(
            self.kind,
            self.max_codes,
            self.nullable,
            self.granularity,
            other=self.other,
            lower=self.lower,
            upper=self.upper,
            prefixes=tuple(self.prefixes),
        )


class KeySpec(_Spec):
    """A column that tells rows apart: the output gets fresh values, unique in it."""

    type: Literal["key"]

    def entry(self) -> KeyColumn:
        return KeyColumn()


class ConstantSpec(_Spec):
    """A column of one public value."""

    type: Literal["constant"]
    value: Single

    def entry(self) -> ConstantColumn:
        return ConstantColumn(self.value)


class DerivedSpec(_Spec):
    """A column computed from other columns of the output."""

    type: Literal["derived"] = "derived"
    derived: Derivation
    otherwise: Annotated[Single, Field(alias="else", description="Where the mapping has no entry.")] = None

    def entry(self) -> DerivedColumn:
        if not isinstance(self.derived, str):
            column, pairs = self.derived
            return DerivedColumn(None, column, pairs, self.otherwise)
        if "otherwise" in self.model_fields_set:
            raise ValueError("else needs a mapping; write the other value into the expression")
        return DerivedColumn(self.derived)


def _bins(spec: NumericSpec | TemporalSpec) -> Bins:
    if spec.edges is not None:
        if spec.lower is not None or spec.upper is not None or spec.bins is not None:
            raise ValueError("write either edges, or lower, upper and bins")
        edges = tuple(spec.edges)
        return Bins(spec.type, edges=edges, nullable=spec.nullable, granularity=spec.granularity)
    if spec.lower is None or spec.upper is None:
        raise ValueError("write lower and upper, or edges")
    return Bins(spec.type, spec.lower, spec.upper, spec.bins, (), spec.nullable, spec.granularity)


Spec = NumericSpec | TemporalSpec | CategoricalSpec | DiscoverSpec | KeySpec | ConstantSpec | DerivedSpec


class DomainDocument(BaseModel):
    """The whole file; only used to publish the format as a JSON schema."""

    model_config = ConfigDict(extra="forbid", title="dpsyn domain file")

    columns: dict[str, Spec]
    never: Annotated[list[str], Field(description="SQL conditions that no row of the output meets.")] = []


_SPECS: dict[str, type[Spec]] = {
    name: spec for spec in get_args(Spec) for name in get_args(spec.model_fields["type"].annotation)
}
*_NAMED, _LAST = [name for name, spec in _SPECS.items() if spec.model_fields["type"].is_required()]
_KINDS = f"type: {', '.join(_NAMED)} or {_LAST}; or derived:"


def json_schema() -> dict[str, Any]:
    """The format as a JSON schema (docs/domain.schema.json)."""
    return DomainDocument.model_json_schema()


@dataclass(frozen=True, slots=True)
class Document:
    """A domain file that was read. ``columns`` holds None where a declaration is faulty."""

    columns: Mapping[str, Entry | None]
    sql_types: Mapping[str, str]
    never: tuple[str, ...]
    faults: tuple[str, ...]


def read_document(spec: Mapping[str, Any] | Path) -> Document:
    """Read a dict or a YAML file.

    Raises:
        DomainError: the file cannot be read, is no YAML, or has no ``columns:``.
    """
    document: Any = spec if isinstance(spec, Mapping) else load_yaml(spec)
    if not isinstance(document, Mapping) or "columns" not in document:
        raise DomainError("A domain must be a mapping with the key columns:, with one entry per column.")
    faults = [
        f"unknown key {said(key)}; allowed are columns: and never:" for key in document if key not in _KEYS
    ]
    entries = {} if document["columns"] is None else document["columns"]
    if not isinstance(entries, Mapping):
        raise DomainError("columns: must be a mapping of column names to declarations.")
    columns: dict[str, Entry | None] = {}
    sql_types: dict[str, str] = {}
    for name, entry in entries.items():
        if not isinstance(name, str):
            faults.append(f"column name {said(name)} is not text: write it in quotes")
            continue
        parsed = _read_entry(name, entry, faults)
        columns[name] = None if parsed is None else _plain(name, parsed, faults)
        if parsed is not None and parsed.sql_type is not None:
            sql_types[name] = parsed.sql_type
    never = _conditions(document.get("never"), faults)
    return Document(columns, sql_types, never, tuple(faults))


def _conditions(given: Any, faults: list[str]) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list | tuple) or not all(
        isinstance(text, str) and text.strip() for text in given
    ):
        faults.append('never: must be a list of SQL conditions: never: ["age < 16 AND married"]')
        return ()
    return tuple(text.strip() for text in given)


def _read_entry(name: str, entry: Any, faults: list[str]) -> Spec | None:
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if kind is None and isinstance(entry, Mapping) and "derived" in entry:
        kind = "derived"
    model = _SPECS.get(kind) if isinstance(kind, str) else None
    if model is None:
        faults.append(f"column {name!r}: write {_KINDS}")
        return None
    try:
        return model.model_validate(dict(entry))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
    told: Counter[str] = Counter()
    for problem in problems:
        key = str(problem["loc"][0]) if problem["loc"] else "type"
        told[key] += 1
        if told[key] == 1:
            faults.append(f"column {name!r}: {_explain(key, problem, model)}")
    return None


def _explain(key: str, problem: Any, model: type[Spec]) -> str:
    if problem["type"] == "extra_forbidden":
        names = sorted(field.alias or name for name, field in model.model_fields.items())
        return f"unknown key {said(key)}; allowed are {', '.join(names)}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    if key == "categories" and len(problem["loc"]) > 1:
        advice = "; for NULL write nullable: true" if problem["input"] is None else "; write text in quotes"
        return f"category {said(problem['input'])} is not text, a whole number or true/false{advice}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    message = message[:1].lower() + message[1:]
    return f"{key} {message}, not {said(problem['input'])}" if key != "edges" else f"edges {message}"


def _plain(name: str, spec: Spec, faults: list[str]) -> Entry | None:
    try:
        return spec.entry()
    except ValueError as error:
        faults.append(f"column {name!r}: {error}")
    return None


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with repeated keys refused instead of the last one taken."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} occurs twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path, what: str = "domain file", refusal: type[InputError] = DomainError) -> Any:
    """What a YAML file holds; a key that occurs twice is refused.

    Raises:
        DomainError: the file cannot be read or is no YAML; or another ``refusal``.
    """
    problem = ""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        problem = "there is no such file"
    except (OSError, ValueError):
        problem = "it cannot be opened as a UTF-8 text file"
    if problem:
        raise refusal(f"The {what} {str(path)!r} cannot be read: {problem}.")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "" if mark is None else f" in line {mark.line + 1}"
        problem = f"{line}: {error.problem}"
    except (yaml.YAMLError, ValueError, RecursionError):
        problem = ": a character, number or date in it is not valid"
    raise refusal(f"The {what} {str(path)!r} is not valid YAML{problem}.")
