"""The declarations of a domain file: one pydantic model for each ``type:``.

The docstrings and the descriptions of fields are part of the published format.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from dpsyn_sql.attributes.attribute import Label
from dpsyn_sql.attributes.fields import (
    Alphabet,
    BinCount,
    Bound,
    Box,
    CodeCount,
    Cut,
    Depth,
    Derivation,
    Granularity,
    Id,
    IdList,
    Lengths,
    Moment,
    Number,
    Parents,
    Prefixes,
    Single,
    SqlTypeName,
    Step,
    TextLength,
)
from dpsyn_sql.attributes.text import lengths_fault
from dpsyn_sql.source.names import listed


@dataclass(frozen=True, slots=True)
class Bins:
    """Declared cuts of a column: either ``lower``, ``upper`` and perhaps ``bins``, or ``edges``.

    ``granularity``: the values that occur are whole multiples of it; None: the type's own.
    """

    kind: Literal["numeric", "temporal"]
    lower: Cut | None = None
    upper: Cut | None = None
    bins: int | None = None
    edges: tuple[Cut, ...] = ()
    nullable: bool = False
    granularity: Step | None = None

    @property
    def values(self) -> tuple[Cut, ...]:
        """Every value the owner wrote."""
        return (*(value for value in (self.lower, self.upper) if value is not None), *self.edges)


@dataclass(frozen=True, slots=True)
class Categories:
    """Declared categories; ``other=None`` means that the owner said nothing about completeness."""

    labels: tuple[Label, ...]
    other: bool | None = None
    ordered: bool = False
    nullable: bool = False
    prefixes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """Text of the characters of ``alphabet`` (ascending), cut at ``longest`` of them, whose beginnings are
    refined to ``lengths``."""

    alphabet: str
    longest: int
    lengths: tuple[int, ...]
    max_codes: int | None = None
    nullable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxonomyColumn:
    """Ids with their parents (None: the root), or ids alone with the lengths of the beginnings they share."""

    parents: tuple[tuple[Id, Id | None], ...] = ()
    ids: tuple[Id, ...] = ()
    prefixes: tuple[int, ...] = ()
    max_codes: int | None = None
    nullable: bool | None = None


class _Spec(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, populate_by_name=True
    )

    sql_type: SqlTypeName = None


class _Column(_Spec):
    per_unit: Annotated[
        StrictBool, Field(description="All rows of a unit have the same value, such as a year of birth.")
    ] = False


class _Measured(_Column):
    nullable: Annotated[StrictBool, Field(description="NULL is a value of its own.")] = False


class NumericSpec(_Measured):
    """A numeric column: lower and upper bound (both included), whose bins are learnt or counted, or edges."""

    type: Literal["numeric"]
    lower: Number | None = None
    upper: Number | None = None
    bins: BinCount | None = None
    edges: Annotated[list[Number], Field(min_length=2)] | None = None
    granularity: Granularity | None = None


class TemporalSpec(_Measured):
    """A date or time column: lower and upper bound (both included), whose bins are learnt or counted, or
    edges."""

    type: Literal["temporal"]
    lower: Moment | None = None
    upper: Moment | None = None
    bins: BinCount | None = None
    edges: Annotated[list[Moment], Field(min_length=2)] | None = None
    granularity: Granularity | None = None


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


class DiscoverSpec(_Column):
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


class _TreeSpec(_Column):
    max_codes: CodeCount | None = None
    nullable: StrictBool | None = None


class DyadicSpec(_TreeSpec):
    """A number, date or time between bounds (both included) whose range is halved where the rows are."""

    type: Literal["dyadic"]
    lower: Bound
    upper: Bound
    depth: Depth | None = None


class PointSpec(_TreeSpec):
    """Two to eight columns of the source that are a place, or a way from one to another, under a name of
    its own: their box is halved where the rows are."""

    type: Literal["point"]
    columns: Box
    depth: Depth | None = None


class StringSpec(_TreeSpec):
    """Text over a public alphabet: its frequent beginnings are learnt, down to whole values."""

    type: Literal["string"]
    alphabet: Alphabet
    longest: TextLength | None = None
    lengths: Annotated[
        Lengths | None, Field(description="Ascending: the lengths that beginnings are refined to.")
    ] = None
    depth: Depth | None = None

    def entry(self) -> TextColumn:
        if self.longest is None and self.lengths is None:
            raise ValueError("write longest:, the length at which text is cut, such as 20")
        longest = self.longest or (self.lengths or [1])[-1]
        lengths = tuple(self.lengths or range(1, longest + 1))
        fault = lengths_fault(lengths, longest)
        if fault is not None:
            raise ValueError(fault)
        return TextColumn(
            alphabet=self.alphabet,
            longest=longest,
            lengths=lengths[: self.depth],
            max_codes=self.max_codes,
            nullable=self.nullable,
        )


class TaxonomySpec(_TreeSpec):
    """Ids with a public tree over them: their parents, or the beginnings they share."""

    type: Literal["taxonomy"]
    parents: Parents | None = None
    ids: Annotated[IdList | None, Field(min_length=2)] = None
    file: Annotated[
        StrictStr | None, Field(description="A CSV file with a header, beside the domain file.")
    ] = None
    id: Annotated[StrictStr | None, Field(description="The file's column of ids.")] = None
    parent: Annotated[StrictStr | None, Field(description="The file's column of parents.")] = None
    prefixes: Annotated[
        Lengths | None, Field(description="Ascending: lengths of the beginnings that ids are grouped by.")
    ] = None

    def read(self, folder: Path) -> TaxonomyColumn:
        """The entry, with the ids of its file; a relative path starts from ``folder``.

        Raises:
            ValueError: its parts contradict each other, one is missing, or the file cannot be read.
        """
        if sum(part is not None for part in (self.parents, self.ids, self.file)) != 1:
            raise ValueError("write one of parents:, ids: and file:")
        if (self.file is None) != (self.id is None) or (self.file is None and self.parent is not None):
            raise ValueError("id: and parent: name the columns of file:; write file: and id: together")
        if (self.parents is not None or self.parent is not None) == (self.prefixes is not None):
            raise ValueError(
                "write either the parents or prefixes:, the lengths of beginnings such as [1, 3]"
            )
        prefixes = tuple(self.prefixes or ())
        if list(prefixes) != sorted(set(prefixes)):
            raise ValueError("prefixes must ascend: [1, 3]")
        pairs: tuple[tuple[Id, Id | None], ...] = tuple((id_, None) for id_ in self.ids or ())
        if self.file is not None and self.id is not None:
            pairs = read_ids(folder / self.file, self.id, self.parent)
        elif self.parents is not None:
            pairs = self.parents
        return TaxonomyColumn(
            parents=() if prefixes else pairs,
            ids=tuple(id_ for id_, _ in pairs) if prefixes else (),
            prefixes=prefixes,
            max_codes=self.max_codes,
            nullable=self.nullable,
        )


def _without(column: str, names: Sequence[str]) -> str:
    if not names:
        return "is empty; it needs a header with the names of its columns"
    return f"has {'no' if column not in names else 'more than one'} column {column!r}; it has {listed(names)}"


def read_ids(path: Path, id_column: str, parent_column: str | None) -> tuple[tuple[Id, Id | None], ...]:
    """The ids of a CSV file with a header, each with its parent; an empty parent is None.

    Raises:
        ValueError: the file cannot be read, or has no such column.
    """
    problem = f"the file {str(path)!r} cannot be read as CSV text in UTF-8"
    try:
        with path.open(encoding="utf-8-sig", newline="") as opened:
            rows = csv.DictReader(opened, strict=True)
            names = list(rows.fieldnames or ())
            for column in (id_column, parent_column):
                if column is not None and names.count(column) != 1:
                    problem = f"the file {str(path)!r} {_without(column, names)}"
                    raise ValueError
            return tuple(
                (row[id_column] or "", None if parent_column is None else row[parent_column] or None)
                for row in rows
            )
    except (OSError, ValueError, csv.Error):
        pass
    raise ValueError(problem)


class KeySpec(_Spec):
    """A column that tells rows apart: the output gets fresh values, unique in it."""

    type: Literal["key"]


class ConstantSpec(_Spec):
    """A column of one public value."""

    type: Literal["constant"]
    value: Single


class DerivedSpec(_Spec):
    """A column computed from other columns of the output."""

    type: Literal["derived"] = "derived"
    derived: Derivation
    otherwise: Annotated[Single, Field(alias="else", description="Where the mapping has no entry.")] = None

    def entry(self) -> DerivedSpec:
        if isinstance(self.derived, str) and "otherwise" in self.model_fields_set:
            raise ValueError("else needs a mapping; write the other value into the expression")
        return self


def _bins(spec: NumericSpec | TemporalSpec) -> Bins:
    if spec.edges is not None and (spec.lower, spec.upper, spec.bins) != (None, None, None):
        raise ValueError("write either edges, or lower, upper and bins")
    if spec.edges is None and (spec.lower is None or spec.upper is None):
        raise ValueError("write lower and upper, or edges")
    edges = tuple(spec.edges or ())
    return Bins(spec.type, spec.lower, spec.upper, spec.bins, edges, spec.nullable, spec.granularity)


Spec = (
    NumericSpec
    | TemporalSpec
    | CategoricalSpec
    | DiscoverSpec
    | PointSpec
    | DyadicSpec
    | StringSpec
    | TaxonomySpec
    | KeySpec
    | ConstantSpec
    | DerivedSpec
)
"""The declaration of a column as the file has it."""

HierarchyEntry = DyadicSpec | TextColumn | TaxonomyColumn
"""A hierarchy over one column."""

Entry = Bins | Categories | DiscoverSpec | KeySpec | ConstantSpec | DerivedSpec | HierarchyEntry | PointSpec
"""The same as what ``entry`` of the specs makes of it, if they have one."""


def entry_of(spec: Spec, folder: Path) -> Entry:
    """The declaration as what fits a column; a file that it names lies in ``folder``.

    Raises:
        ValueError: its parts contradict each other, or one is missing.
    """
    if isinstance(spec, TaxonomySpec):
        return spec.read(folder)
    if isinstance(spec, NumericSpec | TemporalSpec):
        return _bins(spec)
    if isinstance(spec, CategoricalSpec | StringSpec | DerivedSpec):
        return spec.entry()
    return spec
