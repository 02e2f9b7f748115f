"""PRIVATE: exact numbers of rows per node of hierarchies.

Rows are encoded to keys once and added up per key; every question about nodes then reads this one temporary
table. A unit of several rows counts for at most k of them, which a hash draws among its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.growth import Nodes
from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.private.count.sums import scatter
from dpsyn_sql.private.rows.codes import unit_bytes
from dpsyn_sql.private.rows.kept import Bound
from dpsyn_sql.source.engine import SourceEngine, Tally
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table, text_bytes, text_of_bytes
from dpsyn_sql.sqltext.render import render

Hierarchies = tuple[Hierarchy, ...]


@dataclass(frozen=True, slots=True)
class _Id:
    """The id of a key's node, and that of a node of the table, as they are compared."""

    at: Fragment
    node: Fragment


@dataclass(frozen=True, slots=True)
class _Below:
    """A part that nodes can be refined by, and the id of a key's node one level below."""

    number: int
    at: Fragment


@dataclass(frozen=True, slots=True)
class _Shape:
    """Nodes of the same levels; ``number`` tells them apart."""

    number: int
    ids: tuple[_Id, ...]
    below: tuple[_Below, ...] = ()


class TreeCounter:
    """Counts rows by GROUP BY in the database; keeps the keys of the hierarchies it was asked about last.

    Args:
        engine: holds the rows of the source.
        relation_sql: the text after FROM.
        decimal: the decimal mark of a source whose columns are text that is cast; empty: they have types.
        unit: with a column, units are its values and count for at most ``counted_per_unit`` things; otherwise
            each row is a unit. ``check_unit`` accepts the column.
        key: of the draw, 0 to 2**64 - 1; fresh unless a test needs to know it.
    """

    def __init__(
        self,
        engine: SourceEngine,
        relation_sql: Fragment,
        decimal: str = "",
        unit: PrivacyUnit = PrivacyUnit(),  # noqa: B008 - frozen
        key: int | None = None,
    ) -> None:
        self._engine = engine
        self._relation, self._decimal = relation_sql, decimal
        self._bound = Bound.of(unit, key)
        self._kept: tuple[Hierarchies, Fragment] | None = None

    def nodes(self, hierarchies: Hierarchies, nodes: Nodes) -> NDArray[np.int64]:
        """Rows of each node, int64[nodes], at most k of a unit; nodes share no row. PRIVATE.

        Raises:
            EngineFailure: a statement failed.
        """
        keyed = self._keys(hierarchies)
        with self._loaded(hierarchies, nodes) as (table, shapes):
            sql = render("discover/nodes", keyed=keyed, nodes=table, shapes=shapes)
            found = self._engine.fetch(sql, step="counting rows per node")
        return scatter([found["place"]], found["n"], (len(nodes),))

    def outside(self, hierarchies: Hierarchies) -> NDArray[np.int64]:
        """Rows outside of a hierarchy, and rows without a value, int64[2]; together with the nodes at most k
        of a unit. PRIVATE."""
        sql = render("discover/states", keyed=self._keys(hierarchies))
        found = self._engine.fetch(sql, step="counting rows outside of hierarchies")
        return scatter([found["state"]], found["n"], (3,))[1:]

    def largest(
        self, hierarchies: Hierarchies, nodes: Nodes, refined: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Rows of the largest child of each node by each part, int64[nodes, parts], 0 where ``refined`` (bool
        of the same shape) says that a node has no children by a part. PRIVATE."""
        keyed = self._keys(hierarchies)
        with self._loaded(hierarchies, nodes, refined) as (table, shapes):
            sql = render("discover/largest", keyed=keyed, nodes=table, shapes=shapes)
            found = self._engine.fetch(sql, step="counting rows per child")
        places = [found["place"], found["part"].astype(np.int64)]
        return np.where(refined, scatter(places, found["n"], refined.shape), 0)

    def close(self) -> None:
        """Drop what was kept between questions; may be called twice."""
        if self._kept is not None:
            self._engine.drop(self._kept[1], step="dropping the table of keys")
            self._kept = None

    def _keys(self, hierarchies: Hierarchies) -> Fragment:
        """The table of keys, made if it is not there."""
        if self._kept is None or self._kept[0] != hierarchies:
            self.close()
            table = temporary_table("dpsyn_keyed")
            tally = keyed_rows(self._relation, hierarchies, decimal=self._decimal, bound=self._bound)
            self._engine.gather(table, tally, step="encoding rows as keys", unit=self._unit)
            self._kept = hierarchies, table
        return self._kept[1]

    @property
    def _unit(self) -> str | None:
        """The column whose rows of one value must be in one part."""
        return None if self._bound is None else self._bound.column

    @contextmanager
    def _loaded(
        self, hierarchies: Hierarchies, nodes: Nodes, refined: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[Fragment, list[_Shape]]]:
        """A temporary table of nodes, and their shapes."""
        shapes, numbers = shapes_of(hierarchies, nodes, refined)
        table = temporary_table("dpsyn_nodes")
        text = [int(one.text) for one in hierarchies]
        create = render("discover/node_table", table=table, text=text)
        self._engine.execute(create, step="making a table of nodes")
        try:
            columns = {f"n{part}": ids for part, ids in enumerate(nodes.ids)}
            places = np.arange(len(nodes), dtype=np.int64)
            loaded = {"place": places, "shape": numbers, **columns}
            self._engine.load(table, loaded, step="loading nodes")
            yield table, shapes
        finally:
            self._engine.execute(render("count/drop", table=table), step="dropping the table of nodes")


def keyed_rows(
    relation: Fragment,
    hierarchies: Hierarchies,
    *,
    decimal: str = "",
    bound: Bound | None = None,
) -> Tally:
    """Rows per key. Rows without one have NULL as their keys, and say in ``state`` why."""
    columns = [column for one in hierarchies for column in one.columns]
    values = [Fragment(f"c{place}") for place in range(len(columns))]
    own = iter(values)
    keys = [Fragment(f"k{part}") for part in range(len(hierarchies))]
    told = [
        Fragment(f"{_compared(one, one.key([next(own) for _ in one.columns]))} AS {key}")
        for one, key in zip(hierarchies, keys, strict=True)
    ]
    query = render(
        "discover/keyed",
        relation=relation,
        values=[
            Fragment(f"{column.read(decimal)} AS {name}")
            for column, name in zip(columns, values, strict=True)
        ],
        told=told,
        missing=_missing(hierarchies, values),
        keys=keys,
        unit=None if bound is None else unit_bytes(bound.column),
        bound=bound,
    )
    return Tally(query, (*keys, "state"))


def _missing(hierarchies: Hierarchies, values: Sequence[Fragment]) -> Fragment:
    """Whether a row has no value in a column that may have none; NaN is no value."""
    own = iter(values)
    tests = [
        test
        for one in hierarchies
        for column in one.columns
        for test in column.absent(next(own))
        if one.nullable
    ]
    return Fragment(" OR ".join(tests) or "FALSE")


def _compared(hierarchy: Hierarchy, id_: Fragment) -> Fragment:
    """An id in a form that no collation merges."""
    return text_bytes(id_) if hierarchy.text else id_


def shapes_of(
    hierarchies: Hierarchies, nodes: Nodes, refined: NDArray[np.bool_] | None
) -> tuple[list[_Shape], NDArray[np.int64]]:
    """The shapes that occur, and the number of each node's: nodes of a shape have the same levels, and are
    refined by the same parts."""
    columns = list(nodes.levels)
    if refined is not None:
        columns += [refined[:, part].astype(np.int64) for part in range(len(hierarchies))]
    found, numbers = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    shapes = [
        _shape(number, hierarchies, row[: len(hierarchies)], row[len(hierarchies) :])
        for number, row in enumerate(found.tolist())
    ]
    return shapes, np.asarray(numbers.reshape(-1), dtype=np.int64)


def _shape(number: int, hierarchies: Hierarchies, levels: Sequence[int], refined: Sequence[int]) -> _Shape:
    # Keys consist of characters of their alphabet, so that their bytes are text.
    keys = [
        text_of_bytes(f"keyed.k{part}") if one.text else Fragment(f"keyed.k{part}")
        for part, one in enumerate(hierarchies)
    ]

    def at(part: int, below: int) -> Fragment:
        own = hierarchies[part].at(keys[part], levels[part] + below)
        return _compared(hierarchies[part], own)

    ids = [
        _Id(at(part, 0), _compared(one, Fragment(f"nodes.n{part}"))) for part, one in enumerate(hierarchies)
    ]
    below = [_Below(part, at(part, 1)) for part, may in enumerate(refined) if may]
    return _Shape(number, tuple(ids), tuple(below))
