"""The command ``dpsyn``, with all its commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import dpsyn_sql
from dpsyn_sql.cli.audit import audit_command
from dpsyn_sql.cli.ledger import ledger_app
from dpsyn_sql.cli.messages import plain_errors
from dpsyn_sql.cli.methods import AuditCommand, MethodCommand, Settings
from dpsyn_sql.cli.options import (
    Database,
    OptionalSource,
    PublicTables,
    RequestFile,
    SourceArgument,
    TrustQuery,
    asked,
    with_options,
)
from dpsyn_sql.cli.words import FIGURES, in_options
from dpsyn_sql.errors import InputError

app = typer.Typer(
    name="dpsyn",
    help="Differentially private synthetic tables, made inside the database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(ledger_app, name="ledger")


@app.command("release", cls=MethodCommand)
@with_options
def release_command(
    context: typer.Context,
    source: OptionalSource = None,
    database: Database = None,
    request: RequestFile = None,
    set_: Settings = None,
    *,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Also write the certificate to this JSON file.")
    ] = None,
    **_: Any,
) -> None:
    """Write a differentially private synthetic copy of SOURCE."""
    with plain_errors("Interrupted before anything was charged."):
        release = dpsyn_sql.release  # imports everything that it needs
        wanted = asked(context, request, set_)
        if certificate is not None:
            if (
                certificate.suffix.lower() != ".json"
            ):  # so that no other file, such as a ledger, is overwritten by mistake
                raise InputError(f"{certificate} cannot hold a certificate: give a name that ends in .json")
            _check_writable(certificate, wanted.replace)
    with plain_errors("Interrupted. 'dpsyn ledger show' says what was charged."):
        result = release(database, wanted)
    with plain_errors(f"Interrupted after {result.table} was written; the same command again costs nothing."):
        if certificate is not None:
            certificate.write_text(json.dumps(result.certificate(), indent=2, ensure_ascii=False) + "\n")
    typer.echo(f"Wrote {result.table}: {result.rows} synthetic rows")
    unit = "row" if wanted.privacy_unit == "row" else f"value of {wanted.privacy_unit}"
    claim = f"epsilon = {result.epsilon:.6g}, delta = {result.delta:g}"
    typer.echo(f"Privacy: {claim} for each {unit} of the source")
    for note in result.notes:
        typer.echo(in_options(note, but=FIGURES))
    typer.echo(f"Release {result.id}")


@app.command("plan", cls=MethodCommand)
@with_options
def plan_command(
    context: typer.Context,
    source: OptionalSource = None,
    database: Database = None,
    request: RequestFile = None,
    set_: Settings = None,
    **_: Any,
) -> None:
    """Say what 'release' would read, ask and write. Read no rows and spend nothing."""
    with plain_errors():
        explanation = str(dpsyn_sql.plan(database, asked(context, request, set_)))
    for line in explanation.splitlines():
        # Other lines may quote the owner's SQL, where rows=1 is a condition.
        typer.echo(_spoken(line))


def _spoken(line: str) -> str:
    """A line of a plan. The owner's texts in it (queries, names) stay unchanged."""
    if "owner states: trust_query" in line:
        return in_options(line)
    return in_options(line, but=FIGURES) if line.startswith(("Account ", "Release ", "Writes ")) else line


@app.command("init")
def init_command(
    source: SourceArgument,
    database: Database = None,
    into: Annotated[
        Path | None, typer.Option("--into", "-o", help="File to write. Default: print it.")
    ] = None,
    trust_query: TrustQuery = False,
    public_tables: PublicTables = None,
) -> None:
    """Write a domain file to fill in, from column names and types. Read no rows."""
    with plain_errors():
        text = dpsyn_sql.init(database, source, trust_query=trust_query, public_tables=public_tables or ())
        if into is None:
            typer.echo(text)
            return
        _check_writable(into, replace=False)
        into.write_text(text, encoding="utf-8")
    typer.echo(f"Wrote {into}: fill it in, then pass it as --domain {into}")


app.command("audit", cls=AuditCommand)(audit_command)


def _check_writable(path: Path, replace: bool) -> None:
    if path.exists() and not replace:
        raise InputError(f"{path} exists already: choose another file, or remove it")
    if not path.resolve().parent.is_dir():
        raise InputError(f"the folder of {path} does not exist")
