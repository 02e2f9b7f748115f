"""``dpsyn evaluate``: synthetic tables beside the real ones, for the owner of the data alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsyn_sql.cli.option_names import with_option_names
from dpsyn_sql.cli.output import Json, Output, Quiet, printing

if TYPE_CHECKING:
    from dpsyn_sql.evaluation.result import Evaluation

_NOTHING = "Interrupted: nothing was written, and nothing was charged."

Real = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="REAL",
        help="The real rows: Parquet or CSV files; with --database also a table, view or query, or the names "
        "of several tables. With --domain they can be left out: those of the file.",
        show_default=False,
    ),
]
Synthetic = Annotated[
    str,
    typer.Argument(
        metavar="SYNTHETIC",
        help="The table to judge, given in the same way. Of several tables: a DuckDB file, a folder of "
        "Parquet files, or a schema of the database.",
    ),
]
Domain = Annotated[
    Path | None,
    typer.Option("--domain", help="Domain file of a database, which says how its tables hang together."),
]
Holdout = Annotated[
    str | None,
    typer.Option("--holdout", help="Real rows of the same population that the release did not see."),
]
Database = Annotated[
    Path | None,
    typer.Option("--database", "-d", help="DuckDB file that holds the tables (opened read-only)."),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="Column that learners predict from the others (needs the extra 'ml'); of several tables "
        "orders.channel. It has at most 50 classes; the more there are, the fewer rows are learnt from. It "
        "can take minutes.",
    ),
]
Never = Annotated[
    list[str] | None,
    typer.Option("--never", help="SQL condition that no row of one table should meet (repeatable)."),
]
Places = Annotated[
    str | None, typer.Option("--places", help="Columns of numbers that are a place together: lat,lon.")
]
Unit = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="Column that says whose row it is: rows of one person are compared. Of several tables the key "
        "of the units: customers.customer_id.",
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        help="Column of numbers or times that orders the rows of a person; of several tables visits.day.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Of what is drawn: marginals, queries, rows.")]
MemoryLimit = Annotated[str | None, typer.Option("--memory-limit", help="Of the database, such as 4GB.")]
Into = Annotated[
    Path | None,
    typer.Option(
        "--into",
        "-o",
        help="New page (.private.html, added if missing) or document (.private.json). Default: print it.",
    ),
]


def evaluate_command(
    *,
    real: Real = None,
    synthetic: Synthetic,
    domain: Domain = None,
    holdout: Holdout = None,
    database: Database = None,
    target: Target = None,
    never: Never = None,
    places: Places = None,
    unit: Unit = None,
    order: Order = None,
    seed: Seed = 1,
    memory_limit: MemoryLimit = None,
    into: Into = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """PRIVATE: compare synthetic tables with the real ones. Write no database, charge nothing.

    The output is made from exact counts of real rows: keep it as you keep them, never publish it, and do not
    choose a release to publish by it.
    """
    with printing(as_json, quiet, _NOTHING) as out:
        import dpsyn_sql  # loads the engine
        from dpsyn_sql.planning.workload import members_of

        file = None if into is None else _checked(into, [*(real or ()), *([database] if database else [])])
        evaluation = dpsyn_sql.evaluate(
            database,
            real[0] if real and len(real) == 1 else real or None,
            synthetic,
            holdout,
            domain=domain,
            never=never or (),
            target=target,
            places=None if places is None else members_of(places),
            unit=unit,
            order=order,
            seed=seed,
            memory_limit=memory_limit,
        )
        _show(out, evaluation, file)


def _checked(into: Path, sources: list[str | Path]) -> Path:
    """The new file, which lies in no folder of public output."""
    from dpsyn_sql.evaluation.result import checked_file, private_name
    from dpsyn_sql.source.paths import absolute_path

    homes = [absolute_path(source).parent for source in sources if Path(source).exists()]
    return checked_file(private_name(into), homes)


def _show(out: Output, evaluation: Evaluation, file: Path | None) -> None:
    evaluation = replace(evaluation, notes=tuple(map(with_option_names, evaluation.notes)))
    if file is None:
        out.show(evaluation.summary())
    else:
        evaluation.report(file)
        out.say(f"Wrote {file}: PRIVATE, as the real rows are; its owner alone can read it")
        for note in evaluation.notes:
            out.say(note)
    out.document({**evaluation.to_dict(), "file": None if file is None else str(file)})
