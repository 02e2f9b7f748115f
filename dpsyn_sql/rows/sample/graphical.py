"""Rows of a graphical model: clique by clique, by systematic sampling, and small samples balanced.

A target may then be drawn anew, given all other columns. A draw for each row alone would add an error of
sqrt(rows p (1 - p)) to its counts. Here rows are put in the order of what is expected of them, and the
numbers that are laid over their cumulative distributions go evenly through all places of it (the golden
ratio; Kuipers and Niederreiter 1974, chapter 2): among rows next to each other every value of the target has
its expected number, within a few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray, summed
from dpsyn_sql.fit.belief import Beliefs, marginals
from dpsyn_sql.fit.conditional import Conditional
from dpsyn_sql.fit.graph import Scope, cells_of
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.moves import EXCHANGE_PASSES, balanced
from dpsyn_sql.rows.sample.systematic import (
    BATCH_ROWS,
    LOW_VARIANCE,
    Batches,
    by_themselves,
    cells,
    code_type,
    drawn_lines,
    ends_of,
    meet_quotas,
    whole,
)

MOST_BALANCED = 10**8
"""The most rows x attributes^2 and cells visited of samples that are balanced (seconds); chance matters less
in larger ones."""

MOST_BESIDE = 4 * 10**8
"""The most rows x attributes^2 of samples of several batches that are balanced, if there are pairs beside the
tree. Without such pairs only samples of one batch are: there is nothing else to meet, and exchanges cost some
structure of three attributes where pairs owe little to chance."""

MOST_EXPECTED = 2**22
"""The most cells of all pair tables over original codes that a sample is balanced against, 16 MB; a sample of
more is balanced over working bins."""

_BALANCED_PER_SECOND = 2e7


@dataclass(frozen=True, slots=True)
class TreeRows:
    """Rows of a calibrated tree, each by itself, balanced where ``deadline`` leaves the time.

    ``beside`` are joint probabilities over working bins, by ascending scope, of pairs that rows are balanced
    against in place of what the tree says. ``sets``: attributes whose joint table no pairs tell; rows are
    balanced against it, as exchanges for pairs alone would mix it up.

    The first variables of ``beliefs`` are the attributes in their working bins; ``bins`` (int64) and
    ``within`` (float64) have an entry per code: its bin, and its probability given the bin.
    """

    beliefs: Beliefs
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    beside: Mapping[Scope, FloatArray] = field(default_factory=dict)
    sets: tuple[Scope, ...] = ()
    balance: bool = True
    deadline: Deadline = NO_DEADLINE

    def sampler(self) -> Batches:
        """What draws them."""
        return by_themselves(self._prepared, LOW_VARIANCE)

    def _prepared(self, rows: int) -> Callable[[int, np.random.Generator], Codes]:
        work = rows * len(self.bins) ** 2
        balance = self.balance and (rows <= BATCH_ROWS or (bool(self.beside) and work <= MOST_BESIDE))
        return partial(self._batch, balance)

    def _batch(self, balance: bool, rows: int, generator: np.random.Generator) -> Codes:
        bins: Mapping[int, Codes] = drawn_bins(self.beliefs, rows, generator)
        sizes = tuple(bins_of_codes.size for bins_of_codes in self.bins)
        cells = cells_of([*_pairs(sizes), *self.sets], sizes)
        on_codes = cells <= MOST_EXPECTED
        if balance and self._balances(rows * len(sizes) ** 2 + on_codes * 2 * EXCHANGE_PASSES * cells):
            if on_codes:
                codes = drawn_codes(self.bins, self.within, bins, generator)
                return self._balanced_codes(codes, sizes, generator)
            bins = self._balanced_bins(bins, rows, generator)
        return drawn_codes(self.bins, self.within, bins, generator)

    def _balanced_codes(self, codes: Codes, sizes: tuple[int, ...], generator: np.random.Generator) -> Codes:
        """Rows (n, attributes) after exchanges of codes, in place."""
        columns = [codes[:, column].astype(np.int32) for column in range(len(sizes))]
        expected = self._expected(sizes, len(codes))
        for column, changed in enumerate(balanced(columns, sizes, expected, generator)):
            codes[:, column] = changed
        return codes

    def _expected(self, sizes: Sequence[int], rows: int) -> dict[Scope, NDArray[np.float32]]:
        """Counts of pairs and sets over original codes."""
        expected = dict[Scope, NDArray[np.float32]]()
        for scope, table in self._tables(sizes).items():
            wide = rows * table
            for axis, variable in enumerate(scope):
                wide = wide.take(self.bins[variable], axis=axis)
                wide *= self.within[variable].reshape(-1, *[1] * (len(scope) - 1 - axis))
            expected[scope] = wide.astype(np.float32)
        return expected

    def _tables(self, sizes: Sequence[int]) -> dict[Scope, FloatArray]:
        """Joint probabilities over working bins: of the sets, and of the pairs."""
        pairs = all_pairs(self.beliefs, _pairs(sizes))
        tables = {pair: self.beside.get(pair, table) for pair, table in pairs.items()}
        return tables | marginals(self.beliefs, self.sets)

    def _balances(self, work: int) -> bool:
        return work <= MOST_BALANCED and not self.deadline.forbids(
            work / _BALANCED_PER_SECOND, "the sample was not balanced"
        )

    def _balanced_bins(
        self, columns: Mapping[int, Codes], rows: int, generator: np.random.Generator
    ) -> dict[int, Codes]:
        """The columns of attributes in working bins after exchanges between rows."""
        sizes = self.beliefs.tree.sizes[: len(self.bins)]
        expected = {scope: rows * table for scope, table in self._tables(sizes).items()}
        columns_of_bins = [columns[variable] for variable in range(len(sizes))]
        return dict(enumerate(balanced(columns_of_bins, sizes, expected, generator)))


def _pairs(sizes: Sequence[int]) -> list[Scope]:
    """Pairs of variables of more than one code."""
    return list(combinations([variable for variable, size in enumerate(sizes) if size > 1], 2))


def drawn_bins(beliefs: Beliefs, rows: int, generator: np.random.Generator) -> dict[int, IntArray]:
    """Columns of all variables of the model, cliques after their parents; one-way counts are met.

    A clique has thousands of configurations, most of them of less than a row: rounding in each adds up to
    an error of the order of sqrt(rows) in one-way counts. So each variable has a quota of rows for each of
    its codes, and the few rows too many of a code move to codes that lack some: those to which the model
    gives about the same probability in their configuration.
    """
    tree, columns = beliefs.tree, dict[int, IntArray]()
    for index in tree.order:
        clique, table = tree.cliques[index], beliefs.tables[index]
        before = tuple(tree.separators[index])
        # Smaller variables first: a coarse twin meets its quota before what it is a function of.
        for variable in sorted(set(clique) - set(before), key=lambda v: (tree.sizes[v], v)):
            scope = (*before, variable)
            summed_table = summed(table, [axis for axis, other in enumerate(clique) if other not in scope])
            axes = [other for other in clique if other in scope]
            joint = summed_table.transpose([axes.index(other) for other in scope])
            groups = cells(columns, before, tree.sizes) if before else np.zeros(rows, np.int64)
            joint = joint.reshape(-1, tree.sizes[variable])
            columns[variable] = _with_counts_met(joint, groups, generator, met=not before)
            before = scope
    return columns


def _with_counts_met(
    joint: FloatArray, groups: Codes, generator: np.random.Generator, *, met: bool
) -> IntArray:
    """Codes (n,) of a variable given the configuration of each row, a row of ``joint`` (g, codes); its counts
    over all rows are as expected, as they are without configurations (``met``)."""
    size, ends = joint.shape[1], ends_of(joint)
    drawn = np.asarray(drawn_lines(ends, groups, generator) - groups * size)

    def suits(places: Codes, codes: Codes) -> FloatArray:
        lines = groups[places] * size + codes
        starts = np.where(codes == 0, groups[places], ends[lines - 1])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(ends[lines] - starts))

    if not met:
        meet_quotas(suits, drawn, whole(joint.sum(axis=0), groups.size, generator))
    return drawn


def drawn_codes(
    bins: Sequence[IntArray],
    within: Sequence[FloatArray],
    columns: Mapping[int, Codes],
    generator: np.random.Generator,
) -> Codes:
    """Codes (n, attributes) of all attributes, unsigned.

    Args:
        bins: of each attribute (codes,) the bin of each code.
        within: of each (codes,) the probabilities of the codes given their bin.
        columns: of each (n,) the bin of each row.
        generator: of the order of rows within a bin and the jitter.
    """
    rows = columns[0].size if bins else 0
    codes = np.empty(
        (len(bins), rows), code_type(max((bins_of_codes.size for bins_of_codes in bins), default=1))
    )
    for column, bins_of_codes in enumerate(bins):
        codes[column] = _codes(bins_of_codes, within[column], columns[column], generator)
    return codes.T  # each column in one piece, as they are loaded


def _codes(bins: IntArray, within: FloatArray, drawn: Codes, generator: np.random.Generator) -> IntArray:
    by_bin = np.argsort(bins, kind="stable")
    if bins[by_bin[-1]] == bins.size - 1:  # one code a bin
        return np.asarray(by_bin[drawn])
    owners = bins[by_bin]
    begins = np.searchsorted(owners, np.arange(owners[-1] + 1))
    sums = np.cumsum(within[by_bin])
    before = np.append(0.0, sums)[begins]
    whole = np.append(before[1:], sums[-1]) - before
    upper = (sums - before[owners]) / np.maximum(whole, np.finfo(np.float64).tiny)[owners]
    ends = owners + np.clip(upper, 0, 1)
    last = np.append(owners[1:] != owners[:-1], True)
    ends[last] = owners[last] + 1
    return np.asarray(by_bin[drawn_lines(ends, drawn, generator)])


_GOLDEN = (np.sqrt(5) - 1) / 2
_ROWS_AT_ONCE = 2**16
_RAKED = 8


def with_target(rows: TreeRows, conditional: Conditional, shares: FloatArray) -> Batches:
    """``rows`` with a new target: its working bins follow ``conditional``, in all as often as ``shares``
    (float64, one a bin) say."""
    target, bins = conditional.target, rows.bins
    own = slice(target, target + 1)

    def redraw(codes: Codes, generator: np.random.Generator) -> None:
        for start in range(0, len(codes), _ROWS_AT_ONCE):
            part = codes[start : start + _ROWS_AT_ONCE]
            probabilities = raked(conditional.given(columns_of(part, bins)), shares)
            drawn = drawn_evenly(probabilities, generator)
            part[:, target] = drawn_codes(bins[own], rows.within[own], {0: drawn}, generator)[:, 0]

    return rows.sampler().then(redraw, "with low variance, the target given the other columns")


def columns_of(codes: Codes, bins: tuple[IntArray, ...]) -> dict[int, IntArray]:
    """Of each attribute the working bins (n,) of rows (n, attributes) of codes."""
    return {position: bins_of_codes[codes[:, position]] for position, bins_of_codes in enumerate(bins)}


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
    numbers = np.empty(number)
    numbers[order] = (generator.random() + _GOLDEN * np.arange(number)) % 1.0
    drawn = (np.cumsum(given, axis=1) <= numbers[:, None]).sum(axis=1)
    return np.asarray(np.minimum(drawn, size - 1), dtype=np.int64)
