"""Discrete Gaussian noise is a randomised rounding of normal noise, up to a factor (docs/privacy.md, "Exact
Gaussian accounting"): every sum is made term by term, in 60 digits."""

import math
from decimal import Decimal, localcontext

import pytest
from scipy.special import ndtri
from support.gaussian import exact_delta, noise_masses, trade_off_floats

from dpsyn_sql.accounting.gdp import LATTICE, MOST_CELLS, SMOOTHING, gaussian_cost

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534")
DIGITS = 60


def density(x, scale):
    return (-(x * x) / (2 * scale * scale)).exp() / (scale * (2 * PI).sqrt())


def smallest_factor(s_squared):
    """e = 2 sum exp(-2 pi^2 s^2 k^2)."""
    return 2 * sum((-2 * PI * PI * s_squared * k * k).exp() for k in range(1, 12))


def normaliser(y, s_squared):
    """The sum over the integers that the rounding kernel is divided by."""
    start = math.floor(y)
    return sum((-((start + k - y) ** 2) / (2 * s_squared)).exp() for k in range(-30, 32))


STEPS = 8
"""Of the integral, per integer: the trapezoidal rule is exact to 40 digits for a function this smooth."""


def rounded(z, shift, scale, s_squared):
    """P[rounding N(shift, scale^2 - s^2) gives z]."""
    narrow = (scale * scale - s_squared).sqrt()
    centre = int((shift * s_squared + z * narrow * narrow) / (scale * scale))  # where the integrand is large
    normalisers = [normaliser(Decimal(i) / STEPS, s_squared) for i in range(STEPS)]
    reach = 1 + int(14 * min(narrow, s_squared.sqrt()))
    points = ((Decimal(i) / STEPS, normalisers[i % STEPS]) for i in range(-STEPS * reach, STEPS * reach))
    return sum(
        (-((z - centre - y) ** 2) / (2 * s_squared)).exp()
        / whole
        * density(centre + y - shift, narrow)
        / STEPS
        for y, whole in points
    )


@pytest.mark.parametrize("s_squared", ["0.25", "1", "1.5", "3", "4"])
def test_the_rounding_is_normalised_to_a_factor(s_squared):
    """1 + e at the integers, 1 - e halfway between them at most."""
    with localcontext(prec=DIGITS):
        s_squared = Decimal(s_squared)
        small = smallest_factor(s_squared)
        smooth = (2 * PI * s_squared).sqrt()
        ratios = [normaliser(Decimal(i) / 20, s_squared) / smooth - 1 for i in range(-20, 41)]
        assert max(map(abs, ratios)) <= small * (1 + Decimal("1e-15"))
        assert ratios[20] == pytest.approx(small, rel=Decimal("1e-15"))


@pytest.mark.parametrize(
    ("s_squared", "scale"), [("0.25", "0.75"), ("0.25", "2"), ("1", "1.3"), ("1.5", "3")]
)
@pytest.mark.parametrize("shift", [0, 1, 5])
def test_noise_and_rounded_normals_are_within_the_factors(s_squared, scale, shift):
    """For small s, where the factors show: e is 0.014 at s^2 = 0.25, and 5e-9 at 1."""
    with localcontext(prec=40):
        s_squared, scale = Decimal(s_squared), Decimal(scale)
        small = smallest_factor(s_squared)
        whole = sum((-Decimal(z * z) / (2 * scale * scale)).exp() for z in range(-60, 61))
        worst = Decimal(0)
        for z in range(shift - 4, shift + 5):
            noise = (-Decimal((z - shift) ** 2) / (2 * scale * scale)).exp() / whole
            ratio = noise / rounded(z, shift, scale, s_squared)
            assert (1 - small) / (1 + small) <= ratio <= 1 + small
            worst = max(worst, abs(ratio - 1))
        if scale == Decimal("0.75"):
            assert worst > small / 50, "the test would not see a factor that is forgotten"


def test_the_constants_pay_for_every_cell_that_can_be_answered():
    """As many questions as a question has cells: less than the 1e-9 that is kept off epsilon and delta."""
    with localcontext(prec=DIGITS):
        small = smallest_factor(Decimal(SMOOTHING))
        cells = Decimal(MOST_CELLS) ** 2
        assert small < Decimal("1.1e-34")
        assert cells * ((1 + small) ** 2 / (1 - small)).ln() < Decimal("1e-9")
        grown = (cells * (1 + small).ln()).exp()
        # Deltas of thresholds, at most a ninth of the share for conversion, grow by the same factor.
        assert grown * (1 - Decimal("1e-9")) + (grown - 1) / 9 <= 1


GRID = [(1.0, 2, LATTICE), (2.0, 9, LATTICE)]
GRID += [(sigma, m, lattice) for sigma, m in ((4.0, 5), (4.0, 1), (8.0, 2)) for lattice in (1, LATTICE)]


@pytest.mark.parametrize(("sigma", "tables", "lattice"), GRID)
def test_exact_deltas_of_integer_noise_are_within_the_price(sigma, tables, lattice):
    """Every output of ``tables`` answers is summed; no bound is involved on that side."""
    price = gaussian_cost(tables, sigma, lattice)
    mu = math.sqrt(2 * price)
    for epsilon in (0.1, 0.5, 1, 2, 4, 8):
        exact = exact_delta(sigma * lattice, lattice, tables, epsilon)
        assert exact <= trade_off_floats(mu, math.exp(epsilon)) * (1 + 1e-9) + 1e-16
        if lattice > 1 and sigma > 1 and exact > 1e-12:
            smaller = trade_off_floats(mu * 0.99, math.exp(epsilon))
            assert exact > smaller, "a price one part in fifty lower would not hold"


UNSAFE = [(2.0, 9, 9.746531), (8.0, 2, 0.973353)]


@pytest.mark.parametrize(("sigma", "tables", "epsilon"), UNSAFE)
def test_noise_on_whole_counts_costs_more_than_that_of_normals(sigma, tables, epsilon):
    """mu^2 = tables / sigma^2 claims 9e-10 at this epsilon; the exact delta is more. On sixteenths, at
    the price that is charged, it is less."""
    claimed = trade_off_floats(math.sqrt(tables) / sigma, math.exp(epsilon))
    assert claimed == pytest.approx(9e-10, rel=2e-5)
    assert exact_delta(sigma, 1, tables, epsilon) > claimed * (1 + 1e-4)
    price = gaussian_cost(tables, sigma, LATTICE)
    assert exact_delta(sigma * LATTICE, LATTICE, tables, epsilon) < trade_off_floats(
        math.sqrt(2 * price), math.exp(epsilon)
    )


@pytest.mark.parametrize("sigma", [1.0, 2.0, 4.0, 8.0])
def test_even_one_answer_on_whole_counts_does(sigma):
    """A shift by 1: P[Z <= 0] and P[Z <= -1] lie further apart than 1 / sigma, by one part in 24 sigma^2."""
    mass = noise_masses(sigma)
    least = 2 * float(ndtri((1 + float(mass.max())) / 2))
    assert least * sigma > 1 + 1 / (25 * sigma**2)
    if sigma > 2:
        assert least < math.sqrt(2 * gaussian_cost(1, sigma, 1))
