"""The domain file: ``dpsyn init`` writes its form, ``dpsyn check`` says what is odd about it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import dpsyn_sql
from dpsyn_sql.cli.option_names import with_option_names
from dpsyn_sql.cli.options import (
    Database,
    PublicTables,
    SourceArgument,
    Spark,
    TrustQuery,
    connection,
    names_database,
    parameter_of,
)
from dpsyn_sql.cli.output import ExitCode, Json, Quiet, check_writable, printing, written
from dpsyn_sql.errors import InputError

_NAMES = {"fault": "refused", "serious": "serious", "hint": "hint"}
_UNIT, _EXCLUDE = (parameter_of(name).annotation for name in ("unit", "exclude"))
_ENCODING, _DELIMITER, _QUOTE = (parameter_of(name).annotation for name in ("encoding", "delimiter", "quote"))


def init_command(
    source: SourceArgument,
    database: Database = None,
    spark: Spark = None,
    into: Annotated[
        Path | None, typer.Option("--into", "-o", help="File to write. Default: print it.")
    ] = None,
    trust_query: TrustQuery = False,
    public_tables: PublicTables = None,
    encoding: _ENCODING = None,  # type: ignore[valid-type]
    delimiter: _DELIMITER = None,  # type: ignore[valid-type]
    quote: _QUOTE = None,  # type: ignore[valid-type]
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a domain file to fill in, from column names and types. Read no rows.

    Of a DuckDB file alone: with all its tables, their keys, and which table belongs to which.
    """
    with printing(as_json, quiet, "Interrupted: no row was read, and nothing was charged.") as out:
        all_tables = database is None and spark is None and names_database(source)
        with connection(database, spark, source) as con:
            text = dpsyn_sql.init(
                con,
                None if all_tables else source,
                trust_query=trust_query,
                public_tables=public_tables or (),
                encoding=encoding,
                delimiter=delimiter,
                quote=quote,
            )
        if into is None:
            out.raw(text + "\n")
        else:
            check_writable(into, replace=False)
            if not written(into, text):
                raise InputError(f"{into} cannot be written: choose another file")
            out.say(f"Wrote {into}: fill it in, then pass it as --domain {into}")
        out.document({"file": None if into is None else str(into), "text": text})


def check_command(
    domain: Annotated[Path, typer.Argument(metavar="DOMAIN", help="Domain file to judge.")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="What it describes, as in release: names and types are then compared with its catalog.",
        ),
    ] = None,
    database: Database = None,
    unit: _UNIT = None,  # type: ignore[valid-type]
    exclude: _EXCLUDE = None,  # type: ignore[valid-type]
    trust_query: TrustQuery = False,
    public_tables: PublicTables = None,
    encoding: _ENCODING = None,  # type: ignore[valid-type]
    delimiter: _DELIMITER = None,  # type: ignore[valid-type]
    quote: _QUOTE = None,  # type: ignore[valid-type]
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is odd about a domain file, most important first. Read no rows.

    Exit code 1: something is odd. Refused is what a release refuses; serious is what ruins a column, or
    protects less than you may mean.
    """
    with printing(as_json, quiet, "Interrupted: no row was read, and nothing was charged.") as out:
        advice = dpsyn_sql.suggest(
            database,
            source,
            domain=domain,
            unit=unit,
            exclude=exclude or (),
            trust_query=trust_query,
            public_tables=public_tables or (),
            encoding=encoding,
            delimiter=delimiter,
            quote=quote,
        )
        findings = [
            {
                **asdict(finding),
                "what": with_option_names(finding.what),
                "cure": with_option_names(finding.cure),
            }
            for finding in advice
        ]
        if findings:
            rows = [[_NAMES[f["severity"]], f["column"], f["what"], f["cure"]] for f in findings]
            out.table(["", "column", "what is odd", "cure"], rows)
        else:
            out.say("Nothing is odd.")
        out.document({"findings": findings})
    if findings:
        raise typer.Exit(int(ExitCode.FAILED))
