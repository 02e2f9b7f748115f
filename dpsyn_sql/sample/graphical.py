"""Rows of a graphical model: clique by clique, every conditional count close to its expectation.

Independent draws would add an error as large as the privacy noise. Here the rows of one parent
configuration stand in a random order of their own, and each outcome gets as many of them as its stretch
of the cumulative distribution holds of the numbers 1 to n, shifted by a common jitter (systematic
sampling): each count is within one row of its expectation, and unbiased.

The order is drawn anew for every clique and for every attribute's codes. Ranks in an order that two children
of one parent share would make them move together, whatever the model says of them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.adaptive import GraphicalModel, all_pairs
from dpsyn_sql.fit.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.sample.balance import balanced
from dpsyn_sql.sample.quotas import batch_sizes, code_type

BATCH_ROWS = 2**18
"""Rows of a batch: a constant, so that a seed means the same rows on every machine."""

MOST_BALANCED = 10**8
"""Rows x attributes^2 of samples that are balanced (seconds); larger ones owe less to chance."""

_BALANCED_PER_SECOND = 1e7

_AT_A_TIME = 2
# Batches that are drawn side by side, in memory together.

Codes = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GraphicalSampler:
    """Draws rows of a ``GraphicalModel``, balanced where ``deadline`` leaves the time."""

    model: GraphicalModel
    deadline: Deadline = NO_DEADLINE

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        sizes, pending = batch_sizes(rows, BATCH_ROWS), deque[Future[NDArray[np.integer[Any]]]]()
        with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
            for index, size in enumerate(sizes):
                pending.append(pool.submit(self._batch, size, (seed, index), balance=len(sizes) == 1))
                if len(pending) == _AT_A_TIME:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

    def _batch(self, rows: int, seed: tuple[int, int], *, balance: bool) -> NDArray[np.integer[Any]]:
        """Each batch has its own stream, so that the order in which they are drawn does not matter."""
        model = self.model
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        bins = self._working_bins(rows, generator)
        if balance and self._balances(rows * len(model.bins) ** 2):
            bins = self._balanced(bins, rows, generator)
        codes = np.empty((rows, len(model.bins)), dtype=code_type(max(model.domain.shape(), default=1)))
        for column in range(len(model.bins)):
            codes[:, column] = self._codes(column, bins[column], generator)
        return codes

    def _balances(self, work: int) -> bool:
        return work <= MOST_BALANCED and not self.deadline.forbids(
            work / _BALANCED_PER_SECOND, "the sample was not balanced"
        )

    def _working_bins(self, rows: int, generator: np.random.Generator) -> dict[int, Codes]:
        """Columns of all variables of the model, cliques after their parents."""
        beliefs = self.model.beliefs
        tree = beliefs.tree
        columns: dict[int, Codes] = {}
        for index in tree.order:
            clique, separator = tree.cliques[index], tree.separators[index]
            new = [variable for variable in clique if variable not in separator]
            axes = [clique.index(variable) for variable in (*separator, *new)]
            parents = math.prod(tree.sizes[variable] for variable in separator)
            conditional = beliefs.tables[index].transpose(axes).reshape(parents, -1)
            configuration = np.zeros(rows, dtype=np.int64)
            for variable in separator:
                configuration = configuration * tree.sizes[variable] + columns[variable]
            drawn = stratified(configuration, conditional, generator)
            for variable in reversed(new):
                drawn, columns[variable] = np.divmod(drawn, tree.sizes[variable])
        return columns

    def _balanced(
        self, columns: dict[int, Codes], rows: int, generator: np.random.Generator
    ) -> dict[int, Codes]:
        """The columns of attributes after exchanges between rows (``sample/balance.py``)."""
        sizes = self.model.beliefs.tree.sizes[: len(self.model.bins)]
        pairs = list(combinations([v for v, size in enumerate(sizes) if size > 1], 2))
        expected = {pair: rows * table for pair, table in all_pairs(self.model.beliefs, pairs).items()}
        own = [columns[variable] for variable in range(len(sizes))]
        return dict(enumerate(balanced(own, sizes, expected, generator)))

    def _codes(self, column: int, drawn: Codes, generator: np.random.Generator) -> Codes:
        """Original codes of one attribute from its working bins, by the same rule."""
        bins, within = self.model.bins[column], self.model.within[column]
        by_bin = np.argsort(bins, kind="stable")
        if bins[by_bin[-1]] == bins.size - 1:  # one code a bin
            return np.asarray(by_bin[drawn])
        owners = bins[by_bin]
        sums = np.cumsum(within[by_bin])
        starts = np.searchsorted(owners, np.arange(owners[-1] + 1))
        before = np.append(0.0, sums)[starts]
        whole = np.append(before[1:], sums[-1]) - before
        upper = (sums - before[owners]) / np.maximum(whole, np.finfo(np.float64).tiny)[owners]
        return np.asarray(by_bin[systematic(drawn, owners, upper, generator)])


def systematic(groups: Codes, owners: Codes, upper: FloatArray, generator: np.random.Generator) -> Codes:
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
    drawn[_grouped(groups, generator)] = np.repeat(np.arange(owners.size), np.diff(ends, prepend=0))
    return drawn


def stratified(groups: Codes, weights: FloatArray, generator: np.random.Generator) -> Codes:
    """One outcome per row from the distribution of its group, by ``systematic``.

    Args:
        groups: (n,) row of ``weights`` each belongs to.
        weights: (g, k) not negative; a row's outcomes are proportional to it.
        generator: of the order of rows within a group and the jitter.
    """
    outcomes = weights.shape[1]
    occupied = np.flatnonzero(np.bincount(groups, minlength=len(weights)))
    upper = np.cumsum(weights[occupied], axis=1)
    upper /= np.maximum(upper[:, -1:], np.finfo(np.float64).tiny)
    lines = systematic(groups, np.repeat(occupied, outcomes), upper.ravel(), generator)
    return np.asarray(lines % outcomes)


def _grouped(groups: Codes, generator: np.random.Generator) -> Codes:
    """Rows by group, in a random order within each."""
    order = generator.permutation(groups.size)
    # numpy sorts 16-bit integers by radix, several times faster than wider ones: least significant first.
    width = int(groups.max()).bit_length() if groups.size else 0
    for shift in range(0, width, 16):
        order = order[np.argsort((groups[order] >> shift).astype(np.uint16), kind="stable")]
    return np.asarray(order)
