"""Releases that stop after learning: what they have not asked for pays for later releases of their account.

That a release stopped, and what it hands on, are rows of ``event`` beside its questions. So the trigger that
keeps events within a debit keeps both: nothing is handed on twice, or asked for and handed on. Nothing is
given back: the debit stays, and the next debit of the account is smaller (docs/privacy.md, "Releases that
stop"). Every function here runs inside a transaction of the caller.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.ledger.store import Store, append, canonical_json

BESIDE = -1
"""The number in the place of a question's; number 0 there is the mark, and what is handed on follows."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a debit takes over from a release that stopped; ``ordinal``: of the row that says so there."""

    entry_id: int
    release_id: str
    state: str
    ordinal: int
    budget: Budget

    @property
    def fact(self) -> list[Any]:
        """For the record of the debit, JSON-ready."""
        return [self.release_id, self.ordinal, self.budget.amount, self.budget.delta]


def mark_text(after: int) -> str:
    """The mark of a release that stopped after so many questions."""
    return canonical_json({"event": "stopped", "after": after})


def handed_text(release_id: str) -> str:
    """What names the release that took something over."""
    return canonical_json({"event": "handed", "to": release_id})


def mark(store: Store, entry_id: int, release_id: str, after: int) -> None:
    """Mark a release as stopped, once; it has asked ``after`` questions."""
    row_key = {"entry_id": entry_id, "sequence": BESIDE, "ordinal": 0}
    if store.one("find_event", **row_key) is None:
        store.run("add_event", **row_key, event=mark_text(after), amount=0, delta=0)
        append(store, "stopped", {"release": release_id, "after": after})


def stopped(store: Store, account_id: int, kind: Kind) -> Iterator[Taken]:
    """The releases of an account that stopped, with all that each can still hand on.

    Only those that are counted as the account counts: a pure release has one price as a whole in an account
    of kind ``"gdp"``.
    """
    for row in _rows(store, account_id):
        if row["kind"] == kind:
            left = Budget(kind, row["amount"] - row["spent_amount"], row["delta"] - row["spent_delta"])
            yield Taken(row["entry_id"], row["release_id"], row["state"], row["handed"] + 1, left)


def rest_of(store: Store, account_id: int, kind: Kind) -> Budget:
    """What is debited in an account, was not asked for, and pays for its next release."""
    return total(kind, (stop.budget for stop in stopped(store, account_id, kind)))


def taken_over(store: Store, account_id: int, wanted: Budget) -> list[Taken]:
    """What a debit of ``wanted`` takes over, of the oldest first; writes nothing."""
    takeovers, amount, delta = list[Taken](), wanted.amount, wanted.delta
    for stop in stopped(store, account_id, wanted.kind):
        part = Budget(wanted.kind, min(amount, stop.budget.amount), min(delta, stop.budget.delta))
        if part.amount or part.delta:
            takeovers.append(Taken(stop.entry_id, stop.release_id, stop.state, stop.ordinal, part))
            amount, delta = amount - part.amount, delta - part.delta
    return takeovers


def hand_on(store: Store, takeovers: Iterable[Taken], to: str) -> None:
    """Close each release that something was taken from, for good, and reserve it there.

    The record of the debit that takes it names it; it follows in the same transaction.
    """
    for takeover in takeovers:
        if takeover.state == "debited":
            today = datetime.now(UTC).date().isoformat()
            store.run("move_entry", entry_id=takeover.entry_id, state="measured", measured_on=today)
            append(store, "measured", {"release": takeover.release_id, "on": today})
        row_key = {"entry_id": takeover.entry_id, "sequence": BESIDE, "ordinal": takeover.ordinal}
        costs = {"amount": takeover.budget.amount, "delta": takeover.budget.delta}
        store.run("add_event", **row_key, event=handed_text(to), **costs)


def taken_by_release(store: Store, account_id: int) -> dict[str, tuple[int, int]]:
    """The amount and the threshold delta that each release of an account took over, by its id."""
    totals: dict[str, tuple[int, int]] = {}
    for row in store.all("find_handed", account_id=account_id):
        to = json.loads(row["event"])["to"]
        amount, delta = totals.get(to, (0, 0))
        totals[to] = (amount + row["amount"], delta + row["delta"])
    return totals


def total(kind: Kind, budgets: Iterable[Budget]) -> Budget:
    """The sum of budgets of one kind."""
    amounts = list(budgets)
    return Budget(kind, sum(budget.amount for budget in amounts), sum(budget.delta for budget in amounts))


def stopped_ids(store: Store, account_id: int) -> set[int]:
    """The entries of an account that stopped: they have no output, and never have one but by going on."""
    return {row["entry_id"] for row in _rows(store, account_id)}


def _rows(store: Store, account_id: int) -> Iterator[dict[str, Any]]:
    """Releases that are marked and have reserved nothing for a further question since; nor were they brought
    to an end without one."""
    for row in store.all("find_stops", account_id=account_id):
        going = row["last"] >= json.loads(row["stop"])["after"]
        if not going and (row["state"] == "debited" or row["handed"]):
            yield row
