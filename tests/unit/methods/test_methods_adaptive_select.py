"""Scores, candidates and the greedy choice of adaptive marginals: closed forms, simulated luck, brute force."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import laplace, norm
from support.domains import SOURCE, attribute, domain_of

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE, Budget, NoiseLaw
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.graph import Triangulation, junction_tree
from dpsyn_sql.fit.variances import Distance
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.adaptive.budget import OTHER_CELLS, Settings
from dpsyn_sql.methods.adaptive.model import working_domain
from dpsyn_sql.methods.adaptive.select import (
    Scores,
    candidate_pairs,
    candidate_triples,
    selected,
    table_weights,
)
from dpsyn_sql.methods.independent import MAX_CANDIDATE_CELLS
from dpsyn_sql.planning.asking import Reserve
from dpsyn_sql.planning.limits import LEAST_MEMORY, Limits, Terms
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload, read_workload


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


@pytest.mark.parametrize("kind", ["gdp", "pure"])
def test_noise_alone_makes_a_pair_clear_once_in_a_thousand_times(kind):
    """Sampling of 30 and margins of 40 are 50 together; of what is beyond, half is rows that moved."""
    random, number, law = np.random.default_rng(3), 300, {"gdp": norm, "pure": laplace}[kind]
    scale = 7.0 if kind == "gdp" else 7.0 / math.sqrt(2)
    most = scale * law.isf(1e-3 / number)
    for beyond, there in ((0.999 * most, False), (1.001 * most, True)):
        rows = [50 + beyond, *(50 + random.uniform(-1, 1, number - 1))]
        distances = {(0, place + 1): Distance(float(row), 30.0, 40.0) for place, row in enumerate(rows)}
        told = Scores({}, 7.0, kind, distances).clear()
        assert told == (pytest.approx({(0, 1): beyond / 2}) if there else {})


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


SETTINGS = Settings()
GAUSSIAN = NoiseLaw(10.0 / MEAN_ABSOLUTE, 0.5)
PART = (1 - 1 / 4) ** 2  # of the cost of a table of 4 x 4 cells, for its residual


def limits(cells, together):
    return Reserve("pairs", Budget("gdp", 1), (), 3, cells, together)


LOOSE = limits(10**6, 10**7)


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
    assert found.keys() == {(0, 1)} and found[0, 1] == pytest.approx(
        16**SETTINGS.allocation * PART ** (1 / 3)
    )
    assert choice({(0, 1): 5000.0}, (4, 4), law=NoiseLaw(1e6, 1.0)) == {}


def test_a_second_pair_is_charged_for_the_budget_it_takes_from_the_first():
    one = 16 * GAUSSIAN.mean_absolute * math.sqrt(PART)
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
    assert working.queries([(1, 3)])[0].attrs == ("x", "y") and working.queries([(1, 3)])[0].maps[1] is None
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
    assert within(limits(40, 10**7 + OTHER_CELLS)) == sorted([small, *rest[:2]])
    assert within(limits(10**6, 108 + OTHER_CELLS)) == sorted([small, rest[0]])
    assert within(LOOSE, replace(any_number, triple_cells=24)) == [small]
    enough = replace(SETTINGS, fewest_triples=4)
    assert within(LOOSE, enough) == sorted([small, *rest])
    assert within(limits(40, 10**7 + OTHER_CELLS), enough) == []


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


BUDGET = Budget("gdp", 10**13)


def test_a_plan_says_its_caps_only_where_they_are_lower():
    domain, budget = domain_of((500,) * 40), Budget.from_epsilon(1, 1e-9)
    plain = Adaptive().plan(SOURCE, domain, budget)
    assert plain == Adaptive().plan(SOURCE, domain, budget, Terms(Limits(8 * 10**9)))
    assert plain.details.identity == {} and plain.details.lines == ()
    small = Adaptive().plan(SOURCE, domain, budget, Terms(Limits(LEAST_MEMORY)))
    candidates, tree = small.details.identity["caps"]
    assert candidates < MAX_CANDIDATE_CELLS and tree < Settings().cap_most
    assert small.details.lines == (
        f"            within the memory limit: {candidates} candidate cells, {tree} model cells",
    )
    assert sum(domain.cells(query.attrs) for query in small.steps[-1].queries) <= candidates
    assert set(small.queries) < set(plain.queries)


def shares(spec, sizes):
    domain = domain_of(sizes)
    plan = Adaptive().plan(SOURCE, domain, BUDGET, Terms(workload=read_workload(spec)))
    one_ways = [step for step in plan.asked if step.residuals]
    whole = sum(step.budget.amount for step in one_ways)
    # Of a step of m tables each has the noise of a share 1/m of it.
    found = {
        q.attrs[0]: step.budget.amount / whole / len(step.queries) for step in one_ways for q in step.queries
    }
    return plan, [found[name] for name in domain.names]


def test_one_way_shares_grow_with_the_mean_weight():
    plan, found = shares({"x0": 9}, (4, 4, 4, 4, 4))
    assert (
        plan.details.identity["workload"]
        and [len(step.queries) for step in plan.asked] == [1, 4, 1]
        and "mean weight 9" in plan.asked[2].name
    )
    # Mean weights 9 and 3; for equal sizes both halves of the rule are m^(2/3).
    assert found[0] / found[1] == pytest.approx(3 ** (2 / 3), rel=1e-9)
    _, plain = shares({}, (4, 90, 4, 4))
    _, even = shares({("x0", "x1", "x2", "x3"): 7}, (4, 90, 4, 4))
    assert even == pytest.approx(plain, rel=1e-9)  # a weight for all is none


def test_the_rule_of_shares_minimises_the_weighted_noise():
    weights, cells = np.array([5.0, 1, 1, 0.2]), np.array([30.0, 30, 400, 8])

    def noise(shares):
        return float(np.sum(weights * cells / np.sqrt(shares)))

    rule = (weights * cells) ** (2 / 3) / np.sum((weights * cells) ** (2 / 3))
    best = minimize(
        lambda x: noise(np.exp(x) / np.exp(x).sum()), np.zeros(4), method="BFGS", options={"gtol": 1e-8}
    )
    assert noise(rule) == pytest.approx(best.fun, rel=1e-9)


def chosen(scores, weights, **changes):
    return selected(
        scores, {}, weights, (4,) * 8, (), 1e6, NoiseLaw(10.0 / MEAN_ABSOLUTE, 0.5), Settings(**changes)
    )


def test_a_weight_multiplies_the_gain_the_noise_and_the_share():
    taken = chosen({(0, 1): 1e5, (2, 3): 1e5}, {(0, 1): 5.0}, allocation=2 / 3)
    assert taken[0, 1] / taken[2, 3] == pytest.approx(5 ** (2 / 3))
    # The price of the second pair: weighted noise of both at the best shares, less that of the first.
    both = 10 * (((5 * 16) ** (2 / 3) + 16 ** (2 / 3)) ** 1.5 - 5 * 16) * math.sqrt(PART)
    for score, number in ((0.5 * both * 1.01, 2), (0.5 * both * 0.99, 1)):
        assert len(chosen({(0, 1): 1e5, (2, 3): score}, {(0, 1): 5.0}, allocation=2 / 3)) == number


def test_a_weight_for_all_changes_no_choice_and_a_small_one_can_drop_a_pair():
    rng = np.random.default_rng(1)
    scores = {pair: float(rng.normal(300, 300)) for pair in combinations(range(8), 2)}
    plain = chosen(scores, {})
    even = chosen(scores, dict.fromkeys(scores, 3.0))
    assert plain.keys() == even.keys() and 0 < len(plain) < len(scores)
    ratios = {even[pair] / plain[pair] for pair in plain}
    assert max(ratios) == pytest.approx(min(ratios))
    last = list(plain)[-1]
    assert last not in chosen(scores, {last: 0.001})
