"""What a rule about declarations looks at: columns with their declarations, and what their names say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpsyn_sql.domain.matching import Fitted
from dpsyn_sql.domain.specs import Entry
from dpsyn_sql.domain.types import SqlType
from dpsyn_sql.source.relation import Column

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
    entry: Entry | None
    stated: frozenset[str]
    item: Fitted

    @property
    def name(self) -> str:
        """Of the column."""
        return self.column.name


@dataclass(frozen=True, slots=True)
class Table:
    """The columns that are released, without that of the privacy unit.

    ``columns``: those of the source, also what is left out. ``known``: the catalog of the source was read;
    else names and types are those of the domain file. ``csv``: the source is text. ``by_row``: a row is
    protected, not a person, and nobody said so. ``most_cells``: of a pair of columns that a method measures
    at all.
    """

    cases: Sequence[Case]
    columns: Sequence[Column]
    known: bool
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
    found = list[str]()
    for word in _WORD.findall(name):
        small = word.lower()
        stem = small.removesuffix("id")
        found += [stem, "id"] if stem in _PERSONS and stem != small else [small]
    return found


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
