"""The columns of a Spark table, read or written: what each type is called in Spark, DuckDB and Arrow.

Only the schema is looked at. A column of any other type keeps the type's own name, and cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.domain.types import parse_type
from dpsyn_sql.errors import InternalError, SourceError
from dpsyn_sql.source.files import refuse_clashes
from dpsyn_sql.source.names import shorten
from dpsyn_sql.source.relation import Column

_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
_IN_SPARK = {duckdb: spark for spark, duckdb in _TYPES.items()}
_TEXT = re.compile(r"(?:char|varchar)\(\d+\)")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_COLLATED = re.compile(r"(?:string|char\(\d+\)|varchar\(\d+\)) collate (\w+)", re.IGNORECASE)
_BYTES = "UTF8_BINARY"


def columns_of(schema: Any, what: str, *, enforced: bool) -> tuple[Column, ...]:
    """The columns of a ``StructType``, in order.

    Args:
        schema: of the data frame that is read.
        what: for messages, such as ``"The table db.t"``.
        enforced: whether the table's format refuses a NULL where the schema says so.

    Raises:
        SourceError: no columns, or names that SQL cannot hold or tell apart.
    """
    names = tuple(str(field.name) for field in schema.fields)
    if not names:
        raise SourceError(f"{what} has no columns.")
    for place, name in enumerate(names, 1):
        if not name or "\x00" in name:
            raise SourceError(f"{what} has a name that is empty or has a NUL, of column {place}. Rename it.")
    refuse_clashes(names, what)
    refuse_clashes(tuple(name.lower() for name in names), what)  # Spark folds the case of all letters
    return tuple(_column(field, enforced) for field in schema.fields)


def _column(field: Any, enforced: bool) -> Column:
    kind = str(field.dataType.simpleString())
    collated = _COLLATED.fullmatch(kind)
    sql_type = "VARCHAR" if collated is not None else duckdb_type(kind)
    refused = ""
    if parse_type(sql_type) is None and sql_type != "BLOB":
        refused = f"is of the type {shorten(kind)}, which is not read from Spark"
    if collated is not None and collated[1].upper() != _BYTES:
        refused = (
            f"has the collation {collated[1]}, which takes different texts for one, and counting compares "
            f"bytes (a table can have it as STRING COLLATE {_BYTES})"
        )
    return Column(str(field.name), sql_type, not_null=enforced and not field.nullable, refused=refused)


def duckdb_type(kind: str) -> str:
    """A type's name in the DuckDB of a task, from ``simpleString()``; others keep their own, in capitals."""
    if kind in _TYPES:
        return _TYPES[kind]
    if _TEXT.fullmatch(kind):
        return "VARCHAR"
    decimal = _DECIMAL.fullmatch(kind)
    return kind.upper() if decimal is None else f"DECIMAL({decimal[1]},{decimal[2]})"


def schemas_of(shape: Shape, comments: Mapping[str, str]) -> tuple[Any, Any]:
    """The columns of the output as a ``StructType`` with comments, and as an Arrow schema.

    Raises:
        InternalError: a column has a type that no column of Spark has.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    fields, arrow = [], []
    kinds = shape.sql_types
    for name in shape.order:
        own = _parse_datatype_string(_spark_type(kinds[name]))
        fields.append(StructField(name, own, name not in shape.not_null, {"comment": comments[name]}))
        arrow.append(pa.field(name, to_arrow_type(own)))
    return StructType(fields), pa.schema(arrow)


def _spark_type(kind: str) -> str:
    """What Spark calls a type of DuckDB."""
    spelled = _IN_SPARK.get(kind, kind.lower())
    if kind not in _IN_SPARK and not _DECIMAL.fullmatch(spelled):
        raise InternalError(f"a column of type {kind} cannot be written to Spark")
    return spelled
