"""Two attributes of one column: counted and discovered from expressions, against numpy."""

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.grids import grid_attribute, grid_cuts
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.discovery.attributes import attribute_of_nothing
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.planning.queries import GridQuery, KeyQuery, MarginalQuery, StepQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.private.measure.counting import PrivateSide
from dpsyn_sql.private.measure.questions import parts_of_question
from dpsyn_sql.report.certificate import measured_facts
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

YEAR = Fragment('year("when")')
MONTH = Fragment('month("when")')
DOMAIN = Domain(
    (
        Attribute("year", "BIGINT", "numeric", edges=(2000, 2001, 2002, 2004), nullable=True, source=YEAR),
        Attribute("month", "BIGINT", "categorical", tuple(range(1, 13)), nullable=True, source=MONTH),
        Attribute("id", "INTEGER", "numeric", edges=(0, 100, 400)),
    )
)
DAYS = [date(2000, 1, 1) + timedelta(days=11 * i) for i in range(130)]


@pytest.fixture(scope="module")
def engine():
    """A column beside that has an attribute's name: nothing may read it."""
    with duckdb.connect() as con:
        con.execute('CREATE TABLE source (id INTEGER, "when" DATE, year VARCHAR)')
        con.executemany("INSERT INTO source VALUES (?, ?, 'no')", list(enumerate([*DAYS, None])))
        yield DuckDBEngine(con)


def codes():
    year = [min(day.year - 2000, 2) for day in DAYS] + [3]
    month = [day.month - 1 for day in DAYS] + [12]
    return {"year": np.array(year), "month": np.array(month), "id": np.arange(len(DAYS) + 1) // 100}


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("id", 2)], ids=["row", "unit"])
@pytest.mark.parametrize("attrs", [("year",), ("year", "month"), ("month", "id", "year")])
def test_marginals_over_two_attributes_of_one_column(engine, attrs, unit):
    query = MarginalQuery(attrs)
    (found,) = SqlCounter(engine, Fragment("source"), DOMAIN, [query], unit=unit).count([query])
    wanted = np.zeros(DOMAIN.shape(attrs), dtype=np.int64)
    np.add.at(wanted, tuple(codes()[name] for name in attrs), 1)
    np.testing.assert_array_equal(found, wanted)


def test_keys_cells_and_steps_of_an_expression(engine):
    counter, month = SqlDiscoveryCounter(engine, Fragment("source")), codes()["month"]
    wanted = np.bincount(month, minlength=13)[:12]
    ((keys, units),) = counter.keys(KeyQuery("month", "BIGINT", source=MONTH))
    assert dict(zip(keys, units.tolist(), strict=True)) == {i + 1: n for i, n in enumerate(wanted.tolist())}
    grid = replace(grid_attribute("month", "BIGINT", grid_cuts(parse_type("BIGINT"))), source=MONTH)
    places = np.searchsorted([int(edge) for edge in grid.edges], np.arange(1, 13), side="right") - 1
    expected = np.bincount(places, weights=wanted, minlength=grid.size)
    expected[grid.null_code] = 1
    np.testing.assert_array_equal(counter.cells(GridQuery(grid)), expected)
    by_step = [sum(wanted[[i for i in range(12) if (i + 1) % 5]]), wanted[4], wanted[9]]
    found = counter.steps(StepQuery("month", "BIGINT", (5, 10), MONTH))
    np.testing.assert_array_equal(found, by_step)


def test_what_is_learnt_of_an_expression_is_read_from_it_and_says_so():
    column = Undiscovered("month", "BIGINT", "numeric", source=MONTH)
    assert attribute_of_nothing(column, [Fraction(1), Fraction(16)]).source == MONTH
    assert measured_facts(column)["source"] == str(MONTH)
    budget, plain = Budget.from_epsilon("1", "1e-6"), KeyQuery("month", "BIGINT")
    private_side = PrivateSide(1, None, None, SimpleNamespace())
    asked = [
        parts_of_question(query, budget, private_side).named
        for query in (plain, replace(plain, source=MONTH))
    ]
    assert asked[1] == {**asked[0], "source": str(MONTH)} and "source" not in asked[0]


def test_an_attribute_without_an_expression_has_none_in_its_facts():
    attribute = Attribute("a", "int", "categorical", (1, 2))
    assert attribute.columns[0].read() == '"a"' and attribute.type.text == "INTEGER"
    assert "source" not in measured_facts(attribute)
