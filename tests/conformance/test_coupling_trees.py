"""The privacy proof of trees, run: a neighbour that is given the same noisy values shows the same.

Trees and leaves are asked of a table D and of a neighbour D', with the noise of the first run given to the
second. Then statements, questions, charges and answers must be equal, and the exact counts of each level may
differ by the rows of one unit only.
"""

import re

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.doors import NoNoise, NotedEntry, ReadAtOnce
from support.hierarchies import Halves, Letters

from dpsyn_sql.accounting.account import event_price
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, SelectionEvent
from dpsyn_sql.auditing.testing import RecordingNoise, ReplayedNoise
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import LeafQuery, TreeQuery
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

K = 4
KEY = 5
UNITS = {"row": PrivacyUnit(), "unit": PrivacyUnit("who", K)}
BUDGETS = {
    "gdp": Budget.from_epsilon(200, "1e-6"),  # so that nodes of a few rows are split, or not
    "pure": Budget.from_epsilon(200, 0),
}
NUMBER, TEXT = Halves("n", 5, nullable=True), Letters("s", 4)
TREES = {"numbers": (NUMBER,), "letters": (TEXT,), "both": (NUMBER, TEXT)}
SPLITTERS = ("privtree", "basic", "improved", "direct")


class Watched:
    """A counter whose exact answers are kept, with those that are no counts of disjoint sets apart."""

    def __init__(self, inner):
        self.inner, self.exact, self.scores = inner, [], []

    def nodes(self, hierarchies, nodes):
        self.exact.append(self.inner.nodes(hierarchies, nodes))
        return self.exact[-1]

    def outside(self, hierarchies):
        others = self.inner.outside(hierarchies)
        self.exact[-1] = np.concatenate((self.exact[-1], others))  # one question with the leaves before
        return others

    def largest(self, hierarchies, nodes, refined):
        self.scores.append(self.inner.largest(hierarchies, nodes, refined))
        return self.scores[-1]


def table(rows):
    con = duckdb.connect()
    con.execute("SET default_collation = 'nocase'; CREATE TABLE t (who VARCHAR, n INTEGER, s VARCHAR)")
    if rows:
        con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    return con


class Run:
    """What one table was asked and answered: trees of every kind, each with its leaves."""

    def __init__(self, con, splitter, unit, kind, noise):
        self.trace, self.answers = [], []
        engine = DuckDBEngine(con)
        engine.trace = lambda sql: self.trace.append(re.sub("[0-9a-f]{32}", "<random>", sql))
        counter = SqlDiscoveryCounter(engine, Fragment("t"), unit=unit, key=KEY)
        self.watched = Watched(counter)
        ledger = MemoryLedger()
        with ledger.open_release(ReleaseKey(None, "r", None, {}), BUDGETS[kind]) as entry:
            self.entry = NotedEntry(entry)
            door = ReadAtOnce(None, None, unit.max_rows, self.entry, noise, self.watched)
            shares = iter(BUDGETS[kind].without_thresholds().split([1] * 2 * len(TREES)))
            for trees in TREES.values():
                tree = door.ask(TreeQuery(trees, splitter, 4), next(shares))
                leaves = door.ask(LeafQuery(trees, tree.levels, tree.nodes), next(shares))
                self.answers.append((told(tree), told(leaves)))
            counter.close()
        self.events = entry.events


def told(found):
    return [plain(getattr(found, name)) for name in type(found).__slots__]


def plain(part):
    if isinstance(part, tuple):
        return [plain(one) for one in part]
    return part.tolist() if isinstance(part, np.ndarray) else part


ROW = st.tuples(
    st.sampled_from(["ann", "Ann", "bob", "", None]),
    st.one_of(st.none(), st.integers(-1, 32), st.sampled_from([5, 6])),
    st.sampled_from(["", "a", "A", "aA", "aaaa", "b", "\x03", None]),
)
NEIGHBOURS = {
    "rows": st.lists(ROW, max_size=12),
    "added": st.lists(ROW, min_size=1, max_size=3 * K),
    "place": st.integers(0, 12),
    "removed": st.booleans(),
}
QUICK = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("unit", sorted(UNITS))
@pytest.mark.parametrize("splitter", SPLITTERS)
@QUICK
@given(st.sampled_from(sorted(BUDGETS)), st.fixed_dictionaries(NEIGHBOURS))
def test_neighbours_show_the_same(splitter, unit, kind, neighbours):
    """Each in accounts that are drawn; the slow test goes through all of them."""
    check_neighbours(splitter, unit, kind, **neighbours)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("kind", sorted(BUDGETS))
