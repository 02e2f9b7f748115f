"""A table whose rows lie in parts is released as one that lies in one database: the exact counts are the same."""

import re
from importlib import import_module

import duckdb
import pytest
from support.parts import PartedEngine

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingLedger, RecordingNoise, ReplayedNoise
from dpsyn_sql.engines import connections
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.sqltext.fragments import Fragment

MEASURE = import_module("dpsyn_sql.front.measure")


K = 3  # a unit has two rows, of one moment: no lot leaves any of it out, so that counts can be compared
SPEC = {
    "columns": {
        "n": {"type": "numeric", "edges": [0, 1, 7, 9, 40]},
        "c": {"type": "categorical", "categories": [2, 3, 5, 9]},
        "s": {"type": "categorical", "categories": ["a", "b", "it's"], "nullable": True},
        "d": {"type": "temporal", "lower": "2001-01-01", "upper": "2001-03-31", "bins": 3},
    }
}


@pytest.fixture
def con():
    with duckdb.connect() as found:
        found.execute(
            """
            CREATE TABLE t AS SELECT
                (i // 2)::VARCHAR AS who, i % 41 AS n, [2, 3, 5, 7, 9][i % 5 + 1] AS c,
                ['a', 'b', 'it''s', 'zz', NULL][i % 7 % 5 + 1] AS s,
                DATE '2001-01-01' + (i % 90)::INTEGER AS d, 'k' || (i % 3) AS word,
                TIMESTAMP '2001-01-01' + to_minutes(i // 2 % 997 * 60) AS moment
            FROM range(3000) r(i)
            """
        )
        yield found


def released(con, noise, **options):
    recorder = RecordingNoise(noise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MEASURE, "ExactNoise", lambda: recorder)
        made = dpsyn_sql.release(
            con, "t", domain=SPEC, ledger=RecordingLedger(), replace=True, seed=1, epsilon=20.0, **options
        )
    return recorder.calls, con.execute(f"FROM {made.table}").fetchall()


OPTIONS = pytest.mark.parametrize(
    "options",
    [
        pytest.param({"exclude": ("who",)}, marks=pytest.mark.slow),
        {"unit": "who", "most": K, "weights": False},
    ],
    ids=["row", "unit"],
)


@OPTIONS
def test_counts_of_rows_in_parts_are_the_same_and_so_is_the_release(con, monkeypatch, options):
    first, table = released(con, ExactNoise(), **options)
    opened, made, beside = connections.cursor_of, [], []
    relation = Fragment('"memory"."main"."t"')

    def parted(connection):
        unit, driver = options.get("unit"), opened(connection)._connection
        made.append(PartedEngine(connection, relation, 3, unit, driver=driver))
        made[-1].trace = beside.append
        return made[-1]

    monkeypatch.setattr(connections, "cursor_of", parted)
    again, other = released(con, ReplayedNoise(first), **options)
    assert [call.exact.tolist() for call in again] == [call.exact.tolist() for call in first]
    assert other == table
    (engine,) = made
    assert engine.passes > 1
    assert engine.holds == 0
    named = [sql for sql in beside if relation in sql]
    assert all(re.match(r"(--.*\n)*DESCRIBE ", sql) for sql in named)
