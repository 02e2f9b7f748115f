"""Systematic sampling: every conditional count close to its expectation.

Independent draws would add an error as large as the privacy noise. Here the rows of one parent configuration
have their own random order. The numbers 1 to n, shifted by a common jitter, are laid over the cumulative
distribution, and each outcome gets the rows whose numbers lie in its part (systematic sampling): each count
is within one row of its expectation, and unbiased.

Every node, and the codes of every attribute, get a new order. In a shared order two children of one parent
would move together, which the model does not say.

Rows of any network are drawn so node by node, parents first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import Network, Node
from dpsyn_sql.rows.sample.quotas import BATCH_ROWS, batch_sizes, code_type, generator_of

LOW_VARIANCE = "with low variance"
"""How rows are drawn here, in the words of certificates."""

_AT_A_TIME = 2
# Batches that are drawn side by side. One more waits, so that both go on while one is loaded.


def side_by_side(rows: int, seed: int, drawn: Callable[[int, np.random.Generator], Codes]) -> Iterator[Codes]:
    """Batches of ``drawn(rows, generator)`` in order, ``rows`` in total.

    Each has its own stream, so that the order in which they are drawn does not matter.
    """

    def batch(size: int, index: int) -> Codes:
        return drawn(size, generator_of(seed, index))

    pending = deque[Future[Codes]]()
    with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            pending.append(pool.submit(batch, size, index))
            if len(pending) > _AT_A_TIME:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


@dataclass(frozen=True, slots=True)
class Stretches:
    """Distributions of groups, side by side.

    ``lines`` (g,) int64: how many lines each group has. ``ends`` (l,) float64, ascending: where each line
    ends, the number of its group plus a cumulative probability; the last of a group ends at the next number.
    """

    lines: IntArray
    ends: FloatArray

    def drawn(self, groups: Codes, generator: np.random.Generator) -> IntArray:
        """One line of its group's distribution per row: systematic sampling, in a random order of the rows.

        Args:
            groups: (n,) group of each row; each has lines.
            generator: of the order of rows within a group and the jitter.
        """
        order = grouped(groups, generator)
        counts = np.bincount(groups, minlength=self.lines.size)
        jitter = generator.random(counts.size)
        by_group = self._counted if self.ends.size <= groups.size else self._found
        drawn = np.empty(groups.size, dtype=np.int64)
        drawn[order] = by_group(counts, jitter)
        return drawn

    def _counted(self, counts: IntArray, jitter: FloatArray) -> IntArray:
        """The lines of the rows by group: each line as often as its stretch has places."""
        owners = np.repeat(np.arange(self.lines.size), self.lines)
        size = counts[owners]
        upto = np.ceil((self.ends - owners) * size - jitter[owners]).astype(np.int64)
        upto = np.clip(upto, 0, size) + (np.cumsum(counts) - counts)[owners]
        return np.asarray(np.repeat(np.arange(owners.size), np.diff(upto, prepend=0)))

    def _found(self, counts: IntArray, jitter: FloatArray) -> IntArray:
        """The same where lines are more than rows: each place is looked up."""
        occupied = np.flatnonzero(counts)
        size = counts[occupied]
        step = 1 / size
        first = occupied + (jitter[occupied] - (np.cumsum(size) - size)) * step
        places = np.repeat(first, size) + np.arange(size.sum()) * np.repeat(step, size)
        # Rounding leaves no place outside its group.
        below = np.nextafter(occupied + 1.0, 0)
        places = np.clip(places, np.repeat(occupied, size), np.repeat(below, size))
        return np.asarray(np.searchsorted(self.ends, places, side="right"))


def stretches(owners: IntArray, upper: FloatArray) -> Stretches:
    """Of lines by group.

    Args:
        owners: (l,) group of each line, ascending.
        upper: (l,) cumulative probability at the end of each line within its group.
    """
    ends = (owners + np.clip(upper, 0, 1)).astype(np.float64)
    last = np.append(owners[1:] != owners[:-1], True)
    ends[last] = owners[last] + 1
    return Stretches(np.bincount(owners), ends)


def stretches_of(weights: FloatArray) -> Stretches:
    """Of tables: the groups are the rows of ``weights`` (g, k), not negative; the probabilities of the k
    lines of a group are proportional to them, and equal for a row of zeros."""
    groups, outcomes = weights.shape
    upper = np.cumsum(weights, axis=1, dtype=np.float64)
    upper[upper[:, -1] <= 0] = np.arange(1, outcomes + 1)
    upper /= upper[:, -1:].copy()
    upper += np.arange(groups)[:, None]
    return Stretches(np.full(groups, outcomes), upper.ravel())


def stratified(groups: IntArray, weights: FloatArray, generator: np.random.Generator) -> IntArray:
    """One outcome per row from the distribution of its group, by systematic sampling.

    Args:
        groups: (n,) row of ``weights`` for each row.
        weights: (g, k) not negative; the probabilities of the outcomes are proportional to them.
        generator: of the order of rows within a group and the jitter.
    """
    return np.asarray(stretches_of(weights).drawn(groups, generator) - groups * weights.shape[1])


def grouped(groups: Codes, generator: np.random.Generator) -> IntArray:
    """Rows by group, in a random order within each."""
    order = generator.permutation(groups.size)
    # numpy sorts 16-bit integers by radix, several times faster than wider ones: least significant first.
    width = int(groups.max()).bit_length() if groups.size else 0
    for shift in range(0, width, 16):
        order = order[np.argsort((groups >> shift).astype(np.uint16)[order], kind="stable")]
    return np.asarray(order)


def evenly(groups: Codes, generator: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Rows by group (n,), in a random order within each, and a place in [0, 1] for each of these: those of a
    group are evenly apart, with a common jitter."""
    order = grouped(groups, generator)
    sorted_groups = groups[order]
    begins = np.flatnonzero(np.append(True, sorted_groups[1:] != sorted_groups[:-1])[: groups.size])
    counts = np.diff(begins, append=groups.size)
    jitter = np.repeat(generator.random(begins.size), counts)
    places = (np.arange(groups.size) - np.repeat(begins, counts) + jitter) / np.repeat(counts, counts)
    return order, places


