"""Conditional distributions as tables of integers, and codes packed into 64-bit words.

Probabilities are whole numbers of 2^-32, so that every rank and every comparison in SQL is exact
integer arithmetic: the same rows on every machine, DuckDB version and number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sample.sql_network import Network, Node

UNIT = 2**32
"""Probability 1. Ranks below 2^31 times it fit a BIGINT."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = dict[str, IntArray]

PARENT_BITS = 40
"""Bits of the number of a parent configuration; above them stands the number of a chunk."""

WORD = 63
"""Bits of a word that are used: DuckDB takes a one shifted into the highest bit for an overflow."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable's value is: ``bits`` wide, ``shift`` from the low end of word ``word``."""

    word: int
    shift: int
    bits: int


Layout = tuple[Place | None, ...]


def layout(network: Network) -> Layout:
    """The place of every variable, None where there is only one value.

    In drawing order, because parents are then often neighbours and can be read together; no place
    crosses the border of a word.
    """
    places: list[Place | None] = [None] * len(network.sizes)
    word, shift = 0, 0
    for node in network.nodes:
        bits = (network.sizes[node.variable] - 1).bit_length()
        if shift + bits > WORD:
            word, shift = word + 1, 0
        places[node.variable] = Place(word, shift, bits)
        shift += bits
    return tuple(places)


def parent_places(node: Node, places: Layout) -> list[tuple[int, Place]]:
    """Position among the node's parents and place of each that has several values, lowest place first.

    The number of a parent configuration is the concatenation of these bits, the first the lowest.

    Raises:
        InternalError: they do not fit ``PARENT_BITS``.
    """
    found = [(position, places[variable]) for position, variable in enumerate(node.parents)]
    kept = [(position, place) for position, place in found if place is not None]
    if sum(place.bits for _, place in kept) > PARENT_BITS:
        raise InternalError("a variable has more parent configurations than can be numbered")
    return sorted(kept, key=lambda item: (item[1].word, item[1].shift))


def parent_numbers(node: Node, sizes: Sequence[int], places: Layout) -> IntArray:
    """The number of each configuration of the node's parents, as ``parent_places`` says."""
    values, left = [], node.configurations
    for variable in reversed(node.parents):
        left, value = np.divmod(left, sizes[variable])
        values.append(value)
    values.reverse()
    numbers, offset = np.zeros_like(node.configurations), 0
    for position, place in parent_places(node, places):
        numbers |= values[position] << offset
        offset += place.bits
    return numbers


def cumulative_columns(node: Node, numbers: IntArray) -> Columns:
    """Columns parent, value, low, high: value v for ranks low <= u < high, in units of 2^-32.

    ``numbers`` are those of the node's configurations.
    Values of less than half a unit are left out; those of one parent lie side by side from 0 to 2^32.
    """
    high = _rounded_cumulative(node.weights)
    low = np.concatenate([np.zeros((len(high), 1), np.int64), high[:, :-1]], axis=1)
    row, value = np.nonzero(high > low)
    return {
        "parent": numbers[row],
        "value": value.astype(np.int64),
        "low": low[row, value],
        "high": high[row, value],
    }


def _rounded_cumulative(weights: FloatArray) -> IntArray:
    sums = np.cumsum(weights, axis=1)
    high = np.rint(sums / sums[:, -1:] * UNIT).astype(np.int64)
    return np.asarray(np.minimum(high, UNIT))


def slot_bits_of(node: Node) -> int:
    """The node's alias tables have 2 to this power slots: no fewer than any configuration has values."""
    return (int(np.count_nonzero(_masses(node), axis=1).max()) - 1).bit_length()


def _masses(node: Node) -> IntArray:
    return np.diff(_rounded_cumulative(node.weights), axis=1, prepend=0)


def alias_columns(node: Node, numbers: IntArray) -> Columns:
    """Alias tables (Walker 1977) of all configurations, all of 2^``slot_bits_of`` slots.

    Columns parent, slot, cut, value, alias: in a slot it is ``value`` below ``cut`` (units of 2^-32), else
    ``alias``. Built by sweeping (Huebschle-Schneider and Sanders 2019): light values take what they lack
    from the first heavy one that has some left; prefix sums say which that is. Exact, and for all
    configurations at once.
    """
    slots = 2 ** slot_bits_of(node)
    masses = _masses(node)
    values = masses.shape[1]
    masses = np.pad(masses, ((0, 0), (0, max(0, slots - values))))
    order = np.argsort(masses == 0, axis=1, kind="stable")[:, :slots]
    share = np.take_along_axis(masses, order, axis=1) * slots
    cut, other = _swept(share)
    return {
        "parent": np.repeat(numbers, slots),
        "slot": np.tile(np.arange(slots), numbers.size),
        "cut": cut.ravel(),
        "value": np.minimum(order, values - 1).ravel(),  # beyond are slots to fill up, cut at 0
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


def cumulative_table(network: Network) -> Columns:
    """Columns node, parent, value, low, high: the cumulative distributions of all nodes."""
    return _table(network, cumulative_columns)


def alias_table(network: Network) -> Columns:
    """Columns node, parent, slot, cut, value, alias: the alias tables of all nodes."""
    return _table(network, alias_columns)


def _table(network: Network, columns_of: Callable[[Node, IntArray], Columns]) -> Columns:
    places = layout(network)
    parts = []
    for number, node in enumerate(network.nodes):
        columns = columns_of(node, parent_numbers(node, network.sizes, places))
        parts.append({"node": np.full(len(columns["value"]), number, np.int64), **columns})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
