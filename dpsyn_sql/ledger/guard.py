"""What guards a ledger: its errors, and its copies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from dpsyn_sql.errors import DpsynError, InputError, LedgerDamaged, LedgerError
from dpsyn_sql.ledger import creation, store
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


def _damage_of(ledger: Store) -> LedgerDamaged | None:
    """What ``verify`` finds; None if the ledger is intact, or cannot be read now."""
    damage = None
    try:
        _verify(ledger)
    except LedgerDamaged as damaged:
        damage = damaged
    except DpsynError:
        pass
    return damage


@store.translate_errors
def _verify(ledger: Store) -> None:
    with ledger.reading():
        verify(ledger, None)


# -- copies ------------------------------------------------------------------------------------------

# A copy of a ledger as it is at one moment, whatever other processes do meanwhile.

_NONE_MADE = "No backup was made, and the ledger itself is unchanged."


class Backup:
    """A backup of ``store`` that is to be made at ``place``."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self.place = path

    def make(self) -> str:
        """Write it, whole or not at all; returns the head hash of the copy.

        Raises:
            InputError: something is at the place already.
            LedgerDamaged: the ledger is not sound, so that a copy would stand for a better one.
            LedgerError: the copy cannot be written.
        """
        with self._store.reading():
            head = verify(self._store, None)
            created = self._written()
        if not created:
            raise InputError(
                f"{self.place} exists, and a backup never overwrites: choose another name. {_NONE_MADE}"
            )
        return head

    @translate_errors_with(_NONE_MADE)
    def _written(self) -> bool:
        def build(path: str) -> None:
            self._store.copy_to(path)
            shutil.copymode(self._store.place, path)

        return creation.make_new(Path(os.path.abspath(self.place)), build)  # noqa: PTH100
