"""What the options of a request are made of, of one table or of a database: the help, plain data, checks.

A field of a request that has an ``Option`` is an argument of Python, a key of YAML and an option of the
command.
"""

from __future__ import annotations

import numbers
import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from dpsyn_sql.accounting.budget import Budget, Number
from dpsyn_sql.errors import InputError, said, yaml_word
from dpsyn_sql.planning.limits import read_limits
from dpsyn_sql.source.frames import is_frame
from dpsyn_sql.source.names import refuse_unknown

_LABELS = ("name", "version", "account")
_NAMES = ("order", "unit", "workload")
_SEEDS = 2**64
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Option:
    """How a field is explained, and how the command spells it.

    ``help`` is for everybody; ``more`` is added for readers of Python. ``reads``: type of the command's
    value; a list is an option that may be repeated. ``flags``: the names of the option, if they are
    more than the name of the field with dashes.
    """

    help: str
    more: str = ""
    reads: type = str
    flags: tuple[str, ...] = ()


def told(help: str, more: str = "", *, reads: type = str, flags: tuple[str, ...] = ()) -> dict[str, Option]:
    """The metadata of a field."""
    return {"option": Option(help, more, reads, flags)}


def options_of(request: type[Any]) -> dict[str, Option]:
    """The options of a class of requests by the names of its fields, in their order."""
    return {item.name: item.metadata["option"] for item in fields(request) if "option" in item.metadata}


def explained(request: type[Any]) -> str:
    """The options for a docstring, one entry each."""
    entries = [
        f"{name}: {option.help} {option.more}".rstrip() for name, option in options_of(request).items()
    ]
    entry = textwrap.TextWrapper(_WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
    entry.break_on_hyphens = False
    return "\n".join(entry.fill(text) for text in entries)


def explain_options(request: type[Any]) -> None:
    """Add the options to the docstring of a class of requests."""
    request.__doc__ = (
        f"{request.__doc__ or ''}\n    Args:\n{textwrap.indent(explained(request), ' ' * 4)}\n    "
    )


class Options:
    """A request: a frozen dataclass whose fields are options, checked when it is used, or by ``check``."""

    __slots__ = ()

    epsilon: Number
    delta: Number
    limits: Mapping[str, Any] | None
    seed: int | None

    paths: ClassVar[tuple[str, ...]]
    """The fields that can hold paths."""

    def __post_init__(self) -> None:
        """A whole number is a label by its decimal text."""
        for name in _LABELS:
            value = getattr(self, name)
            if isinstance(value, numbers.Integral) and not isinstance(value, bool):
                object.__setattr__(self, name, str(int(value)))

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Any], *, folder: str | os.PathLike[str] | None = None
    ) -> Self:
        """A request from plain data, as YAML and JSON have it; the values are checked when it is used.

        Args:
            mapping: values by the names of the fields; a missing field has its default. Keys of
                ``workload`` are names as in a line of CSV: ``income``, or ``age,sex``.
            folder: where relative paths begin; default: the folder of the process. ``domain`` and ``ledger``
                are paths; ``source`` and ``into`` are paths if they have a slash or the ending of a file
                that is read or written, otherwise names. Paths within a query stay unchanged.

        Raises:
            InputError: not a mapping, unknown keys, or a label that is not text.
        """
        if not isinstance(mapping, Mapping):
            raise InputError(f"A request must be a mapping of options to values, not {said(mapping)}.")
        refuse_unknown("The request", mapping, options_of(cls), _ELSEWHERE)
        given = {name: cls.plain(name, value) for name, value in mapping.items()}
        if folder is not None:
            given |= {name: cls._below(folder, name, given) for name in cls.paths if name in given}
        return cls(**given)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Self:
        """A request from a YAML file; relative paths in it begin at the file's folder.

        Raises:
            InputError: it cannot be read, is no YAML, or as for ``from_mapping``.
        """
        from dpsyn_sql.attributes.document import load_yaml  # loads much

        if not isinstance(path, str | os.PathLike):
            raise InputError(f"A request is read from the path of a YAML file, not from {said(path)}.")
        file = Path(path)
        return cls.from_mapping(load_yaml(file, "request", InputError), folder=file.parent)

    @classmethod
    def plain(cls, name: str, value: Any) -> Any:
        """A value of plain data, as a call would have it."""
        return plain(name, value)

    @classmethod
    def is_path(cls, name: str, text: str, given: Mapping[str, Any]) -> bool:
        """Whether the value of a field that can hold a path is one, beside the other values."""
        return True

    @classmethod
    def _below(cls, folder: str | os.PathLike[str], name: str, given: Mapping[str, Any]) -> Any:
        """A relative path, from ``folder``; anything else as it is."""
        value = given[name]
        path = isinstance(value, str) and value and cls.is_path(name, value, given)
        return Path(folder, value) if path else value

    def __repr__(self) -> str:
        """What is not default; of values that are no text and no number their type alone."""
        return f"{type(self).__name__}({', '.join(self.given())})"

    def given(self) -> list[str]:
        """``name=value`` of each option that is not default."""
        defaults = {item.name: item.default for item in fields(self)}  # type: ignore[arg-type]
        values = {name: getattr(self, name) for name in options_of(type(self))}
        return [
            f"{name}={said(value)}"
            for name, value in values.items()
            if type(value) is not type(defaults[name]) or not bool(value == defaults[name])
        ]

    def budget(self) -> Budget:
        """The budget of (epsilon, delta).

        Raises:
            BudgetError: epsilon or delta out of range.
        """
        return Budget.of_release(self.epsilon, self.delta)

    def check_common(self, *, names: Sequence[str], flags: Sequence[str]) -> None:
        """Refuse what is wrong of the budget, labels, seed, limits, ``domain`` and ``ledger``.

        Args:
            names: the fields that are lists of names.
            flags: the fields that are True or False.

        Raises:
            InputError: naming the option, its value, and what is allowed.
        """
        self.budget()
        check_integer("seed", self.seed, _SEEDS)
        for name in names:
            check_names(name, getattr(self, name))
        for name in flags:
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name}={said(getattr(self, name))}: give True or False")
        for name in _LABELS:
            _check_label(name, getattr(self, name))
        read_limits(self.limits)
        domain, ledger = getattr(self, "domain", None), getattr(self, "ledger", None)
        if domain is not None and not isinstance(domain, str | os.PathLike | Mapping):
            raise InputError(f"domain={said(domain)}: give a YAML file, a mapping, or None")
        if not _is_ledger(ledger):
            raise InputError(f"ledger={said(ledger)}: give the path of a file, an open ledger, or None")


