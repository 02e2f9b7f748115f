"""The command ``dpsyn``: in this process, and as a file that shells and schedulers find."""

import os
import sys
from pathlib import Path

from typer.testing import CliRunner

from dpsyn_sql.cli.main import app

_DPSYN = "#!/bin/sh\nPYTHONPATH='{}' exec '{}' -c 'from dpsyn_sql.cli.start import main; main()' \"$@\"\n"
_PATHS = os.environ.get("PYTHONPATH", "")


def search_path(folder: Path) -> str:
    """``PATH`` with a folder first that has ``dpsyn``; it is made in ``folder``."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "dpsyn"
    command.write_text(_DPSYN.format(_PATHS, sys.executable))
    command.chmod(0o700)
    return f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"


def run(*arguments):
    """The result of a command line in this process: its exit code and what it prints."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
