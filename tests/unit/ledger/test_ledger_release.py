"""Debits, replays, limits, units: what open_release and grant promise."""

import re
from fractions import Fraction

import numpy as np
import pytest
from ledger_steps import ANSWER, EVENT, bytes_of, debit, key, run

from dpsyn_sql.accounting.account import price
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, cost_units
from dpsyn_sql.errors import (
    AccountError,
    BudgetError,
    InputError,
    InternalError,
    LedgerError,
    PrivacyBudgetExceeded,
    ReleaseChanged,
)
from dpsyn_sql.ledger.sqlite import SqliteLedger

ONE = Budget.from_epsilon(1, 1e-9)


def account(ledger, name="people"):
    return next(one for one in ledger.overview().accounts if one.name == name)


def test_a_release_of_what_was_granted_fits_exactly_once(ledger):
    ledger.grant("people", 1, 1e-9)
    with ledger.open_release(key(), ONE) as entry:
        assert not entry.replayed and entry.state == "debited"
    with pytest.raises(PrivacyBudgetExceeded):
        debit(ledger, key(version="2"), Budget("gdp", 1))
    assert account(ledger).remaining == Budget("gdp", 0, 0)


def test_a_hundred_shares_fit_and_the_next_unit_does_not(ledger):
    ledger.grant("people", 1, 1e-9)
    for number, share in enumerate(ONE.split([1] * 100)):
        debit(ledger, key(version=str(number)), share)
    with pytest.raises(PrivacyBudgetExceeded):
        debit(ledger, key("more"), Budget("gdp", 1))
    with pytest.raises(PrivacyBudgetExceeded):
        debit(ledger, key("more"), Budget("gdp", 0, 1))
    assert account(ledger).spent == ONE


def test_the_refusal_says_what_is_left_and_that_nothing_was_read(ledger):
    ledger.grant("people", 1, 1e-9)
    with pytest.raises(PrivacyBudgetExceeded) as refused:
        debit(ledger, key(), Budget("gdp", 10**14))
    text = str(refused.value)
    assert "Nothing was read or charged" in text and "costs epsilon=2.591 at delta=1e-09" in text
    assert "a release of epsilon=1.000 with delta=1e-09 still fits" in text
    assert refused.value.__context__ is None
    assert account(ledger).spent.amount == 0


def test_the_debit_stays_however_the_release_ends(ledger):
    with pytest.raises(RuntimeError), ledger.open_release(key(), ONE):
        raise RuntimeError
    assert account(ledger).spent == ONE


def test_the_same_key_replays_the_same_bytes_at_no_cost(ledger):
    with ledger.open_release(key(version="1"), ONE) as entry:
        first, release = bytes_of(run(entry)), entry.release_id
    with ledger.open_release(key(version="1"), ONE) as again:
        assert again.replayed and again.release_id == release and again.state == "published"
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", again.measured_on)
        assert bytes_of(run(again, into="elsewhere")) == first
    assert first == bytes_of([ANSWER, ANSWER])
    assert account(ledger).spent == ONE
    assert ledger.overview().releases[0].published == (("adult_synthetic", 7), ("elsewhere", 7))


def test_a_new_version_is_a_new_debit(ledger):
    for version in (None, "1", "2"):
        with ledger.open_release(key(version=version), Budget("gdp", 5)) as entry:
            assert not entry.replayed
    assert account(ledger).spent.amount == 15


def test_other_settings_are_refused_with_their_cost(ledger):
    debit(ledger, key(method="copula", epsilon="1"), ONE)
    changed = key(method="dpsyn", epsilon="1")
    with pytest.raises(ReleaseChanged) as refused:
        debit(ledger, changed, ONE)
    assert "(method)" in str(refused.value) and "costs epsilon=1 at delta=1e-09" in str(refused.value)
    assert account(ledger).spent == ONE


def test_a_new_debit_pays_for_other_settings_and_both_keys_replay(ledger):
    with ledger.open_release(key(method="copula"), Budget("gdp", 5)) as entry:
        first = entry.release_id
    with ledger.open_release(key(method="dpsyn"), Budget("gdp", 6), new_debit=True) as entry:
        assert not entry.replayed
    for again in (False, True):
        with ledger.open_release(key(method="copula"), Budget("gdp", 5), new_debit=again) as entry:
            assert entry.replayed and entry.release_id == first
    assert account(ledger).spent.amount == 11


