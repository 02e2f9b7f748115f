"""Entries: a release in the ledger, from its debit to its publication.

Only noisy answers and public facts are written here; nothing exact ever passes this module.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.account import describe, event_price
from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import PrivacyEvent, event_from_dict, event_to_dict
from dpsyn_sql.errors import (
    InternalError,
    LedgerDamaged,
    PrivacyBudgetExceeded,
    PublishError,
    ReleaseChanged,
    ReleaseExists,
)
from dpsyn_sql.interfaces import Outlook, Standing
from dpsyn_sql.ledger import accounts
from dpsyn_sql.ledger.accounts import Account
from dpsyn_sql.ledger.chain import append, canonical_json, sha256
from dpsyn_sql.ledger.guard import own_errors, own_errors_meaning
from dpsyn_sql.ledger.store import Store
from dpsyn_sql.plan.key import ReleaseKey

_LITTLE_ENDIAN = np.dtype("<i8")

Row = Mapping[str, Any]

_WRITTEN = (
    "The output was written and stands, and so does the debit; only the note that it was written is missing. "
    "The same call again costs nothing and completes the record."
)


class SqliteEntry:
    """One release: a debit, the events reserved within it, the noisy answers.

    ``replayed``: the debit was found, not made; nothing was charged this time. ``account``: the
    account as it was after the debit.
    """

    def __init__(self, store: Store, row: Mapping[str, Any], account: Account, *, replayed: bool) -> None:
        self._store = store
        self._id: int = row["entry_id"]
        self._kind: Kind = row["kind"]
        self.budget = Budget(self._kind, row["amount"], row["delta"])
        self.release_id: str = row["release_id"]
        self.debited_at: str = row["debited_at"]
        self.name: str = row["name"]
        self.version: str | None = row["version"]
        self.account = account
        self.replayed = replayed
        # The question whose events are being reserved, and how many of them there are so far.
        self._sequence, self._reserved = 0, 0

    def __repr__(self) -> str:
        return f"SqliteEntry({self.release_id}, {self.name!r})"

    @property
    def place(self) -> str:
        """The ledger's file."""
        return self._store.place

    @property
    @own_errors
    def state(self) -> str:
        """``"debited"``: the source may be read; ``"measured"``, ``"published"``: never again."""
        return str(self._row()["state"])

    @property
    def standing(self) -> Standing:
        """The account as it was after the debit."""
        return accounts.standing_of(self.account)

    @property
    @own_errors
    def measured_on(self) -> str | None:
        """The UTC day on which the last answer was stored; None before that."""
        day = self._row()["measured_on"]
        return None if day is None else str(day)

    @property
    @own_errors
    def events(self) -> tuple[PrivacyEvent, ...]:
        """Events charged so far, in order."""
        rows = self._store.all("find_events", entry_id=self._id)
        return tuple(event_from_dict(json.loads(row["event"])) for row in rows)

    @own_errors
    def charge(self, event: PrivacyEvent) -> None:
        """Reserve an event within the debit, before the source is read.

        It belongs to the question last looked up by ``stored``. What a killed process reserved for
        that question is not charged again: its answer was never stored, so nobody saw it.

        Raises:
            PrivacyBudgetExceeded: the events would exceed what was debited.
            InternalError: another event is reserved for this question, or no more may be asked.
        """
        text = canonical_json(event_to_dict(event))
        place = {"entry_id": self._id, "sequence": self._sequence, "ordinal": self._reserved}
        with self._store.writing():
            known = self._store.one("find_event", **place)
            if known is None:
                self._refuse_after_measuring()
                self._reserve(event, text, place)
            elif known["event"] != text:
                raise InternalError(f"the noise of question {self._sequence} differs from what was reserved")
        self._reserved += 1

    @own_errors
    def stored(self, sequence: int, question: Mapping[str, Any]) -> list[NDArray[np.int64]] | None:
        """The stored answer to question number ``sequence``, or None.

        Raises:
            InternalError: the stored question differs, or the release asks no more questions.
            LedgerDamaged: the stored bytes are not what was stored.
        """
        with self._store.reading():  # another process may be answering the same questions
            row = self._store.one("find_answer", entry_id=self._id, sequence=sequence)
            if row is None:
                self._refuse_after_measuring()
        if row is None:
            self._sequence, self._reserved = sequence, 0
            return None
        return self._read(row, sequence, canonical_json(dict(question)))

    @own_errors
    def store(
        self, sequence: int, question: Mapping[str, Any], answer: Sequence[NDArray[np.int64]]
    ) -> list[NDArray[np.int64]]:
        """Store a noisy answer (int64 tables); the first one wins and is returned.

        Raises:
            InternalError: the stored question differs, nothing was reserved for it, or not int64.
        """
        asked, content = canonical_json(dict(question)), _to_bytes(answer)
        row = {
            "question": asked,
            "shapes": canonical_json([list(table.shape) for table in answer]),
            "digest": sha256(content),
        }
        with self._store.writing():
            known = self._store.one("find_answer", entry_id=self._id, sequence=sequence)
            if known is None:
                self._refuse_after_measuring()
                self._refuse_without_event(sequence)
                self._store.run("add_answer", entry_id=self._id, sequence=sequence, content=content, **row)
                body = {"sequence": sequence, **row, "question": sha256(asked)}
                self._record("answer", body)
        return self._read(known or {**row, "content": content}, sequence, asked)

    @own_errors
    def close_questions(self) -> None:
        """State measured: from here on the entry opens the source never again."""
        with self._store.writing():
            if self._row()["state"] == "debited":
                # The day only: a finer time would show how long the private steps took.
                today = datetime.now(UTC).date().isoformat()
                self._store.run("move_entry", entry_id=self._id, state="measured", measured_on=today)
                self._record("measured", {"on": today})
        self._store.checkpoint()

    @contextmanager
    def publishing(self, into: str) -> Iterator[None]:
        """Announce ``into`` before it is written, so that a killed release finds its own output again.

        ``into`` was free, or could be replaced, when it was checked. If the block finds that something
        else came to exist there meanwhile (PublishError), the announcement is withdrawn.

        Raises:
            InternalError: questions may still be asked.
        """
        self._note_target("publishing", into)
        taken = False
        try:
            yield
        except PublishError:
            taken = True
            raise
        finally:
            if taken:
                self._note_target("withdrawn", into)

    @own_errors
    def _note_target(self, kind: str, into: str) -> None:
        with self._store.writing():
            if self._row()["state"] == "debited":
                raise InternalError("a release is published after its last question")
            self._record(kind, {"target": into})

    @own_errors_meaning(_WRITTEN)
    def published(self, into: str, rows: int) -> None:
        """State published; a replay that writes again adds a line.

        Raises:
            InternalError: questions may still be asked.
        """
        with self._store.writing():
            row = self._row()
            if row["state"] == "debited":
                raise InternalError("a release is published after its last question")
            if row["state"] == "measured":
                on = row["measured_on"]
                self._store.run("move_entry", entry_id=self._id, state="published", measured_on=on)
            known = self._store.one("count_publications", entry_id=self._id) or {"publications": 0}
            values = {"ordinal": known["publications"], "target": into, "synthetic_rows": rows}
            self._store.run("add_publication", entry_id=self._id, **values)
            self._record("published", values)
        self._store.checkpoint()

    @own_errors
    def wrote(self, targets: Sequence[str]) -> bool:
        """Whether it was published to an output of one of these names before, or died over it."""
        publications = self._store.all("all_publications")
        if any(row["entry_id"] == self._id and row["target"] in targets for row in publications):
            return True
        last = None
        for row in self._store.all("announcements"):
            body = json.loads(row["body"])
            if body["release"] == self.release_id and body["target"] in targets:
                last = row["kind"]
        return last == "publishing"

    def _row(self) -> dict[str, Any]:
        row = self._store.one("find_entry", entry_id=self._id)
        if row is None:
            raise LedgerDamaged(f"The release {self.release_id} has vanished from {self.place}.", None)
        return row

    def _record(self, kind: str, body: Mapping[str, Any]) -> None:
        append(self._store, kind, {"release": self.release_id, **body})

    def _refuse_after_measuring(self) -> None:
        state = self._row()["state"]
        if state != "debited":
            raise InternalError(f"a release that is {state} asks no more questions")

    def _refuse_without_event(self, sequence: int) -> None:
        if self._store.one("find_event", entry_id=self._id, sequence=sequence, ordinal=0) is None:
            raise InternalError("an answer was stored for which nothing was charged")

    def _reserve(self, event: PrivacyEvent, text: str, place: Mapping[str, int]) -> None:
        cost = event_price(event, self._kind)
        spent = self._store.one("sum_events", entry_id=self._id) or {"amount": 0, "delta": 0}
        left = self.budget.amount - spent["amount"], self.budget.delta - spent["delta"]
        if cost.amount > left[0] or cost.delta > left[1]:
            raise PrivacyBudgetExceeded(
                f"The release has {describe(Budget(self._kind, *left))} of its debit left and the question "
                f"costs {describe(cost)}; it was not asked."
            )
        values = {"sequence": place["sequence"], "ordinal": place["ordinal"]}
        costs = {"event": text, "amount": cost.amount, "delta": cost.delta}
        self._store.run("add_event", entry_id=self._id, **values, **costs)
        self._record("event", {**values, **costs})

    def _read(self, row: Mapping[str, Any], sequence: int, asked: str) -> list[NDArray[np.int64]]:
        if row["question"] != asked:
            raise InternalError(
                f"question {sequence} of release {self.release_id} differs from the stored one (was it made "
                "by another version of dpsyn_sql?); a new name= or version= measures anew"
            )
        if sha256(row["content"]) != row["digest"]:
            raise LedgerDamaged(f"A stored answer of release {self.release_id} was changed.", None)
        return _from_bytes(row["content"], json.loads(row["shapes"]))


