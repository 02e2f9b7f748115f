"""CSV text that must be readable as its type, or the release stops (``on_error="fail"``)."""

from __future__ import annotations

from dataclasses import replace

from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render


def typed_relation(relation: Relation, shape: Shape) -> Relation:
    """The relation with its measured columns read strictly; others stay text, and nothing reads them.

    The failure of a cast depends on a row and is outside the privacy promise. Its text, which quotes
    the value, is not shown, as for every statement.
    """
    read = (column for item in shape.measured for column in item.columns)
    types = {column.name: column.type for column in read if column.source is None}
    columns = []
    for column in relation.columns:
        kind, name = types.get(column.name), ident(column.name)
        # Empty text is NULL already; text of spaces alone is empty too.
        typed = kind is not None and kind.family != "text"
        value = f"CAST(nullif(trim({name}), '') AS {kind.sql})" if typed and kind is not None else name
        columns.append(Fragment(f"{value} AS {name}"))
    return replace(relation, sql=render("encode/strict", relation=relation.sql, columns=columns), strict=True)
