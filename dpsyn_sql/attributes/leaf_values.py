"""What leaves of a tree say of the columns of the output, and how values are drawn from that, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.sqltext.fragments import Fragment, literal

_NARROW = 2**24  # numbers up to here are drawn from 40 bits without leaving UBIGINT
_BETWEEN, _NO_TEXT = "\x01", "\x02"  # between texts of a list, and in place of NULL


@dataclass(frozen=True, slots=True)
class LeafFact:
    """What every leaf says of a column: a list by leaf, None for ``__other__`` and NULL as values."""

    name: str
    sql_type: str
    values: Sequence[Any]

    @property
    def unnested(self) -> str:
        """The list as a column. It is one text, which the database reads much faster, and in a tenth of the
        memory, than a literal for each value."""
        if self.sql_type == "VARCHAR":
            return f"{self._texts} AS {self.name}"
        listed = "'[" + ", ".join("NULL" if one is None else repr(one) for one in self.values) + "]'"
        return f"unnest(CAST({listed} AS {self.sql_type}[])) AS {self.name}"

    @property
    def _texts(self) -> str:
        listed = _BETWEEN.join(_NO_TEXT if text is None else text for text in self.values)
        marks = listed.count(_BETWEEN), listed.count(_NO_TEXT)
        if marks != (len(self.values) - 1, sum(text is None for text in self.values)) or "\x00" in listed:
            return f"unnest(CAST([{', '.join(map(literal, self.values))}] AS VARCHAR[]))"  # texts hold marks
        split = f"unnest(string_split({literal(listed)}, chr({ord(_BETWEEN)})))"
        return f"nullif({split}, chr({ord(_NO_TEXT)}))" if marks[1] else split


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A column of the output: what leaves say of it, and how its value is drawn from that.

    ``value``: its expression, from the prefix of the facts and 64 random bits. ``ids``: for a column of ids,
    all of them in order; ``facts`` are then the places of the first and the last one below each leaf, and
    ``value`` has the id that was drawn among these as ``id``."""

    facts: tuple[LeafFact, ...]
    value: Callable[[str, Fragment], Fragment]
    ids: Sequence[str] = ()


def by_level(levels: tuple[int, ...]) -> dict[int, NDArray[np.int64]]:
    """The places of the leaves of each level, ascending."""
    level_of = np.array(levels, dtype=np.int64)
    return {int(level): np.flatnonzero(level_of == level) for level in np.unique(level_of)}


def lists_by_leaf(
    levels: tuple[int, ...],
    nodes: NDArray[Any],
    of_level: Callable[[NDArray[Any], int], Sequence[Sequence[Any]]],
) -> list[list[Any]]:
    """Lists by leaf, from a function of the nodes of one level that gives as many lists."""
    lists = list[list[Any]]()
    for level, places in by_level(levels).items():
        parts = of_level(nodes[places], level)
        lists = lists or [[None] * len(nodes) for _ in parts]
        for whole, part in zip(lists, parts, strict=True):
            for place, value in zip(places.tolist(), part, strict=True):
                whole[place] = value
    return lists


def drawn_number(prefix: str, low: LeafFact, high: LeafFact, bits: Fragment) -> str:
    """A whole number from low to high, each equally likely: low + floor(bits * count / 2**64)."""
    first = f"{prefix}{low.name}"
    widths = [b - a + 1 for a, b in zip(low.values, high.values, strict=True) if a is not None]
    width = f"({prefix}{high.name} - {first} + 1)"
    if max(widths, default=1) == 1:
        return first
    if max(widths) <= _NARROW:
        return f"({first} + CAST((({bits} >> 24) * CAST({width} AS UBIGINT)) >> 40 AS BIGINT))"
    return f"({first} + CAST((CAST({bits} AS UHUGEINT) * CAST({width} AS UHUGEINT)) >> 64 AS BIGINT))"
