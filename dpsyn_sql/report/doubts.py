"""Notes for the operator of a release; most of them are warnings too.

They depend on public facts and noisy answers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsyn_sql.accounting.budget import Number, weakness
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.common.notices import warn
from dpsyn_sql.discovery.attributes import FoundType
from dpsyn_sql.ledger.entries import SqliteEntry
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.report.fitted import ROWS_OF_NOISE, FittedRelease, marginal_figures, rows_wanted, total_error
from dpsyn_sql.report.verdict import Judged
from dpsyn_sql.source.names import listed

_MANY_TEXTS = 0.01
"""A release warns of texts that are no values of the found type from this noisy share on."""

_UNCERTAIN = 0.1
"""A release warns if the standard error of the noisy total is more than this part of it."""

_CLEAR = 4.0
# Standard errors above which a number of units is no mere noise.

_REPLACED = 0.02
# The part of the rows that conditions gave other codes above which a release says so.

_SINGLE = 0.95
# The part of units of one row from which on a release says that nothing is kept together.


def notes_on(entry: SqliteEntry) -> tuple[str, ...]:
    """Notes of the ledger for the operator."""
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
    return (*notes, f"The account {entry.account_state}.")


@dataclass(frozen=True, slots=True)
class Doubts:
    """What the operator is told. ``warnings``: all doubts about the answers, the most important first, which
    a certificate keeps. ``notes``: further remarks, which come first."""

    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def warned(self) -> tuple[str, ...]:
        """Warn of all of them; the notes and these."""
        for text in self.warnings:
            warn(text)
        return (*self.notes, *self.warnings)


def doubts(fitted: FittedRelease, verdicts: Judged, *, larger: bool = True, replaced: float = 0.0) -> Doubts:
    """Doubts about the output, from the answers and the verdicts on them; ``larger``: a larger epsilon can be
    advised; ``replaced``: the part of the rows that conditions gave other codes."""
    remark, large = none_asked(fitted.plan), _too_large(fitted.plan)
    paired = any(len(table.attrs) > 1 for table in fitted.measurements)
    dependences = None if remark or (large and not paired) else verdicts.dependences.why
    texts = (
        _uncertain_total(fitted, larger),
        _single_rows(fitted),
        _differing_units(fitted),
        _replaced(replaced),
        _unknown_types(fitted.types, larger),
        _odd_texts(fitted.types),
        verdicts.table.why,
        dependences,
        large,
    )
    return Doubts(tuple(text for text in texts if text), (remark,) if remark else ())


def remarks(epsilon: Number, time: float | None, cuts: Sequence[str]) -> tuple[str, ...]:
    """Notes on the request: a weak promise, whose warning comes before anything is charged, and what was left
    out to keep the limit, which depends on the machine."""
    weak = weakness(epsilon)
    cut = f"Within limits={{'time': {time:g}}} seconds {', and '.join(cuts)}." if cuts else None
    return tuple(note for note in (weak, cut) if note)


def _uncertain_total(fitted: FittedRelease, larger: bool) -> str | None:
    """Noise makes up much of the total."""
    error, unit = total_error(fitted.measurements), fitted.plan.source.unit
    if error <= _UNCERTAIN * max(0.0, fitted.model.total):
        return None
    wanted, noun = rows_wanted(fitted), "units" if unit.together else "rows"
    cures = ["spend a larger epsilon"] if larger else []
    if unit.sensitivity > unit.weight:
        cures.append(f"count fewer than {unit.max_rows} rows of a unit")
    advice = ", or ".join(cures)
    return (
        f"The noisy total of {fitted.model.total:,.0f} {noun} has a standard error of {error:,.0f}: the "
        f"number of {noun}, and every other figure, is uncertain"
        + (f", and {wanted:,} rows are written instead" if wanted == ROWS_OF_NOISE else "")
        + (f". {advice[0].upper()}{advice[1:]}." if advice else ".")
    )


def _single_rows(fitted: FittedRelease) -> str | None:
    """Nearly every unit has one row: nothing is to be kept together."""
    if fitted.families is None or fitted.families.table or fitted.model.total <= 0:
        return None
    numbers = fitted.model.project([fitted.families.size])
    if numbers[0] < _SINGLE * numbers.sum():
        return None
    return (
        f"About {numbers[0] / numbers.sum():.0%} of the units have one row: with weights=False, the same "
        "epsilon tells more of the other columns."
    )


def _replaced(part: float) -> str | None:
    """Conditions changed many rows."""
    if part <= _REPLACED:
        return None
    return (
        f"{part:.0%} of the rows met a condition of never: or CHECK whatever their values within the codes "
        "that were drawn, and have those of other rows in its columns. So figures of these columns differ "
        "from what the model says: declare finer bins, or compute one of them from the others (derived:)."
    )


def _differing_units(fitted: FittedRelease) -> str | None:
    """Columns of one value per unit that are none, by a noisy count of the units."""
    families = fitted.families
    if families is None or not families.differing:
        return None
    table = marginal_figures(fitted.model, fitted.measurements, [families.differing])
    error, unit = float(table["standard_error"][0]), fitted.plan.source.unit.column
    differences = [
        *(f"more than one {listed([name])}" for name in families.shared),
        f"several in several of {listed(families.shared)}",
    ]
    phrases = [
        f"about {noisy:,.0f} have {difference}"
        for noisy, difference in zip(table["noisy"][1:], differences, strict=False)
        if noisy > _CLEAR * error
    ]
    if not phrases:
        return None
    return (
        f"Of about {fitted.model.total:,.0f} values of {unit}, {', '.join(phrases)} (by noisy counts, "
        f"+-{error:,.0f}), though per_unit: true says one: the most frequent was taken for all rows of each. "
        "If rows may differ there, take per_unit away."
    )


def _of_several(attribute: Attribute) -> bool:
    """Whether values were found, and rows are written differently."""
    return attribute.size > 1 and attribute.regular > 0 and attribute.written > 1


def _in_no_pair(plan: Plan) -> list[str]:
    """Columns of several codes that no table can join to another such column."""
    names = [attribute.name for attribute in plan.domain.attributes if _of_several(attribute)]
    if len(names) < 2 or any(reserve.further and not reserve.queries for reserve in plan.reserves):
        return []  # tables over bins: any columns fit
    joined = {name for query in plan.queries if len(query.attrs) > 1 for name in query.attrs}
    return [name for name in names if name not in joined]


def _too_large(plan: Plan) -> str | None:
    """Columns that are independent of all others because every pair with them has too many cells."""
    alone = _in_no_pair(plan)
    sizes = {attribute.name: attribute.size for attribute in plan.domain.attributes if _of_several(attribute)}
    large = [
        name
        for name in alone
        if len(alone) < len(sizes)  # the method asks for pairs, and not for these
        or sizes[name] * min(size for partner, size in sizes.items() if partner != name) > MAX_PAIR_CELLS
    ]
    if not large:
        return None
    names = ", ".join(repr(name) for name in large)
    single = len(large) == 1
    return (
        f"{names} {'is' if single else 'are'} too large for a table with any other column, and independent "
        "of all other columns in the output. Declare fewer categories or bins for "
        f"{'it' if single else 'them'}."
    )


def none_asked(plan: Plan) -> str | None:
    """The method asks for no pairs, and no column is too large for them: it was chosen for that."""
    if plan.method == "adaptive":  # it asks wherever the rows are enough
        return None
    several = sum(_of_several(attribute) for attribute in plan.domain.attributes)
    if several < 2 or len(_in_no_pair(plan)) < several or _too_large(plan):
        return None
    return (
        f"No pair of columns is measured by method={plan.method!r} as it is set: what goes with what in the "
        "output says nothing about the source."
    )


def _odd_texts(types: Mapping[str, FoundType]) -> str | None:
    """Columns of numbers or times in which texts became NULL."""
    odd = [
        f"{listed([name])} ({found_type.odd:.0%} are no {found_type.sql_type})"
        for name, found_type in types.items()
        if found_type.odd >= _MANY_TEXTS and found_type.sql_type != "VARCHAR"
    ]
    if not odd:
        return None
    return (
        f"Some texts do not fit the type that was found and become NULL, by noisy counts: {', '.join(odd)}. "
        "To keep them, state sql_type: VARCHAR in a domain file."
    )


def _unknown_types(types: Mapping[str, FoundType], larger: bool) -> str | None:
    """Columns whose type the noise hides."""
    names = [name for name, found_type in types.items() if not found_type.sure]
    if not names:
        return None
    guesses = ", ".join(f"{listed([name])} ({types[name].sql_type})" for name in names)
    return (
        f"The noise hides the type of {guesses}: the likeliest was taken, or text. State sql_type in a "
        f"domain file{', or spend a larger epsilon' * larger}."
    )
