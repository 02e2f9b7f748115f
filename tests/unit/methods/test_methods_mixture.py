"""Mixtures as a method: what is asked when, labels against brute force, classes, settings, bad input."""

import math
from functools import partial

import numpy as np
import pytest
from support.domains import domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError, PlanTooLarge
from dpsyn_sql.fit.denoise import binned
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.mixture import Components
from dpsyn_sql.methods import method_of
from dpsyn_sql.methods.papers.mixture import ROUNDS, ROUNDS_ALONE, Mixture, Task
from dpsyn_sql.planning.limits import NO_TERMS, Limits, Terms
from dpsyn_sql.planning.queries import MarginalQuery, NoisyMarginal
from dpsyn_sql.planning.row_labels import labelled
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.source.relation import PrivacyUnit, Relation, Source

pytestmark = pytest.mark.filterwarnings("error")

PEOPLE = Relation("people", "table", "people", ())
SOURCE = Source(PEOPLE)
ONE = Budget.from_epsilon(1, 1e-9).without_thresholds()
ROWS = 20_000


class Noisy(FakeCurator):
    """Exact tables with Gaussian noise of the budget; labels are made of the rows."""

    def __init__(self, domain, codes, seed=0):
        super().__init__(domain, partial(table_of, domain, codes))
        self.codes, self.rng, self.labels = codes, np.random.default_rng(seed), []

    def answer(self, question, budget):
        super().answer(question, budget)
        self.labels.append(question.labels)
        sigma = budget.law().shared(len(question.queries))
        wider, codes = self.domain, self.codes
        if question.labels:
            wider = labelled(self.domain, question.labels)
            columns = dict(zip(self.domain.names, codes, strict=True))
            codes = [*codes, *(label.codes(columns) for label in question.labels)]
        exact = [table_of(wider, codes, query) for query in question.queries]
        return [
            NoisyMarginal(
                q.attrs, np.rint(t + self.rng.normal(0, sigma, t.shape)).astype(np.int64), sigma, q.maps
            )
            for q, t in zip(question.queries, exact, strict=True)
        ]

    def labelled_tables(self, question):
        return [None] * len(question.queries)


