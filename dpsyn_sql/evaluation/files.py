"""PRIVATE: where the figures of an evaluation may be written, and how.

The name of a file ends in ``.private.html`` or ``.private.json``; nobody but its owner may read it. Nothing
is overwritten, and nothing is written into a folder whose files may be given away.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

from dpsyn_sql.engines.written_rows import holds_releases_alone
from dpsyn_sql.errors import InputError, LedgerError, said
from dpsyn_sql.ledger.locations import variable_place
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.ledger_names import SUFFIX
from dpsyn_sql.source.names import shorten
from dpsyn_sql.source.paths import absolute_path

PRIVATE_ENDINGS = (".private.html", ".private.json")

_MODEL = file_beside(Path("x")).name[1:]
_DATABASE_MARK, _MARK_AT = b"DUCK", 8
_PARQUET, _LENGTH, _MOST_METADATA = b"PAR1", 4, 2**26
_STATED = re.compile(rb"\x18\x09dpsyn_sql\x18[\x80-\xff]*[\x00-\x7f]Synthetic rows, ")
# A key of nine bytes and its value, in the compact protocol of Thrift.
_OWNER_ALONE = 0o600


def private_name(path: str | os.PathLike[str]) -> Path:
    """The path with the ending of a private file: ``report.html`` becomes ``report.private.html``, and a name
    without an ending is that of a page. A folder stays what it is."""
    place = Path(path)
    if place.name.endswith(PRIVATE_ENDINGS) or place.is_dir():
        return place
    for ending in PRIVATE_ENDINGS:
        plain = ending.removeprefix(".private")
        if place.name.endswith(plain):
            return place.with_name(place.name.removesuffix(plain) + ending)
    return place.with_name(f"{place.name}{PRIVATE_ENDINGS[0]}")


def checked_place(path: str | os.PathLike[str], homes: Sequence[Path] = ()) -> Path:
    """The absolute path of a new private file.

    ``homes``: the folders of the real rows.

    Raises:
        InputError: the name has no private ending; it exists, is a folder, or its folder does not exist; or
            the folder holds public output, or lies in one that does.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"path={said(path)}: give the path of a file")
    text = os.fspath(path)
    shown = repr(shorten(text))
    if not text.strip() or "\x00" in text:
        raise InputError("The path is empty or holds a NUL character: give the path of a new file")
    place = absolute_path(text)
    if place.is_dir():
        inside = shorten(str(Path(text) / f"evaluation{PRIVATE_ENDINGS[0]}"))
        raise InputError(f"{shown} is a folder: give the path of a file, such as {inside!r}")
    if not place.name.endswith(PRIVATE_ENDINGS):
        better = shorten(str(private_name(text)))
        raise InputError(
            f"{shown} does not say that it is private: give a name that ends in "
            f"{' or '.join(PRIVATE_ENDINGS)}, such as {better!r}"
        )
    if os.path.lexists(place):
        raise InputError(f"{shown} exists already: choose another file, or remove it")
    if not place.parent.is_dir():
        raise InputError(f"The folder of {shown} does not exist: make it first")
    _refuse_public(place, homes)
    return place


def _refuse_public(place: Path, homes: Sequence[Path]) -> None:
    """Whoever gives away a folder of releases, with all that is in it, must not give away what was counted in
    real rows."""
    folder = Path(os.path.realpath(place.parent))
    if not os.access(folder, os.R_OK | os.X_OK):
        raise InputError(f"The folder {shorten(str(folder))!r} cannot be read: choose another one")
    released = _places_of_releases((folder, *homes))
    found = [(one, name) for one in _given_with(folder) for name in islice(_public(one, released), 1)]
    if found:
        outermost, name = found[-1]
        beside = shorten(str(outermost.parent / "private" / place.name))
        raise InputError(
            f"The folder {shorten(str(outermost))!r} holds public output ({shorten(name)!r}): an evaluation "
            f"is as private as the real rows. Write it into a folder of its own, such as {beside!r}"
        )


def _given_with(folder: Path) -> Iterator[Path]:
    """The folder, and those around it that somebody may give away whole."""
    yield folder
    kept = {os.path.realpath(path) for path in (Path.home(), tempfile.gettempdir())}
    for above in folder.parents:
        if str(above) in kept or os.path.ismount(above):
            return
        yield above


def _public(folder: Path, released: Mapping[Path, str]) -> Iterator[str]:
    """Names of models beside released files, of released Parquet files that say so, of databases that hold
    releases and nothing else, and of files that a ledger calls the output of a release."""
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(entry.name for entry in folder.iterdir())
    yield from (name for name in names if name.endswith(_MODEL))
    yield from (name for name in names if name.endswith(".parquet") and _is_released(folder / name))
    yield from (name for name in names if _is_database(folder / name) and holds_releases_alone(folder / name))
    if folder in released:
        yield released[folder]


def _places_of_releases(folders: Sequence[Path]) -> dict[Path, str]:
    """Folders that ledgers know as places of released files, each with the name of one: the ledger of
    DPSYN_LEDGER, and those in the folders and around them."""
    searched = {above for folder in folders for above in (folder, *folder.parents)}
    ledgers = {place for folder in searched for place in folder.glob(f"*{SUFFIX}")}
    with contextlib.suppress(LedgerError):
        ledgers |= {place for place in [variable_place()] if place is not None}
    return {file.parent: file.name for place in sorted(ledgers) for file in _written(place)}


def _written(ledger: Path) -> list[Path]:
    """The released files that a ledger knows; none of a file that is no ledger."""
    with contextlib.suppress(LedgerError), closing(SqliteLedger(ledger, read_only=True)) as opened:
        homes = [Path(os.path.realpath(ledger)).parent]
        homes += [] if opened.home.place is None else [opened.home.place.parent]
        releases = opened.overview().releases
        names = [name for release in releases for name, _ in release.published if ending_of(name)]
        return [Path(os.path.realpath(home / name)) for home in homes for name in names]
    return []


def _is_released(path: Path) -> bool:
    """Whether the metadata at the end of a Parquet file (before its length and PAR1) have our key."""
    with contextlib.suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                whole = file.seek(0, os.SEEK_END)
                file.seek(max(0, whole - len(_PARQUET) - _LENGTH))
                tail = file.read()
                size = int.from_bytes(tail[:_LENGTH], "little")
                if tail.endswith(_PARQUET) and size <= min(whole, _MOST_METADATA):
                    file.seek(max(0, whole - len(tail) - size))
                    return _STATED.search(file.read(size)) is not None
    return False


def _is_database(path: Path) -> bool:
    with contextlib.suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                file.seek(_MARK_AT)
                return file.read(len(_DATABASE_MARK)) == _DATABASE_MARK
    return False


def write_private(place: Path, text: str) -> Path:
    """Write a new file, a ``checked_place``, that nobody but its owner can read.

    Raises:
        InputError: the file cannot be written.
    """
    made = False
    try:
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ALONE), "wb") as file:
            made = True
            file.write(text.encode())
        return place
    except OSError:
        if made:
            with contextlib.suppress(OSError):
                place.unlink()
    except BaseException:
        if made:
            place.unlink(missing_ok=True)
        raise
    raise InputError(f"{shorten(str(place))!r} cannot be written: choose another folder")
