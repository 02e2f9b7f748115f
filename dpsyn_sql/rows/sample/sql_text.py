"""The queries that sample from a network, as text, and the tables that they read: conditional distributions
as whole numbers, and codes packed into 64-bit words.

Probabilities are whole numbers, so that every rank and every comparison in SQL is exact integer arithmetic:
the same rows on every machine, DuckDB version and number of threads. One table serves both ways to draw: SQL
makes the stretches of a cumulative distribution of it, and the slots of an alias table.

Random bits of a row, a node and a purpose are ``hash(xor(row, hash('<node>|<purpose>|<seed>')))``: the hash
of several arguments would leave the bits of nodes dependent on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import IntArray, group_cumsum
from dpsyn_sql.fit.network import Network, Node, configurations, slot_bits_of
from dpsyn_sql.sqltext.fragments import Fragment, code_type, comma, string_literal
from dpsyn_sql.sqltext.render import render

UNIT = 2**32
"""Probability 1. Ranks below 2^31 times it fit a BIGINT."""

Columns = dict[str, NDArray[Any]]

PARENT_BITS = 40
"""Bits of the number of a parent configuration; above them stands the number of a chunk."""

WORD = 63
"""Bits of a word that are used: DuckDB takes a one shifted into the highest bit for an overflow."""

FEWEST = 2**8
"""Units that a slot of a configuration has at least, however seldom it occurs."""

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable's value is: ``bits`` wide, ``shift`` from the low end of word ``word``."""

    word: int
    shift: int
    bits: int


Layout = tuple[Place | None, ...]


def layout(network: Network) -> Layout:
    """The place of every variable, None where there is only one value.

    In drawing order: parents are then often neighbours, read together. The variables of a node share a word.

    Raises:
        InternalError: those of a node do not fit a word.
    """
    places: list[Place | None] = [None] * len(network.sizes)
    word, shift = 0, 0
    for variables in (*((known,) for known in network.evidence), *(node.variables for node in network.nodes)):
        widths = [(network.sizes[variable] - 1).bit_length() for variable in variables]
        if sum(widths) > WORD:
            raise InternalError("more variables are drawn together than can be packed")
        if shift + sum(widths) > WORD:
            word, shift = word + 1, 0
        for variable, bits in zip(variables, widths, strict=True):
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


def packed(node: Node, sizes: tuple[int, ...], places: Layout) -> str:
    """SQL: the values of a node side by side, the first variable's at the low end, from their ``value``."""
    first, terms, stride = place_of(node.variables[0], places).shift, list[str](), 1
    for variable in reversed(node.variables):
        own = "value" if stride == 1 else f"value // {stride}"
        shift = place_of(variable, places).shift - first
        terms.append(f"(({own}) % {sizes[variable]} << {shift})")
        stride *= sizes[variable]
    return "value" if len(terms) == 1 else " | ".join(reversed(terms))


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


def value_numbers(node: Node, sizes: tuple[int, ...]) -> IntArray:
    """The number of each line's values (n,): row-major, the first variable counts most."""
    shape = tuple(sizes[variable] for variable in node.variables)
    return np.asarray(np.ravel_multi_index(tuple(node.values.T), shape), np.int64)


def shares(node: Node, sizes: tuple[int, ...]) -> Columns:
    """Columns parent, value, weight: of each configuration of the parents whole numbers in proportion to the
    probabilities of its values.

    Together they are as many as the configuration has units of 2^-32 of all rows, but at least ``FEWEST`` a
    slot: what seldom occurs takes few bits, and no joint probability is off by more than a unit. They are
    differences of rounded sums; what is added before rounding is spread evenly over the configurations, so
    that rounding favours no value. Those of 0 are left out.
    """
    parent, value = parent_numbers(node, sizes), value_numbers(node, sizes)
    begins, counts = _groups(parent)
    least = min(1.0, FEWEST * 2.0 ** slot_bits_of(node) / UNIT)
    units = np.clip(node.reach[begins], least, 1.0) * (UNIT - 1)
    phase = (0.5 + np.arange(begins.size) * _GOLDEN) % 1.0
    sums = group_cumsum(node.weights, begins)
    whole = np.repeat(sums[begins + counts - 1], counts)
    upto = (np.repeat(phase, counts) + sums / whole * np.repeat(units, counts)).astype(np.int64)
    weight = np.diff(upto, prepend=0)
    weight[begins] = upto[begins]
    kept = np.flatnonzero(weight > 0)
    return {"parent": parent[kept], "value": value[kept], "weight": weight[kept].astype(np.uint32)}


def share_table(network: Network) -> Columns:
    """Columns node and those of ``shares``, of all nodes."""
    parts = []
    for number, node in enumerate(network.nodes):
        columns = shares(node, network.sizes)
        parts.append({"node": np.full(len(columns["value"]), number, np.int32), **columns})
    names = list(parts[0]) if parts else []
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in names}  # never all twice


