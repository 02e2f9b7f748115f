"""Commands that judge: an evaluation of rows, an audit of a method."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsyn_sql.cli.option_names import with_option_names
from dpsyn_sql.cli.options import Method, Settings, with_set
from dpsyn_sql.cli.output import ExitCode, Json, Output, Quiet, printing

if TYPE_CHECKING:
    from dpsyn_sql.auditing import Audit, Prepared
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
    from dpsyn_sql.source.names import absolute_path

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


# -- audit -------------------------------------------------------------------------------------------

# ``dpsyn audit``: the claim, beside the privacy loss that an attack on the real noise measures.


def audit_command(
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="As in release.")] = "1.0",
    delta: Annotated[str, typer.Option("--delta", help="0 (pure differential privacy) to 1e-6.")] = "1e-9",
    method: Method = None,
    set_: Settings = None,
    domain: Annotated[
        Path | None,
        typer.Option("--domain", help="Domain file (keep it small). Default: three columns of three values."),
    ] = None,
    rows_per_unit: Annotated[
        int, typer.Option("--rows-per-unit", help="Number of identical rows of the added unit.")
    ] = 1,
    together: Annotated[
        bool, typer.Option("--together", help="Rows have weights, so that each unit counts the same.")
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            help="Runs on each side. Default: detects noise of half the scale with probability 0.99.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack the noise of a configuration on toy data. None of your rows is read.

    Exit code 1: the measured lower bound of the privacy loss exceeds the claim.
    """
    asks = "Interrupted: no row of yours was read, and nothing was charged."
    with printing(as_json, quiet, asks) as out:
        from dpsyn_sql.auditing import prepared  # loads everything that a release loads
        from dpsyn_sql.methods import static_default

        chosen = with_set(static_default() if method is None else method, set_) if set_ else method
        ready = prepared(
            epsilon=epsilon,
            delta=delta,
            method=chosen,
            domain=domain,
            rows_per_unit=rows_per_unit,
            together=together,
            runs=runs,
        )
        out.aside(_expected(ready))
        audit = ready.run()
        for line in _lines(audit, f"epsilon={epsilon}, delta={delta}"):
            out.say(line)
        out.document(_facts(audit))
    if audit.violated:
        raise typer.Exit(int(ExitCode.FAILED))


def _facts(audit: Audit) -> dict[str, Any]:
    from dpsyn_sql.auditing import CANNOT_SEE, ERROR

    return {
        **asdict(audit),
        "parameter": "epsilon" if audit.kind == "pure" else "mu",
        "confidence": 1 - ERROR,
        "violated": audit.violated,
        "not_covered": list(CANNOT_SEE),
    }


def _expected(ready: Prepared) -> str:
    minutes = ready.seconds / 60
    time = "less than a minute" if minutes < 1 else f"about {minutes:.0f} min"
    return f"{ready.design.runs} runs per side: {time}"


def _questions(audit: Audit) -> str:
    counts = [f"{audit.marginals} marginals of {len(audit.shape)} attributes, {audit.cells} cells"]
    counts += [f"{audit.distances} distances"] * (audit.distances > 0)
    counts += [f"{audit.choices} choices"] * (audit.choices > 0)
    return ", ".join(counts) + (" in a rehearsal; each run's answers decide" if audit.adaptive else "")


def _lines(audit: Audit, configuration: str) -> list[str]:
    from dpsyn_sql.accounting.account import KINDS
    from dpsyn_sql.auditing import CANNOT_SEE, ERROR

    unit = "1 row" if audit.rows_per_unit == 1 else f"{audit.rows_per_unit} identical rows"
    table = f"{audit.base_rows} rows with and without it" if audit.base_rows else "no rows"
    parameter = "epsilon" if audit.kind == "pure" else "mu"
    verdict = (
        "VIOLATED: the lower bound exceeds the claim"
        if audit.violated
        else "no violation found: the lower bound is within the claim"
    )
    return [
        f"Configuration  {configuration}, method {audit.method}, one unit of {unit} against {table}",
        f"Questions      {_questions(audit)}",
        f"Runs           {audit.runs} per side: {audit.false_alarms} false alarms, {audit.misses} misses",
        f"Claim          {parameter} <= {audit.claim:.4f}, for the whole budget, by {KINDS[audit.kind]}",
        f"Lower bound    {parameter} >= {audit.lower_bound:.4f}, confidence {1 - ERROR:g}",
        f"Power          {audit.power:.2f}: probability of detecting noise of half the scale",
        f"Verdict        {verdict}",
        *(f"Not covered    {text}" for text in CANNOT_SEE),
    ]
