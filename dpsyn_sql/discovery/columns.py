"""How each kind of column is learnt: a generator for each.

A *learner* yields questions that do not depend on each other's answers, each with the look that pays for it.
It is sent the noisy answers in their order, and returns what they say. So it is a public function of noisy
answers, and whoever runs it asks the door (``discovery/learn.py``). For example::

    def coarse_grid(column, look):
        (noisy,) = yield [PaidLook(look, GridQuery(grid_attribute(column.name, column.sql_type, cuts)))]
        return Cells(cuts, noisy.values[:-1].astype(np.float64), noisy.sigma)
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dpsyn_sql.attributes.attribute import MAX_SIZE, Attribute, Granularity, Label
from dpsyn_sql.attributes.grids import Cuts, grid_attribute, grid_cuts, special_cuts
from dpsyn_sql.attributes.labels import catalog_attribute
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.discovery.attributes import (
    attribute_of_hidden,
    attribute_of_pieces,
    likely_granularity,
    likely_steps,
    steps_of,
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
from dpsyn_sql.discovery.designs import texts_of
from dpsyn_sql.discovery.labels import attribute_of_labels, attribute_of_texts, labels_of_keys, with_stems
from dpsyn_sql.discovery.leaves import LEAST_SIGMAS, attribute_of_tree
from dpsyn_sql.discovery.one_look import Looked, attribute_of_one_look, first_values, looked_at, other_part
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.asking import Ask, Look
from dpsyn_sql.planning.queries import (
    Beginning,
    GridQuery,
    KeyQuery,
    LeafQuery,
    NoisyKeys,
    NoisyMarginal,
    NoisyTree,
    Question,
    StepQuery,
    TreeQuery,
)
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PaidLook:
    """A question of a learner, and the look that pays for it."""

    look: Look
    question: Question[Any]


Learner = Generator[Sequence[PaidLook], Sequence[Any], T]
"""Yields questions, is sent their noisy answers, and returns what it learnt."""


@dataclass(frozen=True, slots=True)
class LearntColumn:
    """What is known of a column.

    ``seen``: of text the noisy counts of its labels. Of a column that was looked at once ``table`` is its
    one-way table, ``counted`` what was counted, and ``other`` the part of the units, 0 to 1, that may have
    another value than the first one that was found.
    """

    attribute: Attribute
    seen: NoisyMarginal | None = None
    table: NoisyMarginal | None = None
    counted: Looked | None = None
    other: float = 0.0


def learner_of(
    column: Undiscovered, looks: Sequence[Look], rows: float, total: NoisyMarginal | None
) -> Learner[LearntColumn]:
    """The learner of a column by its kind and its looks.

    Args:
        column: of a stated or found type.
        looks: the looks at it.
        rows: noisy number of units; 0 if there may be none.
        total: the same with its noise; None if nobody asked for it.
    """
    by_ask = {look.ask: look for look in looks}
    if "mixed" in by_ask:
        if total is None:
            raise InternalError("one look at a column goes by the number of units")
        return (yield from _numbers_at_once(column, by_ask, rows, total))
    if "tree" in by_ask:
        return LearntColumn((yield from _tree(column, by_ask)))
    if column.type.family == "boolean":
        return LearntColumn(_boolean(column))
    if "keys" not in by_ask:
        return LearntColumn((yield from _numbers(column, by_ask)))
    texts = texts_of(column)
    if texts is not None:
        return LearntColumn((yield from _texts(column, texts, looks)))
    _, labels = yield from _labels(column, key_query(column), looks)
    return LearntColumn(attribute_of_labels(column, labels))


def key_query(column: Undiscovered) -> KeyQuery:
    """Which values many units share."""
    return KeyQuery(column.name, column.sql_type, source=column.source)


def of_keys(column: Undiscovered, noisy: NoisyKeys) -> LearntColumn:
    """A column whose values were all that was asked for."""
    labels = labels_of_keys(column, noisy)
    counts = np.array(list(labels.values()), np.int64)
    return LearntColumn(
        attribute_of_labels(column, labels), seen=NoisyMarginal((column.name,), counts, noisy.sigma)
    )


def _boolean(column: Undiscovered) -> Attribute:
    """Both values are known."""
    stated = Column(column.name, column.sql_type, not_null=not column.nullable)
    boolean = catalog_attribute(stated, column.type)
    if boolean is None:
        raise InternalError("a BOOLEAN has two values")
    return replace(boolean, origin="discovered")


def _tree(column: Undiscovered, looks: Mapping[Ask, Look]) -> Learner[Attribute]:
    """Coarse nodes of a hierarchy."""
    (tree,) = yield [PaidLook(looks["tree"], tree_query(looks["tree"]))]
    (counted,) = yield [leaf_counts(looks["leaves"], tree)]
    return attribute_of_tree(column, tree, counted)


def tree_query(look: Look) -> TreeQuery:
    """The planned question about a tree."""
    if look.tree is None:
        raise InternalError("a tree was planned without its question")
    return look.tree


def leaf_counts(look: Look, tree: NoisyTree) -> PaidLook:
    """The question for the counts of the leaves of a tree."""
    return PaidLook(look, LeafQuery(tree_query(look).hierarchies, tree.levels, tree.nodes))


# -- text ------------------------------------------------------------------------------------------------


def _texts(column: Undiscovered, texts: Texts, looks: Sequence[Look]) -> Learner[Attribute]:
    """As many texts and beginnings as are found, whatever the number of codes. Text is cut first: what is
    longer than the longest text is the same value as its beginning."""
    cut = Fragment(f"substr({texts.column.read()}, 1, {texts.longest})")
    query = replace(key_query(column), longest=texts.longest, source=cut)
    lengths = tuple(look.length for look in looks if look.ask == "prefixes")
    any_number = replace(column, max_codes=MAX_SIZE, prefixes=lengths)
    whole, labels = yield from _labels(any_number, query, looks)
    return attribute_of_texts(column, texts, labels, LEAST_SIGMAS * whole.sigma)


def _labels(
    column: Undiscovered, query: KeyQuery, looks: Sequence[Look]
) -> Learner[tuple[NoisyKeys, dict[Label, int]]]:
    """The whole values, and the labels of values and of beginnings of the others with their noisy counts."""
    keys, *beginnings = looks
    (whole,) = yield [PaidLook(keys, query)]
    labels = labels_of_keys(column, whole)
    lengths = [look.length for look in beginnings]
    for number, look in enumerate(beginnings, start=1):
        beginning = Beginning(look.length, attribute_of_labels(column, labels))
        (stems,) = yield [PaidLook(look, replace(query, beginning=beginning))]
        labels = with_stems(column, labels, stems, lengths[:number])
    return whole, labels


# -- numbers, dates and times ----------------------------------------------------------------------------


def _numbers_at_once(
    column: Undiscovered, looks: Mapping[Ask, Look], rows: float, total: NoisyMarginal
) -> Learner[LearntColumn]:
    """One grid, whose counts are the one-way table too, and the granularity."""
    look = looks["mixed"]
    cuts, owners = special_cuts(column.type, column.least, column.most, rows / look.budget.law().deviation)
    asked = [PaidLook(look, GridQuery(_grid(column, cuts), owners))]
    if "steps" in looks:
        asked.append(_granularity(looks["steps"], column, likely_steps(column.type)))
    noisy, *of_steps = yield asked
    steps = of_steps[0] if of_steps else None
    missed = STANDS_OUT if look.budget.gaussian else LAPLACE_STANDS_OUT
    attribute, table = attribute_of_one_look(column, cuts, noisy, steps, rows, owners, missed)
    other = other_part(column, cuts, attribute, noisy, total, owners)
    starts = first_values(column.type, cuts, attribute.granularity)
    counted = looked_at(attribute, starts, noisy, owners)
    return LearntColumn(attribute, table=table, counted=counted, other=other)


def _numbers(column: Undiscovered, looks: Mapping[Ask, Look]) -> Learner[Attribute]:
    """Closer and closer: heavy values, a coarse grid, and two finer ones where the values lie."""
    kind, cuts = column.type, grid_cuts(column.type, column.least, column.most)
    questions: dict[Ask, PaidLook] = {"grid": PaidLook(looks["grid"], GridQuery(_grid(column, cuts)))}
    if "values" in looks:
        questions = {"values": PaidLook(looks["values"], key_query(column)), **questions}
    if "steps" in looks:
        questions["steps"] = _granularity(looks["steps"], column, steps_of(kind))
    answers = dict(zip(questions, (yield list(questions.values())), strict=True))
    atoms = atoms_of(column, answers["values"]) if "values" in answers else Atoms()
    granularity = likely_granularity(kind, answers["steps"]) if "steps" in answers else column.granularity
    cells = _cells(cuts, answers["grid"])
    needed = STANDS_OUT if looks["grid"].budget.gaussian else LAPLACE_STANDS_OUT
    chosen = occupied_cells(kind, cells, atoms, needed)
    if not stand_out(cells, chosen, atoms):
        return attribute_of_hidden(column, cuts, granularity)
    stretches = without_atoms(cells, chosen, atoms)
    closer: tuple[Ask, ...] = ("parts", "cells")  # where in the cells values lie, and how they are spread
    for ask in closer:
        sigma = cells.sigma * _noise_ratio(looks["grid"], looks[ask])
        finer = refined_cuts(kind, stretches, atoms, sigma, granularity)
        (noisy,) = yield [PaidLook(looks[ask], GridQuery(_grid(column, finer)))]
        found, atoms = with_finer_counts(kind, stretches, atoms, _cells(finer, noisy), ask == "cells")
        stretches = found or (() if atoms.values else stretches)
    pieces = with_atoms(kind, [stretch for stretch in stretches if stretch.mass > 0], atoms)
    if pieces:
        return attribute_of_pieces(column, within_equal_bins(column, pieces), granularity)
    return attribute_of_hidden(column, cuts, granularity)


def _grid(column: Undiscovered, cuts: Cuts) -> Attribute:
    return replace(grid_attribute(column.name, column.sql_type, cuts), source=column.source)


def _cells(cuts: Cuts, noisy: NoisyMarginal) -> Cells:
    """The noisy counts of the cells between cuts, without that of NULL."""
    return Cells(cuts, noisy.values[: len(cuts) - 1].astype(np.float64), noisy.sigma)


def _granularity(look: Look, column: Undiscovered, steps: tuple[Granularity, ...]) -> PaidLook:
    """The question which of these steps the values are multiples of."""
    return PaidLook(look, StepQuery(column.name, column.sql_type, steps, column.source))


def _noise_ratio(first: Look, closer: Look) -> float:
    """The noise of a closer look over that of the first one, by their budgets."""
    ratio = first.budget.amount / max(1, closer.budget.amount)
    return math.sqrt(ratio) if first.budget.gaussian else ratio
