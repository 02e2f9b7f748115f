"""When a release stops after learning: at borders, by what is known then alone."""

import math

import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.methods import METHODS
from dpsyn_sql.planning.limits import NO_TERMS, Learnt, little_is_kept

ONE = Budget.from_epsilon("1", "1e-9")


def learnt(hidden, columns=40, rows=4000.0, threshold=1000):
    return Learnt(rows, columns, {f"c{number}": threshold for number in range(hidden)})


@pytest.mark.parametrize(
    ("known", "tied", "stops"),
    [
        (learnt(5), 20.5, True),
        (learnt(4), 20.5, False),  # fewer columns
        (learnt(5, columns=41), 20.6, False),  # a smaller part of them
        (learnt(5), 20.0, False),  # pairs that may well be there are worth their budget
        (learnt(5, threshold=1001), 20.5, False),  # noise hides everything
        (learnt(5), math.inf, True),
        (learnt(0), math.inf, False),
    ],
)
def test_it_stops_where_many_columns_show_nothing_and_pairs_are_not_worth_it(known, tied, stops):
    assert little_is_kept(known, tied) == stops


def test_pairs_are_worth_it_from_fewer_on_with_more_rows_a_larger_budget_and_fewer_columns():
    needed, more = METHODS["adaptive"].pairs_needed, Budget.from_epsilon("3", "1e-9")
    assert needed(20_000, 58, ONE) == pytest.approx(43, abs=1)
    assert needed(40_000, 58, ONE) == pytest.approx(needed(20_000, 58, ONE) / 2)
    assert needed(20_000, 29, ONE) == pytest.approx(
        needed(20_000, 58, ONE) * 29 * 28 / 58 / 57 * math.sqrt(0.5)
    )
    assert needed(20_000, 58, more) < needed(20_000, 58, ONE)
    assert needed(1_000, 58, ONE) == math.inf  # one-way tables get everything
    assert METHODS["independent"].pairs_needed(1_000, 58, ONE, NO_TERMS) == 0
