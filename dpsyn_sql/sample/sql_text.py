"""The queries that sample from a network, as text.

Random bits of a row, a node and a purpose are ``hash(xor(row, hash('<node>|<purpose>|<seed>')))``:
the hash of several arguments would leave the bits of nodes dependent on each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.fit.network import Network, Node, configurations, slot_bits_of
from dpsyn_sql.sample.sql_tables import Layout, layout, packed, place_of, strides
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render

CHUNK_BITS = 20
"""Low-variance rows are ranked among the 2^20 of their chunk."""

MOST_NODES = 120
"""Nodes that one query draws: each is a few levels of nesting, and DuckDB gives up beyond a thousand."""

_ALL = Fragment("TRUE")


@dataclass(frozen=True, slots=True)
class Step:
    """What a template needs to know about one node.

    ``relation`` holds its stretches by slot and ``lists`` its alias table, ``parent`` is the number of the
    parents' configuration and ``words`` are the packed words with the drawn ``value`` in its place.
    """

    name: Fragment
    source: Fragment
    parent: Fragment
    words: tuple[Fragment, ...]
    relation: Fragment
    lists: Fragment
    slot_bits: int
    rank_bits: Fragment
    jitter_bits: Fragment
    value_bits: Fragment


@dataclass(frozen=True, slots=True)
class Tables:
    """Where the distributions are: a table as ``sql_tables`` makes it, perhaps of several releases.

    ``slots`` is a table of the slots of all nodes; None: they are made in the query.
    """

    table: Fragment
    condition: Fragment = _ALL
    slots: Fragment | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A network with its packing and a seed (an expression that is the same for all rows)."""

    network: Network
    places: Layout
    seed: Fragment

    @property
    def words(self) -> list[Fragment]:
        """Names of the packed words."""
        return [
            Fragment(f"w{word}") for word in range(1 + max((p.word for p in self.places if p), default=0))
        ]

    @property
    def codes(self) -> list[Fragment]:
        """The codes of the attributes in domain order, unpacked, as a0, a1, ..."""
        sizes = self.network.sizes
        return [
            Fragment(f"CAST({self._value(v)} AS {DUCKDB.code_type(sizes[v])}) AS a{i}")
            for i, v in enumerate(self.network.codes)
        ]

    def steps(self, tables: Tables) -> list[Step]:
        """One step a node."""
        return [self._step(number, node, tables) for number, node in enumerate(self.network.nodes)]

    def _step(self, number: int, node: Node, tables: Tables) -> Step:
        place, slot_bits = place_of(node.variables[0], self.places), slot_bits_of(node)
        bits = sum(place_of(variable, self.places).bits for variable in node.variables)
        return Step(
            Fragment(f"step{number}"),
            Fragment(f"step{number - 1}" if number else "started"),
            self._parent(node),
            tuple(
                Fragment(f"{word} | (CAST(d.value AS UBIGINT) << {place.shift}) AS {word}")
                if index == place.word
                else word
                for index, word in enumerate(self.words)
            ),
            render("sample/stretches", slot_bits=slot_bits, lines=self._lines(number, node, tables)),
            render("sample/lists", type=_whole(bits), slots=self._slots_of(number, node, tables)),
            slot_bits,
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

    def _value(self, variable: int) -> str:
        place = self.places[variable]
        return "0" if place is None else f"(w{place.word} >> {place.shift}) & {2**place.bits - 1}"

    def _parent(self, node: Node) -> Fragment:
        """The number of the parents' configuration."""
        terms = [
            f"({self._value(parent)}) * {stride}"
            for parent, stride in zip(node.parents, strides(node, self.network.sizes), strict=True)
        ]
        return Fragment(f"({' + '.join(terms)})" if terms else "CAST(0 AS UBIGINT)")

    def _query(self, template: str, numbers: Fragment, tables: Tables) -> Fragment:
        steps = self.steps(tables)
        last = steps[-1].name if steps else Fragment("started")
        started = render("sample/start", numbers=numbers, words=self.words)
        return render(
            template, started=started, steps=steps, codes=self.codes, last=last, chunk_bits=CHUNK_BITS
        )

    def low_variance(self, nrows: Fragment, tables: Tables) -> Fragment:
        """One query for all rows, balanced by chunks: columns row, a0, a1, ..."""
        return self._query("sample/low_variance", Fragment(f"range(0, {nrows})"), tables)

    def iid(self, nrows: Fragment, tables: Tables, first: int | Fragment = 0) -> Fragment:
        """One query for rows independent of each other, numbered from ``first``: columns row, a0, a1, ..."""
        return self._query("sample/iid", render("sample/numbers", first=first, rows=nrows), tables)


def _whole(bits: int) -> Fragment:
    """The smallest type of so many bits."""
    types = {8: "UTINYINT", 16: "USMALLINT", 32: "UINTEGER", 64: "UBIGINT"}
    return Fragment(types[min(size for size in types if size >= bits)])


def script_of(network: Network, seed: Fragment) -> Script:
    """The network, packed."""
    return Script(network, layout(network), seed)
