"""The picture of README.md: a table and its synthetic copy, side by side.

    pip install ".[plot]" && python benchmarks/example_picture.py [--into docs/pictures/example.svg]

The table is examples/adult.parquet, which is public (itself a release of UCI Adult). It is released once, and
both tables are drawn by the same queries: age and hours of work as a map, and high incomes by education.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import matplotlib as mpl
import numpy as np
from harness import REPOSITORY, command_line
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpsyn_sql

EXAMPLES = REPOSITORY / "examples"
TABLE, DOMAIN = EXAMPLES / "adult.parquet", EXAMPLES / "adult.domain.yml"

AGES, HOURS = np.arange(17, 91, 3), np.arange(0, 100, 5)
SCHOOLS = {
    "9th": "9th", "11th": "11th", "HS-grad": "high school", "Some-college": "some college",
    "Assoc-voc": "vocational", "Bachelors": "bachelor", "Masters": "master", "Doctorate": "doctorate",
}  # fmt: skip
REAL, COPY, INK, PAPER = "#2b5c8f", "#e08a2e", "#24292f", "#ffffff"
"""On paper of its own the picture reads the same in light and dark pages."""


def ages_and_hours(file: Path) -> np.ndarray:
    """Rows by age (across) and hours of work a week (up)."""
    found = duckdb.sql(f"SELECT age, hours_per_week FROM '{file}'").fetchnumpy()
    return np.histogram2d(found["age"], found["hours_per_week"], (AGES, HOURS))[0].T


def high_incomes(file: Path) -> list[float]:
    """Percent with an income above 50,000 dollars, for each school."""
    query = f"SELECT education, 100 * avg((income = '>50K')::INTEGER) FROM '{file}' GROUP BY education"
    shares = dict(duckdb.sql(query).fetchall())
    return [shares.get(name, 0.0) for name in SCHOOLS]


def plain(axes: Axes, title: str) -> None:
    """A title, and no lines that say nothing."""
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.tick_params(labelsize=8, colors=INK, length=2)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def drawn(copy: Path, epsilon: float) -> Figure:
    """Two maps above each other's scale, and bars."""
    figure = Figure(figsize=(9.6, 3.3), facecolor=PAPER, layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    maps = [np.log10(1 + ages_and_hours(file)) for file in (TABLE, copy)]
    top = max(one.max() for one in maps)
    for axes, counts, name in (
        (left, maps[0], "the table"),
        (middle, maps[1], f"its copy, epsilon {epsilon:g}"),
    ):
        axes.pcolormesh(AGES, HOURS, counts, cmap="Blues", vmin=0, vmax=top, rasterized=True)
        axes.set_xlabel("age (darker: more people, by powers of ten)", fontsize=8, color=INK)
        axes.set_ylabel("hours of work a week", fontsize=8, color=INK)
        plain(axes, name)
    places = np.arange(len(SCHOOLS))
    right.barh(places + 0.2, high_incomes(TABLE), 0.38, color=REAL, label="the table")
    right.barh(places - 0.2, high_incomes(copy), 0.38, color=COPY, label="its copy")
    right.set_yticks(places, list(SCHOOLS.values()))
    right.set_xlabel("percent with more than 50,000 dollars a year", fontsize=8, color=INK)
    right.legend(fontsize=8, frameon=False, loc="lower right")
    plain(right, "income by education")
    return figure


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--into", type=Path, default=REPOSITORY / "docs" / "pictures" / "example.svg")
    arguments = parser.parse_args()
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "example", "font.family": "sans-serif"})
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.parquet"
        dpsyn_sql.release(
            TABLE, epsilon=arguments.epsilon, domain=DOMAIN, into=copy, ledger=Path(folder) / "ledger"
        )
        drawn(copy, arguments.epsilon).savefig(arguments.into, metadata={"Date": None})
    print(arguments.into)


if __name__ == "__main__":
    main()
