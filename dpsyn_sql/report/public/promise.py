"""What a certificate says: its guarantee for one person, as a bet, and what the privacy budget was spent on.

Somebody who bets 50:50 whether a unit is in the source is right with probability
1 - (false alarms + misses) / 2. An (epsilon, delta) claim bounds it by (e^epsilon + delta) / (1 + e^epsilon)
(Kairouz, Oh, Viswanath 2015), exact Gaussian accounting by Phi(mu / 2) plus what its thresholds and its
rounding may add (Dong, Roth, Su 2022). Both count delta in, so the bound has no exception.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from scipy.special import ndtr

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.accounting.events import PrivacyEvent, cost_units, event_from_dict
from dpsyn_sql.accounting.gdp import AMOUNT_UNITS
from dpsyn_sql.errors import InternalError

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
    budget = facts.get("budget") or {}
    reserved, threshold = budget.get("reserved_units_of_1e-15"), budget.get("threshold_delta")
    if budget.get("kind") != "gdp" or reserved is None or threshold is None:
        return Promise(epsilon, delta, by_epsilon, None, None)
    mu = math.sqrt(2 * float(reserved) / AMOUNT_UNITS)
    exact = float(ndtr(mu / 2)) + float(threshold) + _ROUNDING
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

_OURS = ("step", "column", "length", "marginals", "residuals")
"""Facts of a mechanism in a certificate beside its event."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Shares of the budget that was reserved: ``steps`` by what they are about, ``columns`` for learning the
    values of one column, ``unused``."""

    steps: Mapping[str, float]
    columns: Mapping[str, float]
    unused: float

    @property
    def with_rest(self) -> Mapping[str, float]:
        """Steps, and what was not used if it shows."""
        return {**self.steps, **({"Not used": self.unused} if self.unused >= 0.0005 else {})}


def spending_of(facts: Mapping[str, Any]) -> Spending | None:
    """None if the certificate does not say it in a way that adds up."""
    budget = facts.get("budget") or {}
    reserved, kind = float(budget.get("reserved_units_of_1e-15") or 0), budget.get("kind")
    if reserved <= 0 or kind not in ("gdp", "pure"):
        return None
    steps: dict[str, float] = {}
    columns: dict[str, float] = {}
    for one in facts.get("mechanisms", ()):
        units = _units(one, kind)
        if units is None:
            return None
        share = units / reserved
        step = _step_words(str(one.get("step", "")))
        steps[step] = steps.get(step, 0.0) + share
        if one.get("column") is not None:
            columns[str(one["column"])] = columns.get(str(one["column"]), 0.0) + share
    return Spending(steps, columns, max(0.0, 1 - sum(steps.values())))


def _units(facts: Mapping[str, Any], kind: Kind) -> float | None:
    """What an event costs; None if these are no facts of one."""
    own = {key: value for key, value in facts.items() if key not in _OURS}
    with contextlib.suppress(ArithmeticError, InternalError, KeyError, TypeError, ValueError):
        made: PrivacyEvent = event_from_dict(own)
        if all(isinstance(getattr(made, one.name), int | float) for one in fields(made)):
            return float(cost_units(made, kind))
    return None


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
