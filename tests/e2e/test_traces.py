"""Traces: many rows a person, a step from each to the next, released whole."""

from pathlib import Path

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.errors import SourceError

CHECKINS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "gowalla_nyc" / "checkins.parquet"
STEPS = """
    SELECT user_id, lat, lon, dayofweek(ts_utc) * 24 + hour(ts_utc) AS hour_of_week,
        lead(lat) OVER (PARTITION BY user_id ORDER BY ts_utc) - lat AS step_lat,
        lead(lon) OVER (PARTITION BY user_id ORDER BY ts_utc) - lon AS step_lon
    FROM checkins
"""
BOX = ([40.4, 41.0], [-74.3, -73.6])
DOMAIN = {
    "columns": {
        "hour_of_week": {"type": "numeric", "lower": 0, "upper": 167},
        "place": {"type": "point", "columns": dict(zip(("lat", "lon"), BOX, strict=True))},
        "step": {
            "type": "point",
            "columns": {"step_lat": [-0.6, 0.6], "step_lon": [-0.7, 0.7]},
            "nullable": True,
        },
    }
}


def options(folder, **others):
    return {
        "into": "copy",
        "domain": DOMAIN,
        "ledger": folder / "ledger",
        "unit": "user_id",
        "most": 1,
        **others,
    }


def test_steps_of_a_few_people(tmp_path):
    with duckdb.connect(str(tmp_path / "w.duckdb")) as con:
        con.execute(
            "CREATE TABLE checkins AS SELECT i % 300 AS user_id, 40.5 + (i % 7) * 0.05 AS lat, "
            "-74.2 + (i % 5) * 0.1 AS lon, TIMESTAMP '2010-01-01' + INTERVAL (i) HOUR AS ts_utc FROM range(3000) r(i)"
        )
        with pytest.raises(SourceError, match="a window function"):
            dpsyn_sql.release(con, STEPS, **options(tmp_path, unit="row"))
        assert not (tmp_path / "ledger").exists()
        release = dpsyn_sql.release(con, STEPS, **options(tmp_path, epsilon=10, most=4, weights=False))
        assert release.rows == pytest.approx(1200, abs=400)
        rows = con.execute(
            "SELECT count(*), count(step_lat), count(step_lon), bool_and(lat BETWEEN 40.4 AND 41), "
            "bool_and(step_lon BETWEEN -0.7 AND 0.7) FROM copy"
        ).fetchone()
        assert rows[1] == rows[2] <= rows[0] and rows[3:] == (True, True)


@pytest.mark.slow
@pytest.mark.skipif(not CHECKINS.exists(), reason="needs ../shared/data/gowalla_nyc")
def test_steps_are_as_long_as_in_the_source(tmp_path):
    """Quartiles and the ninth decile, in kilometres, of at most 10 rows a person as the release counts them."""
    with duckdb.connect(str(tmp_path / "w.duckdb")) as con:
        con.execute(f"CREATE TABLE checkins AS FROM '{CHECKINS}'")
        dpsyn_sql.release(con, STEPS, **options(tmp_path, epsilon=10, most=10, weights=False))
        length = "111.2 * sqrt(pow(step_lat, 2) + pow(step_lon * 0.758, 2))"
        order = "hash(lat, step_lat, hour_of_week)"
        bounded = f"(FROM ({STEPS}) QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY {order}) <= 10)"
        truth, copy = (
            con.execute(f"SELECT quantile_cont({length}, [0.25, 0.5, 0.75, 0.9]) FROM {rows}").fetchone()[0]
            for rows in (bounded, "copy")
        )
    assert copy == pytest.approx(truth, rel=0.4)
