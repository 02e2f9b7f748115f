"""The default place of a source's ledger: beside the data, so that it is found again.

a table in a database file   <database file>.dpsyn-ledger
a file or glob               .dpsyn-ledger in the deepest folder before a wildcard, or in the folder above
                             that has one already
a database in memory         in memory too, with a warning that the record ends with the process
anything else                an error before anything is read that asks for a place; also if several
                             ledgers may know what was spent on the files
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from dpsyn_sql.common.notices import warn
from dpsyn_sql.errors import LedgerError, SourceError
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.source.files import ending_of, find_files
from dpsyn_sql.source.names import SUFFIX, listed

VARIABLE = "DPSYN_LEDGER"
"""The environment variable that names the ledger file when ``ledger=`` does not."""

_IN_MEMORY = dict[str | None, MemoryLedger]()
_making = threading.Lock()
_ASK = f"Give ledger='path/to/file' or set the environment variable {VARIABLE}. Nothing was read."
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(md|motherduck):")
_WILDCARD = re.compile(r"[*?\[]")


def place_for(
    *,
    ledger: str | os.PathLike[str] | None = None,
    databases: Sequence[str | None] = (),
    pattern: str | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    environment: Mapping[str, str] = os.environ,
) -> Path | None:
    """The ledger file of a source: ``ledger=``, else the variable, else the default place.

    Args:
        ledger: the caller's choice of a file.
        databases: the file of each attached database that owns a private table of the source; None
            or "" for one in memory.
        pattern: the glob that the files were found by, absolute; None if each was named.
        files: the private files that are read.
        environment: where ``DPSYN_LEDGER`` is looked up.

    Returns:
        A path, or None for a database in memory.

    Raises:
        LedgerError: no default place fits, or the chosen one is no lasting file.
    """
    chosen = _kept(Path(ledger)) if ledger else variable_place(environment)
    if chosen is None:
        return default_place(databases=databases, pattern=pattern, files=files)
    usual = None
    with contextlib.suppress(LedgerError):
        usual = default_place(databases=databases, pattern=pattern, files=files)
    if usual is not None and usual.is_file() and os.path.realpath(usual) != os.path.realpath(chosen):
        warn(
            f"There is also a ledger beside the source, {usual}. The ledger {chosen} does not know what was "
            "spent there: the privacy losses add up."
        )
    return chosen


def variable_place(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The ledger file that the variable names; None if it is not set.

    Raises:
        LedgerError: a relative path, which would mean another ledger in each folder.
    """
    text = environment.get(VARIABLE)
    if not text:
        return None
    if not (path := _kept(Path(text))).is_absolute():
        raise LedgerError(
            f"{VARIABLE}={text!r} is a relative path: in another folder it would mean another ledger, which "
            "does not know what was spent. Give the whole path. Nothing was read."
        )
    return path


def _kept(path: Path) -> Path:
    """A ledger has to outlive the release that is debited in it."""
    if str(path) == ":memory:":
        raise LedgerError(
            "A ledger ':memory:' would be forgotten with each call, and the next one would spend again. Give "
            "the path of a file. Nothing was read."
        )
    return path


