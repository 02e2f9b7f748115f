"""Runs something and finds all that it said and left, to search it for a planted text."""

import io
import json
import logging
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout

import dpsyn_sql


def everything_of(error, *, locals_too=True):
    """An error with all that hangs on it, as text: chains, notes, arguments, attributes, traceback."""
    texts, waiting, seen = [], [error], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one), repr(one.args), repr(vars(one)), repr(getattr(one, "__notes__", ()))]
        texts += traceback.format_exception(one)
        if locals_too:
            texts += traceback.TracebackException.from_exception(one, capture_locals=True).format()
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return "\n".join(texts)


class Watched:
    """Runs something and keeps all that it said: value, error, output, warnings, log."""

    def __init__(self, work):
        self.value = self.error = None
        text, log = io.StringIO(), logging.StreamHandler(io.StringIO())
        root = logging.getLogger()
        level = root.level
        root.addHandler(log)
        root.setLevel(logging.DEBUG)
        try:
            with redirect_stdout(text), redirect_stderr(text), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    self.value = work()
                except dpsyn_sql.DpsynError as error:
                    self.error = error
        finally:
            root.removeHandler(log)
            root.setLevel(level)
        said = [text.getvalue(), log.stream.getvalue(), *(str(one.message) for one in caught)]
        said.append(repr(self.value) if self.error is None else everything_of(self.error))
        if isinstance(self.value, dpsyn_sql.Release):
            said += [json.dumps(self.value.certificate()), str(self.value.notes)]
            said += [str(table.values.tolist()) for table in self.value.measurements]
        self.said = "\n".join(said)


def holding(folder, text, sources=()):
    """Files under a folder that hold the text; the source may."""
    needles = [text.encode(), text.encode("utf-16-le"), text.encode().hex().encode()]
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in sources]
    return [path for path in files if any(needle in path.read_bytes() for needle in needles)]
