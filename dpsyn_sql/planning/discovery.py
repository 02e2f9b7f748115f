"""The steps of discovery: planned, seen twice, and of trees of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.shape import Shape, Undiscovered, UnitId
from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.errors import BudgetError, InputError
from dpsyn_sql.planning.queries import Discount, Splitter, TreeQuery
from dpsyn_sql.source.relation import PrivacyUnit

if TYPE_CHECKING:  # loads numpy, and a ledger is shown without
    from dpsyn_sql.attributes.text import Texts


DISCOVERY_SHARE = Fraction(1, 10)
"""Share of the budget for all columns without a public domain together, at most."""

COLUMN_SHARE = Fraction(1, 20)
"""Share of one of them, as far as there is room."""

AGAIN_SHARE = Fraction(1, 5)
"""Share of the budget for second looks at columns of text, at most; the method gets what they do not cost."""

HIERARCHY_SHARE, HIERARCHIES_SHARE = Fraction(1, 10), Fraction(1, 4)
"""Share of the budget for a hierarchy as far as there is room, and for all of them together at most. Its
leaves are measured only here: their noise is that of every value inside a code."""

STRUCTURE_PARTS: Mapping[Splitter, Fraction] = {
    "privtree": Fraction(3, 10),
    "improved": Fraction(3, 10),
    "basic": Fraction(7, 10),
    "direct": Fraction(1),
}
"""Part of a hierarchy's share that finds which nodes are split; the rest counts the leaves. The counts of
``basic`` are used in the fit beside those of the leaves; ``direct`` commits its own."""

_BEGINNINGS = frozenset((1, 2, 4))
# Lengths of beginnings of text that are asked for, of a tree with more levels.

_DEPTHS = ((2, 12), (4, 8), (8, 6))
# Of points of up to so many columns the levels that noisy counts of whole levels are asked for: each costs
# noise in all others.

CONTRIBUTIONS_SHARE = Fraction(1, 50)
"""Share of the budget for the number of rows per unit. A unit is in one cell, so a small share is enough."""

MOST_COUNTED = 10_000
"""Rows per unit up to which units are counted by their rows: one cell each."""

ROWS_SHARE = Fraction(1, 50)
"""Share of the budget for the number of units, the first question: it decides how the others are asked."""

ONE_LOOK = 2_000.0
"""Units in deviations of noise of one cell, if all columns shared the whole budget for one question each,
below which a column is asked about once: closer looks at parts that noise hides find nothing."""

TYPES_PART_ONCE = Fraction(1, 10)
"""Part of an even share of the budget that finds the type of text of a column that is asked about once."""

VALUES_PART = Fraction(7, 8)
"""Part of the share of a column of text that finds its values; the rest counts them and what is hidden."""

FIRST_LOOK_PART = Fraction(1, 3)
"""Part of what finds the values of a column of text that its first look costs; the rest goes where much is
hidden."""

STEPS_PART = Fraction(1, 10)
"""Part of the share of a column that is asked about once for its granularity: few steps, so little noise."""

Ask = Literal[
    "rows",
    "mixed",
    "types",
    "keys",
    "again",
    "prefixes",
    "values",
    "grid",
    "steps",
    "parts",
    "cells",
    "tree",
    "leaves",
    "total",
    "contributions",
]

_PARTS: Mapping[Ask, int] = {"values": 5, "grid": 4, "steps": 1, "parts": 4, "cells": 6}
# Parts of a numeric or temporal column's share. The grid only has to show which powers of two occur, the
# parts where in them values lie (postal codes, years and a city's longitudes fill a small part of one), the
# cells how they are spread there.

WHOLE_PARTS = 4
"""Parts of a text column's share for whole values; each length of its prefixes has one. A beginning has the
rows of many values, and stands the larger noise."""

TYPES_PART = Fraction(1, 5)
"""Part of the share of a column of text without a stated type that finds the type. A class holds many units,
so a small part is enough; a wrong type loses the column, and a fifth makes other noise only 12 % larger."""


def counted_per_unit(ask: Ask, rows_per_unit: int) -> int:
    """How many keys, or codes of a grid, a unit of up to k rows counts for.

    Signal over noise of a unit with d different ones is proportional to min(m, d) / sqrt(m) for Gaussian
    noise: m = sqrt(k) is within k^(1/4) of the best whatever d is. There are few steps, so d is small: one.
    """
    return 1 if ask in ("steps", "contributions") else math.isqrt(rows_per_unit - 1) + 1


@dataclass(frozen=True, slots=True)
class DiscoveryStep:
    """One question of discovery: ``attr`` is the column, None for rows per unit. ``length``: of the prefixes
    that are asked for, 0 for every other question. ``tree``: the question, for "tree", "leaves" and "total"
    (the rows below its root). A key of several attributes goes by the name of its first one."""

    ask: Ask
    attr: str | None
    budget: Budget
    length: int = 0
    tree: TreeQuery | None = None


def planned_discovery(
    shape: Shape, unit: PrivacyUnit, budget: Budget
) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    """The steps of discovery, and what is left of ``budget`` for the method (without threshold delta).

    Hierarchies get equal shares, and so do all other columns, with equal parts of the threshold delta. A
    column of text whose type is to be found may turn out to be text: after the question of its type stands
    what would be asked then, and the same share pays if it is not. Text can be looked at again (``again``):
    a share is kept for all these steps together, and each look has half of the column's threshold delta.

    Raises:
        BudgetError: categories must be learnt, and there is no delta for their threshold.
        InputError: units of more rows than can be counted.
    """
    trees = [column for column in shape.undiscovered if column.hierarchy is not None]
    flat = [column for column in shape.undiscovered if column.hierarchy is None]
    keys = [column for column in flat if column.kind == "categorical"]
    thresholded = [*flat, *(column for column in trees if texts_of(column) is not None)]
    if keys and not budget.delta:
        names = ", ".join(repr(column.name) for column in keys)
        raise BudgetError(
            f"delta=0 does not allow the threshold that finds the values of {names}: declare their "
            "categories in the domain file (or sql_type, for numbers of a CSV file), leave them out "
            "with exclude=, or give a delta such as 1e-9"
        )
    discovery = min(DISCOVERY_SHARE, COLUMN_SHARE * len(flat))
    hierarchies = min(HIERARCHIES_SHARE, HIERARCHY_SHARE * len(trees))
    contributions, twice = (
        contributions_share(shape, unit),
        [column for column in flat if _looks_again(column)],
    )
    again = min(AGAIN_SHARE, Fraction(len(twice), len(shape.measured))) if twice else Fraction(0)
    counted = ROWS_SHARE if flat else Fraction(0)
    method_part = 1 - counted - discovery - hierarchies - contributions - again
    total, columns, grown, rows, second, for_method = budget.without_thresholds().split(
        (counted, discovery, hierarchies, contributions, again, method_part)
    )
    shares = {**_evenly(columns, flat), **_evenly(grown, trees)}
    looks = _evenly(second, twice)
    thresholds = Budget(columns.kind, columns.amount, budget.delta) if thresholded else columns
    for name, share in _evenly(thresholds, thresholded).items():
        first, later = share.split((1, 1 if name in looks else 0))
        shares[name] = Budget(share.kind, shares[name].amount, first.delta)
        if name in looks:
            looks[name] = Budget(share.kind, looks[name].amount, later.delta)
    steps = [DiscoveryStep("rows", None, total)] if counted else []
    for column in shape.undiscovered:
        steps += column_steps(column, shares[column.name])
        if column.name in looks:
            steps.append(DiscoveryStep("again", column.name, looks[column.name]))
    if contributions:
        steps.append(DiscoveryStep("contributions", None, rows))
    return tuple(steps), for_method


def one_look(shape: Shape, unit: PrivacyUnit, budget: Budget, rows: float) -> bool:
    """Whether a table has so few rows (noisy ``rows``) that its columns are asked about once.

    Never where a unit may have several rows: discovery counts units, and one-way tables count rows.
    """
    if unit.max_rows > 1:
        return False
    return rows < ONE_LOOK * cell_noise(budget, max(1, len(shape.measured)))


def cell_noise(budget: Budget, questions: int = 1) -> float:
    """Standard deviation (units) of one count of so many questions that share a budget and of which a unit
    adds 1 to each."""
    amount = max(float(budget.fraction), 1e-12)
    return math.sqrt(questions / (2 * amount)) if budget.gaussian else math.sqrt(2) * questions / amount


def learning_share(shape: Shape, unit: PrivacyUnit, budget: Budget, rows: float) -> Fraction:
    """The part of a budget that discovery takes in a table of so many rows, beside what its method spends on
    one-way tables: all of them are questions of discovery where columns are asked about once.

    Raises:
        BudgetError, InputError: as ``planned_discovery``.
    """
    steps, for_method = planned_discovery(shape, unit, budget)
    if not any(step.ask == "rows" for step in steps) or not one_look(shape, unit, budget, rows):
        return 1 - Fraction(for_method.amount, budget.amount)
    total = next(step.budget.amount for step in steps if step.ask == "rows")
    _, left = type_steps(shape, Budget(budget.kind, budget.amount - total))
    names = {column.name for column in shape.undiscovered if column.hierarchy is None}
    unchanged = sum(step.budget.amount for step in steps if step.attr not in names and step.ask != "rows")
    return 1 - Fraction(max(0, left.amount - unchanged), budget.amount)


def steps_of_text(
    shape: Shape, unit: PrivacyUnit, budget: Budget, rows: float, wanted: Fraction
) -> tuple[DiscoveryStep, ...]:
    """The looks for values of text in a table of so many rows, if every column without a type is text.

    ``wanted``: as for ``one_look_discovery``.

    Raises:
        BudgetError, InputError: as ``planned_discovery``.
    """
    steps, _ = planned_discovery(shape, unit, budget)
    if any(step.ask == "rows" for step in steps) and one_look(shape, unit, budget, rows):
        total = next(step.budget.amount for step in steps if step.ask == "rows")
        _, left = type_steps(shape, Budget(budget.kind, budget.amount - total))
        measured = tuple(
            replace(column, typed=True) if isinstance(column, Undiscovered) else column
            for column in shape.measured
        )
        steps, _ = one_look_discovery(replace(shape, measured=measured), steps, left, wanted)
    return tuple(step for step in steps if step.ask in ("keys", "again"))


def type_steps(shape: Shape, left: Budget) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    """The questions about the types of text in a table whose columns are asked about once, and what is
    left."""
    columns = [column for column in shape.undiscovered if not column.typed]
    if not columns:
        return (), left
    part = TYPES_PART_ONCE * Fraction(len(columns), len(shape.measured))
    share, remaining = left.without_thresholds().split((part, 1 - part))
    steps = [DiscoveryStep("types", name, budget) for name, budget in _evenly(share, columns).items()]
    return tuple(steps), remaining


def one_look_discovery(
    shape: Shape, planned: Sequence[DiscoveryStep], left: Budget, wanted: Fraction
) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    """The steps of a table whose columns are asked about once, and what is left for the method.

    The answer about a column of numbers or times is its one-way table too. So ``wanted``, the part of the
    budget that the method would spend on one-way tables, pays for it. Of text the method measures the values
    that were found: its share is divided.

    Args:
        shape: with the columns to be discovered, all of a type.
        planned: the steps of ``planned_discovery``; those of hierarchies, of rows per unit, and the threshold
            deltas stay.
        left: of the budget after the number of units and the types, without threshold delta.
        wanted: 0 to 1.
    """
    columns = [column for column in shape.undiscovered if column.hierarchy is None]
    names = {column.name for column in columns}
    unchanged = [step for step in planned if step.attr not in names and step.ask != "rows"]
    free = Budget(left.kind, max(0, left.amount - sum(step.budget.amount for step in unchanged)))
    shares = {
        column.name: wanted * (VALUES_PART if column.kind == "categorical" else 1) / len(shape.measured)
        for column in columns
    }
    method_part = 1 - sum(shares.values())
    *column_shares, remaining = free.split([*shares.values(), method_part])
    deltas = dict.fromkeys(names, 0)
    for step in planned:
        if step.attr in names:
            deltas[str(step.attr)] += step.budget.delta
    steps = list(unchanged)
    for column, share in zip(columns, column_shares, strict=True):
        share = replace(share, delta=deltas[column.name])
        if _looks_again(column):
            first, again = share.split((FIRST_LOOK_PART, 1 - FIRST_LOOK_PART))
            half = share.delta // 2
            steps += column_steps(column, replace(first, delta=half), once=True)
            steps.append(DiscoveryStep("again", column.name, replace(again, delta=half)))
        else:
            steps += column_steps(column, share, once=True)
    return tuple(steps), remaining


def column_steps(column: Undiscovered, share: Budget, *, once: bool = False) -> tuple[DiscoveryStep, ...]:
    """How one column's share is divided among the questions about it, by its kind.

    ``once``: numbers and times are asked about once (``mixed``), beside their granularity.

    Values that many rows share are looked for if there is delta for a threshold; a granularity only if the
    owner does not state it. The beginnings of text come after the whole values, the longest first, each with
    its part of the share and of the threshold delta. The type of text without a stated type comes first; then
    ask again with the type that was found.

    Raises:
        BudgetError: the share cannot be divided among the questions of every type.
    """
    if column.hierarchy is not None and not (texts_of(column) is not None and share.delta):
        splitter = usual_splitter(share.kind)
        query = TreeQuery((column.hierarchy,), splitter, usual_depth((column.hierarchy,), splitter))
        tree, leaves = share.split((STRUCTURE_PARTS[splitter], 1 - STRUCTURE_PARTS[splitter]))
        return (
            DiscoveryStep("tree", column.name, tree, tree=query),
            DiscoveryStep("leaves", column.name, leaves, tree=query),
        )
    if not column.typed:
        types, for_keys = share.without_thresholds().split((TYPES_PART, 1 - TYPES_PART))
        keys = Budget(for_keys.kind, for_keys.amount, share.delta)
        if keys.amount < sum(_PARTS.values()):  # before the debit, whatever type is found after it
            raise BudgetError("discovery has no budget: raise epsilon, or declare the domain")
        return DiscoveryStep("types", column.name, types), DiscoveryStep("keys", column.name, keys)
    if column.kind == "categorical":
        beginnings = beginnings_of(column)
        for_values, *lengths = share.split([WHOLE_PARTS] + [1] * len(beginnings))
        of_lengths = zip(beginnings, lengths, strict=True)
        prefixes = [
            DiscoveryStep("prefixes", column.name, length_share, length)
            for length, length_share in of_lengths
        ]
        return DiscoveryStep("keys", column.name, for_values), *prefixes
    if once:
        amount = share.without_thresholds()
        if column.granularity is not None:
            return (DiscoveryStep("mixed", column.name, amount),)
        for_mixed, steps = amount.split((1 - STEPS_PART, STEPS_PART))
        return DiscoveryStep("mixed", column.name, for_mixed), DiscoveryStep("steps", column.name, steps)
    weights = dict(_PARTS)
    if not share.delta:
        del weights["values"]
    if column.granularity is not None:
        del weights["steps"]
    amounts = share.without_thresholds().split(list(weights.values()))
    thresholds = {"values": share.delta}
    return tuple(
        DiscoveryStep(ask, column.name, Budget(share.kind, ask_share.amount, thresholds.get(ask, 0)))
        for ask, ask_share in zip(weights, amounts, strict=True)
    )


def _looks_again(column: Undiscovered) -> bool:
    """Whether values of few rows are looked for again. Where beginnings are, they stand for the others."""
    return column.kind == "categorical" and column.type.family != "boolean" and not column.prefixes


def beginnings_of(column: Undiscovered) -> tuple[int, ...]:
    """The lengths of beginnings, descending, that are asked for of text that is not found whole."""
    texts = texts_of(column)
    if texts is None:
        return column.prefixes
    shorter = [length for length in texts.lengths if length < texts.longest]
    return tuple(
        sorted(shorter if len(shorter) <= len(_BEGINNINGS) else set(shorter) & _BEGINNINGS, reverse=True)
    )


def texts_of(column: Undiscovered) -> Texts | None:
    """The hierarchy of a column declared as text over an alphabet."""
    if column.hierarchy is None:
        return None
    from dpsyn_sql.attributes.text import Texts

    return column.hierarchy if isinstance(column.hierarchy, Texts) else None


def usual_splitter(kind: Kind) -> Splitter:
    """PrivTree in pure accounts. Others pay dearly for its pure epsilon: with Gaussian noise, counts of whole
    levels say more (docs/decisions/0031)."""
    return "privtree" if kind == "pure" else "basic"


def usual_depth(hierarchies: Sequence[Hierarchy], splitter: Splitter) -> int:
    """Levels that are split at most: all of them where a level costs nothing, and where they are few."""
    deepest = sum(hierarchy.depth for hierarchy in hierarchies)
    if splitter in ("privtree", "improved") or any(hierarchy.text for hierarchy in hierarchies):
        return deepest
    columns = sum(len(hierarchy.columns) for hierarchy in hierarchies)
    return min(deepest, next((levels for most, levels in _DEPTHS if columns <= most), _DEPTHS[-1][1]))


def _evenly(budget: Budget, columns: Sequence[Undiscovered]) -> dict[str, Budget]:
    shares = budget.split([1] * len(columns)) if columns else ()
    return {column.name: share for column, share in zip(columns, shares, strict=True)}


def contributions_share(shape: Shape, unit: PrivacyUnit) -> Fraction:
    """The share for rows per unit: above 0 if the output has a column of units, and a unit may have several
    rows.

    Raises:
        InputError: units of more rows than can be counted.
    """
    if unit.together or unit.max_rows == 1 or not any(isinstance(role, UnitId) for role in shape.roles):
        return Fraction(0)
    if unit.max_rows > MOST_COUNTED:
        raise InputError(
            f"most={unit.max_rows} is too large: rows per unit are measured up to "
            f"{MOST_COUNTED}. Give a smaller number, or leave out the column with exclude=[{unit.column!r}]"
        )
    return CONTRIBUTIONS_SHARE


# -- second looks ------------------------------------------------------------------------------------

# Which columns of text are looked at again for values, and with what budget.
#
# A first look at each column shows the values of many rows. What a second one can show depends on the rows
# that the first one left hidden. The division follows from noisy answers and public facts alone, and together
# the second looks never cost more than was planned for them.
#
# Suppose that the hidden rows of a column are spread evenly over the logarithm of how many rows their values
# have. A threshold that falls from T to t then shows rows in proportion to h log(T / t) of h hidden ones, and
# t falls with the root of the budget. So the most is shown if budget is divided in proportion to h.

HIDDEN = 0.1
"""Part of all rows that has to be hidden in a column for a second look."""

LOWER = 0.75
"""The threshold of a second look has to be below this part of the first one: it finds nothing else."""

LEAST = 0.005
"""Part of all rows below which values are not looked for: a threshold is not made lower than this."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What the first look at a column cost and found.

    Attributes:
        amount: its cost, in units of a budget.
        threshold: the noisy rows from which values were shown.
        shown: the noisy rows of all values that were shown.
        error: the standard deviation of ``shown``.
    """

    amount: int
    threshold: int
    shown: int
    error: float


def second_looks(pool: int, looks: Mapping[str, FirstLook], rows: float | None) -> dict[str, int]:
    """What the second look at each column costs; columns that are not named are not looked at again.

    Args:
        pool: what all second looks may cost together, in units of a budget.
        looks: the first looks.
        rows: the noisy number of rows, or None: then the most that was found in one of the columns, which is
            less. NULL counts as hidden.
    """
    total = max((look.shown for look in looks.values()), default=0) if rows is None else rows
    hidden = {name: total - look.shown for name, look in looks.items()}
    left = {
        name: hidden_rows
        for name, hidden_rows in hidden.items()
        if hidden_rows > max(HIDDEN * total, 2 * looks[name].error, 1)
    }
    while left:
        every = sum(map(Fraction, left.values()))  # exact: together no more than the pool
        shares = {
            name: min(math.floor(pool * Fraction(hidden_rows) / every), _enough(looks[name], total))
            for name, hidden_rows in left.items()
        }
        lost = [name for name, share in shares.items() if not _pays(looks[name], share, left[name])]
        if not lost:
            return shares
        del left[min(lost, key=lambda name: left[name])]
    return {}


def _pays(look: FirstLook, amount: int, hidden: float) -> bool:
    """Whether a look at this cost shows values that the first one did not, and that are there to be found."""
    return amount > 0 and _threshold(look, amount) < min(LOWER * look.threshold, hidden)


def _threshold(look: FirstLook, amount: int) -> float:
    """Noise, and with it the threshold, falls with the root of the budget."""
    return look.threshold * math.sqrt(look.amount / amount)


def _enough(look: FirstLook, rows: float) -> int:
    """The cost of the lowest threshold that is asked for."""
    return math.ceil(look.amount * (look.threshold / max(1.0, LEAST * rows)) ** 2)


# -- trees of values ---------------------------------------------------------------------------------

# What is asked about a table that is one key of hierarchies, at what share; from public facts only.

TOTAL_SHARE = Fraction(1, 20)
"""Share of the budget for the rows in all: inside the hierarchies, outside, and without a value. The sum of
thousands of noisy leaves has much more noise."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How the tree of a key is grown.

    ``splitter``: None for the usual one of the account. ``structure``: part of the budget that finds which
    nodes are split; the rest counts the leaves (none is left for ``direct``, which commits their counts).
    ``depth``: levels that are split at most. ``threshold``: rows from which a node is split. Those that are
    None are as usual for the splitter. ``discount``: of the improved splitter.
    """

    splitter: Splitter | None = None
    structure: Fraction | None = None
    depth: int | None = None
    threshold: int | None = None
    discount: Discount = "clamped"


def planned_growth(
    shape: Shape, unit: PrivacyUnit, budget: Budget, growth: Growth
) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    """The steps that spend the whole budget, and the nothing that is left of it.

    Raises:
        InputError: a column is no hierarchy, or the depth is more than the hierarchies have.
    """
    flat = [item.name for item in shape.measured if isinstance(item, Attribute) or item.hierarchy is None]
    if flat or not shape.measured:
        complaint = f"these are none: {', '.join(map(repr, flat))}" if flat else "there is no column at all"
        raise InputError(
            f"method='hierarchical' takes tables whose columns are all hierarchies; {complaint}. "
            "Declare them as point, string, dyadic or taxonomy in the domain file, leave them out "
            "with exclude=, or use method='auto', which takes hierarchies beside other columns."
        )
    hierarchies = tuple(item.hierarchy for item in shape.undiscovered if item.hierarchy is not None)
    name, deepest = shape.measured[0].name, sum(hierarchy.depth for hierarchy in hierarchies)
    if growth.depth is not None and growth.depth > deepest:
        raise InputError(
            f"method='hierarchical' has the setting depth={growth.depth}, and the columns have {deepest} "
            "levels: give a depth of at most so many, or none"
        )
    splitter = growth.splitter or usual_splitter(budget.kind)
    depth = growth.depth or usual_depth(hierarchies, splitter)
    query = TreeQuery(hierarchies, splitter, depth, growth.threshold, discount=growth.discount)
    rows = contributions_share(shape, unit)
    usual = STRUCTURE_PARTS[splitter]
    structure = usual if usual == 1 or growth.structure is None else growth.structure
    for_tree = 1 - rows - TOTAL_SHARE
    weights = (rows, TOTAL_SHARE, structure * for_tree, (1 - structure) * for_tree)
    contributions, total, tree, leaves = budget.without_thresholds().split(weights)
    steps = [DiscoveryStep("total", name, total, tree=query), DiscoveryStep("tree", name, tree, tree=query)]
    if structure < 1:
        steps.append(DiscoveryStep("leaves", name, leaves, tree=query))
    if rows:
        steps.append(DiscoveryStep("contributions", None, contributions))
    return tuple(steps), Budget(budget.kind, 0)
