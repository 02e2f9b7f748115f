"""Classes as columns of the encoded source: a unit changes tables with them by its weight, and no other unit."""

import duckdb
import numpy as np
import pytest
from support.parts import PartedEngine
from test_count_siblings import DOMAIN, MOST, filled, some_rows

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import class_costs
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.source.relation import WEIGHT, PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

UNIT = PrivacyUnit("who", 5, together=True)


def grouped(name="group"):
    random = np.random.default_rng(1)
    laws = [(column, random.dirichlet(np.ones(DOMAIN[column].size) * 2, 4)) for column in ("x1", "x2")]
    found = class_costs(name, np.array([0.4, 0.3, 0.2, 0.1]), laws)
    return families_of(DOMAIN, UNIT, ("x0",)).grouped([found])


FAMILIES = grouped()
ASKED = [
    MarginalQuery(("group",)),
    MarginalQuery(("group", "x1")),
    MarginalQuery(("group", "x0", FAMILIES.size)),
    MarginalQuery(("x2", "group", "x1")),
]


def counted(engine, key=9):
    counter = SqlCounter(
        engine, Fragment("visits"), FAMILIES.domain, ASKED, unit=UNIT, key=key, families=FAMILIES
    )
    found = [*counter.count(ASKED)]
    counter.close()
    return found


def tables(rows, key=9):
    with duckdb.connect() as con:
        filled(con, rows)
        return counted(DuckDBEngine(con), key)


@pytest.mark.parametrize("rows", [1, 2, 5, 9])
def test_a_unit_changes_tables_with_its_class_by_its_weight_and_no_other_cell(rows):
    random = np.random.default_rng(rows)
    others = some_rows(1, units=15, most=MOST)
    own = [["new", *map(int, random.integers(0, (2, 3, 7)))] for _ in range(rows)]
    for key in range(3):
        before, after, alone = tables(others, key), tables([*own, *others], key), tables(own, key)
        for without, within, unit in zip(before, after, alone, strict=True):
            np.testing.assert_array_equal(within - without, unit)
            assert unit.min() >= 0
            assert WEIGHT - UNIT.max_rows < unit.sum() <= WEIGHT


def test_all_rows_of_a_unit_have_its_class():
    for place in range(8):
        own = some_rows(place, units=1, most=5)
        assert (tables(own)[0] > 0).sum() == 1


def test_the_order_of_rows_has_no_say_in_classes():
    rows = some_rows(2, units=30, most=9)
    for one, other in zip(tables(rows), tables(rows[::-1]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_classes_of_rows_in_parts_are_those_of_one_database():
    rows = some_rows(3, units=30, most=9)
    with duckdb.connect() as store:
        filled(store, rows)
        parts = counted(PartedEngine(store, "visits", 3, unit="who"))
    for one, other in zip(tables(rows), parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_class_of_hidden_attributes_is_refused():
    wrong = class_costs("group", np.array([0.5, 0.5]), [(FAMILIES.size, np.full((2, 5), 0.2))])
    families = families_of(DOMAIN, UNIT, ("x0",)).grouped([wrong])
    with duckdb.connect() as con:
        filled(con, some_rows(4))
        counter = SqlCounter(
            DuckDBEngine(con), Fragment("visits"), families.domain, ASKED[:1], unit=UNIT, families=families
        )
        with pytest.raises((InternalError, KeyError)):
            counter.count(ASKED[:1])
