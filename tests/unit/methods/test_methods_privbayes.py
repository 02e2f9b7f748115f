"""PrivBayes: the networks it finds, its bounds, budgets and refusals."""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from support.domains import domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.growing import MOST_CANDIDATES, Bounds, candidates
from dpsyn_sql.methods import PrivBayes, method_of
from dpsyn_sql.planning.limits import NO_TERMS, Limits, Terms
from dpsyn_sql.planning.queries import Choice, FamilyChoice, MarginalQuery, Marginals
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.source.relation import PrivacyUnit, Relation, Source

pytestmark = pytest.mark.filterwarnings("error")

PEOPLE = Relation("people", "table", "people", ())
SOURCE = Source(PEOPLE)
ONE = Budget.from_epsilon(1, 1e-9).without_thresholds()
LARGE = Budget("gdp", 10**18)
ROWS = 20_000


class Noting(FakeCurator):
    """Exact answers, or the noise of ``noise``; notes all questions."""

    def __init__(self, domain, table, noise=None):
        super().__init__(domain, table, sigma=1e-3)
        self.questions, self.noise = [], noise

    def answer(self, question, budget):
        self.questions.append(question)
        return super().answer(question, budget)


def run(codes, sizes, method, budget=LARGE, ordered=False, source=SOURCE, terms=NO_TERMS):
    domain = domain_of(sizes, ordered)
    curator = Noting(domain, partial(table_of, domain, codes))
    return ran(method, method.plan(source, domain, budget, terms), curator, terms), curator


def families(model):
    """Child and parents of each node that draws an attribute."""
    return {node.variables[0]: set(node.parents) for node in model.fitted.nodes if "|" not in node.label}


def variation(model, codes, names):
    exact = table_of(model.domain, codes, MarginalQuery(names))
    return np.abs(model.project(names) / model.total - exact / exact.sum()).sum() / 2


# -- what it finds -----------------------------------------------------------------------------


def chain(rng, flip=0.1):
    codes = [rng.integers(0, 2, ROWS)]
    for _ in range(4):
        codes.append(np.where(rng.random(ROWS) < flip, 1 - codes[-1], codes[-1]))
    return codes


@pytest.mark.parametrize("score", ["L1", "I", "F", "R"])
def test_a_chain_is_found(score):
    codes = chain(np.random.default_rng(1))
    model, _ = run(codes, [2] * 5, PrivBayes(degree=1, score=score))
    edges = {frozenset((child, parent)) for child, own in families(model).items() for parent in own}
    assert edges == {frozenset((i, i + 1)) for i in range(4)}
    assert all(variation(model, codes, names) < 0.01 for names in combinations(model.domain.names, 3))


@pytest.mark.parametrize("score", ["L1", "I", "R"])
def test_both_causes_of_an_effect_are_found(score):
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 3, ROWS), rng.integers(0, 3, ROWS)
    noise = rng.integers(0, 3, ROWS)
    codes = [first, second, noise, first + second]
    model, _ = run(codes, [3, 3, 3, 5], PrivBayes(degree=2, score=score))
    assert variation(model, codes, ("x0", "x1", "x3")) < 0.03
    assert all({child, *own} != {2, 3} for child, own in families(model).items())


@pytest.mark.parametrize("score", ["L1", "I"])
@pytest.mark.parametrize("target", [0, 2, 5])
def test_a_target_comes_first_and_is_a_parent_of_every_other_column(score, target):
    rng = np.random.default_rng(4)
    codes = [rng.integers(0, 3, ROWS)]
    for _ in range(5):  # a chain: without a target each column has its neighbours alone
        codes.append(np.where(rng.random(ROWS) < 0.8, codes[-1], rng.integers(0, 3, ROWS)))
    terms = Terms(workload=read_workload(f"x{target}"))
    model, _ = run(codes, (3,) * 6, PrivBayes(score=score, degree=2), terms=terms)
    found = families(model)
    assert found[target] == set()
    assert all(target in parents for child, parents in found.items() if child != target)
    unasked, _ = run(codes, (3,) * 6, PrivBayes(score=score, degree=2))
    assert not all(target in parents for child, parents in families(unasked).items() if child != target)


def test_a_target_whose_table_with_a_child_is_too_large_is_no_parent_of_it():
    bounds = Bounds(2, math.inf, 8, frozenset({(0, 1), (1, 2)}))

    class Sizes:
        levels = ((0,),) * 3

        def size(self, parent):
            return (4, 2, 4)[parent[0]]

    with_target = candidates(Sizes(), [0, 1], [2], bounds, None, 0)
    assert [family.parents for family in with_target] == [((1, 0),)]


