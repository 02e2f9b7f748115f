"""Taxonomies: a public tree of ids, from a table of parents or from the beginnings of codes.

Values are the ids without children. They are numbered in the order of the tree (siblings ascend), so a node
is an interval of these numbers; its id is the first of them. A chain of only children is one node.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictStr

from dpsyn_sql.attributes.attribute import ANY_REST, OTHER
from dpsyn_sql.attributes.fields import Id, IdList, Lengths, Parents
from dpsyn_sql.attributes.leaf_values import LeafColumn, LeafFact, lists_by_leaf
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.spec import Terms, TreeSpec, TypedColumn, Unfit, shown, tree_to_learn
from dpsyn_sql.attributes.trees import HierarchyColumn, OfOneColumn
from dpsyn_sql.attributes.types import SqlType
from dpsyn_sql.errors import InternalError, said
from dpsyn_sql.source.names import listed
from dpsyn_sql.sqltext.fragments import Fragment, code_of_label, literal, text_bytes, value_at

MAX_IDS = 131_072
"""Ids that a taxonomy can have at most."""

_MAPPED = 256  # longest map of ids; its cost grows with its length, that of a join does not
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Taxonomy(OfOneColumn):
    """A ``Hierarchy`` over a column of ids: text or whole numbers.

    ``ids``: the values, as text, in the order of the tree. ``nodes[l]``: of each node of level l the number
    of its first value, and its label, ascending. Made by ``from_parents`` and ``from_prefixes``.

    Raises:
        InternalError: the nodes make no tree over the ids.
    """

    text: ClassVar[bool] = False
    column: HierarchyColumn
    ids: tuple[str, ...]
    nodes: tuple[tuple[tuple[int, str], ...], ...]
    nullable: bool = False
    _firsts: tuple[NDArray[np.int64], ...] = field(init=False, repr=False, compare=False)
    _branching: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.nodes) < 2 or len(set(self.ids)) < len(self.ids) or len(self.ids) < 2:
            raise InternalError(f"the taxonomy of {self.name!r} is no tree")
        object.__setattr__(
            self,
            "_firsts",
            tuple(np.array([first for first, _ in level], dtype=np.int64) for level in self.nodes),
        )
        largest = 2
        for level in range(self.depth):
            _, parents = self.children(self._firsts[level], level)
            largest = max(largest, int(np.bincount(parents, minlength=1).max()))
        object.__setattr__(self, "_branching", largest)

    @property
    def depth(self) -> int:
        return len(self.nodes) - 1

    @property
    def branching(self) -> int:
        return self._branching

    def root(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)

    def children(self, nodes: NDArray[Any], level: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ids = np.asarray(nodes, dtype=np.int64)
        if level >= self.depth:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        below = self._firsts[level + 1]
        starts = np.searchsorted(below, ids)
        counts = np.searchsorted(below, ids + self.members(ids, level)) - starts
        parents = np.repeat(np.arange(len(ids), dtype=np.int64), counts)
        within = np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
        return below[starts[parents] + within], parents

    def members(self, nodes: NDArray[Any], level: int) -> NDArray[np.int64]:
        """The number of values of each node: ``ids[node : node + members]``."""
        ids = np.asarray(nodes, dtype=np.int64)
        cuts = np.append(self.cuts(level), len(self.ids))
        return cuts[np.searchsorted(cuts, ids, side="right")] - ids

    def cuts(self, level: int) -> NDArray[np.int64]:
        """The first value of each node of the level, and of each value above the level, ascending."""
        return np.unique(np.concatenate(self._firsts[: level + 1]))

    def lowest(self, nodes: NDArray[Any], level: int) -> NDArray[np.int64]:
        return np.asarray(nodes, dtype=np.int64)

    def labels(self, nodes: NDArray[Any], level: int) -> list[str]:
        labels = dict(self.nodes[level])
        return [labels[int(node)] for node in nodes]

    def key(self, values: Sequence[Fragment]) -> Fragment:
        (value,) = values
        text = f"CAST({value} AS VARCHAR)"
        if len(self.ids) <= _MAPPED:
            numbered = code_of_label([(id_, number) for number, id_ in enumerate(self.ids)], text)
            return Fragment(f"CAST({numbered} AS BIGINT)")
        rows = ", ".join(f"({text_bytes(literal(id_))}, {number})" for number, id_ in enumerate(self.ids))
        return Fragment(
            f"(SELECT CAST(listed.number AS BIGINT) FROM (VALUES {rows}) AS listed(id, number) "
            f"WHERE listed.id = {text_bytes(text)})"
        )

    def at(self, key: Fragment, level: int) -> Fragment:
        if level == 0:
            return Fragment(f"({key} * 0)")
        cuts = self.cuts(level)
        if len(cuts) == len(self.ids):
            return key
        firsts = cuts[np.searchsorted(cuts, np.arange(len(self.ids)), side="right") - 1]
        return Fragment(f"CAST({value_at(firsts.tolist(), key)} AS BIGINT)")

    def leaf_columns(
        self, levels: tuple[int, ...], nodes: NDArray[Any], first: int, *, nullable: bool
    ) -> list[LeafColumn]:
        """Each id below the node of a leaf is equally likely."""
        firsts, lasts = lists_by_leaf(
            levels,
            nodes,
            lambda ids, level: [ids.tolist(), (ids + self.members(ids, level) - 1).tolist()],
        )
        low = LeafFact(f"low{first}", "BIGINT", [*firsts, None if nullable else 0, None])
        high = LeafFact(f"high{first}", "BIGINT", [*lasts, None if nullable else len(self.ids) - 1, None])
        kind = self.column.type
        return [
            LeafColumn(
                (low, high), lambda prefix, _: Fragment(f"CAST({prefix}id{first} AS {kind.sql})"), self.ids
            )
        ]

    def named(self) -> Mapping[str, Any]:
        content = json.dumps([self.ids, self.nodes], ensure_ascii=True)
        return {
            "kind": "taxonomy",
            **self.column.named,
            "ids": len(self.ids),
            "depth": self.depth,
            "sha256": hashlib.sha256(content.encode()).hexdigest(),
            **({"nullable": True} if self.nullable else {}),
        }


def from_parents(
    column: HierarchyColumn, parents: Mapping[str, str | None], nullable: bool = False
) -> Taxonomy:
    """The taxonomy in which every id has the parent given; a parent that has none itself is the root.

    Raises:
        ValueError: a cycle, two roots, no two values, too many ids, or an id that SQL or the output cannot
            hold. The message says which.
    """
    below: dict[str, list[str]] = {}
    for id_, parent in parents.items():
        _check_id(id_)
        if parent is not None:
            _check_id(parent)
            below.setdefault(parent, []).append(id_)
    roots = list(dict.fromkeys(p for p in (*below, *parents) if parents.get(p) is None))
    try:
        TopologicalSorter({id_: (parent,) for id_, parent in parents.items() if parent is not None}).prepare()
    except CycleError as error:
        raise ValueError(f"has a cycle: {_shown(error.args[1][:0:-1])}; each is below itself") from None
    if not roots:
        raise ValueError("has no ids")
    if len(roots) > 1:
        raise ValueError(f"has {len(roots)} roots: {_shown(roots)}; give them one parent, such as 'all'")
    return _taxonomy(column, below, roots[0], nullable)


def from_prefixes(
    column: HierarchyColumn, ids: Sequence[str], lengths: Sequence[int], nullable: bool = False
) -> Taxonomy:
    """The taxonomy of codes by their beginnings of ``lengths`` characters, ascending; its nodes are labelled
    by the beginning and ``*``.

    Raises:
        ValueError: as ``from_parents``, or an id twice.
    """
    twice = [id_ for id_, times in Counter(ids).items() if times > 1]
    if twice:
        raise ValueError(f"has {_shown(twice)} twice; write each id once")
    parents: dict[str, str | None] = {ANY_REST: None}
    above = {}
    for id_ in ids:
        above[id_] = ANY_REST
        for length in lengths:
            if length <= len(id_):
                stem = id_[:length] + ANY_REST
                parents.setdefault(stem, above[id_])
                above[id_] = stem
    clashing = [id_ for id_ in ids if id_ in parents]
    if clashing:
        raise ValueError(f"has {_shown(clashing)}, which stands for a beginning; leave it out")
    parents.update(above)
    return from_parents(column, parents, nullable)


def _check_id(id_: str) -> None:
    if not id_ or id_ == OTHER:
        raise ValueError(f"has the id {said(id_)}, which cannot be one; leave it out")
    if "\x00" in id_ or any("\ud800" <= character <= "\udfff" for character in id_):
        raise ValueError(f"has the id {said(id_)} with a NUL or half a surrogate pair, which SQL cannot hold")


def _shown(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(said(id_) for id_ in ids[:_SHOWN]) + more


def _taxonomy(
    column: HierarchyColumn, below: Mapping[str, Sequence[str]], root: str, nullable: bool
) -> Taxonomy:
    """Number the values by a walk in the order of the tree."""
    ids: list[str] = []
    nodes: list[list[tuple[int, str]]] = []
    waiting = [(root, 0)]
    while waiting:
        id_, level = waiting.pop()
        while len(below.get(id_, ())) == 1:
            id_ = below[id_][0]
        if level == len(nodes):
            nodes.append([])
        nodes[level].append((len(ids), id_))
        children = below.get(id_, ())
        if not children:
            ids.append(id_)
        waiting.extend((child, level + 1) for child in sorted(children, reverse=True))
    if not 2 <= len(ids) <= MAX_IDS:
        raise ValueError(f"has {len(ids)} ids without children; allowed are 2 to {MAX_IDS}")
    return Taxonomy(column, tuple(ids), tuple(map(tuple, nodes)), nullable)


# -- declarations ------------------------------------------------------------------------------------


class TaxonomySpec(TreeSpec):
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

    def checked(self, folder: Path) -> Self:
        """With the ids of its file as ``parents``, or under ``ids``."""
        if sum(part is not None for part in (self.parents, self.ids, self.file)) != 1:
            raise ValueError("write one of parents:, ids: and file:")
        if (self.file is None) != (self.id is None) or (self.file is None and self.parent is not None):
            raise ValueError("id: and parent: name the columns of file:; write file: and id: together")
        if (self.parents is not None or self.parent is not None) == (self.prefixes is not None):
            raise ValueError(
                "write either the parents or prefixes:, the lengths of beginnings such as [1, 3]"
            )
        if self.prefixes is not None and list(self.prefixes) != sorted(set(self.prefixes)):
            raise ValueError("prefixes must ascend: [1, 3]")
        if self.file is None or self.id is None:
            return self
        pairs = read_ids(folder / self.file, self.id, self.parent)
        listed_ids = {"ids": [id_ for id_, _ in pairs]} if self.prefixes else {"parents": pairs}
        return self.model_copy(update=listed_ids)

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Undiscovered:
        ((column, kind),) = columns
        if kind.family not in ("text", "integer"):
            raise Unfit(f"type {shown(kind)} has no taxonomy; cast the column to text in a query")
        of_ids, nullable = HierarchyColumn(column.name, kind.text), self.may_be_null(columns)
        try:
            if self.parents:
                tree = from_parents(of_ids, _parents(kind, self.parents), nullable)
            else:
                ids = [_spelled(kind, id_) for id_ in self.ids or ()]
                tree = from_prefixes(of_ids, ids, self.prefixes or (), nullable)
        except ValueError as error:
            raise Unfit(f"the taxonomy {error}") from None
        return tree_to_learn(tree, self)


SPECS = {"taxonomy": TaxonomySpec}


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
