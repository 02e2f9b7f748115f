"""The file of a ledger, and its chain of records."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import quote

from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InternalError, LedgerDamaged, LedgerError
from dpsyn_sql.ledger import creation
from dpsyn_sql.ledger.creation import alone, misplaced
from dpsyn_sql.sqltext.render import render, templates_folder

APPLICATION_ID = 0x64707379
"""The bytes "dpsy" in the file's header: this SQLite file is a ledger of ours."""

SCHEMA_VERSION = 10
"""Of ``sql/ledger/schema.sql``; those of version 0.1 were numbered 1 to 3."""

BUSY_SECONDS = 30.0
"""How long a writer waits for another one."""

IN_MEMORY = ":memory:"

_BUSY = f"another process has been using it for more than {BUSY_SECONDS:.0f} seconds"
_FULL_OR_BROKEN = "the disk is full, a limit on file size is reached, or the disk fails"
_READ_ONLY = "the file or its folder is read-only"
_NO_PLACE = "the folder is missing or not writable, or the path is a folder"
_DAMAGED = "the file is damaged; restore it from a backup"
_REASONS = {
    "SQLITE_READONLY_DBMOVED": "the file was moved, deleted or replaced while it was open",
    "SQLITE_READONLY_ROLLBACK": (
        "a process that wrote to it was killed, and its half-written step cannot be undone from here, where "
        "the file or its folder is read-only"
    ),
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": "another connection of this process is writing to it",
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_CANTOPEN": _NO_PLACE,
    "SQLITE_PERM": "the file may not be opened",
    "SQLITE_AUTH": "the file may not be opened",
    "SQLITE_FULL": _FULL_OR_BROKEN,
    "SQLITE_IOERR": _FULL_OR_BROKEN,
    "SQLITE_NOTADB": "the file is not a ledger",
    "SQLITE_CORRUPT": _DAMAGED,
    # Our statements are sound: one that is not accepted meets another schema than we wrote.
    "SQLITE_ERROR": _DAMAGED,
    # Codes of the system, while a new file is made.
    "EAGAIN": _BUSY,
    "EROFS": _READ_ONLY,
    **dict.fromkeys(("ENOSPC", "EDQUOT", "EFBIG", "EIO"), _FULL_OR_BROKEN),
    **dict.fromkeys(
        ("ENOLCK", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EBADF"),
        "its file system has no locks: choose a ledger= on another disk",
    ),
    **dict.fromkeys(("ENOENT", "EACCES", "EPERM", "ENOTDIR", "ENAMETOOLONG", "ELOOP"), _NO_PLACE),
    # Text that is not valid Unicode: the driver gives no code for it.
    "OperationalError": _DAMAGED,
    "UnicodeDecodeError": _DAMAGED,
}
_DAMAGES = ("SQLITE_CORRUPT", "SQLITE_ERROR", "OperationalError", "UnicodeDecodeError")

NOTHING_LEFT = "Its content is unchanged; the failed step left nothing behind."
"""The effect of a failed step on the ledger, unless its caller knows more."""

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class _Placed(Protocol):
    @property
    def place(self) -> str: ...


Self = TypeVar("Self", bound=_Placed)


def translate_errors(
    method: Callable[Concatenate[Self, Arguments], Result], meaning: str = NOTHING_LEFT
) -> Callable[Concatenate[Self, Arguments], Result]:
    """Turn errors of SQLite and of the system into ours, raised outside the handler, for a method of
    something with a place; ``meaning`` says what holds after the failure.
    """

    @wraps(method)
    def wrapped(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return method(self, *args, **kwargs)
        except sqlite3.Error as error:
            # A driver's own error (a wrong parameter) has no code.
            code = str(getattr(error, "sqlite_errorname", type(error).__name__))
        except OSError as error:
            code = errno.errorcode.get(error.errno or 0, type(error).__name__)
        except UnicodeDecodeError:
            code = "UnicodeDecodeError"
        raise translated_error(self.place, code, meaning)

    return wrapped


def translated_error(path: str, code: str, meaning: str = NOTHING_LEFT) -> LedgerError | InternalError:
    """The error for a code of SQLite or of the system; InternalError if the code should not occur."""
    family = "_".join(code.split("_")[:2])
    reason = _REASONS.get(code) or _REASONS.get(family)
    if reason is None:
        return InternalError(f"the ledger {path} refused a statement ({code})")
    text = f"The ledger {path} cannot be used: {reason} ({code}). {meaning}"
    return LedgerDamaged(text, None) if family in _DAMAGES else LedgerError(text)


class Store:
    """One connection to a ledger file."""

    def __init__(self, path: str, *, create: bool = True, read_only: bool = False) -> None:
        """Open, and create the file as needed; ``read_only``: nothing in it changes.

        Raises:
            LedgerError: missing (without ``create``), not a ledger of this version, read-only, locked or
                broken.
        """
        self.place = path
        self._read_only = read_only
        self._file = None if path == IN_MEMORY else Path(os.path.realpath(path))
        self._one_at_a_time = threading.RLock()
        self._is_alone = False
        if path != IN_MEMORY and not create and not Path(path).is_file():
            creation.refuse_remains(path)
            raise LedgerError(f"There is no ledger at {path}.")
        self._open()

    @translate_errors
    def _open(self) -> None:
        with self._alone() as locked:
            if self.place != IN_MEMORY:
                if not self._read_only:
                    creation.make_ledger(self.place, _build)
                creation.refuse_empty(self.place)
            self._connection = self._connected(read_only=self._read_only)
            try:
                if self._read_only:
                    self._undo_half_written(locked=locked)
                    self._check_kind()
                else:
                    self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _connected(self, *, read_only: bool) -> sqlite3.Connection:
        database = f"file:{quote(str(self._file))}?mode=ro" if read_only else self.place
        # isolation_level=None: transactions are exactly where this module begins them.
        # A ledger in memory is used by the threads of the database too (``attach``); its transactions queue.
        return sqlite3.connect(
            database,
            uri=read_only,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=self.place != IN_MEMORY,
        )

    def _undo_half_written(self, *, locked: bool) -> None:
        """What a killed process left behind is undone by the first who may write; this one only reads.
        Without the lock (``locked``) it may be what another process writes at this moment."""
        try:
            self._number("schema_version")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK" or not locked:
                raise
        with closing(self._connected(read_only=False)) as writer:
            writer.execute("PRAGMA schema_version").fetchall()

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """No other connection to the file, of any process or thread, works in it; False for a reader that
        goes on without the lock."""
        with self._one_at_a_time:
            if self._is_alone or self._file is None:
                yield True
                return
            with alone(self._file, BUSY_SECONDS, reading=self._read_only) as locked:
                self._is_alone = True
                try:
                    yield locked
                finally:
                    self._is_alone = False

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    def run(self, statement: str, **values: Any) -> None:
        """Run ``sql/ledger/<statement>.sql``."""
        self._connection.execute(_text(statement), values)

    def one(self, statement: str, **values: Any) -> dict[str, Any] | None:
        """The first row by column names, or None."""
        rows = self.all(statement, **values)
        return rows[0] if rows else None

    def all(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """All rows by column names."""
        with self._alone():
            return list(self.each(statement, **values))

    def each(self, statement: str, **values: Any) -> Iterator[dict[str, Any]]:
        """The rows by column names, one at a time; inside a transaction of the caller."""
        cursor = self._connection.execute(_text(statement), values)
        names = [column[0] for column in cursor.description]
        for values_found in cursor:
            row = dict(zip(names, values_found, strict=True))
            if (column := misplaced(row)) is not None:
                raise LedgerDamaged(
                    f"The ledger {self.place} is damaged: a row holds a wrong kind of value in {column}. "
                    "Restore it from a backup.",
                    None,
                )
            yield row

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One IMMEDIATE transaction: all of it is committed, or nothing. Within another one it is a part of
        that, whose end decides."""
        with phase("ledger"), self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def trying(self) -> Iterator[None]:
        """One IMMEDIATE transaction that is always rolled back."""
        with self._alone():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One unchanging view of the file."""
        with self._transaction("BEGIN"):
            yield

    def copy_to(self, path: str) -> None:
        """Write all of it to a new file, and wait until it is on the disk."""
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("PRAGMA journal_mode = OFF")  # a copy that fails is thrown away whole
            file.execute("PRAGMA synchronous = FULL")
            self._connection.backup(file)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._one_at_a_time:
            if self._connection.in_transaction:
                yield
                return
            with self._alone():
                self._connection.execute(begin)
                try:
                    yield
                    self._connection.execute("COMMIT")
                finally:
                    # Everything but a commit ends here: our errors, SQLite's, an interrupt.
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")

    def _prepare(self) -> None:
        if self.place == IN_MEMORY:
            self._connection.executescript(_schema())
            self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        else:
            self._check_kind()
        self._set_journal()
        for pragma in ("synchronous = EXTRA", "foreign_keys = ON", "recursive_triggers = ON"):
            self._connection.execute(f"PRAGMA {pragma}")

    def _check_kind(self) -> None:
        version, mark = self._number("user_version"), self._number("application_id")
        if version == mark == self._number("schema_version") == 0:
            raise creation.empty(self.place)
        if mark != APPLICATION_ID:
            raise LedgerError(f"{self.place} is not a ledger; nothing in it was changed.")
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"The ledger {self.place} was written by a newer version of dpsyn_sql (schema {version}, "
                f"this version knows {SCHEMA_VERSION}). Install the newer version to use it; nothing was "
                "changed."
            )
        if version < 1:
            raise translated_error(self.place, "SQLITE_CORRUPT")
        if version < SCHEMA_VERSION:
            raise LedgerError(
                f"The ledger {self.place} was made by dpsyn_sql 0.1, and this version cannot read it. Keep "
                "the file, and version 0.1 to read it with. For new releases give another "
                "ledger='path/to/file' (--ledger): it does not know what was spent before, and the privacy "
                "losses add up. Nothing was read, written or charged."
            )

    def _set_journal(self) -> None:
        """A file that is in another mode is switched; SQLite does not wait for its lock here, so we do."""
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = DELETE")
                return
            except sqlite3.OperationalError as error:
                if not str(error.sqlite_errorname).startswith("SQLITE_BUSY") or time.monotonic() > end:
                    raise
            time.sleep(0.01)

    def _number(self, pragma: str) -> int:
        return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _build(path: str) -> None:
    """Write an empty ledger."""
    fresh = Store(IN_MEMORY)
    fresh.copy_to(path)
    fresh.close()


@cache
def _text(statement: str) -> str:
    return render(f"ledger/{statement}")


@cache
def _schema() -> str:
    return (templates_folder() / "ledger" / "schema.sql").read_text(encoding="utf-8")


# -- the chain ---------------------------------------------------------------------------------------

# The chain: one record for each change of the ledger, each holding the hash of the one before.
#
# A changed, missing or reordered record is found by recomputing the hashes; a changed row is found by
# comparing it with its records. Cutting off the end, or restoring an old copy of the file, leaves a valid
# chain: only a head hash kept elsewhere shows that.

GENESIS = "0" * 64
"""What the first record names as its predecessor."""


def canonical_json(value: Any) -> str:
    """One text for equal values: sorted keys, no spaces, ASCII; floats keep every bit.

    Raises:
        InternalError: not JSON-ready (NaN and infinities included).
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        kind = type(error).__name__
    raise InternalError(f"the ledger was given something that is not JSON ({kind})")


def sha256(content: str | bytes) -> str:
    """Hexadecimal SHA-256 of a text (UTF-8) or of bytes."""
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def record_hash(position: int, kind: str, body: str, previous: str) -> str:
    """The hash of a record: over the canonical JSON of its four parts."""
    return sha256(canonical_json([previous, position, kind, body]))


def append(store: Store, kind: str, body: Mapping[str, Any]) -> None:
    """Continue the chain; call inside the transaction that makes the change itself."""
    last = store.one("last_record")
    position = 1 if last is None else last["position"] + 1
    previous = GENESIS if last is None else last["hash"]
    text = canonical_json(dict(body))
    store.run(
        "add_record",
        position=position,
        kind=kind,
        body=text,
        previous=previous,
        hash=record_hash(position, kind, text, previous),
    )
