"""Which columns say whose row it is, and the privacy unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpsyn_sql.attributes.spec import ColumnSpec, Item
from dpsyn_sql.attributes.types import SqlType, parse_type
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.source.names import fold, listed, near_matches, shorten
from dpsyn_sql.source.relation import ROW_OF_RESULT, Column, PrivacyUnit

# -- cases -------------------------------------------------------------------------------------------

# What a rule about declarations looks at: columns with their declarations, and what their names say.

Severity = Literal["fault", "serious", "hint"]
"""A release refuses it; it ruins a column or weakens the protection; it can be done better."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One odd thing, and what to do about it.

    ``column``: its name; None if the finding is about several columns, or about the table.
    """

    column: str | None
    what: str
    cure: str
    severity: Severity

    def __str__(self) -> str:
        who = "" if self.column is None else f"column {self.column!r}: "
        return f"{who}{self.what}; {self.cure}" if self.cure else f"{who}{self.what}"


@dataclass(frozen=True, slots=True)
class Case:
    """One column that is released.

    ``kind``: the type of its values; None if it is not supported. ``entry``: its declaration; None without
    one. ``stated``: the keys that the owner wrote. ``item``: what becomes of it.
    """

    column: Column
    kind: SqlType | None
    entry: ColumnSpec | None
    stated: frozenset[str]
    item: Item | None

    @property
    def name(self) -> str:
        """Of the column."""
        return self.column.name


@dataclass(frozen=True, slots=True)
class Table:
    """The columns that are released, without that of the privacy unit.

    ``columns``: those of the source, also what is left out. ``cataloged``: the catalog of the source was
    read; else names and types are those of the domain file. ``csv``: the source is text. ``by_row``: a row is
    protected, not a person, and nobody said so. ``most_cells``: of a pair of columns that a method measures
    at all.
    """

    cases: Sequence[Case]
    columns: Sequence[Column]
    cataloged: bool
    csv: bool
    by_row: bool
    most_cells: int


# -- what names say --------------------------------------------------------------------------------

_PERSONS = frozenset(
    {"borrower", "client", "customer", "donor", "driver", "employee", "household", "member", "passenger"}
    | {"participant", "patient", "person", "pupil", "respondent", "student", "subscriber", "taxpayer"}
    | {"user", "visitor"}
)
_TELLS_APART = frozenset({"guid", "id", "ids", "key", "nbr", "nr", "uid", "uuid"})
_ALONE = frozenset({"email", "imei", "msisdn", "passport", "ssn"})
_CODES = frozenset(
    {"code", "codes", "fips", "icd", "naics", "plz", "postal", "postcode", "sic", "sku", "zip", "zipcode"}
)
_MONEY = frozenset(
    {"amount", "balance", "cost", "fare", "fee", "income", "paid", "payment", "price", "revenue", "salary"}
    | {"tax", "tip", "total", "wage"}
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words_of(name: str) -> list[str]:
    """The words of a name, small: ``CustomerID``, ``customer_id`` and ``customerid`` are customer, id."""
    words = list[str]()
    for word in _WORD.findall(name):
        small = word.lower()
        stem = small.removesuffix("id")
        words += [stem, "id"] if stem in _PERSONS and stem != small else [small]
    return words


def names_a_person(name: str) -> bool:
    """Whether a name says whose row it is: ``patient_nbr``, ``CustomerID``, ``email``."""
    words = words_of(name)
    if len(words) == 1:
        return words[0] in _ALONE
    return bool(words) and words[-1] in _TELLS_APART | {"no", "number"} and words[-2] in _PERSONS


def names_persons(table: str) -> bool:
    """Whether the name of a table says that its rows are persons: ``customers``, ``Patient``."""
    words = words_of(table)
    return bool(words) and words[-1].removesuffix("s") in _PERSONS


def says_whose_row(column: Column) -> bool:
    """Whether a column is named like the id of a person, and may have several rows of one: it is no key."""
    return not column.unique and names_a_person(column.name)


def names_an_identifier(name: str) -> bool:
    """Whether a name says that its values tell things apart: ``id``, ``encounter_id``, ``StoreKey``."""
    return any(word in _TELLS_APART for word in words_of(name)[-1:])


def names_a_code(name: str) -> bool:
    """Whether a name says that its numbers are codes: ``zip``, ``icd9_code``."""
    return any(word in _CODES for word in words_of(name))


def names_money(name: str) -> bool:
    """Whether a name says that its values are amounts of money: ``UnitPrice``, ``fare_amount``."""
    return any(word in _MONEY for word in words_of(name)[-2:])


# -- the unit ----------------------------------------------------------------------------------------

# The privacy unit's column: which types can identify a unit, and when two values are equal.
#
# Two rows belong to one unit if and only if their values of the unit column have the same text, byte for
# byte. Both directions matter: if two units were merged, taking one of them out would let other rows of the
# other one in; if one unit were split, it would count more than its bound.

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
    matches = [column for column in columns if fold(column.name) == fold(unit.column)]
    text = f"unit={shorten(unit.column)!r}"
    if fold(unit.column) == ROW_OF_RESULT:
        raise InputError(f"{text} is the ledger's name for a row of a query's result: rename the column.")
    if not matches:
        names = [column.name for column in columns if identifies(column)]
        close = near_matches(unit.column, names)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise InputError(
            f"{text} is not a column of the source.{hint} A unit can be one of {listed(names)}, or 'row'."
            if names
            else f"{text} is not a column of the source, and none of its columns can be a unit: write 'row'."
        )
    if len(matches) > 1:
        raise InputError(f"{text} is ambiguous: the source has several columns of this name; rename one.")
    if not identifies(matches[0]):
        raise InputError(
            f"{text} is of type {family_of(matches[0].sql_type)}, which cannot identify a unit: each value "
            "must have exactly one spelling. Allowed are text, ENUM, BOOLEAN, whole numbers, DECIMAL, DATE, "
            "TIMESTAMP, UUID and BLOB. Cast the column in a query or view: TRY_CAST(id AS BIGINT) AS id."
        )
    return matches[0]


def not_stated(columns: Sequence[Column]) -> str:
    """Why single rows are protected only if the owner says so: columns say whose rows they are; or nothing.

    What is left out of the output counts too: whose a row is does not depend on what is written.
    """
    names = [column.name for column in columns if says_whose_row(column)]
    if not names:
        return ""
    single = len(names) == 1
    return (
        f"unit= is not given, and {'column' if single else 'columns'} {listed(names)} "
        f"{'says' if single else 'say'} whose row it is: a person with several rows would be protected less. "
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
