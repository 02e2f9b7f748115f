"""No answer that noise can give fails a release: from answers as hostile as noise can make them to rows.

The noise source is replaced by one that answers each question with a pattern, whatever the counts are.
"""

import warnings
from importlib import import_module

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.methods import METHODS
from dpsyn_sql.private.measure.noise import MOST_ROWS

MEASURE = import_module("dpsyn_sql.front.measure")
SIZES = [1_000, 10**6, 10**12, MOST_ROWS, np.iinfo(np.int64).max]


def one(place):
    def answers(values, size, _):
        found = np.zeros_like(values)
        found[place(len(values)) : place(len(values)) + 1] = size
        return found

    return answers


PATTERNS = {
    "zero": lambda values, _, __: np.zeros_like(values),
    "true": lambda values, _, __: values.copy(),
    "all": lambda values, size, _: np.full_like(values, size),
    "none": lambda values, size, _: np.full_like(values, -size),
    "first": one(lambda number: 0),
    "middle": one(lambda number: number // 2),
    "last": one(lambda number: max(0, number - 1)),
    "every other": lambda values, size, _: np.arange(len(values)) % 2 * size,
    "alternating": lambda values, size, _: np.where(np.arange(len(values)) % 2, size, -size),
    "few": lambda values, size, rng: np.where(rng.random(len(values)) < 0.05, size, 0),
    "signs": lambda values, size, rng: np.where(rng.random(len(values)) < 0.5, size, -size),
    "all sizes": lambda values, size, rng: (size ** (0.99 * rng.random(len(values)))).astype(np.int64),
    "normal": lambda values, size, rng: np.rint(size / 8 * rng.normal(size=len(values)).clip(-7, 7)).astype(
        int
    ),
}


class Answers:
    """Every question is answered by ``pattern``, or each by another one at random if it is None."""

    def __init__(self, pattern, size, seed):
        self.pattern, self.size, self.rng = pattern, size, np.random.default_rng(seed)

    def gaussian(self, values, scale):
        names, sizes = sorted(PATTERNS), SIZES if self.size is None else [self.size]
        name = names[self.rng.integers(len(names))] if self.pattern is None else self.pattern
        size = sizes[self.rng.integers(len(sizes))]
        return np.asarray(PATTERNS[name](values, size, self.rng), dtype=np.int64)

    laplace = gaussian

    def select(self, scores, scale, kind, number):
        return self.rng.permutation(len(scores))[:number]


MOST = {"FLOAT": "3.4028234663852886e38", "DOUBLE": "1.7976931348623157e308"}
COLUMNS = {
    "b": "i % 2 = 0",
    "tiny": "(i % 100)::TINYINT",
    "small": "i::SMALLINT",
    "n": "(i * 1000)::INTEGER",
    "big": "CASE WHEN i % 20 = 0 THEN 9223372036854775807 ELSE i * 1000003 END",
    "huge": "CASE WHEN i % 20 = 0 THEN 170141183460469231731687303715884105727 ELSE -i END::HUGEINT",
    "unsigned": "i::UHUGEINT",
    "single": f"CASE WHEN i % 20 = 0 THEN {MOST['FLOAT']} ELSE i / 7 END::FLOAT",
    "powers": "(2.0::DOUBLE ** (i % 120) * CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END)::FLOAT",
    "double": f"CASE WHEN i % 20 = 0 THEN {MOST['DOUBLE']} ELSE i / 7 END::DOUBLE",
    "below": f"CASE WHEN i % 20 = 0 THEN -{MOST['DOUBLE']} WHEN i % 3 = 0 THEN 1e-310 END::DOUBLE",
    "money": "(i / 100)::DECIMAL(10,2)",
    "parts": "(i / 1000.0)::DECIMAL(18,18)",
    "long": "i::DECIMAL(38,3)",
    "day": "CASE WHEN i % 20 = 0 THEN DATE '9999-12-31' ELSE DATE '2001-01-01' + i::INTEGER END",
    "clock": "TIME '01:00:00' + to_seconds(i)",
    "moment": "TIMESTAMP '2001-01-01' + to_seconds(i * 100)",
    "nanos": "(TIMESTAMP '2001-01-01' + to_seconds(i * 100))::TIMESTAMP_NS",
    "seconds": "(TIMESTAMP '2001-01-01' + to_seconds(i * 100))::TIMESTAMP_S",
    "zoned": "(TIMESTAMP '2001-01-01' + to_seconds(i * 100))::TIMESTAMPTZ",
    "text": "'k' || (i % 4)",
    "code": "'A' || (i % 10) || (i % 3)",
    "mood": "['sad', 'ok'][i % 2 + 1]::mood",
    "id": "uuid()",
    "empty": "NULL::INTEGER",
    "lat": "50 + (i % 100) / 100",
    "lon": "4 + (i % 77) / 100",
    "who": "(i // 3)::VARCHAR",
}
FOUND = [
    ["b", "tiny", "text", "mood"],
    ["small", "n", "empty", "id"],
    ["big", "single", "day"],
    ["huge", "powers", "code"],
    ["double", "unsigned", "clock"],
    ["below", "money", "zoned"],
    ["parts", "moment", "long"],
    ["nanos", "seconds", "text"],
]
DECLARED = {
    "b": {"type": "categorical", "categories": [True, False]},
    "text": {"type": "categorical", "categories": ["k0", "k1"], "nullable": True},
    "n": {"type": "numeric", "lower": -5, "upper": 9_999},
    "huge": {"type": "numeric", "lower": -(2**120), "upper": 2**120, "bins": 9},
    "powers": {"type": "numeric", "lower": 0.1, "upper": 10.3, "bins": 10, "granularity": 0.1},
    "single": {"type": "numeric", "lower": -0.1, "upper": float(MOST["FLOAT"])},
    "double": {"type": "numeric", "lower": 0, "upper": float(MOST["DOUBLE"]), "bins": 7},
    "below": {"type": "numeric", "lower": -float(MOST["DOUBLE"]), "upper": 1e10},
    "money": {"type": "numeric", "lower": 0, "upper": 5, "bins": 8},
    "day": {"type": "temporal", "lower": "2000-01-01", "upper": "9999-12-31", "granularity": "month"},
    "moment": {"type": "temporal", "lower": "2000-01-01", "upper": "2010-01-01", "bins": 30},
    "clock": {"type": "temporal", "lower": "00:00:00", "upper": "23:59:59", "bins": 24},
}
TREES = {
    "code": {"type": "string", "alphabet": "A0-9", "longest": 3},
    "text": {
        "type": "taxonomy",
        "parents": {"k0": "a", "k1": "a", "k2": "b", "k3": "b", "a": "all", "b": "all"},
    },
    "powers": {"type": "dyadic", "lower": 0, "upper": 500, "depth": 6},
    "day": {"type": "dyadic", "lower": "2000-01-01", "upper": "2010-01-01", "depth": 6},
}
PLACE = {"type": "point", "columns": {"lat": [40, 60], "lon": [0, 9]}, "depth": 6}
TABLES = [
    *((names, {}) for names in FOUND),
    *(
        (names, {name: DECLARED[name] for name in names})
        for names in (list(DECLARED)[:6], list(DECLARED)[6:])
    ),
    *(([name], {name: TREES[name]}) for name in TREES),
    (["lat", "lon"], {"place": PLACE}),
    (["code", "day", "n"], {"code": TREES["code"], "day": TREES["day"]}),
]


def released(pattern, size, seed, table, method, **options):
    """The rows of a release whose questions get these answers, and the result."""
    names, domain = table
    if options.get("unit"):
        names = [*names, "who"]
    with duckdb.connect() as con, warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(MEASURE, "ExactNoise", lambda: Answers(pattern, size, seed))
        con.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
        columns = ", ".join(f"{COLUMNS[name]} AS {name}" for name in names)
        con.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(200) AS r(i)")
        options = {"rows": 40, "epsilon": 1.0, "seed": 1, "ledger": MemoryLedger(), **options}
        made = dpsyn_sql.release(con, "t", into="out", domain={"columns": domain}, method=method, **options)
        types = "SELECT column_name, column_type FROM (DESCRIBE {})"
        assert con.execute(types.format("out")).fetchall() == con.execute(types.format("t")).fetchall()
        rows = con.execute("FROM out").fetchall()
        assert len(rows) == made.rows
        return rows, made


def methods_for(table):
    """Trees alone are what ``hierarchical`` takes."""
    trees = [*TREES.values(), PLACE]
    whole = table[1] and all(spec in trees for spec in table[1].values()) and "n" not in table[0]
    return sorted([*METHODS, "hierarchical"]) if whole else sorted(METHODS)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_question_answered_alike(pattern):
    start = list(PATTERNS).index(pattern)
    for turn in range(3):
        size = SIZES[(start + turn) % len(SIZES)]
        table = TABLES[(start + 3 * turn) % len(TABLES)]
        methods = methods_for(table)
        rows, _ = released(pattern, size, turn, table, methods[(start + turn) % len(methods)])
        assert len(rows) == 40


@pytest.mark.slow
@pytest.mark.required
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(TABLES).flatmap(
        lambda table: st.tuples(st.just(table), st.sampled_from(methods_for(table)))
    ),
    st.sampled_from([None, 10**6]),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_every_question_answered_differently(chosen, size, seed, unit):
    table, method = chosen
    of_units = {"unit": "who", "most": 2, "weights": False} if unit else {}
    rows, _ = released(None, size, seed, table, method, **of_units)
    assert len(rows) == 40


@pytest.mark.parametrize(("name", "type"), [("single", "FLOAT"), ("double", "DOUBLE")])
def test_the_largest_value_of_a_type_is_found_where_many_rows_have_it(name, type):
    with duckdb.connect() as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute(f"CREATE TABLE t AS SELECT {COLUMNS[name]} AS x FROM range(20000) AS r(i)")
        dpsyn_sql.release(con, "t", into="out", ledger=MemoryLedger(), epsilon=5.0)
        most = f"{MOST[type]}::{type}"
        shares = f"avg(CASE WHEN x = {most} THEN 1 ELSE 0 END), avg(CASE WHEN x > 4000 AND x < {most} THEN 1 ELSE 0 END)"
        found, between = con.execute(f"SELECT {shares} FROM out").fetchone()
        assert found == pytest.approx(0.05, abs=0.01)
        assert between < 0.005  # noise gives some ten rows to a range in between now and then


def test_more_rows_than_the_disk_holds_are_refused_and_cost_nothing_more(tmp_path):
    source, into = tmp_path / "t.parquet", tmp_path / "out.parquet"
    duckdb.sql(f"COPY (SELECT i % 2 = 0 AS b FROM range(100) AS r(i)) TO '{source}'")
    options = {"into": into, "epsilon": 1.0, "ledger": tmp_path / "ledger", "method": "independent"}
    options["domain"] = {"columns": {"b": DECLARED["b"]}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MEASURE, "ExactNoise", lambda: Answers("all", 10**15, 0))
        with pytest.raises(dpsyn_sql.errors.PublishError, match=r"[\d,]{15,} rows.*give rows="):
            dpsyn_sql.release(None, source, **options)
    assert not into.exists()
    made = dpsyn_sql.release(None, source, rows=7, **options)
    assert made.rows == 7 and made.replayed
