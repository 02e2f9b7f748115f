"""The options of a release on the command line, made from the fields of ``Request``.

A DuckDB file as SOURCE is a database whose tables are released together, those of ``--table``. ``--method``
and ``--set`` know the registry of methods, which is loaded when it is needed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dpsyn_sql.errors import InputError, SourceError
from dpsyn_sql.front.options import Option
from dpsyn_sql.front.request import DEFAULTS, OPTIONS, Request
from dpsyn_sql.planning.workload import TARGET, members_of
from dpsyn_sql.source.files import DATABASE_ENDINGS, is_duckdb_file

if TYPE_CHECKING:
    from dpsyn_sql.methods import Recipe

_WHOLE = re.compile("-?[0-9]+")

_SOURCE = typer.Argument(
    metavar="SOURCE",
    help="A CSV or Parquet file or glob; with --database also a table, view or query; with --spark a table. "
    "A DuckDB file alone: its tables that keys tie, together.",
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
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        help="Of a DuckDB file: a table to release (repeatable). Default: those of the file --domain.",
    ),
]
RequestFile = Annotated[
    Path | None,
    typer.Option(
        "--request", help="YAML file with SOURCE and options; options of the command replace its values."
    ),
]


@contextmanager
def connection(database: Path | None, spark: str | None, source: str | None = None) -> Iterator[Any]:
    """What the package's functions take as ``con``: the file, also if it is the ``source`` itself, or a Spark
    session that ends with the command.

    Raises:
        InputError: both are given, or no session starts.
    """
    if spark is None:
        yield Path(str(source)) if database is None and names_database(source) else database
        return
    if database is not None:
        raise InputError("--database and --spark: the source is in one of them; leave out the other")
    from dpsyn_sql.engines.spark.guard import started

    with started(spark) as session:
        yield session


def names_database(source: str | None) -> bool:
    """Whether a SOURCE without ``--database`` and ``--spark`` is a database, by its name or by what it is."""
    return source is not None and (source.lower().endswith(DATABASE_ENDINGS) or is_duckdb_file(source))


def method_names(incomplete: str) -> list[str]:
    """For the shell: the methods whose names begin so."""
    from dpsyn_sql.methods import names

    return [name for name in names() if name.startswith(incomplete)]


Method = Annotated[
    str | None,
    typer.Option("--method", "-m", help="A method.", show_default=False, autocompletion=method_names),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, as degree=2 (repeatable)."),
]


class MethodCommand(TyperCommand):
    """A command with ``--method``. Only its help loads the methods, to name them."""

    audits = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Add the names, the default, and a line for each method."""
        from dpsyn_sql.methods import described, method_help, static_default

        default = f" Default: {static_default().name}." if self.audits else ""
        for item in self.params:
            if item.name == "method":
                item.help = f"{method_help()}.{default}"  # type: ignore[attr-defined]
        self.epilog = "\n\n".join(["Methods, with their settings:", *described()])
        super().format_help(ctx, formatter)


class AuditCommand(MethodCommand):
    """A command whose default method knows all its questions beforehand."""

    audits = True


def with_set(method: object, entries: Sequence[str]) -> Recipe:
    """The method, a name or any other form of it, with the settings of ``--set``.

    Raises:
        InputError: ``--set`` cannot be read, or the method has no such setting.
    """
    from dpsyn_sql.methods import with_settings

    return with_settings(method, pairs_of("--set", entries, "degree=2"))


def pairs_of(option: str, entries: Sequence[str], example: str) -> dict[str, str]:
    """What a repeatable option says by its keys: ``degree=2``.

    Raises:
        InputError: an entry cannot be read, or a key stands twice.
    """
    values: dict[str, str] = {}
    for entry in entries:
        key, sign, value = entry.partition("=")
        if not sign or not key:
            raise InputError(f"{option} {entry!r}: write {example}")
        if key in values:
            raise InputError(_twice(option, key))
        values[key] = value
    return values


def _twice(option: str, key: str) -> str:
    return f"{option} {key} stands twice: give it once"


