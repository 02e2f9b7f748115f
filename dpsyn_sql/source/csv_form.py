"""How a CSV file is written, as its owner states it: public, and never guessed from rows."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass

from dpsyn_sql.errors import InputError, said

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
