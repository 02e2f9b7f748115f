"""The order at the door: stored answer, charge, count, noise, store."""

import typing

import numpy as np
import pytest
from support.doors import FakeCounter, NoNoise, NotedEntry, OneRelease, ReadAtOnce, opened

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import BudgetError, InternalError, PrivacyBudgetExceeded, ReleaseChanged
from dpsyn_sql.planning.queries import Choice, Distances, GridQuery, MarginalQuery, Marginals

DOMAIN = Domain(
    tuple(
        Attribute(name, "VARCHAR", "categorical", labels=tuple("xyz"[:size]))
        for name, size in (("a", 2), ("b", 3))
    )
)
A, AB = MarginalQuery(("a",)), MarginalQuery(("a", "b"))


@pytest.fixture
def log():
    return []


def tens(query):
    return np.full(query.shape(DOMAIN), 10, dtype=np.int64)


def curator_of(log, entry, rows=1, table=tens):
    return ReadAtOnce(FakeCounter(table, log), DOMAIN, rows, entry, NoNoise(log, more=16))


def door_of(log, entry):
    return opened(FakeCounter(tens, log), DOMAIN, 1, entry, NoNoise(log, more=16))


def curator_with(log, budget, rows=1, table=tens):
    entry = OneRelease(budget).open()
    return curator_of(log, entry, rows, table), entry


def test_charged_then_counted_then_noised_then_stored(log):
    curator, entry = curator_with(log, Budget("gdp", 10**13))
    tables = curator.ask(Marginals([A, AB]), Budget("gdp", 10**13))
    assert [type(step).__name__ for step in log] == ["str", "tuple"]
    assert entry.events == (GaussianEvent(log[1][1] / 16, 2, 16),)
    assert [table.values.tolist() for table in tables] == [[11, 11], [[11, 11, 11], [11, 11, 11]]]
    assert log[1][1] / 16 == pytest.approx((2 / (2 * 0.01) + 1 / 64) ** 0.5)
    assert tables[0].sigma == pytest.approx(((log[1][1] / 16) ** 2 + 1 / 12) ** 0.5)
    assert list(curator.measurements) == tables


def test_pure_budget_uses_laplace_noise_with_l1_sensitivity(log):
    curator, entry = curator_with(log, Budget("pure", 10**15))
    curator.ask(Marginals([A, AB]), Budget("pure", 10**15))
    assert entry.events == (LaplaceEvent(2.0, 2),)


def test_several_rows_a_unit_scale_the_sensitivity(log):
    curator, entry = curator_with(log, Budget("gdp", 10**13), rows=3)
    curator.ask(Marginals([A, AB]), Budget("gdp", 10**13))
    assert entry.events[0].l2_squared == 2 * 9


def test_an_overdrawn_question_is_not_counted(log):
    curator, entry = curator_with(log, Budget("gdp", 10**13))
    curator.ask(Marginals([A]), Budget("gdp", 6 * 10**12))
    log.clear()
    with pytest.raises(PrivacyBudgetExceeded):
        curator.ask(Marginals([A]), Budget("gdp", 6 * 10**12))
    assert log == [] and len(entry.events) == 1


def test_questions_asked_together_are_all_charged_before_one_is_counted(log):
    """They are the questions that one by one would be: equal numbers, events and answers, and each replays the other."""
    release, share = OneRelease(Budget("gdp", 10**13)), Budget("gdp", 4 * 10**12)
    asked = [(Marginals([A]), share), (Marginals([AB]), share)]
    entry = NotedEntry(release.open(), log)
    together = door_of(log, entry)
    handles = [together.ask(*one) for one in asked]
    assert log == [] and entry.events == ()
    answers = [handle.read() for handle in handles[::-1]][::-1]
    assert [step if isinstance(step, str) else "noise" for step in log] == ["charge"] * 2 + [
        "count",
        "noise",
    ] * 2 + ["store"] * 2
    alone = OneRelease(Budget("gdp", 10**13))
    one_by_one = curator_of([], alone.open())
    expected = [one_by_one.ask(question, budget) for question, budget in asked]
    assert entry.events == alone.open().events and len(entry.events) == together.events == 2
    assert [table.values.tolist() for answer in answers for table in answer] == [
        table.values.tolist() for answer in expected for table in answer
    ]
    log.clear()
    replayed, again = curator_of(log, release.open()), curator_of(log, alone.open())
    assert [replayed.ask(*one)[0].values.tolist() for one in asked] == [
        answer[0].values.tolist() for answer in answers
    ]
    assert [len(again.ask(*one)) for one in asked] == [1, 1] and log == []


