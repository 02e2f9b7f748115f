"""The command ``dpsyn``, with all its commands."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import dpsyn_sql
from dpsyn_sql.accounting.account import shown
from dpsyn_sql.cli.domain import check_command, init_command
from dpsyn_sql.cli.evaluate import audit_command, evaluate_command
from dpsyn_sql.cli.ledger import ledger_app
from dpsyn_sql.cli.option_names import use_option_names, with_option_names
from dpsyn_sql.cli.options import (
    AuditCommand,
    Database,
    MethodCommand,
    OptionalSource,
    RequestFile,
    Settings,
    Spark,
    Tables,
    connection,
    request_of,
    with_options,
)
from dpsyn_sql.cli.output import (
    ExitCode,
    Json,
    Output,
    Quiet,
    Timings,
    check_writable,
    interruptible,
    print_error,
    printing,
    timed,
    written,
)
from dpsyn_sql.cli.schedule import run_command, status_command
from dpsyn_sql.cli.stored import marginal_command, plot_command, report_command, sample_command
from dpsyn_sql.errors import DpsynError, InputError, unexpected

_JSON = "--json"
_GOES_ON = (
    "What was charged stays charged, and the same command goes on at no further cost, also after an upgrade "
    "of dpsyn_sql that mends the fault."
)


class Commands(TyperGroup):
    """The group of all commands; it says what is wrong with a command line."""

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **options: Any) -> Any:
        """Read the options of the group, and whether errors are to be JSON."""
        as_json = _JSON in args  # reading empties the list
        try:
            context = super().make_context(info_name, args, *others, **options)
        except Exception as error:
            _tell(error, as_json)
            raise
        context.meta[_JSON] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        """Read the options of the command and run it."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            _tell(error, ctx.meta[_JSON])
            if _is_end(error):
                raise
            message = f"{unexpected(error)} `dpsyn ledger show` says what was charged. {_GOES_ON}"
        print_error(ctx.meta[_JSON], "InternalError", message, ExitCode.FAILED)
        raise typer.Exit(int(ExitCode.FAILED))


def _is_end(error: Exception) -> bool:
    """Whether it is an exit, help or an end of the output, which the library knows itself."""
    broken = isinstance(error, OSError) and error.errno == errno.EPIPE
    return broken or isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "format_message")


def _tell(error: Exception, as_json: bool) -> None:
    """One line for a command line that cannot be read; other errors, and help, pass.

    The class of these errors is not the same in all versions of the library.
    """
    message = getattr(error, "format_message", None)
    if message is None or type(error).__name__ == "NoArgsIsHelpError":
        return
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f" See '{context.command_path} --help'."
    text = " ".join(message().split()).removesuffix(".")
    text += "" if text.endswith("?") else "."
    print_error(as_json, "UsageError", text + hint, ExitCode.REFUSED)
    raise typer.Exit(int(ExitCode.REFUSED)) from None


app = typer.Typer(
    name="dpsyn",
    cls=Commands,
    help="Differentially private synthetic tables, made inside the database.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _tell_versions(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpsyn_sql {dpsyn_sql.__version__}, DuckDB {metadata.version('duckdb')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which versions are installed.", callback=_tell_versions, is_eager=True
        ),
    ] = False,
) -> None:
    pass


app.command("init")(init_command)


@app.command("plan", cls=MethodCommand)
@with_options
def plan_command(
    context: typer.Context,
    source: OptionalSource = None,
    database: Database = None,
    spark: Spark = None,
    request: RequestFile = None,
    set_: Settings = None,
    table: Tables = None,
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say every column and question too.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    **_: Any,
) -> None:
    """Say what 'release' would read, ask and write. Read no rows and spend nothing."""
    with printing(as_json, quiet, "Interrupted: no row was read, and nothing was charged.") as out:
        wanted = request_of(context, request, set_, table)
        with connection(database, spark, source) as con:
            planned = dpsyn_sql.plan(con, wanted)
        # Other lines may quote the owner's SQL, where rows=1 is a condition.
        lines = [_spoken(line) for line in planned.verbose().splitlines()]
        shown = lines if verbose else [_spoken(line) for line in str(planned).splitlines()]
        for line in shown:
            out.show(line)
        budget = planned.budget
        out.document(
            {
                "output": planned.into,
                "obstacle": with_option_names(planned.obstacle) or None,
                "release": with_option_names(planned.preview),
                "ledger": planned.ledger,
                "account": with_option_names(planned.account),
                "method": planned.plan.method,
                "tables": {
                    table.name: {"share": table.plan.budget.amount / budget.amount, "most": table.table.most}
                    for table in planned.tables
                },
                "budget": {"kind": budget.kind, "amount": float(budget.fraction)},
                "explanation": lines,
            }
        )


