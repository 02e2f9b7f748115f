"""Settings of a method: the fields of its dataclass, read from values or from text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, TypeVar, get_type_hints

from dpsyn_sql.errors import InputError, said

Setting = int | float | bool | str
Kind = TypeVar("Kind")

_IN_WORDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}


def settings_of(kind: type) -> dict[str, type]:
    """Names and types of the settings that a method has, in order."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def checked(method: Kind) -> Kind:
    """The method itself, if every setting of few values (``choices``) has one of them.

    Raises:
        InputError: it names all settings that have another.
    """
    faults = [
        f"{name}={said(getattr(method, name))}; it can be {_listed(map(repr, values))}"
        for name, values in choices_of(method).items()
        if getattr(method, name) not in values
    ]
    if faults:
        raise InputError(f"method={method.name!r} has the setting {', and '.join(faults)}")  # type: ignore[attr-defined]
    return method


def choices_of(method: Any) -> Mapping[str, Sequence[Setting]]:
    """The values of the settings that have few."""
    found: Mapping[str, Sequence[Setting]] = getattr(method, "choices", {})
    return found


def changed_settings(method: Any) -> dict[str, Setting]:
    """The settings that are not the default."""
    return {
        field.name: getattr(method, field.name)
        for field in fields(method)
        if field.default is MISSING or getattr(method, field.name) != field.default
    }


def with_values(method: Kind, given: Mapping[str, Any]) -> Kind:
    """The same kind of method with these settings.

    Raises:
        InputError: it has no such setting, a value is of another type, or not one of few that it can have.
    """
    known = settings_of(type(method))
    for name in given:
        _check_known(method, name, known)
    read = {name: _value(method, name, value, known[name]) for name, value in given.items()}
    changed = {name: value for name, value in read.items() if getattr(method, name) is not value}
    return checked(replace(method, **changed) if changed else method)  # type: ignore[type-var]


def with_texts(method: Kind, given: Mapping[str, str]) -> Kind:
    """The same, from the texts of a command line.

    Raises:
        InputError: it has no such setting, or a text is not a value of its type.
    """
    known = settings_of(type(method))
    for name in given:
        _check_known(method, name, known)
    return with_values(method, {name: _read(text, known[name]) for name, text in given.items()})


def in_words(method: Any) -> str:
    """``settings: degree (a whole number; default 2)``, or ``no settings``."""
    known, choices = settings_of(type(method)), choices_of(method)
    told = list[str]()
    for name, kind in known.items():
        values = _listed(map(str, choices[name])) if name in choices else _IN_WORDS[kind]
        told.append(f"{name} ({values}; default {_as_text(getattr(method, name))})")
    return f"settings: {', '.join(told)}" if told else "no settings"


def _as_text(value: Setting) -> str:
    """As a command line takes it."""
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _listed(words: Iterable[str]) -> str:
    """``a, b or c``."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _check_known(method: Any, name: object, known: Mapping[str, type]) -> None:
    if name not in known:
        raise InputError(f"method={method.name!r} has no setting {said(name)}; it has {in_words(method)}")


def _value(method: Any, name: str, value: Any, kind: type) -> Setting:
    """A value of the type. A whole number is a number; a truth value is not."""
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value, fits = float(value), True
    if not fits or (kind is float and not math.isfinite(value)):
        raise InputError(
            f"method={method.name!r} has the setting {name}, which is {_IN_WORDS[kind]}, not {said(value)}"
        )
    found: Setting = value
    return found


def _read(text: str, kind: type) -> Setting:
    """The value that a text means, or the text itself if it means none."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        number: Setting = kind(text)
    except ValueError:
        return text
    return number
