"""PRIVATE: whether the bytes of CSV files are text of their encoding.

The database skips lines that it cannot decode, or fails when all is paid, so they are tried before the debit.
This is a question about all rows, with an exact answer: it decides whether a release begins, which its
operator alone sees (docs/privacy.md, "What is not promised"). The message says which file, and no more.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.files import TextFile, not_of
from dpsyn_sql.source.names import shorten

_PART = 1 << 20
_NO_LATIN = re.compile(rb"[\x80-\x9f]")
"""Bytes that stand for no character of ISO 8859-1. The database refuses them too."""


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
        part = b"."
        while part:
            part = stream.read(_PART)
            if file.form.encoding == "latin-1":
                if _NO_LATIN.search(part):
                    return False
                continue
            try:
                decoder.decode(part, final=not part)
            except UnicodeDecodeError:
                return False
    return True
