"""Which questions adaptive marginals ask: pre-selection among many candidates; pairs or one-way tables alone."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.discovery.designs import ROWS_SHARE
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.methods.adaptive import Adaptive, select
from dpsyn_sql.methods.adaptive import model as modelling
from dpsyn_sql.methods.adaptive.budget import tree_cap, triple_share
from dpsyn_sql.methods.adaptive.measure import tables_measured
from dpsyn_sql.methods.adaptive.method import TARGET_ALONE, rows_needed
from dpsyn_sql.methods.adaptive.model import Task
from dpsyn_sql.methods.adaptive.select import triples_worth_more
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.workload import UNWEIGHTED, Workload
from dpsyn_sql.source.relation import PrivacyUnit

SETTINGS = Adaptive.constants
ROWS = 20_000
MEASURED = "measure", "residuals"
WITHOUT_SETS = {"full_noise": 0.0, "screen_most": 0.0, "group_attributes": 99}
"""Neither the table over all attributes nor sets that no pair shows (``test_methods_orders.py``), and no hidden
groups (``test_methods_groups.py``)."""


def task_of(plan, door, terms, settings, most, one_ways):
    terms = replace(terms, unit=plan.source.unit)
    return Task.of(door, plan.domain, plan.budget, plan.reserves[-1], terms, settings, most, one_ways)


def door_to(domain, codes):
    return FakeCurator(domain, partial(table_of, domain, codes))


def in_pairs(sizes, rng):
    """Attribute 2i and 2i + 1 go together; all else is independent."""
    codes = [rng.integers(0, size, ROWS) for size in sizes]
    for i in range(1, len(sizes), 2):
        codes[i] = np.where(rng.random(ROWS) < 0.7, codes[i - 1] % sizes[i], codes[i])
    return codes


def asked_of(
    monkeypatch,
    sizes,
    ordered=False,
    units=10**13,
    kind="gdp",
    workload=UNWEIGHTED,
    drawn=in_pairs,
    **changes,
):
    domain, codes = domain_of(sizes, ordered), drawn(sizes, np.random.default_rng(1))
    few = {"fewest_triples": 4, **WITHOUT_SETS} | changes
    monkeypatch.setattr(Adaptive, "constants", replace(SETTINGS, **few))
    door = door_to(domain, codes)
    terms = Terms(workload=workload)
    plan = Adaptive().plan(SOURCE, domain, Budget(kind, units), terms)
    ran(Adaptive(), plan, door, terms)
    assert sum(budget.amount for _, _, budget in door.asked) <= plan.budget.amount
    return door.asked


@pytest.mark.parametrize(("most", "expected"), [(4e6, tree_cap(10.0, 20_000, SETTINGS)), (1.2e6, 1_200_000)])
def test_the_tree_grows_with_what_stands_out_but_not_beyond_its_limit(monkeypatch, most, expected):
    caps, inner = [], select.selected

    def recorded(*arguments):
        caps.append(arguments[5])
        return inner(*arguments)

    monkeypatch.setattr(select, "selected", recorded)
    asked_of(monkeypatch, (4,) * 5, units=10**16, cap_most=most)
    assert max(caps) == pytest.approx(expected, rel=0.01)


def test_few_candidates_are_all_asked_for(monkeypatch):
    asked = asked_of(monkeypatch, (4,) * 8)
    assert "select" not in [question for question, _, _ in asked]
    assert [len(queries) for question, queries, _ in asked if question == "distance"] == [28, 28]


def test_of_many_candidates_those_left_over_by_a_private_choice_are_asked_for(monkeypatch):
    asked = asked_of(monkeypatch, (4,) * 8, preselected=1, preselect_between=(2, 8))
    scored = [(question, queries, budget) for question, queries, budget in asked if question not in MEASURED]
    assert [question for question, _, _ in scored] == ["select", "distance"] * 2
    assert [len(queries) for _, queries, _ in scored] == [28, 8, 28, 8]
    choice, distances = scored[0][2].amount, scored[1][2].amount
    assert choice / (choice + distances) == pytest.approx(SETTINGS.preselect_share)
    together = {(f"x{i}", f"x{i + 1}") for i in range(0, 8, 2)}
    assert together <= {query.attrs for query in scored[1][1]}
    assert together <= {
        query.attrs for question, queries, _ in asked if question in MEASURED for query in queries
    }


def test_a_pure_budget_has_distances_of_as_many_pairs_as_there_are_attributes(monkeypatch):
    asked = asked_of(monkeypatch, (4,) * 8, units=10**15, kind="pure", triple_attributes=2)
    scored = [(question, queries, budget) for question, queries, budget in asked if question not in MEASURED]
    assert [(question, len(queries)) for question, queries, _ in scored] == [
        ("select", 28),
        ("distance", 8),
    ] * 2
    choice, distances = scored[0][2].amount, scored[1][2].amount
    assert choice / (choice + distances) == pytest.approx(SETTINGS.pure_preselect_share)
    together = {(f"x{i}", f"x{i + 1}") for i in range(0, 8, 2)}
    assert together <= {
        query.attrs for question, queries, _ in asked if question in MEASURED for query in queries
    }


@pytest.mark.parametrize("between", [(50, 110), (2, 8)])
@pytest.mark.parametrize(("kind", "units"), [("pure", 10**16), ("gdp", 10**15)])
def test_triples_are_all_scored_whatever_a_private_choice_leaves_of_pairs(monkeypatch, kind, units, between):
    asked = asked_of(monkeypatch, (4,) * 8, units=units, kind=kind, preselected=1, preselect_between=between)
    scored = [
        queries for question, queries, _ in asked if question == "distance" and len(queries[0].attrs) == 3
    ]
    chosen = [queries for question, queries, _ in asked if question == "select"]
    assert len(scored) == 1 and len(scored[0]) > 8
    assert all(len(queries[0].attrs) == 2 for queries in chosen)


def test_a_pair_is_chosen_by_its_coarse_twin_and_both_are_scored(monkeypatch):
    asked = asked_of(monkeypatch, (60,) * 6, ordered=True, preselected=1, preselect_between=(2, 8))
    (candidates,) = [queries for question, queries, _ in asked if question == "select"][:1]
    (scored,) = [queries for question, queries, _ in asked if question == "distance"][:1]
    assert len(candidates) == 15 and len(scored) == 12
    most = {query.attrs: max(max(bins) for bins in query.maps) for query in candidates}
    assert max(most.values()) < 15  # twins have about ten bins
    assert {query.attrs for query in scored} <= set(most) and len({q.attrs for q in scored}) == 6


def attributes_of(asked):
    """How many attributes the tables of each measurement have."""
    return [
        len(queries[0].attrs) for question, queries, _ in asked if question in MEASURED and queries[0].attrs
    ]


@pytest.mark.parametrize(("kind", "units", "enough"), [("gdp", 10**9, 10**13), ("pure", 2 * 10**13, 10**15)])
def test_where_distances_are_noisier_than_dependence_the_budget_goes_to_one_way_tables(
    monkeypatch, kind, units, enough
):
    """The scores look large here (the door adds no noise), yet not beside the noise they would have."""
    asked = asked_of(monkeypatch, (4,) * 8, units=units, kind=kind)
    assert attributes_of(asked) == [1, 1] and [q for q, _, _ in asked].count("distance") == 2
    spent = sum(budget.amount for _, _, budget in asked)
    assert spent == pytest.approx(units, rel=1e-6)
    assert 2 in attributes_of(asked_of(monkeypatch, (4,) * 8, units=enough, kind=kind))


@pytest.mark.parametrize("times", [0.99, 1.01])
def test_a_pure_budget_asks_for_rows_first_and_for_pairs_only_if_they_are_enough(monkeypatch, times):
    units = round(times * 10**15 * rows_needed(8, Budget("pure", 10**15)) / ROWS)
    asked = asked_of(monkeypatch, (4,) * 8, units=units, kind="pure")
    assert [query.attrs for query in asked[0][1]] == [()]
    assert asked[0][2].amount == pytest.approx(units * ROWS_SHARE, abs=1)
    assert any(question == "distance" for question, _, _ in asked) == (times > 1)
    if times < 1:
        assert [len(queries) for _, queries, _ in asked] == [1, 8]
        assert sum(budget.amount for _, _, budget in asked) == units


def test_the_rows_that_are_needed_follow_from_public_facts_alone():
    domain = domain_of((4,) * 8, False)
    unit = replace(SOURCE, unit=PrivacyUnit("who", 3))
    for budget in (Budget("pure", 10**15), Budget("pure", 10**13)):
        for source, rows in ((SOURCE, 1), (unit, 3)):
            first, *_, last = Adaptive().plan(source, domain, budget).steps
            assert first.name == "rows in all" and first.queries[0].attrs == ()
            assert f"if there are about {rows * rows_needed(8, budget):,.0f} rows or more" in last.name
    assert rows_needed(8, Budget("pure", 10**13)) == pytest.approx(
        100 * rows_needed(8, Budget("pure", 10**15))
    )
    (step,) = Adaptive().plan(SOURCE, domain_of((4,), False), Budget("pure", 10**15)).steps
    assert step.budget.amount == 10**15  # no pairs, no question about the rows


def test_what_is_left_over_is_divided_among_one_way_tables_like_their_first_share(monkeypatch):
    asked = asked_of(monkeypatch, (4,) * 6 + (60,) * 2, units=10**9)
    measured = [
        (len(queries), budget.amount)
        for question, queries, budget in asked
        if question in MEASURED and queries[0].attrs
    ]
    first, second = measured[:2], measured[2:]
    assert [number for number, _ in first] == [number for number, _ in second] == [6, 2]
    ratios = [again / once for (_, once), (_, again) in zip(first, second, strict=True)]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-4)


def test_pairs_that_weigh_nothing_much_are_not_worth_the_one_way_tables_of_those_that_do(monkeypatch):
    """The same table and budget; pairs without dependence weigh five hundred times as much as the others."""
    heavy = Workload(((("x0", "x2", "x4", "x6"), Fraction(500)),))
    units = 8 * 10**9
    assert 2 in attributes_of(asked_of(monkeypatch, (4,) * 8, units=units))
    assert 2 not in attributes_of(asked_of(monkeypatch, (4,) * 8, units=units, workload=heavy))


def test_pairs_that_stand_out_are_told_whether_they_are_worth_their_budget_or_not():
    """Two columns are equal in 0.7 of the rows and in a quarter of the others: 0.7 * 3 / 4 of the rows move."""
    domain, codes = domain_of((4,) * 8, False), in_pairs((4,) * 8, np.random.default_rng(1))
    heavy = Workload(((("x0", "x2", "x4", "x6"), Fraction(500)),))
    for workload, measured in ((UNWEIGHTED, True), (heavy, False)):
        terms, door = Terms(workload=workload), door_to(domain, codes)
        door.sigma = 100.0
        plan = Adaptive().plan(SOURCE, domain, Budget("gdp", 10**11), terms)
        model = ran(Adaptive(), plan, door, terms)
        assert (2 in attributes_of(door.asked)) == measured
        told = Adaptive().clear(model)
        if not measured:
            assert told.keys() == {(f"x{place}", f"x{place + 1}") for place in (0, 2, 4, 6)}
            assert list(told.values()) == pytest.approx([0.525 * ROWS] * 4, rel=0.05)


def test_a_rest_too_small_to_be_divided_is_not_spent(monkeypatch):
    """Below it a band of one small attribute can get a share of nothing, and a question without budget is an error."""
    asked = asked_of(monkeypatch, (90,) * 9 + (2,), units=10**5)
    assert attributes_of(asked) == [1, 1]
    assert 2 * sum(budget.amount for _, _, budget in asked) > 10**5


# -- a target -------------------------------------------------------------------------------------

X0 = Workload((), "x0")


def pairs_in_order(asked):
    """Questions about pairs: what was asked, and which pairs."""
    return [(q, {query.attrs for query in queries}) for q, queries, _ in asked if len(queries[0].attrs) == 2]


@pytest.mark.parametrize(("kind", "units"), [("gdp", 10**13), ("pure", 10**15)])
def test_the_pairs_of_a_target_are_measured_before_anything_is_scored(monkeypatch, kind, units):
    asked = pairs_in_order(asked_of(monkeypatch, (4,) * 8, units=units, kind=kind, workload=X0))
    (first, pairs), (second, _), *_ = asked
    assert first in MEASURED and pairs == {("x0", f"x{other}") for other in range(1, 8)}
    assert second not in MEASURED
    assert any("x0" not in pair for _, pairs in asked[1:] for pair in pairs)


@pytest.mark.parametrize(("kind", "whole"), [("gdp", 10**13), ("pure", 10**15)])
@pytest.mark.parametrize("times", [0.9, 1.1])
def test_a_target_has_the_pairs_of_a_small_table_to_itself(monkeypatch, kind, whole, times):
    needed = TARGET_ALONE * rows_needed(8, Budget(kind, whole)) / ROWS
    units = round(whole * (times * needed) ** (2 if kind == "gdp" else 1))
    asked = asked_of(monkeypatch, (4,) * 8, units=units, kind=kind, workload=X0)
    others = [pair for _, pairs in pairs_in_order(asked) for pair in pairs if "x0" not in pair]
    assert bool(others) == (times > 1)
    assert sum(budget.amount for _, _, budget in asked) == pytest.approx(units, rel=1e-4)


@pytest.mark.parametrize("kind", ["gdp", "pure"])
@pytest.mark.parametrize("workload", [X0, Workload(((("x1", "x7"), Fraction(5)),))], ids=["target", "pair"])
def test_a_workload_may_name_attributes_whose_tables_discovery_knows(kind, workload):
    terms = Terms(workload=workload, known=frozenset({"x0", "x1"}))
    plan = Adaptive().plan(SOURCE, domain_of((4,) * 8, False), Budget(kind, 10**14), terms)
    asked = {query.attrs for step in plan.asked for query in step.queries} - {()}
    assert asked == {(f"x{place}",) for place in range(2, 8)}


def test_the_plan_says_that_a_target_comes_first():
    domain, budget = domain_of((4,) * 8, False), Budget("gdp", 10**13)
    for workload, there in ((X0, True), (UNWEIGHTED, False)):
        last = Adaptive().plan(SOURCE, domain, budget, Terms(workload=workload)).steps[-1]
        assert ("the target's pairs first" in last.name) == there


def test_rows_for_a_target_are_those_for_its_own_pairs(monkeypatch):
    budget = Budget("pure", 10**13)
    terms = Terms(workload=X0)
    assert Adaptive().one_way_part(rows_needed(8, budget, 7), 8, budget, terms) < 1
    assert Adaptive().one_way_part(0.99 * rows_needed(8, budget, 7), 8, budget, terms) == 1
    assert Adaptive().one_way_part(rows_needed(8, budget, 7), 8, budget) == 1
    units = round(0.99 * 10**15 * rows_needed(8, Budget("pure", 10**15), 7) / ROWS)
    assert not pairs_in_order(asked_of(monkeypatch, (4,) * 8, units=units, kind="pure", workload=X0))
    assert pairs_in_order(asked_of(monkeypatch, (4,) * 8, units=2 * units, kind="pure", workload=X0))


def test_measured_pairs_of_a_target_tell_how_far_they_were_from_independence():
    domain, codes = domain_of((4,) * 4, False), in_pairs((4,) * 4, np.random.default_rng(1))
    terms = Terms(workload=X0)
    plan = Adaptive().plan(SOURCE, domain, Budget("gdp", 10**13), terms)
    told = ran(Adaptive(), plan, door_to(domain, codes), terms).components
    assert told[0, 1].dispersion > 100 > 10 > told[0, 2].dispersion
    assert told[0, 1].precision > 0 and told[0, 2].precision > 0


# -- three-way tables -----------------------------------------------------------------------------


def all_four(sizes, rng):
    """The first four attributes go together, two by two and three by three; the others are alone."""
    codes = [rng.integers(0, size, ROWS) for size in sizes]
    for i in (1, 2, 3):
        together = sum(codes[:i]) if i == 2 else codes[0] * codes[i - 1]
        codes[i] = np.where(rng.random(ROWS) < 0.6, together % sizes[i], codes[i])
    return codes


def one_behind_all(sizes, rng):
    """Given the first attribute the others are independent of each other."""
    codes = [rng.integers(0, size, ROWS) for size in sizes]
    return [codes[0], *(np.where(rng.random(ROWS) < 0.6, codes[0] % 3, other) for other in codes[1:])]


def triples_of(asked, wanted):
    return [queries for question, queries, _ in asked if question in wanted and len(queries[0].attrs) == 3]


def test_triples_inside_cliques_are_scored_and_measured_last(monkeypatch):
    asked = asked_of(monkeypatch, (4,) * 6, drawn=all_four)
    (scored,) = triples_of(asked, ["distance"])
    assert {query.attrs for query in scored} >= set(combinations(("x0", "x1", "x2", "x3"), 3))
    measured = triples_of(asked, MEASURED)
    assert ("x0", "x1", "x2") in {query.attrs for queries in measured for query in queries}
    assert all(query in scored for queries in measured for query in queries)
    assert attributes_of(asked)[-len(measured) :] == [3] * len(measured)
    assert sum(budget.amount for _, _, budget in asked) == pytest.approx(10**13, rel=1e-9)
    paid = sum(budget.amount for _, queries, budget in asked if len(queries[0].attrs) == 3)
    one_ways = sum(budget.amount for _, queries, budget in asked if len(queries[0].attrs) < 2)
    assert paid / (10**13 - one_ways) == pytest.approx(triple_share(0.01, SETTINGS) / 100)


def test_where_no_triple_stands_out_the_pairs_are_measured_again(monkeypatch):
    """Pairs of all attributes were made to be one clique; their model leaves nothing over."""
    asked = asked_of(monkeypatch, (4,) * 4, drawn=one_behind_all, triple_rho=0.0, sampling=0.9)
    if not triples_of(asked, ["distance"]):
        pytest.fail("no triple was a candidate")
    assert not triples_of(asked, MEASURED)
    measured = [{query.attrs for query in queries} for question, queries, _ in asked if question in MEASURED]
    assert attributes_of(asked)[-1] == 2 and measured[-1] <= set.union(*measured[:-1])
    assert sum(budget.amount for _, _, budget in asked) == pytest.approx(10**13, rel=1e-9)


def test_triples_must_promise_more_than_the_pairs_would_gain_from_their_budget(monkeypatch):
    """For triples that stand out nothing but the price decides."""
    worth = asked_of(monkeypatch, (4,) * 6, drawn=all_four, triple_worth=1.0)
    not_worth = asked_of(monkeypatch, (4,) * 6, drawn=all_four, triple_worth=10.0**6)
    assert triples_of(worth, MEASURED) and triples_of(worth, ["distance"]) == triples_of(
        not_worth, ["distance"]
    )
    assert not triples_of(not_worth, MEASURED)
    again = [queries for question, queries, _ in not_worth if question in MEASURED]
    assert again[-1] in again[:-1]
    assert sum(budget.amount for _, _, budget in not_worth) == pytest.approx(10**13, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "units", "saved"),
    [("gdp", 5 * 10**12, 34.774), ("pure", 2 * 10**14, 20.76)],
)
@pytest.mark.parametrize("weight", [1, 3])
def test_what_the_pairs_would_gain_is_the_noise_that_pooling_takes_off(kind, units, saved, weight):
    """Two tables of 16 cells and deviation 10, measured again with half of the budget each: deviation 14.14,
    pooled 8.165. The mean absolute noise of a cell falls by 1.835 sqrt(2 / pi) or sqrt(1 / 2). A residual costs
    9/16 of a table of the same noise: 10.607, pooled 7.276."""
    workload = Workload(((("x0", "x1"), Fraction(weight)),))
    terms = Terms(workload=workload)
    plan = Adaptive().plan(SOURCE, domain_of((4,) * 6), Budget(kind, 10**15), terms)
    one_ways = [Observation(np.full(4, 1_000.0), np.asarray(1.0))] * 6
    tables = {pair: Observation(np.zeros((4, 4)), np.asarray(10.0)) for pair in [(0, 1), (2, 3), (3, 4)]}
    task = task_of(plan, None, terms, SETTINGS, 10**6, one_ways)
    price = SETTINGS.triple_worth * SETTINGS.charge * saved * (weight + 1)
    for factor, worth in ((0.999, False), (1.001, True)):
        expected = {(3, 4, 5): price * factor}
        pairs = {(0, 1): 2.0, (2, 3): 2.0}
        assert triples_worth_more(task, tables, expected, pairs, Budget(kind, units)) is worth


@pytest.mark.parametrize(("together", "whole"), [(False, set()), (True, {(0, 1)})])
def test_tables_that_residuals_cannot_hold_are_asked_for_whole(together, whole):
    """Of weighted units a cell of 200 x 200 holds too few."""
    source = replace(SOURCE, unit=PrivacyUnit("who", 3, together=together))
    domain = domain_of((200, 200, 3))
    door = door_to(domain, [np.zeros(10, dtype=np.int64)] * 3)
    plan = Adaptive().plan(source, domain, Budget("gdp", 10**13))
    one_ways = [Observation(np.full(size, 9.0), np.asarray(1.0)) for size in (200, 200, 3)]
    task = task_of(plan, door, Terms(), SETTINGS, 10**6, one_ways)
    tables = tables_measured(
        task, modelling.independence(task), {(0, 1): 1.0, (0, 2): 1.0}, Budget("gdp", 10**12)
    )
    asked = {(question, query.attrs) for question, queries, _ in door.asked for query in queries}
    names = {(0, 1): ("x0", "x1"), (0, 2): ("x0", "x2")}
    assert asked == {("measure" if pair in whole else "residuals", attrs) for pair, attrs in names.items()}
    assert {pair for pair in names if not tables[pair].filled} == whole
    assert tables[0, 1].values.shape == (200, 200)


def test_pairs_measured_again_stay_however_badly_they_are_met(monkeypatch):
    """What no fit meets is left out only where it is triples."""
    fitted, fit = [], modelling.fit_potentials

    def remembered(*arguments):
        fitted.append(fit(*arguments))
        return fitted[-1]

    monkeypatch.setattr(modelling, "fit_potentials", remembered)
    changes = {"fewest_triples": 4, "hopeless": 0.0, "triple_worth": 10.0**6, **WITHOUT_SETS}
    monkeypatch.setattr(Adaptive, "constants", replace(SETTINGS, **changes))
    domain, codes = domain_of((4,) * 6), all_four((4,) * 6, np.random.default_rng(1))
    model = ran(Adaptive(), Adaptive().plan(SOURCE, domain, Budget("gdp", 10**13)), door_to(domain, codes))
    # The last model takes two fits: one without and one with centres.
    assert len(fitted) == 4 and model.beliefs is fitted[-1].beliefs


def test_the_first_round_has_its_budget_whether_triples_follow_or_not(monkeypatch):
    first = [
        next(budget for question, queries, budget in asked if question == "distance")
        for asked in (
            asked_of(monkeypatch, (4,) * 6, drawn=all_four),
            asked_of(monkeypatch, (4,) * 6, drawn=all_four, triple_rho=1e9),
        )
    ]
    assert first[0].amount == pytest.approx(first[1].amount, rel=1e-9)


@pytest.mark.parametrize("changes", [{"fewest_triples": 9}, {"triple_cells": 63}, {"triple_attributes": 5}])
def test_without_candidates_the_pairs_have_the_budget_of_triples(monkeypatch, changes):
    asked = asked_of(monkeypatch, (4,) * 6, drawn=all_four, **changes)
    assert 3 not in {len(queries[0].attrs) for _, queries, _ in asked}
    assert sum(budget.amount for _, _, budget in asked) == pytest.approx(10**13, rel=1e-9)


@pytest.mark.parametrize(
    ("attributes", "units", "there"),
    [(5, 10**13, True), (5, 9 * 10**12, False), (4, 10**13, False), (30, 10**13, True), (31, 10**13, False)],
)
def test_triples_are_planned_where_there_may_be_enough_and_not_too_many(attributes, units, there):
    plan = Adaptive().plan(SOURCE, domain_of((2,) * attributes), Budget("gdp", units))
    assert all(len(query.attrs) < 3 for query in plan.queries)
    assert (", then three-way" in plan.steps[-1].name) is there


def test_triples_that_no_fit_can_meet_are_left_out(monkeypatch):
    """The model is then that of the pairs, after a last fit of its own."""
    fitted, fit = [], modelling.fit_potentials

    def remembered(*arguments):
        fitted.append(fit(*arguments))
        return fitted[-1]

    monkeypatch.setattr(modelling, "fit_potentials", remembered)
    domain, codes = domain_of((4,) * 6), all_four((4,) * 6, np.random.default_rng(1))
    for hopeless, fits, most in ((5.0, 4, 3), (0.0, 6, 2)):  # a last model takes two fits
        monkeypatch.setattr(
            Adaptive, "constants", replace(SETTINGS, fewest_triples=4, hopeless=hopeless, **WITHOUT_SETS)
        )
        fitted.clear()
        door = door_to(domain, codes)
        model = ran(Adaptive(), Adaptive().plan(SOURCE, domain, Budget("gdp", 10**13)), door)
        assert triples_of(door.asked, MEASURED) and len(fitted) == fits
        assert model.beliefs is fitted[-1].beliefs
        assert max(len(scope) for scope in fitted[-1].potentials) == most


def test_the_last_fit_ends_by_its_misfit_or_after_steps_of_its_own(monkeypatch):
    """The fit with centres gets more steps than those that form questions, and announces them all."""
    asked, announced, fit, phase = [], [], modelling.fit_potentials, modelling.phase

    def remembered(likelihood, start, iterations, *rest):
        asked.append(iterations)
        return fit(likelihood, start, iterations, *rest)

    def told(name, steps):
        announced.append(steps)
        return phase(name, steps)

    monkeypatch.setattr(modelling, "fit_potentials", remembered)
    monkeypatch.setattr(modelling, "phase", told)
    changes = {"fewest_triples": 4, "iterations": 20, "iterations_last": 70}
    monkeypatch.setattr(Adaptive, "constants", replace(SETTINGS, **changes))
    domain, codes = domain_of((4,) * 6), all_four((4,) * 6, np.random.default_rng(1))
    ran(Adaptive(), Adaptive().plan(SOURCE, domain, Budget("gdp", 10**13)), door_to(domain, codes))
    assert asked == [20, 20, 10, 70]
    assert announced == [20, 20, 80]


def test_triples_weigh_what_their_pairs_do(monkeypatch):
    """With three pairs that hardly weigh anything a triple is not worth what the others gain from its budget."""
    light = Workload(((("x0", "x1", "x2", "x3"), Fraction(1, 10**6)), (("x4", "x5"), Fraction(500))))
    assert triples_of(asked_of(monkeypatch, (4,) * 6, drawn=all_four), MEASURED)
    heavy = asked_of(monkeypatch, (4,) * 6, drawn=all_four, workload=light)
    assert not triples_of(heavy, MEASURED)


def test_tables_of_one_size_are_one_question_and_get_the_noise_of_their_own(monkeypatch):
    """k tables have k shares for k times the sensitivity squared; the shares are those of the choice."""
    chosen, inner, sizes = [], select.selected, (3, 4) * 6 + (2, 2)

    def selected(*given, **named):
        chosen.append(inner(*given, **named))
        return chosen[-1]

    monkeypatch.setattr(select, "selected", selected)
    asked = asked_of(monkeypatch, sizes, fewest_triples=99)
    measured = [own for own in asked if own[0] == "residuals" and len(own[1][0].attrs) == 2]
    weights = {(f"x{i}", f"x{j}"): weight for (i, j), weight in chosen[0].items()}
    assert weights.keys() == {(f"x{i}", f"x{i + 1}") for i in range(0, 14, 2)} and not chosen[1]
    assert [len(queries) for _, queries, _ in measured] == [1, 6] * 2  # in the second round the same again
    for first in (0, 2):
        paid = {q.attrs: own.amount / len(qs) for _, qs, own in measured[first : first + 2] for q in qs}
        assert paid.keys() == weights.keys()
        units = [paid[pair] / weight for pair, weight in weights.items()]
        assert units == pytest.approx([units[0]] * 7, rel=1e-9)
