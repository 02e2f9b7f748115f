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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsyn_sql.accounting.account import Charge, describe
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import PrivacyEvent, event_from_dict
from dpsyn_sql.errors import (
    InternalError,
    PrivacyBudgetExceeded,
    PublishError,
    ReleaseChanged,
    ReleaseExists,
    SeriesUnfinished,
)
from dpsyn_sql.ledger import accounts, stops
from dpsyn_sql.ledger.accounts import Account
from dpsyn_sql.ledger.guard import translate_errors, translate_errors_with
from dpsyn_sql.ledger.preview import AccountState, ReleasePreview
from dpsyn_sql.ledger.questions import Debit, StoredQuestion
from dpsyn_sql.ledger.store import Store, append, canonical_json, sha256
from dpsyn_sql.ledger.ties import place_of, record_ties, refuse_other_ties
from dpsyn_sql.planning.plan import ReleaseKey

if TYPE_CHECKING:  # as in ``ledger/questions.py``
    import numpy as np
    from numpy.typing import NDArray

Row = Mapping[str, Any]

_WRITTEN = (
    "The output was written, and the debit is recorded. Only the record of the publication is missing. "
    "The same call again costs nothing and completes it."
)


class SqliteEntry:
    """One release: a debit, and the questions asked within it, which it numbers.

    ``replayed``: the debit was found, not made; nothing was charged this time. ``account``: the
    account as it was after the debit. ``debited_on``: the UTC day of the debit, which is public; the second
    stays in the ledger, since two of them show how long a run took. ``told``: what a new debit costs within
    its panel, in words; ``cost`` in units, None for a debit that was found.
    """

    def __init__(
        self,
        store: Store,
        row: Mapping[str, Any],
        account: Account,
        *,
        replayed: bool,
        told: str = "",
        cost: Budget | None = None,
    ) -> None:
        self._store = store
        self._id: int = row["entry_id"]
        self.budget = Budget(row["kind"], row["amount"], row["delta"])
        self.release_id: str = row["release_id"]
        self.debited_on: str = row["debited_at"][:10]
        self.name: str = row["name"]
        self.version: str | None = row["version"]
        self.account = account
        self.replayed = replayed
        self.told = told
        self.cost = cost
        self._debit = Debit(store, self._id, self.release_id, self.budget, row["state"] != "debited")
        self._asked = 0

    def __repr__(self) -> str:
        return f"SqliteEntry({self.release_id}, {self.name!r})"

    @property
    def entry_id(self) -> int:
        """Its number in the ledger."""
        return self._id

    @property
    def place(self) -> str:
        """The ledger's file."""
        return self._store.place

    @property
    @translate_errors
    def state(self) -> str:
        """``"debited"``: the source may be read; ``"measured"``, ``"published"``: it is never read again."""
        return str(self._debit.row()["state"])

    @property
    def account_state(self) -> AccountState:
        """The account as it was after the debit."""
        return accounts.state_of_account(self.account)

    @property
    @translate_errors
    def measured_on(self) -> str | None:
        """The UTC day on which the last answer was stored; None before that."""
        day = self._debit.row()["measured_on"]
        return None if day is None else str(day)

    @property
    @translate_errors
    def events(self) -> tuple[PrivacyEvent, ...]:
        """Events charged so far, in order."""
        rows = self._store.all("find_events", entry_id=self._id)
        return tuple(event_from_dict(json.loads(row["event"])) for row in rows)

    def ask(self, question: Mapping[str, Any]) -> StoredQuestion:
        """The next question of the release: numbers follow the order of the calls, whoever asks.

        Raises:
            ReleaseChanged: the stored question of this number differs, or there is none and all were asked:
                another version of dpsyn_sql measured the release.
            InternalError: it is not JSON-ready, or ``close_questions`` was called.
            LedgerDamaged: the stored bytes are not what was stored.
        """
        number, self._asked = self._asked, self._asked + 1
        return StoredQuestion(self._debit, number, question)

    @translate_errors
    def charge(self, questions: Sequence[tuple[StoredQuestion, Sequence[PrivacyEvent]]]) -> None:
        """Reserve the events of questions, of all or of none: one wait for the disk.

        Raises:
            PrivacyBudgetExceeded: together they would exceed what was debited.
            ReleaseChanged, InternalError: as ``StoredQuestion.charge``.
        """
        with self._store.writing():
            for question, events in questions:
                for event in events:
                    question.charge(event)

    @translate_errors
    def store(
        self, answers: Sequence[tuple[StoredQuestion, Sequence[NDArray[np.int64]]]]
    ) -> list[list[NDArray[np.int64]]]:
        """Store the noisy answers of questions, all or none; of each the first one wins and is returned.

        Raises:
            ReleaseChanged, InternalError: as ``StoredQuestion.store``.
        """
        with self._store.writing():
            return [question.store(answer) for question, answer in answers]

    @translate_errors
    def stop(self) -> Budget | None:
        """Mark that the release stops after the questions asked so far, unless it went on from here before.

        It does not end: the next question goes on, until something is handed on.

        Returns:
            What it still has to hand on, which pays for later releases of its account; None if it went on.

        Raises:
            InternalError: it lies in a panel, where a debit pays for several releases.
        """
        with self._store.writing():
            row = self._debit.row()
            if place_of(json.loads(row["configuration"]), self.name) is not None:
                raise InternalError("a release of a panel does not stop")
            sequences = [event["sequence"] for event in self._store.all("find_events", entry_id=self._id)]
            if row["state"] == "debited" and max(sequences, default=-1) < self._asked:
                stops.mark(self._store, self._id, self.release_id, self._asked)
            every = stops.stopped(self._store, self.account.account_id, self.budget.kind)
            left = (stopped.budget for stopped in every if stopped.entry_id == self._id)
            return next(left, None)

    @translate_errors
    def close_questions(self) -> None:
        """Set the state measured: from now on the source is never read again for this entry."""
        with self._store.writing():
            if self._debit.row()["state"] == "debited":
                # The day only: a finer time would show how long the private steps took.
                today = datetime.now(UTC).date().isoformat()
                self._store.run("move_entry", entry_id=self._id, state="measured", measured_on=today)
                self._debit.record("measured", {"on": today})

    @contextmanager
    def publishing(self, into: str) -> Iterator[None]:
        """Announce ``into`` before it is written, so that a killed release finds its own output again.

        ``into`` was free, or could be replaced, when it was checked. If the block finds that something
        else has appeared there since (PublishError), the announcement is withdrawn.

        Raises:
            InternalError: questions may still be asked.
        """
        self._note_target("publishing", into)
        occupied = False
        try:
            yield
        except PublishError:
            occupied = True
            raise
        finally:
            if occupied:
                self._note_target("withdrawn", into)

    @translate_errors
    def _note_target(self, kind: str, into: str) -> None:
        with self._store.writing():
            if self._debit.row()["state"] == "debited":
                raise InternalError("a release is published after its last question")
            self._debit.record(kind, {"target": into})

    @translate_errors_with(_WRITTEN)
    def published(self, into: str, rows: int) -> None:
        """State published; a replay that writes again adds a line.

        Raises:
            InternalError: questions may still be asked.
        """
        with self._store.writing():
            row = self._debit.row()
            if row["state"] == "debited":
                raise InternalError("a release is published after its last question")
            if row["state"] == "measured":
                on = row["measured_on"]
                self._store.run("move_entry", entry_id=self._id, state="published", measured_on=on)
            count = self._store.one("count_publications", entry_id=self._id) or {"publications": 0}
            values = {"ordinal": count["publications"], "target": into, "synthetic_rows": rows}
            self._store.run("add_publication", entry_id=self._id, **values)
            self._debit.record("published", values)

    @translate_errors
    def wrote(self, targets: Sequence[str]) -> bool:
        """Whether it was published to an output of one of these names, or died while writing it."""
        publications = self._store.all("all_publications")
        if any(row["entry_id"] == self._id and row["target"] in targets for row in publications):
            return True
        last = None
        for row in self._store.all("announcements"):
            body = json.loads(row["body"])
            if body["release"] == self.release_id and body["target"] in targets:
                last = row["kind"]
        return last == "publishing"


