"""Releases that stop: what they have not asked for pays for later ones, and nothing is spent twice."""

import json
import random
import sqlite3
import threading
from contextlib import closing

import pytest
from ledger_steps import ANSWER, EVENT, debit, key, resealed, tamper

from dpsyn_sql.accounting.account import Charge, Spending
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, cost_units
from dpsyn_sql.errors import (
    InternalError,
    LedgerDamaged,
    PrivacyBudgetExceeded,
    ReleaseChanged,
    ReleaseExists,
)
from dpsyn_sql.ledger.sqlite import MemoryLedger, SqliteLedger

ONE = Budget.from_epsilon(1, 1e-9)
COST = cost_units(EVENT, "gdp")
REST = ONE.amount - COST
DELTA = ONE.delta


def asks(entry, questions=1, event=EVENT):
    """The next questions of a release, answered."""
    for _ in range(questions):
        question = entry.ask({"ask": "discover"})
        if question.stored is None:
            question.charge(event)
            question.store(ANSWER)


def stops(ledger, which, budget=ONE, questions=1, event=EVENT):
    """A release that learns and stops; the entry and what it has left."""
    with ledger.open_release(which, budget) as entry:
        asks(entry, questions, event)
        return entry, entry.stop()


def account(ledger, name="people"):
    return next(one for one in ledger.overview().accounts if one.name == name)


def states(ledger):
    return {one.name: one.state for one in ledger.overview().releases}


def reserved(ledger, questions_only=True):
    """What all questions of all releases may have shown, in units."""
    rows = ledger._store.all("all_events")
    return sum(row["amount"] for row in rows if row["sequence"] >= 0 or not questions_only)


# -- what it is for ------------------------------------------------------------------------------------


def test_what_was_not_asked_for_pays_for_the_next_release_and_no_debit_is_given_back(ledger):
    _, left = stops(ledger, key("wide"))
    assert left == Budget("gdp", REST, DELTA) and account(ledger).spent == ONE
    assert states(ledger) == {"wide": "stopped"}
    after = debit(ledger, key("narrow"), ONE)
    assert after.cost == Budget("gdp", COST) and after.budget == ONE
    assert account(ledger).spent == Budget("gdp", ONE.amount + COST, DELTA)
    assert [one.charged.amount for one in ledger.overview().releases] == [ONE.amount, COST]
    assert debit(ledger, key("later"), ONE).cost == ONE  # it pays once
    assert ledger.verify()


def test_within_a_limit_the_rest_fits_to_the_last_unit(ledger):
    ledger.grant("people", 1, 1e-9)
    stops(ledger, key("wide"))
    with pytest.raises(PrivacyBudgetExceeded, match=r"has left: a release of epsilon=0.9\d+ .* still fits"):
        debit(ledger, key("narrow"), Budget("gdp", REST + 1))
    with pytest.raises(PrivacyBudgetExceeded):
        debit(ledger, key("narrow"), Budget("gdp", REST, DELTA + 1))
    assert debit(ledger, key("narrow"), Budget("gdp", REST, DELTA)).cost == Budget("gdp", 0)
    with pytest.raises(PrivacyBudgetExceeded, match="no further release fits"):
        debit(ledger, key("more"), Budget("gdp", 1))
    assert account(ledger).spent == ONE and ledger.verify()


def test_the_account_says_what_is_kept_and_the_preview_what_it_pays(ledger):
    stops(ledger, key("wide"))
    before = account(ledger)
    preview = ledger.look(key("narrow"), ONE, ("narrow",))
    assert preview.cost == Budget("gdp", COST)
    assert str(preview).startswith("a new debit of epsilon=1 at delta=1e-09, of which a release that stopped")
    assert "was not asked for and pays for the next release" in str(preview.account_state)
    assert account(ledger) == before and states(ledger) == {"wide": "stopped"}  # looking takes nothing
    small = Budget("gdp", REST, DELTA)
    assert "costs nothing more" in str(ledger.look(key("narrow"), small, ("narrow",)))
    thresholds = Budget("gdp", REST, DELTA + 10**7)
    assert "costs a threshold delta of 1e-11 more" in str(ledger.look(key("narrow"), thresholds, ("narrow",)))


