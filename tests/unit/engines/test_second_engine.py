"""A second engine is one class and one dialect: a table is released through another engine than DuckDB's own.

The engine here is DuckDB behind the members of the protocol alone, and it spells in another way whatever a
dialect spells. The exact counts behind the door must not know the difference.
"""

import re
from dataclasses import replace
from importlib import import_module

import duckdb
import pytest
from support.parts import PartedEngine

import dpsyn_sql
from dpsyn_sql.auditing.testing import RecordingLedger, RecordingNoise, ReplayedNoise
from dpsyn_sql.engines import connections
from dpsyn_sql.engines.counting_engine import CountingEngine
from dpsyn_sql.private.measure.noise import ExactNoise
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, literal

MEASURE = import_module("dpsyn_sql.front.measure")


def cases(pairs, looked_at):
    listed = " ".join(f"WHEN {looked_at} = {key} THEN {value}" for key, value in pairs)
    return Fragment(f"(CASE {listed} END)")


SECOND = replace(
    DUCKDB,
    name="second",
    code_types=(("INT2", 15), ("INT4", 31), ("INT8", 63)),
    create_temporary=Fragment("CREATE TEMPORARY TABLE"),
    temporary_schema=(),
    of_labels=lambda pairs, text: cases(((literal(label), code) for label, code in pairs), text),
    of_places=lambda values, place: cases(enumerate(values), place),
    text_bytes=lambda text: Fragment(f"from_hex(hex({text}))"),
    guarded_cast=lambda text, kind: Fragment(f"TRY(CAST({text} AS {kind}))"),
    matches=lambda text, pattern: Fragment(f"(regexp_matches({text}, '^({pattern})$'))"),
    epoch=lambda moment, nanoseconds: Fragment(
        f"CAST(date_diff('{'nano' if nanoseconds else 'micro'}second', TIMESTAMP '1970-01-01', {moment}) AS INT8)"
    ),
    lot=lambda drawn, unit, key: Fragment(f"md5(concat_ws('|', {key}, {unit}, {', '.join(drawn)}))"),
)
OURS = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "CREATE TEMP TABLE", '"temp"."main"', "MAP {", "([")
OURS += ("encode(", "TRY_CAST", "epoch_us(", "epoch_ns(", "hash(", "xor(")

K = 3  # a unit has two rows, of one moment: no lot leaves any of it out, so that counts can be compared
SPEC = {
    "columns": {
        "n": {"type": "numeric", "edges": [0, 1, 7, 9, 40]},
        "c": {"type": "categorical", "categories": [2, 3, 5, 9]},
        "s": {"type": "categorical", "categories": ["a", "b", "it's"], "nullable": True},
        "d": {"type": "temporal", "lower": "2001-01-01", "upper": "2001-03-31", "bins": 3},
    }
}


class Second(CountingEngine):
    """``SourceEngine`` and nothing more; all rows are one part, as with DuckDB's own."""

    dialect = SECOND
    in_parts = False

    def __init__(self, behind):
        super().__init__()
        self._behind, self.ran, behind.trace = behind, [], lambda sql: self.ran.append(sql)
        for name in ("execute", "fetch", "load", "transaction", "drop_temporary", "forbid", "close"):
            setattr(self, name, getattr(behind, name))

    @property
    def private(self):
        return self._behind.private


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
def test_counts_of_a_second_engine_are_the_same_and_so_is_the_release(con, monkeypatch, options):
    first, table = released(con, ExactNoise(), **options)
    opened, made = connections.cursor_of, []

    def second(connection):
        made.append(Second(opened(connection)))
        return made[-1]

    monkeypatch.setattr(connections, "cursor_of", second)
    again, other = released(con, ReplayedNoise(first), **options)
    assert [call.exact.tolist() for call in again] == [call.exact.tolist() for call in first]
    assert other == table
    text = "\n".join(line for sql in made[0].ran for line in sql.splitlines() if not line.startswith("--"))
    counting = text[text.index("CREATE TEMPORARY TABLE") :]
    assert [piece for piece in OURS if piece in counting] == []
    spelled = ["INT2", "(CASE WHEN", "from_hex(", "date_diff("] + ["md5("] * ("unit" in options)
    assert [piece for piece in spelled if piece not in counting] == []


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
