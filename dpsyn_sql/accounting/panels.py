"""Panels: what releases of slices cost together, where a unit can be in some of the slices only.

The argument is in docs/privacy.md, "Windows and panels". Nothing here looks at rows: a price follows from the
debits of an account in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest
from operator import add, sub

from dpsyn_sql.accounting.account import price
from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.errors import InternalError


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

    def takes(self, place: Place) -> bool:
        """Whether the bound holds for this slice together with those before it."""
        shared = min(len(self.edges), len(place.edges))
        if self.edges[:shared] != place.edges[:shared]:
            return False
        if not place.ordered or self.last is None:
            return True
        return isinstance(place.number, int) and isinstance(self.last, int) and place.number >= self.last

    def add(self, place: Place, costs: _Costs) -> None:
        """One more release of a slice."""
        self.edges, self.last = max(self.edges, place.edges, key=len), place.number
        self.slices[place.number] = _sums(self.slices.get(place.number, _NOTHING), costs)

    def dearest(self) -> _Costs:
        """The costs of the dearest slices, each cost by itself."""
        each = zip(_NOTHING, *self.slices.values(), strict=True)
        return tuple(sum(nlargest(self.most, costs)) for costs in each)


def _sums(one: _Costs, other: _Costs) -> _Costs:
    return tuple(map(add, one, other))


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

    def continues(self, place: Place) -> bool:
        """Whether the next debit there shares the bound of its panel; else it is charged in full."""
        panel = self._panels.get(place.panel)
        return panel is None or panel.takes(place)

    def add(self, charge: Charge) -> Budget:
        """Add a debit; returns by how much the total rises.

        Raises:
            AccountError: the account is pure and the release is not.
            InternalError: it takes over more than it debits, or lies in a panel.
        """
        budget, place = charge.budget, charge.place
        cost = price(budget, self._kind)
        parts = (budget.amount, 0) if budget.gaussian else (0, budget.amount)
        costs: _Costs = (cost.amount, cost.delta, *parts)
        if charge.taken is not None:
            costs = self._without(costs, charge)
        if place is not None:
            panel = self._panels.setdefault(place.panel, _Panel(place.most))
            if panel.takes(place):
                before = panel.dearest()
                panel.add(place, costs)
                costs = tuple(map(sub, panel.dearest(), before))
        self._costs = _sums(self._costs, costs)
        return Budget(self._kind, *costs[:2])

    def _without(self, costs: _Costs, charge: Charge) -> _Costs:
        """The costs less what was taken over. A pure release in an account of kind "gdp" has its whole price:
        it took something over while the account was pure."""
        budget, taken = charge.budget, charge.taken
        if taken is None or budget.kind != self._kind:
            return costs
        if charge.place is not None or taken.amount > budget.amount or taken.delta > budget.delta:
            raise InternalError("a debit takes over what it cannot")
        parts = (taken.amount, 0) if budget.gaussian else (0, taken.amount)
        return tuple(map(sub, costs, (taken.amount, taken.delta, *parts)))


def spending_of(charges: Iterable[Charge], kind: Kind) -> Spending:
    """What debits cost an account of ``kind``, in the order in which they were made.

    Raises:
        AccountError: as ``Spending.add``.
    """
    spending = Spending(kind)
    for charge in charges:
        spending.add(charge)
    return spending
