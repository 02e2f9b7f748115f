"""Discovery at the door: order of the steps, what is charged, what the ledger keeps."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.doors import FakeCounter, NoNoise, NotedEntry, OneRelease, ReadAtOnce

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent, cost_units
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.types import CLASSES
from dpsyn_sql.errors import BudgetError, InternalError, PrivacyBudgetExceeded, ReleaseChanged
from dpsyn_sql.planning.asking import counted_per_unit
from dpsyn_sql.planning.queries import (
    Beginning,
    ContributionQuery,
    GridQuery,
    KeyQuery,
    MarginalQuery,
    Marginals,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.private.measure.noise import ExactNoise, standard_deviation, steps_with_noise
from dpsyn_sql.private.measure.questions.columns import (
    contributions_event,
    grid_event,
    keys_event,
    least_units,
    shown_from,
)

WHOLE = Budget.from_epsilon(1, 1e-9)
SHARE = WHOLE.split([1] * 5)[0]
PURE = Budget("pure", 10**15)
PURE_SHARE = PURE.split([1] * 5)[0]
GRID = Attribute("n", "INTEGER", "numeric", edges=(0, 1, 2, 4), nullable=True)
STEPS = StepQuery("n", "INTEGER", (5, 10))
KEYS = KeyQuery("s", "VARCHAR")
ROWS = ContributionQuery(3)
TYPES = TypesQuery("s")
QUERIES = (KEYS, GridQuery(GRID), STEPS, ROWS, TYPES)


def beginnings(length=3, labels=("a", "250*"), prefixes=(3,), sql_type="VARCHAR", **changes):
    known = Attribute("s", "VARCHAR", "categorical", labels, other=True, prefixes=prefixes)
    return KeyQuery("s", sql_type, beginning=Beginning(length, replace(known, **changes)))


DOMAIN = Domain((GRID,))


class FakeColumns:
    """Keys in two parts, and everything else at hand."""

    def __init__(self, log, keys=None):
        self.log = log
        self.parts = (
            [(["b", "a", "c"], [400, 3, 60]), ([], []), (["ä", "Z"], [500, 401])] if keys is None else keys
        )

    def keys(self, query, least):
        self.log.append("count")
        for keys, units in self.parts:
            enough = [(key, count) for key, count in zip(keys, units, strict=True) if count >= least]
            yield [key for key, _ in enough], np.array([count for _, count in enough], dtype=np.int64)

    def cells(self, query):
        self.log.append("count")
        return np.array([5, 0, 9, 2])

    def types(self, query):
        self.log.append("count")
        return np.arange(len(CLASSES))

    def steps(self, query):
        self.log.append("count")
        return np.array([7, 0, 20_000])

    def contributions(self, query):
        self.log.append("count")
        return np.array([4, 0, 6])


def curator_of(log, budget=WHOLE, rows=1, keys=None):
    entry = NotedEntry(OneRelease(budget).open(), log)
    return ReadAtOnce(None, None, rows, entry, NoNoise(log), FakeColumns(log, keys)), entry


@pytest.fixture
def log():
    return []


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_charge_then_count_then_noise_then_store(log, query):
    curator, _ = curator_of(log, rows=3)
    curator.ask(query, SHARE)
    steps = [step if isinstance(step, str) else "noise" for step in log]
    assert steps[:2] == ["charge", "count"] and steps[-1] == "store"
    assert set(steps[2:-1]) == {"noise"}


def test_keys_below_the_threshold_reach_neither_answer_nor_transcript(log):
    curator, entry = curator_of(log)
    found = curator.ask(KEYS, SHARE)
    (event,) = entry.events
    assert isinstance(event, ThresholdEvent) and 3 < least_units(event) < 60 < shown_from(event) < 400
    assert found.keys == ("Z", "b", "ä") and found.values.tolist() == [401, 400, 500]
    assert (found.threshold, found.sigma) == (shown_from(event), standard_deviation(event))
    ((question, answer),) = entry.answers
    assert [part.tolist() for part in answer] == [
        [401, 400, 500],
        [1, 1, 2],
        list("Zbä".encode()),
    ]
    assert all(part.dtype == np.int64 for part in answer)
    assert question["threshold"] == event.threshold and question["attr"] == "s"


def test_the_threshold_itself_is_shown_and_one_less_is_not(log):
    event = keys_event(2, SHARE)  # of up to four rows
    keys = [(["at", "below"], [shown_from(event), shown_from(event) - 1])]
    curator, entry = curator_of(log, rows=4, keys=keys)
    assert curator.ask(KEYS, SHARE).keys == ("at",)
    assert entry.events == (event,)


def test_a_key_one_sixteenth_below_the_threshold_is_not_rounded_up_to_it(log, monkeypatch):
    """The delta that is charged is that of noise before it is rounded to whole units."""

    def one_step_less(noise, counts, event):
        return counts * event.lattice - 1

    monkeypatch.setattr("dpsyn_sql.private.measure.questions.columns.steps_with_noise", one_step_less)
    event = keys_event(2, SHARE)
    keys = [(["above", "just below"], [shown_from(event) + 1, shown_from(event)])]
    curator, entry = curator_of(log, rows=4, keys=keys)
    assert curator.ask(KEYS, SHARE).keys == ("above",)
    assert entry.events == (event,) and event.lattice == 16


def test_keys_of_each_type_come_back_as_they_are(log):
    high = 1_000_000
    for sql_type, keys in (
        ("INTEGER", [-5, 0, 10, 9]),
        ("HUGEINT", [-(2**127), 2**127 - 1]),
        ("BOOLEAN", [True, False]),
        ("VARCHAR", ["", "é", "e\u0301", "\U0001f600", "\uffff", "a'b\n", "__other__"]),
        ("ENUM('x', 'é')", ["x", "é"]),
        ("DOUBLE", [0.1, -1.5e300, 5e-324, 0.0]),
        ("DECIMAL(10,2)", [-5, 1250]),
        ("DATE", [-719162, 0]),
    ):
        curator, _ = curator_of(log, keys=[(keys, [high] * len(keys))])
        found = curator.ask(KeyQuery("s", sql_type), SHARE).keys
        wanted = sorted(keys, key=lambda key: key.encode() if isinstance(key, str) else key)
        assert list(found) == wanted and {type(key) for key in found} == {type(key) for key in keys}


def test_beginnings_are_charged_as_values_and_named_by_length_and_known_labels(log):
    curator, entry = curator_of(log, rows=9)
    found = curator.ask(beginnings(), SHARE)
    assert entry.events == (keys_event(3, SHARE),)
    assert found.keys == ("Z", "b", "ä") and found.values.tolist() == [401, 400, 500]
    ((question, _),) = entry.answers
    assert (question["what"], question["length"], len(question["known"])) == ("prefixes", 3, 64)
    assert "250*" not in json.dumps(question)


@pytest.mark.parametrize(
    "wrong",
    [
        {"length": 0},
        {"other": False},
        {"sql_type": "INTEGER"},
        {"kind": "numeric", "labels": (), "edges": (0, 1), "prefixes": ()},
    ],
)
def test_beginnings_of_what_is_no_text_are_refused_before_the_charge(log, wrong):
    curator, _ = curator_of(log)
    with pytest.raises(InternalError, match="beginnings"):
        curator.ask(beginnings(**wrong), SHARE)
    assert log == []


def test_labels_of_an_enum_are_not_in_the_question(log):
    curator, entry = curator_of(log)
    curator.ask(KeyQuery("s", "ENUM('secret')"), SHARE)
    assert "secret" not in json.dumps(entry.answers[0][0])


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=20), st.integers(1, 10**6), max_size=30))
def test_any_text_survives_the_ledger(keys):
    curator, _ = curator_of([], keys=[(list(keys), list(keys.values()))])
    found = curator.ask(KEYS, SHARE)
    shown = {key: count for key, count in keys.items() if count >= found.threshold}
    assert dict(zip(found.keys, found.values.tolist(), strict=True)) == shown
    assert list(found.keys) == sorted(found.keys, key=str.encode)


def test_events_and_noise_are_those_of_the_sensitivities(log):
    curator, entry = curator_of(log, rows=9)
    answers = [curator.ask(query, SHARE) for query in QUERIES]
    keys, grid, steps, rows, types = entry.events
    assert types == grid_event(3, SHARE) and types.l2_squared == 3 and types.lattice == 16
    assert [answers[place].sigma for place in (1, 2, 3, 4)] == list(
        map(standard_deviation, (grid, steps, rows, types))
    )
    assert answers[4].attrs == ("s",)
    assert answers[4].values.tolist() == list(range(len(CLASSES)))
    assert keys == keys_event(3, SHARE) and keys.keys_per_unit == 3
    assert grid == types and answers[1].attrs == ("n",)
    assert steps == rows == contributions_event(SHARE) and steps.l2_squared == 1
    assert answers[2].values.tolist() == [7, 0, 20_000] and answers[2].steps == (5, 10)
    assert answers[1].values.tolist() == [5, 0, 9, 2] and answers[3].values.tolist() == [4, 0, 6]


def test_a_unit_counts_for_the_root_of_its_rows():
    ks = (1, 2, 4, 5, 9, 10, 100, 2**31)
    for ask in ("keys", "prefixes", "values", "grid", "parts", "cells", "types"):
        assert [counted_per_unit(ask, k) for k in ks] == [1, 2, 2, 3, 3, 4, 10, 46_341]
    assert {counted_per_unit(ask, k) for ask in ("steps", "contributions") for k in ks} == {1}


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("share", [SHARE, PURE_SHARE, Budget("gdp", 7), Budget("gdp", 7), Budget("pure", 3)])
def test_noise_fits_its_share_and_wastes_little(rows, share):
    for event in (grid_event(rows, share), contributions_event(share)):
        cost = cost_units(event, share.kind)
        assert share.amount * (1 - 1e-9) - 1 <= cost <= share.amount
        name = "sigma" if share.gaussian else "scale"
        smaller = replace(event, **{name: getattr(event, name) * (1 - 1e-6)})
        assert cost_units(smaller, share.kind) > share.amount or share.amount < 10
    assert _sensitivity(grid_event(rows, share)) == rows
    assert _sensitivity(contributions_event(share)) == 1


def _sensitivity(event):
    if isinstance(event, GaussianEvent):
        return event.l2_squared
    return event.l1


@pytest.mark.parametrize("keys", [1, 2, 10])
@pytest.mark.parametrize("parts", [1, 21, 400])
def test_the_threshold_is_the_least_whose_delta_fits(keys, parts):
    share = WHOLE.split([1] * parts)[0]
    event = keys_event(keys, share)
    assert event.delta_units <= share.delta
    assert event.lattice == 16
    assert replace(event, threshold=event.threshold - 1).delta_units > share.delta
    assert cost_units(event, "gdp") <= share.amount


@pytest.mark.parametrize("parts", [1, 21, 400])
def test_values_of_too_few_units_are_never_shown_whatever_the_noise(log, parts):
    """What is below the public number has no noise, and one that a unit brings to it is shown no more often than
    the event's delta says: the same tail, moved with the number."""
    event = keys_event(1, WHOLE.split([1] * parts)[0])
    least = least_units(event)
    assert 1 <= least <= event.threshold // 16 + 1
    assert shown_from(event) - least == event.threshold - 1

    class Asked(FakeColumns):
        def keys(self, query, least):
            self.least = least
            return iter([(["few"], np.array([least - 1]))])

    columns = Asked(log)
    door = ReadAtOnce(None, None, 1, NotedEntry(OneRelease(WHOLE).open(), log), NoNoise(log), columns)
    with pytest.raises(InternalError, match="too few units"):
        door.ask(KEYS, WHOLE.split([1] * parts)[0])
    assert columns.least == least and not any(isinstance(step, tuple) for step in log)


