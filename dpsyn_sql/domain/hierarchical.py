"""Columns that are declared as hierarchies: from the entry and the catalog to what is to be learnt.

Each function appends what is wrong to ``faults`` and returns None then. Nothing here reads a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsyn_sql.domain.attributes import edge_ticks
from dpsyn_sql.domain.declared import binned_attribute, natural_kind, shown
from dpsyn_sql.domain.fields import Cut, Id
from dpsyn_sql.domain.grids import binned_kind
from dpsyn_sql.domain.hierarchies.base import Hierarchy, HierarchyColumn
from dpsyn_sql.domain.hierarchies.points import Points, box_fault, depth_limit
from dpsyn_sql.domain.hierarchies.taxonomy import Taxonomy, from_parents, from_prefixes
from dpsyn_sql.domain.hierarchies.text import MAX_CHILDREN, Texts, children_of, gaps
from dpsyn_sql.domain.shape import MAX_CODES, Undiscovered
from dpsyn_sql.domain.specs import Bins, DyadicSpec, HierarchyEntry, PointSpec, TaxonomyColumn, TextColumn
from dpsyn_sql.domain.types import SqlType
from dpsyn_sql.errors import said
from dpsyn_sql.source.relation import Column

_USUAL_BITS = 32
_USUAL_DEPTH = 24
# Levels of a box whose depth is not stated: cells of some metres in a city, of seconds in a year.

_Box = tuple[SqlType, int | float, int | float]


def tree_column(
    column: Column, kind: SqlType, entry: HierarchyEntry, faults: list[str]
) -> Undiscovered | None:
    """A column that is a hierarchy by itself."""
    nullable = not column.not_null and entry.nullable is not False
    made: Hierarchy | None
    if isinstance(entry, DyadicSpec):
        ends = [(column, kind, entry.lower, entry.upper)]
        made = _points(column.name, ends, entry.depth, nullable, faults)
    elif isinstance(entry, TextColumn):
        made = _texts(column, kind, entry, nullable, faults)
    else:
        made = _taxonomy(column, kind, entry, nullable, faults)
    return None if made is None else _undiscovered(made, entry)


def point(
    name: str, columns: Sequence[tuple[Column, SqlType]], entry: PointSpec, faults: list[str]
) -> Undiscovered | None:
    """Columns that are a point together, in the order of the entry. A point without a value is written as
    NULL in all of them, so none of a nullable point is NOT NULL."""
    nullable = not any(column.not_null for column, _ in columns) and entry.nullable is not False
    ends = [
        (column, kind, lower, upper)
        for (column, kind), (_, lower, upper) in zip(columns, entry.columns, strict=True)
    ]
    made = _points(name, ends, entry.depth, nullable, faults)
    return None if made is None else _undiscovered(made, entry)


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
    faults: list[str],
) -> Points | None:
    boxes = [_box(name, *end, faults) for end in ends]
    found = [box for box in boxes if box is not None]
    if len(found) < len(boxes):
        return None
    limit = depth_limit(found)
    if depth is not None and depth > limit:
        faults.append(f"column {name!r}: depth is {depth}; allowed are 1 to {limit} in this box")
        return None
    return Points(
        name,
        tuple(HierarchyColumn(column.name, kind.text) for column, kind, _, _ in ends),
        tuple(low for _, low, _ in found),
        tuple(high for _, _, high in found),
        min(limit, _USUAL_DEPTH, _USUAL_BITS // len(ends)) if depth is None else depth,
        nullable,
    )


def _box(name: str, column: Column, kind: SqlType, lower: Cut, upper: Cut, faults: list[str]) -> _Box | None:
    """The ends of one column, in the units of its type."""
    who = f"column {name!r}" if name == column.name else f"column {name!r}: {column.name!r}"
    if natural_kind(kind) == "categorical":
        faults.append(f"{who}: type {shown(kind)} has no halves; allowed are numbers, dates and times")
        return None
    own: list[str] = []
    known = binned_attribute(column, kind, Bins(binned_kind(kind), lower, upper, bins=1), own)
    faults.extend(fault.replace(f"column {column.name!r}", who, 1) for fault in own)
    if known is None:
        return None
    if kind.discrete:
        low, end = edge_ticks(known)
        box: _Box = (kind, low, end - 1)
    else:
        first, last = (edge for edge in known.edges if isinstance(edge, float))
        box = (kind, first, last)
    fault = box_fault(*box)
    if fault is None:
        return box
    faults.append(f"{who}: {fault}")
    return None


def _texts(
    column: Column, kind: SqlType, entry: TextColumn, nullable: bool, faults: list[str]
) -> Texts | None:
    who = f"column {column.name!r}"
    if kind.family != "text":
        faults.append(f"{who}: type {shown(kind)} is no text; {_instead(kind)}cast it to text in a query")
        return None
    characters, gap = len(entry.alphabet), max(gaps(entry.lengths))
    if children_of(characters, gap) > MAX_CHILDREN:
        most = max(step for step in range(1, gap) if children_of(characters, step) <= MAX_CHILDREN)
        faults.append(
            f"{who}: lengths have a step of {gap}, by which each beginning has more than {MAX_CHILDREN:,} "
            f"children with {characters} characters; make the steps {most} or less"
        )
        return None
    return Texts(
        HierarchyColumn(column.name, kind.text), entry.alphabet, entry.lengths, entry.longest, nullable
    )


def _instead(kind: SqlType) -> str:
    halved = natural_kind(kind) != "categorical" and (kind.discrete or kind.family == "float")
    return "write type: dyadic, or " if halved else ""


def _taxonomy(
    column: Column, kind: SqlType, entry: TaxonomyColumn, nullable: bool, faults: list[str]
) -> Taxonomy | None:
    who = f"column {column.name!r}"
    if kind.family not in ("text", "integer"):
        faults.append(f"{who}: type {shown(kind)} has no taxonomy; cast the column to text in a query")
        return None
    own = HierarchyColumn(column.name, kind.text)
    try:
        if entry.parents:
            made = from_parents(own, _parents(kind, entry.parents), nullable)
        else:
            ids = [_spelled(kind, id_) for id_ in entry.ids]
            made = from_prefixes(own, ids, entry.prefixes, nullable)
    except ValueError as error:
        problem = str(error)
    else:
        return made
    faults.append(f"{who}: the taxonomy {problem}")
    return None


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
