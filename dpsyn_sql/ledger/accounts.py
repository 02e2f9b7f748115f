"""Accounts in the ledger: made, granted, charged; each change with its record.

Every function here runs inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from dpsyn_sql.accounting.account import (
    KINDS,
    USUAL_DELTA,
    Balance,
    Charge,
    Spending,
    account_epsilon,
    describe,
    grant_delta,
    grant_limit,
    granted_budget,
    left_in_words,
    reported_delta,
    spending_of,
)
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget, Kind, Number, exact_number
from dpsyn_sql.errors import (
    AccountError,
    BudgetError,
    InternalError,
    LedgerDamaged,
    PrivacyBudgetExceeded,
)
from dpsyn_sql.ledger import stops
from dpsyn_sql.ledger.preview import AccountState
from dpsyn_sql.ledger.store import Store, append
from dpsyn_sql.ledger.ties import Debited, debits, in_words, refuse_other_ties, refuse_unfinished
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.source.names import fold, listed
from dpsyn_sql.source.relation import ROW_OF_RESULT


@dataclass(frozen=True, slots=True)
class Account:
    """One privacy-unit namespace.

    ``granted`` is the (epsilon, delta) of the last grant as text. ``delta`` is that of the first grant or
    release: what is spent is shown at it from then on. ``parts``: as ``Spending.parts`` of its releases.
    ``unasked``: the part of what is spent that releases which stopped have not asked for.
    """

    account_id: int
    name: str
    delta: Fraction
    unit: str | None
    granted: tuple[str, str] | None
    balance: Balance
    parts: tuple[int, int]
    unasked: Budget

    @property
    def kind(self) -> Kind:
        """``"gdp"`` or ``"pure"``."""
        return self.balance.spent.kind

    @property
    def epsilon(self) -> float:
        """What its releases imply, at ``told_delta``; rounded up."""
        return account_epsilon(self.balance.spent, *self.parts, self.delta)

    @property
    def told_delta(self) -> Fraction:
        """The delta that goes with ``epsilon``: 0 for pure releases alone."""
        return reported_delta(self.balance.spent, self.delta)

    @property
    def left(self) -> str:
        """What still fits its limit, in words; empty without one."""
        if self.fits is None or self.granted is None:
            return ""
        return left_in_words(self.fits, exact_number("delta", self.granted[1]))

    @property
    def fits(self) -> Budget | None:
        """The largest debit of its kind that still fits its limit; None without one."""
        left = self.balance.remaining
        return None if left is None else stops.total(self.kind, (left, self.unasked))


def account_of_row(store: Store, row: dict[str, Any]) -> Account:
    """A row of the table account, with what its releases cost."""
    kind: Kind = row["kind"]
    if kind not in KINDS:
        raise LedgerDamaged(f"An account of {store.place} is of no kind that there is.", None)
    limit = None
    if row["limit_amount"] is not None:
        limit = Budget(kind, row["limit_amount"], row["limit_delta"])
    granted = None if row["granted_epsilon"] is None else (row["granted_epsilon"], row["granted_delta"])
    spent = Budget(kind, row["spent_amount"], row["spent_delta"])
    parts = _spending(debits(store, row["account_id"]), "gdp").parts  # the same in either kind
    delta, number = Fraction(row["shown_delta"]), row["account_id"]
    unasked = stops.rest_of(store, number, kind)
    return Account(number, row["name"], delta, row["unit"], granted, Balance(spent, limit), parts, unasked)


def find(store: Store, name: str) -> Account | None:
    """An account by its name."""
    row = store.one("find_account", name=name)
    return None if row is None else account_of_row(store, row)


def for_release(store: Store, key: ReleaseKey) -> str:
    """The name of the account that a release is charged to.

    Tables and files belong to the account that was first charged for them, whatever query reads
    them, or before that to one that was granted under their name. Without ``account=`` a new one is
    called ``<source>#<unit>`` after the first of them.

    Raises:
        AccountError: a source belongs to another account, or sources belong to different ones.
    """
    bound = _bindings(store, key)
    owners = set(bound.values())
    requested = {key.account} if key.account else set()
    if len(requested | owners) > 1:
        bindings = "; ".join(f"{source} belongs to {name!r}" for source, name in bound.items())
        raise AccountError(
            f"{bindings}. A release charged to another account would hide part of what is spent on the "
            "people in it. Leave account= out, or release tables of different accounts one by one. "
            "Nothing was read or charged."
        )
    return next((name for name in requested | owners if name), new_name(key))


def new_name(key: ReleaseKey) -> str:
    """The account that the first release of its sources is charged to."""
    first = key.sources[0] if key.sources else "unnamed"
    return key.account or f"{first}#{key.unit}"


def account_state(store: Store, key: ReleaseKey, kind: Kind) -> AccountState:
    """The account that a release would be charged to, in its present state; a new one has spent nothing."""
    name = for_release(store, key)
    account = find(store, name)
    state = new_account_state(name, kind) if account is None else state_of_account(account)
    return state if state.granted else replace(state, idle=_idle_grants(store, name))


def state_of_account(account: Account) -> AccountState:
    """An account in the figures that people see."""
    spent = account.epsilon, float(account.told_delta)
    unasked = describe(account.unasked, account.delta) if account.unasked.amount else ""
    return AccountState(
        account.name, *spent, account.granted, account.left, kind=account.kind, unasked=unasked
    )


def new_account_state(name: str, kind: Kind) -> AccountState:
    """An account that no ledger knows yet; ``kind``: of the release that would make it."""
    return AccountState(name, 0.0, 0.0, None, kind=kind)


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


def _bindings(store: Store, key: ReleaseKey) -> dict[str, str]:
    """The account of each source of a release: the one that it was first charged to, else one that was
    granted under its name.

    Without the grants, naming another account or unit would evade a grant made before the first release.
    A grant may leave out the schema main, and spell a table in any letter case.

    Raises:
        AccountError: several accounts were granted under one name, and the release names none of them.
    """
    names = [row["name"] for row in store.all("all_accounts")]
    bound = {}
    for source in key.sources:
        row = store.one("find_source", name=source)
        if row is not None:
            bound[source] = row["account"]
            continue
        means = {fold(source), fold(source.removeprefix("main."))}
        granted = [name for name in names if fold(name.rpartition("#")[0]) in means]
        if len(granted) > 1 and key.account not in granted:
            raise AccountError(
                f"Several accounts were granted under the name of {source}: {listed(granted)}. Give account= "
                "with one of these names: releases of the source are charged to it alone. Nothing was read "
                "or charged."
            )
        if granted:
            bound[source] = key.account if key.account in granted else granted[0]
    return bound


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
        AccountError: it protects another unit, or its rows belong to the unit otherwise.
    """
    account = find(store, name) or _made(store, name, kind, str(key.configuration.get("delta", 0)))
    if account.unit is None:
        account = replace(account, unit=key.unit)
        _write(store, account, "unit", {"unit": key.unit})
    if fold(account.unit or "") != fold(key.unit):
        raise AccountError(_other_unit(account, key.unit))
    refuse_other_ties(store, account.account_id, name, key)
    bind_sources(store, name, key)
    return account


