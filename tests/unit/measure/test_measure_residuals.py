"""Residuals at the door: sensitivities beside the matrix written out, charges, bounds, refusals."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.doors import FakeCounter, NoNoise, OneRelease, ReadAtOnce, centred, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import BudgetError, DpsynError, InternalError
from dpsyn_sql.planning.queries import MarginalQuery, Residuals, holds_residuals
from dpsyn_sql.private.measure.questions.tables import residuals_event, whole_residuals
from dpsyn_sql.source.relation import WEIGHT

SIZES = {"a": 4, "b": 3, "c": 2, "one": 1}
DOMAIN = Domain(
    tuple(
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size))) for name, size in SIZES.items()
    )
)
BUDGET = Budget("gdp", 10**13)
SHAPES = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple)
K = 3


def asked(queries, rows=1, budget=BUDGET, codes=None, domain=DOMAIN):
    """(answers, event, budget left) of one question about rows without noise."""
    codes = np.zeros((len(domain.names), 0), dtype=np.int64) if codes is None else codes
    release = OneRelease(budget)
    entry = release.open()
    counter = FakeCounter(lambda query: table_of(domain, codes, query))
    door = ReadAtOnce(counter, domain, rows, entry, NoNoise())
    return door.ask(Residuals(queries), budget), entry.events, counter


@given(SHAPES, st.integers(0, 2**32 - 1))
def test_a_row_changes_residuals_by_exactly_the_declared_length(shape, seed):
    table = np.random.default_rng(seed).integers(0, 50, shape)
    before = whole_residuals(table)
    np.testing.assert_array_equal(before, centred(table))
    declared = residuals_event((shape,), 1, BUDGET).l2_squared
    for cell in product(*map(range, shape)):
        more = table.copy()
        more[cell] += 1
        assert ((whole_residuals(more) - before) ** 2).sum() == declared


@given(SHAPES, st.lists(st.integers(0, 10**6), min_size=K, max_size=K), st.booleans())
def test_a_unit_changes_residuals_by_at_most_the_declared_length_and_equal_rows_attain_it(
    shape, cells, equal
):
    table, places = np.zeros(shape, dtype=np.int64), [cells[0]] * K if equal else cells
    for place in places:
        table.flat[place % table.size] += 1
    length, declared = (whole_residuals(table) ** 2).sum(), residuals_event((shape,), K, BUDGET).l2_squared
    assert length <= declared
    assert not equal or length == declared


@given(SHAPES)
def test_the_length_in_l1_is_why_pure_budgets_measure_whole_tables(shape):
    """Laplace noise for it would be larger, in rows, than that of the whole table."""
    table = np.zeros(shape, dtype=np.int64)
    table.flat[0] = 1
    assert np.abs(whole_residuals(table)).sum() >= table.size


def test_several_tables_and_repeated_ones_add_up():
    one, two = MarginalQuery(("a",)), MarginalQuery(("b", "a"))
    length = {one: 4 * 3, two: 4 * 3 * 3 * 2}
    for queries in ([one], [two], [one, two], [two, two, one]):
        _, (event,), _ = asked(queries, rows=K)
        assert event.l2_squared == K**2 * sum(length[query] for query in queries)
        assert event.sigma == pytest.approx(math.sqrt(event.l2_squared / (2 * float(BUDGET.fraction)) + 4))
        assert event.cost("gdp") <= BUDGET.fraction


def test_residuals_over_bins_are_those_of_the_table_over_bins():
    query, codes = MarginalQuery(("a", "b"), ((1, 0, 1, 2), None)), np.random.default_rng(1)
    codes = np.array([codes.integers(0, size, 100) for size in SIZES.values()])
    (answer,), (event,), _ = asked([query], codes=codes)
    np.testing.assert_array_equal(answer.values, centred(table_of(DOMAIN, codes, query)))
    assert event.l2_squared == 3 * 2 * 3 * 2
    assert (answer.attrs, answer.maps, answer.scale) == (query.attrs, query.maps, event.sigma)


@pytest.mark.parametrize(
    "query",
    [
        MarginalQuery(()),
        MarginalQuery(("one",)),
        MarginalQuery(("a", "one")),
        MarginalQuery(("a",), ((0,) * 4,)),
    ],
    ids=str,
)
def test_where_there_is_no_residual_nothing_is_asked(query):
    counter = FakeCounter(lambda query: pytest.fail("counted"))
    entry = OneRelease(BUDGET).open()
    with pytest.raises(InternalError, match="two codes"):
        ReadAtOnce(counter, DOMAIN, 1, entry, NoNoise()).ask(Residuals([query]), BUDGET)
    assert not entry.events


@pytest.mark.parametrize(
    ("queries", "budget", "told"),
    [
        ([], BUDGET, "need a marginal"),
        ([MarginalQuery(("a",))], Budget("pure", 10**15), "whole marginals"),
        ([MarginalQuery(("a",), ((0, 2, 0, 2),))], BUDGET, "a code for every bin"),
    ],
)
def test_what_breaks_the_claim_is_refused_before_it_is_counted(queries, budget, told):
    entry = OneRelease(budget).open()
    counter = FakeCounter(lambda query: pytest.fail("counted"))
    with pytest.raises(DpsynError, match=told):
        ReadAtOnce(counter, DOMAIN, 1, entry, NoNoise()).ask(Residuals(queries), budget)
    assert not entry.events


def test_no_budget_is_an_error_of_ours():
    with pytest.raises(BudgetError, match="raise epsilon"):
        residuals_event(((2,),), 1, Budget("gdp", 0))


def test_a_cell_of_many_weighted_units_is_whole():
    """262,144 persons in one cell of 2^20, each of weight 2^20: five eighths of them were cut."""
    table = np.zeros((16, 16, 16), dtype=np.int64)
    table[3, 4, 5] = 2**26 * WEIGHT
    assert whole_residuals(table)[3, 4, 5] == 2**26 * WEIGHT * 15**3
    assert holds_residuals((16, 16, 16), WEIGHT) and not holds_residuals((128, 128, 64), WEIGHT)
    assert holds_residuals((128, 128, 64), 1) and holds_residuals((2**15 + 1,), WEIGHT)
    assert not holds_residuals((2**15 + 2,), WEIGHT)


def test_residuals_that_would_cut_counts_of_units_are_refused():
    domain = Domain(
        tuple(Attribute(name, "INTEGER", "categorical", labels=tuple(range(200))) for name in ("a", "b"))
    )
    with pytest.raises(InternalError, match="would cut counts"):
        asked([MarginalQuery(("a", "b"))], WEIGHT, domain=domain)


@pytest.mark.parametrize("shape", [(2,), (1000,), (40, 50, 60), (4096, 4096)], ids=str)
def test_counts_that_no_database_holds_do_not_overflow(shape):
    """The largest and the smallest number that any counts give, beside the same in Python's integers."""
    table = np.zeros(shape, dtype=np.int64)
    table.flat[0] = 2**62
    found = whole_residuals(table)
    most = 2**62 // math.prod(2 * (size - 1) for size in shape)
    assert found.flat[0] == most * math.prod(size - 1 for size in shape)
    worst = np.full(shape, 2**62)
    worst[np.not_equal(np.indices(shape), 0).sum(axis=0) % 2 == 1] = 0
    largest = whole_residuals(worst).flat[0]
    assert largest == most * math.prod(2 * (size - 1) for size in shape) // 2 <= 2**61
    full = whole_residuals(np.full(shape, 2**62))
    assert not full.any()


def test_a_cut_count_changes_residuals_by_no_more():
    most = 2**62 // 6**2
    table = np.full((4, 4), most, dtype=np.int64)
    more = table.copy()
    more[1, 2] += 1
    np.testing.assert_array_equal(whole_residuals(more), whole_residuals(table))
