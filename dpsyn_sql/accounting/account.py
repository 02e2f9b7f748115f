"""Accounts: what they have spent, also on panels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from heapq import nlargest
from operator import add, sub

from dpsyn_sql.accounting.budget import (
    DELTA_UNITS,
    LARGEST_DELTA,
    LARGEST_EPSILON,
    THRESHOLD_SHARE,
    Budget,
    Kind,
    Number,
    delta_shares,
    exact_number,
)
from dpsyn_sql.accounting.events import PrivacyEvent, cost_units, delta_units
from dpsyn_sql.accounting.gdp import (
    AMOUNT_UNITS,
    epsilon_beside_pure,
    epsilon_from_half_mu_squared,
    pure_cost,
)
from dpsyn_sql.errors import AccountError, BudgetError, InternalError

LARGEST_AMOUNT = 2**63 - 1
"""What a 64-bit column holds: mu^2 / 2 or pure epsilon, up to 9,223."""

USUAL_DELTA = Fraction(1, 10**9)
"""The delta of a release or grant that states none, and of an account whose first release has none."""

KINDS: dict[Kind, str] = {"gdp": "exact Gaussian accounting", "pure": "pure differential privacy"}
"""What each kind of account is called."""

_FOUR_DIGITS_DOWN = Context(prec=4, rounding=ROUND_FLOOR)
_FOUR_DIGITS_UP = Context(prec=4, rounding=ROUND_CEILING)
_TWELVE_DIGITS_UP = Context(prec=12, rounding=ROUND_CEILING)


def price(budget: Budget, kind: Kind) -> Budget:
    """What a release of ``budget`` costs an account of ``kind``, rounded up.

    Raises:
        AccountError: the account is pure and the release is not.
    """
    if budget.kind == kind:
        return budget
    if kind == "pure":
        raise AccountError(
            "the account is pure (granted with delta=0), but the release has a delta: release with delta=0, "
            "or grant the account an epsilon with a delta above 0"
        )
    return Budget("gdp", math.ceil(pure_cost(budget.fraction) * AMOUNT_UNITS))


def event_price(event: PrivacyEvent, kind: Kind) -> Budget:
    """Cost of an event within a release of ``kind``: an amount, and the delta of a threshold."""
    return Budget(kind, cost_units(event, kind), delta_units(event))


@dataclass(frozen=True, slots=True)
class Balance:
    """What an account has spent, and its limit (None: without limit)."""

    spent: Budget
    limit: Budget | None = None

    @property
    def remaining(self) -> Budget | None:
        """Limit minus spent, in units; None without a limit."""
        if self.limit is None:
            return None
        amount, delta = self.limit.amount - self.spent.amount, self.limit.delta - self.spent.delta
        return Budget(self.spent.kind, amount, delta)

    def after(self, cost: Budget) -> Budget:
        """The spent sum once ``cost`` is debited; both are of the account's kind."""
        return Budget(self.spent.kind, self.spent.amount + cost.amount, self.spent.delta + cost.delta)

    def admits(self, cost: Budget) -> bool:
        """Whether sum of amounts and sum of threshold deltas stay within the limit."""
        after = self.after(cost)
        if max(after.amount, after.delta) > LARGEST_AMOUNT:
            return False
        return self.limit is None or (after.amount <= self.limit.amount and after.delta <= self.limit.delta)


@cache
def granted_budget(epsilon: str, delta: str) -> Budget:
    """``Budget.from_epsilon``, kept: the conversion takes milliseconds, and checking repeats it."""
    return Budget.from_epsilon(epsilon, delta)


def grant_delta(epsilon: Number) -> str:
    """The delta of a grant that states none: the usual one for each whole epsilon, at most the largest.

    So N releases of an epsilon at the usual delta fit a grant of N times that epsilon, thresholds included:
    their deltas add up as their epsilons do (``Budget.of_release``).
    """
    fraction = USUAL_DELTA * max(exact_number("epsilon", epsilon), Fraction(1))
    return _as_text(min(fraction, LARGEST_DELTA), _FOUR_DIGITS_UP)


def _as_text(number: Fraction, context: Context) -> str:
    return f"{context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize():e}"


