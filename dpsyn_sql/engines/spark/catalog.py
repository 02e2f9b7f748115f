"""Tables of Spark and their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.engines.spark.guard import asked, tried
from dpsyn_sql.errors import InternalError, SourceError
from dpsyn_sql.source.files import refuse_clashes
from dpsyn_sql.source.names import near_matches, shorten, split_name
from dpsyn_sql.source.relation import Column

# -- columns -----------------------------------------------------------------------------------------

# The columns of a Spark table, read or written: what each type is called in Spark, DuckDB and Arrow.
#
# Only the schema is looked at. A column of any other type keeps the type's own name, and cannot be read.

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


# -- tables ------------------------------------------------------------------------------------------

# Names as Spark writes them, and lookups in its catalogs: what one means, where a table lies, its version.
#
# No row is read.

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def parts_of(text: str) -> tuple[str, ...] | None:
    """The parts of ``[catalog.][database.]table``; None if it is no such name."""
    return split_name(text, _PART, "`", None)


def quoted(parts: Sequence[str]) -> str:
    """The name in a statement of Spark."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def shown(parts: Sequence[str]) -> str:
    """The name for people, which ``parts_of`` reads back."""
    return ".".join(part if _PLAIN.match(part) else quoted([part]) for part in parts)


_READING = "reading the catalog of Spark"
_DETAILS = "# Detailed Table Information"
_HANDLED = "storage_handler="
# Of Hive tables whose rows another system holds, such as HBase: their folder says nothing.
_LOOKS_LIKE_PATH = ("/", "\\", ".parquet", ".csv", ".csv.gz")

Kind = Literal["table", "view", "temporary view"]


@dataclass(frozen=True, slots=True)
class SparkCatalogTable:
    """A table or view of a catalog.

    ``parts``: its full name; of a temporary view the name that the session knows it by. ``provider``: the
    format in lower case, empty if it is not said. ``location``: the URI of a table's files, None where there
    is none. ``definition``: the text of a view.
    """

    parts: tuple[str, ...]
    kind: Kind
    provider: str = ""
    location: str | None = None
    definition: str = ""

    @property
    def sql(self) -> str:
        """The name in a statement of Spark."""
        return quoted(self.parts)

    @property
    def shown(self) -> str:
        """The name for people."""
        return shown(self.parts)


def look_up(spark: Any, text: str) -> SparkCatalogTable:
    """The table or view that a name means to the session.

    Raises:
        SourceError: it means nothing, or is a path.
        EngineFailure: the catalog cannot be read.
    """
    parts = parts_of(text)
    if parts is None or not tried(lambda: bool(spark.catalog.tableExists(quoted(parts)))):
        raise _missing(spark, text, parts)
    name = quoted(parts)
    found = asked(lambda: spark.catalog.getTable(name), _READING)
    if found.isTemporary:
        return SparkCatalogTable(parts, "temporary view")
    facts = _facts(spark, name)
    namespace = tuple(str(part) for part in found.namespace or ())
    full = (str(found.catalog), *namespace, str(found.name))
    if str(found.tableType).upper().endswith("VIEW"):
        return SparkCatalogTable(full, "view", definition=facts.get("View Text", ""))
    location = facts.get("Location") or None
    if _HANDLED in facts.get("Table Properties", ""):
        location = None
    return SparkCatalogTable(full, "table", facts.get("Provider", "").lower(), location)


def _facts(spark: Any, name: str) -> dict[str, str]:
    """What DESCRIBE says below the columns; the first line of a name counts."""
    sql = f"DESCRIBE TABLE EXTENDED {name}"
    lines = asked(lambda: [tuple(row) for row in spark.sql(sql).collect()], _READING, sql)
    labels = [str(line[0]) for line in lines]
    # The last such line: a column before it can have this name too.
    begins = max((place for place, label in enumerate(labels) if label == _DETAILS), default=len(lines))
    facts: dict[str, str] = {}
    for label, value, *_ in lines[begins + 1 :]:
        facts.setdefault(str(label), str(value or ""))
    return facts


def delta_version(spark: Any, table: SparkCatalogTable) -> str | None:
    """The newest version of a Delta table."""
    return _value(spark, f"DESCRIBE HISTORY {table.sql} LIMIT 1", "version")


def iceberg_snapshot(spark: Any, table: SparkCatalogTable) -> str | None:
    """The snapshot that an Iceberg table is at; None of one that nothing was ever written to."""
    return _value(spark, f"SELECT snapshot_id FROM {table.sql}.refs WHERE name = 'main'", "snapshot_id")


def _value(spark: Any, sql: str, column: str) -> str | None:
    """The only value of a statement about versions."""
    rows = asked(lambda: spark.sql(sql).collect(), "reading the version of the table", sql)
    return str(int(rows[0][column])) if rows else None


def _missing(spark: Any, text: str, parts: tuple[str, ...] | None) -> SourceError:
    if any(mark in text for mark in _LOOKS_LIKE_PATH):
        return SourceError(
            f"{shorten(text)!r} is no name of a table. Spark reads files here through a table alone: CREATE "
            "TABLE name USING parquet LOCATION '...'. Or give the path without a session: DuckDB reads it."
        )
    near = [] if parts is None else _near(spark, parts)
    hint = f" Did you mean {' or '.join(map(shorten, near))}?" if near else ""
    seen = _seen(spark)
    return SourceError(f"There is no table {shorten(text)!r} that this Spark session can see.{hint}{seen}")


def _seen(spark: Any) -> str:
    """Of a session that sees no table but its own."""
    if tried(lambda: spark.conf.get("spark.sql.catalogImplementation")) != "in-memory":
        return ""
    return (
        " Its catalog is in memory and forgets tables with the session: for tables that last, set "
        "spark.sql.catalogImplementation=hive, or your own catalog, in spark-defaults.conf (SPARK_CONF_DIR)."
    )


def _near(spark: Any, parts: tuple[str, ...]) -> list[str]:
    """Names of the same database that look like it."""
    database = parts[:-1]
    listed = tried(
        lambda: [str(one.name) for one in spark.catalog.listTables(*([quoted(database)] if database else []))]
    )
    return [shown((*database, name)) for name in near_matches(parts[-1], listed or [])]
