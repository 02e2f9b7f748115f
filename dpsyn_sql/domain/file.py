"""The domain file: what an owner declares about a table's columns, in YAML or as a dict.

    columns:
      age:       {type: numeric, lower: 17, upper: 90, bins: 20}     # or edges: [17, 25, 35, 90]
      workclass: {type: categorical, categories: [Private, Public], other: false, nullable: true}
      born:      {type: temporal, lower: 1990-01-01, upper: 2020-12-31, bins: 12}

The file is public, so messages may quote it. No function here reads a row of the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

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

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.domain.declared import (
    MAX_CODES,
    Bins,
    Categories,
    binned_attribute,
    catalog_attribute,
    categorical_attribute,
    declared_type,
)
from dpsyn_sql.domain.types import SqlType, parse_type
from dpsyn_sql.errors import DomainError, SourceError
from dpsyn_sql.source.relation import Column, Relation


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


def _moment(value: Any) -> date:
    """A date or timestamp; text is read as ISO 8601."""
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        for parse in (date.fromisoformat, datetime.fromisoformat):
            try:
                return parse(value.strip())
            except ValueError:
                continue
    raise ValueError("must be a date such as 2020-12-31 or a timestamp such as 2020-12-31 23:59:59")


Number = Annotated[Decimal, PlainValidator(_number), WithJsonSchema({"type": ["number", "string"]})]
Moment = Annotated[date, PlainValidator(_moment), WithJsonSchema({"type": "string"})]
BinCount = Annotated[StrictInt, Field(ge=1, le=MAX_CODES)]
SqlTypeName = Annotated[
    StrictStr | None, Field(description="For CSV only: the type the text is read and written as.")
]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    nullable: Annotated[StrictBool, Field(description="NULL is a value of its own.")] = False
    sql_type: SqlTypeName = None


class NumericSpec(_Spec):
    """A numeric column: lower and upper bound (both included) with bins, or edges."""

    type: Literal["numeric"]
    lower: Number | None = None
    upper: Number | None = None
    bins: BinCount | None = None
    edges: Annotated[list[Number], Field(min_length=2)] | None = None


class TemporalSpec(_Spec):
    """A date or timestamp column: lower and upper bound (both included) with bins, or edges."""

    type: Literal["temporal"]
    lower: Moment | None = None
    upper: Moment | None = None
    bins: BinCount | None = None
    edges: Annotated[list[Moment], Field(min_length=2)] | None = None


class CategoricalSpec(_Spec):
    """A column of listed values; ``other: false`` states that the list is complete."""

    type: Literal["categorical"]
    categories: list[StrictBool | StrictInt | StrictStr]
    other: StrictBool | None = None
    ordered: StrictBool = False


Spec = NumericSpec | TemporalSpec | CategoricalSpec


class DomainDocument(BaseModel):
    """The whole file; only used to publish the format as a JSON schema."""

    model_config = ConfigDict(extra="forbid", title="dpsyn domain file")

    columns: dict[str, Annotated[Spec, Field(discriminator="type")]]


_SPECS: dict[str, type[Spec]] = {
    "numeric": NumericSpec,
    "temporal": TemporalSpec,
    "categorical": CategoricalSpec,
}


def json_schema() -> dict[str, Any]:
    """The format as a JSON schema (docs/domain.schema.json)."""
    return DomainDocument.model_json_schema()


@dataclass(frozen=True, slots=True)
class DomainFile:
    """A domain declaration that was read; ``faults`` are shown by ``to_domain`` with its own.

    ``columns`` holds None where a declaration is faulty.
    """

    columns: Mapping[str, Bins | Categories | None]
    sql_types: Mapping[str, str]
    faults: tuple[str, ...] = ()

    def to_domain(
        self, columns: Sequence[Column], exclude: Collection[str] = (), *, csv: bool = False
    ) -> Domain:
        """The attributes of the columns that are kept, in source order.

        ``csv`` says that every column is text whose type is declared here.

        Raises:
            SourceError: no column is left.
            DomainError: with all faults of the file and of its fit to the source.
        """
        faults = list(self.faults)
        matches = _Names(columns)
        dropped = _matched(matches, exclude, "exclude names", faults)
        faults.extend(matches.clashes(dropped))
        entries = self._by_column(matches, faults)
        kept = [column for column in columns if column.name not in dropped]
        if not kept and not faults:
            raise SourceError("no columns left: every column of the source is excluded")
        attributes = [self._attribute(column, entries, csv, faults) for column in kept]
        undeclared = [c for c, a in zip(kept, attributes, strict=True) if a == "undeclared"]
        if undeclared:
            names = ", ".join(repr(column.name) for column in undeclared)
            faults.append(
                f"no public domain for {names}: declare them in the domain file (dpsyn init writes a form "
                f"to fill in), or leave them out with exclude="
            )
        if faults:
            raise DomainError("The domain does not fit the source:", faults)
        return Domain(tuple(item for item in attributes if isinstance(item, Attribute)))

    def _by_column(self, matches: _Names, faults: list[str]) -> dict[str, str]:
        """Declared name of each column of the source."""
        found: dict[str, str] = {}
        for name in self.columns:
            column = matches.find(name)
            if column is None:
                faults.append(f"the source has no column {name!r}; it has {matches.listed()}")
            elif column in found:
                faults.append(f"{found[column]!r} and {name!r} declare the same column {column!r}")
            else:
                found[column] = name
        return found

    def _attribute(
        self, column: Column, entries: Mapping[str, str], csv: bool, faults: list[str]
    ) -> Attribute | Literal["faulty", "undeclared"]:
        kind = parse_type(column.sql_type)
        if kind is None:
            family = column.sql_type.split("(")[0].split("[")[0].strip()
            shown = family if "[" not in column.sql_type else "LIST or ARRAY"
            faults.append(
                f"column {column.name!r}: type {shown} is not supported; leave it out with exclude="
            )
            return "faulty"
        name = entries.get(column.name)
        if name is None:
            return catalog_attribute(column, kind) or "undeclared"
        spec = self.columns[name]
        if spec is None:
            return "faulty"
        chosen = _chosen_type(column, kind, spec, self.sql_types.get(name), csv, faults)
        if chosen is None:
            return "faulty"
        if isinstance(spec, Categories):
            return categorical_attribute(column, chosen, spec, faults) or "faulty"
        return binned_attribute(column, chosen, spec, faults) or "faulty"


class _Names:
    """Columns by name: exactly, else by letter case if that is unique."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._exact = {column.name for column in columns}
        self._folded: dict[str, list[str]] = {}
        for column in columns:
            self._folded.setdefault(column.name.lower(), []).append(column.name)
        self._order = [column.name for column in columns]

    def clashes(self, dropped: Collection[str]) -> list[str]:
        kept = [[name for name in names if name not in dropped] for names in self._folded.values()]
        doubles = [names for names in kept if len(names) > 1]
        return [
            "the source has columns that differ only by letter case: "
            + ", ".join(map(repr, names))
            + "; leave one out with exclude="
            for names in doubles
        ]

    def find(self, name: str) -> str | None:
        if name in self._exact:
            return name
        candidates = self._folded.get(name.lower(), [])
        return candidates[0] if len(candidates) == 1 else None

    def listed(self) -> str:
        shown = ", ".join(repr(name) for name in self._order[:30])
        return shown + (", ..." if len(self._order) > 30 else "")


