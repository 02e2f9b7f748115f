"""So little epsilon that the noisy total is millions of rows of nothing: written in bounded memory."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.fitted import ROWS_OF_NOISE, rows_wanted

CHILD = """
import resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, (5 * 2**29, 5 * 2**29))
warnings.simplefilter("ignore")
import duckdb, dpsyn_sql

sizes = [4, 16, 7, 15, 6, 5, 2, 42, 74, 100, 70, 90, 30, 9, 2]
spec = {"columns": {f"a{i}": {"type": "categorical", "categories": list(range(s))} for i, s in enumerate(sizes)}}
con = duckdb.connect(sys.argv[1] + "/w.duckdb")
columns = ", ".join(f"(hash(i, {k}) % {s})::INTEGER AS a{k}" for k, s in enumerate(sizes))
con.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(45000) AS r(i)")
for number in range(12):  # about half of the totals are above zero
    options = dict(domain=spec, epsilon=1e-6, delta=float(sys.argv[2]), new_debit=True)
    result = dpsyn_sql.release(con, "t", into=f"o{number}", **options)
    assert result.rows <= 1_000_000, result.rows
    if result.rows:
        break
print(result.rows)
"""


@pytest.mark.parametrize(
    ("total", "sigma", "rows"),
    [
        (83_000_000.2, 3e7, ROWS_OF_NOISE),
        (83_000_000.2, 2e7, 83_000_000),
        (-5e7, 5e7, 0),
        (400.0, 300.0, 400),
        (45_222.0, 1.0, 45_222),
    ],
)
def test_rows_by_the_noisy_total_and_its_error(total, sigma, rows):
    table = NoisyMarginal(("a",), np.zeros(1, dtype=np.int64), sigma)
    assert rows_wanted(SimpleNamespace(model=SimpleNamespace(total=total), measurements=(table,))) == rows


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["1e-9", "0"])
def test_bounded_memory_at_the_least_epsilon(tmp_path, delta):
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), delta], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr[-2000:]
