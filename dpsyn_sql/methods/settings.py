"""Settings of a method: the fields of its dataclass, read from values or from text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, TypeVar, get_type_hints

from dpsyn_sql.errors import InputError, said

Setting = int | float | bool | str
Kind = TypeVar("Kind")

_IN_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def settings_of(kind: type) -> dict[str, type]:
    """Names and types of the settings that a method has, in order."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


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
        InputError: it has no such setting, or a value is of another type.
    """
    known = settings_of(type(method))
    for name in given:
        _check_known(method, name, known)
    read = {name: _value(method, name, value, known[name]) for name, value in given.items()}
    changed = {name: value for name, value in read.items() if getattr(method, name) is not value}
    return replace(method, **changed) if changed else method  # type: ignore[type-var]


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
    """``degree (a whole number, 2)``, or ``no settings``."""
    known = settings_of(type(method))
    told = [f"{name} ({_IN_WORDS[kind]}, {getattr(method, name)!r})" for name, kind in known.items()]
    return ", ".join(told) or "no settings"


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
