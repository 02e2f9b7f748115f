"""Data frames and sessions of other libraries, as sources."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

from dpsyn_sql.errors import InputError, said
from dpsyn_sql.source.names import is_query

# -- sessions ----------------------------------------------------------------------------------------

# Which values are a session of Apache Spark, and what is said of those that look like one. Imports nothing.
#
# A session can only exist where pyspark is loaded, so the class that it comes from tells.

_PACKAGE = "pyspark"
_MODULE = "pyspark.sql"
_CONNECT = ".connect."


class SparkConnection(Protocol):
    """A ``pyspark.sql.SparkSession``, as far as type checkers need to know it."""

    @property
    def sparkContext(self) -> Any: ...  # noqa: N802 - pyspark's name

    @property
    def catalog(self) -> Any: ...

    def newSession(self) -> Any: ...  # noqa: N802 - pyspark's name


def is_spark(value: object) -> bool:
    """Whether this is a Spark session that can be used.

    Raises:
        InputError: it is of Spark, but no session, or one of Spark Connect.
    """
    kind = type(value)
    if not kind.__module__.startswith(f"{_PACKAGE}.") or is_spark_frame(value):
        return False
    _refuse_connect(value)
    if any(base.__name__ == "SparkSession" for base in kind.__mro__):
        return True
    raise InputError(
        f"con is a {kind.__name__} of Spark: give a session, SparkSession.builder.getOrCreate(), which needs "
        "Java 17 or newer (JAVA_HOME), or a pyspark.sql.DataFrame (of pandas on Spark: frame.to_spark())."
    )


def is_spark_frame(value: object) -> bool:
    """Whether this is a data frame of Spark."""
    module = sys.modules.get(_MODULE)
    kind = getattr(module, "DataFrame", None)
    return isinstance(kind, type) and isinstance(value, kind)


def session_of(frame: Any) -> SparkConnection:
    """The session of a data frame of Spark.

    Raises:
        InputError: it is of Spark Connect.
    """
    _refuse_connect(frame)
    session: SparkConnection = frame.sparkSession
    return session


def _refuse_connect(value: object) -> None:
    """The tasks are started, and their files removed, by the driver's own Java process."""
    if _CONNECT in f"{type(value).__module__}.":
        raise InputError(
            "This is a session of Spark Connect, which cannot reach the files of the driver. Run the program "
            "on the driver, with a session of the classic API: spark-submit, or "
            "SparkSession.builder.master(...).getOrCreate()."
        )


# -- data frames -------------------------------------------------------------------------------------

# A data frame as a source: which values are one, and by what name the ledger knows it.
#
# A data frame of pandas, Polars or Spark or an Arrow table has no catalog, no file and no name. So the owner
# gives it a label, which stands for the data in the ledger as the name of a table does.

_CLASSES = (
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
)


class DataFrame(Protocol):
    """A data frame of pandas, Polars or Spark, or an Arrow table or record batch."""

    @property
    def columns(self) -> Any: ...


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Frame:
    """A data frame under the owner's ``label``; the repr shows no value."""

    data: Any
    label: str

    def __repr__(self) -> str:
        return f"<{type(self.data).__name__} {self.label!r}>"


def library_of(value: object) -> str | None:
    """The library whose data frame or table this is; None if it is none. Imports nothing."""
    for library, name in _CLASSES:
        kind = getattr(sys.modules.get(library), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return library
    return "pyspark" if is_spark_frame(value) else None


def is_frame(value: object) -> bool:
    """Whether this is a data frame or table that can be released."""
    return isinstance(value, Frame) or library_of(value) is not None


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal; a data frame is equal to itself alone, without a look at its values."""
    return left is right or (not is_frame(left) and not is_frame(right) and bool(left == right))


def framed(con: Any, source: Any, name: str | None) -> tuple[Any, Frame] | None:
    """The connection (None: none was given) and the frame, if ``con`` or ``source`` is one; else None.

    ``release(df, "people")``, ``release(df, name="people")`` and ``release(con, df, name="people")`` give the
    frame the same label.

    Raises:
        InputError: there is no usable label.
    """
    if isinstance(source, Frame):
        return con, source
    if library_of(con) is not None:
        return None, Frame(con, _label(source if source is not None else name))
    if library_of(source) is not None:
        return con, Frame(source, _label(name))
    return None


def _label(text: object) -> str:
    if text is None:
        raise InputError(
            "A data frame has no name of its own, and the ledger adds up by names what was spent on the same "
            "data. Give one, the same for every release of these data: release(df, 'people', ...)."
        )
    if not isinstance(text, str) or not text.isprintable() or text.strip() != text or not text:
        raise InputError(f"{said(text)} is no name for a data frame: give some printable text")
    if is_query(text):
        raise InputError(
            f"{said(text)} is a query, and a data frame cannot be queried here: make the data frame that you "
            "mean and give it a name."
        )
    return text
