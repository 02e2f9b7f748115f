"""What the output's other columns are: keys, unit ids, constants, computed ones; and what no row may be."""

import re
from decimal import Decimal
from itertools import pairwise

import duckdb
import numpy as np
import pytest
from support.publishing import publish

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.roles import Constant, Derived, Key, UnitId, capacity, surrogate
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import DomainError, InternalError, PublishError
from dpsyn_sql.rows.write import staging
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.rows.write.publish import Destination
from dpsyn_sql.rows.write.staging import append, possible_statements, replaced_rows, stage_rows
from dpsyn_sql.sqltext.fragments import Fragment

STAGED = Fragment("temp.staged")
AGE = Attribute("age", "INTEGER", "numeric", edges=tuple(range(101)), nullable=True)
WORK = Attribute("work", "VARCHAR", "categorical", ("none", "some"))


@pytest.fixture
def engine(tmp_path):
    made = DuckDBEngine(duckdb.connect(str(tmp_path / "out.duckdb")))
    yield made
    made.close()


TABLE = Destination(kind="table", names={"rows": "result"}, home=("out", "main"), replace=True)


def checked(engine, *, roles=(), never=(), measured=(AGE, WORK), order=None):
    names = [item.name for item in (*measured, *roles)]
    shape = Shape(tuple(measured), tuple(roles), tuple(order or names), tuple(never))
    return check_expressions(shape, engine, DuckDBCatalog(engine))


def uniform(engine, shape):
    """Draws independent uniform codes, deterministic in its seed."""

    def batches(rows, seed):
        random = np.random.default_rng(seed)
        sizes = [attribute.size for attribute in shape.domain.attributes]
        for start in range(0, rows, 1000):
            count = min(1000, rows - start)
            yield np.column_stack([random.integers(0, size, count) for size in sizes])

    return lambda rows, seed, first: append(engine, shape.domain, batches(rows, seed), STAGED, first)


def written(engine, shape, rows=2000, seed=5, units=None):
    engine.execute(f"DROP TABLE IF EXISTS {STAGED}", step="test")
    count = stage_rows(engine, shape, uniform(engine, shape), rows, STAGED, seed)
    publish(engine, TABLE, shape, STAGED, seed, units)
    assert count == rows
    return engine._connection.execute("FROM result").fetchall()


def types(engine):
    return {name: kind for name, kind, *_ in engine._connection.execute("DESCRIBE result").fetchall()}


