"""Conditional distributions as tables of integers, and codes packed into 64-bit words.

Probabilities are whole numbers of 2^-32, so that every rank and every comparison in SQL is exact
integer arithmetic: the same rows on every machine, DuckDB version and number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sample.sql_network import Network, Node

UNIT = 2**32
"""Probability 1. Ranks below 2^31 times it fit a BIGINT."""

IntArray = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]

PARENT_BITS = 40
"""Bits of the number of a parent configuration; above them stands the number of a chunk or a slot."""

WORD = 63
"""Bits of a word that are used: DuckDB takes a one shifted into the highest bit for an overflow."""

MOST_SLOT_BITS = 20


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


def parent_places(node: Node, places: Layout) -> list[tuple[int, Place]]:
    """Position among the node's parents and place of each, lowest place first.

    The number of a parent configuration is the concatenation of these bits, the first the lowest.

    Raises:
        InternalError: they do not fit ``PARENT_BITS``.
    """
    found = [(position, place_of(variable, places)) for position, variable in enumerate(node.parents)]
    if sum(place.bits for _, place in found) > PARENT_BITS:
        raise InternalError("a variable has more parent configurations than can be numbered")
    return sorted(found, key=lambda item: (item[1].word, item[1].shift))


def parent_numbers(node: Node, places: Layout) -> IntArray:
    """The number of each line's parent configuration (n,)."""
    numbers, offset = np.zeros(len(node.weights), np.int64), 0
    for position, place in parent_places(node, places):
        numbers |= node.given[:, position] << offset
        offset += place.bits
    return numbers


def packed_values(node: Node, places: Layout) -> IntArray:
    """The values of each line side by side (n,), the first variable's at the low end."""
    first = place_of(node.variables[0], places).shift
    packed = np.zeros(len(node.weights), np.int64)
    for position, variable in enumerate(node.variables):
        packed |= node.values[:, position] << (place_of(variable, places).shift - first)
    return packed


def stretches(node: Node, places: Layout) -> Columns:
    """Columns parent, value, low, high: the packed values for numbers low <= u <= high below 2^32.

    Lines of less than half a unit are left out; those of one parent lie side by side from 0 to 2^32 - 1.
    """
    parent, value = parent_numbers(node, places), packed_values(node, places)
    begins = np.flatnonzero(np.concatenate([[True], parent[1:] != parent[:-1]]))
    counts = np.diff(np.append(begins, parent.size))
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


def slot_bits_of(node: Node) -> int:
    """A look-up divides the unit into 2 to this power slots: one to two for each line of a configuration
    in the mean, so that hardly more than one line has to be looked at."""
    configurations = max(1, round(float(node.weights.sum())))
    return min(MOST_SLOT_BITS, (len(node.weights) // configurations).bit_length())


def distribution_table(network: Network, places: Layout) -> Columns:
    """Columns node, parent, value, low, high: the stretches of all nodes."""
    parts = []
    for number, node in enumerate(network.nodes):
        columns = stretches(node, places)
        parts.append({"node": np.full(len(columns["value"]), number, np.int32), **columns})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def runs(places: Sequence[Place]) -> list[Place]:
    """Neighbouring places joined."""
    joined = list[Place]()
    for place in places:
        last = joined[-1] if joined else None
        if last is not None and (last.word, last.shift + last.bits) == (place.word, place.shift):
            joined[-1] = Place(last.word, last.shift, last.bits + place.bits)
        else:
            joined.append(place)
    return joined
