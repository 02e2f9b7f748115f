"""Virtual environments of other synthesizers, made by plain pip within a time limit, and runs within one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

INSTALLED = "installed.txt"
"""In a complete environment: the requirements that it holds."""


class Unavailable(Exception):
    """A synthesizer cannot be installed, fails, or takes too long: the text says why, for a table."""


@dataclass(frozen=True)
class Environment:
    """``packages``: requirements for pip; ``pythons``: versions to try, the first that works is taken."""

    packages: tuple[str, ...]
    pythons: tuple[str, ...] = ("3.11", "3.12", "3.10")


def default_cache() -> Path:
    """A folder of the user's own caches."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dpsyn_sql_peers"


def limited(command: Sequence[str | Path], seconds: float, folder: Path | None = None) -> None:
    """Run a command; it and all that it started are killed when the time is over.

    Raises:
        Unavailable: it takes longer than ``seconds``, cannot be started, or its exit code is not 0.
    """
    # Neither this project's packages nor what a caller set for itself may reach a peer.
    variables: Mapping[str, str] = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    try:
        started = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=variables,
            start_new_session=True,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise Unavailable(f"cannot be started: {error}") from error
    try:
        told, _ = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(started)
        raise Unavailable(f"takes more than {seconds:g} s") from None
    except BaseException:  # an interrupted benchmark leaves nothing behind that runs for hours
        _end(started)
        raise
    if started.returncode != 0:
        raise Unavailable(_reason(started.returncode, told))


def _end(started: subprocess.Popen[str]) -> None:
    """Kill a process and all that it started, and wait for it."""
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    if started.stdout is not None:
        started.stdout.close()


def _reason(code: int, told: str) -> str:
    """The line that says most: the last error of pip, or the last line with a word."""
    if code < 0:
        return f"is killed by signal {-code}"
    lines = [line.strip() for line in told.splitlines() if re.search("[A-Za-z]{3}", line)]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["no message"]
    return f"exit code {code}: {errors[-1][:200]}"


def installed(name: str, environment: Environment, cache: Path, seconds: float) -> Path:
    """The Python of an environment, which is made unless it is complete already.

    Raises:
        Unavailable: no Python of a fitting version is on PATH, or pip fails or takes longer than ``seconds``.
    """
    folder = (cache / name).absolute()
    python = folder / "bin" / "python"
    wanted = "\n".join(environment.packages)
    if (folder / INSTALLED).exists() and (folder / INSTALLED).read_text(encoding="utf-8") == wanted:
        return python
    found = _python(environment.pythons)
    if folder.exists():
        shutil.rmtree(folder)
    cache.mkdir(parents=True, exist_ok=True)
    print(f"{name}: pip install {' '.join(environment.packages)}", file=sys.stderr, flush=True)
    limited([found, "-m", "venv", folder], seconds)
    limited([python, "-m", "pip", "install", "--quiet", *environment.packages], seconds)
    (folder / INSTALLED).write_text(wanted, encoding="utf-8")
    return python


def _python(versions: Sequence[str]) -> str:
    for version in versions:
        found = shutil.which(f"python{version}")
        if found is None:
            continue
        with suppress(Unavailable):  # a name on PATH may stand for a version that is not there
            limited([found, "-c", "import venv"], 60)
            return found
    raise Unavailable(f"needs Python {' or '.join(versions)} on PATH")