# -- plain data --------------------------------------------------------------------------------


_ELSEWHERE = {
    "con": "the database is no part of a request: con=, or --database",
    "database": "the database is no part of a request: con=, or --database",
    "tables": "the tables are the source: source: [customers, orders]",
}
"""What a file of a request might say, and where it stands."""


def plain(name: str, value: Any) -> Any:
    """A value of plain data, as a call would have it."""
    if is_frame(value):
        raise InputError(f"{name}={said(value)} is no plain data: make Request(source=...) instead")
    if name in _NAMES and isinstance(value, bool):
        raise InputError(f"{name}={said(value)} is no text: {yaml_word(value, name)}")
    if name in _LABELS and (isinstance(value, bool) or not isinstance(value, str | numbers.Integral | None)):
        raise InputError(f"{name}={said(value)} is no text: write it in quotes")
    return tuple(value) if isinstance(value, list) else value


# -- single values -----------------------------------------------------------------------------


def check_names(name: str, value: Any) -> None:
    """Refuse what is no list of names."""
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(x, str) for x in value)
    ):
        raise InputError(f"{name}={said(value)}: give a list of names")


def _check_label(name: str, value: Any) -> None:
    """A label must survive a ledger, a message and a terminal."""
    if value is None:
        return
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InputError(f"{name}={said(value)} is not a usable label: give some printable text, or None")


def _is_ledger(value: Any) -> bool:
    if value is None or hasattr(value, "open_release"):
        return True
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


def check_integer(name: str, value: Any, below: int | None) -> None:
    """Refuse what is neither None nor a whole number from 0."""
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 0 or (below is not None and value >= below):
        limit = "" if below is None else f" and below {below}"
        raise InputError(
            f"{name}={said(value)} is out of range: give a whole number from 0 up{limit}, or None"
        )
