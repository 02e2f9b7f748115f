"""Exact laws of noise, and draws from them."""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError

# -- laws --------------------------------------------------------------------------------------------

# Laws of integer noise, evaluated in whole numbers between proven bounds.
#
# Nothing here draws or sees a count. Every bound is an integer below or above a real number, found with
# whole-number arithmetic rounded to the safe side, so that results are the same on every machine.

_GUARD = 64
"""Bits beyond those asked for. Where they do not decide a digit, there are twice as many, and so on."""

_KEPT = 32
"""Tables that are kept, of at most a hundred kilobytes each. They are functions of public scales."""


@dataclass(frozen=True, slots=True)
class Law:
    """Noise Z on whole numbers with probabilities proportional to exp(-(square z^2 + line |z|)).

    Its magnitude is a block q and a place r in it: |z| = 2^doublings q + r, 0 <= r < 2^doublings.
    """

    square: Fraction
    line: Fraction
    doublings: int

    def exponent(self, magnitude: int) -> Fraction:
        """square m^2 + line m."""
        return self.square * magnitude**2 + self.line * magnitude

    @property
    def blocks(self) -> tuple[Fraction, Fraction]:
        """The same two coefficients for the first place of a block, in numbers of blocks."""
        width = 1 << self.doublings
        return self.square * width**2, self.line * width


def gaussian_law(sigma: float) -> Law:
    """The discrete Gaussian (Canonne, Kamath, Steinke 2020, Definition 1) whose scale is exactly the float
    ``sigma``. A block is at most 1/32 of it, or 1.

    Raises:
        InternalError: the scale is not a number above 0.
    """
    return Law(1 / (2 * _exactly(sigma) ** 2), Fraction(0), max(0, math.frexp(sigma)[1] - 6))


def laplace_law(scale: float) -> Law:
    """The discrete Laplace whose scale is exactly the float ``scale``. A block is at most 1/16 of it, or 1.

    Raises:
        InternalError: the scale is not a number above 0.
    """
    return Law(Fraction(0), 1 / _exactly(scale), max(0, math.frexp(scale)[1] - 5))


@lru_cache(maxsize=_KEPT)
def block_floors(law: Law, bits: int) -> tuple[int, ...]:
    """floor(2^bits F(q)) for q = 0, 1, ..., up to the first that is 2^bits - 1, as all that follow are.

    F is the cumulative distribution of blocks that are proposed: their probabilities are proportional to
    exp(-law.exponent(2^doublings q)). If a block is one number, that of block 0 is half of this, since its
    sign says nothing.
    """
    precision = bits + _GUARD
    while (found := _floors(law, bits, precision)) is None:
        precision *= 2
    return found


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers below and above 2^bits exp(-exponent), for an exponent of at least 0.

    The alternating series at exponent / 2^h < 1/2, of which the first term left out bounds the rest; then h
    squares. Terms and squares are rounded to either side.
    """
    one, number, divisor = 1 << bits, exponent.numerator, exponent.denominator
    squares = max(0, number.bit_length() - divisor.bit_length() + 2)
    shrunk = divisor << squares
    least, most = (number << bits) // shrunk, _up(number << bits, shrunk)
    low = high = 0
    term_low = term_high = one
    index, sign = 0, 1
    while term_high > 1:
        low += term_low if sign > 0 else -term_high
        high += term_high if sign > 0 else -term_low
        index, sign = index + 1, -sign
        term_low = (term_low * least >> bits) // index
        term_high = _up(_up(term_high * most, one), index)
    low, high = max(0, low - term_high), min(one, high + term_high)
    for _ in range(squares):
        low, high = low * low >> bits, _up(high * high, one)
    return low, high


def _floors(law: Law, bits: int, precision: int) -> tuple[int, ...] | None:
    """As ``block_floors``; None if ``precision`` bits do not decide some of the digits."""
    rest = 1 << (precision - bits) // 2  # what all blocks left out may weigh, in 2^-precision
    lows, highs, before = list[int](), list[int](), 0
    for low, high, after in _weights(law, precision):
        lows.append(low)
        highs.append(high)
        if after <= rest or after == before:  # as small as asked for, or as these bits can tell
            break
        before = after
    last, below, above = (1 << bits) - 1, 0, 0
    least, most = sum(lows), sum(highs) + after
    found = list[int]()
    for low, high in zip(lows, highs, strict=True):
        below, above = below + low, above + high
        floor = (below << bits) // (below + most - above)
        if floor != min(last, (above << bits) // (above + least - below)):
            return None
        found.append(floor)
        if floor == last:
            return tuple(found)
    return None


def _weights(law: Law, precision: int) -> Iterator[tuple[int, int, int]]:
    """Of each block: bounds of its weight, and a bound of what all blocks after it weigh, in 2^-precision.

    A weight is the one before it times a ratio, and ratios never grow: what follows is less than a geometric
    series.
    """
    one = 1 << precision
    square, line = law.blocks
    falls = exp_bounds(2 * square, precision)
    ratio = exp_bounds(square + line, precision)
    low = high = one
    halves = int(law.doublings == 0)
    while True:
        next_low, next_high = low * ratio[0] >> precision, _up(high * ratio[1], one)
        yield low >> halves, high >> halves, _up(next_high * one, one - ratio[1])
        low, high, halves = next_low, next_high, 0
        ratio = ratio[0] * falls[0] >> precision, _up(ratio[1] * falls[1], one)


def _exactly(scale: float) -> Fraction:
    if not (math.isfinite(scale) and scale > 0):
        raise InternalError("noise needs a scale above 0")
    return Fraction(scale)


def _up(number: int, divisor: int) -> int:
    return -(-number // divisor)


# -- draws -------------------------------------------------------------------------------------------

# Noise of an exact law, drawn for many cells at once from bits of the operating system.
#
# A draw compares a real number U, uniform on [0, 1), with a probability F. Of U, 32 bits are drawn first, and
# F is known between two bounds. Where these do not decide, further bits of both do: the law is that of real
# numbers, without an error. All values are integers. The argument stands in docs/privacy.md, "Noise".

Bits = Callable[[int], bytes]
"""As many fresh random bytes as are asked for. Only tests pass in others than the operating system's."""

