"""The words of the command line: messages of the package name arguments; the command names its options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import typer

from dpsyn_sql.accounting.account import FIGURE

ARGUMENTS = {"database": "con"}
"""Options whose argument in Python has another name."""

_PHRASES = {
    ", or None": ", or leave it out",
    "same call of release()": "same 'dpsyn release'",
    "the same call": "the same command",
    " (in this process: pass the connection itself as con)": " by another program",
}

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LIST = rf"\[(?:{_QUOTED}|[^\]'\"])*\]"
_MAP = rf"\{{(?:{_QUOTED}|[^{{}}'\"])*\}}"
_VALUE = rf"(?P<truth>True\b|False\b)|(?P<list>{_LIST})|(?P<map>{_MAP})|(?P<plain>)(?=[\w'\"<+-])"


@dataclass(frozen=True, slots=True)
class Option:
    """How an argument is written; ``negative`` is the word for False, if there is one."""

    name: str
    negative: str = ""


_COMMAND: list[typer.Typer] = []


def use_option_names(app: typer.Typer) -> None:
    """Name the options of this command."""
    _COMMAND[:] = [app]


@cache
def options() -> dict[str, Option]:
    """Options of all commands by the name of the Python argument, read from the commands."""
    found: dict[str, Option] = {}
    waiting: list[Any] = [typer.main.get_command(app) for app in _COMMAND]
    while waiting:
        command = waiting.pop()
        waiting.extend(getattr(command, "commands", {}).values())
        for item in command.params:
            name = ARGUMENTS.get(item.name, item.name)
            if item.param_type_name == "argument":
                found.setdefault(name, Option(item.metavar or item.name.upper()))
            else:
                negative = item.secondary_opts[0] if item.secondary_opts else ""
                found[name] = Option(max(item.opts, key=len), negative)
    return found


def with_option_names(text: str) -> str:
    """A message of the package, with ``into=`` as ``--into`` and ``replace=True`` as ``--replace``.

    Quoted names and figures stay.
    """
    known = options()
    names = "|".join(sorted(known, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{_QUOTED}|{FIGURE})|(?<![\w./-])(?P<name>{names})=(?!=)(?:{_VALUE})?")
    spoken = pattern.sub(lambda match: _option(match, known), text)
    for python, shell in _PHRASES.items():
        spoken = spoken.replace(python, shell)
    return spoken


def _option(match: re.Match[str], known: Mapping[str, Option]) -> str:
    if match["name"] is None:
        return match[0]
    option = known[match["name"]]
    if match["truth"]:
        return option.name if match["truth"] == "True" else option.negative or f"no {option.name}"
    if match["list"] or match["map"]:
        return " ".join(f"{option.name} {item}" for item in _items(match["list"] or match["map"]))
    return option.name if match["plain"] is None else f"{option.name} "


def _items(text: str) -> list[str]:
    """Members of a list or of a mapping, one for each option."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return ["NAME"]
    if isinstance(value, dict):
        pairs = ((key if isinstance(key, str) else ",".join(key), item) for key, item in value.items())
        return [shlex.quote(f"{key}={item}".replace("\t", "tab")) for key, item in pairs]
    return ["NAME" if item is Ellipsis else repr(item) for item in value]
