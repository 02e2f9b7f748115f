"""Private discovery: every column without a public domain gets one through the door.

    text without a type  counts of classes of text               -> the type, then as below
    text                 values above a threshold, and again of
                         columns where it hides much             -> categories, the rest is __other__
      with prefixes      beginnings of the rest, as values are   -> categories such as 250*
    numbers and times    values above a threshold, coarse grid   -> cuts of two finer grids -> bins
      of few units       one grid                                -> bins and their counts
    hierarchies          which nodes are split, counts of leaves -> coarse nodes

One loop: ask, look, decide what to ask next. What is asked, and at what price, is a design
(``discovery/designs.py``): a function of public facts and of the answers so far. What the answers say about a
column is its learner's (``discovery/columns.py``). The number of units is asked for first, then the types of
text, then the values of text, then all else. Answers are public.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.common.progress import phase
from dpsyn_sql.discovery.attributes import FoundType, type_from_classes
from dpsyn_sql.discovery.columns import (
    Learner,
    LearntColumn,
    PaidLook,
    key_query,
    leaf_counts,
    learner_of,
    of_keys,
    tree_query,
)
from dpsyn_sql.discovery.designs import design, few_units, typed_shape
from dpsyn_sql.discovery.labels import both_looks
from dpsyn_sql.discovery.leaves import committed_key, key_of_tree
from dpsyn_sql.discovery.one_look import LEAST_ROWS, Looked
from dpsyn_sql.planning.asking import Door, Look, Reserve
from dpsyn_sql.planning.limits import Learnt
from dpsyn_sql.planning.plan import CountedKey
from dpsyn_sql.planning.queries import (
    ContributionQuery,
    GridQuery,
    NoisyContributions,
    NoisyKeys,
    NoisyMarginal,
    NoisyTree,
    TypesQuery,
)
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

UNITS_IN_ALL = Attribute("rows", "VARCHAR", "categorical", ("0",), other=True, source=Fragment("'0'"))
"""A grid on which all units have one code: the value is a constant, of text as in a CSV file."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What discovery found.

    ``shape`` is complete. ``asked``: the looks that were taken, in order. ``contributions``: how many units
    have how many rows, if that was planned. ``types``: what was found of columns of text without a stated
    type. ``counted``: of a table that is one key, its rows.

    Of a table of few units ``tables`` are its noisy total, and the one-way tables of its columns of numbers
    and times; ``seen`` the noisy counts of the labels of its columns of text; ``alone`` says that one-way
    tables are all that the method would spend on. ``beyond``: of its columns of numbers and times of one
    value or none the part of the units that may have another one. ``looks``: what was counted of all of them.
    """

    shape: Shape
    asked: tuple[Look, ...] = ()
    contributions: NoisyContributions | None = None
    types: Mapping[str, FoundType] = field(default_factory=dict)
    counted: CountedKey | None = None
    tables: tuple[NoisyMarginal, ...] = ()
    seen: tuple[NoisyMarginal, ...] = ()
    alone: bool = False
    beyond: Mapping[str, float] = field(default_factory=dict)
    looks: tuple[Looked, ...] = ()


@dataclass(frozen=True, slots=True)
class Chooser:
    """What decides, by a noisy number of units, what is asked: the whole ``budget`` of the table, its
    ``unit``, and ``one_way_part``, the part of the budget that the method would spend on one-way tables of so
    many units. ``review`` sees what columns of text of few units hold before anything else is asked, and
    raises if the release stops there."""

    budget: Budget
    unit: PrivacyUnit
    one_way_part: Callable[[float], Fraction]
    review: Callable[[Learnt], None] | None = None


def discovered(shape: Shape, planned: Sequence[Look], door: Door, chooser: Chooser) -> Discovered:
    """Ask the door what the design says, answer by answer.

    Args:
        shape: with columns to be discovered.
        planned: the looks of the plan, before anything is known.
        door: what answers.
        chooser: what decides.
    """
    door.reserve(Reserve("columns", chooser.budget))
    learner, asked = _learner(shape, planned, chooser), list[Look]()
    answers: Any = None
    with closing(learner):
        while True:
            try:
                questions = learner.send(answers)
            except StopIteration as end:
                found: Discovered = end.value
                return replace(found, asked=tuple(asked))
            asked += [one.look for one in questions]
            handles = [door.ask(one.question, one.look.budget) for one in questions]
            answers = [handle.read() for handle in handles]


def _learner(shape: Shape, planned: Sequence[Look], chooser: Chooser) -> Learner[Discovered]:
    """All of discovery: each design follows from what is known by then."""
    unit, budget, looks = chooser.unit, chooser.budget, planned
    total = yield from _units(planned)
    rows = None if total is None else float(total.values)
    few = few_units(shape, unit, budget, rows)
    wanted = chooser.one_way_part(rows or 0.0) if few else Fraction(0)
    key, counted = yield from _key(shape.undiscovered, planned)
    if key is not None:
        shape = replace(shape, measured=(key,))
    if rows is not None:
        looks = design(shape, unit, budget, rows, wanted)
    types = yield from _types(looks)
    if types:
        found_types = {name: found.sql_type for name, found in types.items()}
        looks = design(shape, unit, budget, rows, wanted, found_types)
        shape = typed_shape(shape, found_types)
    keys = yield from _values(shape.undiscovered, looks, rows)
    if not few or rows is None or total is None or rows <= LEAST_ROWS * total.sigma:
        rows = 0.0  # there may be none
    elif chooser.review is not None:
        hidden = {name: noisy.threshold for name, noisy in keys.items() if not noisy.keys}
        chooser.review(Learnt(rows, len(shape.measured), hidden))
    columns = yield from _columns(shape.undiscovered, looks, keys, rows, total)
    contributions = yield from _contributions(looks, unit.in_discovery.max_rows)
    complete = shape.completed({name: column.attribute for name, column in columns.items()})
    found = Discovered(complete, (), contributions, types, counted)
    if not few or total is None:
        return found
    return _with_counts(found, total, list(columns.values()), alone=wanted == 1)


def _with_counts(
    found: Discovered, total: NoisyMarginal, columns: Sequence[LearntColumn], *, alone: bool
) -> Discovered:
    """With what one look at each column counted, which nobody asks for again."""
    tables = (column.table for column in columns)
    seen = (column.seen for column in columns)
    looks = (column.counted for column in columns)
    beyond = {
        column.attribute.name: column.other
        for column in columns
        if column.counted is not None and column.attribute.regular == 1
    }
    return replace(
        found,
        tables=(total, *(table for table in tables if table is not None)),
        seen=tuple(table for table in seen if table is not None),
        alone=alone,
        beyond=beyond,
        looks=tuple(look for look in looks if look is not None),
    )


def _units(looks: Sequence[Look]) -> Learner[NoisyMarginal | None]:
    """The noisy number of units, if it is asked for."""
    asked = [PaidLook(look, GridQuery(UNITS_IN_ALL)) for look in looks if look.ask == "rows"]
    if not asked:
        return None
    (noisy,) = yield asked
    return NoisyMarginal((), noisy.values[0], noisy.sigma)


def _types(looks: Sequence[Look]) -> Learner[dict[str, FoundType]]:
    """The type of each column of text without a stated one."""
    names = {str(look.attr): look for look in looks if look.ask == "types"}
    if not names:
        return {}
    answers = yield [PaidLook(look, TypesQuery(name)) for name, look in names.items()]
    return {
        name: type_from_classes(noisy.values, noisy.sigma) for name, noisy in zip(names, answers, strict=True)
    }


def _values(
    columns: Sequence[Undiscovered], looks: Sequence[Look], rows: float | None
) -> Learner[dict[str, NoisyKeys]]:
    """The values of all columns that may be looked at twice: first of every column, then of those where much
    is hidden, at costs that together are no more than was planned for all second looks."""
    again = {str(look.attr): look for look in looks if look.ask == "again"}
    first = {str(look.attr): look for look in looks if look.ask == "keys" and look.attr in again}
    queries = {column.name: key_query(column) for column in columns if column.name in again}
    if not again:
        return {}
    answers = yield [PaidLook(first[name], query) for name, query in queries.items()]
    keys: dict[str, NoisyKeys] = dict(zip(queries, answers, strict=True))
    seen = {
        name: FirstLook(
            first[name].budget.amount,
            noisy.threshold,
            int(noisy.values.sum()),
            noisy.sigma * math.sqrt(len(noisy.keys)),
        )
        for name, noisy in keys.items()
    }
    costs = second_looks(sum(look.budget.amount for look in again.values()), seen, rows)
    closer = {
        name: replace(again[name], budget=replace(again[name].budget, amount=costs[name]))
        for name in queries
        if name in costs
    }
    if closer:
        answers = yield [PaidLook(look, queries[name]) for name, look in closer.items()]
        for name, noisy in zip(closer, answers, strict=True):
            keys[name] = both_looks(keys[name], noisy)
    return keys


def _columns(
    columns: Sequence[Undiscovered],
    looks: Sequence[Look],
    keys: Mapping[str, NoisyKeys],
    rows: float,
    total: NoisyMarginal | None,
) -> Learner[dict[str, LearntColumn]]:
    """Each column; of those in ``keys`` the values are known."""
    looks_of = defaultdict[str | None, list[Look]](list)
    for look in looks:
        if look.ask != "types":
            looks_of[look.attr].append(look)
    learnt = dict[str, LearntColumn]()
    with phase("discover", len(columns)) as advance:
        for column in columns:
            if column.name in keys:
                learnt[column.name] = of_keys(column, keys[column.name])
            else:
                learnt[column.name] = yield from learner_of(column, looks_of[column.name], rows, total)
            advance(1)
    return learnt


def _contributions(looks: Sequence[Look], most: int) -> Learner[NoisyContributions | None]:
    """How many units have how many rows, if it is asked for."""
    asked = [PaidLook(look, ContributionQuery(most)) for look in looks if look.ask == "contributions"]
    if not asked:
        return None
    (noisy,) = yield asked
    contributions: NoisyContributions = noisy
    return contributions


def _key(
    columns: Sequence[Undiscovered], looks: Sequence[Look]
) -> Learner[tuple[Attribute | None, CountedKey | None]]:
    """A table that is one key of hierarchies, and its rows; nothing if it is none."""
    by_ask = {look.ask: look for look in looks}
    if "total" not in by_ask:
        return None, None
    query = tree_query(by_ask["tree"])
    root = NoisyTree(
        tuple(np.zeros(1, np.int64) for _ in columns),
        tuple(hierarchy.root() for hierarchy in query.hierarchies),
    )
    (in_all,) = yield [leaf_counts(by_ask["total"], root)]
    (tree,) = yield [PaidLook(by_ask["tree"], query)]
    if "leaves" not in by_ask:
        return committed_key(columns, tree, in_all)
    (leaves,) = yield [leaf_counts(by_ask["leaves"], tree)]
    return key_of_tree(columns, tree, leaves, in_all)


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
