"""Views: everything is covered, limits are kept, and the expected error is that of simulated noise."""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.accounting.budget import NoiseLaw
from dpsyn_sql.planning.views import (
    DIFFERENCE_SETS,
    MOST_TOGETHER,
    MOST_VIEW_CELLS,
    PAIR_APART,
    TRIPLE_APART,
    best_views,
    covering_views,
    expected_error,
    plane_covering,
    random_views,
)

SIZES = st.lists(st.integers(1, 40), min_size=0, max_size=12)
GAUSSIAN, LAPLACE = NoiseLaw(5.0, 0.5), NoiseLaw(5.0, 1.0)


def cells(sizes, scope):
    return math.prod(sizes[index] for index in scope)


@settings(max_examples=150)
@given(SIZES, st.sampled_from([2, 3]), st.sampled_from([4, 16, 100, 1000, 2**16]))
def test_every_set_lies_in_a_view_or_is_said_to_be_too_large(sizes, cover, most):
    found = covering_views(sizes, cover, most)
    used = [index for index, size in enumerate(sizes) if size > 1]
    together = min(cover, len(used))
    sets = set(combinations(used, together)) if together > 1 else set()
    held = {one for view in found.views for one in combinations(view, together)}
    assert set(found.apart) == {one for one in sets if cells(sizes, one) > most}
    assert held == sets - set(found.apart)
    assert all(cells(sizes, view) <= most and len(view) <= MOST_TOGETHER for view in found.views)
    assert all(list(view) == sorted(set(view)) and set(view) <= set(used) for view in found.views)
    assert len(set(found.views)) == len(found.views)
    assert covering_views(sizes, cover, most) == found


def test_small_designs_are_near_the_best_that_are_known():
    """Covering designs of the La Jolla repository: C(8, 4, 2) = 6 views, C(9, 3, 2) = 12, C(16, 4, 2) = 20."""
    assert len(covering_views([2] * 8, 2, 2**4).views) <= 7
    assert len(covering_views([2] * 9, 2, 2**3).views) <= 14
    assert len(covering_views([2] * 16, 2, 2**4).views) <= 28
    assert covering_views([2] * 8, 2, 2**8).views == (tuple(range(8)),)
    assert covering_views([2] * 20, 3, 2**20).views[0] == tuple(range(MOST_TOGETHER))


@pytest.mark.parametrize("order", DIFFERENCE_SETS)
def test_any_two_points_of_a_plane_lie_on_one_line(order):
    first, number = DIFFERENCE_SETS[order], order**2 + order + 1
    differences = [(a - b) % number for a in first for b in first if a != b]
    assert sorted(differences) == list(range(1, number))


@pytest.mark.parametrize(
    ("attributes", "together", "views"),
    [(8, 4, 6), (9, 3, 12), (16, 4, 20), (32, 8, 20), (42, 10, 21), (64, 8, 72), (13, 4, 13), (121, 11, 132)],
)
def test_planes_give_the_known_designs(attributes, together, views):
    """Covering designs of the La Jolla repository; C(32, 8, 2) = 20 is that of PriView."""
    found = plane_covering([2] * attributes, 2**together)
    assert len(found) == views
    held = {pair for view in found for pair in combinations(view, 2)}
    assert held == set(combinations(range(attributes), 2))


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 9), min_size=0, max_size=40),
    st.sampled_from([16, 64, 256, 4096, MOST_VIEW_CELLS]),
)
def test_views_of_planes_hold_every_pair_and_keep_to_the_limits(sizes, most):
    found = plane_covering(sizes, most)
    used = [index for index, size in enumerate(sizes) if size > 1]
    held = {pair for view in found for pair in combinations(view, 2)}
    assert held == (set(combinations(used, 2)) if found else set())
    assert all(cells(sizes, view) <= most and 2 <= len(view) <= MOST_TOGETHER for view in found)
    assert not any(set(a) < set(b) for a in found for b in found)


def test_the_best_design_is_that_of_a_plane_where_its_error_is_less():
    noise = NoiseLaw(5.8, 0.5)
    found = best_views([2] * 16, 1e4, noise, 2, 2**22)
    assert len(found.views) == 20
    for cells_of_a_view in (16, 32, 64, 128, 256):
        greedy = covering_views([2] * 16, 2, cells_of_a_view).views
        assert found.error < expected_error([2] * 16, greedy, 1e4, noise)[1]


def test_random_views_of_a_seed_are_the_same_everywhere():
    assert tuple(random_views([3] * 6, 9, "a, b", range(3))) == ((4, 5), (2, 4), (1, 2))


