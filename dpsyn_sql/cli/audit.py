"""``dpsyn audit``: the claim, beside the privacy loss that an attack on the real noise measures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsyn_sql.cli.options import Method, Settings, with_set
from dpsyn_sql.cli.output import ExitCode, Json, Quiet, printing

if TYPE_CHECKING:
    from dpsyn_sql.auditing import Audit, Prepared


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
        found = ready.run()
        for line in _lines(found, f"epsilon={epsilon}, delta={delta}"):
            out.say(line)
        out.document(_facts(found))
    if found.violated:
        raise typer.Exit(int(ExitCode.FAILED))


def _facts(found: Audit) -> dict[str, Any]:
    from dpsyn_sql.auditing import CANNOT_SEE, ERROR

    return {
        **asdict(found),
        "parameter": "epsilon" if found.kind == "pure" else "mu",
        "confidence": 1 - ERROR,
        "violated": found.violated,
        "not_covered": list(CANNOT_SEE),
    }


def _expected(ready: Prepared) -> str:
    minutes = ready.seconds / 60
    time = "less than a minute" if minutes < 1 else f"about {minutes:.0f} min"
    return f"{ready.design.runs} runs per side: {time}"


def _questions(found: Audit) -> str:
    asked = [f"{found.marginals} marginals of {len(found.shape)} attributes, {found.cells} cells"]
    asked += [f"{found.distances} distances"] * (found.distances > 0)
    asked += [f"{found.choices} choices"] * (found.choices > 0)
    return ", ".join(asked) + (" in a rehearsal; each run's answers decide" if found.adaptive else "")


def _lines(found: Audit, asked: str) -> list[str]:
    from dpsyn_sql.accounting.account import KINDS
    from dpsyn_sql.auditing import CANNOT_SEE, ERROR

    unit = "1 row" if found.rows_per_unit == 1 else f"{found.rows_per_unit} identical rows"
    table = f"{found.base_rows} rows with and without it" if found.base_rows else "no rows"
    parameter = "epsilon" if found.kind == "pure" else "mu"
    verdict = (
        "VIOLATED: the lower bound exceeds the claim"
        if found.violated
        else "no violation found: the lower bound is within the claim"
    )
    return [
        f"Configuration  {asked}, method {found.method}, one unit of {unit} against {table}",
        f"Questions      {_questions(found)}",
        f"Runs           {found.runs} per side: {found.false_alarms} false alarms, {found.misses} misses",
        f"Claim          {parameter} <= {found.claim:.4f}, for the whole budget, by {KINDS[found.kind]}",
        f"Lower bound    {parameter} >= {found.lower_bound:.4f}, confidence {1 - ERROR:g}",
        f"Power          {found.power:.2f}: probability of detecting noise of half the scale",
        f"Verdict        {verdict}",
        *(f"Not covered    {text}" for text in CANNOT_SEE),
    ]
