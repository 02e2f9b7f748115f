"""The file of a database: its unit, the keys and links of its tables, and the domain of each.

    unit: customers.customer_id
    public_tables: [products]
    tables:
      customers: {key: customer_id, columns: {...}}
      orders: {key: order_id, parent: customers, foreign_key: customer_id, most: 16, order: order_date}
      items:
        key: [order_id, line]
        parent: orders
        foreign_key: order_id
        columns: {product_id: {references: products, by: category}}

``columns`` and ``never`` of a table are those of a domain file. The file is public, so messages may quote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from dpsyn_sql.attributes.document import any_spec, load_yaml, read_document
from dpsyn_sql.attributes.file import DomainFile, DomainSpec
from dpsyn_sql.errors import DomainError, said, yaml_word

if TYPE_CHECKING:
    from dpsyn_sql.attributes.spec import ColumnSpec as AnySpec
else:
    AnySpec = any_spec()

_Names = StrictStr | Annotated[list[StrictStr], Field(min_length=1)]


class ReferenceSpec(BaseModel):
    """A foreign key beside the one that says whose row it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="reference")

    references: Annotated[StrictStr, Field(description="The table of which it names a row.")]
    by: Annotated[
        _Names | None,
        Field(
            description="Columns of a public table that are facts of the row; default: the named row itself."
        ),
    ] = None
    columns: Annotated[
        _Names | None, Field(description="All columns of the foreign key, if there are several.")
    ] = None


class TableSpec(BaseModel):
    """A private table."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="table")

    key: Annotated[_Names | None, Field(description="The columns that tell its rows apart.")] = None
    parent: Annotated[
        StrictStr | None, Field(description="The table whose rows its rows belong to; none for the units'.")
    ] = None
    foreign_key: Annotated[
        _Names | None, Field(description="The columns that name the parent's row, in the order of its key.")
    ] = None
    most: Annotated[
        StrictInt | None, Field(ge=1, le=2**20, description="Rows that count of one row of the parent.")
    ] = None
    order: Annotated[
        StrictStr | None, Field(description="A date, timestamp or whole number that orders the rows.")
    ] = None
    columns: Annotated[
        dict[StrictStr, AnySpec | ReferenceSpec] | None,
        Field(description="As in a domain file, or references."),
    ] = None
    never: Annotated[list[StrictStr], Field(description="SQL conditions that no row meets.")] = []


class PublicSpec(BaseModel):
    """A table without private data."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="public table")

    key: Annotated[_Names | None, Field(description="The columns that tell its rows apart.")] = None


class DatabaseDocument(BaseModel):
    """The whole file; only used to publish the format as a JSON schema."""

    model_config = ConfigDict(extra="forbid", title="dpsyn database file")

    unit: Annotated[
        StrictStr | None, Field(description="The key whose rows are protected: customers.customer_id.")
    ] = None
    public_tables: list[StrictStr] | dict[StrictStr, PublicSpec | None] = []
    tables: dict[StrictStr, TableSpec | None]


def database_schema() -> dict[str, Any]:
    """The format as a JSON schema (docs/database.schema.json)."""
    return DatabaseDocument.model_json_schema()


@dataclass(frozen=True, slots=True)
class StatedReference:
    """A declared reference: its table, the public columns that are measured, and its own columns."""

    table: str
    by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatedTable:
    """What the owner states of a private table; empty where the file says nothing.

    ``references``: by the first column. ``domain``: of the columns that are no references.
    """

    key: tuple[str, ...] = ()
    parent: str = ""
    foreign_key: tuple[str, ...] = ()
    most: int | None = None
    order: str = ""
    references: Mapping[str, StatedReference] = field(default_factory=dict)
    domain: DomainFile = field(default_factory=lambda: DomainFile({}, {}))


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """A database declaration that was read. ``public``: keys of public tables, empty where none is stated."""

    unit: str = ""
    tables: Mapping[str, StatedTable] = field(default_factory=dict)
    public: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def is_of_tables(spec: Any) -> bool:
    """Whether a domain has ``tables:``, so that it is the file of several tables.

    Raises:
        DomainError: it cannot be read, or is no YAML.
    """
    document = load_yaml(Path(spec)) if isinstance(spec, str | PathLike) else spec
    return isinstance(document, Mapping) and "tables" in document


