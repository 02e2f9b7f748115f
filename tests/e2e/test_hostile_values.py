"""Columns that break binning: constants, atoms at the ends of a type, denormal numbers, wrong bounds.

Each column is a table of its own, released with no domain and with its ends alone. Every release must end
without an error, with values of the type and inside the declared bounds; what many rows share comes back
exactly where the noise allows it.
"""

import warnings
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import duckdb
import pytest

import dpsyn_sql

pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = 3000


@dataclass(frozen=True)
class Hostile:
    """``value``: SQL of the row number ``i``. ``within``: where nearly all values lie.

    ``atoms``: values that come back exactly, and their share of the rows. ``ends``: bounds to declare.
    """

    sql_type: str
    value: str
    ends: tuple[object, object] | None = None
    within: tuple[str, str] | None = None
    atoms: dict[str, float] = field(default_factory=dict)
    nullable: bool = False
    kind: str = "numeric"

    def entry(self):
        """Bounds alone, or nothing."""
        if self.ends is None:
            return None
        nullable = {"nullable": True} if self.nullable else {}
        return {"type": self.kind, "lower": self.ends[0], "upper": self.ends[1], **nullable}


BIG = 2**63
HUGE = 2**128 - 1
COLUMNS = {
    "constant": Hostile("INTEGER", "7", (0, 1000), ("7", "7"), {"7": 1.0}),
    "constant_fraction": Hostile("DOUBLE", "0.1", (0, 1), ("0", "1"), {"0.1": 1.0}),
    "constant_zero": Hostile(
        "DOUBLE", "CASE WHEN i % 2 = 0 THEN -0.0 ELSE 0.0 END", (-5, 5), ("0", "0"), {"0": 1.0}
    ),
    "all_null": Hostile("DOUBLE", "NULL", (0, 1), nullable=True),
    "one_atom": Hostile(
        "INTEGER", "CASE WHEN i % 10 = 0 THEN i % 1000 ELSE 511 END", (0, 1000), ("0", "1023"), {"511": 0.9}
    ),
    "codes": Hostile("BIGINT", "1 + i % 2", (0, 100), ("1", "2"), {"1": 0.5, "2": 0.5}),
    "ends_of_bigint": Hostile(
        "BIGINT",
        f"CASE WHEN i % 2 = 0 THEN {-BIG} ELSE {BIG - 1} END",
        (-BIG, BIG - 1),
        atoms={str(-BIG): 0.5, str(BIG - 1): 0.5},
    ),
    "denormal": Hostile("DOUBLE", "5e-324 * (1 + i % 10)", (0, 1), ("-1e-9", "1e-9")),
    "infinities": Hostile(
        "DOUBLE",
        "CASE i % 3 WHEN 0 THEN 'inf'::DOUBLE WHEN 1 THEN '-inf'::DOUBLE ELSE 5.0 END",
        (0, 10),
    ),
    "nan": Hostile("DOUBLE", "CASE WHEN i % 2 = 0 THEN 'nan'::DOUBLE ELSE 1.5 END", (0, 10)),
    "one_outlier": Hostile("DOUBLE", "CASE WHEN i = 5 THEN 1e300 ELSE i % 100 END", (0, 200), ("0", "128")),
    "bounds_too_wide": Hostile("BIGINT", "i % 100", (0, 10**18), ("0", "127")),
    "bounds_too_narrow": Hostile("INTEGER", "1000 + i % 1000", (0, 10)),
    "two_clumps_of_dates": Hostile(
        "DATE",
        "CASE WHEN i % 2 = 0 THEN DATE '1900-01-01' ELSE DATE '2000-01-01' END + CAST(i % 365 AS INTEGER)",
        (date(1850, 1, 1), date(2050, 12, 31)),
        kind="temporal",
    ),
    "decimal_38": Hostile(
        "DECIMAL(38,10)",
        "CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38,10)) * (i % 2) + i % 7",
        (0, Decimal("9999999999999999999999999999")),
    ),
    "uhugeint": Hostile(
        "UHUGEINT",
        f"CASE WHEN i % 2 = 0 THEN 0 ELSE CAST('{HUGE}' AS UHUGEINT) END",
        (0, HUGE),
        atoms={"0": 0.5, str(HUGE): 0.5},
    ),
    "thousands_separators": Hostile("VARCHAR", "format('{:,}', 1000000 + i % 5)"),
}
TYPED = [name for name, column in COLUMNS.items() if column.sql_type != "VARCHAR"]
CASES = [
    (name, domains)
    for name, column in COLUMNS.items()
    for domains in ("discovered", "bounds")
    if domains == "discovered" or column.ends is not None
]


def load(con, columns, rows=ROWS):
    """The table ``t``: a column of each kind."""
    con.execute(f"CREATE TABLE t ({', '.join(f'{name} {COLUMNS[name].sql_type}' for name in columns)})")
    values = ", ".join(f"CAST({COLUMNS[name].value} AS {COLUMNS[name].sql_type})" for name in columns)
    con.execute(f"INSERT INTO t SELECT {values} FROM range({rows}) r(i)")
    return {"columns": {name: entry for name in columns if (entry := COLUMNS[name].entry())}}