@pytest.mark.parametrize("weights", [{}, {(0, 3): 7.0, (1, 2): 0.5}], ids=["alike", "weighted"])
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_the_expected_error_of_pairs_is_that_of_simulated_noise(noise, weights):
    sizes, views, total = (3, 4, 2, 5), ((0, 1, 2), (1, 2, 3), (0, 3)), 1000.0
    shares, error = expected_error(sizes, views, total, noise, weights)
    assert math.isclose(sum(shares), 1)
    rng, pairs, rounds = np.random.default_rng(0), list(combinations(range(4), 2)), 4000
    distances = {pair: [] for pair in pairs}
    for view, share in zip(views, shares, strict=True):
        deviation = noise.deviation * share**-noise.power
        shape = (rounds, *(sizes[index] for index in view))
        drawn = (
            rng.normal(0, deviation, shape)
            if noise.power == 0.5
            else rng.laplace(0, deviation / math.sqrt(2), shape)
        )
        for pair in combinations(view, 2):
            gone = tuple(axis + 1 for axis, index in enumerate(view) if index not in pair)
            table = np.abs(drawn.sum(axis=gone))
            distances[pair].append(table.reshape(rounds, -1).sum(axis=1).mean() / 2 / total)
    means = [np.mean(found) for found in distances.values()]
    measured = np.average(means, weights=[weights.get(pair, 1) for pair in distances])
    triples = {(0, 1, 2), (1, 2, 3)}
    gained = 0.0
    for view, share in zip(views, shares, strict=True):
        if view in triples:
            deviation = noise.deviation * share**-noise.power
            own = math.sqrt(2 / math.pi) * deviation * cells(sizes, view) / 2 / total
            gained += max(0, TRIPLE_APART - own) / 4
    assert error - (TRIPLE_APART - gained) == pytest.approx(measured, rel=0.13 if noise.power == 1 else 0.01)


@pytest.mark.parametrize("weights", [{}, {(0, 1): 10.0, (2, 3): 3.0}], ids=["alike", "weighted"])
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_no_other_shares_have_a_smaller_error(noise, weights):
    sizes, views = (3, 4, 2, 5), ((0, 1, 2), (1, 3), (2, 3))
    holding = Counter(pair for view in views for pair in combinations(view, 2))
    shares, _ = expected_error(sizes, views, 1.0, noise, weights)
    roots = [
        math.sqrt(cells(sizes, view))
        * sum(
            weights.get(pair, 1) * math.sqrt(cells(sizes, pair)) / holding[pair]
            for pair in combinations(view, 2)
        )
        for view in views
    ]

    def noise_of(parts):
        return sum(root * part**-noise.power for root, part in zip(roots, parts, strict=True))

    rng = np.random.default_rng(1)
    for _ in range(200):
        other = np.array(shares) * rng.uniform(0.5, 2, len(shares))
        assert noise_of(shares) <= noise_of(other / other.sum()) + 1e-12
    power = 1 / (1 + noise.power)
    assert noise_of(shares) == pytest.approx(sum(root**power for root in roots) ** (1 / power))


def test_pairs_in_no_view_cost_what_independence_costs():
    assert expected_error((2, 2, 2), (), 10.0, GAUSSIAN) == ((), PAIR_APART + TRIPLE_APART)
    assert expected_error((2, 2), (), 10.0, GAUSSIAN) == ((), PAIR_APART)
    assert expected_error((2,), (), 10.0, GAUSSIAN) == ((), 0.0)
    assert expected_error((2, 2), (), 10.0, GAUSSIAN, {(0, 1): 10.0}) == ((), PAIR_APART)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("seed", [None, "names"])
def test_more_rows_give_larger_views_and_smaller_errors(noise, seed):
    """Less noise for a row, as of a larger epsilon, is the same as more rows."""
    designs = [best_views([2] * 20, total, noise, 2, 2**22, seed) for total in (1e3, 1e5, 1e8)]
    widest = [max(map(len, design.views)) for design in designs]
    assert widest == sorted(widest) and widest[0] < widest[-1]
    errors = [design.error for design in designs]
    assert errors == sorted(errors, reverse=True)
    assert all(math.isclose(sum(design.shares), 1) for design in designs)
    assert all(not design.apart for design in designs)


def test_the_best_views_are_the_best_of_all_limits():
    sizes = [2, 3, 4, 5, 6, 2, 3]
    found = best_views(sizes, 1e5, GAUSSIAN, 2, 2**22)
    others = [
        expected_error(sizes, covering_views(sizes, 2, 2**power).views, 1e5, GAUSSIAN)[1]
        for power in range(5, 13)
    ]
    assert found.error <= min(others) * 1.2


@given(SIZES, st.sampled_from([2, 3]), st.floats(-1e3, 1e9), st.sampled_from([None, "s"]))
@settings(max_examples=40, deadline=None)
def test_all_kinds_of_sizes_have_a_design_within_their_room(sizes, cover, total, seed):
    design = best_views(sizes, total, GAUSSIAN, cover, 2**22, seed)
    used = [index for index, size in enumerate(sizes) if size > 1]
    if len(used) < 2 or design is None:
        assert cover == 3 or (len(used) < 2 and (design is None or design.views == ()))
    else:
        assert sum(cells(sizes, view) for view in design.views) <= 2**22
        assert len(design.shares) == len(design.views) and math.isfinite(design.error)


def test_too_little_room_is_no_design():
    assert best_views([10] * 5, 1e5, GAUSSIAN, 2, 500) is None
