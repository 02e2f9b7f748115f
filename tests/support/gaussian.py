"""The Gaussian trade-off, finite mechanisms and exact sums of integer noise, for tests of the exact accounting.

Nothing here comes from the package, so that a test compares two ways.
"""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy.special import ndtr, ndtri

DIGITS = 50


def pi(digits):
    """Machin's formula."""
    with localcontext(prec=digits + 10):

        def arctan_of_one_over(n):
            total, power, k = Decimal(0), Decimal(1) / n, 0
            while abs(power) > Decimal(10) ** -(digits + 8):
                total += (-power if k % 2 else power) / (2 * k + 1)
                power, k = power / (n * n), k + 1
            return total

        return 4 * (4 * arctan_of_one_over(5) - arctan_of_one_over(239))


PI = pi(1500)


def cdf(x, digits=DIGITS):
    """Phi(x) by its Taylor series around 0 (Abramowitz, Stegun 26.2.11); the digits that cancel are added."""
    x = Decimal(x)
    if abs(x) > 60:  # 0 or 1, to 780 digits
        return Decimal(x > 0)
    with localcontext(prec=2 * digits + int(x * x)):
        term = total = x
        k = 1
        while abs(term) > Decimal(10) ** -(2 * digits + int(x * x) // 2):
            term = term * x * x / (2 * k + 1)
            total, k = total + term, k + 1
        return Decimal("0.5") + total * (-x * x / 2).exp() / (2 * PI).sqrt()


def quantile_of_logit(logit):
    """Phi^-1(1 / (1 + e^-logit)), rounded down, by halving."""
    wanted = 1 / (1 + (-logit).exp())
    low, high = Decimal(0), Decimal(12)
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(middle) <= wanted else (low, middle)
    return low


def trade_off(mu, epsilon):
    """G_mu(e^epsilon), the hockey-stick divergence of N(mu, 1) from N(0, 1)."""
    with localcontext(prec=2 * DIGITS):
        if isinstance(epsilon, Fraction):
            epsilon = Decimal(epsilon.numerator) / epsilon.denominator
        mu, epsilon = Decimal(mu), Decimal(epsilon)
        return cdf(mu / 2 - epsilon / mu) - epsilon.exp() * cdf(-mu / 2 - epsilon / mu)


def trade_off_floats(mu, a):
    """G_mu(a) in floats, for a >= 0."""
    if mu == 0 or a == 0:
        return max(0.0, 1.0 - a)
    return float(ndtr(mu / 2 - math.log(a) / mu) - a * ndtr(-mu / 2 - math.log(a) / mu))


def excess(p, q, a):
    """H_a(p|q): the most that p(S) - a q(S) can be."""
    return float(np.maximum(p - a * q, 0).sum())


def composed(*pairs):
    """The joint laws of independent mechanisms, each a pair of laws."""
    p = q = np.ones(1)
    for first, second in pairs:
        p, q = np.outer(p, first).ravel(), np.outer(q, second).ravel()
    return p, q


def gaussian_laws(sigma, shift=1):
    """A discrete Gaussian on whole numbers, and moved."""
    support = np.arange(-int(9 * sigma), int(9 * sigma) + 2)
    laws = [np.exp(-((support - move) ** 2) / (2 * sigma**2)) for move in (0, shift)]
    return laws[0] / laws[0].sum(), laws[1] / laws[1].sum()


def laplace_laws(scale):
    """A discrete Laplace law on whole numbers, and moved."""
    support = np.arange(-int(40 * scale), int(40 * scale) + 2)
    laws = [np.exp(-np.abs(support - move) / scale) for move in (0, 1)]
    return laws[0] / laws[0].sum(), laws[1] / laws[1].sum()


def exponential(scores, scale):
    """The exponential mechanism's law of the choice."""
    mass = np.exp((np.asarray(scores) - max(scores)) / scale)
    return mass / mass.sum()


def permute_and_flip(scores, scale):
    """McKenna and Sheldon (2020), Algorithm 1, over all orders."""
    accept = np.exp((np.asarray(scores) - max(scores)) / scale)
    chosen = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        reached = 1 / math.factorial(len(scores))
        for candidate in order:
            chosen[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
    return chosen


def least_mu(p, q):
    """The least mu for which two finite laws are mu-GDP, in either order: the vertices of their trade-off are
    the sets of largest ratios, and a curve of chords lies above the convex Gaussian one if its vertices do."""
    order = np.argsort(-np.divide(p, q, out=np.full(len(p), np.inf), where=q > 0))
    heads_p, heads_q = np.cumsum(p[order])[:-1], np.cumsum(q[order])[:-1]
    return float(max(0.0, np.max(ndtri(heads_p) - ndtri(heads_q))))


def noise_masses(scale, reach=14):
    """The law of discrete Gaussian noise on -r, ..., r; what lies beyond ``reach`` scales is below 1e-42."""
    z = np.arange(-math.ceil(reach * scale), math.ceil(reach * scale) + 1).astype(np.longdouble)
    mass = np.exp(-(z**2) / (2 * np.longdouble(scale) ** 2))
    return mass / mass.sum()


def exact_delta(scale, shift, times, epsilon):
    """delta of ``times`` answers with discrete Gaussian noise of ``scale``, each moved by ``shift``, summed over
    all outputs: the privacy loss depends on the sum of the noise alone, whose law is a convolution."""
    single = whole = noise_masses(scale)
    for _ in range(times - 1):
        whole = np.convolve(whole, single)
    total = np.arange(len(whole)) - len(whole) // 2
    loss = (2 * total.astype(np.longdouble) * shift + times * shift**2) / (2 * np.longdouble(scale) ** 2)
    above = loss > epsilon
    return float((whole[above] * -np.expm1(epsilon - loss[above])).sum())