def cells(columns: Sequence[Codes] | Mapping[int, Codes], scope: Scope, sizes: Sequence[int]) -> Codes:
    """The number of each row's cell of the table over ``scope`` (not empty), in row-major order."""
    found = columns[scope[0]]
    for variable in scope[1:]:
        found = found * sizes[variable] + columns[variable]
    return found


def codes_of(numbers: Codes, scope: Scope, sizes: Sequence[int]) -> dict[int, Codes]:
    """The codes of each variable of ``scope`` in the cells of these numbers."""
    found = dict[int, Codes]()
    for variable in reversed(scope):
        numbers, found[variable] = np.divmod(numbers, sizes[variable])
    return found


def whole(table: FloatArray, rows: int, generator: np.random.Generator) -> IntArray:
    """``rows`` rows, at least 0, as whole numbers per cell (flat): each is within one of its expectation,
    and so is every sum over leading axes.

    Args:
        table: not negative; a table of zeros counts as uniform.
        rows: what the cells sum to.
        generator: of the one jitter.
    """
    flat = table.ravel()
    ends = np.cumsum(flat if flat.any() else np.ones(flat.size))
    ends = np.floor(ends * (rows / ends[-1]) + generator.random()).astype(np.int64)
    ends = np.minimum(ends, rows)
    ends[-1] = rows
    return np.asarray(np.diff(ends, prepend=0), dtype=np.int64)


_MOST_DENSE = 2**22
# Configurations of parents that are looked up by their number.

Columns = dict[int, Codes]
"""Of each variable the values (n,) of rows."""


class Lines:
    """The lines of a node by configuration of its parents."""

    def __init__(self, node: Node, sizes: tuple[int, ...]) -> None:
        self.node, self.shape = node, [sizes[parent] for parent in node.parents]
        numbers = np.zeros(node.weights.size, np.int64)
        if self.shape:
            numbers = np.ravel_multi_index(tuple(node.given.T), self.shape).astype(np.int64)
        self.known, begins, owners = np.unique(numbers, return_index=True, return_inverse=True)
        owners = owners.ravel()
        sums = np.cumsum(node.weights)
        before = (sums - node.weights)[begins]
        whole = np.append(before[1:], sums[-1]) - before
        self.ends: FloatArray = owners + (sums - before[owners]) / whole[owners]
        self.last = np.append(begins[1:], numbers.size) - 1
        self.values = [np.ascontiguousarray(column) for column in node.values.T]
        cells = int(np.prod(self.shape, dtype=np.float64)) if self.shape else 1
        self.dense = None
        if cells <= _MOST_DENSE:
            self.dense = np.full(cells, -1, np.int32)
            self.dense[self.known] = np.arange(self.known.size)

    def groups(self, columns: Mapping[int, Codes], rows: int) -> IntArray:
        """The configuration (n,) of each row's parents.

        Raises:
            InternalError: the node has no line for one.
        """
        if not self.shape:
            return np.zeros(rows, np.int64)
        asked = np.zeros(rows, np.int64)
        for parent, size in zip(self.node.parents, self.shape, strict=True):
            asked *= size
            if parent in columns:
                asked += columns[parent]
        if self.dense is not None:
            found = self.dense[asked].astype(np.int64)
            missing = bool((found < 0).any())
        else:
            found = np.minimum(np.searchsorted(self.known, asked), self.known.size - 1)
            missing = bool((self.known[found] != asked).any())
        if missing:
            raise InternalError(f"the network has no line of {self.node.label!r} for parents that it draws")
        return found

    def draw(
        self, columns: Columns, ranks: IntArray | None, rows: int, generator: np.random.Generator
    ) -> None:
        """Add the variables of the node to ``columns``: systematic among the rows of one configuration and
        rank (None: all have one)."""
        groups = self.groups(columns, rows)
        keys = groups if ranks is None else groups * (int(ranks.max(initial=0)) + 1) + ranks
        order, places = evenly(keys, generator)
        groups = groups[order]
        lines = np.searchsorted(self.ends, groups + places, side="right")
        drawn = np.empty(rows, np.int64)
        drawn[order] = np.minimum(lines, self.last[groups])
        for variable, values in zip(self.node.variables, self.values, strict=True):
            columns[variable] = values[drawn]


@dataclass(frozen=True, slots=True)
class NetworkSampler:
    """Draws rows of a network: among the rows of one parent configuration each outcome gets its expected
    number, within one."""

    network: Network
    drawn: ClassVar[str] = LOW_VARIANCE

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in total.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.

        Raises:
            InternalError: a node has no line for the configuration of a row's parents.
        """
        lines = [Lines(node, self.network.sizes) for node in self.network.nodes]
        own = [self.network.sizes[variable] for variable in self.network.codes]
        dtype = code_type(max(own, default=1))

        def batch(size: int, generator: np.random.Generator) -> Codes:
            columns: Columns = {}
            for node in lines:
                node.draw(columns, None, size, generator)
            codes = np.zeros((len(own), size), dtype)
            for place, variable in enumerate(self.network.codes):
                if variable in columns:  # otherwise it has one value
                    codes[place] = columns[variable]
            return codes.T

        return side_by_side(rows, seed, batch)
