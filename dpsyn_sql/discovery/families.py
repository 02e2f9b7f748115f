"""Whether rows of a family agree more than its own attributes explain, and the class that they share; public.

Everything follows from noisy answers. The test asks how often two rows of a family agree, attribute by
attribute. Where nothing stands out nothing more is asked. Where something does, the pairs of the attributes
that stand out give classes (``fit/siblings.py``), and the class of each family is drawn behind the door from
its own rows (docs/privacy.md, "Siblings" and "Classes of a family").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.siblings import (
    Classes,
    Excess,
    Reason,
    carried,
    excess,
    explained,
    found_classes,
    given_reasons,
    hanging_together,
    reason_of,
    unexplained,
)
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.families import MOMENT, ROW, Families
from dpsyn_sql.planning.queries import Map, MarginalQuery, Marginals, NoisyMarginal, Siblings
from dpsyn_sql.planning.row_labels import FamilyClass, class_costs
from dpsyn_sql.source.relation import WEIGHT

MOST_BINS = 12
"""Of an attribute in tables of pairs."""

MOST_OUT = 6
"""Attributes that classes are learnt from: those that stand out most."""

FALSE_POSITIVES = 1e-3
"""How often something stands out in all where rows of a family are strangers."""

LEAST_EXCESS = 0.002
"""Families that agree by less are left alone: a class would cost more than it tells."""

_CLEAR = 3.0
# Deviations from which on an attribute of persons is said to explain something.

_BINS, _OWN, _PERSONS, _CLASSES = 1, 5, 6, 24
# Of the budget: bins; each attribute with itself; with attributes of persons; classes. The first three are
# the test.

_ROWS = 6
# Of what is for classes, beside ``_CLASSES``: two attributes of one row.


def pairs_of_rows(families: Families, budget: Budget) -> Reserve:
    """All that ``found_groups`` may ask for: tables of pairs of rows, one-way tables, and in a tree of tables
    those of two attributes of one row."""
    queries, cells = tuple(MarginalQuery((name,)) for name in families.domain.names), MOST_BINS**2
    reserve = Reserve("pairs of rows of a unit", budget, queries, pairs_of_rows=True)
    if not families.table:
        return reserve
    return replace(
        reserve, most_attributes=2, most_cells=cells, together=MOST_OUT * (MOST_OUT - 1) // 2 * cells
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    """What is asked of whom: ``maps`` has the bins of attributes that have more codes than are paired."""

    door: Door
    domain: Domain
    maps: dict[str, Map]

    def query(self, first: str, second: str) -> MarginalQuery:
        maps = (self.maps.get(first), self.maps.get(second))
        return MarginalQuery((first, second), maps if any(maps) else ())

    def pairs(
        self, names: Sequence[tuple[str, str]], budget: Budget
    ) -> tuple[list[NDArray[np.float64]], float]:
        """Noisy tables of pairs of rows, and the deviation of their noise, in families."""
        tables = self.door.ask(Siblings([self.query(*pair) for pair in names]), budget).read()
        return [table.values / WEIGHT for table in tables], tables[0].sigma / WEIGHT

    def within(self, names: Sequence[tuple[str, str]], budget: Budget) -> list[NDArray[np.float64]]:
        """Noisy tables of two attributes of one row, in families."""
        tables = self.door.ask(Marginals([self.query(*pair) for pair in names]), budget).read()
        return [table.values / WEIGHT for table in tables]

    def bins(self, name: str) -> int:
        return max(self.maps[name]) + 1 if name in self.maps else self.domain[name].size


def found_groups(door: Door, families: Families, budget: Budget) -> tuple[list[FamilyClass], Budget]:
    """The classes of a family, none where nothing stands out, and what is left of the budget. Attributes that
    do not hang together across the rows of a family have classes of their own.

    Args:
        door: answers about ``families.domain``; pairs of rows may be asked for.
        families: without a class.
        budget: of the whole stage, an eighth of the release's; a third of it is for the test.
    """
    door.reserve(pairs_of_rows(families, budget))
    rows = [
        name
        for name, level in zip(families.domain.names, families.levels, strict=True)
        if level in (MOMENT, ROW) and name != families.since and families.domain[name].size > 1
    ]
    if not rows or budget.amount == 0 or families.domain[families.size].size == 1:
        return [], budget
    shared = families.persons - {families.differing}  # an error of the data explains nothing
    persons = [name for name in families.domain.names if name in shared]
    many = [name for name in (*rows, *persons) if families.domain[name].size > MOST_BINS]
    # Nothing here has a threshold: its delta is left whole.
    for_bins, of_own, of_persons, of_classes = Budget(budget.kind, budget.amount).split(
        (_BINS if many else 0, _OWN, _PERSONS, _CLASSES)
    )
    maps = _bins(door, families.domain, many, for_bins) if many else {}
    stage = _Stage(door, families.domain, maps)
    out, alone = _standing_out(stage, rows, of_own)
    if not out:
        left = of_persons.amount + of_classes.amount
        return [], Budget(budget.kind, left, budget.delta)
    beyond, reasons = _beyond_persons(stage, out, persons, of_persons, len(rows))
    if not beyond:
        return [], Budget(budget.kind, of_classes.amount, budget.delta)
    if not families.table:
        return _classes(stage, families, beyond, of_classes, {}), Budget(budget.kind, 0, budget.delta)
    of_rows, of_classes = of_classes.split((_ROWS if len(beyond) > 1 else 0, _CLASSES))
    beyond = _not_of_others(stage, beyond, out, alone, of_rows)
    classes = _classes(stage, families, beyond, of_classes, reasons)
    return classes, Budget(budget.kind, 0, budget.delta)


def _standing_out(
    stage: _Stage, rows: Sequence[str], budget: Budget
) -> tuple[dict[str, Excess], dict[str, NDArray[np.float64]]]:
    """The attributes whose rows of a family agree more than strangers, and their tables of pairs."""
    tables, sigma = stage.pairs([(name, name) for name in rows], budget)
    excesses = {name: excess(table, sigma) for name, table in zip(rows, tables, strict=True)}
    out = {
        name: excess_of
        for name, excess_of in excesses.items()
        if excess_of is not None and _stands_out(excess_of, len(rows))
    }
    return out, dict(zip(rows, tables, strict=True))


def _stands_out(beyond_strangers: Excess, tests: int) -> bool:
    limit = -float(ndtri(FALSE_POSITIVES / tests))
    return beyond_strangers.share > max(LEAST_EXCESS, limit * beyond_strangers.deviation)


def _beyond_persons(
    stage: _Stage, out: dict[str, Excess], persons: Sequence[str], budget: Budget, tests: int
) -> tuple[list[str], dict[str, Reason]]:
    """Those that agree more than the attribute of persons that explains most of it, at most ``MOST_OUT``; and
    what explains most of each."""
    pairs = [(person, name) for person in persons if stage.bins(person) > 1 for name in out]
    beyond, reasons = dict(out), dict[str, Reason]()
    if pairs:
        tables, sigma = stage.pairs(pairs, budget)
        for (person, name), table in zip(pairs, tables, strict=True):
            share, in_all = explained(table, sigma), out[name]
            left = beyond[name].share if share is None else in_all.share - share.share
            if share is not None and left < beyond[name].share:
                beyond[name] = Excess(left, float(np.hypot(in_all.deviation, share.deviation)))
                if share.share > _CLEAR * share.deviation:
                    reasons[name] = reason_of(person, table, sigma)
    left_over = {name: remaining for name, remaining in beyond.items() if _stands_out(remaining, tests)}
    clearest = sorted(left_over, key=lambda name: -left_over[name].share / left_over[name].deviation)
    return [name for name in out if name in clearest[:MOST_OUT]], reasons


def _not_of_others(
    stage: _Stage,
    names: Sequence[str],
    out: Mapping[str, Excess],
    alone: Mapping[str, NDArray[np.float64]],
    budget: Budget,
) -> list[str]:
    """Those whose agreement does not follow from that of another one in the same row. A class that is drawn
    from both would count the same evidence twice, and its rows would agree too much."""
    order = sorted(names, key=lambda name: -out[name].share / out[name].deviation)
    pairs = [(first, name) for index, name in enumerate(order) for first in order[:index]]
    if not pairs:
        return list(names)
    within = dict(zip(pairs, stage.within(pairs, budget), strict=True))
    independent = list[str]()
    for name in order:
        left = [out[name].share - carried(alone[first], within[first, name]) for first in independent]
        if min(left, default=1.0) > max(LEAST_EXCESS, _CLEAR * out[name].deviation):
            independent.append(name)
    return [name for name in names if name in independent]


def _classes(
    stage: _Stage,
    families: Families,
    names: Sequence[str],
    budget: Budget,
    reasons: Mapping[str, Reason],
) -> list[FamilyClass]:
    """The classes that explain the pairs of some attributes, one for those that hang together; none if there
    is only one of each. What ``reasons`` explain of an attribute is no matter of its class."""
    pairs = list(combinations_with_replacement(range(len(names)), 2))
    noisy, sigma = stage.pairs([(names[a], names[b]) for a, b in pairs], budget)
    left = [
        unexplained(table, names[a], names[b], reasons) for (a, b), table in zip(pairs, noisy, strict=True)
    ]
    tables, class_groups = dict(zip(pairs, left, strict=True)), list[tuple[Classes, list[str]]]()
    for members in hanging_together(tables, len(names), sigma):
        member_tables = {
            (i, j): tables[members[i], members[j]]
            for i, j in combinations_with_replacement(range(len(members)), 2)
        }
        classes = found_classes(member_tables, [stage.bins(names[member]) for member in members], sigma)
        if len(classes.shares) > 1:
            class_groups.append((classes, [names[member] for member in members]))
    hidden = families.hidden_names("group", len(class_groups))
    return [
        class_costs(
            group,
            classes.shares,
            _over_codes(stage, [*zip(group_names, classes.laws, strict=True), *reason_factors]),
        )
        for group, (classes, group_names) in zip(hidden, class_groups, strict=True)
        for reason_factors in [given_reasons(classes, group_names, reasons)]
    ]


def _over_codes(
    stage: _Stage, laws: Sequence[tuple[str, NDArray[np.float64]]]
) -> list[tuple[str, NDArray[np.float64]]]:
    """Laws over all codes, of attributes that were paired in bins."""
    return [(name, law[:, list(stage.maps[name])] if name in stage.maps else law) for name, law in laws]


def _bins(door: Door, domain: Domain, names: Sequence[str], budget: Budget) -> dict[str, Map]:
    """Few bins of attributes of many codes, by their noisy counts."""
    tables = door.ask(Marginals([MarginalQuery((name,)) for name in names]), budget).read()
    return {name: _few(domain[name], table) for name, table in zip(names, tables, strict=True)}


def _few(attribute: Attribute, table: NoisyMarginal) -> Map:
    """Neighbours together with about equally many families in each bin, where codes have an order; else the
    largest codes each alone, and all others in one bin."""
    counts = np.maximum(table.values.astype(np.float64), 0.0) + 1.0
    if attribute.ordered or attribute.kind == "numeric":
        middles = (np.cumsum(counts) - counts / 2) / counts.sum()
        wanted = np.minimum((middles * MOST_BINS).astype(np.int64), MOST_BINS - 1)
    else:
        wanted = np.full(len(counts), MOST_BINS, dtype=np.int64)
        largest = np.sort(np.argsort(-counts, kind="stable")[: MOST_BINS - 1])
        wanted[largest] = np.arange(len(largest))
    return tuple(int(code) for code in np.unique(wanted, return_inverse=True)[1])
