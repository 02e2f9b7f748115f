"""A data frame as a source: which values are one, and by what name the ledger knows it.

A data frame of pandas, Polars or Spark or an Arrow table has no catalog, no file and no name. So the owner
gives it a label, which stands for the data in the ledger as the name of a table does.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

from dpsyn_sql.errors import InputError, said
from dpsyn_sql.source.names import is_query
from dpsyn_sql.source.sessions import is_spark_frame

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


def same(one: Any, two: Any) -> bool:
    """Whether two values are equal; a data frame is equal to itself alone, without a look at its values."""
    return one is two or (not is_frame(one) and not is_frame(two) and bool(one == two))


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
