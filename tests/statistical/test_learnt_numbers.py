"""Numbers that nobody declared, or with bounds alone, keep their values at epsilon 1: whole releases, real noise."""

import duckdb
import pytest

import dpsyn_sql

pytestmark = pytest.mark.slow

ROWS = 60_000
TABLE = f"""CREATE TABLE t AS SELECT
    CAST(least(1700000, CASE WHEN random() < 0.17 THEN 0 ELSE
        exp(7.86 + 1.3 * sqrt(-2 * ln(random() + 1e-12)) * cos(2 * pi() * random())) END) AS BIGINT) AS payment,
    CAST(CASE WHEN random() < 0.46 THEN 511 ELSE least(510, -120 * ln(random() + 1e-12)) END AS INTEGER) AS counter,
    CASE WHEN random() < 0.77 THEN 1.0 ELSE round(random(), 2) END AS rate,
    1 + 0.5 * floor(6 * random() * random()) AS floors,
    1 + CAST(random() < 0.6 AS INTEGER) AS sex
    FROM range({ROWS})"""


@pytest.mark.parametrize("bounds", [False, True])
def test_values_are_believable(bounds):
    domain = {"columns": {"payment": {"type": "numeric", "lower": 0, "upper": 2_000_000}}} if bounds else None
    with duckdb.connect() as con:
        con.execute(TABLE)
        con.execute("ALTER TABLE t ALTER floors TYPE DOUBLE")
        dpsyn_sql.release(con, "t", epsilon=1, domain=domain)

        def both(what):
            return [con.execute(f"SELECT {what} FROM {name}").fetchone()[0] for name in ("t", "t_synthetic")]

        for column, far in (("payment", 0.2), ("counter", 0.02), ("rate", 0.02), ("floors", 0.02)):
            true, copy = both(f"avg({column})")
            assert copy == pytest.approx(true, rel=far), column
        true, copy = both("median(payment)")
        assert copy == pytest.approx(true, rel=0.05)
        true, copy = both("avg(CAST(counter = 511 AS INTEGER))")
        assert copy == pytest.approx(true, abs=0.01)
        assert both("count(*) FILTER (rate > 1)")[1] < 0.01 * ROWS
        # Noise may leave a thin bin between two values: some rows may lie there.
        steps = "floors NOT IN (1, 1.5, 2, 2.5, 3, 3.5)"
        assert both(f"count(*) FILTER ({steps})")[1] < 0.01 * ROWS
        assert both("count(DISTINCT floors) FILTER (floors IN (1, 1.5, 2, 2.5, 3, 3.5))")[1] == 6
        assert set(both("list(DISTINCT sex) FILTER (sex IS NOT NULL)")[1]) == {1, 2}
        assert both("min(payment)")[1] >= 0 and both("max(payment)")[1] <= 2_100_000
