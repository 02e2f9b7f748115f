"""What docs/traces.md says of the test of plausible deniability, by exact probabilities.

A seed d is drawn among n rows, y by a model of d. The test counts the c rows whose model gives y a probability
in the same power of gamma, and releases y if c + Z >= k, Z discrete Laplace of scale 1/e0. The claim of the
paper: (e0 + ln(gamma/t), exp(-e0 (k - t))). The claim that holds of what is released: (e0 + ln(1 + gamma/t), the
same).
"""

import math

import pytest
from scipy.optimize import minimize_scalar


def passes(rows, k, e0):
    """The probability that so many rows and the noise reach k."""
    a, missing = math.exp(-e0), k - rows
    return a**missing / (1 + a) if missing > 0 else 1 - a ** (1 - missing) / (1 + a)


def released(c, gamma, k, e0, more=False):
    """The probability that one of many outputs is released: each of c rows gives them 1/gamma together, and one
    more row, if it is there, all. All are in one class."""
    mass = (c / gamma + 1) / (c + 1) if more else 1 / gamma
    return mass * passes(c + more, k, e0)


def exact_delta(epsilon, gamma, k, e0):
    """The least delta with which adding one row to c equal ones is allowed, at most over c."""
    return max(
        released(c, gamma, k, e0, more=True) - math.exp(epsilon) * released(c, gamma, k, e0)
        for c in range(1, 4 * k)
    )


def claimed_delta(k, t, e0):
    return math.exp(-e0 * (k - t))


def printed(gamma, t, e0):
    return e0 + math.log(gamma / t)


def corrected(gamma, t, e0):
    return e0 + math.log(1 + gamma / t)


def test_the_printed_claim_can_be_a_negative_epsilon():
    # 59 equal rows or 60, and nothing but y: the probability of a release grows by 0.05.
    grows = passes(60, 60, 0.1) - passes(59, 60, 0.1)
    assert printed(2, 10, 0.1) == pytest.approx(-1.51, abs=0.01)
    assert grows == pytest.approx(0.050, abs=5e-4)
    assert claimed_delta(60, 10, 0.1) == pytest.approx(0.0067, abs=5e-5) and grows > 7 * 0.0067


def test_the_printed_claim_fails_with_a_positive_epsilon_too():
    epsilon, delta = printed(4, 4, 0.1), claimed_delta(60, 4, 0.1)
    assert (epsilon, delta) == (pytest.approx(0.1), pytest.approx(0.0037, abs=5e-5))
    assert exact_delta(epsilon, 4, 60, 0.1) > 1.5 * delta


@pytest.mark.parametrize("gamma", [1.5, 2, 4, 10])
@pytest.mark.parametrize("k", [10, 60, 200])
@pytest.mark.parametrize("e0", [0.02, 0.1, 1.0])
def test_the_corrected_claim_is_not_exceeded_by_this_family(gamma, k, e0):
    for t in range(1, k):
        assert exact_delta(corrected(gamma, t, e0), gamma, k, e0) <= claimed_delta(k, t, e0) + 1e-12


def test_a_visible_failure_breaks_the_corrected_claim_too():
    n, k, t, gamma, e0 = 1000, 200, 50, 4, 0.1
    assert corrected(gamma, t, e0) == pytest.approx(0.177, abs=5e-4)
    assert claimed_delta(k, t, e0) == pytest.approx(3.06e-7, rel=0.01)
    without = 1 - passes(n, k, e0)
    with_outlier = n / (n + 1) * without + 1 / (n + 1) * (1 - passes(1, k, e0))
    delta = with_outlier - math.exp(corrected(gamma, t, e0)) * without
    assert delta == pytest.approx(1.0e-3, rel=0.01)


@pytest.mark.parametrize(("records", "rows"), [(100, 4_944), (1_000, 52_660), (10_000, 558_196)])
def test_how_many_alike_rows_a_record_needs_when_records_add_up(records, rows):
    epsilon, delta, gamma = 1 / records, 1e-9 / records, 4

    def needed(e0):
        t = gamma / math.expm1(epsilon - e0)
        return t + math.log(1 / delta) / e0

    found = minimize_scalar(needed, bounds=(1e-3 * epsilon, 0.999 * epsilon), method="bounded")
    assert found.fun == pytest.approx(rows, rel=1e-3)
