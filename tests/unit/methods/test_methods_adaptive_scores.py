"""What noisy distances let expect: against closed forms, simulated luck, and brute-force means."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.methods.adaptive.scores import Scores


def scored(rows, deviation=1.0, kind="gdp"):
    return Scores({(0, place + 1): float(row) for place, row in enumerate(rows)}, deviation, kind)


@pytest.mark.parametrize(
    ("kind", "highest"),
    [
        ("gdp", math.sqrt(2 * math.log(100))),
        ("pure", math.log(100) / math.sqrt(2)),
    ],
)
def test_luck_beyond_what_is_tolerated_comes_off_every_score(kind, highest):
    scores = scored(range(100), 7.0, kind)
    less = scores.beyond_luck(1.5)
    exact = {pair: row - 7 * (highest - 1.5) for pair, row in scores.rows.items()}
    assert less == pytest.approx(exact, abs=1) and all(row == int(row) for row in less.values())
    assert scores.beyond_luck(highest) == scores.rows
    assert scores.beyond_luck(50.0) == scores.rows


def test_one_score_has_no_luck_in_it():
    assert scored([5.0], 3.0).beyond_luck(0.0) == {(0, 1): 5.0}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_scores_stand_for_themselves(size):
    """Their spread says nothing of how much of it is noise."""
    scores = scored([100.0, 60.0, 20.0][:size], 3.0)
    off = 2 * 3.0 / math.sqrt(size)
    assert scores.expected(scores.rows) == pytest.approx({p: r - off for p, r in scores.rows.items()})


def test_pure_luck_counts_for_nothing():
    """The best 20 of 200 scores of no dependence, which look like 35 deviations together."""
    random = np.random.default_rng(5)
    looked, counted = [], []
    for _ in range(200):
        scores = scored(random.normal(0, 10.0, 200), 10.0)
        best = sorted(scores.rows, key=scores.rows.__getitem__)[-20:]
        looked.append(sum(scores.rows[pair] for pair in best))
        counted.append(sum(scores.expected(best).values()))
    assert np.mean(looked) > 300
    assert np.mean(counted) < 0.05 * np.mean(looked)
    assert np.mean(np.array(counted) == 0) > 0.5


def test_what_the_best_hold_is_told_within_two_standard_errors():
    """Normal distances, of which the scores are noisy views: the estimate is that of Efron and Morris, with the
    mean and the part of the spread that is no noise (a half, known to sqrt(2 / 200)) two errors low."""
    random = np.random.default_rng(6)
    apart, above = [], []
    for _ in range(300):
        true = random.normal(50.0, 10.0, 200)
        scores = scored(true + random.normal(0, 10.0, 200), 10.0)
        best = sorted(scores.rows, key=scores.rows.__getitem__)[-20:]
        held = np.mean([true[pair[1] - 1] for pair in best])
        apart.append(held - np.mean(list(scores.expected(best).values())))
        above.append(np.mean([scores.rows[pair] for pair in best]) - 50.0)
    low = 2 * 10 / math.sqrt(200) + 2 * math.sqrt(2 / 200) * 0.5 * np.mean(above)
    assert 3 < low < 5 and np.mean(apart) == pytest.approx(low, abs=0.4)


@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_sparse_dependence_is_told_where_the_spread_of_all_scores_hides_it(kind):
    """One table in a hundred holds 40 rows beside noise of 10: the best are told within a tenth."""
    random = np.random.default_rng(7)
    noise = random.laplace(0, 10 / math.sqrt(2), 20_000) if kind == "pure" else random.normal(0, 10, 20_000)
    true = np.where(np.arange(20_000) < 200, 40.0, 0.0)
    scores = scored(5.0 + true + noise, 10.0, kind)
    best = sorted(scores.rows, key=scores.rows.__getitem__)[-200:]
    held = sum(5.0 + true[pair[1] - 1] for pair in best)
    likely, expected = scores.likely(), scores.expected(best)
    assert sum(likely[pair] for pair in best) == pytest.approx(held, rel=0.1)
    assert sum(expected.values()) < 0.5 * held < held < 0.95 * sum(scores.rows[pair] for pair in best)


def test_pure_luck_of_many_scores_is_likely_to_hold_little():
    random = np.random.default_rng(8)
    looked, counted = 0.0, 0.0
    for _ in range(10):
        scores = scored(random.normal(0, 10.0, 7_140), 10.0)
        likely = scores.likely()
        best = sorted(scores.rows, key=scores.rows.__getitem__)[-100:]
        looked += sum(scores.rows[pair] for pair in best)
        counted += sum(likely[pair] for pair in best)
    assert counted < 0.15 * looked


def test_scores_far_beyond_their_noise_stand_for_themselves():
    rows = [*range(-3, 4)] * 1_000 + [500.0, 10_000.0]
    likely = list(scored(rows, 2.0).likely().values())
    assert likely[-2:] == [500.0, 10_000.0] and max(map(abs, likely[:-2])) <= 1


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=40),
    st.floats(0.1, 1e9),
    st.sampled_from(["gdp", "pure"]),
)
def test_expectations_are_finite_not_negative_and_in_the_order_of_the_scores(rows, deviation, kind):
    scores = scored(rows, deviation, kind)
    found = list(scores.expected(scores.rows).values())
    assert all(math.isfinite(row) and row >= 0 for row in found)
    assert all(found[i] <= found[j] for i in range(len(rows)) for j in range(len(rows)) if rows[i] < rows[j])
    assert all(math.isfinite(row) for row in scores.likely().values())


def test_two_measurements_are_pooled_by_their_precision():
    pooled = scored([10.0, 20.0], 1.0).pooled(scored([20.0, 10.0], 2.0))
    assert pooled.rows == pytest.approx({(0, 1): 12.0, (0, 2): 18.0})
    assert pooled.deviation == pytest.approx(math.sqrt(0.8))


def test_ties_do_not_hang_on_last_bits():
    """4 a + 9 b is the same for both pairs; as floats the means differ, or not, by the machine."""
    rows = [(9.0 * k, -4.0 * k) for k in range(1, 200)]
    for places in (0, 1), (1, 0):
        one, other = ([0.0] + [row[place] for row in rows] for place in places)
        for deviation in (1.5, np.nextafter(1.5, 2), np.nextafter(1.5, 1)):
            first, second = (1.0, deviation) if places == (1, 0) else (deviation, 1.0)
            pooled = scored(one, first).pooled(scored(other, second))
            assert set(pooled.rows.values()) == {0.0}


def test_measurements_of_other_pairs_are_not_pooled():
    later = Scores({(5, 6): 1.0}, 2.0, "gdp")
    assert scored([10.0]).pooled(later) is later
