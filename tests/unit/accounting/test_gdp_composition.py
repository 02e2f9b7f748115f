"""Composition of adaptively chosen Gaussian-private questions below a limit (docs/privacy.md, "Exact Gaussian
accounting"), by enumeration of all histories of finite mechanisms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr
from support.gaussian import excess, least_mu, trade_off_floats

ODDS = [math.exp(epsilon) for epsilon in (-3, -1, -0.2, 0, 0.2, 0.7, 1.5, 3, 5)]
TOLERANCE = 1e-12


def pair(rng, outputs):
    """Two laws on a few outputs, near to each other or far apart."""
    p = rng.dirichlet(np.ones(outputs))
    q = p * np.exp(rng.uniform(0, 2) * rng.normal(size=outputs))
    return p, q / q.sum()


def random_tree(rng, rounds):
    """Joint laws of all histories, and the largest sum of mu^2 on any: each output leads to questions of its own,
    or to none."""
    p, q = pair(rng, rng.integers(2, 5))
    squared, joint_p, joint_q, most = least_mu(p, q) ** 2, [], [], 0.0
    for one, other in zip(p, q, strict=True):
        if rounds == 1 or rng.random() < 0.3:
            rest_p, rest_q, further = np.ones(1), np.ones(1), 0.0
        else:
            rest_p, rest_q, further = random_tree(rng, rounds - 1)
        joint_p.append(one * rest_p)
        joint_q.append(other * rest_q)
        most = max(most, further)
    return np.concatenate(joint_p), np.concatenate(joint_q), squared + most


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_no_history_of_any_tree_of_questions_tells_more_than_the_limit(seed, rounds):
    p, q, limit = random_tree(np.random.default_rng(seed), rounds)
    assert p.sum() == pytest.approx(1) and q.sum() == pytest.approx(1)
    for a in ODDS:
        assert excess(p, q, a) <= trade_off_floats(math.sqrt(limit), a) + TOLERANCE
        assert excess(q, p, a) <= trade_off_floats(math.sqrt(limit), a) + TOLERANCE


def binned(mu, cuts):
    """N(mu, 1) and N(0, 1) seen in bins: mu-GDP, and no less (a tail has the trade-off of the normals)."""
    edges = np.concatenate([[-np.inf], np.sort(cuts), [np.inf]])
    return np.diff(ndtr(edges - mu)), np.diff(ndtr(edges))


def worst(menu, a, left, rounds):
    """The excess that the best strategy reaches: which question comes next, if any, may depend on all answers.

    ``menu``: (units of mu^2, law with the unit, law without it); ``left``: units that may still be spent.
    """
    best = max(0.0, 1 - a)
    for units, p, q in menu if rounds else ():
        if units <= left:
            answers = zip(p, q, strict=True)
            best = max(best, sum(x * worst(menu, a * y / x, left - units, rounds - 1) for x, y in answers))
    return best


MU_SQUARED = 0.25
FINE = np.linspace(-2.5, 3.5, 9)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sets(st.integers(-8, 8), min_size=1, max_size=3), min_size=3, max_size=3),
    st.sampled_from(ODDS),
)
def test_the_best_strategy_stays_within_the_limit(cuts, a):
    """Dynamic programming over all histories: questions of 1, 2 and 3 units under a limit of 4."""
    menu = [
        (units, *binned(math.sqrt(units * MU_SQUARED), np.array(sorted(quarters)) / 4))
        for units, quarters in zip((1, 2, 3), cuts, strict=True)
    ]
    for units, p, q in menu:
        assert least_mu(p, q) == pytest.approx(math.sqrt(units * MU_SQUARED), abs=1e-9)
    assert worst(menu, a, 4, 4) <= trade_off_floats(math.sqrt(4 * MU_SQUARED), a) + TOLERANCE


@pytest.mark.parametrize("a", [1.0, math.e])
def test_the_limit_is_nearly_reached(a):
    """Normals in ten bins lose little, so nine tenths of the limit would not do."""
    menu = [(units, *binned(math.sqrt(units * MU_SQUARED), FINE)) for units in (1, 2)]
    reached = worst(menu, a, 3, 3)
    assert trade_off_floats(math.sqrt(0.9 * 3 * MU_SQUARED), a) < reached
    assert reached <= trade_off_floats(math.sqrt(3 * MU_SQUARED), a)


def test_a_limit_that_follows_from_the_answers_is_none():
    """Whoever asks on only after answers that speak for the unit is within the limit on average, and on
    nearly every history, and tells more than it allows."""
    menu = [(1, *binned(math.sqrt(MU_SQUARED), FINE))]
    (_, p, q) = menu[0]
    a = math.exp(1.5)
    joint = sum(
        x * (worst(menu, a * y / x, 4, 4) if x > 2 * y else max(0.0, 1 - a * y / x))
        for x, y in zip(p, q, strict=True)
    )
    average = sum(x * (5 if x > 2 * y else 1) for x, y in zip(p, q, strict=True))
    assert average < 2
    assert joint > 1.2 * trade_off_floats(math.sqrt(average * MU_SQUARED), a)
    assert joint <= trade_off_floats(math.sqrt(5 * MU_SQUARED), a)


def test_the_epsilon_spent_so_far_is_no_promise_at_a_moment_that_answers_choose():
    """Each of two limits has the same delta. Who stops at the first that is exceeded exceeds delta."""
    delta = 0.01
    p, q = binned(math.sqrt(MU_SQUARED), np.linspace(-4, 5, 200))
    first, both = (
        brentq(lambda e, n=n: trade_off_floats(math.sqrt(n * MU_SQUARED), math.exp(e)) - delta, 0, 9)
        for n in (1, 2)
    )
    stopped = p > math.exp(first) * q
    early = (p - math.exp(first) * q)[stopped].sum()
    late = excess(np.outer(p[~stopped], p), np.outer(q[~stopped], q), math.exp(both))
    assert early <= delta and late <= delta
    assert early + late > 1.2 * delta


# -- thresholds and integer noise: each question may be a little more than mu-GDP ------------------

SMALL = 0.004
"""e of the integer noise, made large enough to be seen."""


def nearly(rng, p, q, coordinates, delta):
    """The laws moved by the factors that integer noise may have, and an output that only one of them has."""
    low, high = ((1 - SMALL) / (1 + SMALL)) ** coordinates, (1 + SMALL) ** coordinates

    def moved(law):
        """Less than a third of the way keeps each factor within its bounds after the sum is made one again."""
        factors = np.exp(rng.choice([math.log(low), math.log(high)], len(law)) * 0.3)
        return law * factors / (law * factors).sum()

    p, q = moved(p), moved(q)
    alone = delta * rng.random()
    return np.append((1 - alone) * p, alone), np.append(q, 0.0)


def random_nearly(rng, rounds):
    """As ``random_tree``: joint laws, and the largest sums of mu^2, of delta and of coordinates on a history."""
    mu, delta, coordinates = rng.uniform(0, 0.8), 0.05 * rng.random(), int(rng.integers(0, 4))
    p, q = binned(mu, rng.normal(size=2))
    p, q = nearly(rng, p, q, coordinates, delta)
    if rng.random() < 0.5:
        p, q = q, p
    parts, most = [], np.zeros(3)
    for one, other in zip(p, q, strict=True):
        if rounds == 1 or rng.random() < 0.2:
            parts.append((np.array([one]), np.array([other])))
        else:
            rest_p, rest_q, further = random_nearly(rng, rounds - 1)
            parts.append((one * rest_p, other * rest_q))
            most = np.maximum(most, further)
    sums = most + np.array([mu**2, delta, coordinates])
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]), sums


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_deltas_and_factors_add_up_along_histories(seed, rounds):
    p, q, (squared, delta, coordinates) = random_nearly(np.random.default_rng(seed), rounds)
    bend = coordinates * math.log((1 + SMALL) ** 2 / (1 - SMALL))
    for a in ODDS:
        bound = (1 + SMALL) ** coordinates * (
            trade_off_floats(math.sqrt(squared), a * math.exp(-bend)) + delta
        )
        assert excess(p, q, a) <= bound + TOLERANCE
        assert excess(q, p, a) <= bound + TOLERANCE
