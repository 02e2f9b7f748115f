"""Panels: the same synthetic persons period after period of a declared calendar, under one budget.

The first period is a release of its window. A later one asks about units with a row in it or in the period
before: who stays, leaves and joins, and the attributes of a row given those of the period before. Rows of a
period then are rows of a table below that of the period before, which is known: it was published.

The argument for the costs is in docs/privacy.md, "Panels". Nothing here reads a row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.planning.asking import Asked
from dpsyn_sql.planning.families import Above, Families, before, numbers_of_rows
from dpsyn_sql.planning.queries import MarginalQuery, Marginals
from dpsyn_sql.source.slices import Slice, Window

STAYS, LEAVES, JOINS = range(3)
"""Codes of the presence of a unit: it has a row in both periods, in the one before, or in this one."""

PRESENCE_SHARE = Fraction(1, 8)
"""Part of a period's budget that asks who stays, leaves and joins."""

_TABLE, _BEFORE = "period", "period before"


@dataclass(frozen=True, slots=True)
class Panel:
    """One period of a panel: ``window`` is that of the period, ``whole`` the budget of all together."""

    window: Window
    whole: Budget

    @property
    def labels(self) -> tuple[str, ...]:
        """Of all periods."""
        return self.window.names

    @property
    def periods(self) -> int:
        """How many there are."""
        return len(self.labels)

    @property
    def period(self) -> int:
        """Counted from 1."""
        return self.window.index + 1

    @property
    def label(self) -> str:
        """Of the period, which is the version of its release."""
        return self.labels[self.window.index]

    @property
    def follows(self) -> bool:
        """Whether there is a period before."""
        return self.window.index > 0

    @property
    def budget(self) -> Budget:
        """Of one period: an equal part, and in the first one the thresholds of discovery."""
        delta = 0 if self.follows else self.whole.delta
        return Budget(self.whole.kind, self.whole.amount // self.periods, delta)

    def at(self, period: int) -> Panel:
        """The same panel in another period."""
        return replace(self, window=replace(self.window, index=period - 1))

    @property
    def identity(self) -> dict[str, Any]:
        """What else makes another release, JSON-ready: all that divides the budget among periods."""
        edges = [moment.isoformat() for moment in self.at(self.periods).window.moments]
        part = self.whole.amount // self.periods
        return {"panel": {"edges": edges, "labels": list(self.labels), "units_of_1e-15_for_a_period": part}}

    @property
    def facts(self) -> dict[str, Any]:
        """What readers of a certificate need to know, JSON-ready."""
        return {
            "period": self.period,
            "periods": self.periods,
            "follows": self.labels[self.window.index - 1] if self.follows else None,
        }

    @property
    def lines(self) -> tuple[str, ...]:
        """For the explained plan."""
        first = f"Panel       period {self.period} of {self.periods}, {self.label}: "
        first += f"persons of {self.labels[self.window.index - 1]} go on" if self.follows else "the first"
        blank = " " * 12
        return (
            first,
            f"{blank}epsilon and delta are for all periods together; this one may spend 1/{self.periods}",
            f"{blank}one row of a unit counts in a period; further ones are left out by lot",
        )


def panel_of(sliced: Slice | None, version: str | None, budget: Budget) -> Panel:
    """The panel of a request.

    Args:
        sliced: the window of the period, in the calendar of all of them.
        version: the label of the period, or None.
        budget: the budget of all periods.

    Raises:
        InputError: all that is wrong with them; the budget is too small for so many periods.
    """
    faults = []
    if not isinstance(sliced, Window) or sliced.span != 1:
        faults.append(
            "window= must be that of the period in a calendar with an end, of span 1: the budget is "
            "divided among all periods, so there must be so many and no more"
        )
    else:
        if sliced.most is not None:
            faults.append("most= must be left out: a person may be in all periods, and all are charged")
        if version not in (None, label := sliced.names[sliced.index]):
            faults.append(f"version={said(version)} must be the label of the window, {said(label)}")
    if faults or not isinstance(sliced, Window):
        raise InputError(f"The panel cannot be made: {'; '.join(faults)}.")
    panel = Panel(sliced, budget)
    if panel.budget.amount == 0:
        raise InputError(f"The panel cannot be made: a part of the budget in {panel.periods} buys no answer.")
    return panel


def families_of_period(domain: Domain, shared: Collection[str] = ()) -> Families:
    """The attributes of a later period: ``domain``, then the same of the period before, where NULL stands for
    no row too. Their rows are one for each row above. Of ``shared`` a person keeps what it had.

    ``persons`` are those of the period before; ``size`` has one code.
    """
    names, hidden, above = set(domain.names), list[Attribute](), list[Above]()
    for attribute in domain.attributes:
        name = _free(f"{attribute.name} before", names)
        hidden.append(before(name, attribute))
        above.append(Above(name, _BEFORE, attribute.name))
    size = numbers_of_rows(_free("rows in the period", names), 1)
    above.append(Above(size.name, _BEFORE, size.name))
    return Families(
        Domain((*domain.attributes, *hidden, size)),
        len(domain.attributes),
        frozenset(entry.name for entry in above),
        size.name,
        table=_TABLE,
        above=tuple(above),
        kept=tuple(name for name in domain.names if name in shared),
    )


def _free(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name


def presence_domain(families: Families) -> Domain:
    """The attributes of the period before, then the presence of a unit."""
    earlier = families.domain.attributes[families.written : -1]
    labels = ("stays", "leaves", "joins")
    name = _free("presence", set(families.domain.names))
    return Domain((*earlier, Attribute(name, "VARCHAR", "categorical", labels=labels)))


def presence_step(families: Families, budget: Budget) -> Asked:
    """Who stays, leaves and joins: in all, and by each attribute of the period before."""
    *earlier, presence = presence_domain(families).names
    queries = (MarginalQuery((presence,)), *(MarginalQuery((name, presence)) for name in earlier))
    return Asked(Marginals(queries), budget, "who stays, leaves and joins")


def divided(budget: Budget) -> tuple[Budget, Budget]:
    """What pays for presence, and what is left to the method."""
    for_presence = int(budget.amount * PRESENCE_SHARE)
    return Budget(budget.kind, for_presence), replace(budget, amount=budget.amount - for_presence)
