"""Tables as analysts have them: every type and role, hard values, and output that loads into the DDL."""

import duckdb
import pytest

import dpsyn_sql

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

DDL = """CREATE TABLE {name} (
    id INTEGER PRIMARY KEY,
    u UUID NOT NULL,
    code VARCHAR UNIQUE,
    b BOOLEAN NOT NULL,
    t TINYINT,
    h HUGEINT NOT NULL CHECK (h BETWEEN -170141183460469231731687303715884105728 AND 5),
    d DECIMAL(12,3) NOT NULL CHECK (d >= -5 AND d <= 5),
    f FLOAT,
    x DOUBLE NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('a', 'it''s', '')),
    zone INTEGER NOT NULL CHECK (zone IN (1, 5, 265)),
    day DATE NOT NULL CHECK (day BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'),
    moment TIMESTAMP,
    zoned TIMESTAMPTZ,
    o TIME,
    empty DOUBLE,
    partly DATE,
    twice INTEGER NOT NULL,
    "{{{{ x }}}}" INTEGER CHECK ("{{{{ x }}}}" >= 0),
    CHECK (zone = 1 OR kind <> ''),
    CHECK (d <= 4 OR b)
)"""

ROWS = """INSERT INTO source SELECT
    i, uuid(), 'c' || i, i % 3 = 0, (i % 256) - 128,
    CASE i % 3 WHEN 0 THEN CAST('-170141183460469231731687303715884105728' AS HUGEINT) ELSE 5 END,
    CASE WHEN i % 3 = 0 THEN 4.999 ELSE -5 END,
    CASE i % 4 WHEN 0 THEN 'nan'::FLOAT WHEN 1 THEN 'inf'::FLOAT WHEN 2 THEN -3e38::FLOAT END,
    CASE i % 4 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN '-inf'::DOUBLE WHEN 2 THEN 1.7e308 ELSE -0.0 END,
    CASE i % 2 WHEN 0 THEN 'a' ELSE 'it''s' END, CASE i % 2 WHEN 0 THEN 5 ELSE 265 END,
    CASE i % 2 WHEN 0 THEN DATE '0001-01-01' ELSE DATE '9999-12-31' END,
    CASE i % 3 WHEN 0 THEN 'infinity'::TIMESTAMP WHEN 1 THEN '0001-01-01'::TIMESTAMP END,
    CASE i % 3 WHEN 0 THEN '-infinity'::TIMESTAMPTZ WHEN 1 THEN '9999-12-31 23:59:59+00'::TIMESTAMPTZ END,
    CASE i % 3 WHEN 0 THEN TIME '24:00:00' WHEN 1 THEN TIME '00:00:00' END,
    NULL, CASE WHEN i % 100 >= 43 THEN DATE '2020-01-01' END, 2 * i, i % 5
FROM range(1, 3001) r(i)"""

DOMAIN = {
    "columns": {
        "t": {"type": "numeric", "lower": -128, "upper": 127, "nullable": True},
        "f": {"type": "numeric", "lower": -3.4e38, "upper": 3.4e38, "bins": 4, "nullable": True},
        "x": {"type": "numeric", "lower": -1.79e308, "upper": 1.79e308, "bins": 4},
        "moment": {
            "type": "temporal",
            "lower": "0001-01-01",
            "upper": "9999-12-31",
            "bins": 3,
            "nullable": True,
        },
        "zoned": {
            "type": "temporal",
            "edges": ["0001-01-01", "2000-01-01", "9999-12-31"],
            "granularity": "day",
            "nullable": True,
        },
        "o": {"type": "temporal", "lower": "00:00", "upper": "23:59:59.999999", "bins": 24, "nullable": True},
        "empty": {"type": "numeric", "lower": 0, "upper": 1, "bins": 2, "nullable": True},
        "partly": {"type": "temporal", "lower": "2020-01-01", "upper": "2020-01-31", "nullable": True},
        "twice": {"derived": "zone * 2 + CASE WHEN t > 100 THEN 1 ELSE 0 END"},
        "{{ x }}": {"type": "numeric", "lower": 0, "upper": 9, "nullable": True},
    },
    "never": ["b AND t > 50"],
}


@pytest.fixture(scope="module")
def con():
    made = duckdb.connect()
    made.execute(DDL.format(name="source"))
    made.execute(ROWS)
    yield made
    made.close()


@pytest.mark.parametrize("method", ["independent", "adaptive"])
def test_the_output_loads_into_the_sources_ddl(con, method):
    into = f"out_{method}"
    done = dpsyn_sql.release(con, "source", into=into, domain=DOMAIN, method=method, epsilon=20, rows=2000)
    assert done.rows == 2000 and con.execute(f"SELECT count(*) FROM {into}").fetchone() == (2000,)
    assert con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {into})").fetchall() == (
        con.execute("SELECT column_name, column_type FROM (DESCRIBE source)").fetchall()
    )
    con.execute(DDL.format(name=f"loaded_{method}"))
    con.execute(f"INSERT INTO loaded_{method} FROM {into}")
    nulls, some, impossible, wrong = con.execute(
        f"""SELECT avg(CASE WHEN empty IS NULL THEN 1 ELSE 0 END), avg(CASE WHEN partly IS NULL THEN 1 ELSE 0 END),
        count(*) FILTER (b AND t > 50), count(*) FILTER (twice NOT IN (zone * 2, zone * 2 + 1)) FROM {into}"""
    ).fetchone()
    assert nulls > 0.95 and abs(some - 0.43) < 0.1 and impossible == wrong == 0
    hours = con.execute(f"SELECT count(*) FROM {into} WHERE epoch_us(zoned) % 86400000000 <> 0").fetchone()
    assert hours == (0,)


def test_hard_text_is_a_code_never_an_error(tmp_path):
    con = duckdb.connect()
    con.execute(
        'CREATE TABLE t ("caf\u00e9" VARCHAR, "cafe\u0301" VARCHAR, "{{ x }}" VARCHAR NOT NULL, n INTEGER)'
    )
    con.execute(
        "INSERT INTO t SELECT 'v' || i, CASE WHEN i % 2 = 0 THEN 'a' END, 'k', i FROM range(999) r(i)"
    )
    con.execute("INSERT INTO t SELECT repeat('x', 10000000), chr(0) || '\u202e', '', 5")
    for options in ({"epsilon": 1}, {"epsilon": 5, "domain": {"columns": {"café": {"type": "key"}}}}):
        done = dpsyn_sql.release(con, "t", into="o", replace=True, new_debit=True, rows=500, **options)
        assert done.rows == 500
        names = [row[0] for row in con.execute("DESCRIBE o").fetchall()]
        assert names == ["caf\u00e9", "cafe\u0301", "{{ x }}", "n"]
        assert con.execute('SELECT count(*) FROM o WHERE "{{ x }}" IS NULL').fetchone() == (0,)
    con.close()