def opened(store: Store, key: ReleaseKey, budget: Budget, *, new_debit: bool) -> SqliteEntry:
    """Find or debit a release; call inside one IMMEDIATE transaction.

    Raises:
        ReleaseChanged: the name and version exist with other settings (without ``new_debit``).
        ReleaseExists: the same settings were released to another output (without ``new_debit``).
        PrivacyBudgetExceeded: the account does not hold it.
        AccountError: another unit, kind or account than the source's own.
    """
    name = accounts.for_release(store, key)
    recorded = _Known.of(store, accounts.find(store, name), key)
    if recorded.account is not None and recorded.same is not None:
        if recorded.same["state"] == "debited":  # questions may still be asked of what is read now
            refuse_other_ties(store, recorded.account.account_id, name, key)
            accounts.bind_sources(store, name, key)
        return SqliteEntry(store, recorded.same, recorded.account, replayed=True)
    if not new_debit:
        recorded.refuse(key, budget)
    account = accounts.opened(store, name, key, budget.kind)
    slot = place_of(key.configuration, key.name)
    try:
        account, cost, cost_words, takeovers = accounts.debited(store, account, Charge(budget, slot))
    except PrivacyBudgetExceeded as error:
        refusal = str(error)
    else:
        return _made(store, key, budget, account, cost, cost_words, takeovers)
    raise PrivacyBudgetExceeded(refusal + recorded.free_way())


