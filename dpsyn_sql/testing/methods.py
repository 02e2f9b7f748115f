"""A method for the time of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpsyn_sql.methods import METHODS, Recipe


@contextmanager
def registered(method: Recipe) -> Iterator[None]:
    """A method, with default settings, under its name in the registry; the last of all there are."""
    METHODS[method.name] = method
    try:
        yield
    finally:
        del METHODS[method.name]