def _matched(matches: _Names, names: Collection[str], what: str, faults: list[str]) -> set[str]:
    found = set()
    for name in names:
        column = matches.find(name)
        if column is None:
            faults.append(f"{what} {name!r}, which is no column of the source; it has {matches.listed()}")
        else:
            found.add(column)
    return found


def _chosen_type(
    column: Column, kind: SqlType, spec: Bins | Categories, named: str | None, csv: bool, faults: list[str]
) -> SqlType | None:
    """The type of the attribute: the column's own, or for CSV the declared one."""
    if named is None:
        return declared_type(spec) if csv else kind
    parsed = parse_type(named)
    if parsed is None or parsed.family == "enum":
        faults.append(f"column {column.name!r}: sql_type {named!r} is not a type that can be declared")
        return None
    if not csv and parsed != kind:
        shown = "ENUM" if kind.family == "enum" else kind.text
        faults.append(
            f"column {column.name!r}: sql_type {named!r} contradicts the source, whose type is {shown}; "
            "remove it, or cast in a query"
        )
        return None
    return parsed


def read_domain(spec: Mapping[str, Any] | str | PathLike[str]) -> DomainFile:
    """Read a domain from a dict or from the path of a YAML file.

    Faults of single columns are kept and raised by ``DomainFile.to_domain``, so that one run
    shows everything that is wrong.

    Raises:
        DomainError: the file cannot be read, is no YAML, or has no ``columns:``.
    """
    document: Any = spec if isinstance(spec, Mapping) else _load(Path(spec))
    if not isinstance(document, Mapping) or "columns" not in document:
        raise DomainError("A domain must be a mapping with the key columns:, one entry a column.")
    faults = [f"unknown key {key!r}; the only one is columns:" for key in document if key != "columns"]
    entries = {} if document["columns"] is None else document["columns"]
    if not isinstance(entries, Mapping):
        raise DomainError("columns: must be a mapping of column names to declarations.")
    columns: dict[str, Bins | Categories | None] = {}
    sql_types: dict[str, str] = {}
    for name, entry in entries.items():
        if not isinstance(name, str):
            faults.append(f"column name {name!r} is not text: write it in quotes")
            continue
        parsed = _read_entry(name, entry, faults)
        columns[name] = None if parsed is None else _plain(name, parsed, faults)
        if parsed is not None and parsed.sql_type is not None:
            sql_types[name] = parsed.sql_type
    return DomainFile(columns, sql_types, tuple(faults))


