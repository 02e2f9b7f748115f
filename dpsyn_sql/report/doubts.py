"""Notes for the operator of a release; most of them are warnings too.

They depend on public facts and noisy answers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpsyn_sql.accounting.budget import Number, weakness
from dpsyn_sql.interfaces import LedgerEntry
from dpsyn_sql.notices import warn
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.report.made import ROWS_OF_NOISE, Made, rows_wanted
from dpsyn_sql.report.marginals import total_error

_RARE = 0.05
"""A release warns if a value needs more than this part of the noisy total to be found."""

_UNCERTAIN = 0.1
"""A release warns if the standard error of the noisy total is more than this part of it."""


def notes_on(entry: LedgerEntry) -> tuple[str, ...]:
    """Notes of the ledger for the operator; a replay is also a warning."""
    notes = []
    if entry.replayed:
        label = repr(entry.name) if entry.version is None else f"{entry.name!r} version {entry.version!r}"
        if entry.measured_on is None:
            notes.append(f"Resumed {label} where it had stopped, under its earlier debit.")
        else:
            notes.append(
                f"Replayed {label}, measured on {entry.measured_on}. Nothing was charged, and the noisy "
                "answers are those of that day. To measure new data pass another version=."
            )
        warn(notes[0])
    return (*notes, f"The account {entry.standing}.")


def doubts(
    made: Made, *, epsilon: Number, time_limit: float | None, cuts: Sequence[str], needed: Sequence[float]
) -> tuple[str, ...]:
    """Notes on doubts about the output; those on the answers are warnings too.

    Args:
        made: the answers and their model.
        epsilon: of the request.
        time_limit: of the request.
        cuts: what was left out to keep the limit; it depends on the machine.
        needed: for each step of discovery the rows that a value must have to be found, 0 if the step finds
            no values.
    """
    own = (_uncertain_total(made), _rare_values(made, needed), _too_large(made.plan), _no_pairs(made))
    found = [note for note in own if note]
    for note in found:
        warn(note)
    weak = weakness(epsilon)  # its warning comes before anything is charged
    cut = f"Within time_limit={time_limit:g} seconds {', and '.join(cuts)}." if cuts else None
    return tuple(note for note in (weak, cut, *found, _none_asked(made.plan)) if note)


def _uncertain_total(made: Made) -> str | None:
    """Noise makes up much of the total."""
    error, unit = total_error(made.measurements), made.plan.source.unit
    if error <= _UNCERTAIN * max(0.0, made.model.total):
        return None
    wanted = rows_wanted(made)
    return (
        f"The noisy total of {made.model.total:,.0f} rows has a standard error of {error:,.0f}: the number "
        "of rows, and every other figure, is uncertain"
        + (f", and {wanted:,} rows are written instead" if wanted == ROWS_OF_NOISE else "")
        + ". Spend a larger epsilon"
        + (f", or count fewer than {unit.max_rows} rows of a unit." if unit.max_rows > 1 else ".")
    )


def _rare_values(made: Made, needed: Sequence[float]) -> str | None:
    """For some columns only frequent values, or none, could be found."""
    limit, least = _RARE * max(0.0, made.model.total), dict[str, float]()
    for step, rows in zip(made.plan.discovery, needed, strict=True):
        if rows and step.attr is not None:
            nothing = step.ask == "keys" and not made.shape.domain[step.attr].labels
            least[step.attr] = math.inf if nothing else rows
    names = ", ".join(repr(name) for name, rows in least.items() if rows > limit)
    if not names:
        return None
    return (
        f"Rare values of {names} cannot be found: a value needs more than a twentieth of the rows, or no "
        "value could be found at all. Declare this domain, or spend a larger epsilon."
    )


def _in_no_pair(plan: Plan) -> list[str]:
    """Columns of several codes that no table can join to another such column."""
    names = [attribute.name for attribute in plan.domain.attributes if attribute.size > 1]
    if len(names) < 2 or any(step.further is not None and not step.queries for step in plan.reserved):
        return []  # tables over bins: any columns fit
    joined = {name for query in plan.queries if len(query.attrs) > 1 for name in query.attrs}
    return [name for name in names if name not in joined]


def _too_large(plan: Plan) -> str | None:
    """Columns that are independent of all others because every pair with them has too many cells."""
    alone = _in_no_pair(plan)
    sizes = {attribute.name: attribute.size for attribute in plan.domain.attributes if attribute.size > 1}
    large = [
        name
        for name in alone
        if len(alone) < len(sizes)  # the method asks for pairs, and not for these
        or sizes[name] * min(size for other, size in sizes.items() if other != name) > MAX_PAIR_CELLS
    ]
    if not large:
        return None
    names = ", ".join(repr(name) for name in large)
    one = len(large) == 1
    return (
        f"{names} {'is' if one else 'are'} too large for a table with any other column, and independent of "
        f"all other columns in the output. Declare fewer categories or bins for {'it' if one else 'them'}."
    )


def _none_asked(plan: Plan) -> str | None:
    """The method asks for no pairs, and no column is too large for them: it was chosen for that."""
    several = sum(attribute.size > 1 for attribute in plan.domain.attributes)
    if several < 2 or len(_in_no_pair(plan)) < several or _too_large(plan):
        return None
    return (
        f"No pair of columns is measured by method={plan.method!r} as it is set: what goes with what in the "
        "output says nothing about the source."
    )


def _no_pairs(made: Made) -> str | None:
    """Pairs could have been measured, but none was worth its cost."""
    possible = any(
        step.further is not None or any(len(query.attrs) > 1 for query in step.queries)
        for step in made.plan.reserved
    )
    if not possible or any(len(table.attrs) > 1 for table in made.measurements):
        return None
    return (
        "No pair of columns stands out from the noise, so the columns of the output are independent of "
        "each other. To find dependence, spend a larger epsilon."
    )
