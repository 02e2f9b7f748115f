"""Laws of integer noise, evaluated in whole numbers between proven bounds.

Nothing here draws or sees a count. Every bound is an integer below or above a real number, found with
whole-number arithmetic rounded to the safe side, so that results are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dpsyn_sql.errors import InternalError

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
