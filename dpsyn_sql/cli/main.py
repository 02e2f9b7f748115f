"""The command ``dpsyn``: release, plan, init, audit, ledger."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

import typer

import dpsyn_sql
from dpsyn_sql.cli.audit import audit_command
from dpsyn_sql.cli.ledger import ledger_app
from dpsyn_sql.cli.messages import plain_errors
from dpsyn_sql.cli.methods import AuditCommand, Method, MethodCommand, Settings, method_given
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

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="A CSV or Parquet file or glob; with --database also a table, view or query."
    ),
]
Database = Annotated[
    Path | None,
    typer.Option("--database", "-d", help="DuckDB file that holds the source (opened read-only)."),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--into",
        "-o",
        help="Table, or file ending in .parquet, .csv or .csv.gz. Default: SOURCE_synthetic, beside it.",
    ),
]
Epsilon = Annotated[str, typer.Option("--epsilon", "-e", help="Privacy loss; smaller is more private.")]
Delta = Annotated[str, typer.Option("--delta", help="0 (pure differential privacy) to 1e-6.")]
DomainFile = Annotated[
    Path | None,
    typer.Option("--domain", help="YAML file with the public domain of the columns; see 'dpsyn init'."),
]
Rows = Annotated[int | None, typer.Option("--rows", help="Rows to write. Default: the noisy total.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the sampling; the noise has none.")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="Column to leave out (repeatable).")]
Replace = Annotated[bool, typer.Option("--replace", help="Overwrite an existing output.")]
NewDebit = Annotated[
    bool,
    typer.Option("--new-debit", help="Pay again for what was released with other settings, or elsewhere."),
]
TrustQuery = Annotated[
    bool,
    typer.Option("--trust-query", help="State that every row of the query comes from one row of the source."),
]
PrivacyUnit = Annotated[
    str,
    typer.Option("--privacy-unit", help="row, or the column that says whose row it is (customer_id)."),
]
MaxRows = Annotated[
    int, typer.Option("--max-rows-per-unit", help="Rows of one unit that count; the noise grows with it.")
]
Name = Annotated[str | None, typer.Option("--name", help="Release name in the ledger. Default: the output.")]
Version = Annotated[
    str | None,
    typer.Option("--version", help="Public label of the data (batch, period); a new one measures anew."),
]
Account = Annotated[str | None, typer.Option("--account", help="Account of the ledger to charge.")]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Ledger file. Default: DPSYN_LEDGER, else beside the source."),
]
PublicTables = Annotated[
    list[str] | None,
    typer.Option("--public-table", help="Table without private data that a query joins (repeatable)."),
]


Discover = Annotated[
    bool,
    typer.Option(
        "--discover/--no-discover",
        help="Learn domains that are not public, for a tenth of the budget; or refuse such columns.",
    ),
]
OnError = Annotated[
    str,
    typer.Option(
        "--on-error",
        help="CSV text that is no value of its type: null, or fail (which depends on a row: not private).",
    ),
]

WorkloadWeights = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        help="What matters most: income=5 weighs all pairs with a column, age,sex=2 one pair (repeatable).",
    ),
]


MemoryLimit = Annotated[
    str | None,
    typer.Option("--memory-limit", help="Memory of the process, such as 4GB; the model shrinks to fit."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", help="Seconds for the fit and the sample, after the last question."),
]


@app.command("release", cls=MethodCommand)
def release_command(
    source: SourceArgument,
    database: Database = None,
    into: Into = None,
    epsilon: Epsilon = "1.0",
    delta: Delta = "1e-9",
    method: Method = None,
    set_: Settings = None,
    domain: DomainFile = None,
    privacy_unit: PrivacyUnit = "row",
    max_rows_per_unit: MaxRows = 1,
    name: Name = None,
    version: Version = None,
    account: Account = None,
    ledger: LedgerFile = None,
    rows: Rows = None,
    seed: Seed = None,
    exclude: Exclude = None,
    replace: Replace = False,
    new_debit: NewDebit = False,
    trust_query: TrustQuery = False,
    public_table: PublicTables = None,
    discover: Discover = True,
    on_error: OnError = "null",
    memory_limit: MemoryLimit = None,
    time_limit: TimeLimit = None,
    workload: WorkloadWeights = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Also write the certificate to this JSON file.")
    ] = None,
) -> None:
    """Write a differentially private synthetic copy of SOURCE."""
    arguments = locals()
    with plain_errors("Interrupted before anything was charged."):
        release = dpsyn_sql.release  # imports all that it needs
        options = _options(arguments)
        if certificate is not None:
            if (
                certificate.suffix.lower() != ".json"
            ):  # nothing else is overwritten by mistake, such as a ledger
                raise InputError(f"{certificate} is no name for a certificate; choose one that ends in .json")
            _check_writable(certificate, replace)
    with plain_errors("Interrupted; 'dpsyn ledger show' says what was charged."):
        result = release(database, source, **options)
    with plain_errors(f"Interrupted after {result.table} was written; the same command again costs nothing."):
        if certificate is not None:
            certificate.write_text(json.dumps(result.certificate(), indent=2, ensure_ascii=False) + "\n")
    typer.echo(f"Wrote {result.table}: {result.rows} synthetic rows")
    unit = "row" if privacy_unit == "row" else f"value of {privacy_unit}"
    claim = f"epsilon = {result.epsilon:.6g}, delta = {result.delta:g}"
    typer.echo(f"Privacy: {claim} for each {unit} of the source")
    for note in result.notes:
        typer.echo(in_options(note, but=FIGURES))
    typer.echo(f"Release {result.id}")


@app.command("plan", cls=MethodCommand)
def plan_command(
    source: SourceArgument,
    database: Database = None,
    into: Into = None,
    epsilon: Epsilon = "1.0",
    delta: Delta = "1e-9",
    method: Method = None,
    set_: Settings = None,
    domain: DomainFile = None,
    privacy_unit: PrivacyUnit = "row",
    max_rows_per_unit: MaxRows = 1,
    name: Name = None,
    version: Version = None,
    account: Account = None,
    ledger: LedgerFile = None,
    rows: Rows = None,
    seed: Seed = None,
    exclude: Exclude = None,
    replace: Replace = False,
    new_debit: NewDebit = False,
    trust_query: TrustQuery = False,
    public_table: PublicTables = None,
    discover: Discover = True,
    on_error: OnError = "null",
    memory_limit: MemoryLimit = None,
    time_limit: TimeLimit = None,
    workload: WorkloadWeights = None,
) -> None:
    """Say what 'release' would read, ask and write. Reads no rows, spends nothing."""
    arguments = locals()
    with plain_errors():
        options = _options(arguments)
        explanation = str(dpsyn_sql.plan(database, source, **options))
    for line in explanation.splitlines():
        # Other lines may quote SQL of the owner's, where rows=1 is a condition.
        typer.echo(_spoken(line))


def _spoken(line: str) -> str:
    """A line of a plan; the owner's own texts in it (queries, names) stay as they are."""
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
    public_table: PublicTables = None,
) -> None:
    """Write a domain file to fill in, from column names and types. Reads no row."""
    with plain_errors():
        text = dpsyn_sql.domain_template(
            database, source, trust_query=trust_query, public_tables=public_table or ()
        )
        if into is None:
            typer.echo(text)
            return
        _check_writable(into, replace=False)
        into.write_text(text, encoding="utf-8")
    typer.echo(f"Wrote {into}: fill in what it asks for, then pass it as --domain {into}")


