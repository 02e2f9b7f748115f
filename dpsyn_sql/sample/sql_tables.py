"""Conditional distributions as tables of integers, and codes packed into 64-bit words.

Probabilities are whole numbers of 2^-32, so that every rank and every comparison in SQL is exact
integer arithmetic: the same rows on every machine, DuckDB version and number of threads. One table serves
both ways to draw: the stretches of a cumulative distribution, and the slots of an alias table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sample.sql_network import Network, Node, configurations, slot_bits_of

UNIT = 2**32
"""Probability 1. Ranks below 2^31 times it fit a BIGINT."""

IntArray = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]

PARENT_BITS = 40
"""Bits of the number of a parent configuration; above them stands the number of a chunk."""

WORD = 63
"""Bits of a word that are used: DuckDB takes a one shifted into the highest bit for an overflow."""

NONE = -1
"""The value of a slot that has none of its own."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable's value is: ``bits`` wide, ``shift`` from the low end of word ``word``."""

    word: int
    shift: int
    bits: int


Layout = tuple[Place | None, ...]


def layout(network: Network) -> Layout:
    """The place of every variable, None where there is only one value.

    In drawing order, because parents are then often neighbours and can be read together; the variables of
    one node are in one word.

    Raises:
        InternalError: those of a node do not fit a word.
    """
    places: list[Place | None] = [None] * len(network.sizes)
    word, shift = 0, 0
    for node in network.nodes:
        widths = [(network.sizes[variable] - 1).bit_length() for variable in node.variables]
        if sum(widths) > WORD:
            raise InternalError("more variables are drawn together than can be packed")
        if shift + sum(widths) > WORD:
            word, shift = word + 1, 0
        for variable, bits in zip(node.variables, widths, strict=True):
            places[variable] = Place(word, shift, bits)
            shift += bits
    return tuple(places)


def place_of(variable: int, places: Layout) -> Place:
    """The place of a variable that is drawn.

    Raises:
        InternalError: it is not.
    """
    place = places[variable]
    if place is None:
        raise InternalError("a variable has no place among those that are drawn")
    return place


def strides(node: Node, sizes: tuple[int, ...]) -> list[int]:
    """What each parent's value is multiplied by; the sum is the number of the configuration, row-major.

    Raises:
        InternalError: the numbers do not fit ``PARENT_BITS``.
    """
    found, stride = list[int](), 1
    for parent in reversed(node.parents):
        found.append(stride)
        stride *= sizes[parent]
    if stride > 2**PARENT_BITS:
        raise InternalError("a variable has more parent configurations than can be numbered")
    return found[::-1]


def parent_numbers(node: Node, sizes: tuple[int, ...]) -> IntArray:
    """The number of each line's parent configuration (n,), rising."""
    return node.given @ np.array(strides(node, sizes), np.int64)


def packed_values(node: Node, places: Layout) -> IntArray:
    """The values of each line side by side (n,), the first variable's at the low end."""
    first = place_of(node.variables[0], places).shift
    packed = np.zeros(len(node.weights), np.int64)
    for position, variable in enumerate(node.variables):
        packed |= node.values[:, position] << (place_of(variable, places).shift - first)
    return packed


def stretches(node: Node, sizes: tuple[int, ...], places: Layout) -> Columns:
    """Columns parent, value, low, high: the packed values for numbers low <= u <= high below 2^32.

    Lines of less than half a unit are left out; those of one parent lie side by side from 0 to 2^32 - 1.
    """
    parent, value = parent_numbers(node, sizes), packed_values(node, places)
    begins, counts = _groups(parent)
    sums = np.cumsum(node.weights)
    before = np.repeat((sums - node.weights)[begins], counts)
    whole = np.repeat(sums[begins + counts - 1], counts) - before
    stop = np.clip(np.rint((sums - before) / whole * UNIT).astype(np.int64), 0, UNIT)
    stop[begins + counts - 1] = UNIT
    start = np.concatenate([[0], stop[:-1]])
    start[begins] = 0
    kept = np.flatnonzero(stop > start)
    return {
        "parent": parent[kept],
        "value": value[kept],
        "low": start[kept].astype(np.uint32),
        "high": (stop[kept] - 1).astype(np.uint32),
    }