@pytest.mark.parametrize("score", ["L1", "I", "F", "R"])
def test_an_exclusive_or_needs_two_parents(score):
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 2, ROWS), rng.integers(0, 2, ROWS)
    codes = [first, second, first ^ second, rng.integers(0, 2, ROWS)]
    names = ("x0", "x1", "x2")
    assert variation(run(codes, [2] * 4, PrivBayes(degree=2, score=score))[0], codes, names) < 0.01
    assert variation(run(codes, [2] * 4, PrivBayes(degree=1, score=score))[0], codes, names) > 0.4


def test_mutual_information_is_asked_up_to_more_rows_than_there_are_by_the_noisy_number():
    codes = chain(np.random.default_rng(1))
    for score, bits in (("I", 16), ("R", 0)):  # 2^16 is between two and four times 20,000
        _, curator = run(codes, [2] * 5, PrivBayes(score=score))
        asked = [question for question in curator.questions if isinstance(question, FamilyChoice)]
        assert len(asked) == 4 and {question.bits for question in asked} == {bits}
        assert not any(isinstance(question, Choice) for question in curator.questions)


def test_parents_are_fewer_with_a_smaller_budget_and_a_larger_theta():
    rng = np.random.default_rng(4)
    group = rng.integers(0, 8, ROWS)
    codes = [(group >> (i % 3)) % 2 ^ (rng.random(ROWS) < 0.1) for i in range(8)]

    def degree(budget, theta=4.0):
        model, _ = run([c.astype(int) for c in codes], [2] * 8, PrivBayes(theta=theta), budget)
        return max(map(len, families(model).values()))

    found = [degree(Budget.from_epsilon(epsilon, 1e-9)) for epsilon in ("0.01", "0.1", "10")]
    assert found[0] == 1 < found[2] == 4 and found == sorted(found)
    assert degree(Budget.from_epsilon(10, 1e-9), theta=1e6) == 1


