"""The method dpsyn: its views, its settings, tables that it cannot use, and a model that is right."""

import dataclasses
import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InputError, PlanTooLarge
from dpsyn_sql.fit.reconstruct import RECONSTRUCTIONS
from dpsyn_sql.methods import method_of
from dpsyn_sql.methods.papers.dpsyn import DPSyn
from dpsyn_sql.planning.limits import Limits, Terms
from dpsyn_sql.rows.sample.views import SYNTHESES

GAUSSIAN, LAPLACE = Budget("gdp", 14_884_300_000_000), Budget("pure", 10**15)


def domain(*sizes, ordered=False):
    return domain_of(sizes, ordered)


def codes_of(sizes, rows=20_000, seed=0):
    """A chain: each attribute follows the one before."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, sizes[0], rows)]
    for before, size in pairwise(sizes):
        near = columns[-1] * size // before
        columns.append(np.where(rng.random(rows) < 0.7, near, rng.integers(0, size, rows)))
    return columns


class Noisy(FakeCurator):
    """Exact tables with normal noise of the deviation that the budget buys."""

    def __init__(self, shape, columns, seed=0):
        rng = np.random.default_rng(seed)
        super().__init__(shape, lambda q: np.rint(table_of(shape, columns, q)).astype(np.int64))
        self.rng = rng

    def answer(self, question, budget):
        number = len(question.queries)
        self.sigma = (
            math.sqrt(number / (2 * float(budget.rho)))
            if budget.gaussian
            else math.sqrt(2) * number / float(budget.fraction)
        )
        found = super().answer(question, budget)
        noise = [np.rint(self.rng.normal(0, self.sigma, t.values.shape)).astype(np.int64) for t in found]
        return [dataclasses.replace(t, values=t.values + n) for t, n in zip(found, noise, strict=True)]


def run(method, shape, columns, budget=GAUSSIAN, terms=None):
    terms = Terms() if terms is None else terms
    plan, curator = method.plan(SOURCE, shape, budget, terms), Noisy(shape, columns)
    return ran(method, plan, curator, terms), curator, plan


def views_asked(curator):
    return [query.attrs for _, queries, _ in curator.asked for query in queries if len(query.attrs) > 1]


@pytest.mark.parametrize("budget", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("cover", [2, 3])
def test_every_pair_or_triple_is_measured_and_the_budget_is_spent(cover, budget):
    sizes = (2, 3, 4, 2, 5, 2)
    _, curator, plan = run(DPSyn(cover=cover), domain(*sizes), codes_of(sizes), budget)
    held = {one for view in views_asked(curator) for one in combinations(view, cover)}
    assert held == set(combinations([f"x{i}" for i in range(6)], cover))
    assert sum(spent.amount for _, _, spent in curator.asked) == plan.budget.amount
    further = plan.reserves[-1]
    asked = [query for _, queries, _ in curator.asked for query in queries if len(query.attrs) > 1]
    assert all(further.holds(query, plan.domain) for query in asked)
    assert sum(math.prod(query.shape(plan.domain)) for query in asked) <= further.together


@pytest.mark.parametrize("views", ["covering", "random"])
def test_the_views_follow_from_the_noisy_one_way_tables_alone(views):
    """Two tables with the same one-way tables and other pairs: the same questions."""
    sizes = (4, 4, 4, 6)
    columns = codes_of(sizes)
    shuffled = [np.random.default_rng(9).permutation(column) for column in columns]
    asked = [
        [(queries, budget) for _, queries, budget in run(DPSyn(views=views), domain(*sizes), own)[1].asked]
        for own in (columns, shuffled)
    ]
    assert asked[0] == asked[1] and len(asked[0]) > 1


@pytest.mark.parametrize("synthesis", SYNTHESES)
@pytest.mark.parametrize("nonnegativity", ["simplex", "ripple"])
def test_rows_are_those_of_the_table(synthesis, nonnegativity):
    sizes = (4, 3, 6, 2)
    columns = codes_of(sizes)
    model, _, _ = run(DPSyn(synthesis=synthesis, nonnegativity=nonnegativity), domain(*sizes), columns)
    assert model.synthesis == synthesis
    rows = np.concatenate([*model.sampler().batches(20_000, 1)])
    for pair in combinations(range(4), 2):
        shape = [sizes[index] for index in pair]
        wanted, found = np.zeros(shape), np.zeros(shape)
        np.add.at(wanted, tuple(columns[index] for index in pair), 1 / 20_000)
        np.add.at(found, tuple(rows[:, index] for index in pair), 1 / 20_000)
        assert np.abs(wanted - found).sum() / 2 < 0.06


@pytest.mark.parametrize("reconstruction", RECONSTRUCTIONS)
def test_any_marginal_is_answered(reconstruction):
    sizes = (4, 3, 6, 2)
    columns = codes_of(sizes)
    model, _, _ = run(DPSyn(reconstruction=reconstruction), domain(*sizes), columns)
    names = ("x3", "x0", "x2", "x1")
    table = model.project(names) / model.total
    assert table.shape == (2, 4, 6, 3) and table.min() >= 0 and table.sum() == pytest.approx(1)
    pair = model.project(("x0", "x2")) / model.total
    np.testing.assert_allclose(table.sum(axis=(0, 3)), pair, atol=0.02)


BAD = {
    "cover": (4, "cover=4; it can be 2 or 3"),
    "views": ("all", "views='all'; it can be 'covering' or 'random'"),
    "nonnegativity": ("none", "nonnegativity='none'; it can be 'simplex' or 'ripple'"),
    "synthesis": ("fast", "synthesis='fast'; it can be 'exchange', 'gum', 'mcf' or 'sts'"),
    "reconstruction": ("lp", "reconstruction='lp'; it can be 'maximum_entropy', "),
    "theta": (-1.0, "theta=-1.0; it can be 0 or a positive number"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_setting_without_meaning_is_refused_before_anything_is_read(name):
    value, told = BAD[name]
    with pytest.raises(InputError) as refused:
        method_of({"name": "dpsyn", name: value}).plan(SOURCE, domain(2, 2), GAUSSIAN)
    assert told in str(refused.value)


def test_too_many_attributes_to_cover_are_refused_with_numbers():
    with pytest.raises(PlanTooLarge, match=r"cover=3 takes at most 60 columns .* there are 61, with 35,990"):
        DPSyn(cover=3).plan(SOURCE, domain(*[2] * 61), GAUSSIAN)
    with pytest.raises(PlanTooLarge, match=r"cover=2 takes at most 300 columns .* there are 301"):
        DPSyn().plan(SOURCE, domain(*[2] * 301), GAUSSIAN)
    DPSyn(cover=3).plan(SOURCE, domain(*[2] * 60, *[1] * 5), GAUSSIAN)


def test_a_limit_on_memory_that_no_views_keep_to_says_by_how_much():
    tight = Terms(limits=Limits(300 * 2**20))
    with pytest.raises(
        PlanTooLarge, match=r"up to 179,400 cells even with two bins a column, and [\d,]+ fit"
    ):
        DPSyn().plan(SOURCE, domain(*[2] * 300), GAUSSIAN, Terms(limits=Limits(270 * 2**20)))
    plan = DPSyn().plan(SOURCE, domain(*[30] * 20), GAUSSIAN, tight)
    assert plan.together < DPSyn().plan(SOURCE, domain(*[30] * 20), GAUSSIAN).together
    assert "caps" in plan.details.identity


def rows_of(model, number=100):
    return np.concatenate([*model.sampler().batches(number, 1)])


def test_identical_columns_are_found_to_be_identical():
    columns = codes_of((6,))
    model, _, _ = run(DPSyn(), domain(6, 6), [columns[0], columns[0]])
    table = model.project(["x0", "x1"])
    assert np.trace(table) > 0.97 * model.total


def test_attributes_of_many_values_are_measured_over_bins():
    sizes = (5000, 3000, 2)
    common = np.random.default_rng(1).geometric(0.1, 20_000) - 1
    columns = [common, common // 2, common % 2]
    model, curator, plan = run(DPSyn(), domain(*sizes), columns)
    shapes = [q.shape(plan.domain) for _, queries, _ in curator.asked for q in queries if len(q.attrs) > 1]
    assert max(max(shape) for shape in shapes) <= 40
    assert model.project(["x2"]).sum() == pytest.approx(model.total)


def test_one_way_tables_get_the_whole_budget_where_no_code_stands_out():
    sizes = (5000, 3000)
    model, curator, plan = run(DPSyn(), domain(*sizes), codes_of(sizes, 2000))
    assert views_asked(curator) == []
    assert sum(budget.amount for _, _, budget in curator.asked) > 0.99 * plan.budget.amount
    assert model.project(["x0"]).sum() == pytest.approx(model.total)
