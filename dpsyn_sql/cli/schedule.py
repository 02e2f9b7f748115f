"""``dpsyn run`` and ``dpsyn status``: scheduled releases of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.cli.output import Json, Output, Quiet, Timings, printing, timed
from dpsyn_sql.common.notices import printable

if TYPE_CHECKING:
    from dpsyn_sql.schedule import Outcome, Preview

File = Annotated[Path, typer.Argument(metavar="[FILE]", help="The file of the schedule.")]
_MOST_LINES = 12
"""The most periods of one state in a row that have a line each in a table."""

_COLUMNS = ("release", "period", "state", "account", "spent epsilon", "due")


def run_command(
    file: File = Path("dpsyn.yml"),
    select: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", metavar="NAME[:PERIOD]", help="Only these (repeatable)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cost and what would be read. Spend nothing.")
    ] = False,
    timings: Timings = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release what is due by a schedule, oldest first.

    Exit codes: 0 all is done, or nothing is due; 1 a release failed; 2 the file or an option is wrong and
    nothing was done; 3 a budget refused a release; 4 another run is at work; 130 interrupted.
    """
    with printing(as_json, quiet, "Interrupted. The same command goes on at no further cost.") as out:
        from dpsyn_sql.schedule import preview, run

        if dry_run:
            _show_previews(preview(file, select=select or ()), out)
            return
        with timed(out, timings):
            done = run(file, select=select or (), on_outcome=_Telling(out).tell)
        if not done.outcomes:
            out.say("Nothing is due.")
        out.document({"periods": [outcome.facts() for outcome in done.outcomes], "exit_code": done.exit_code})
    if done.exit_code:
        raise typer.Exit(done.exit_code)


def status_command(file: File = Path("dpsyn.yml"), as_json: Json = False, quiet: Quiet = False) -> None:
    """Show every release and period of a schedule with its state, what is spent, and what is due next."""
    with printing(as_json, quiet) as out:
        from dpsyn_sql.schedule import status

        periods = [state.facts() for state in status(file)]
        out.table(_COLUMNS, [tuple(facts.values())[: len(_COLUMNS)] for facts in _in_lines(periods)])
        for name, panel in dict.fromkeys(
            (period["release"], period["panel"]) for period in periods if period["panel"]
        ):
            out.show(f"{name}: {panel}")
        out.document({"periods": periods})


def _in_lines(facts: Sequence[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """A line for each period, but one for many of the same state in a row."""
    same = itemgetter("release", "state", "account", "spent_epsilon")
    for _, group in groupby(facts, key=same):
        periods = list(group)
        if len(periods) <= _MOST_LINES:
            yield from periods
            continue
        first, last = periods[0]["period"], periods[-1]["period"]
        yield {**periods[0], "period": f"{first} to {last} ({len(periods)})"}


class _Telling:
    """Shows each outcome as it comes; of periods that are not tried for one reason only the first."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._last = ""

    def tell(self, outcome: Outcome) -> None:
        """One line."""
        line = f"{outcome.item}: {outcome.result}: {' '.join(outcome.message.split())}"
        if outcome.result == "published":
            self._out.say(line)
        elif not self._out.as_json and (outcome.tried or outcome.message != self._last):
            typer.echo(printable(line), err=True)
        self._last = outcome.message


def _cost(preview: Preview) -> str:
    if preview.epsilon is None:
        return "cost not known"
    return f"{'would cost' if preview.problem else 'costs'} epsilon={shown(preview.epsilon)}"


def _show_previews(previews: tuple[Preview, ...], out: Output) -> None:
    if not previews:
        out.show("Nothing is due.")
    for name, bound in dict.fromkeys(
        (preview.item.releases.name, preview.bound) for preview in previews if preview.bound
    ):
        out.show(f"{name}: {bound}")
    for preview in previews:
        out.show(f"{preview.item}: {_cost(preview)}; reads {preview.reads}; writes {preview.writes}")
        out.show(f"    {preview.problem or preview.ledger}")
    out.show("Nothing was spent.")
    out.document({"periods": [preview.facts() for preview in previews]})
