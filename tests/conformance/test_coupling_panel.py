"""The coupling suite for panels: what two periods answered on a table, they may answer on its neighbour."""

import pickle
import secrets
import warnings
from importlib import import_module

import duckdb
import pytest
from conformance.test_coupling import (
    BOUNDING_KEY,
    CERTIFICATE,
    QUICK,
    SPEC,
    STYLES,
    answers_of,
    epsilon_of,
    price,
    without_random_names,
)
from hypothesis import given
from hypothesis import strategies as st

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingLedger, RecordingNoise, ReplayedNoise
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.source.slices import Window

PANELS, MEASURE = import_module("dpsyn_sql.front.panels"), import_module("dpsyn_sql.front.measure")
EDGES = ("2001-01-01", "2001-02-01", "2001-03-01", "2001-04-01")
DOMAIN = {"columns": {name: SPEC["columns"][name] for name in ("n", "s")}}
ROW = st.tuples(
    st.sampled_from(["ann", "Ann", "bob", "cy", None]),
    st.one_of(st.none(), st.integers(-6, 22)),
    st.sampled_from(["a", "b", "A", "__other__", None]),
    st.sampled_from(["2000-12-31", "2001-01-05", "2001-01-20", "2001-02-05", "2001-02-20", None]),
)


def two_periods(rows, noise, delta, domain=DOMAIN):
    """All that two periods of a panel did, by period: public facts, calls, events, questions, budget."""
    recorder, found = RecordingNoise(noise), []
    guarded, trace = DuckDBEngine._guarded, []

    def traced(self, run, sql, step):
        trace.append((step, without_random_names(sql)))
        return guarded(self, run, sql, step)

    with duckdb.connect() as con, pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute("CREATE TABLE t (who VARCHAR, n INTEGER, s VARCHAR, d DATE)")
        if rows:
            con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        for module in (PANELS, MEASURE):
            patch.setattr(module, "ExactNoise", lambda: recorder)
        patch.setattr(secrets, "randbits", lambda bits: BOUNDING_KEY)
        patch.setattr(CERTIFICATE, "epsilon_from_events", lambda told, at: epsilon_of(tuple(told), at))
        patch.setattr(DuckDBEngine, "_guarded", traced)
        ledger = RecordingLedger()
        for index in range(2):
            start = len(recorder.calls), len(ledger.questions)
            made = dpsyn_sql.release(
                con,
                "t",
                into="out",
                name="p",
                unit="who",
                series="panel",
                domain=domain,
                delta=delta,
                ledger=ledger,
                window=Window("d", "months", EDGES, index),
            )
            questions, calls = ledger.questions[start[1] :], recorder.calls[start[0] :]
            public = {
                "statements": list(trace),
                "questions": questions,
                "events": ledger.events,
                "mechanisms": [(c.mechanism, c.scale, c.exact.shape, c.answer.tolist()) for c in calls],
                "debit": (list(ledger.keys), list(ledger.budgets)),
                "measurements": [(m.attrs, m.sigma, m.values.tolist()) for m in made.measurements],
                "model": pickle.dumps(made.model),
                "certificate": made.certificate(),
                "output": repr(con.execute("FROM out").fetchall()),
            }
            found.append((public, calls, ledger.events, questions, ledger.budgets[-1]))
    return found


def check(rows, added, place, removed, style, delta, domain=DOMAIN):
    added = [("eve", *row[1:]) for row in added]
    tables = rows, [*rows[:place], *added, *rows[place:]]
    first, second = reversed(tables) if removed else tables
    one = two_periods(first, answers_of(style), delta, domain)
    calls = [call for _, made, *_ in one for call in made]
    two = two_periods(second, ReplayedNoise(calls), delta, domain)
    for (told, before, events, questions, budget), (other, after, *_) in zip(one, two, strict=True):
        for what, found in told.items():
            assert other[what] == found, f"neighbours differ in {what}"
        if any(question["ask"] == "discover" for question in questions):
            continue  # a first period that discovers is an ordinary release: test_coupling_discover.py
        assert len(before) == len(after) == len(events) == len(questions)
        used = [
            price(later.exact - call.exact, call, event, question, 1, budget.kind)
            for call, later, event, question in zip(before, after, events, questions, strict=True)
        ]
        assert sum(used) <= sum(event.cost(budget.kind) for event in events) <= budget.fraction


NEIGHBOURS = {
    "rows": st.lists(ROW, max_size=8),
    "added": st.lists(ROW, min_size=1, max_size=5),
    "place": st.integers(0, 8),
    "removed": st.booleans(),
    "style": st.sampled_from([style for style in STYLES if style not in ("high", "mixed")]),
    "delta": st.sampled_from([1e-9, 0]),
}


@QUICK
@given(**NEIGHBOURS)
def test_neighbours_answer_alike_in_both_periods(**neighbours):
    check(**neighbours)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("delta", [1e-9, 0])
def test_many_persons_with_and_without_one(delta):
    rows = [
        (f"p{i}", i % 3 * 6, "ab"[i % 2], f"2001-0{1 + month}-0{1 + i % 9}")
        for i in range(150)
        for month in range(2)
        if (i + month) % 7
    ]
    eve = [("eve", 3, "a", "2001-01-05"), ("eve", 9, "b", "2001-02-05"), ("eve", 4, "a", "2001-02-06")]
    check(rows, eve, 40, False, "exact", delta)


@pytest.mark.slow
@pytest.mark.required
def test_a_discovered_domain_is_that_of_the_first_period():
    rows = [(f"p{i}", i % 5, "ab"[i % 2], f"2001-0{1 + month}-05") for i in range(200) for month in range(2)]
    check(rows, [("eve", 3, "a", "2001-02-05")], 4, False, "exact", 1e-9, {"columns": {}})
