"""The noise is integer, unbiased, and has the distribution that the proof assumes."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from dpsyn_sql.measure.noise import OpenDPNoise

DRAWS = 40_000


def expected(pmf, low, high):
    mass = np.array([pmf(z) for z in range(-2000, 2001)])
    mass /= mass.sum()
    inner = mass[2000 + low : 2000 + high + 1]
    return np.concatenate([[mass[: 2000 + low].sum()], inner, [mass[2000 + high + 1 :].sum()]])


def observed(noise, low, high):
    clipped = np.clip(noise, low - 1, high + 1)
    return np.bincount(clipped - (low - 1), minlength=high - low + 3)


@pytest.mark.parametrize(
    ("draw", "scale", "pmf"),
    [
        ("gaussian", 3.0, lambda z: math.exp(-(z**2) / 18)),
        ("gaussian", 0.7, lambda z: math.exp(-(z**2) / 0.98)),
        ("laplace", 2.5, lambda z: math.exp(-abs(z) / 2.5)),
    ],
)
def test_chi_square_against_the_exact_probabilities(draw, scale, pmf):
    """A scale off by 10 % fails this by many orders of magnitude."""
    noise = getattr(OpenDPNoise(), draw)(np.zeros(DRAWS, dtype=np.int64), scale)
    reach = math.ceil(2 * scale)
    probabilities = expected(pmf, -reach, reach)
    result = chisquare(observed(noise, -reach, reach), DRAWS * probabilities / probabilities.sum())
    assert result.pvalue > 1e-7


def test_counts_are_kept_and_stay_integers():
    counts = np.array([0, 10**12, -5, 7], dtype=np.int64)
    noisy = OpenDPNoise().gaussian(counts, 1.0)
    assert noisy.dtype == np.int64
    assert np.abs(noisy - counts).max() < 60


def test_there_is_no_seed():
    """Two draws differ, whatever was seeded in numpy."""
    np.random.seed(0)
    first = OpenDPNoise().gaussian(np.zeros(100, dtype=np.int64), 1e6)
    np.random.seed(0)
    assert (first != OpenDPNoise().gaussian(np.zeros(100, dtype=np.int64), 1e6)).any()