_AT_ONCE = 2**14
"""Cells of a part: what is computed for them fits into the cache of a core."""

_FIRST, _MORE = 32, 64
"""Bits of U that are drawn for every cell, and those that follow where they do not decide."""

_GUARD_OF_DRAWING = 16
"""Bits of a bound beyond those of U, for its rounding."""

_MOST_BLOCKS = 512
"""From this block on, whole numbers of 64 bits do not hold what ``_exp_bounds`` computes. Only one draw in
ten million is of such a block."""

_TABLES = 200
"""Tables that are kept, of at most 4 kilobytes each."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A law in words. ``floors`` ascend; there is a power of two of them, filled up with the largest word.
    ``square`` and ``line`` are those of ``Law.blocks``, rounded down, in units of 2^-40 and 2^-32."""

    floors: NDArray[np.uint32]
    square: np.uint64
    line: np.uint64


@lru_cache(maxsize=_TABLES)
def _table(law: Law) -> _Table:
    found = block_floors(law, _FIRST)
    floors = np.full(1 << len(found).bit_length(), 2**_FIRST - 1, dtype=np.uint32)
    floors[: len(found)] = found
    floors.flags.writeable = False
    if law.doublings == 0:
        return _Table(floors, np.uint64(0), np.uint64(0))
    square, line = law.blocks
    return _Table(floors, np.uint64(int(square * 2**40)), np.uint64(int(line * 2**32)))


def drawn(law: Law, number: int, bits: Bits = os.urandom) -> NDArray[np.int64]:
    """Independent noise of the law, int64[number].

    Raises:
        OSError: the operating system gives no random bytes.
    """
    noise, filled = np.empty(number, dtype=np.int64), 0
    while filled < number:
        fresh = _accepted(law, min(_AT_ONCE, number - filled), bits)
        noise[filled : filled + len(fresh)] = fresh
        filled += len(fresh)
    return noise


def _accepted(law: Law, number: int, bits: Bits) -> NDArray[np.int64]:
    """Noise of the law: what is accepted of ``number`` proposals, in their order.

    A magnitude is a block and a place in it. A place is proposed uniformly, and accepted with the probability
    by which its weight is below that of the first place. Zero has one sign only.
    """
    table = _table(law)
    if law.doublings == 0:
        first, second = _words(2, number, bits)
        return _signed(_blocks(law, table, first, bits), second)
    first, second, third = _words(3, number, bits)
    blocks = _blocks(law, table, first, bits)
    places = (second >> (_FIRST - law.doublings)).astype(np.int64)
    magnitudes = (blocks << law.doublings) + places
    kept = _kept(law, table, blocks, places, third, bits)
    kept &= (magnitudes > 0) | (second & 1 == 0)
    return _signed(magnitudes, second)[kept]


