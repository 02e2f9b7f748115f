"""Systematic sampling: every conditional count close to its expectation.

Independent draws would add an error as large as the privacy noise. Here the rows of one parent configuration
have their own random order. The numbers 1 to n, shifted by a common jitter, are laid over the cumulative
distribution, and each outcome gets the rows whose numbers lie in its part (systematic sampling): each count
is within one row of its expectation, and unbiased.

Every node, and the codes of every attribute, get a new order. In a shared order two children of one parent
would move together, which the model does not say.

Rows of any network are drawn so, node by node, parents first.
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
# Batches that are drawn side by side, in memory together.


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
            if len(pending) == _AT_A_TIME:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def systematic(
    groups: Codes, owners: IntArray, upper: FloatArray, generator: np.random.Generator
) -> IntArray:
    """One line of its group's distribution per row: systematic sampling, in a random order of the rows.

    Args:
        groups: (n,) group of each row; each has lines.
        owners: (l,) group of each line, ascending.
        upper: (l,) cumulative probability at the end of each line within its group.
        generator: of the order of rows within a group and the jitter.
    """
    counts = np.bincount(groups, minlength=int(owners[-1]) + 1)
    size = counts[owners]
    ends = np.floor(upper * size + generator.random(counts.size)[owners]).astype(np.int64)
    ends = np.minimum(ends, size)
    last = np.append(owners[1:] != owners[:-1], True)
    ends[last] = size[last]
    ends += (np.cumsum(counts) - counts)[owners]
    drawn = np.empty(groups.size, dtype=np.int64)
    drawn[grouped(groups, generator)] = np.repeat(np.arange(owners.size), np.diff(ends, prepend=0))
    return drawn


def stratified(groups: IntArray, weights: FloatArray, generator: np.random.Generator) -> IntArray:
    """One outcome per row from the distribution of its group, by ``systematic``.

    Args:
        groups: (n,) row of ``weights`` for each row.
        weights: (g, k) not negative; the probabilities of the outcomes are proportional to them.
        generator: of the order of rows within a group and the jitter.
    """
    outcomes = weights.shape[1]
    occupied = np.flatnonzero(np.bincount(groups, minlength=len(weights)))
    upper = np.cumsum(weights[occupied], axis=1)
    upper /= np.maximum(upper[:, -1:], np.finfo(np.float64).tiny)
    lines = systematic(groups, np.repeat(occupied, outcomes), upper.ravel(), generator)
    return np.asarray(lines % outcomes)


def grouped(groups: Codes, generator: np.random.Generator) -> IntArray:
    """Rows by group, in a random order within each."""
    order = generator.permutation(groups.size)
    # numpy sorts 16-bit integers by radix, several times faster than wider ones: least significant first.
    width = int(groups.max()).bit_length() if groups.size else 0
    for shift in range(0, width, 16):
        order = order[np.argsort((groups[order] >> shift).astype(np.uint16), kind="stable")]
    return np.asarray(order)


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


@dataclass(frozen=True, slots=True)
class NetworkSampler:
    """Draws rows of a network: among the rows of one parent configuration each outcome gets its expected
    number, within one."""

    network: Network
    drawn: ClassVar[str] = LOW_VARIANCE

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in total.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        return side_by_side(rows, seed, self._batch)

    def _batch(self, rows: int, generator: np.random.Generator) -> Codes:
        sizes, columns = self.network.sizes, dict[int, IntArray]()
        for node in self.network.nodes:
            lines = _lines(node, sizes, columns, rows, generator)
            columns.update(zip(node.variables, node.values[lines].T, strict=True))
        own = [sizes[variable] for variable in self.network.codes]
        codes = np.zeros((rows, len(own)), dtype=code_type(max(own, default=1)))
        for place, variable in enumerate(self.network.codes):
            if variable in columns:  # otherwise it has one value
                codes[:, place] = columns[variable]
        return codes


def _lines(
    node: Node,
    sizes: tuple[int, ...],
    columns: dict[int, IntArray],
    rows: int,
    generator: np.random.Generator,
) -> IntArray:
    """A line of the node for each row.

    Raises:
        InternalError: the node has no line for the configuration of a row's parents.
    """
    groups, owners = np.zeros(rows, np.int64), np.zeros(node.weights.size, np.int64)
    if node.parents:
        shape = [sizes[parent] for parent in node.parents]
        asked = np.ravel_multi_index(
            tuple(columns.get(parent, np.zeros(rows, np.int64)) for parent in node.parents), shape
        )
        configurations, owners = np.unique(
            np.ravel_multi_index(tuple(node.given.T), shape), return_inverse=True
        )
        groups = np.minimum(np.searchsorted(configurations, asked), configurations.size - 1)
        if np.any(configurations[groups] != asked):
            raise InternalError(f"the network has no line of {node.label!r} for parents that it draws")
        owners = owners.ravel()
    sums = np.cumsum(node.weights)
    begins = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
    before = (sums - node.weights)[begins]
    whole = np.append(before[1:], sums[-1]) - before
    return systematic(groups, owners, (sums - before[owners]) / whole[owners], generator)
