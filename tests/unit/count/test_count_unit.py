"""Which columns can be a privacy unit, and how counting is planned when its rows are bounded."""

from itertools import combinations

import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.unit import check_unit
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.planner import plan_counting
from dpsyn_sql.source.relation import Column, PrivacyUnit

DOMAIN = Domain(tuple(Attribute(f"a{i}", "BIGINT", "numeric", edges=(0, 1, 2)) for i in range(6)))
ONE_WAY = [MarginalQuery((name,)) for name in DOMAIN.names]
PAIRS = [MarginalQuery(attrs) for attrs in combinations(DOMAIN.names, 2)]


@pytest.mark.parametrize(
    "sql_type",
    [
        "VARCHAR",
        "BIGINT",
        "UTINYINT",
        "HUGEINT",
        "DECIMAL(18,0)",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NS",
        "UUID",
        "BLOB",
        "ENUM('a', 'b')",
    ],
)
def test_types_of_one_spelling_a_value_are_allowed(sql_type):
    column = Column("id", sql_type)
    assert check_unit((Column("x", "DOUBLE"), column), PrivacyUnit("id", 3)) is column


@pytest.mark.parametrize(
    ("sql_type", "shown"),
    [
        ("DOUBLE", "DOUBLE"),
        ("FLOAT", "FLOAT"),
        ("INTEGER[]", "LIST or ARRAY"),
        ("VARCHAR[3]", "LIST or ARRAY"),
        ("STRUCT(a INTEGER[])", "STRUCT"),
        ("STRUCT(a ENUM('secret'))[]", "LIST or ARRAY"),
        ("MAP(VARCHAR, ENUM('secret'))", "MAP"),
        ("UNION(a INTEGER)", "UNION"),
        ("INTERVAL", "INTERVAL"),
        ("TIME", "TIME"),
        ("TIME WITH TIME ZONE", "TIME WITH TIME ZONE"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"),
        ("JSON", "JSON"),
        ("BIT", "BIT"),
        ('"NULL"', '"NULL"'),
    ],
)
def test_other_types_are_refused_without_their_labels(sql_type, shown):
    with pytest.raises(InputError) as caught:
        check_unit((Column("id", sql_type),), PrivacyUnit("id"))
    text = str(caught.value)
    assert f"'id' is of type {shown}, which" in text
    assert "TRY_CAST" in text
    assert "secret" not in text


def test_the_name_is_looked_up_as_the_database_does():
    column = Column("Customer_ID", "BIGINT")
    assert check_unit((column, Column("x", "BIGINT")), PrivacyUnit("customer_id")) is column
    assert check_unit((Column("Ä", "BIGINT"), Column("ä", "BIGINT")), PrivacyUnit("ä")).name == "ä"


def test_a_column_that_is_not_there():
    columns = (Column("customer", "BIGINT"), Column("age", "BIGINT"))
    with pytest.raises(
        InputError,
        match=r"'custmer' is not a column of the source. Did you mean 'customer'\? A unit can be one of",
    ):
        check_unit(columns, PrivacyUnit("custmer"))
    with pytest.raises(InputError, match=r"A unit can be one of 'customer', 'age', or 'row'"):
        check_unit(columns, PrivacyUnit("zzz"))


def test_columns_that_differ_in_case_only_are_not_told_apart_by_the_database():
    with pytest.raises(InputError, match="several columns of this name"):
        check_unit((Column("id", "BIGINT"), Column("ID", "BIGINT")), PrivacyUnit("id"))


@pytest.mark.parametrize("queries", [ONE_WAY, [MarginalQuery(())], ONE_WAY[:1], PAIRS])
def test_bounded_rows_are_never_counted_straight_from_the_source(queries):
    plan = plan_counting(queries, DOMAIN, bounded=True)
    assert plan.strategy in ("encoded", "packed")
    assert plan.bounded
    assert {query for group in plan.groups for query in group.queries} == set(queries)
    assert "nothing is counted directly from the source" in "\n".join(plan.describe())


def test_without_a_bound_the_plan_is_what_it_was():
    assert plan_counting(ONE_WAY, DOMAIN) == plan_counting(ONE_WAY, DOMAIN, bounded=False)
    assert plan_counting(ONE_WAY, DOMAIN).strategy == "scan"
    assert "privacy unit" not in "\n".join(plan_counting(PAIRS, DOMAIN).describe())


def test_nothing_asked_reads_nothing():
    assert plan_counting([], DOMAIN, bounded=True).groups == ()
