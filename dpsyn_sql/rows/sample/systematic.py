"""Low variance: every count close to its expectation. Rows come in batches, each with a stream of random
numbers of its own, two drawn side by side.

*Systematic sampling.* Independent draws would add an error as large as the privacy noise. Here the rows of
one parent configuration have their own random order. The numbers 1 to n, shifted by a common jitter, are laid
over the cumulative distribution, and each outcome gets the rows whose numbers lie in its part: each count is
within one row of its expectation, and unbiased. Every node, and the codes of every attribute, get a new
order. In a shared order two children of one parent would move together, which the model does not say.

*Quotas.* A batch gets a quota per code, and the few rows too many of a code move to codes that lack some:
those rows whose latent score loses least by it.

Rows of one attribute with given counts are the right number of each code, shuffled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray, group_cumsum, simplex_projection
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import Node

# -- batches ------------------------------------------------------------------------------------------

BATCH_ROWS = 2**18
"""Rows of a batch: a constant, so that a seed means the same rows on every machine."""

_AT_A_TIME = 2
# Batches that are drawn side by side.

_STEPS = 2**32
# Streams of steps after a batch; those of the batches are below.

T = TypeVar("T")


def batch_sizes(rows: int, largest: int) -> Sequence[int]:
    """Sizes, as equal as possible and at most ``largest``, that sum to ``rows``."""
    if rows <= 0:
        return ()
    number = -(-rows // largest)
    return [rows // number + (index < rows % number) for index in range(number)]


def streams(rows: int, largest: int, seed: int) -> Iterator[tuple[int, np.random.Generator]]:
    """``batch_sizes``, each with a stream of random numbers of its own."""
    for index, size in enumerate(batch_sizes(rows, largest)):
        yield size, generator_of(seed, index)


def generator_of(seed: int, index: int) -> np.random.Generator:
    """The stream of a batch: the order in which batches are drawn does not matter."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))