def alias_table(units: IntArray, capacity: int) -> tuple[IntArray, IntArray]:
    """Thresholds and aliases of slots: a slot gives itself below its threshold and its alias from there on.

    Walker's method (1977), as Vose (1991) fills the slots: those of too little are filled up from those of
    too much in turn. What is filled and what is taken are prefix sums, hence no loop (the sweep of
    Huebschle-Schneider and Sanders 2019, without its threads). Exact.

    Args:
        units: int64 (slots,), how many numbers each slot's own value is to get; stretches of slots that
            belong together have ``capacity`` in the mean.
        capacity: numbers of one slot.

    Returns:
        Thresholds (slots,), 0 to capacity; and of each slot the position of its alias (slots,), its own
        where the threshold is the capacity.
    """
    thresholds, aliases = units.copy(), np.arange(units.size)
    little, much = np.flatnonzero(units < capacity), np.flatnonzero(units > capacity)
    if not much.size:
        return thresholds, aliases
    lacking, beyond = capacity - units[little], units[much] - capacity
    lacked, exceeded = np.cumsum(lacking), np.cumsum(beyond)
    aliases[little] = much[np.searchsorted(exceeded, lacked - lacking, side="right")]
    # The slot that filled others is at last no more than full itself, and the next one fills it up.
    thresholds[much] = capacity + exceeded - lacked[np.searchsorted(lacked, exceeded)]
    unfilled = np.flatnonzero(thresholds[much] < capacity)
    aliases[much[unfilled]] = much[unfilled + 1]
    return thresholds, aliases


def slots(node: Node, sizes: tuple[int, ...], places: Layout) -> Columns:
    """Columns parent, slot, value, low, high, threshold, alias: a row for every slot of every configuration.

    The first slots have the stretches of the configuration; the others have the value ``NONE`` and low above
    high. ``alias`` is the value of the alias. A configuration that cannot occur has no values at all.
    """
    lines, bits = stretches(node, sizes, places), slot_bits_of(node)
    begins, counts = _groups(lines["parent"])
    line = np.arange(lines["parent"].size) - np.repeat(begins, counts)
    shape = (configurations(node, sizes), 2**bits)
    at = np.ravel_multi_index((lines["parent"], line), shape)
    units = np.full(shape, UNIT >> bits)
    units[lines["parent"][begins]] = 0
    units = units.ravel()
    units[at] = lines["high"].astype(np.int64) - lines["low"] + 1
    value, low, high = np.full(units.size, NONE), *(np.full(units.size, end, np.uint32) for end in (1, 0))
    value[at], low[at], high[at] = lines["value"], lines["low"], lines["high"]
    thresholds, aliases = alias_table(units, UNIT >> bits)
    return {
        "parent": np.repeat(np.arange(shape[0]), shape[1]),
        "slot": np.tile(np.arange(shape[1], dtype=np.int32), shape[0]),
        "value": value,
        "low": low,
        "high": high,
        "threshold": thresholds.astype(np.uint32),
        "alias": value[aliases],
    }


def distribution_table(network: Network, places: Layout) -> Columns:
    """Columns node and those of ``slots``, of all nodes."""
    parts = []
    for number, node in enumerate(network.nodes):
        columns = slots(node, network.sizes, places)
        parts.append({"node": np.full(len(columns["value"]), number, np.int32), **columns})
    names = list(parts[0]) if parts else []
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in names}  # never all twice


def _groups(parent: IntArray) -> tuple[IntArray, IntArray]:
    """Where the lines of each configuration begin, and how many they are."""
    begins = np.flatnonzero(np.concatenate([[True], parent[1:] != parent[:-1]]))
    return begins, np.diff(np.append(begins, parent.size))
