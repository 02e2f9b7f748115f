"""Questions of a release in the ledger: what is reserved for each, and the noisy answer that is kept.

Only noisy answers and public facts are written here; no exact value ever passes this module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsyn_sql.accounting.account import USUAL_DELTA, describe, event_price
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import PrivacyEvent, event_to_dict
from dpsyn_sql.errors import InternalError, LedgerDamaged, PrivacyBudgetExceeded, ReleaseChanged
from dpsyn_sql.ledger.guard import translate_errors
from dpsyn_sql.ledger.stops import BESIDE
from dpsyn_sql.ledger.store import Store, append, canonical_json, sha256

if TYPE_CHECKING:  # loaded where answers are stored or read: a ledger is shown without
    import numpy as np
    from numpy.typing import NDArray

_LITTLE_ENDIAN = "<i8"


@dataclass(frozen=True, slots=True)
class Debit:
    """A release in its ledger: its row, its records, and what was debited for it.

    ``over``: all its questions had been asked when it was opened, so that a further one is another version's.
    """

    store: Store
    entry_id: int
    release_id: str
    budget: Budget
    over: bool

    def row(self) -> dict[str, Any]:
        """The entry as it is now.

        Raises:
            LedgerDamaged: it is missing.
        """
        row = self.store.one("find_entry", entry_id=self.entry_id)
        if row is None:
            raise LedgerDamaged(f"The release {self.release_id} is missing in {self.store.place}.", None)
        return row

    def record(self, kind: str, body: Mapping[str, Any]) -> None:
        """Add a record about the release to the chain."""
        append(self.store, kind, {"release": self.release_id, **body})

    def refuse_after_measuring(self) -> None:
        """Questions are asked while the entry is debited.

        Raises:
            ReleaseChanged: it stopped, and what it had left was handed on.
            InternalError: the release has asked its last question.
        """
        state = self.row()["state"]
        self.refuse_after_handing_on()
        if state != "debited":
            raise InternalError(f"a release that is {state} asks no more questions")

    def refuse_after_handing_on(self) -> None:
        """A release that handed something on asks no further question.

        Raises:
            ReleaseChanged: it did.
        """
        if self.store.one("find_event", entry_id=self.entry_id, sequence=BESIDE, ordinal=1) is not None:
            raise ReleaseChanged(
                f"Release {self.release_id} stopped after learning what its columns hold, and a later "
                "release took over what it had left. It cannot go on. Nothing was charged or written. "
                "Pass another version= to measure again, which costs the budget again."
            )


class StoredQuestion:
    """One question by its number. ``stored``: the answer kept for it when it was asked, or None."""

    def __init__(self, debit: Debit, number: int, question: Mapping[str, Any]) -> None:
        self._debit, self._store = debit, debit.store
        self.number = number
        self._text = canonical_json(dict(question))
        self._reserved = 0
        self.stored = self._find()

    def __repr__(self) -> str:
        return f"StoredQuestion({self._debit.release_id}, {self.number})"

    @property
    def place(self) -> str:
        """The ledger's file."""
        return self._store.place

    @translate_errors
    def _find(self) -> list[NDArray[np.int64]] | None:
        with self._store.reading():  # another process may be answering the same questions
            row = self._store.one("find_answer", entry_id=self._debit.entry_id, sequence=self.number)
            if row is None and self._debit.over:
                self._debit.refuse_after_handing_on()
                raise self._changed()
            if row is None:
                self._debit.refuse_after_measuring()
        return None if row is None else self._read(row)

    @translate_errors
    def charge(self, event: PrivacyEvent) -> None:
        """Reserve an event within the debit, before the source is read.

        A reservation of a killed process for this question is not charged again: its answer was never
        stored, so nobody saw it.

        Raises:
            PrivacyBudgetExceeded: the events would exceed what was debited.
            ReleaseChanged: another event is reserved for this question.
            InternalError: no more may be asked.
        """
        text = canonical_json(event_to_dict(event))
        row_key = {"entry_id": self._debit.entry_id, "sequence": self.number, "ordinal": self._reserved}
        with self._store.writing():
            reserved = self._store.one("find_event", **row_key)
            if reserved is None:
                self._debit.refuse_after_measuring()
                self._reserve(event, text)
            elif reserved["event"] != text:
                raise self._changed()
        self._reserved += 1

    @translate_errors
    def store(self, answer: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Store a noisy answer (int64 tables); the first one wins and is returned.

        Raises:
            ReleaseChanged: the stored question differs.
            InternalError: nothing was reserved for it, or not int64.
        """
        content = _to_bytes(answer)
        row = {
            "question": self._text,
            "shapes": canonical_json([list(table.shape) for table in answer]),
            "digest": sha256(content),
        }
        row_key = {"entry_id": self._debit.entry_id, "sequence": self.number}
        with self._store.writing():
            stored = self._store.one("find_answer", **row_key)
            if stored is None:
                self._debit.refuse_after_measuring()
                self._refuse_without_event()
                self._store.run("add_answer", content=content, **row_key, **row)
                body = {"sequence": self.number, **row, "question": sha256(self._text)}
                self._debit.record("answer", body)
        return self._read(stored or {**row, "content": content})

    def _refuse_without_event(self) -> None:
        row_key = {"entry_id": self._debit.entry_id, "sequence": self.number, "ordinal": 0}
        if self._store.one("find_event", **row_key) is None:
            raise InternalError("nothing was charged for an answer that is stored")

    def _reserve(self, event: PrivacyEvent, text: str) -> None:
        debit = self._debit
        cost = event_price(event, debit.budget.kind)
        spent = self._store.one("sum_events", entry_id=debit.entry_id) or {"amount": 0, "delta": 0}
        left = debit.budget.amount - spent["amount"], debit.budget.delta - spent["delta"]
        if cost.amount > left[0] or cost.delta > left[1]:
            has, asks = (describe(amount, USUAL_DELTA) for amount in (Budget(debit.budget.kind, *left), cost))
            resource = "threshold delta" if cost.amount <= left[0] else "budget"
            raise PrivacyBudgetExceeded(
                f"The release has too little {resource} of its debit left, which is {has}, and the question "
                f"costs {asks}. It was not asked."
            )
        values = {"sequence": self.number, "ordinal": self._reserved}
        costs = {"event": text, "amount": cost.amount, "delta": cost.delta}
        self._store.run("add_event", entry_id=debit.entry_id, **values, **costs)
        debit.record("event", {**values, **costs})

    def _changed(self) -> ReleaseChanged:
        return ReleaseChanged(
            f"Release {self._debit.release_id} was measured by another version of dpsyn_sql, which asked "
            f"other questions: question {self.number} differs. Nothing was charged or written. Only that "
            "version replays it. Pass another version= to measure again, which costs the budget again."
        )

    def _read(self, row: Mapping[str, Any]) -> list[NDArray[np.int64]]:
        release = self._debit.release_id
        if row["question"] != self._text:
            raise self._changed()
        if sha256(row["content"]) != row["digest"]:
            raise LedgerDamaged(f"A stored answer of release {release} was changed.", None)
        return _from_bytes(row["content"], json.loads(row["shapes"]))


def _to_bytes(answer: Sequence[NDArray[np.int64]]) -> bytes:
    import numpy as np

    if any(table.dtype != np.int64 for table in answer):
        raise InternalError("a noisy answer is made of int64 tables")
    return b"".join(table.astype(_LITTLE_ENDIAN, copy=False).tobytes() for table in answer)


def _from_bytes(content: bytes, shapes: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """Arrays that nobody can change: who is handed one shares it with the release."""
    import numpy as np

    flat = np.frombuffer(content, dtype=_LITTLE_ENDIAN).astype(np.int64)
    flat.flags.writeable = False
    ends = np.cumsum([int(np.prod(shape, dtype=np.int64)) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]
