"""Errors of a damaged ledger are not trusted: an apparent fault or refusal may come from a changed row."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from dpsyn_sql.errors import DpsynError, LedgerDamaged, LedgerError
from dpsyn_sql.ledger import store
from dpsyn_sql.ledger.store import NOTHING_LEFT, Store
from dpsyn_sql.ledger.verify import verify

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class _Kept(Protocol):
    _store: Store

    @property
    def place(self) -> str: ...


Self = TypeVar("Self", bound=_Kept)
Method = Callable[Concatenate[Self, Arguments], Result]


def translate_errors(method: Method[Self, Arguments, Result]) -> Method[Self, Arguments, Result]:
    """Every error of the method is one of ours, and ``LedgerDamaged`` if the ledger is damaged."""
    return _guarded(method, NOTHING_LEFT)


def translate_errors_with(
    meaning: str,
) -> Callable[[Method[Self, Arguments, Result]], Method[Self, Arguments, Result]]:
    """``translate_errors`` for a step whose failure means something else; ``meaning`` says what."""
    return lambda method: _guarded(method, meaning)


def _guarded(method: Method[Self, Arguments, Result], meaning: str) -> Method[Self, Arguments, Result]:
    inner = store.translate_errors(method, meaning)

    @wraps(method)
    def wrapped(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return inner(self, *args, **kwargs)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - raised below
            unexpected = error
        raise _damage_of(self._store) or unexpected

    return wrapped


def _damage_of(kept: Store) -> LedgerDamaged | None:
    """What ``verify`` finds; None if the ledger is intact, or cannot be read now."""
    found = None
    try:
        _verify(kept)
    except LedgerDamaged as damaged:
        found = damaged
    except DpsynError:
        pass
    return found


@store.translate_errors
def _verify(kept: Store) -> None:
    with kept.reading():
        verify(kept, None)
