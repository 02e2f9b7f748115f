"""How CSV files are written, and options of reading files."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlglot.expressions as exp

from dpsyn_sql.errors import InputError, SourceError, said
from dpsyn_sql.source.names import fold, shorten

ENCODINGS = ("utf-8", "utf-16", "latin-1")
"""What the database reads without an extension."""

CONVERT = (
    "Convert a file of another encoding to UTF-8, such as one of Windows: "
    "iconv -f WINDOWS-1252 -t UTF-8 old.csv > new.csv."
)
_CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "latin-1": "iso8859-1"}
_WORDS = {"tab": "\t", "\\t": "\t"}
"""How a tab is written where it cannot be typed."""


@dataclass(frozen=True, slots=True)
class CsvForm:
    """``delimiter``: None for the one that the header uses. ``quote``: empty where nothing is quoted.
    ``decimal``: what stands before the decimals of a number; None for a point that nobody stated.

    What follows is for ``read_csv`` in queries. ``escape``: None for the quote. ``null``: text that is NULL,
    as empty text is. ``skip``: lines before the header. ``types``: (column, SQL type), in any order; other
    columns are text. ``day``, ``moment``: formats of DATE and TIMESTAMP; None for that of ISO.
    ``whole``: ``types`` names all columns, in their order.
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    quote: str = '"'
    decimal: str | None = None
    escape: str | None = None
    null: tuple[str, ...] = ()
    skip: int = 0
    types: tuple[tuple[str, str], ...] = ()
    day: str | None = None
    moment: str | None = None
    whole: bool = False

    @property
    def codec(self) -> str:
        """Python's name of the encoding, that of UTF-8 without its mark."""
        return _CODECS[self.encoding]

    @property
    def stated(self) -> tuple[str, ...]:
        """``name='value'`` of each option of a release that changes how a file is read."""
        plain = CsvForm(decimal=".")
        return tuple(
            f"{name}={getattr(self, name)!r}"
            for name in ("encoding", "delimiter", "decimal", "quote")
            if getattr(self, name) not in (None, getattr(plain, name))
        )

    def fields(self, record: str, delimiter: str) -> list[str]:
        """The fields of one record."""
        found: Iterator[list[str]]
        if not self.quote:
            found = csv.reader([record], delimiter=delimiter, quoting=csv.QUOTE_NONE)
        elif self.escape in (None, self.quote):
            found = csv.reader([record], delimiter=delimiter, quotechar=self.quote)
        else:
            found = csv.reader(
                [record],
                delimiter=delimiter,
                quotechar=self.quote,
                doublequote=False,
                escapechar=self.escape or None,
            )
        return next(found, [])


def csv_form(
    encoding: object = None, delimiter: object = None, decimal: object = None, quote: object = None
) -> CsvForm:
    """The form that options state; None for what is not stated.

    Raises:
        InputError: one of them is not understood, or two are the same character.
    """
    form = CsvForm(
        encoding=read_encoding(encoding),
        delimiter=None if delimiter is None else read_delimiter("delimiter", delimiter),
        quote=read_quote("quote", '"' if quote is None else quote),
        decimal=None if decimal is None else read_decimal("decimal", decimal),
    )
    check_apart(form)
    return form


def read_encoding(value: object) -> str:
    """One of ``ENCODINGS``.

    Raises:
        InputError: it is none of them.
    """
    known = None
    if isinstance(value, str):
        plain = value.strip().lower().replace("_", "-")
        plain = {"utf8": "utf-8", "utf16": "utf-16", "latin1": "latin-1", "iso-8859-1": "latin-1"}.get(
            plain, plain
        )
        known = plain if plain in ENCODINGS else None
    if value is not None and known is None:
        raise InputError(f"encoding={said(value)} is not read: use one of {', '.join(ENCODINGS)}. {CONVERT}")
    return known or ENCODINGS[0]


def read_delimiter(name: str, value: object) -> str:
    """A character that parts fields.

    Raises:
        InputError: it is none.
    """
    text = _WORDS.get(value.lower(), value) if isinstance(value, str) else ""
    if len(text) != 1 or not (text == "\t" or (text.isascii() and text.isprintable() and not text.isalnum())):
        raise InputError(f"{name}={said(value)}: give one character that is no letter or digit, or 'tab'")
    return text


def read_quote(name: str, value: object) -> str:
    """A character that stands around a field, or none.

    Raises:
        InputError: it is neither.
    """
    if isinstance(value, str) and not value:
        return ""
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or not value.isprintable():
        raise InputError(f"{name}={said(value)}: give one character, or '' if no field is quoted")
    if value.isalnum() or value == " ":
        raise InputError(f"{name}={said(value)}: give one character, or '' if no field is quoted")
    return value


def read_decimal(name: str, value: object) -> str:
    """A point or a comma.

    Raises:
        InputError: it is neither.
    """
    if not isinstance(value, str) or value not in (".", ","):
        raise InputError(f"{name}={said(value)}: give '.' or ','")
    return value


def check_apart(form: CsvForm) -> None:
    """Refuse a delimiter that is the quote.

    Raises:
        InputError: they are one character.
    """
    if form.delimiter is not None and form.delimiter in (form.quote, form.escape):
        raise InputError(f"{said(form.delimiter)} cannot both part fields and stand around them.")


def marks_other(head: bytes, encoding: str) -> str:
    """What to do if the first bytes of a file say another encoding; empty if they do not."""
    if head.startswith(codecs.BOM_UTF16_BE) or (encoding == "utf-16" and head[:1] == b"\0"):
        return "is UTF-16 with the high byte first, which is not read: convert it to UTF-8"
    if head.startswith(codecs.BOM_UTF16_LE) and encoding != "utf-16":
        return "is UTF-16: give encoding='utf-16'"
    if head.startswith(codecs.BOM_UTF8) and encoding != "utf-8":
        return f"is UTF-8, as its first bytes say: leave out encoding={encoding!r}"
    return ""


# -- options -----------------------------------------------------------------------------------------

# The options of ``read_csv`` in a query: constants that say how a file is written.
#
# Lists of what is allowed decide; what is not listed (other files, rejected lines in tables, guesses from
# rows) is refused by its name.

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
    "encoding": _set("encoding", lambda value: read_encoding(_text(value) or "")),
    "delim": _set("delimiter", lambda value: read_delimiter("delim", _text(value))),
    "quote": _set("quote", lambda value: read_quote("quote", _text(value))),
    "escape": _set("escape", lambda value: read_quote("escape", _text(value))),
    "decimal_separator": _set("decimal", lambda value: read_decimal("decimal_separator", _text(value))),
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
