"""What a certificate says: its guarantee for one person, as a bet, and what the privacy budget was spent on.

Somebody who bets 50:50 whether a unit is in the source is right with probability
1 - (false alarms + misses) / 2. An (epsilon, delta) claim bounds it by (e^epsilon + delta) / (1 + e^epsilon)
(Kairouz, Oh, Viswanath 2015), exact Gaussian accounting by Phi(mu / 2) plus what its thresholds and its
rounding may add (Dong, Roth, Su 2022). Both count delta in, so the bound has no exception.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtr

from dpsyn_sql.accounting.events import cost_units
from dpsyn_sql.accounting.gdp import AMOUNT_UNITS
from dpsyn_sql.report.certificate import event_of

WEAK = 8.0
"""Above it a promise reads as weak: epsilon alone lets nearly every bet be right."""

_FLOAT = 1e-12
"""What the arithmetic of floats may add to 100 times a chance, so that 50 of 100 stay 50."""

_ROUNDING = 1e-9
"""What exact Gaussian accounting keeps of delta for noise on a lattice."""


@dataclass(frozen=True, slots=True)
class Promise:
    """``by_epsilon``: the largest chance that a bet is right by epsilon and delta alone. ``exact``: by the
    account's own curve, if that is known and smaller. ``mu``: of exact Gaussian accounting, or None."""

    epsilon: float
    delta: float
    by_epsilon: float
    exact: float | None
    mu: float | None

    @property
    def best(self) -> float:
        """The smallest bound."""
        return self.by_epsilon if self.exact is None else min(self.exact, self.by_epsilon)

    @property
    def weak(self) -> bool:
        """Whether the promise hardly protects."""
        return self.epsilon > WEAK

    def of_group(self, rows: int) -> float:
        """The bound for so many units at once, by composition of the same claim: epsilon or mu times
        ``rows``, and the delta of the group (Dwork, Roth 2014, Theorem 2.2)."""
        exponent = rows * self.epsilon
        failing = self.delta * math.expm1(exponent) / math.expm1(self.epsilon) if exponent < 500 else 1.0
        by_epsilon = min(1.0, _right(exponent) + failing)
        if self.mu is None:
            return by_epsilon
        # From neighbour to neighbour delta grows with the slope of the curve: exp((rows mu)^2 / 2) at most.
        spread = rows * self.mu
        failing = 2 * rows * (self.delta + _ROUNDING) * math.exp(min(spread**2 / 2, 500.0))
        return min(by_epsilon, float(ndtr(spread / 2)) + min(1.0, failing))


def promise_of(facts: Mapping[str, Any]) -> Promise:
    """The promise of a certificate."""
    guarantee = facts["guarantee"]
    epsilon, delta = float(guarantee["epsilon"]), float(guarantee["delta"])
    by_epsilon = min(1.0, _right(epsilon) + delta)
    budget = facts["budget"]
    if budget["kind"] != "gdp":
        return Promise(epsilon, delta, by_epsilon, None, None)
    mu = math.sqrt(2 * float(budget["reserved_units_of_1e-15"]) / AMOUNT_UNITS)
    exact = float(ndtr(mu / 2)) + float(budget["threshold_delta"]) + _ROUNDING
    return Promise(epsilon, delta, by_epsilon, min(1.0, exact), mu)


def of_hundred(chance: float) -> str:
    """How many of 100 bets, rounded up; where that is nearly all, with decimals."""
    if chance < 0.99:
        return f"{math.ceil(100 * chance - _FLOAT)} of 100"
    return f"{math.ceil(1e4 * chance) / 100:g} of 100" if chance < 0.9999 else "practically all"


def chance_in_words(delta: float) -> str:
    """A tiny probability: ``one in a billion``."""
    number = 1 / delta
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size * 0.999:
            count = number / size
            return f"one in {'a' if round(count, 1) == 1 else f'{count:,.3g}'} {word}"
    return f"one in {number:,.0f}"


def _right(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


# -- the budget ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spending:
    """Shares of the budget that was reserved: ``steps`` by what they are about, ``columns`` for learning the
    values of one column, ``tables`` of the tree if there are several, ``unused``, and what that is in
    words."""

    steps: Mapping[str, float]
    columns: Mapping[str, float]
    tables: Mapping[str, float]
    unused: float
    unused_words: str = "Not used"

    @property
    def with_unused(self) -> Mapping[str, float]:
        """Steps, and what was not used if it shows."""
        return {**self.steps, **({self.unused_words: self.unused} if self.unused >= 0.0005 else {})}


def spending_of(facts: Mapping[str, Any]) -> Spending:
    """What a certificate says of the cost of each step."""
    reserved, kind = facts["budget"]["reserved_units_of_1e-15"], facts["budget"]["kind"]
    steps, columns, tables = (defaultdict[str, float](float) for _ in range(3))
    for mechanism in facts["mechanisms"]:
        share = cost_units(event_of(mechanism), kind) / reserved
        steps[_step_words(mechanism["step"])] += share
        if mechanism.get("column") is not None:
            columns[mechanism["column"]] += share
        if "table" in mechanism:
            tables[mechanism["table"]] += share
    unused = "Other tables, and what is not used" if facts.get("database") else "Not used"
    return Spending(steps, columns, tables, max(0.0, 1 - sum(steps.values())), unused)


def _step_words(step: str) -> str:
    """A step of a certificate by what it is about."""
    if step.startswith("discover"):
        return "Learning which values occur"
    if any(word in step for word in ("two-way", "three-way", "pair", "view", "network", "higher")):
        return "Counts of several columns together"
    if "one-way" in step:
        return "Counts of single columns"
    if step.startswith("rows"):
        return "The number of rows"
    return step[:1].upper() + step[1:]
