"""The form that ``dpsyn init`` writes: a domain file to fill in, from catalog types alone.

Nothing of an anonymous ENUM or a nested type is printed, because such types can be made from
the data itself. Names are always double-quoted YAML, so that no name can leave its comment line.
"""

from __future__ import annotations

from typing import Any

import yaml

from dpsyn_sql.domain.declared import catalog_attribute
from dpsyn_sql.domain.types import SqlType, parse_type
from dpsyn_sql.source.relation import Column, Relation

_HEAD = """\
# Public domain of {name}.
#
# Say here what may be known about every column without looking at the data: the protection rests
# on it. Take bounds and categories from a code book, a law or common sense, never from the rows.
#
# How to fill in: remove the "# " before a line that starts with a column's name, replace FILL.
#   numeric      lower and upper bound, both included; bins: how many intervals (may be left out);
#                or edges: [0, 1, 5000, 99999] for cuts of your own (the last one is the upper bound)
#   temporal     the same with dates: 2020-12-31
#   categorical  categories: [a, b]; other: false if no further value can occur;
#                ordered: true if neighbours in the list are alike
#   nullable     true if NULL may occur and shall occur in the synthetic table
# Columns that shall not be released: exclude= in Python, --exclude on the command line.
columns:
"""
_CSV = "#   sql_type     for this CSV file: the type of the text, such as BIGINT, DECIMAL(10,2) or DATE\n"
_LONGEST_KEY = 100  # longer ones need YAML's explicit key mark


def template_text(relation: Relation) -> str:
    """A domain file with a commented form for every column that needs one; valid YAML as it is,
    and a valid domain once the forms are uncommented and filled."""
    head = _HEAD.format(name=_quoted(relation.name))
    if relation.kind == "csv":
        head = head.replace("columns:\n", _CSV + "columns:\n")
    return head + "".join(_entry(column, csv=relation.kind == "csv") for column in relation.columns)


def _quoted(text: str) -> str:
    """A double-quoted YAML scalar in one line."""
    dumped: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return dumped.strip()


def _entry(column: Column, *, csv: bool) -> str:
    name, kind = _quoted(column.name), parse_type(column.sql_type)
    if kind is None:
        return f"\n  # {name}: type {_family(column)} is not supported; exclude this column.\n"
    if catalog_attribute(column, kind) is not None:
        what = "BOOLEAN" if kind.family == "boolean" else f"ENUM of {len(column.enum_labels or ())} labels"
        return f"\n  # {name}: {what}, known from the catalog; nothing to write.\n"
    shown = "text of a CSV file" if csv else "ENUM without a name" if kind.family == "enum" else kind.text
    form = _form(kind, nullable=not column.not_null)
    lines = f"{name}: {form}" if len(name) <= _LONGEST_KEY else f"? {name}\n: {form}"
    commented = "".join(f"  # {line}\n" for line in lines.split("\n"))
    return f"\n  ## {shown}\n{commented}"


def _family(column: Column) -> str:
    if column.sql_type.endswith("]"):
        return "LIST or ARRAY"
    word = column.sql_type.split("(")[0].strip()
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
