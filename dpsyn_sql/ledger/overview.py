"""What a ledger holds, for people: accounts with what is left, releases with what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpsyn_sql.accounting.account import Spending, affordable_epsilon, describe
from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.ledger.accounts import Account, account_of_row
from dpsyn_sql.ledger.stops import stopped_ids, taken_by_release
from dpsyn_sql.ledger.store import GENESIS, Store
from dpsyn_sql.ledger.ties import charge_of


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """One account.

    ``limit`` and ``remaining`` are None without a grant. ``epsilon`` and ``delta`` are what its releases
    imply. ``affordable`` is the largest epsilon of one more release at ``granted[1]`` (None without a limit),
    ``left`` says in words what still fits.
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


@dataclass(frozen=True, slots=True)
class ReleaseOverview:
    """One release; ``published`` holds (target, rows) of every time it was written.

    ``cost`` is its debit, and ``told`` the same for people. ``charged`` is by how much it raised what its
    account has spent, in the account's kind: less than the debit for a slice of a panel, and where a release
    that stopped has paid. ``state``: of the entry, or ``"stopped"``.
    """

    release_id: str
    account: str
    name: str
    version: str | None
    state: str
    cost: Budget
    charged: Budget
    told: str
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
    accounts = {row["account_id"]: account_of_row(store, row) for row in store.all("all_accounts")}
    sources: dict[int, list[str]] = {}
    for row in store.all("all_sources"):
        sources.setdefault(row["account_id"], []).append(row["name"])
    last = store.one("last_record")
    return Overview(
        store.place,
        GENESIS if last is None else last["hash"],
        tuple(
            account_overview(account, tuple(sources.get(number, ()))) for number, account in accounts.items()
        ),
        _releases(store, accounts),
    )


def account_overview(account: Account, sources: tuple[str, ...] = ()) -> AccountOverview:
    """An account with what follows from its sums."""
    balance, fits, granted = account.balance, account.fits, account.granted
    return AccountOverview(
        name=account.name,
        kind=account.kind,
        unit=account.unit,
        granted=granted,
        limit=balance.limit,
        spent=balance.spent,
        remaining=balance.remaining,
        epsilon=account.epsilon,
        delta=account.told_delta,
        affordable=None
        if fits is None or granted is None
        else affordable_epsilon(fits, Fraction(granted[1])),
        left=account.left,
        sources=sources,
    )


def _releases(store: Store, accounts: dict[int, Account]) -> tuple[ReleaseOverview, ...]:
    written: dict[int, list[tuple[str, int]]] = {}
    for row in store.all("all_publications"):
        written.setdefault(row["entry_id"], []).append((row["target"], row["synthetic_rows"]))
    spending = {number: Spending(account.kind) for number, account in accounts.items()}
    taken_over = {
        release: over for number in accounts for release, over in taken_by_release(store, number).items()
    }
    stopped = {entry for number in accounts for entry in stopped_ids(store, number)}
    releases = []
    for row in store.all("all_entries"):
        account = accounts[row["account_id"]]
        cost = Budget(row["kind"], row["amount"], row["delta"])
        charge = charge_of(cost, row["configuration"], row["name"], taken_over.get(row["release_id"]))
        shown = ReleaseOverview(
            release_id=row["release_id"],
            account=account.name,
            name=row["name"],
            version=row["version"],
            state="stopped" if row["entry_id"] in stopped else row["state"],
            cost=cost,
            charged=spending[row["account_id"]].add(charge),
            told=describe(cost, account.delta),
            debited_at=row["debited_at"],
            measured_on=row["measured_on"],
            published=tuple(written.get(row["entry_id"], ())),
        )
        releases.append(shown)
    return tuple(releases)
