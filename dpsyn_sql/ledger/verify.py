"""Checking a ledger: replay the chain and compare every row with what its records say.

Costs are recomputed from the events, prices from the budgets, limits from the grants, sums from
all of them. Nothing that a row says about itself is trusted.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn

from dpsyn_sql.accounting.account import Balance, Charge, Spending, event_price, grant_limit, spending_of
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import event_from_dict
from dpsyn_sql.errors import DpsynError, InternalError, LedgerDamaged, LedgerError
from dpsyn_sql.ledger.stops import BESIDE, handed_text, mark_text
from dpsyn_sql.ledger.store import (
    GENESIS,
    IN_MEMORY,
    Store,
    canonical_json,
    record_hash,
    sha256,
    translated_error,
)
from dpsyn_sql.ledger.ties import charge_of, must_precede
from dpsyn_sql.source.relation import ROW_OF_RESULT

Row = dict[str, Any]

_ENTRY_FACTS = ("name", "version", "configuration_hash", "kind", "amount", "delta", "debited_at")


_NONSENSE = (ArithmeticError, AttributeError, DpsynError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading a row can raise if it does not hold what was written."""


def verify(store: Store, head: str | None) -> str:
    """The head hash of a sound ledger; call inside a reading transaction.

    Raises:
        LedgerDamaged: names the first broken record.
        LedgerError: the file cannot be read now.
    """
    try:
        return _verified(store, head)
    except LedgerError:
        raise
    except sqlite3.ProgrammingError:  # our own misuse of the driver, not a fault of the file
        raise
    except sqlite3.Error as error:
        code = str(getattr(error, "sqlite_errorname", type(error).__name__))
        problem = translated_error(store.place, code)
    except _NONSENSE as error:
        code = type(error).__name__
        problem = translated_error(store.place, code)
    if isinstance(problem, InternalError):
        problem = LedgerDamaged(
            f"The ledger {store.place} is damaged: its rows are not valid ({code}). Restore a backup.",
            None,
        )
    raise problem


def _verified(store: Store, head: str | None) -> str:
    _refuse_other_schema(store)
    check = _Check(store)
    check.chain()
    check.final_states()
    # Last, because a record says more; this finds indexes that no longer point to their rows.
    if [row["integrity_check"] for row in store.all("check_pages")] != ["ok"]:
        raise LedgerDamaged(f"The pages of {store.place} are damaged; restore it from a backup.", None)
    if head is not None and head not in check.hashes:
        raise LedgerDamaged(
            f"The head {head} is not in the chain of {store.place}: records were cut off, or the file "
            "was replaced by another copy.",
            None,
        )
    return check.previous


def _refuse_other_schema(store: Store) -> None:
    """Tables, indexes and triggers are those of ``sql/ledger/schema.sql``."""
    if store.all("all_schema") != _schema():
        raise LedgerDamaged(f"The tables or triggers of {store.place} were changed.", None)


@dataclass(slots=True)
class _Release:
    """An entry as its records tell it so far."""

    row: Row
    account: str
    charge: Charge
    last: int
    state: str = "debited"
    measured_on: str | None = None
    spent: Budget = field(init=False)
    reserved: set[int] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)
    publications: int = 0
    stopped: int | None = None
    handed: int = 0

    def __post_init__(self) -> None:
        self.spent = Budget(self.budget.kind, 0)

    @property
    def budget(self) -> Budget:
        """What it may spend."""
        return self.charge.budget