def csv_of(entries: Sequence[str] | None) -> dict[str, str]:
    """``--csv delimiter=tab``.

    Raises:
        InputError: as ``pairs_of``.
    """
    return pairs_of("--csv", entries or (), "delimiter=tab")


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
    option = OPTIONS[name]
    kind, shown = _kind_and_default(option, DEFAULTS[name])
    text = f"{option.help.removesuffix('.')} (repeatable)." if option.reads is list else option.help
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


Csv = parameter_of("csv").annotation
TrustQuery = parameter_of("trust_query").annotation
PublicTables = parameter_of("public_tables").annotation


def request_of(
    context: typer.Context,
    file: Path | None,
    settings: Sequence[str] | None,
    tables: Sequence[str] | None = None,
) -> Request:
    """The request of a command line: the values of ``file``, if there is one, and the options.

    ``settings`` are those of the method; ``tables`` those of a SOURCE that is a DuckDB file.

    Raises:
        InputError: the file, or an option that can be repeated, cannot be read.
        SourceError: SOURCE is named as a DuckDB file, and there is none.
    """
    source = context.params["source"]
    elsewhere = context.params["database"] is not None or context.params["spark"] is not None
    whole = not elsewhere and names_database(source)
    if whole and not Path(source).is_file():
        raise SourceError(f"There is no file {source}.")
    if tables and not whole:
        raise InputError(
            f"--table is not an option here: {source or 'SOURCE'} is one table, not a DuckDB file"
        )
    request = Request() if file is None else Request.from_yaml(file)
    given = {name: context.params[name] for name in OPTIONS if _is_given(context, name)}
    if whole:
        given["source"] = tuple(tables or ()) or request.tables
        _check_tables(str(source), given["source"], given.get("domain", request.domain), settings)
    if "workload" in given:
        given["workload"] = _workload(given["workload"])
    if "most" in given:
        given["most"] = _most(given["most"], request)
    if "csv" in given:
        given["csv"] = _beside(request.csv, csv_of(given["csv"]))
    if "limits" in given:
        given["limits"] = _beside(request.limits, pairs_of("--limit", given["limits"], "memory=4GB"))
    if settings:
        given["method"] = with_set(given.get("method", request.method), settings)
    request = replace(request, **given)
    if request.source is None and request.domain is None:
        context.fail("Missing argument 'SOURCE'.")
    return request


def _check_tables(file: str, tables: tuple[str, ...], domain: object, settings: Sequence[str] | None) -> None:
    """Refuse a DuckDB file of which no table is named, and settings of a method for several tables.

    Raises:
        InputError: naming the option.
    """
    if not tables and domain is None:
        raise InputError(
            f"{file} is a DuckDB file, and no table is named: give --table for each table to release, "
            "or their file as --domain"
        )
    if settings and len(tables) != 1:
        raise InputError("--set is for one table: several tables that keys tie have one method. Leave it out")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _most(entries: list[str], request: Request) -> int | dict[str, int]:
    """``16`` of one table, or ``orders=16`` by the names of several."""
    if len(entries) == 1 and _WHOLE.fullmatch(entries[0]):
        return int(entries[0])
    numbers: dict[str, int] = {}
    for entry in entries:
        name, _, number = entry.rpartition("=")
        if not name or not _WHOLE.fullmatch(number):
            raise InputError(f"--most {entry!r}: write 16 once, or orders=16 for each of several tables")
        if name in numbers:
            raise InputError(_twice("--most", name))
        numbers[name] = int(number)
    return _beside(request.most, numbers)


def _beside(of_file: object, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the command, and those of the mapping in the file of the request that it leaves."""
    return {**(of_file if isinstance(of_file, Mapping) else {}), **values}


def _workload(entries: list[str]) -> dict[tuple[str, ...], str]:
    """``income``, or ``age,sex=2``: names as in a line of CSV, so that one with a comma can be quoted."""
    weights: dict[tuple[str, ...], str] = {}
    for entry in entries:
        text, sign, weight = entry.rpartition("=")
        names = members_of(text if sign else entry)
        if not names:
            raise InputError(f"--workload {entry!r}: write income, income=5 or age,sex=2")
        if names in weights:
            raise InputError(_twice("--workload", text if sign else entry))
        weights[names] = weight if sign else TARGET
    return weights
