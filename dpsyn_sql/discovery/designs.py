"""What is asked about the columns that nobody declared, and at what price.

A design is a tuple of looks (``planning/asking.py``). It is a function of public facts and of noisy answers
alone, so that the plan, the foresight of a plan, and the release all have it from here:

    nothing is known yet       the looks at a large table: no design costs more
    the noisy number of units  many: closer and closer looks at a column of numbers or times; few: one look
    the types of text          the looks that each type takes, within the share of its column

What was asked stays in every later design as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.roles import UnitId
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.spec import natural_kind
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.attributes.types import supported_type
from dpsyn_sql.errors import BudgetError, InputError
from dpsyn_sql.planning.asking import Ask, Look
from dpsyn_sql.planning.queries import Discount, Splitter, TreeQuery
from dpsyn_sql.source.relation import PrivacyUnit

DISCOVERY_SHARE = Fraction(1, 10)
"""Share of the budget for all columns without a public domain together, at most."""

COLUMN_SHARE = Fraction(1, 20)
"""Share of one of them, as far as there is room."""

AGAIN_SHARE = Fraction(1, 5)
"""Share of the budget for second looks at columns of text, at most; the method gets what they do not cost."""

HIERARCHY_SHARE, HIERARCHIES_SHARE = Fraction(1, 10), Fraction(1, 4)
"""Share of the budget for a hierarchy as far as there is room, and for all of them together at most. Its
leaves are measured only here: their noise is that of every value inside a code."""

CONTRIBUTIONS_SHARE = Fraction(1, 50)
"""Share of the budget for the number of rows per unit. A unit is in one cell, so a small share is enough."""

MOST_COUNTED = 10_000
"""Rows per unit up to which units are counted by their rows: one cell each."""

ROWS_SHARE = Fraction(1, 50)
"""Share of the budget for the number of units, the first question: it decides how the others are asked."""

FEW_UNITS = 2_000.0
"""Units in deviations of noise of one cell, if all columns shared the whole budget for one question each,
below which a column is asked about once: closer looks at parts that noise hides find nothing."""

TYPES_PART = Fraction(1, 5)
"""Part of the share of a column of text without a stated type that finds the type. A class holds many units,
so a small part is enough; a wrong type loses the column, and a fifth makes other noise only 12 % larger."""

TYPES_PART_OF_FEW = Fraction(1, 10)
"""Part of an even share of the budget that finds the type of text of a column that is asked about once."""

VALUES_PART = Fraction(7, 8)
"""Part of the share of a column of text that finds its values; the rest counts them and what is hidden."""

FIRST_LOOK_PART = Fraction(1, 3)
"""Part of what finds the values of a column of text that its first look costs; the rest goes where much is
hidden."""

STEPS_PART = Fraction(1, 10)
"""Part of the share of a column that is asked about once for its granularity: few steps, so little noise."""

WHOLE_PARTS = 4
"""Parts of a text column's share for whole values; each length of its prefixes has one. A beginning has the
rows of many values, and stands the larger noise."""

_PARTS: Mapping[Ask, int] = {"values": 5, "grid": 4, "steps": 1, "parts": 4, "cells": 6}
# Parts of a numeric or temporal column's share. The grid only has to show which powers of two occur, the
# parts where in them values lie (postal codes, years and a city's longitudes fill a small part of one), the
# cells how they are spread there.

_BEGINNINGS = frozenset((1, 2, 4))
# Lengths of beginnings of text that are asked for, of a tree with more levels.

_NO_TYPES: Mapping[str, str] = MappingProxyType({})


def design(
    shape: Shape,
    unit: PrivacyUnit,
    budget: Budget,
    rows: float | None = None,
    wanted: Fraction = Fraction(0),
    types: Mapping[str, str] = _NO_TYPES,
) -> tuple[Look, ...]:
    """The looks at the columns of a table that are to be discovered; the method gets ``left_of`` them.

    Without types of text a column may turn out to be text, and a large table has a look for that. A column of
    text can be looked at again (``again``): a share is kept for all these looks together, and each look has
    half of the column's threshold delta.

    In a table of few units (``few_units``) the answer about a column of numbers or times is its one-way table
    too. So ``wanted`` pays for it. Of text the method measures the values that were found: its share is
    divided. Without types, columns of text count as text there.

    Args:
        shape: the columns, before their types were found.
        unit: what is protected.
        budget: of the table, with the threshold delta.
        rows: noisy number of units; None before it is asked for.
        wanted: of a table of few units the part of the budget that its method would spend on one-way tables,
            0 to 1.
        types: the types that were found of columns of text, by name.

    Raises:
        BudgetError: categories must be learnt, and there is no delta for their threshold; or a share cannot
            be divided among the questions of every type.
        InputError: units of more rows than can be counted.
    """
    looks = _looks_of_many(shape, unit, budget)
    if few_units(shape, unit, budget, rows):
        return _looks_of_few(shape, budget, looks, wanted, types)
    typed = {column.name: column for column in typed_shape(shape, types).undiscovered if column.name in types}
    return tuple(further for look in looks for further in _by_type(look, typed.get(str(look.attr))))


def left_of(budget: Budget, looks: Iterable[Look]) -> Budget:
    """What looks leave of a budget, without its threshold delta."""
    return Budget(budget.kind, budget.amount - sum(look.budget.amount for look in looks))


def few_units(shape: Shape, unit: PrivacyUnit, budget: Budget, rows: float | None) -> bool:
    """Whether a table has so few units (noisy ``rows``) that its columns are asked about once.

    Never where a unit may have several rows: discovery counts units, and one-way tables count rows. Nor where
    all columns are hierarchies, of which nobody asks for the number of units.
    """
    if rows is None or unit.max_rows > 1 or not _flat(shape):
        return False
    return rows < FEW_UNITS * budget.law().shared(max(1, len(shape.measured)))


def typed_shape(shape: Shape, types: Mapping[str, str]) -> Shape:
    """The shape whose columns of text have the types that were found."""

    def typed(item: Attribute | Undiscovered) -> Attribute | Undiscovered:
        if not isinstance(item, Undiscovered) or item.name not in types:
            return item
        sql_type = types[item.name]
        kind = natural_kind(supported_type(sql_type, item.name))
        return replace(item, sql_type=sql_type, kind=kind, typed=True)

    return replace(shape, measured=tuple(map(typed, shape.measured)))


def _flat(shape: Shape) -> list[Undiscovered]:
    """The columns to be discovered that are no hierarchies."""
    return [column for column in shape.undiscovered if column.hierarchy is None]


def _looks_of_many(shape: Shape, unit: PrivacyUnit, budget: Budget) -> tuple[Look, ...]:
    """The looks at a large table. Hierarchies get equal shares, and so do all other columns, with equal parts
    of the threshold delta."""
    flat, trees = _flat(shape), [column for column in shape.undiscovered if column.hierarchy is not None]
    twice = [column for column in flat if _looks_again(column)]
    _check_thresholds(flat, budget)
    shares = (
        ROWS_SHARE if flat else Fraction(0),
        min(DISCOVERY_SHARE, COLUMN_SHARE * len(flat)),
        min(HIERARCHIES_SHARE, HIERARCHY_SHARE * len(trees)),
        contributions_share(shape, unit),
        min(AGAIN_SHARE, Fraction(len(twice), len(shape.measured))) if twice else Fraction(0),
    )
    total, columns, grown, rows, second, _ = budget.without_thresholds().split((*shares, 1 - sum(shares)))
    share_of, again = {**_evenly(columns, flat), **_evenly(grown, trees)}, _evenly(second, twice)
    thresholded = [*flat, *(column for column in trees if texts_of(column) is not None)]
    for name, share in _evenly(replace(columns, delta=budget.delta), thresholded).items():
        first, later = share.split((1, 1 if name in again else 0))
        share_of[name] = replace(share_of[name], delta=first.delta)
        if name in again:
            again[name] = replace(again[name], delta=later.delta)
    looks = [Look("rows", None, total)] if flat else []
    for column in shape.undiscovered:
        looks += looks_at(column, share_of[column.name])
        if column.name in again:
            looks.append(Look("again", column.name, again[column.name]))
    if rows.amount:
        looks.append(Look("contributions", None, rows))
    return tuple(looks)


def _check_thresholds(flat: Sequence[Undiscovered], budget: Budget) -> None:
    """Refuse to learn categories without threshold delta."""
    keys = [column.name for column in flat if column.kind == "categorical"]
    if keys and not budget.delta:
        raise BudgetError(
            f"delta=0 does not allow the threshold that finds the values of {', '.join(map(repr, keys))}: "
            "declare their categories in the domain file (or sql_type, for numbers of a CSV file), leave "
            "them out with exclude=, or give a delta such as 1e-9"
        )


def _by_type(look: Look, typed: Undiscovered | None) -> tuple[Look, ...]:
    """What stands for a look at a large table once the type of the column is ``typed``; None: it is not
    found, or was never in question."""
    if typed is None or look.ask not in ("keys", "again"):
        return (look,)
    if look.ask == "again":
        return (look,) if _looks_again(typed) else ()
    return looks_at(typed, look.budget)


def _looks_of_few(
    shape: Shape, budget: Budget, planned: Sequence[Look], wanted: Fraction, types: Mapping[str, str]
) -> tuple[Look, ...]:
    """The looks at a table of few units. Of the ``planned`` ones at a large table those at its hierarchies
    stay, the first one, and the threshold delta of each column."""
    untyped = [column for column in shape.undiscovered if not column.typed]
    columns = _flat(typed_shape(shape, {column.name: "VARCHAR" for column in untyped} | dict(types)))
    names, deltas = {column.name for column in columns}, dict.fromkeys([column.name for column in columns], 0)
    for look in planned:
        if look.attr in names:
            deltas[str(look.attr)] += look.budget.delta
    number, *others = planned
    part = TYPES_PART_OF_FEW * Fraction(len(untyped), len(shape.measured))
    for_types, left = left_of(budget, [number]).split((part, 1 - part))
    unchanged = [look for look in others if look.attr not in names]
    free = Budget(left.kind, max(0, left.amount - sum(look.budget.amount for look in unchanged)))
    weights = [
        wanted * (VALUES_PART if column.kind == "categorical" else 1) / len(shape.measured)
        for column in columns
    ]
    *shares, _ = free.split([*weights, 1 - sum(weights)])
    looks = [number, *(Look("types", name, share) for name, share in _evenly(for_types, untyped).items())]
    for column, share in zip(columns, shares, strict=True):
        looks += _looks_at_one_of_few(column, replace(share, delta=deltas[column.name]))
    return (*looks, *unchanged)


def _looks_at_one_of_few(column: Undiscovered, share: Budget) -> tuple[Look, ...]:
    """One look at a column; at text a second one, each with half of the threshold delta."""
    if not _looks_again(column):
        return looks_at(column, share, once=True)
    first, again = share.split((FIRST_LOOK_PART, 1 - FIRST_LOOK_PART))
    half = share.delta // 2
    second = Look("again", column.name, replace(again, delta=half))
    return (*looks_at(column, replace(first, delta=half), once=True), second)


# -- one column ------------------------------------------------------------------------------------------


def looks_at(column: Undiscovered, share: Budget, *, once: bool = False) -> tuple[Look, ...]:
    """How one column's share is divided among the looks at it, by its kind.

    The type of text without a stated type comes first, and what is left pays for what the type takes. A
    BOOLEAN takes nothing. ``once``: at numbers and times there is one look (``mixed``), beside that at their
    granularity.

    Raises:
        BudgetError: the share cannot be divided among the questions of every type.
    """
    if column.hierarchy is not None and not (texts_of(column) is not None and share.delta):
        return _looks_at_tree(column.name, column.hierarchy, share)
    if not column.typed:
        types, for_keys = share.without_thresholds().split((TYPES_PART, 1 - TYPES_PART))
        if for_keys.amount < sum(_PARTS.values()):  # before the debit, whatever type is found after it
            raise BudgetError("discovery has no budget: raise epsilon, or declare the domain")
        keys = replace(for_keys, delta=share.delta)
        return Look("types", column.name, types), Look("keys", column.name, keys)
    if column.type.family == "boolean":
        return ()
    if column.kind == "categorical":
        return _looks_at_text(column, share)
    return _one_look_at_numbers(column, share) if once else _looks_at_numbers(column, share)


def _looks_at_tree(name: str, hierarchy: Hierarchy, share: Budget) -> tuple[Look, ...]:
    """Which nodes are split, then the counts of the leaves."""
    splitter = usual_splitter(share.kind)
    query = TreeQuery((hierarchy,), splitter, usual_depth((hierarchy,), splitter))
    tree, leaves = share.split((STRUCTURE_PARTS[splitter], 1 - STRUCTURE_PARTS[splitter]))
    return Look("tree", name, tree, tree=query), Look("leaves", name, leaves, tree=query)


def _looks_at_text(column: Undiscovered, share: Budget) -> tuple[Look, ...]:
    """Whole values, then beginnings of the others, the longest first, each with its part of the threshold
    delta."""
    lengths = beginnings_of(column)
    for_values, *shares = share.split([WHOLE_PARTS] + [1] * len(lengths))
    beginnings = [
        Look("prefixes", column.name, length_share, length)
        for length, length_share in zip(lengths, shares, strict=True)
    ]
    return Look("keys", column.name, for_values), *beginnings


def _one_look_at_numbers(column: Undiscovered, share: Budget) -> tuple[Look, ...]:
    """One grid, and the granularity if the owner does not state it."""
    amount = share.without_thresholds()
    if column.granularity is not None:
        return (Look("mixed", column.name, amount),)
    mixed, steps = amount.split((1 - STEPS_PART, STEPS_PART))
    return Look("mixed", column.name, mixed), Look("steps", column.name, steps)


def _looks_at_numbers(column: Undiscovered, share: Budget) -> tuple[Look, ...]:
    """Values that many rows share, if there is delta for a threshold; a coarse grid; the granularity if the
    owner does not state it; then two finer grids where the values lie."""
    weights = dict(_PARTS)
    if not share.delta:
        del weights["values"]
    if column.granularity is not None:
        del weights["steps"]
    shares = share.without_thresholds().split(list(weights.values()))
    return tuple(
        Look(ask, column.name, replace(ask_share, delta=share.delta if ask == "values" else 0))
        for ask, ask_share in zip(weights, shares, strict=True)
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
    return column.hierarchy if isinstance(column.hierarchy, Texts) else None


def _evenly(budget: Budget, columns: Sequence[Undiscovered]) -> dict[str, Budget]:
    shares = budget.split([1] * len(columns)) if columns else ()
    return {column.name: share for column, share in zip(columns, shares, strict=True)}


def contributions_share(shape: Shape, unit: PrivacyUnit) -> Fraction:
    """The share for rows per unit: above 0 if the output has a column of units, and a unit may have several
    rows.

    Raises:
        InputError: units of more rows than can be counted.
    """
    if unit.together or unit.max_rows == 1 or not shape.roles_of(UnitId):
        return Fraction(0)
    if unit.max_rows > MOST_COUNTED:
        raise InputError(
            f"most={unit.max_rows} is too large: rows per unit are measured up to "
            f"{MOST_COUNTED}. Give a smaller number, or leave out the column with exclude=[{unit.column!r}]"
        )
    return CONTRIBUTIONS_SHARE


# -- trees of values ---------------------------------------------------------------------------------

# What is asked about a hierarchy, and about a table that is one key of several.

STRUCTURE_PARTS: Mapping[Splitter, Fraction] = {
    "privtree": Fraction(3, 10),
    "improved": Fraction(3, 10),
    "basic": Fraction(7, 10),
    "direct": Fraction(1),
}
"""Part of a hierarchy's share that finds which nodes are split; the rest counts the leaves. The counts of
``basic`` are used in the fit beside those of the leaves; ``direct`` commits its own."""

_DEPTHS = ((2, 12), (4, 8), (8, 6))
# Of points of up to so many columns the levels that noisy counts of whole levels are asked for: each costs
# noise in all others.

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


def looks_at_key(shape: Shape, unit: PrivacyUnit, budget: Budget, growth: Growth) -> tuple[Look, ...]:
    """The looks at a table that is one key of hierarchies: they spend the whole budget.

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
    looks = [Look("total", name, total, tree=query), Look("tree", name, tree, tree=query)]
    if structure < 1:
        looks.append(Look("leaves", name, leaves, tree=query))
    if rows:
        looks.append(Look("contributions", None, contributions))
    return tuple(looks)
