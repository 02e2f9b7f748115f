"""Accounts in the ledger: made, granted, charged; each change with its record.

Every function here runs inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dpsyn_sql.accounting.account import (
    AMOUNTS,
    KINDS,
    Balance,
    approximate,
    describe,
    exact_delta,
    grant_delta,
    grant_limit,
    granted_budget,
    left_in_words,
    reported_delta,
    reported_epsilon,
)
from dpsyn_sql.accounting.budget import Approximate, Budget, Kind, Number
from dpsyn_sql.accounting.panels import Charge, spending_of
from dpsyn_sql.errors import (
    AccountError,
    BudgetError,
    InternalError,
    LedgerDamaged,
    PrivacyBudgetExceeded,
)
from dpsyn_sql.interfaces import Standing
from dpsyn_sql.ledger.chain import append
from dpsyn_sql.ledger.panels import debits, in_words, refuse_unfinished
from dpsyn_sql.ledger.store import Store
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import ROW_OF_RESULT


@dataclass(frozen=True, slots=True)
class Account:
    """One privacy-unit namespace; ``granted`` is the (epsilon, delta) of the last grant as text."""

    account_id: int
    name: str
    unit: str | None
    granted: tuple[str, str] | None
    balance: Balance

    @property
    def kind(self) -> Kind:
        """``"gdp"``, ``"pure"``, or ``"zcdp"`` for one of before ``"gdp"``."""
        return self.balance.spent.kind

    @property
    def delta(self) -> Fraction:
        """The delta at which it is reported."""
        return exact_delta(self.granted[1] if self.granted else None)


def account_of_row(row: dict[str, Any]) -> Account:
    """A row of the table account."""
    kind: Kind = row["kind"]
    limit = None
    if row["limit_amount"] is not None:
        limit = Budget(kind, row["limit_amount"], row["limit_delta"])
    granted = None if row["granted_epsilon"] is None else (row["granted_epsilon"], row["granted_delta"])
    spent = Budget(kind, row["spent_amount"], row["spent_delta"])
    return Account(row["account_id"], row["name"], row["unit"], granted, Balance(spent, limit))


def find(store: Store, name: str) -> Account | None:
    """An account by its name."""
    row = store.one("find_account", name=name)
    return None if row is None else account_of_row(row)


def for_release(store: Store, key: ReleaseKey) -> str:
    """The name of the account that a release is charged to.

    Tables and files belong to the account that was first charged for them, whatever query reads
    them, or before that to one that was granted under their name. Without ``account=`` a new one is
    called ``<source>#<unit>`` after the first of them.

    Raises:
        AccountError: a source belongs to another account, or sources belong to different ones.
    """
    bound = {**_granted_for(store, key), **_bindings(store, key)}
    for source, names in bound.items():
        if len(names) > 1 and key.account not in names:
            raise AccountError(_in_two_accounts(store, source, names))
    owners = {key.account if len(names) > 1 else names[0] for names in bound.values()}
    named = {key.account} if key.account else set()
    if len(named | owners) > 1:
        known = "; ".join(f"{source} belongs to {names[0]!r}" for source, names in bound.items())
        raise AccountError(
            f"{known}. A release charged to another account would hide part of what is spent on the "
            "people in it. Leave account= out, or release tables of different accounts one by one. "
            "Nothing was read or charged."
        )
    return next((name for name in named | owners if name), new_name(key))


def _in_two_accounts(store: Store, source: str, names: Sequence[str]) -> str:
    """Ledgers of the first format can hold two spellings of one table as two tables."""
    found = [account for name in names if (account := find(store, name)) is not None]
    spent = "; ".join(str(standing_of(account)) for account in found)
    return (
        f"{source} is in several accounts under different spellings: {spent}. The privacy loss of its "
        "people is the sum. Give account= with one of these names: later releases are charged to it alone. "
        "Nothing was read or charged."
    )


def new_name(key: ReleaseKey) -> str:
    """The account that the first release of its sources is charged to."""
    first = key.sources[0] if key.sources else "unnamed"
    return key.account or f"{first}#{key.unit}"


def kind_of(store: Store, key: ReleaseKey) -> Approximate:
    """The kind of noise and price that an approximate release gets: that of its account.

    A running total that was complete before its account was priced anew is planned as it was, to be replayed.
    """
    account = find(store, for_release(store, key))
    if account is None or account.kind == "pure":
        return "gdp"
    if account.kind == "gdp" and "running_total" in key.configuration:
        known = store.one("old_totals", account_id=account.account_id, name=key.name)
        return "zcdp" if known is not None and known["entries"] else "gdp"
    return account.kind


def standing(store: Store, key: ReleaseKey, kind: Kind) -> Standing:
    """The account that a release would be charged to, in its present state; a new one has spent nothing."""
    name = for_release(store, key)
    account = find(store, name)
    known = untouched(name, kind) if account is None else standing_of(account)
    return known if known.granted else replace(known, idle=_idle_grants(store, name))


def standing_of(account: Account) -> Standing:
    """An account in the figures that people see."""
    spent, delta, left = account.balance.spent, account.delta, account.balance.remaining
    epsilon = reported_epsilon(spent, delta)
    words = "" if left is None else left_in_words(left, delta)
    told = float(reported_delta(spent, delta))
    return Standing(account.name, epsilon, told, account.granted, words, kind=account.kind)


def untouched(name: str, kind: Kind) -> Standing:
    """An account that no ledger knows yet; ``kind``: of the release that would make it."""
    return Standing(name, 0.0, 0.0, None, kind=kind)


def _idle_grants(store: Store, name: str) -> tuple[str, ...]:
    """Other accounts with a limit but no source: a misspelt name protects nothing."""
    owned = {row["account_id"] for row in store.all("all_sources")}
    return tuple(
        row["name"]
        for row in store.all("all_accounts")
        if row["granted_epsilon"] is not None
        and row["account_id"] not in owned
        and row["spent_amount"] == 0
        and row["name"] != name
    )


def _bindings(store: Store, key: ReleaseKey) -> dict[str, list[str]]:
    """The accounts that each source of a release is charged to: none or one, more with old spellings."""
    bound = {}
    for source, spelled in _spellings(key):
        row = store.one("find_source", name=source)
        names = [row["account"]] if row is not None else _by_old_spelling(store, source, spelled)
        if names:
            bound[source] = names
    return bound


def _spellings(key: ReleaseKey) -> Iterator[tuple[str, str]]:
    """Each source with its name in ledgers of the first format."""
    former = key.sources if key.former is None else key.former.sources
    return zip(key.sources, former, strict=True)


def _by_old_spelling(store: Store, source: str, spelled: str) -> list[str]:
    """Accounts of a table that was named as it was created, in any letter case, with its file."""
    if source == spelled:
        return []
    accounts = {row["account_id"]: row["name"] for row in store.all("all_accounts")}
    found = [row for row in store.all("all_sources") if fold(row["name"]) == fold(spelled)]
    return list(dict.fromkeys(accounts[row["account_id"]] for row in found))


def _granted_for(store: Store, key: ReleaseKey) -> dict[str, list[str]]:
    """Accounts that were granted under the name of a source that is not charged yet.

    Without them, naming another account or unit would evade a grant made before the first release.
    A grant may leave out the schema main, and spell a table in any letter case.
    """
    names = [row["name"] for row in store.all("all_accounts")]
    found = {}
    for source, spelled in _spellings(key):
        means = {source, fold(spelled), source.removeprefix("main.")}
        meant = [name for name in names if (own := name.rpartition("#")[0]) == source or fold(own) in means]
        if meant:
            found[source] = meant
    return found


def sources_of(store: Store, account: Account) -> tuple[str, ...]:
    """The tables and files that are charged to an account."""
    rows = store.all("all_sources")
    return tuple(row["name"] for row in rows if row["account_id"] == account.account_id)


def bind_sources(store: Store, name: str, key: ReleaseKey) -> None:
    """Record which account the sources of a release are charged to."""
    account = find(store, name)
    if account is None:
        return
    for source in key.sources:
        if store.one("find_source", name=source) is None:
            store.run("add_source", name=source, account_id=account.account_id)
            append(store, "source", {"account": name, "source": source})


def opened(store: Store, name: str, key: ReleaseKey, kind: Kind) -> Account:
    """The account of a release, made without a limit if it is new, fixed to the unit and the sources.

    Raises:
        AccountError: it protects another unit.
    """
    account = find(store, name) or _made(store, name, kind)
    if account.unit is None:
        account = replace(account, unit=key.unit)
        _write(store, account, "unit", {"unit": key.unit})
    if fold(account.unit or "") != fold(key.unit):
        raise AccountError(_other_unit(account, key.unit))
    bind_sources(store, name, key)
    return account


def _other_unit(account: Account, unit: str) -> str:
    known = f"The account {account.name!r} protects the unit {account.unit!r}; this release protects {unit!r}"
    if unit == ROW_OF_RESULT and account.unit == "row":
        return (
            f"{known}, because one row of a table can give several rows of the query's result (a join, a "
            "UNION ALL of a table with itself, or trust_query=True). Release the table itself, or name the "
            "column that identifies the unit with privacy_unit= and use a separate ledger=. "
            "Nothing was read or charged."
        )
    if account.unit == ROW_OF_RESULT:
        return (
            f"{known}. A limit on rows of results does not hold for a row of the table. Release the same "
            "query again, or use a separate ledger= for the other unit; the privacy losses then add up. "
            "Nothing was read or charged."
        )
    return f"{known}. Use privacy_unit={account.unit!r}. Nothing was read or charged."


def debited(store: Store, account: Account, charge: Charge) -> tuple[Account, Budget, str]:
    """Check the limit and raise the spent sum; returns the account, what was charged, and this in words if
    the release lies in a panel.

    Raises:
        PrivacyBudgetExceeded: it does not fit; nothing was read.
        AccountError: the account was granted as pure and the release is not, or an earlier window of its
            series is unfinished.
        LedgerDamaged: the recorded sum of the account differs from the cost of its releases.
    """
    refuse_other_sum(store, account)
    known = debits(store, account.account_id)
    refuse_unfinished(known, charge.place)
    if account.kind == "pure" and charge.budget.gaussian and account.granted is None:
        account = _approximate(store, account, approximate(charge.budget))
    _refuse_other_kind(account, charge.budget)
    spending = spending_of((one.charge for one in known), account.kind)
    shared = charge.place is None or spending.continues(charge.place)
    cost = spending.add(charge)
    if not account.balance.admits(cost):
        raise PrivacyBudgetExceeded(_refusal(account, cost))
    balance = Balance(account.balance.after(cost), account.balance.limit)
    account = replace(account, balance=balance)
    update(store, account)
    return account, cost, in_words(charge, cost, shared=shared)


def granted(store: Store, name: str, epsilon: Number, delta: Number | None) -> Account:
    """Set the total limit of an account, made if it is new; ``delta`` as ``accounting.account.grant_delta``.

    Raises:
        BudgetError: out of range, or below what is spent.
        AccountError: delta = 0 for an approximate account.
    """
    delta = grant_delta(epsilon) if delta is None else delta
    kind = granted_budget(str(epsilon), str(delta)).kind
    account = find(store, name) or _made(store, name, kind)
    if account.kind == "pure" and kind != "pure":
        account = _approximate(store, account, "gdp")
    limit = grant_limit(account.balance.spent, epsilon, delta)
    text = str(epsilon).strip(), str(delta).strip()
    account = replace(account, granted=text, balance=Balance(account.balance.spent, limit))
    body = {
        "epsilon": text[0],
        "delta": text[1],
        "limit": [limit.amount, limit.delta],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write(store, account, "grant", body)
    return account


def _made(store: Store, name: str, kind: Kind) -> Account:
    store.run("add_account", name=name, kind=kind)
    account = find(store, name)
    if account is None:
        raise InternalError("an account was not made")
    append(store, "account", {"account": name, "account_id": account.account_id, "kind": kind})
    return account


def _cost_of_releases(store: Store, account: Account, kind: Kind) -> Budget:
    """What all releases of an account cost together, in an account of ``kind``."""
    return spending_of((one.charge for one in debits(store, account.account_id)), kind).total


def refuse_other_sum(store: Store, account: Account) -> None:
    """A changed sum would allow more spending than the limit.

    Raises:
        LedgerDamaged: it is not what the releases cost.
    """
    problem = ""
    try:
        if (cost := _cost_of_releases(store, account, account.kind)) != account.balance.spent:
            problem = f"its releases cost {describe(cost)}"
    except (AccountError, InternalError):
        problem = "its releases have impossible amounts"
    if problem:
        raise LedgerDamaged(
            f"The account {account.name!r} of the ledger {store.place} records "
            f"{describe(account.balance.spent)} as spent, but {problem}. `dpsyn ledger verify` names the "
            "broken record. Restore the ledger from a backup. Nothing was read or charged.",
            None,
        )


def _refuse_other_kind(account: Account, budget: Budget) -> None:
    """A release is planned for the kind that its account has then."""
    if budget.gaussian and account.kind not in ("pure", budget.kind):
        raise AccountError(
            f"The account {account.name!r} counts by {KINDS[account.kind]}, and the release was planned for "
            f"{KINDS[budget.kind]}. If the account was priced anew a moment ago, make the same call again. A "
            "running total whose earlier periods were priced otherwise needs another name. Nothing was read "
            "or charged."
        )


def _approximate(store: Store, account: Account, kind: Approximate) -> Account:
    """A pure account becomes approximate: the budget of each of its releases gets the price of ``kind``."""
    spent = _cost_of_releases(store, account, kind)
    if not Balance(Budget(kind, 0)).admits(spent):
        raise BudgetError(
            f"The pure releases of the account {account.name!r} amount to more {AMOUNTS[kind]} than an "
            "account can hold."
        )
    account = replace(account, granted=None, balance=Balance(spent))
    # The old limit ends with the old kind; a grant sets the new limit in the same transaction.
    _write(store, account, "approximate", {"kind": kind, "spent": [spent.amount, spent.delta]})
    return account


def _write(store: Store, account: Account, kind: str, body: dict[str, Any]) -> None:
    update(store, account)
    append(store, kind, {"account": account.name, **body})


def update(store: Store, account: Account) -> None:
    """Write an account back."""
    spent, limit = account.balance.spent, account.balance.limit
    store.run(
        "update_account",
        account_id=account.account_id,
        kind=account.kind,
        unit=account.unit,
        granted_epsilon=account.granted[0] if account.granted else None,
        granted_delta=account.granted[1] if account.granted else None,
        limit_amount=None if limit is None else limit.amount,
        limit_delta=None if limit is None else limit.delta,
        spent_amount=spent.amount,
        spent_delta=spent.delta,
    )


def _refusal(account: Account, cost: Budget) -> str:
    left = account.balance.remaining
    if left is None:
        return (
            f"The account {account.name!r} would hold more than a ledger can count "
            f"({AMOUNTS[account.kind]} above 9,223). Nothing was read or charged."
        )
    lacking = f"The release costs {describe(cost)}; the account {account.name!r} has {describe(left)} left"
    if cost.amount <= left.amount:
        way = (
            "Its epsilon fits. Its threshold delta, which pays for finding the values of columns, does not. "
            "Declare the categories, release with a smaller delta, or grant a larger delta"
        )
    else:
        way = "Use a smaller epsilon, or raise the limit"
    return (
        f"{lacking}: {left_in_words(left, account.delta)}. Nothing was read or charged. {way} "
        "(`dpsyn ledger grant`)."
    )
