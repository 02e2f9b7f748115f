"""Rows made part by part, as tasks of Spark make them, are those that one database makes. No Java is needed."""

from collections import Counter
from dataclasses import replace
from datetime import date

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.roles import Constant, Derived, Key, UnitId
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.views import Margins
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.rows.sample import rounds
from dpsyn_sql.rows.sample.sql_rows import alias_lists, append_network, load_slots
from dpsyn_sql.rows.write import staging
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.rows.write.staging import append, stage_rows
from dpsyn_sql.rows.write.tasks import part_query, part_rows
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import templates_folder

pytestmark = pytest.mark.slow

pa = pytest.importorskip("pyarrow", reason="rows travel to tasks as Arrow")
draw = pytest.importorskip("dpsyn_sql.engines.spark.draw")
recipes = pytest.importorskip("dpsyn_sql.engines.spark.publish")

STAGED = Fragment("temp.main.staged")
SLOTS = Fragment("temp.main.slots")
DOMAIN = Domain(
    (
        Attribute("age", "INTEGER", "numeric", edges=(0, 10, 20, 40, 100), nullable=True),
        Attribute("work", "VARCHAR", "categorical", labels=("", "it's", 'a"b'), other=True, nullable=True),
        Attribute("paid", "DECIMAL(8,2)", "numeric", edges=(0, 10, 1000)),
        Attribute("row", "DOUBLE", "numeric", edges=(0.0, 0.5, 2.5)),
        Attribute("born", "DATE", "categorical", labels=(date(2000, 1, 1), date(2000, 1, 2))),
    )
)
SIZES = DOMAIN.shape()
ROLES = (
    Key("id", "BIGINT"),
    Key("code", "UUID"),
    UnitId("person", "VARCHAR"),
    Constant("land", "VARCHAR", "it's"),
    Derived("twice", "INTEGER", "age * 2"),
)
NEVER = ("age > 50 AND work = ''", "paid < 5")


def network(kind):
    rng = np.random.default_rng(1)
    if kind == "product":
        margins = Margins(100.0, {a.name: rng.dirichlet(np.ones(a.size)) for a in DOMAIN.attributes})
        return ProductModel(DOMAIN, margins).network()
    scopes = {"tree": [(0, 1), (1, 2), (2, 3), (1, 4)], "cliques": [(0, 1, 2), (2, 3, 4)]}[kind]
    potentials = {scope: rng.normal(0, 1.5, [SIZES[v] for v in scope]) for scope in scopes}
    bins, within = tuple(np.arange(k) for k in SIZES), tuple(np.ones(k) for k in SIZES)
    beliefs = calibrate(junction_tree(SIZES, potentials), potentials)
    return GraphicalModel(DOMAIN, 1000.0, beliefs, bins, within).network()


@pytest.fixture
def engine():
    made = DuckDBEngine(duckdb.connect(config={"threads": 2}))
    yield made
    made.close()


def shape_of(engine, roles=ROLES, never=()):
    names = (*DOMAIN.names, *(role.name for role in roles))
    shape = Shape(DOMAIN.attributes, tuple(roles), names, tuple(never))
    return check_expressions(shape, engine, DuckDBCatalog(engine))


def of_one_database(engine, shape, net, rows, seed, sizes=None):
    """What ``release`` writes into a table of DuckDB."""

    with alias_lists(engine, net) as lists:

        def add(number, other, first):
            return append_network(engine, net, lists, number, other, STAGED, first=first)

        kept = stage_rows(engine, shape, add, rows, STAGED, seed, in_parts=True)
    return decoded(engine, shape, kept, seed, sizes)


def decoded(engine, shape, kept, seed, sizes=None):
    query = output_statement(shape, STAGED, kept, units_of(sizes and sizes(kept), kept), seed)
    return engine._connection.sql(query).to_arrow_table()


def asked(*parts):
    names = ("first", "rows", "before", "codes")
    types = (pa.int64(), pa.int64(), pa.int64(), pa.binary())
    columns = [
        pa.array([getattr(part, name) for part in parts], kind)
        for name, kind in zip(names, types, strict=True)
    ]
    return iter([pa.RecordBatch.from_arrays(columns, list(names))])


def of_tasks(engine, shape, plan, schema, sizes=None):
    """What tasks write that get a part each, last part first."""
    if plan.slots is not None and plan.gaps:
        recipe = recipes.recipe_of(engine, plan, "", None)
        tasks = [draw.counted(recipe)(asked(part)) for part in recipes.parts_of(engine, plan)]
        left = {one["first"]: one["rows"] for task in tasks for batch in task for one in batch.to_pylist()}
        plan = replace(plan, left=tuple(left[first] for first in sorted(left)))
    query = part_query(shape, plan.kept, units_of(sizes and sizes(plan.kept), plan.kept), plan.seed)
    recipe = recipes.recipe_of(engine, plan, query, schema)
    written = {}
    for part in reversed(recipes.parts_of(engine, plan)):
        written[part.before] = pa.Table.from_batches(draw.decoded(recipe)(asked(part)), schema)
    return pa.concat_tables([schema.empty_table(), *(written[before] for before in sorted(written))])


def halves(kept):
    """Units of one, two and three rows."""
    three = kept // 6
    two = (kept - 3 * three) // 4
    return np.array([kept - 3 * three - 2 * two, two, three])


