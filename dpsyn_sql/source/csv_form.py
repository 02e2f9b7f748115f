"""How a CSV file is written, and what happens to text that cannot be read: stated by its owner, public, and
never guessed from rows.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpsyn_sql.errors import InputError, said
from dpsyn_sql.source.names import keyed

ENCODINGS = ("utf-8", "utf-16", "latin-1")
"""What the database reads without an extension."""

ON_ERROR = ("null", "fail")
"""What happens to text that cannot be read as its column's type, and to a line that is no CSV."""

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
    ``on_error``: one of ``ON_ERROR``.

    What follows is for ``read_csv`` in queries. ``escape``: None for the quote. ``null``: text that is NULL,
    as empty text is. ``skip``: lines before the header. ``types``: (column, SQL type), in any order; other
    columns are text. ``day``, ``moment``: formats of DATE and TIMESTAMP; None for that of ISO.
    ``whole``: ``types`` names all columns, in their order.
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    quote: str = '"'
    decimal: str | None = None
    on_error: str = ON_ERROR[0]
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
    def strict(self) -> bool:
        """Whether text that cannot be read is an error."""
        return self.on_error == "fail"

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


CsvSpec = Mapping[str, str | None] | None
"""How a CSV file is written, as people say it: ``{"delimiter": ";", "decimal": ","}``."""


def csv_form(spec: CsvSpec = None) -> CsvForm:
    """The form that an option ``csv`` states; what it does not state is as usual.

    Raises:
        InputError: not such a mapping, a value that is not understood, or two are the same character.
    """
    stated = keyed("csv", spec, _VALUES, "{'delimiter': ';', 'decimal': ','}")
    values: dict[str, Any] = {key: csv_value(key, value) for key, value in stated.items()}
    form = CsvForm(**values)
    check_apart(form)
    return form


def csv_value(key: str, value: object, option: str = "") -> str:
    """The value of a key of ``csv``; or of an ``option`` of ``read_csv`` that says the same.

    Raises:
        InputError: it is not understood.
    """
    read, refusal = _VALUES[key]
    text = read(value) if isinstance(value, str) else None
    if text is None:
        stated = f"{option}={said(value)}" if option else f"csv={{{key!r}: {said(value)}}}"
        raise InputError(f"{stated}{refusal}")
    return text


def _delimiter(text: str) -> str | None:
    text = _WORDS.get(text.lower(), text)
    parts = text == "\t" or (text.isascii() and text.isprintable() and not text.isalnum())
    return text if len(text) == 1 and parts else None


def _decimal(text: str) -> str | None:
    return text if text in (".", ",") else None


def _encoding(text: str) -> str | None:
    plain = text.strip().lower().replace("_", "-")
    plain = {"utf8": "utf-8", "utf16": "utf-16", "latin1": "latin-1", "iso-8859-1": "latin-1"}.get(
        plain, plain
    )
    return plain if plain in ENCODINGS else None


def _quote(text: str) -> str | None:
    stands = len(text) == 1 and text.isascii() and text.isprintable() and not text.isalnum() and text != " "
    return text if stands or not text else None


def _on_error(text: str) -> str | None:
    return text if text in ON_ERROR else None


_VALUES: Mapping[str, tuple[Callable[[str], str | None], str]] = {
    "delimiter": (_delimiter, ": give one character that is no letter or digit, or 'tab'"),
    "decimal": (_decimal, ": give '.' or ','"),
    "encoding": (_encoding, f" is not read: use one of {', '.join(ENCODINGS)}. {CONVERT}"),
    "quote": (_quote, ": give one character, or '' if no field is quoted"),
    "on_error": (_on_error, f" is not known; use one of {', '.join(ON_ERROR)}"),
}
"""By the keys of ``csv``: how a text is read (None: it is not understood), and what is said of another."""


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
        return "is UTF-16: give csv={'encoding': 'utf-16'}"
    if head.startswith(codecs.BOM_UTF8) and encoding != "utf-8":
        return f"is UTF-8, as its first bytes say: leave out csv={{'encoding': {encoding!r}}}"
    return ""