def test_key_order_does_not_matter_but_values_do(ledger):
    debit(ledger, key(a=1, b=[1, 2]), Budget("gdp", 5))
    with ledger.open_release(key(b=[1, 2], a=1), Budget("gdp", 5)) as entry:
        assert entry.replayed
    with pytest.raises(ReleaseChanged):
        debit(ledger, key(b=[2, 1], a=1), Budget("gdp", 5))


def test_without_a_grant_the_account_has_no_limit(ledger):
    for number in range(3):
        with ledger.open_release(key(version=str(number)), ONE) as entry:
            assert entry.account.balance.limit is None
    assert entry.account.balance.spent.amount == 3 * ONE.amount
    assert account(ledger).granted is None and account(ledger).affordable is None


def test_the_default_account_is_one_per_source_and_unit(ledger):
    debit(ledger, key(account=None, unit="customer_id"), ONE)
    assert account(ledger, "main.adult#customer_id").sources == ("main.adult",)


def test_without_account_the_source_stays_where_it_is(ledger):
    debit(ledger, key(), ONE)
    with ledger.open_release(key(account=None, version="2"), ONE) as entry:
        assert entry.account.name == "people"


def test_a_source_never_moves_to_another_account_or_unit(ledger):
    debit(ledger, key(), ONE)
    with pytest.raises(AccountError, match="'people'"):
        debit(ledger, key(account="other"), ONE)
    for name in ("people", None):
        with pytest.raises(AccountError, match="unit"):
            debit(ledger, key(account=name, unit="id", version="2"), ONE)
    assert [one.name for one in ledger.overview().accounts] == ["people"]


def test_a_namespace_fixes_one_unit_for_all_its_sources(ledger):
    debit(ledger, key(unit="id"), ONE)
    debit(ledger, key("orders", source="main.orders", unit="id"), ONE)
    with pytest.raises(AccountError):
        debit(ledger, key("logs", source="main.logs"), ONE)
    assert account(ledger).sources == ("main.adult", "main.orders")


def test_a_refused_release_leaves_no_account_behind(ledger):
    before = ledger.verify()
    with pytest.raises(PrivacyBudgetExceeded):
        debit(ledger, key(), Budget("gdp", 2**63))
    assert ledger.overview().accounts == () and ledger.verify() == before


@pytest.mark.parametrize("what", [{"account": ""}, {"name": ""}, {"version": ""}, {"name": "\ud800"}])
def test_labels_must_be_text(ledger, what):
    with pytest.raises(InputError):
        debit(ledger, key(**what), ONE)


def test_odd_labels_work(ledger):
    name = "a\"b'; DROP TABLE entry; -- {{ x }} \x00 \u202e" + "x" * 5000
    with ledger.open_release(key(name, account=name, version=name, source=name), ONE) as entry:
        run(entry, into=name)
    assert ledger.overview().releases[0].name == name
    ledger.verify()


TENTH = price(Budget.from_epsilon("0.1", 0), "gdp").amount
"""What a pure release of epsilon 0.1 costs an approximate account."""


def test_pure_releases_make_a_pure_account(ledger):
    with ledger.open_release(key(), Budget.from_epsilon("0.5", 0)) as entry:
        entry.ask({}).charge(LaplaceEvent(2.0, 1))
    assert account(ledger).spent == Budget("pure", 5 * 10**14)
    assert account(ledger).epsilon == 0.5 and account(ledger).delta == 0


def test_an_account_without_limit_becomes_approximate_with_its_first_such_release(ledger):
    debit(ledger, key(), Budget.from_epsilon("0.1", 0))
    debit(ledger, key(version="2"), ONE)
    assert account(ledger).spent == Budget("gdp", TENTH + ONE.amount, ONE.delta)
    debit(ledger, key(version="3"), Budget.from_epsilon("0.1", 0))
    assert account(ledger).spent.amount == 2 * TENTH + ONE.amount
    ledger.verify()


def test_a_granted_pure_account_refuses_rho(ledger):
    ledger.grant("people", 1, 0)
    with pytest.raises(AccountError, match="pure"):
        debit(ledger, key(), ONE)
    assert account(ledger).granted == ("1", "0")


def test_a_grant_with_delta_makes_a_pure_account_approximate(ledger):
    ledger.grant("people", "0.1", 0)
    debit(ledger, key(), Budget.from_epsilon("0.1", 0))
    ledger.grant("people", 1, 1e-9)
    left = Budget("gdp", ONE.amount - TENTH, ONE.delta)
    assert account(ledger).remaining == left
    debit(ledger, key(version="2"), left)
    ledger.verify()


