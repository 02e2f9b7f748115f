"""What a ledger answers, whatever keeps it: accounts, what it would do with a release, and its entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.account import KINDS, shown
from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.accounting.events import PrivacyEvent
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.source.ledger_names import Home


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of an account: epsilon spent so far at its delta, its grant, and in words what is left.

    ``idle``: other accounts with a limit and no source, where this one has no limit. ``kind``: of the
    account, or of the release that would make it.
    """

    account: str
    spent_epsilon: float
    delta: float
    granted: tuple[str, str] | None
    left: str = ""
    idle: tuple[str, ...] = ()
    kind: Kind = "gdp"

    def __str__(self) -> str:
        spent = f"epsilon={shown(self.spent_epsilon)} at delta={shown(self.delta)} is spent so far"
        named = f"{self.account!r} ({KINDS[self.kind]})"
        if self.granted is None:
            return f"{named} has no limit; {spent}"
        epsilon, delta = self.granted
        return f"{named} was granted epsilon={epsilon}, delta={delta}; {spent}; {self.left}"

    @property
    def warning(self) -> str:
        """A warning about limits that apply to no source; empty if there are none."""
        if not self.idle:
            return ""
        return (
            f"The ledger has a limit for {', '.join(map(repr, self.idle))}, but no source is charged to it. "
            f"This release is charged to {self.account!r}, which has no limit. "
            "Set one with `dpsyn ledger grant`."
        )


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a ledger would do with a release. Finding out changes nothing.

    ``stored`` is the budget of the entry that would be replayed, None for a new debit; ``measured_on`` the
    day of its answers, None if they are not complete. ``wrote``: it was published to this output before,
    or died while writing it. ``published``: the id of the release, if it was published to any output.
    ``refusal``: why nothing would be debited. ``told``: what a new debit costs within its panel;
    ``cost``: the same in units, None where no ledger was asked.
    """

    standing: Standing
    stored: Budget | None = None
    measured_on: str | None = None
    wrote: bool = False
    published: str = ""
    refusal: str = ""
    told: str = ""
    cost: Budget | None = None

    def __str__(self) -> str:
        if self.refusal:
            return f"would be refused: {self.refusal}"
        if self.stored is None:
            return self.told or "a new debit, which fits the account"
        if self.measured_on is None:
            return "continues an earlier run under its debit: costs nothing more"
        return f"a replay of the answers of {self.measured_on}: costs nothing"


class Asked(Protocol):
    """A question in a ledger entry, by its number."""

    @property
    def stored(self) -> list[NDArray[np.int64]] | None:
        """The answer that was stored before it was asked, or None."""

    def charge(self, event: PrivacyEvent) -> None:
        """Reserve an event within the debit, before the source is read.

        Raises:
            PrivacyBudgetExceeded: the events would exceed what was debited.
        """

    def store(self, answer: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Store a noisy answer, compare-and-set; returns the answer that won."""


class LedgerEntry(Protocol):
    """A release in the ledger: the debit was made when it was opened; no refunds."""

    @property
    def budget(self) -> Budget:
        """What was debited: its kind is that of every question."""

    @property
    def release_id(self) -> str:
        """Random public identifier of the release."""

    @property
    def debited_at(self) -> str:
        """UTC time of the debit, ISO 8601: the only timestamp of a certificate."""

    @property
    def name(self) -> str:
        """Name of the release."""

    @property
    def version(self) -> str | None:
        """Public label of the data it was measured on."""

    @property
    def standing(self) -> Standing:
        """The account after the debit, for people."""

    @property
    def replayed(self) -> bool:
        """The debit was found in the ledger, not made: nothing was charged this time."""

    @property
    def state(self) -> str:
        """``"debited"``: questions may be asked; ``"measured"``, ``"published"``: all answers are
        stored and the source is not opened again."""

    @property
    def measured_on(self) -> str | None:
        """UTC day on which the last answer was stored, ISO 8601; None while questions may be asked."""

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """Events charged so far, in order."""

    def ask(self, question: Mapping[str, Any]) -> Asked:
        """The next question; the entry numbers them in the order of these calls, whoever asks. A stored
        question of this number that differs is an error."""

    def close_questions(self) -> None:
        """Set the state measured: from now on the source is never read again for this entry."""

    def publishing(self, into: str) -> AbstractContextManager[None]:
        """Announce ``into`` while it is written; a killed release may then write it again."""

    def published(self, into: str, rows: int) -> None:
        """State published."""


class Ledger(Protocol):
    """Accounts and entries."""

    @property
    def home(self) -> Home:
        """Where the names of its sources begin."""

    def look(
        self, key: ReleaseKey, budget: Budget, targets: Sequence[str], *, new_debit: bool = False
    ) -> Outlook:
        """What ``open_release`` would do, for an output of these names; changes nothing.

        Raises:
            AccountError: the sources belong to another account, or to different ones.
        """

    def open_release(
        self, key: ReleaseKey, budget: Budget, *, new_debit: bool = False
    ) -> AbstractContextManager[LedgerEntry]:
        """Debit ``budget`` and open an entry, or find the one of the same key at no cost.

        ``new_debit`` pays again where the name and version exist with other settings, or the same settings
        under another name.

        Raises:
            PrivacyBudgetExceeded: the account does not hold it; nothing was read.
            ReleaseChanged: same name and version, other settings; nothing was charged.
            ReleaseExists: same version and settings, another output; nothing was charged.
            AccountError: another unit, kind or account than the source's own.
            LedgerError: the ledger cannot be used; nothing was read.
        """
