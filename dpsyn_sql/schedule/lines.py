"""A YAML file with the line of each key and value, so that a fault can be shown where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dpsyn_sql.attributes.yaml_numbers import read_decimal
from dpsyn_sql.errors import ScheduleError, said

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value."""

_DEEPEST = 50
_MOST_PLACES = 200_000
_ENDLESS = "a value contains itself, or is nested too deeply"


class _Loader(yaml.SafeLoader):
    """The safe loader, which leaves dates as they are written: one that does not exist is a fault of ours."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


read_decimal(_Loader)


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of one file, with their lines; ``refuse`` raises them all at once."""

    path: Path
    lines: Mapping[Place, int] = field(default_factory=dict)
    found: list[tuple[int, str]] = field(default_factory=list)
    places: set[Place] = field(default_factory=set)

    def line(self, key_path: Place) -> int:
        """The line of a place, or of the nearest one around it."""
        while key_path and key_path not in self.lines:
            key_path = key_path[:-1]
        return self.lines.get(key_path, 1)

    def add(self, key_path: Place, text: str) -> None:
        """A fault at a place."""
        self.places.add(key_path[:2])
        self.found.append((self.line(key_path), text))

    def at(self, entry: Place, text: str, *keys: str | int) -> None:
        """A fault of an entry, whose name begins the text, at a key in it."""
        self.add((*entry, *keys), f"{'.'.join(map(str, entry))}: {text}")

    def refuse(self) -> None:
        """Raise the faults, if there are any.

        Raises:
            ScheduleError: with all of them in the order of the file.
        """
        if self.found:
            messages = dict.fromkeys(f"{self.path}:{line}: {text}" for line, text in sorted(self.found))
            raise ScheduleError("The schedule cannot be used. Nothing was read or charged.", tuple(messages))


def read_yaml(path: Path) -> tuple[Any, Faults]:
    """What a file holds, with dates as text, and the faults of its YAML: keys that occur twice, a loop.

    Raises:
        ScheduleError: it cannot be read, or is no YAML.
    """
    problem, line, node = "", 1, None
    loader = None
    try:
        loader = _Loader(path.read_text(encoding="utf-8-sig"))
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        problem = f"it is not valid YAML: {error.problem}"
    except (yaml.YAMLError, RecursionError):
        problem = "it is not valid YAML: a character in it is not allowed, or it is nested too deeply"
    except FileNotFoundError:
        problem = "there is no such file"
    except (OSError, ValueError):
        problem = "it cannot be opened as a UTF-8 text file"
    if problem or loader is None:
        Faults(path, found=[(line, problem)]).refuse()
    lines: dict[Place, int] = {}
    faults = Faults(path, lines)
    if node is None:
        faults.add((), "it is empty: write sources: and releases:")
        faults.refuse()
    for key_path, where, text in _walk(node, (), ()):
        lines.setdefault(key_path, where)
        if len(lines) > _MOST_PLACES:
            text = f"the file has more than {_MOST_PLACES:,} values, with those that * repeats"
            Faults(path, found=[(where, text)]).refuse()
        if text:
            faults.found.append((where, text))
            faults.places.add(key_path[:2])
    if any(text == _ENDLESS for _, text in faults.found):
        faults.refuse()
    return _built(loader, node, faults), faults


def _walk(node: Any, key_path: Place, around: tuple[int, ...]) -> Iterator[tuple[Place, int, str]]:
    """Each place with its line, and a fault if there is one."""
    line = node.start_mark.line + 1
    if id(node) in around or len(around) > _DEEPEST:
        yield key_path, line, _ENDLESS
        return
    around = (*around, id(node))
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield (*key_path, position), item.start_mark.line + 1, ""
            yield from _walk(item, (*key_path, position), around)
    if not isinstance(node, yaml.MappingNode):
        return
    first_lines: dict[str, int] = {}
    for key, value in node.value:
        where = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            yield key_path, where, "a key must be a single value"
            continue
        if key.tag == "tag:yaml.org,2002:merge":
            yield key_path, where, "the key << is not known: write the options out"
            continue
        again = f"the key {said(key.value)} occurs twice, first in line {first_lines.get(key.value)}"
        yield (*key_path, key.value), where, again if key.value in first_lines else ""
        first_lines.setdefault(key.value, where)
        yield from _walk(value, (*key_path, key.value), around)


def _built(loader: Any, node: Any, faults: Faults) -> Any:
    """Plain data; the keys of mappings are text as written."""
    if isinstance(node, yaml.MappingNode):
        return {key.value: _built(loader, value, faults) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_built(loader, item, faults) for item in node.value]
    problem = False
    try:
        return loader.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, ArithmeticError):
        problem = True
    if problem:
        faults.found.append((node.start_mark.line + 1, f"the value {said(node.value)} cannot be read"))
    return None
