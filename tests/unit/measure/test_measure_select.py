"""Private choices, one and several at once, against closed forms on few candidates."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare
from support.doors import FakeCounter, OneRelease, ReadAtOnce

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import SelectionEvent, cost_units
from dpsyn_sql.accounting.gdp import range_of_choice
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InternalError, ReleaseChanged
from dpsyn_sql.planning.queries import Choice, Distances, MarginalQuery
from dpsyn_sql.private.measure.noise import ExactNoise, selection_mechanism
from dpsyn_sql.private.measure.questions.choices import selection_event

SCORES = np.array([0, 1, 3])
SCALE = 2.0
DRAWS = 6_000


def exponential_mechanism():
    weights = np.exp(SCORES / SCALE)
    return weights / weights.sum()


def permute_and_flip():
    return permute_and_flip_of(SCORES, SCALE)


def permute_and_flip_of(scores, scale):
    """McKenna and Sheldon (2020), Algorithm 1, by enumerating all orders: in a random order each
    candidate is taken with probability exp((score - best) / scale), else the next is tried."""
    accept = np.exp((scores - scores.max()) / scale)
    probabilities = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        reached = 1 / math.factorial(len(scores))
        for candidate in order:
            probabilities[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
    return probabilities


@pytest.mark.parametrize(
    ("kind", "probabilities"), [("gdp", exponential_mechanism()), ("pure", permute_and_flip())]
)
def test_choice_has_the_closed_form(kind, probabilities):
    assert probabilities.sum() == pytest.approx(1)
    noise = ExactNoise()
    drawn = np.bincount([noise.select(SCORES, SCALE, kind, 1)[0] for _ in range(DRAWS)], minlength=3)
    assert chisquare(drawn, DRAWS * probabilities).pvalue > 1e-7


def test_the_closed_forms_differ_enough_for_the_test_to_tell():
    drawn = DRAWS * permute_and_flip()
    assert chisquare(drawn, DRAWS * exponential_mechanism()).pvalue < 1e-20


FOUR = np.array([0, 2, 3, 1])


def peeled(scores, scale, number, kind="gdp"):
    """Probabilities of every ordered choice: one mechanism after the other, without what was chosen."""
    found = {}
    for order in itertools.permutations(range(len(scores)), number):
        probability, left = 1.0, list(range(len(scores)))
        for candidate in order:
            if kind == "gdp":
                weights = np.exp(scores[left] / scale)
                probability *= weights[left.index(candidate)] / weights.sum()
            else:
                probability *= permute_and_flip_of(scores[left], scale)[left.index(candidate)]
            left.remove(candidate)
        found[order] = probability
    return found


@pytest.mark.parametrize("kind", ["gdp", "pure"])
@pytest.mark.parametrize("number", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_choices_are_peeled_one_after_the_other(kind, number):
    """One-shot Gumbel noise gives the same law as peeled exponential mechanisms (Durfee and Rogers 2019)."""
    expected = peeled(FOUR, SCALE, number, kind)
    assert sum(expected.values()) == pytest.approx(1)
    noise = ExactNoise()
    drawn = Counter(tuple(noise.select(FOUR, SCALE, kind, number).tolist()) for _ in range(DRAWS))
    assert set(drawn) <= set(expected)
    counted = [drawn[order] for order in expected]
    assert chisquare(counted, [DRAWS * share for share in expected.values()]).pvalue > 1e-7
    for scale in (SCALE / 2, SCALE * 2):
        other = [DRAWS * share for share in peeled(FOUR, scale, number, kind).values()]
        assert chisquare(counted, other).pvalue < 1e-20


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("alpha", [1.5, 2, 8])
def test_the_loss_of_neighbours_is_within_the_charge_and_half_the_charge_is_too_little(number, alpha):
    """Renyi divergences by enumeration, over all ways in which scores move by -1, 0 or 1."""
    worst = 0.0
    event = SelectionEvent(SCALE, 1, number)
    before = peeled(FOUR, SCALE, number)
    for change in itertools.product((-1, 0, 1), repeat=4):
        after = peeled(FOUR + np.array(change), SCALE, number)
        p, q = np.array(list(before.values())), np.array(list(after.values()))
        worst = max(worst, math.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1))
        assert np.abs(np.log(p / q)).max() <= event.cost("pure") + 1e-12
    assert worst <= number * float(event.single) ** 2 / 8 * alpha < float(event.cost("gdp")) * alpha
    if alpha == 1.5:
        assert worst > number * float(event.single) ** 2 / 8 * alpha / 2


@pytest.mark.parametrize("number", [1, 5])
@pytest.mark.parametrize("rows", [1, 4])
def test_scale_and_cost(rows, number):
    """Scale 2 D / e: e is the range of a t-th of mu^2 / 2, epsilon / t in pure accounts."""
    gdp = selection_event(number, rows, Budget("gdp", 2 * number * 10**13))
    assert gdp.scale == pytest.approx(2 * rows / range_of_choice(Fraction(2, 100)))
    assert (gdp.sensitivity, gdp.number) == (rows, number)
    assert cost_units(gdp, "gdp") <= 2 * number * 10**13
    pure = selection_event(number, rows, Budget("pure", number * 10**14))
    assert pure.scale == pytest.approx(2 * rows / 0.1)
    assert cost_units(pure, "pure") <= number * 10**14


def test_our_cost_is_that_of_opendp():
    """In pure accounts; its rho is number e^2 / 8, which mu^2 / 2 is above."""
    for number, sensitivity in ((1, 1), (7, 1), (400, 3)):
        event = SelectionEvent(300.0, sensitivity, number)
        stated = [selection_mechanism(event.scale, kind, number).map(sensitivity) for kind in ("pure", "gdp")]
        assert stated[0] == pytest.approx(float(event.cost("pure")), rel=1e-12)
        assert stated[1] == pytest.approx(number * float(event.single) ** 2 / 8, rel=1e-12)
        assert stated[1] < event.cost("gdp")


DOMAIN = Domain(tuple(Attribute(name, "BOOLEAN", "categorical", labels=(False, True)) for name in "ab"))
CANDIDATES = [MarginalQuery(("a",)), MarginalQuery(("b",))]


def tables(query):
    return np.array([900, 100] if query.attrs == ("a",) else [500, 500])


def curator_of(entry):
    return ReadAtOnce(FakeCounter(tables), DOMAIN, 1, entry, ExactNoise())


def curator():
    entry = OneRelease(Budget("gdp", 10**15)).open()
    return curator_of(entry), entry


def test_the_marginal_far_from_its_reference_is_chosen_and_charged():
    door, entry = curator()
    references = [np.array([500, 500]), np.array([500, 500])]
    assert door.ask(Choice(CANDIDATES, references), Budget("gdp", 10**14)) == [0]
    assert [type(event) for event in entry.events] == [SelectionEvent]


def test_allowances_come_off_the_scores_and_several_are_chosen_best_first():
    references = [np.array([500, 500]), np.array([400, 500])]  # distances 800 and 100
    for allowances, expected in ((None, [0, 1]), ([0, 0], [0, 1]), ([790, 0], [1, 0])):
        door, entry = curator()
        assert door.ask(Choice(CANDIDATES, references, 2, allowances), Budget("gdp", 10**14)) == expected
        (event,) = entry.events
        assert event.number == 2 and cost_units(event, "gdp") <= 10**14


def test_a_replay_gives_the_stored_choice_whatever_its_references():
    release = OneRelease(Budget("gdp", 10**15))
    references = [np.array([500, 500]), np.array([500, 500])]
    curator_of(release.open()).ask(Choice(CANDIDATES, references), Budget("gdp", 10**14))
    again, others = release.open(), [np.array([900, 100]), np.array([0, 0])]
    assert curator_of(again).ask(Choice(CANDIDATES, others, 1, [9, 0]), Budget("gdp", 10**14)) == [0]
    assert len(again.events) == 1
    with pytest.raises(ReleaseChanged, match="question 0 differs"):
        curator_of(release.open()).ask(Choice(CANDIDATES, references, 2), Budget("gdp", 10**14))


@pytest.mark.parametrize(
    ("number", "allowances"), [(0, None), (-1, None), (3, None), (1, [1]), (1, [-1, 0]), (1, [0, 2**62])]
)
def test_numbers_and_allowances_that_cannot_be_are_refused_before_the_charge(number, allowances):
    door, entry = curator()
    references = [np.array([500, 500])] * 2
    with pytest.raises(InternalError):
        door.ask(Choice(CANDIDATES, references, number, allowances), Budget("gdp", 10**14))
    assert entry.events == ()


@pytest.mark.parametrize("question", [Choice, Distances])
@pytest.mark.parametrize(
    "references",
    [[], [np.zeros(2, dtype=np.int64)], [np.zeros(2), np.zeros(2)], [np.full(2, 2**61), np.full(2, 2**61)]],
)
def test_references_are_integers_of_the_right_shape_and_bounded(question, references):
    door, entry = curator()
    with pytest.raises(InternalError):
        door.ask(question(CANDIDATES, references), Budget("gdp", 10**14))
    assert entry.events == ()


@pytest.mark.parametrize("number", [1, 3])
def test_a_gdp_account_gets_the_mechanism_of_a_bounded_range(number):
    """The exponential mechanism, whose rho is number e^2 / 8; permute-and-flip has no such range."""
    assert selection_mechanism(4.0, "gdp", number).map(1) == pytest.approx(number / 2**2 / 8)
    assert selection_mechanism(4.0, "pure", number).map(1) == pytest.approx(number / 2)
