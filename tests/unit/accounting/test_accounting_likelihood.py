"""Log-likelihood ratios of answers, against enumeration on small cases."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from support.gaussian import exponential, permute_and_flip

from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, SelectionEvent
from dpsyn_sql.accounting.pld import AnsweredQuestion, choice_log_probability, log_ratio

SCORES = [np.array([0, 2, 3, 1]), np.array([5, 5, 5, 5]), np.array([-40, 90, 7, 90]), np.array([3])]


def pmf(event, center, z):
    grid = np.arange(-400, 401)
    if isinstance(event, GaussianEvent):
        weigh = [np.exp(-((x - center) ** 2) / (2 * event.sigma**2)) for x in (z, grid)]
    else:
        weigh = [np.exp(-np.abs(x - center) / event.scale) for x in (z, grid)]
    return weigh[0] / weigh[1].sum()


@pytest.mark.parametrize(
    "event", [GaussianEvent(2.5, 3), GaussianEvent(9.0, 3), LaplaceEvent(1.5, 3)], ids=str
)
def test_the_ratio_of_noisy_values_is_that_of_their_probabilities(event):
    """Cells that differ by nothing, by a row, by several, and distances that fall."""
    rng = np.random.default_rng(2)
    without = np.array([0, 7, -3, 12, 5])
    within = without + np.array([0, 1, 3, -1, -4])
    for _ in range(20):
        answer = without + rng.integers(-9, 10, 5)
        expected = sum(
            math.log(pmf(event, b, z) / pmf(event, a, z))
            for a, b, z in zip(without, within, answer, strict=True)
        )
        found = log_ratio("gdp", AnsweredQuestion(event, without, within, answer))
        assert found == pytest.approx(expected, abs=1e-9)


def test_the_ratio_of_rounded_sixteenths_is_that_of_the_steps_behind_them():
    """Each step and its rounded row, one by one; even rows take ties from both sides."""
    event = GaussianEvent(0.9, 3, 16)
    steps = np.arange(-16 * 60, 16 * 60 + 1)
    mass = np.exp(-((steps / 16) ** 2) / (2 * event.sigma**2))
    law = {}
    for exact in range(-4, 9):
        rows = [round(Fraction(int(step), 16)) for step in steps + 16 * exact]
        law[exact] = {row: mass[np.array(rows) == row].sum() for row in set(rows)}
    for answer in range(-3, 8):
        for without, within in ((0, 1), (2, 5), (3, -1), (4, 4)):
            answered = AnsweredQuestion(event, *(np.array([value]) for value in (without, within, answer)))
            wanted = math.log(law[within][answer] / law[without][answer])
            assert log_ratio("gdp", answered) == pytest.approx(wanted, abs=1e-9)


def peeled(scores, scale, number, kind):
    """Of every ordered choice its probability: one mechanism after the other, without what was chosen."""
    single = permute_and_flip if kind == "pure" else exponential
    found = {}
    for order in itertools.permutations(range(len(scores)), number):
        probability, left = 1.0, list(range(len(scores)))
        for candidate in order:
            probability *= single(scores[left].astype(float), scale)[left.index(candidate)]
            left.remove(candidate)
        found[order] = probability
    return found


@pytest.mark.parametrize("kind", ["gdp", "pure"])
@pytest.mark.parametrize("scores", SCORES, ids=str)
def test_the_probability_of_a_choice_is_that_of_enumeration(scores, kind):
    for number in range(1, len(scores) + 1):
        expected = peeled(scores, 2.0, number, kind)
        assert math.fsum(expected.values()) == pytest.approx(1)
        for order, probability in expected.items():
            found = choice_log_probability(scores, 2.0, kind, list(order))
            if probability > 1e-300:
                assert found == pytest.approx(math.log(probability), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_the_ratio_of_a_choice_compares_both_score_vectors(kind):
    without, within = np.array([0, 2, 3, 1]), np.array([1, 1, 3, 2])
    before, after = peeled(without, 1.5, 2, kind), peeled(within, 1.5, 2, kind)
    for order in before:
        answered = AnsweredQuestion(SelectionEvent(1.5, 1, 2), without, within, np.array(order))
        assert log_ratio(kind, answered) == pytest.approx(math.log(after[order] / before[order]), abs=1e-12)


@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_probabilities_of_many_candidates_sum_to_one(kind):
    scores = np.random.default_rng(3).integers(0, 40, 150)
    total = math.fsum(math.exp(choice_log_probability(scores, 4.0, kind, [i])) for i in range(150))
    assert total == pytest.approx(1, abs=1e-10)
