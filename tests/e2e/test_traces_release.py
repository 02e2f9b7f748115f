"""Traces released whole: rows in order, a planted walk, the stored model, a replay, what is refused."""

import duckdb
import numpy as np
import pytest
from support.ledgers import overview

import dpsyn_sql
from dpsyn_sql.errors import InputError
from dpsyn_sql.front import measure

pytestmark = pytest.mark.filterwarnings("ignore")

PERSONS, MOST, SIDE = 4_000, 12, 4
OPTIONS = {
    "unit": "person",
    "most": MOST,
    "order": "seen",
    "method": "traces",
    "epsilon": 50,
}


def domain(**columns):
    return {
        "columns": {
            "seen": {"type": "temporal", "lower": "2026-01-01", "upper": "2026-12-31"},
            "place": {
                "type": "point",
                "columns": {"y": [0, SIDE], "x": [0, SIDE]},
                "nullable": False,
                "depth": 2,
            },
            "born": {"type": "numeric", "lower": 1950, "upper": 1999, "bins": 5, "per_unit": True},
            **columns,
        }
    }


@pytest.fixture
def con():
    """Persons who stay in a cell of a grid with probability 0.7, or go one to the east (round the world)."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, MOST + 1, PERSONS)
    person = np.repeat(np.arange(PERSONS), sizes)
    first = np.append(True, person[1:] != person[:-1])
    moves = np.where(first, 0, rng.random(person.size) < 0.3)
    begins = np.flatnonzero(first)
    walked = np.cumsum(moves) - np.repeat(np.cumsum(moves)[begins], sizes)
    start = np.repeat(rng.integers(0, SIDE * SIDE, PERSONS), sizes)
    column, row = (start + walked) % SIDE, start // SIDE
    gaps = np.where(first, rng.integers(0, 200, person.size), rng.integers(1, 10, person.size))
    days = np.cumsum(gaps) - np.repeat(np.cumsum(gaps)[begins] - gaps[begins], sizes)
    table = {
        "person": person,
        "day": np.minimum(days, 364),
        "y": row + rng.random(person.size),
        "x": column + rng.random(person.size),
        "born": np.repeat(rng.integers(1950, 2000, PERSONS), sizes),
    }
    with duckdb.connect() as con:
        con.register("columns", table)
        con.execute(
            "CREATE TABLE visits AS SELECT person, TIMESTAMP '2026-01-01' + to_hours((24 * day)::INTEGER) "
            "AS seen, y, x, born FROM columns"
        )
        con.unregister("columns")
        yield con


def released(con, tmp_path, **options):
    given = {"into": "copy", "domain": domain(), "ledger": tmp_path / "ledger", **OPTIONS, **options}
    return dpsyn_sql.release(con, "visits", **given)


def steps(con, table):
    """Shares of steps: within a cell, one to the east, anywhere else."""
    query = f"""
        WITH cells AS (
            SELECT person, seen, floor(y)::INT AS y, floor(x)::INT AS x FROM {table}
        ), pairs AS (
            SELECT y, x, lead(y) OVER unit AS next_y, lead(x) OVER unit AS next_x
            FROM cells WINDOW unit AS (PARTITION BY person ORDER BY seen)
        )
        SELECT
            avg((next_y = y AND next_x = x)::INT), avg((next_y = y AND next_x = (x + 1) % {SIDE})::INT)
        FROM pairs WHERE next_y IS NOT NULL
    """
    return con.execute(query).fetchall()[0]


def test_traces_have_the_walk_the_rows_and_the_persons_of_the_source(con, tmp_path):
    release = released(con, tmp_path)
    stay, east = steps(con, "copy")
    assert stay == pytest.approx(0.7, abs=0.06) and east == pytest.approx(0.3, abs=0.06)
    told = "SELECT count(DISTINCT person), count(*) / count(DISTINCT person) FROM {}"
    (real,), (made,) = (con.execute(told.format(table)).fetchall() for table in ("visits", "copy"))
    assert made == pytest.approx(real, rel=0.05)
    born = "SELECT max(n) FROM (SELECT count(DISTINCT born) AS n FROM copy GROUP BY person)"
    assert con.execute(born).fetchall() == [(1,)]
    late = "SELECT quantile_cont(epoch(seen), [0.1, 0.5, 0.9]) FROM {}"
    (real,), (made,) = (con.execute(late.format(table)).fetchall() for table in ("visits", "copy"))
    assert np.abs(np.array(made) - real).max() < 30 * 86_400
    assert release.certificate()["method"] == "traces"


def test_a_replay_gives_the_same_rows_at_no_cost(con, tmp_path):
    released(con, tmp_path)
    spent = overview(tmp_path / "ledger").accounts
    con.execute("CREATE TABLE first AS FROM copy")
    released(con, tmp_path, replace=True)
    assert overview(tmp_path / "ledger").accounts == spent
    assert con.execute("FROM first EXCEPT ALL FROM copy").fetchall() == []


def test_sql_draws_more_traces_of_the_same_walk(con, tmp_path):
    released(con, tmp_path)
    con.execute("CREATE TABLE more AS FROM dpsyn_sample('copy', 4000, 5)")
    assert con.execute("SELECT count(DISTINCT person) FROM more").fetchone() == (4000,)
    assert np.abs(np.array(steps(con, "more")) - steps(con, "copy")).max() < 0.05
    back = con.execute(
        "SELECT count(*) FROM (SELECT seen < lag(seen) OVER (PARTITION BY person ORDER BY rowid) AS back "
        "FROM more) WHERE back"
    ).fetchone()
    assert back == (0,)


def test_a_column_of_labels_can_be_the_place(con, tmp_path):
    con.execute("ALTER TABLE visits ADD COLUMN stop VARCHAR")
    con.execute("UPDATE visits SET stop = 'stop ' || floor(x)::INT")
    stops = {"type": "categorical", "categories": [f"stop {x}" for x in range(SIDE)], "other": False}
    released(con, tmp_path, domain=domain(stop=stops), method={"name": "traces", "place": "stop"})
    query = """
        SELECT avg((next = stop)::INT) FROM (
            SELECT stop, lead(stop) OVER (PARTITION BY person ORDER BY seen) AS next FROM copy
        ) WHERE next IS NOT NULL
    """
    assert con.execute(query).fetchall()[0][0] == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": False, "order": None}, "give unit= and order="),
        ({"order": None}, "give unit= and order="),
        ({"method": {"name": "traces", "place": "shop"}}, "no column of rows is called 'shop'"),
        ({"method": {"name": "traces", "place": "born"}}, "no column of rows is called 'born'"),
    ],
)
def test_what_makes_no_traces_is_refused_before_the_debit(con, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        released(con, tmp_path, **options)
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'copy'").fetchall() == [(0,)]


def test_discovery_counts_one_row_of_a_unit_and_its_noise_hides_one(con, tmp_path, monkeypatch):
    seen = {}

    class Counter(measure.SqlDiscoveryCounter):
        def __init__(self, *arguments, unit=None, **options):
            seen["rows"] = unit.max_rows
            super().__init__(*arguments, unit=unit, **options)

    class Door(measure.LocalCurator):
        def discover(self, counter, rows_per_unit):
            seen["sensitivity"] = rows_per_unit
            super().discover(counter, rows_per_unit)

    monkeypatch.setattr(measure, "SqlDiscoveryCounter", Counter)
    monkeypatch.setattr(measure, "LocalCurator", Door)
    released(con, tmp_path)
    assert seen == {"rows": 1, "sensitivity": 1}
