"""What every method must do, whatever the noise: run over all of METHODS."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from support.doors import FakeCurator, ran

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.methods import METHODS, Terms, method_of
from dpsyn_sql.planning.limits import NO_TERMS
from dpsyn_sql.planning.plan import PlanDetails
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import labelled
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.rows.sample.systematic import ONE_WAYS_MET
from dpsyn_sql.source.relation import Relation, Source

pytestmark = pytest.mark.filterwarnings("error")

SOURCE = Source(Relation("people", "table", "people", ()))
BUDGETS = [
    Budget("gdp", 14_884_300_000_000, 10**8),
    Budget("gdp", 14_884_300_000_000, 10**8),
    Budget("pure", 10**15),
    Budget("gdp", 1, 0),
]


def domain(*sizes):
    return Domain(
        tuple(
            Attribute(
                f"x{i}",
                "VARCHAR",
                "categorical",
                labels=tuple(range(max(k - 2, 1))),
                other=k > 1,
                nullable=k > 2,
            )
            for i, k in enumerate(sizes)
        )
    )


class Answering(FakeCurator):
    """Answers with ``value(shape, rng)`` in every cell, and with any distances and choices."""

    def __init__(self, shape, value):
        self.rng, self.value, self.wider = np.random.default_rng(1), value, shape
        super().__init__(shape, lambda query: self.drawn(query, shape), sigma=10.0)

    def drawn(self, query, domain):
        return self.value(query.shape(domain), self.rng).astype(np.int64)

    def labelled_tables(self, question):
        self.wider = labelled(self.wider, [one for one in question.labels if one.name not in self.wider])
        return [self.drawn(query, self.wider) for query in question.queries]

    def distances(self, queries, references):
        return [int(np.abs(table).sum() * self.rng.uniform(-0.2, 1)) for table in references]

    def chosen(self, candidates, references, number, allowances):
        return self.rng.choice(len(candidates), number, replace=False).tolist()

    @property
    def queries(self):
        return [query.original for _, queries, _ in self.asked for query in queries]

    def unplanned(self, plan):
        """What was asked beyond the queries of a plan: these are counted as they are asked, over bins or not."""
        return {q for _, queries, _ in self.asked for q in queries if q.original not in plan.queries}

    @property
    def budgets(self):
        return [budget for _, _, budget in self.asked]


ANSWERS = {
    "plenty": lambda shape, rng: 100_000 / np.prod(shape) + rng.normal(0, 10, shape),
    "all noise": lambda shape, rng: np.rint(rng.normal(0, 10, shape)),
    "zero": lambda shape, rng: np.zeros(shape),
    "negative": lambda shape, rng: rng.normal(-1e6, 10, shape),
    "extremes": lambda shape, rng: rng.choice([-(10**12), 10**12], shape),
    "one huge cell": lambda shape, rng: np.eye(1, int(np.prod(shape))).reshape(shape) * 10**12,
}

DOMAINS = {
    "one attribute": domain(5),
    "one attribute of one code": domain(1),
    "one code each": domain(1, 1, 1),
    "some of one code": domain(1, 4, 1, 2),
    "mixed": domain(2, 7, 300, 3),
    "sixty": domain(*([2, 3, 4] * 20)),
}

# A fit to sixty attributes of noise takes half a minute.
FITTED = [
    *(pytest.param(shape, id=name) for name, shape in DOMAINS.items() if name != "sixty"),
    pytest.param(domain(*([2, 3, 4] * 4)), id="twelve"),
    pytest.param(DOMAINS["sixty"], id="sixty", marks=pytest.mark.slow),
]


@pytest.fixture(params=METHODS, ids=str)
def method(request):
    return METHODS[request.param]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: f"{b.kind}-{b.amount}")
@pytest.mark.parametrize("shape", DOMAINS.values(), ids=DOMAINS)
def test_a_plan_spends_the_budget_and_asks_within_the_domain(method, shape, budget):
    plan = method.plan(SOURCE, shape, budget)
    assert plan.method == method.name and plan.domain is shape and plan.budget == budget
    assert sum(step.budget.amount for step in plan.steps) == budget.amount
    assert sum(step.budget.delta for step in plan.steps) <= budget.delta
    assert {step.budget.kind for step in plan.steps} == {budget.kind}
    assert plan.queries
    for query in plan.queries:
        assert type(query) is MarginalQuery
        assert set(query.attrs) <= set(shape.names) and len(set(query.attrs)) == len(query.attrs)
    assert method.plan(SOURCE, shape, budget) == plan


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("shape", FITTED)
def test_any_answer_gives_a_usable_model(method, shape, answer):
    plan = method.plan(SOURCE, shape, BUDGETS[0])
    curator = Answering(shape, answer)
    model = ran(method, plan, curator)
    if plan.static:
        assert curator.queries == list(plan.queries)
    unplanned = curator.unplanned(plan)
    assert all(
        plan.together is not None and plan.reserves[-1].holds(query, curator.wider) for query in unplanned
    )
    cells = sum(int(np.prod(query.shape(curator.wider))) for query in unplanned)
    assert not unplanned or cells <= plan.together
    assert set(plan.queries) >= {query for step in plan.asked for query in step.queries}
    assert sum(budget.amount for budget in curator.budgets) <= plan.budget.amount
    assert type(model) is method.model
    assert model.domain is shape and np.isfinite(model.total)
    _check_projections(model, shape)
    _check_sample(model, shape)


def _check_projections(model, shape):
    scale = max(0.0, model.total)
    for attrs in [*((n,) for n in shape.names), *list(combinations(shape.names, 2))[:20]]:
        table = model.project(attrs)
        assert table.shape == shape.shape(attrs) and np.all(np.isfinite(table)) and table.min() >= 0
        assert table.sum() == pytest.approx(scale, rel=1e-6)
    with pytest.raises(InputError):
        model.project(["nobody's attribute"])


def _check_sample(model, shape):
    sampler = model.sampler()
    assert list(sampler.batches(0, 3)) == []
    codes = np.concatenate(list(sampler.batches(997, 3)))
    assert codes.shape == (997, len(shape.names)) and np.issubdtype(codes.dtype, np.integer)
    assert np.all(codes.max(axis=0) < np.array(shape.shape()))
    np.testing.assert_array_equal(codes, np.concatenate(list(sampler.batches(997, 3))))


def test_a_seed_fixes_the_rows_and_another_changes_them(method):
    shape = DOMAINS["mixed"]
    model = ran(method, method.plan(SOURCE, shape, BUDGETS[0]), Answering(shape, ANSWERS["plenty"]))
    rows = 70_000  # several batches
    first, again, largest = (
        np.concatenate(list(m.sampler().batches(rows, seed)))
        for m, seed in ((model, 1), (pickle.loads(pickle.dumps(model)), 1), (model, 2**64 - 1))
    )
    np.testing.assert_array_equal(first, again)
    assert len(first) == rows and np.any(first != largest)
    for axis, name in enumerate(shape.names):
        wanted = model.project([name]) * rows / model.total
        # Quotas meet one-way counts within rounding; conditional draws stay within those of chance.
        allowed = 3 + 4 * np.sqrt(wanted) * (model.sampler().drawn != ONE_WAYS_MET)
        assert np.all(np.abs(np.bincount(first[:, axis], minlength=wanted.size) - wanted) < allowed)


def test_a_method_that_asks_for_everything_alike_refuses_a_workload(method):
    terms = Terms(workload=read_workload({"x1": 5}))
    if method.takes_workload:
        stated = method.plan(SOURCE, DOMAINS["mixed"], BUDGETS[0], terms).details
        assert stated.identity["workload"] == stated.public["workload"] == terms.workload.facts()
        return
    able = " or ".join(["'auto'", *(repr(name) for name, one in METHODS.items() if one.takes_workload)])
    refusal = f"method='{method.name}' does not use weights of workload=: use method={able}"
    with pytest.raises(InputError, match=refusal):
        method.plan(SOURCE, DOMAINS["mixed"], BUDGETS[0], terms)


def test_a_method_that_favours_no_column_refuses_a_target(method):
    terms = Terms(workload=read_workload("x1"))
    if method.takes_target:
        stated = method.plan(SOURCE, DOMAINS["mixed"], BUDGETS[0], terms).details
        assert stated.identity["target"] == stated.public["target"] == "x1"
        assert "workload" not in stated.identity
        assert any(line.startswith("Target      x1: ") for line in stated.lines)
        return
    able = " or ".join(["'auto'", *(repr(name) for name, one in METHODS.items() if one.takes_target)])
    refusal = f"method='{method.name}' does not use a target of workload=: use method={able}"
    with pytest.raises(InputError, match=refusal):
        method.plan(SOURCE, DOMAINS["mixed"], BUDGETS[0], terms)


def test_default_settings_add_nothing_to_the_identity(method):
    plan = method.plan(SOURCE, DOMAINS["mixed"], BUDGETS[0])
    assert plan.details == PlanDetails(public={"workload": [], "target": None})


def attributes_of(number):
    return domain(*[2] * number)


def test_auto_is_the_first_method_that_works_in_minutes():
    auto, (first, *others) = method_of("auto"), METHODS.values()
    second = next(one for one in others if one.attributes is None or one.attributes > first.attributes)
    for number, name in (
        (3, first.name),
        (first.attributes, first.name),
        (first.attributes + 1, second.name),
    ):
        chosen = auto.chosen(attributes_of(number), NO_TERMS)
        assert chosen is METHODS[name]
    weighted = Terms(workload=read_workload({"x1": 5}))
    assert auto.chosen(attributes_of(first.attributes + 1), weighted) is first
    favoured = Terms(workload=read_workload("x1"))
    assert auto.chosen(attributes_of(first.attributes + 1), favoured).takes_target


def test_auto_plans_and_runs_as_the_method_chosen():
    shape, auto = attributes_of(3), method_of("auto")
    plan, chosen = auto.plan(SOURCE, shape, BUDGETS[0]), next(iter(METHODS.values()))
    assert plan == chosen.plan(SOURCE, shape, BUDGETS[0]) and plan.method == chosen.name
    models = [ran(m, plan, Answering(shape, ANSWERS["plenty"])) for m in (auto, chosen)]
    assert type(models[0]) is type(models[1]) and models[0].total == models[1].total


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("epsilon", ["1e-6", "1e-4"])
@pytest.mark.parametrize("delta", ["0", "1e-9"])
@pytest.mark.parametrize("shape", ["mixed", "sixty"])
def test_no_part_of_a_tiny_budget_is_nothing(method, epsilon, delta, shape):
    """A question that costs nothing is refused, after the debit: answers that show plenty must not lead to one."""
    shape, budget = DOMAINS[shape], Budget.from_epsilon(epsilon, delta)
    curator = Answering(shape, ANSWERS["plenty"])
    ran(method, method.plan(SOURCE, shape, budget), curator)
    assert all(part.amount > 0 for part in curator.budgets)
    assert sum(part.amount for part in curator.budgets) <= budget.amount
