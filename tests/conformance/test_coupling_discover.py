"""The privacy proof of discovery, run: a neighbour that is given the same answers shows the same.

All questions of discovery are asked of a table D and of a neighbour D'. Noise is coupled: what one run was answered
the other is answered too, and a value that only one of them has stays below the threshold (that it does
not is what delta is charged for). Then statements, questions, charges and answers must be equal, and the
exact counts may differ by the declared sensitivities only.
"""

import math
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.doors import NotedEntry, ReadAtOnce

from dpsyn_sql.accounting.account import event_price
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.grids import grid_attribute, grid_cuts, special_cuts
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.auditing.testing import RecordingNoise, ReplayedNoise
from dpsyn_sql.discovery.attributes import likely_steps, steps_of
from dpsyn_sql.discovery.learn import UNITS_IN_ALL
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.planning.asking import counted_per_unit
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.planning.queries import (
    Beginning,
    ContributionQuery,
    GridQuery,
    KeyQuery,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.private.measure.questions.columns import keys_event, least_units, shown_from
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

K = 4
KEY = 5
UNITS = {"row": PrivacyUnit(), "unit": PrivacyUnit("who", K)}
BUDGETS = {
    "gdp": Budget.from_epsilon(3, "1e-6"),
    "pure": Budget.from_epsilon(3, 0),
}
INTEGER, DOUBLE = parse_type("INTEGER"), parse_type("DOUBLE")
KNOWN = Attribute("s", "VARCHAR", "categorical", ("long", "A"), other=True)
DECLARED = replace(KNOWN, labels=("20*", "7*", "a"), prefixes=(2, 1))
KNOWN_STEMS = replace(KNOWN, labels=("a", "20*"), prefixes=(2,), nullable=True)
FINE = tuple(Fraction(cut) for cut in (-4, -3, -1, 0, 1, 5, 6, 12))


def questions(unit, kind, labels):
    """Every question that a table of these columns can be asked."""
    asked = [
        KeyQuery("s", "VARCHAR", longest=3),
        KeyQuery("s", "VARCHAR", longest=3),  # again
        KeyQuery("e", "ENUM(" + ", ".join(f"'{label}'" for label in labels) + ")"),
        KeyQuery("n", "INTEGER"),
        KeyQuery("x", "DOUBLE"),
        GridQuery(grid_attribute("n", "INTEGER", grid_cuts(INTEGER))),
        GridQuery(grid_attribute("x", "DOUBLE", grid_cuts(DOUBLE))),
        GridQuery(grid_attribute("n", "INTEGER", FINE)),
        GridQuery(UNITS_IN_ALL),
        *(
            GridQuery(grid_attribute(name, kind.text, cuts), owners)
            for name, kind, strength in (("n", INTEGER, 10), ("n", INTEGER, 100), ("x", DOUBLE, 1000))
            for cuts, owners in [special_cuts(kind, None, None, strength)]
        ),
        StepQuery("x", "DOUBLE", likely_steps(DOUBLE)),
        StepQuery("n", "INTEGER", steps_of(INTEGER)),
        StepQuery("x", "DOUBLE", steps_of(DOUBLE)),
        TypesQuery("s"),
        GridQuery(DECLARED),
        KeyQuery("s", "VARCHAR", beginning=Beginning(2, KNOWN)),
        KeyQuery("s", "VARCHAR", beginning=Beginning(1, KNOWN_STEMS)),
        ContributionQuery(K),
    ]
    if unit.column is None:
        asked = asked[:-1]
    return asked if kind != "pure" else [query for query in asked if not isinstance(query, KeyQuery)]


class Watched:
    """A counter whose exact answers are kept, and which says whose counts go to the noise next."""

    def __init__(self, inner):
        self.inner, self.exact, self.things = inner, [], None

    def keys(self, query, least):
        """What is above the number that a key needs to be counted: less counts as nothing."""
        counted = {}
        self.exact.append(counted)
        for keys, units in self.inner.keys(query, least):
            counted.update(zip(keys, (units - least + 1).tolist(), strict=True))
            self.things = [(query.attr, key) for key in keys]
            yield keys, units

    def cells(self, query):
        return self._kept(self.inner.cells(query))

    def types(self, query):
        return self._kept(self.inner.types(query))

    def contributions(self, query):
        return self._kept(self.inner.contributions(query))

    def steps(self, query):
        return self._kept(self.inner.steps(query))

    def _kept(self, counts):
        self.exact.append(dict(enumerate(counts.tolist())))
        self.things = None
        return counts


class Coupled:
    """Answers by the key of the count, whatever the count is; all else as recorded or replayed."""

    def __init__(self, inner, watched, answers):
        self.inner, self.watched, self.answers, self.given = inner, watched, answers, []

    def gaussian(self, values, sigma):
        self.given.append((len(self.watched.exact) - 1, values, sigma))
        if self.watched.things is None:
            return self.inner.gaussian(values, sigma)
        return np.array([self.answers.get(key, -(10**6)) for key in self.watched.things], dtype=np.int64)

    def laplace(self, values, scale):
        self.given.append((len(self.watched.exact) - 1, values, scale))
        return self.inner.laplace(values, scale)


def table(rows, labels):
    con = duckdb.connect()
    con.execute("SET default_collation = 'nocase'")
    listed = ", ".join(f"'{label}'" for label in labels)
    con.execute(f"CREATE TABLE t (who VARCHAR, s VARCHAR, e ENUM({listed}), n INTEGER, x DOUBLE)")
    if rows:
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    return con


def least_of(unit, kind):
    """Units that a key needs to be counted; no key is, where delta is 0."""
    if kind == "pure":
        return 1
    share = BUDGETS[kind].split([1] * len(questions(unit, kind, ("p",))))[0]
    return least_units(keys_event(counted_per_unit("keys", unit.max_rows), share))


def beside(unit, rows, kind):
    """Units that have these rows too: one less than a key needs to be counted."""
    return [(f"unit {number}", *row[1:]) for number in range(least_of(unit, kind) - 1) for row in rows]


def counted(con, labels, unit, kind):
    """The keys, with their columns, that enough units count for."""
    counter = SqlDiscoveryCounter(DuckDBEngine(con), Fragment("t"), unit=unit, key=KEY)
    asked, least = questions(unit, kind, labels), least_of(unit, kind)
    asked = [query for query in asked if isinstance(query, KeyQuery)]
    return {(query.attr, key) for query in asked for keys, _ in counter.keys(query, least) for key in keys}


class Run:
    """What one table was asked and answered."""

    def __init__(self, con, labels, unit, kind, noise, answers):
        self.trace, self.answers = [], []
        engine = DuckDBEngine(con)
        engine.trace = lambda sql: self.trace.append(re.sub("[0-9a-f]{32}", "<random>", sql))
        self.watched = Watched(SqlDiscoveryCounter(engine, Fragment("t"), unit=unit, key=KEY))
        source = Coupled(noise, self.watched, answers)
        ledger = MemoryLedger()
        with ledger.open_release(ReleaseKey(None, "r", None, {}), BUDGETS[kind]) as entry:
            self.entry = NotedEntry(entry)
            door = ReadAtOnce(None, None, unit.max_rows, self.entry, source, self.watched)
            asked = questions(unit, kind, labels)
            for query, share in zip(asked, BUDGETS[kind].split([1] * len(asked)), strict=True):
                self.answers.append(told(door.ask(query, share)))
        self.events, self.given = entry.events, source.given


def run_on(rows, labels, unit, kind):
    with table(rows, labels) as con:
        return Run(con, labels, unit, kind, ExactNoise(), {})


def told(found):
    parts = [getattr(found, name) for name in type(found).__slots__ if name != "query"]
    return [part.tolist() if isinstance(part, np.ndarray) else part for part in parts]


NAMES = st.sampled_from(["ann", "Ann", "bob", "", None])
TEXTS = ["a", "A", "é", "e\u0301", "", "long", "\x00", "'", None, "7", " 7.50", "2020-01-31", "1e999", "NA"]
ROW = st.tuples(
    NAMES,
    st.sampled_from(TEXTS),
    st.sampled_from(["p", "P", None]),
    st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1), st.integers(-5, 12)),
    st.one_of(st.none(), st.floats(), st.sampled_from([math.nan, math.inf, 0.0, -0.0, 0.3])),
)
ANSWERS = st.dictionaries(
    st.one_of(st.sampled_from([text for text in TEXTS if text is not None]), st.integers(-5, 12)),
    st.sampled_from([10**5, 10**6, -3]),
)


