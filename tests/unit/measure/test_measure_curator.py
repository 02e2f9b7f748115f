"""The order at the door: stored answer, charge, count, noise, store."""

import numpy as np
import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.errors import InternalError, PrivacyBudgetExceeded
from dpsyn_sql.ledger.memory import MemoryLedger
from dpsyn_sql.measure.curator import LocalCurator
from dpsyn_sql.plan.key import ReleaseKey
from dpsyn_sql.plan.queries import MarginalQuery

DOMAIN = Domain(
    tuple(
        Attribute(name, "VARCHAR", "categorical", labels=tuple("xyz"[:size]))
        for name, size in (("a", 2), ("b", 3))
    )
)
A, AB = MarginalQuery(("a",)), MarginalQuery(("a", "b"))


class FakeCounter:
    def __init__(self, log, broken=None):
        self.log, self.broken = log, broken

    def count(self, queries):
        self.log.append("count")
        if self.broken is not None:
            return [self.broken for _ in queries]
        return [np.full(DOMAIN.shape(query.attrs), 10, dtype=np.int64) for query in queries]


class NoNoise:
    def __init__(self, log):
        self.log = log

    def gaussian(self, values, sigma):
        self.log.append(("gaussian", sigma))
        return values + 1

    def laplace(self, values, scale):
        self.log.append(("laplace", scale))
        return values + 1


@pytest.fixture
def log():
    return []


def curator_with(log, budget, broken=None, rows=1):
    with MemoryLedger().open_release(ReleaseKey(None, "r", None, {}), budget) as entry:
        return LocalCurator(FakeCounter(log, broken), DOMAIN, rows, entry, NoNoise(log)), entry


def test_charged_then_counted_then_noised_then_stored(log):
    curator, entry = curator_with(log, Budget("zcdp", 10**13))
    tables = curator.measure([A, AB], Budget("zcdp", 10**13))
    assert [type(step).__name__ for step in log] == ["str", "tuple"]
    assert entry.events == (GaussianEvent(log[1][1], 2),)
    assert [table.values.tolist() for table in tables] == [[11, 11], [[11, 11, 11], [11, 11, 11]]]
    assert tables[0].sigma == log[1][1] == pytest.approx((2 / (2 * 0.01)) ** 0.5)
    assert list(curator.measurements) == tables


def test_pure_budget_uses_laplace_noise_with_l1_sensitivity(log):
    curator, entry = curator_with(log, Budget("pure", 10**15))
    curator.measure([A, AB], Budget("pure", 10**15))
    assert entry.events == (LaplaceEvent(2.0, 2),)


def test_several_rows_a_unit_scale_the_sensitivity(log):
    curator, entry = curator_with(log, Budget("zcdp", 10**13), rows=3)
    curator.measure([A, AB], Budget("zcdp", 10**13))
    assert entry.events[0].l2_squared == 2 * 9


def test_an_overdrawn_question_is_not_counted(log):
    curator, entry = curator_with(log, Budget("zcdp", 10**13))
    curator.measure([A], Budget("zcdp", 6 * 10**12))
    log.clear()
    with pytest.raises(PrivacyBudgetExceeded):
        curator.measure([A], Budget("zcdp", 6 * 10**12))
    assert log == [] and len(entry.events) == 1


def test_a_repeated_marginal_counts_each_time(log):
    curator, entry = curator_with(log, Budget("zcdp", 10**13))
    curator.measure([A, A, A], Budget("zcdp", 10**13))
    assert entry.events[0].l2_squared == 3


def test_a_stored_answer_is_replayed_without_counting(log):
    curator, entry = curator_with(log, Budget("zcdp", 10**13))
    first = curator.measure([A], Budget("zcdp", 10**13))
    log.clear()
    again = LocalCurator(FakeCounter(log), DOMAIN, 1, entry, NoNoise(log)).measure(
        [A], Budget("zcdp", 10**13)
    )
    assert log == [] and (again[0].values == first[0].values).all()


def test_a_replay_that_asks_something_else_stops(log):
    curator, entry = curator_with(log, Budget("zcdp", 10**13))
    curator.measure([A], Budget("zcdp", 10**13))
    other = LocalCurator(FakeCounter(log), DOMAIN, 1, entry, NoNoise(log))
    with pytest.raises(InternalError):
        other.measure([AB], Budget("zcdp", 10**13))


@pytest.mark.parametrize(
    "broken", [np.zeros(1, dtype=np.int64), np.zeros(2), np.zeros((2, 1), dtype=np.int64)]
)
def test_missing_cells_or_floats_never_reach_the_noise(log, broken):
    curator, _ = curator_with(log, Budget("zcdp", 10**13), broken)
    with pytest.raises(InternalError):
        curator.measure([A], Budget("zcdp", 10**13))
    assert log == ["count"]


def test_no_questions_after_closing(log):
    curator, entry = curator_with(log, Budget("zcdp", 10**13))
    entry.close_questions()
    with pytest.raises(InternalError):
        curator.measure([A], Budget("zcdp", 10**12))
    assert log == []


def test_repr_hides_everything(log):
    curator, _ = curator_with(log, Budget("zcdp", 10**13))
    assert repr(curator) == "LocalCurator(questions=0)"