def code_type(largest_size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """The smallest unsigned type for codes of an attribute with so many codes."""
    if largest_size <= 2**8:
        return np.uint8
    return np.uint16 if largest_size <= 2**16 else np.uint32


def side_by_side(draws: Iterable[Callable[[], T]]) -> Iterator[T]:
    """What these give, in order. The one after the next begins when one is complete."""
    pending = deque[Future[T]]()
    with ThreadPoolExecutor(max_workers=_AT_A_TIME) as cores:
        for draw in draws:
            complete = [pending.popleft().result()] if len(pending) == _AT_A_TIME else []
            pending.append(cores.submit(draw))
            yield from complete
        while pending:
            yield pending.popleft().result()


Batch = Callable[[], Codes]
"""Draws one batch: codes (n, attributes) in domain order, unsigned."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Draws rows that are each by themselves.

    ``begin(rows, seed)`` gives what draws each batch, in order; ``drawn``: how, in the words of certificates.
    """

    begin: Callable[[int, int], Iterable[Batch]]
    drawn: str

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        return side_by_side(self.begin(rows, seed))

    def then(self, step: Callable[[Codes, np.random.Generator], None], drawn: str) -> Batches:
        """The same rows, each batch changed in place by a ``step`` with a stream of its own."""

        def stepped(draw: Batch, generator: np.random.Generator) -> Codes:
            codes = draw()
            step(codes, generator)
            return codes

        def begin(rows: int, seed: int) -> Iterator[Batch]:
            for index, draw in enumerate(self.begin(rows, seed)):
                yield partial(stepped, draw, generator_of(seed, _STEPS + index))

        return Batches(begin, drawn)


def by_themselves(
    prepared: Callable[[int], Callable[[int, np.random.Generator], Codes]], drawn: str
) -> Batches:
    """Batches that do not depend on each other: ``prepared(rows)`` gives what draws so many of them."""

    def begin(rows: int, seed: int) -> Iterator[Batch]:
        draw = prepared(rows)
        for size, generator in streams(rows, BATCH_ROWS, seed):
            yield partial(draw, size, generator)

    return Batches(begin, drawn)


# -- low variance -------------------------------------------------------------------------------------

LOW_VARIANCE = "with low variance"
"""How rows are drawn by systematic sampling, in the words of certificates."""

ONE_WAYS_MET = "with one-way counts met"
"""How rows are drawn that keep quotas, as certificates have it."""


def ends_of(weights: FloatArray) -> FloatArray:
    """Distributions of groups, side by side: where each line ends (g k,), ascending, the number of its group
    plus a cumulative probability; the last of a group ends at the next number.

    ``weights``: (g, k) not negative; the probabilities of the k lines of a group are proportional to them,
    and equal for a row of zeros.
    """
    groups, outcomes = weights.shape
    upper = np.cumsum(weights, axis=1, dtype=np.float64)
    upper[upper[:, -1] <= 0] = np.arange(1, outcomes + 1)
    upper /= upper[:, -1:].copy()
    upper += np.arange(groups)[:, None]
    return upper.ravel()


def drawn_lines(
    ends: FloatArray, groups: Codes, generator: np.random.Generator, keys: Codes | None = None
) -> IntArray:
    """One line of its group's distribution per row: systematic sampling, in a random order of the rows.

    Args:
        ends: of the lines, as of ``ends_of``; groups may have other numbers of lines.
        groups: (n,) group of each row; each has lines.
        generator: of the order of rows within a key and the jitter.
        keys: (n,) rows of one key, which are of one group, are laid out together; None: those of one group.
    """
    number = None if keys is not None else round(float(ends[-1]))
    order, places = evenly(groups if keys is None else keys, generator, number)
    drawn, by_group = np.empty(groups.size, np.int64), groups[order]
    # Rounding leaves no place outside its group.
    places = np.minimum(by_group + places, np.nextafter(by_group + 1.0, 0))
    if keys is None and ends.size < places.size:  # then places ascend
        counts = np.diff(np.searchsorted(places, ends), prepend=0)
        drawn[order] = np.repeat(np.arange(ends.size), counts)
    else:
        drawn[order] = np.searchsorted(ends, places, side="right")
    return drawn


def stratified(groups: IntArray, weights: FloatArray, generator: np.random.Generator) -> IntArray:
    """One outcome (n,) per row from the distribution of its group, a row of ``weights`` (g, k)
    (``ends_of``), by systematic sampling."""
    return np.asarray(drawn_lines(ends_of(weights), groups, generator) - groups * weights.shape[1])


def grouped(groups: Codes, generator: np.random.Generator) -> IntArray:
    """Rows by group, in a random order within each."""
    order = generator.permutation(groups.size)
    # numpy sorts 16-bit integers by radix, several times faster than wider ones: least significant first.
    width = int(groups.max()).bit_length() if groups.size else 0
    for shift in range(0, width, 16):
        order = order[np.argsort((groups >> shift).astype(np.uint16)[order], kind="stable")]
    return np.asarray(order)


def evenly(
    groups: Codes, generator: np.random.Generator, number: int | None = None
) -> tuple[IntArray, FloatArray]:
    """Rows by group (n,), in a random order within each, and a place in [0, 1] for each of these: those of a
    group are evenly apart, with a common jitter. ``number``: so many groups have a jitter, also those without
    rows."""
    order = grouped(groups, generator)
    if number is None:
        by_group = groups[order]
        counts = np.diff(np.flatnonzero(np.append(True, by_group[1:] != by_group[:-1])), append=groups.size)
        counts = counts[: groups.size]
    else:
        counts = np.bincount(groups, minlength=number)
    first = np.cumsum(counts) - counts - generator.random(counts.size)
    return order, (np.arange(groups.size) - np.repeat(first, counts)) / np.repeat(counts, counts)


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


def rounded_counts(probabilities: FloatArray, rows: int) -> IntArray:
    """Integers nearest to ``rows * probabilities`` that sum to ``rows`` (largest remainder)."""
    exact = probabilities * (rows / probabilities.sum())
    counts = np.floor(exact).astype(np.int64)
    missing = rows - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return np.asarray(counts, dtype=np.int64)


CANDIDATES = 8
"""Rows looked at for each row that has to change its code."""


class Quotas:
    """How many rows of each code the next batch gets, so that running counts stay on course."""

    def __init__(self, probabilities: FloatArray) -> None:
        self._probabilities = probabilities
        self._given = np.zeros(probabilities.size, dtype=np.int64)

    def next(self, rows: int) -> IntArray:
        """Counts (one per code) that sum to ``rows``."""
        goal = rounded_counts(self._probabilities, int(self._given.sum()) + rows)
        # Rounding can take one row back from a code; then the commonest codes wait for it.
        quota = np.maximum(goal - self._given, 0)
        for code in np.argsort(-quota, kind="stable"):
            surplus = int(quota.sum()) - rows
            if surplus <= 0:
                break
            quota[code] -= min(surplus, int(quota[code]))
        self._given += quota
        return np.asarray(quota, dtype=np.int64)


Scores = Callable[[Codes, Codes], NDArray[np.floating[Any]]]
"""Of rows (places) and codes, broadcast against each other: how well each code suits each row; minus infinity
where it cannot be."""


def listed(scores: NDArray[np.floating[Any]]) -> Scores:
    """The scores (n, l) of all rows and codes."""
    return lambda rows, codes: scores[rows, codes]


def meet_quotas(scores: Scores, winners: Codes, quota: IntArray) -> None:
    """Change ``winners`` (n,) in place until code j occurs ``quota[j]`` times, or no row can be changed.

    ``quota`` sums to n. Rows move from codes above their quota to codes below it, the smallest loss of
    score first, chosen among the first few rows for each one that has to go (rows are in random order).
    Every round brings at least one code to its quota, if scores are finite.
    """
    while True:
        counts = np.bincount(winners, minlength=quota.size)
        surplus = counts - quota
        short = np.flatnonzero(surplus < 0)
        if short.size == 0:
            return
        rows = _first_rows(winners, np.minimum(CANDIDATES * np.maximum(surplus, 0), counts))
        offered = scores(rows[:, None], short)
        best = offered.argmax(axis=1)
        own = winners[rows]
        loss = scores(rows, own) - offered[np.arange(rows.size), best]
        order = np.argsort(loss, kind="stable")
        order = order[np.isfinite(loss[order])]
        order = order[first_of_each(own[order], np.maximum(surplus, 0))]
        target = short[best[order]]
        accepted = first_of_each(target, np.maximum(-surplus, 0))
        if not accepted.any():
            return
        winners[rows[order[accepted]]] = target[accepted].astype(winners.dtype)


def _first_rows(winners: Codes, wanted: IntArray) -> IntArray:
    """Of each code the first ``wanted`` rows that have it, ascending; there are so many.

    Few are wanted of the rows in random order, so that the first ones of all have them.
    """
    looked = 2**12
    while True:
        start = winners[:looked]
        if looked >= winners.size or np.all(np.bincount(start, minlength=wanted.size) >= wanted):
            rows = np.flatnonzero((wanted > 0)[start])
            return np.asarray(rows[first_of_each(start[rows], wanted)])
        looked *= 4


def by_group(groups: Codes, number: int) -> IntArray:
    """Places by group (below ``number``), ascending within each."""
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    return np.argsort(groups.astype(np.uint16) if number <= 2**16 else groups, kind="stable")


def first_of_each(groups: Codes, limits: IntArray) -> NDArray[np.bool_]:
    """Mask of the first ``limits[g]`` occurrences of each g in ``groups``."""
    order = by_group(groups, limits.size)
    sorted_groups = groups[order]
    starts = np.searchsorted(sorted_groups, np.arange(limits.size))
    position = np.arange(groups.size) - starts[sorted_groups]
    mask = np.empty(groups.size, dtype=np.bool_)
    mask[order] = position < limits[sorted_groups]
    return mask


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
        upto = group_cumsum(node.weights, begins)
        self.ends: FloatArray = owners + upto / upto[np.append(begins[1:], numbers.size) - 1][owners]
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
        drawn = drawn_lines(self.ends, groups, generator, keys)
        for variable, values in zip(self.node.variables, self.values, strict=True):
            columns[variable] = values[drawn]


def drawn_in_turn(
    lines: Sequence[Lines],
    columns: Columns,
    ranks: IntArray | None,
    rows: int,
    generator: np.random.Generator,
) -> Columns:
    """``columns`` with the variables of nodes, parents first (``Lines.draw``)."""
    for node in lines:
        node.draw(columns, ranks, rows, generator)
    return columns


def counted_rows(counts: FloatArray) -> Batches:
    """Each code as often as ``counts`` says (float64, one per code, none negative), within rounding; of whole
    numbers exactly, if all rows are drawn. A shuffled list is dealt batch by batch."""
    weights = counts if counts.sum() > 0 else np.ones(counts.size)
    codes = np.arange(weights.size, dtype=code_type(weights.size))

    def draw(dealt: IntArray, generator: np.random.Generator) -> Codes:
        return generator.permutation(np.repeat(codes, dealt))[:, None]

    def begin(rows: int, seed: int) -> Iterator[Batch]:
        left = rounded_counts(weights, rows)
        for size, generator in streams(rows, BATCH_ROWS, seed):
            dealt = generator.multivariate_hypergeometric(left, size, method="marginals")
            left -= dealt
            yield partial(draw, dealt, generator)

    return Batches(begin, ONE_WAYS_MET)


def unit_sizes(noisy: IntArray, rows: int) -> IntArray:
    """Numbers of units by rows per unit that have ``rows`` rows together.

    The noisy histogram is projected to the simplex of its own total, which takes the noise out of its
    long tail; scaled so that the rows come out right; and rounded, what rounding leaves over going to
    the sizes that lost most. Where it says nothing (no positive total), each row is a unit.

    Args:
        noisy: int64 (most,); entry i is the noisy number of units with i+1 rows.
        rows: of the output.

    Returns:
        int64 (most,), not negative; the sum of (i+1) * entry i is ``rows``.
    """
    sizes = np.arange(1, noisy.size + 1, dtype=np.int64)
    projected = simplex_projection(noisy.astype(np.float64), float(noisy.sum()))
    in_rows = float(projected @ sizes)
    if in_rows <= 0:
        projected, in_rows = (sizes == 1).astype(np.float64), 1.0
    exact = projected * (rows / in_rows)
    counts = np.floor(exact).astype(np.int64)
    left = rows - int(counts @ sizes)
    for index in np.argsort(counts - exact, kind="stable"):
        if left <= 0 or counts[index] == exact[index]:
            break
        if sizes[index] <= left:
            counts[index] += 1
            left -= int(sizes[index])
    while left > 0:
        last = min(left, noisy.size)
        counts[last - 1] += 1
        left -= last
    return counts
