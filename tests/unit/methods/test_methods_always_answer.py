"""After the debit a method asks for nothing that was not announced, whatever the noise: else the budget is gone
and there is no release."""

import dataclasses
import math

import numpy as np
import pytest
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.denoise import binned
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.growing import FEW_CANDIDATES, Bounds, Encoded, candidates, largest_number
from dpsyn_sql.methods.papers.dpcopula import DPCopula
from dpsyn_sql.methods.papers.dpsyn import DPSyn
from dpsyn_sql.methods.papers.privbayes import PrivBayes
from dpsyn_sql.planning import views
from dpsyn_sql.planning.queries import Marginals
from dpsyn_sql.private.measure.noise import standard_deviation
from dpsyn_sql.private.measure.questions.tables import marginals_event


def domain(*sizes, ordered=False):
    return domain_of(sizes, ordered)


class Held(FakeCurator):
    """Answers with the noise of the budget, and refuses what the door refuses."""

    def __init__(self, plan, columns, seed=0):
        super().__init__(plan.domain, lambda query: table_of(plan.domain, columns, query))
        self.plan, self.rng, self.further = plan, np.random.default_rng(seed), set()

    def answer(self, question, budget):
        tables = question.queries if hasattr(question, "queries") else question.candidates
        assert tables and budget.amount > 0
        self.further |= {query for query in tables if query.original not in self.plan.queries}
        for query in self.further:
            assert self.plan.reserves[-1].holds(query, self.domain)
        cells = sum(math.prod(query.shape(self.domain)) for query in self.further)
        assert not cells or cells <= self.plan.together
        self.sigma = 0.0
        found = super().answer(question, budget)
        if not isinstance(question, Marginals):
            return found
        event = marginals_event(len(tables), 1, budget)
        scale = event.sigma if budget.gaussian else event.scale
        draw = self.rng.normal if budget.gaussian else self.rng.laplace
        sigma = standard_deviation(event)
        return [
            dataclasses.replace(
                one, values=one.values + np.rint(draw(0, scale, one.values.shape)).astype(int), sigma=sigma
            )
            for one in found
        ]


def run(method, shape, columns, budget, seed=0):
    plan = method.plan(SOURCE, shape, budget)
    curator = Held(plan, columns, seed)
    return ran(method, plan, curator), curator


def constant(number, rows):
    return [np.zeros(rows, np.int64)] * number


@pytest.mark.parametrize(("epsilon", "rows"), [(0.1, 9000), (1, 2000)], ids=["fifty bins", "a hundred"])
def test_views_keep_to_the_limit_where_noise_makes_many_bins(epsilon, rows):
    """Of a thousand ordered codes noise alone makes many bins, whatever the most bins are."""
    shape = domain(1000, 1000, 1000, ordered=True)
    for seed in range(2):
        _, curator = run(DPSyn(cover=3), shape, constant(3, rows), Budget.from_epsilon(epsilon, 1e-9), seed)
        assert curator.further


@pytest.mark.parametrize("sizes", [(3, 9, 3, 9, 9, 3), (2, 3, 5, 7, 5, 3, 2), (6, 5, 4, 3, 3, 8)])
@pytest.mark.parametrize("epsilon", [0.3, 30])
@pytest.mark.parametrize("cover", [2, 3])
def test_the_last_bits_of_a_machine_change_neither_views_nor_their_noise(cover, epsilon, sizes, monkeypatch):
    """A replay elsewhere must ask the same questions at the same budgets."""
    rng, logarithm, error = np.random.default_rng(0), np.log2, views.expected_error
    columns, budget = [rng.integers(0, size, 20_000) for size in sizes], Budget.from_epsilon(epsilon, 1e-9)

    def nearby(values):
        return np.nextafter(values, np.where(rng.random(np.shape(values)) < 0.5, np.inf, -np.inf))

    def nearby_error(*given):
        shares, found = error(*given)
        return tuple(nearby(np.array(shares)).tolist()), float(nearby(found))

    def asked():
        _, curator = run(DPSyn(cover=cover), domain(*sizes), columns, budget)
        return [(queries, own) for _, queries, own in curator.asked]

    here = asked()
    monkeypatch.setattr(np, "log2", lambda values: nearby(logarithm(values)))
    monkeypatch.setattr(views, "expected_error", nearby_error)
    assert all(asked() == here for _ in range(3))


@pytest.mark.parametrize("method", [DPSyn(), DPCopula(), DPCopula(hybrid=True, ratio=1000.0), PrivBayes()])
@pytest.mark.parametrize("budget", [Budget("gdp", 40), Budget("pure", 40)], ids=["gdp", "pure"])
def test_a_budget_of_a_few_units_pays_for_what_is_asked(method, budget):
    columns = [np.repeat(np.arange(4), 25), np.tile(np.arange(4), 25), *constant(2, 100)]
    for seed in range(6):
        run(method, domain(4, 4, 9, 3), columns, budget, seed)


@pytest.mark.parametrize("method", [DPSyn(), DPSyn(views="random"), DPCopula(hybrid=True), PrivBayes()])
def test_noise_of_nearly_no_deviation_gives_a_model(method):
    """Laplace noise at the largest pure epsilons."""
    shape = domain(3, 5, 4, 11)
    for epsilon in (900, 999):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            columns = [rng.integers(0, size, 1 + 20 * seed) for size in shape.shape()]
            model, _ = run(method, shape, columns, Budget.from_epsilon(epsilon, 0), seed)
            assert all(np.isfinite(model.project([name])).all() for name in shape.names)


@pytest.mark.parametrize("score", ["L1", "I"])
def test_a_column_without_any_category_has_levels(score):
    """Discovery may show no value: then a column has __other__ and NULL alone."""
    empty = Attribute("empty", "VARCHAR", "categorical", other=True, nullable=True)
    shape = Domain((empty, *domain(5, 4).attributes))
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, size, 5000) for size in (2, 5, 4)]
    method = PrivBayes(encoding="hierarchical", score=score)
    model, _ = run(method, shape, columns, Budget.from_epsilon(1, 1e-9))
    assert model.total > 0


@pytest.mark.parametrize("score", ["L1", "I"])
@pytest.mark.slow
def test_a_network_of_columns_whose_pairs_are_all_too_large_has_no_parents(score):
    """The one column that pairs of original codes were possible with is constant."""
    shape = domain(2, *[2500] * 90, ordered=True)
    rng = np.random.default_rng(0)
    columns = [np.zeros(40_000, np.int64), *(rng.integers(0, 2500, 40_000) for _ in range(90))]
    model, curator = run(PrivBayes(score=score), shape, columns, Budget.from_epsilon(50, 1e-9))
    assert model.total > 0
    assert not curator.further and {kind for kind, _, _ in curator.asked} == {"measure"}


def test_candidates_with_levels_are_no_more_than_was_counted_on():
    shape = domain(*[64] * 7, ordered=True)
    one_ways = [Observation(np.full(64, 1000.0), np.asarray(1.0))] * 7
    encoded = Encoded.of(binned(shape, one_ways, [1.0] * 7, 64), hierarchical=True)
    bounds = Bounds(4, math.inf, 2**24 // (FEW_CANDIDATES * 6), frozenset())
    assert largest_number(encoded, range(7), 4) <= FEW_CANDIDATES
    for placed in range(1, 7):
        found = candidates(encoded, range(placed), range(placed, 7), bounds, None)
        assert len(found) <= largest_number(encoded, range(7), 4)