def find_ledger(text: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The ledger file that a person means: its own path, or a source, by the same rules as for a release.

    Args:
        text: a ledger, a DuckDB file, a CSV or Parquet file, a folder or a glob; a path where nothing is
            yet means a ledger; None means the variable, else the only ledger in the current folder.
        environment: where ``DPSYN_LEDGER`` is looked up.

    Raises:
        LedgerError: it is none of these.
    """
    if text is None:
        return variable_place(environment) or _ledger_here()
    kind = _kind_of(text)
    if kind == "ledger":
        return _kept(Path(text))
    if (chosen := variable_place(environment)) is not None:
        return chosen
    problem = ""
    location = None
    try:
        location = _place_of_source(text, kind)
    except (LedgerError, SourceError) as error:
        problem = str(error).removesuffix(_ASK)
    if location is None:
        raise LedgerError(f"{problem.strip()} Give the path of the ledger.")
    return location


def _ledger_here() -> Path:
    """The ledger of files in the current folder, else the only one of a database in it.

    Raises:
        LedgerError: there is none, or several.
    """
    of_files = Path(SUFFIX)
    if of_files.is_file():
        return of_files
    ledgers = sorted(path for path in Path().glob(f"*{SUFFIX}") if path.is_file())
    if len(ledgers) == 1:
        return ledgers[0]
    there = f"This folder has {listed(map(str, ledgers))}." if ledgers else "This folder has none."
    raise LedgerError(f"Which ledger? {there} Name it, or its source, or set the variable {VARIABLE}.")


def _kind_of(text: str) -> str:
    """What is at the path: ``"ledger"`` also if only opening it can tell, and if nothing is there."""
    path = Path(text)
    if path.is_dir():
        return "folder"
    start = b""
    if path.is_file():
        with contextlib.suppress(OSError), path.open("rb") as file:
            start = file.read(16)
    if start[8:12] == b"DUCK":
        return "database"
    if start.startswith(b"SQLite format 3"):
        return "ledger"
    known_ending = not path.is_dir() and ending_of(text) is not None
    return "files" if known_ending or (not path.exists() and _WILDCARD.search(text)) else "ledger"


def _place_of_source(text: str, kind: str) -> Path | None:
    if kind == "database":
        return default_place(databases=[text])
    if kind == "folder":
        return default_place(pattern=str(Path(text) / "*"))
    files = find_files(text)
    if files is None:
        raise LedgerError(f"There is no file {text}.")
    return default_place(pattern=None if files.single else os.path.abspath(text), files=files.paths)  # noqa: PTH100


def memory_ledger(instance: str | None) -> MemoryLedger:
    """The ledger of a database in memory, by the name of its instance: one for all its connections.

    It is kept as long as the process runs: a database may be in use by connections that never came here.
    """
    with _making:
        ledger = _IN_MEMORY.get(instance)
        if ledger is not None:
            return ledger
        ledger = _IN_MEMORY[instance] = MemoryLedger()
    warn(
        "The source is a database in memory, so its ledger is in memory too and ends with the "
        f"database. To keep it, pass ledger='path/to/file' or set {VARIABLE}."
    )
    return ledger


def existing_memory_ledger(instance: str | None) -> MemoryLedger | None:
    """The ledger of a database in memory, if something was charged to it before."""
    return None if instance is None else _IN_MEMORY.get(instance)


def default_place(
    *,
    databases: Sequence[str | None] = (),
    pattern: str | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
) -> Path | None:
    """The default file of a source's ledger; None for a database in memory.

    Raises:
        LedgerError: a URL, several databases or folders, several ledgers, or a folder that cannot be written.
    """
    owners = {database or None for database in databases}
    folders_of_files = {_folder_of(os.fspath(file)) for file in files}
    folders = folders_of_files if pattern is None else {_folder_before_wildcard(pattern)}
    if len(owners) + len(folders) != 1:
        owner_words = "several databases or folders" if owners or folders else "no table or file"
        raise LedgerError(f"The source reads {owner_words}, so its ledger has no default place. {_ASK}")
    if folders:
        return _writable(_ledger_near(folders.pop(), folders_of_files))
    owner = owners.pop()
    if owner is None or owner == ":memory:":
        return None
    _refuse_url(owner)
    file = Path(owner).resolve()
    return _writable(file.with_name(file.name + SUFFIX))


def _ledger_near(folder: Path, members: set[Path]) -> Path:
    """The ledger of files in ``members``, folders below ``folder``: a new one, unless one above serves them.

    A file has to be charged to the same ledger by its own path as by globs over any folder above it. So a
    ledger serves everything below its folder, and a second one in between would not see what the other holds.
    """
    if any(not member.is_relative_to(folder) for member in members):
        raise LedgerError(
            f"Links of the source lead to files outside {folder}, so its ledger has no default place. {_ASK}"
        )
    searched = {above for start in (folder, *members) for above in (start, *start.parents)}
    # A link that cannot be followed now counts as a ledger too: opening it says what is wrong.
    ledgers = sorted(above / SUFFIX for above in searched if os.path.lexists(above / SUFFIX))
    if not ledgers:
        return folder / SUFFIX
    above = [ledger for ledger in ledgers if folder.is_relative_to(ledger.parent)]
    if above and len({os.path.realpath(ledger) for ledger in ledgers}) == 1:
        return above[-1]
    names = ", ".join(str(ledger) for ledger in dict.fromkeys((*ledgers, folder / SUFFIX)))
    raise LedgerError(f"Several ledgers may record what was spent on the source: {names}. {_ASK}")


def _folder_of(file: str) -> Path:
    _refuse_url(file)
    return Path(file).resolve().parent  # links are followed: one file, one ledger


def _folder_before_wildcard(pattern: str) -> Path:
    _refuse_url(pattern)
    wildcard = _WILDCARD.search(pattern)
    end = len(pattern) if wildcard is None else wildcard.start()
    return Path(pattern[: pattern.rfind("/", 0, end) + 1]).resolve()


def _refuse_url(location: str) -> None:
    if _URL.match(location):
        scheme = location.split(":", 1)[0]
        raise LedgerError(f"The source is at a URL ({scheme}:), where no ledger can be kept. {_ASK}")


def _writable(ledger: Path) -> Path:
    """Refuse early; SQLite writes helper files beside the ledger, so the folder counts too."""
    folder = ledger.parent
    if not folder.is_dir():
        raise LedgerError(f"The ledger would be in {folder}, which is not a folder. {_ASK}")
    if not os.access(folder, os.W_OK) or (ledger.exists() and not os.access(ledger, os.W_OK)):
        raise LedgerError(f"The ledger would be at {ledger}, which cannot be written. {_ASK}")
    return ledger
