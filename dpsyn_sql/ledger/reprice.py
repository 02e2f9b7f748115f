"""An account of zCDP is priced anew by exact Gaussian accounting.

A sum of rho implies no mu, so each release is priced by its events, which the ledger keeps. The argument is
in docs/privacy.md, "Pricing an account anew". Every function here runs inside a transaction of the caller.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dpsyn_sql.accounting.account import KINDS, Balance, describe, granted_budget
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import (
    GaussianEvent,
    PrivacyEvent,
    ThresholdEvent,
    event_from_dict,
    total_units,
)
from dpsyn_sql.accounting.gdp import SMOOTHING
from dpsyn_sql.accounting.panels import Charge, spending_of
from dpsyn_sql.errors import AccountError
from dpsyn_sql.ledger import accounts
from dpsyn_sql.ledger.accounts import Account
from dpsyn_sql.ledger.chain import append, canonical_json
from dpsyn_sql.ledger.overview import AccountOverview, account_overview
from dpsyn_sql.ledger.panels import charge_of
from dpsyn_sql.ledger.store import Store

_NOTHING = "Nothing was changed."


@dataclass(frozen=True, slots=True)
class Repricing:
    """An account before and after; ``releases``: how many were priced by their events."""

    before: AccountOverview
    after: AccountOverview
    releases: int


@dataclass(frozen=True, slots=True)
class _Priced:
    """``prices``: amounts of mu^2/2 by release, in units."""

    before: Account
    after: Account
    entries: Mapping[str, int]
    prices: Mapping[str, int]


def foreseen(store: Store, name: str) -> Repricing:
    """What ``carried_out`` would do.

    Raises:
        AccountError: as ``carried_out``.
    """
    return _shown(store, _priced(store, name))


def carried_out(store: Store, name: str, told: Repricing | None) -> Repricing:
    """Write the prices, the new sum and limit, and their record.

    Raises:
        AccountError: there is no such account, it is of another kind, a release or a running total of it is
            unfinished, an event cannot be priced, it would be overspent, or ``told`` does not hold.
    """
    priced = _priced(store, name)
    shown = _shown(store, priced)
    if told is not None and told != shown:
        raise AccountError(
            f"The account {name!r} was charged or granted meanwhile, so its new balance is another than was "
            f"said. {_NOTHING} Run the same command again."
        )
    for release, amount in priced.prices.items():
        store.run("add_price", entry_id=priced.entries[release], amount=amount)
    accounts.update(store, priced.after)
    append(store, "repriced", _body(priced))
    return shown


def price_of_events(events: Iterable[PrivacyEvent]) -> int:
    """mu^2/2 of whole-count events, in units of 1e-15, each rounded up."""
    return total_units(events, "gdp")


def _body(priced: _Priced) -> dict[str, Any]:
    before, after = priced.before.balance, priced.after.balance
    return {
        "account": priced.before.name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "from": {"kind": "zcdp", "spent": _pair(before.spent), "limit": _pair(before.limit)},
        "prices": dict(priced.prices),
        "spent": _pair(after.spent),
        "limit": _pair(after.limit),
    }


def _pair(budget: Budget | None) -> list[int] | None:
    return None if budget is None else [budget.amount, budget.delta]


def _shown(store: Store, priced: _Priced) -> Repricing:
    sources = accounts.sources_of(store, priced.before)
    before, after = (account_overview(one, sources) for one in (priced.before, priced.after))
    return Repricing(before, after, len(priced.prices))


def _priced(store: Store, name: str) -> _Priced:
    account = accounts.find(store, name)
    if account is None:
        raise AccountError(f"The ledger {store.place} has no account {name!r}. {_NOTHING}")
    if account.kind != "zcdp":
        why = "It is never priced by another rule." if account.kind == "gdp" else "It has nothing to gain."
        raise AccountError(f"The account {name!r} counts by {KINDS[account.kind]}. {why} {_NOTHING}")
    accounts.refuse_other_sum(store, account)
    rows = [row for row in store.all("all_entries") if row["account_id"] == account.account_id]
    _refuse_unfinished(name, rows)
    prices = {row["release_id"]: _price(store, row) for row in rows if row["kind"] == "zcdp"}
    spent = spending_of((_charge(row, prices) for row in rows), "gdp").total
    after = replace(account, balance=Balance(spent, _limit(account)))
    _refuse_overspent(account, after)
    return _Priced(account, after, {row["release_id"]: row["entry_id"] for row in rows}, prices)


def _charge(row: Mapping[str, Any], prices: Mapping[str, int]) -> Charge:
    priced = prices.get(row["release_id"])
    budget = Budget(row["kind"], row["amount"], row["delta"])
    if priced is not None:
        budget = Budget("gdp", priced, row["delta"])
    return charge_of(budget, row["configuration"], row["name"])


def _limit(account: Account) -> Budget | None:
    return None if account.granted is None else granted_budget(*account.granted, "gdp")


def _price(store: Store, row: Mapping[str, Any]) -> int:
    """Of a release, by its events.

    Raises:
        AccountError: one of them has no price.
    """
    found = store.all("find_events", entry_id=row["entry_id"])
    events = [event_from_dict(json.loads(one["event"])) for one in found]
    for event in events:
        if (
            isinstance(event, GaussianEvent | ThresholdEvent)
            and (event.sigma * event.lattice) ** 2 <= SMOOTHING
        ):
            raise AccountError(
                f"The release {_told(row)} has noise of a standard deviation of {event.sigma:.3g} on whole "
                f"counts. Exact Gaussian accounting has no price for noise up to {SMOOTHING**0.5:g}, so the "
                f"account stays as it is: new releases are priced by zCDP. {_NOTHING}"
            )
    return price_of_events(events)


def _told(row: Mapping[str, Any]) -> str:
    return repr(row["name"]) if row["version"] is None else f"{row['name']!r} version {row['version']!r}"


def _refuse_unfinished(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Questions that are still to come would be priced by zCDP, and a calendar is divided by it."""
    totals: defaultdict[str, set[Any]] = defaultdict(set)
    for row in rows:
        if row["kind"] != "zcdp":
            continue
        if row["state"] == "debited":
            raise AccountError(
                f"The release {_told(row)} of the account {name!r} was begun and is not measured: "
                "its questions are not known yet and priced by zCDP. Finish it first (the same call "
                f"costs nothing more). {_NOTHING}"
            )
        if (facts := json.loads(row["configuration"]).get("running_total")) is not None:
            totals[canonical_json([row["name"], facts])].add(row["version"])
    for text, found in totals.items():
        told, facts = json.loads(text)
        if len(found) < facts["periods"]:
            raise AccountError(
                f"The running total {told!r} of the account {name!r} has measured {len(found)} of "
                f"its {facts['periods']} periods; its budget is divided by zCDP. Price it anew after "
                f"its last period. {_NOTHING}"
            )


def _refuse_overspent(before: Account, after: Account) -> None:
    if Balance(Budget("gdp", 0), after.balance.limit).admits(after.balance.spent):
        return
    limit = after.balance.limit
    fits = "what a ledger can count" if limit is None else f"its limit of {describe(limit)}"
    raise AccountError(
        f"Priced anew, the releases of the account {before.name!r} cost {describe(after.balance.spent)}, "
        f"more than {fits}: private choices and pure releases cost more by exact Gaussian accounting than "
        f"by zCDP. {_NOTHING} Leave the account as it is, or raise its limit first (`dpsyn ledger grant`)."
    )
