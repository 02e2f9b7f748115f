"""What a workload and a limit on memory do to the plan and the choices of adaptive marginals."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.methods.adaptive.selection import NoiseLaw, selected
from dpsyn_sql.methods.adaptive.settings import Settings
from dpsyn_sql.methods.pairs import MAX_CANDIDATE_CELLS
from dpsyn_sql.planning.limits import LEAST_MEMORY, Limits, Terms
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.source.relation import Relation, Source

SOURCE = Source(Relation("people", "table", "people", ()))
BUDGET = Budget("gdp", 10**13)


def attribute(name, size=4):
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)))


def test_a_plan_says_its_caps_only_where_they_are_lower():
    domain, budget = Domain(tuple(attribute(f"a{i}", 500) for i in range(40))), Budget.from_epsilon(1, 1e-9)
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
    domain = Domain(tuple(attribute(f"x{i}", size) for i, size in enumerate(sizes)))
    plan = Adaptive().plan(SOURCE, domain, BUDGET, Terms(workload=read_workload(spec)))
    one_ways = [step for step in plan.known if step.residuals]
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
        and [len(step.queries) for step in plan.known] == [1, 4, 1]
        and "mean weight 9" in plan.known[2].name
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
    return selected(scores, {}, weights, (4,) * 8, (), 1e6, NoiseLaw(10.0, 0.5), Settings(**changes))


def test_a_weight_multiplies_the_gain_the_noise_and_the_share():
    taken = chosen({(0, 1): 1e5, (2, 3): 1e5}, {(0, 1): 5.0}, allocation=2 / 3)
    assert taken[0, 1] / taken[2, 3] == pytest.approx(5 ** (2 / 3))
    # The price of the second pair: weighted noise of both at the best shares, less that of the first.
    both = 10 * ((5 * 16) ** (2 / 3) + 16 ** (2 / 3)) ** 1.5 - 10 * 5 * 16
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
