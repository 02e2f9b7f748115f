"""Bounds and tables of the noise, against decimals of 120 digits and closed forms."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsyn_sql.private.measure.laws as laws_module
from dpsyn_sql.errors import InternalError
from dpsyn_sql.private.measure.laws import Law, block_floors, exp_bounds, gaussian_law, laplace_law

DIGITS = 120
SCALES = [0.05, 0.3, 0.7, 1.0, 2.5, 10.0, 31.9, 32.0, 63.9, 64.0, 100.1, 1000.3, 130_000.7, 2.0**36 - 2**8]


def decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def cumulative(law):
    """F(0), F(1), ... of the blocks in decimals, until what is missing is below 1e-40: for the Gaussian by
    adding up one exponential function for each block, for the Laplace by its closed form."""
    width = 1 << law.doublings
    if law.square:
        rate, weights = decimal(law.square * width**2), []
        while not weights or weights[-1] > Decimal("1e-100"):
            weights.append((-rate * len(weights) ** 2).exp())
        weights[0] /= 2 if law.doublings == 0 else 1
        total, sums = sum(weights), [Decimal(0)]
        for weight in weights:
            sums.append(sums[-1] + weight)
        values = [one / total for one in sums[1:]]
    else:
        falls = (-decimal(law.line) * width).exp()
        values, left = [], Decimal(1)
        while left > Decimal("1e-42"):
            left *= falls
            values.append(1 - left * (2 / (1 + falls) if law.doublings == 0 else 1))
    return [one for one in values if one < 1 - Decimal("1e-40")] + [1 - Decimal("1e-41")]


@pytest.mark.parametrize("bits", [8, 32, 96])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law_of", [gaussian_law, laplace_law])
def test_every_entry_of_a_table_is_the_floor_of_its_probability(law_of, scale, bits):
    law = law_of(scale)
    with localcontext(prec=DIGITS):
        expected = [int(value * 2**bits) for value in cumulative(law)]
    found = list(block_floors(law, bits))
    assert not [place for place, (one, two) in enumerate(zip(found, expected, strict=False)) if one != two]
    assert len(found) <= len(expected)
    assert found[-1] == 2**bits - 1 and 2**bits - 1 not in found[:-1]


@given(
    st.fractions(0, 10, max_denominator=10**9) | st.fractions(0, 10**6, max_denominator=10),
    st.integers(16, 200),
)
def test_bounds_of_the_exponential_function_hold(exponent, bits):
    with localcontext(prec=DIGITS):
        true = (-decimal(exponent)).exp() * 2**bits
    low, high = exp_bounds(exponent, bits)
    assert low <= true <= high
    assert high - low < 100 * max(1, exponent)


def test_bounds_of_nothing_are_exact():
    assert exp_bounds(Fraction(0), 64) == (2**64, 2**64)
    assert exp_bounds(Fraction(10**300), 64) == (0, 1)


@pytest.mark.parametrize("law", [gaussian_law(0.7), gaussian_law(500.5), laplace_law(9.0)])
def test_too_few_bits_are_noticed_and_there_are_more(law, monkeypatch):
    right = block_floors(law, 32)
    assert laws_module._floors(law, 32, 33) is None
    monkeypatch.setattr(laws_module, "_GUARD", 1)
    block_floors.cache_clear()
    assert block_floors(law, 32) == right
    block_floors.cache_clear()


@given(st.floats(1e-300, 2.0**36, exclude_max=True))
def test_the_law_is_that_of_the_float_as_it_stands(scale):
    gaussian, laplace = gaussian_law(scale), laplace_law(scale)
    assert gaussian.exponent(7) == Fraction(49) / (2 * Fraction(scale) ** 2)
    assert laplace.exponent(7) == Fraction(7) / Fraction(scale)
    for law, least in ((gaussian, 32), (laplace, 16)):
        blocks = Fraction(scale) / 2**law.doublings
        assert blocks < 2 * least and (law.doublings == 0 or blocks >= least)
        assert law.doublings <= 31


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("law_of", [gaussian_law, laplace_law])
def test_a_scale_that_is_no_number_above_zero_is_refused(law_of, scale):
    with pytest.raises(InternalError, match="above 0"):
        law_of(scale)


def test_blocks_and_places_make_the_exponent():
    """The weight of a magnitude is that of its block, times what the place takes off."""
    law = Law(Fraction(1, 7), Fraction(2, 3), 3)
    square, line = law.blocks
    assert [law.exponent(8 * q) for q in range(5)] == [square * q**2 + line * q for q in range(5)]
