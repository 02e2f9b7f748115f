"""The statements that sample from a network, as text: chunk by chunk, or as one query.

Random bits of a row, an attribute and a purpose are ``hash(xor(row, hash('<attribute>|<purpose>|<seed>')))``:
the hash of several arguments would leave the bits of attributes dependent on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpsyn_sql.domain.encoding import code_type
from dpsyn_sql.sample.sql_network import Network, Node
from dpsyn_sql.sample.sql_tables import Place, layout, slots_of
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render

CHUNK_BITS = 20
"""A chunk has 2^20 rows: a constant, so that a seed means the same rows on every machine. It holds some
50 MB a step for 15 attributes."""

CHUNK_ROWS = 2**CHUNK_BITS

GROUP_BITS = 40
"""Bits of a parent configuration's number; above them stands the number of the chunk."""

Relation = Callable[[int], Fragment]
"""The relation that holds the distribution of node i, as it stands after FROM."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a template needs to know about one node.

    ``relation`` holds its cumulative distributions, or its alias tables of ``slots`` slots; ``words``
    are the packed words with the drawn ``value`` in its place.
    """

    name: Fragment
    source: Fragment
    parent: Fragment
    words: tuple[Fragment, ...]
    relation: Fragment
    fixed: int
    slots: int
    rank_bits: Fragment
    jitter_bits: Fragment
    slot_bits: Fragment


@dataclass(frozen=True, slots=True)
class Script:
    """A network with its packing, ready to be written as SQL."""

    network: Network
    places: tuple[Place, ...]

    @property
    def words(self) -> list[Fragment]:
        """Names of the packed words."""
        return [Fragment(f"w{word}") for word in range(self.places[-1].word + 1 if self.places else 0)]

    @property
    def codes(self) -> list[Fragment]:
        """The codes of the attributes in domain order, unpacked, as a0, a1, ..."""
        sizes = self.network.sizes
        return [
            Fragment(f"CAST({_value(self.places[v])} AS {code_type(sizes[v])}) AS a{i}")
            for i, v in enumerate(self.network.codes)
        ]

    def steps(self, seed: Fragment, relation: Relation, *, aliases: bool = False) -> list[Step]:
        """One step a node. ``seed`` is any expression that does not change from row to row."""
        return [
            self._step(number, node, seed, relation(number), slots_of(node) if aliases else 0)
            for number, node in enumerate(self.network.nodes)
        ]

    def _step(self, number: int, node: Node, seed: Fragment, relation: Fragment, slots: int) -> Step:
        def bits(purpose: str) -> Fragment:
            return Fragment(f"hash({string_literal(f'{node.label}|{purpose}|')} || {seed})")

        name = Fragment(f"step{number}")
        source = Fragment(f"step{number - 1}" if number else "started")
        parent, words = self._parent(node), self._with_value(node.variable)
        return Step(
            name,
            source,
            parent,
            words,
            relation,
            int(node.fixed),
            slots,
            bits("rank"),
            bits("jitter"),
            bits("slot"),
        )

    def _parent(self, node: Node) -> Fragment:
        """The mixed-radix code of the parents' values."""
        sizes = [self.network.sizes[variable] for variable in node.parents]
        terms = [
            f"{_value(self.places[variable])} * {math.prod(sizes[place + 1 :])}"
            for place, variable in enumerate(node.parents)
        ]
        return Fragment(f"CAST({' + '.join(terms) or '0'} AS BIGINT)")

    def _with_value(self, variable: int) -> tuple[Fragment, ...]:
        place = self.places[variable]
        return tuple(
            Fragment(f"{word} | (CAST(value AS UBIGINT) << {place.shift}) AS {word}")
            if number == place.word
            else word
            for number, word in enumerate(self.words)
        )


def script_of(network: Network) -> Script:
    """The network, packed."""
    return Script(network, layout(network.sizes))


def _value(place: Place) -> str:
    return f"((w{place.word} >> {place.shift}) & {2**place.bits - 1})"


def low_variance_query(script: Script, nrows: Fragment, seed: Fragment, distribution: Relation) -> Fragment:
    """One query for all rows: columns row, a0, a1, ..., the rows that the chunks would have.

    ``distribution`` gives relations with the columns parent, value, low and high.
    """
    steps = script.steps(seed, distribution)
    return render("sample/low_variance", nrows=nrows, chunk_bits=CHUNK_BITS, **_shared(script, steps))


def iid_query(script: Script, start: Fragment, stop: Fragment, seed: Fragment, aliases: Relation) -> Fragment:
    """One query for the rows ``start`` to ``stop``: columns row, a0, a1, ...

    ``aliases`` gives relations with the columns key (parent times the number of slots, plus slot),
    cut, value and alias.
    """
    steps = script.steps(seed, aliases, aliases=True)
    return render("sample/iid", start=start, stop=stop, **_shared(script, steps))


def _shared(script: Script, steps: Sequence[Step]) -> dict[str, Any]:
    last = steps[-1].name if steps else Fragment("started")
    return {"words": script.words, "steps": steps, "codes": script.codes, "last": last}


def chunk_statements(
    script: Script, step: Step, work: Fragment, scratch: Sequence[Fragment], chunk: int
) -> list[Fragment]:
    """What draws one variable for the rows in ``work``; ``scratch`` are two more table names."""
    if step.fixed:
        return [
            render(
                "sample/look_up", work=work, parent=step.parent, distribution=step.relation, words=step.words
            )
        ]
    shuffled, outcomes = scratch
    return [
        render(
            "sample/shuffle",
            work=work,
            shuffled=shuffled,
            words=script.words,
            parent=step.parent,
            rank_bits=step.rank_bits,
        ),
        render(
            "sample/outcomes",
            shuffled=shuffled,
            outcomes=outcomes,
            distribution=step.relation,
            group=chunk << GROUP_BITS,
            jitter_bits=step.jitter_bits,
        ),
        render("sample/draw", shuffled=shuffled, outcomes=outcomes, work=work, words=step.words),
    ]
