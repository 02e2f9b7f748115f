"""Rows of a graphical model: clique by clique, every conditional count close to its expectation.

Independent draws would add an error as large as the privacy noise. Here the rows of one parent
configuration get ranks in a random order of their own; rank minus jitter, over the number of rows,
is looked up in the cumulative distribution (stratified sampling): each count is within one row
of its expectation for every code at either end, and unbiased.

The order is drawn anew for every clique and for every attribute's codes. Ranks in an order that two children
of one parent share would make them move together, whatever the model says of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
        model = self.model
        dtype = code_type(max(model.domain.shape(), default=1))
        for index, size in enumerate(batch_sizes(rows, BATCH_ROWS)):
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))
            bins = self._working_bins(size, generator)
            if rows <= BATCH_ROWS and self._balances(rows * len(model.bins) ** 2):
                bins = self._balanced(bins, rows, generator)
            codes = np.empty((size, len(model.bins)), dtype=dtype)
            for column in range(len(model.bins)):
                codes[:, column] = self._codes(column, bins[column], generator)
            yield codes

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
        starts = np.searchsorted(bins[by_bin], np.arange(bins.max() + 1))
        if starts.size == bins.size:
            return np.asarray(by_bin[drawn])
        # The bins' codes one after the other: bin b occupies the stretch b..b+1 of one cumulative sum.
        ends = np.cumsum(within[by_bin])
        place = np.searchsorted(ends, drawn + _ranks(drawn, generator), side="right")
        last = np.append(starts[1:], bins.size) - 1
        return np.asarray(by_bin[np.clip(place, starts[drawn], last[drawn])])


def stratified(groups: Codes, weights: FloatArray, generator: np.random.Generator) -> Codes:
    """One outcome per row from the distribution of its group.

    Args:
        groups: (n,) row of ``weights`` each belongs to.
        weights: (g, k) not negative; a row's outcomes are proportional to it.
        generator: of the order of rows within a group and the jitter.
    """
    outcomes = weights.shape[1]
    cumulative = np.cumsum(weights, axis=1)
    cumulative /= np.maximum(cumulative[:, -1:], np.finfo(np.float64).tiny)
    cumulative += np.arange(len(weights))[:, None]
    place = np.searchsorted(cumulative.ravel(), groups + _ranks(groups, generator), side="right")
    return np.asarray(np.clip(place - groups * outcomes, 0, outcomes - 1), dtype=np.int64)


def _ranks(groups: Codes, generator: np.random.Generator) -> FloatArray:
    """(rank in a random order - jitter) / count within each group: uniform on 0..1, evenly spread."""
    shuffled = generator.permutation(groups.size)
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    keys = groups[shuffled]
    keys = keys.astype(np.uint16) if groups.size and groups.max() < 2**16 else keys
    order = shuffled[np.argsort(keys, kind="stable")]
    counts = np.bincount(groups)
    starts = np.cumsum(counts) - counts
    ranks = np.empty(groups.size)
    ranks[order] = np.arange(groups.size)
    return np.asarray((ranks - starts[groups] + generator.random(groups.size)) / counts[groups])
