"""What a ledger tells beforehand: the state of an account, and what it would do with a release."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn_sql.accounting.account import KINDS, shown
from dpsyn_sql.accounting.budget import Budget, Kind


@dataclass(frozen=True, slots=True)
class AccountState:
    """The state of an account: epsilon spent so far at its delta, its grant, and in words what is left.

    ``idle``: other accounts with a limit and no source, where this one has no limit. ``kind``: of the
    account, or of the release that would make it. ``unasked``: what releases that stopped have not asked
    for, in words.
    """

    account: str
    spent_epsilon: float
    delta: float
    granted: tuple[str, str] | None
    left: str = ""
    idle: tuple[str, ...] = ()
    kind: Kind = "gdp"
    unasked: str = ""

    def __str__(self) -> str:
        spent = "nothing is spent so far"
        if self.spent_epsilon:
            spent = f"epsilon={shown(self.spent_epsilon)} at delta={shown(self.delta)} is spent so far"
        if self.unasked:
            spent += f", of which {self.unasked} was not asked for and pays for the next release"
        account = f"{self.account!r} ({KINDS[self.kind]})"
        if self.granted is None:
            return f"{account} has no limit; {spent}"
        epsilon, delta = self.granted
        return f"{account} was granted epsilon={epsilon}, delta={delta}; {spent}; {self.left}"

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
class ReleasePreview:
    """What a ledger would do with a release. Finding out changes nothing.

    ``stored`` is the budget of the entry that would be replayed, None for a new debit; ``measured_on`` the
    day of its answers, None if they are not complete. ``wrote``: it was published to this output before,
    or died while writing it. ``published``: the id of the release, if it was published to any output.
    ``refusal``: why nothing would be debited. ``told``: what a new debit costs within its panel;
    ``cost``: the same in units, None where no ledger was asked. ``stopped``: the entry has, after
    learning.
    """

    account_state: AccountState
    stored: Budget | None = None
    measured_on: str | None = None
    wrote: bool = False
    published: str = ""
    refusal: str = ""
    told: str = ""
    cost: Budget | None = None
    stopped: bool = False

    @property
    def debits(self) -> bool:
        """Whether it would be a new debit."""
        return self.stored is None and not self.refusal

    def __str__(self) -> str:
        if self.refusal:
            return f"would be refused: {self.refusal}"
        if self.stored is None:
            return self.told or "a new debit, which fits the account"
        if self.stopped:
            return "stopped after learning that little can be kept: costs nothing more"
        if self.measured_on is None:
            return "continues an earlier run under its debit: costs nothing more"
        return f"a replay of the answers of {self.measured_on}: costs nothing"
