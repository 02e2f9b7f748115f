"""Are the values of a release believable, and does it say what it lost? Eight ways in which they are not.

    python benchmarks/believable.py [--things 1 2 3] [--releases 3]

Each thing is a table (generated with a fixed seed, or UCI Adult), a domain as a newcomer would write it or
none, and figures of the source beside the median of several releases:

1  ends alone make bins of equal width            5  a CSV file whose types nobody states
2  declared edges with a wide last bin            6  a wrong domain that noisy counts could show
3  values that many rows share                    7  losses that nobody is told of
4  values that cannot be                          8  cells that cannot be (``correlations.py`` has more)

The comparison reads the source without noise: for public data sets only.
"""

from __future__ import annotations

import statistics
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from believable_tables import CITY, FLOORS, GENERATED, create
from harness import DATA, command_line, machine, print_table
from real_tables import REAL_TABLES

import dpsyn_sql
from dpsyn_sql.errors import DpsynError

AMOUNT_EDGES = [0, 1, 1000, 2000, 3000, 5000, 10_000, 20_000, 50_000, 100_000, 2_000_000]

CREDIT_BOUNDS = {
    "id": {"type": "key"},
    "age": {"type": "numeric", "lower": 18, "upper": 100},
    "bill_1": {"type": "numeric", "lower": -100_000, "upper": 5_000_000},
    "bill_2": {"type": "numeric", "lower": -100_000, "upper": 5_000_000},
    "payment": {"type": "numeric", "lower": 0, "upper": 2_000_000},
}
CREDIT_EDGES = {
    **CREDIT_BOUNDS,
    "bill_1": {
        "type": "numeric",
        "edges": [-100_000, -1000, *AMOUNT_EDGES[:-1], 200_000, 500_000, 5_000_000],
    },
    "bill_2": {
        "type": "numeric",
        "edges": [-100_000, -1000, *AMOUNT_EDGES[:-1], 200_000, 500_000, 5_000_000],
    },
    "payment": {"type": "numeric", "edges": AMOUNT_EDGES},
}