def test_without_delta_keys_are_refused_before_the_debit(log):
    for budget, share in ((PURE, PURE_SHARE), (WHOLE, SHARE.without_thresholds())):
        curator, entry = curator_of(log, budget)
        with pytest.raises(BudgetError, match="delta"):
            curator.ask(KEYS, share)
        assert log == [] and entry.events == ()


def test_pure_budgets_pay_for_everything_else(log):
    curator, entry = curator_of(log, PURE, rows=9)
    for query in QUERIES[1:]:
        curator.ask(query, PURE_SHARE)
    grid, steps, rows, types = entry.events
    assert (grid.l1, steps.l1, rows.l1, types.l1) == (3, 1, 1, 3)
    assert {type(grid), type(steps), type(rows), type(types)} == {LaplaceEvent}
    assert "gaussian" not in [step[0] for step in log if isinstance(step, tuple)]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_nothing_to_spend(log, query):
    curator, _ = curator_of(log)
    with pytest.raises(BudgetError):
        curator.ask(query, Budget("gdp", 0, 10**6))
    assert log == []


ONE = keys_event(1, SHARE)
TWICE = Budget("gdp", 2 * cost_units(ONE, "gdp"), 2 * ONE.delta_units)


@pytest.mark.parametrize(
    "debit", [Budget("gdp", TWICE.amount, TWICE.delta - 1), Budget("gdp", TWICE.amount - 1, TWICE.delta)]
)
def test_beyond_amount_or_delta_nothing_is_counted(log, debit):
    curator, entry = curator_of(log, debit)
    curator.ask(KEYS, SHARE)
    log.clear()
    with pytest.raises(PrivacyBudgetExceeded):
        curator.ask(KEYS, SHARE)
    assert log == [] and len(entry.events) == 1


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_a_replay_gives_the_same_bytes_and_counts_nothing(log, query):
    release = OneRelease(WHOLE)
    first = ReadAtOnce(None, None, 3, release.open(), ExactNoise(), FakeColumns(log)).ask(query, SHARE)
    log.clear()
    again = release.open()
    second = ReadAtOnce(None, None, 3, again, NoNoise(log), FakeColumns(log)).ask(query, SHARE)
    assert log == [] and len(again.events) == 1
    for name in type(first).__slots__:
        one, two = getattr(first, name), getattr(second, name)
        assert one.tobytes() == two.tobytes() if isinstance(one, np.ndarray) else one == two


