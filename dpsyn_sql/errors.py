"""Every error a user can meet, as one tree; importable from anywhere::

    DpsynError
    ├── InputError                 the call cannot be carried out as written; nothing was read or charged
    │   ├── SourceError            the source is missing, ambiguous, of an unsupported kind, or mixes rows
    │   ├── DomainError            the public domain is missing or contradictory (all faults in one message)
    │   ├── BudgetError            epsilon, delta or a share of them is out of range
    │   ├── TargetError            the output exists, equals the source, or cannot be written
    │   ├── PlanTooLarge           the plan asks for more cells than the limit
    │   ├── AccountError           the account has another kind or unit, or another source
    │   │   └── SeriesUnfinished   an earlier window of the series is not measured
    │   └── ScheduleError          the file of a schedule is wrong (all faults, with their lines)
    ├── PrivacyBudgetExceeded      the ledger refuses the debit; nothing was read
    ├── ReleaseChanged             the same name and version, other settings or questions; nothing was charged
    ├── ReleaseStopped             little of the table can be kept; what was not asked for pays for another
    ├── ReleaseExists              the same settings under another name, free to replay; nothing was charged
    ├── LedgerError                the ledger file cannot be opened, read or written
    │   └── LedgerDamaged          the ledger's records contradict each other
    ├── ScheduleLocked             another run of a schedule is charging the same ledger
    ├── ReleaseUnfinished          a release ended after its debit; the same call goes on at no cost
    ├── PublishError               the output appeared or vanished after the debit; a retry is free
    ├── EngineFailure              a statement of ours failed in the database (its own text is withheld)
    └── InternalError              a broken promise between our own parts: please report it

Messages say what is wrong, the value where it is public, what is allowed, and what to do.
They never carry a database engine's own text: engines quote cell values in their messages
(see docs/privacy.md). For the same reason an engine's exception is never chained: raise
ours outside the ``except`` block.
"""

from __future__ import annotations

import functools
import numbers
import traceback
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SHOWN = 200
_PACKAGE = Path(__file__).resolve().parent


class DpsynError(Exception):
    """Base of every error raised on purpose by dpsyn_sql."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors can be pickled, also those with more than a message."""
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[DpsynError], arguments: tuple[Any, ...]) -> DpsynError:
    return kind.__new__(kind, *arguments)


class InputError(DpsynError, ValueError):
    """The call cannot be carried out as written; nothing was read, written or charged."""


class SourceError(InputError):
    """The source is missing, ambiguous, unsupported, or mixes rows of several units."""


class DomainError(InputError):
    """The public domain is missing or contradictory.

    ``faults`` holds every fault found, in source order, so that one run shows them all.
    """

    def __init__(self, message: str, faults: Sequence[str] = ()) -> None:
        self.faults: tuple[str, ...] = tuple(faults)
        super().__init__("\n  - ".join((message, *self.faults)))


class BudgetError(InputError):
    """Epsilon, delta or a share of a budget is out of range."""


class TargetError(InputError):
    """The output exists already, equals the source, or cannot be written."""


class PlanTooLarge(InputError):
    """The plan asks for more cells than the limit; decided on the public domain alone."""


class AccountError(InputError):
    """The account has another kind or privacy unit, or the source belongs to another account."""


class SeriesUnfinished(AccountError):
    """An earlier window of the series was begun and is not measured; nothing was read or charged."""


class ScheduleError(InputError):
    """The file of a schedule is wrong; nothing was read or charged.

    ``faults`` holds every fault found, with file and line, in the order of the file.
    """

    def __init__(self, message: str, faults: Sequence[str] = ()) -> None:
        self.faults: tuple[str, ...] = tuple(faults)
        super().__init__("\n".join((message, *self.faults)))


class ScheduleLocked(DpsynError):
    """Another run of a schedule holds the lock of the ledger; nothing was done."""


class PrivacyBudgetExceeded(DpsynError):
    """The ledger refuses the debit; the source was not read."""


