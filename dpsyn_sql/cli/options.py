"""The options of a release on the command line, made from the fields of ``Request``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dpsyn_sql.cli.methods import method_names, with_set
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.workload import members_of
from dpsyn_sql.request import DEFAULTS, OPTIONS, Option, Request

_SOURCE = typer.Argument(
    metavar="SOURCE",
    help="A CSV or Parquet file or glob; with --database also a table, view or query; with --spark a table.",
)
SourceArgument = Annotated[str, _SOURCE]
OptionalSource = Annotated[str | None, _SOURCE]
Database = Annotated[
    Path | None,
    typer.Option("--database", "-d", help="DuckDB file that holds the source (opened read-only)."),
]
Spark = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="MASTER",
        help="Read SOURCE as a table of Spark (catalog.db.table), on a master such as yarn or 'local[4]'.",
    ),
]
RequestFile = Annotated[
    Path | None,
    typer.Option(
        "--request", help="YAML file with SOURCE and options; options of the command replace its values."
    ),
]


@contextmanager
def connection(database: Path | None, spark: str | None) -> Iterator[Any]:
    """What the package's functions take as ``con``: the file, or a Spark session that ends with the command.

    Raises:
        InputError: both are given, or no session starts.
    """
    if spark is None:
        yield database
        return
    if database is not None:
        raise InputError("--database and --spark: the source is in one of them; leave out the other")
    from dpsyn_sql.engines.spark.guard import started

    with started(spark) as session:
        yield session


_COMPLETED = {"method": method_names}
"""What the shell completes the values of an option with; of all others with files."""


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``**options`` an option for each field of a request.

    They come after the command's own options; its own keyword-only options come last.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
    last = [item for item in own if item.kind is item.KEYWORD_ONLY]
    first = [item.replace(kind=item.KEYWORD_ONLY) for item in own if item not in last]
    options = [parameter_of(name) for name in OPTIONS if name != "source"]
    command.__signature__ = signature.replace(parameters=[*first, *options, *last])  # type: ignore[attr-defined]
    return command


def parameter_of(name: str) -> inspect.Parameter:
    """The parameter of a command for a field, from which typer makes an option."""
    option, default = OPTIONS[name], DEFAULTS[name]
    kind, shown = _kind_and_default(option, default)
    text = option.help
    if option.reads is list:
        text = text.removesuffix(".") + " (repeatable)."
    flags = option.flags or (f"--{name.replace('_', '-')}",)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=shown,
        annotation=Annotated[kind, typer.Option(*flags, help=text, autocompletion=_COMPLETED.get(name))],
    )


def _kind_and_default(option: Option, default: Any) -> tuple[Any, Any]:
    """Type and default of the command's option; numbers that must stay exact are text."""
    if option.reads is list:
        return list[str] | None, None
    if isinstance(default, bool):
        return bool, default
    if default is None:
        return option.reads | None, None
    if option.reads is str:
        return str, str(default).replace("e-0", "e-")
    return option.reads, default


TrustQuery = parameter_of("trust_query").annotation
PublicTables = parameter_of("public_tables").annotation


def asked(context: typer.Context, file: Path | None, settings: Sequence[str] | None) -> Request:
    """The request of a command line: the values of ``file``, if there is one, and the options.

    ``settings`` are those of the method.

    Raises:
        InputError: the file, ``--workload`` or ``--set`` cannot be read.
    """
    request = Request() if file is None else Request.from_yaml(file)
    given = {name: context.params[name] for name in OPTIONS if _is_given(context, name)}
    if "workload" in given:
        given["workload"] = _workload(given["workload"])
    if settings:
        given["method"] = with_set(given.get("method", request.method), settings)
    request = replace(request, **given)
    if request.source is None:
        context.fail("Missing argument 'SOURCE'.")
    return request


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _workload(entries: list[str]) -> dict[tuple[str, ...], str]:
    """``age,sex=2``: names as in a line of CSV, so that a name with a comma can be quoted."""
    weights: dict[tuple[str, ...], str] = {}
    for entry in entries:
        text, sign, weight = entry.rpartition("=")
        names = members_of(text)
        if not sign or not names or names in weights:
            raise InputError(f"--workload {entry!r}: write income=5 or age,sex=2, each only once")
        weights[names] = weight
    return weights
