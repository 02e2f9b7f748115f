"""PRIVATE: what ``evaluate()`` returns, as a page, a JSON document and plain text, each with the mark.

All of it is as private as the real table. The name of a file ends in ``.private.html`` or ``.private.json``;
nobody but its owner may read it. Nothing is overwritten, and nothing is written into a folder whose files may
be given away.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from dpsyn_sql.common.notices import aligned, printable
from dpsyn_sql.engines.written_rows import holds_releases_alone
from dpsyn_sql.errors import InputError, LedgerError, said
from dpsyn_sql.evaluation.page import IN_SUMMARY, PRIVATE, cells, first_columns, heading, page_of, plain
from dpsyn_sql.ledger.locations import variable_place
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.source.files import ending_of, file_beside
from dpsyn_sql.source.names import SUFFIX, absolute_path, shorten

PRIVATE_ENDINGS = (".private.html", ".private.json")

_MODEL = file_beside(Path("x")).name[1:]
_DATABASE_MARK, _MARK_AT = b"DUCK", 8
_PARQUET, _LENGTH, _MOST_METADATA = b"PAR1", 4, 2**26
_STATED = re.compile(rb"\x18\x09dpsyn_sql\x18[\x80-\xff]*[\x00-\x7f]Synthetic rows, ")
# A key of nine bytes and its value, in the compact protocol of Thrift.
_OWNER_ALONE = 0o600


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """Figures of synthetic tables beside the real ones.

    ``real``, ``synthetic``: as they were named. ``rows``: of all real and of all synthetic tables.
    ``tables``: data frames by the name of what is measured, what was not asked for is not there; with several
    tables, those of single rows have a column ``table``. Of rows: ``"columns"``, ``"marginals"``,
    ``"worst"``, ``"conjunctions"``, ``"pairs"``, ``"ranges"``, ``"conditions"``, ``"efficacy"``,
    ``"clusters"``, ``"membership"``. Of rows of one unit or of one row above: ``"keys"``, ``"links"``,
    ``"joined"``, ``"relatives"``, ``"relative_columns"``, ``"sequences"``, ``"joined_pairs"``, ``"numbers"``.
    ``notes``: what a reader must know, such as what could not be computed and why. ``homes``: the folders of
    the real rows, whose ledgers know where releases were written.
    """

    real: str
    synthetic: str
    rows: tuple[int, int]
    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]
    homes: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"Evaluation({self.synthetic} beside {self.real}; private)"

    def summary(self) -> str:
        """The mark, the rows, the head of every table with its meaning, and the notes, as plain text."""
        lines = [PRIVATE, "", f"{self.synthetic} beside {self.real}"]
        lines += [f"{self.rows[0]:,} real rows, {self.rows[1]:,} synthetic rows"]
        for name, frame in self.tables.items():
            explained = heading(name)
            shown = cells(frame[first_columns(explained, frame)].head(IN_SUMMARY))
            lines += ["", f"{explained.heading}. {explained.meaning}"]
            lines += aligned(shown.names, shown.rows, shown.right)
            if len(frame) > IN_SUMMARY:
                lines.append(f"... and {len(frame) - IN_SUMMARY:,} more")
        if self.notes:
            lines += ["", *(f"Note: {note}" for note in self.notes)]
        return printable("\n".join(lines))

    def to_dict(self) -> dict[str, Any]:
        """All figures, JSON-ready (NaN as None); the first key, ``"PRIVATE"``, holds the mark."""
        return {
            "PRIVATE": PRIVATE,
            "real": self.real,
            "synthetic": self.synthetic,
            "rows": {"real": self.rows[0], "synthetic": self.rows[1]},
            "tables": {name: _records(frame) for name, frame in self.tables.items()},
            "notes": list(self.notes),
        }

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a new page (``.private.html``) or document (``.private.json``) that its owner alone can read.

        The mark is on every page, also printed. A page needs neither network nor JavaScript.

        Returns:
            The absolute path.

        Raises:
            InputError: the name does not end so, the file exists, its folder does not, or the folder holds
                public output, or lies in one that does: a released file with its model, a released Parquet
                file, a database of releases alone, or a file that a ledger knows as the output of a release.
        """
        file = checked_file(path, self.homes)
        if file.suffix != ".json":
            return write_private(file, page_of(self))
        document = json.dumps(self.to_dict(), indent=2, ensure_ascii=True, allow_nan=False)
        return write_private(file, f"{document}\n")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    return [
        dict(zip(names, map(plain, row), strict=True)) for row in frame.itertuples(index=False, name=None)
    ]


