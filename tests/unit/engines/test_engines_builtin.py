"""What tells built-in functions from those that take their place, whatever the line of DuckDB lets one do."""

from dpsyn_sql.engines.builtin import _untouched, changed_builtins


def test_nothing_is_changed_in_an_untouched_instance():
    assert changed_builtins(_untouched()) == []


def test_a_function_that_is_made_again_is_younger_than_all_that_duckdb_brings():
    """It can look the same in all that the catalog says of it, but for its number."""
    latest = max(row.number for row in _untouched())
    again = [row._replace(number=latest + 1) if row.name == "sqrt" else row for row in _untouched()]
    assert changed_builtins(again) == ["sqrt"]


def test_an_overload_more_less_or_other_is_a_change():
    rows = [row for row in _untouched() if row.name != "sqrt"]
    own = next(row for row in _untouched() if row.name == "sqrt")
    assert changed_builtins(rows) == ["sqrt"]
    assert changed_builtins([*rows, own._replace(result="VARCHAR")]) == ["sqrt"]
    assert changed_builtins([*rows, own, own._replace(parameters="[INTEGER]")]) == ["sqrt"]
