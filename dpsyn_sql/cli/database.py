"""What ``dpsyn release`` prints of a database whose tables are released together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.cli.option_names import with_option_names
from dpsyn_sql.cli.output import Output

if TYPE_CHECKING:
    from dpsyn_sql.report.result import Release


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
