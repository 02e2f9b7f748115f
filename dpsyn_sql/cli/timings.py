"""``--timings``: where the time of a command went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from dpsyn_sql.cli.output import Output
from dpsyn_sql.common.stopwatch import COLUMNS, lines_of, stopwatch

Timings = Annotated[
    bool,
    typer.Option(
        "--timings",
        help="Also print where the time went, on standard error. For you alone: the rows show in it.",
    ),
]

_RIGHT = (False, True, True, True, False)


@contextmanager
def timed(out: Output, wanted: bool) -> Iterator[None]:
    """Time what is done inside; if it is ``wanted``, print it, also if it fails or is interrupted."""
    if not wanted:
        yield
        return
    with stopwatch() as watch:
        try:
            yield
        finally:
            if len(timings := watch.timings()) > 1:  # at least one phase ran
                title = "Where the time went (for you alone):"
                out.aside_table(COLUMNS, lines_of(timings), _RIGHT, title)