def test_a_run_that_ended_between_two_questions_goes_on_with_the_second(log):
    release, share = OneRelease(Budget("gdp", 10**13)), Budget("gdp", 4 * 10**12)
    first = curator_of([], release.open(), table=lambda query: 5 * tens(query)).ask(Marginals([A]), share)
    door = door_of(log, release.open())
    handles = [door.ask(Marginals([query]), share) for query in (A, AB)]
    answers = [handle.read() for handle in handles]
    assert (answers[0][0].values == first[0].values).all() and answers[1][0].values.max() < 20
    assert len(log) == 2 and len(release.open().events) == 2


def test_of_questions_asked_together_that_cost_too_much_none_is_charged_or_counted(log):
    entry = OneRelease(Budget("gdp", 10**13)).open()
    door = door_of(log, entry)
    handles = [door.ask(Marginals([A]), Budget("gdp", 6 * 10**12)) for _ in range(2)]
    with pytest.raises(PrivacyBudgetExceeded):
        handles[0].read()
    assert log == [] and entry.events == ()


def test_an_answer_that_nobody_reads_is_neither_charged_nor_counted(log):
    entry = OneRelease(Budget("gdp", 10**13)).open()
    door = door_of(log, entry)
    left = door.ask(Marginals([A]), Budget("gdp", 10**12))
    door.open(lambda steps: FakeCounter(tens, log), DOMAIN)
    door.ask(Marginals([AB]), Budget("gdp", 10**12)).read()
    with pytest.raises(InternalError, match="after its table was left"):
        left.read()
    assert len(entry.events) == 1 and log[0] == "count" and len(log) == 2


def test_a_repeated_marginal_counts_each_time(log):
    curator, entry = curator_with(log, Budget("gdp", 10**13))
    curator.ask(Marginals([A, A, A]), Budget("gdp", 10**13))
    assert entry.events[0].l2_squared == 3


def test_a_stored_answer_is_replayed_without_counting(log):
    release = OneRelease(Budget("gdp", 10**13))
    first = curator_of(log, release.open()).ask(Marginals([A]), Budget("gdp", 10**13))
    log.clear()
    again = curator_of(log, release.open()).ask(Marginals([A]), Budget("gdp", 10**13))
    assert log == [] and (again[0].values == first[0].values).all()


def test_a_replay_that_asks_something_else_stops(log):
    release = OneRelease(Budget("gdp", 10**13))
    curator_of(log, release.open()).ask(Marginals([A]), Budget("gdp", 10**13))
    with pytest.raises(ReleaseChanged, match="question 0 differs"):
        curator_of(log, release.open()).ask(Marginals([AB]), Budget("gdp", 10**13))


def test_two_doors_of_one_release_never_collide(log):
    """As for two tables: equal questions have numbers of their own, and a replay keeps the order of both doors."""
    release, share = OneRelease(Budget("gdp", 10**13)), Budget("gdp", 2 * 10**12)
    tables = (tens, lambda query: 5 * tens(query))
    order = ((0, A), (1, A), (1, AB), (0, AB))

    def asked(order):
        entry = release.open()
        doors = [curator_of(log, entry, table=table) for table in tables]
        return [doors[side].ask(Marginals([query]), share)[0].values.tolist() for side, query in order], entry

    first, entry = asked(order)
    assert [np.max(table) for table in first] == [11, 51, 51, 11] and len(entry.events) == 4
    log.clear()
    assert asked(order)[0] == first and log == []
    with pytest.raises(ReleaseChanged, match="question 1 differs"):
        asked((order[0], order[2]))
    assert log == []


@pytest.mark.parametrize(
    "broken", [np.zeros(1, dtype=np.int64), np.zeros(2), np.zeros((2, 1), dtype=np.int64)]
)
def test_missing_cells_or_floats_never_reach_the_noise(log, broken):
    curator, _ = curator_with(log, Budget("gdp", 10**13), table=lambda query: broken)
    with pytest.raises(InternalError):
        curator.ask(Marginals([A]), Budget("gdp", 10**13))
    assert log == ["count"]


def test_no_questions_after_closing(log):
    curator, entry = curator_with(log, Budget("gdp", 10**13))
    entry.close_questions()
    with pytest.raises(InternalError):
        curator.ask(Marginals([A]), Budget("gdp", 10**12))
    assert log == []


def test_repr_hides_everything(log):
    curator, _ = curator_with(log, Budget("gdp", 10**13))
    assert repr(curator) == "LocalCurator(questions=0)"
    assert "FakeCounter" not in repr(curator._private_side) + repr(curator._private_side.counts)


class Lying(list):
    """Says that it is shorter than it is."""

    def __len__(self):
        return 1


class Watching(np.ndarray):
    """Is asked to compute with whatever an operator meets."""

    seen: typing.ClassVar[list] = []

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        self.seen.append(np.asarray(inputs[0]).tolist())
        plain = [np.asarray(one) for one in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)