def test_parts_are_taken_until_nothing_is_left_of_the_oldest_first(ledger):
    stops(ledger, key("first"), Budget("gdp", COST + 10, 5))
    stops(ledger, key("second"), Budget("gdp", COST + 10, 5))  # takes over what the first has left
    assert account(ledger).spent == Budget("gdp", 2 * COST + 10, 5)
    costs = [debit(ledger, key(str(n)), Budget("gdp", 4, 2)).cost for n in range(4)]
    assert [(cost.amount, cost.delta) for cost in costs] == [(0, 0), (0, 0), (2, 1), (4, 2)]
    assert ledger.verify()


def test_a_stopped_release_is_in_nobodys_way(ledger):
    """It has no output: other settings under its name, and its settings under another name, need no leave."""
    stops(ledger, key("table"))
    assert debit(ledger, key("table", exclude=["a"]), ONE).cost.amount == COST
    with pytest.raises(ReleaseChanged):
        debit(ledger, key("table", exclude=["b"]), ONE)
    other = key("elsewhere")
    assert not ledger.look(other, ONE, ()).refusal
    unnamed = type(other)(
        "people", "else", None, key("table", exclude=["a"]).configuration, ("main.adult",), False
    )
    with pytest.raises(ReleaseExists):
        debit(ledger, unnamed, ONE)


# -- attempts to spend twice ---------------------------------------------------------------------------


def test_a_release_that_goes_on_hands_nothing_on(ledger):
    stops(ledger, key("wide"))
    with ledger.open_release(key("wide"), ONE) as entry:
        asks(entry, 2)  # the stored answer, then one more
        assert entry.stop() is None
    assert debit(ledger, key("narrow"), ONE).cost == ONE
    assert states(ledger) == {"wide": "debited", "narrow": "debited"} and ledger.verify()


@pytest.mark.parametrize("opened", ["before", "after"])
def test_a_release_that_handed_something_on_asks_nothing_more(ledger, opened):
    """Whether it was open when the other took over, or is called again."""
    entry, _ = stops(ledger, key("wide"))
    debit(ledger, key("narrow"), Budget("gdp", 1))
    spent = account(ledger).spent
    if opened == "after":
        entry = debit(ledger, key("wide"), ONE)
        asks(entry)  # stored: free
    with pytest.raises(ReleaseChanged, match="took over what it had left"):
        asks(entry)
    assert account(ledger).spent == spent and reserved(ledger) == COST and ledger.verify()


def test_a_question_that_was_reserved_before_is_not_handed_on(ledger):
    """Another process goes on: its event stands when the debit comes, its answer does not."""
    stops(ledger, key("wide"))
    with ledger.open_release(key("wide"), ONE) as going:
        asks(going)
        question = going.ask({"ask": "more"})
        question.charge(EVENT)
        assert debit(ledger, key("narrow"), ONE).cost == ONE
        question.store(ANSWER)
    assert ledger.verify()


def test_a_question_begun_before_the_rest_was_taken_is_neither_charged_nor_answered(ledger):
    entry, _ = stops(ledger, key("wide"))
    question = entry.ask({"ask": "more"})
    debit(ledger, key("narrow"), ONE)
    with pytest.raises(ReleaseChanged):
        question.charge(EVENT)
    with pytest.raises(ReleaseChanged):
        question.store(ANSWER)
    assert reserved(ledger) == COST and ledger.verify()


def test_stopping_again_marks_and_hands_on_nothing_again(ledger):
    for _ in range(3):
        stops(ledger, key("wide"))
    debit(ledger, key("narrow"), Budget("gdp", REST, DELTA))
    _, left = stops(ledger, key("wide"))
    assert left == Budget("gdp", 0) and account(ledger).spent == ONE
    assert debit(ledger, key("more"), ONE).cost == ONE and ledger.verify()


def test_a_release_of_the_same_key_finds_its_own_stopped_entry_and_takes_nothing(ledger):
    entry, _ = stops(ledger, key("wide"))
    again = debit(ledger, key("wide"), ONE)
    assert again.replayed and again.release_id == entry.release_id and states(ledger) == {"wide": "stopped"}


def test_a_killed_release_is_not_taken_for_a_stopped_one(ledger):
    with ledger.open_release(key("wide"), ONE) as entry:
        asks(entry)
    assert debit(ledger, key("narrow"), ONE).cost == ONE