@dataclass(frozen=True)
class Figure:
    """A number of a table: SQL with ``{t}`` for the relation; or how many verdicts have all of ``words``."""

    label: str
    sql: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One release: its table, its arguments, its figures.

    ``csv``: the source is a file of text. ``checks``: it has the owner's constraints.
    """

    thing: int
    table: str
    label: str
    figures: tuple[Figure, ...]
    domain: Mapping[str, Any] | None = None
    epsilon: float = 1.0
    method: str = "adaptive"
    csv: bool = False
    checks: bool = True


def share(label: str, condition: str) -> Figure:
    """Part of the rows for which a condition holds, in per cent."""
    return Figure(label, f"SELECT 100 * avg(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM {{t}}")


def spread(column: str) -> tuple[Figure, ...]:
    """What an analyst looks at first."""
    return (
        Figure(f"median {column}", f"SELECT median({column}) FROM {{t}}"),
        Figure(f"mean {column}", f"SELECT avg({column}) FROM {{t}}"),
        Figure(f"deviation {column}", f"SELECT stddev_pop({column}) FROM {{t}}"),
        Figure(f"99 % {column}", f"SELECT quantile_disc({column}, 0.99) FROM {{t}}"),
        share(f"{column} = 0, %", f"{column} = 0"),
    )


def told(*words: str) -> Figure:
    """How many columns have a verdict with these words."""
    return Figure("verdicts with " + " and ".join(words), words=words)


def spearman(one: str, two: str) -> Figure:
    """Correlation of the ranks; rows with the same value share their mean rank."""
    ranks = ", ".join(
        f"rank() OVER (ORDER BY {name}) + (count(*) OVER (PARTITION BY {name}) - 1) / 2 AS r{place}"
        for place, name in enumerate((one, two))
    )
    return Figure(f"Spearman {one}, {two}", f"SELECT corr(r0, r1) FROM (SELECT {ranks} FROM {{t}})")


VERDICTS = Figure("columns that are not good", words=())
OUTSIDE = " OR ".join(f"{name} NOT BETWEEN {low} AND {high}" for name, (low, high) in CITY.items())
FIRST_THREE = (
    share("counter = 511, %", "counter = 511"),
    share("rate > 1, %", "same_service_rate > 1"),
    share("rate = 1, %", "same_service_rate = 1"),
    Figure("distinct rates", "SELECT count(DISTINCT same_service_rate) FROM {t}"),
    share("error_rate in (0, 1), %", "error_rate IN (0, 1)"),
)
HOUSES_LOST = (
    share("zipcode that do not exist, %", "NOT regexp_full_match(zipcode, '98[01][0-9][0-9]')"),
    Figure("distinct zipcodes", "SELECT count(DISTINCT zipcode) FROM {t}"),
    Figure("distinct zip_numbers", "SELECT count(DISTINCT zip_number) FROM {t}"),
    share("waterfront = 1, %", "waterfront = 1"),
    VERDICTS,
    told("'zipcode'"),
    told("'waterfront'"),
    told("'id'", "key"),
)


def cases() -> list[Case]:
    """Every release."""
    bounded, edged = {"columns": CREDIT_BOUNDS}, {"columns": CREDIT_EDGES}
    found = [
        Case(1, "credit", "lower, upper", spread("payment"), bounded),
        Case(1, "credit", "no domain", spread("payment")),
        *(Case(2, "credit", "edges", spread("payment"), edged, epsilon) for epsilon in (1.0, 10.0)),
        Case(3, "connections", "no domain", FIRST_THREE),
        Case(3, "houses", "no domain", _floors()),
        Case(4, "houses", "no domain", _impossible_houses()),
        Case(4, "credit", "no domain", _impossible_credit()),
        Case(5, "adult_train", "CSV, no domain", _csv_figures(), csv=True),
        *_wrong_domains(),
        Case(7, "houses", "no domain", HOUSES_LOST),
        Case(
            7,
            "connections",
            "no domain",
            (share("guess_passwd, %", "label = 'guess_passwd'"), VERDICTS, told("'label'")),
            epsilon=0.1,
        ),
    ]
    pair = (
        spearman("bill_1", "bill_2"),
        Figure("Pearson bill_1, bill_2", "SELECT corr(bill_1, bill_2) FROM {t}"),
    )
    for label, domain in (("no domain", None), ("lower, upper", bounded), ("edges", edged)):
        found += [Case(8, "credit", label, pair, domain, epsilon) for epsilon in (1.0, 10.0)]
    return found


def _floors() -> tuple[Figure, ...]:
    known = ", ".join(map(str, FLOORS))
    return (
        Figure("distinct floors", "SELECT count(DISTINCT floors) FROM {t}"),
        share("floors that exist, %", f"floors IN ({known})"),
        share("yr_renovated = 0, %", "yr_renovated = 0"),
    )


def _impossible_houses() -> tuple[Figure, ...]:
    return (
        share("outside the city, %", OUTSIDE),
        share("yr_built outside 1900..2015, %", "yr_built NOT BETWEEN 1900 AND 2015"),
        share(
            "yr_renovated in 1..1899 or after 2015, %",
            "yr_renovated BETWEEN 1 AND 1899 OR yr_renovated > 2015",
        ),
        share("sold outside the 13 months, %", "sold NOT BETWEEN '2014-05-01' AND '2015-05-31'"),
        share("zip_number outside 98001..98199, %", "zip_number NOT BETWEEN 98001 AND 98199"),
        share("waterfront not 0 or 1, %", "waterfront NOT IN (0, 1)"),
        share("zipcode __other__, %", "zipcode = '__other__'"),
    )


def _impossible_credit() -> tuple[Figure, ...]:
    return (
        share("sex not 1 or 2, %", "sex NOT IN (1, 2)"),
        share("education not in 0..6, %", "education NOT BETWEEN 0 AND 6"),
        share("defaulted not 0 or 1, %", "defaulted NOT IN (0, 1)"),
        share("age outside 21..79, %", "age NOT BETWEEN 21 AND 79"),
        Figure("columns NOT NULL", "SELECT count(*) FROM (DESCRIBE {t}) WHERE \"null\" = 'NO'"),
    )


def _csv_figures() -> tuple[Figure, ...]:
    numbers = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
    other = " + ".join(f"CAST(CAST({name} AS VARCHAR) = '__other__' AS INTEGER)" for name in numbers)
    return (
        Figure("text columns of 15", "SELECT count(*) FROM (DESCRIBE {t}) WHERE column_type = 'VARCHAR'"),
        Figure("__other__ in the six numbers, % of cells", f"SELECT 100 * avg({other}) / 6 FROM {{t}}"),
        Figure("mean age", "SELECT avg(TRY_CAST(age AS DOUBLE)) FROM {t}"),
        Figure("mean fnlwgt", "SELECT avg(TRY_CAST(fnlwgt AS DOUBLE)) FROM {t}"),
        VERDICTS,
        told("'fnlwgt'"),
    )


def _wrong_domains() -> list[Case]:
    """An age in the wrong unit, and categories of another code book."""
    age = {"columns": {"age": {"type": "numeric", "lower": 200, "upper": 300}}}
    marital = {
        "columns": {
            "marital_status": {"type": "categorical", "categories": ["single", "married"], "other": False}
        }
    }
    return [
        Case(
            6,
            "adult_train",
            "age 200 to 300",
            (share("age >= 200, %", "age >= 200"), VERDICTS, told("'age'")),
            age,
            checks=False,
        ),
        Case(
            6,
            "adult_train",
            "wrong categories",
            (
                Figure("distinct marital_status", "SELECT count(DISTINCT marital_status) FROM {t}"),
                VERDICTS,
                told("'marital_status'"),
            ),
            marital,
            checks=False,
        ),
    ]


def load(con: duckdb.DuckDBPyConnection, name: str, checks: bool = True) -> bool:
    """The source table, perhaps without its constraints; False where its data are missing."""
    if name in GENERATED:
        create(con, name)
        return True
    table = REAL_TABLES[name]
    if not (DATA / table.path).exists():
        return False
    table.load(con, DATA)
    if not checks:
        con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM {name}")
    return True


def released(con: duckdb.DuckDBPyConnection, case: Case, folder: Path) -> list[str]:
    """Make one release into ``copy``; what it says of columns that are not good.

    Raises:
        DpsynError: there is no release.
    """
    source: Any = case.table
    if case.csv:
        source = folder / f"{case.table}.csv"
        con.execute(f"COPY {case.table} TO '{source}' (HEADER)")
    into = folder / "copy.parquet" if case.csv else "copy"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dpsyn_sql.release(
            None if case.csv else con,
            source,
            into=into,
            method=case.method,
            epsilon=case.epsilon,
            domain=None if case.domain is None else dict(case.domain),
            ledger=folder / "ledger",
        )
    if case.csv:
        con.execute(f"CREATE TABLE copy AS FROM '{into}'")
    return [why for why in release.verdict.query("about == 'column'")["why"] if why]


def figures(case: Case, releases: int) -> list[list[object]]:
    """A row for each figure: the source's, and the median of the releases'."""
    found: list[list[object]] = [[] for _ in case.figures]
    with duckdb.connect() as con:
        if not load(con, case.table, case.checks):
            return [[case.thing, case.table, case.label, f"{case.epsilon:g}", "the data are missing", "", ""]]
        true = [_value(con, figure, case.table, []) if figure.sql else "" for figure in case.figures]
        for _ in range(releases):
            con.execute("DROP TABLE IF EXISTS copy")
            with tempfile.TemporaryDirectory() as folder:
                try:
                    said = released(con, case, Path(folder))
                except DpsynError as error:
                    text = f"{type(error).__name__}: {error}".split("\n")[0][:100]
                    return [[case.thing, case.table, case.label, f"{case.epsilon:g}", text, "", ""]]
            for values, figure in zip(found, case.figures, strict=True):
                values.append(_value(con, figure, "copy", said))
    return [
        [
            case.thing,
            case.table,
            case.label,
            f"{case.epsilon:g}",
            figure.label,
            _shown(source),
            _median(values),
        ]
        for figure, source, values in zip(case.figures, true, found, strict=True)
    ]


def _value(con: duckdb.DuckDBPyConnection, figure: Figure, relation: str, said: Sequence[str]) -> object:
    if not figure.sql:
        return float(sum(all(word in text for word in figure.words) for text in said))
    try:
        row = con.execute(figure.sql.replace("{t}", relation)).fetchone()
    except duckdb.Error as error:
        return type(error).__name__  # the column is of a type that has no such figure
    return "none" if row is None or row[0] is None else float(row[0])


def _median(values: Sequence[object]) -> str:
    numbers = [value for value in values if isinstance(value, float)]
    return _shown(statistics.median(numbers)) if numbers else _shown(values[0])


def _shown(value: object) -> str:
    return (
        f"{value:,.4g}"
        if isinstance(value, float) and abs(value) < 1000
        else (f"{value:,.0f}" if isinstance(value, float) else str(value))
    )


def main() -> None:
    """A table of all figures."""
    parser = command_line(__doc__)
    parser.add_argument("--things", type=int, nargs="+", default=[*range(1, 9)], choices=range(1, 9))
    parser.add_argument("--releases", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    for case in cases():
        if case.thing in arguments.things:
            rows += figures(case, arguments.releases)
    header = ["thing", "table", "domain", "epsilon", "figure", "source", "release"]
    print_table(header, rows, f"Medians of {arguments.releases} releases, delta 1e-9; {machine()}")


if __name__ == "__main__":
    main()
