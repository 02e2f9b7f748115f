"""The private choice against closed forms on three candidates."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import SelectionEvent, cost_units
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.memory import MemoryLedger
from dpsyn_sql.measure.calibrate import selection_event
from dpsyn_sql.measure.curator import LocalCurator
from dpsyn_sql.measure.noise import OpenDPNoise
from dpsyn_sql.plan.key import ReleaseKey
from dpsyn_sql.plan.queries import MarginalQuery

SCORES = np.array([0, 1, 3])
SCALE = 2.0
DRAWS = 6_000


def exponential_mechanism():
    weights = np.exp(SCORES / SCALE)
    return weights / weights.sum()


def permute_and_flip():
    """McKenna and Sheldon (2020), Algorithm 1, by enumerating all orders: in a random order each
    candidate is taken with probability exp((score - best) / scale), else the next is tried."""
    accept = np.exp((SCORES - SCORES.max()) / SCALE)
    probabilities = np.zeros(3)
    for order in itertools.permutations(range(3)):
        reached = 1 / math.factorial(3)
        for candidate in order:
            probabilities[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
    return probabilities


@pytest.mark.parametrize(
    ("kind", "probabilities"), [("zcdp", exponential_mechanism()), ("pure", permute_and_flip())]
)
def test_choice_has_the_closed_form(kind, probabilities):
    assert probabilities.sum() == pytest.approx(1)
    noise = OpenDPNoise()
    drawn = np.bincount([noise.select(SCORES, SCALE, kind) for _ in range(DRAWS)], minlength=3)
    assert chisquare(drawn, DRAWS * probabilities).pvalue > 1e-7


def test_the_closed_forms_differ_enough_for_the_test_to_tell():
    drawn = DRAWS * permute_and_flip()
    assert chisquare(drawn, DRAWS * exponential_mechanism()).pvalue < 1e-20


@pytest.mark.parametrize("rows", [1, 4])
def test_scale_and_cost(rows):
    """Scale 2 D / e: e = sqrt(8 rho) under zCDP, epsilon in pure accounts."""
    zcdp = selection_event(rows, Budget("zcdp", 2 * 10**13))
    assert zcdp.scale == pytest.approx(2 * rows / 0.4) and zcdp.sensitivity == rows
    assert cost_units(zcdp, "zcdp") <= 2 * 10**13
    pure = selection_event(rows, Budget("pure", 10**14))
    assert pure.scale == pytest.approx(2 * rows / 0.1)
    assert cost_units(pure, "pure") <= 10**14


def test_pure_cost_in_an_approximate_account_is_never_cheaper_than_the_bounded_range():
    event = SelectionEvent(20.0, 1)
    assert event.cost("zcdp") == event.cost("pure") ** 2 / 8


DOMAIN = Domain(tuple(Attribute(name, "BOOLEAN", "categorical", labels=(False, True)) for name in "ab"))
CANDIDATES = [MarginalQuery(("a",)), MarginalQuery(("b",))]


class Counts:
    def count(self, queries):
        return [np.array([900, 100]) if query.attrs == ("a",) else np.array([500, 500]) for query in queries]


def curator():
    ledger = MemoryLedger()
    with ledger.open_release(ReleaseKey(None, "r", None, {}), Budget("zcdp", 10**15)) as entry:
        return LocalCurator(Counts(), DOMAIN, 1, entry, OpenDPNoise()), entry


def test_the_marginal_far_from_its_reference_is_chosen_and_charged():
    door, entry = curator()
    references = [np.array([500, 500]), np.array([500, 500])]
    assert door.select(CANDIDATES, references, Budget("zcdp", 10**14)) == CANDIDATES[0]
    assert [type(event) for event in entry.events] == [SelectionEvent]


def test_a_replay_with_other_references_stops():
    door, entry = curator()
    references = [np.array([500, 500]), np.array([500, 500])]
    door.select(CANDIDATES, references, Budget("zcdp", 10**14))
    again = LocalCurator(Counts(), DOMAIN, 1, entry, OpenDPNoise())
    with pytest.raises(InternalError):
        again.select(CANDIDATES, [np.array([1, 1]), np.array([500, 500])], Budget("zcdp", 10**14))


@pytest.mark.parametrize(
    "references",
    [[], [np.zeros(2, dtype=np.int64)], [np.zeros(2), np.zeros(2)], [np.full(2, 2**61), np.full(2, 2**61)]],
)
def test_references_are_integers_of_the_right_shape_and_bounded(references):
    door, entry = curator()
    with pytest.raises(InternalError):
        door.select(CANDIDATES, references, Budget("zcdp", 10**14))
    assert entry.events == ()
