"""What a plan says can be told from noise, by the number of rows."""

import math
from fractions import Fraction

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.discovery.designs import design, few_units, left_of
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.foresight import COLUMN_STRENGTH, PAIR_STRENGTH, Spends, foreseen, foresight_lines
from dpsyn_sql.source.relation import PrivacyUnit


def half(rows, columns, budget):
    return Fraction(1, 2)


HALF = Spends(half)


@pytest.mark.parametrize("delta", ["1e-9", "0"])
def test_as_many_tables_as_noise_allows_and_not_one_more(delta):
    """Of t tables that share a budget, each has the noise of a t-th of it."""
    budget = Budget.from_epsilon("1", delta)

    def noise(tables):
        own = float(budget.fraction) / 2 / tables
        return math.sqrt(1 / (2 * own)) if budget.gaussian else math.sqrt(2) / own

    found = foreseen(10_000, 10_000, budget, HALF)
    assert noise(found.fewer) <= 10_000 / COLUMN_STRENGTH < noise(found.fewer + 1)
    assert noise(found.pairs) <= 10_000 / PAIR_STRENGTH < noise(found.pairs + 1)
    assert foreseen(10_000, found.fewer, budget, HALF).columns
    assert not foreseen(10_000, found.fewer + 1, budget, HALF).columns


def test_a_unit_of_ten_rows_needs_ten_times_the_rows():
    budget = Budget.from_epsilon("1", "1e-9")
    one, ten = foreseen(1_000, 50, budget, HALF), foreseen(10_000, 50, budget, HALF, 10)
    assert (one.columns, one.fewer, one.pairs) == (ten.columns, ten.fewer, ten.pairs)


def test_no_pair_where_one_way_tables_get_everything():
    budget = Budget.from_epsilon("1", "1e-9")
    assert foreseen(10**6, 5, budget, Spends(lambda rows, columns, budget: Fraction(1))).pairs == 0


def test_the_epsilon_that_is_named_would_do():
    def bought(epsilon):
        return Budget.from_epsilon(epsilon, "1e-9")

    first, *_ = foresight_lines(20, 0.5, bought, HALF)
    assert first.startswith("of 1,000 rows: no column, up to 1 of 190 pairs (epsilon ")
    named = float(first.split("epsilon ")[1].split(" ")[0].rstrip(")"))
    assert foreseen(1_000, 20, bought(named), HALF).columns
    *_, last = foresight_lines(20, 10.0, bought, HALF)
    assert last == "of 100,000 rows: all columns, up to 190 of 190 pairs"


def test_a_plan_says_it_in_three_lines_and_needs_no_rows():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (a INTEGER, b VARCHAR, c DATE)")
        plan = str(dpsyn_sql.plan(con, "t", epsilon=1, ledger=MemoryLedger()))
        con.execute("INSERT INTO t SELECT i, 'x', '2020-01-01' FROM range(5000) r(i)")
        assert str(dpsyn_sql.plan(con, "t", epsilon=1, ledger=MemoryLedger())) == plan
    lines = [line[12:] for line in plan.splitlines() if " rows: " in line]
    assert [line.split(" rows")[0] for line in lines] == ["of 1,000", "of 10,000", "of 100,000"]
    assert len(plan.splitlines()) <= 20


def test_what_learning_takes_is_not_there_for_tables():
    """With a third of the budget for learning, as much is told as with two thirds of it and nothing to learn."""
    budget = Budget.from_epsilon("1", "1e-9")
    less = Budget("gdp", budget.amount * 2 // 3)
    taken = foreseen(10_000, 50, budget, Spends(half, learning=lambda rows, budget: Fraction(1, 3)))
    assert taken == foreseen(10_000, 50, less, HALF)
    assert taken.pairs < foreseen(10_000, 50, budget, HALF).pairs


def test_pairs_are_promised_only_where_they_are_worth_their_budget():
    budget = Budget.from_epsilon("1", "1e-9")

    def tied(rows, columns, budget):
        return columns**2 / 20

    some = foreseen(10_000, 30, budget, Spends(half, tied=tied))
    assert (some.tied, some.likely, some.paired) == (45, False, 10) and some.pairs > 45
    none = foreseen(10_000, 30, budget, Spends(half, tied=lambda rows, columns, budget: math.inf))
    assert (none.pairs, none.tied, none.likely, none.paired) == (0, 0, False, 0)
    *_, last = foresight_lines(
        30, 10.0, lambda epsilon: Budget.from_epsilon(epsilon, "1e-9"), Spends(half, tied=tied)
    )
    assert (
        last
        == "of 100,000 rows: all columns, up to 435 of 435 pairs, if 45 or more go together (10 columns would do)"
    )


@pytest.mark.parametrize(("rows", "once"), [(10_000, True), (100_000, False)])
def test_a_plan_reckons_with_what_discovery_of_a_table_of_so_many_rows_spends(rows, once):
    """The shares are those of the questions that such a table is asked; one of rows, types and values."""
    columns = tuple(Undiscovered(f"t{number}", "VARCHAR", "categorical", typed=False) for number in range(40))
    shape, unit = Shape(columns, (), tuple(one.name for one in columns)), PrivacyUnit(None, 1)
    budget = Budget.from_epsilon("1", "1e-9")
    planned = design(shape, unit, budget)
    assert few_units(shape, unit, budget, rows) == once
    before_tables = design(shape, unit, budget, rows)
    share = 1 - Fraction(left_of(budget, before_tables).amount, budget.amount)
    if once:  # rows, then types; what is left pays for values and one-way tables together
        paid_first = [look.budget.amount for look in before_tables if look.ask in ("rows", "types")]
        assert share == Fraction(sum(paid_first), budget.amount) and Fraction(1, 9) < share < Fraction(1, 8)
    else:
        assert before_tables == planned
    wanted = design(shape, unit, budget, rows, Fraction(3, 5))
    looks = [look for look in wanted if look.ask in ("keys", "again")]
    assert {look.attr for look in looks} == set(shape.order)
    paid = (1 - share) * Fraction(3, 5) * Fraction(7, 8) if once else Fraction(7, 25)
    spent = sum(Fraction(step.budget.amount, budget.amount) for step in looks)
    assert spent == pytest.approx(float(paid), rel=1e-6)
