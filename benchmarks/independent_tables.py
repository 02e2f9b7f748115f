"""Tables of a database released one by one, and tied at random: what a database costs without its links.

Each table is a release with the privacy unit of the database; so are the numbers of rows below a row, one
column each. The tables share 96 % of epsilon evenly, the numbers the rest. Rows are attached at random.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from database_tables import Database

import dpsyn_sql

_NUMBERS = 0.04
_UNIT, _NUMBER = "unit_of_row", "number_below"


def write_independent(
    con: duckdb.DuckDBPyConnection,
    database: Database,
    schema: str,
    epsilon: float,
    delta: float,
    folder: Path,
    seed: int,
) -> None:
    """Release the tables of ``con`` and write them, tied at random, into a new schema."""
    rng = np.random.default_rng(seed)
    links = len(database.names) - 1
    shares = {"rows": epsilon * (1 - _NUMBERS) / (links + 1), "numbers": epsilon * _NUMBERS / links}
    con.execute(f"CREATE SCHEMA {schema}")
    above: pd.DataFrame | None = None
    for place, name in enumerate(database.names):
        columns = database.columns(name)
        own = _with_unit(con, database, place)
        common = {"delta": delta / (2 * links + 1), "ledger": folder / "ledger"}
        made = _released(
            con, own, f"{name}_made", shares["rows"], columns, database.rows_per_unit(name), common
        )
        if above is not None:
            made = _attached(above, made, rng)
        if place < links:
            child = database.names[place + 1]
            most = database.most[child]
            numbered = _numbered(con, database, place)
            column = {_NUMBER: {"type": "numeric", "lower": 0, "upper": most, "nullable": False}}
            per_unit = database.rows_per_unit(name)
            drawn = _released(con, numbered, f"{name}_number", shares["numbers"], column, per_unit, common)
            numbers = drawn[_NUMBER].to_numpy() if len(drawn) else np.zeros(1, np.int64)
            made["below"] = rng.choice(numbers, len(made))
        made["own"] = np.arange(len(made))
        _write(con, database, schema, name, made)
        above = made


def _with_unit(con: duckdb.DuckDBPyConnection, database: Database, place: int) -> str:
    """The rows of a table beside their unit, as a table; the name."""
    names, name = database.names, database.names[place]
    joins = "".join(
        f" JOIN {names[step - 1]} ON {names[step]}.{database.foreign_key(names[step])} = "
        f"{names[step - 1]}.{database.key(names[step - 1])}"
        for step in range(place, 0, -1)
    )
    columns = "".join(f", {name}.{column}" for column in database.columns(name))
    made = f"{name}_of_unit"
    con.execute(
        f"CREATE TABLE {made} AS SELECT {names[0]}.{database.key(names[0])} AS {_UNIT}{columns} "
        f"FROM {name}{joins}"
    )
    return made


def _numbered(con: duckdb.DuckDBPyConnection, database: Database, place: int) -> str:
    """One row per row of a table: its unit, and how many rows it has below."""
    names, name = database.names, database.names[place]
    child, made = names[place + 1], f"{name}_numbered"
    key, tie = database.key(name), database.foreign_key(child)
    con.execute(
        f"CREATE TABLE {made} AS SELECT {database.unit_of(name)} AS {_UNIT}, least(coalesce(n, 0), "
        f"{database.most[child]})::INTEGER AS {_NUMBER} FROM {name} LEFT JOIN "
        f"(SELECT {tie} AS of_row, count(*) AS n FROM {child} GROUP BY ALL) ON {key} = of_row"
    )
    return made


def _released(
    con: duckdb.DuckDBPyConnection,
    source: str,
    into: str,
    epsilon: float,
    columns: dict[str, object],
    most: int,
    common: dict[str, object],
) -> pd.DataFrame:
    dpsyn_sql.release(
        con,
        source,
        into=into,
        epsilon=epsilon,
        domain={"columns": columns},
        unit=_UNIT,
        most=most,
        weights=False,
        **common,
    )
    return con.execute(f"SELECT {', '.join(columns)} FROM {into}").df()


def _attached(above: pd.DataFrame, made: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """As many rows as the rows above ask for, in random order."""
    parents = np.repeat(above["own"].to_numpy(), above["below"].to_numpy())
    parents = parents if len(made) else parents[:0]
    places = rng.permutation(np.resize(rng.permutation(len(made)), len(parents)))
    found = made.iloc[places].reset_index(drop=True)
    found["parent"] = parents
    return found


def _write(
    con: duckdb.DuckDBPyConnection, database: Database, schema: str, name: str, made: pd.DataFrame
) -> None:
    """Under the names of the real table, with numbers for keys."""
    keys = dict.fromkeys(database.keys(name), "own")
    if name != database.names[0]:
        keys[database.foreign_key(name)] = "parent"
    con.register("made_rows", made)
    selected = [f"{place} AS {column}" for column, place in keys.items()]
    selected += list(database.columns(name))
    con.execute(f"CREATE TABLE {schema}.{name} AS SELECT {', '.join(selected)} FROM made_rows")
    con.unregister("made_rows")
