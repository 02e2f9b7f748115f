"""Rows of a graphical model whose target is drawn anew, given all their other columns.

A draw for each row alone would add an error of sqrt(rows p (1 - p)) to the counts of the target. Here rows
are put in the order of what is expected of them, and the numbers that are laid over their cumulative
distributions go evenly through all places of it (the golden ratio; Kuipers and Niederreiter 1974, chapter 2):
among rows next to each other every value of the target has its expected number, within a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.conditional import Conditional
from dpsyn_sql.rows.sample.graphical import GraphicalSampler, drawn_codes
from dpsyn_sql.rows.sample.quotas import generator_of

_GOLDEN = (np.sqrt(5) - 1) / 2
_STREAM = 2**32
# Batches of the other columns have the streams below.

_ROWS_AT_ONCE = 2**16
_RAKED = 8


@dataclass(frozen=True, slots=True)
class RedrawnSampler:
    """``rows`` with a new target: its working bins follow ``conditional``, in all as often as ``shares``
    (float64, one a bin) say."""

    rows: GraphicalSampler
    conditional: Conditional
    shares: FloatArray
    drawn: ClassVar[str] = "with low variance, the target given the other columns"

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        for index, codes in enumerate(self.rows.batches(rows, seed)):
            generator = generator_of(seed, _STREAM + index)
            for start in range(0, len(codes), _ROWS_AT_ONCE):
                self._redraw(codes[start : start + _ROWS_AT_ONCE], generator)
            yield codes

    def _redraw(self, codes: Codes, generator: np.random.Generator) -> None:
        """Give rows (n, attributes) a new target, in place."""
        target, bins = self.conditional.target, self.rows.bins
        given = raked(self.conditional.given(columns_of(codes, bins)), self.shares)
        drawn = drawn_evenly(given, generator)
        own = drawn_codes(
            bins[target : target + 1], self.rows.within[target : target + 1], {0: drawn}, generator
        )
        codes[:, target] = own[:, 0]


def columns_of(codes: Codes, bins: tuple[IntArray, ...]) -> dict[int, IntArray]:
    """Of each attribute the working bins (n,) of rows (n, attributes) of codes."""
    return {place: own[codes[:, place]] for place, own in enumerate(bins)}


def raked(given: FloatArray, shares: FloatArray) -> FloatArray:
    """Probabilities (n, bins) whose mean over the rows is about ``shares``."""
    for _ in range(_RAKED):
        means = given.mean(axis=0)
        given = given * np.divide(shares, means, out=np.zeros_like(means), where=means > 0)
        sums = given.sum(axis=1, keepdims=True)
        given = np.divide(given, sums, out=np.tile(shares, (len(given), 1)), where=sums > 0)
    return given


def drawn_evenly(given: FloatArray, generator: np.random.Generator) -> IntArray:
    """A bin (n,) for each row of probabilities (n, bins)."""
    number, size = given.shape
    order = np.lexsort(np.stack([generator.random(number), given @ np.arange(size)]))
    places = np.empty(number)
    places[order] = (generator.random() + _GOLDEN * np.arange(number)) % 1.0
    drawn = (np.cumsum(given, axis=1) <= places[:, None]).sum(axis=1)
    return np.asarray(np.minimum(drawn, size - 1), dtype=np.int64)