app.command("audit", cls=AuditCommand)(audit_command)


def _options(arguments: dict[str, Any]) -> dict[str, Any]:
    """The command's options under the names of ``dpsyn_sql.release``.

    Raises:
        InputError: ``--workload`` or ``--set`` cannot be read.
    """
    renamed = {**arguments, "public_tables": arguments["public_table"] or ()}
    renamed |= method_given(renamed.pop("method"), renamed.pop("set_"))
    renamed["exclude"] = arguments["exclude"] or ()
    renamed["workload"] = _workload(arguments["workload"])
    for name in ("source", "database", "public_table", "certificate"):
        renamed.pop(name, None)
    return renamed


def _workload(entries: list[str] | None) -> dict[tuple[str, ...], str] | None:
    """``age,sex=2``: names as in a line of CSV, so that one with a comma can be quoted."""
    weights: dict[tuple[str, ...], str] = {}
    for entry in entries or ():
        text, sign, weight = entry.rpartition("=")
        names = tuple(next(csv.reader([text]), ()))
        if not sign or not names or names in weights:
            raise InputError(f"--workload {entry!r}: write each as income=5 or age,sex=2, and only once")
        weights[names] = weight
    return weights or None


def _check_writable(path: Path, replace: bool) -> None:
    if path.exists() and not replace:
        raise InputError(f"{path} exists already; choose another file or remove it")
    if not path.resolve().parent.is_dir():
        raise InputError(f"the folder of {path} does not exist")
