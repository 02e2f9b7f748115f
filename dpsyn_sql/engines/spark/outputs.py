"""Where Spark writes, and reading it again."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpsyn_sql.common.folders import LockedFolder, locked_folder
from dpsyn_sql.engines.spark.catalog import quoted, shown
from dpsyn_sql.engines.spark.guard import asked, tried
from dpsyn_sql.errors import EngineFailure, InputError, PublishError, SourceError, said
from dpsyn_sql.source.files import file_beside
from dpsyn_sql.source.names import shorten

# -- places ------------------------------------------------------------------------------------------

# The file system of a session, and the private folder for codes that are kept between questions.
#
# A checkpoint folder of the application is used if there is one. In local mode everything is on one machine,
# and a folder that only its user can enter is made.

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


# -- outputs -----------------------------------------------------------------------------------------

# Where rows and the model of a release stand in Spark: two tables, or a folder and a file. PUBLIC side.
#
# What is written appears whole under its name: in one transaction of the format, or written beside and
# renamed. A driver that dies leaves at most what is beside, which the same release clears when it is written
# again.

_WRITING, _READING = "writing the synthetic rows with Spark", "looking at the output"
_BLOB = 2**23
"""Bytes of the model in a row."""
_MAGIC = b"DUCK"
"""Of a database file of DuckDB, behind a checksum of 8 bytes."""
_ONE_COMMIT = ("delta", "iceberg")
_OWN = "spark_catalog"


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table, and one of blobs for the model, ``<table>_dpsyn``. ``parts``: catalog, database, table."""

    spark: Any
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """For people."""
        return shown(self.parts)

    @property
    def label(self) -> str:
        """What the release is called by default."""
        database, name = self.parts[-2:]
        return name if database.lower() == "default" else f"{database}.{name}"

    @property
    def model(self) -> tuple[str, ...]:
        """The name of the table with the model."""
        return (*self.parts[:-1], f"{self.parts[-1]}_dpsyn")

    @property
    def model_name(self) -> str:
        """That name for people."""
        return shown(self.model)

    def exists(self) -> bool:
        """Whether there is something of the table's name."""
        return self._is(self.parts)

    def has_model(self) -> bool:
        """Whether there is something in place of the model."""
        return self._is(self.model)

    def is_model(self) -> bool:
        """Whether what is in place of the model has the form of one."""
        columns = asked(lambda: self.spark.table(quoted(self.model)).columns, _READING)
        return list(columns) == ["chunk", "data"]

    def rows(self) -> Any:
        """The rows that are there."""
        return asked(lambda: self.spark.table(quoted(self.parts)), _READING)

    def put_rows(self, frame: Any, release: str, words: str, *, replace: bool) -> None:
        """Make the table, in place of what is there if ``replace``.

        Raises:
            PublishError: something has appeared.
            EngineFailure: Spark failed.
        """
        self._put(self.parts, frame, release, words, replace=replace)

    def drop_model(self) -> None:
        """Remove the model; harmless where there is none."""
        self._drop(self.model)

    def put_model(self, file: Path, release: str, words: str) -> None:
        """Keep a database file, in place of what is there."""
        blobs = [(place, data) for place, data in enumerate(_chunks(file))]
        frame = asked(lambda: self.spark.createDataFrame(blobs, "chunk INT, data BINARY"), _WRITING)
        self._put(self.model, frame, release, f"The model of {self.name}. {words}", replace=True)

    def fetch_model(self, folder: Path) -> Path:
        """The database file of the model, in a folder of ours.

        Raises:
            InputError: there is none, or it is damaged.
        """
        if not tried(self.has_model):
            raise _no_model(self)
        rows = tried(lambda: self.spark.table(quoted(self.model)).select("chunk", "data").collect())
        blobs = sorted((int(row["chunk"]), bytes(row["data"])) for row in rows or ())
        if not blobs or [place for place, _ in blobs] != list(range(len(blobs))):
            raise InputError(
                f"The table {shorten(self.model_name)!r} is damaged: it is no model of a release."
            )
        path = folder / "model.duckdb"
        path.write_bytes(b"".join(data for _, data in blobs))
        return path

    def _is(self, parts: tuple[str, ...]) -> bool:
        return asked(lambda: bool(self.spark.catalog.tableExists(quoted(parts))), _READING)

    def _put(self, parts: tuple[str, ...], frame: Any, release: str, words: str, *, replace: bool) -> None:
        if self._in_one_commit:
            writer = frame.writeTo(quoted(parts)).tableProperty("comment", words)
            if not replace and self._is(parts):
                raise PublishError(_meanwhile(shown(parts)))
            asked(writer.createOrReplace if replace else writer.create, _WRITING)
            return
        new, former = (
            (*parts[:-1], f"{parts[-1]}_{kind}_{_mark(release)}") for kind in ("dpsyn_new", "dpsyn_former")
        )
        self._drop(new)
        try:
            asked(lambda: frame.write.saveAsTable(quoted(new)), _WRITING)
        except EngineFailure:
            with suppress(EngineFailure):  # Spark may be gone
                self._drop(new)
            raise
        self._run(f"COMMENT ON TABLE {quoted(new)} IS {_text(words)}")
        if self._is(parts):
            if not replace:
                self._drop(new)
                raise PublishError(_meanwhile(shown(parts)))
            self._drop(former)
            self._rename(parts, former)
        self._rename(new, parts)
        self._drop(former)

    @property
    def _in_one_commit(self) -> bool:
        """Whether a table of the session's format is made, or replaced, in one transaction."""
        if self.parts[0] != _OWN:
            return True
        return tried(lambda: self.spark.conf.get("spark.sql.sources.default").lower()) in _ONE_COMMIT

    def _rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        self._run(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(new[-2:])}")

    def _drop(self, parts: tuple[str, ...]) -> None:
        """A table of ours, and files of one whose writing was interrupted."""
        self._run(f"DROP TABLE IF EXISTS {quoted(parts)}")
        if parts[0] == _OWN and parts[-1] != self.parts[-1]:
            home = tried(lambda: self.spark.catalog.getDatabase(quoted(parts[:-1])).locationUri)
            if home:
                tried(lambda: Files(self.spark, str(home)).delete(f"{home}/{parts[-1].lower()}"))

    def _run(self, statement: str) -> None:
        asked(lambda: self.spark.sql(statement), _WRITING, statement)


