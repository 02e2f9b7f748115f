"""What a base table's constraints make public: keys, domains, conditions."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.file import shape_of
from dpsyn_sql.attributes.roles import Key, UnitId
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.unit import check_unit
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.source.expression_check import check_domains
from dpsyn_sql.source.relation import CheckDomain, PrivacyUnit

TABLE = """CREATE TABLE t (
    id INTEGER PRIMARY KEY,
    code VARCHAR UNIQUE,
    u UUID,
    kind VARCHAR NOT NULL CHECK (kind IN ('a', 'it''s')),
    size INTEGER CHECK (size IN (1, 2, 3)),
    age SMALLINT CHECK (age BETWEEN 0 AND 120),
    pay DECIMAL(8,2) CHECK (pay >= -1.5 AND pay <= 1000),
    born DATE CHECK (born >= DATE '1900-01-01' AND born <= DATE '2020-12-31'),
    open TIME CHECK (open BETWEEN '08:00:00' AND '18:00:00'),
    half DOUBLE CHECK (half >= 0),
    free VARCHAR CHECK (length(free) < 5),
    flag BOOLEAN,
    "We ird" INTEGER,
    CHECK (pay < 500 OR age > 18),
    CHECK ("We ird" <> 3),
    UNIQUE (age, size)
)"""


EPOCH, HOUR = date(1970, 1, 1).toordinal(), 3_600_000_000


@pytest.fixture
def con():
    made = duckdb.connect()
    made.execute(TABLE)
    yield made
    made.close()


def shape(con, spec=None, **options):
    with open_source(con, "t") as session:
        made = shape_of(spec, session.relation, discover=True, **options)
        return check_expressions(made, session.engine, DuckDBCatalog(session.engine))


def test_constraints_become_keys_domains_and_conditions(con):
    got = shape(con)
    assert got.order == tuple(row[0] for row in con.execute("DESCRIBE t").fetchall())
    assert [(role.name, role.sql_type, role.origin) for role in got.roles if isinstance(role, Key)] == [
        ("id", "INTEGER", "catalog"),
        ("code", "VARCHAR", "catalog"),
        ("u", "UUID", "catalog"),
    ]
    known = {item.name: item for item in got.measured if isinstance(item, Attribute)}
    assert sorted(known) == ["flag", "kind", "size"]
    assert {item.origin for item in known.values()} == {"catalog"}
    assert known["kind"].labels == ("a", "it's") and not known["kind"].other and not known["kind"].nullable
    assert known["size"].labels == (1, 2, 3) and known["size"].nullable
    unknown = {item.name: (item.kind, item.nullable, item.least, item.most) for item in got.undiscovered}
    assert unknown == {
        "age": ("numeric", True, 0, 120),
        "pay": ("numeric", True, -150, 100_000),
        "born": (
            "temporal",
            True,
            *(day.toordinal() - EPOCH for day in (date(1900, 1, 1), date(2020, 12, 31))),
        ),
        "open": ("temporal", True, 8 * HOUR, 18 * HOUR),
        "half": ("numeric", True, 0, None),
        "free": ("categorical", True, None, None),
        "We ird": ("numeric", True, None, None),
    }
    assert len(got.never) == 10 and all(condition.startswith("NOT") for condition in got.never)


def test_what_the_owner_declares_comes_first(con):
    spec = {
        "columns": {
            "id": {"type": "numeric", "lower": 1, "upper": 5},
            "kind": {"type": "categorical", "categories": ["a"], "nullable": True},
            "size": {"type": "discover", "as": "categorical", "max_codes": 7, "nullable": False},
            "half": {"type": "discover", "granularity": 0.5},
            "code": {"type": "constant", "value": None},
        },
        "never": ["age = 7"],
    }
    got = shape(con, spec, exclude=["pay"])
    assert got.planned()["id"].edges == (1, 2, 3, 4, 5, 6)
    assert got.planned()["kind"].origin == "declared" and not got.planned()["kind"].nullable
    assert Undiscovered("size", "INTEGER", "categorical", False, 7) in got.undiscovered
    half = Undiscovered("half", "DOUBLE", "numeric", granularity=Decimal("0.5"), least=Fraction(0))
    assert half in got.undiscovered
    assert [role.name for role in got.roles] == ["code", "u"]
    assert got.never[0] == '"age" = 7' and not any("pay" in condition for condition in got.never)


def test_the_unit_column_gets_fresh_ids_and_no_condition(con):
    with open_source(con, "t") as session:
        unit = check_unit(session.relation.columns, PrivacyUnit("AGE", 3))
        got = shape_of(None, session.relation, discover=True, unit=unit)
        without = shape_of(None, session.relation, ["age"], discover=True, unit=unit)
    assert UnitId("age", "SMALLINT") in got.roles and "age" in got.order
    assert "age" not in without.order
    assert not any("age" in condition for condition in got.never)


def test_views_and_queries_have_no_constraints(con):
    con.execute("CREATE VIEW v AS SELECT id, age FROM t")
    for source in ("v", "SELECT id, age FROM t"):
        with open_source(con, source) as session:
            got = shape_of(None, session.relation, discover=True)
        assert [item.name for item in got.undiscovered] == ["id", "age"] and got.never == ()


@pytest.mark.parametrize(
    ("expressions", "domains"),
    [
        (["(x IN (1, -2))"], {"x": CheckDomain((Decimal(1), Decimal(-2)))}),
        (["x IN ('a', NULL)"], {}),
        (["x IN (1, y)"], {}),
        (["x >= 1", "x <= 5.5"], {"x": CheckDomain((), Decimal(1), Decimal("5.5"))}),
        (["1 <= X AND 5 >= x"], {"x": CheckDomain((), Decimal(1), Decimal(5))}),
        (["x >= 1 OR x <= 5"], {}),
        (["x > 1 AND x < 5"], {"x": CheckDomain((), Decimal(1), Decimal(5))}),
        (["0 < x"], {"x": CheckDomain((), Decimal(0))}),
        (["x <= DATE '2001-01-01'"], {"x": CheckDomain((), None, "2001-01-01")}),
        (["NOT (x BETWEEN 1 AND 5)"], {}),
        (["x BETWEEN 1 AND y"], {}),
        (["abs(x) BETWEEN 1 AND 2"], {}),
        (["x IN (SELECT 1)", "((("], {}),
        (
            ["x BETWEEN CAST('2000-01-01' AS DATE) AND DATE '2001-01-01'"],
            {"x": CheckDomain((), "2000-01-01", "2001-01-01")},
        ),
    ],
)
def test_which_checks_say_a_columns_domain(expressions, domains):
    assert check_domains(expressions) == domains


def test_checks_that_are_not_row_wise_say_nothing(con):
    con.execute("CREATE MACRO small(x) AS x < 5")
    con.execute("CREATE TABLE m (x INTEGER CHECK (small(x)), y INTEGER CHECK (y < 3))")
    with open_source(con, "m") as session:
        checks = session.relation.checks
    assert [check.columns for check in checks][-1] == ("y",)
