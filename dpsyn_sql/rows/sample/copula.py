"""Rows of copulas. Of the Gaussian copula: normals, Cholesky factor, offsets, argmax, quotas. Algorithm 4 of
the Gaussian-copula release, in batches of bounded memory, in float32.

Of DPCopula: correlated normals of every part, then the quantile of each one's rank. The ranks of the rows of
a part, shifted by a common jitter, are laid over the codes in order (systematic sampling): every code occurs
within one row as often as expected, and the order of the normals stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import ssyrk, strmm
from scipy.special import ndtr

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.fit.copula import Block, FittedCopula, commonest_first
from dpsyn_sql.fit.latent import FittedLatent
from dpsyn_sql.rows.sample.systematic import BATCH_ROWS as INDEPENDENT_ROWS
from dpsyn_sql.rows.sample.systematic import (
    CANDIDATES,
    LOW_VARIANCE,
    ONE_WAYS_MET,
    Batch,
    Batches,
    Quotas,
    Scores,
    batch_sizes,
    code_type,
    generator_of,
    meet_quotas,
    streams,
)

BATCH_ROWS, BATCH_VALUES = 2**16, 2**26
"""Rows and latent values of a batch, at most: constants, so that a seed means the same rows on every machine.
Two batches are drawn side by side, of at most 256 MB each; of copulas in parts 300 attributes take 300 MB."""

FRESH_ROWS = 2**18
"""Rows up to which each batch has normals of its own. More rows come from pools, pass after pass."""

FIRST_LOOK = 4
"""Quotas are met by one row out of so many, if no more than half of those of any code have to change."""

_LANES = 2
# Pools that are drawn from in turn.


def copula_rows(fitted: FittedCopula) -> Batches:
    """Rows of a fitted copula; one-way counts are met within rounding."""

    def begin(rows: int, seed: int) -> Iterator[Batch]:
        blocks, columns = fitted.blocks, max(1, len(fitted.factor))
        sizes = batch_sizes(rows, max(1, min(BATCH_ROWS, BATCH_VALUES // columns)))
        passes = PASSES if rows > FRESH_ROWS and sizes[0] >= BALANCED_ROWS * columns else 1
        quotas = [Quotas(block.probabilities) for block in blocks]
        lanes = [_Lane(fitted, max(sizes, default=0), passes) for _ in range(_LANES)]
        for index, size in enumerate(sizes):
            # A lane draws one batch at a time: its last is complete when its next begins.
            draw, counts = lanes[index % _LANES].batch, [quota.next(size) for quota in quotas]
            yield partial(draw, size, generator_of(seed, index), counts)

    return Batches(begin, ONE_WAYS_MET)


class _Lane:
    """Every other batch: passes of one pool of latent vectors, then of a new one."""

    def __init__(self, fitted: FittedCopula, largest: int, passes: int) -> None:
        self._fitted, self._passes = fitted, passes
        self._size = largest + largest % 2
        self._dtype = code_type(max((own.size for own in fitted.margins.probabilities.values()), default=1))
        self._pool: LatentPool | None = None
        self._done = 0

    def batch(self, rows: int, generator: np.random.Generator, quotas: Sequence[IntArray]) -> Codes:
        """Codes (rows, attributes), as many of each as ``quotas`` has, attribute by attribute."""
        pool = self._next_pass(generator)
        codes = np.empty((len(self._fitted.blocks), rows), dtype=self._dtype)
        for own, block, quota in zip(codes, self._fitted.blocks, quotas, strict=True):
            offsets = pool.scale * self._fitted.offsets[block.start : block.stop]
            own[:] = block.codes.astype(self._dtype)[_drawn(pool, block, offsets, quota)[:rows]]
        return codes.T

    def _next_pass(self, generator: np.random.Generator) -> LatentPool:
        if self._pool is not None and self._done < self._passes:
            self._pool.rotate(generator)
        else:
            self._pool, self._done = None, 0  # the room of the old one is free before the new one is made
            self._pool = LatentPool(self._fitted.factor, self._size, generator)
        self._done += 1
        return self._pool


def _drawn(pool: LatentPool, block: Block, offsets: Latent, quota: IntArray) -> Codes:
    """The place in its block of each row's code in this pass; of the first rows, ``quota`` has each place's.

    ``offsets`` are of this block, at the scale of the pool.
    """
    rows = int(quota.sum())
    if block.start == block.stop:
        return np.zeros(rows, dtype=np.uint8)
    if block.of_two:
        latent = (pool.column(block.start) + offsets[0])[:rows] * np.sign(pool.scale)
        return _second_wins(latent, int(quota[1])).view(np.uint8)
    winners = _winners(pool, block, offsets)[:rows]
    _meet(_scores(pool, block, offsets), winners, quota)
    return winners


def _meet(scores: Scores, winners: Codes, quota: IntArray) -> None:
    """``meet_quotas`` by the first rows alone if these have enough of each code: rows are in random order."""
    first = winners[: winners.size // FIRST_LOOK]
    left = quota - np.bincount(winners[first.size :], minlength=quota.size)
    if np.all(2 * left >= np.bincount(first, minlength=quota.size)):
        meet_quotas(scores, first, left)
    else:
        meet_quotas(scores, winners, quota)


def _winners(pool: LatentPool, block: Block, offsets: Latent) -> Codes:
    """The place of the largest latent value plus offset in each row, the first of equal ones."""
    # At a scale below 0 the largest is the least.
    beats, further = (np.greater, np.maximum) if pool.scale > 0 else (np.less, np.minimum)
    best = pool.column(block.start) + offsets[0]
    dtype = code_type(block.codes.size)
    score, wins = np.empty_like(best), np.empty(best.size, dtype=np.bool_)
    winners, own = np.zeros(best.size, dtype=dtype), np.empty(best.size, dtype=dtype)
    for place in range(1, block.codes.size):
        np.add(pool.column(block.start + place), offsets[place], out=score)
        beats(score, best, out=wins)
        # The last place that wins is the largest so far: many times faster than to write it where it wins.
        np.multiply(wins.view(np.uint8), dtype(place), out=own)
        np.maximum(winners, own, out=winners)
        further(score, best, out=best)
    return winners


def _scores(pool: LatentPool, block: Block, offsets: Latent) -> Scores:
    """How well each code of a block suits each row in this pass."""
    latent, sign = pool.values[block.start : block.stop], np.sign(pool.scale)

    def scores(rows: Codes, places: Codes) -> Latent:
        if rows.ndim == 1:
            return np.asarray(sign * (latent[places, rows] + offsets[places]))
        # Column by column: the rows of one lie near each other.
        return np.stack([sign * (latent[place].take(rows[:, 0]) + offsets[place]) for place in places]).T

    return scores


def _second_wins(latent: Latent, wanted: int) -> NDArray[np.bool_]:
    """Of two codes, in which rows the second wins: in ``wanted`` of them.

    The rows nearest to 0 change sides, chosen among the first few for each that has to (``meet_quotas``).
    """
    wins = latent > 0
    surplus = int(np.count_nonzero(wins)) - wanted
    if surplus:
        rows = np.flatnonzero(wins if surplus > 0 else ~wins)[: CANDIDATES * abs(surplus)]
        nearest = np.argpartition(np.abs(latent[rows]), abs(surplus) - 1)[: abs(surplus)]
        wins[rows[nearest]] = surplus < 0
    return np.asarray(wins)


def product_rows(probabilities: Sequence[FloatArray], *, in_one_order: bool = False) -> Batches:
    """Rows of independent attributes; one-way counts are met within rounding.

    Args:
        probabilities: float64, one per code, of each attribute in domain order.
        in_one_order: all attributes follow one latent normal, commonest codes first (``FixedCopula``): only
            the ranks of the normals matter, which are an order of the rows.
    """
    sizes = [own.size for own in probabilities]
    orders = [commonest_first(own) if in_one_order else np.arange(own.size) for own in probabilities]

    def draw(size: int, generator: np.random.Generator, quotas: Sequence[IntArray]) -> Codes:
        codes = np.empty((size, len(sizes)), code_type(max(sizes, default=1)))
        place = generator.permutation(size) if in_one_order else slice(None)
        for column, (order, quota) in enumerate(zip(orders, quotas, strict=True)):
            listed = np.repeat(order.astype(codes.dtype), quota[order])
            codes[place, column] = listed if in_one_order else generator.permutation(listed)
        return codes

    def begin(rows: int, seed: int) -> Iterator[Batch]:
        quotas = [Quotas(own) for own in probabilities]
        batch = BATCH_ROWS if in_one_order else INDEPENDENT_ROWS
        for size, generator in streams(rows, batch, seed):
            yield partial(draw, size, generator, [quota.next(size) for quota in quotas])

    return Batches(begin, ONE_WAYS_MET)


FEWEST_RANKED = 64
"""Rows of a part in a batch below which ranks say too little of where a normal lies: of one row nothing."""


def latent_rows(fitted: FittedLatent) -> Batches:
    """Rows of a fitted copula in parts, with low variance."""

    def begin(rows: int, seed: int) -> Iterator[Batch]:
        found = np.linalg.cholesky(fitted.correlations) if fitted.latent else fitted.correlations
        factors = np.asarray(found, dtype=np.float64)
        for size, generator in streams(rows, BATCH_ROWS, seed):
            yield partial(_in_parts, fitted, factors, size, generator)

    return Batches(begin, LOW_VARIANCE)


def _in_parts(fitted: FittedLatent, factors: FloatArray, size: int, generator: np.random.Generator) -> Codes:
    """A batch; ``factors``: of the correlations of each part."""
    parts = _ends(fitted.parts.ravel())
    dtype = code_type(max((bins.size for bins in fitted.ordered.bins), default=1))
    codes = np.empty((len(fitted.ordered.bins), size), dtype=dtype)
    order = generator.permutation(size)
    own = _at(parts, (np.arange(size) + generator.random()) / size)
    for axis, attribute in enumerate(fitted.split):
        codes[attribute, order] = np.unravel_index(own, fitted.parts.shape)[axis]
    for part, members in _groups(own, order):
        _fill(fitted, codes, members, part, factors[part], generator)
    return codes.T


def _fill(
    fitted: FittedLatent,
    codes: Codes,
    members: IntArray,
    part: int,
    factor: FloatArray,
    generator: np.random.Generator,
) -> None:
    """The latent attributes of the rows ``members``, all of one part; ``codes`` is (attributes, rows)."""
    ordered = fitted.ordered
    normals = factor @ generator.standard_normal((members.size, len(fitted.latent))).T
    for latent, attribute, margin in zip(normals, fitted.latent, fitted.margins, strict=True):
        own = margin[part][ordered.bins[attribute]] * ordered.within[attribute]
        order, places = _placed(latent, generator)
        codes[attribute, members[order]] = _at(_ends(own), places)


def _placed(normals: FloatArray, generator: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Rows, and where in [0, 1) each lies: its rank among the rows, or for a few rows its probability."""
    if normals.size < FEWEST_RANKED:
        return np.arange(normals.size), np.asarray(ndtr(normals))
    # Equal normals are rarer than one in a billion rows, so any sort gives the same order.
    return np.argsort(normals), (np.arange(normals.size) + generator.random()) / normals.size


