"""Families, a child and its parents: the candidates of a step, their scores, and the questions about them.

The number of candidates is bounded by public constants. Which they are follows from noisy answers alone.

The score of a family (X, P) at the door is the integer |counts - reference|_1 with reference = round(N Q(P)
q(x)): Q is the joint distribution of the parents in the model so far, q the child's own, N the noisy total.
All three come from answers that are released already (docs/privacy.md, "PrivBayes networks").

The scores of the paper, mutual information, F and R (Zhang, Cormode, Procopiuc, Srivastava and Xiao, TODS
2017), are made of the counts alone, in whole steps (docs/privacy.md, "Scores of families").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import cast

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.methods.privbayes.network import Encoded, Family, GrowingNetwork, Parent, cells_of
from dpsyn_sql.planning.asking import Door
from dpsyn_sql.planning.queries import Choice, Distances, FamilyChoice, Marginals, Score
from dpsyn_sql.planning.views import MEAN_ABSOLUTE

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
    scored: list[tuple[float, Family]] = []
    for child in likely:
        near = sorted(inside, key=lambda parent: -known(child, parent))[:MOST_PARENTS]
        nearest = {*near, *(() if target is None else (target,))}
        for family in _families(encoded, child, sorted(nearest), bounds, target):
            scored.append((sum(max(0.0, known(child, parent)) for parent, _ in family.parents), family))
    scored.sort(key=lambda pair: -pair[0])
    return [family for _, family in scored[:MOST_CANDIDATES]]


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
    maximal = [
        combination
        for combination in sorted(fitting)
        if not any(
            (*combination[:index], level - 1, *combination[index + 1 :]) in fitting
            for index, level in enumerate(combination)
        )
    ]
    parent_sets = [tuple(zip(chosen, combination, strict=True)) for combination in maximal]
    return sorted(parent_sets, key=lambda parents: -cells_of(encoded, parents))[: len(chosen)]


L1 = "L1"
"""The score against what the model expects; the others are those of the paper."""

Pair = tuple[int, int]

CHARGE = 0.25
"""The part of a table's sampling error and noise (mean absolute values, rows) that lowers its score: fitting
drops most of both."""

MOST_BITS = 40
"""``I`` is mutual information up to 2^40 rows at most."""

_LARGEST_TOTAL = 2.0**56
# References must sum to less than 2^57.


@dataclass(frozen=True, slots=True)
class Task:
    """What stays the same while the network grows.

    ``total``: rows, at least 1. ``active``: attributes with several bins, ascending; the others are
    independent. ``noise``: standard deviation of a cell (rows) of the table of a family. ``choosing`` and
    ``measuring``: budgets of all choices (or pair tables) and of all tables. ``bounds``: of the tables that
    may be asked for. ``score``: what chooses. ``target``: the active attribute that the network starts at,
    and that is a parent of all others where tables allow it.
    """

    door: Door
    encoded: Encoded
    total: float
    active: Sequence[int]
    noise: float
    choosing: Budget
    measuring: Budget
    bounds: Bounds
    score: str = L1
    target: int | None = None

    @property
    def steps(self) -> int:
        """Families to choose: one for each active attribute but the first."""
        return len(self.active) - 1

    def chosen(self, grown: GrowingNetwork, families: Sequence[Family], budget: Budget) -> Family:
        """A private choice of the family of the largest score."""
        queries = [self.encoded.query(family) for family in families]
        if self.score == L1:
            references, allowances = self._expected_all(grown, families)
            (best,) = self.door.ask(Choice(queries, references, 1, allowances), budget).read()
            return families[best]
        names = self.encoded.binned.domain.names
        children = [names[family.child] for family in families]
        bits = self._bits if self.score == "I" else 0
        return families[
            self.door.ask(FamilyChoice(queries, children, cast(Score, self.score), bits), budget).read()
        ]

    def _expected_all(
        self, grown: GrowingNetwork, families: Sequence[Family]
    ) -> tuple[list[IntArray], list[int]]:
        """Of each family its counts if the child is independent of its parents, and an allowance.

        Without any dependence a score is as large as the sampling errors are, and what the noise of the table
        will be is lost again: both are allowed for.
        """
        references, allowances = list[IntArray](), list[int]()
        for family in families:
            expected = self._expected(grown, family)
            chance = CHARGE * MEAN_ABSOLUTE * float(np.sqrt(expected + self.noise**2).sum())
            allowances.append(round(min(chance, _LARGEST_TOTAL)))
            references.append(np.rint(self.encoded.to_query(family, expected)).astype(np.int64))
        return references, allowances

    @property
    def _bits(self) -> int:
        """2^bits is between two and four times the noisy number of rows, so hardly below the true one."""
        rows = int(snapped(np.array([min(self.total, _LARGEST_TOTAL)]), 1.0)[0])
        return min(MOST_BITS, rows.bit_length() + 1)

    def measured(self, families: Sequence[Family], budget: Budget) -> list[Observation]:
        """Noisy tables of families (parents' values ..., child's values)."""
        answers = self.door.ask(Marginals([self.encoded.query(family) for family in families]), budget).read()
        return [
            Observation(self.encoded.to_family(family, table.values), np.asarray(table.sigma))
            for family, table in zip(families, answers, strict=True)
        ]

    def pairs(self) -> list[Family]:
        """Every pair of active attributes that may be counted, as a child and its parent."""
        families = (Family(child, ((parent, 0),)) for parent, child in combinations(self.active, 2))
        return [f for f in families if self.bounds.fits(self.encoded, f.child, f.parents)]

    def distances(self, budget: Budget) -> dict[Pair, float]:
        """Of every pair its noisy distance to independence, less what sampling explains (rows)."""
        families, total = self.pairs(), min(self.total, _LARGEST_TOTAL)
        if not families:
            return {}
        shares = self.encoded.shares
        expected = [total * np.outer(shares[f.parents[0][0]], shares[f.child]) for f in families]
        references = [np.rint(table).astype(np.int64) for table in expected]
        queries = [self.encoded.query(family) for family in families]
        noisy = self.door.ask(Distances(queries, references), budget).read()
        beyond = [
            rows - MEAN_ABSOLUTE * float(np.sqrt(table).sum())
            for rows, table in zip(noisy, expected, strict=True)
        ]
        pairs = [(family.parents[0][0], family.child) for family in families]
        return dict(zip(pairs, snapped(np.array(beyond), 1.0).tolist(), strict=True))

    def _expected(self, grown: GrowingNetwork, family: Family) -> FloatArray:
        """Counts (parents' values ..., child's values) of a child that is independent of its parents."""
        above, _ = grown.parents_joint(family.parents)
        shares = self.encoded.shares[family.child]
        return np.asarray(min(self.total, _LARGEST_TOTAL) * np.multiply.outer(above, shares))
