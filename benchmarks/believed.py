"""How many columns of tables as they come would an analyst believe? No domain file, no settings.

    python benchmarks/believed.py [--tables weather nhefs] [--epsilon 1 3 10] [--releases 3]

Each table is released raw from a Parquet file, and its columns are judged one by one (``believes``). Then it
says how good the verdicts of the releases are: how many of the columns that are not believed were named
(rough, or not to be used), and how many of those that are. Real tables are looked for in the data folder;
generated ones, of similar shapes, are always there: a survey of many indicators kept as DOUBLE, a table of
payments with long tails, a table of measurements with dates and NULLs.

The comparison reads the source without noise: for public data sets only.
"""

from __future__ import annotations

import statistics
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from harness import DATA, command_line, machine, print_table

import dpsyn_sql

REAL = {
    "movies": "raw_small/movies.parquet",
    "birdstrikes": "raw_small/birdstrikes.parquet",
    "weather": "raw_small/weather.parquet",
    "nhefs": "raw_small/nhefs.parquet",
    "loanapp": "raw_small/loanapp.parquet",
    "401ksubs": "raw_small/401ksubs.parquet",
    "german_credit": "german_credit/german_symbolic.parquet",
    "adult": "uci_adult/adult_all.parquet",
    "diabetes": "diabetes_130/diabetic_data.parquet",
    "flights": "nycflights13/flights.parquet",
    "retail": "online_retail/online_retail.parquet",
    "taxi": "nyc_green_taxi_2022_01/green_trips.parquet",
}

TEXTS = ("VARCHAR", "BOOLEAN", "ENUM")
TIMES = ("DATE", "TIMESTAMP")


def survey(random: np.random.Generator) -> pd.DataFrame:
    """1,600 rows: 40 indicators as DOUBLE, 10 small scales, 10 measures."""
    rows = 1_600
    found = {
        f"has_{place}": (random.random(rows) < share) * 1.0
        for place, share in enumerate(np.linspace(0.05, 0.6, 40))
    }
    found |= {f"scale_{place}": 1.0 + random.integers(0, 3 + place, rows) for place in range(10)}
    found |= {
        f"level_{place}": np.round(random.normal(20 * (place + 2), 8 + place, rows), place % 3)
        for place in range(10)
    }
    return pd.DataFrame(found)


def payments(random: np.random.Generator) -> pd.DataFrame:
    """30,000 rows: 12 log-normal amounts with an atom at 0, 6 Pareto amounts, 6 others."""
    rows = 30_000
    found = {}
    for place in range(12):
        amount = np.rint(np.exp(random.normal(8.0, 1.0 + place / 20, rows)))
        found[f"paid_{place}"] = np.where(random.random(rows) < 0.2, 0, amount).astype(np.int64)
    for place in range(6):
        found[f"lot_{place}"] = np.floor(10 * (random.pareto(1.8 + place / 5, rows) + 1)).astype(np.int64)
    found |= {f"age_{place}": random.normal(45, 12, rows).round().astype(np.int64) for place in range(3)}
    found |= {f"kind_{place}": random.integers(0, 5 + place, rows) for place in range(3)}
    return pd.DataFrame(found)


def measurements(random: np.random.Generator) -> pd.DataFrame:
    """3,000 rows: dates, a place, rain that is mostly 0, temperatures, values that are missing."""
    rows = 3_000
    day = pd.Timestamp("2012-01-01") + pd.to_timedelta(random.integers(0, 1_461, rows), unit="D")
    rain = np.where(random.random(rows) < 0.6, 0.0, np.round(random.exponential(6, rows), 1))
    warm = np.round(random.normal(16, 7, rows), 1)
    some = np.where(random.random(rows) < 0.15, np.nan, np.round(random.gamma(2, 2, rows), 1))
    place = random.choice(["north", "south", "east"], rows, p=[0.5, 0.3, 0.2])
    return pd.DataFrame({"day": day.date, "rain": rain, "warm": warm, "wind": some, "place": place})


GENERATED: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "survey": survey,
    "payments": payments,
    "measurements": measurements,
}


def believes(real: pd.Series, synthetic: pd.Series, kind: str) -> bool:
    """Whether an analyst believes a column of a SQL type.

    Numbers: mean and median within a tenth and the 95th percentile within 15 % (of themselves, or of a fifth
    of the standard deviation if that is more), the standard deviation within 25 %, nothing further outside of
    the real range than a quarter of it, at most ten times as many different values. Text and dates (by
    month): a total variation of at most .15. NULL: within .03.
    """
    if abs(real.isna().mean() - synthetic.isna().mean()) > 0.03:
        return False
    if kind.startswith((*TEXTS, *TIMES)):
        if kind.startswith(TIMES):
            real, synthetic = (
                pd.to_datetime(one, errors="coerce").dt.to_period("M") for one in (real, synthetic)
            )
        shares = [one.astype(str).value_counts(normalize=True) for one in (real, synthetic)]
        return float(shares[0].subtract(shares[1], fill_value=0).abs().sum()) / 2 <= 0.15
    numbers, made = (pd.to_numeric(one, errors="coerce").dropna().astype(float) for one in (real, synthetic))
    if numbers.empty or made.empty:
        return numbers.empty and made.empty
    return _alike(numbers.to_numpy(), made.to_numpy())