def variable_table(network: Network) -> Columns:
    """Columns node, place, parent, variable, size and attribute (-1: none): what the numbers in
    ``share_table`` stand for."""
    of_codes = {variable: attribute for attribute, variable in enumerate(network.codes)}
    for variable, bins in network.evidence.items():  # of an attribute of the same number, in working bins
        if not np.array_equal(bins, np.arange(bins.size)):
            of_codes.pop(variable, None)
    lines = [
        (number, place, place < len(node.parents), variable)
        for number, node in enumerate(network.nodes)
        for place, variable in enumerate((*node.parents, *node.variables))
    ]
    if not lines:
        return {}
    node, place, parent, variables = zip(*lines, strict=True)
    return {
        "node": np.array(node, np.int32),
        "place": np.array(place, np.int32),
        "parent": np.array(parent, np.bool_),
        "variable": np.array(variables, np.int32),
        "size": np.array([network.sizes[variable] for variable in variables], np.int64),
        "attribute": np.array([of_codes.get(variable, -1) for variable in variables], np.int32),
    }


def _groups(parent: IntArray) -> tuple[IntArray, IntArray]:
    """Where the lines of each configuration begin, and how many they are."""
    begins = np.flatnonzero(np.concatenate([[True], parent[1:] != parent[:-1]]))
    return begins, np.diff(np.append(begins, parent.size))


CHUNK_BITS = 20
"""Low-variance rows are ranked among the 2^20 of their chunk."""

MOST_NODES = 120
"""Nodes that one query draws: each is a few levels of nesting, and DuckDB gives up beyond a thousand."""

MOST_ON_WAY = 160
"""The same of all tables from the root of a tree down to one, drawn by one query: planned in ten seconds."""

_ALL = Fragment("TRUE")


@dataclass(frozen=True, slots=True)
class Step:
    """What a template needs to know about one node.

    ``relation`` holds its stretches by slot and ``lists`` its alias table, in lists of the names ``columns``:
    one of words that hold values of ``packed_bits``, or three if that is 0. ``parent`` is the number of the
    parents' configuration and ``words`` are the packed words with the drawn ``value`` in its place.
    """

    name: Fragment
    source: Fragment
    parent: Fragment
    words: tuple[Fragment, ...]
    relation: Fragment
    lists: Fragment
    columns: tuple[Fragment, ...]
    slot_bits: int
    packed_bits: int
    rank_bits: Fragment
    jitter_bits: Fragment
    value_bits: Fragment


@dataclass(frozen=True, slots=True)
class Tables:
    """Where the distributions are: a table as ``sql_tables`` makes it, perhaps of several releases.

    ``slots`` is a table of the slots of all nodes, ``lists`` one of their lists; None: made in the query.
    """

    table: Fragment
    condition: Fragment = _ALL
    slots: Fragment | None = None
    lists: Fragment | None = None


