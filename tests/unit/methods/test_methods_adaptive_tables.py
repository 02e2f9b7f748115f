"""The variables of adaptive marginals, and the greedy choice among their tables."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.graph import Triangulation, junction_tree
from dpsyn_sql.methods.adaptive.budget import NoiseLaw, Settings
from dpsyn_sql.methods.adaptive.model import working_domain
from dpsyn_sql.methods.adaptive.select import candidate_pairs, candidate_triples, selected, table_weights
from dpsyn_sql.planning.plan import Further
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload

SETTINGS = Settings()
GAUSSIAN = NoiseLaw(10.0, 0.5)
LOOSE = Further(3, 10**6, 10**7)


def attribute(name, size, ordered=True, other=False, nullable=False):
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)), (), other, nullable, ordered)


def test_the_total_weighs_tables_by_the_noise_of_their_sums():
    tables = [
        Observation(np.array([60.0, 40.0]), np.asarray(1.0)),
        Observation(np.array([55.0] * 8), np.asarray(1.0)),
    ]
    assert total_of(tables) == pytest.approx((100 / 2 + 440 / 8) / (1 / 2 + 1 / 8))


def choice(scores, sizes, cap=1e6, law=GAUSSIAN, twins=(), held=(), weights=(), settings=SETTINGS):
    return selected(scores, dict(twins), dict(weights), sizes, held, cap, law, settings)


def test_only_pairs_that_are_worth_their_noise_are_taken():
    found = choice({(0, 1): 5000.0, (0, 2): 1.0, (1, 2): -40.0}, (4, 4, 4))
    assert found.keys() == {(0, 1)} and found[0, 1] == pytest.approx(16**SETTINGS.allocation)
    assert choice({(0, 1): 5000.0}, (4, 4), law=NoiseLaw(1e6, 1.0)) == {}


def test_a_second_pair_is_charged_for_the_budget_it_takes_from_the_first():
    one = 16 * GAUSSIAN.unit
    both = math.sqrt(2) * 2 * one - one  # at half the budget each
    for score, taken in ((0.5 * both * 1.02, 2), (0.5 * both * 0.98, 1)):
        assert len(choice({(0, 1): 1e5, (2, 3): score}, (4, 4, 4, 4))) == taken


def test_the_tree_stays_under_the_cap():
    sizes = (10,) * 8
    scores = {pair: 1e6 - sum(pair) for pair in combinations(range(8), 2)}
    for cap in (1e3, 1e4, 1e5):
        found = choice(scores, sizes, cap=cap)
        assert found and Triangulation(sizes, found).cells <= cap


def test_a_twin_is_not_measured_beside_its_fine_pair():
    scores, twins = {(0, 1): 1e5, (1, 2): 1e4}, {(0, 1): (1, 2)}
    assert choice(scores, (20, 4, 5), twins=twins).keys() == {(0, 1)}


def test_working_domain_has_twins_of_large_ordered_attributes_only():
    domain = Domain((attribute("x", 40), attribute("y", 40, ordered=False), attribute("z", 3)))
    tables = [Observation(np.full(a.size, 3000.0 / a.size), np.asarray(1.0)) for a in domain.attributes]
    working = working_domain(domain, tables, 6000.0, SETTINGS)
    assert len(working.variables) == 4 and working.variables[3].attribute == 0
    twin = working.variables[3]
    assert twin.size < working.sizes[0]
    link = np.exp(working.links[0, 3])
    np.testing.assert_array_equal(link.argmax(axis=1)[working.variables[0].bins], twin.bins)
    pairs, twins = candidate_pairs(working, [MarginalQuery(p) for p in combinations("xyz", 2)])
    assert twins == {(0, 1): (1, 3), (0, 2): (2, 3)} and len(pairs) == 5
    assert working.query((1, 3)).attrs == ("x", "y") and working.query((1, 3)).maps[1] is None
    assert len(working_domain(domain, tables, 1e5, SETTINGS).variables) == 3


def four(sizes=(4, 4, 4, 4)):
    domain = Domain(
        tuple(attribute(name, size, ordered=False) for name, size in zip("wxyz", sizes, strict=True))
    )
    tables = [Observation(np.full(size, 4_000.0 / size), np.array(5.0)) for size in sizes]
    return working_domain(domain, tables, 1e5, SETTINGS)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)], [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]),
        ([(0, 1), (1, 2), (2, 3)], []),  # a chain has cliques of two
        ([(0, 1), (1, 2), (0, 2), (2, 3)], [(0, 1, 2)]),
        ([(0, 1), (1, 2), (2, 3), (0, 3)], 2),  # a circle gets a chord: two triangles
    ],
)
def test_three_attributes_are_a_candidate_within_a_clique(pairs, expected):
    working, any_number = four(), replace(SETTINGS, fewest_triples=1)
    found = candidate_triples(working, junction_tree(working.sizes, pairs), LOOSE, any_number)
    assert (found if isinstance(expected, list) else len(found)) == expected


def test_triples_stay_within_what_is_allowed_small_tables_first():
    working, any_number = four((2, 3, 4, 5)), replace(SETTINGS, fewest_triples=1)
    tree = junction_tree(working.sizes, list(combinations(range(4), 2)))
    small, rest = (0, 1, 2), [(0, 1, 3), (0, 2, 3), (1, 2, 3)]  # 24; 30, 40 and 60 cells

    def within(allowed, settings=any_number):
        return candidate_triples(working, tree, allowed, settings)

    assert within(LOOSE) == sorted([small, *rest])
    assert within(Further(3, 40, 10**6)) == sorted([small, *rest[:2]])
    assert within(Further(3, 10**6, 54)) == sorted([small, rest[0]])
    assert within(LOOSE, replace(any_number, triple_cells=24)) == [small]
    enough = replace(SETTINGS, fewest_triples=4)
    assert within(LOOSE, enough) == sorted([small, *rest])
    assert within(Further(3, 40, 10**6), enough) == []


def test_twins_and_attributes_of_one_code_are_in_no_triple():
    domain = Domain(tuple(attribute(name, size) for name, size in zip("wxyz", (1, 60, 60, 3), strict=True)))
    tables = [
        Observation(np.full(size, 6_000.0 / size), np.array(1.0))
        for size in (a.size for a in domain.attributes)
    ]
    working = working_domain(domain, tables, 1e4, SETTINGS)
    assert len(working.sizes) > 4  # with twins
    whole = junction_tree(working.sizes, [tuple(range(len(working.sizes)))])
    assert candidate_triples(working, whole, LOOSE, replace(SETTINGS, fewest_triples=1)) == [(1, 2, 3)]


def test_a_table_weighs_the_mean_of_its_pairs():
    working = four()
    assert table_weights(working, UNWEIGHTED, [(0, 1), (0, 1, 2)]) == {}
    workload = Workload(((("w", "x"), Fraction(4)),))
    weights = table_weights(working, workload, [(0, 1), (0, 1, 2), (1, 2, 3)])
    assert weights == {(0, 1): 4.0, (0, 1, 2): 2.0, (1, 2, 3): 1.0}
