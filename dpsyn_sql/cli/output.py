"""What commands print, and the time that they took."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dpsyn_sql.cli.option_names import with_option_names
from dpsyn_sql.common.notices import aligned, printable, widths
from dpsyn_sql.common.progress import COLUMNS, lines_of, stopwatch, without_bar
from dpsyn_sql.errors import (
    DomainError,
    DpsynError,
    InputError,
    LedgerDamaged,
    LedgerError,
    PrivacyBudgetExceeded,
    ReleaseChanged,
    ReleaseExists,
    ScheduleError,
    ScheduleLocked,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document (docs/command_line.md).")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors and what you asked to see, nothing else.")
]

_LEAST = 10
"""Characters that a column of a table gets at least, or all that it needs."""
_BORDER = 3
_LARGE = 1e5
"""From here on numbers have no decimal places."""


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    """Something failed on the way; of ``dpsyn audit`` also: the claim is violated; of ``dpsyn check``:
    something is odd."""
    REFUSED = 2
    """The command cannot be carried out as written; nothing was done."""
    OVER_BUDGET = 3
    """The ledger refused the debit; nothing was read."""
    LOCKED = 4
    """Another run is at work; nothing was done."""
    INTERRUPTED = 130
    """Ctrl-C, as in shells."""


_CODES: tuple[tuple[type[DpsynError], ExitCode], ...] = (
    (PrivacyBudgetExceeded, ExitCode.OVER_BUDGET),
    (ScheduleLocked, ExitCode.LOCKED),
    (LedgerDamaged, ExitCode.FAILED),
    (InputError, ExitCode.REFUSED),
    (LedgerError, ExitCode.REFUSED),
    (ReleaseChanged, ExitCode.REFUSED),
    (ReleaseExists, ExitCode.REFUSED),
)
"""The first line that fits decides; all other errors happen on the way."""


def exit_code(error: DpsynError) -> ExitCode:
    """The exit code of a command that ends with ``error``."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


class Output:
    """Where a command prints. With ``--json`` only the document is printed, on standard output."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.warnings: list[str] = []
        self._document: dict[str, Any] | None = None

    def say(self, text: str) -> None:
        """A line of what was done; not with ``--quiet``."""
        if not self.quiet:
            self.show(text)

    def show(self, text: str) -> None:
        """A text that was asked for."""
        if not self.as_json:
            typer.echo(printable(text))

    def raw(self, text: str) -> None:
        """A text that was asked for and may go to a file: unchanged, except on a terminal."""
        if not self.as_json:
            typer.echo(printable(text) if sys.stdout.isatty() else text, nl=False)

    def aside(self, text: str) -> None:
        """A line on standard error about what goes on; not with ``--quiet`` or ``--json``."""
        if not self.quiet and not self.as_json:
            # While a bar is shown, standard error is a stand-in, on which typer.echo fails.
            print(printable(text), file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """A warning: on standard error, or in the JSON document."""
        self.warnings.append(text)
        self.aside(f"Warning: {text}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> None:
        """A table that was asked for; None is an empty cell."""
        if self.as_json:
            return
        names = [printable(name, lines=False) for name in columns]
        cells = [[_cell(value) for value in row] for row in rows]
        right = [
            any(_is_number(row[column]) for row in rows)
            and all(row[column] is None or _is_number(row[column]) for row in rows)
            for column in range(len(names))
        ]
        _print_table(printable(title), names, cells, right)

    def aside_table(
        self, columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], title: str
    ) -> None:
        """A table that was asked for, on standard error: it is no part of what the command gives."""
        _print_table(title, columns, cells, right, aside=True)

    def document(self, document: Mapping[str, Any]) -> None:
        """What ``--json`` prints at the end."""
        self._document = dict(document)

    def finish(self) -> None:
        """Print the JSON document."""
        if self.as_json and self._document is not None:
            typer.echo(json_text({**self._document, "warnings": self.warnings}))


@contextmanager
def printing(as_json: bool, quiet: bool, interrupted: str = "Interrupted.") -> Iterator[Output]:
    """All that a command does: our errors end it with one message and an exit code.

    An interrupt passes through. If it has no note, it gets ``interrupted`` as one.
    """
    out = Output(as_json, quiet)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.showwarning = lambda message, *_, **__: out.warn(with_option_names(str(message)))
        if as_json or quiet:
            stack.enter_context(without_bar())
        try:
            yield out
        except DpsynError as error:
            message, code, kind = with_option_names(str(error)), exit_code(error), type(error).__name__
            faults = (
                [with_option_names(fault) for fault in error.faults]
                if isinstance(error, DomainError | ScheduleError)
                else []
            )
        except KeyboardInterrupt as interrupt:
            note_interrupt(interrupt, interrupted)
            raise
        else:
            out.finish()
            return
    print_error(as_json, kind, message, code, faults=faults, warned=out.warnings)
    raise typer.Exit(int(code))


def print_error(
    as_json: bool,
    kind: str,
    message: str,
    code: ExitCode,
    *,
    faults: Sequence[str] = (),
    warned: Sequence[str] = (),
) -> None:
    """One message on standard error, or one JSON document on standard output."""
    if not as_json:
        typer.echo(f"Error: {printable(message)}", err=True)
        return
    several = {"faults": list(faults)} if faults else {}
    error = {"kind": kind, "message": message, **several, "exit_code": int(code)}
    typer.echo(json_text({"error": error, "warnings": list(warned)}))


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """An interrupt inside that says nothing yet says ``message``."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        note_interrupt(interrupt, message)
        raise


