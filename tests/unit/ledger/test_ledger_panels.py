"""Panels in the ledger: what slices cost together, against brute forces."""

import itertools
import json
import math
import shutil
from collections import defaultdict
from contextlib import closing
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_steps import debit, key, tamper

from dpsyn_sql.accounting.account import Charge, Place, Spending, price, spending_of
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.gdp import pure_cost
from dpsyn_sql.errors import AccountError, LedgerDamaged, PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import MemoryLedger, SqliteLedger

QUICK = settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
RHO = Budget("gdp", 10**13, 10**8)
EDGES = tuple(f"2013-{month:02}-01" for month in range(1, 13))


def window(index, *, most=1, unit="id", name="monthly", version=None, span=1, edges=EDGES, **settings):
    """The key of a release of a window, as a request makes it."""
    told = {"column": "day", "reads": "DATE", "calendar": "month", "most": most, "index": index, "span": span}
    told["edges"] = list(edges[: index + span + 1])
    return key(
        name, version=version or f"v{index}", unit=unit, source="main.t", slice=told, kind="table", **settings
    )


def spent(ledger):
    (account,) = ledger.overview().accounts
    return account.spent


def release(ledger, which, budget=RHO, **more):
    with ledger.open_release(which, budget, **more) as entry:
        entry.close_questions()
        return entry


# -- the price against every possible unit -----------------------------------------------------------

BUDGETS = st.one_of(
    st.builds(Budget, st.just("gdp"), st.integers(1, 9), st.integers(0, 9)),
    st.builds(Budget, st.just("pure"), st.integers(10**14, 3 * 10**15)),
)
PANELS = ("weeks of a", "weeks of b", "rows")
MOST = {"weeks of a": 1, "weeks of b": 2, "rows": 1}


@st.composite
def charges(draw):
    made = []
    for _ in range(draw(st.integers(0, 9))):
        panel, number = draw(st.sampled_from([*PANELS, None])), draw(st.integers(0, 3))
        edges = tuple(range(number + 2)) if draw(st.integers(0, 9)) else (0, *range(2, number + 3))
        place = Place(panel, number, MOST[panel], edges, panel != "rows") if panel else None
        made.append(Charge(draw(BUDGETS), place))
    return made


def dearest_unit(made):
    """The most that one unit can lose: in each panel it is in any ``most`` slices, or in those of windows that were
    released late or by another calendar."""
    total = [0, 0]
    members, full = defaultdict(list), []
    for charge in made:
        place = charge.place
        if place is None:
            full.append(charge)
            continue
        before = [other.place for other in members[place.panel]]
        same = all(x == y for other in before for x, y in zip(other.edges, place.edges, strict=False))
        late = place.ordered and any(other.number > place.number for other in before)
        (full if late or not same else members[place.panel]).append(charge)
    for panel, inside in members.items():
        numbers = {charge.place.number for charge in inside}
        choices = [set(some) for some in itertools.combinations(numbers, min(MOST[panel], len(numbers)))]
        for what, part in enumerate(("amount", "delta")):
            costs = [
                sum(getattr(price(c.budget, "gdp"), part) for c in inside if c.place.number in some)
                for some in choices
            ]
            total[what] += max(costs)
    for charge in full:
        cost = price(charge.budget, "gdp")
        total = [total[0] + cost.amount, total[1] + cost.delta]
    return Budget("gdp", *total)


@QUICK
@given(made=charges())
def test_the_price_is_what_the_unluckiest_unit_can_lose_and_never_falls(made):
    spending, sums = Spending("gdp"), []
    for number, charge in enumerate(made):
        before = spending.total
        cost = spending.add(charge)
        assert spending.total == Budget("gdp", before.amount + cost.amount, before.delta + cost.delta)
        assert spending.total == dearest_unit(made[: number + 1])
        sums.append(cost)  # a negative one could not be made
    plain = [price(charge.budget, "gdp") for charge in made]
    assert sum(one.amount for one in sums) <= sum(one.amount for one in plain)


@QUICK
@given(
    data=st.data(), made=st.lists(st.tuples(BUDGETS, st.integers(0, 3)), max_size=6), most=st.integers(1, 3)
)
def test_the_sum_of_slices_of_rows_does_not_depend_on_the_order(data, made, most):
    placed = [Charge(one, Place("p", index, most, tuple(range(index + 2)))) for one, index in made]
    other = data.draw(st.permutations(placed))
    assert spending_of(placed, "gdp").total == spending_of(other, "gdp").total


# -- the ledger --------------------------------------------------------------------------------------