def _other_unit(account: Account, unit: str) -> str:
    mismatch = (
        f"The account {account.name!r} protects the unit {account.unit!r}; this release protects {unit!r}"
    )
    if unit == ROW_OF_RESULT and account.unit == "row":
        return (
            f"{mismatch}, because one row of a table can give several rows of the query's result (a join, a "
            "UNION ALL of a table with itself, or trust_query=True). Release the table itself, or name the "
            "column that identifies the unit with unit= and use a separate ledger=. "
            "Nothing was read or charged."
        )
    if account.unit == ROW_OF_RESULT:
        return (
            f"{mismatch}. A limit on rows of results does not hold for a row of the table. Release the same "
            "query again, or use a separate ledger= for the other unit; the privacy losses then add up. "
            "Nothing was read or charged."
        )
    return (
        f"{mismatch}. Use unit={account.unit!r}, or a separate ledger= for the other unit; the privacy "
        "losses then add up. Nothing was read or charged."
    )


def debited(
    store: Store, account: Account, charge: Charge
) -> tuple[Account, Budget, str, Sequence[stops.Taken]]:
    """Check the limit and raise the spent sum; returns the account, what was charged, this in words if it is
    less than the debit, and what pays for the rest: it is still to be handed on.

    Raises:
        PrivacyBudgetExceeded: it does not fit; nothing was read.
        AccountError: the account was granted as pure and the release is not, or an earlier window of its
            series is unfinished.
        LedgerDamaged: the recorded sum of the account differs from the cost of its releases.
    """
    _refuse_other_sum(store, account)
    debited_before = debits(store, account.account_id)
    refuse_unfinished(debited_before, charge.place)
    if account.kind == "pure" and charge.budget.gaussian and account.granted is None:
        account = _approximate(store, account)
    spending, takeovers = _spending(debited_before, account.kind), list[stops.Taken]()
    if charge.place is None and charge.budget.kind == account.kind:
        takeovers = stops.taken_over(store, account.account_id, charge.budget)
        over = stops.total(account.kind, (takeover.budget for takeover in takeovers))
        charge = replace(charge, taken=over if takeovers else None)
    shared = charge.place is None or spending.continues(charge.place)
    cost = spending.add(charge)
    if not account.balance.admits(cost):
        raise PrivacyBudgetExceeded(_refusal(account, charge, cost))
    balance = Balance(account.balance.after(cost), account.balance.limit)
    unasked = Budget(
        account.kind,
        account.unasked.amount - sum(takeover.budget.amount for takeover in takeovers),
        account.unasked.delta - sum(takeover.budget.delta for takeover in takeovers),
    )
    account = replace(account, balance=balance, parts=spending.parts, unasked=unasked)
    _update(store, account)
    return account, cost, in_words(charge, cost, account.delta, shared=shared), takeovers


