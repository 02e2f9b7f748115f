"""The start of the command ``dpsyn``. It loads the rest, so that Ctrl-C gives one message then too."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""Exit code of an interrupted command, as in shells."""


def main() -> None:
    """Run the command; Ctrl-C ends it with one message, whatever it was doing."""
    try:
        from dpsyn_sql.cli.main import app

        app()
    except KeyboardInterrupt as interrupt:
        message = _told(interrupt, "Interrupted before anything was done.")
    except SystemExit as end:
        found = _interrupt_behind(end)
        if found is None:
            raise
        message = _told(found, "Interrupted.")
    print(message, file=sys.stderr)
    sys.exit(INTERRUPTED)


def _interrupt_behind(end: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that the command line library turned into an exit."""
    error: BaseException | None = end
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _told(interrupt: KeyboardInterrupt, otherwise: str) -> str:
    """The note of the interrupted step."""
    return "\n".join(getattr(interrupt, "__notes__", ())) or otherwise