def opened(store: Store, key: ReleaseKey, budget: Budget, *, new_debit: bool) -> SqliteEntry:
    """Find or debit a release; call inside one IMMEDIATE transaction.

    Raises:
        ReleaseChanged: the name and version exist with other settings (without ``new_debit``).
        ReleaseExists: the same settings were released to another output (without ``new_debit``).
        PrivacyBudgetExceeded: the account does not hold it.
        AccountError: another unit, kind or account than the source's own.
    """
    name = accounts.for_release(store, key)
    known = _Known.of(store, accounts.find(store, name), key)
    if known.account is not None and known.same is not None:
        if known.same["state"] == "debited":  # questions may still be asked of what is read now
            accounts.bind_sources(store, name, key)
        return SqliteEntry(store, known.same, known.account, replayed=True)
    if not new_debit:
        known.refuse(key, budget)
    account = accounts.opened(store, name, key, budget.kind)
    try:
        account, cost = accounts.debited(store, account, budget)
    except PrivacyBudgetExceeded as error:
        refusal = str(error)
    else:
        return _made(store, key, budget, account, cost)
    raise PrivacyBudgetExceeded(refusal + known.free_way())


def _made(store: Store, key: ReleaseKey, budget: Budget, account: Account, cost: Budget) -> SqliteEntry:
    text = canonical_json(dict(key.configuration))
    row = {
        "name": key.name,
        "version": key.version,
        "configuration_hash": sha256(text),
        "kind": budget.kind,
        "amount": budget.amount,
        "delta": budget.delta,
        "debited_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    release = secrets.token_hex(8)
    store.run("add_entry", release_id=release, account_id=account.account_id, configuration=text, **row)
    made = store.all("find_entries", account_id=account.account_id, name=key.name, version=key.version)[0]
    number, charged = made["entry_id"], [cost.amount, cost.delta]
    body = {"release": release, "entry_id": number, "account": account.name, "cost": charged, **row}
    append(store, "debit", body)
    return SqliteEntry(store, made, account, replayed=False)


@dataclass(frozen=True, slots=True)
class _Known:
    """What an account holds of a release: ``same`` is its entry, ``changed`` one of its name and version with
    other settings, ``elsewhere`` one of its version and settings under another name."""

    account: Account | None
    same: Row | None = None
    changed: Row | None = None
    elsewhere: Row | None = None

    @classmethod
    def of(cls, store: Store, account: Account | None, key: ReleaseKey) -> _Known:
        """Look a release up by its name and as ledgers of the first format call it."""
        if account is None:
            return cls(None)
        keys = [key] if key.former is None else [key, key.former]
        place = {"account_id": account.account_id, "version": key.version}
        names = dict.fromkeys(one.name for one in keys)
        hashes = dict.fromkeys(sha256(canonical_json(dict(one.configuration))) for one in keys)
        named = [row for name in names for row in store.all("find_entries", name=name, **place)]
        same = next((row for row in named if row["configuration_hash"] in hashes), None)
        equal = [row for one in hashes for row in store.all("find_equal", configuration_hash=one, **place)]
        return cls(account, same, next(iter(named), None), next(iter(equal), None))

    def refuse(self, key: ReleaseKey, budget: Budget) -> None:
        """Debit nothing silently.

        Raises:
            ReleaseChanged: as ``opened``.
            ReleaseExists: as ``opened``.
        """
        if self.account is not None and self.changed is not None:
            before = json.loads(self.changed["configuration"])
            raise ReleaseChanged(_change(key, budget, self.account.name, before))
        if self.elsewhere is not None and not key.named:
            raise ReleaseExists(
                "A release of the same source and settings was made to another output: "
                f"name={self.elsewhere['name']!r} writes its answers to this one at no cost. To measure "
                f"again would cost {describe(budget)}: say so with new_debit=True, or give a version=. "
                "Nothing was read or charged."
            )

    def free_way(self) -> str:
        """What costs nothing, for the message that something costs too much."""
        if self.elsewhere is None:
            return ""
        name = self.elsewhere["name"]
        return f" A release of the same source and settings exists: name={name!r} replays it at no cost."


def looked_up(
    store: Store, key: ReleaseKey, budget: Budget, targets: Sequence[str], *, new_debit: bool
) -> Outlook:
    """What ``opened`` would do; call inside a transaction that is rolled back.

    Raises:
        AccountError: as ``opened``.
    """
    standing = accounts.standing(store, key)
    try:
        entry = opened(store, key, budget, new_debit=new_debit)
    except (PrivacyBudgetExceeded, ReleaseChanged, ReleaseExists) as error:
        refusal = str(error)
    else:
        if not entry.replayed:
            return Outlook(standing)
        return Outlook(standing, entry.budget, entry.measured_on, entry.wrote(targets))
    return Outlook(standing, refusal=refusal)


def _change(key: ReleaseKey, budget: Budget, account: str, before: Mapping[str, Any]) -> str:
    now = json.loads(canonical_json(dict(key.configuration)))
    differing = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
    version = "without a version" if key.version is None else f"version {key.version!r}"
    epsilon = f"epsilon={now['epsilon']}, " if "epsilon" in now else ""
    return (
        f"The release {key.name!r} {version} exists in the account {account!r} with other settings "
        f"({', '.join(differing)}). To measure again would cost {epsilon}{describe(budget)}. "
        "Nothing was read or charged. Give a new name= or version=, or new_debit=True to pay for it."
    )


def _to_bytes(answer: Sequence[NDArray[np.int64]]) -> bytes:
    if any(table.dtype != np.int64 for table in answer):
        raise InternalError("a noisy answer is made of int64 tables")
    return b"".join(table.astype(_LITTLE_ENDIAN, copy=False).tobytes() for table in answer)


def _from_bytes(content: bytes, shapes: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    flat = np.frombuffer(content, dtype=_LITTLE_ENDIAN).astype(np.int64)
    ends = np.cumsum([int(np.prod(shape, dtype=np.int64)) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]
