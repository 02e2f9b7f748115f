"""Files as sources: which files a path means and what a CSV header says (public facts only).

Of a CSV file only the first record is read, in Python: a sniffer would look at rows to guess
types, and so would make the shape of the release depend on them.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.csv_form import CONVERT, CsvForm, marks_other
from dpsyn_sql.source.names import WILDCARDS, absolute_path, case_clashes, has_parent_after_wildcard, shorten

FileFormat = Literal["parquet", "csv"]

HEADER_LIMIT = 1 << 20
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_DELIMITERS = ",;\t|"
_LINE_END = re.compile("\r\n|\n|\r")
_PLAIN = CsvForm()
DATABASE_ENDINGS = (".duckdb", ".db")
"""Of a DuckDB file, in small letters."""

_ENDINGS: dict[str, FileFormat] = {".parquet": "parquet", ".csv": "csv", ".csv.gz": "csv"}


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files a path means: ``paths`` are absolute, without ``..`` and sorted, all of one format.

    ``single`` is true for the path of one file, false for a glob or a folder.
    """

    name: str
    paths: tuple[str, ...]
    format: FileFormat
    gzipped: bool
    single: bool


@dataclass(frozen=True, slots=True)
class TextFile:
    """A CSV file that is read, and the encoding that it is stated to have."""

    path: str
    gzipped: bool
    form: CsvForm


@dataclass(frozen=True, slots=True)
class CsvHeader:
    """The column names of a CSV file and the delimiter its header line uses."""

    names: tuple[str, ...]
    delimiter: str


def file_beside(path: Path) -> Path:
    """Where the model of a release that is written to a file is kept: ``<output>.dpsyn.duckdb``."""
    return path.with_name(path.name + ".dpsyn.duckdb")


def looks_like_path(text: str) -> bool:
    """Not a table: quoted parts are names; outside them a known ending or a slash makes a path."""
    bare = _QUOTED.sub("", text)
    return "/" in bare or (ending_of(text) is not None and bare == text)


