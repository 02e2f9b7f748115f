"""Make the stored ledger and database that ``test_former_releases`` replays: run by the version it is named by.

    python tests/e2e/former/make.py tests/e2e/former/0.1.0.tar.gz

Rows are generated here. Run it with the oldest line of DuckDB that is supported, whose files every later one
reads.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import dpsyn_sql

ROWS = 600
DOMAIN = {
    "columns": {
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 10},
        "city": {"type": "categorical", "categories": ["Bern", "Basel", "Chur"]},
        "member": {"type": "categorical", "categories": [False, True]},
    }
}
TEXT = {"columns": {**DOMAIN["columns"], "member": {"type": "categorical", "categories": ["false", "true"]}}}
SMALL = {"exclude": ["amount", "day", "customer"]}


def calls(folder: Path) -> dict[str, tuple[Any, str, dict[str, Any]]]:
    """Every release by name: connection, source and options; the same when it is made and when it is replayed."""
    base = folder / "shop.duckdb"
    files = {"ledger": folder / "files.dpsyn.sqlite"}
    return {
        "declared": (base, "people", {**SMALL, "domain": DOMAIN}),
        "discovered": (base, "people", {"exclude": ["customer"], "epsilon": 4}),
        "units": (
            base,
            "visits",
            {
                "privacy_unit": "customer",
                "max_rows_per_unit": 3,
                "domain": DOMAIN,
                "exclude": ["amount", "day"],
            },
        ),
        "weighted": (
            base,
            "people",
            {
                **SMALL,
                "domain": DOMAIN,
                "workload": {"age": 5},
                "memory_limit": "512MiB",
                "method": "adaptive",
            },
        ),
        "copula": (base, "pure", {**SMALL, "domain": DOMAIN, "method": "copula", "delta": 0}),
        "text": (
            None,
            str(folder / "people.csv"),
            {**SMALL, **files, "domain": TEXT, "method": "independent", "delta": 0},
        ),
        "columns": (
            None,
            str(folder / "people.parquet"),
            {**SMALL, **files, "domain": DOMAIN, "version": "2026"},
        ),
        "query": (
            base,
            "SELECT age, city, member FROM people WHERE age >= 18",
            {"domain": DOMAIN, "method": "copula"},
        ),
    }


def released(folder: Path, name: str, **further: Any) -> dpsyn_sql.Release:
    """Make or replay one release."""
    con, source, options = calls(folder)[name]
    into = str(folder / f"{name}.parquet") if con is None else f"{name}_synthetic"
    options = {"epsilon": 3, "into": into, "name": name, "seed": 7, **options, **further}
    return dpsyn_sql.release(con, source, **options)


def _sources(folder: Path) -> None:
    random = np.random.default_rng(5)
    age = random.integers(0, 100, ROWS)
    city = np.array(["Bern", "Basel", "Chur"])[(age // 34 + (random.random(ROWS) < 0.2)) % 3]
    with duckdb.connect(str(folder / "shop.duckdb")) as con:
        con.execute(
            "CREATE TABLE people (customer INTEGER, age INTEGER, city VARCHAR, member BOOLEAN, "
            "amount DOUBLE, day DATE)"
        )
        rows = zip(
            random.integers(0, 250, ROWS).tolist(),
            age.tolist(),
            city.tolist(),
            (age > 50).tolist(),
            np.round(random.gamma(2.0, 40.0, ROWS), 2).tolist(),
            (np.datetime64("2025-01-01") + random.integers(0, 300, ROWS)).astype(str).tolist(),
            strict=True,
        )
        con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", [list(row) for row in rows])
        for copy in ("visits", "pure"):  # an account protects one unit, by one kind of noise
            con.execute(f"CREATE TABLE {copy} AS FROM people")
        con.execute(f"COPY people TO '{folder / 'people.csv'}' (HEADER)")
        con.execute(f"COPY people TO '{folder / 'people.parquet'}'")


def main(archive: Path) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shop"
        folder.mkdir()
        _sources(folder)
        for name in calls(folder):
            made = released(folder, name)
            np.savez(
                folder / f"{name}.npz",
                **{f"m{number:03}": table.values for number, table in enumerate(made.measurements)},
            )
            (folder / f"{name}.id").write_text(made.id)
            if name not in ("declared", "units"):  # the other outputs are not needed
                for left in folder.glob(f"{name}.parquet*"):
                    left.unlink()
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(folder, "shop")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
