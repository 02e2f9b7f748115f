"""The benchmarks measure what they say: errors of values against numpy, and domains of ends alone."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
values = pytest.importorskip("values", reason="the benchmarks are not beside the tests")
real_tables = pytest.importorskip("real_tables", reason="the benchmarks are not beside the tests")


def table(con, name, numbers, kind="DOUBLE"):
    con.execute(f"CREATE TABLE {name} (x {kind})")
    con.executemany(f"INSERT INTO {name} VALUES (?)", [[number] for number in numbers])


def test_errors_are_those_of_numpy(con):
    random = np.random.default_rng(3)
    true, made = random.lognormal(3, 1, 500), random.lognormal(3.2, 0.8, 400)
    table(con, "s", [*true, None, math.nan, math.inf])
    table(con, "c", [*made, None])
    found = values.value_errors(con, "s", "c", "x")
    ordered = [np.quantile(side, values.PERCENTILES, method="inverted_cdf") for side in (true, made)]
    assert found.mean == pytest.approx(abs(true.mean() - made.mean()) / true.mean())
    assert found.deviation == pytest.approx(abs(true.std() - made.std()) / true.std())
    spread = ordered[0][-1] - ordered[0][0]
    assert found.percentiles == pytest.approx(np.abs(ordered[0] - ordered[1]) / spread)
    assert found.percentile == max(found.percentiles)


@pytest.mark.parametrize(("middle", "unit"), [(0.0, 0.1), (1e6, 3.0), (-1.0, 1.0)])
def test_a_mean_is_relative_to_itself_within_limits(con, middle, unit):
    table(con, "s", [middle - 1, middle + 1] * 50)
    table(con, "c", [middle - 0.9, middle + 1.1] * 50)
    assert values.value_errors(con, "s", "c", "x").mean == pytest.approx(0.1 / unit)


def test_a_constant_is_right_or_wrong(con):
    table(con, "s", [2013.0] * 5)
    table(con, "same", [2013.0] * 9)
    table(con, "other", [2013.0, 2014.0])
    same, other = (values.value_errors(con, "s", name, "x") for name in ("same", "other"))
    assert (same.mean, same.deviation, same.percentile) == (0, 0, 0)
    assert (other.mean, other.deviation, other.percentile) == (1, 1, 1)


def test_a_column_without_values(con):
    table(con, "s", [1.0, 2.0])
    table(con, "c", [None, math.nan])
    assert values.value_errors(con, "s", "c", "x").mean == math.inf
    assert values.value_errors(con, "c", "s", "x") is None


def test_values_beyond_the_declared_ends_count_as_these(con):
    table(con, "s", [1.0, 2.0, 224_000.0, None])
    table(con, "c", [1.0, 2.0, 100.0])
    found = values.value_errors(con, "s", "c", "x", (0, 100))
    assert (found.mean, found.deviation, found.percentile) == (0, 0, 0)


@pytest.mark.parametrize("name", list(real_tables.REAL_TABLES))
def test_ends_alone_have_no_bins_and_no_categories(name):
    real = real_tables.REAL_TABLES[name]
    declared, bounds = real.declared()["columns"], real.bounds()["columns"]
    kinds = {column: entry["type"] for column, entry in bounds.items()}
    assert kinds == {c: k for c, k in real.kinds().items() if k in ("numeric", "temporal", "key")}
    for column, entry in bounds.items():
        assert set(entry) <= {"type", "lower", "upper", "nullable"}
        if "edges" in declared[column]:
            assert (entry["lower"], entry["upper"]) == tuple(
                declared[column]["edges"][:: len(declared[column]["edges"]) - 1]
            )
