"""All questions of PrivBayes after the one-way tables, and the references of its choices.

The score of a family (X, P) is the integer |counts - reference|_1 with reference = round(N Q(P) q(x)): Q
is the joint distribution of the parents in the model so far, q the child's own, N the noisy total. All three
come from answers that are released already (docs/privacy.md, "PrivBayes networks").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.reproducible import snapped
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.methods.privbayes.candidates import Bounds
from dpsyn_sql.methods.privbayes.encoding import Encoded, Family
from dpsyn_sql.methods.privbayes.growing import Grown
from dpsyn_sql.planning.queries import Choice, Distances, Marginals

FloatArray = NDArray[np.float64]
Pair = tuple[int, int]

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal variable."""

CHARGE = 0.25
"""The part of a table's sampling error and noise (mean absolute values, rows) that lowers its score: fitting
drops most of both."""

_LARGEST_TOTAL = 2.0**56
# References must sum to less than 2^57.


@dataclass(frozen=True, slots=True)
class CellNoise:
    """Noise in a cell (rows): its standard ``deviation``, and its ``mean`` absolute value."""

    deviation: float
    mean: float


def cell_noise(budget: Budget, tables: int, rows_per_unit: int) -> CellNoise:
    """The noise of so many tables that share a budget evenly."""
    if budget.kind == "pure":
        scale = tables * rows_per_unit / float(budget.fraction)
        return CellNoise(math.sqrt(2) * scale, scale)
    deviation = rows_per_unit * math.sqrt(tables / (2 * float(budget.rho)))
    return CellNoise(deviation, MEAN_ABSOLUTE * deviation)


@dataclass(frozen=True, slots=True)
class Task:
    """What stays the same while the network grows.

    ``total``: rows, at least 1. ``active``: attributes with several bins, ascending; the others are
    independent. ``noise``: of the table of a family. ``choosing`` and ``measuring``: budgets of all choices
    (or pair tables) and of all tables. ``bounds``: of the tables that may be asked for. ``target``: the
    active attribute that the network starts at, and that is a parent of all others where tables allow it.
    """

    curator: Curator
    encoded: Encoded
    total: float
    active: Sequence[int]
    noise: CellNoise
    choosing: Budget
    measuring: Budget
    bounds: Bounds
    target: int | None = None

    @property
    def steps(self) -> int:
        """Families to choose: one for each active attribute but the first."""
        return len(self.active) - 1

    def chosen(self, grown: Grown, families: Sequence[Family], budget: Budget) -> Family:
        """A private choice of the family that is furthest from a child independent of its parents.

        Without any dependence a score is as large as the sampling errors are, and what the noise of the table
        will be is lost again: both are allowed for.
        """
        references, allowances = list[NDArray[np.int64]](), list[int]()
        for family in families:
            expected = self._expected(grown, family)
            chance = CHARGE * MEAN_ABSOLUTE * float(np.sqrt(expected + self.noise.deviation**2).sum())
            allowances.append(round(min(chance, _LARGEST_TOTAL)))
            references.append(np.rint(self.encoded.to_query(family, expected)).astype(np.int64))
        queries = [self.encoded.query(family) for family in families]
        (best,) = self.curator.ask(Choice(queries, references, 1, allowances), budget)
        return families[best]

    def measured(self, families: Sequence[Family], budget: Budget) -> list[Observation]:
        """Noisy tables of families (parents' values ..., child's values)."""
        answers = self.curator.ask(Marginals([self.encoded.query(family) for family in families]), budget)
        return [
            Observation(self.encoded.to_family(family, table.values), np.asarray(table.sigma))
            for family, table in zip(families, answers, strict=True)
        ]

    def pairs(self) -> list[Family]:
        """Every pair of active attributes that may be counted, as a child and its parent."""
        found = (Family(child, ((parent, 0),)) for parent, child in combinations(self.active, 2))
        return [f for f in found if self.bounds.fits(self.encoded, f.child, f.parents)]

    def distances(self, budget: Budget) -> dict[Pair, float]:
        """Of every pair its noisy distance to independence, less what sampling explains (rows)."""
        families, total = self.pairs(), min(self.total, _LARGEST_TOTAL)
        if not families:
            return {}
        shares = self.encoded.shares
        expected = [total * np.outer(shares[f.parents[0][0]], shares[f.child]) for f in families]
        references = [np.rint(table).astype(np.int64) for table in expected]
        queries = [self.encoded.query(family) for family in families]
        noisy = self.curator.ask(Distances(queries, references), budget)
        beyond = [
            rows - MEAN_ABSOLUTE * float(np.sqrt(table).sum())
            for rows, table in zip(noisy, expected, strict=True)
        ]
        pairs = [(family.parents[0][0], family.child) for family in families]
        return dict(zip(pairs, snapped(np.array(beyond), 1.0).tolist(), strict=True))

    def _expected(self, grown: Grown, family: Family) -> FloatArray:
        """Counts (parents' values ..., child's values) of a child that is independent of its parents."""
        above, _ = grown.parents_joint(family.parents)
        own = self.encoded.shares[family.child]
        return np.asarray(min(self.total, _LARGEST_TOTAL) * np.multiply.outer(above, own))
