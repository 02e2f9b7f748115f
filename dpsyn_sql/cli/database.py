"""What ``dpsyn release`` and ``dpsyn plan`` print of a database whose tables are released together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.cli.option_names import with_option_names
from dpsyn_sql.cli.output import Output

if TYPE_CHECKING:
    from dpsyn_sql.front.database_plan import DatabaseExplanation
    from dpsyn_sql.report.result import Release


def show_plan_of_database(out: Output, planned: DatabaseExplanation, verbose: bool) -> None:
    """What a release would do: the tree of tables first."""
    lines = [with_option_names(line) for line in planned.verbose().splitlines()]
    for line in lines if verbose else map(with_option_names, str(planned).splitlines()):
        out.show(line)
    budget = planned.budget
    out.document(
        {
            "output": planned.into,
            "obstacle": with_option_names(planned.obstacle) or None,
            "release": with_option_names(planned.preview),
            "ledger": planned.ledger,
            "account": with_option_names(planned.account),
            "tables": {
                leg.name: {"share": leg.plan.budget.amount / budget.amount, "most": leg.table.most}
                for leg in planned.legs
            },
            "budget": {"kind": budget.kind, "amount": float(budget.fraction)},
            "explanation": lines,
        }
    )


def report_database(out: Output, result: Release, certificate: Path | None) -> None:
    """What was written, a line for each table."""
    told = (with_option_names(note) for note in result.notes)
    notes = [note for note in told if note not in out.warnings]  # each text once
    out.say(f"Wrote {result.into}:")
    for name, table in result.tables.items():
        out.say(f"  {name}: {table.rows} synthetic rows")
    claim = f"epsilon = {shown(result.epsilon)}, delta = {result.delta:g}"
    unit = result.facts["guarantee"]["privacy_unit"]
    out.say(f"Privacy: {claim} for each {unit} with all rows that belong to it")
    for line in result.facts["not_protected"]:
        out.say(f"Not protected: {line}")
    for note in notes:
        out.say(note)
    if not out.quiet:
        from dpsyn_sql.report.loss_words import lines_of_verdicts  # loads numpy

        lost = {name: table.facts["losses"] for name, table in result.tables.items()}
        lines = [(name, *line) for name, one in lost.items() for line in lines_of_verdicts(one)]
        if lines:
            out.table(["table", "column", "verdict", "why and what helps, or what was lost"], lines)
    out.say(f"Release {result.id}")
    out.document(
        {
            "id": result.id,
            "output": result.into,
            "tables": {
                name: {"rows": table.rows, "losses": table.facts["losses"]}
                for name, table in result.tables.items()
            },
            "epsilon": result.epsilon,
            "delta": result.delta,
            "rho": result.rho,
            "privacy_unit": unit,
            "replayed": result.replayed,
            "notes": notes,
            "certificate": None if certificate is None else str(certificate),
        }
    )