class _Check:
    """Rows that no record explains yet, and the state that the records give."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._position = self._latest = 0
        self.previous = GENESIS
        self.hashes = {GENESIS}
        self._accounts: dict[str, Row] = {}
        self._spending: dict[str, Spending] = {}
        self._touched: dict[str, int] = {}
        self._releases: dict[str, _Release] = {}
        self._open: dict[str, _Release] = {}
        names: dict[Any, str] = {}
        ids: dict[Any, str] = {}
        self._rows: dict[str, dict[Any, Row]] = {}
        for row in self._table("account", "all_accounts", lambda row: row["name"]):
            names[row["account_id"]] = row["name"]
        for row in self._table("entry", "all_entries", lambda row: row["release_id"]):
            row["account"] = names.get(row["account_id"])
            ids[row["entry_id"]] = row["release_id"]
        for row in self._table("source", "all_sources", lambda row: row["name"]):
            row["account"] = names.get(row["account_id"])
        self._table("event", "all_events", lambda r: (ids.get(r["entry_id"]), r["sequence"], r["ordinal"]))
        self._table("answer", "all_answers", lambda r: (ids.get(r["entry_id"]), r["sequence"]))
        self._table("publication", "all_publications", lambda r: (ids.get(r["entry_id"]), r["ordinal"]))

    def _table(self, table: str, statement: str, key: Callable[[Row], Any]) -> list[Row]:
        rows = []
        for row in self._store.each(statement):
            if "content" in row:  # noisy answers may be large: keep their hash only
                content = row.pop("content")
                row["size"], row["found"] = len(content), _hash_of(content)
            rows.append(row)
        self._rows[table] = {key(row): row for row in rows}
        return rows

    def fail(self, fault: str, position: int | None = None) -> NoReturn:
        where = self._position if position is None else position
        raise LedgerDamaged(f"Record {where} of the ledger {self._store.place} is broken: {fault}.", where)

    def expect(self, truth: bool, fault: str) -> None:
        if not truth:
            self.fail(fault)

    def chain(self) -> None:
        """Every record, in order."""
        for record in self._store.each("all_records"):
            self._position += 1
            self.expect(record["position"] == self._position, "its position does not continue the chain")
            self.expect(record["previous"] == self.previous, "it does not hold the hash before it")
            fields = [record[part] for part in ("position", "kind", "body", "previous")]
            self.expect(record["hash"] == record_hash(*fields), "its hash differs from its content")
            self.previous = record["hash"]
            self.hashes.add(self.previous)
            self._record(record["kind"], record["body"])

    def _record(self, kind: str, text: str) -> None:
        problem = ""
        try:
            handler = getattr(self, f"_on_{kind}")
            handler(json.loads(text))
            return
        except LedgerDamaged:
            raise
        except _NONSENSE as error:
            problem = type(error).__name__
        self.fail(f"its content is not valid ({problem})")

    def _take(self, table: str, key: Any) -> Row:
        """The row that a record made; each row is explained once."""
        row = self._rows[table].pop(key, None)
        if row is None:
            self.fail(f"its row in the table {table} is missing or changed")
        return row

    def _same(self, row: Mapping[str, Any], wanted: Mapping[str, Any], table: str) -> None:
        for column, value in wanted.items():
            self.expect(_equal(row[column], value), f"{column} in the table {table} differs")

    def _on_ledger(self, body: Row) -> None:
        self.expect(self._position == 1, "it names the ledger a second time")

    def _on_moved(self, body: Row) -> None:
        self.expect(all(isinstance(body[fact], str) for fact in ("place", "home")), "it names no place")

    def _on_account(self, body: Row) -> None:
        name = body["account"]
        self.expect(name not in self._accounts, "the account is made twice")
        blank = dict.fromkeys(("unit", "granted_epsilon", "granted_delta", "limit_amount", "limit_delta"))
        facts = {"name": name, **{fact: body[fact] for fact in ("account_id", "kind", "shown_delta")}}
        self._accounts[name] = {**facts, **blank, "spent_amount": 0, "spent_delta": 0}
        self._spending[name] = Spending(body["kind"])
        self._touched[name] = self._position

    def _on_unit(self, body: Row) -> None:
        self._change(body["account"], unit=body["unit"])

    def _on_grant(self, body: Row) -> None:
        name = body["account"]
        limit = grant_limit(self._balance(name).spent, body["epsilon"], body["delta"])
        self.expect(body["limit"] == [limit.amount, limit.delta], "the limit is not what the grant means")
        amounts = {"limit_amount": limit.amount, "limit_delta": limit.delta}
        self._change(name, granted_epsilon=body["epsilon"], granted_delta=body["delta"], **amounts)

    def _on_approximate(self, body: Row) -> None:
        name = body["account"]
        charges = [release.charge for release in self._releases.values() if release.account == name]
        self.expect(self._accounts[name]["kind"] == "pure", "its kind is wrong")
        self._spending[name] = spending_of(charges, "gdp")
        spent = self._spending[name].total
        self.expect(body["spent"] == [spent.amount, spent.delta], "the restated sum is wrong")
        blank = dict.fromkeys(("granted_epsilon", "granted_delta", "limit_amount", "limit_delta"))
        self._change(name, kind="gdp", spent_amount=spent.amount, spent_delta=spent.delta, **blank)

    def _on_source(self, body: Row) -> None:
        row = self._take("source", body["source"])
        self.expect(body["account"] in self._accounts, "its account was never made")
        self.expect(row["account"] == body["account"], "the account of a source differs")

    def _on_debit(self, body: Row) -> None:
        name, budget = body["account"], Budget(body["kind"], body["amount"], body["delta"])
        row = self._take("entry", body["release"])
        facts = {fact: body[fact] for fact in _ENTRY_FACTS}
        self._same(row, {**facts, "entry_id": body["entry_id"], "account": name}, "entry")
        self.expect(sha256(row["configuration"]) == body["configuration_hash"], "the configuration differs")
        takeovers = [self._taken(name, body["release"], *fact) for fact in body.get("taken", [])]
        over = (
            (sum(takeover.amount for takeover in takeovers), sum(takeover.delta for takeover in takeovers))
            if takeovers
            else None
        )
        balance, charge = self._balance(name), charge_of(budget, row["configuration"], row["name"], over)
        self.expect(
            not takeovers or budget.kind == self._accounts[name]["kind"], "it takes over another kind"
        )
        self._check_place(name, charge)
        cost = self._spending[name].add(charge)
        self.expect(body["cost"] == [cost.amount, cost.delta], "the cost is not what the budget means")
        self.expect(body["entry_id"] > self._latest, "the order of the debits differs")
        self._latest = body["entry_id"]
        self.expect(balance.admits(cost), "the account is overspent")
        after = balance.after(cost)
        self._change(name, spent_amount=after.amount, spent_delta=after.delta)
        self._releases[body["release"]] = _Release(row, name, charge, self._position)
        self._open[body["release"]] = self._releases[body["release"]]

    def _taken(self, account: str, to: str, release_id: str, ordinal: int, amount: int, delta: int) -> Budget:
        """What a debit takes over from a release that stopped."""
        release = self._releases[release_id]
        part = Budget(self._accounts[account]["kind"], amount, delta)
        self.expect(release.account == account, "it takes over from another account")
        self.expect(release.budget.kind == part.kind, "it takes over another kind")
        self.expect(release.charge.place is None, "it takes over from a panel")
        self.expect(release.state != "debited", "it takes over from a release that may still ask")
        gone_on = release.stopped is None or max(release.reserved, default=-1) >= release.stopped
        self.expect(not gone_on, "it takes over from a release that did not stop")
        self.expect(ordinal == release.handed + 1, "something handed on is missing")
        row = self._take("event", (release_id, BESIDE, ordinal))
        self._same(row, {"event": handed_text(to), "amount": amount, "delta": delta}, "event")
        self._reserve(release, part)
        release.handed += 1
        return part

    def _reserve(self, release: _Release, cost: Budget) -> None:
        """Events and what is handed on stay within the debit."""
        spent = Balance(release.spent).after(cost)
        within = spent.amount <= release.budget.amount and spent.delta <= release.budget.delta
        self.expect(within, "the events exceed the debit")
        release.spent = spent

    def _on_stopped(self, body: Row) -> None:
        release = self._release(body, "debited")
        row = self._take("event", (body["release"], BESIDE, 0))
        self._same(row, {"event": mark_text(body["after"]), "amount": 0, "delta": 0}, "event")
        self.expect(max(release.reserved, default=-1) < body["after"], "it went on before it stopped")
        release.stopped = body["after"]

    def _check_place(self, account: str, charge: Charge) -> None:
        """What the price of a panel rests on: the order of the windows, and the unit of the account."""
        slot = charge.place
        if slot is None:
            return
        open_ones = (release.charge.place for release in self._open.values() if release.account == account)
        before = any(earlier is not None and must_precede(earlier, slot) for earlier in open_ones)
        self.expect(not before, "an earlier window of its series was not measured")
        ordered = self._accounts[account]["unit"] not in ("row", ROW_OF_RESULT)
        self.expect(slot.ordered == ordered, "its panel has another unit than the account")

    def _on_tied(self, body: Row) -> None:
        release = self._release(body, "debited")
        self.expect(body["account"] == release.account, "it names another account than the debit")
        for above, columns in body["ties"].values():
            texts = [above, *columns]
            self.expect(all(isinstance(text, str) for text in texts), "it names no table and columns")

    def _on_event(self, body: Row) -> None:
        release = self._release(body, "debited")
        row = self._take("event", (body["release"], body["sequence"], body["ordinal"]))
        self._same(row, {column: body[column] for column in ("event", "amount", "delta")}, "event")
        event = event_from_dict(json.loads(body["event"]))
        cost = event_price(event, release.budget.kind)
        self.expect((body["amount"], body["delta"]) == (cost.amount, cost.delta), "the event cost differs")
        self._reserve(release, cost)
        self.expect(body["sequence"] >= 0, "no question has its number")
        release.reserved.add(body["sequence"])

    def _on_answer(self, body: Row) -> None:
        release = self._release(body, "debited")
        row = self._take("answer", (body["release"], body["sequence"]))
        self.expect(body["sequence"] in release.reserved, "nothing was charged for the answer")
        self._same(row, {"shapes": body["shapes"], "digest": body["digest"]}, "answer")
        self.expect(sha256(row["question"]) == body["question"], "the question differs")
        self.expect(row["found"] == body["digest"], "the noisy answer differs")

    def _on_measured(self, body: Row) -> None:
        release = self._release(body, "debited")
        release.state, release.measured_on = "measured", body["on"]
        del self._open[body["release"]]

    def _on_publishing(self, body: Row) -> None:
        release = self._release(body, "measured", "published")
        release.announced.add(body["target"])

    def _on_withdrawn(self, body: Row) -> None:
        release = self._release(body, "measured", "published")
        self.expect(body["target"] in release.announced, "it withdraws an output that was never announced")

    def _on_published(self, body: Row) -> None:
        release = self._release(body, "measured", "published")
        row = self._take("publication", (body["release"], body["ordinal"]))
        self._same(row, {column: body[column] for column in ("target", "synthetic_rows")}, "publication")
        self.expect(body["ordinal"] == release.publications, "a publication is missing")
        release.state, release.publications = "published", release.publications + 1

    def _release(self, body: Row, *states: str) -> _Release:
        release = self._releases[body["release"]]
        self.expect(release.state in states, f"the release was already {release.state}")
        release.last = self._position
        return release

    def _balance(self, name: str) -> Balance:
        row = self._accounts[name]
        spent = Budget(row["kind"], row["spent_amount"], row["spent_delta"])
        if row["limit_amount"] is None:
            return Balance(spent)
        return Balance(spent, Budget(row["kind"], row["limit_amount"], row["limit_delta"]))

    def _change(self, name: str, **columns: Any) -> None:
        self._accounts[name].update(columns)
        self._touched[name] = self._position

    def final_states(self) -> None:
        """The sums and states that the rows show, and rows that no record made."""
        for name, wanted in self._accounts.items():
            self._position = self._touched[name]
            self._same(self._take("account", name), wanted, "account")
        for release in self._releases.values():
            self._position = release.last
            state = {"state": release.state, "measured_on": release.measured_on}
            self._same(release.row, state, "entry")
        for table, rows in self._rows.items():
            if rows:
                raise LedgerDamaged(
                    f"The table {table} of the ledger {self._store.place} has a row that no record made.",
                    None,
                )


@cache
def _schema() -> list[Row]:
    fresh = Store(IN_MEMORY)
    schema = fresh.all("all_schema")
    fresh.close()
    return schema


def _equal(stored: Any, wanted: Any) -> bool:
    """Equal in type too: SQLite would keep 1.0 or a text in place of an integer."""
    return type(stored) is type(wanted) and canonical_json(stored) == canonical_json(wanted)


def _hash_of(content: Any) -> str:
    return sha256(content) if isinstance(content, str | bytes) else ""
