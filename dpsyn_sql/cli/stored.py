"""Commands about a stored release, at no cost: ``dpsyn sample``, ``marginal``, ``plot`` and ``report``."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from dpsyn_sql.cli.output import Json, Output, Quiet, printing
from dpsyn_sql.errors import InputError

Stored = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="A DuckDB file with releases, or a file that 'release' wrote (or its model)."
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The release, as dpsyn_releases() lists it.")]

FREE = "Interrupted: this costs nothing, and nothing was written."
_IN_A_TABLE = 1_000
_IN_JSON = 100_000


def sample_command(
    source: Stored,
    name: Name,
    rows: Annotated[int, typer.Option("--rows", "-n", help="How many rows.")],
    seed: Annotated[int | None, typer.Option("--seed", help="Other rows. Default: 1, as in SQL.")] = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", "-o", help="A new .parquet, .csv or .csv.gz file. Default: print them."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw more rows of a stored release. Read neither source nor ledger; spend nothing."""
    with printing(as_json, quiet, FREE) as out:
        from dpsyn_sql.front.load import write_sample

        if into is not None:
            drawn = write_sample(source, name, into, rows, seed)
            out.say(f"Wrote {into}: {drawn} rows of {name!r}")
            out.document({"release": name, "file": str(into), "rows": drawn})
            return
        _check_number(rows, out)
        with TemporaryDirectory(prefix="dpsyn-sample-") as folder:
            file = Path(folder) / ("rows.json" if as_json else "rows.csv")
            drawn = write_sample(source, name, file, rows, seed)
            _print_rows(out, name, file, drawn)


def _check_number(rows: int, out: Output) -> None:
    """A terminal and a JSON document take so many rows."""
    most = _IN_JSON if out.as_json else _IN_A_TABLE
    if rows > most and (out.as_json or sys.stdout.isatty()):
        where = "in a JSON document" if out.as_json else "on a terminal"
        raise InputError(f"rows={rows} are too many {where}, at most {most}: write them with into=FILE")


def _print_rows(out: Output, name: str, file: Path, drawn: int) -> None:
    if out.as_json:
        values: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        out.document({"release": name, "file": None, "rows": drawn, "values": values})
    elif sys.stdout.isatty():
        with file.open(encoding="utf-8", newline="") as lines:
            columns, *cells = csv.reader(lines)
        out.table(columns, cells)
    else:
        with file.open(encoding="utf-8", newline="") as lines:
            shutil.copyfileobj(lines, sys.stdout)


def marginal_command(
    source: Stored,
    name: Name,
    column: Annotated[list[str], typer.Argument(metavar="COLUMN...", help="Columns of the release.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print counts of a stored release, as modelled and as measured. Spend nothing.

    estimate: of the model, closest on average, with its error. noisy: as measured, unbiased, with its
    standard error; all in rows. basis: whether exactly this table was measured, larger ones only (summed),
    one over wider groups of values (grouped), or none (modelled).
    """
    with printing(as_json, quiet, FREE) as out:
        from dpsyn_sql.front.load import load

        release = load(source, name)
        table = release.marginal(column)
        figures = list(table.columns)[len(column) :]
        rows = [
            ([_label(value) for value in row[: len(column)]], [*map(float, row[len(column) : -1]), row[-1]])
            for row in table.itertuples(index=False, name=None)
        ]
        out.table([*column, *figures], [[*map(_shown, labels), *values] for labels, values in rows])
        cells = [
            {"values": dict(zip(column, labels, strict=True)), **dict(zip(figures, values, strict=True))}
            for labels, values in rows
        ]
        out.document({"release": name, "id": release.id, "columns": column, "cells": cells})


def plot_command(
    source: Stored,
    name: Name,
    column: Annotated[
        list[str],
        typer.Argument(metavar="COLUMN...", help="A point, or one or two columns of one point."),
    ],
    into: Annotated[Path, typer.Option("--into", "-o", help="A .svg, .png or .pdf file.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw where the rows of a stored release lie along a point: leaves and density. Spend nothing.

    The picture is of the model alone. It needs the extra 'plot' (matplotlib).
    """
    with printing(as_json, quiet, FREE) as out:
        from dpsyn_sql.front.load import load
        from dpsyn_sql.report.picture import check_ending, write_picture

        check_ending(into)
        release = load(source, name)
        if len(release.tables) > 1:
            raise InputError(f"{name!r} is a release of several tables: give NAME.TABLE, one of them")
        write_picture(release.plot(column), into)
        out.say(f"Wrote {into}: {', '.join(column)} of {name!r}")
        out.document({"release": name, "file": str(into), "columns": column})


def report_command(
    source: Stored,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The release; may be left out if there is only one."),
    ] = None,
    *,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            "-o",
            help="A .html file. Default: RELEASE_report.html in this folder, by the name of the release.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page about a stored release: what it is good for, promise, columns, pairs. Spend nothing.

    The page is one file without network or JavaScript. It is as public as the release: it is computed from
    the model, the noisy answers and the certificate. A file that exists is replaced.
    """
    with printing(as_json, quiet, FREE) as out:
        from dpsyn_sql.front.load import load
        from dpsyn_sql.report.labels import release_name
        from dpsyn_sql.report.public.page import check_report_path

        if into is not None:
            check_report_path(into)
        release = load(source, name)
        page = release.report(into or f"{release_name(release.into)}_report.html")
        out.say(f"Wrote {page}: the report of release {release.id}. Open it in a browser")
        out.document({"release": name, "id": release.id, "file": str(page)})


def _label(value: object) -> bool | int | float | str | None:
    """A value of the release as JSON has it; other types as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _shown(value: object) -> str:
    """As SQL writes it: NULL has a word, as an empty text may be a label too."""
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
