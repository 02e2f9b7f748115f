"""``dpsyn report``: the page about a stored release for a person who reads it, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsyn_sql.cli.output import Json, Quiet, printing
from dpsyn_sql.cli.sample import FREE, Stored


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
        from dpsyn_sql.report.public.page import check_report_path
        from dpsyn_sql.report.public.words import release_name
        from dpsyn_sql.stored import load

        if into is not None:
            check_report_path(into)
        release = load(source, name)
        place = release.report(into or f"{release_name(release.table)}_report.html")
        out.say(f"Wrote {place}: the report of release {release.id}. Open it in a browser")
        out.document({"release": name, "id": release.id, "file": str(place)})