def is_duckdb_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file that begins as a DuckDB database."""
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:  # noqa: PTH123 - as of find_files
        return file.read(12)[8:] == b"DUCK"
    return False


def ending_of(path: str) -> str | None:
    """The known ending of a path (``.parquet``, ``.csv``, ``.csv.gz``), or None."""
    lowered = path.lower()
    return next((ending for ending in (".csv.gz", ".csv", ".parquet") if lowered.endswith(ending)), None)


def find_files(path: str) -> FileSet | None:
    """The files of a path, a folder or a glob; None when there are none.

    Raises:
        SourceError: an unknown ending, several formats at once, ``..`` after a wildcard, or a remote address.
    """
    if "://" in path:
        raise SourceError(f"{shorten(path)!r} is a remote address; copy the files to a local folder first.")
    # os.path and not Path: these answer False for what no path can be, such as 5,000 characters.
    if os.path.isdir(path):  # noqa: PTH112
        paths = _in_folder(path)
    elif os.path.exists(path):  # noqa: PTH110
        paths = [path]
    elif WILDCARDS & set(path):
        _refuse_turning_back(path)
        paths = [item for item in glob.glob(path, recursive=True) if os.path.isfile(item)]  # noqa: PTH113, PTH207
    else:
        paths = []
    if not paths:
        return None
    endings = {ending_of(item) for item in paths}
    if None in endings or len(endings) > 1:
        kinds = ", ".join(sorted(ending or "another ending" for ending in endings))
        raise SourceError(
            f"{shorten(path)!r} matches files of {kinds}. A source must have files of one kind: "
            ".parquet, .csv or .csv.gz."
        )
    ending = endings.pop() or ""
    absolute = tuple(sorted({str(absolute_path(item)) for item in paths}))
    single = os.path.isfile(path)  # noqa: PTH113
    _refuse_one_file_twice(path, absolute)
    return FileSet(path, absolute, _ENDINGS[ending], ending.endswith(".gz"), single)


def _refuse_turning_back(path: str) -> None:
    if has_parent_after_wildcard(path):
        raise SourceError(
            f"{shorten(path)!r} has '..' after a wildcard, so it leads to folders that it does not "
            "name. Write the path without '..'."
        )


def _refuse_one_file_twice(path: str, paths: Sequence[str]) -> None:
    """Links would count each row of a file several times, which one unit of budget does not pay for."""
    path_of_file: dict[tuple[int, int], str] = {}
    for item in paths:
        status = Path(item).stat()
        earlier = path_of_file.setdefault((status.st_dev, status.st_ino), item)
        if earlier != item:
            raise SourceError(
                f"{shorten(path)!r} matches one file twice: {shorten(earlier)!r} and {shorten(item)!r} are "
                "links to the same file. Name it once."
            )


def text_files(files: FileSet, form: CsvForm) -> tuple[TextFile, ...]:
    """Those of the files that are text: all or none."""
    if files.format != "csv":
        return ()
    return tuple(TextFile(path, files.gzipped, form) for path in files.paths)


def common_header(files: FileSet, form: CsvForm) -> CsvHeader:
    """The header of the first file, which all files of the source must share.

    Raises:
        SourceError: a header is unusable, or differs from the first.
    """
    first = read_csv_header(files.paths[0], gzipped=files.gzipped, form=form)
    for path in files.paths[1:]:
        if read_csv_header(path, gzipped=files.gzipped, form=form) != first:
            raise SourceError(
                f"The header of {shorten(path)!r} differs from that of {shorten(files.paths[0])!r}. The "
                "files of a source must have the same columns in the same order, with the same delimiter."
            )
    return first


def _in_folder(path: str) -> list[str]:
    files: list[str] = []
    readable = False
    with contextlib.suppress(OSError):
        files = [str(item) for item in Path(path).iterdir() if item.is_file() and ending_of(item.name)]
        readable = True
    if not files:
        problem = "holds no .parquet, .csv or .csv.gz file" if readable else "cannot be read"
        raise SourceError(f"The folder {shorten(path)!r} {problem}.")
    return files


def read_csv_header(path: str, *, gzipped: bool, form: CsvForm = _PLAIN) -> CsvHeader:
    """Read the first record of a CSV file and nothing else.

    Raises:
        SourceError: no header, not of the stated form, longer than 1 MiB, empty or clashing names.
    """
    where = f"The header of {shorten(path)!r}"
    record = _first_record(path, where, gzipped=gzipped, form=form)
    delimiter = _delimiter(record, form, where)
    names = tuple(form.fields(record, delimiter))
    if not any(names):
        raise SourceError(f"{where} is empty; the first line must name the columns.")
    empty = [str(number) for number, name in enumerate(names, start=1) if not name.strip()]
    if empty:
        raise SourceError(f"{where} has no name for column {', '.join(empty)}; name every column.")
    if any("\x00" in name for name in names):
        raise SourceError(f"{where} holds a NUL character. Is the file UTF-16? Then give encoding='utf-16'.")
    refuse_clashes(names, where)
    return CsvHeader(names, delimiter)


def refuse_clashes(names: tuple[str, ...], where: str) -> None:
    """Refuse names that are equal or differ in case only: SQL could not tell the columns apart.

    Raises:
        SourceError: names the columns.
    """
    clashes = case_clashes(names)
    if clashes:
        listed = ", ".join(repr(shorten(name)) for name in clashes)
        raise SourceError(f"{where} has column names that SQL cannot tell apart: {listed}; rename them.")


def _first_record(path: str, where: str, *, gzipped: bool, form: CsvForm) -> str:
    """The text of the first record, without its line end; quoted line ends belong to it."""
    problem = None
    data = b""
    try:
        with gzip.open(path, "rb") if gzipped else Path(path).open("rb") as stream:
            data = stream.read(HEADER_LIMIT + 1)
    except (OSError, EOFError, zlib.error) as error:
        problem = type(error).__name__
    if problem is not None:
        raise SourceError(f"The file {shorten(path)!r} cannot be read ({problem}).")
    if marked := marks_other(data, form.encoding):
        raise SourceError(f"The file {shorten(path)!r} {marked}.")
    # What follows the header may be cut or wrong: it is not looked at here.
    text = data.decode(form.codec, "replace").removeprefix("\ufeff")
    start = _after_lines(text, form.skip)
    end = _record_end(text, start, form.quote)
    if end is None:
        if len(data) > HEADER_LIMIT:
            raise SourceError(f"{where} is longer than 1 MiB: is it a CSV file?")
        end = len(text)
    record = text[start:end]
    if "\ufffd" in record or (form.encoding == "latin-1" and any("\x80" <= sign < "\xa0" for sign in record)):
        raise SourceError(f"{where} {not_of(form)}")
    return record


def not_of(form: CsvForm) -> str:
    """What is wrong with a file that is not of its encoding, and what to do."""
    if form.encoding == "utf-8":
        return f"is not UTF-8. Give encoding='latin-1' if it is Latin-1. {CONVERT}"
    return f"is not {form.encoding}, as encoding={form.encoding!r} says. {CONVERT}"


def _after_lines(text: str, number: int) -> int:
    """Where the text after so many lines begins."""
    start = 0
    for _ in range(number):
        line_end = _LINE_END.search(text, start)
        start = len(text) if line_end is None else line_end.end()
    return start


def _record_end(text: str, start: int, quote: str) -> int | None:
    """Where the record that begins at ``start`` ends: a line end with an even number of quotes before it."""
    quotes = 0
    for line_end in _LINE_END.finditer(text, start):
        quotes += text.count(quote, start, line_end.start()) if quote else 0
        if quotes % 2 == 0:
            return line_end.start()
        start = line_end.end()
    return None


def _delimiter(record: str, form: CsvForm, where: str) -> str:
    """The stated delimiter, or the one that occurs most often outside quotes; a comma if none does."""
    outside = "".join(record.split(form.quote)[::2]) if form.quote else record
    likeliest = max(_DELIMITERS, key=outside.count)
    if form.delimiter is None:
        return likeliest
    if form.delimiter not in outside and likeliest in outside:
        raise SourceError(
            f"{where} has {likeliest!r} between its names, it seems, and not {form.delimiter!r}, as "
            f"delimiter={form.delimiter!r} says."
        )
    return form.delimiter
