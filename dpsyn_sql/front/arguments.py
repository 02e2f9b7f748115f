"""Functions that take a request, or its options as arguments of their own.

Names, types and defaults of the options come from the class of the request alone. Type checkers read its
constructor; ``inspect.signature`` and ``help()`` read what ``takes_request`` makes from it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import InputError, hides_own_frames
from dpsyn_sql.front.options import Options, explained
from dpsyn_sql.source.frames import DataFrame

P = ParamSpec("P")
R = TypeVar("R")
Q = TypeVar("Q", bound=Options)
R_co = TypeVar("R_co", covariant=True)
Q_contra = TypeVar("Q_contra", bound=Options, contravariant=True)


class RequestFunction(Protocol[P, Q_contra, R_co]):
    """``function(con, Request(...))``, or ``function(con, source, epsilon=...)``."""

    @overload
    def __call__(self, con: Connection | DataFrame, request: Q_contra, /) -> R_co: ...
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
    make: Callable[P, Q],
) -> Callable[[Callable[[Connection, Q], R]], RequestFunction[P, Q, R]]:
    """Decorate a function of a connection and a request, so that it takes the options of a request too.

    ``make``: the class of the request; it can be given in place of its first field. The docstring gets an
    entry for each option, before ``Raises:``.
    """
    kind = cast("type[Q]", make)
    options = inspect.signature(make).parameters
    first = next(iter(options))

    def decorated(function: Callable[[Connection, Q], R]) -> RequestFunction[P, Q, R]:
        own = inspect.signature(function)
        signature = own.replace(parameters=[own.parameters["con"], *options.values()])

        @functools.wraps(function)
        @hides_own_frames
        def call(*args: Any, **given: Any) -> R:
            arguments = _bound(function.__name__, signature, args, given)
            con, request = arguments.pop("con"), arguments.get(first)
            if not isinstance(request, kind):
                return function(con, kind(**arguments))
            if len(arguments) > 1:
                raise InputError(
                    f"Give a {kind.__name__} alone: change it with dataclasses.replace(request, name=value), "
                    "or give all options as arguments."
                )
            return function(con, request)

        text, raises, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\nRaises:")
        call.__doc__ = f"{text}\n{explained(kind)}{raises}{rest}"
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorated
