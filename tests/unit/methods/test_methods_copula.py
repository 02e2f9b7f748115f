"""The copula and the paper's baselines: what each asks for, and which rows it gives."""

import pickle

import numpy as np
import pytest
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.copula import parts_of
from dpsyn_sql.methods import Copula, method_of

BUDGET = Budget("gdp", 10**14)
SIZES = (2, 5, 9, 1)
DOMAIN = domain_of(SIZES)


def codes(rows=6000):
    rng = np.random.default_rng(4)
    factor = rng.standard_normal(rows)
    return np.array(
        [
            factor + 0.5 * rng.standard_normal(rows) > 0.8,
            np.digitize(factor + 0.7 * rng.standard_normal(rows), [-1.5, 0.2, 0.9, 2.5]),
            np.digitize(factor + rng.standard_normal(rows), np.linspace(-2, 2, 8)),
            np.zeros(rows),
        ]
    ).astype(int)


def fitted(correlation, sigma=0.0):
    method, columns = Copula(correlation), codes()
    curator = FakeCurator(DOMAIN, lambda query: table_of(DOMAIN, columns, query), sigma=sigma)
    return ran(method, method.plan(SOURCE, DOMAIN, BUDGET), curator), curator


@pytest.mark.parametrize("correlation", ["none", "identity", "ones"])
def test_without_a_fitted_correlation_only_one_way_tables_are_asked_for_with_the_whole_budget(correlation):
    plan = Copula(correlation).plan(SOURCE, DOMAIN, BUDGET)
    (step,) = plan.steps
    assert step.budget == BUDGET and [query.attrs for query in step.queries] == [(n,) for n in DOMAIN.names]
    assert plan.details.settings == {"correlation": correlation}


def test_the_fitted_correlation_is_the_default_and_asks_as_ever():
    assert method_of("copula") == Copula() == Copula("fitted")
    plan = Copula("fitted").plan(SOURCE, DOMAIN, BUDGET)
    assert [len(step.queries) for step in plan.steps] == [4, 6]
    assert [step.budget.amount for step in plan.steps] == [2 * 10**13, 8 * 10**13]
    assert plan.details.settings == {}


def test_a_correlation_that_is_not_known_is_refused_before_anything_is_asked():
    with pytest.raises(
        InputError, match="correlation='one'; it can be 'fitted', 'none', 'identity' or 'ones'"
    ):
        Copula("one").plan(SOURCE, DOMAIN, BUDGET)


@pytest.mark.parametrize("correlation", ["none", "identity", "ones"])
def test_rows_have_the_margins_and_the_pairs_that_the_model_answers(correlation):
    model, _ = fitted(correlation)
    rows = np.concatenate(list(model.sampler().batches(40_000, 1)))
    for axis, name in enumerate(DOMAIN.names):
        wanted = model.project([name]) * len(rows) / model.total
        assert np.all(np.abs(np.bincount(rows[:, axis], minlength=wanted.size) - wanted) <= 3)
    for first, second in ((0, 1), (2, 1), (1, 3)):
        wanted = model.project([DOMAIN.names[first], DOMAIN.names[second]]) / model.total
        seen = np.zeros(wanted.shape)
        np.add.at(seen, (rows[:, first], rows[:, second]), 1 / len(rows))
        assert np.abs(seen - wanted).max() < 0.006
    again = np.concatenate(list(pickle.loads(pickle.dumps(model)).sampler().batches(40_000, 1)))
    np.testing.assert_array_equal(rows, again)
    assert model.tables().tables and not model.supports(DOMAIN.names[:3])


def test_no_correlation_and_identity_are_the_same_distribution():
    none, identity = fitted("none")[0], fitted("identity")[0]
    first, second = none.project(["x1"]), none.project(["x2"])
    np.testing.assert_allclose(none.project(["x1", "x2"]), np.outer(first, second) / none.total)
    np.testing.assert_allclose(none.project(["x1", "x2"]), identity.project(["x1", "x2"]))


def test_with_one_correlation_the_commonest_codes_come_together_as_often_as_they_can():
    model, _ = fitted("ones")
    p, q = model.project(["x1"]), model.project(["x2"])
    pair = model.project(["x1", "x2"])
    assert pair[p.argmax(), q.argmax()] == pytest.approx(min(p.max(), q.max()))
    np.testing.assert_allclose(pair.sum(axis=1), p, atol=1e-6)
    np.testing.assert_allclose(pair.sum(axis=0), q, atol=1e-6)
    np.testing.assert_allclose(model.project(["x2", "x1"]), pair.T)
    assert np.count_nonzero(pair > 1e-9) <= p.size + q.size - 1  # one normal leaves no more


def test_parts_cover_the_unit_interval_commonest_first():
    begins, ends = parts_of(np.array([0.2, 0.5, 0.0, 0.3]))
    np.testing.assert_allclose(begins, [0.8, 0.0, 1.0, 0.5])
    np.testing.assert_allclose(ends, [1.0, 0.5, 1.0, 0.8])
