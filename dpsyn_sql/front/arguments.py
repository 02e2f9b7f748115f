"""Functions that take a ``Request``, or its options as arguments of their own.

Names, types and defaults of the options come from ``Request`` alone. Type checkers read its constructor;
``inspect.signature`` and ``help()`` read what ``takes_request`` makes from it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InputError, hides_own_frames
from dpsyn_sql.front.request import Request, explained
from dpsyn_sql.source.frames import DataFrame

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class RequestFunction(Protocol[P, R_co]):
    """``function(con, Request(...))``, or ``function(con, source, epsilon=...)``."""

    @overload
    def __call__(self, con: Connection | DataFrame, source: Request) -> R_co: ...
    @overload
    def __call__(self, con: Connection | DataFrame, *args: P.args, **options: P.kwargs) -> R_co: ...


def _bound(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], given: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by name. A wrong one is refused with the error of Python, which names the function."""
    try:
        return signature.bind(*args, **given).arguments
    except TypeError as error:
        message = f"{name}() {error}"
    raise TypeError(message)


def takes_request(
    make: Callable[P, Request],
) -> Callable[[Callable[[Connection, Request], R]], RequestFunction[P, R]]:
    """Decorate a function of a connection and a request, so that it takes the options of a request too.

    Its docstring gets an entry for each option, before ``Raises:``.
    """
    options = inspect.signature(make).parameters.values()

    def decorated(function: Callable[[Connection, Request], R]) -> RequestFunction[P, R]:
        own = inspect.signature(function)
        signature = own.replace(parameters=[own.parameters["con"], *options])

        @functools.wraps(function)
        @hides_own_frames
        def call(*args: Any, **given: Any) -> R:
            arguments = _bound(function.__name__, signature, args, given)
            con, source = arguments.pop("con"), arguments.get("source")
            if not isinstance(source, Request):
                return function(con, Request(**arguments))
            if len(arguments) > 1:
                raise InputError(
                    "Give a Request alone: change it with dataclasses.replace(request, name=value), or give "
                    "all options as arguments."
                )
            return function(con, source)

        text, raises, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\nRaises:")
        call.__doc__ = f"{text}\n{explained()}{raises}{rest}"
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorated
