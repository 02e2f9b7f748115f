"""Rows of a graphical model: clique by clique, by systematic sampling, and small samples balanced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.belief import Beliefs, all_pairs
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.sample.balance import balanced
from dpsyn_sql.sample.cells import Codes
from dpsyn_sql.sample.cliques import drawn_bins, drawn_codes
from dpsyn_sql.sample.systematic import BATCH_ROWS, LOW_VARIANCE, side_by_side

MOST_BALANCED = 10**8
"""The most rows x attributes^2 of samples that are balanced (seconds); chance matters less in larger ones."""

_BALANCED_PER_SECOND = 1e7

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GraphicalSampler:
    """Draws rows of a calibrated tree, balanced where ``deadline`` leaves the time.

    The first variables of ``beliefs`` are the attributes in their working bins; ``bins`` (int64) and
    ``within`` (float64) have an entry per code: its bin, and its probability given the bin.
    """

    beliefs: Beliefs
    bins: tuple[NDArray[np.int64], ...]
    within: tuple[FloatArray, ...]
    deadline: Deadline = NO_DEADLINE
    drawn: ClassVar[str] = LOW_VARIANCE

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        single = rows <= BATCH_ROWS
        return side_by_side(rows, seed, lambda size, generator: self._batch(size, generator, single))

    def _batch(self, rows: int, generator: np.random.Generator, balance: bool) -> Codes:
        bins: Mapping[int, Codes] = drawn_bins(self.beliefs, rows, generator)
        if balance and self._balances(rows * len(self.bins) ** 2):
            bins = self._balanced(bins, rows, generator)
        return drawn_codes(self.bins, self.within, bins, generator)

    def _balances(self, work: int) -> bool:
        return work <= MOST_BALANCED and not self.deadline.forbids(
            work / _BALANCED_PER_SECOND, "the sample was not balanced"
        )

    def _balanced(
        self, columns: Mapping[int, Codes], rows: int, generator: np.random.Generator
    ) -> dict[int, Codes]:
        """The columns of attributes after exchanges between rows (``sample/balance.py``)."""
        sizes = self.beliefs.tree.sizes[: len(self.bins)]
        pairs = list(combinations([v for v, size in enumerate(sizes) if size > 1], 2))
        expected = {pair: rows * table for pair, table in all_pairs(self.beliefs, pairs).items()}
        own = [columns[variable] for variable in range(len(sizes))]
        return dict(enumerate(balanced(own, sizes, expected, generator)))
