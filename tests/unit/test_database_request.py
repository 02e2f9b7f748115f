"""The request of a release of several tables: a value, a YAML file and arguments of Python are the same."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from dpsyn_sql.errors import InputError
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.request import DEFAULTS, OPTIONS, Request

ASKED = """
unit: customers.customer_id
tables: [customers, orders]
public_tables: [products]
into: out/shop.duckdb
epsilon: 0.5
most: {orders: 32}
domain: shop.yml
version: 7
"""


def test_yaml_is_the_same_as_a_call(tmp_path):
    (tmp_path / "ask.yml").write_text(ASKED)
    assert Request.from_yaml(tmp_path / "ask.yml") == Request(
        unit="customers.customer_id",
        source=("customers", "orders"),
        public_tables=("products",),
        into=tmp_path / "out/shop.duckdb",
        epsilon=0.5,
        most={"orders": 32},
        domain=tmp_path / "shop.yml",
        version="7",
    )


@pytest.mark.parametrize(
    "into, path",
    [
        ("shop_synthetic", False),
        ("db.shop", False),
        ("s.duckdb", True),
        ("S.DB", True),
        ("out/", True),
        ("a/b", True),
    ],
)
def test_a_schema_is_no_path(into, path):
    made = Request.from_mapping({"into": into}, folder="/job").into
    assert made == (Path("/job", into) if path else into)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"unit": ""}, "unit=''"),
        ({"unit": 3}, "customers.customer_id"),
        ({"tables": "orders"}, "tables='orders': give a list"),
        ({"public_tables": [3]}, "public_tables=<list>"),
        ({"exclude": "a"}, "exclude='a'"),
        ({"most": 16}, "most=16"),
        ({"most": {"orders": 0}}, "{'orders': 0} is out of range"),
        ({"most": {"orders": 2**20 + 1}}, "from 1 to 1048576"),
        ({"most": {"orders": True}}, "out of range"),
        ({"most": {"orders": "16"}}, "out of range"),
        ({"most": {3: 16}}, "out of range"),
        ({"units": -1}, "units=-1"),
        ({"units": 2.5}, "units=2.5"),
        ({"seed": 2**64}, "seed="),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"into": 3}, "into=3"),
        ({"into": ""}, "into=''"),
        ({"domain": 3}, "domain=3"),
        ({"ledger": 3}, "ledger=3"),
        ({"constraints": "yes"}, "constraints='yes'"),
        ({"replace": 1}, "replace=1"),
        ({"discover": None}, "discover=None"),
        ({"version": ""}, "version=''"),
        ({"memory_limit": "much"}, "memory_limit"),
        ({"time_limit": 0}, "time_limit=0"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(given, words):
    with pytest.raises(InputError) as caught:
        Request(**given).check()
    assert words in str(caught.value)


def test_what_is_right_is_accepted():
    Request().check()
    Request(unit="c.id", source=["c", "o"], most={"o": 2**20, "c": 1}, rows=0, constraints=True).check()


@pytest.mark.parametrize("key", ["source", "privacy_unit", "mosst", "con"])
def test_unknown_keys_are_refused(key):
    with pytest.raises(InputError, match="unknown key"):
        Request.from_mapping({key: 1})


def test_the_repr_shows_what_is_given():
    asked = Request(unit="c.id", source=["c", "o"], epsilon=2, most={"o": 3})
    assert repr(asked) == "Request(unit='c.id', tables=<list>, epsilon=2, most=<dict>)"
    assert repr(Request()) == "Request()"


def test_options_of_both_requests_are_the_same_where_they_mean_the_same():
    shared = [name for name in OPTIONS if name in OPTIONS]
    assert {"epsilon", "delta", "ledger", "version", "seed", "replace", "new_debit", "discover"} <= set(
        shared
    )
    for name in shared:
        assert DEFAULTS[name] == DEFAULTS[name]
        assert OPTIONS[name].reads is OPTIONS[name].reads
        assert OPTIONS[name].flags == OPTIONS[name].flags


@takes_request(Request)
def ask(con, request):
    """Say what is asked.

    Args:
        con: a connection.
        request: a request; or its fields:

    Raises:
        InputError: never.
    """
    return con, request


def test_a_function_takes_a_request_or_its_options():
    asked = Request(unit="c.id", source=["c", "o"], epsilon=2)
    assert ask(None, asked) == (None, asked)
    assert ask(None, "c.id", tables=["c", "o"], epsilon=2) == (None, asked)
    assert ask(con=None, unit="c.id", tables=["c", "o"], epsilon=2) == (None, asked)
    with pytest.raises(InputError, match="Give a Request alone"):
        ask(None, asked, epsilon=3)
    with pytest.raises(TypeError, match="epsilom"):
        ask(None, "c.id", epsilom=3)
    assert list(inspect.signature(ask).parameters) == ["con", *(DEFAULTS)]
    for option in OPTIONS:
        assert f"    {option}: " in ask.__doc__
        assert f"    {option}: " in Request.__doc__


def test_a_request_of_one_table_is_no_request_of_a_database():
    with pytest.raises(InputError, match="unit="):
        ask(None, Request("t"))[1].check()
    assert replace(Request(unit="a.b"), units=3).units == 3
