"""Panels: what releases of slices cost together, where a unit can be in some of the slices only.

The argument is in docs/privacy.md, "Windows and panels". Nothing here looks at rows: a price follows from the
debits of an account in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest

from dpsyn_sql.accounting.account import price
from dpsyn_sql.accounting.budget import Budget, Kind


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
    """A debit of an account; ``place`` is None outside of panels."""

    budget: Budget
    place: Place | None = None


@dataclass(slots=True)
class _Panel:
    """What the slices of a panel cost so far, and the longest calendar."""

    most: int
    edges: tuple[str, ...] = ()
    last: int | str | None = None
    amounts: dict[int | str, int] = field(default_factory=dict)
    deltas: dict[int | str, int] = field(default_factory=dict)

    def takes(self, place: Place) -> bool:
        """Whether the bound holds for this slice together with those before it."""
        shared = min(len(self.edges), len(place.edges))
        if self.edges[:shared] != place.edges[:shared]:
            return False
        if not place.ordered or self.last is None:
            return True
        return isinstance(place.number, int) and isinstance(self.last, int) and place.number >= self.last

    def add(self, place: Place, cost: Budget) -> None:
        """One more release of a slice."""
        self.edges, self.last = max(self.edges, place.edges, key=len), place.number
        self.amounts[place.number] = self.amounts.get(place.number, 0) + cost.amount
        self.deltas[place.number] = self.deltas.get(place.number, 0) + cost.delta

    def dearest(self) -> tuple[int, int]:
        """Amount and delta of the dearest slices, each by itself."""
        amounts, deltas = self.amounts.values(), self.deltas.values()
        return sum(nlargest(self.most, amounts)), sum(nlargest(self.most, deltas))


class Spending:
    """What the debits of an account of one kind cost together, as they are added one after the other."""

    def __init__(self, kind: Kind) -> None:
        self.total = Budget(kind, 0)
        self._panels: dict[str, _Panel] = {}

    def continues(self, place: Place) -> bool:
        """Whether the next debit there shares the bound of its panel; else it is charged in full."""
        panel = self._panels.get(place.panel)
        return panel is None or panel.takes(place)

    def add(self, charge: Charge) -> Budget:
        """Add a debit; returns by how much the total rises.

        Raises:
            AccountError: the account is pure and the release is not.
        """
        cost, place = price(charge.budget, self.total.kind), charge.place
        if place is not None:
            panel = self._panels.setdefault(place.panel, _Panel(place.most))
            if panel.takes(place):
                before = panel.dearest()
                panel.add(place, cost)
                amount, delta = panel.dearest()
                cost = Budget(cost.kind, amount - before[0], delta - before[1])
        self.total = Budget(cost.kind, self.total.amount + cost.amount, self.total.delta + cost.delta)
        return cost


def spending_of(charges: Iterable[Charge], kind: Kind) -> Spending:
    """What debits cost an account of ``kind``, in the order in which they were made.

    Raises:
        AccountError: as ``Spending.add``.
    """
    spending = Spending(kind)
    for charge in charges:
        spending.add(charge)
    return spending