@pytest.mark.parametrize("unit", sorted(UNITS))
@pytest.mark.parametrize("splitter", SPLITTERS)
@settings(QUICK, max_examples=25)
@given(**NEIGHBOURS)
def test_many_neighbours_show_the_same(splitter, unit, kind, **neighbours):
    check_neighbours(splitter, unit, kind, **neighbours)


def check_neighbours(splitter, unit, kind, rows, added, place, removed):
    added = added[:1] if unit == "row" else [("eve", *row[1:]) for row in added]
    tables = rows, [*rows[:place], *added, *rows[place:]]
    first, second = reversed(tables) if removed else tables
    recorder = RecordingNoise(ExactNoise())
    with table(first) as before, table(second) as after:
        one = Run(before, splitter, UNITS[unit], kind, recorder)
        two = Run(after, splitter, UNITS[unit], kind, ReplayedNoise(recorder.calls))
    assert one.trace == two.trace
    assert one.entry.questions == two.entry.questions
    for (_, here), (_, there) in zip(one.entry.answers, two.entry.answers, strict=True):
        assert [part.tolist() for part in here] == [part.tolist() for part in there]
    assert one.answers == two.answers
    assert one.events == two.events
    assert sum(event_price(event, kind).amount for event in one.events) <= BUDGETS[kind].amount
    drawn(one.events, recorder.calls)
    for before, after in zip(one.watched.exact, two.watched.exact, strict=True):
        assert np.abs(after - before).sum() <= UNITS[unit].max_rows
    for before, after in zip(one.watched.scores, two.watched.scores, strict=True):
        assert np.abs(after - before).max(axis=1).sum() <= UNITS[unit].max_rows


def drawn(events, calls):
    """The noise has the scales of the events, and there is one choice of the declared sensitivity a level."""
    scales = {(mechanism(event), scale(event)) for event in events}
    assert {(call.mechanism, call.scale) for call in calls} <= scales


def mechanism(event):
    return {GaussianEvent: "gaussian", SelectionEvent: "select"}.get(type(event), "laplace")


def scale(event):
    return event.sigma * event.lattice if isinstance(event, GaussianEvent) else event.scale


@pytest.mark.parametrize("kind", sorted(BUDGETS))
@pytest.mark.parametrize("splitter", SPLITTERS)
def test_a_unit_of_k_rows_changes_as_much_as_is_declared(splitter, kind):
    """All its rows in one leaf: every level, and every choice, by k."""
    rows = [(name, 5, "aA") for name in ("ann", "bob", "cy", "dan") for _ in range(K)]
    with table(rows) as before, table(rows + [("eve", 5, "aA")] * (K + 2)) as after:
        recorder = RecordingNoise(NoNoise())
        one = Run(before, splitter, UNITS["unit"], kind, recorder)
        two = Run(after, splitter, UNITS["unit"], kind, ReplayedNoise(recorder.calls))
    assert {int(np.abs(a - b).sum()) for a, b in zip(two.watched.exact, one.watched.exact, strict=True)} == {
        K
    }
    for question in one.entry.questions:
        assert declared(question) == (K**2 if question["event"] == "gaussian" else K) * levels(question)
        if "choice" in question:
            assert (question["choice"]["sensitivity"], question["choice"]["number"]) == (K, 4)
    assert one.watched.scores
    for a, b in zip(two.watched.scores, one.watched.scores, strict=True):
        assert np.abs(a - b).max(axis=1).sum() == K


def declared(question):
    return next(question[name] for name in ("l2_squared", "l1", "points_per_unit") if name in question)


def levels(question):
    """Counts that a row is in: one for the leaves, one of each level where a tree shows counts."""
    if question["what"] == "leaves" or "points_per_unit" in question:
        return 1
    return question["depth"] + (question["splitter"] == "direct")
