"""Make the stored ledger that ``test_former_accounts`` opens: run by the last version whose approximate accounts
were all priced by zCDP (schema 2 of the ledger).

    python tests/e2e/former/make_zcdp.py tests/e2e/former/zcdp.tar.gz

Rows are generated here, the same ones whenever the database is made again: the archive holds the ledger and
the noisy answers alone.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import warnings
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.source.slices import Window
from dpsyn_sql.totals import running_total

ROWS = 240
DOMAIN = {
    "columns": {
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 5},
        "city": {"type": "categorical", "categories": ["Bern", "Basel", "Chur"]},
        "member": {"type": "categorical", "categories": [False, True]},
    }
}
LEFT_OUT = ["customer", "day"]
CHOSEN = {"exclude": LEFT_OUT, "domain": DOMAIN, "method": "independent"}
UNITS = {"privacy_unit": "customer", "max_rows_per_unit": 50, "exclude": ["day"], "domain": DOMAIN}
DAYS = tuple(f"2100-01-{day:02}" for day in range(1, 5))

RELEASES: dict[str, tuple[str, dict[str, Any]]] = {
    "declared": ("people", {**CHOSEN, "epsilon": 1}),
    "adaptive": ("people", {**CHOSEN, "epsilon": 1, "method": "adaptive"}),
    "choosing": ("people", {**CHOSEN, "epsilon": 1, "method": "privbayes"}),
    "learnt": ("people", {"exclude": LEFT_OUT, "method": "independent", "epsilon": 1}),
    "pure": ("people", {**CHOSEN, "epsilon": 0.5, "delta": 0}),
    "units": ("visits", {**UNITS, "method": "independent", "epsilon": 2}),
    "tiny": ("tiny", {**CHOSEN, "epsilon": "0.000001"}),
    "large": ("large", {**CHOSEN, "epsilon": 100}),
    "begun": ("begun", {**CHOSEN, "epsilon": 1}),
    "alone": ("alone", {**CHOSEN, "epsilon": 1, "delta": 0}),
}
"""Table and options by the name of the release; ``begun`` was killed before its first answer."""

GRANTED = {"people#row": ("10", "0.00000001"), "visits#customer": ("3", "0.000000001")}
TOTALS = {"whole": 3, "partial": 2}
"""Running totals of three periods by their tables, with the number of periods that were measured."""


def released(folder: Path, name: str, **further: Any) -> dpsyn_sql.Release:
    """Make or replay one release."""
    table, options = RELEASES[name]
    options = {"into": f"{name}_synthetic", "name": name, "seed": 7, **options, **further}
    return dpsyn_sql.release(folder / "shop.duckdb", table, **options)


def totalled(folder: Path, table: str, period: int, **further: Any) -> dpsyn_sql.Release:
    """Make or replay the running total of a period, counted from 1."""
    window = Window("day", "days from 2100-01-01", DAYS, period - 1)
    return running_total(
        folder / "shop.duckdb",
        dpsyn_sql.Request(
            table,
            **{"into": f"{table}_{period}", "name": table, "version": DAYS[period - 1], **further},
            slice=window,
            cumulative=DAYS[:-1],
            privacy_unit="customer",
            max_rows_per_unit=2,
            domain=DOMAIN,
            exclude=["day"],
            method="independent",
            seed=7,
        ),
    )


def make_sources(folder: Path) -> None:
    """The database, without any output."""
    random = np.random.default_rng(5)
    with duckdb.connect(str(folder / "shop.duckdb")) as con:
        con.execute(
            "CREATE TABLE people (customer INTEGER, age INTEGER, city VARCHAR, member BOOLEAN, day DATE)"
        )
        rows = zip(
            random.integers(0, 100, ROWS).tolist(),
            random.integers(0, 100, ROWS).tolist(),
            random.choice(["Bern", "Basel", "Chur"], ROWS).tolist(),
            (random.random(ROWS) > 0.5).tolist(),
            (np.datetime64("2100-01-01") + random.integers(0, 3, ROWS)).astype(str).tolist(),
            strict=True,
        )
        con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", [list(row) for row in rows])
        for copy in ("visits", "tiny", "large", "begun", "alone", *TOTALS):
            con.execute(f"CREATE TABLE {copy} AS FROM people")


class _Killed(BaseException):
    pass


def _begin(folder: Path) -> None:
    """Debit a release and stop before its first question."""
    from dpsyn_sql import pipeline

    def killed(job: Any, entry: Any) -> Any:
        raise _Killed

    whole, pipeline._measure_and_fit = pipeline._measure_and_fit, killed
    with suppress(_Killed):
        released(folder, "begun")
    pipeline._measure_and_fit = whole


def _answers(folder: Path) -> None:
    """The noisy tables and the id of each release, beside the ledger."""
    for name in RELEASES:
        if name == "begun":
            _begin(folder)
            continue
        made = released(folder, name)
        tables = {f"m{number:03}": table.values for number, table in enumerate(made.measurements)}
        np.savez_compressed(folder / f"{name}.npz", **tables)
        (folder / f"{name}.id").write_text(made.id)
    for table, periods in TOTALS.items():
        for period in range(1, periods + 1):
            made = totalled(folder, table, period)
        tables = {f"m{number:03}": one.values for number, one in enumerate(made.measurements)}
        np.savez_compressed(folder / f"{table}.npz", **tables)


def main(archive: Path) -> None:
    """Write the archive."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shop"
        folder.mkdir()
        make_sources(folder)
        with closing(SqliteLedger(folder / "shop.duckdb.dpsyn-ledger")) as ledger:
            for account, (epsilon, delta) in GRANTED.items():
                ledger.grant(account, epsilon, delta)
        _answers(folder)
        (folder / "shop.duckdb").unlink()
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(folder, "shop")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
