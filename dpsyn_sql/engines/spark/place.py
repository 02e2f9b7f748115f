"""The file system of a session, and the private folder for codes that are kept between questions.

A checkpoint folder of the application is used if there is one. In local mode everything is on one machine,
and a folder that only its user can enter is made.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpsyn_sql.common.folders import LockedFolder, locked_folder
from dpsyn_sql.engines.spark.guard import asked, tried
from dpsyn_sql.errors import EngineFailure, SourceError

_PREFIX = "dpsyn-codes-"
_MAKING = "making a private folder for codes"
_ASK = (
    "Encoded rows are kept between questions, in a folder that only this application may read and that all "
    "its machines share: call spark.sparkContext.setCheckpointDir('hdfs://...'), or s3a:, abfss: or gs:, "
    "before the release. Nothing was read or charged."
)


@dataclass
class Place:
    """Where codes are kept: ``uri`` is a folder that need not exist yet; ``close`` removes it."""

    spark: Any
    uri: str
    words: str
    locked: LockedFolder | None = None
    closed: bool = field(default=False, init=False)

    def close(self) -> None:
        """Remove the folder with all that is in it; harmless when repeated."""
        if self.closed:
            return
        self.closed = True
        if self.locked is not None:
            self.locked.close()
        else:
            tried(lambda: Files(self.spark, self.uri).delete(self.uri))


def private_place(spark: Any) -> Place:
    """The place of one release.

    Raises:
        SourceError: there is no folder that all machines share.
        EngineFailure: it cannot be made.
    """
    context = spark.sparkContext
    local = str(context.master).startswith("local")
    folder = asked(context.getCheckpointDir, _MAKING)
    if folder is None and local:
        return _own(spark)
    if folder is None:
        raise SourceError(f"This Spark application has no checkpoint folder. {_ASK}")
    if not local and urlsplit(str(folder)).scheme in ("", "file"):
        raise SourceError(
            f"The checkpoint folder of this Spark application is on disks of single machines (file:). {_ASK}"
        )
    uri = f"{str(folder).rstrip('/')}/{_PREFIX}{secrets.token_hex(8)}"
    asked(lambda: Files(spark, uri).make_private(uri), _MAKING)
    return Place(spark, uri, "the checkpoint folder of the Spark application")


def _own(spark: Any) -> Place:
    with contextlib.suppress(OSError):
        locked = locked_folder(Path(tempfile.gettempdir()), _PREFIX)
        return Place(spark, locked.path.as_uri(), "a private folder of this machine", locked)
    raise EngineFailure(f"{_MAKING} (TMPDIR)", "OSError", "")


class Files:
    """Hadoop's file system of a URI, from the driver's Java process."""

    def __init__(self, spark: Any, uri: str) -> None:
        context = spark.sparkContext
        self._hadoop = context._jvm.org.apache.hadoop
        self._system = self._path(uri).getFileSystem(context._jsc.hadoopConfiguration())

    def qualified(self, uri: str) -> str:
        """The whole URI of a path."""
        return str(self._system.makeQualified(self._path(uri)).toString())

    def exists(self, uri: str) -> bool:
        """Whether there is a file or folder."""
        return bool(self._system.exists(self._path(uri)))

    def is_folder(self, uri: str) -> bool:
        """Whether there is a folder."""
        return bool(self._system.exists(self._path(uri))) and bool(
            self._system.getFileStatus(self._path(uri)).isDirectory()
        )

    def begins(self, uri: str, mark: bytes, *, at: int) -> bool:
        """Whether a file has these bytes from a place near its beginning on."""
        if self.is_folder(uri):
            return False
        stream = self._system.open(self._path(uri))
        try:
            found = [stream.read() for _ in range(at + len(mark))]
        finally:
            stream.close()
        return found[at:] == list(mark)

    def make_private(self, uri: str) -> None:
        """Make a folder for its owner alone; it is gone at the latest with the application."""
        self._system.mkdirs(self._path(uri), self._hadoop.fs.permission.FsPermission("700"))
        self._system.deleteOnExit(self._path(uri))

    def delete(self, uri: str) -> None:
        """Remove a file, or a folder with all that is in it; harmless where there is nothing."""
        if self.exists(uri) and not self._system.delete(self._path(uri), True):
            raise OSError

    def rename(self, old: str, new: str) -> None:
        """Give another name, under which there is nothing."""
        if self.exists(new) or not self._system.rename(self._path(old), self._path(new)):
            raise OSError

    def bring(self, file: Path, uri: str) -> None:
        """Copy a file of the driver's machine."""
        self._system.copyFromLocalFile(False, True, self._path(file.as_uri()), self._path(uri))

    def fetch(self, uri: str, file: Path) -> Path:
        """Copy a file to the driver's machine."""
        self._system.copyToLocalFile(False, self._path(uri), self._path(file.as_uri()), True)
        return file

    def _path(self, uri: str) -> Any:
        return self._hadoop.fs.Path(uri)
