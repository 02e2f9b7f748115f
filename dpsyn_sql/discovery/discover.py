"""Private discovery: every column without a public domain gets one through the door.

    text without a type  counts of classes of text               -> the type, then as below
    text                 values above a threshold, and again of
                         columns where it hides much             -> categories, the rest is __other__
      with prefixes      beginnings of the rest, as values are   -> categories such as 250*
    numbers and times    values above a threshold, coarse grid   -> cuts of two finer grids -> bins
    hierarchies          which nodes are split, counts of leaves -> coarse nodes
    of a small table     numbers and times on one grid           -> bins and their counts

The number of units is asked for first. The questions and their budgets are planned before anything is
charged, for a large table; that of a small one follows from this noisy number and public facts. Answers are
public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import MAX_SIZE, Attribute, Granularity, Label
from dpsyn_sql.attributes.declared import catalog_attribute, natural_kind
from dpsyn_sql.attributes.grids import Cuts, grid_attribute, grid_cuts, special_cuts
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.types import supported_type
from dpsyn_sql.common.progress import phase
from dpsyn_sql.discovery.attributes import (
    FoundType,
    attribute_of_hidden,
    attribute_of_pieces,
    granularity_found,
    steps_of,
    type_from_classes,
    within_equal_bins,
)
from dpsyn_sql.discovery.cells import (
    LAPLACE_STANDS_OUT,
    STANDS_OUT,
    Atoms,
    Cells,
    atoms_of,
    occupied_cells,
    refined_cuts,
    stand_out,
    with_atoms,
    with_finer_counts,
    without_atoms,
)
from dpsyn_sql.discovery.labels import (
    attribute_of_labels,
    attribute_of_texts,
    both_looks,
    labels_of_keys,
    with_stems,
)
from dpsyn_sql.discovery.leaves import LEAST_SIGMAS, attribute_of_tree, committed_key, key_of_tree
from dpsyn_sql.discovery.one_look import (
    LEAST_ROWS,
    attribute_of_one_look,
    first_values,
    likely_steps,
    other_part,
)
from dpsyn_sql.discovery.recoding import Looked, looked_at
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.discovery import (
    Ask,
    DiscoveryStep,
    FirstLook,
    beginnings_of,
    cell_noise,
    column_steps,
    one_look,
    one_look_discovery,
    second_looks,
    type_steps,
)
from dpsyn_sql.planning.limits import Learnt
from dpsyn_sql.planning.plan import CountedKey
from dpsyn_sql.planning.queries import (
    Beginning,
    ContributionQuery,
    Curator,
    GridQuery,
    KeyQuery,
    LeafQuery,
    NoisyContributions,
    NoisyKeys,
    NoisyLeaves,
    NoisyMarginal,
    NoisyTree,
    StepQuery,
    TreeQuery,
    TypesQuery,
)
from dpsyn_sql.source.relation import Column, PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

_CLOSER: tuple[Ask, ...] = ("parts", "cells")
# Looks at a column after the coarse grid: where in it the values lie, and how they are spread there.

UNITS_IN_ALL = Attribute("rows", "VARCHAR", "categorical", ("0",), other=True, source=Fragment("'0'"))
"""A grid on which all units have one code: the value is a constant, of text as in a CSV file."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What discovery found.

    ``shape`` is complete. ``contributions``: how many units have how many rows, if that was planned.
    ``asked``: the steps that were asked, in order. ``types``: what was found of columns of text without a
    stated type. ``counted``: of a table that is one key, its rows. ``unspent``: what the planned steps could
    have cost more, in units of the budget. ``once``: of a table whose columns were asked about once, the
    noisy number of units, and what is left of the budget for the method; ``tables`` are its noisy total, and
    the one-way tables of its columns of numbers and times; ``seen`` the noisy counts of the labels of its
    columns of text. ``beyond``: of such columns of numbers and times of one value or none the part of the
    units that may have another one. ``looks``: what was counted of all of them.
    """

    shape: Shape
    contributions: NoisyContributions | None
    asked: tuple[DiscoveryStep, ...]
    types: Mapping[str, FoundType] = field(default_factory=dict)
    counted: CountedKey | None = None
    unspent: int = 0
    once: Once | None = None
    tables: tuple[NoisyMarginal, ...] = ()
    seen: tuple[NoisyMarginal, ...] = ()
    beyond: Mapping[str, float] = field(default_factory=dict)
    looks: tuple[Looked, ...] = ()


@dataclass(frozen=True, slots=True)
class Once:
    """Of a table whose columns are asked about once: ``rows``, the noisy number of units; ``rest``, what
    discovery leaves to the method; ``alone``, whether one-way tables are all that it would spend on."""

    rows: float
    rest: Budget
    alone: bool


@dataclass(frozen=True, slots=True)
class Chooser:
    """What decides, by a noisy number of units, whether columns are asked about once: the whole ``budget`` of
    the release, its ``unit``, and ``one_way_part``, the part of the budget that the method would spend on
    one-way tables of so many units. ``review`` sees what columns of text hold before anything else is asked,
    and raises if the release stops there."""

    budget: Budget
    unit: PrivacyUnit
    one_way_part: Callable[[float], Fraction]
    review: Callable[[Learnt], None] | None = None


def discovered(
    shape: Shape,
    steps: Sequence[DiscoveryStep],
    door: Curator,
    rows_per_unit: int,
    chooser: Chooser | None = None,
) -> Discovered:
    """Ask the planned questions, or if the noisy number of units is small, one for each column.

    Without a ``chooser`` the number of units is not asked for.
    """
    asking = _Asking(door, _by_question(steps), [])
    rows = None
    if chooser is not None and asking.planned("rows", None):
        total = _rows(asking)
        rows = float(total.values)
        if one_look(shape, chooser.unit, chooser.budget, rows):
            return _once(shape, steps, chooser, asking, total)
    if any(step.ask == "total" for step in steps):
        key, counted = _key(shape, asking)
        shape = replace(shape, measured=(key,))
    else:
        counted = None
    types: dict[str, FoundType] = {}
    typed = list[tuple[Undiscovered, _Asking]]()
    for column in shape.undiscovered:
        step_asking = asking
        if not column.typed:
            types[column.name] = _type(column, asking)
            column, step_asking = _with_type(column, types[column.name].sql_type, asking)
        typed.append((column, step_asking))
    looks, attributes = _looks(typed, rows), dict[str, Attribute]()
    with phase("discover", len(typed)) as advance:
        for column, step_asking in typed:
            if column.name in looks:
                attributes[column.name] = attribute_of_labels(
                    column, labels_of_keys(column, looks[column.name])
                )
            else:
                attributes[column.name] = _attribute(column, step_asking)
            advance(1)
    contributions = _contributions(asking, rows_per_unit)
    return Discovered(
        shape.completed(attributes),
        contributions,
        tuple(asking.asked),
        types,
        counted,
        _unspent(steps, asking),
    )


def _unspent(steps: Sequence[DiscoveryStep], asking: _Asking) -> int:
    """What planned steps could have cost, less what was asked."""
    return sum(step.budget.amount for step in steps) - sum(step.budget.amount for step in asking.asked)


def _once(
    shape: Shape,
    planned: Sequence[DiscoveryStep],
    chooser: Chooser,
    asking: _Asking,
    total: NoisyMarginal,
) -> Discovered:
    """All types first, then one question for each column; the one-way tables of numbers and times are
    known then."""
    rows = float(total.values)
    amount = chooser.budget.amount - sum(step.budget.amount for step in asking.asked)
    steps, left = type_steps(shape, Budget(chooser.budget.kind, amount))
    asking = replace(asking, steps=_by_question(steps))
    untyped = [column for column in shape.undiscovered if not column.typed]
    types = {column.name: _type(column, asking) for column in untyped}
    shape = replace(
        shape,
        measured=tuple(
            _typed(item, types[item.name].sql_type)
            if isinstance(item, Undiscovered) and item.name in types
            else item
            for item in shape.measured
        ),
    )
    wanted, believed = chooser.one_way_part(rows), rows if rows > LEAST_ROWS * total.sigma else 0.0
    steps, remaining = one_look_discovery(shape, planned, left, wanted)
    asking = replace(asking, steps=_by_question(steps))
    looks = _looks([(column, asking) for column in shape.undiscovered], rows)
    if chooser.review is not None and believed:
        hidden = {name: keys.threshold for name, keys in looks.items() if not keys.keys}
        chooser.review(Learnt(rows, len(shape.measured), hidden))
    attributes, tables, label_tables = dict[str, Attribute](), [total], list[NoisyMarginal]()
    beyond, looks_counted = dict[str, float](), list[Looked]()
    with phase("discover", len(shape.undiscovered)) as advance:
        for column in shape.undiscovered:
            if column.name in looks:
                labels = labels_of_keys(column, looks[column.name])
                attributes[column.name] = attribute_of_labels(column, labels)
                counts = np.array(list(labels.values()), np.int64)
                label_tables.append(NoisyMarginal((column.name,), counts, looks[column.name].sigma))
            elif asking.planned("mixed", column.name):
                attributes[column.name], table, other_share, look = _of_one_look(
                    column, asking, believed, total
                )
                tables.append(table)
                looks_counted.append(look)
                if attributes[column.name].regular == 1:
                    beyond[column.name] = other_share
            else:
                attributes[column.name] = _attribute(column, asking)
            advance(1)
    contributions = _contributions(asking, chooser.unit.max_rows)
    spent = sum(step.budget.amount for step in asking.asked) + remaining.amount
    remaining = replace(remaining, amount=remaining.amount + chooser.budget.amount - spent)
    once, asked_steps = Once(rows, remaining, alone=wanted == 1), tuple(asking.asked)
    return Discovered(
        shape.completed(attributes),
        contributions,
        asked_steps,
        types,
        once=once,
        tables=tuple(tables),
        seen=tuple(label_tables),
        beyond=beyond,
        looks=tuple(looks_counted),
    )


def _rows(asking: _Asking) -> NoisyMarginal:
    """The noisy number of units."""
    noisy = asking.door.ask(GridQuery(UNITS_IN_ALL), asking.budget("rows", None))
    return NoisyMarginal((), noisy.values[0], noisy.sigma)


def _of_one_look(
    column: Undiscovered, asking: _Asking, rows: float, total: NoisyMarginal
) -> tuple[Attribute, NoisyMarginal, float, Looked]:
    """The attribute, its one-way table, the part of the units that may have another value than one, and what
    was counted."""
    budget = asking.budget("mixed", column.name)
    cuts, owners = special_cuts(column.type, column.least, column.most, rows / cell_noise(budget))
    grid = replace(grid_attribute(column.name, column.sql_type, cuts), source=column.source)
    noisy = asking.door.ask(GridQuery(grid, owners), budget)
    steps = None
    if asking.planned("steps", column.name):
        query = StepQuery(column.name, column.sql_type, likely_steps(column.type), column.source)
        steps = asking.door.ask(query, asking.budget("steps", column.name))
    missed = STANDS_OUT if budget.gaussian else LAPLACE_STANDS_OUT
    attribute, table = attribute_of_one_look(column, cuts, noisy, steps, rows, owners, missed)
    other_share = other_part(column, cuts, attribute, noisy, total, owners)
    starts = first_values(column.type, cuts, attribute.granularity)
    return attribute, table, other_share, looked_at(attribute, starts, noisy, owners)


def _contributions(asking: _Asking, most: int) -> NoisyContributions | None:
    if not asking.planned("contributions", None):
        return None
    return asking.door.ask(ContributionQuery(most), asking.budget("contributions", None))


def _key(shape: Shape, asking: _Asking) -> tuple[Attribute, CountedKey]:
    """A table that is one key; the steps go by its first column."""
    columns = shape.undiscovered
    name = columns[0].name
    query = asking.tree(name)
    root = NoisyTree(
        tuple(np.zeros(1, np.int64) for _ in columns),
        tuple(hierarchy.root() for hierarchy in query.hierarchies),
    )
    root_counts = asking.leaves("total", name, query, root)
    tree = asking.grown(name, query)
    if not asking.planned("leaves", name):
        return committed_key(columns, tree, root_counts)
    return key_of_tree(columns, tree, asking.leaves("leaves", name, query, tree), root_counts)


_Asked = tuple[Ask, str | None, int]


def _by_question(steps: Sequence[DiscoveryStep]) -> dict[_Asked, DiscoveryStep]:
    return {(step.ask, step.attr, step.length): step for step in steps}


@dataclass(frozen=True, slots=True)
class _Asking:
    """The door, what was planned, and the steps that were asked so far."""

    door: Curator
    steps: Mapping[_Asked, DiscoveryStep]
    asked: list[DiscoveryStep]

    def planned(self, ask: Ask, attr: str | None) -> bool:
        return (ask, attr, 0) in self.steps

    def budget(self, ask: Ask, attr: str | None, length: int = 0) -> Budget:
        """What a step may cost; it counts as asked."""
        self.asked.append(self.steps[ask, attr, length])
        return self.asked[-1].budget

    def values(self, ask: Ask, column: Undiscovered, amount: int | None = None) -> NoisyKeys:
        """The values of a column, at the planned threshold delta and, if it is given, another amount."""
        step = self.steps[ask, column.name, 0]
        if amount is not None:
            step = replace(step, budget=replace(step.budget, amount=amount))
        self.asked.append(step)
        return self.door.ask(KeyQuery(column.name, column.sql_type, source=column.source), step.budget)

    def tree(self, attr: str) -> TreeQuery:
        """The planned question about a tree."""
        query = self.steps["tree", attr, 0].tree
        if query is None:
            raise InternalError("a tree was planned without its question")
        return query

    def grown(self, attr: str, query: TreeQuery) -> NoisyTree:
        """The tree."""
        return self.door.ask(query, self.budget("tree", attr))

    def leaves(self, ask: Ask, attr: str, query: TreeQuery, tree: NoisyTree) -> NoisyLeaves:
        """Counts of the leaves of a tree."""
        leaf_query = LeafQuery(query.hierarchies, tree.levels, tree.nodes)
        return self.door.ask(leaf_query, self.budget(ask, attr))

    def cells(self, ask: Ask, column: Undiscovered, cuts: Cuts) -> Cells:
        """Noisy counts of the cells between cuts."""
        grid = replace(grid_attribute(column.name, column.sql_type, cuts), source=column.source)
        noisy = self.door.ask(GridQuery(grid), self.budget(ask, column.name))
        return Cells(cuts, noisy.values[: grid.regular].astype(np.float64), noisy.sigma)


def _type(column: Undiscovered, asking: _Asking) -> FoundType:
    noisy = asking.door.ask(TypesQuery(column.name), asking.budget("types", column.name))
    return type_from_classes(noisy.values, noisy.sigma)


def _with_type(column: Undiscovered, sql_type: str, asking: _Asking) -> tuple[Undiscovered, _Asking]:
    """The column with its type, and how the rest of its share is spent."""
    typed = _typed(column, sql_type)
    further = list(column_steps(typed, asking.steps["keys", column.name, 0].budget))
    if (
        typed.kind == "categorical"
        and typed.type.family != "boolean"
        and asking.planned("again", column.name)
    ):
        further.append(asking.steps["again", column.name, 0])
    return typed, replace(asking, steps=_by_question(further))


def _typed(column: Undiscovered, sql_type: str) -> Undiscovered:
    kind = natural_kind(supported_type(sql_type, column.name))
    return replace(column, sql_type=sql_type, kind=kind, typed=True)


def _looks(columns: Sequence[tuple[Undiscovered, _Asking]], rows: float | None) -> dict[str, NoisyKeys]:
    """The values of all columns that may be looked at twice: first of every column, then of those where much
    is hidden, at costs that together are no more than was planned for all second looks."""
    twice = [(column, asking) for column, asking in columns if asking.planned("again", column.name)]
    keys_of, first = dict[str, NoisyKeys](), dict[str, FirstLook]()
    for column, asking in twice:
        keys = keys_of[column.name] = asking.values("keys", column)
        amount = asking.steps["keys", column.name, 0].budget.amount
        error = keys.sigma * math.sqrt(len(keys.keys))
        first[column.name] = FirstLook(amount, keys.threshold, int(keys.values.sum()), error)
    pool = sum(asking.steps["again", column.name, 0].budget.amount for column, asking in twice)
    costs = second_looks(pool, first, rows)
    for column, asking in twice:
        if column.name in costs:
            again = asking.values("again", column, costs[column.name])
            keys_of[column.name] = both_looks(keys_of[column.name], again)
    return keys_of


def _attribute(column: Undiscovered, asking: _Asking) -> Attribute:
    """Ask what the type needs; a BOOLEAN needs nothing."""
    if isinstance(column.hierarchy, Texts) and asking.planned("keys", column.name):
        return _texts(column, column.hierarchy, asking)
    if column.hierarchy is not None:
        query = asking.tree(column.name)
        tree = asking.grown(column.name, query)
        return attribute_of_tree(column, tree, asking.leaves("leaves", column.name, query, tree))
    if column.type.family == "boolean":
        stated = Column(column.name, column.sql_type, not_null=not column.nullable)
        boolean = catalog_attribute(stated, column.type)
        if boolean is not None:
            return replace(boolean, origin="discovered")
    return _categories(column, asking) if column.kind == "categorical" else _bins(column, asking)


def _categories(column: Undiscovered, asking: _Asking) -> Attribute:
    query = KeyQuery(column.name, column.sql_type, source=column.source)
    _, labels = _labels(column, query, column.prefixes, asking)
    return attribute_of_labels(column, labels)


def _texts(column: Undiscovered, texts: Texts, asking: _Asking) -> Attribute:
    """As many texts and beginnings as are found, whatever the number of codes. Text is cut first: what is
    longer than the longest text is the same value as its beginning."""
    lengths = beginnings_of(column)
    cut = Fragment(f"substr({texts.column.read()}, 1, {texts.longest})")
    query = KeyQuery(column.name, column.sql_type, longest=texts.longest, source=cut)
    any_number = replace(column, max_codes=MAX_SIZE, prefixes=lengths)
    sigma, labels = _labels(any_number, query, lengths, asking)
    return attribute_of_texts(column, texts, labels, LEAST_SIGMAS * sigma)


def _labels(
    column: Undiscovered, query: KeyQuery, lengths: Sequence[int], asking: _Asking
) -> tuple[float, dict[Label, int]]:
    """Values, then beginnings of the others, with their noisy counts; and the noise of the values."""
    noisy = asking.door.ask(query, asking.budget("keys", column.name))
    labels = labels_of_keys(column, noisy)
    for number, length in enumerate(lengths, start=1):
        beginning = Beginning(length, attribute_of_labels(column, labels))
        stems = asking.door.ask(
            replace(query, beginning=beginning), asking.budget("prefixes", column.name, length)
        )
        labels = with_stems(column, labels, stems, lengths[:number])
    return noisy.sigma, labels


def _bins(column: Undiscovered, asking: _Asking) -> Attribute:
    kind, atoms = column.type, Atoms()
    if asking.planned("values", column.name):
        query = KeyQuery(column.name, column.sql_type, source=column.source)
        atoms = atoms_of(column, asking.door.ask(query, asking.budget("values", column.name)))
    cells = asking.cells("grid", column, grid_cuts(kind, column.least, column.most))
    granularity = _granularity(column, asking)
    gaussian = asking.steps["grid", column.name, 0].budget.gaussian
    chosen = occupied_cells(kind, cells, atoms, STANDS_OUT if gaussian else LAPLACE_STANDS_OUT)
    if not stand_out(cells, chosen, atoms):
        return attribute_of_hidden(column, cells.cuts, granularity)
    stretches = without_atoms(cells, chosen, atoms)
    for ask in _CLOSER:
        sigma = cells.sigma * _noise_ratio(asking, column, ask)
        cuts = refined_cuts(kind, stretches, atoms, sigma, granularity)
        closer, atoms = with_finer_counts(
            kind, stretches, atoms, asking.cells(ask, column, cuts), ask == "cells"
        )
        stretches = closer or (() if atoms.values else stretches)
    pieces = with_atoms(kind, [stretch for stretch in stretches if stretch.mass > 0], atoms)
    if pieces:
        return attribute_of_pieces(column, within_equal_bins(column, pieces), granularity)
    return attribute_of_hidden(column, cells.cuts, granularity)


def _granularity(column: Undiscovered, asking: _Asking) -> Granularity | None:
    if not asking.planned("steps", column.name):
        return column.granularity
    query = StepQuery(column.name, column.sql_type, steps_of(column.type), column.source)
    return granularity_found(asking.door.ask(query, asking.budget("steps", column.name)))


def _noise_ratio(asking: _Asking, column: Undiscovered, ask: Ask) -> float:
    """The noise of a closer look over that of the grid, by their budgets."""
    first, second = (asking.steps[step, column.name, 0].budget for step in ("grid", ask))
    ratio = first.amount / max(1, second.amount)
    return math.sqrt(ratio) if first.gaussian else ratio
