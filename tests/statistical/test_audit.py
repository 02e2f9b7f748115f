"""The audit passes on the real noise, catches planted faults, and its statistics are right."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpsyn_sql.private.measure.questions.tables as marginals_module
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import LaplaceEvent
from dpsyn_sql.accounting.pld import AnsweredQuestion
from dpsyn_sql.accounting.tradeoff import fewest_misses, lower_bound, power, runs_for_power, upper_bounds
from dpsyn_sql.auditing import ERROR, _planned, audit
from dpsyn_sql.auditing.testing import simulated
from dpsyn_sql.errors import InputError
from dpsyn_sql.methods import METHODS
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.source.relation import PrivacyUnit

pytestmark = [pytest.mark.slow, pytest.mark.required]

CERTAIN = 1 - 1e-6
ONE_COLUMN = {"columns": {"a": {"type": "categorical", "categories": ["x"], "other": True}}}


def halve_the_noise(monkeypatch):
    for name in ("gaussian", "laplace"):
        true = getattr(ExactNoise, name)
        monkeypatch.setattr(ExactNoise, name, lambda self, v, scale, true=true: true(self, v, scale / 2))


def calibrate_wrongly(monkeypatch, change):
    """The events that are charged are consistent with the noise, and too small for the question."""
    true = marginals_module.marginals_event
    monkeypatch.setattr(marginals_module, "marginals_event", lambda m, k, share: true(*change(m, k), share))


# The real code passes; planted faults are caught. Runs are chosen so that a fault is missed once in a million.

FAST = [
    pytest.param(
        dict(delta=0, method="independent", domain=ONE_COLUMN, most=4, weights=False, runs=600),
        id="laplace, units of 4 rows",
        marks=pytest.mark.slow,
    ),
    pytest.param(dict(epsilon=5, method="independent", most=2, weights=False, runs=600), id="gaussian"),
]
# The number of runs is the one that has the power of 0.99: fewer at a larger epsilon, the power is the same.
SLOW = {
    "gaussian": dict(epsilon=4),
    "laplace": dict(epsilon=4, delta=0),
    "laplace, units of 3 rows": dict(epsilon=3, delta=0, most=3, weights=False, method="independent"),
}


@pytest.mark.parametrize("settings", FAST)
def test_the_real_noise_passes_and_half_of_it_does_not(settings, monkeypatch):
    passed = audit(**settings)
    assert not passed.violated and passed.power > CERTAIN
    assert passed.false_alarms + passed.misses < passed.runs  # better than guessing: the unit is seen at all
    halve_the_noise(monkeypatch)
    caught = audit(**settings)
    assert caught.violated and caught.claim == passed.claim < caught.lower_bound


@pytest.mark.parametrize("settings", SLOW.values(), ids=SLOW)
def test_the_audit_as_a_user_runs_it(settings, monkeypatch):
    passed = audit(**settings)
    assert not passed.violated and passed.power >= 0.99
    halve_the_noise(monkeypatch)
    caught = audit(**{**settings, "runs": 2 * passed.runs})
    assert caught.violated and caught.power > CERTAIN


@pytest.mark.parametrize("delta", [pytest.param(0, marks=pytest.mark.slow), 1e-9])
@pytest.mark.parametrize("fault", ["rows of a unit", "tables"])
def test_forgotten_sensitivities_are_caught(delta, fault, monkeypatch):
    rows = 4 if fault == "rows of a unit" else 1
    calibrate_wrongly(monkeypatch, lambda m, k: (m, 1) if rows > 1 else (1, k))
    nine = {"columns": {f"a{i}": ONE_COLUMN["columns"]["a"] for i in range(9)}}
    # A pure bound rests on the rare errors of one side: 600 runs leave too little room there.
    runs = 600 if delta else 1500
    found = audit(
        epsilon=2, delta=delta, method="independent", domain=nine, most=rows, weights=False, runs=runs
    )
    assert found.violated


@pytest.mark.parametrize("method", sorted(n for n, m in METHODS.items() if m.static))
def test_every_static_method_can_be_audited_and_errs_as_often_as_the_theory_says(method):
    found = audit(epsilon=4, method=method, runs=300)
    assert found.claim == pytest.approx(math.sqrt(2 * Budget.from_epsilon(4, 1e-9).rho), rel=1e-9)
    rate = norm.cdf(-found.claim / 2)
    for errors in (found.false_alarms, found.misses):
        assert abs(errors - rate * found.runs) < 6 * math.sqrt(rate * found.runs)


# The statistics of the bound.


@pytest.mark.parametrize("runs", [30, 400])
def test_upper_bounds_hold_with_the_stated_probability(runs):
    assert upper_bounds(np.array([0, 1]), 1, 0.05) == pytest.approx([0.95, 1])
    counts = np.arange(runs + 1)
    for error in (ERROR / 2, 0.05):
        bounds = upper_bounds(counts, runs, error)
        assert np.all(np.diff(bounds) > 0) and bounds[-1] == 1
        missed = [
            binom.pmf(counts, runs, rate)[bounds < rate].sum() for rate in np.linspace(0.001, 0.999, 400)
        ]
        assert max(missed) <= error * (1 + 1e-9)
        assert max(missed) > error * 0.9  # exact, not merely safe


@pytest.mark.parametrize("error", [ERROR, 0.2])
@pytest.mark.parametrize(("kind", "true"), [("gdp", 0.17), ("gdp", 1.5), ("pure", 0.3), ("pure", 1.0)])
def test_the_lower_bound_covers_and_a_naive_one_does_not(kind, true, error):
    rng, draws, runs = np.random.default_rng(5), 20_000, 500
    for false_alarm in (0.02, 0.3, 0.5):
        miss = fewest_misses(kind, true, np.array(false_alarm)).item()
        alarms, misses = rng.binomial(runs, false_alarm, draws), rng.binomial(runs, miss, draws)
        table = {
            pair: lower_bound(kind, *pair, runs, error) > true
            for pair in set(zip(alarms.tolist(), misses.tolist(), strict=True))
        }
        wrong = np.mean([table[pair] for pair in zip(alarms.tolist(), misses.tolist(), strict=True)])
        assert wrong <= error
        below = misses / runs < fewest_misses(kind, true, alarms / runs)
        assert below.mean() > 0.3


@pytest.mark.parametrize(("kind", "claimed"), [("gdp", 0.4), ("pure", 0.5)])
def test_power_is_the_probability_of_a_violation(kind, claimed):
    runs, false_alarm, miss = 40, 0.15, 0.2
    total = sum(
        binom.pmf(x, runs, false_alarm) * binom.pmf(y, runs, miss)
        for x in range(runs + 1)
        for y in range(runs + 1)
        if lower_bound(kind, x, y, runs, ERROR) > claimed
    )
    assert 0.01 < total < 0.99
    assert power(kind, claimed, false_alarm, miss, runs, ERROR) == pytest.approx(total, abs=1e-12)


def test_about_five_thousand_runs_catch_half_the_noise_at_epsilon_1():
    mu = math.sqrt(2 * Budget.from_epsilon(1, 1e-9).rho)
    rates = (norm.cdf(-mu), norm.cdf(-mu))  # half the scale: the true mu is twice the claim
    runs = runs_for_power("gdp", mu, *rates, 0.99, ERROR, 100_000)
    assert 4_500 <= runs <= 5_300
    assert power("gdp", mu, *rates, runs, ERROR) >= 0.99 > power("gdp", mu, *rates, runs * 9 // 10, ERROR)
    assert runs_for_power("gdp", mu, *rates, 0.99, ERROR, 4_500) is None


def test_the_curves_are_those_of_the_mechanisms_that_attain_them():
    thresholds = np.linspace(-3, 3, 41)
    alarms, misses = norm.sf(thresholds), norm.cdf(thresholds - 0.8)
    np.testing.assert_allclose(fewest_misses("gdp", 0.8, alarms), misses, atol=1e-12)
    lie = 1 / (1 + math.exp(0.8))  # randomised response attains the corner of pure privacy
    assert fewest_misses("pure", 0.8, np.array(lie)) == pytest.approx(lie)
    assert fewest_misses("pure", 0.8, np.array([0.0, 1.0])).tolist() == [1.0, 0.0]


# The test: the designed rates, and how near integer noise is to the curve of mu.


def test_the_simulated_design_agrees_with_exact_probabilities():
    plan, _ = _planned(3, 0, "copula", None, PrivacyUnit())
    events = [marginals_module.marginals_event(len(step.queries), 1, step.budget) for step in plan.steps]
    halves = [LaplaceEvent(event.scale / 2, event.l1) for event in events]
    # Clipped to 0 or 1, each cell is a fair copy of one bit: count the ones of each step.
    ones = np.arange(4)
    rates = []
    for shift in (0, 1):
        grid = np.arange(-400, 401)
        weights = [np.exp(-np.abs(grid - shift) / half.scale) for half in halves]
        chance = [weight[grid > 0].sum() / weight.sum() for weight in weights]
        rates.append(np.outer(binom.pmf(ones, 3, chance[0]), binom.pmf(ones, 3, chance[1])))
    losses = np.add.outer(*((2 * ones - 3) / event.scale for event in events))
    none, one = np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64)
    for threshold, false_alarm, miss in simulated(
        "pure", [AnsweredQuestion(e, none, one, none) for e in events]
    ):
        assert false_alarm == pytest.approx(rates[0][losses >= threshold].sum(), abs=0.006)
        assert miss == pytest.approx(rates[1][losses < threshold].sum(), abs=0.006)


@pytest.mark.parametrize("tables", [1, 2, 5])
@pytest.mark.parametrize(("sigma", "rows"), [(2.0, 1), (3.0, 1), (6.1, 3), (25.0, 1)])
def test_integer_noise_is_as_near_to_the_curve_as_stated(sigma, rows, tables):
    sums = np.array([1.0])
    for _ in range(tables):
        grid = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
        sums = np.convolve(sums, np.exp(-(grid**2) / (2 * sigma**2)))
    sums /= sums.sum()
    z = np.arange(len(sums)) - len(sums) // 2
    shift = tables * rows
    attained = -norm.ppf(sums[2 * z >= shift].sum()) - norm.ppf(sums[2 * (z + shift) < shift].sum())
    mu = math.sqrt(tables) * rows / sigma
    assert attained / mu - 1 == pytest.approx(1 / (24 * tables * sigma**2), rel=0.05)


# What is refused.


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(runs=0), "runs=0"),
        (dict(runs=True), "runs=True"),
        (dict(most=0), "most=0"),
        (dict(epsilon=0.01), "at most 100000 runs"),
        (dict(method="magic"), "magic"),
        (
            dict(
                method="independent",
                domain={"columns": {"a": {"type": "numeric", "lower": 1, "upper": 9000, "bins": 9000}}},
            ),
            "minutes",
        ),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_reason(settings, words):
    with pytest.raises(InputError, match=words):
        audit(**settings)
