"""CSV files: the SQL that reads them as their owner says they are written, and whether their bytes are text.

PRIVATE. For the SQL only headers are read. The database skips lines that it cannot decode, or fails when all
is paid, so bytes are tried before the debit. That is a question about all rows with an exact answer: it
decides whether a release begins, which its operator alone sees (docs/privacy.md, "What is not promised"). The
message says which file, and no more.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.files import FileSet, TextFile, common_header, not_of
from dpsyn_sql.source.names import fold, listed, name_hint, shorten
from dpsyn_sql.sqltext.fragments import Fragment, comma, ident, literal, text_as
from dpsyn_sql.sqltext.render import render

_FORMATTED = {"date": "day", "timestamp": "moment"}
"""Families of types whose text may have a format."""
_BLOCK = 1 << 20
_NO_LATIN = re.compile(rb"[\x80-\x9f]")
"""Bytes that stand for no character of ISO 8859-1. The database refuses them too."""


def csv_call(files: FileSet, paths: Fragment, form: CsvForm) -> Fragment:
    """What stands after FROM: all columns as text, or those that ``form`` names as its types.

    Raises:
        SourceError: a header is unreadable or has clashing names, or ``form`` does not fit it.
    """
    header = common_header(files, form)
    call = render(
        "source/read_csv",
        paths=paths,
        columns=comma(Fragment(f"{literal(name)}: 'VARCHAR'") for name in header.names),
        delimiter=literal(header.delimiter),
        quote=literal(form.quote),
        escape=literal(form.quote if form.escape is None else form.escape),
        null=Fragment(f"[{comma(literal(text) for text in ('', *form.null))}]") if form.null else literal(""),
        skip=form.skip,
        encoding=literal(form.encoding),
        compression=literal("gzip" if files.gzipped else "none"),
        strict=int(form.strict),
    )
    return _typed(call, files, header.names, form) if form.types else call


def _typed(call: Fragment, files: FileSet, names: tuple[str, ...], form: CsvForm) -> Fragment:
    """Text that is not of its type is NULL: a reader that were told the types would leave out the line."""
    where = f"The file {shorten(files.paths[0])!r}"
    types = {fold(name): kind for name, kind in form.types}
    unknown = [name for name, _ in form.types if fold(name) not in map(fold, names)]
    if unknown:
        raise SourceError(f"{where} has no column {shorten(unknown[0])!r}; {name_hint(unknown[0], names)}")
    if form.whole and [fold(name) for name, _ in form.types] != [*map(fold, names)]:
        raise SourceError(
            f"columns= must name all columns of {shorten(files.paths[0])!r} in their order: "
            f"{listed(names, 10)}. Name some of them with types=."
        )
    columns = [Fragment(f"{_value(name, types.get(fold(name)), form)} AS {ident(name)}") for name in names]
    return render("source/frame", columns=columns, frame=call)


def _value(name: str, kind: str | None, form: CsvForm) -> Fragment:
    text, sql_type = ident(name), None if kind is None else parse_type(kind)
    if kind is None:
        return text
    if sql_type is None or sql_type.family == "enum":
        raise SourceError(
            f"read_csv gives {shorten(name)!r} the type {shorten(kind)!r}: use a type of numbers, dates, "
            "times, text or BOOLEAN, and cast to others in the query."
        )
    if sql_type.family == "text":
        return text
    option = _FORMATTED.get(sql_type.family)
    pattern = None if option is None else getattr(form, option)
    if pattern is not None:
        return Fragment(f"TRY_CAST(try_strptime(trim({text}), {literal(pattern)}) AS {sql_type.sql})")
    return text_as(text, sql_type.sql, form.decimal or ".")


def refuse_undecodable(files: Iterable[TextFile]) -> None:
    """Read all of these files once.

    Raises:
        SourceError: one of them is not of its encoding, or cannot be read to its end.
    """
    for file in files:
        problem = ""
        try:
            if not _decodes(file):
                problem = not_of(file.form)
        except (OSError, EOFError, zlib.error) as error:
            problem = f"cannot be read ({type(error).__name__})."
        if problem:
            raise SourceError(f"The file {shorten(file.path)!r} {problem} Nothing was charged.")


def _decodes(file: TextFile) -> bool:
    decoder = codecs.getincrementaldecoder(file.form.codec)()
    with gzip.open(file.path, "rb") if file.gzipped else Path(file.path).open("rb") as stream:
        block = b"."
        while block:
            block = stream.read(_BLOCK)
            if file.form.encoding == "latin-1":
                if _NO_LATIN.search(block):
                    return False
                continue
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError:
                return False
    return True
