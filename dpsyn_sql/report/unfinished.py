"""What a release says that ends after its debit: what was charged, and that the same call goes on.

Errors of Python and its libraries can quote values of the source. They are replaced by ours, which name the
class, and the line of our code.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

from dpsyn_sql.accounting.account import describe
from dpsyn_sql.errors import (
    DpsynError,
    InputError,
    InternalError,
    PrivacyBudgetExceeded,
    ReleaseChanged,
    ReleaseStopped,
    ReleaseUnfinished,
    place_of,
    unexpected,
)
from dpsyn_sql.ledger.entries import SqliteEntry

_SAYS_HOW_TO_GO_ON = ("stays charged", "costs nothing", "no further cost")
_MENDED = "It goes on in the same way after an upgrade of dpsyn_sql that mends the fault."
_NO_MEMORY = (
    "The process ran out of memory{where}. Give it more, or a table with fewer columns or categories."
)


def cost_of(entry: SqliteEntry) -> str:
    """What this call has paid for a release; empty for a debit that was there."""
    return "" if entry.cost is None else describe(entry.cost, entry.account.delta)


def stays(paid: Mapping[str, str], again: str) -> str:
    """What holds after an error.

    Args:
        paid: the releases whose debits are there, each with what this call has paid for it, in words.
        again: "the same call", and on what.
    """
    costs = {name: f" ({cost})" if cost else "" for name, cost in paid.items()}
    if len(costs) == 1:
        ((name, cost),) = costs.items()
        kept = f"release {name!r} stays charged{cost}"
    else:
        kept = f"releases {', '.join(f'{name!r}{cost}' for name, cost in costs.items())} stay charged"
    nothing = "The" if any(costs.values()) else "Nothing was charged this time: the"
    return f"{nothing} {kept}; {again} goes on from here at no further cost."


def with_more(error: Exception, told: str) -> str:
    """The message of an error, and what is told after it."""
    text = str(error).rstrip()
    return f"{text if text.endswith(('.', '!', '?')) else f'{text}.'} {told}"


def after_debit(error: Exception, told: str) -> Exception:
    """The error that a call ends with: the same one if it is ours or a warning, and says what holds.

    Args:
        error: what was raised after a debit.
        told: as ``stays`` gives it.
    """
    if isinstance(error, Warning):  # the caller asked for errors in their place; their text is ours
        error.add_note(told)
        return error
    if isinstance(error, ReleaseStopped | ReleaseChanged):  # the same call does not go on: they say what does
        return error
    if isinstance(error, InputError | PrivacyBudgetExceeded):  # they say that nothing was charged
        return ReleaseUnfinished(with_more(error, told))
    if isinstance(error, DpsynError):
        if any(said in str(error) for said in _SAYS_HOW_TO_GO_ON):
            return error
        mended = f" {_MENDED}" if isinstance(error, InternalError) else ""
        error.args = (f"{with_more(error, told)}{mended}", *error.args[1:])
        return error
    where = place_of(error)
    if isinstance(error, MemoryError):
        return ReleaseUnfinished(f"{_NO_MEMORY.format(where=where)} {told}")
    if isinstance(error, OSError):
        code = errno.errorcode.get(error.errno or 0, type(error).__name__)
        return ReleaseUnfinished(f"The system refused a file or a folder ({code}){where}. {told}")
    return InternalError(f"{unexpected(error)} {told} {_MENDED}")