@dataclass(frozen=True, slots=True)
class SparkFolder:
    """A folder of Parquet files, and the model in a database file beside it. ``uri``: without a slash at its
    end, as Hadoop names it."""

    spark: Any
    uri: str

    @property
    def name(self) -> str:
        """For people."""
        return self.uri

    @property
    def label(self) -> str:
        """What the release is called by default."""
        return self.uri.rpartition("/")[2].removesuffix(".parquet")

    @property
    def model(self) -> str:
        """Where the model is."""
        folder, _, name = self.uri.rpartition("/")
        return f"{folder}/{file_beside(Path(name)).name}"

    @property
    def model_name(self) -> str:
        """That place for people."""
        return self.model

    @property
    def _files(self) -> Files:
        return Files(self.spark, self.uri)

    def exists(self) -> bool:
        """Whether there is something."""
        return asked(lambda: self._files.exists(self.uri), _READING)

    def has_model(self) -> bool:
        """Whether there is something in place of the model."""
        return asked(lambda: self._files.exists(self.model), _READING)

    def is_model(self) -> bool:
        """Whether what is in place of the model is a database file."""
        return asked(lambda: self._files.begins(self.model, _MAGIC, at=8), _READING)

    def rows(self) -> Any:
        """The rows that are there."""
        return asked(lambda: self.spark.read.parquet(self.uri), _READING)

    def put_rows(self, frame: Any, release: str, words: str, *, replace: bool) -> None:
        """Make the folder, as ``SparkTable.put_rows``."""
        new, former = self._beside("new", release), self._beside("former", release)
        try:
            asked(lambda: frame.write.mode("overwrite").parquet(new), _WRITING)
        except EngineFailure:
            tried(lambda: self._files.delete(new))
            raise
        if not asked(lambda: self._swapped(new, former, replace=replace), _WRITING):
            raise PublishError(_meanwhile(self.name))

    def _swapped(self, new: str, former: str, *, replace: bool) -> bool:
        """Whether what is new stands in its place; not if something is there and must not be replaced."""
        files = self._files
        if files.exists(self.uri):
            if not replace:
                files.delete(new)
                return False
            files.delete(former)
            files.rename(self.uri, former)
        files.rename(new, self.uri)
        files.delete(former)
        return True

    def drop_model(self) -> None:
        """Remove the model; harmless where there is none."""
        asked(lambda: self._files.delete(self.model), _WRITING)

    def put_model(self, file: Path, release: str, words: str) -> None:
        """Keep a database file, in place of what is there."""
        new, files = self._beside("model", release), self._files

        def put() -> None:
            files.bring(file, new)
            files.delete(self.model)
            files.rename(new, self.model)

        asked(put, _WRITING)

    def fetch_model(self, folder: Path) -> Path:
        """As ``SparkTable.fetch_model``."""
        path = folder / "model.duckdb"
        if not tried(self.has_model) or tried(lambda: self._files.fetch(self.model, path)) is None:
            raise _no_model(self)
        return path

    def _beside(self, kind: str, release: str) -> str:
        """A name that readers of the folder above pass over."""
        folder, _, name = self.uri.rpartition("/")
        return f"{folder}/_{name}_dpsyn_{kind}_{_mark(release)}"


