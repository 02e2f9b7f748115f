"""The statements that sample from a network, as text: chunk by chunk, or as one query.

Random bits of a row, an attribute and a purpose are ``hash(xor(row, hash('<attribute>|<purpose>|<seed>')))``:
the hash of several arguments would leave the bits of attributes dependent on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dpsyn_sql.domain.encoding import code_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sample.sql_network import Network, Node
from dpsyn_sql.sample.sql_tables import Layout, Place, layout, parent_places, slot_bits_of
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render

CHUNK_BITS = 20
"""A chunk has 2^20 rows: a constant, so that a seed means the same rows on every machine. It holds some
50 MB a step for 15 attributes."""

CHUNK_ROWS = 2**CHUNK_BITS

MOST_NODES = 120
"""Variables that one query draws: each is a few levels of nesting, and DuckDB gives up beyond a thousand."""

Kind = Literal["starts", "stretches", "aliases"]
"""What is read of the distributions: where values start, where they start and end, or alias tables."""

_ALL = Fragment("TRUE")
_GROUP_BITS = 40  # a chunk's number stands above that of a parent configuration


@dataclass(frozen=True, slots=True)
class Step:
    """What a template needs to know about one node.

    ``relation`` holds its cumulative distributions, or its alias tables of ``slots`` slots; ``parent`` is
    the number of the parents' configuration (times ``slots`` for alias tables), ``words`` are the packed
    words with the drawn ``value`` in its place.
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
class Tables:
    """Where the distributions are: a table as ``sql_tables`` makes it, perhaps of several releases."""

    table: Fragment
    condition: Fragment = _ALL


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
            Fragment(f"CAST({_value(self.places[v])} AS {code_type(sizes[v])}) AS a{i}")
            for i, v in enumerate(self.network.codes)
        ]

    def steps(self, tables: Tables, kind: Kind) -> list[Step]:
        """One step a node."""
        return [self._step(number, node, tables, kind) for number, node in enumerate(self.network.nodes)]

    def _step(self, number: int, node: Node, tables: Tables, kind: Kind) -> Step:
        place = self.places[node.variable]
        if place is None:
            raise InternalError("a variable of one value has a node")
        slot_bits = slot_bits_of(node) if kind == "aliases" else 0
        relation = {
            "table": tables.table,
            "condition": Fragment(f"{tables.condition} AND node = {number}"),
            "shift": place.shift,
        }
        return Step(
            Fragment(f"step{number}"),
            Fragment(f"step{number - 1}" if number else "started"),
            self._parent(node, slot_bits),
            tuple(
                Fragment(f"{word} | value AS {word}") if index == place.word else word
                for index, word in enumerate(self.words)
            ),
            render("sample/aliases", slot_bits=slot_bits, **relation)
            if kind == "aliases"
            else render("sample/cumulative", ends=int(kind == "stretches"), **relation),
            int(node.fixed),
            2**slot_bits,
            self._bits(node, "rank"),
            self._bits(node, "jitter"),
            self._bits(node, "slot"),
        )

    def _bits(self, node: Node, purpose: str) -> Fragment:
        return Fragment(f"hash({string_literal(f'{node.label}|{purpose}|')} || {self.seed})")

    def _parent(self, node: Node, offset: int) -> Fragment:
        """The number of the parents' configuration, ``offset`` bits up; neighbours are read together."""
        terms = []
        for run in _runs([place for _, place in parent_places(node, self.places)]):
            mask, up = 2**run.bits - 1, offset - run.shift
            shifted = f"w{run.word} & {mask << run.shift}"
            terms.append(f"(({shifted}) << {up})" if up > 0 else f"(({shifted}) >> {-up})")
            offset += run.bits
        return Fragment(f"({' | '.join(terms)})" if terms else "CAST(0 AS UBIGINT)")

    def started(self, start: Fragment, stop: Fragment) -> Fragment:
        """The query of rows before anything is drawn."""
        return render("sample/start", start=start, stop=stop, words=self.words)


def script_of(network: Network, seed: Fragment) -> Script:
    """The network, packed."""
    return Script(network, layout(network), seed)


def _value(place: Place | None) -> str:
    return "0" if place is None else f"(w{place.word} >> {place.shift}) & {2**place.bits - 1}"


def _runs(places: Sequence[Place]) -> Iterator[Place]:
    """Neighbouring places joined."""
    run: Place | None = None
    for place in places:
        if run is not None and (run.word, run.shift + run.bits) == (place.word, place.shift):
            run = Place(run.word, run.shift, run.bits + place.bits)
            continue
        if run is not None:
            yield run
        run = place
    if run is not None:
        yield run


def low_variance_query(script: Script, nrows: Fragment, tables: Tables) -> Fragment:
    """One query for all rows: columns row, a0, a1, ..., the rows that the chunks would have."""
    shared = _shared(script, script.steps(tables, "starts"), Fragment("0"), nrows)
    return render("sample/low_variance", chunk_bits=CHUNK_BITS, **shared)


def iid_query(script: Script, start: Fragment, stop: Fragment, tables: Tables) -> Fragment:
    """One query for the rows ``start`` to ``stop``: columns row, a0, a1, ..."""
    return render("sample/iid", **_shared(script, script.steps(tables, "aliases"), start, stop))


def _shared(script: Script, steps: Sequence[Step], start: Fragment, stop: Fragment) -> dict[str, Any]:
    last = steps[-1].name if steps else Fragment("started")
    return {"started": script.started(start, stop), "steps": steps, "codes": script.codes, "last": last}


def chunk_statements(
    script: Script, tables: Tables, staged: Fragment, scratch: Sequence[Fragment], start: int, stop: int
) -> Iterator[Fragment]:
    """What draws the rows ``start`` to ``stop`` (of one chunk) variable by variable and stages them.

    ``scratch`` are three names of tables. Rows with their new values are kept before they are shuffled
    again: a positional join has one thread, a sort of a table has all.
    """
    work, shuffled, outcomes = scratch
    source = script.started(Fragment(str(start)), Fragment(str(stop)))
    group = start >> CHUNK_BITS << _GROUP_BITS
    for step in script.steps(tables, "stretches"):
        if step.fixed:
            source = render(
                "sample/look_up", source=source, parent=step.parent, relation=step.relation, words=step.words
            )
            continue
        yield render(
            "sample/shuffle",
            source=source,
            shuffled=shuffled,
            words=script.words,
            parent=step.parent,
            rank_bits=step.rank_bits,
        )
        yield render(
            "sample/outcomes",
            shuffled=shuffled,
            outcomes=outcomes,
            relation=step.relation,
            group=group,
            jitter_bits=step.jitter_bits,
        )
        yield render("sample/draw", work=work, shuffled=shuffled, outcomes=outcomes, words=step.words)
        source = Fragment(f"FROM {work}")
    yield render("sample/collect", staged=staged, source=source, codes=script.codes)
