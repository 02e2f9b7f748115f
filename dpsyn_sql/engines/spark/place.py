"""The private folder for codes that are kept between questions, and its end.

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

from dpsyn_sql.engines.spark.guard import asked, tried
from dpsyn_sql.errors import EngineFailure, SourceError
from dpsyn_sql.folders import LockedFolder, locked_folder

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
            tried(lambda: remove(self.spark, self.uri))


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
    asked(lambda: _make(spark, uri), _MAKING)
    return Place(spark, uri, "the checkpoint folder of the Spark application")


def _own(spark: Any) -> Place:
    with contextlib.suppress(OSError):
        locked = locked_folder(Path(tempfile.gettempdir()), _PREFIX)
        return Place(spark, locked.path.as_uri(), "a private folder of this machine", locked)
    raise EngineFailure(f"{_MAKING} (TMPDIR)", "OSError", "")


def _make(spark: Any, uri: str) -> None:
    """For its owner alone; gone at the latest with the application."""
    path, system, hadoop = _found(spark, uri)
    system.mkdirs(path, hadoop.fs.permission.FsPermission("700"))
    system.deleteOnExit(path)


def remove(spark: Any, uri: str) -> None:
    """Remove a folder with all that is in it."""
    path, system, _ = _found(spark, uri)
    system.delete(path, True)


def _found(spark: Any, uri: str) -> tuple[Any, Any, Any]:
    context = spark.sparkContext
    hadoop = context._jvm.org.apache.hadoop
    path = hadoop.fs.Path(uri)
    return path, path.getFileSystem(context._jsc.hadoopConfiguration()), hadoop
