"""Traces as a method: what is asked, planted walks, any answers, settings, bad input."""

from datetime import date, timedelta

import numpy as np
import pytest
from support.doors import FakeCurator, ran

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.methods import method_of
from dpsyn_sql.methods.papers import traces as module
from dpsyn_sql.methods.papers.traces import Traces
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit, Relation, Source

pytestmark = pytest.mark.filterwarnings("error")

MOST = 8
UNIT = PrivacyUnit("person", MOST, together=True, order="day")
SOURCE = Source(Relation("visits", "table", "visits", ()), UNIT)
ONE = Budget.from_epsilon(1, 1e-9).without_thresholds()
SIDE = 4
PLACES = SIDE * SIDE


def categorical(name, size, **options):
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)), **options)


def day(bins=12, **options):
    edges = tuple(date(2020, 1, 1) + timedelta(days=30 * number) for number in range(bins + 1))
    return Attribute("day", "DATE", "temporal", edges=edges, ordered=True, **options)


TABLE = Domain((categorical("born", 3), day(), categorical("place", PLACES), categorical("purpose", 4)))


def families(table=TABLE, persons=("born",), unit=UNIT):
    return families_of(table, unit, persons)


class People(FakeCurator):
    """Codes of persons who walk on a grid, counted by weights; noise of ``sigma`` units."""

    def __init__(self, found, columns, weights, sigma=0.0):
        super().__init__(found.domain, None, max(sigma, 1e-6) * WEIGHT)
        self.columns, self.weights, self.rng, self.noise = columns, weights, np.random.default_rng(9), sigma

    def answer(self, question, budget):
        self.table = lambda query: np.zeros(query.shape(self.domain))
        super().answer(question, budget)
        return [NoisyMarginal(q.attrs, self.counted(q), self.sigma, q.maps) for q in question.queries]

    def counted(self, query):
        maps = query.maps or (None,) * len(query.attrs)
        axes = [
            self.columns[name] if bins is None else np.array(bins)[self.columns[name]]
            for name, bins in zip(query.attrs, maps, strict=True)
        ]
        table = np.zeros(query.shape(self.domain))
        np.add.at(table, tuple(axes), WEIGHT * self.weights)
        return np.rint(table + self.rng.normal(0, WEIGHT * self.noise, table.shape)).astype(np.int64)


def grid_walk():
    """Steps (16, 16): half stay, the rest go to a neighbour on the grid."""
    rows, columns = np.divmod(np.arange(PLACES), SIDE)
    near = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns) == 1
    return 0.5 * np.eye(PLACES) + 0.5 * near / near.sum(axis=1, keepdims=True)


def walked(persons=20_000, seed=1):
    """All attributes of the rows of persons, and the weight of each row."""
    rng, steps = np.random.default_rng(seed), grid_walk()
    found = families()
    sizes = rng.integers(1, MOST + 1, persons)
    person, rank = np.repeat(np.arange(persons), sizes), np.concatenate([np.arange(n) for n in sizes])
    place, months = np.zeros(person.size, np.int64), np.zeros(person.size, np.int64)
    for turn in range(MOST):
        own = np.flatnonzero(rank == turn)
        if turn == 0:
            place[own] = np.minimum(rng.integers(0, PLACES, own.size), rng.integers(0, PLACES, own.size))
            months[own] = rng.integers(0, 6, own.size)
        else:
            place[own] = (np.cumsum(steps[place[own - 1]], axis=1) < rng.random(own.size)[:, None]).sum(
                axis=1
            )
            months[own] = np.minimum(months[own - 1] + (rng.random(own.size) < 0.4), 11)
    purpose = np.where(rng.random(person.size) < 0.8, place % 4, rng.integers(0, 4, person.size))
    number, first = sizes[person], rank == 0
    kind = np.where(number == 1, 0, np.where(first, 1, np.where(rank == number - 1, 3, 2)))
    columns = {
        "born": (person + sizes[person]) % 3,
        "day": months,
        "place": place,
        "purpose": purpose,
        found.size: number - 1,
        found.differing: np.zeros(person.size, np.int64),
        found.place: kind,
    }
    since = found.domain[found.since]
    passed = np.append(0, np.diff(months)) * 30
    columns[found.since] = np.where(
        first, since.null_code, np.searchsorted(since.edges, passed, side="right") - 1
    )
    for hidden, name in found.previous:
        columns[hidden] = np.where(first, found.domain[hidden].null_code, np.append(0, columns[name][:-1]))
    return found, columns, 1 / number


def fitted(sigma=0.0, budget=ONE, method=None, **options):
    found, columns, weights = walked(**options)
    terms, curator = Terms(families=found), People(found, columns, weights, sigma)
    method = Traces() if method is None else method
    plan = method.plan(SOURCE, found.domain, budget, terms)
    return plan, curator, ran(method, plan, curator, terms), columns


def test_what_is_asked_is_planned_and_costs_the_budget():
    plan, curator, _, _ = fitted(1.0)
    assert sum(step.budget.amount for step in plan.steps) == ONE.amount
    assert sum(budget.amount for _, _, budget in curator.asked) == ONE.amount
    asked = [query for _, queries, _ in curator.asked for query in queries]
    later = [query for query in asked if query not in plan.queries]
    assert all(plan.reserves[-1].holds(query, plan.domain) for query in later)
    assert sum(np.prod(query.shape(plan.domain)) for query in later) <= plan.together
    encoded = {name for query in plan.queries for name in query.attrs}
    assert {name for query in asked for name in query.attrs} <= encoded


