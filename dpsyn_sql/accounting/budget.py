"""Budgets: what a release or a step may spend, in exact integers.

A budget is of one kind. ``"gdp"`` (delta > 0): an amount of mu^2 / 2, and a share of delta that is kept for
thresholds of private discovery. ``"pure"`` (delta = 0): an amount of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real
from typing import Literal

from dpsyn_sql.accounting.gdp import AMOUNT_UNITS, half_mu_squared
from dpsyn_sql.errors import BudgetError, InternalError, said

Kind = Literal["gdp", "pure"]

Number = int | float | str | Decimal | Fraction

DELTA_UNITS = 10**18
"""Amounts of delta are integers of 1e-18."""

LARGEST_EPSILON = 1000
"""Policy, and what keeps sums within the integers of a ledger."""

WEAK_EPSILON = 20
"""Above it a release warns: e^20 is half a billion."""

MOST_ADVISED = 10
"""No advice names a larger epsilon."""

LARGEST_DELTA = Fraction(1, 10**6)
"""Policy: a delta above one in a million protects too few people too weakly."""

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""Of a normal variable of standard deviation 1."""

_LEAST_AMOUNT = 1e-30
# Of a law of noise: what nothing pays for has more noise than there are rows.

_CONVERSION_SHARE = Fraction(9, 10)
THRESHOLD_SHARE = Fraction(1, 10)
"""Of delta: for the conversion from mu, and for thresholds."""


def exact_number(name: str, value: Number) -> Fraction:
    """Read a number as the exact fraction its decimal text says (0.1 is one tenth).

    Raises:
        BudgetError: not a finite number.
    """
    try:
        if isinstance(value, Fraction):
            return value
        if isinstance(value, bool) or not isinstance(value, str | Real | Decimal):
            raise InvalidOperation  # the text of a relation would be made by running it
        number = Decimal(str(value).strip())
        if number.is_finite() and abs(number.adjusted()) < 1000:
            return Fraction(number)
    except InvalidOperation:
        pass
    raise BudgetError(
        f"{name}={said(value)} is not a finite number; write for example {name}=1.0 or {name}='1e-9'"
    )


def weakness(epsilon: Number) -> str | None:
    """The warning about an epsilon that hardly protects anybody; None for a smaller one.

    Raises:
        BudgetError: not a finite number.
    """
    exact = exact_number("epsilon", epsilon)
    if exact <= WEAK_EPSILON:
        return None
    power = int(float(exact) * math.log10(math.e))
    return (
        f"epsilon={float(exact):g} protects hardly anybody: an output may be e^{float(exact):g}, more "
        f"than 10^{power}, times as likely with a person's data as without, so it can reveal them. "
        "Usual values are 0.1 to 10."
    )


def delta_shares(delta: Fraction) -> tuple[Fraction, int]:
    """The share of delta that pays for the conversion from mu, and the share for thresholds (units, floored).

    Raises:
        InternalError: together they are more than delta.
    """
    conversion, thresholds = delta * _CONVERSION_SHARE, int(delta * THRESHOLD_SHARE * DELTA_UNITS)
    _check_delta(conversion, thresholds, delta)
    return conversion, thresholds


def stated_delta(delta: Fraction, thresholds: int) -> float:
    """The delta that a release states: a float whose text is not below ``delta``.

    ``thresholds``: what was kept or charged for them, in units.

    Raises:
        InternalError: with the share for conversion they are more than delta.
    """
    _check_delta(delta_shares(delta)[0], thresholds, delta)
    stated = float(delta)
    return stated if exact_number("delta", stated) >= delta else math.nextafter(stated, math.inf)