@pytest.mark.parametrize(
    ("query", "other"),
    [
        (KEYS, KeyQuery("s", "VARCHAR", longest=7)),
        (KEYS, KeyQuery("t", "VARCHAR")),
        (GridQuery(GRID), GridQuery(Attribute("n", "INTEGER", "numeric", edges=(0, 1, 3, 4), nullable=True))),
        (GridQuery(GRID), GridQuery(GRID, (0,) * GRID.regular)),
        (STEPS, StepQuery("n", "INTEGER", (10,))),
        (KEYS, KeyQuery("s", "INTEGER")),
        (KEYS, beginnings()),
        (beginnings(), beginnings(length=2)),
        (beginnings(), beginnings(labels=("b", "250*"))),
        (beginnings(), beginnings(prefixes=())),
        (ROWS, ContributionQuery(2)),
    ],
)
def test_a_replay_that_asks_something_else_stops(log, query, other):
    release = OneRelease(WHOLE)
    first, again = (
        ReadAtOnce(None, None, 3, release.open(), NoNoise(log), FakeColumns(log)) for _ in range(2)
    )
    first.ask(query, SHARE)
    with pytest.raises(ReleaseChanged, match="question 0 differs"):
        again.ask(other, SHARE)


@pytest.mark.parametrize("wrong", [np.array([5, 0, 9]), np.array([5.0, 0, 9, 2])])
def test_missing_codes_or_floats_never_reach_the_noise(log, wrong):
    entry, columns = NotedEntry(OneRelease(WHOLE).open(), log), FakeColumns(log)
    columns.cells = columns.types = columns.steps = lambda query: wrong
    curator = ReadAtOnce(None, None, 1, entry, NoNoise(log), columns)
    for query in (GridQuery(GRID), TYPES, StepQuery("n", "INTEGER", (5, 10, 50))):
        with pytest.raises(InternalError):
            curator.ask(query, SHARE)
    assert log == ["charge"] * 3 and entry.answers == []


