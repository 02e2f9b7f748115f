"""The queries that draw the rows of a table, as text, and codes packed into 64-bit words.

Rows are each by themselves; or they lie below others: below persons, which the same network draws first, or
below the rows of the table above. These are those of the same seed, so the tables of one seed fit together.

Random bits of a row, a node and a purpose are ``hash(xor(row, hash('<node>|<purpose>|<seed>')))``: the hash
of several arguments would leave the bits of nodes dependent on each other. Of rows below others the row is
parent * stride + p, for the p-th row of a family, p from 1 on, and the seed has the name of the table. Such
rows are independent given the row above. Or they are walks: moments are independent given the row above, and
sorted, then a recursive query draws rows place by place. In the end rows are numbered from 0 on without
holes, in the order of their parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise

from dpsyn_sql.attributes.attribute import Attribute, edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.network import Network, Node, configurations, slot_bits_of
from dpsyn_sql.planning.families import ALONE, MOMENT, PLACES, ROW, Families
from dpsyn_sql.planning.families import UNIT as PERSON
from dpsyn_sql.rows.sample.ticks import Ticks, chosen, whole
from dpsyn_sql.sqltext.fragments import Fragment, code_type, comma, string_literal
from dpsyn_sql.sqltext.render import render

UNIT = 2**32
"""Probability 1. Ranks below 2^31 times it fit a BIGINT."""

PARENT_BITS = 40
"""Bits of the number of a parent configuration; above them stands the number of a chunk."""

WORD = 63
"""Bits of a word that are used: DuckDB takes a one shifted into the highest bit for an overflow."""

CHUNK_BITS = 20
"""Low-variance rows are ranked among the 2^20 of their chunk."""

MOST_NODES = 120
"""Nodes that one query draws: each is a few levels of nesting, and DuckDB gives up beyond a thousand."""

MOST_ON_WAY = 160
"""The same of all tables from the root of a tree down to one, drawn by one query: planned in ten seconds."""

_ALL, _TICK = Fragment("TRUE"), Fragment("tick")
_BESIDE = (_TICK, Fragment("in_bin"))
# Beside the words while rows are drawn: the tick of the row before; how many rows of the unit are in the bin,
# this one and later ones.


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable's value is: ``bits`` wide, ``shift`` from the low end of word ``word``."""

    word: int
    shift: int
    bits: int

    @property
    def value(self) -> str:
        """SQL: the value, unpacked."""
        return f"(w{self.word} >> {self.shift}) & {2**self.bits - 1}"


Layout = tuple[Place | None, ...]


def layout(network: Network) -> Layout:
    """The place of every variable, None where there is only one value.

    In drawing order: parents are then often neighbours, read together. The variables of a node share a word.

    Raises:
        InternalError: those of a node do not fit a word.
    """
    groups = [*((known,) for known in network.evidence), *(node.variables for node in network.nodes)]
    widths = [[(network.sizes[variable] - 1).bit_length() for variable in group] for group in groups]
    places = dict(zip(chain(*groups), _side_by_side(widths), strict=True))
    return tuple(places.get(variable) for variable in range(len(network.sizes)))


def _side_by_side(groups: Iterable[Sequence[int]], word: int = 0) -> Iterator[Place]:
    """Places of so many bits each, from a word on; those of a group share a word."""
    shift = 0
    for widths in groups:
        if sum(widths) > WORD:
            raise InternalError("more variables are drawn together than can be packed")
        if shift + sum(widths) > WORD:
            word, shift = word + 1, 0
        for bits in widths:
            yield Place(word, shift, bits)
            shift += bits


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


@dataclass(frozen=True, slots=True)
class Passed:
    """A whole number, of at most so many ``bits``, of the rows above that the query gives too: from column
    ``source`` of the rows of the parent, as ``column``."""

    source: str
    column: str
    bits: int = WORD


