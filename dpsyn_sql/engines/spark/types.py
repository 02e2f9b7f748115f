"""The types of written columns, as DuckDB, Spark and Arrow call them. PUBLIC side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.errors import InternalError

_TYPES = {  # by the type in DuckDB: in Spark, in Arrow
    "BOOLEAN": ("boolean", "bool_"),
    "TINYINT": ("tinyint", "int8"),
    "SMALLINT": ("smallint", "int16"),
    "INTEGER": ("int", "int32"),
    "BIGINT": ("bigint", "int64"),
    "FLOAT": ("float", "float32"),
    "DOUBLE": ("double", "float64"),
    "VARCHAR": ("string", "string"),
    "BLOB": ("binary", "binary"),
    "DATE": ("date", "date32"),
}
_TIMES = {"TIMESTAMP": ("timestamp_ntz", None), "TIMESTAMP WITH TIME ZONE": ("timestamp", "UTC")}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def schemas_of(shape: Shape, comments: Mapping[str, str]) -> tuple[Any, Any]:
    """The columns of the output as a ``StructType`` with comments, and as an Arrow schema.

    Raises:
        InternalError: a column has a type that no column of Spark has.
    """
    import pyarrow as pa
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    fields, arrow = [], []
    kinds = shape.sql_types
    for name in shape.order:
        spelled, carried = _types_of(kinds[name], pa)
        own = _parse_datatype_string(spelled)
        fields.append(StructField(name, own, name not in shape.not_null, {"comment": comments[name]}))
        arrow.append(pa.field(name, carried))
    return StructType(fields), pa.schema(arrow)


def _types_of(kind: str, pa: Any) -> tuple[str, Any]:
    if kind in _TYPES:
        spelled, carried = _TYPES[kind]
        return spelled, getattr(pa, carried)()
    if kind in _TIMES:
        spelled, zone = _TIMES[kind]
        return spelled, pa.timestamp("us", zone)
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        raise InternalError(f"a column of type {kind} cannot be written to Spark")
    return f"decimal({decimal[1]},{decimal[2]})", pa.decimal128(int(decimal[1]), int(decimal[2]))
