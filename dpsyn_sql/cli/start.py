"""The start of the command ``dpsyn``. It loads the rest, so that Ctrl-C gives one message then too."""

from __future__ import annotations

import sys
from typing import NoReturn

_INTERRUPTED = 130
"""``ExitCode.INTERRUPTED``; perhaps nothing else could be loaded."""


def main() -> None:
    """Run the command; Ctrl-C ends it with one message, whatever it was doing."""
    try:
        from dpsyn_sql.cli.main import app

        app()
    except KeyboardInterrupt as interrupt:
        message = _told(interrupt, "Interrupted before anything was done.")
    except SystemExit as end:
        cause = _interrupt_behind(end)
        if cause is None:
            raise
        message = _told(cause, "Interrupted.")
    _end(message)


def _end(message: str) -> NoReturn:
    """Print the message on standard error, or with ``--json`` a document on standard output."""
    if "--json" in sys.argv[1:]:
        import json

        error = {"kind": "Interrupted", "message": message, "exit_code": _INTERRUPTED}
        print(json.dumps({"error": error, "warnings": []}, indent=2))
    else:
        print(message, file=sys.stderr)
    sys.exit(_INTERRUPTED)


def _interrupt_behind(end: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that the command line library turned into an exit."""
    error: BaseException | None = end
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _told(interrupt: KeyboardInterrupt, otherwise: str) -> str:
    """The note of the interrupted step."""
    return "\n".join(getattr(interrupt, "__notes__", ())) or otherwise
