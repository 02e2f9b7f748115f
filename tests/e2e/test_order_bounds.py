"""A column that orders rows and whose bins are discovered: bounds too far from zero are refused."""

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.errors import InputError


def planned(lower, upper, sql_type="BIGINT"):
    """The plan of a table whose order is a whole number with stated bounds and no bins."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t (who VARCHAR, moment {sql_type}, smokes BOOLEAN)")
        return dpsyn_sql.plan(
            con,
            "t",
            domain={"columns": {"moment": {"type": "numeric", "lower": lower, "upper": upper}}},
            discover=True,
            epsilon=1,
            unit="who",
            most=8,
            order="moment",
        )


@pytest.mark.parametrize(
    ("lower", "upper", "sql_type"),
    [
        (0, 2**63 - 1, "BIGINT"),
        (-(2**63), 0, "BIGINT"),
        (0, 2**61, "BIGINT"),
        (-(2**100), 2**100, "HUGEINT"),
    ],
)
def test_bounds_that_differences_could_pass_are_refused(lower, upper, sql_type):
    with pytest.raises(InputError, match="within 2\\^61 of zero"):
        planned(lower, upper, sql_type)


@pytest.mark.parametrize(("lower", "upper"), [(0, 99), (-(2**61) + 1, 2**61 - 1)])
def test_other_bounds_are_accepted(lower, upper):
    assert "rows follow each other by moment" in planned(lower, upper).verbose()
