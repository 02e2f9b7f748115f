"""Eight real inputs (Adult in two forms): where the data lie, whom a release protects, what is declared.

Beside each domain file in ``domains/`` stands the CREATE TABLE of an owner (``.sql``) with types, NOT NULL,
CHECK and PRIMARY KEY. The real rows are loaded into it, the release reads it, and the synthetic rows have
to fit into a second table of the same statement. No constant was chosen on the last two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import yaml

DOMAINS = Path(__file__).resolve().parent / "domains"


@dataclass(frozen=True)
class RealTable:
    """One input. ``path`` is relative to the data folder; ``unit`` is None where a row is protected."""

    name: str
    path: str
    unit: str | None = None
    max_rows: int = 1

    @property
    def domain(self) -> Path:
        return DOMAINS / f"{self.name}.yml"

    @property
    def ddl(self) -> Path:
        return DOMAINS / f"{self.name}.sql"

    @property
    def protects(self) -> dict[str, Any]:
        """Arguments of ``release`` that say whom it protects."""
        return {} if self.unit is None else {"unit": self.unit, "most": self.max_rows, "weights": False}

    @property
    def rows_that_count(self) -> str:
        """SQL condition: rows without a unit are left out of a release."""
        return "true" if self.unit is None else f'"{self.unit}" IS NOT NULL'

    @property
    def rows_within_bound(self) -> str:
        """SQL: at most ``max_rows`` rows of each unit, the same ones every time."""
        if self.unit is None:
            return self.name
        rank = f'row_number() OVER (PARTITION BY "{self.unit}" ORDER BY hash(rowid), rowid)'
        return f"(FROM {self.name} WHERE {self.rows_that_count} QUALIFY {rank} <= {self.max_rows})"

    def load(self, con: duckdb.DuckDBPyConnection, data: Path) -> None:
        """The owner's table, full of the real rows."""
        self.create(con, self.name)
        con.execute(f"INSERT INTO {self.name} FROM '{data / self.path}'")

    def create(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        """An empty table of the owner's statement."""
        statement = self.ddl.read_text(encoding="utf-8")
        con.execute(statement.replace(f"CREATE TABLE {self.name} (", f'CREATE TABLE "{name}" ('))

    def declared(self) -> Mapping[str, Any]:
        """The domain file as a mapping."""
        document: Mapping[str, Any] = yaml.safe_load(self.domain.read_text(encoding="utf-8"))
        return document

    def bounds(self) -> dict[str, Any]:
        """A domain of what an owner knows at once: ends of numbers and times, NULL, and keys; no bins."""
        entries = {name: _bounds(entry) for name, entry in self.declared()["columns"].items()}
        return {"columns": {name: entry for name, entry in entries.items() if entry}}

    def ends(self) -> dict[str, tuple[object, object]]:
        """Lower and upper end of each number and time that is declared."""
        return {
            name: (entry["lower"], entry["upper"])
            for name, entry in self.bounds()["columns"].items()
            if "lower" in entry
        }

    def kinds(self) -> dict[str, str]:
        """What each declared column is: numeric, temporal, categorical, key, constant or derived."""
        columns = self.declared()["columns"]
        return {name: "derived" if "derived" in entry else entry["type"] for name, entry in columns.items()}


def _bounds(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What stays of a column's declaration; nothing of categories, constants and derived columns."""
    if entry.get("type") == "key":
        return dict(entry)
    if entry.get("type") not in ("numeric", "temporal"):
        return {}
    lower, *_, upper = entry.get("edges") or (entry["lower"], entry["upper"])
    kept = {"type": entry["type"], "lower": lower, "upper": upper}
    return kept | ({"nullable": True} if entry.get("nullable") else {})


REAL_TABLES = {
    table.name: table
    for table in (
        RealTable("adult_train", "uci_adult/adult_train.parquet"),
        RealTable("adult_all", "uci_adult/adult_all.parquet"),
        RealTable("german_credit", "german_credit/german_symbolic.parquet"),
        RealTable("diabetes_130", "diabetes_130/diabetic_data.parquet", "patient_nbr", 2),
        RealTable("online_retail", "online_retail/online_retail.parquet", "CustomerID", 20),
        RealTable("flights", "nycflights13/flights.parquet"),
        RealTable("green_taxi", "nyc_green_taxi_2022_01/green_trips.parquet"),
        RealTable("gowalla", "gowalla_nyc/checkins.parquet", "user_id", 20),
        RealTable("baby_names", "us_baby_names/us_baby_names_totals.parquet"),
    )
}