def test_a_planted_walk_on_a_grid_is_drawn():
    _, _, model, columns = fitted()
    assert model.total == pytest.approx(20_000, abs=1)
    sampler, place = model.sampler(), 2
    people = sampler.people(20_000, 3)
    rows = np.concatenate([batch.codes for batch in sampler.rows(people, 3)]).astype(np.int64)
    later = np.ones(people.total, np.bool_)
    later[people.starts[:-1]] = False
    steps = np.zeros((PLACES, PLACES))
    np.add.at(steps, (rows[np.flatnonzero(later) - 1, place], rows[later, place]), 1)
    steps /= steps.sum(axis=1, keepdims=True)
    assert np.abs(steps - grid_walk()).max() < 0.06
    first = np.bincount(rows[~later, place], minlength=PLACES) / 20_000
    real = columns["place"][columns["x" if False else families().place] <= 1]
    assert np.abs(first - np.bincount(real, minlength=PLACES) / real.size).sum() / 2 < 0.03
    np.testing.assert_allclose(
        np.bincount(people.rows, minlength=MOST + 1)[1:] / 20_000, np.full(MOST, 1 / MOST), atol=0.01
    )
    # days never go back, and what hangs on a place is drawn with it
    assert (np.diff(rows[:, 1])[later[1:]] >= 0).all()
    assert (rows[:, 3] == rows[:, place] % 4).mean() == pytest.approx(0.85, abs=0.02)
    month = np.bincount(rows[:, 1], minlength=12) / len(rows)
    assert np.abs(month - np.bincount(columns["day"], minlength=12) / columns["day"].size).sum() / 2 < 0.1


def test_answers_are_means_over_persons():
    found, columns, weights = walked()
    _, _, model, _ = fitted()
    exact = np.bincount(columns["place"], weights, PLACES)
    assert np.abs(model.project(["place"]) - exact).sum() / 2 < 0.03 * 20_000
    pair = np.zeros((PLACES, PLACES + 1))
    before = next(hidden for hidden, name in found.previous if name == "place")
    np.add.at(pair, (columns["place"], columns[before]), weights)
    assert np.abs(model.project(["place", before]) - pair).sum() / 2 < 0.06 * 20_000


ANSWERS = {
    "all noise": lambda shape, rng: rng.normal(0, 30, shape),
    "zero": lambda shape, rng: np.zeros(shape),
    "negative": lambda shape, rng: rng.normal(-1e6, 10, shape),
    "extremes": lambda shape, rng: rng.choice([-(10.0**9), 10.0**9], shape),
    "one huge cell": lambda shape, rng: np.eye(1, int(np.prod(shape))).reshape(shape) * 10.0**9,
}
TABLES = {
    "usual": TABLE,
    "nullable": Domain((categorical("place", 3, nullable=True, other=True), day(nullable=True))),
    "one place, one bin": Domain((categorical("place", 1), day(1))),
    "many places": Domain((categorical("place", 700), day(3), categorical("purpose", 1))),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("budget", [ONE, Budget("pure", 10**15)], ids=lambda one: one.kind)
def test_any_answer_gives_traces(table, answer, budget):
    found = families(table, ("born",) if table is TABLE else ())
    curator = People(found, {}, 1.0)
    curator.counted = lambda query: np.rint(WEIGHT * answer(query.shape(found.domain), curator.rng)).astype(
        np.int64
    )
    terms = Terms(families=found)
    plan = Traces().plan(SOURCE, found.domain, budget, terms)
    model = ran(Traces(), plan, curator, terms)
    assert np.isfinite(model.total) and type(model) is Traces.model
    sampler = model.sampler()
    rows = np.concatenate([*sampler.batches(50, 1)])
    assert (rows < np.array(table.shape())).all() and len(rows) == sampler.people(50, 1).total
    for name in found.domain.names:
        assert (model.project([name]) >= 0).all()
    model.tables()


def test_more_places_than_cells_are_taken_in_runs_of_about_as_many_rows(monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 4)
    cells = module._runs(np.array([5.0, 1, 1, 1, 5, 5, 1, 1]))
    assert (np.diff(cells) >= 0).all() and cells[0] == 0
    assert np.bincount(cells, [5.0, 1, 1, 1, 5, 5, 1, 1]).max() <= 8
    _, _, model, _ = fitted()
    assert np.concatenate([*model.sampler().batches(100, 1)]).shape[1] == 4


def test_what_has_no_order_or_no_place_is_refused():
    unordered = families_of(TABLE, PrivacyUnit("person", MOST, together=True), ())
    for terms in (Terms(), Terms(families=unordered)):
        with pytest.raises(InputError, match="give unit= and order=, the column that orders them"):
            Traces().plan(SOURCE, TABLE, ONE, terms)
    for place in ("station", "day", "born"):
        with pytest.raises(InputError, match=f"no column of rows is called '{place}'"):
            Traces(place=place).plan(SOURCE, TABLE, ONE, Terms(families=families()))
    assert Traces(place="PURPOSE").plan(SOURCE, TABLE, ONE, Terms(families=families())).queries


@pytest.mark.parametrize("classes", [0, 65])
def test_a_number_of_classes_out_of_range_is_refused(classes):
    with pytest.raises(InputError, match="it can be 1 to 64"):
        method_of({"name": "traces", "classes": classes})