KEY_TYPES = [
    *("TINYINT", "UTINYINT", "SMALLINT", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT"),
    *(
        "DECIMAL(5,2)",
        "DECIMAL(3,3)",
        "DECIMAL(38,0)",
        "DECIMAL(38,38)",
        "FLOAT",
        "DOUBLE",
        "VARCHAR",
        "UUID",
    ),
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"),
    *("BOOLEAN", "ENUM('a', 'it''s', '')", "BLOB"),
]


@pytest.mark.parametrize("sql_type", KEY_TYPES)
def test_fresh_values_are_distinct_up_to_the_capacity_of_the_type(engine, sql_type):
    most = capacity(parse_type(sql_type))
    for count in {min(most or 1000, 1000), min(most or 70_000, 70_000)}:
        value = surrogate(parse_type(sql_type), Fragment("n"), count, "key|k", 1)
        sql = f"SELECT count(DISTINCT v), count(v), any_value(typeof(v)) FROM (SELECT {value} AS v FROM range({count}) r(n))"
        distinct, present, kind = engine._connection.execute(sql).fetchone()
        assert distinct == present == count
        assert kind == sql_type


def test_keys_look_as_they_should(engine):
    roles = [Key("id", "BIGINT"), Key("name", "VARCHAR"), Key("u", "UUID"), Key("d", "DECIMAL(9,2)")]
    rows = written(engine, checked(engine, roles=roles), rows=500)
    ids, names, uuids, decimals = ([row[i] for row in rows] for i in (2, 3, 4, 5))
    assert sorted(ids) == list(range(1, 501)) and abs(np.corrcoef(ids, range(500))[0, 1]) < 0.2
    assert sorted(names) == [f"key-{i:06}" for i in range(1, 501)]
    assert abs(np.corrcoef(ids, [int(name[4:]) for name in names])[0, 1]) < 0.2
    assert len(set(uuids)) == 500 and all(u.version == 4 and u.variant.startswith("specified") for u in uuids)
    assert sorted(decimals) == [Decimal(i) for i in range(1, 501)]
    assert types(engine)["id"] == "BIGINT" and types(engine)["d"] == "DECIMAL(9,2)"


@pytest.mark.parametrize("sql_type", ["BOOLEAN", "TINYINT", "ENUM('a', 'b')"])
def test_a_type_without_room_is_refused_and_says_how_many_rows_fit(engine, sql_type):
    shape = checked(engine, roles=[Key("id", sql_type)])
    with pytest.raises(PublishError, match=rf"'id'.*rows={capacity(parse_type(sql_type))} or less"):
        written(engine, shape, rows=1000)


@pytest.mark.parametrize("sql_type", ["BIGINT", "VARCHAR", "UUID", "DATE", "BLOB"])
def test_units_have_the_wanted_numbers_of_rows(engine, sql_type):
    sizes = np.array([500, 200, 0, 25])
    rows = written(engine, checked(engine, roles=[UnitId("p", sql_type)]), rows=1000, units=sizes)
    _, of_each = np.unique([str(row[2]) for row in rows], return_counts=True)
    assert np.bincount(of_each, minlength=5)[1:].tolist() == sizes.tolist()
    assert types(engine)["p"] == sql_type


def test_without_contributions_every_row_is_a_unit(engine):
    rows = written(engine, checked(engine, roles=[UnitId("p", "INTEGER")]), rows=300)
    assert sorted(row[2] for row in rows) == list(range(1, 301))


def test_unit_sizes_must_sum_to_the_rows():
    with pytest.raises(InternalError):
        units_of(np.array([1, 1]), 4)


def test_a_unit_type_without_room_is_refused(engine):
    shape = checked(engine, roles=[UnitId("p", "BOOLEAN")])
    assert len(written(engine, shape, rows=4, units=np.array([0, 2]))) == 4
    with pytest.raises(PublishError, match="'p'.*units"):
        written(engine, shape, rows=3)


def test_constants_and_computed_columns_come_in_source_order_and_exact_types(engine):
    roles = [
        Constant("c", "DECIMAL(5,2)", Decimal("1.5")),
        Constant("nothing", "DATE", None),
        Derived("twice", "SMALLINT", "AGE * 2"),
        Derived("odd", "BIGINT", "CAST('x' || age AS BIGINT)"),
        Derived("word", "VARCHAR", "CASE WHEN work = 'none' THEN upper(work) ELSE work || c END"),
    ]
    order = ["twice", "age", "c", "odd", "nothing", "work", "word"]
    rows = written(engine, checked(engine, roles=roles, order=order), rows=300)
    assert list(types(engine).items()) == [
        ("twice", "SMALLINT"),
        ("age", "INTEGER"),
        ("c", "DECIMAL(5,2)"),
        ("odd", "BIGINT"),
        ("nothing", "DATE"),
        ("work", "VARCHAR"),
        ("word", "VARCHAR"),
    ]
    for twice, age, c, odd, nothing, work, word in rows:
        assert twice == (None if age is None else 2 * age)
        assert (c, odd, nothing) == (Decimal("1.50"), None, None)
        assert word == ("NONE" if work == "none" else "some1.50")


def test_never_holds_and_the_rows_asked_for_are_written(engine):
    roles = [Derived("child", "BOOLEAN", "age < 16"), Key("id", "INTEGER")]
    never = ["age < 90 AND work = 'some'", "child", "1 / (age - 95) > 0.3"]
    rows = written(engine, checked(engine, roles=roles, never=never), rows=3000)
    assert len(rows) == 3000 and sorted(row[3] for row in rows) == list(range(1, 3001))
    kept = [(age, work) for age, work, *_ in rows]
    assert not [1 for age, work in kept if age is not None and age < 90 and work == "some"]
    assert not [age for age, _ in kept if age is not None and age < 16]
    assert not [age for age, _ in kept if age in (96, 97, 98)]
    # NULL is no more frequent than in the model, whatever the conditions exclude.
    share = np.mean([age is None for age, _ in kept])
    assert abs(share - 1 / AGE.size) < 6 * (share / 3000) ** 0.5


DATES = [
    Attribute(name, "INTEGER", "numeric", edges=tuple(range(0, 121, 30)), nullable=name == "b")
    for name in ("a", "b")
]


def with_an_end(engine, never, rows=4000):
    """a begins in one of four bins, b (NULL in .2 of the rows) ends in its bin, a later one or one before; c is
    whether a is in the second half of its bins. The rows, and the part that has codes of others."""
    c = Attribute("c", "INTEGER", "categorical", labels=(0, 1))
    shape = checked(engine, measured=(*DATES, c), never=never)

    def batches(rows, seed):
        random = np.random.default_rng(seed)
        a = random.integers(0, 4, rows)
        moved = random.choice([-1, 0, 1], rows, p=[0.08, 0.86, 0.06])
        b = np.where(random.random(rows) < 0.2, 4, np.clip(a + moved, 0, 3))
        yield np.column_stack([a, b, a // 2])

    def draw(rows, seed, first):
        return append(engine, shape.domain, batches(rows, seed), STAGED, first)

    kept = stage_rows(engine, shape, draw, rows, STAGED, 3)
    replaced = replaced_rows(engine, STAGED, rows, rows) / kept
    publish(engine, TABLE, shape, STAGED, 3)
    engine._connection.execute(f"DROP TABLE {STAGED}")
    return engine._connection.execute("SELECT a, b, c FROM result").df(), replaced


NAMED = ("a", "e", "if", "amount", 'say "a"', "Größe")


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("amount < 1", ["amount"]),
        ("e < AMOUNT", ["e", "amount"]),
        ('"say ""a""" = 2 OR größe = length(\'e a "if" it\'\'s a\')', ['say "a"', "Größe"]),
        ('"if" = 1 AND CASE WHEN made > 1 THEN TRUE ELSE FALSE END', ["if", "amount"]),
    ],
)
def test_columns_that_a_condition_names_are_whole_identifiers(engine, condition, named):
    """Only these take codes of other rows; ``made`` is computed from amount."""
    columns = [Attribute(name, "INTEGER", "categorical", labels=(0, 1, 2)) for name in NAMED]
    made = Derived("made", "INTEGER", "amount + 1")
    shape = checked(engine, roles=(made,), never=[condition], measured=columns)
    texts = "".join(text for text, _ in possible_statements(shape, STAGED, 0, 3))
    found = {int(place) for place in re.findall(r"\ba(\d+) = taken", texts)}
    assert [NAMED[place] for place in sorted(found)] == sorted(named, key=NAMED.index)


def test_rows_that_meet_a_condition_are_changed_as_little_as_possible(engine):
    plain, none = with_an_end(engine, [])
    frame, replaced = with_an_end(engine, ["b < a"])
    assert none == 0 and replaced == pytest.approx(0.05, abs=0.005)
    assert len(frame) == len(plain) == 4000 and not (frame.b < frame.a).any()
    assert 0.3 < (plain.b < plain.a).mean() < 0.5
    # NULL, the column that no condition names, and all columns but one are as they were drawn.
    assert frame.b.isna().sum() == plain.b.isna().sum()
    assert frame.c.value_counts().equals(plain.c.value_counts())
    assert (frame.a // 30).value_counts().sort_index().equals((plain.a // 30).value_counts().sort_index())
    assert ((frame.a // 60) == frame.c).all()
    # Values within the same codes: rows stay in the bin that the model gave them.
    there = frame.b.notna()
    assert ((frame.b // 30) == (frame.a // 30))[there].mean() == pytest.approx(0.94, abs=0.03)


def test_conditions_that_values_meet_within_their_codes_replace_nothing(engine):
    frame, replaced = with_an_end(engine, ["a % 30 >= 20"])
    assert not (frame.a % 30 >= 20).any() and replaced == 0
    random = np.random.default_rng(3)
    assert (frame.a // 30).value_counts().sort_index().tolist() == np.bincount(
        random.integers(0, 4, 4000)
    ).tolist()


def test_conditions_that_leave_nothing_write_nothing_and_warn(engine):
    shape = checked(engine, never=["TRUE"])
    with pytest.warns(UserWarning, match="0 of 50 rows"):
        assert stage_rows(engine, shape, uniform(engine, shape), 50, STAGED, 1) == 0
    publish(engine, TABLE, shape, STAGED, 1)
    assert engine._connection.execute("FROM result").fetchall() == []


def test_names_cannot_clash_with_ours(engine):
    attributes = [
        Attribute(name, "INTEGER", "numeric", edges=(0, 1, 9))
        for name in ("row", "DPSYN_ROW", "a1", "n0", "{{ x }}")
    ]
    roles = [Derived('"', "INTEGER", '"row" + "{{ x }}"'), Key("n1", "INTEGER")]
    shape = checked(engine, measured=attributes, roles=roles, never=['dpsyn_row > "a1"'])
    rows = written(engine, shape, rows=100)
    assert all(row[5] == row[0] + row[4] and row[1] <= row[2] for row in rows)
    assert list(types(engine)) == ["row", "DPSYN_ROW", "a1", "n0", "{{ x }}", '"', "n1"]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("agee + 1", "'agee', which is no column; did you mean 'age'?"),
        ("(SELECT 1)", "subquery"),
        ("sum(age)", "aggregate"),
        ("row_number() OVER ()", "window"),
        ("random()", "non-deterministic"),
        ("now()", ""),
        ("current_date", ""),
        ("t.age", "without a table"),
        ("age AS x", "alias"),
        ("age, work", "parsed"),
        ("age; DROP TABLE x", "parsed"),
        ("", "parsed"),
        ("age) FROM secret --", "parsed"),
        ("*", ""),
        ("read_text('x')", ""),
        ("getenv('HOME')", ""),
        ("other + 1", "'other'"),
        ("id + 1", "'id'"),
        ("work::DATE + work", "cannot compute"),
    ],
)
def test_expressions_that_are_refused_before_anything_is_charged(engine, expression, words):
    roles = [
        Constant("c", "INTEGER", 1),
        Derived("bad", "INTEGER", expression),
        Derived("other", "INTEGER", "age"),
        Key("id", "INTEGER"),
    ]
    with pytest.raises(DomainError) as caught:
        checked(engine, roles=roles)
    (fault,) = caught.value.faults
    assert "'bad': derived:" in fault and words in fault
    assert caught.value.__context__ is None


def test_all_faults_of_roles_come_at_once(engine):
    roles = [
        Constant("a", "INTEGER", "x"),
        Constant("b", "INTEGER", Decimal("1.5")),
        Constant("c", "DECIMAL(3,1)", Decimal("1.25")),
        Constant("d", "TINYINT", 200),
        Constant("e", "ENUM('x')", "y"),
        Constant("fine", "FLOAT", Decimal("0.1")),
        Derived("f", "INTEGER", "nope"),
    ]
    with pytest.raises(DomainError) as caught:
        checked(engine, roles=roles, never=["nope = 1", "age > 3"])
    found = [fault.split(":")[0] for fault in caught.value.faults]
    assert found == [*(f"column '{name}'" for name in "abcdef"), "never"]


def test_an_unchecked_expression_never_runs():
    shape = Shape((AGE,), (Derived("x", "INTEGER", "1"),), ("age", "x"))
    with pytest.raises(InternalError, match="not checked"):
        output_statement(shape, STAGED, 1, units_of(None, 1), 1)


@pytest.mark.parametrize("together", [1, 5, 12, 100])
def test_batches_are_loaded_by_row_groups_in_their_order(engine, monkeypatch, together):
    """Each code once, whatever the sizes of batches, of several loads and of their last parts."""
    monkeypatch.setattr(staging, "ROW_GROUP", together)
    shape = checked(engine)
    staging.make_room(engine, shape.domain, STAGED)
    codes = np.random.default_rng(3).integers(0, [AGE.size, WORK.size], (34, 2))
    loads = []
    load = engine.load

    def told(table, columns, *, step):
        loads.append(len(columns["row"]))
        load(table, columns, step=step)

    monkeypatch.setattr(engine, "load", told)
    cuts = [0, 4, 4, 11, 20, 21, 34]
    batches = (codes[start:stop] for start, stop in pairwise(cuts))
    assert append(engine, shape.domain, batches, STAGED, 7) == len(codes)
    assert all(rows % together == 0 for rows in loads[:-1])
    found = engine.fetch(f'SELECT * FROM {STAGED} ORDER BY "row"', step="test")
    np.testing.assert_array_equal(found["row"], np.arange(7, 41))
    np.testing.assert_array_equal(np.column_stack([found["a0"], found["a1"]]), codes)