def _ends(probabilities: FloatArray) -> FloatArray:
    """The upper end of each code in [0, 1]; what is impossible is never reached."""
    ends = np.cumsum(probabilities)
    last = int(np.flatnonzero(probabilities > 0)[-1])
    ends = ends / ends[-1]
    ends[last:] = 1.0
    return np.asarray(ends)


def _at(ends: FloatArray, places: FloatArray) -> IntArray:
    found = np.searchsorted(ends, np.minimum(places, np.nextafter(1.0, 0.0)), side="right")
    return np.asarray(found, dtype=np.int64)


def _groups(parts: IntArray, order: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each part and its rows; ``parts`` ascend."""
    numbers, starts = np.unique(parts, return_index=True)
    yield from zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)


Latent = NDArray[np.float32]

STAGES = 3
"""Sums and differences on the way from a pass to the next: each of its rows is made of 2**STAGES rows."""

PASSES = 64
"""Passes of a pool. Values grow by 2**(STAGES/2) from one to the next, which single precision holds so often;
a pool costs as much as twenty passes."""

BALANCED_ROWS = 4
"""Rows of a pool for each column from which it is balanced: with fewer, rows would depend on each other."""


class LatentPool:
    """Latent vectors of one pass after the other, a row each.

    Within a pass they are normal with covariance ``factor @ factor.T``, and independent, except that a
    balanced pool has exactly this covariance as its own in every pass. An orthogonal map cannot change the
    covariance of a pool: without balance many passes would all repeat the error of the first.

    ``values`` (columns, rows) float32 are the vectors times ``scale``, which may be negative: what they are
    compared with is scaled, not they.
    """

    def __init__(self, factor: Latent, rows: int, generator: np.random.Generator) -> None:
        """``factor`` (columns, columns) is lower triangular, ``rows`` even."""
        normals = generator.standard_normal((len(factor), rows), dtype=np.float32)
        if rows >= BALANCED_ROWS * len(factor) > 0:
            factor = _balancing(factor, normals)
        self.values = _multiplied(factor, normals)
        self.scale = np.float32(1.0)
        self._shifts: list[int] = []
        self._room = np.empty((STAGES - 1, rows), dtype=np.float32)

    def rotate(self, generator: np.random.Generator) -> None:
        """Begin the next pass: choose the map that ``column`` applies to each column.

        In each stage row i of the first half and row i of the second become their sum and their difference.
        Differences move on by a random number of rows, so that the next stage joins others. The sign of a
        pass is random, so that means of odd functions of a row do not follow those of the pass before.
        """
        self._shifts = generator.integers(0, self.values.shape[1] // 2, STAGES).tolist()
        self.scale = np.float32(abs(self.scale) * 2.0 ** (STAGES / 2) * generator.choice((-1.0, 1.0)))

    def column(self, place: int) -> Latent:
        """One column (rows,) of this pass, a view; to be asked for once in every pass."""
        own: Latent = self.values[place]
        half, source = own.size // 2, own
        targets = (*self._room, own) if self._shifts else ()
        for shift, target in zip(self._shifts, targets, strict=True):
            first, second = source[:half], source[half:]
            sums, differences = target[:half], target[half:]
            np.add(first, second, out=sums)
            np.subtract(first[shift:], second[shift:], out=differences[: half - shift])
            np.subtract(first[:shift], second[:shift], out=differences[half - shift :])
            source = target
        return own


def _multiplied(factor: Latent, normals: Latent) -> Latent:
    """``factor @ normals``, overwriting the normals: half the work of a full product."""
    if normals.size == 0:
        return normals
    # The transpose of a C-ordered batch is Fortran-ordered, which BLAS can multiply in place.
    lower = np.asfortranarray(factor)
    return np.asarray(strmm(1.0, lower, normals.T, side=1, lower=1, trans_a=1, overwrite_b=1)).T


def _balancing(factor: Latent, normals: Latent) -> Latent:
    """The lower triangular matrix that gives these very normals the covariance ``factor @ factor.T``."""
    found = ssyrk(1.0 / normals.shape[1], normals.T, trans=1, lower=1).astype(np.float64)
    own = np.linalg.cholesky(found)  # reads the lower triangle
    return np.asarray(solve_triangular(own, factor.T, lower=True, trans="T").T, dtype=np.float32)