def grant_limit(spent: Budget, epsilon: Number, delta: Number) -> Budget:
    """The limit that a grant of (epsilon, delta) in all means.

    Raises:
        BudgetError: out of range, or below what is spent.
        AccountError: delta = 0 for an approximate account.
    """
    limit = granted_budget(str(epsilon), str(delta))
    if limit.kind != spent.kind:
        raise AccountError(
            "the account is approximate (its releases may have a delta above 0) and cannot be granted "
            "delta=0: grant a delta above 0, or use another account for pure releases"
        )
    if spent.amount > limit.amount or spent.delta > limit.delta:
        raise BudgetError(
            f"a grant of epsilon={epsilon}, delta={delta} is below what is spent, which its limit counts as "
            f"{describe(spent, exact_number('delta', delta))}. "
            f"What is spent cannot be taken back{_enough(spent, epsilon, delta)}"
        )
    return limit


def _enough(spent: Budget, epsilon: Number, delta: Number) -> str:
    """The least grant that holds what is spent, as options of the command; nothing if none does."""
    exact_epsilon, exact = exact_number("epsilon", epsilon), exact_number("delta", delta)
    thresholds = Fraction(spent.delta, DELTA_UNITS) / THRESHOLD_SHARE
    text = str(delta) if thresholds <= exact else _as_text(thresholds, _FOUR_DIGITS_UP)
    enough = max(exact, exact_number("delta", text))
    if enough > LARGEST_DELTA:
        return ""
    least = _FOUR_DIGITS_UP.plus(Decimal(reported_epsilon(spent, enough)))
    wanted = max(least, Decimal(str(exact_epsilon.numerator)) / Decimal(str(exact_epsilon.denominator)))
    for _ in range(4):
        if wanted > LARGEST_EPSILON:
            return ""
        limit = granted_budget(f"{wanted:f}", text)
        if spent.amount <= limit.amount and spent.delta <= limit.delta:
            return f"; --epsilon {wanted.normalize():f} --delta {text} is enough"
        wanted += Decimal(1).scaleb(wanted.adjusted() - 3)
    return ""


def left_in_words(left: Budget, delta: Fraction) -> str:
    """What is left of an account with a limit, as releases that still fit; ``delta`` is the account's."""
    at = min(delta, USUAL_DELTA)
    epsilon = affordable_epsilon(left, at)
    if not epsilon:
        return "no further release fits"
    if left.kind == "pure":
        return f"a release of epsilon={epsilon:f} still fits"
    fits = f"a release of epsilon={epsilon:f} with delta={float(at):g} still fits"
    usual = Budget.of_release(epsilon, at).delta
    if left.delta >= usual:
        return fits
    return (
        f"{fits} if it discovers no categories: too little threshold delta is left for that "
        f"({left.delta / DELTA_UNITS:.3g}; it needs {usual / DELTA_UNITS:.3g})"
    )


def reported_epsilon(spent: Budget, delta: Fraction) -> float:
    """The epsilon that a sum of one kind implies, rounded up.

    Pure: the sum itself, delta 0. Approximate: by the conversion at nine tenths of ``delta``.
    """
    if spent.kind != "pure":
        return epsilon_from_half_mu_squared(spent.fraction, delta_shares(delta)[0])
    return _float_above(spent.fraction)


def _float_above(exact: Fraction) -> float:
    epsilon = float(exact)
    return epsilon if Fraction(epsilon) >= exact else math.nextafter(epsilon, math.inf)


def reported_delta(spent: Budget, delta: Fraction) -> Fraction:
    """The delta that goes with ``reported_epsilon``: ``delta``, unless thresholds took more than a tenth."""
    if spent.kind == "pure":
        return Fraction(0)
    return max(delta, delta_shares(delta)[0] + Fraction(spent.delta, DELTA_UNITS))


