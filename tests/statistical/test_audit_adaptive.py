"""The audit of methods whose questions depend on answers: exact ratios of whole transcripts, and its power."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import dpsyn_sql.auditing.door as door_module
from dpsyn_sql.accounting.pld import log_ratio
from dpsyn_sql.auditing import _planned, audit, prepared
from dpsyn_sql.auditing.door import ToyDoor
from dpsyn_sql.auditing.testing import RecordingNoise, ReplayedNoise, toy
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.methods import Adaptive, Independent, PrivBayes
from dpsyn_sql.planning.limits import NO_TERMS
from dpsyn_sql.planning.queries import Choice, MarginalQuery, Marginals
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.source.relation import PrivacyUnit

pytestmark = pytest.mark.slow


def halve(monkeypatch, *names):
    for name in names:
        true = getattr(ExactNoise, name)
        monkeypatch.setattr(
            ExactNoise, name, lambda self, v, scale, *rest, true=true: true(self, v, scale / 2, *rest)
        )


def of_columns(number, size=2):
    coded = {"type": "categorical", "categories": list(range(size)), "other": False}
    return {"columns": {f"c{i}": coded for i in range(number)}}


# -- the ratio of a transcript ---------------------------------------------------------------------


def log_rounded(call, exact, lattice):
    """Of whole rows: all steps that are rounded to them, half a row up and down where they are even."""
    rows = np.rint(call.answer / lattice)
    steps = np.arange(-lattice // 2, lattice // 2 + 1)
    seen = rows[:, None] * lattice + steps
    goes_here = np.rint(seen / lattice) == rows[:, None]
    chances = np.exp(-((seen - exact[:, None]) ** 2) / (2 * call.scale**2))
    return np.log((chances * goes_here).sum(axis=1))


def log_density(kind, call, exact, lattice):
    """Of an answer, up to what exact values do not change; choices by enumeration of all of them."""
    if call.mechanism == "gaussian" and lattice > 1:
        return log_rounded(call, exact, lattice).sum()
    if call.mechanism == "gaussian":
        return -((call.answer - exact) ** 2).sum() / (2 * call.scale**2)
    if call.mechanism == "laplace":
        return -np.abs(call.answer - exact).sum() / call.scale
    left, found = dict(enumerate(exact.tolist())), 0.0
    for index in call.answer.tolist():
        found += math.log(chance(left, index, call.scale, kind))
        del left[index]
    return found


def chance(scores, index, scale, kind):
    """Of one choice; permute-and-flip (McKenna and Sheldon 2020, Algorithm 1) over all orders."""
    accept = {i: math.exp((score - max(scores.values())) / scale) for i, score in scores.items()}
    if kind != "pure":
        return accept[index] / sum(accept.values())
    orders = list(itertools.permutations(scores))
    reached = (math.prod(1 - accept[i] for i in order[: order.index(index)]) for order in orders)
    return accept[index] * math.fsum(reached) / len(orders)


@pytest.mark.parametrize("delta", [1e-9, 0])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("case", ["pairs", "ordered bins", "choices", "families"])
def test_the_ratio_of_a_transcript_is_that_of_every_cell_of_both_tables(case, rows, delta, monkeypatch):
    """The answers are replayed on the other table: the same questions, with other exact values behind them."""
    domain, epsilon = None, 3
    if case == "ordered bins":
        numeric = {"type": "numeric", "lower": 0, "upper": 40, "bins": 40}
        domain, epsilon = {"columns": {"a": numeric, "b": numeric}}, 9
    if case == "choices":
        domain, changes = of_columns(4), {"preselected": 1, "preselect_between": (2, 8)}
        monkeypatch.setattr(Adaptive, "constants", replace(Adaptive.constants, **changes))
    method = "adaptive"
    if case == "families":
        method, domain = PrivBayes(score="I"), of_columns(4, 3)
    unit = PrivacyUnit() if rows == 1 else PrivacyUnit("unit", rows)
    plan, run = _planned(epsilon, delta, method, domain, unit)
    door, kind = ToyDoor(plan, toy(plan)), plan.budget.kind
    for within in (False, True):
        heard, other = RecordingNoise(ExactNoise()), None
        monkeypatch.setattr(door_module, "ExactNoise", lambda heard=heard: heard)
        answered = door.run(run, within=within).answered
        found = sum(log_ratio(kind, one) for one in answered)
        lattices = [getattr(one.event, "lattice", 1) for one in answered]
        other = RecordingNoise(ReplayedNoise(heard.calls))
        monkeypatch.setattr(door_module, "ExactNoise", lambda other=other: other)
        door.run(run, within=not within)
        here, there = (
            sum(
                log_density(kind, call, side.exact, lattice)
                for call, side, lattice in zip(heard.calls, sides, lattices, strict=True)
            )
            for sides in (heard.calls, other.calls)
        )
        assert found == pytest.approx((here - there) * (1 if within else -1), abs=1e-6)
        asked = {call.mechanism for call in heard.calls}
        assert ("select" in asked) is (case in ("choices", "families"))
    door.close()


def test_the_questions_depend_on_the_data():
    ready = prepared(epsilon=1, method="adaptive", runs=1)
    door = ToyDoor(ready.plan, toy(ready.plan))
    asked = {tuple(q for q, _ in door.run(ready.ask, within=False).questions) for _ in range(20)}
    door.close()
    assert len(asked) > 3 and ready.rehearsal.compared > 0


# -- what the audit finds --------------------------------------------------------------------------


@dataclass(frozen=True)
class Chooser(Independent):
    """One private choice of ``number``, with all of the budget. With the unit the second score is better by one, and
    not the first."""

    name = "chooser"
    number: int = 1

    def run(self, door, domain, budget, terms=NO_TERMS):
        queries = [MarginalQuery((name,)) for name in domain.names]
        references = [np.zeros(domain.shape(query.attrs), dtype=np.int64) for query in queries]
        for table in references[::2]:
            table[0] = 1000
        allowances = [999 * (1 - place % 2) for place in range(len(references))]
        door.ask(Choice(queries, references, self.number, allowances), budget).read()


@pytest.mark.parametrize(
    ("number", "epsilon", "delta", "runs"),
    [
        pytest.param(1, 8, 1e-9, 400, marks=pytest.mark.slow),
        pytest.param(2, 8, 1e-9, 700, marks=pytest.mark.slow),
        pytest.param(1, 2, 0, 1500, marks=pytest.mark.slow),
    ],
)
def test_a_choice_alone_passes_and_half_of_its_noise_does_not(number, epsilon, delta, runs, monkeypatch):
    settings = dict(
        epsilon=epsilon, delta=delta, method=Chooser(number), domain=of_columns(2 * number), runs=runs
    )
    passed = audit(**settings)
    assert not passed.violated and passed.power > 1 - 1e-6
    assert (passed.choices, passed.marginals, passed.adaptive) == (number, 0, True)
    halve(monkeypatch, "select")
    caught = audit(**settings)
    assert caught.violated and caught.claim == passed.claim


def test_adaptive_marginals_pass_and_half_of_their_noise_does_not(monkeypatch):
    passed = audit(epsilon=6, method="adaptive", runs=150)
    assert not passed.violated and passed.adaptive and passed.base_rows > 100
    rate = 0.5 * math.erfc(passed.claim / 2 / math.sqrt(2))
    for errors in (passed.false_alarms, passed.misses):
        assert abs(errors - rate * passed.runs) < 6 * math.sqrt(rate * passed.runs)
    halve(monkeypatch, "gaussian")
    caught = audit(epsilon=6, method="adaptive", runs=400)
    assert caught.violated and caught.claim == passed.claim and caught.power > 1 - 1e-6


class Curious(Independent):
    """Asks one marginal more than it reserved."""

    name = "curious"

    def run(self, door, domain, budget, terms=NO_TERMS):
        first, second = budget.split((1, 1))
        queries = [MarginalQuery((name,)) for name in domain.names]
        door.ask(Marginals(queries), first).read()
        door.ask(Marginals(queries[:1]), second)


def test_a_method_that_asks_beyond_its_plan_is_refused():
    with pytest.raises(InternalError, match="costs more than was reserved"):
        audit(epsilon=4, method=Curious(), runs=200)


def test_an_audit_that_would_take_too_long_is_refused_and_says_how_long():
    slow = itertools.count(0.0, 20.0).__next__  # a rehearsal takes 20 seconds
    with pytest.raises(InputError, match=r"about \d+ minutes.*or give runs="):
        prepared(epsilon=6, method="adaptive", clock=slow)
    assert prepared(epsilon=6, method="adaptive", runs=50, clock=slow).seconds == pytest.approx(2000)
