"""Noise of an exact law, drawn for many cells at once from bits of the operating system.

A draw compares a real number U, uniform on [0, 1), with a probability F. Of U, 32 bits are drawn first, and F
is known between two bounds. Where these do not decide, further bits of both do: the law is that of real
numbers, without an error. All values are integers. The argument stands in docs/privacy.md, "Noise".
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InternalError
from dpsyn_sql.private.measure.laws import Law, block_floors, exp_bounds

Bits = Callable[[int], bytes]
"""As many fresh random bytes as are asked for. Only tests pass in others than the operating system's."""

_AT_ONCE = 2**14
"""Cells of a part: what is computed for them fits into the cache of a core."""

_FIRST, _MORE = 32, 64
"""Bits of U that are drawn for every cell, and those that follow where they do not decide."""

_GUARD = 16
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
        low, high = exp_bounds(exponent, known + _GUARD)
        if (word + 1) << _GUARD <= low:
            return True
        if word << _GUARD >= high:
            return False
        word, known = _lengthened(word, bits), known + _MORE


def _lengthened(word: int, bits: Bits) -> int:
    return word << _MORE | int.from_bytes(bits(_MORE // 8), "big")
