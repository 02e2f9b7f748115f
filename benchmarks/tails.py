"""Do means and standard deviations of heavy tails survive, in columns that nobody declared?

    python benchmarks/tails.py [--rows 100000] [--releases 10] [--methods auto independent] [--real adult]

A generated table has 12 log-normal amounts of which a fifth is 0 (the deviation of the logarithm is 1 to
1.55), 6 Pareto ones (index 1.8 to 2.8), 5 columns without a tail, and one that is 0 but for 4 % of the
rows. It is drawn anew for each release, as one largest row moves the standard deviation of a Pareto column
by a third. Of real tables the columns with long tails are shown. Bias and root mean square are relative
errors to the same rows. *Outside*: columns with a value further outside of the real range than a quarter of
it.

The comparison reads the source without noise: for public and generated data only.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from harness import DATA, command_line, machine, print_table

import dpsyn_sql

REAL = {
    "adult": ("uci_adult/adult_all.parquet", ("capital_gain", "capital_loss", "fnlwgt")),
    "retail": ("online_retail/online_retail.parquet", ("Quantity", "UnitPrice")),
    "taxi": ("nyc_green_taxi_2022_01/green_trips.parquet", ("trip_distance",)),
    "diabetes": ("diabetes_130/diabetic_data.parquet", ("number_outpatient", "number_emergency")),
    "flights": ("nycflights13/flights.parquet", ("dep_delay", "arr_delay")),
}

FAMILIES = ("log-normal", "Pareto", "no tail", "nearly zero")


def generated(rows: int, random: np.random.Generator) -> pd.DataFrame:
    """24 columns; the name of each begins with its family."""
    found = {}
    for place in range(12):
        amount = np.rint(np.exp(random.normal(8.0, 1.0 + place / 20, rows)))
        found[f"log-normal {place}"] = np.where(random.random(rows) < 0.2, 0, amount).astype(np.int64)
    for place in range(6):
        found[f"Pareto {place}"] = np.floor(10 * (random.pareto(1.8 + place / 5, rows) + 1)).astype(np.int64)
    found["no tail, age"] = random.normal(45, 12, rows).round().clip(1).astype(np.int64)
    found["no tail, even"] = random.integers(18, 81, rows)
    found["no tail, percent"] = np.round(100 * random.beta(2, 5, rows), 1)
    found["no tail, height"] = np.round(random.normal(170, 9, rows), 1)
    found["no tail, minutes"] = random.normal(0, 30, rows).round().astype(np.int64)
    found["nearly zero"] = np.where(random.random(rows) < 0.04, random.integers(1, 70, rows), 0)
    return pd.DataFrame(found)


def released(source: Path, method: str, folder: Path) -> pd.DataFrame:
    """The synthetic rows at epsilon 1."""
    into = folder / "synthetic.parquet"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dpsyn_sql.release(
            None, source, epsilon=1, method=method, into=into, ledger=folder / "l.ledger", name="tails"
        )
    return duckdb.connect().execute(f"FROM '{into}'").df()


def errors(real: pd.Series, made: pd.Series) -> tuple[float, float, bool]:
    """Relative errors of mean and standard deviation, the mean's as a part of a fifth of the deviation if
    that is more; and whether values are outside."""
    numbers, other = (pd.to_numeric(one, errors="coerce").dropna().astype(float) for one in (real, made))
    mean, deviation = numbers.mean(), numbers.std()
    span = np.ptp(numbers.to_numpy())
    outside = max(other.max() - numbers.max(), numbers.min() - other.min()) > span / 4
    return (other.mean() - mean) / max(abs(mean), deviation / 5), other.std() / deviation - 1, bool(outside)


Found = Mapping[str, Sequence[tuple[float, float, bool]]]


def of_generated(method: str, rows: int, releases: int) -> Found:
    found = defaultdict(list)
    for seed in range(releases):
        frame = generated(rows, np.random.default_rng(seed))
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "source.parquet")
            duckdb.connect().execute(f"COPY (FROM frame) TO '{source}'")
            made = released(source, method, Path(folder))
        for name in frame:
            family = next(one for one in FAMILIES if name.startswith(one))
            found[family].append(errors(frame[name], made[name]))
    return found


def of_real(table: str, method: str, releases: int) -> Found:
    path, columns = REAL[table]
    real, found = duckdb.connect().execute(f"FROM '{DATA / path}'").df(), defaultdict(list)
    for _ in range(releases):
        with tempfile.TemporaryDirectory() as folder:
            made = released(DATA / path, method, Path(folder))
        for name in columns:
            found[f"{table}, {name}"].append(errors(real[name], made[name]))
    return found


def row(method: str, what: str, found: Sequence[tuple[float, float, bool]]) -> list[object]:
    mean, deviation = (np.array([one[place] for one in found]) for place in (0, 1))
    figures = [value for one in (mean, deviation) for value in (one.mean(), np.sqrt((one**2).mean()))]
    return [
        method,
        what,
        *(f"{100 * value:+.1f} %" for value in figures),
        f"{np.mean([one[2] for one in found]):.0%}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--methods", nargs="+", default=["auto", "independent"])
    parser.add_argument("--real", nargs="*", choices=REAL, default=[])
    wanted = parser.parse_args(arguments)
    rows: list[list[object]] = []
    for method in wanted.methods:
        found = dict(of_generated(method, wanted.rows, wanted.releases))
        for table in wanted.real:
            if (DATA / REAL[table][0]).exists():
                found |= of_real(table, method, wanted.releases)
        rows += [row(method, what, own) for what, own in found.items()]
    header = ["method", "columns", "mean, bias", "rms", "deviation, bias", "rms", "outside"]
    print_table(header, rows, f"{wanted.rows:,} rows, epsilon 1, {wanted.releases} releases; {machine()}")


if __name__ == "__main__":
    main()
