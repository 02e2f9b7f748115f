"""Questions of discovery about the values of one column, and about the rows of units.

Grid: noisy numbers of distinct units for each code of a public grid over a column.

Claim: docs/privacy.md, "Grids". A unit counts for at most m codes, once each: m = 1 where a row is the unit,
ceil(sqrt(k)) for units of k rows; L1 sensitivity m, L2 sensitivity sqrt(m).

Keys: the values of a column, or their beginnings, whose noisy count reaches a threshold.

Claim: docs/privacy.md, "Keys". A unit counts for at most m values, once each: m = 1 where a row is the unit,
ceil(sqrt(k)) for units of k rows; L2 sensitivity sqrt(m). Values of fewer units than a public number are
never shown, and one that a unit brings to this number with at most the probability that is charged as delta.

Steps: noisy numbers of distinct units by the coarsest step that their values are multiples of.

Claim: docs/privacy.md, "Steps". A unit counts for one step, whether it has one row or k: L1 and L2
sensitivity 1.

Types: noisy numbers of distinct units for each class of text in a column of text.

Claim: docs/privacy.md, "Types of text". A grid whose codes are the classes: a unit counts for at most m of
them, once each, and the charge is that of a grid.

Contributions: noisy numbers of units with 1, 2, ... rows after the bound.

Claim: docs/privacy.md, "Rows per unit". A unit counts in one cell, whether it has one row or k:
sensitivity 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent, ThresholdEvent
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.types import CLASSES, SqlType
from dpsyn_sql.errors import BudgetError, InternalError
from dpsyn_sql.planning.asking import counted_per_unit
from dpsyn_sql.planning.queries import (
    Beginning,
    ContributionQuery,
    Exact,
    GridQuery,
    KeyQuery,
    NoisyContributions,
    NoisyKeys,
    NoisyMarginal,
    NoisySteps,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.private.measure.counting import (
    Arrays,
    PrivateSide,
    QuestionParts,
    check_counts,
    column_named,
    digest,
)
from dpsyn_sql.private.measure.noise import (
    counts_event,
    gaussian_event,
    refuse_no_discovery,
    standard_deviation,
    steps_with_noise,
    whole_rows,
)

# -- grids ---------------------------------------------------------------------------------------------


def grid_event(codes_per_unit: int, share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting distinct units per code of a grid within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    refuse_no_discovery(share)
    return counts_event(codes_per_unit, codes_per_unit, share)


def grid_question_parts(
    question: GridQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyMarginal]:
    """All codes are answered, empty ones included.

    Raises:
        BudgetError: as ``grid_event``.
        InternalError: the domain is complete.
    """
    counter, grid = private_side.columns(), question.grid
    event = grid_event(counted_per_unit("grid", private_side.rows_per_unit), budget)
    together = (question.owners,) if question.owners else ()
    cuts = digest(repr((grid.kind, grid.labels, grid.edges, grid.other, grid.nullable, *together)))
    named = {**column_named("grid", grid.name, grid.sql_type, grid.source), "codes": grid.size, "cuts": cuts}

    def noisy() -> Arrays:
        counts = counter.cells(question)
        check_counts(counts, (grid.size,))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisyMarginal:
        return NoisyMarginal((grid.name,), arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)


# -- keys ----------------------------------------------------------------------------------------------


def keys_event(keys_per_unit: int, share: Budget) -> ThresholdEvent:
    """The event of asking which values a column has, within ``share``: noise, and the least threshold.

    The delta comes from our own exact tail: OpenDP's map of a threshold takes the tail of the continuous
    Gaussian, which is smaller.

    Raises:
        BudgetError: the share has no threshold delta (pure budgets have none), or no amount.
    """
    if share.kind == "pure" or share.delta == 0:
        raise BudgetError(
            "the values of a column cannot be discovered without delta for its threshold (delta is 0, or too "
            "small to be shared by all columns): a rare value that is shown would reveal who has it. "
            "Declare the categories in the domain, or release with a larger delta"
        )
    refuse_no_discovery(share)
    noise = gaussian_event(keys_per_unit, share)

    def of(threshold: int) -> ThresholdEvent:
        return ThresholdEvent(noise.sigma, keys_per_unit, threshold, noise.lattice)

    low = high = 2 + math.ceil(noise.sigma)
    while of(high).delta_units > share.delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle).delta_units <= share.delta else (middle, high)
    return of(high)


def least_units(event: ThresholdEvent) -> int:
    """Units that a value needs to get noise at all, one or more: a sixteenth of the threshold of the event.

    A column can have as many values as rows, and noise costs microseconds a value. The smaller the number,
    the lower is ``shown_from``; the larger, the fewer rows have to be kept apart.
    """
    return max(1, event.threshold // 16)


def shown_from(event: ThresholdEvent) -> int:
    """The noisy count from which a value is shown: above the number that is needed for noise by as much as
    the threshold of the event is above one."""
    return event.threshold + least_units(event) - 1


def keys_question_parts(
    question: KeyQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyKeys]:
    """Only the shown values leave, sorted.

    Raises:
        BudgetError: as ``keys_event``.
        InternalError: the domain is complete, or beginnings are asked for of what is no text.
    """
    counter = private_side.columns()
    event = keys_event(counted_per_unit("keys", private_side.rows_per_unit), budget)
    least, threshold = least_units(event), shown_from(event)
    named = _named(question) | {"longest": question.longest, "least": least}

    def noisy() -> Arrays:
        shown: list[tuple[Exact, int]] = []
        for keys, units in counter.keys(question, least):
            check_counts(units, (len(keys),))
            if len(units) and units.min() < least:
                raise InternalError("a key of too few units was counted")
            if not len(units):
                continue
            steps = steps_with_noise(private_side.noise, units, event)
            # The charged delta is that of noise which is not rounded yet.
            reached = np.flatnonzero(steps >= threshold * event.lattice)
            counts = whole_rows(steps[reached], event.lattice).tolist()
            shown += [(keys[place], count) for place, count in zip(reached.tolist(), counts, strict=True)]
        # Only shown keys are sorted, by their values, so that the order says nothing about other keys.
        shown.sort(key=lambda pair: _rank(pair[0]))
        return _packed(shown)

    def read(arrays: Arrays) -> NoisyKeys:
        values, lengths, content = arrays
        keys = tuple(_label(question.type, text) for text in _texts(lengths, content))
        return NoisyKeys(question.attr, keys, values, standard_deviation(event), threshold)

    return QuestionParts(event, named, noisy, read)


def _named(question: KeyQuery) -> dict[str, Any]:
    beginning = question.beginning
    name = question.attr, question.sql_type, question.source
    if beginning is None:
        return column_named("keys", *name)
    _check(question, beginning)
    known = beginning.known
    found = digest(repr((known.labels, known.prefixes)))
    return column_named("prefixes", *name) | {"length": beginning.length, "known": found}


def _check(question: KeyQuery, beginning: Beginning) -> None:
    """What is found must be labels of text, and all other values must have a code of their own."""
    known = beginning.known
    if type(beginning) is not Beginning or type(known) is not Attribute or beginning.length < 1:
        raise InternalError("beginnings are asked for with a length and an attribute")
    families = {question.type.family, known.type.family}
    if families != {"text"} or known.kind != "categorical" or known.other_code is None:
        raise InternalError("beginnings are those of text that no label covers")


def _rank(key: Exact) -> tuple[float, bytes]:
    """Numbers by their value, text by its bytes."""
    return (0, key.encode()) if isinstance(key, str) else (key, b"")


def _packed(shown: list[tuple[Exact, int]]) -> Arrays:
    """Noisy counts, lengths of the keys' UTF-8 texts in bytes, and these bytes, one after the other."""
    texts = [str(key).encode() for key, _ in shown]
    return [
        np.array([count for _, count in shown], dtype=np.int64),
        np.array([len(text) for text in texts], dtype=np.int64),
        np.frombuffer(b"".join(texts), dtype=np.uint8).astype(np.int64),
    ]