def _words(rows: int, number: int, bits: Bits) -> NDArray[np.uint32]:
    """Fresh random words, uint32[rows, number]. Each serves one proposal, each of its bits one purpose."""
    return np.frombuffer(bits(4 * rows * number), dtype=np.uint32).reshape(rows, number)


def _signed(magnitudes: NDArray[np.int64], words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Magnitudes with the sign that the last bit of a word says."""
    return magnitudes * (1 - 2 * (words & 1).astype(np.int64))


def _blocks(law: Law, table: _Table, words: NDArray[np.uint32], bits: Bits) -> NDArray[np.int64]:
    """Of each U that begins with a word: how many of F(0), F(1), ... it reaches.

    A binary search of as many steps for every word.
    """
    floors, found = table.floors, np.zeros(len(words), dtype=np.int64)
    step = len(floors) // 2
    while step:
        found += (floors[found + (step - 1)] < words) * np.int64(step)
        step //= 2
    for index in np.flatnonzero(floors[found] == words).tolist():
        found[index] = _block(law, int(words[index]), bits)
    return found


def _block(law: Law, word: int, bits: Bits) -> int:
    """The block of a U that begins as some F do: more bits of both, until none of them does.

    Raises:
        InternalError: its numbers do not fit into int64.
    """
    known = _FIRST
    while True:
        word, known = _lengthened(word, bits), known + _MORE
        floors = block_floors(law, known)
        found = bisect_left(floors, word)
        if floors[found] != word:
            break
    if found >> (63 - law.doublings):
        raise InternalError("noise does not fit into 64 bits")
    return found


def _kept(
    law: Law,
    table: _Table,
    blocks: NDArray[np.int64],
    places: NDArray[np.int64],
    words: NDArray[np.uint32],
    bits: Bits,
) -> NDArray[np.bool_]:
    """Whether U, which begins with a word, is below exp(-x), where x is the exponent less that of the first
    place of the block."""
    low, high = _exp_bounds(
        table,
        np.minimum(blocks, _MOST_BLOCKS - 1).astype(np.uint64),
        places.astype(np.uint64) << np.uint64(_FIRST - law.doublings),
    )
    kept = words < low
    for index in np.flatnonzero((kept != (words < high)) | (blocks >= _MOST_BLOCKS)).tolist():
        start = int(blocks[index]) << law.doublings
        grown = law.exponent(start + int(places[index])) - law.exponent(start)
        kept[index] = _below(int(words[index]), grown, bits)
    return kept


def _exp_bounds(
    table: _Table, blocks: NDArray[np.uint64], fractions: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Bounds of 2^32 exp(-x) for x = f (square (2 q + f) + line), with f in units of 2^-32.

    In these units x is computed as X with X <= x < X + 8: square is at most 2^-11 and 2 q + f below 2^10, so
    rounding square down loses less than 4, and the other roundings less than 4 together. For any x >= 0,
    1 - x + x^2 / 2 - x^3 / 6 <= exp(-x) <= 1 - x + x^2 / 2.
    """
    twice = (blocks << np.uint64(25)) + (fractions >> np.uint64(8))  # 2 q + f in units of 2^-24
    slope = (table.square * twice >> np.uint64(32)) + table.line
    x = fractions * slope >> np.uint64(32)
    high = np.uint64(2**32 + 1) - x + (x * x >> np.uint64(33))
    root = (x >> np.uint64(16)) + np.uint64(2)  # above X + 8 in units of 2^-16
    return high - np.uint64(10) - (root * root * root >> np.uint64(18)), high


def _below(word: int, exponent: Fraction, bits: Bits) -> bool:
    """Whether U, which begins with a word, is below exp(-exponent)."""
    known = _FIRST
    while True:
        low, high = exp_bounds(exponent, known + _GUARD_OF_DRAWING)
        if (word + 1) << _GUARD_OF_DRAWING <= low:
            return True
        if word << _GUARD_OF_DRAWING >= high:
            return False
        word, known = _lengthened(word, bits), known + _MORE


def _lengthened(word: int, bits: Bits) -> int:
    return word << _MORE | int.from_bytes(bits(_MORE // 8), "big")
