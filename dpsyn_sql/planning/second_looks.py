"""Which columns of text are looked at again for values, and with what budget.

A first look at each column shows the values of many rows. What a second one can show depends on the rows that
the first one left hidden. The division follows from noisy answers and public facts alone, and together the
second looks never cost more than was planned for them.

Suppose that the hidden rows of a column are spread evenly over the logarithm of how many rows their values
have. A threshold that falls from T to t then shows rows in proportion to h log(T / t) of h hidden ones, and t
falls with the root of the budget. So the most is shown if budget is divided in proportion to h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

HIDDEN = 0.1
"""Part of all rows that has to be hidden in a column for a second look."""

LOWER = 0.75
"""The threshold of a second look has to be below this part of the first one: it finds nothing else."""

LEAST = 0.005
"""Part of all rows below which values are not looked for: a threshold is not made lower than this."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What the first look at a column cost and found.

    Attributes:
        amount: its cost, in units of a budget.
        threshold: the noisy rows from which values were shown.
        found: the noisy rows of all values that were shown.
        error: the standard deviation of ``found``.
    """

    amount: int
    threshold: int
    found: int
    error: float


def second_looks(pool: int, looks: Mapping[str, FirstLook], rows: float | None) -> dict[str, int]:
    """What the second look at each column costs; columns that are not named are not looked at again.

    Args:
        pool: what all second looks may cost together, in units of a budget.
        looks: the first looks.
        rows: the noisy number of rows, or None: then the most that was found in one of the columns, which is
            less. NULL counts as hidden.
    """
    total = max((look.found for look in looks.values()), default=0) if rows is None else rows
    hidden = {name: total - look.found for name, look in looks.items()}
    left = {
        name: rest for name, rest in hidden.items() if rest > max(HIDDEN * total, 2 * looks[name].error, 1)
    }
    while left:
        every = sum(map(Fraction, left.values()))  # exact: together no more than the pool
        shares = {
            name: min(math.floor(pool * Fraction(rest) / every), _enough(looks[name], total))
            for name, rest in left.items()
        }
        lost = [name for name, share in shares.items() if not _pays(looks[name], share, left[name])]
        if not lost:
            return shares
        del left[min(lost, key=lambda name: left[name])]
    return {}


def _pays(look: FirstLook, amount: int, hidden: float) -> bool:
    """Whether a look at this cost shows values that the first one did not, and that are there to be found."""
    return amount > 0 and _threshold(look, amount) < min(LOWER * look.threshold, hidden)


def _threshold(look: FirstLook, amount: int) -> float:
    """Noise, and with it the threshold, falls with the root of the budget."""
    return look.threshold * math.sqrt(look.amount / amount)


def _enough(look: FirstLook, rows: float) -> int:
    """The cost of the lowest threshold that is asked for."""
    return math.ceil(look.amount * (look.threshold / max(1.0, LEAST * rows)) ** 2)
