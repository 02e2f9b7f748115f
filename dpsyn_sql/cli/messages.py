"""How the command speaks of errors and warnings: one plain message each, on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from dpsyn_sql.errors import (
    DpsynError,
    InputError,
    LedgerDamaged,
    LedgerError,
    PrivacyBudgetExceeded,
    ReleaseChanged,
    ReleaseExists,
)

_REFUSED = (InputError, LedgerError, PrivacyBudgetExceeded, ReleaseChanged, ReleaseExists)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Our errors as one message on standard error; warnings as one line each."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    with warnings.catch_warnings():
        warnings.showwarning = _shown_by(console)
        try:
            yield
        except DpsynError as error:
            message, refused = str(error), _is_refusal(error)
        else:
            return
    console.print(f"Error: {message}", markup=False)
    raise typer.Exit(2 if refused else 1)


def _is_refusal(error: DpsynError) -> bool:
    """Nothing was done; anything else went wrong on the way."""
    return isinstance(error, _REFUSED) and not isinstance(error, LedgerDamaged)


def _shown_by(console: Console) -> Callable[..., None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        console.print(f"Warning: {message}", markup=False)

    return show