def _texts(lengths: NDArray[np.int64], content: NDArray[np.int64]) -> list[str]:
    whole = content.astype(np.uint8).tobytes()
    ends = np.cumsum(lengths).tolist()
    return [whole[end - length : end].decode() for end, length in zip(ends, lengths.tolist(), strict=True)]


def _label(kind: SqlType, text: str) -> Exact:
    if kind.family in ("text", "enum"):
        return text
    if kind.family == "boolean":
        return text == "True"
    return float(text) if kind.family == "float" else int(text)


# -- steps ---------------------------------------------------------------------------------------------


def steps_question_parts(
    question: StepQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisySteps]:
    """All steps are answered, those that no value fits included.

    Raises:
        BudgetError: the share is nothing.
        InternalError: the domain is complete.
    """
    counter, steps = private_side.columns(), question.steps
    event = grid_event(counted_per_unit("steps", private_side.rows_per_unit), budget)
    named = {
        **column_named("steps", question.attr, question.sql_type, question.source),
        "steps": [str(step) for step in steps],
    }

    def noisy() -> Arrays:
        counts = counter.steps(question)
        check_counts(counts, (len(steps) + 1,))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisySteps:
        return NoisySteps(steps, arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)


# -- types of text -------------------------------------------------------------------------------------


def types_question_parts(
    question: TypesQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyMarginal]:
    """All classes are answered, empty ones too.

    Raises:
        BudgetError: as ``grid_event``.
        InternalError: the domain is complete.
    """
    counter = private_side.columns()
    event = grid_event(counted_per_unit("types", private_side.rows_per_unit), budget)
    named = {**column_named("types", question.attr, "VARCHAR", None), "classes": digest(repr(CLASSES))}

    def noisy() -> Arrays:
        counts = counter.types(question)
        check_counts(counts, (len(CLASSES),))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisyMarginal:
        return NoisyMarginal((question.attr,), arrays[0], standard_deviation(event))

    return QuestionParts(event, named, noisy, read)


# -- rows per unit -------------------------------------------------------------------------------------


def contributions_event(share: Budget) -> GaussianEvent | LaplaceEvent:
    """The event of counting units by their number of rows within ``share``.

    Raises:
        BudgetError: the share is nothing.
    """
    refuse_no_discovery(share)
    return counts_event(1, 1, share)


def contributions_question_parts(
    question: ContributionQuery, budget: Budget, private_side: PrivateSide
) -> QuestionParts[NoisyContributions]:
    """One cell for each number of rows.

    Raises:
        BudgetError: as ``contributions_event``.
        InternalError: the domain is complete.
    """
    counter, event = private_side.columns(), contributions_event(budget)

    def noisy() -> Arrays:
        counts = counter.contributions(question)
        check_counts(counts, (question.most,))
        return private_side.noisy([counts], event)

    def read(arrays: Arrays) -> NoisyContributions:
        return NoisyContributions(arrays[0], standard_deviation(event))

    named = {"ask": "discover", "what": "contributions", "most": question.most}
    return QuestionParts(event, named, noisy, read)