@pytest.mark.parametrize(
    ("kind", "rows"),
    [("product", 0), ("product", 1), ("tree", 1000), ("tree", 2500), ("cliques", 1001), ("product", 2500)],
)
@pytest.mark.parametrize("never", [(), NEVER], ids=["all", "never"])
def test_drawn_rows_are_those_of_one_database(engine, monkeypatch, kind, never, rows):
    monkeypatch.setattr(rounds, "PART_ROWS", 1000)
    net, shape = network(kind), shape_of(engine, never=never)
    alone = of_one_database(engine, shape, net, rows, 7, halves)
    load_slots(engine, net, SLOTS)
    apart = of_tasks(engine, shape, part_rows(shape, rows, 7, net, SLOTS), alone.schema, halves)
    assert alone.num_rows == rows
    assert apart.equals(alone)
    found = alone.to_pydict()
    assert len(set(found["id"])) == len(set(found["code"])) == rows
    by_unit = Counter(Counter(found["person"]).values())
    assert [by_unit[size] for size in (1, 2, 3)] == halves(rows).tolist()
    if never:
        assert all(paid >= 5 for paid in found["paid"])


def test_a_check_of_drawn_rows_ends_before_the_numbers_of_rows_that_conditions_changed():
    text = (templates_folder() / "sample" / "check.sql").read_text(encoding="utf-8")
    assert f"{{{{ first }}}} + {staging.STEP // 2}" in text


def test_conditions_that_leave_too_little_give_fewer_rows_and_keys_without_gaps(engine, monkeypatch):
    monkeypatch.setattr(rounds, "PART_ROWS", 100)
    monkeypatch.setattr(rounds, "_SMALL", 50)
    monkeypatch.setattr(rounds, "_ROUNDS", 4)
    monkeypatch.setattr(staging, "WITHIN", 1)  # few rows become possible, and none by codes of others
    monkeypatch.setattr(staging, "_donors", lambda shape: ())
    net, shape = network("product"), shape_of(engine, never=("age >= 3", "age IS NULL"))
    with pytest.warns(UserWarning, match="exclude too many rows"):
        alone = of_one_database(engine, shape, net, 250, 7)
    load_slots(engine, net, SLOTS)
    apart = of_tasks(engine, shape, part_rows(shape, 250, 7, net, SLOTS), alone.schema)
    assert 0 < alone.num_rows < 250
    assert apart.equals(alone)
    assert sorted(alone.to_pydict()["id"]) == list(range(1, alone.num_rows + 1))


@settings(max_examples=5, deadline=None)
@given(
    rows=st.integers(0, 700),
    brought=st.sampled_from([70, 211, 350]),
    never=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    units=st.booleans(),
)
def test_codes_that_are_brought_are_decoded_as_in_one_database(rows, brought, never, seed, units):
    engine = DuckDBEngine(duckdb.connect(config={"threads": 2}))
    shape = shape_of(engine, never=NEVER if never else ())
    rng = np.random.default_rng(seed)

    def add(number, other, first):
        codes = np.column_stack([rng.integers(0, size, number) for size in SIZES])
        return append(engine, shape.domain, iter([codes]), STAGED, first)

    kept = stage_rows(engine, shape, add, rows, STAGED, seed)
    sizes = halves if units else None
    alone = decoded(engine, shape, kept, seed, sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "_BROUGHT", brought)
        plan = part_rows(shape, kept, seed, staged=STAGED)
        apart = of_tasks(engine, shape, plan, alone.schema, sizes)
    engine.close()
    assert apart.equals(alone)


def test_a_part_is_the_same_when_it_is_made_again_after_others(engine, monkeypatch):
    monkeypatch.setattr(rounds, "PART_ROWS", 500)
    net, shape = network("cliques"), shape_of(engine)
    alone = of_one_database(engine, shape, net, 1400, 3)
    load_slots(engine, net, SLOTS)
    plan = part_rows(shape, 1400, 3, net, SLOTS)
    recipe = recipes.recipe_of(engine, plan, part_query(shape, 1400, units_of(None, 1400), 3), alone.schema)
    first, second, third = recipes.parts_of(engine, plan)
    rows = pa.Table.from_batches(draw.decoded(recipe)(asked(second, first, third, second)), alone.schema)
    ids = rows.to_pydict()["id"]
    assert ids[:500] == ids[-500:]
    assert ids[500:1000] + ids[:500] + ids[1000:1400] == alone.to_pydict()["id"]


def test_an_error_in_a_task_carries_the_name_of_its_class_only(engine):
    net, shape = network("product"), shape_of(engine)
    alone = of_one_database(engine, shape, net, 10, 3)
    load_slots(engine, net, SLOTS)
    plan = part_rows(shape, 10, 3, net, SLOTS)
    recipe = recipes.recipe_of(engine, plan, "SELECT CAST('secret' AS INTEGER)", alone.schema)
    with pytest.raises(RuntimeError, match=r"^dpsyn_sql task failed: ConversionException$") as caught:
        list(draw.decoded(recipe)(asked(*recipes.parts_of(engine, plan))))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 4096, 5001])
def test_a_shuffle_gives_each_place_once_and_spreads_neighbours(engine, rows):
    engine.execute(
        f'CREATE TEMP TABLE staged AS SELECT range AS "row", 0::UTINYINT AS a0 FROM range({rows})', step=""
    )
    shape = Shape((Attribute("a", "INTEGER", "categorical", labels=(1,)),), (Key("k", "BIGINT"),), ("a", "k"))
    keys = np.array(decoded(engine, shape, rows, 5).to_pydict()["k"])
    assert np.array_equal(np.sort(keys), np.arange(1, rows + 1))
    if rows > 1000:
        apart = np.abs(np.diff(keys))
        assert np.mean(apart) == pytest.approx(rows / 3, rel=0.1)
        assert np.mean(apart <= 10) < 0.02
        assert abs(np.corrcoef(keys, np.arange(rows))[0, 1]) < 0.06
