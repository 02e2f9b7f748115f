"""The form that ``dpsyn init`` writes: a domain file to fill in, from the types of the catalog alone.

Nothing of an anonymous ENUM or a nested type is printed, because such types can be made from
the data itself. Names are always double-quoted YAML, so that no name can leave its comment line.
"""

from __future__ import annotations

from typing import Any

import yaml

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.matching import Matching
from dpsyn_sql.domain.shape import Key
from dpsyn_sql.domain.types import SqlType, parse_type
from dpsyn_sql.domain.unit import family_of
from dpsyn_sql.source.relation import Column, Relation

_HEAD = """\
# Public domain of {name}.
#
# Declare here what is known about every column without looking at the data. The protection depends
# on it: take bounds and categories from a code book, a law or common sense, never from the rows.
# What you write is printed in the plan and the certificate, and never checked against the rows.
#
"""
HOW_TO_DECLARE = """\
# How to fill in: remove the "# " before a line that starts with a column's name, replace FILL.
# A column without an entry is learnt from the rows with noise. This costs part of the budget and
# finds only frequent values. With --no-discover it is an error instead.
#
# Columns that are measured:
#   numeric      lower and upper bound, both included. With more than 100 values between them, bins and
#                frequent values are learnt with noise, at a small cost. Or bins: so many equal intervals;
#                or edges: [0, 1, 5000, 99999] for cuts of your own (the last one is the upper bound)
#   temporal     the same with dates: 2020-12-31; write times of day in quotes: '08:30:00'
#   categorical  categories: [a, b]; other: false if no further value can occur;
#                prefixes: [3] if text that is not listed may count as "250*", which then is a category;
#                ordered: true if neighbours in the list are alike
#   nullable     true if NULL may occur and shall occur in the synthetic table
#   per_unit     true if all rows of a unit have the same value, such as a year of birth; with unit=
#   granularity  values are whole multiples of it: 0.01, 100, or second, minute, hour, day, month
#   discover     {type: discover}: learn the column with noise; lower, upper: no value beyond is looked
#                for; max_codes: at most so many values or bins, one each for all other values and for
#                NULL included; as: categorical for whole numbers that are codes, such as zones;
#                prefixes: [3, 1] for text that is a code: a value that is not found keeps its beginning
# Columns of more values than can be listed: trees of values that are learnt, fine where the rows are:
#   point        places: {type: point, columns: {lat: [40.4, 41.0], lon: [-74.3, -73.6]}}, under a name of
#                its own, with lower and upper bounds; a way from one place to another has four columns
#   string       names and search words: {type: string, alphabet: "a-zA-Z' -", longest: 20}, every
#                character that the text may have, and the length at which it is cut
#   taxonomy     codes: {type: taxonomy, ids: ["250.1", "250.2", "401"], prefixes: [1, 3]}, or ids with
#                their parents: {type: taxonomy, parents: {"250": "240-279", "251": "240-279"}}
#   dyadic       numbers and dates of fine detail: {type: dyadic, lower: 0, upper: 100000}
# Columns that are made, not measured:
#   key          {type: key}: tells rows apart; fresh values, each once
#   constant     {type: constant, value: x}: the same public value in every row
#   derived      {derived: "age >= 18"}: computed from other columns by a SQL expression, or from
#                one column by a table: {derived: {education: {Bachelors: 13, Masters: 14}}, else: 0}
# Rows that cannot be, as SQL conditions that hold in no row of the output (a key of its own, last):
#   never: ["age < 16 AND marital_status = 'Married'"]
# Columns that shall not be released: exclude= in Python, --exclude on the command line.
"""
"""What the form says of declarations: comment lines."""

_CSV = """\
# This is a CSV file, which has no types, and no row was read to guess them. Say of each column:
#   sql_type     BIGINT, DECIMAL(10,2), DOUBLE, DATE, TIMESTAMP, TIME, BOOLEAN, or VARCHAR for text and codes
# That alone is much: without it the type is learnt from the rows with noise, at a cost. Bounds or categories
# in place of type: discover are better still; sql_type can stand beside them.
"""
_TEXT = "text; sql_type: BIGINT, DECIMAL(10,2), DOUBLE, DATE, TIMESTAMP, TIME, BOOLEAN or VARCHAR"
_LONGEST_KEY = 100  # longer ones need YAML's explicit key mark


def template_text(relation: Relation) -> str:
    """A domain file with a commented form for every column that needs one; valid YAML as it is,
    and a valid domain once the forms are uncommented and filled."""
    csv = relation.kind == "csv"
    head = _HEAD.format(name=quoted(relation.name)) + HOW_TO_DECLARE + (_CSV if csv else "") + "columns:\n"
    return head + "".join(column_form(column, csv=csv) for column in relation.columns)


def quoted(text: str) -> str:
    """A double-quoted YAML scalar in one line."""
    dumped: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return dumped.strip()


def column_form(column: Column, *, csv: bool = False) -> str:
    """The commented form of one column, indented by two, after an empty line."""
    name, kind = quoted(column.name), parse_type(column.sql_type)
    if kind is None:
        return f"\n  # {name}: type {_family(column)} is not supported; exclude this column.\n"
    from_catalog = _known(column, kind)
    if from_catalog:
        return f"\n  # {name}: {from_catalog}; nothing to write.\n"
    if csv:
        return _commented(name, _TEXT, "{type: discover, sql_type: FILL}")
    shown = "ENUM without a name" if kind.family == "enum" else kind.text
    form = _form(kind, nullable=not column.not_null)
    instead = "{type: discover}" + (
        ", for codes {type: discover, prefixes: [3, 1]}" if kind.family == "text" else ""
    )
    return _commented(name, f"{shown}; or instead: {instead}", form)


def _commented(name: str, remark: str, form: str) -> str:
    """A column's remark, and its form as a comment."""
    lines = f"{name}: {form}" if len(name) <= _LONGEST_KEY else f"? {name}\n: {form}"
    commented = "".join(f"  # {line}\n" for line in lines.split("\n"))
    return f"\n  ## {remark}\n{commented}"


def _known(column: Column, kind: SqlType) -> str:
    """What the catalog makes public of a column, in words; empty if nothing."""
    matched = Matching({}, {}, {}, csv=False, discover=False).column(column, [])
    if isinstance(matched, Key):
        why = "unique by a constraint of the table" if column.unique else "a UUID"
        return f"a key, {why}: gets fresh values"
    if not isinstance(matched, Attribute):
        return ""
    if kind.family == "boolean":
        return "BOOLEAN, known from the catalog"
    if kind.family == "enum":
        return f"ENUM of {len(column.enum_labels or ())} labels, known from the catalog"
    if matched.kind == "categorical":
        return f"{kind.text} of {matched.regular} values, known from a CHECK constraint"
    return f"{kind.text} with bounds, known from a CHECK constraint"


def _family(column: Column) -> str:
    word = family_of(column.sql_type)
    return word if word.replace(" ", "").isalpha() else "of this column"


def _form(kind: SqlType, *, nullable: bool) -> str:
    form: dict[str, Any]
    if kind.family in ("text", "enum"):
        form = {"type": "categorical", "categories": ["FILL"], "other": True}
    else:
        numeric = kind.family in ("integer", "decimal", "float")
        form = {"type": "numeric" if numeric else "temporal", "lower": "FILL", "upper": "FILL"}
    form["nullable"] = nullable
    dumped: str = yaml.safe_dump(form, default_flow_style=True, sort_keys=False, width=float("inf"))
    return dumped.strip()