@pytest.mark.parametrize("dies", ["measured", "debit"])
def test_a_debit_that_dies_while_it_takes_over_takes_nothing(ledger, monkeypatch, dies):
    """At the record that closes the other release, or at its own: all of it is one transaction."""
    stops(ledger, key("wide"))
    module = "dpsyn_sql.ledger.stops" if dies == "measured" else "dpsyn_sql.ledger.entries"

    def append(store, kind, body):
        if kind == dies:
            raise KeyboardInterrupt
        real(store, kind, body)

    from dpsyn_sql.ledger.store import append as real

    with monkeypatch.context() as patched:
        patched.setattr(f"{module}.append", append)
        with pytest.raises(KeyboardInterrupt):
            debit(ledger, key("narrow"), ONE)
    assert states(ledger) == {"wide": "stopped"} and account(ledger).spent == ONE and ledger.verify()
    with ledger.open_release(key("wide"), ONE) as entry:
        asks(entry, 2)  # it can still go on
    assert debit(ledger, key("narrow"), ONE).cost == ONE


def test_processes_that_take_over_at_once_take_no_more_than_there_is(path):
    with closing(SqliteLedger(path)) as ledger:
        ledger.grant("people", 1, 1e-9)
        stops(ledger, key("wide"))
    fits, part = [], Budget("gdp", REST // 3)
    start = threading.Barrier(6)

    def take(number):
        with closing(SqliteLedger(path)) as own:
            start.wait()
            try:
                entry = debit(own, key(f"narrow {number}"), part)
                asks(entry, event=EVENT if part.amount >= COST else LaplaceEvent(10**6, 1))
                fits.append(number)
            except PrivacyBudgetExceeded:
                pass

    threads = [threading.Thread(target=take, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with closing(SqliteLedger(path)) as ledger:
        assert len(fits) == 3 and account(ledger).spent == ONE
        assert reserved(ledger) <= ONE.amount and ledger.verify()


@pytest.mark.parametrize("seed", range(6))
def test_on_any_history_questions_sum_to_what_is_recorded_and_that_to_the_limit(seed, tmp_path):
    """Debits, questions, stops, going on, kills and reopenings in any order, in accounts of both kinds."""
    draw, kind = random.Random(seed), "pure" if seed % 2 else "gdp"
    event = LaplaceEvent(200.0, 1) if kind == "pure" else GaussianEvent(100.0, 2)
    unit, asked, taken_over = cost_units(event, kind), 0, 0
    ledger, spent, names, entries = SqliteLedger(tmp_path / "ledger"), 0, 0, []
    ledger.grant("people", 1, 0 if kind == "pure" else 1e-9)
    limit = account(ledger).limit.amount
    for _ in range(250):
        step = draw.choice(["debit", "ask", "ask", "stop", "stop", "again", "reopen", "close"])
        try:
            if step == "debit":
                names += 1
                budget = Budget(
                    kind, draw.randrange(1, limit // 15), draw.randrange(10**7) if kind == "gdp" else 0
                )
                entry = debit(ledger, key(str(names)), budget)
                taken_over += entry.cost.amount < budget.amount
                entries.append((names, budget, entry))
            elif step == "reopen":
                ledger.close()
                ledger, entries = SqliteLedger(tmp_path / "ledger"), []
            elif entries:
                number, budget, entry = draw.choice(entries)
                if step == "ask":
                    for _ in range(draw.randrange(1, 12)):
                        asks(entry, event=event)
                        asked += 1
                elif step == "stop":
                    entry.stop()
                elif step == "again":
                    entries.append((number, budget, debit(ledger, key(str(number)), budget)))
                else:
                    entry.close_questions()
        except (PrivacyBudgetExceeded, ReleaseChanged):
            pass
        except InternalError as error:
            if "asks no more questions" not in str(error):
                raise
        now = account(ledger).spent.amount
        assert spent <= now <= limit and reserved(ledger) <= now and reserved(ledger) % unit == 0
        spent = now
    assert ledger.verify() and taken_over >= 3 and asked >= 25
    ledger.close()


# -- where nothing is handed on ------------------------------------------------------------------------


def test_accounts_and_kinds_keep_to_themselves():
    ledger = MemoryLedger()
    pure = Budget.from_epsilon(1, 0)
    stops(ledger, key("pure"), pure, event=LaplaceEvent(50.0, 1))
    assert debit(ledger, key("other", account="animals", source="main.dogs"), ONE).cost == ONE
    half = Budget("pure", pure.amount // 2)
    assert debit(ledger, key("also pure"), half).cost == Budget("pure", 0)
    charged = account(ledger).spent
    assert debit(ledger, key("gaussian"), ONE).cost == ONE  # the account counts by mu from here on
    whole = Spending("gdp")
    for one in (pure, half, ONE):
        whole.add(Charge(one))
    assert charged == pure and account(ledger).spent == whole.total  # every pure release by its whole price
    assert debit(ledger, key("pure again"), half).cost.amount > 0
    assert ledger.verify()


def test_releases_of_a_panel_neither_stop_nor_take_over():
    told = {"column": "day", "reads": "DATE", "calendar": "m", "most": 1, "index": 0, "span": 1}
    window = key("monthly", unit="id", kind="table", slice={**told, "edges": ["2013-01-01", "2013-02-01"]})
    ledger = MemoryLedger()
    stops(ledger, key("wide", unit="id"))
    with ledger.open_release(window, ONE) as entry:
        assert entry.cost == ONE
        with pytest.raises(InternalError):
            entry.stop()
    with pytest.raises(InternalError):
        Spending("gdp").add(Charge(Budget("gdp", 1), None, Budget("gdp", 2)))


# -- a ledger that says otherwise ----------------------------------------------------------------------


@pytest.fixture
def handed(path):
    """A ledger in which one release has handed a part on to another."""
    with closing(SqliteLedger(path)) as ledger:
        stops(ledger, key("wide"))
        debit(ledger, key("narrow"), Budget("gdp", REST // 2))
        assert ledger.verify()
    return path


def refused(path):
    with closing(SqliteLedger(path)) as ledger:
        with pytest.raises(LedgerDamaged):
            ledger.verify()
        with pytest.raises(LedgerDamaged):
            debit(ledger, key("more"), ONE)


@pytest.mark.parametrize(
    "change", ["amount = 0", "amount = amount + 1", "event = replace(event, 'to', 'of')"]
)
def test_a_changed_row_of_what_was_handed_on_is_found_before_anything_is_charged(handed, change):
    tamper(handed, f"UPDATE event SET {change} WHERE sequence = -1 AND ordinal = 1")
    refused(handed)


def test_a_row_that_nobody_handed_on_is_found(handed):
    with closing(sqlite3.connect(handed)) as con:
        ids = dict(con.execute("SELECT name, release_id FROM entry").fetchall())
    more = json.dumps({"event": "handed", "to": ids["narrow"]}, separators=(",", ":"))
    tamper(handed, f"INSERT INTO event VALUES (1, -1, 2, '{more}', 5, 0)")
    refused(handed)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"cost":[0,0]', '"cost":[1,0]', "the cost is not what the budget means"),
        (",1,", ",2,", "something handed on is missing"),
        ('"kind":"gdp"', '"kind":"pure"', "kind"),
    ],
)
def test_a_resealed_chain_cannot_hide_what_a_debit_took_over(handed, old, new, what):
    resealed(handed, lambda kind, body: (kind, body.replace(old, new) if '"taken"' in body else body))
    with closing(SqliteLedger(handed)) as ledger, pytest.raises(LedgerDamaged, match=what):
        ledger.verify()


def test_a_resealed_chain_cannot_take_over_from_a_release_that_went_on(handed):
    """The mark is moved to a question that was reserved before: the release never stopped there."""
    tamper(handed, "UPDATE event SET event = replace(event, ':1', ':0') WHERE sequence = -1 AND ordinal = 0")
    resealed(handed, lambda kind, body: (kind, body.replace('"after":1', '"after":0')))
    with (
        closing(SqliteLedger(handed)) as ledger,
        pytest.raises(LedgerDamaged, match="it went on before it stopped"),
    ):
        ledger.verify()


def test_the_trigger_keeps_questions_and_what_is_handed_on_within_the_debit(handed):
    with closing(sqlite3.connect(handed)) as con:
        for amount, delta in ((REST - REST // 2 + 1, 0), (0, DELTA + 1)):
            with pytest.raises(sqlite3.IntegrityError, match="events stay within the debit"):
                con.execute("INSERT INTO event VALUES (1, -1, 2, '{}', ?, ?)", (amount, delta))