def note_interrupt(interrupt: KeyboardInterrupt, otherwise: str) -> None:
    """Notes of the interrupt in words of the command; ``otherwise`` if it has none."""
    notes = getattr(interrupt, "__notes__", ()) or (otherwise,)
    interrupt.__notes__ = [printable(with_option_names(note)) for note in notes]


def json_text(document: Mapping[str, Any]) -> str:
    """JSON in ASCII, so that a terminal can show it whatever the names are; NaN becomes null."""
    return json.dumps(_plain(document), indent=2, ensure_ascii=True, allow_nan=False, default=str)


def check_writable(path: Path, replace: bool) -> None:
    """Refuse before any work.

    Raises:
        InputError: the file exists, unless ``replace``; or its folder does not.
    """
    if path.exists() and not replace:
        raise InputError(f"{path} exists already: choose another file, or remove it")
    if not path.resolve().parent.is_dir():
        raise InputError(f"the folder of {path} does not exist")


def written(path: Path, text: str) -> bool:
    """Whether the text could be written."""
    with contextlib.suppress(OSError):
        path.write_text(text, encoding="utf-8")
        return True
    return False


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if _LARGE <= abs(value) < math.inf else f"{value:.6g}"
    return printable(str(value), lines=False)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: object) -> Any:
    """``value`` without NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_table(
    title: str,
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    right: Sequence[bool],
    *,
    aside: bool = False,
) -> None:
    """A table, plain where there is no terminal; on one that is too narrow, one line for each value.

    ``aside``: on standard error.
    """
    if not (sys.stderr if aside else sys.stdout).isatty():
        typer.echo("\n".join([*([title] if title else []), *aligned(names, cells, right)]), err=aside)
        return
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(stderr=aside, markup=False, highlight=False, emoji=False)
    if title:
        console.print(Text(title))
    least = sum(min(width, _LEAST) + _BORDER for width in widths(names, cells))
    if cells and least > console.width:
        for row in cells:
            console.print()
            for name, cell in zip(names, row, strict=True):
                console.print(Text(f"{name}: {cell}", overflow="fold"))
        return
    table = Table(box=SIMPLE, pad_edge=False)
    for name, flush in zip(names, right, strict=True):
        table.add_column(Text(name), justify="right" if flush else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


# -- timings -----------------------------------------------------------------------------------------

# ``--timings``: where the time of a command went.

Timings = Annotated[
    bool,
    typer.Option(
        "--timings",
        help="Also print where the time went, on standard error. For you alone: the rows show in it.",
    ),
]

_RIGHT = (False, True, True, True, False)


@contextmanager
def timed(out: Output, wanted: bool) -> Iterator[None]:
    """Time what is done inside; if it is ``wanted``, print it, also if it fails or is interrupted."""
    if not wanted:
        yield
        return
    with stopwatch() as watch:
        try:
            yield
        finally:
            if len(timings := watch.timings()) > 1:  # at least one phase ran
                title = "Where the time went (for you alone):"
                out.aside_table(COLUMNS, lines_of(timings), _RIGHT, title)