def test_marginals_follow_once_the_domain_is_complete(log):
    curator, entry = curator_of(log)
    with pytest.raises(InternalError):
        curator.ask(Marginals([MarginalQuery(("n",))]), SHARE)
    assert entry.events == ()
    curator.ask(ROWS, SHARE)
    curator.open(FakeCounter(lambda query: np.array([1, 2, 3, 4])), DOMAIN)
    (table,) = curator.ask(Marginals([MarginalQuery(("n",))]), SHARE)
    assert table.values.tolist() == [1, 2, 3, 4] and curator.measurements == (table,)
    assert len(entry.events) == 2 == len(entry.answers)
    with pytest.raises(InternalError):
        curator.ask(ROWS, SHARE)


@pytest.mark.parametrize("lattice", [1, 16])
def test_a_value_of_one_unit_alone_appears_as_often_as_delta_says(lattice):
    """A threshold low enough to be reached: the frequency against the charged probability."""
    event = ThresholdEvent(2.0, 1, 5, lattice)
    draws = 40_000
    noisy = steps_with_noise(ExactNoise(), np.ones(draws, dtype=np.int64), event)
    charged = event.delta_units / 1e18
    shown = int((noisy >= event.threshold * lattice).sum())
    assert abs(shown - draws * charged) < 6 * (draws * charged) ** 0.5