def test_an_approximate_account_cannot_become_pure(ledger):
    ledger.grant("people", 1, 1e-9)
    with pytest.raises(AccountError):
        ledger.grant("people", 1, 0)


def test_a_grant_is_a_total_and_never_below_what_is_spent(ledger):
    ledger.grant("people", 2, 1e-9)
    debit(ledger, key(), ONE)
    granted = ledger.grant("people", 1, 1e-9)
    assert granted.remaining == Budget("gdp", 0) and granted.affordable == 0
    with pytest.raises(BudgetError, match="below what is spent"):
        ledger.grant("people", "0.99", 1e-9)
    assert account(ledger).granted == ("1", "1e-09")


@pytest.mark.parametrize("epsilon, delta", [(0, 1e-9), (-1, 0), ("nan", 0), (1, 1e-3), (10_000, 0)])
def test_a_senseless_grant_makes_no_account(ledger, epsilon, delta):
    with pytest.raises(BudgetError):
        ledger.grant("people", epsilon, delta)
    assert ledger.overview().accounts == ()


def test_questions_are_charged_within_the_debit(ledger):
    budget = Budget("gdp", cost_units(EVENT, "gdp"))
    with ledger.open_release(key(), budget) as entry:
        asked = entry.ask({"ask": 0})
        assert asked.stored is None
        asked.charge(EVENT)
        with pytest.raises(PrivacyBudgetExceeded, match="was not asked"):
            asked.charge(GaussianEvent(1e6, 1))
        assert entry.events == (EVENT,)


def test_a_question_may_reserve_several_events(ledger):
    with ledger.open_release(key(), ONE) as entry:
        asked = entry.ask({})
        asked.charge(EVENT)
        asked.charge(GaussianEvent(50.0, 1))
        asked.store(ANSWER)
    with ledger.open_release(key(), ONE) as again:
        assert again.events == (EVENT, GaussianEvent(50.0, 1))


def test_an_answer_needs_a_reserved_event(ledger):
    with ledger.open_release(key(), ONE) as entry, pytest.raises(InternalError, match="charged"):
        entry.ask({}).store(ANSWER)


def test_a_resumed_release_continues_from_the_stored_prefix(ledger):
    with ledger.open_release(key(), ONE) as entry:
        first = entry.ask({"ask": 0})
        first.charge(EVENT)
        first.store(ANSWER)
        entry.ask({"ask": 1}).charge(EVENT)  # killed before the answer was stored
    with ledger.open_release(key(), ONE) as again:
        assert again.replayed and again.state == "debited" and again.measured_on is None
        assert bytes_of([again.ask({"ask": 0}).stored]) == bytes_of([ANSWER])
        second = again.ask({"ask": 1})
        assert second.stored is None
        second.charge(EVENT)  # reserved already: not charged again
        second.store(ANSWER)
        assert again.events == (EVENT, EVENT)
    ledger.verify()


def test_a_resumed_question_cannot_lower_its_noise(ledger):
    with ledger.open_release(key(), ONE) as entry:
        entry.ask({}).charge(EVENT)
    with ledger.open_release(key(), ONE) as again, pytest.raises(ReleaseChanged, match="question 0 differs"):
        again.ask({}).charge(GaussianEvent(19.0, 2))


def test_the_first_answer_wins_and_the_loser_uses_it(ledger):
    with ledger.open_release(key(), ONE) as one, ledger.open_release(key(), ONE) as other:
        early, late = one.ask({}), other.ask({})
        for asked in (early, late):
            assert asked.stored is None
            asked.charge(EVENT)
        assert bytes_of([early.store(ANSWER)]) == bytes_of([ANSWER])
        assert bytes_of([late.store([table + 1 for table in ANSWER])]) == bytes_of([ANSWER])
        assert one.events == (EVENT,)


def test_a_loser_that_comes_after_the_end_still_gets_the_answer(ledger):
    with ledger.open_release(key(), ONE) as one, ledger.open_release(key(), ONE) as other:
        early, late = one.ask({}), other.ask({})
        assert early.stored is None and late.stored is None
        early.charge(EVENT)
        early.store(ANSWER)
        one.close_questions()
        late.charge(EVENT)
        assert bytes_of([late.store([])]) == bytes_of([ANSWER])
        other.close_questions()


def test_a_question_that_differs_stops(ledger):
    with ledger.open_release(key(), ONE) as one, ledger.open_release(key(), ONE) as other:
        late = other.ask({"ask": "something else"})
        run(one)
        with pytest.raises(ReleaseChanged, match="question 0 differs"):
            late.store(ANSWER)
    with ledger.open_release(key(), ONE) as again, pytest.raises(ReleaseChanged, match="question 0 differs"):
        again.ask({"ask": "something else"})