def released(con, tmp_path, **options):
    """The texts of the warnings of one release into ``o``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dpsyn_sql.release(con, "t", into="o", ledger=tmp_path / "ledger", **options)
    return [str(warning.message) for warning in caught]


def check_types_and_bounds(con, columns, domains):
    """The types are the source's, no value is NaN or infinite, and declared bounds hold."""
    described = "SELECT column_name, column_type FROM (DESCRIBE {})"
    assert con.execute(described.format("o")).fetchall() == con.execute(described.format("t")).fetchall()
    for name in columns:
        column = COLUMNS[name]
        if column.sql_type == "DOUBLE":
            assert con.execute(f"SELECT count(*) FROM o WHERE NOT isfinite({name})").fetchone() == (0,), name
        if domains == "bounds" and column.ends is not None:
            low, high = (f"CAST('{end}' AS {column.sql_type})" for end in column.ends)
            outside = con.execute(
                f"SELECT count(*) FROM o WHERE {name} NOT BETWEEN {low} AND {high}"
            ).fetchone()
            assert outside == (0,), name


def check_expected(con, name):
    """Nearly all values lie where the source's do, and atoms are exact."""
    column = COLUMNS[name]

    def share(condition):
        return con.execute(f"SELECT avg(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM o").fetchone()[0]

    if column.within is not None:
        low, high = (f"CAST('{end}' AS {column.sql_type})" for end in column.within)
        assert share(f"{name} BETWEEN {low} AND {high}") > 0.97
    for value, wanted in column.atoms.items():
        assert share(f"{name} = CAST('{value}' AS {column.sql_type})") == pytest.approx(wanted, abs=0.05)


@pytest.mark.parametrize(("delta", "epsilon"), [(1e-9, 0.1), (0, 3)])
@pytest.mark.parametrize(
    "domains", ["discovered", pytest.param("bounds", marks=[pytest.mark.slow, pytest.mark.required])]
)
def test_all_of_them_in_one_table(domains, delta, epsilon, tmp_path):
    """Without delta no texts are discovered: of the numbers and dates."""
    columns = COLUMNS if delta else TYPED
    with duckdb.connect() as con:
        bounds = load(con, columns)
        domain = bounds if domains == "bounds" else None
        released(con, tmp_path, epsilon=epsilon, delta=delta, domain=domain, method="independent")
        check_types_and_bounds(con, columns, domains)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize(("name", "domains"), CASES)
def test_a_hostile_column_is_released(name, domains, tmp_path):
    with duckdb.connect() as con:
        bounds = load(con, [name])
        released(con, tmp_path, epsilon=10, domain=bounds if domains == "bounds" else None)
        check_types_and_bounds(con, [name], domains)
        check_expected(con, name)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("domains", ["discovered", "bounds"])
def test_the_years_between_two_clumps_stay_empty(domains, tmp_path):
    with duckdb.connect() as con:
        bounds = load(con, ["two_clumps_of_dates"])
        released(con, tmp_path, epsilon=1, domain=bounds if domains == "bounds" else None)
        early, between, late = con.execute(
            """SELECT avg(CASE WHEN year(two_clumps_of_dates) < 1905 THEN 1 ELSE 0 END),
            avg(CASE WHEN year(two_clumps_of_dates) BETWEEN 1905 AND 1995 THEN 1 ELSE 0 END),
            avg(CASE WHEN year(two_clumps_of_dates) BETWEEN 1999 AND 2001 THEN 1 ELSE 0 END) FROM o"""
        ).fetchone()
        assert between < 0.02 and early == pytest.approx(0.5, abs=0.05) and late > 0.45


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("domains", ["discovered", "bounds"])
def test_a_table_of_no_row_and_of_one(rows, domains, tmp_path):
    columns = ["constant", "denormal", "decimal_38", "two_clumps_of_dates"]
    with duckdb.connect() as con:
        bounds = load(con, columns, rows)
        released(con, tmp_path, epsilon=1, domain=bounds if domains == "bounds" else None)
        check_types_and_bounds(con, columns, domains)


@pytest.mark.slow
@pytest.mark.parametrize(("domains", "epsilon"), [("discovered", 0.1), ("bounds", 10.0)])
def test_three_hundred_columns(domains, epsilon, tmp_path):
    with duckdb.connect() as con:
        columns = ", ".join(
            f"CAST(hash(i, {place}) % {2 + place} AS INTEGER) AS c{place}" for place in range(300)
        )
        con.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(500) r(i)")
        bounds = {f"c{place}": {"type": "numeric", "lower": 0, "upper": 1000} for place in range(300)}
        domain = {"columns": bounds} if domains == "bounds" else None
        released(con, tmp_path, epsilon=epsilon, domain=domain, method="independent")
        assert len(con.execute("DESCRIBE o").fetchall()) == 300
        if domains == "bounds":
            outside = con.execute(
                "SELECT count(*) FROM (UNPIVOT o ON COLUMNS(*)) WHERE value NOT BETWEEN 0 AND 1000"
            ).fetchone()
            assert outside == (0,)