NEIGHBOURS = {
    "rows": st.lists(ROW, max_size=8),
    "added": st.lists(ROW, min_size=1, max_size=3 * K),
    "place": st.integers(0, 8),
    "removed": st.booleans(),
    "answers": ANSWERS,
}
QUICK = settings(max_examples=2, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("kind", sorted(BUDGETS))
@pytest.mark.parametrize("unit", sorted(UNITS))
@QUICK
@given(**NEIGHBOURS)
def test_neighbours_show_the_same(unit, kind, **neighbours):
    check_neighbours(unit, kind, **neighbours)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("kind", sorted(BUDGETS))
@pytest.mark.parametrize("unit", sorted(UNITS))
@settings(QUICK, max_examples=25)
@given(**NEIGHBOURS)
def test_many_neighbours_show_the_same(unit, kind, **neighbours):
    check_neighbours(unit, kind, **neighbours)


def check_neighbours(unit, kind, rows, added, place, removed, answers):
    added = added[:1] if unit == "row" else [("eve", *row[1:]) for row in added]
    tables = rows, [*rows[:place], *added, *rows[place:]]
    first, second = reversed(tables) if removed else tables
    check(UNITS[unit], kind, first, second, answers)


def check(unit, kind, first, second, answers, labels=(("p", "P", "q"), ("p", "P"))):
    recorder = RecordingNoise(ExactNoise())
    with table(first, labels[0]) as before, table(second, labels[1]) as after:
        # What is counted in only one of the two tables stays below the threshold.
        present = counted(before, labels[0], unit, kind) & counted(after, labels[1], unit, kind)
        shared = {(attr, key): answers[key] for attr, key in present if key in answers}
        one = Run(before, labels[0], unit, kind, recorder, shared)
        two = Run(after, labels[1], unit, kind, ReplayedNoise(recorder.calls), shared)
    assert [sql for sql in one.trace if "dpsyn_" not in sql] == [
        sql for sql in two.trace if "dpsyn_" not in sql
    ]
    assert one.trace == two.trace
    assert one.entry.questions == two.entry.questions
    for (_, here), (_, there) in zip(one.entry.answers, two.entry.answers, strict=True):
        assert [part.tolist() for part in here] == [part.tolist() for part in there]
    assert one.answers == two.answers
    assert one.events == two.events
    for run in (one, two):
        asked_for(run, kind)
    whole = [event_price(event, kind) for event in one.events]
    assert sum(price.amount for price in whole) <= BUDGETS[kind].amount
    assert sum(price.delta for price in whole) <= BUDGETS[kind].delta
    for event, question, before, after in zip(
        one.events, one.entry.questions, one.watched.exact, two.watched.exact, strict=True
    ):
        bounded(event, question, before, after, counted_per_unit(question["what"], unit.max_rows))


def asked_for(run, kind):
    """The noise is that of the events: in a GDP account it comes in sixteenths of a row."""
    assert {place for place, _, _ in run.given} <= set(range(len(run.events)))
    for place, values, scale in run.given:
        event = run.events[place]
        if isinstance(event, LaplaceEvent):
            assert scale == event.scale
            continue
        assert event.lattice == (16 if kind == "gdp" else 1)
        assert scale == event.sigma * event.lattice and not (values % event.lattice).any()
        if not isinstance(event, ThresholdEvent):
            assert (values // event.lattice).tolist() == list(run.watched.exact[place].values())


def bounded(event, question, before, after, k):
    """Counts over the union of what either table has; what is missing counts nothing."""
    change = Counter(after)
    change.subtract(before)
    sizes = [abs(value) for value in change.values() if value]
    assert max(sizes, default=0) <= 1 and len(sizes) <= k
    squared, absolute = sum(size**2 for size in sizes), sum(sizes)
    if isinstance(event, ThresholdEvent):
        assert squared <= event.l2_squared == event.keys_per_unit
        assert event.delta_units < DELTA_UNITS
    elif isinstance(event, GaussianEvent):
        assert squared <= event.l2_squared
    else:
        assert isinstance(event, LaplaceEvent) and absolute <= event.l1


@pytest.mark.parametrize("kind", sorted(BUDGETS))
def test_a_unit_of_k_different_rows_changes_as_much_as_is_declared(kind):
    rows = [("ann", "a", "p", 1, 0.5)]
    eve = [("eve", text, label, n, x) for text, label, n, x in (("bb", "p", 2, 0.125), ("71", "P", 10, 7.0))]
    rows += beside(UNITS["unit"], eve, kind)
    one = run_on(rows, ("p", "P"), UNITS["unit"], kind)
    two = run_on(rows + eve, ("p", "P"), UNITS["unit"], kind)
    for event, question, before, after in zip(
        one.events, one.entry.questions, one.watched.exact, two.watched.exact, strict=True
    ):
        changed = sum(abs(after.get(key, 0) - before.get(key, 0)) for key in {*before, *after})
        if question.get("attr") == UNITS_IN_ALL.name:  # all rows of a unit are in one cell
            assert changed == 1
            continue
        assert changed == counted_per_unit(question["what"], K)
        if isinstance(event, GaussianEvent | ThresholdEvent):
            assert event.l2_squared == changed
        else:
            assert event.l1 == changed


@pytest.mark.parametrize("kind", ["gdp"])
def test_a_value_of_one_unit_alone_is_what_delta_pays_for(kind):
    """The noisy count of a value that the neighbour lacks, at the threshold that was charged: the exact
    probability that one of two such values is shown, summed in steps of noise."""
    rows = [("eve", text, None, None, None) for text in ("a", "b")]
    run = run_on(rows + beside(UNITS["unit"], rows, kind), ("p",), UNITS["unit"], kind)
    event = next(event for event in run.events if isinstance(event, ThresholdEvent))
    assert run.watched.exact[0] == {"a": 1, "b": 1}
    least = least_units(event)
    steps, missing = event.lattice, (shown_from(event) - least) * event.lattice
    masses = {
        z: math.exp(-(z**2) / (2 * (event.sigma * steps) ** 2))
        for z in range(-2000 * steps, 2000 * steps + 1)
    }
    alone = sum(masses[z] for z in masses if z >= missing) / sum(masses.values())
    shown = -math.expm1(2 * math.log1p(-alone))
    assert shown * DELTA_UNITS <= event.delta_units * (1 + 1e-9) + 1
    assert event.delta_units <= shown * DELTA_UNITS * (1 + 1e-6) + 1


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_collations_merge_no_keys(unit):
    """Text that a collation takes for equal stays apart, in keys and in units."""
    rows = [("ann", "a", None, None, None), ("Ann", "A", None, None, None), ("bob", "A", None, None, None)]
    rows += beside(UNITS[unit], rows[:1] + rows[2:], "gdp")
    run = run_on(rows, ("p",), UNITS[unit], "gdp")
    assert run.watched.exact[0] == {"a": 1, "A": 2}
    check(UNITS[unit], "gdp", rows, rows[1:], {"A": 10**6})
