"""``dpsyn evaluate``: a synthetic table beside the real one, for the owner of the data alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dpsyn_sql.cli.option_names import with_option_names
from dpsyn_sql.cli.output import Json, Quiet, printing

_NOTHING = "Interrupted: nothing was written, and nothing was charged."


def evaluate_command(
    real: Annotated[
        str,
        typer.Argument(
            metavar="REAL",
            help="The real rows: Parquet or CSV files; with --database also a table, view or query. With "
            "--tables or --domain: the DuckDB file of the real tables.",
        ),
    ],
    synthetic: Annotated[
        str,
        typer.Argument(
            metavar="SYNTHETIC",
            help="The table to judge, given in the same way. With --tables or --domain: a DuckDB file, a "
            "folder of Parquet files, or a schema of REAL.",
        ),
    ],
    tables: Annotated[
        str | None,
        typer.Option("--tables", help="Tables that hang together by keys: customers,orders,items."),
    ] = None,
    domain: Annotated[
        Path | None,
        typer.Option(
            "--domain", help="Domain file of the database, which says how its tables hang together."
        ),
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option("--holdout", help="Real rows of the same population that the release did not see."),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option("--database", "-d", help="DuckDB file that holds the tables (opened read-only)."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="Column that learners predict from the others (needs the extra 'ml'). It has at most 50 "
            "classes; the more there are, the fewer rows are learnt from. It can take minutes.",
        ),
    ] = None,
    never: Annotated[
        list[str] | None, typer.Option("--never", help="SQL condition that no row should meet (repeatable).")
    ] = None,
    places: Annotated[
        str | None,
        typer.Option("--places", help="Columns of numbers that are a place together: lat,lon."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", help="Column that says whose row it is: rows of one person are compared."),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option("--order", help="Column of numbers or times that orders the rows of a person."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of what is drawn: marginals, queries, rows.")] = 1,
    memory_limit: Annotated[
        str | None, typer.Option("--memory-limit", help="Of the database, such as 4GB.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            "-o",
            help="New page (.private.html, added if missing) or document (.private.json). Default: print it.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """PRIVATE: compare a synthetic table or database with the real one. Write no database, charge nothing.

    The output is made from exact counts of real rows: keep it as you keep them, never publish it, and do not
    choose a release to publish by it.
    """
    with printing(as_json, quiet, _NOTHING) as out:
        import dpsyn_sql  # loads the engine
        from dpsyn_sql.errors import InputError
        from dpsyn_sql.evaluation.files import checked_place, private_name
        from dpsyn_sql.planning.workload import members_of
        from dpsyn_sql.source.paths import absolute_path

        homes = [absolute_path(given).parent for given in (database, real) if given and Path(given).exists()]
        place = None if into is None else checked_place(private_name(into), homes)
        if tables is not None or domain is not None:
            of_tables = (database, holdout, target, never, places, unit, order)
            if any(given is not None for given in of_tables):
                raise InputError(
                    "With --tables or --domain a whole database is compared: REAL is its file, and the other "
                    "options are --seed, --memory-limit and --into."
                )
            found = dpsyn_sql.evaluate_database(
                real,
                synthetic,
                tables=None if tables is None else members_of(tables),
                domain=domain,
                seed=seed,
                memory_limit=memory_limit,
            )
        else:
            found = dpsyn_sql.evaluate(
                database,
                real,
                synthetic,
                holdout,
                never=never or (),
                target=target,
                places=None if places is None else members_of(places),
                unit=unit,
                order=order,
                seed=seed,
                memory_limit=memory_limit,
            )
        found = replace(found, notes=tuple(map(with_option_names, found.notes)))
        if place is None:
            out.show(found.summary())
        else:
            found.report(place)
            out.say(f"Wrote {place}: PRIVATE, as the real rows are; its owner alone can read it")
            for note in found.notes:
                out.say(note)
        out.document({**found.to_dict(), "file": None if place is None else str(place)})
