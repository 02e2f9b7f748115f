"""The options of ``read_csv`` in a query: constants that say how a file is written.

Lists of what is allowed decide; what is not listed (other files, rejected lines in tables, guesses from rows)
is refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlglot.expressions as exp

from dpsyn_sql.errors import InputError, SourceError
from dpsyn_sql.source.csv_form import CsvForm, check_apart, csv_value
from dpsyn_sql.source.names import fold, shorten

Node = Any

_MOST_SKIPPED = 1000


def csv_form_of(options: Sequence[Node]) -> CsvForm:
    """The form that the options of a call state.

    Args:
        options: what stands behind the path: ``delim = ';'``, in brackets or not, or ``delim := ';'``.

    Raises:
        SourceError: an option is not allowed, stands twice, or is no constant of its kind.
    """
    form, seen = CsvForm(), set[str]()
    for node in options:
        name, value = _named(node)
        key = _SYNONYMS.get(name, name)
        if key not in _READ:
            raise SourceError(f"The query gives read_csv the option {shorten(name)!r}: {ALLOWED}.")
        if key in seen:
            raise SourceError(f"The query gives read_csv the option {shorten(name)!r} twice.")
        seen.add(key)
        form = replace(form, **_changes(key, value))
    try:
        check_apart(form)
    except InputError as error:
        fault = str(error)
    else:
        return form
    raise SourceError(fault)


def _changes(name: str, value: Node) -> Mapping[str, Any]:
    fault = f"read_csv: {name} is no constant that is understood"
    try:
        found = _READ[name](value)
    except InputError as error:
        fault, found = f"read_csv: {error}", None
    if found is None:
        raise SourceError(fault)
    return found


def _named(node: Node) -> tuple[str, Node]:
    while isinstance(node, exp.Paren):  # a view's definition has brackets around each option
        node = node.this
    if isinstance(node, exp.EQ | exp.PropertyEQ | exp.Kwarg):
        left = node.this
        if isinstance(left, exp.Identifier) or (isinstance(left, exp.Column) and len(left.parts) == 1):
            return fold(left.name), node.expression
    raise SourceError(f"The query gives read_csv something that is no option with a name: {ALLOWED}.")


def _text(value: Node) -> str | None:
    return str(value.this) if isinstance(value, exp.Literal) and value.is_string else None


def _members(value: Node, kind: type[Any], function: str) -> list[Node] | None:
    """What a list or a struct is made of, also as a view's definition has it: ``main.list_value('a')``."""
    if isinstance(value, exp.Dot) and value.this.name == "main":
        value = value.expression
    made = isinstance(value, exp.Anonymous) and fold(value.name) == function
    return list(value.expressions) if made or isinstance(value, kind) else None


def _texts(value: Node) -> tuple[str, ...] | None:
    members = _members(value, exp.Array, "list_value")
    items = [value] if members is None else members
    found = [_text(item) for item in items]
    return tuple(text for text in found if text is not None) if found and None not in found else None


def _whole(value: Node) -> int | None:
    plain = isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit()
    return int(value.this) if plain and int(value.this) <= _MOST_SKIPPED else None


def _true(value: Node) -> Mapping[str, Any] | None:
    if isinstance(value, exp.Cast) and value.is_type("boolean"):  # as the definition of a view may have it
        return {} if (_text(value.this) or "").lower() in ("t", "true") else None
    return {} if isinstance(value, exp.Boolean) and value.this is True else None


def _types(value: Node) -> tuple[tuple[str, str], ...] | None:
    """``{'a': 'DATE'}``."""
    found = list[tuple[str, str]]()
    for item in _members(value, exp.Struct, "struct_pack") or ():
        kind = _text(item.expression) if isinstance(item, exp.PropertyEQ) else None
        if kind is None:
            return None
        found.append((item.this.name, kind))
    distinct = {fold(name) for name, _ in found}
    return tuple(found) if found and len(distinct) == len(found) else None


def _set(field: str, read: Callable[[Node], Any]) -> Callable[[Node], Mapping[str, Any] | None]:
    def changes(value: Node) -> Mapping[str, Any] | None:
        found = read(value)
        return None if found is None else {field: found}

    return changes


def _all_types(value: Node) -> Mapping[str, Any] | None:
    found = _types(value)
    return None if found is None else {"types": found, "whole": True}


_READ: Mapping[str, Callable[[Node], Mapping[str, Any] | None]] = {
    "encoding": _set("encoding", lambda value: csv_value("encoding", _text(value) or "", "encoding")),
    "delim": _set("delimiter", lambda value: csv_value("delimiter", _text(value), "delim")),
    "quote": _set("quote", lambda value: csv_value("quote", _text(value), "quote")),
    "escape": _set("escape", lambda value: csv_value("quote", _text(value), "escape")),
    "decimal_separator": _set(
        "decimal", lambda value: csv_value("decimal", _text(value), "decimal_separator")
    ),
    "nullstr": _set("null", _texts),
    "skip": _set("skip", _whole),
    "header": _true,
    "all_varchar": _true,
    "types": _set("types", _types),
    "columns": _all_types,
    "dateformat": _set("day", _text),
    "timestampformat": _set("moment", _text),
}
_SYNONYMS = {
    "sep": "delim",
    "delimiter": "delim",
    "dtypes": "types",
    "column_types": "types",
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
}
ALLOWED = (
    "allowed are read_parquet('path'), and read_csv('path') with constants for "
    f"{', '.join(name for name in _READ if name != 'header')} and header = true"
)
"""What a message says of files in queries."""
