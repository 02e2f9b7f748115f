"""The privacy unit's column: which types can identify a unit, and when two values are equal.

Two rows belong to one unit if and only if their values of the unit column have the same text,
byte for byte. Both directions matter: if two units were merged, taking one of them out would let
other rows of the other one in; if one unit were split, it would count more than its bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsyn_sql.domain.cases import says_whose_row
from dpsyn_sql.domain.types import parse_type
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.source.names import fold, listed, near_matches, shorten
from dpsyn_sql.source.relation import ROW_OF_RESULT, Column, PrivacyUnit

# Types whose values have exactly one text each. A float has 0 and -0, which are equal, and NaN; the
# text of a moment with time zone depends on the session; an INTERVAL of 30 days equals one month.
_FAMILIES = frozenset({"boolean", "integer", "decimal", "text", "enum", "date", "timestamp", "uuid"})
_OTHER_TYPES = frozenset({"BLOB"})


def check_unit(columns: Sequence[Column], unit: PrivacyUnit) -> Column:
    """The column that says whose row it is. Reads nothing.

    The name is looked up as the database does, without regard to ASCII case. The column may also
    be among the excluded ones: it is never an attribute of the domain.

    Raises:
        InputError: there is no such column, or several; or its type has no single text for each value.
    """
    if unit.column is None:
        raise InternalError("a privacy unit without a column was looked up")
    found = [column for column in columns if fold(column.name) == fold(unit.column)]
    given = f"unit={shorten(unit.column)!r}"
    if fold(unit.column) == ROW_OF_RESULT:
        raise InputError(f"{given} is the ledger's name for a row of a query's result: rename the column.")
    if not found:
        names = [column.name for column in columns if identifies(column)]
        close = near_matches(unit.column, names)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise InputError(
            f"{given} is not a column of the source.{hint} A unit can be one of {listed(names)}, or 'row'."
            if names
            else f"{given} is not a column of the source, and none of its columns can be a unit: write 'row'."
        )
    if len(found) > 1:
        raise InputError(f"{given} is ambiguous: the source has several columns of this name; rename one.")
    if not identifies(found[0]):
        raise InputError(
            f"{given} is of type {family_of(found[0].sql_type)}, which cannot identify a unit: each value "
            "must have exactly one spelling. Allowed are text, ENUM, BOOLEAN, whole numbers, DECIMAL, DATE, "
            "TIMESTAMP, UUID and BLOB. Cast the column in a query or view: TRY_CAST(id AS BIGINT) AS id."
        )
    return found[0]


def not_stated(columns: Sequence[Column]) -> str:
    """Why single rows are protected only if the owner says so: columns say whose rows they are; or nothing.

    What is left out of the output counts too: whose a row is does not depend on what is written.
    """
    names = [column.name for column in columns if says_whose_row(column)]
    if not names:
        return ""
    one = len(names) == 1
    return (
        f"unit= is not given, and {'column' if one else 'columns'} {listed(names)} "
        f"{'says' if one else 'say'} whose row it is: a person with several rows would be protected less. "
        f"Write unit={names[0]!r}, with the most rows of one that count as most=, or "
        "unit='row' if every person has one row, or single rows are what you want to protect."
    )


def identifies(column: Column) -> bool:
    """Whether each value of the column's type has exactly one text."""
    kind = parse_type(column.sql_type)
    if kind is None:
        return column.sql_type in _OTHER_TYPES
    return kind.family in _FAMILIES and not kind.zoned


def family_of(sql_type: str) -> str:
    """For a message: a type without its arguments, which can hold labels made from the data."""
    return "LIST or ARRAY" if sql_type.endswith("]") else sql_type.split("(")[0].strip()