@pytest.mark.parametrize("encoding", ["vanilla", "hierarchical"])
def test_columns_keep_their_own_distributions_and_those_of_parents(encoding):
    rng = np.random.default_rng(5)
    base = rng.integers(0, 40, ROWS)
    codes = [base, np.minimum(base // 3 + rng.integers(0, 3, ROWS), 14), base % 7, rng.integers(0, 2, ROWS)]
    sizes = [40, 15, 7, 2]
    model, _ = run(codes, sizes, PrivBayes(encoding=encoding), ordered=True)
    for place, name in enumerate(model.domain.names):
        wanted = np.bincount(codes[place], minlength=sizes[place]) / ROWS
        assert np.abs(model.project((name,)) / model.total - wanted).sum() < 0.02
    assert variation(model, codes, ("x0", "x1")) < 0.1


def test_parents_enter_at_coarser_levels_where_more_of_them_fit():
    rng = np.random.default_rng(6)
    base = rng.integers(0, 16, ROWS)
    other = np.where(rng.random(ROWS) < 0.3, base, rng.integers(0, 16, ROWS))
    codes = [base, other, (base // 8) ^ (other // 8), rng.integers(0, 2, ROWS)]
    sizes, budget = [16, 16, 2, 2], Budget("gdp", 10**12)
    found = {}
    for encoding in ("vanilla", "hierarchical"):
        model, _ = run(codes, sizes, PrivBayes(encoding=encoding, theta=30.0), budget, ordered=True)
        found[encoding] = variation(model, codes, ("x0", "x1", "x2")), {n.label for n in model.fitted.nodes}
    assert not any("level" in label for label in found["vanilla"][1])
    assert any("level" in label for label in found["hierarchical"][1])
    assert found["hierarchical"][0] < 0.5 * found["vanilla"][0]


# -- what it asks ------------------------------------------------------------------------------


class Constant(Noting):
    """The same answers whatever the rows are: choices and tables do not depend on them."""

    def chosen(self, queries, references, number, allowances):
        return [len(queries) - 1]


def test_equal_answers_lead_to_equal_questions_and_one_row_changes_a_score_by_at_most_one():
    rng = np.random.default_rng(7)
    shape, method = domain_of([2, 3, 4, 2, 5]), PrivBayes(degree=2)
    codes = [rng.integers(0, size, 500) for size in shape.shape()]
    more = [np.append(column, 0) for column in codes]
    answered = partial(table_of, shape, [np.repeat(column, 40) for column in codes])
    runs = []
    for _ in range(2):
        curator = Constant(shape, answered)
        ran(method, method.plan(SOURCE, shape, LARGE), curator)
        runs.append(curator.questions)
    choices = [[q for q in questions if isinstance(q, Choice)] for questions in runs]
    assert len(choices[0]) == 4
    for one, two in zip(*choices, strict=True):
        assert one.candidates == two.candidates and list(one.allowances) == list(two.allowances)
        for query, table, again in zip(one.candidates, one.references, two.references, strict=True):
            np.testing.assert_array_equal(table, again)
            scores = [np.abs(table_of(shape, c, query) - table).sum() for c in (codes, more)]
            assert abs(scores[1] - scores[0]) == 1


@pytest.mark.parametrize("number", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in (100, 300))])
def test_candidates_are_bounded_however_many_attributes_there_are(number):
    shape, method = domain_of([2] * number), PrivBayes()
    rng = np.random.default_rng(8)
    curator = Noting(shape, lambda q: rng.integers(10**5, 2 * 10**5, q.shape(shape)))
    plan = method.plan(SOURCE, shape, ONE)
    model = ran(method, plan, curator)
    choices = [question for question in curator.questions if isinstance(question, Choice)]
    assert len(choices) == number - 1
    assert all(len(question.candidates) <= MOST_CANDIDATES for question in choices)
    assert len([q for q in curator.questions if type(q).__name__ == "Distances"]) == 1
    asked = {q for question in choices for q in question.candidates} - set(plan.queries)
    assert all(plan.reserves[-1].holds(query, shape) for query in asked)
    assert sum(math.prod(query.shape(shape)) for query in asked) <= plan.together
    assert set(families(model)) == set(range(number))


def test_attributes_of_one_bin_leave_their_budget_to_others_or_to_one_way_tables():
    rng = np.random.default_rng(9)
    codes = [rng.integers(0, 2, ROWS), np.zeros(ROWS, int), np.zeros(ROWS, int)]
    _, curator = run(codes, [2, 1, 1], PrivBayes())
    assert sum(part.amount for *_, part in curator.asked) == LARGE.amount
    assert all(len(query.attrs) == 1 for _, queries, _ in curator.asked for query in queries)


def test_noise_of_units_of_several_rows_makes_fewer_tables_useful():
    rng = np.random.default_rng(4)
    codes = [rng.integers(0, 2, ROWS) for _ in range(6)]
    codes[5] = codes[0] ^ codes[1] ^ codes[2]
    most = []
    for rows in (1, 60):
        source = Source(PEOPLE, PrivacyUnit("who", rows))
        _, curator = run(codes, [2] * 6, PrivBayes(), Budget.from_epsilon(1, 1e-9), source=source)
        tables = [q for q in curator.questions if isinstance(q, Marginals)]
        most.append(max(len(query.attrs) for question in tables for query in question.queries))
    assert most[0] > 2 >= most[1]


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"degree": 5}, r"degree=5; it can be 0 \(as many as theta allows\) to 4"),
        ({"degree": -1}, "degree=-1"),
        ({"theta": 0.0}, "theta=0.0; it can be a number above 0"),
        ({"score": "MI"}, "score='MI'; it can be 'L1', 'I', 'F' or 'R'"),
        ({"encoding": "binary"}, "encoding='binary'; it can be 'vanilla' or 'hierarchical'"),
        ({"degree": 9, "theta": -1.0}, "degree=9.*, and theta=-1.0"),
    ],
)
def test_settings_out_of_range_are_refused_with_all_faults(settings, words):
    with pytest.raises(InputError, match=words):
        method_of({"name": "privbayes", **settings})


def test_f_is_refused_for_columns_of_more_values_before_anything_is_asked():
    with pytest.raises(InputError, match="score='F' needs columns of two values, but 'x1' has 3 codes"):
        PrivBayes(score="F").plan(SOURCE, domain_of([2, 3]), ONE)


def test_columns_too_large_for_any_pair_are_planned_alone_and_a_memory_limit_lowers_the_caps():
    plan = PrivBayes().plan(SOURCE, domain_of([5000, 4000]), ONE)
    assert plan.static and Fraction(sum(step.budget.amount for step in plan.steps)) == ONE.amount
    limited = PrivBayes().plan(SOURCE, domain_of([20, 30]), ONE, Terms(limits=Limits(600 * 2**20)))
    assert limited.together < PrivBayes().plan(SOURCE, domain_of([20, 30]), ONE).together
    assert "caps" in limited.details.identity
