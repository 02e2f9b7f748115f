"""Any sequence of grants, releases, crashes and reopenings, against a model of a few lines."""

import math
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from ledger_steps import bytes_of, key

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import LaplaceEvent, cost_units
from dpsyn_sql.accounting.gdp import pure_cost
from dpsyn_sql.errors import AccountError, BudgetError, PrivacyBudgetExceeded, ReleaseChanged
from dpsyn_sql.ledger.sqlite import SqliteLedger

EVENT = LaplaceEvent(1000.0, 1)  # rho = 5e-7, epsilon = 0.001
QUESTIONS = 3


def in_mu(units):
    """mu^2/2 of a pure budget, in units."""
    return math.ceil(pure_cost(Fraction(units, 10**15)) * 10**15)


class Model:
    """One account: what is spent, the limit, and the releases by name, version and settings."""

    def __init__(self):
        self.kind, self.granted, self.limit, self.budgets = None, False, None, []
        self.releases = {}

    def spent(self, kind=None):
        kind = kind or self.kind
        amounts = [one.amount if one.kind == kind else in_mu(one.amount) for one in self.budgets]
        return Budget(kind, sum(amounts), sum(one.delta for one in self.budgets))


class LedgerMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.ledger, self.model, self.heads = SqliteLedger(self.folder / "ledger"), Model(), []

    def teardown(self):
        if hasattr(self, "ledger"):
            self.ledger.close()
            shutil.rmtree(self.folder)

    @rule(epsilon=st.sampled_from(["0.1", "1", "3"]), delta=st.sampled_from(["0", "1e-9", "1e-8"]))
    def grant(self, epsilon, delta):
        model, limit = self.model, Budget.from_epsilon(epsilon, delta)
        impossible = model.kind == "gdp" and limit.kind == "pure"
        spent = None if impossible or model.kind is None else model.spent(limit.kind)
        below = spent is not None and (spent.amount > limit.amount or spent.delta > limit.delta)
        try:
            self.ledger.grant("people", epsilon, delta)
        except AccountError:
            assert impossible
        except BudgetError:
            assert below
        else:
            assert not impossible and not below
            model.kind, model.granted, model.limit = limit.kind, True, limit

    @rule(
        name=st.sampled_from("ab"),
        version=st.sampled_from([None, "1", "2"]),
        settings=st.integers(0, 1),
        budget=st.sampled_from(
            [Budget("gdp", 10**13), Budget("gdp", 4 * 10**12, 10**8), Budget("pure", 10**14)]
        ),
        new_debit=st.booleans(),
        questions=st.integers(0, QUESTIONS + 1),
        torn=st.booleans(),
    )
    def release(self, name, version, settings, budget, new_debit, questions, torn):
        asked = key(name, version=version, settings=settings)
        found = (name, version, settings)
        try:
            with self.ledger.open_release(asked, budget, new_debit=new_debit) as entry:
                assert entry.replayed == (found in self.model.releases)
                if not entry.replayed:
                    self.debit(budget)
                    self.model.releases[found] = {"budget": budget, "answers": []}
                self.ask(entry, self.model.releases[found]["answers"], questions, torn)
        except ReleaseChanged:
            known = {one[:2] for one in self.model.releases}
            assert not new_debit and found not in self.model.releases and (name, version) in known
        except (PrivacyBudgetExceeded, AccountError):
            assert found not in self.model.releases and not self.fits(budget)

    def fits(self, budget):
        if self.model.kind == "pure" and budget.kind == "gdp" and self.model.granted:
            return False
        if self.model.limit is None:
            return True
        before = self.model.spent()
        self.model.budgets.append(budget)
        after, limit = self.model.spent(), self.model.limit
        self.model.budgets.pop()
        assert after.amount >= before.amount
        return after.amount <= limit.amount and after.delta <= limit.delta

    def debit(self, budget):
        assert self.fits(budget)
        self.model.budgets.append(budget)
        if self.model.kind is None or budget.kind == "gdp":
            self.model.kind = budget.kind

    def ask(self, entry, answers, questions, torn):
        """Some questions, perhaps torn off between reserving and storing the last."""
        assert len(entry.events) >= len(answers)
        for number in range(min(questions, QUESTIONS)):
            if number >= len(answers) and entry.state != "debited":
                return
            asked = entry.ask({"ask": number})
            if number < len(answers):
                assert bytes_of([asked.stored]) == answers[number]
                continue
            assert asked.stored is None
            asked.charge(EVENT)
            if torn and number == questions - 1:
                return
            noisy = [np.random.default_rng().integers(-(2**62), 2**62, size=3)]
            answers.append(bytes_of([asked.store(noisy)]))
        if questions > QUESTIONS:
            entry.close_questions()
            entry.published("somewhere", 3)
        assert len(entry.events) <= QUESTIONS
        assert sum(cost_units(one, entry.budget.kind) for one in entry.events) <= entry.budget.amount

    @rule()
    def reopen(self):
        self.ledger.close()
        self.ledger = SqliteLedger(self.folder / "ledger")

    @invariant()
    def the_sums_are_right(self):
        if not hasattr(self, "ledger"):
            return
        self.heads.append(self.ledger.verify(self.heads[0] if self.heads else None))
        shown = self.ledger.overview()
        assert len(shown.releases) == len(self.model.budgets)
        if self.model.kind is not None:
            (account,) = shown.accounts
            assert account.spent == self.model.spent() and account.limit == self.model.limit


LedgerMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=15, suppress_health_check=list(HealthCheck)
)
test_machine = LedgerMachine.TestCase
