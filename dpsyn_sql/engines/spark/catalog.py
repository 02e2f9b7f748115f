"""Names as Spark writes them, and lookups in its catalogs: what one means, where a table lies, its version.

No row is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dpsyn_sql.engines.spark.guard import asked, tried
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.names import near_matches, shorten, split_name

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
