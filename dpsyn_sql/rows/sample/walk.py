"""One walk over the nodes of a network, parents first: rows that are each by themselves, or below others.

Among the rows of one parent configuration each outcome gets its expected number, within one (low variance).

Rows below others are those of a person, or of a row of the table above; what is above them is drawn first.
Persons are the root of a tree, without columns of their own: the levels of units of the same network draw
them, each with its number of rows.

Low variance never runs through a unit: among rows of one configuration, laid evenly over a distribution,
two of one unit would fall apart, and agree less than independent ones. So the rows of a configuration are
taken by their rank in their unit: every conditional count of a rank is within one of its expectation, and
rows of one unit are independent given the unit.

A family is the rows of one person, or of one row of the parent. A unit may have several families in a table:
the rank in the unit counts on from one family to the next.

Where something orders the rows, the moments of all rows of a unit are drawn given the unit, as a chain in
which each follows the one before it as in the model (``sample.moments``). Where the model's table of the two
is too noisy for that, they are drawn independently and sorted. Either way they have the distribution that the
model gives them, whatever the number of rows. Where a row follows from the row before it, ranks are drawn one
after another, all units at once, given the moment of the rank too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute, edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, IntArray
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.network import Model, Network
from dpsyn_sql.planning.families import MOMENT, ROW, UNIT, Families
from dpsyn_sql.rows.sample.moments import MOST_OF_NODE, LinkedMoments, Succession
from dpsyn_sql.rows.sample.systematic import (
    BATCH_ROWS,
    LOW_VARIANCE,
    Batches,
    Columns,
    Lines,
    by_themselves,
    code_type,
    drawn_in_turn,
    generator_of,
    side_by_side,
    streams,
)
from dpsyn_sql.rows.sample.tables import FamilyRows, People, TableRows, places
from dpsyn_sql.rows.sample.ticks import NONE_BEFORE, Ticks

_ROWS, _ROUNDS, _MOMENTS = 2**32, 2**33, 2**34
# Streams of rows, of rounds of rows drawn again, and of moments; units have those below.


def codes_of_columns(
    columns: Mapping[int, Codes], variables: Sequence[int], sizes: Sequence[int], rows: int
) -> Codes:
    """Codes (rows, variables), of the smallest unsigned type; 0 of a variable that has no column."""
    dtype = code_type(max((sizes[variable] for variable in variables), default=1))
    codes = np.zeros((len(variables), rows), dtype)
    for place, variable in enumerate(variables):
        if variable in columns:  # otherwise it has one value
            codes[place] = columns[variable]
    return codes.T  # each column in one piece, as they are loaded


def network_rows(network: Network) -> Batches:
    """Rows of a network that are each by themselves.

    Raises:
        InternalError: a node has no line for the configuration of a row's parents.
    """

    def prepared(_: int) -> Callable[[int, np.random.Generator], Codes]:
        lines = [Lines(node, network.sizes) for node in network.nodes]

        def batch(size: int, generator: np.random.Generator) -> Codes:
            columns = drawn_in_turn(lines, {}, None, size, generator)
            return codes_of_columns(columns, network.codes, network.sizes, size)

        return batch

    return by_themselves(prepared, LOW_VARIANCE)


@dataclass(frozen=True)
class FamilySampler:
    """Draws rows below others: ``network`` with levels and evidence (``fit/elimination.py``) over the domain
    of ``families``. ``succession``: how a moment follows the one before it; None if moments are sorted."""

    network: Network
    families: Families
    succession: Succession | None = None
    drawn: ClassVar[str] = f"{LOW_VARIANCE}, rows given their unit"

    @cached_property
    def _units(self) -> list[Lines]:
        return self._lines(UNIT)

    @cached_property
    def _moments(self) -> list[Lines]:
        return self._lines(MOMENT) if self.families.order else []

    @cached_property
    def _rows(self) -> list[Lines]:
        return self._lines(ROW) if self.families.order else self._lines(MOMENT, ROW)

    def _lines(self, *wanted: int) -> list[Lines]:
        network = self.network
        nodes = zip(network.nodes, network.levels, strict=True)
        return [Lines(node, network.sizes) for node, level in nodes if level in wanted]

    @property
    def walks(self) -> bool:
        """Whether a row follows from the row before it."""
        families = self.families
        return bool(families.order or families.previous or families.place or families.since)

    def _index(self, name: str) -> int:
        return self.families.domain.index(name)

    def _attribute(self, name: str) -> Attribute:
        return self.families.domain.attributes[self._index(name)]

    @property
    def _moment(self) -> int:
        """The variable of the moments' codes."""
        return self.network.codes[self._index(self.families.order)]

    @cached_property
    def _ticks(self) -> Ticks | None:
        families = self.families
        if not families.order:
            return None
        return Ticks(
            self._attribute(families.order), self._attribute(families.since) if families.since else None
        )

    @cached_property
    def _linked(self) -> LinkedMoments | None:
        """What draws moments as a chain, None if they are sorted."""
        order, moments, sizes = self.families.order, self._moments, self.network.sizes
        if not order or not moments or self.families.kept or self.succession is None:
            return None
        variable = self._index(order)
        most = moments[0].known.size * sizes[variable]
        if variable not in moments[0].node.variables or most > MOST_OF_NODE:
            return None
        return LinkedMoments(self.succession, moments, variable, self._moment, sizes)

    def people(self, units: int, seed: int, evidence: Given | None = None) -> People:
        """What the rows are below, with the moments of the rows; deterministic in ``seed`` (not negative).
        So many persons (units <= 0: none), or the rows of a table above that are the ``evidence``.

        Raises:
            InternalError: rows of the parent are needed and missing, or given and not needed.
        """
        if bool(self.families.above) != (evidence is not None):
            raise InternalError("rows are drawn given rows above them, or there are none above")
        people = self._persons(units, seed) if evidence is None else self._parents(evidence)
        if not self._moments:
            return people
        if self._linked is not None:
            shares = np.ones(people.rows.size) if evidence is None else evidence.weights
            people = replace(people, chain=self._linked.chain(people, shares))
        return replace(people, moments=self._all_moments(people, seed))

    def _parents(self, evidence: Given) -> People:
        columns, needed = Columns(), self._needed
        for attribute in self.families.above:
            variable = self._index(attribute.name)
            if variable in needed:
                columns[variable] = self.network.evidence[variable][evidence.columns[attribute.name]]
        return People(columns, evidence.rows, before=evidence.ranks, kept=self._retained(evidence))

    def _retained(self, evidence: Given) -> Columns:
        """Working bins and codes of what rows keep, as far as it is known of their parent."""
        columns = Columns()
        for name in self.families.kept:
            variable, codes = self._index(name), evidence.columns[name]
            columns[variable] = np.where(codes < 0, -1, self.network.evidence[variable][codes])
            columns[self.network.codes[variable]] = codes
        return columns

    def _persons(self, units: int, seed: int) -> People:
        network, edges = self.network, np.array(edge_ticks(self._attribute(self.families.size)), np.int64)
        variable = network.codes[self._index(self.families.size)]
        needed = sorted(self._needed & {v for lines in self._units for v in lines.node.variables})

        def batch(size: int, generator: np.random.Generator) -> list[Codes]:
            columns = drawn_in_turn(self._units, {}, None, size, generator)
            code = columns.get(variable, np.zeros(size, np.int64))
            number = generator.integers(edges[code], edges[code + 1])
            narrow: list[Codes] = [columns[v].astype(code_type(network.sizes[v])) for v in needed]
            return [number, *narrow]

        batches = side_by_side(partial(batch, *stream) for stream in streams(units, BATCH_ROWS, seed))
        none = [np.zeros(0, np.int64) for _ in range(1 + len(needed))]
        number, *drawn = map(np.concatenate, zip(none, *batches, strict=True))
        return People(dict(zip(needed, drawn, strict=True)), number)

    @cached_property
    def _needed(self) -> frozenset[int]:
        """Variables of units and moments that are written or that something follows from."""
        parents = {parent for lines in (*self._moments, *self._rows) for parent in lines.node.parents}
        return frozenset(parents | set(self._written))

    def _all_moments(self, people: People, seed: int) -> Columns:
        """The moments of all rows, in batches of whole units."""

        def batch(index: int, first: int, last: int) -> Columns:
            numbers = np.arange(people.starts[first], people.starts[last])
            return self._in_order(
                people, numbers, self._drawn_moments(people, numbers, generator_of(seed, _MOMENTS + index))
            )

        ranges = list(_batches(people.rows)) or [(0, 0)]
        batches = list(side_by_side(partial(batch, index, *ends) for index, ends in enumerate(ranges)))
        return {v: np.concatenate([part[v] for part in batches]) for v in batches[0]}

    def _drawn_moments(self, people: People, numbers: IntArray, generator: np.random.Generator) -> Columns:
        """Moments for the rows of these numbers, given their units: as a chain from that of the row before
        on, or in no order. Of each unit the rows are consecutive, up to its last."""
        units, ranks = people.owners(numbers)
        columns = {v: column[units] for v, column in people.columns.items()}
        left = self._moments
        if self._linked is not None and people.chain is not None:
            columns[self._linked.variable] = self._linked.bins(people, people.chain, numbers, generator)
            left = self._linked.after
        drawn_in_turn(left, columns, people.in_unit(units, ranks), units.size, generator)
        code, recoding = self._moment, self._attribute(self.families.order).recoding
        if recoding is not None:  # NULL, where it is but noise
            lost = np.flatnonzero(np.isin(columns[code], recoding.codes))
            columns[code][lost] = generator.choice(recoding.instead, lost.size)
        drawn = (v for lines in self._moments for v in lines.node.variables if v in self._needed)
        return {v: columns[v].astype(code_type(self.network.sizes[v])) for v in drawn}

    def _in_order(self, people: People, numbers: IntArray, moments: Columns) -> Columns:
        """Moments for the rows of these numbers, ascending by code in each unit."""
        order = np.lexsort((moments[self._moment], people.owners(numbers)[0]))
        return {v: column[order] for v, column in moments.items()}

    def draw_moments_again(
        self, people: People, rows: IntArray, ranks: IntArray, generator: np.random.Generator
    ) -> None:
        """Draw the moments of these rows, each of another unit, and of all after them in their units again,
        in place. A moment before that of the row before stays what it was: the others have the distribution
        that the model gives them from there on. Those of a chain follow the row before."""
        if not people.moments:
            return
        numbers = people.until_end(rows)
        redrawn = self._drawn_moments(people, numbers, generator)
        least = np.where(ranks > 0, people.moments[self._moment][rows - 1], 0)
        least = np.repeat(least, people.rows[people.owners(rows)[0]] - ranks)
        stays = redrawn[self._moment] < least
        for v, column in redrawn.items():
            column[stays] = people.moments[v][numbers[stays]]
        for v, column in self._in_order(people, numbers, redrawn).items():
            people.moments[v][numbers] = column

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Codes (n, drawn) of all rows of ``rows`` persons, each person's together."""
        for batch in self.rows(self.people(rows, seed), seed):
            yield batch.codes

    def rows(self, people: People, seed: int) -> Iterator[FamilyRows]:
        """All rows, unit by unit, in batches of whole units."""
        return side_by_side(
            partial(self._batch, people, first, last, generator_of(seed, _ROWS + index))
            for index, (first, last) in enumerate(_batches(people.rows))
        )

    def _batch(self, people: People, first: int, last: int, generator: np.random.Generator) -> FamilyRows:
        units, rows = np.arange(first, last), people.rows[first:last]
        if not self.walks:
            numbers = np.arange(people.starts[first], people.starts[last])
            return self.independent(people, numbers, generator)
        return self.walk(
            people, units, np.zeros_like(units), FamilyRows.nothing(rows.size, self.families.drawn), generator
        )

    def again(
        self, people: People, rows: IntArray, before: FamilyRows, seed: int, attempt: int
    ) -> tuple[IntArray, FamilyRows]:
        """Rows of these numbers, drawn again, and their numbers. Of a walk they are each of another unit, and
        all after them in their units are drawn again too; ``before``: what came before them."""
        generator = generator_of(seed, _ROUNDS + attempt)
        if not self.walks:
            return rows, self.independent(people, rows, generator)
        units, ranks = people.owners(rows)
        self.draw_moments_again(people, rows, ranks, generator)
        return people.until_end(rows), self.walk(people, units, ranks, before, generator)

    def independent(self, people: People, numbers: IntArray, generator: np.random.Generator) -> FamilyRows:
        """The rows of these numbers, given their units."""
        units, ranks = people.owners(numbers)
        columns = self._drawn(people, units, people.in_unit(units, ranks), Columns(), generator)
        return FamilyRows(self._codes(columns, units.size), np.zeros(units.size, np.int64))

    def _drawn(
        self,
        people: People,
        units: IntArray,
        ranks: IntArray | None,
        columns: Columns,
        generator: np.random.Generator,
    ) -> Columns:
        """All variables of rows of these units; ``columns`` holds the evidence."""
        columns |= {variable: column[units] for variable, column in people.columns.items()}
        for lines in self._rows:
            lines.draw(columns, ranks, units.size, generator)
            for variable in people.kept.keys() & set(lines.node.variables):
                retained = people.kept[variable][units]
                columns[variable] = np.where(retained < 0, columns[variable], retained)
        return columns

    def _codes(self, columns: Mapping[int, Codes], rows: int) -> Codes:
        return codes_of_columns(columns, self._written, self.network.sizes, rows)

    @property
    def _written(self) -> tuple[int, ...]:
        """The variables of the attributes that are drawn, in domain order."""
        return self.network.codes[: self.families.drawn]

    def walk(
        self,
        people: People,
        units: IntArray,
        ranks: IntArray,
        before: FamilyRows,
        generator: np.random.Generator,
    ) -> FamilyRows:
        """The rows of these units from these ranks on, unit by unit, given the rows before."""
        counts = people.rows[units] - ranks
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        codes = codes_of_columns({}, self._written, self.network.sizes, int(starts[-1]))
        ticks = np.zeros(int(starts[-1]), np.int64)
        active, turn = np.flatnonzero(counts > 0), 0
        in_bin = self._left_in_bin(people, people.starts[units[active]] + ranks[active])
        before = before.of(active)
        while active.size:
            owners = units[active]
            rank = ranks[active] + turn
            evidence = self._evidence(people.rows[owners], rank, before)
            evidence |= {v: column[people.starts[owners] + rank] for v, column in people.moments.items()}
            in_unit = None if people.before is None else people.in_unit(owners, rank)
            columns = self._drawn(people, owners, in_unit, evidence, generator)
            codes_of_rank = self._codes(columns, active.size).astype(np.int64)
            rows_of_rank = starts[active] + turn
            before = self._after(codes_of_rank, columns, before, in_bin[rows_of_rank], generator)
            codes[rows_of_rank], ticks[rows_of_rank] = codes_of_rank, before.ticks
            turn += 1
            left = np.flatnonzero(counts[active] > turn)
            active, before = active[left], before.of(left)
        return FamilyRows(codes, ticks)

    def _evidence(self, rows: IntArray, ranks: IntArray, before: FamilyRows) -> Columns:
        """Working bins of what is known before rows of these ranks are drawn."""
        codes_before, columns = dict[str, IntArray](), Columns()
        for name, attribute in self.families.previous:
            codes = before.codes[:, self._index(attribute)]
            codes_before[name] = np.where(codes < 0, self._attribute(name).size - 1, codes)
        if self.families.place:
            codes_before[self.families.place] = places(rows, ranks)
        for name, codes in codes_before.items():
            columns[self._index(name)] = self.network.evidence[self._index(name)][codes]
        return columns

    def _left_in_bin(self, people: People, rows: IntArray) -> IntArray:
        """Of these rows, each of another unit, and all that come after them in their units: how many rows
        from each on have its moment."""
        numbers = people.until_end(rows)
        units = people.owners(numbers)[0]
        moments = people.moments.get(self._moment) if people.moments and self.families.order else None
        ends = np.append(units[1:] != units[:-1], True)
        if moments is not None:
            ends[:-1] |= np.diff(moments[numbers].astype(np.int64)) != 0
        last = np.flatnonzero(ends)
        places = np.arange(numbers.size)
        return np.asarray(last[np.searchsorted(last, places)] - places + 1)

    def _after(
        self,
        codes: IntArray,
        columns: Columns,
        before: FamilyRows,
        in_bin: IntArray,
        generator: np.random.Generator,
    ) -> FamilyRows:
        """What is known after rows of these codes (n, drawn); ``in_bin``: as of ``_left_in_bin``."""
        ticks = self._ticks
        if ticks is None:
            return FamilyRows(codes, before.ticks)
        order, ticks_after = self._index(self.families.order), before.ticks.copy()
        dated = codes[:, order] < ticks.order.regular
        since = None
        if self.families.since:
            variable = self.network.codes[self._index(self.families.since)]
            since = columns.get(variable, np.zeros(dated.size, np.int64))[dated].astype(np.int64)
        tick_before = np.where(before.codes[:, order] < 0, NONE_BEFORE, before.ticks)
        ticks_after[dated] = ticks.draw(
            codes[dated, order], tick_before[dated], since, in_bin[dated], generator
        )
        return FamilyRows(codes, ticks_after)


def _batches(rows: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of units whose rows are about ``BATCH_ROWS``, at least a unit each."""
    ends, first = np.cumsum(rows), 0
    while first < rows.size:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + BATCH_ROWS, side="right")))
        yield first, last
        first = last


def drawn_rows(model: Model, families: Families, above: TableRows | None, units: int, seed: int) -> TableRows:
    """Rows of a table, drawn and not written: what questions about the tables below it depend on.

    ``above``: the rows of the parent, None for the root, of which there are ``units``. Deterministic in
    ``seed`` (not negative).
    """
    sampler = model.sampler()
    if above is None or not isinstance(sampler, FamilySampler):
        return TableRows.root(families, _joined(sampler.batches(units, seed), families))
    people = sampler.people(0, seed, above.given(families, seed))
    codes = _joined((batch.codes for batch in sampler.rows(people, seed)), families)
    return TableRows.below(above, families, people, codes)


def _joined(batches: Iterable[Codes], families: Families) -> Codes:
    return np.concatenate([np.zeros((0, families.drawn), np.uint8), *batches])
