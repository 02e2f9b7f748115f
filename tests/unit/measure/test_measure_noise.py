"""The noise is integer, unbiased, and has the distribution that the proof assumes."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import dpsyn_sql.private.measure.drawing as drawing
import dpsyn_sql.private.measure.noise as noise_module
from dpsyn_sql.accounting.events import GaussianEvent
from dpsyn_sql.errors import InternalError
from dpsyn_sql.private.measure.noise import (
    MOST_ROWS,
    ExactNoise,
    add_noise,
    drawn_rows,
    steps_with_noise,
    whole_rows,
)

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
    noise = getattr(ExactNoise(), draw)(np.zeros(DRAWS, dtype=np.int64), scale)
    reach = math.floor(2 * scale)  # 380 draws or more in each tail: few would be no chi-square
    probabilities = expected(pmf, -reach, reach)
    result = chisquare(observed(noise, -reach, reach), DRAWS * probabilities / probabilities.sum())
    assert result.pvalue > 1e-7


@pytest.mark.parametrize("draw", ["gaussian", "laplace"])
def test_many_cells_keep_their_places_and_get_independent_noise(draw, monkeypatch):
    """Counts far apart show their order, and no two parts have the same noise."""
    monkeypatch.setattr(drawing, "_AT_ONCE", 1_000)
    counts = np.arange(10_500, dtype=np.int64) * 10_000
    noise = getattr(ExactNoise(), draw)(counts, 20.0) - counts
    assert noise.dtype == np.int64 and np.abs(noise).max() < 2_000
    parts = noise[:10_000].reshape(10, 1_000)
    assert len(np.unique(parts, axis=0)) == 10
    assert np.abs(np.corrcoef(parts) - np.eye(10)).max() < 0.25
    assert 0.8 < noise.std() / (20.0 * (1 if draw == "gaussian" else 2**0.5)) < 1.25


@pytest.mark.parametrize("draw", ["gaussian", "laplace"])
def test_noise_of_the_largest_scales_is_drawn_too(draw, monkeypatch):
    """By OpenDP, in parts; a little below the limit by ourselves."""
    monkeypatch.setattr(noise_module, "_AT_ONCE", 1_000)
    asked = []
    true = noise_module._by_opendp
    monkeypatch.setattr(noise_module, "_by_opendp", lambda *given: asked.append(1) or true(*given))
    counts = np.arange(4_500, dtype=np.int64)
    for scale in (math.nextafter(2.0**36, 0), 2.0**36, 2.0**40):
        noise = getattr(ExactNoise(), draw)(counts, scale)
        assert noise.dtype == np.int64 and noise.shape == (4_500,)
        assert 0.85 < noise.std() / (scale * (1 if draw == "gaussian" else 2**0.5)) < 1.15
        assert getattr(ExactNoise(), draw)(counts[:0], scale).shape == (0,)
    assert len(asked) == 4


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
@pytest.mark.parametrize("draw", ["gaussian", "laplace"])
def test_a_scale_that_is_no_number_above_zero_adds_no_noise(draw, scale):
    with pytest.raises(InternalError, match="above 0"):
        getattr(ExactNoise(), draw)(np.zeros(3, dtype=np.int64), scale)


@given(st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2), min_size=1))
def test_sums_are_exact_and_cut_at_the_ends(pairs):
    values, noise = np.array(pairs, dtype=np.int64).T
    expected = [min(max(value + more, -(2**63)), 2**63 - 1) for value, more in pairs]
    assert noise_module._sums(values, noise).tolist() == expected


def test_counts_are_kept_and_stay_integers():
    counts = np.array([0, 10**12, -5, 7], dtype=np.int64)
    noisy = ExactNoise().gaussian(counts, 1.0)
    assert noisy.dtype == np.int64
    assert np.abs(noisy - counts).max() < 60


def test_there_is_no_seed():
    """Two draws differ, whatever was seeded in numpy."""
    np.random.seed(0)
    first = ExactNoise().gaussian(np.zeros(100, dtype=np.int64), 1e6)
    np.random.seed(0)
    assert (first != ExactNoise().gaussian(np.zeros(100, dtype=np.int64), 1e6)).any()


class Recorded:
    """No noise; it remembers what it was asked."""

    def gaussian(self, values, sigma):
        self.values, self.sigma = values, sigma
        return values


@given(st.integers(-(2**60), 2**60), st.sampled_from([1, 3, 16]))
def test_steps_are_rounded_to_the_nearest_row_and_of_two_to_the_even_one(steps, lattice):
    (found,) = whole_rows(np.array([steps]), lattice).tolist()
    assert found == round(Fraction(steps, lattice))


@pytest.mark.parametrize("lattice", [3, 10, 24])
def test_steps_whose_scale_would_be_rounded_are_refused(lattice):
    with pytest.raises(InternalError, match="power of two"):
        steps_with_noise(ExactNoise(), np.ones(1, dtype=np.int64), GaussianEvent(0.1, 1, lattice))


def test_counts_get_sixteenths_and_come_back_in_rows():
    noise, event = Recorded(), GaussianEvent(2.5, 1, 16)
    tables = [np.array([[1, 2], [0, 7]]), np.array([2**57])]
    found = add_noise(noise, tables, event)
    assert noise.sigma == 40.0 and noise.values.tolist() == [16, 32, 0, 112, 2**61]
    assert [table.tolist() for table in found] == [[[1, 2], [0, 7]], [2**57]]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2))
def test_no_count_overflows_and_none_moves_away_from_another(counts):
    noise = Recorded()
    steps_with_noise(noise, np.array(counts), GaussianEvent(2.5, 1, 16))
    one, other = noise.values.tolist()
    assert abs(one) <= 16 * MOST_ROWS and abs(one - other) <= 16 * abs(counts[0] - counts[1])
    assert all(
        abs(count) > MOST_ROWS or 16 * count == step for count, step in zip(counts, (one, other), strict=True)
    )


def test_chi_square_of_rounded_sixteenths():
    """Against the sum of the exact probabilities of the steps that are rounded to each row."""
    sigma, exact = 1.4, 7
    found = add_noise(ExactNoise(), [np.full(DRAWS, exact)], GaussianEvent(sigma, 1, 16))[0] - exact
    steps = np.arange(-16 * 40, 16 * 40 + 1)
    mass = np.exp(-((steps / 16) ** 2) / (2 * sigma**2))
    rows = np.array([round(Fraction(int(step), 16) + exact) - exact for step in steps])
    mass = np.bincount(rows - rows.min(), weights=mass) / mass.sum()
    probabilities = expected(lambda z: mass[z - rows.min()] if rows.min() <= z <= rows.max() else 0.0, -3, 3)
    result = chisquare(observed(found, -3, 3), DRAWS * probabilities / probabilities.sum())
    assert result.pvalue > 1e-7


@pytest.mark.parametrize("number", [(0, 5), (1, 4), (2, 3), (4, 1), (6, 0)])
def test_rows_are_drawn_without_replacement(number):
    """Against the exact hypergeometric law of both groups together."""
    counts, groups = np.array([1, 0, 2, 3, 1, 4]), np.array([0, 0, 0, 0, 1, 1])
    draws = 3_000
    seen = Counter(tuple(drawn_rows(counts, groups, np.array(number)).tolist()) for _ in range(draws))
    law = {}
    for drawn in itertools.product(*(range(count + 1) for count in counts.tolist())):
        if (sum(drawn[:4]), sum(drawn[4:])) == number:
            ways = math.prod(map(math.comb, counts.tolist(), drawn))
            law[drawn] = draws * ways / math.comb(6, number[0]) / math.comb(5, number[1])
    assert set(seen) <= set(law) and sum(law.values()) == pytest.approx(draws)
    if len(law) > 1:
        assert chisquare([seen[drawn] for drawn in law], list(law.values())).pvalue > 1e-7


def test_rows_drawn_from_huge_counts():
    counts, groups = np.array([2**61, 5, 2**61, 0]), np.array([0, 0, 1, 1])
    drawn = drawn_rows(counts, groups, np.array([2**61 + 2, 7]))
    assert drawn[:2].sum() == 2**61 + 2 and (drawn <= counts).all() and drawn[2:].tolist() == [7, 0]