SparkOutput = SparkTable | SparkFolder
"""Where a release is kept; ``opened_releases`` takes it in place of a connection."""


def _chunks(file: Path) -> list[bytes]:
    data = file.read_bytes()
    return [data[start : start + _BLOB] for start in range(0, len(data), _BLOB)]


def _mark(release: str) -> str:
    """What tells releases apart in names."""
    return "".join(letter for letter in release.lower() if letter.isalnum())[:16]


def _text(words: str) -> str:
    """A text literal of Spark."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _no_model(output: SparkOutput) -> InputError:
    return InputError(
        f"There is no model of a release at {shorten(output.name)!r}: {shorten(output.model_name)!r} is "
        "missing. If a release was interrupted there, the same call again keeps the model and costs nothing "
        "more."
    )


def without_rows(output: SparkOutput) -> str:
    """Why rows are not written where a model stands alone."""
    return (
        f"{shorten(output.model_name)!r}, the model of a release, exists without its rows. Delete it, choose "
        "another into=, or add replace=True."
    )


def _meanwhile(name: str) -> str:
    return f"{shorten(name)!r} has appeared; it was not changed. Add replace=True to overwrite it."


_MADE: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda frame: frame.toPandas(),
    "arrow": lambda frame: _arrow(frame),
    "polars": lambda frame: _polars(frame),
    "spark": lambda frame: frame,
}


def read_rows(output: SparkOutput, kind: str) -> Any:
    """The rows that are there, as a data frame of this kind.

    Raises:
        InputError: an unknown kind, a missing package, or rows that cannot be read.
    """
    if kind not in _MADE:
        raise InputError(f"to_df({said(kind)}) is not known; use one of {', '.join(_MADE)}")
    frame = None
    if tried(output.exists):
        frame = asked(lambda: _MADE[kind](output.rows()), "reading the synthetic rows")
    if frame is None:
        raise InputError(
            f"The rows of the release cannot be read: {output.name} was removed, or to_df({kind!r}) needs "
            "a package that is missing."
        )
    return frame


def _arrow(frame: Any) -> Any:
    import pyarrow as pa

    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    return pa.Table.from_pandas(frame.toPandas(), preserve_index=False)


def _polars(frame: Any) -> Any:
    try:
        import polars
    except ImportError:
        return None
    return polars.from_arrow(_arrow(frame))