# -- files -----------------------------------------------------------------------------------------


def private_name(path: str | os.PathLike[str]) -> Path:
    """The path with the ending of a private file: ``report.html`` becomes ``report.private.html``, and a name
    without an ending is that of a page. A folder stays what it is."""
    file = Path(path)
    if file.name.endswith(PRIVATE_ENDINGS) or file.is_dir():
        return file
    for ending in PRIVATE_ENDINGS:
        bare = ending.removeprefix(".private")
        if file.name.endswith(bare):
            return file.with_name(file.name.removesuffix(bare) + ending)
    return file.with_name(f"{file.name}{PRIVATE_ENDINGS[0]}")


def checked_file(path: str | os.PathLike[str], homes: Sequence[Path] = ()) -> Path:
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
    file = absolute_path(text)
    if file.is_dir():
        inside = shorten(str(Path(text) / f"evaluation{PRIVATE_ENDINGS[0]}"))
        raise InputError(f"{shown} is a folder: give the path of a file, such as {inside!r}")
    if not file.name.endswith(PRIVATE_ENDINGS):
        better = shorten(str(private_name(text)))
        raise InputError(
            f"{shown} does not say that it is private: give a name that ends in "
            f"{' or '.join(PRIVATE_ENDINGS)}, such as {better!r}"
        )
    if os.path.lexists(file):
        raise InputError(f"{shown} exists already: choose another file, or remove it")
    if not file.parent.is_dir():
        raise InputError(f"The folder of {shown} does not exist: make it first")
    _refuse_public(file, homes)
    return file


def _refuse_public(file: Path, homes: Sequence[Path]) -> None:
    """Whoever gives away a folder of releases, with all that is in it, must not give away what was counted in
    real rows."""
    folder = Path(os.path.realpath(file.parent))
    if not os.access(folder, os.R_OK | os.X_OK):
        raise InputError(f"The folder {shorten(str(folder))!r} cannot be read: choose another one")
    released = _folders_of_releases((folder, *homes))
    public = [
        (around, name) for around in _given_with(folder) for name in islice(_public(around, released), 1)
    ]
    if public:
        outermost, name = public[-1]
        better = shorten(str(outermost.parent / "private" / file.name))
        raise InputError(
            f"The folder {shorten(str(outermost))!r} holds public output ({shorten(name)!r}): an evaluation "
            f"is as private as the real rows. Write it into a folder of its own, such as {better!r}"
        )


def _given_with(folder: Path) -> Iterator[Path]:
    """The folder, and those around it that somebody may give away whole."""
    yield folder
    shared = {os.path.realpath(path) for path in (Path.home(), tempfile.gettempdir())}
    for above in folder.parents:
        if str(above) in shared or os.path.ismount(above):
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


def _folders_of_releases(folders: Sequence[Path]) -> dict[Path, str]:
    """Folders that ledgers know as places of released files, each with the name of one: the ledger of
    DPSYN_LEDGER, and those in the folders and around them."""
    searched = {above for folder in folders for above in (folder, *folder.parents)}
    ledgers = {ledger for folder in searched for ledger in folder.glob(f"*{SUFFIX}")}
    with contextlib.suppress(LedgerError):
        ledgers |= {ledger for ledger in [variable_place()] if ledger is not None}
    return {file.parent: file.name for ledger in sorted(ledgers) for file in _written(ledger)}


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
                size_of_file = file.seek(0, os.SEEK_END)
                file.seek(max(0, size_of_file - len(_PARQUET) - _LENGTH))
                tail = file.read()
                size = int.from_bytes(tail[:_LENGTH], "little")
                if tail.endswith(_PARQUET) and size <= min(size_of_file, _MOST_METADATA):
                    file.seek(max(0, size_of_file - len(tail) - size))
                    return _STATED.search(file.read(size)) is not None
    return False


def _is_database(path: Path) -> bool:
    with contextlib.suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                file.seek(_MARK_AT)
                return file.read(len(_DATABASE_MARK)) == _DATABASE_MARK
    return False


def write_private(path: Path, text: str) -> Path:
    """Write a new file, a ``checked_file``, that nobody but its owner can read.

    Raises:
        InputError: the file cannot be written.
    """
    created = False
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ALONE), "wb") as file:
            created = True
            file.write(text.encode())
        return path
    except OSError:
        if created:
            with contextlib.suppress(OSError):
                path.unlink()
    except BaseException:
        if created:
            path.unlink(missing_ok=True)
        raise
    raise InputError(f"{shorten(str(path))!r} cannot be written: choose another folder")
