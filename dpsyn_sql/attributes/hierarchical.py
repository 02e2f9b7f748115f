"""Columns that are declared as hierarchies: from the entry and the catalog to what is to be learnt.

A declaration that does not fit raises ``Unfit``. Nothing here reads a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsyn_sql.attributes.attribute import edge_ticks
from dpsyn_sql.attributes.declared import Unfit, binned_attribute, natural_kind, shown
from dpsyn_sql.attributes.fields import Cut, Id
from dpsyn_sql.attributes.grids import binned_kind
from dpsyn_sql.attributes.points import Points, box_fault, depth_limit
from dpsyn_sql.attributes.shape import MAX_CODES, Undiscovered
from dpsyn_sql.attributes.specs import Bins, DyadicSpec, HierarchyEntry, PointSpec, TaxonomyColumn, TextColumn
from dpsyn_sql.attributes.taxonomy import Taxonomy, from_parents, from_prefixes
from dpsyn_sql.attributes.text import MAX_CHILDREN, Texts, children_of, gaps
from dpsyn_sql.attributes.trees import Hierarchy, HierarchyColumn
from dpsyn_sql.attributes.types import SqlType
from dpsyn_sql.errors import said
from dpsyn_sql.source.relation import Column

_USUAL_BITS = 32
_USUAL_DEPTH = 24
# Levels of a box whose depth is not stated: cells of some metres in a city, of seconds in a year.

_Box = tuple[SqlType, int | float, int | float]


def tree_column(column: Column, kind: SqlType, entry: HierarchyEntry) -> Undiscovered:
    """A column that is a hierarchy by itself.

    Raises:
        Unfit: with all faults.
    """
    nullable = not column.not_null and entry.nullable is not False
    hierarchy: Hierarchy
    if isinstance(entry, DyadicSpec):
        ends = [(column, kind, entry.lower, entry.upper)]
        hierarchy = _points(column.name, ends, entry.depth, nullable)
    elif isinstance(entry, TextColumn):
        hierarchy = _texts(column, kind, entry, nullable)
    else:
        hierarchy = _taxonomy(column, kind, entry, nullable)
    return _undiscovered(hierarchy, entry)


def point(name: str, columns: Sequence[tuple[Column, SqlType]], entry: PointSpec) -> Undiscovered:
    """Columns that are a point together, in the order of the entry. A point without a value is written as
    NULL in all of them, so none of a nullable point is NOT NULL.

    Raises:
        Unfit: with all faults.
    """
    nullable = not any(column.not_null for column, _ in columns) and entry.nullable is not False
    ends = [
        (column, kind, lower, upper)
        for (column, kind), (_, lower, upper) in zip(columns, entry.columns, strict=True)
    ]
    return _undiscovered(_points(name, ends, entry.depth, nullable), entry)


def _undiscovered(hierarchy: Hierarchy, entry: HierarchyEntry | PointSpec) -> Undiscovered:
    return Undiscovered(
        hierarchy.name,
        "VARCHAR",
        "categorical",
        hierarchy.nullable,
        MAX_CODES if entry.max_codes is None else entry.max_codes,
        hierarchy=hierarchy,
    )


def _points(
    name: str,
    ends: Sequence[tuple[Column, SqlType, Cut, Cut]],
    depth: int | None,
    nullable: bool,
) -> Points:
    boxes, faults = list[_Box](), list[str]()
    for end in ends:
        who = "" if name == end[0].name else f"{end[0].name!r}: "
        try:
            boxes.append(_box(*end))
        except Unfit as unfit:
            faults.extend(f"{who}{fault}" for fault in unfit.args)
    if faults:
        raise Unfit(*faults)
    limit = depth_limit(boxes)
    if depth is not None and depth > limit:
        raise Unfit(f"depth is {depth}; allowed are 1 to {limit} in this box")
    return Points(
        name,
        tuple(HierarchyColumn(column.name, kind.text) for column, kind, _, _ in ends),
        tuple(low for _, low, _ in boxes),
        tuple(high for _, _, high in boxes),
        min(limit, _USUAL_DEPTH, _USUAL_BITS // len(ends)) if depth is None else depth,
        nullable,
    )


def _box(column: Column, kind: SqlType, lower: Cut, upper: Cut) -> _Box:
    """The ends of one column, in the units of its type."""
    if natural_kind(kind) == "categorical":
        raise Unfit(f"type {shown(kind)} has no halves; allowed are numbers, dates and times")
    bounded = binned_attribute(column, kind, Bins(binned_kind(kind), lower, upper, bins=1))
    if kind.discrete:
        low, end = edge_ticks(bounded)
        box: _Box = (kind, low, end - 1)
    else:
        first, last = (edge for edge in bounded.edges if isinstance(edge, float))
        box = (kind, first, last)
    fault = box_fault(*box)
    if fault is not None:
        raise Unfit(fault)
    return box


def _texts(column: Column, kind: SqlType, entry: TextColumn, nullable: bool) -> Texts:
    if kind.family != "text":
        raise Unfit(f"type {shown(kind)} is no text; {_instead(kind)}cast it to text in a query")
    characters, gap = len(entry.alphabet), max(gaps(entry.lengths))
    if children_of(characters, gap) > MAX_CHILDREN:
        most = max(step for step in range(1, gap) if children_of(characters, step) <= MAX_CHILDREN)
        raise Unfit(
            f"lengths have a step of {gap}, by which each beginning has more than {MAX_CHILDREN:,} "
            f"children with {characters} characters; make the steps {most} or less"
        )
    return Texts(
        HierarchyColumn(column.name, kind.text), entry.alphabet, entry.lengths, entry.longest, nullable
    )


def _instead(kind: SqlType) -> str:
    halved = natural_kind(kind) != "categorical" and (kind.discrete or kind.family == "float")
    return "write type: dyadic, or " if halved else ""


def _taxonomy(column: Column, kind: SqlType, entry: TaxonomyColumn, nullable: bool) -> Taxonomy:
    if kind.family not in ("text", "integer"):
        raise Unfit(f"type {shown(kind)} has no taxonomy; cast the column to text in a query")
    source_column = HierarchyColumn(column.name, kind.text)
    try:
        if entry.parents:
            return from_parents(source_column, _parents(kind, entry.parents), nullable)
        return from_prefixes(
            source_column, [_spelled(kind, id_) for id_ in entry.ids], entry.prefixes, nullable
        )
    except ValueError as error:
        raise Unfit(f"the taxonomy {error}") from None


def _parents(kind: SqlType, pairs: Sequence[tuple[Id, Id | None]]) -> dict[str, str | None]:
    """Ids and parents as text. Those with children are no values of the column."""
    inner = {parent for _, parent in pairs}

    def name(id_: Id) -> str:
        return str(id_) if kind.family == "integer" and id_ in inner else _spelled(kind, id_)

    parents: dict[str, str | None] = {}
    for id_, parent in pairs:
        if name(id_) in parents:
            raise ValueError(f"has {said(id_)} twice; write each id once")
        parents[name(id_)] = None if parent is None else name(parent)
    return parents


def _spelled(kind: SqlType, id_: Id) -> str:
    """An id as the text of a value of the type.

    Raises:
        ValueError: it is none.
    """
    if kind.family == "text":
        if isinstance(id_, int):
            raise ValueError(f"has the id {id_}, which is not text; write it in quotes")
        return id_
    number: int | None
    try:
        number = int(id_)
    except ValueError:
        number = None
    if number is None or not kind.low <= number <= kind.high:
        raise ValueError(f"has the id {said(id_)}, which is no value of the type {kind.text}; correct it")
    return str(number)
