"""What a plan says can be told from noise, by the number of rows."""

import math
from fractions import Fraction

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.ledger.memory import MemoryLedger
from dpsyn_sql.planning.foresight import COLUMN_STRENGTH, PAIR_STRENGTH, foreseen, foresight_lines


def half(rows, columns, budget):
    return Fraction(1, 2)


@pytest.mark.parametrize("delta", ["1e-9", "0"])
def test_as_many_tables_as_noise_allows_and_not_one_more(delta):
    """Of t tables that share a budget, each has the noise of a t-th of it."""
    budget = Budget.from_epsilon("1", delta)

    def noise(tables):
        own = float(budget.fraction) / 2 / tables
        return math.sqrt(1 / (2 * own)) if budget.gaussian else math.sqrt(2) / own

    found = foreseen(10_000, 10_000, budget, half)
    assert noise(found.fewer) <= 10_000 / COLUMN_STRENGTH < noise(found.fewer + 1)
    assert noise(found.pairs) <= 10_000 / PAIR_STRENGTH < noise(found.pairs + 1)
    assert foreseen(10_000, found.fewer, budget, half).columns
    assert not foreseen(10_000, found.fewer + 1, budget, half).columns


def test_a_unit_of_ten_rows_needs_ten_times_the_rows():
    budget = Budget.from_epsilon("1", "1e-9")
    one, ten = foreseen(1_000, 50, budget, half), foreseen(10_000, 50, budget, half, 10)
    assert (one.columns, one.fewer, one.pairs) == (ten.columns, ten.fewer, ten.pairs)


def test_no_pair_where_one_way_tables_get_everything():
    budget = Budget.from_epsilon("1", "1e-9")
    assert foreseen(10**6, 5, budget, lambda rows, columns, budget: Fraction(1)).pairs == 0


def test_the_epsilon_that_is_named_would_do():
    def bought(epsilon):
        return Budget.from_epsilon(epsilon, "1e-9")

    first, *_ = foresight_lines(20, 0.5, bought, half)
    assert first.startswith("of 1,000 rows: no column, 1 of 190 pairs (epsilon ")
    named = float(first.split("epsilon ")[1].split(" ")[0].rstrip(")"))
    assert foreseen(1_000, 20, bought(named), half).columns
    *_, last = foresight_lines(20, 10.0, bought, half)
    assert last == "of 100,000 rows: all columns, 190 of 190 pairs"


def test_a_plan_says_it_in_three_lines_and_needs_no_rows():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (a INTEGER, b VARCHAR, c DATE)")
        plan = str(dpsyn_sql.plan(con, "t", epsilon=1, ledger=MemoryLedger()))
        con.execute("INSERT INTO t SELECT i, 'x', '2020-01-01' FROM range(5000) r(i)")
        assert str(dpsyn_sql.plan(con, "t", epsilon=1, ledger=MemoryLedger())) == plan
    lines = [line[12:] for line in plan.splitlines() if " rows: " in line]
    assert [line.split(" rows")[0] for line in lines] == ["of 1,000", "of 10,000", "of 100,000"]
    assert len(plan.splitlines()) <= 20
