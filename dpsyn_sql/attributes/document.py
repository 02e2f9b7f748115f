"""The domain file as a document: its format (``ColumnSpec`` of each kind) and its reading (YAML or a dict).

The file is public, so messages may quote it. Faults are collected, so that one run shows them all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

import yaml
from pydantic import ConfigDict, Field, ValidationError, create_model

from dpsyn_sql.attributes.kinds import specs
from dpsyn_sql.attributes.spec import ColumnSpec
from dpsyn_sql.attributes.yaml_numbers import read_decimal
from dpsyn_sql.errors import DomainError, InputError, said, yaml_word

_KEYS = ("columns", "never")


def any_spec() -> Any:
    """The type of a declaration of any kind, for the published format."""
    return Union[tuple(specs().values())]  # noqa: UP007


def json_schema() -> dict[str, Any]:
    """The format as a JSON schema (docs/domain.schema.json)."""
    columns: Any = dict.__class_getitem__((str, any_spec()))
    description = "SQL conditions that no row of the output meets."
    document = create_model(
        "DomainDocument",
        __config__=ConfigDict(extra="forbid", title="dpsyn domain file"),
        __doc__="The whole file; only used to publish the format as a JSON schema.",
        columns=(columns, ...),
        never=(list[str], Field([], description=description)),
    )
    return document.model_json_schema()


def read_document(
    spec: Mapping[str, Any] | Path, folder: Path | None = None
) -> tuple[dict[str, ColumnSpec | None], dict[str, str], tuple[str, ...], tuple[str, ...], frozenset[str]]:
    """Read a dict or a YAML file; a file that it names lies in ``folder``, by default beside it (a dict's: in
    the working directory).

    Returns:
        Declarations by name (None where one is faulty), stated types by name, faults, ``never:``, and the
        names of columns that are ``per_unit``.

    Raises:
        DomainError: the file cannot be read, is no YAML, or has no ``columns:``.
    """
    folder = folder or (Path() if isinstance(spec, Mapping) else spec.parent)
    document: Any = spec if isinstance(spec, Mapping) else load_yaml(spec)
    if isinstance(document, Mapping) and "never" in document and "columns" not in document:
        raise DomainError(
            "A domain has never: without columns:. Write columns: too, with an entry for each column that "
            "you know something about; none yet is columns: {}."
        )
    if not isinstance(document, Mapping) or "columns" not in document:
        raise DomainError("A domain must be a mapping with the key columns:, with one entry per column.")
    faults = [
        f"unknown key {said(key)}; allowed are columns: and never:" for key in document if key not in _KEYS
    ]
    entries = {} if document["columns"] is None else document["columns"]
    if not isinstance(entries, Mapping):
        raise DomainError("columns: must be a mapping of column names to declarations.")
    columns: dict[str, ColumnSpec | None] = {}
    sql_types: dict[str, str] = {}
    shared = set[str]()
    for name, entry in entries.items():
        if not isinstance(name, str):
            faults.append(f"column name {said(name)} is not text: write it in quotes")
            continue
        columns[name] = None
        try:
            written = _spec_of(entry)
            if written.sql_type is not None:
                sql_types[name] = written.sql_type
            if getattr(written, "per_unit", False):
                shared.add(name)
            columns[name] = written.checked(folder)
        except ValueError as error:
            faults.extend(f"column {name!r}: {fault}" for fault in error.args)
    never = _conditions(document.get("never"), faults)
    return columns, sql_types, tuple(faults), never, frozenset(shared)


def _conditions(value: Any, faults: list[str]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(
        isinstance(text, str) and text.strip() for text in value
    ):
        faults.append('never: must be a list of SQL conditions: never: ["age < 16 AND married"]')
        return ()
    return tuple(text.strip() for text in value)


def _spec_of(entry: Any) -> ColumnSpec:
    """Raises:
    ValueError: with all faults.
    """
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if kind is None and isinstance(entry, Mapping) and "derived" in entry:
        kind = "derived"
    known = specs()
    model = known.get(kind) if isinstance(kind, str) else None
    if model is None:
        *named, last = [name for name, spec in known.items() if spec.model_fields["type"].is_required()]
        raise ValueError(f"write type: {', '.join(named)} or {last}; or derived:")
    try:
        return model.model_validate(dict(entry))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
    faults: dict[str, str] = {}
    for problem in problems:
        key = str(problem["loc"][0]) if problem["loc"] else "type"
        faults.setdefault(key, _explain(key, problem, model))
    raise ValueError(*faults.values())


def _explain(key: str, problem: Any, model: type[ColumnSpec]) -> str:
    if problem["type"] == "extra_forbidden":
        names = sorted(field.alias or name for name, field in model.model_fields.items())
        return f"unknown key {said(key)}; allowed are {', '.join(names)}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    if key == "categories" and len(problem["loc"]) > 1:
        advice = "; for NULL write nullable: true" if problem["input"] is None else "; write text in quotes"
        return f"category {said(problem['input'])} is not text, a whole number or true/false{advice}"
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    message = message.replace("a valid integer", "a whole number")
    short = re.fullmatch(r"List should have at least (\d+) items? after validation, not (\d+)", message)
    if short:
        return f"{key} must have at least {short[1]}, not {short[2]}"
    message = message[:1].lower() + message[1:]
    quoted = message.startswith("must") and key != "edges" and not isinstance(problem["input"], list | dict)
    word = yaml_word(problem["input"], key) if problem["type"] == "string_type" else ""
    hint = f": {word}" if word else ""
    return f"{key} {message}, not {said(problem['input'])}{hint}" if quoted else f"{key} {message}"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, with repeated keys refused instead of the last one taken."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} occurs twice", key.start_mark
                    )
                keys.add(key.value)
        return super().construct_mapping(node, deep)


read_decimal(_Loader)


def load_yaml(path: Path, subject: str = "domain file", refusal: type[InputError] = DomainError) -> Any:
    """What a YAML file holds; a key that occurs twice is refused.

    Raises:
        DomainError: the file cannot be read or is no YAML; or another ``refusal``.
    """
    problem = ""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        problem = "there is no such file"
    except (OSError, ValueError):
        problem = "it cannot be opened as a UTF-8 text file"
    if problem:
        raise refusal(f"The {subject} {str(path)!r} cannot be read: {problem}.")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = "" if mark is None else f" in line {mark.line + 1}"
        problem = f"{line}: {error.problem}"
    except (yaml.YAMLError, ValueError, RecursionError):
        problem = ": a character, number or date in it is not valid"
    raise refusal(f"The {subject} {str(path)!r} is not valid YAML{problem}.")