def _alike(real: np.ndarray, made: np.ndarray) -> bool:
    deviation, span = real.std(ddof=1), max(np.ptp(real), 1e-12)
    least = max(deviation / 5, 1e-12)
    figures: list[tuple[Callable[[np.ndarray], float], float]] = [
        (np.mean, 0.1),
        (np.median, 0.1),
        (lambda values: float(np.quantile(values, 0.95)), 0.15),
    ]
    near = all(abs(of(made) - of(real)) <= most * max(abs(of(real)), least) for of, most in figures)
    spread = abs(made.std(ddof=1) - deviation) <= 0.25 * max(deviation, 1e-12)
    outside = max(made.max() - real.max(), real.min() - made.min(), 0) <= span / 4
    return bool(near and spread and outside and np.unique(made).size <= 10 * np.unique(real).size)


@dataclass(frozen=True, slots=True)
class Count:
    """Columns of releases: all, the believed ones, and how many of these and of the others were named."""

    columns: int = 0
    believed: int = 0
    named_believed: int = 0
    named_rejected: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    @property
    def words(self) -> tuple[str, str]:
        """Named of rejected, named of believed."""
        rejected = self.columns - self.believed
        return f"{self.named_rejected} of {rejected}", f"{self.named_believed} of {self.believed}"


def believed(source: Path, epsilon: float, folder: Path) -> Count:
    """The columns of one release."""
    into = folder / "synthetic.parquet"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dpsyn_sql.release(
            None, source, epsilon=epsilon, into=into, ledger=folder / "l.ledger", name="believed"
        )
    verdict = release.verdict
    named = set(verdict[verdict["verdict"] != "good"]["column"].dropna())
    con = duckdb.connect()
    kinds = {name: kind for name, kind, *_ in con.execute(f"DESCRIBE FROM '{source}'").fetchall()}
    real, made = (con.execute(f"FROM '{path}'").df() for path in (source, into))
    good = {name for name, kind in kinds.items() if believes(real[name], made[name], kind)}
    return Count(len(kinds), len(good), len(named & good), len(named - good))


def source_of(name: str, folder: Path) -> Path | None:
    """The Parquet file of a table; None for a real one that is not here."""
    if name in REAL:
        path = DATA / REAL[name]
        return path if path.exists() else None
    path = folder / f"{name}.parquet"
    frame = GENERATED[name](np.random.default_rng(2026))
    duckdb.connect().execute(f"COPY (FROM frame) TO '{path}'")
    return path if len(frame) else None


def counted(source: Path, epsilon: float, releases: int) -> list[Count]:
    """Of several releases."""
    found = []
    for _ in range(releases):
        with tempfile.TemporaryDirectory() as folder:
            found.append(believed(source, epsilon, Path(folder)))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_line(__doc__)
    parser.add_argument("--tables", nargs="+", choices=[*REAL, *GENERATED], default=[*REAL, *GENERATED])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    parser.add_argument("--releases", type=int, default=3)
    wanted = parser.parse_args(arguments)
    rows, verdicts, in_all = list[list[object]](), list[list[object]](), Count()
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted.tables:
            source = source_of(name, Path(folder))
            if source is None:
                print(f"{name}: {REAL[name]} is not in the data folder")
                continue
            found = [counted(source, epsilon, wanted.releases) for epsilon in wanted.epsilon]
            medians = [statistics.median(one.believed for one in several) for several in found]
            rows.append([name, found[0][0].columns, *(f"{number:g}" for number in medians)])
            together = [sum(several, Count()) for several in found]
            verdicts.append([name, *(text for one in together for text in one.words)])
            in_all = sum(together, in_all)
    header = ["table", "columns", *(f"believed, epsilon {epsilon:g}" for epsilon in wanted.epsilon)]
    print_table(header, rows, f"medians of {wanted.releases} releases; {machine()}")
    of = ("named of not believed", "named of believed")
    header = ["table", *(f"{what}, epsilon {epsilon:g}" for epsilon in wanted.epsilon for what in of)]
    rejected, trusted = in_all.words
    together = f"in all: {rejected} that are not believed, {trusted} that are"
    print_table(header, verdicts, f"columns of {wanted.releases} releases; {together}")


if __name__ == "__main__":
    main()