def read_database(spec: DomainSpec) -> DatabaseFile:
    """Read a database file from a mapping or from the path of a YAML file; None is an empty one.

    Faults of single columns are kept, as those of a domain file are.

    Raises:
        DomainError: the file cannot be read, is no YAML, or its parts outside of ``columns`` are wrong.
    """
    if spec is None:
        return DatabaseFile()
    document, folder = (spec, Path()) if not isinstance(spec, str | PathLike) else _loaded(Path(spec))
    if not isinstance(document, Mapping) or not isinstance(document.get("tables"), Mapping):
        hint = (
            " columns: stand within a table."
            if isinstance(document, Mapping) and "columns" in document
            else ""
        )
        raise DomainError(
            "The domain of a database must be a mapping with the key tables:, with one entry per "
            f"table.{hint}"
        )
    faults = list[str]()
    bare = {
        **document,
        "tables": {name: _bare(name, entry, faults) for name, entry in document["tables"].items()},
    }
    read = _validated(bare, faults)
    if faults or read is None:
        raise DomainError("The domain of the database cannot be used:", faults)
    public = read.public_tables
    keys = dict.fromkeys(public) if isinstance(public, list) else public
    return DatabaseFile(
        unit=read.unit or "",
        tables={
            name: _stated(table or TableSpec(), document["tables"][name] or {}, folder)
            for name, table in read.tables.items()
        },
        public={
            name: () if public_table is None else _names(public_table.key)
            for name, public_table in keys.items()
        },
    )


def _loaded(path: Path) -> tuple[Any, Path]:
    """What a file holds, and where the files lie that it names."""
    return load_yaml(path), path.parent


def _bare(name: Any, entry: Any, faults: list[str]) -> Any:
    """A table without its ordinary columns, which are read as those of a domain file."""
    if not isinstance(entry, Mapping):
        return entry
    columns = entry.get("columns")
    if columns is not None and not isinstance(columns, Mapping):
        faults.append(f"{said(name)}: columns: must be a mapping of column names to declarations")
        columns = None
    bare = {key: value for key, value in entry.items() if key != "never"}
    return {
        **bare,
        "columns": {key: column for key, column in (columns or {}).items() if _is_reference(column)},
    }


def _is_reference(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "references" in entry


def _validated(bare: Mapping[str, Any], faults: list[str]) -> _Read | None:
    try:
        return _Read.model_validate(bare)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
    fault_at = dict[str, str]()
    for problem in problems:
        path = [str(part) for part in problem["loc"] if str(part) not in _KINDS]
        fault_at.setdefault(".".join(path), f"{'.'.join(path)}: {_explained(problem)}")
    faults.extend(fault_at.values())
    return None


def _explained(problem: Any) -> str:
    if problem["type"] == "extra_forbidden":
        return "this key is not known"
    message = str(problem["msg"]).replace("Input should be", "must be").replace("a valid ", "a ")
    message = message.replace("integer", "whole number").replace("dictionary", "mapping")
    message = message.replace("string", "text").replace(" or instance of _ReadTable", "")
    message = message.replace("must be a text", "must be text")
    message = message[:1].lower() + message[1:]
    if not message.startswith("must"):
        return message
    path = [part for part in problem["loc"] if part not in _KINDS[:2]]
    key = path[-1] if isinstance(path[-1], str) and path[-1] not in _KINDS else ""
    word = yaml_word(problem["input"], key) if problem["type"] == "string_type" else ""
    hint = f": {word}" if word else ""
    return f"{message}, not {said(problem['input'])}{hint}"


_KINDS = ("str", "list[str]", "[key]", "dict[str,nullable[PublicSpec]]")


class _ReadTable(TableSpec):
    columns: dict[StrictStr, ReferenceSpec] = {}  # type: ignore[assignment]


class _Read(DatabaseDocument):
    tables: dict[StrictStr, _ReadTable | None]  # type: ignore[assignment]


def _names(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _stated(table: TableSpec, entry: Mapping[str, Any], folder: Path) -> StatedTable:
    columns = entry.get("columns") or {}
    references = {
        name: StatedReference(reference.references, _names(reference.by), _names(reference.columns))
        for name, reference in (table.columns or {}).items()
        if isinstance(reference, ReferenceSpec)
    }
    ordinary = {name: column for name, column in columns.items() if not _is_reference(column)}
    return StatedTable(
        key=_names(table.key),
        parent=table.parent or "",
        foreign_key=_names(table.foreign_key),
        most=table.most,
        order=table.order or "",
        references=references,
        domain=DomainFile(*read_document({"columns": ordinary, "never": entry.get("never")}, folder)),
    )