def granted(store: Store, name: str, epsilon: Number, delta: Number | None) -> Account:
    """Set the total limit of an account, made if it is new; ``delta`` as ``accounting.account.grant_delta``.

    Raises:
        BudgetError: out of range, or below what is spent.
        AccountError: delta = 0 for an approximate account.
    """
    delta = grant_delta(epsilon) if delta is None else delta
    kind = granted_budget(str(epsilon), str(delta)).kind
    account = find(store, name) or _made(store, name, kind, str(delta))
    if account.kind == "pure" and kind != "pure":
        account = _approximate(store, account)
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


def _made(store: Store, name: str, kind: Kind, delta: str) -> Account:
    """A new account; what is spent is shown at ``delta``, or the usual one where that is 0."""
    shown = str(Fraction(delta.strip()) or USUAL_DELTA)
    store.run("add_account", name=name, kind=kind, shown_delta=shown)
    account = find(store, name)
    if account is None:
        raise InternalError("an account was not made")
    facts = {"account_id": account.account_id, "kind": kind, "shown_delta": shown}
    append(store, "account", {"account": name, **facts})
    return account


def _spending(releases: Iterable[Debited], kind: Kind) -> Spending:
    return spending_of((release.charge for release in releases), kind)


def _refuse_other_sum(store: Store, account: Account) -> None:
    """A changed sum would allow more spending than the limit.

    Raises:
        LedgerDamaged: it is not what the releases cost.
    """
    problem = ""
    try:
        cost = _spending(debits(store, account.account_id), account.kind).total
        if cost != account.balance.spent:
            problem = f"its releases cost {describe(cost, account.delta)}"
    except (AccountError, InternalError):
        problem = "its releases have impossible amounts"
    if problem:
        raise LedgerDamaged(
            f"The account {account.name!r} of the ledger {store.place} records "
            f"{describe(account.balance.spent, account.delta)} as spent, but {problem}. `dpsyn ledger "
            "verify` names the broken record. Restore the ledger from a backup. Nothing was read or charged.",
            None,
        )


def _approximate(store: Store, account: Account) -> Account:
    """A pure account becomes approximate: the budget of each of its releases gets its price there."""
    spent = _spending(debits(store, account.account_id), "gdp").total
    if not Balance(Budget("gdp", 0)).admits(spent):
        raise BudgetError(
            f"The pure releases of the account {account.name!r} amount to more than an account can hold. Use "
            "another account for releases with a delta."
        )
    account = replace(account, granted=None, balance=Balance(spent), unasked=Budget("gdp", 0))
    # The old limit ends with the old kind; a grant sets the new limit in the same transaction.
    _write(store, account, "approximate", {"spent": [spent.amount, spent.delta]})
    return account


def _write(store: Store, account: Account, kind: str, body: dict[str, Any]) -> None:
    _update(store, account)
    append(store, kind, {"account": account.name, **body})


def _update(store: Store, account: Account) -> None:
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


def _refusal(account: Account, charge: Charge, cost: Budget) -> str:
    takes = charge.place is None and charge.budget.kind == cost.kind
    left = account.fits if takes else account.balance.remaining
    if left is None:
        return (
            f"The account {account.name!r} would hold more than a ledger can count, which is an epsilon of "
            "thousands. Nothing was read or charged."
        )
    if takes:
        cost = charge.budget  # what it debits, beside what fits with the part that is paid
    if cost.amount <= left.amount:
        advice = (
            "Its epsilon fits. Its threshold delta, which pays for finding the values of columns, does not: "
            f"it is {cost.delta / DELTA_UNITS:.3g}, and {left.delta / DELTA_UNITS:.3g} is left. Declare the "
            f"categories, {'release with a smaller delta, ' if left.delta else ''}or grant a larger delta"
        )
    else:
        advice = "Use a smaller epsilon, or raise the limit"
    cost_words = "The release costs"
    if charge.budget.kind != cost.kind:
        cost_words = f"The pure release of {describe(charge.budget, account.delta)} counts in this account as"
        advice = (
            "The limit of a Gaussian account counts mu^2/2, which is large for the noise of a pure release. "
            "Release with a delta above 0; or keep pure releases in an account of their own, in another "
            f"ledger= where it is granted with delta=0 (the privacy losses then add up). {advice}"
        )
    return (
        f"{cost_words} {describe(cost, account.delta)}, which is more than the account {account.name!r} "
        f"has left: {account.left}. Nothing was read or charged. {advice} (`dpsyn ledger grant`)."
    )
