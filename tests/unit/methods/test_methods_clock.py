"""The clock of a time limit cuts the last fit short and reaches no question, whatever it does."""

import itertools

import numpy as np
import pytest
from support.domains import domain_of
from support.doors import opened, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.auditing.testing import RecordingLedger, RecordingNoise, ReplayedNoise
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline, Terms
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.source.relation import Relation, Source

DOMAIN = domain_of((4,) * 6)
PLAN = Adaptive().plan(Source(Relation("t", "table", "t", ())), DOMAIN, Budget("gdp", 10**14))
ROWS = 20_000


class Counts:
    """Six attributes of which each goes together with those before it: many triples lie within cliques."""

    def __init__(self):
        rng = np.random.default_rng(1)
        x = rng.integers(0, 4, (6, ROWS))
        for i in range(1, 6):
            together = x[i - 1] + (x[i - 2] if i > 1 else 0)
            x[i] = np.where(rng.random(ROWS) < 0.6, together % 4, x[i])
        self.codes = x

    def count(self, queries, labels=()):
        return [table_of(DOMAIN, self.codes, query) for query in queries]


COUNTS = Counts()


class SeededNoise:
    """The same in every run of the test."""

    def __init__(self):
        self.rng = np.random.default_rng(1)

    def gaussian(self, values, sigma):
        return values + np.rint(self.rng.normal(0, sigma, len(values))).astype(np.int64)


def transcript(deadline, noise):
    """Every question as the ledger has it, and the exact vectors behind them, which show the references."""
    ledger, seen = RecordingLedger(), RecordingNoise(noise)
    with ledger.open_release(ReleaseKey(None, "r", None, {}), PLAN.budget) as entry:
        curator = opened(COUNTS, DOMAIN, 1, entry, seen)
        model = ran(Adaptive(), PLAN, curator, Terms(deadline=deadline))
    return ledger.questions, seen.calls, model


CLOCKS = {
    "runs away": lambda: itertools.count(0.0, 1e9).__next__,
    "runs backwards": lambda: itertools.count(0.0, -1e9).__next__,
    "runs away after a while": lambda: itertools.chain(range(7), itertools.count(1e9, 1e9)).__next__,
}


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_the_questions_are_the_same_whatever_the_clock_does(clock):
    questions, calls, model = transcript(NO_DEADLINE, SeededNoise())
    pairs = [question for question in questions if question["ask"] == "distance"]
    assert len(pairs) == 3 and len(pairs[-1]["tables"][0]) == 3  # two rounds of pairs, one of triples
    deadline = Deadline(1.0, clock())
    asked, again, hurried = transcript(deadline, ReplayedNoise(calls))
    assert asked == questions
    for one, other in zip(calls, again, strict=True):
        np.testing.assert_array_equal(one.exact, other.exact)
    if clock is not CLOCKS["runs backwards"]:  # the clock was looked at, and the last fit did stop
        assert deadline.cuts == ["the last fit stopped early"]
        assert hurried.beliefs.log_partition != model.beliefs.log_partition