def test_a_list_that_lies_about_its_length_is_charged_for_all_it_asks(log):
    curator, entry = curator_with(log, Budget("gdp", 10**13))
    assert len(curator.ask(Marginals(Lying([A, A, A])), Budget("gdp", 10**13))) == 3
    assert entry.events[0].l2_squared == 3


@pytest.mark.parametrize("question", [Distances, Choice])
def test_no_operator_of_a_reference_sees_the_exact_table(log, question):
    curator, _ = curator_with(log, Budget("gdp", 10**13))
    with pytest.raises(InternalError, match="plain numpy array"):
        curator.ask(question([A], [np.zeros(2, np.int64).view(Watching)]), Budget("gdp", 10**13))
    assert log == [] and [10, 10] not in Watching.seen


@pytest.mark.parametrize(("kind", "other"), [("gdp", "pure"), ("pure", "gdp")])
def test_a_budget_of_another_kind_than_the_release_is_refused(log, kind, other):
    """Permute-and-flip, the choice of pure budgets, is not worth the rho of an exponential mechanism."""
    curator, entry = curator_with(log, Budget(kind, 10**15))
    with pytest.raises(InternalError, match=f"{kind} budgets was asked for {other}"):
        curator.ask(Choice([A, A], [np.zeros(2, np.int64)] * 2), Budget(other, 10**13))
    assert log == [] and entry.events == ()


def test_a_method_cannot_change_the_answers_that_a_release_shows(log):
    curator, _ = curator_with(log, Budget("gdp", 10**13))
    (table,) = curator.ask(Marginals([A]), Budget("gdp", 10**13))
    with pytest.raises(ValueError, match="read-only"):
        table.values[:] = 0
    assert curator.measurements[0].values.tolist() == [11, 11]


class Shifty(MarginalQuery):
    """Shows the door good bins, and others to whoever counts: then row 'y' is in two of them."""

    looks = 0

    def __getattribute__(self, name):
        if name != "maps":
            return super().__getattribute__(name)
        Shifty.looks += 1
        return ((0, 1),) if Shifty.looks <= 6 else ((2, 0),)


@pytest.mark.parametrize("query", [Shifty(("a",)), MarginalQuery(("a",), ([0, 0],))])
def test_only_marginals_that_cannot_change_are_asked(log, query):
    curator, _ = curator_with(log, Budget("gdp", 10**13))
    for question in (Marginals([query]), Distances([query], [np.zeros(2, np.int64)])):
        with pytest.raises(InternalError, match="cannot change"):
            curator.ask(question, Budget("gdp", 10**12))
    assert log == []


def test_what_is_no_question_and_what_has_no_budget_is_refused_and_nothing_is_counted(log):
    curator, entry = curator_with(log, Budget("gdp", 10**13))
    nothing, reference = Budget("gdp", 0), tens(A)
    with pytest.raises(InternalError, match="no such question"):
        curator.ask("how many rows?", Budget("gdp", 1))
    for question in (Marginals([A]), Distances([A], [reference]), Choice([A], [reference])):
        with pytest.raises(BudgetError, match="raise epsilon"):
            curator.ask(question, nothing)
    assert log == [] and entry.events == ()


class Units:
    """A counter of one answer to one kind of question of discovery."""

    def __init__(self, log, units):
        self.log, self.units = log, units

    def cells(self, query):
        self.log.append(self.units)
        return np.full(query.grid.size, self.units, dtype=np.int64)


def test_discovery_goes_from_table_to_table_until_the_domain_is_complete(log):
    """Each table has its own counter, and its own bound on what a unit counts for."""
    entry = OneRelease(Budget("pure", 10**15)).open()
    share = Budget("pure", 10**14)
    curator = ReadAtOnce(None, None, 1, entry, NoNoise(more=16), Units(log, 5))
    grid = GridQuery(Attribute("n", "INTEGER", "numeric", edges=(0, 1, 2, 3, 4)))
    curator.ask(grid, share)
    curator.discover(Units(log, 7), 2)
    curator.ask(grid, share)
    assert log == [5, 7]
    assert [event.l1 for event in entry.events] == [1, 2]
    curator.open(FakeCounter(tens, log), DOMAIN, 3)
    with pytest.raises(InternalError, match="once the domain is complete"):
        curator.discover(Units(log, 9), 1)
    with pytest.raises(InternalError, match="once the domain is complete"):
        curator.ask(grid, share)
    curator.ask(Marginals([A]), share)
    curator.open(FakeCounter(tens, log), DOMAIN, 4)
    curator.ask(Marginals([A]), share)
    assert [event.l1 for event in entry.events] == [1, 2, 3, 4]