def _made(
    store: Store,
    key: ReleaseKey,
    budget: Budget,
    account: Account,
    cost: Budget,
    cost_words: str,
    takeovers: Sequence[stops.Taken],
) -> SqliteEntry:
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
    stops.hand_on(store, takeovers, release)
    store.run("add_entry", release_id=release, account_id=account.account_id, configuration=text, **row)
    entry = store.all("find_entries", account_id=account.account_id, name=key.name, version=key.version)[0]
    number, charged = entry["entry_id"], [cost.amount, cost.delta]
    body: dict[str, Any] = {
        "release": release,
        "entry_id": number,
        "account": account.name,
        "cost": charged,
        **row,
    }
    if takeovers:
        body["taken"] = [takeover.fact for takeover in takeovers]
    append(store, "debit", body)
    record_ties(store, account.name, release, key)
    return SqliteEntry(store, entry, account, replayed=False, told=cost_words, cost=cost)


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
        """Look a release up."""
        if account is None:
            return cls(None)
        criteria = {"account_id": account.account_id, "version": key.version}
        settings = sha256(canonical_json(dict(key.configuration)))
        stopped = stops.stopped_ids(store, account.account_id)  # there is nothing of them to confuse with
        same_name = store.all("find_entries", name=key.name, **criteria)
        same = next((row for row in same_name if row["configuration_hash"] == settings), None)
        changed = next((row for row in same_name if row["entry_id"] not in stopped), None)
        equal = store.all("find_equal", configuration_hash=settings, **criteria)
        elsewhere = next((row for row in equal if row["entry_id"] not in stopped), None)
        return cls(account, same, changed, elsewhere)

    def refuse(self, key: ReleaseKey, budget: Budget) -> None:
        """Refuse a debit that nobody asked for.

        Raises:
            ReleaseChanged: as ``opened``.
            ReleaseExists: as ``opened``.
        """
        if self.account is not None and self.changed is not None:
            before = json.loads(self.changed["configuration"])
            raise ReleaseChanged(_change(key, budget, self.account, before))
        if self.account is not None and self.elsewhere is not None and not key.named:
            name = self.elsewhere["name"]
            free = f"To write its answers here at no cost, add name={name!r}."
            if Path(name).is_absolute():
                free = f"To write its rows again at no cost, give into={name!r}; or copy that file."
            raise ReleaseExists(
                f"A release of the same source and settings exists for another output. {free} To measure "
                "again, add new_debit=True or a version=; this costs "
                f"{describe(budget, self.account.delta)}. Nothing was read or charged."
            )

    def free_way(self) -> str:
        """A hint to a free replay, for the message that a release costs too much."""
        if self.elsewhere is None:
            return ""
        name = self.elsewhere["name"]
        option = "into" if Path(name).is_absolute() else "name"  # a path is what its owner called the output
        return f" A release of the same source and settings exists: {option}={name!r} replays it for free."


def preview_release(
    store: Store, key: ReleaseKey, budget: Budget, targets: Sequence[str], *, new_debit: bool
) -> ReleasePreview:
    """What ``opened`` would do; call inside a transaction that is rolled back.

    Raises:
        AccountError: as ``opened``.
    """
    account_state = accounts.account_state(store, key, budget.kind)
    try:
        entry = opened(store, key, budget, new_debit=new_debit)
    except (PrivacyBudgetExceeded, ReleaseChanged, ReleaseExists, SeriesUnfinished) as error:
        refusal = str(error)
    else:
        if not entry.replayed:
            return ReleasePreview(account_state, told=entry.told, cost=entry.cost)
        published = entry.release_id if entry.state == "published" else ""
        return ReleasePreview(
            account_state,
            entry.budget,
            entry.measured_on,
            entry.wrote(targets),
            published,
            stopped=entry.entry_id in stops.stopped_ids(store, entry.account.account_id),
        )
    return ReleasePreview(account_state, refusal=refusal)


def _change(key: ReleaseKey, budget: Budget, account: Account, before: Mapping[str, Any]) -> str:
    now = json.loads(canonical_json(dict(key.configuration)))
    differing = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
    version = "without a version" if key.version is None else f"version {key.version!r}"
    return (
        f"The release {key.name!r} {version} exists in the account {account.name!r} with other settings "
        f"({', '.join(differing)}). Nothing was read or charged. To measure again, give a new name= or "
        f"version=, or add new_debit=True; this costs {describe(budget, account.delta)}."
    )
