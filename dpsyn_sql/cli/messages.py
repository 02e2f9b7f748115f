"""How the command shows errors and warnings: one plain message each, on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from dpsyn_sql.cli.words import FIGURES, in_options
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
def plain_errors(interrupted: str = "Interrupted.") -> Iterator[None]:
    """Our errors as one message on standard error; warnings as one line each.

    An interrupt passes through. If it has no note, it gets ``interrupted`` as one.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show
        try:
            yield
        except DpsynError as error:
            message, refused = str(error), _is_refusal(error)
        except KeyboardInterrupt as interrupt:
            notes = getattr(interrupt, "__notes__", ()) or (interrupted,)
            interrupt.__notes__ = [in_options(note) for note in notes]
            raise
        else:
            return
    typer.echo(f"Error: {in_options(message)}", err=True)
    raise typer.Exit(2 if refused else 1)


def _is_refusal(error: DpsynError) -> bool:
    """Whether nothing was done; other errors happen on the way."""
    return isinstance(error, _REFUSED) and not isinstance(error, LedgerDamaged)


def _show(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"Warning: {in_options(str(message), but=FIGURES)}", err=True)