DomainSpec = Mapping[str, Any] | str | PathLike[str] | None


def domain_of(spec: DomainSpec, relation: Relation, exclude: Collection[str] = ()) -> Domain:
    """The public domain of a relation; ``spec=None`` takes what the catalog alone makes public.

    Raises:
        SourceError: no column is left.
        DomainError: the domain is missing or contradictory; all faults at once.
    """
    declared = DomainFile({}, {}) if spec is None else read_domain(spec)
    return declared.to_domain(relation.columns, exclude, csv=relation.kind == "csv")


def _read_entry(name: str, entry: Any, faults: list[str]) -> Spec | None:
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    model = _SPECS.get(kind) if isinstance(kind, str) else None
    if model is None:
        faults.append(f"column {name!r}: write type: numeric, temporal or categorical")
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
        return f"unknown key {key!r}; allowed are {', '.join(sorted(model.model_fields))}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    if key == "categories" and len(problem["loc"]) > 1:
        advice = "; for NULL write nullable: true" if problem["input"] is None else "; write text in quotes"
        return f"category {problem['input']!r} is no text, whole number or true/false{advice}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    message = message[:1].lower() + message[1:]
    return f"{key} {message}, not {problem['input']!r}" if key != "edges" else f"edges {message}"


def _plain(name: str, spec: Spec, faults: list[str]) -> Bins | Categories | None:
    if isinstance(spec, CategoricalSpec):
        return Categories(tuple(spec.categories), spec.other, spec.ordered, spec.nullable)
    if spec.edges is not None:
        if spec.lower is not None or spec.upper is not None or spec.bins is not None:
            faults.append(f"column {name!r}: write either edges, or lower, upper and bins")
            return None
        return Bins(spec.type, edges=tuple(spec.edges), nullable=spec.nullable)
    if spec.lower is None or spec.upper is None:
        faults.append(f"column {name!r}: write lower and upper, or edges")
        return None
    return Bins(spec.type, spec.lower, spec.upper, spec.bins, nullable=spec.nullable)


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


def _load(path: Path) -> Any:
    problem = ""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        problem = "it cannot be opened as a UTF-8 text file"
    if problem:
        raise DomainError(f"The domain file {str(path)!r} cannot be read: {problem}.")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "" if mark is None else f" in line {mark.line + 1}"
        problem = f"{line}: {error.problem}"
    except (yaml.YAMLError, ValueError, RecursionError):
        problem = ": a character, number or date in it is not valid"
    raise DomainError(f"The domain file {str(path)!r} is not valid YAML{problem}.")
