"""Where the command ``dpsyn`` starts. It loads the rest, so that an interrupt of that is told plainly too."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""Exit code of a command that was interrupted, as shells have it."""


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
    """The interrupt that the command line library has made an exit of."""
    error: BaseException | None = end
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _told(interrupt: KeyboardInterrupt, otherwise: str) -> str:
    """What the interrupted step noted."""
    return "\n".join(getattr(interrupt, "__notes__", ())) or otherwise
