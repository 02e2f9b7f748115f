"""How to count the wanted marginals at the lowest cost; only public facts decide.

Five strategies:

- ``scan``: all marginals are one-way; they come directly from the source, one scan for every
  63 attributes.
- ``encoded``: the source is encoded once to a temporary table of small integer codes, then one
  GROUP BY per (maximal) marginal.
- ``packed``: the same, with several small attributes packed into one mixed-radix column. Grouping
  by sets of packs gives many marginals at once; they are summed out in numpy.
- ``read``: the packed codes are read, and numpy counts the same groups (``private/count/sums.py``). For
  many pairs of attributes, where the rows are at hand.
- ``products``: the codes are read, and all pairs counted by products of matrices. For pairs of small
  attributes.

If the rows of a privacy unit are bounded, ``scan`` is not used: the codes of whole rows decide once, in
the encoded table, which rows count, so that all marginals count the same rows.

The plan never uses a number of rows (that is private): costs are per row of the source.

Cost model, measured on 2 cores with DuckDB 2.0 over 4 million rows of uniform codes (nanoseconds
of wall time per row of the encoded table, by the number of cells of the GROUP BY)::

    2^8 cells   2^12   2^14   2^16   2^18   2^20   2^22   2^24
          3.0    4.5    6.0    9.0   25     52     83     95

Up to 2^12 cells DuckDB counts in a plain array, up to about 2^16 its hash table stays in the
processor's cache. Beyond that each row costs a cache miss. Every statement costs about 1 ms,
and a cell of its result about 30 ns to fetch, scatter and sum out. To add codes that
were read to an array takes one processor 3 ns up to 2^12 cells, 5 at 2^16, 10 at 2^18, 23 at 2^24.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError, PlanTooLarge
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count import sums
from dpsyn_sql.private.count.sums import Pack

Strategy = Literal["scan", "encoded", "packed", "read", "products"]

MAX_MARGINAL_CELLS = 2**24
"""Cells of one marginal, and of one GROUP BY: 128 MB of int64. Beyond it almost every cell of a
real table is empty, so the answer would be nothing but noise."""

MAX_TOTAL_CELLS = 2**26
"""Cells of all marginals together with the largest GROUP BY result: 512 MB of int64 held at once,
and about 12 minutes of drawing noise."""

SCAN_ATTRIBUTES = 63
"""Attributes counted by one scan: bounds the hash tables that live at the same time, and
engines that number grouping sets by bits (GROUPING) stop at 63."""

_LOG_CELLS = (8.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0)
_NANOSECONDS_PER_ROW = (3.0, 4.5, 6.0, 9.0, 25.0, 52.0, 83.0, 95.0)
_NANOSECONDS_PER_READ_ROW = (2.9, 3.0, 4.0, 5.0, 10.0, 13.0, 18.0, 23.0)
_NANOSECONDS_PER_CELL = 30.0
_NANOSECONDS_PER_STATEMENT = 1e6
_REFERENCE_ROWS = 1e6  # a constant, so that cells and statements can be weighed against rows
_PACK_CAPACITIES = tuple(2**bits for bits in (4, 5, 6, 7, 8, 10, 12, 14, 16))
_PACK_CODES = 2**8
# Of a pack that is read: counts of two packs fit into the cache of a processor.
_FEWEST_PAIRS = 1_000
# That are read; fewer take little time either way.
_WORST_SHOWN = 3
_NAME_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Group:
    """One GROUP BY over ``packs`` (positions in the plan's packs, ascending) with ``cells`` cells,
    and the marginals that are taken from its result."""

    packs: tuple[int, ...]
    cells: int
    queries: tuple[MarginalQuery, ...]


@dataclass(frozen=True, slots=True)
class CountingPlan:
    """How to count the marginals of a plan; public.

    ``packs`` are positions of attributes in the domain; together they hold every attribute of the
    queries exactly once. Within a pack the first attribute is the most significant digit. There are no
    ``groups`` if products count. ``cells`` is the number of cells of all marginals together. ``bounded``
    says that the encoded table holds no more rows of a privacy unit than its bound, ``weighted`` that each
    has a weight.
    """

    strategy: Strategy
    domain: Domain
    packs: tuple[tuple[int, ...], ...]
    groups: tuple[Group, ...]
    cells: int
    reason: str
    bounded: bool = False
    weighted: bool = False

    @property
    def largest_group(self) -> int:
        """Cells of the largest group."""
        return max((group.cells for group in self.groups), default=0)

    @property
    def seconds_per_million_rows(self) -> float:
        """Estimate on 2 cores, without encoding."""
        if self.strategy == "products":
            return sums.nanoseconds_per_row(self.indicators, weighted=self.weighted) / 1e3
        if self.strategy == "read":
            return _nanoseconds_of_reading(self.groups) / 1e3
        return _cost(group.cells for group in self.groups) / 1e9

    @property
    def indicators(self) -> int:
        """Codes of the attributes but their first ones."""
        return sum(self.domain.attributes[place].size - 1 for pack in self.packs for place in pack)

    def describe(self, together: int | None = None) -> list[str]:
        """Lines for people: what runs and why. ``together``: cells of marginals that may be asked for later;
        they need the encoded table."""
        if self.strategy == "scan" and together is not None:
            lines = ["Counting    encoded (one-way marginals, then those that noisy answers lead to)"]
        else:
            lines = [f"Counting    {self.strategy} ({self.reason})"]
        if self.bounded:
            lines.append(
                "  the encoded table leaves out rows of a privacy unit beyond its bound, and rows without a "
                "unit; so nothing is counted directly from the source"
            )
        if self.strategy != "scan":
            lines += [f"  column p{i}: {self._pack_text(pack)}" for i, pack in enumerate(self.packs)]
            way = _plural(len(self.groups), "array" if self.strategy == "read" else "GROUP BY statement")
            made = f"{len(self.groups):,} {way} on the codes, the largest with {self.largest_group:,} cells"
            if self.strategy == "products":
                made = f"products of a matrix of {self.indicators:,} indicators"
            rate = f"{self.seconds_per_million_rows:.2g} s per million rows on 2 cores, after encoding"
            lines.append(f"  {made}; about {rate}")
        megabytes = (self.cells + self.largest_group) * 8 / 1e6
        lines.append(f"  {self.cells:,} cells in all, {megabytes:,.1f} MB of counts held at once")
        if together is not None:
            lines[-1] += f"; later at most {together:,} further cells, {together * 8 / 1e6:,.1f} MB"
        return lines

    def _pack_text(self, pack: tuple[int, ...]) -> str:
        attributes = [self.domain.attributes[position] for position in pack]
        names = " x ".join(_shortened(attribute.name) for attribute in attributes)
        return f"{names} ({math.prod(a.size for a in attributes):,} codes)"


def counted_ahead(queries: Sequence[MarginalQuery]) -> list[MarginalQuery]:
    """The marginals over original codes among ``queries``, with one-way ones of all other attributes that
    queries over bins name: those are summed from a marginal that is here, or counted from the codes later."""
    originals = dict.fromkeys(query for query in queries if not query.maps)
    held = {name for query in originals for name in query.attrs}
    binned = (name for query in queries if query.maps for name in query.attrs if name not in held)
    return [*originals, *(MarginalQuery((name,)) for name in dict.fromkeys(binned))]


def plan_counting(
    queries: Sequence[MarginalQuery],
    domain: Domain,
    bounded: bool = False,
    *,
    in_parts: bool = False,
    weighted: bool = False,
) -> CountingPlan:
    """Choose how to count ``queries``.

    Args:
        queries: the wanted marginals; repetitions and the total ``MarginalQuery(())`` are allowed.
        domain: the public domain.
        bounded: whether the rows of a privacy unit are bounded; the source must then be encoded.
        in_parts: whether the rows lie elsewhere, so that only sums can be had of them.
        weighted: whether each row has a weight; the rows of a unit are then bounded.

    Raises:
        PlanTooLarge: more cells than ``check_size`` allows.
        InternalError: a query repeats an attribute or names an unknown one.
    """
    cells = check_size(queries, domain)
    wanted = _wanted_attributes(queries, domain)
    singles = tuple((position,) for position in wanted)
    if not queries or not (
        bounded
        or any(len(query.attrs) > 1 for query in queries)
        or any(domain.attributes[position].code("c").joins for position in wanted)
    ):
        groups = groups_for(queries, singles, domain)
        scans = -(-len(wanted) // SCAN_ATTRIBUTES)
        reason = f"all marginals are one-way: {scans} {_plural(scans, 'scan')} of the source"
        return CountingPlan("scan", domain, singles, groups, cells, reason)
    marginals = f"{len(queries):,} {_plural(len(queries), 'marginal')}"
    if not in_parts and _is_of_pairs(queries):
        packs = byte_packs(wanted, domain)
        groups = groups_for(queries, packs, domain)
        if sums.multiply(_nanoseconds_of_reading(groups), packs, domain, weighted=weighted):
            reason = f"{marginals} of one or two small attributes"
            return CountingPlan("products", domain, packs, (), cells, reason, bounded, weighted)
        if max(group.cells for group in groups) <= MAX_MARGINAL_CELLS:
            reason = f"{marginals} of one or two attributes"
            return CountingPlan("read", domain, packs, groups, cells, reason, bounded, weighted)
    plain = groups_for(queries, singles, domain)
    packs, groups = _cheapest_packing(queries, domain, singles, plain, cells)
    if packs == singles:
        reason = f"{marginals} from {len(plain):,} GROUP BY; packing attributes would not be faster"
        return CountingPlan("encoded", domain, singles, plain, cells, reason, bounded, weighted)
    reason = f"{marginals} from {len(groups):,} GROUP BY over packed columns, instead of {len(plain):,}"
    return CountingPlan("packed", domain, packs, groups, cells, reason, bounded, weighted)


def _is_of_pairs(queries: Sequence[MarginalQuery]) -> bool:
    """Whether there are many pairs of attributes, and no larger marginals."""
    orders = [len(query.attrs) for query in queries]
    return max(orders) <= 2 and orders.count(2) >= _FEWEST_PAIRS


def byte_packs(wanted: Sequence[int], domain: Domain) -> tuple[Pack, ...]:
    """Attributes in their order, as many to a pack as fit into a byte; a larger one alone."""
    packs, cells = list[list[int]](), _PACK_CODES
    for attribute in wanted:
        size = domain.attributes[attribute].size
        if packs and cells * size <= _PACK_CODES:
            packs[-1].append(attribute)
            cells *= size
        else:
            packs.append([attribute])
            cells = size
    return tuple(map(tuple, packs))


def check_size(queries: Sequence[MarginalQuery], domain: Domain) -> int:
    """Refuse marginals that do not fit in memory; returns the number of cells of all of them.

    Raises:
        PlanTooLarge: one marginal has more than ``MAX_MARGINAL_CELLS`` cells, or all of them and
            the largest once more (a GROUP BY result) more than ``MAX_TOTAL_CELLS``.
        InternalError: a query repeats an attribute or names an unknown one, or there is none.
    """
    sizes = {attribute.name: attribute.size for attribute in domain.attributes}
    if queries and not sizes:
        raise InternalError("a marginal needs a domain with attributes")
    for query in queries:
        if len(set(query.attrs)) < len(query.attrs) or not sizes.keys() >= set(query.attrs):
            raise InternalError("a marginal repeats an attribute or names an unknown one")
    cells = [math.prod(sizes[name] for name in query.attrs) for query in queries]
    largest = max(cells, default=0)
    if largest > MAX_MARGINAL_CELLS:
        start = f"a marginal has {largest:,} cells, above the limit of {MAX_MARGINAL_CELLS:,}"
    elif sum(cells) + largest > MAX_TOTAL_CELLS:
        start = (
            f"the {len(queries):,} marginals have {sum(cells):,} cells in all, above the limit of "
            f"{MAX_TOTAL_CELLS:,} (which must hold the largest one twice)"
        )
    else:
        return sum(cells)
    worst = sorted(set(zip(cells, (query.attrs for query in queries), strict=True)), reverse=True)
    shown = "; ".join(
        " x ".join(f"{_shortened(name)} ({sizes[name]:,})" for name in attrs) + f" = {count:,} cells"
        for count, attrs in worst[:_WORST_SHOWN]
    )
    raise PlanTooLarge(
        f"The plan is too large: {start}. Largest: {shown}. "
        "Declare fewer bins or categories for these columns, or leave out a column with exclude=."
    )


def groups_for(
    queries: Sequence[MarginalQuery], packs: Sequence[tuple[int, ...]], domain: Domain
) -> tuple[Group, ...]:
    """The GROUP BYs that give all ``queries``: the maximal sets of packs that a query touches.

    Each distinct query is given to the smallest group that holds it.
    """
    sizes = [attribute.size for attribute in domain.attributes]
    position = {name: index for index, name in enumerate(domain.names)}
    pack_of = {attribute: index for index, pack in enumerate(packs) for attribute in pack}
    pack_cells = [math.prod(sizes[attribute] for attribute in pack) for pack in packs]
    smallest = min(range(len(packs)), key=pack_cells.__getitem__, default=0)
    needed: dict[tuple[int, ...], dict[MarginalQuery, None]] = defaultdict(dict)
    for query in queries:
        touched = sorted({pack_of[position[name]] for name in query.attrs}) or [smallest]
        needed[tuple(touched)][query] = None
    taken = _absorb(needed, pack_cells)
    return tuple(
        Group(group, math.prod(pack_cells[index] for index in group), tuple(members))
        for group, members in sorted(taken.items())
    )


def _absorb(
    needed: dict[tuple[int, ...], dict[MarginalQuery, None]], pack_cells: Sequence[int]
) -> dict[tuple[int, ...], list[MarginalQuery]]:
    """Keep the maximal sets; the queries of the others move to the smallest set above them."""
    kept: dict[tuple[int, ...], list[MarginalQuery]] = {}
    holding: dict[int, set[tuple[int, ...]]] = defaultdict(set)  # kept sets by member, all of them longer
    for _, groups in groupby(sorted(needed, key=lambda packs: (-len(packs), packs)), key=len):
        maximal = []
        for group in groups:
            above = set.intersection(*(holding[index] for index in group))
            if above:
                home = min(above, key=lambda packs: (math.prod(pack_cells[index] for index in packs), packs))
                kept[home].extend(needed[group])
            else:
                kept[group] = list(needed[group])
                maximal.append(group)
        for group in maximal:
            for index in group:
                holding[index].add(group)
    return kept


def _cheapest_packing(
    queries: Sequence[MarginalQuery],
    domain: Domain,
    singles: tuple[tuple[int, ...], ...],
    plain: tuple[Group, ...],
    cells: int,
) -> tuple[tuple[tuple[int, ...], ...], tuple[Group, ...]]:
    """Try packs of several capacities and keep the cheapest that fits in memory."""
    sizes = [attribute.size for attribute in domain.attributes]
    wanted = [position for single in singles for position in single]
    together = _asked_together(queries, domain, wanted)
    best, best_groups, best_cost = singles, plain, _cost(group.cells for group in plain)
    for capacity in _PACK_CAPACITIES:
        packs = _pack(wanted, sizes, capacity, together)
        groups = groups_for(queries, packs, domain)
        largest = max(group.cells for group in groups)
        if largest > MAX_MARGINAL_CELLS or cells + largest > MAX_TOTAL_CELLS:
            continue
        cost = _cost(group.cells for group in groups)
        if cost < best_cost:
            best, best_groups, best_cost = packs, groups, cost
        elif cost > 2 * best_cost:
            break  # larger packs mean larger groups still
    return best, best_groups


def _pack(
    wanted: Sequence[int], sizes: Sequence[int], capacity: int, together: NDArray[np.int32]
) -> tuple[tuple[int, ...], ...]:
    """Fill one pack after the other up to ``capacity`` codes.

    A pack starts with the largest remaining attribute. The next is the attribute that queries join most
    often with its members (then the larger one), while one fits.
    """
    size = np.array([sizes[attribute] for attribute in wanted], dtype=np.int64)
    left = np.ones(len(wanted), dtype=np.bool_)
    packs: list[tuple[int, ...]] = []
    while left.any():
        member = int(np.argmax(np.where(left, size, 0)))
        pack, cells, affinity = [], 1, np.zeros(len(wanted), dtype=np.int64)
        while True:
            pack.append(wanted[member])
            left[member] = False
            cells *= int(size[member])
            affinity += together[member]
            fitting = np.flatnonzero(left & (size <= capacity // cells))
            if not len(fitting):
                break
            member = int(min(fitting, key=lambda index: (-affinity[index], -size[index], index)))
        packs.append(tuple(sorted(pack)))
    return tuple(sorted(packs))


def _asked_together(
    queries: Sequence[MarginalQuery], domain: Domain, wanted: Sequence[int]
) -> NDArray[np.int32]:
    """Number of marginals that hold two of the wanted attributes, a symmetric matrix."""
    row = {domain.attributes[attribute].name: index for index, attribute in enumerate(wanted)}
    together = np.zeros((len(wanted), len(wanted)), dtype=np.int32)
    for query in queries:
        for one, other in permutations(query.attrs, 2):
            together[row[one], row[other]] += 1
    return together


def cells_of(domain: Domain, pack: Sequence[int]) -> int:
    """How many codes a pack has."""
    return math.prod(domain.attributes[attribute].size for attribute in pack)


def _wanted_attributes(queries: Sequence[MarginalQuery], domain: Domain) -> tuple[int, ...]:
    """Positions of the attributes of the queries; the smallest attribute if only the total is asked for."""
    names = {name for query in queries for name in query.attrs}
    wanted = tuple(index for index, name in enumerate(domain.names) if name in names)
    if wanted or not queries:
        return wanted
    return (min(range(len(domain.attributes)), key=lambda index: domain.attributes[index].size),)


def _cost(cells: Iterable[int]) -> float:
    """Nanoseconds for GROUP BYs of these many cells over a million rows."""
    counts = np.fromiter(cells, dtype=np.float64)
    per_row = np.interp(np.log2(np.maximum(counts, 1.0)), _LOG_CELLS, _NANOSECONDS_PER_ROW)
    each = _REFERENCE_ROWS * per_row + _NANOSECONDS_PER_CELL * counts + _NANOSECONDS_PER_STATEMENT
    return float(each.sum())


def _nanoseconds_of_reading(groups: Sequence[Group]) -> float:
    """A row's, to add its codes to the array of each group."""
    cells = np.array([group.cells for group in groups], dtype=np.float64)
    return float(np.interp(np.log2(np.maximum(cells, 1.0)), _LOG_CELLS, _NANOSECONDS_PER_READ_ROW).sum())


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else noun + "s"


def _shortened(name: str) -> str:
    """A name that fits a line, with control characters made visible."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    return text if len(text) <= _NAME_SHOWN else text[: _NAME_SHOWN - 1] + "…"
