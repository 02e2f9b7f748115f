"""Rows of a graphical model: clique by clique, by systematic sampling, and small samples balanced."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.belief import Beliefs, all_pairs
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.sample.balance import balanced
from dpsyn_sql.sample.quotas import code_type
from dpsyn_sql.sample.systematic import BATCH_ROWS, LOW_VARIANCE, side_by_side, stratified, systematic

MOST_BALANCED = 10**8
"""The most rows x attributes^2 of samples that are balanced (seconds); chance matters less in larger ones."""

_BALANCED_PER_SECOND = 1e7

Codes = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GraphicalSampler:
    """Draws rows of a calibrated tree, balanced where ``deadline`` leaves the time.

    The first variables of ``beliefs`` are the attributes in their working bins; ``bins`` (int64) and
    ``within`` (float64) have an entry per code: its bin, and its probability given the bin.
    """

    beliefs: Beliefs
    bins: tuple[Codes, ...]
    within: tuple[FloatArray, ...]
    deadline: Deadline = NO_DEADLINE
    drawn: ClassVar[str] = LOW_VARIANCE

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        single = rows <= BATCH_ROWS
        return side_by_side(rows, seed, lambda size, generator: self._batch(size, generator, single))

    def _batch(self, rows: int, generator: np.random.Generator, balance: bool) -> NDArray[np.integer[Any]]:
        bins = self._working_bins(rows, generator)
        if balance and self._balances(rows * len(self.bins) ** 2):
            bins = self._balanced(bins, rows, generator)
        dtype = code_type(max((own.size for own in self.bins), default=1))
        codes = np.empty((rows, len(self.bins)), dtype=dtype)
        for column in range(len(self.bins)):
            codes[:, column] = self._codes(column, bins[column], generator)
        return codes

    def _balances(self, work: int) -> bool:
        return work <= MOST_BALANCED and not self.deadline.forbids(
            work / _BALANCED_PER_SECOND, "the sample was not balanced"
        )

    def _working_bins(self, rows: int, generator: np.random.Generator) -> dict[int, Codes]:
        """Columns of all variables of the model, cliques after their parents."""
        beliefs = self.beliefs
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
        sizes = self.beliefs.tree.sizes[: len(self.bins)]
        pairs = list(combinations([v for v, size in enumerate(sizes) if size > 1], 2))
        expected = {pair: rows * table for pair, table in all_pairs(self.beliefs, pairs).items()}
        own = [columns[variable] for variable in range(len(sizes))]
        return dict(enumerate(balanced(own, sizes, expected, generator)))

    def _codes(self, column: int, drawn: Codes, generator: np.random.Generator) -> Codes:
        """Original codes of one attribute from its working bins, by the same rule."""
        bins, within = self.bins[column], self.within[column]
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