@dataclass(frozen=True)
class Script:
    """A network with its packing and a seed (an expression that is the same for all rows)."""

    network: Network
    seed: Fragment

    @cached_property
    def places(self) -> Layout:
        """Of all variables."""
        return layout(self.network)

    @property
    def words(self) -> list[Fragment]:
        """Names of the packed words."""
        last = max((place.word for place in self.places if place), default=0)
        return [Fragment(f"w{word}") for word in range(1 + last)]

    @property
    def codes(self) -> list[Fragment]:
        """The codes of the attributes in domain order, unpacked, as a0, a1, ..."""
        sizes = self.network.sizes
        return [
            Fragment(f"CAST({self.value(v)} AS {code_type(sizes[v])}) AS a{i}")
            for i, v in enumerate(self.network.codes)
        ]

    def value(self, variable: int) -> str:
        """SQL: the value of a variable, unpacked."""
        place = self.places[variable]
        return "0" if place is None else f"(w{place.word} >> {place.shift}) & {2**place.bits - 1}"

    def steps(self, tables: Tables) -> list[Step]:
        """One step a node."""
        return [self.step(number, node, tables) for number, node in enumerate(self.network.nodes)]

    def step(self, number: int, node: Node, tables: Tables, first: int = 0) -> Step:
        """The step of a node; that of node ``first`` comes first in its query."""
        place, slot_bits = place_of(node.variables[0], self.places), slot_bits_of(node)
        bits = sum(place_of(variable, self.places).bits for variable in node.variables)
        lists, columns = self._lists(number, node, tables, bits)
        return Step(
            Fragment(f"step{number}"),
            Fragment(f"step{number - 1}" if number > first else "started"),
            self._parent(node),
            tuple(
                Fragment(f"{word} | (CAST(d.value AS UBIGINT) << {place.shift}) AS {word}")
                if index == place.word
                else word
                for index, word in enumerate(self.words)
            ),
            render("sample/stretches", slot_bits=slot_bits, lines=self._lines(number, node, tables)),
            lists,
            tuple(columns),
            slot_bits,
            bits if len(columns) == 1 else 0,
            *(
                Fragment(f"hash({string_literal(f'{node.label}|{purpose}|')} || {self.seed})")
                for purpose in ("rank", "jitter", "value")
            ),
        )

    def _lines(self, number: int, node: Node, tables: Tables) -> Fragment:
        return render(
            "sample/lines",
            table=tables.table,
            condition=Fragment(f"{tables.condition} AND node = {number}"),
            packed=Fragment(packed(node, self.network.sizes, self.places)),
        )

    def _lists(self, number: int, node: Node, tables: Tables, bits: int) -> tuple[Fragment, list[Fragment]]:
        """The alias table of a node in lists, and their names; ``bits``: of packed values."""
        threshold = UNIT.bit_length() - slot_bits_of(node)  # its bits
        packed = threshold + 2 * bits <= WORD
        names = ["entries"] if packed else ["thresholds", "own", "aliases"]
        columns = [Fragment(f"{name}{number}") for name in names]
        if tables.lists is not None:
            return Fragment(f"(SELECT {comma(columns)} FROM {tables.lists})"), columns
        slots = self._slots_of(number, node, tables)
        if not packed:
            return render("sample/lists", type=_whole(bits), slots=slots, columns=columns), columns
        words = render("sample/entries", slots=slots, column=columns[0], threshold_bits=threshold, bits=bits)
        return words, columns

    def _slots_of(self, number: int, node: Node, tables: Tables) -> Fragment:
        if tables.slots is not None:
            return Fragment(f"{tables.slots} WHERE node = {number}")
        return Fragment(f"(\n{self._slots(number, node, tables)}\n)")

    def _slots(self, number: int, node: Node, tables: Tables) -> Fragment:
        return render(
            "sample/slots",
            number=number,
            lines=self._lines(number, node, tables),
            slot_bits=slot_bits_of(node),
            configurations=configurations(node, self.network.sizes),
        )

    def slots(self, tables: Tables) -> list[Fragment]:
        """One query a node: its alias table, with the columns node, position, threshold, value, alias."""
        return [self._slots(number, node, tables) for number, node in enumerate(self.network.nodes)]

    def _parent(self, node: Node) -> Fragment:
        """The number of the parents' configuration."""
        terms = [
            f"({self.value(parent)}) * {stride}"
            for parent, stride in zip(node.parents, strides(node, self.network.sizes), strict=True)
        ]
        return Fragment(f"({' + '.join(terms)})" if terms else "CAST(0 AS UBIGINT)")

    def low_variance(self, nrows: Fragment, tables: Tables) -> Fragment:
        """One query for all rows, balanced by chunks: columns row, a0, a1, ..."""
        return low_variance(nrows, self.words, self.steps(tables), self.codes)

    def iid(self, nrows: Fragment, tables: Tables, first: int | Fragment = 0, ordered: int = 0) -> Fragment:
        """One query for rows independent of each other, as of ``independent``: columns row, a0, a1, ..."""
        return independent(nrows, self.words, self.steps(tables), self.codes, first, ordered)


def low_variance(
    nrows: Fragment, words: Sequence[Fragment], steps: Sequence[Step], codes: Sequence[Fragment]
) -> Fragment:
    """The query for rows that are balanced by chunks: the columns row and ``codes``."""
    started = render("sample/start", numbers=Fragment(f"range(0, {nrows})"), words=words, steps=[])
    return render(
        "sample/low_variance",
        started=started,
        steps=steps,
        codes=codes,
        last=last_of(steps),
        chunk_bits=CHUNK_BITS,
    )


def independent(
    nrows: Fragment,
    words: Sequence[Fragment],
    steps: Sequence[Step],
    codes: Sequence[Fragment],
    first: int | Fragment = 0,
    ordered: int = 0,
) -> Fragment:
    """The query for independent rows, numbered from ``first`` (and in this order if ``ordered`` is 1): the
    columns row and ``codes``."""
    numbers = render("sample/numbers", first=first, rows=nrows, steps=steps)
    started = render("sample/start", numbers=numbers, words=words, steps=steps)
    last = last_of(steps)
    return render("sample/iid", started=started, steps=steps, codes=codes, last=last, ordered=ordered)


def last_of(steps: Sequence[Step]) -> Fragment:
    """The name of what all steps come out of."""
    return steps[-1].name if steps else Fragment("started")


def _whole(bits: int) -> Fragment:
    """The smallest type of so many bits."""
    types = {8: "UTINYINT", 16: "USMALLINT", 32: "UINTEGER", 64: "UBIGINT"}
    return Fragment(types[min(size for size in types if size >= bits)])
