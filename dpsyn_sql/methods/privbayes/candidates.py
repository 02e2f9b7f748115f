"""Candidates of a step: children outside the network, each with sets of parents inside it.

Their number is bounded by public constants. Which they are follows from noisy answers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from dpsyn_sql.methods.privbayes.encoding import Encoded, Family, Parent, cells_of

FEW_CANDIDATES = 256
"""If no step can have more, every step looks at all of them."""

MOST_CANDIDATES = 64
"""Of one step, otherwise."""

MOST_CHILDREN = 16
"""Children that are looked at where distances of pairs rank them."""

MOST_PARENTS = 8
"""Parents of a child that are looked at then."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """``degree``: parents at most. ``useful``: cells of a table that stand out of its noise on average
    (infinite for a fixed degree). ``countable``: cells of a table that may be counted. ``pairs``: attributes
    whose pair may be counted however large it is."""

    degree: int
    useful: float
    countable: int
    pairs: frozenset[tuple[int, int]]

    def fits(self, encoded: Encoded, child: int, parents: Sequence[Parent]) -> bool:
        """Whether a table may be asked for. A single parent need not be useful: shrinkage drops its noise."""
        cells = cells_of(encoded, [*parents, (child, 0)])
        if len(parents) == 1:
            pair = min(child, parents[0][0]), max(child, parents[0][0])
            return pair in self.pairs or cells <= self.countable
        return cells <= min(self.useful, self.countable)


def largest_number(encoded: Encoded, active: Sequence[int], degree: int) -> int:
    """The most candidates that a step can have if every set of parents fits; with levels, if each set has as
    many as it has parents."""
    several = any(len(encoded.levels[v]) > 1 for v in active)
    each = [size if several else 1 for size in range(degree + 1)]
    number = len(active)
    return max(
        (
            (number - placed) * sum(each[size] * math.comb(placed, size) for size in range(1, degree + 1))
            for placed in range(1, number)
        ),
        default=0,
    )


def candidates(
    encoded: Encoded,
    inside: Sequence[int],
    outside: Sequence[int],
    bounds: Bounds,
    ranks: Mapping[tuple[int, int], float] | None,
    target: int | None = None,
) -> list[Family]:
    """Families to choose from: all, or the ``MOST_CANDIDATES`` most promising.

    Args:
        encoded: attributes and their levels.
        inside: attributes placed.
        outside: the others.
        bounds: of the tables.
        ranks: what is known of each pair of attributes, large for dependence; None if there are so few
            candidates that all are taken.
        target: a placed attribute that is a parent of every child whose table with it may be asked for.
    """
    if ranks is None:
        families = (f for child in outside for f in _families(encoded, child, sorted(inside), bounds, target))
        return list(families)

    def known(child: int, parent: int) -> float:
        return ranks.get((min(child, parent), max(child, parent)), 0.0)

    best = {child: max(known(child, parent) for parent in inside) for child in outside}
    likely = sorted(outside, key=lambda child: -best[child])[:MOST_CHILDREN]
    found: list[tuple[float, Family]] = []
    for child in likely:
        near = sorted(inside, key=lambda parent: -known(child, parent))[:MOST_PARENTS]
        own = {*near, *(() if target is None else (target,))}
        for family in _families(encoded, child, sorted(own), bounds, target):
            found.append((sum(max(0.0, known(child, parent)) for parent, _ in family.parents), family))
    found.sort(key=lambda pair: -pair[0])
    return [family for _, family in found[:MOST_CANDIDATES]]


def _families(
    encoded: Encoded, child: int, inside: Sequence[int], bounds: Bounds, target: int | None
) -> Iterator[Family]:
    """A child with every set of parents that fits; of the levels of one set those that no finer ones beat.

    If the child fits a table with the target, the target is in every set.
    """
    if target is not None and not _finest(encoded, child, (target,), bounds):
        target = None
    for size in range(1, bounds.degree + 1):
        for chosen in combinations(inside, size):
            if target is not None and target not in chosen:
                continue
            for parents in _finest(encoded, child, chosen, bounds):
                yield Family(child, parents)


def _finest(encoded: Encoded, child: int, chosen: Sequence[int], bounds: Bounds) -> list[tuple[Parent, ...]]:
    """Levels that fit, and do not with any one of them finer by one: of these the largest tables, as many as
    there are parents (``largest_number`` counts on it)."""
    finest = tuple((attribute, 0) for attribute in chosen)
    if bounds.fits(encoded, child, finest):
        return [finest]
    levels = [range(len(encoded.levels[attribute])) for attribute in chosen]
    fitting = {
        combination
        for combination in product(*levels)
        if bounds.fits(encoded, child, tuple(zip(chosen, combination, strict=True)))
    }
    kept = [
        combination
        for combination in sorted(fitting)
        if not any(
            (*combination[:place], level - 1, *combination[place + 1 :]) in fitting
            for place, level in enumerate(combination)
        )
    ]
    found = [tuple(zip(chosen, combination, strict=True)) for combination in kept]
    return sorted(found, key=lambda parents: -cells_of(encoded, parents))[: len(chosen)]