def account_epsilon(spent: Budget, gaussian: int, pure: int, delta: Fraction) -> float:
    """The epsilon of all releases of an account: the least of its sound bounds, rounded up.

    In an account of kind ``"gdp"`` pure releases are counted by their mu, or as one coin beside the others
    (docs/privacy.md, "Pure releases beside others"); the second is never above their plain sum.

    Args:
        spent: what the account counts against its limit.
        gaussian: mu^2 / 2 of its releases with a delta, in units.
        pure: epsilon of its pure releases, in units.
        delta: of the account.
    """
    of_kind = reported_epsilon(spent, delta)
    if spent.kind == "pure" or not pure:
        return of_kind
    epsilon = Fraction(pure, AMOUNT_UNITS)
    if not gaussian:
        return min(of_kind, _float_above(epsilon))
    amount = Fraction(gaussian, AMOUNT_UNITS)
    return min(of_kind, epsilon_beside_pure(amount, epsilon, delta_shares(delta)[0]))


@lru_cache(maxsize=1000)
def affordable_epsilon(remaining: Budget, delta: Fraction) -> Decimal:
    """The largest epsilon, to four digits and floored, of one more release at ``delta``.

    0 when nothing fits. Threshold delta is not counted: a release that discovers nothing debits none.
    """
    if remaining.amount == 0:
        return Decimal(0)
    if remaining.kind == "pure":
        return _FOUR_DIGITS_DOWN.divide(remaining.amount, AMOUNT_UNITS)
    guess = _FOUR_DIGITS_UP.plus(Decimal(reported_epsilon(remaining, delta)))
    for _ in range(4):
        if guess > 0 and _fits(guess, delta, remaining):
            return guess
        guess -= Decimal(1).scaleb(guess.adjusted() - 3)
    return Decimal(0)


def _fits(epsilon: Decimal, delta: Fraction, remaining: Budget) -> bool:
    try:
        budget = Budget.from_epsilon(epsilon, min(delta, LARGEST_DELTA))
    except BudgetError:
        return False
    return budget.amount <= remaining.amount


def shown(epsilon: Fraction | float) -> str:
    """An epsilon or a delta for people: four digits, rounded up; a float is what its text says."""
    exact = epsilon if isinstance(epsilon, Fraction) else Fraction(repr(float(epsilon)))
    rounded = _FOUR_DIGITS_UP.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"{float(rounded):.4g}"


_NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
FIGURE = (
    rf"epsilon={_NUMBER}(?:(?: at|,) delta={_NUMBER}| with delta={_NUMBER} still)"
    rf"|(?:(?<=of )|(?<=as )|(?<=is )|(?<=it )|(?<=costs ))epsilon={_NUMBER}"
)
"""What ``describe`` says within a message: a figure, not an argument of the caller."""


def describe(budget: Budget, delta: Fraction) -> str:
    """A budget for people, as the epsilon that it is at ``delta``."""
    if budget.kind == "pure":
        return f"epsilon={shown(budget.fraction)}"
    at = shown(reported_delta(budget, delta))
    return f"epsilon={shown(reported_epsilon(budget, delta))} at delta={at}"


def in_words(budget: Budget) -> str:
    """The accounting that prices a budget, with its parameter; for people."""
    amount = float(budget.fraction)
    if budget.kind == "gdp":
        return f"{KINDS['gdp']} (mu = {math.sqrt(2 * amount):.6g})"
    return f"{KINDS['pure']} (epsilon = {shown(budget.fraction)})"


def rounded_up(bound: Fraction | float) -> float:
    """A bound to twelve digits, rounded up: the text of the result is not below it."""
    exact = Fraction(bound)
    return float(_TWELVE_DIGITS_UP.divide(Decimal(exact.numerator), Decimal(exact.denominator)))


# -- panels ------------------------------------------------------------------------------------------

# Panels: what releases of slices cost together, where a unit can be in some of the slices only.
#
# The argument is in docs/privacy.md, "Windows and panels". Nothing here looks at rows: a price follows from
# the debits of an account in their order.


@dataclass(frozen=True, slots=True)
class Place:
    """Where a release lies in a panel.

    Args:
        panel: identity of the panel; slices of different panels add up.
        number: of the slice within the panel: index of its first window, or the value of a partition.
        most: a unit is in at most so many slices.
        edges: of the calendar up to the end of the slice; empty for a partition.
        ordered: the bound holds only for slices that are released in the order of their numbers.
    """

    panel: str
    number: int | str
    most: int
    edges: tuple[str, ...] = ()
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Charge:
    """A debit of an account; ``place`` is None outside of panels. ``taken``: the part of it, of its kind,
    that releases of the account that stopped have paid and not asked for; never in a panel."""

    budget: Budget
    place: Place | None = None
    taken: Budget | None = None


