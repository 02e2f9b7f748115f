"""Entries of the domain file beyond bounds and categories: what to learn, what is made, how fine."""

from datetime import date, time
from decimal import Decimal

import pytest

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.file import read_domain, shape_of
from dpsyn_sql.attributes.roles import Constant, Derived, Key, UnitId
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.errors import DomainError, SourceError
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment


def relation(*columns, kind="table"):
    return Relation("t", kind, Fragment("t"), tuple(columns))


def one(sql_type, entry, *, kind="table", **facts):
    """What becomes of a column, beside one that is measured."""
    columns = (Column("v", sql_type, **facts), Column("flag", "BOOLEAN"))
    spec = {"columns": {"v": entry, "flag": {"type": "categorical", "categories": [True, False]}}}
    if kind == "csv":
        spec["columns"]["flag"]["sql_type"] = "BOOLEAN"
    shape = shape_of(spec, relation(*columns, kind=kind), discover=True)
    (found,) = [item for item in (*shape.measured, *shape.roles) if item.name == "v"]
    return found


def faults(sql_type, entry, **options):
    with pytest.raises(DomainError) as caught:
        one(sql_type, entry, **options)
    return caught.value.faults


@pytest.mark.parametrize(
    ("sql_type", "kind"),
    [
        *((name, "categorical") for name in ("VARCHAR", "ENUM('secret')")),
        *((name, "numeric") for name in ("TINYINT", "UHUGEINT", "DECIMAL(10,2)", "FLOAT", "DOUBLE")),
        *((name, "temporal") for name in ("DATE", "TIME", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")),
    ],
)
def test_columns_nobody_declared_are_to_be_learnt_by_their_type(sql_type, kind):
    columns = (Column("a", sql_type), Column("b", sql_type, not_null=True))
    shape = shape_of(None, relation(*columns), discover=True)
    assert shape.measured == (
        Undiscovered("a", sql_type, kind, nullable=True),
        Undiscovered("b", sql_type, kind, nullable=False),
    )
    with pytest.raises(DomainError, match="no public domain for 'a', 'b'"):
        shape_of(None, relation(*columns), discover=False)


def test_csv_columns_are_learnt_as_text_or_as_declared():
    shape = shape_of(None, relation(Column("a", "VARCHAR"), kind="csv"), discover=True)
    assert shape.measured == (Undiscovered("a", "VARCHAR", "categorical", typed=False),)
    assert shape.untyped == ("a",) and shape.as_text(["b"]) == shape
    assert shape.as_text(["a"]).measured == (Undiscovered("a", "VARCHAR", "categorical"),)
    open_entry = one("VARCHAR", {"type": "discover", "max_codes": 9, "nullable": False}, kind="csv")
    assert open_entry == Undiscovered("v", "VARCHAR", "categorical", False, 9, typed=False)
    step = {"columns": {"a": {"type": "discover", "granularity": 5}}}
    with pytest.raises(DomainError, match="bounds need the type; write sql_type too"):
        one("VARCHAR", {"type": "discover", "lower": 0}, kind="csv")
    with pytest.raises(DomainError, match="write sql_type too"):
        shape_of(step, relation(Column("a", "VARCHAR"), kind="csv"), discover=True)
    for stated in ({"sql_type": "VARCHAR"}, {"as": "categorical"}):
        assert one("VARCHAR", {"type": "discover", **stated}, kind="csv").typed
    date_column = one("VARCHAR", {"type": "discover", "sql_type": "DATE", "granularity": "month"}, kind="csv")
    assert date_column == Undiscovered("v", "DATE", "temporal", granularity="month")


def test_discover_entries():
    entry = {"type": "discover", "max_codes": 200, "as": "categorical", "nullable": False}
    assert one("BIGINT", entry) == Undiscovered("v", "BIGINT", "categorical", False, 200)
    assert one("BIGINT", {"type": "discover", "nullable": True}, not_null=True).nullable is False
    assert one("DOUBLE", {"type": "discover", "granularity": "0.01"}).granularity == Decimal("0.01")
    assert isinstance(one("BOOLEAN", {"type": "discover"}), Attribute)
    for sql_type, wrong in (("DATE", "categorical"), ("VARCHAR", "numeric"), ("DOUBLE", "categorical")):
        assert "leave out as:" in faults(sql_type, {"type": "discover", "as": wrong})[0]
    assert "write type: key" in faults("UUID", {"type": "discover"})[0]
    assert (
        "no granularity" in faults("INTEGER", {"type": "discover", "as": "categorical", "granularity": 5})[0]
    )
    assert "max_codes" in faults("INTEGER", {"type": "discover", "max_codes": 1})[0]


def test_prefixes_of_what_is_discovered():
    entry = {"type": "discover", "prefixes": [3, 1]}
    assert one("VARCHAR", entry) == Undiscovered("v", "VARCHAR", "categorical", prefixes=(3, 1))
    # Text of a CSV file: only text has beginnings.
    assert one("VARCHAR", entry, kind="csv") == Undiscovered("v", "VARCHAR", "categorical", prefixes=(3, 1))
    assert not one("VARCHAR", {**entry, "prefixes": []}, kind="csv").typed
    for sql_type in ("INTEGER", "DATE", "BOOLEAN", "ENUM('a', 'b')"):
        assert "prefixes need text" in faults(sql_type, entry)[0]
    assert "prefixes need text" in faults("INTEGER", {**entry, "as": "categorical"})[0]
    for lengths in ([1, 3], [3, 3]):
        assert "the longest first" in faults("VARCHAR", {**entry, "prefixes": lengths})[0]
    for lengths in ([0], [1001], ["3"], 3):
        assert "prefixes" in faults("VARCHAR", {**entry, "prefixes": lengths})[0]


def test_keys_constants_and_units():
    assert one("VARCHAR", {"type": "key"}) == Key("v", "VARCHAR", "declared")
    assert one("UUID", {"type": "key"}).origin == "declared"
    assert one("ENUM('secret')", {"type": "key"}).sql_type == "VARCHAR"
    assert one("UUID", {"type": "constant", "value": None}) == Constant("v", "UUID", None)
    assert one("DECIMAL(5,2)", {"type": "constant", "value": 0.1}).value == Decimal("0.1")
    assert one("DATE", {"type": "constant", "value": date(2020, 1, 1)}).value == date(2020, 1, 1)
    assert one("ENUM('secret')", {"type": "constant", "value": "it's"}).sql_type == "ENUM('it''s')"
    assert one("VARCHAR", {"type": "constant", "value": 7}, kind="csv").sql_type == "BIGINT"
    assert "NOT NULL" in faults("INTEGER", {"type": "constant", "value": None}, not_null=True)[0]
    assert "not a label" in faults("ENUM('a')", {"type": "constant", "value": "b"}, enum_labels=("a",))[0]
    assert "single value" in faults("INTEGER", {"type": "constant", "value": [1]})[0]
    assert "value is missing" in faults("INTEGER", {"type": "constant"})[0]
    unit = Column("who", "BLOB")
    shape = shape_of(None, relation(Column("flag", "BOOLEAN"), unit), discover=False, unit=unit)
    assert shape.roles == (UnitId("who", "BLOB"),) and shape.order == ("flag", "who")


def test_a_uuid_is_a_key_and_never_measured():
    assert "type: key" in faults("UUID", {"type": "categorical", "categories": ["x"]})[0]
    assert "type: key" in faults("UUID", {"type": "numeric", "lower": 0, "upper": 1})[0]


def test_unsupported_columns_are_named_together_whatever_their_entry():
    columns = (Column("a", "BLOB"), Column("b", "INTEGER[]"), Column("c", "STRUCT(secret INTEGER)"))
    spec = {"columns": {"a": {"type": "key"}, "b": {"type": "constant", "value": 1}}}
    with pytest.raises(DomainError) as caught:
        shape_of(spec, relation(*columns, Column("ok", "BOOLEAN")), discover=True)
    (fault,) = caught.value.faults
    assert "'a' (type BLOB), 'b' (type LIST or ARRAY), 'c' (type STRUCT)" in fault
    assert "exclude=" in fault and "secret" not in fault


def test_derived_columns():
    assert one("INTEGER", {"derived": " flag + 1 "}) == Derived("v", "INTEGER", "flag + 1")
    table = one(
        "DOUBLE", {"derived": {"flag": {"it's": 0.1, None: date(2020, 1, 1), True: "x", 3: None}}, "else": -1}
    )
    assert table.expression == (
        "CASE WHEN \"flag\" = 'it''s' THEN 0.1 WHEN \"flag\" IS NULL THEN DATE '2020-01-01' "
        'WHEN "flag" = TRUE THEN \'x\' WHEN "flag" = 3 THEN NULL ELSE -1 END'
    )
    for entry in ({"derived": ""}, {"derived": {}}, {"derived": {"a": 1}}, {"derived": {"a": {}, "b": {}}}):
        assert "SQL expression" in faults("INTEGER", entry)[0]
    assert "else needs a mapping" in faults("INTEGER", {"derived": "1", "else": 2})[0]
    columns = (Column("a", "BOOLEAN"), Column("b", "INTEGER", not_null=True))
    shape = shape_of({"columns": {"b": {"derived": "1"}}}, relation(*columns), discover=True)
    assert shape.never == ('"b" IS NULL',)


def test_conditions_are_listed_and_checked_for_form():
    spec = {"columns": None, "never": ["flag AND NOT flag "]}
    assert shape_of(spec, relation(Column("flag", "BOOLEAN")), discover=True).never == ("flag AND NOT flag",)
    for wrong in ("x = 1", [1], [""], {"a": 1}):
        with pytest.raises(DomainError, match="never: must be a list"):
            read_domain({"columns": {}, "never": wrong}).to_shape((Column("flag", "BOOLEAN"),))


def test_conditions_alone_are_told_to_stand_beside_columns():
    with pytest.raises(DomainError) as caught:
        read_domain({"never": ["a = 1"]}).to_shape((Column("a", "INTEGER"),))
    assert str(caught.value) == (
        "A domain has never: without columns:. Write columns: too, with an entry for each column that you know "
        "something about; none yet is columns: {}."
    )


def test_something_must_be_measured():
    spec = {"columns": {"a": {"type": "key"}}}
    with pytest.raises(DomainError, match="at least one must be measured"):
        shape_of(spec, relation(Column("a", "INTEGER")), discover=True)
    unit = Column("u", "INTEGER")
    with pytest.raises(SourceError, match="no columns left"):
        shape_of(None, relation(unit), discover=True, unit=unit)


def test_not_null_wins_over_nullable():
    entry = {"type": "categorical", "categories": ["a"], "nullable": True}
    assert not one("VARCHAR", entry, not_null=True).nullable
    assert one("VARCHAR", entry).nullable


@pytest.mark.parametrize(
    ("sql_type", "bounds", "stated", "granularity"),
    [
        ("INTEGER", (0, 100), 5, 5),
        ("DECIMAL(10,2)", (0, 100), "0.05", 5),
        ("DOUBLE", (0, 1), 0.01, Decimal("0.01")),
        ("DATE", ("2020-01-01", "2020-12-31"), "month", "month"),
        ("DATE", ("2020-01-01", "2020-12-31"), "day", 1),
        ("TIME", ("'08:00:00'", "18:00"), "minute", 60_000_000),
        ("TIMESTAMP", ("2020-01-01", "2020-12-31"), "hour", 3_600_000_000),
        ("TIMESTAMP_S", ("2020-01-01", "2020-12-31"), "hour", 3600),
    ],
)
def test_granularities(sql_type, bounds, stated, granularity):
    kind = "numeric" if sql_type in ("INTEGER", "DECIMAL(10,2)", "DOUBLE") else "temporal"
    low, high = (bound.strip("'") if isinstance(bound, str) else bound for bound in bounds)
    entry = {"type": kind, "lower": low, "upper": high, "granularity": stated}
    assert one(sql_type, entry).granularity == granularity


@pytest.mark.parametrize(
    ("sql_type", "kind", "stated"),
    [
        ("INTEGER", "numeric", 0.5),
        ("INTEGER", "numeric", 0),
        ("DECIMAL(10,2)", "numeric", 0.001),
        ("DOUBLE", "numeric", -1),
        ("INTEGER", "numeric", "month"),
        ("DATE", "temporal", "hour"),
        ("TIME", "temporal", "day"),
        ("DATE", "temporal", 5),
        ("DATE", "temporal", "week"),
    ],
)
def test_granularities_that_do_not_fit(sql_type, kind, stated):
    bounds = {"INTEGER": (0, 9), "DATE": ("2020-01-01", "2021-01-01"), "TIME": ("08:00", "09:00")}
    low, high = bounds.get(sql_type, (0, 9))
    (fault,) = faults(sql_type, {"type": kind, "lower": low, "upper": high, "granularity": stated})
    assert "granularity" in fault


def test_times_of_day():
    whole = one("TIME", {"type": "temporal", "lower": "00:00", "upper": "23:59:59.999999", "bins": 24})
    assert whole.edges[:2] == (time(0), time(1)) and whole.edges[-1] == time.max and whole.regular == 24
    assert "in quotes" in faults("TIME", {"type": "temporal", "lower": 45000, "upper": "18:00"})[0]
    assert "time of day" in faults("TIME", {"type": "temporal", "lower": "2020-01-01", "upper": "18:00"})[0]
    assert "write a date" in faults("DATE", {"type": "temporal", "lower": "08:00", "upper": "2020-01-01"})[0]
    assert (
        one("VARCHAR", {"type": "temporal", "lower": "08:00", "upper": "18:00"}, kind="csv").sql_type
        == "TIME"
    )
