"""Which panel an entry of the ledger belongs to, read from its configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsyn_sql.accounting.account import describe
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget
from dpsyn_sql.accounting.panels import Charge, Place
from dpsyn_sql.errors import InternalError, SeriesUnfinished
from dpsyn_sql.ledger.chain import canonical_json
from dpsyn_sql.ledger.stops import taken_by_release
from dpsyn_sql.ledger.store import Store
from dpsyn_sql.source.relation import ROW_OF_RESULT

_OF_ONE_SLICE = ("index", "value", "edges")
"""Facts of a slice that do not belong to its panel."""


@dataclass(frozen=True, slots=True)
class Debited:
    """A release of an account; ``measured``: its source is not read any more."""

    charge: Charge
    name: str
    version: str | None
    measured: bool


def charge_of(
    budget: Budget, configuration: str | None, name: str, taken: tuple[int, int] | None = None
) -> Charge:
    """What a release debits, and where; without a configuration outside of panels. ``taken``: the amount and
    the threshold delta that it took over from releases that stopped.

    Raises:
        InternalError: the configuration is not one that was written here.
    """
    over = None if taken is None else Budget(budget.kind, *taken)
    if configuration is None or '"slice":' not in configuration:
        return Charge(budget, None, over)
    try:
        return Charge(budget, place_of(json.loads(configuration), name), over)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        pass
    raise InternalError("a release has an impossible slice")


def place_of(configuration: Mapping[str, Any], name: str) -> Place | None:
    """Where a release lies in its panel; None if it is charged in full.

    A panel is all that decides the slices. A bound on the windows of a unit holds within the releases of one
    name; that a row is in one slice only holds for all of them.
    """
    told = configuration.get("slice")
    if told is None or told["most"] is None:
        return None
    unit = configuration.get("unit")
    ordered = unit not in (None, ROW_OF_RESULT)
    source = [configuration.get("source"), configuration.get("kind"), unit, name if ordered else None]
    panel = {fact: value for fact, value in told.items() if fact not in _OF_ONE_SLICE}
    number, most = told["value" if "value" in told else "index"], told["most"]
    edges = tuple(told.get("edges", ()))
    if type(most) is not int or most < 1 or type(number) not in (int, str):
        raise ValueError("no slice")
    return Place(canonical_json([*source, panel]), number, most, edges, ordered)


def debits(store: Store, account_id: int) -> list[Debited]:
    """All releases of an account, in the order of their debits."""
    rows, taken = store.all("account_budgets", account_id=account_id), taken_by_release(store, account_id)
    found = []
    for row in rows:
        budget = Budget(row["kind"], row["amount"], row["delta"])
        charge = charge_of(budget, row["sliced"], row["name"], taken.get(row["release_id"]))
        found.append(Debited(charge, row["name"], row["version"], row["state"] != "debited"))
    return found


def refuse_unfinished(known: Sequence[Debited], place: Place | None) -> None:
    """A series is read in the order of its windows: an earlier one must not be read after this one.

    Raises:
        SeriesUnfinished: a release of an earlier window was begun and is not measured.
    """
    for one in known:
        other = one.charge.place
        if one.measured or other is None or place is None or not must_precede(other, place):
            continue
        raise SeriesUnfinished(
            f"The release {one.name!r} version {one.version!r} of another window was begun and is not "
            "measured. Units are counted in at most so many windows only if the windows are read one after "
            "the other: finish it first (the same call costs nothing more), or leave most= out. Nothing was "
            "read or charged."
        )


def must_precede(one: Place, other: Place) -> bool:
    """Whether ``one`` must be measured before ``other`` is debited: it is an earlier window of the series."""
    if not other.ordered or one.panel != other.panel:
        return False
    return isinstance(one.number, int) and isinstance(other.number, int) and one.number < other.number


def in_words(charge: Charge, cost: Budget, delta: Fraction, *, shared: bool) -> str:
    """What a new debit costs; empty where that is all of it. ``shared``: it has the bound of its panel."""
    place = charge.place
    if place is None and charge.taken is not None:
        more = f"{describe(cost, delta)} more" if cost.amount else "nothing more"
        if cost.delta and not cost.amount:
            more = f"a threshold delta of {cost.delta / DELTA_UNITS:.3g} more"
        return (
            f"a new debit of {describe(charge.budget, delta)}, of which a release that stopped has paid "
            f"{describe(charge.taken, delta)}: costs {more}, which fits the account"
        )
    if place is None:
        return ""
    slices = "windows" if place.edges else "partitions"
    which = f"one of the {slices}" if place.most == 1 else f"{place.most} of the {slices}"
    told = f"a new debit of {describe(charge.budget, delta)}; a unit can be in {which}: costs "
    if cost.amount == cost.delta == 0:
        return f"{told}nothing more"
    if shared:
        return f"{told}{describe(cost, delta)} more, which fits the account"
    why = f"a later window was released, or the calendar has other edges than the {slices} before"
    return f"a new debit of {describe(cost, delta)}, charged in full ({why}), which fits the account"
