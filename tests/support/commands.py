"""The command ``dpsyn``: in this process, and as a file that shells and schedulers find."""

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support import forked_command
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app


@functools.cache
def _server() -> tuple[str, object]:
    """Where the process listens that runs the commands, and what keeps it: it ends when this one does."""
    folder = tempfile.TemporaryDirectory(prefix="dpsyn-test-")
    address = f"{folder.name}/commands"
    process = subprocess.Popen(
        [sys.executable, "-P", forked_command.__file__, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout.readline() == b"ready\n"
    return address, (folder, process)


def search_path(folder: Path) -> str:
    """``PATH`` with a folder first that has ``dpsyn``; it is made in ``folder``."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "dpsyn"
    command.write_text(forked_command.PROGRAM.format(python=sys.executable, address=_server()[0]))
    command.chmod(0o700)
    return f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"


def run(*arguments):
    """The result of a command line in this process: its exit code and what it prints."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