def test_the_first_windows_are_charged_and_later_ones_cost_nothing():
    ledger = MemoryLedger()
    amounts = []
    for index in range(6):
        release(ledger, window(index, most=2))
        amounts.append((spent(ledger).amount // RHO.amount, spent(ledger).delta // RHO.delta))
    assert amounts == [(1, 1), (2, 2), (2, 2), (2, 2), (2, 2), (2, 2)]
    told = ledger.overview().releases
    assert [one.charged.amount // RHO.amount for one in told] == [1, 1, 0, 0, 0, 0]
    assert all(one.cost == RHO for one in told)
    release(ledger, window(5, most=2, version="again"))  # its slice is dearer now
    assert spent(ledger).amount == 3 * RHO.amount
    release(ledger, window(5, most=2, method="other"), new_debit=True)
    assert spent(ledger).amount == 4 * RHO.amount
    assert ledger.verify()


def test_without_a_bound_every_window_is_charged():
    ledger = MemoryLedger()
    for index in range(4):
        release(ledger, window(index, most=None))
    assert spent(ledger).amount == 4 * RHO.amount


@pytest.mark.parametrize(
    "changes",
    [
        {"calendar": "week"},
        {"column": "other"},
        {"reads": "TIMESTAMP"},
        {"span": 2},
        {"most": 3},
        {"definition": "of another view"},
    ],
)
def test_another_panel_adds(changes):
    ledger = MemoryLedger()
    release(ledger, window(0))
    other = window(2)
    told = {**other.configuration["slice"], **changes}
    if "span" in changes:
        told["edges"] = list(EDGES[:5])
    release(ledger, key("monthly", version="b", unit="id", source="main.t", slice=told, kind="table"))
    assert spent(ledger).amount == 2 * RHO.amount
    assert ledger.verify()


def test_series_of_a_unit_column_add_and_those_of_rows_share_their_panel():
    for unit, sums in (("id", 2), (None, 1)):
        ledger = MemoryLedger()
        release(ledger, window(0, unit=unit, name="first"))
        release(ledger, window(1, unit=unit, name="second"))
        assert spent(ledger).amount == sums * RHO.amount


def test_the_whole_table_and_another_source_lie_outside():
    ledger = MemoryLedger()
    release(ledger, window(0))
    release(ledger, key("whole", unit="id", source="main.t"))
    other = window(1)
    release(
        ledger, key("monthly", version="q", unit="id", source="main.t", slice=other.configuration["slice"])
    )
    assert spent(ledger).amount == 3 * RHO.amount


def test_a_window_released_after_a_later_one_is_charged_in_full_for_units_and_not_for_rows():
    for unit, sums in (("id", 2), (None, 1)):
        ledger = MemoryLedger()
        for index in (0, 3, 1):
            release(ledger, window(index, unit=unit))
        assert spent(ledger).amount == sums * RHO.amount
        release(ledger, window(4, unit=unit))
        assert spent(ledger).amount == sums * RHO.amount
        assert ledger.verify()


def test_a_calendar_with_other_edges_is_charged_in_full():
    for unit in ("id", None):
        ledger = MemoryLedger()
        release(ledger, window(0, unit=unit))
        release(ledger, window(1, unit=unit, edges=("2013-01-01", "2013-01-15", "2013-03-01")))
        assert spent(ledger).amount == 2 * RHO.amount


def test_an_unfinished_window_holds_up_the_next_one_of_its_series():
    ledger = MemoryLedger()
    debit(ledger, window(0), RHO)  # killed before it was measured
    with pytest.raises(AccountError, match="finish it first"):
        release(ledger, window(1))
    assert "finish it first" in ledger.look(window(1), RHO, ()).refusal
    release(ledger, window(1, name="another series"))
    again = release(ledger, window(0))
    assert again.replayed
    release(ledger, window(1))
    assert spent(ledger).amount == 2 * RHO.amount


def test_limits_hold_for_what_a_panel_costs():
    ledger = MemoryLedger()
    first = Budget.from_epsilon(1, "1e-9")
    release(ledger, window(0), first)
    (account,) = ledger.overview().accounts
    ledger.grant(account.name, 1, "1e-9")
    release(ledger, window(1), first)  # fits: it costs nothing
    with pytest.raises(PrivacyBudgetExceeded):
        release(ledger, window(2), Budget("gdp", first.amount + 1))
    with pytest.raises(PrivacyBudgetExceeded):
        release(ledger, window(2, most=None), Budget("gdp", 1))
    assert spent(ledger).amount == first.amount


def test_pure_and_approximate_releases_of_one_panel():
    ledger = MemoryLedger()
    pure = Budget("pure", 10**15)
    for index in (0, 1):
        release(ledger, window(index, most=1), pure)
    assert spent(ledger) == pure
    release(ledger, window(2, most=1), Budget("gdp", 10**14, 5))
    alone = Budget("gdp", math.ceil(pure_cost(Fraction(1)) * 10**15), 5)
    assert spent(ledger) == alone  # epsilon 1 is mu^2/2 = 0.759, restated as slices
    release(ledger, window(3, most=1), pure)
    assert spent(ledger) == alone
    assert ledger.verify()


def test_a_plan_says_what_a_window_costs():
    ledger = MemoryLedger()
    assert "costs epsilon=0.7709 at delta=1e-09 more" in str(ledger.look(window(0), RHO, ()))
    release(ledger, window(0))
    assert "a unit can be in one of the windows: costs nothing more" in str(ledger.look(window(1), RHO, ()))
    assert str(ledger.look(window(1, most=None), RHO, ())) == "a new debit, which fits the account"
    assert "charged in full" in str(ledger.look(window(1, edges=("2012-01-01", *EDGES[1:])), RHO, ()))


STEPS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from([None, 1, 2])), max_size=8)


@settings(QUICK, max_examples=30)
@given(steps=STEPS, unit=st.sampled_from([None, "id"]))
def test_a_ledger_agrees_with_the_price_and_verifies_whatever_is_released(steps, unit):
    ledger, made = MemoryLedger(), []
    for number, (index, most) in enumerate(steps):
        budget = Budget("gdp", 10**12 * (number + 1), number)
        release(ledger, window(index, most=most, unit=unit, version=f"{number}"), budget)
        place = Place(str(most), index, most, EDGES[: index + 2], unit is not None) if most else None
        made.append(Charge(budget, place))
        assert spent(ledger) == spending_of(made, "gdp").total
    assert ledger.verify()


# -- forged records ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def panelled(tmp_path_factory):
    path = tmp_path_factory.mktemp("panels") / "ledger.db"
    with closing(SqliteLedger(path)) as ledger:
        for index in range(3):
            release(ledger, window(index, most=1))
        assert spent(ledger).amount == RHO.amount
    return path


@pytest.mark.parametrize(
    ("statement", "charges_too"),
    [
        ("UPDATE entry SET configuration = replace(configuration, '\"most\":1', '\"most\":null')", True),
        ("UPDATE entry SET configuration = replace(configuration, '\"most\":1', '\"most\":0')", True),
        ("UPDATE entry SET configuration = replace(configuration, '\"index\":0', '\"index\":2')", False),
        ("UPDATE entry SET name = name || entry_id", True),
        ("UPDATE account SET spent_amount = spent_amount - 1", True),
    ],
)
def test_forged_panels_are_found(panelled, tmp_path, statement, charges_too):
    path = tmp_path / "forged.db"
    with closing(SqliteLedger(panelled)):
        shutil.copy(panelled, path)
    with closing(SqliteLedger(path)) as ledger:
        ledger.moved(with_data=False)
    tamper(path, statement)
    with closing(SqliteLedger(path)) as ledger:
        with pytest.raises(LedgerDamaged):
            ledger.verify()
        if charges_too:
            with pytest.raises(LedgerDamaged):
                release(ledger, window(3, most=1))


def test_a_record_that_charges_less_than_its_panel_is_found(tmp_path):
    """Written by somebody who knows how the chain is made: the cost of a debit outside of panels is nought."""
    import dpsyn_sql.ledger.entries as entries

    path = tmp_path / "ledger.db"
    with closing(SqliteLedger(path)) as ledger:
        release(ledger, window(0))
        real = entries.accounts.debited
        free = lambda store, account, charge: (account, Budget(account.kind, 0), "", [])  # noqa: E731
        entries.accounts.debited = free
        try:
            release(ledger, window(1, most=2))
        finally:
            entries.accounts.debited = real
        with pytest.raises(LedgerDamaged, match="the cost is not what the budget means"):
            ledger.verify()


def test_a_chain_that_a_ledger_would_not_have_written_is_found(tmp_path, monkeypatch):
    """The price rests on the order of reading and on the unit, whoever made the chain."""
    import dpsyn_sql.ledger.accounts as accounts

    order, unit = tmp_path / "order.db", tmp_path / "unit.db"
    with closing(SqliteLedger(order)) as ledger:
        debit(ledger, window(0), RHO)
        with monkeypatch.context() as patched:
            patched.setattr(accounts, "refuse_unfinished", lambda known, place: None)
            release(ledger, window(1))
        with pytest.raises(LedgerDamaged, match="an earlier window of its series was not measured"):
            ledger.verify()
    with closing(SqliteLedger(unit)) as ledger:
        release(ledger, window(0))
        with monkeypatch.context() as patched:
            patched.setattr(accounts, "fold", lambda name: "")
            release(ledger, window(1, unit=None, name="other"))
        with pytest.raises(LedgerDamaged, match="its panel has another unit than the account"):
            ledger.verify()


def test_an_entry_without_a_slice_is_outside_of_panels():
    from dpsyn_sql.ledger.ties import charge_of

    plain = json.dumps({"source": "t", "unit": None})
    assert charge_of(RHO, plain, "n") == charge_of(RHO, None, "n") == Charge(RHO)
    quoted = json.dumps({"domain": ['"slice":'], "unit": None, "window": None})
    assert charge_of(RHO, quoted, "n") == Charge(RHO)
