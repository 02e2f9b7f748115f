"""Rows of units that go together: all units first, then rows given their unit.

Low variance never runs through a unit: among rows of one configuration, laid evenly over a distribution,
two of one unit would fall apart, and agree less than independent ones. So the rows of a configuration are
taken by their rank in their unit: every conditional count of a rank is within one of its expectation, and
rows of one unit are independent given the unit.

Where a row follows from the row before it, ranks are drawn one after another, all units at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpsyn_sql.domain.attributes import Attribute, edge_ticks
from dpsyn_sql.fit.arrays import Codes, IntArray
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import PLACES, UNIT, Families
from dpsyn_sql.rows.sample.lines import Columns, Lines
from dpsyn_sql.rows.sample.quotas import BATCH_ROWS, batch_sizes, code_type, generator_of
from dpsyn_sql.rows.sample.systematic import LOW_VARIANCE
from dpsyn_sql.rows.sample.ticks import Ticks

_ROWS, _ROUNDS = 2**32, 2**33
# Streams of rows and of rounds of rows drawn again; units have those below.

_AT_A_TIME = 2


class FamilyRows(NamedTuple):
    """Rows as codes (n, attributes that are written), unsigned; ``ticks`` (int64, n) of the attribute that
    orders them (any where it is NULL), None without one."""

    codes: Codes
    ticks: IntArray | None


@dataclass(frozen=True)
class People:
    """Units in ascending order of their number of rows: ``rows`` (int64, units). ``columns``: of each
    variable of units (units,). ``most``: rows that a unit has at most."""

    columns: Columns
    rows: IntArray
    most: int

    @property
    def sizes(self) -> IntArray:
        """int64 (most,): entry i is the number of units with i+1 rows."""
        return np.asarray(np.bincount(self.rows, minlength=self.most + 1)[1:])

    @cached_property
    def starts(self) -> IntArray:
        """The number of each unit's first row, and that of all rows."""
        return np.concatenate([[0], np.cumsum(self.rows)]).astype(np.int64)

    @property
    def total(self) -> int:
        """Rows of all units."""
        return int(self.starts[-1])

    def owners(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The unit of each of these rows, and their rank in it."""
        units = np.searchsorted(self.starts, rows, side="right") - 1
        return np.asarray(units), np.asarray(rows - self.starts[units])

    def firsts(self, rows: IntArray) -> IntArray:
        """Which (places) of these rows, ascending, are the first ones of their unit among them."""
        return np.asarray(np.unique(self.owners(rows)[0], return_index=True)[1])

    def until_end(self, rows: IntArray) -> IntArray:
        """These rows, each of another unit, and all that come after them in their units."""
        counts = self.starts[self.owners(rows)[0] + 1] - rows
        before = np.cumsum(counts) - counts - rows
        return np.asarray(np.arange(counts.sum()) - np.repeat(before, counts), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Before:
    """What is known of units before a rank is drawn. ``codes`` (units, written) of the row before, -1 before
    a first row. ``code``, ``tick``: of the last row whose ordering attribute is not NULL, -1 if there is
    none."""

    codes: IntArray
    code: IntArray
    tick: IntArray

    @classmethod
    def nothing(cls, units: int, written: int) -> Before:
        """Before the first rank."""
        none = np.full(units, -1, np.int64)
        return cls(np.full((units, written), -1, np.int64), none, np.zeros(units, np.int64))

    def of(self, kept: IntArray) -> Before:
        """Of some of the units."""
        return Before(self.codes[kept], self.code[kept], self.tick[kept])


@dataclass(frozen=True)
class FamilySampler:
    """Draws units and their rows: ``network`` with levels and evidence (``fit.levelled``) over the domain of
    ``families``."""

    network: Network
    families: Families
    drawn: str = field(default=f"{LOW_VARIANCE}, rows given their unit", init=False)

    @cached_property
    def _units(self) -> list[Lines]:
        return self._lines(lambda level: level == UNIT)

    @cached_property
    def _rows(self) -> list[Lines]:
        return self._lines(lambda level: level > UNIT)

    def _lines(self, wanted: Callable[[int], bool]) -> list[Lines]:
        network = self.network
        nodes = zip(network.nodes, network.levels, strict=True)
        return [Lines(node, network.sizes) for node, level in nodes if wanted(level)]

    @property
    def walks(self) -> bool:
        """Whether a row follows from the row before it."""
        families = self.families
        return bool(families.order or families.previous or families.place or families.since)

    def _place(self, name: str) -> int:
        return self.families.domain.index(name)

    def _attribute(self, name: str) -> Attribute:
        return self.families.domain.attributes[self._place(name)]

    @cached_property
    def _ticks(self) -> Ticks | None:
        families = self.families
        if not families.order:
            return None
        return Ticks(
            self._attribute(families.order), self._attribute(families.since) if families.since else None
        )

    def people(self, units: int, seed: int) -> People:
        """All units; deterministic in ``seed`` (not negative). units <= 0: none."""
        network, parts, numbers = self.network, list[Columns](), list[IntArray]()
        edges = np.array(edge_ticks(self._attribute(self.families.size)), np.int64)
        variable = network.codes[self._place(self.families.size)]
        needed = self._needed

        def batch(size: int, index: int) -> tuple[Columns, IntArray]:
            columns, generator = Columns(), generator_of(seed, index)
            for lines in self._units:
                lines.draw(columns, None, size, generator)
            code = columns.get(variable, np.zeros(size, np.int64))
            number = generator.integers(edges[code], edges[code + 1])
            kept = Columns()
            for v in needed & columns.keys():
                kept[v] = columns[v].astype(code_type(network.sizes[v]))
            return kept, number

        with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
            for columns, number in (
                pool.map(
                    batch, *zip(*((n, i) for i, n in enumerate(batch_sizes(units, BATCH_ROWS))), strict=True)
                )
                if units > 0
                else ()
            ):
                parts.append(columns)
                numbers.append(number)
        rows = np.concatenate([np.zeros(0, np.int64), *numbers])
        order = np.argsort(rows, kind="stable")
        joined = {v: np.concatenate([part[v] for part in parts])[order] for v in (parts[0] if parts else ())}
        return People(joined, rows[order], int(edges[-1]) - 1)

    @cached_property
    def _needed(self) -> frozenset[int]:
        """Variables of units that are written or that rows follow from."""
        parents = {parent for lines in self._rows for parent in lines.node.parents}
        return frozenset(parents | set(self.network.codes[: self.families.written]))

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Codes (n, written) of all rows of ``rows`` units, units whole and ascending by their rows."""
        for batch in self.rows(self.people(rows, seed), seed):
            yield batch.codes

    def rows(self, people: People, seed: int) -> Iterator[FamilyRows]:
        """All rows, unit by unit, in batches of whole units."""
        pending = deque[Future[FamilyRows]]()
        with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
            for index, (first, last) in enumerate(_batches(people.rows)):
                pending.append(
                    pool.submit(self._batch, people, first, last, generator_of(seed, _ROWS + index))
                )
                if len(pending) == _AT_A_TIME:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def _batch(self, people: People, first: int, last: int, generator: np.random.Generator) -> FamilyRows:
        units, rows = np.arange(first, last), people.rows[first:last]
        if not self.walks:
            numbers = np.arange(people.starts[first], people.starts[last])
            return self.independent(people, numbers, generator)
        return self.walk(
            people, units, np.zeros_like(units), Before.nothing(rows.size, self.families.written), generator
        )

    def generator_of_round(self, seed: int, attempt: int) -> np.random.Generator:
        """The stream of rows that are drawn again."""
        return generator_of(seed, _ROUNDS + attempt)

    def independent(self, people: People, numbers: IntArray, generator: np.random.Generator) -> FamilyRows:
        """The rows of these numbers, given their units."""
        units, ranks = people.owners(numbers)
        return FamilyRows(
            self._codes(self._drawn(people, units, ranks, Columns(), generator), units.size), None
        )

    def _drawn(
        self,
        people: People,
        units: IntArray,
        ranks: IntArray | None,
        columns: Columns,
        generator: np.random.Generator,
    ) -> Columns:
        """All variables of rows of these units; ``columns`` holds the evidence."""
        columns |= {variable: own[units] for variable, own in people.columns.items()}
        for lines in self._rows:
            lines.draw(columns, ranks, units.size, generator)
        return columns

    def _codes(self, columns: Mapping[int, Codes], rows: int) -> Codes:
        own = self.network.codes[: self.families.written]
        codes = np.zeros((rows, len(own)), code_type(max((self.network.sizes[v] for v in own), default=1)))
        for place, variable in enumerate(own):
            if variable in columns:  # otherwise it has one value
                codes[:, place] = columns[variable]
        return codes

    def walk(
        self,
        people: People,
        units: IntArray,
        ranks: IntArray,
        before: Before,
        generator: np.random.Generator,
    ) -> FamilyRows:
        """The rows of these units from these ranks on, unit by unit, given the rows before."""
        counts = people.rows[units] - ranks
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        codes = np.zeros((int(starts[-1]), self.families.written), np.int64)
        ticks = np.zeros(int(starts[-1]), np.int64)
        active, turn = np.flatnonzero(counts > 0), 0
        before = before.of(active)
        while active.size:
            owners = units[active]
            columns = self._drawn(
                people,
                owners,
                None,
                self._evidence(people.rows[owners], ranks[active] + turn, before),
                generator,
            )
            own = self._codes(columns, active.size).astype(np.int64)
            before = self._after(own, columns, before, generator)
            place = starts[active] + turn
            codes[place], ticks[place] = own, before.tick
            turn += 1
            left = np.flatnonzero(counts[active] > turn)
            active, before = active[left], before.of(left)
        dtype = code_type(
            max((self.network.sizes[v] for v in self.network.codes[: self.families.written]), default=1)
        )
        return FamilyRows(codes.astype(dtype), ticks if self._ticks is not None else None)

    def _evidence(self, rows: IntArray, ranks: IntArray, before: Before) -> Columns:
        """Working bins of what is known before rows of these ranks are drawn."""
        known, columns = dict[str, IntArray](), Columns()
        for name, attribute in self.families.previous:
            codes = before.codes[:, self._place(attribute)]
            known[name] = np.where(codes < 0, self._attribute(name).size - 1, codes)
        if self.families.place:
            known[self.families.place] = places(rows, ranks)
        for name, codes in known.items():
            columns[self._place(name)] = self.network.evidence[self._place(name)][codes]
        return columns

    def _after(
        self, codes: IntArray, columns: Columns, before: Before, generator: np.random.Generator
    ) -> Before:
        """What is known after rows of these codes (n, written), whose ordering code is raised, in place, to
        that of the row before."""
        ticks = self._ticks
        if ticks is None:
            return Before(codes, before.code, before.tick)
        own, found = self._place(self.families.order), before.tick.copy()
        if (recoding := ticks.order.recoding) is not None:  # NULL, where it is but noise
            lost = np.flatnonzero(np.isin(codes[:, own], recoding.codes))
            codes[lost, own] = generator.choice(recoding.instead, lost.size)
        known = codes[:, own] < ticks.order.regular
        codes[known, own] = np.maximum(codes[known, own], before.code[known])
        fresh, later = known & (before.code < 0), known & (before.code >= 0)
        found[fresh] = ticks.first(codes[fresh, own], generator)
        since = None
        if self.families.since:
            variable = self.network.codes[self._place(self.families.since)]
            since = columns.get(variable, np.zeros(later.size, np.int64))[later].astype(np.int64)
        found[later] = ticks.later(codes[later, own], before.tick[later], since, generator)
        return Before(codes, np.where(known, codes[:, own], before.code), found)


def places(rows: IntArray, ranks: IntArray) -> IntArray:
    """Codes of ``PLACES`` (n,) of rows of these ranks in units of so many rows."""
    only, first, middle, last = range(len(PLACES))
    found = np.where(ranks == 0, first, np.where(ranks == rows - 1, last, middle))
    return np.where(rows == 1, only, found)


def _batches(rows: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of units whose rows are about ``BATCH_ROWS``, at least a unit each."""
    ends, first = np.cumsum(rows), 0
    while first < rows.size:
        taken = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, taken + BATCH_ROWS, side="right")))
        yield first, last
        first = last