def _check_delta(conversion: Fraction, thresholds: int, delta: Fraction) -> None:
    if conversion + Fraction(thresholds, DELTA_UNITS) > delta:
        raise InternalError("conversion and thresholds would take more than delta")


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Noise of counts that are paid for with the share w of an amount: its standard deviation is
    ``deviation`` w^-``power`` (rows).

    A count of which a unit changes at most r rows, paid with all of the amount, has

    - Gaussian noise of deviation s = r / mu; the amount is mu^2 / 2, so s = r / sqrt(2 amount). Counts of the
      same unit add up their amounts: of n that share it each has s n^(1/2).
    - Laplace noise of scale b = r / epsilon, whose deviation is sqrt(2) b and whose mean absolute value is b;
      the amount is epsilon: of n counts that share it each has sqrt(2) b n.
    """

    deviation: float
    power: float

    @classmethod
    def of(cls, amount: float, *, gaussian: bool, rows: float = 1) -> NoiseLaw:
        """The law of an amount (mu^2 / 2, or epsilon); of one of 0 that of next to nothing."""
        amount = max(amount, _LEAST_AMOUNT)
        return cls(rows / math.sqrt(2 * amount), 0.5) if gaussian else cls(math.sqrt(2) * rows / amount, 1.0)

    def shared(self, counts: float) -> float:
        """Standard deviation (rows) of each of so many counts that share the amount."""
        return float(self.deviation * counts**self.power)

    @property
    def absolute_part(self) -> float:
        """Mean absolute value in standard deviations."""
        return MEAN_ABSOLUTE if self.power == 0.5 else math.sqrt(0.5)

    @property
    def mean_absolute(self) -> float:
        """Mean absolute value (rows) with all of the amount."""
        return self.absolute_part * self.deviation


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of mu^2 / 2 or pure epsilon in units of 1e-15, and threshold delta in units of 1e-18."""

    kind: Kind
    amount: int
    delta: int = 0

    def __post_init__(self) -> None:
        if self.amount < 0 or self.delta < 0:
            raise InternalError("a budget cannot be negative")
        if self.kind == "pure" and self.delta:
            raise InternalError("a pure budget has no delta")

    @classmethod
    def from_epsilon(cls, epsilon: Number, delta: Number) -> Budget:
        """The budget that (epsilon, delta) buys, floored.

        delta = 0 gives a pure budget. Otherwise nine tenths of delta pay for the conversion from mu
        (``gdp.half_mu_squared``), and one tenth is kept for thresholds: (1, 1e-9) gives
        mu^2 / 2 = 0.0164524.

        Args:
            epsilon: above 0, at most 1000.
            delta: 0 to 1e-6.

        Raises:
            BudgetError: epsilon not above 0 or above 1000, delta below 0 or above 1e-6, or either so small
                that nothing could be bought.
        """
        exact_epsilon = exact_number("epsilon", epsilon)
        exact_delta = exact_number("delta", delta)
        if exact_epsilon <= 0:
            raise BudgetError(
                f"epsilon={epsilon} is out of range: it must be greater than 0; usual values are 0.1 to 10"
            )
        if exact_epsilon > LARGEST_EPSILON:
            raise BudgetError(f"epsilon={epsilon} is out of range: more than 1000 protects nobody")
        if exact_delta < 0 or exact_delta > LARGEST_DELTA:
            raise BudgetError(
                f"delta={delta} is out of range: allowed is 0 (pure differential privacy) to 1e-6; "
                "the default is 1e-9"
            )
        if exact_delta == 0:
            budget = cls("pure", int(exact_epsilon * AMOUNT_UNITS))
        else:
            conversion, thresholds = delta_shares(exact_delta)
            budget = cls("gdp", half_mu_squared(exact_epsilon, conversion), thresholds)
        if budget.amount == 0:
            raise BudgetError(f"epsilon={epsilon} with delta={delta} is too small to pay for any answer")
        return budget

    @classmethod
    def of_release(cls, epsilon: Number, delta: Number) -> Budget:
        """What a release of (epsilon, delta) may spend. Below epsilon 1 its threshold delta shrinks with
        epsilon, so that ten releases at epsilon 0.1 take as much as one at epsilon 1.

        Raises:
            BudgetError: as ``from_epsilon``.
        """
        full = cls.from_epsilon(epsilon, delta)
        share = min(exact_number("epsilon", epsilon), Fraction(1))
        return cls(full.kind, full.amount, int(full.delta * share))

    def without_thresholds(self) -> Budget:
        """The same amount with no threshold delta: what a release without discovery debits."""
        return Budget(self.kind, self.amount)

    @property
    def fraction(self) -> Fraction:
        """The amount as an exact number (mu^2 / 2 or epsilon)."""
        return Fraction(self.amount, AMOUNT_UNITS)

    @property
    def gaussian(self) -> bool:
        """Whether its noise is Gaussian; that of a pure budget is Laplace."""
        return self.kind != "pure"

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter, which mu^2 / 2 is too; a pure epsilon implies epsilon^2/2."""
        return self.fraction if self.gaussian else self.fraction**2 / 2

    def law(self, rows: float = 1) -> NoiseLaw:
        """Noise of counts that it pays for; a unit changes at most so many ``rows`` of each."""
        return NoiseLaw.of(float(self.fraction), gaussian=self.gaussian, rows=rows)

    def split(self, weights: Sequence[int | float | Fraction]) -> tuple[Budget, ...]:
        """Divide by weights; the shares sum to this budget exactly.

        Threshold delta is divided too. Each share is floored and the last non-zero one takes
        the units left over.

        Raises:
            InternalError: a weight is negative or all are zero.
        """
        exact = [Fraction(weight) for weight in weights]
        if not exact or min(exact) < 0 or sum(exact) == 0:
            raise InternalError("weights must be non-negative and not all zero")
        last = max(index for index, weight in enumerate(exact) if weight)
        amounts = _floored_shares(self.amount, exact, last)
        deltas = _floored_shares(self.delta, exact, last)
        return tuple(Budget(self.kind, amount, delta) for amount, delta in zip(amounts, deltas, strict=True))


def _floored_shares(units: int, weights: Sequence[Fraction], last: int) -> list[int]:
    total = sum(weights)
    shares = [int(units * weight / total) for weight in weights]
    shares[last] += units - sum(shares)
    return shares
