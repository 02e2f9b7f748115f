"""Conditional distributions as tables of integers, and codes packed into 64-bit words.

Probabilities are whole numbers of 2^-32, so that every rank and every comparison in SQL is exact
integer arithmetic: the same rows on every machine, DuckDB version and number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.sample.sql_network import Network, Node

UNIT = 2**32
"""Probability 1. Ranks below 2^31 times it fit a BIGINT."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = dict[str, IntArray]

WORD = 63
"""Bits of a word that are used: DuckDB takes a one shifted into the highest bit for an overflow."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable's value is: ``bits`` wide, ``shift`` from the low end of word ``word``."""

    word: int
    shift: int
    bits: int


def layout(sizes: Sequence[int]) -> tuple[Place, ...]:
    """Places of all variables, filling one word after the other; none crosses a border."""
    places, word, shift = list[Place](), 0, 0
    for size in sizes:
        bits = max(1, (size - 1).bit_length())
        if shift + bits > WORD:
            word, shift = word + 1, 0
        places.append(Place(word, shift, bits))
        shift += bits
    return tuple(places)


def cumulative_columns(node: Node) -> Columns:
    """Columns parent, value, low, high: value v for ranks low <= u < high, in units of 2^-32.

    Values of less than half a unit are left out; those of one parent lie side by side from 0 to 2^32.
    """
    high = _rounded_cumulative(node.weights)
    low = np.concatenate([np.zeros((len(high), 1), np.int64), high[:, :-1]], axis=1)
    row, value = np.nonzero(high > low)
    return {
        "parent": node.configurations[row],
        "value": value.astype(np.int64),
        "low": low[row, value],
        "high": high[row, value],
    }


def _rounded_cumulative(weights: FloatArray) -> IntArray:
    sums = np.cumsum(weights, axis=1)
    high = np.rint(sums / sums[:, -1:] * UNIT).astype(np.int64)
    return np.asarray(np.minimum(high, UNIT))


def slots_of(node: Node) -> int:
    """Slots of the node's alias tables: the most values that any configuration has."""
    return int(np.count_nonzero(_masses(node), axis=1).max())


def _masses(node: Node) -> IntArray:
    return np.diff(_rounded_cumulative(node.weights), axis=1, prepend=0)


def alias_columns(node: Node) -> Columns:
    """Alias tables (Walker 1977) of all configurations, all of ``slots_of`` slots.

    Columns key (parent times the number of slots, plus slot), cut, value, alias: in a slot it is ``value``
    below ``cut`` (units of 2^-32), else ``alias``. Built by sweeping (Huebschle-Schneider and Sanders 2019):
    light values take what they lack from the first heavy one that has some left; prefix sums say which
    that is. Exact, and for all configurations at once.
    """
    masses = _masses(node)
    order = np.argsort(masses == 0, axis=1, kind="stable")
    slots = int(np.count_nonzero(masses, axis=1).max())
    order = order[:, :slots]
    share = np.take_along_axis(masses, order, axis=1) * slots
    cut, other = _swept(share)
    return {
        "key": (node.configurations[:, None] * slots + np.arange(slots)).ravel(),
        "cut": cut.ravel(),
        "value": order.ravel(),
        "alias": np.take_along_axis(order, other, axis=1).ravel(),
    }


def _swept(share: IntArray) -> tuple[IntArray, IntArray]:
    """Cut and alias slot per slot of rows of shares (r, k) that sum to k units each."""
    rows, slots = share.shape
    cut, other = np.full(share.shape, UNIT, np.int64), np.tile(np.arange(slots), (rows, 1))
    light = share < UNIT
    lacks = np.where(light, UNIT - share, 0)
    spare = np.where(light, 0, share - UNIT)
    # Rows follow one another in one sequence: each lacks in all what it has to spare.
    lacked, spared = lacks.ravel().cumsum(), spare.ravel().cumsum()
    lights, heavies = np.flatnonzero(light), np.flatnonzero(~light)
    column = np.arange(share.size) % slots
    taken = np.searchsorted(spared[heavies], lacked[lights] - lacks.ravel()[lights], side="right")
    cut.ravel()[lights] = share.ravel()[lights]
    other.ravel()[lights] = column[heavies[taken]]
    # A heavy value gives until it lacks something itself, and takes that from the next one.
    given = np.concatenate([[0], lacked[lights]])
    gave = given[np.searchsorted(given, spared[heavies], side="left")]
    missing = gave - spared[heavies]
    giver = np.flatnonzero(missing > 0)
    cut.ravel()[heavies[giver]] = UNIT - missing[giver]
    other.ravel()[heavies[giver]] = column[heavies[giver + 1]]
    return cut, other


def cumulative_table(network: Network) -> Iterator[Columns]:
    """Columns node, parent, value, low, high, one batch a node."""
    for number, node in enumerate(network.nodes):
        yield _numbered(number, cumulative_columns(node))


def alias_table(network: Network) -> Iterator[Columns]:
    """Columns node, key, cut, value, alias, one batch a node."""
    for number, node in enumerate(network.nodes):
        yield _numbered(number, alias_columns(node))


def _numbered(number: int, columns: Columns) -> Columns:
    size = len(columns["value"])
    return {"node": np.full(size, number, np.int64), **columns}