@app.command("release", cls=MethodCommand)
@with_options
def release_command(
    context: typer.Context,
    source: OptionalSource = None,
    database: Database = None,
    spark: Spark = None,
    request: RequestFile = None,
    set_: Settings = None,
    table: Tables = None,
    *,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Also write the certificate to this JSON file.")
    ] = None,
    timings: Timings = False,
    as_json: Json = False,
    quiet: Quiet = False,
    **_: Any,
) -> None:
    """Write a differentially private synthetic copy of SOURCE."""
    with printing(as_json, quiet) as out:
        with interruptible("Interrupted before anything was charged."):
            wanted = request_of(context, request, set_, table)
            release = dpsyn_sql.release  # imports everything that it needs
            if certificate is not None:
                _check_certificate(certificate, wanted.replace)
        hint = "Interrupted. 'dpsyn ledger show' says what was charged."
        with interruptible(hint), timed(out, timings), connection(database, spark, source) as con:
            result = release(con, wanted)
        output = result.into
        with interruptible(f"Interrupted after {output} was written; the same command again costs nothing."):
            if certificate is not None and not written(certificate, _text(result)):
                raise DpsynError(
                    f"{output} is complete, but its certificate cannot be written to {certificate}. "
                    "The same command with another --certificate costs nothing."
                )
            _report(out, result, certificate)


def _report(out: Output, result: dpsyn_sql.Release, certificate: Path | None) -> None:
    """What was written; of several tables a line for each."""
    notes = [text for note in result.notes if (text := with_option_names(note)) not in out.warnings]
    unit, several = str(result.facts["guarantee"]["privacy_unit"]), len(result.tables) > 1
    unit = "row" if unit.startswith("a row of ") else unit
    tables = {
        name: {"rows": table.rows, "losses": table.facts["losses"]} for name, table in result.tables.items()
    }
    if several:
        out.say(f"Wrote {result.into}:")
    for name, table in tables.items():
        out.say(f"{f'  {name}' if several else f'Wrote {result.into}'}: {table['rows']} synthetic rows")
    protected = f"{unit} with all rows that belong to it" if several else f"{_protected(unit)} of the source"
    out.say(f"Privacy: epsilon = {shown(result.epsilon)}, delta = {result.delta:g} for each {protected}")
    for line in [*(f"Not protected: {who}" for who in result.facts.get("not_protected", ())), *notes]:
        out.say(line)
    if not out.quiet:
        _show_losses(out, {name: table["losses"] for name, table in tables.items()})
    out.say(f"Release {result.id}")
    out.document(
        {
            "id": result.id,
            "output": result.into,
            **({"tables": tables} if several else next(iter(tables.values()))),
            "epsilon": result.epsilon,
            "delta": result.delta,
            "rho": result.rho,
            "privacy_unit": unit,
            "replayed": result.replayed,
            "notes": notes,
            "certificate": None if certificate is None else str(certificate),
        }
    )


def _protected(unit: str) -> str:
    return "row" if unit == "row" else f"value of {unit}"


def _show_losses(out: Output, losses: Mapping[str, Mapping[str, Any]]) -> None:
    """The verdicts on the columns of each table."""
    from dpsyn_sql.report.loss_words import lines_of_verdicts, pairs_in_words  # loads numpy

    words = ["column", "verdict", "why and what helps, or what was lost"]
    if len(losses) > 1:
        rows = [(name, *line) for name, lost in losses.items() for line in lines_of_verdicts(lost)]
        if rows:
            out.table(["table", *words], rows)
        return
    (lost,) = losses.values()
    if lines := lines_of_verdicts(lost):
        out.table(words, lines)
    out.say(pairs_in_words(lost))


def _spoken(line: str) -> str:
    """A line of a plan. The owner's texts in it (queries, names) stay unchanged."""
    if "owner states: trust_query" in line:
        return with_option_names(line)
    return with_option_names(line) if line.startswith(("Account ", "Release ", "Writes ")) else line


def _text(result: Any) -> str:
    return json.dumps(result.certificate(), indent=2, ensure_ascii=False) + "\n"


def _check_certificate(path: Path, replace: bool) -> None:
    if path.suffix.lower() != ".json":  # so that no other file, such as a ledger, is overwritten by mistake
        raise InputError(f"{path} cannot hold a certificate: give a name that ends in .json")
    check_writable(path, replace)


app.command("check")(check_command)
app.command("sample")(sample_command)
app.command("marginal")(marginal_command)
app.command("plot")(plot_command)
app.command("report")(report_command)
app.command("evaluate")(evaluate_command)
app.add_typer(ledger_app, name="ledger")
app.command("audit", cls=AuditCommand)(audit_command)
app.command("run")(run_command)
app.command("status")(status_command)
use_option_names(app)
