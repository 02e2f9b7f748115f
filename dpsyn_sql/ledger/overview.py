"""What a ledger holds, for people: accounts with what is left, releases with what they cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpsyn_sql.accounting.account import affordable_epsilon, left_in_words, reported_delta, reported_epsilon
from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.panels import Spending
from dpsyn_sql.ledger.accounts import Account, account_of_row
from dpsyn_sql.ledger.chain import GENESIS
from dpsyn_sql.ledger.panels import charge_of
from dpsyn_sql.ledger.store import Store


@dataclass(frozen=True, slots=True)
class Former:
    """An account of zCDP as it was when it was priced anew (``at``, UTC)."""

    at: str
    spent: Budget
    limit: Budget | None
    epsilon: float
    delta: Fraction


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """One account.

    ``limit`` and ``remaining`` are None without a grant. ``epsilon`` and ``delta`` are what the
    spent sum implies. ``affordable`` is the largest epsilon of one more release at
    ``granted[1]`` (None without a limit), ``left`` says in words what still fits. ``former``: its state
    before it was priced anew.
    """

    name: str
    kind: Kind
    unit: str | None
    granted: tuple[str, str] | None
    limit: Budget | None
    spent: Budget
    remaining: Budget | None
    epsilon: float
    delta: Fraction
    affordable: Decimal | None
    left: str
    sources: tuple[str, ...]
    former: Former | None = None


@dataclass(frozen=True, slots=True)
class ReleaseOverview:
    """One release; ``published`` holds (target, rows) of every time it was written.

    ``cost`` is its debit, also after its account was priced anew. ``charged`` is by how much it raised what
    its account has spent, in the account's kind: less than the debit for a slice of a panel.
    """

    release_id: str
    account: str
    name: str
    version: str | None
    state: str
    cost: Budget
    charged: Budget
    debited_at: str
    measured_on: str | None
    published: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """A ledger; ``head`` is the hash to keep elsewhere, for ``verify``."""

    place: str
    head: str
    accounts: tuple[AccountOverview, ...]
    releases: tuple[ReleaseOverview, ...]


def overview(store: Store) -> Overview:
    """Everything but the answers; call inside a reading transaction."""
    rows = [(row["account_id"], account_of_row(row)) for row in store.all("all_accounts")]
    sources: dict[int, list[str]] = {}
    for row in store.all("all_sources"):
        sources.setdefault(row["account_id"], []).append(row["name"])
    last, former = store.one("last_record"), _former(store, {one.name: one for _, one in rows})
    return Overview(
        store.place,
        GENESIS if last is None else last["hash"],
        tuple(
            account_overview(account, tuple(sources.get(number, ())), former.get(account.name))
            for number, account in rows
        ),
        _releases(store, dict(rows)),
    )


def _former(store: Store, accounts: dict[str, Account]) -> dict[str, Former]:
    """By the names of the accounts that were priced anew."""
    found = {}
    for row in store.all("all_repriced"):
        body = json.loads(row["body"])
        account, then = accounts[body["account"]], body["from"]
        spent = Budget("zcdp", *then["spent"])
        limit = None if then["limit"] is None else Budget("zcdp", *then["limit"])
        epsilon, delta = reported_epsilon(spent, account.delta), reported_delta(spent, account.delta)
        found[account.name] = Former(body["at"], spent, limit, epsilon, delta)
    return found


def account_overview(
    account: Account, sources: tuple[str, ...] = (), former: Former | None = None
) -> AccountOverview:
    """An account with what follows from its sums."""
    balance, left = account.balance, account.balance.remaining
    return AccountOverview(
        name=account.name,
        kind=account.kind,
        unit=account.unit,
        granted=account.granted,
        limit=balance.limit,
        spent=balance.spent,
        remaining=left,
        epsilon=reported_epsilon(balance.spent, account.delta),
        delta=reported_delta(balance.spent, account.delta),
        affordable=None if left is None else affordable_epsilon(left, account.delta),
        left="" if left is None else left_in_words(left, account.delta),
        sources=sources,
        former=former,
    )


def _releases(store: Store, accounts: dict[int, Account]) -> tuple[ReleaseOverview, ...]:
    written: dict[int, list[tuple[str, int]]] = {}
    for row in store.all("all_publications"):
        written.setdefault(row["entry_id"], []).append((row["target"], row["synthetic_rows"]))
    spending = {number: Spending(account.kind) for number, account in accounts.items()}
    found = []
    prices = {row["entry_id"]: row["amount"] for row in store.all("all_prices")}
    for row in store.all("all_entries"):
        cost = priced = Budget(row["kind"], row["amount"], row["delta"])
        if row["entry_id"] in prices:
            priced = Budget("gdp", prices[row["entry_id"]], row["delta"])
        charge = charge_of(priced, row["configuration"], row["name"])
        one = ReleaseOverview(
            release_id=row["release_id"],
            account=accounts[row["account_id"]].name,
            name=row["name"],
            version=row["version"],
            state=row["state"],
            cost=cost,
            charged=spending[row["account_id"]].add(charge),
            debited_at=row["debited_at"],
            measured_on=row["measured_on"],
            published=tuple(written.get(row["entry_id"], ())),
        )
        found.append(one)
    return tuple(found)
