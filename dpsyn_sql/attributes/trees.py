"""What every hierarchy is: a public tree, and the SQL that says where in it a row falls.

The root, level 0, holds every value. A node of level l has the children of level l + 1, which share its
values. Nodes of a level are told apart by ids: whole numbers, or text. The *key* of a row is the id of its
node at the deepest level; keys ascend in the order of the tree, so every node is an interval of keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dpsyn_sql.attributes.types import SqlType, read_as, supported_type
from dpsyn_sql.sqltext.fragments import Fragment, ident

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpsyn_sql.attributes.leaf_values import LeafColumn

NodeId = int | str

MAX_COLUMNS = 8
"""Columns that a point can have at most."""

LONGEST = 1_000
"""Characters of text that can be told apart at most."""


@dataclass(frozen=True, slots=True)
class HierarchyColumn:
    """A column of the source that a hierarchy is over; ``source`` as of an ``Attribute``."""

    name: str
    sql_type: str
    source: Fragment | None = None

    @property
    def type(self) -> SqlType:
        """``sql_type`` parsed.

        Raises:
            InternalError: the type is not supported.
        """
        return supported_type(self.sql_type, self.name)

    def read(self, decimal: str = "") -> Fragment:
        """What stands for its values in a query of the source. With a ``decimal`` mark that is text of a
        file, which is read as the type, NULL if it cannot be."""
        value = ident(self.name) if self.source is None else self.source
        return read_as(self.type, value, decimal)

    @property
    def named(self) -> dict[str, Any]:
        """What the ledger keeps of it with a question."""
        source = {} if self.source is None else {"source": str(self.source)}
        return {"name": self.name, "type": self.sql_type, **source}

    def absent(self, value: Fragment) -> list[str]:
        """Tests, one of which holds if ``value`` is none: NULL, or NaN."""
        return [f"{value} IS NULL", *([f"isnan({value})"] if self.type.family == "float" else [])]


class Hierarchy(Protocol):
    """A public tree over the values of ``columns``; a value, equal to others that say the same.

    ``name`` is that of the attribute. ``depth``: the deepest level, 1 or more. ``branching``: the most
    children of a node, 2 or more. ``text``: ids are text, else whole numbers (BIGINT). ``nullable``: NULL in
    a
    column is a value of its own; else it counts as outside.
    """

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> tuple[HierarchyColumn, ...]: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def depth(self) -> int: ...
    @property
    def branching(self) -> int: ...
    @property
    def text(self) -> bool: ...

    def root(self) -> NDArray[Any]:
        """The id of the root, shape (1,): int64, or object for text."""

    def children(self, nodes: NDArray[Any], level: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """All children (ids of level + 1) of nodes of ``level``, and the place in ``nodes`` of each one's
        parent.

        Children follow their parents' order and ascend in keys. A node that cannot be refined has none.
        """

    def lowest(self, nodes: NDArray[Any], level: int) -> NDArray[Any]:
        """The lowest key of each node of ``level``: int64, or object for text."""

    def labels(self, nodes: NDArray[Any], level: int) -> list[str]:
        """How a person reads the nodes, unique among all nodes of all levels."""

    def key(self, values: Sequence[Fragment]) -> Fragment:
        """The key of one row as SQL, a total function of ``values`` (one plain expression per column, of its
        type); NULL if one is NULL or the row is outside the hierarchy."""

    def at(self, key: Fragment, level: int) -> Fragment:
        """The id of the node of ``level`` that holds a key, as SQL."""

    def named(self) -> Mapping[str, Any]:
        """What the ledger keeps of it with a question, JSON-ready: the same for equal hierarchies only."""

    def leaf_columns(
        self, levels: tuple[int, ...], nodes: NDArray[Any], first: int, *, nullable: bool
    ) -> list[LeafColumn]:
        """What leaves say of each column that is written, one for each of ``columns``.

        Args:
            levels: of each leaf.
            nodes: their ids, as ``children`` gives them.
            first: the number of the first column; a fact's name ends in the number of its column.
            nullable: rows outside the hierarchy are NULL; else anywhere in it.

        Returns:
            Facts have a value for each leaf, then one for rows outside, then one for NULL.
        """


@dataclass(frozen=True, slots=True)
class Leaves:
    """Nodes of a hierarchy, and the codes of an attribute that they make up.

    ``hierarchies``: one, or several for a key of several attributes. Leaf i is the node ``nodes[p][i]`` of
    level ``levels[p][i]`` of each hierarchy p. With one hierarchy leaves ascend in keys. ``codes[i]`` is the
    code of leaf i: 0, 0, 1, ..., never descending; the leaves of a code are neighbours. The first says where
    the code begins; others without rows may be missing. ``rows[i]``, 0 or more, is the estimated number of
    rows of a leaf: it spreads the rows of a code over its leaves when they are written, in proportion, evenly
    if all of them are 0.
    """

    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[tuple[int, ...], ...]
    nodes: tuple[tuple[NodeId, ...], ...]
    rows: tuple[float, ...]
    codes: tuple[int, ...]


class OfOneColumn:
    """What is the same of all hierarchies over one column, which has their name."""

    __slots__ = ()
    column: HierarchyColumn

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def columns(self) -> tuple[HierarchyColumn, ...]:
        return (self.column,)


def absent(hierarchy: Hierarchy, values: Sequence[Fragment]) -> Fragment:
    """Whether a row has no value, as SQL: NULL in a column, or NaN. A row that has one, but no key, is
    outside the hierarchy. ``values`` as of ``Hierarchy.key``."""
    pairs = zip(hierarchy.columns, values, strict=True)
    return Fragment(f"({' OR '.join(test for column, value in pairs for test in column.absent(value))})")