def groups(sizes, number=3, rows=ROWS, seed=1):
    """Columns that are independent within each of some hidden groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, number, rows)
    columns = []
    for size in sizes:
        ends = np.cumsum(rng.dirichlet(np.full(size, 0.4), number), axis=1)
        columns.append(np.minimum((rng.random(rows)[:, None] > ends[group]).sum(axis=1), size - 1))
    return columns


def targeted(target):
    return Terms(workload=read_workload(target))


def run(codes, domain, method, budget=ONE, terms=NO_TERMS, source=SOURCE):
    curator = Noisy(domain, codes)
    return ran(method, method.plan(source, domain, budget, terms), curator, terms), curator


def distance(model, codes, names):
    exact = table_of(model.domain, codes, MarginalQuery(names))
    return np.abs(model.project(names) / model.total - exact / exact.sum()).sum() / 2


SIZES = (3, 4, 2, 5, 3, 4)


def test_four_columns_of_hidden_groups_are_kept():
    codes = groups(SIZES)
    model, _ = run(codes, domain_of(SIZES), Mixture())
    for names in (("x0", "x1", "x3", "x5"), ("x1", "x2", "x3", "x4")):
        exact = table_of(model.domain, codes, MarginalQuery(names)) / ROWS
        alone = [exact.sum(axis=tuple(a for a in range(4) if a != axis)) for axis in range(4)]
        independent = np.einsum("i,j,k,l->ijkl", *alone)
        assert distance(model, codes, names) < 0.25 * np.abs(exact - independent).sum() / 2


def test_pairs_come_first_then_rounds_of_labels():
    codes, domain = groups(SIZES), domain_of(SIZES)
    _, curator = run(codes, domain, Mixture(components=7, rounds=2))
    asked = [sorted(len(query.attrs) for query in queries) for _, queries, _ in curator.asked]
    assert asked[-3:] == [[2] * 15, [2] * 6, [2] * 6] and all(set(own) == {1} for own in asked[:-3])
    assert [[label.size for label in labels] for labels in curator.labels[-3:]] == [[], [7], [7]]
    budgets = [budget.amount for _, _, budget in curator.asked]
    assert sum(budgets) == ONE.amount and budgets[-1] == pytest.approx(budgets[-2])
    first, second = curator.labels[-2:]
    assert first[0].name != second[0].name and first[0].name not in domain


def test_kmeans_asks_for_no_pairs():
    _, curator = run(groups(SIZES), domain_of(SIZES), Mixture(by="kmeans", components=4))
    labels = [labels for labels in curator.labels if labels]
    assert len(labels) == ROUNDS_ALONE and len(curator.asked) - len(labels) == 1
    assert sum(budget.amount for _, _, budget in curator.asked) == ONE.amount


def test_pairs_that_are_noise_are_not_asked_for():
    sizes = (3,) * 30
    codes = groups(sizes, rows=3_000)
    _, curator = run(codes, domain_of(sizes), Mixture(components=3))
    questions = [
        queries for (_, queries, _), labels in zip(curator.asked, curator.labels, strict=True) if not labels
    ]
    assert all(len(query.attrs) == 1 for queries in questions for query in queries)
    assert sum(map(bool, curator.labels)) == ROUNDS


def test_so_few_rows_that_one_component_is_left_get_one_way_tables_alone():
    _, curator = run(groups(SIZES, rows=200), domain_of(SIZES), Mixture())
    assert not any(curator.labels)
    assert {len(query.attrs) for _, queries, _ in curator.asked for query in queries} == {1}
    assert sum(budget.amount for _, _, budget in curator.asked) == ONE.amount


def test_more_rows_and_a_larger_budget_give_more_components():
    def number(rows, epsilon):
        budget = Budget.from_epsilon(epsilon, 1e-9).without_thresholds()
        _, curator = run(groups(SIZES, rows=rows), domain_of(SIZES), Mixture(), budget)
        return max((label.size for labels in curator.labels for label in labels), default=1)

    assert 1 < number(20_000, 1) < number(60_000, 1) and number(20_000, 1) < number(20_000, 4)


# -- classes -----------------------------------------------------------------------------------


def with_target(rows=ROWS, seed=3):
    """Columns that depend on the last one, of two values."""
    rng = np.random.default_rng(seed)
    target = (rng.random(rows) < 0.4).astype(np.int64)
    columns = [np.where(rng.random(rows) < 0.8, target, rng.integers(0, 3, rows)) for _ in range(4)]
    return [*columns, target], domain_of((3, 3, 3, 3, 2))


def test_one_component_a_class_is_one_question():
    codes, domain = with_target()
    model, curator = run(codes, domain, Mixture(components=2), terms=targeted("x4"))
    assert [query.attrs for query in curator.asked[-1][1]] == [("x4", f"x{place}") for place in range(4)]
    assert not any(curator.labels) and sum(b.amount for _, _, b in curator.asked) == ONE.amount
    assert all(distance(model, codes, ("x4", f"x{place}")) < 0.02 for place in range(4))


def test_each_component_is_of_one_class_and_the_label_keeps_to_it():
    codes, domain = with_target()
    _, curator = run(codes, domain, Mixture(components=10), terms=targeted("x4"))
    pairs = [query.attrs for query in curator.asked[-4][1]]
    assert pairs[0] == ("x4", "x0", "x1") and len(pairs) == 6
    columns = dict(zip(domain.names, codes, strict=True))
    for (label,) in curator.labels[-3:]:
        found = label.codes(columns)
        classes = np.array(dict(label.scores)["x4"]).argmin(axis=1)
        assert np.bincount(classes).tolist() in ([5, 4], [6, 4], [5, 5])
        np.testing.assert_array_equal(classes[found], codes[4])
    assert [len(query.attrs) for query in curator.asked[-1][1]] == [2] * 4


@pytest.mark.parametrize("by", ["em", "kmeans"])
def test_a_target_needs_a_split_by_it(by):
    domain = domain_of(SIZES)
    with pytest.raises(InputError, match=f"by='{by}' does not use a target of workload="):
        Mixture(by=by).plan(SOURCE, domain, ONE, targeted("x1"))
    with pytest.raises(InputError, match="by='target' splits by the target that workload= names"):
        Mixture(by="target").plan(SOURCE, domain, ONE)
    assert Mixture(by="target").plan(SOURCE, domain, ONE, targeted("x1")).reserves


def categories(size, **kinds):
    return Attribute("x4", "VARCHAR", "categorical", labels=tuple(range(size)), **kinds)


TARGETS = {
    "one code": categories(1),
    "10,000 codes": categories(10_000),
    "NULL": categories(1, nullable=True),
    "ordered": categories(400, ordered=True),
}


@pytest.mark.parametrize("name", TARGETS)
def test_any_target_gives_a_model(name):
    codes, domain = with_target()
    rng, size = np.random.default_rng(1), TARGETS[name].size
    codes[4] = np.minimum(rng.geometric(0.02, ROWS) - 1, size - 1)
    domain = Domain((*domain.attributes[:4], TARGETS[name]))
    for settings in ({}, {"components": 40}, {"components": 256}):
        model, curator = run(codes, domain, Mixture(**settings), terms=targeted("x4"))
        assert model.project(["x4", "x0"]).sum() == pytest.approx(model.total)
        assert sum(budget.amount for _, _, budget in curator.asked) == ONE.amount
        (reserve,) = Mixture(**settings).plan(SOURCE, domain, ONE, targeted("x4")).reserves
        assert all(
            math.prod(q.shape(labelled(domain, own))) <= reserve.most_cells
            for (_, queries, _), own in zip(curator.asked, curator.labels, strict=True)
            for q in queries
            if len(q.attrs) > 1
        )


# -- labels ------------------------------------------------------------------------------------


def task(domain, counts, by, number=4):
    observed = [Observation(np.asarray(own, float), np.asarray(1.0)) for own in counts]
    found = binned(domain, observed, [4.0] * len(observed), 16)
    return Task(None, found, 1000.0, 1, ONE, by, None, tuple(range(len(observed))), (number,), 1)


def mixed_domain():
    return Domain(
        (
            Attribute("age", "BIGINT", "categorical", labels=tuple(range(6)), ordered=True, nullable=True),
            Attribute("town", "VARCHAR", "categorical", labels=("a", "b", "c"), other=True),
        )
    )


COUNTS = ([300, 200, 2, 3, 250, 145, 100], [400, 300, 200, 100])


def profiles(own, number=4, seed=2):
    rng = np.random.default_rng(seed)
    return Components(rng.dirichlet(np.ones(number)), tuple(rng.dirichlet(np.ones(s), number) for s in own))


def all_codes(domain):
    grid = np.indices(domain.shape()).reshape(len(domain.names), -1)
    return dict(zip(domain.names, grid, strict=True))


def test_the_label_of_em_is_the_likeliest_component():
    domain = mixed_domain()
    own = task(domain, COUNTS, "em")
    mixture, columns = profiles(own.working.sizes), all_codes(domain)
    logs = np.log(mixture.weights)[:, None]
    for place, name in enumerate(domain.names):
        logs = logs + np.log(mixture.profiles[place])[:, own.working.bins[place][columns[name]]]
    label = own.label(mixture, 1)
    label.check(domain)
    best, found = logs.argmax(axis=0), label.codes(columns)
    lost = logs[best, np.arange(best.size)] - logs[found, np.arange(best.size)]
    assert lost.max() < 0.005 and (lost == 0).mean() > 0.9  # scores are thousandths


def test_the_label_of_kmeans_is_the_nearest_centre_on_public_scales():
    """Ages 0 to 5 lie on 0 to 1; NULL and towns on axes of their own, at distance 1 of each other."""
    domain = mixed_domain()
    own = task(domain, COUNTS, "kmeans")
    mixture, columns = profiles(own.working.sizes), all_codes(domain)
    ages, towns = own.working.bins
    points, centres = [], []
    for age in range(7):
        here = np.flatnonzero(ages == ages[age])
        middle = 0.5 if age == 6 else np.mean(here / 5)
        axes = np.zeros(ages.max() + 1)
        axes[ages[age]] = (age == 6) / math.sqrt(2)
        points.append(np.append(axes, middle))
    place = np.array([points[np.flatnonzero(ages == bin_)[0]] for bin_ in range(ages.max() + 1)])
    town = np.eye(towns.max() + 1) / math.sqrt(2)
    centres = np.hstack([mixture.profiles[0] @ place, mixture.profiles[1] @ town])
    rows = np.hstack([place[ages[columns["age"]]], town[towns[columns["town"]]]])
    squares = ((rows[:, None] - centres) ** 2).sum(axis=2)
    found = own.label(mixture, 1).codes(columns)
    assert np.all(squares[np.arange(len(rows)), found] - squares.min(axis=1) < 1e-5)
    assert np.unique(found).size > 1


def test_labels_of_later_rounds_have_names_of_their_own():
    domain = mixed_domain()
    own = task(domain, COUNTS, "em")
    mixture = profiles(own.working.sizes)
    assert len({own.label(mixture, number).name for number in (1, 2, 3)} | set(domain.names)) == 5


def test_a_label_looks_at_columns_of_few_codes_if_its_scores_are_too_many(monkeypatch):
    domain = mixed_domain()
    own = task(domain, COUNTS, "em")
    mixture = profiles(own.working.sizes)
    for most, looked in ((4 * (7 + 4), ("age", "town")), (4 * (7 + 4) - 1, ("town",)), (1, ("town",))):
        monkeypatch.setattr("dpsyn_sql.methods.papers.mixture.MOST_SCORES", most)
        assert own.label(mixture, 1).attributes == looked


def test_components_without_weight_get_finite_scores():
    domain = mixed_domain()
    own = task(domain, COUNTS, "em")
    mixture = profiles(own.working.sizes)
    empty = Components(np.array([1.0, 0, 0, 0]), tuple(np.eye(4, p.shape[1]) for p in mixture.profiles))
    own.label(empty, 1).check(domain)


# -- settings and limits -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"components": -1}, "components=-1; it can be 0"),
        ({"components": 10_000}, "components=10000; it can be 0 .as usual. or 1 to 256"),
        ({"rounds": 51}, "rounds=51; it can be 0 .as usual. or 1 to 50"),
        ({"by": "gmm"}, "by='gmm'"),
        ({"components": 2.5}, "whole number"),
        ({"k": 3}, "no setting"),
    ],
)
def test_settings_out_of_range_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        method_of({"name": "mixture", **given})


@pytest.mark.parametrize("number", [1, 256])
def test_more_components_than_rows_or_one_give_a_model(number):
    codes = groups(SIZES, rows=60)
    model, _ = run(codes, domain_of(SIZES), Mixture(components=number))
    assert model.project(["x0", "x1"]).sum() == pytest.approx(max(0, model.total))
    assert len(np.concatenate(list(model.sampler().batches(50, 1)))) == 50


def test_too_many_cells_are_refused_in_words():
    wide = domain_of((100,) * 2_500, True)
    with pytest.raises(PlanTooLarge, match="256 components and 2,500 columns have up to .* Take fewer"):
        Mixture(components=256).plan(SOURCE, wide, ONE)
    with pytest.raises(PlanTooLarge, match="limits={'memory'"):
        Mixture().plan(SOURCE, domain_of((100,) * 300, True), ONE, Terms(Limits(600 * 2**20)))


def test_units_of_several_rows_have_fewer_components():
    several = Source(PEOPLE, PrivacyUnit("id", max_rows=8))
    codes = groups(SIZES)
    own = [run(codes, domain_of(SIZES), Mixture(), source=source)[1] for source in (SOURCE, several)]
    one, other = (max((lab.size for labels in c.labels for lab in labels), default=1) for c in own)
    assert one > other