_Costs = tuple[int, ...]
"""Amount and threshold delta in the kind of the account; mu^2 / 2 of a release with a delta, epsilon of a
pure one. All in units."""

_NOTHING: _Costs = (0, 0, 0, 0)


@dataclass(slots=True)
class _Panel:
    """What the slices of a panel cost so far, and the longest calendar."""

    most: int
    edges: tuple[str, ...] = ()
    last: int | str | None = None
    slices: dict[int | str, _Costs] = field(default_factory=dict)

    def takes(self, slot: Place) -> bool:
        """Whether the bound holds for this slice together with those before it."""
        shared = min(len(self.edges), len(slot.edges))
        if self.edges[:shared] != slot.edges[:shared]:
            return False
        if not slot.ordered or self.last is None:
            return True
        return isinstance(slot.number, int) and isinstance(self.last, int) and slot.number >= self.last

    def add(self, slot: Place, costs: _Costs) -> None:
        """One more release of a slice."""
        self.edges, self.last = max(self.edges, slot.edges, key=len), slot.number
        self.slices[slot.number] = _sums(self.slices.get(slot.number, _NOTHING), costs)

    def dearest(self) -> _Costs:
        """The costs of the dearest slices, each cost by itself."""
        each = zip(_NOTHING, *self.slices.values(), strict=True)
        return tuple(sum(nlargest(self.most, costs)) for costs in each)


def _sums(left: _Costs, right: _Costs) -> _Costs:
    return tuple(map(add, left, right))


class Spending:
    """What the debits of an account of one kind cost together, as they are added one after the other."""

    def __init__(self, kind: Kind) -> None:
        self._kind, self._costs = kind, _NOTHING
        self._panels: dict[str, _Panel] = {}

    @property
    def total(self) -> Budget:
        """What counts against the limit."""
        return Budget(self._kind, *self._costs[:2])

    @property
    def parts(self) -> tuple[int, int]:
        """mu^2 / 2 of the releases with a delta, and epsilon of the pure ones, in units."""
        return self._costs[2], self._costs[3]

    def continues(self, slot: Place) -> bool:
        """Whether the next debit there shares the bound of its panel; else it is charged in full."""
        panel = self._panels.get(slot.panel)
        return panel is None or panel.takes(slot)

    def add(self, charge: Charge) -> Budget:
        """Add a debit; returns by how much the total rises.

        Raises:
            AccountError: the account is pure and the release is not.
            InternalError: it takes over more than it debits, or lies in a panel.
        """
        budget, slot = charge.budget, charge.place
        cost = price(budget, self._kind)
        by_kind = (budget.amount, 0) if budget.gaussian else (0, budget.amount)
        costs: _Costs = (cost.amount, cost.delta, *by_kind)
        if charge.taken is not None:
            costs = self._without(costs, charge)
        if slot is not None:
            panel = self._panels.setdefault(slot.panel, _Panel(slot.most))
            if panel.takes(slot):
                before = panel.dearest()
                panel.add(slot, costs)
                costs = tuple(map(sub, panel.dearest(), before))
        self._costs = _sums(self._costs, costs)
        return Budget(self._kind, *costs[:2])

    def _without(self, costs: _Costs, charge: Charge) -> _Costs:
        """The costs less what was taken over. A pure release in an account of kind "gdp" has its whole price:
        it took something over while the account was pure."""
        budget, taken_over = charge.budget, charge.taken
        if taken_over is None or budget.kind != self._kind:
            return costs
        if charge.place is not None or taken_over.amount > budget.amount or taken_over.delta > budget.delta:
            raise InternalError("a debit takes over what it cannot")
        by_kind = (taken_over.amount, 0) if budget.gaussian else (0, taken_over.amount)
        return tuple(map(sub, costs, (taken_over.amount, taken_over.delta, *by_kind)))


def spending_of(charges: Iterable[Charge], kind: Kind) -> Spending:
    """What debits cost an account of ``kind``, in the order in which they were made.

    Raises:
        AccountError: as ``Spending.add``.
    """
    spending = Spending(kind)
    for charge in charges:
        spending.add(charge)
    return spending