@dataclass(frozen=True)
class Script:
    """How the rows of a table are drawn: of a network, by a seed (an expression, the same for all rows).

    ``families``: how rows go together, over whose domain the network then has levels. ``above``: by the name
    of an attribute above, the column of the parent's rows with its code: of all that are evidence, and of the
    number of rows of a family. None of rows of persons, which are drawn. ``passed``: what tables below need
    of the rows above.
    """

    network: Network
    seed: Fragment
    families: Families = ALONE
    above: Mapping[str, str] | None = None
    passed: tuple[Passed, ...] = ()

    # -- the network ------------------------------------------------------------------------------------

    @cached_property
    def places(self) -> Layout:
        """Of all variables."""
        return layout(self.network)

    @cached_property
    def _places_passed(self) -> list[Place]:
        """Where what is passed is, in words of its own."""
        first = 1 + max((at.word for at in self.places if at), default=0)
        return [*_side_by_side(([number.bits] for number in self.passed), first)]

    @property
    def words(self) -> list[Fragment]:
        """Names of the packed words; below others the last one is how many rows stand before the family."""
        last = max((at.word for at in (*self.places, *self._places_passed) if at), default=0)
        return [Fragment(f"w{word}") for word in range(1 + last + (not self.families.by_themselves))]

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
        return "0" if place is None else place.value

    def steps(self, tables: Tables, level: int | None = None) -> list[Step]:
        """One step a node; of the nodes of one ``level``, by themselves in a query."""
        levels = self.network.levels
        numbers = [n for n in range(len(self.network.nodes)) if level is None or levels[n] == level]
        return [self._step(number, tables, numbers[0]) for number in numbers]

    def _step(self, number: int, tables: Tables, first: int) -> Step:
        """The step of a node; that of node ``first`` comes first in its query."""
        node = self.network.nodes[number]
        place, slot_bits = place_of(node.variables[0], self.places), slot_bits_of(node)
        bits = sum(place_of(variable, self.places).bits for variable in node.variables)
        lists, columns = self._lists(number, tables, bits)
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
            render("sample/stretches", slot_bits=slot_bits, lines=self._lines(number, tables)),
            lists,
            tuple(columns),
            slot_bits,
            bits if len(columns) == 1 else 0,
            *(
                Fragment(f"hash({string_literal(f'{node.label}|{purpose}|')} || {self.seed})")
                for purpose in ("rank", "jitter", "value")
            ),
        )

    def _parent(self, node: Node) -> Fragment:
        """The number of the parents' configuration."""
        terms = [
            f"({self.value(parent)}) * {stride}"
            for parent, stride in zip(node.parents, strides(node, self.network.sizes), strict=True)
        ]
        return Fragment(f"({' + '.join(terms)})" if terms else "CAST(0 AS UBIGINT)")

    def _lines(self, number: int, tables: Tables) -> Fragment:
        return render(
            "sample/lines",
            table=tables.table,
            condition=Fragment(f"{tables.condition} AND node = {number}"),
            packed=Fragment(packed(self.network.nodes[number], self.network.sizes, self.places)),
        )

    def _lists(self, number: int, tables: Tables, bits: int) -> tuple[Fragment, list[Fragment]]:
        """The alias table of a node in lists, and their names; ``bits``: of packed values."""
        threshold = UNIT.bit_length() - slot_bits_of(self.network.nodes[number])  # its bits
        packed = threshold + 2 * bits <= WORD
        names = ["entries"] if packed else ["thresholds", "own", "aliases"]
        columns = [Fragment(f"{name}{number}") for name in names]
        if tables.lists is not None:
            return Fragment(f"(SELECT {comma(columns)} FROM {tables.lists})"), columns
        slots = Fragment(f"(\n{self._slots(number, tables)}\n)")
        if tables.slots is not None:
            slots = Fragment(f"{tables.slots} WHERE node = {number}")
        if not packed:
            return render("sample/lists", type=code_type(2**bits), slots=slots, columns=columns), columns
        words = render("sample/entries", slots=slots, column=columns[0], threshold_bits=threshold, bits=bits)
        return words, columns

    def _slots(self, number: int, tables: Tables) -> Fragment:
        node = self.network.nodes[number]
        return render(
            "sample/slots",
            number=number,
            lines=self._lines(number, tables),
            slot_bits=slot_bits_of(node),
            configurations=configurations(node, self.network.sizes),
        )

    def slots(self, tables: Tables) -> list[Fragment]:
        """One query a node: its alias table, with the columns node, position, threshold, value, alias."""
        return [self._slots(number, tables) for number in range(len(self.network.nodes))]

    # -- rows of a root ---------------------------------------------------------------------------------

    def low_variance(self, number: Fragment, tables: Tables) -> Fragment:
        """One query for so many rows, or the rows of so many persons, these balanced by chunks: columns row,
        a0, a1, ...; of persons those of ``below``."""
        steps, columns = self._root(tables)
        started = render("sample/start", numbers=Fragment(f"range(0, {number})"), words=self.words, steps=[])
        return self._complete(_drawn("low_variance", started, steps, columns), tables)

    def iid(self, number: Fragment, tables: Tables, first: int | Fragment = 0, ordered: int = 0) -> Fragment:
        """The same, all independent of each other, numbered from ``first`` (and in this order if ``ordered``
        is 1)."""
        steps, columns = self._root(tables)
        numbers = render("sample/numbers", first=first, rows=number, steps=steps)
        started = render("sample/start", numbers=numbers, words=self.words, steps=steps)
        return self._complete(_drawn("iid", started, steps, columns, ordered), tables)

    def _root(self, tables: Tables) -> tuple[list[Step], list[Fragment]]:
        """The steps to the rows of a root, or to persons, and the columns that come out of them."""
        if self.families.by_themselves:
            return self.steps(tables), self.codes
        return self.steps(tables, PERSON), self.words

    def _complete(self, drawn: Fragment, tables: Tables) -> Fragment:
        return drawn if self.families.by_themselves else self.below(drawn, tables)

    # -- rows below others ------------------------------------------------------------------------------

    @property
    def stride(self) -> int:
        """What the number of a unit is multiplied by in those of its rows."""
        return int(edge_ticks(self._attribute(self.families.size))[-1])

    def _index(self, name: str) -> int:
        return self.families.domain.index(name)

    def _attribute(self, name: str) -> Attribute:
        return self.families.domain.attributes[self._index(name)]

    def _code(self, name: str) -> str:
        return whole(self.value(self.network.codes[self._index(name)]))

    def below(self, parents: Fragment, tables: Tables) -> Fragment:
        """One query for the rows: columns row, parent, rank, a0, a1, ... of all that is drawn, those of
        ``passed``, and t if rows are ordered.

        Args:
            parents: query of persons: row, w0, w1, ...; or of the rows above: row, and the columns of
                ``above`` and ``passed``.
            tables: where the distributions are.
        """
        families, size = self.families, self.families.size
        code = self._code(size) if self.above is None else whole(self.above[size])
        words = [Fragment(word) for word in self._words_above()]
        given = render("sample/given", parents=parents, number=self._number(code), words=words)
        started = render("sample/family_rows", given=given, words=self.words, stride=self.stride)
        walks = families.order or families.previous or families.place or families.since
        drawn = (
            self._walk(started, tables) if walks else _beside(started, self.steps(tables, ROW), self._written)
        )
        codes = [f"a{place}" for place in range(families.drawn)] + [number.column for number in self.passed]
        names = [Fragment(name) for name in (*codes, *(["t"] if families.order else []))]
        return render("sample/numbered", drawn=drawn, stride=self.stride, codes=names)

    def _words_above(self) -> Iterator[str]:
        """The words of a family before its rows are drawn."""
        terms: list[list[str]] = [[word] if self.above is None else [] for word in self.words]
        for name, column in (self.above or {}).items():
            variable = self._index(name)
            if variable in self.network.evidence:
                self._add_evidence(terms, variable, whole(column))
        for number, place in zip(self.passed, self._places_passed, strict=True):
            terms[place.word].append(f"(CAST({number.source} AS UBIGINT) << {place.shift})")
        terms[-1] = ["CAST(sofar AS UBIGINT)"]
        for word, summands in enumerate(terms):
            yield f"{' | '.join(summands) or 'CAST(0 AS UBIGINT)'} AS w{word}"

    def _add_evidence(self, terms: list[list[str]], variable: int, code: str) -> None:
        """Add to the words what a code that is known puts into them."""
        place = self.places[variable]
        if place is not None:
            value = chosen(self.network.evidence[variable], code)
            terms[place.word].append(f"(CAST({value} AS UBIGINT) << {place.shift})")

    def _walk(self, started: Fragment, tables: Tables) -> Fragment:
        """Rows of families, one after the other: ``started`` has the columns row, w0, w1, ..."""
        families, sources = self.families, self.steps(tables, ROW)
        steps = [
            replace(step, words=(*step.words, *_BESIDE), lists=Fragment(f"lists{number}"))
            for number, step in enumerate(sources)
        ]
        drawn, codes, tick = _beside(self._next(), steps, [*self.words, *_BESIDE]), self._written, _TICK
        if families.order:
            own = self._code(families.order)
            drawn = Fragment(f"SELECT\n    *,\n    {own} AS own\nFROM (\n{drawn}\n)")
            codes, tick = [*codes, Fragment("tick AS t")], self._tick(families.order)
        return render(
            "sample/walk",
            words=self.words,
            stride=self.stride,
            lists=[(step.lists, source.lists) for step, source in zip(steps, sources, strict=True)],
            moments=self._in_order(_beside(started, self.steps(tables, MOMENT), self.words)),
            drawn=drawn,
            tick=tick,
            codes=codes,
        )

    def _number(self, code: str) -> Fragment:
        """How many rows a unit has, by the code of its size: even within its bin."""
        edges = edge_ticks(self._attribute(self.families.size))
        first = chosen(edges[:-1], code)
        if edges[-1] - edges[0] == len(edges) - 1:
            return Fragment(first)
        width = chosen([high - low for low, high in pairwise(edges)], code)
        bits = self._bits(self.families.size, "rows")
        return Fragment(f"({first} + CAST((({bits} >> 32) * CAST({width} AS UBIGINT)) >> 32 AS BIGINT))")

    def _bits(self, name: str, purpose: str) -> str:
        return row_bits(name, purpose, self.seed)

    @property
    def _written(self) -> list[Fragment]:
        """Codes that are drawn, and what is passed."""
        passed = [
            Fragment(f"{whole(at.value)} AS {number.column}")
            for number, at in zip(self.passed, self._places_passed, strict=True)
        ]
        return [*self.codes[: self.families.drawn], *passed, Fragment(f"{whole(self.words[-1])} AS sofar")]

    def _in_order(self, moments: Fragment) -> Fragment:
        """Rows with their moments, numbered in the order of the moments."""
        words, moment = self.words, "0"
        if self.families.order:
            order = self._attribute(self.families.order)
            variable = self.network.codes[self._index(order.name)]
            moment, place = self._code(order.name), self.places[variable]
            if place is not None and (recoding := order.recoding) is not None:  # NULL, where it is but noise
                drawn = f"(({self._bits(order.name, 'instead')} >> 32) * {len(recoding.instead)}) >> 32"
                instead = chosen(recoding.instead, whole(drawn))
                lost = ", ".join(map(str, recoding.codes))
                moment = f"CASE WHEN {moment} IN ({lost}) THEN {instead} ELSE {moment} END"
                others = 2**64 - 1 - (2**place.bits - 1 << place.shift)
                words[place.word] = Fragment(
                    f"(w{place.word} & CAST('{others}' AS UBIGINT)) | (CAST(own AS UBIGINT) << {place.shift})"
                )
        columns = [Fragment(f"{word} AS m{number}") for number, word in enumerate(words)]
        return render(
            "sample/moments", drawn=moments, own=Fragment(moment), columns=columns, stride=self.stride
        )

    def _next(self) -> Fragment:
        """Rows before they are drawn: numbers, the words of their unit and moment, what is known before."""
        terms = [[f"m{word}"] for word in range(len(self.words))]
        for variable, code in self._known():
            self._add_evidence(terms, variable, code)
        words = [f"    {' | '.join(summands)} AS w{word}" for word, summands in enumerate(terms)]
        columns = ",\n".join([*words, *(f"    {column}" for column in _BESIDE)])
        return Fragment(
            f'SELECT\n{columns},\n    CAST(number AS UBIGINT) AS "row"\nFROM walk\n'
            'INNER JOIN moments\n    ON number = "row" + 1'
        )

    def _known(self) -> Iterator[tuple[int, str]]:
        """Evidence variables and the codes that are known of them, from the row before at its place."""
        families, place = self.families, f'("row" % {self.stride})'
        for name, attribute in families.previous:
            none = self._attribute(name).size - 1
            yield self._index(name), f"(CASE WHEN {place} = 0 THEN {none} ELSE {self._code(attribute)} END)"
        if families.place:
            only, first, middle, last = range(len(PLACES))
            yield (
                self._index(families.place),
                f"(CASE WHEN n = 1 THEN {only} WHEN {place} = 0 THEN {first} WHEN {place} = n - 1 "
                f"THEN {last} ELSE {middle} END)",
            )

    def _tick(self, name: str) -> Fragment:
        """The tick of a row from that of the row before."""
        since = self.families.since
        ticks = Ticks(self._attribute(name), self._attribute(since) if since else None)
        bits, alone = self._bits(name, "tick"), self._bits(name, "position")
        return ticks.expression(f'"row" % {self.stride} = 1', bits, alone, self._code(since) if since else "")


def _drawn(
    how: str, started: Fragment, steps: Sequence[Step], codes: Sequence[Fragment], ordered: int = 0
) -> Fragment:
    """The query that takes rows through all steps: the columns row and ``codes``."""
    last = steps[-1].name if steps else Fragment("started")
    return render(
        f"sample/{how}",
        started=started,
        steps=steps,
        codes=codes,
        last=last,
        chunk_bits=CHUNK_BITS,
        ordered=ordered,
    )


def _beside(rows: Fragment, steps: Sequence[Step], codes: Sequence[Fragment]) -> Fragment:
    """The query that takes rows of families through all steps."""
    return _drawn("iid", render("sample/beside", rows=rows, steps=steps), steps, codes)


def row_bits(name: str, purpose: str, seed: Fragment, row: str = '"row"') -> Fragment:
    """64 random bits of a row, an attribute and a purpose."""
    text = string_literal(f"{name}|{purpose}|")
    return Fragment(f"hash(xor(CAST({row} AS UBIGINT), hash({text} || {seed})))")
