"""Bounds without bins: what is learnt between them, what is known at no cost, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, edge_ticks
from dpsyn_sql.attributes.cuts import evenly_binned
from dpsyn_sql.attributes.file import DomainFile, read_domain
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.errors import DomainError
from dpsyn_sql.source.relation import Column


def matched(entry, sql_type="BIGINT", *, discover=True, not_null=False):
    domain = read_domain({"columns": {"x": entry}}) if entry else DomainFile({}, {})
    column = Column("x", sql_type, not_null=not_null)
    return domain.to_shape([column], discover=discover).measured[0]


NUMERIC = {"type": "numeric", "lower": 0, "upper": 2_000_000}


def test_bounds_alone_are_learnt_between():
    found = matched({**NUMERIC, "nullable": True, "granularity": 5})
    assert isinstance(found, Undiscovered) and (found.least, found.most) == (0, 2_000_000)
    assert found.nullable and found.granularity == 5 and found.kind == "numeric"
    assert not matched({**NUMERIC, "nullable": True}, not_null=True).nullable
    assert not matched(NUMERIC).nullable


@pytest.mark.parametrize("more", [{"bins": 7}, {"discover": False}])
def test_bins_and_releases_that_learn_nothing_get_equal_bins(more):
    found = matched(
        {**NUMERIC, **{k: v for k, v in more.items() if k == "bins"}}, discover=more.get("discover", True)
    )
    assert isinstance(found, Attribute) and found.regular == more.get("bins", 32)


def test_a_hundred_values_cost_nothing():
    assert matched({"type": "numeric", "lower": 1, "upper": 100}).regular == 100
    assert isinstance(matched({"type": "numeric", "lower": 0, "upper": 100}), Undiscovered)


def test_bounds_of_each_type_are_exact_values_of_it():
    single = matched({"type": "numeric", "lower": "0.1", "upper": "0.7"}, "FLOAT")
    assert (single.least, single.most) == tuple(Fraction(float(np.float32(v))) for v in (0.1, 0.7))
    money = matched({"type": "numeric", "lower": "0.05", "upper": 100}, "DECIMAL(10,2)")
    assert (money.least, money.most) == (5, 10_000)
    day = matched({"type": "temporal", "lower": "2020-01-01", "upper": "2020-12-31"}, "TIMESTAMP_S")
    assert day.most - day.least == 366 * 86_400 - 1


@pytest.mark.parametrize(
    ("entry", "sql_type", "bounds"),
    [
        ({"lower": 0}, "INTEGER", (0, None)),
        ({"upper": 99}, "INTEGER", (None, 99)),
        ({"lower": 1, "upper": 5}, "INTEGER", (1, 5)),
        ({"upper": "0.5"}, "DOUBLE", (None, Fraction(1, 2))),
        ({"upper": "1970-01-02"}, "TIMESTAMP_S", (None, 2 * 86_400 - 1)),
        ({"lower": "1970-01-02"}, "DATE", (1, None)),
    ],
)
def test_what_is_discovered_can_have_bounds_on_one_side(entry, sql_type, bounds):
    found = matched({"type": "discover", **entry}, sql_type)
    assert isinstance(found, Undiscovered) and (found.least, found.most) == bounds


@pytest.mark.parametrize(
    ("entry", "sql_type", "fault"),
    [
        ({"lower": 5, "upper": 4}, "INTEGER", "not below"),
        ({"lower": "2020-01-01"}, "INTEGER", "not a value"),
        ({"lower": "x"}, "INTEGER", "lower"),
        ({"lower": 1}, "VARCHAR", "no bounds"),
        ({"lower": 3}, "DATE", "not a value"),
        ({"upper": "2020-01-01"}, "DOUBLE", "not a value"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(entry, sql_type, fault):
    with pytest.raises(DomainError, match=fault):
        matched({"type": "discover", **entry}, sql_type)


def test_equal_bins_between_bounds():
    column = matched(NUMERIC)
    ticks = edge_ticks(evenly_binned(column))
    assert len(ticks) == 33 and (ticks[0], ticks[-1]) == (0, 2_000_001)
    assert set(np.diff(ticks)) <= {62_500, 62_501}
    assert evenly_binned(matched({"type": "discover", "lower": 0})) is None