class ReleaseChanged(DpsynError):
    """A release of this name and version exists with other settings, or with other questions, which another
    version of dpsyn_sql asked; nothing was charged."""


class ReleaseExists(DpsynError):
    """A release of the same source, version and settings exists under another name: it replays at no cost."""


class ReleaseStopped(DpsynError):
    """A release learnt that little of its table can be kept, and stopped; nothing was written.

    What it has not asked for pays for the next release of its account. ``columns``: those that cost the most
    and keep nothing.
    """

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        self.columns: tuple[str, ...] = tuple(columns)
        super().__init__(message)


class LedgerError(DpsynError):
    """The ledger file cannot be opened, read or written; its content is unchanged."""


class LedgerDamaged(LedgerError):
    """The ledger's records contradict each other.

    ``record`` is the position of the first broken record in the chain, or None when a row has
    no record at all.
    """

    def __init__(self, message: str, record: int | None) -> None:
        self.record = record
        super().__init__(message)


class PublishError(DpsynError):
    """The output was free when it was checked, but is no longer free. It was not changed.

    The debit stands and the noisy answers are stored: the same release, written elsewhere, costs
    nothing more.
    """


class ReleaseUnfinished(DpsynError):
    """A release ended after its debit, for a reason that should have been found before, or for want of memory
    or of a file. The message says what stays charged; the same call goes on at no further cost."""


class EngineFailure(DpsynError):
    """A statement of ours failed in the database.

    ``step`` names what we were doing, ``kind`` is the class name of the engine's error and
    ``statement`` our own SQL text. The engine's message is dropped on purpose.
    """

    def __init__(self, step: str, kind: str, statement: str) -> None:
        self.step, self.kind, self.statement = step, kind, statement
        super().__init__(
            f"The database failed while {step} ({kind}). Its message is not shown, because it can "
            "quote values of the source. The statement is in the attribute .statement."
        )


class InternalError(DpsynError):
    """A broken promise between parts of dpsyn_sql; please report it."""


def hides_own_frames(function: Callable[P, R]) -> Callable[P, R]:
    """Let what is wrong with a call of ``function`` reach the caller without our frames and without a chain.

    A failure of the database or of our own parts keeps its frames: they say where to look. What it came from
    can quote values of the source, so it is not chained.
    """

    @functools.wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> R:
        try:
            return function(*args, **given)
        except (EngineFailure, InternalError) as error:
            error.__cause__ = error.__context__ = None
            raise
        except DpsynError as error:
            refused = error
        refused.__cause__ = refused.__context__ = None
        try:
            raise refused.with_traceback(None)
        finally:
            del refused  # with its traceback it would keep the arguments alive

    return call


def unexpected(error: BaseException) -> str:
    """An error that nobody has foreseen, without its text."""
    return (
        f"Something unexpected happened ({type(error).__name__}){place_of(error)}. This is a fault of "
        "dpsyn_sql: please report it with this line."
    )


def place_of(error: BaseException) -> str:
    """The last line of this package on the way to an error, in words; empty if there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(_PACKAGE):
            return f" in {path.relative_to(_PACKAGE).as_posix()}, line {frame.lineno}"
    return ""


def said(argument: object) -> str:
    """What a caller gave, for a message: text and numbers as written, anything else by its type. Data frames,
    relations and fetched rows would print personal values.
    """
    if argument is None or isinstance(argument, str | numbers.Real | Decimal | PurePath):
        text = repr(argument)
    else:
        text = f"<{type(argument).__name__}>"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def yaml_word(value: object, key: str = "") -> str:
    """How to write a name that YAML has read as false or true, below ``key`` if given; empty of others."""
    if not isinstance(value, bool):
        return ""
    written = f"{key}: " if key else ""
    return (
        "YAML reads the words no, off, yes and on as false and true. "
        f"Write the name in quotes: {written}{'yes' if value else 'no'!r}"
    )