def test_numbers_are_the_entrys_so_that_two_doors_of_a_release_never_answer_one_question(ledger):
    """Each takes the next number, also while the other waits for its answer."""
    with ledger.open_release(key(), ONE) as entry:
        left, right = entry.ask({"door": "left"}), entry.ask({"door": "right"})
        for asked, answer in ((right, [ANSWER[0] + 1]), (left, ANSWER)):
            asked.charge(EVENT)
            asked.store(answer)
        assert (left.number, right.number, entry.events) == (0, 1, (EVENT, EVENT))
    with ledger.open_release(key(), ONE) as again:
        asked = [again.ask({"door": side}) for side in ("left", "right")]
        assert bytes_of(one.stored for one in asked) == bytes_of([ANSWER, [ANSWER[0] + 1]])
    with (
        ledger.open_release(key(), ONE) as again,
        pytest.raises(ReleaseChanged, match="question 0 differs"),
    ):
        again.ask({"door": "right"})
    ledger.verify()


def test_no_question_after_the_last(ledger):
    with ledger.open_release(key(), ONE) as entry:
        asked = entry.ask({})
        entry.close_questions()
        with pytest.raises(InternalError, match="asks no more"):
            entry.ask({})
        with pytest.raises(InternalError, match="asks no more"):
            asked.charge(EVENT)


def test_publishing_comes_last(ledger):
    with ledger.open_release(key(), ONE) as entry, pytest.raises(InternalError, match="last question"):
        entry.published("x", 1)


def test_answers_keep_shape_and_every_bit(ledger):
    tables = [
        np.array(5, dtype=np.int64),
        np.zeros((3, 0, 2), dtype=np.int64),
        np.array([[np.iinfo(np.int64).min, np.iinfo(np.int64).max]]),
        np.arange(24).reshape(2, 3, 4)[:, ::-1, :],
    ]
    with ledger.open_release(key(), ONE) as entry:
        asked = entry.ask({})
        asked.charge(EVENT)
        won = asked.store(tables)
    with ledger.open_release(key(), ONE) as again:
        for found in (won, again.ask({}).stored):
            assert [table.shape for table in found] == [table.shape for table in tables]
            assert all((one == other).all() for one, other in zip(found, tables, strict=True))
            assert all(table.dtype == np.int64 for table in found)


@pytest.mark.parametrize("table", [np.zeros(2), np.zeros(2, dtype=np.int32)])
def test_only_whole_numbers_are_stored(ledger, table):
    with ledger.open_release(key(), ONE) as entry:
        asked = entry.ask({})
        asked.charge(EVENT)
        with pytest.raises(InternalError, match="int64"):
            asked.store([table])


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"x"])
def test_a_question_is_json(ledger, value):
    with ledger.open_release(key(), ONE) as entry, pytest.raises(InternalError, match="not JSON"):
        entry.ask({"ask": value})


def test_overview_shows_what_was_spent_and_is_left(ledger):
    ledger.grant("people", 2, 1e-9)
    with ledger.open_release(key(version="v"), Budget("gdp", ONE.amount)) as entry:
        run(entry)
    shown = ledger.overview()
    assert shown.head == ledger.verify() and shown.place == ledger.place
    (people,), (release,) = shown.accounts, shown.releases
    assert people.epsilon == pytest.approx(1) and people.delta == Fraction(1, 10**9)
    assert people.affordable > 1 and people.sources == ("main.adult",)
    assert (release.name, release.version, release.state) == ("adult", "v", "published")
    assert release.cost == Budget("gdp", ONE.amount) and release.published == (("adult_synthetic", 7),)


def test_entries_outlive_the_with_block_but_not_the_ledger(path):
    ledger = SqliteLedger(path)
    with ledger.open_release(key(), ONE) as entry:
        pass
    run(entry)
    ledger.close()
    with pytest.raises((InternalError, LedgerError)):
        entry.close_questions()


def test_everything_is_found_again_in_the_file(path):
    first = SqliteLedger(path)
    first.grant("people", 1, 1e-9)
    with first.open_release(key(), ONE) as entry:
        answers = bytes_of(run(entry))
    shown, head = first.overview(), first.verify()
    first.close()
    again = SqliteLedger(path, create=False)
    assert again.overview() == shown and again.verify(head) == head
    with again.open_release(key(), ONE) as entry:
        assert bytes_of(run(entry, into="adult_synthetic")) == answers
    again.close()
